//! Asking nodes for what they do, and changing it.

use super::copy::to_3d;
use super::nodes;
use super::{
    functions, AllocParams, HostParams, KernelParams, KernelParams2, Location, Memcpy3d,
    MemsetParams, NodeParams, Out, PoolProps,
};
use crate::event::EVENTS;
use crate::graph::{self, Action};
use crate::status::*;
use crate::work::Work;

/// The operation of a node that has one.
fn work(node: usize) -> Result<Work> {
    match graph::action(node)? {
        Action::Work(work) => Ok(work),
        Action::Child(_) => Err(INVALID_VALUE),
    }
}

/// Gives a node something else of the same kind to do.
fn set(node: usize, action: Action) -> Result<()> {
    let graph = graph::of_node(node)?;
    let mut state = graph.state();
    let node = state.nodes.get_mut(&node).ok_or(INVALID_VALUE)?;
    if node.action.kind() != action.kind() {
        return Err(INVALID_VALUE);
    }
    if matches!(action, Action::Work(Work::Alloc(_) | Work::Free(_))) {
        return Err(NOT_SUPPORTED);
    }
    let old = std::mem::replace(&mut node.action, action);
    drop(state);
    drop(old);
    Ok(())
}

/// The description of a kernel node. Its pointers live as long as the node keeps its parameters.
fn kernel(node: usize) -> Result<KernelParams> {
    match work(node)? {
        Work::Kernel(kernel) => Ok(KernelParams {
            function: kernel.function.handle,
            grid: kernel.grid,
            block: kernel.block,
            shared: kernel.shared,
            params: kernel.params.pointers(&kernel.function).cast(),
            extra: std::ptr::null(),
        }),
        _ => Err(INVALID_VALUE),
    }
}

fn set_kernel(node: usize, params: Out<KernelParams>) -> Result<()> {
    graph::of_node(node)?;
    set(node, Action::Work(nodes::kernel(params)?))
}

/// Priority: the attribute of a kernel node that is kept.
const PRIORITY: u32 = 8;

functions! {
    fn cuGraphNodeGetType(node: usize, kind: Out<i32>) {
        kind.required()?.set(graph::action(node)?.kind());
        Ok(())
    }

    fn cuGraphKernelNodeGetParams(node: usize, params: Out<KernelParams>) {
        params.required()?.set(kernel(node)?);
        Ok(())
    }

    fn cuGraphKernelNodeGetParams_v2(node: usize, params: Out<KernelParams2>) {
        params.required()?.set(KernelParams2 {
            first: kernel(node)?,
            kernel: 0,
            context: 0,
        });
        Ok(())
    }

    fn cuGraphKernelNodeSetParams(node: usize, params: Out<KernelParams>) {
        set_kernel(node, params)
    }

    fn cuGraphKernelNodeSetParams_v2(node: usize, params: Out<KernelParams>) {
        set_kernel(node, params)
    }

    fn cuGraphKernelNodeGetAttribute(node: usize, attribute: u32, value: Out<i32>) {
        kernel(node)?;
        if attribute != PRIORITY {
            return Err(INVALID_VALUE);
        }
        let graph = graph::of_node(node)?;
        let priority = graph.state().nodes.get(&node).map_or(0, |n| n.priority);
        value.required()?.set(priority);
        Ok(())
    }

    fn cuGraphKernelNodeSetAttribute(node: usize, attribute: u32, value: Out<i32>) {
        kernel(node)?;
        if attribute != PRIORITY {
            return Err(if attribute <= 16 { NOT_SUPPORTED } else { INVALID_VALUE });
        }
        let priority = value.get()?;
        let graph = graph::of_node(node)?;
        if let Some(node) = graph.state().nodes.get_mut(&node) {
            node.priority = priority;
        }
        Ok(())
    }

    fn cuGraphKernelNodeCopyAttributes(to: usize, from: usize) {
        kernel(from)?;
        kernel(to)?;
        let graph = graph::of_node(from)?;
        let priority = graph.state().nodes.get(&from).map_or(0, |n| n.priority);
        let graph = graph::of_node(to)?;
        if let Some(node) = graph.state().nodes.get_mut(&to) {
            node.priority = priority;
        }
        Ok(())
    }

    fn cuGraphMemcpyNodeGetParams(node: usize, params: Out<Memcpy3d>) {
        match work(node)? {
            Work::Copy(copy) => params.required()?.set(to_3d(&copy)),
            _ => return Err(INVALID_VALUE),
        }
        Ok(())
    }

    fn cuGraphMemcpyNodeSetParams(node: usize, params: Out<Memcpy3d>) {
        graph::of_node(node)?;
        set(node, Action::Work(nodes::copy(params)?))
    }

    fn cuGraphMemsetNodeGetParams(node: usize, params: Out<MemsetParams>) {
        match work(node)? {
            Work::Fill(fill) => params.required()?.set(MemsetParams {
                dst: fill.to,
                pitch: fill.pitch as usize,
                value: fill.value,
                element: fill.element,
                width: fill.width as usize,
                height: fill.height as usize,
            }),
            _ => return Err(INVALID_VALUE),
        }
        Ok(())
    }

    fn cuGraphMemsetNodeSetParams(node: usize, params: Out<MemsetParams>) {
        graph::of_node(node)?;
        set(node, Action::Work(nodes::fill(params)?))
    }

    fn cuGraphHostNodeGetParams(node: usize, params: Out<HostParams>) {
        match work(node)? {
            Work::Host(host) => params.required()?.set(HostParams {
                function: host.function,
                data: host.data,
            }),
            _ => return Err(INVALID_VALUE),
        }
        Ok(())
    }

    fn cuGraphHostNodeSetParams(node: usize, params: Out<HostParams>) {
        graph::of_node(node)?;
        set(node, Action::Work(nodes::host(params)?))
    }

    fn cuGraphChildGraphNodeGetGraph(node: usize, inner: Out<usize>) {
        match graph::action(node)? {
            Action::Child(child) => inner.required()?.set(child.handle),
            Action::Work(_) => return Err(INVALID_VALUE),
        }
        Ok(())
    }

    fn cuGraphEventRecordNodeGetEvent(node: usize, event: Out<usize>) {
        match work(node)? {
            Work::Record(recorded) => event.required()?.set(recorded.handle),
            _ => return Err(INVALID_VALUE),
        }
        Ok(())
    }

    fn cuGraphEventRecordNodeSetEvent(node: usize, event: usize) {
        graph::of_node(node)?;
        set(node, Action::Work(Work::Record(EVENTS.get(event)?)))
    }

    fn cuGraphEventWaitNodeGetEvent(node: usize, event: Out<usize>) {
        match work(node)? {
            Work::Wait(awaited) => event.required()?.set(awaited.handle),
            _ => return Err(INVALID_VALUE),
        }
        Ok(())
    }

    fn cuGraphEventWaitNodeSetEvent(node: usize, event: usize) {
        graph::of_node(node)?;
        set(node, Action::Work(Work::Wait(EVENTS.get(event)?)))
    }

    fn cuGraphMemAllocNodeGetParams(node: usize, params: Out<AllocParams>) {
        let Work::Alloc(memory) = work(node)? else {
            return Err(INVALID_VALUE);
        };
        params.required()?.set(AllocParams {
            pool: PoolProps {
                kind: 1,
                handles: 0,
                location: Location { kind: 1, id: memory.device },
                security: 0,
                most: 0,
                usage: 0,
                reserved: [0; 54],
            },
            access: 0,
            access_count: 0,
            size: memory.size as usize,
            address: memory.address,
        });
        Ok(())
    }

    fn cuGraphMemFreeNodeGetParams(node: usize, address: Out<u64>) {
        match work(node)? {
            Work::Free(memory) => address.required()?.set(memory.address),
            _ => return Err(INVALID_VALUE),
        }
        Ok(())
    }

    fn cuGraphNodeSetParams(node: usize, params: Out<NodeParams>) {
        let kind = graph::action(node)?.kind();
        if params.get()?.kind != kind {
            return Err(INVALID_VALUE);
        }
        if matches!(kind, 10 | 11) {
            return Err(NOT_SUPPORTED);
        }
        set(node, nodes::any(params)?)
    }
}
