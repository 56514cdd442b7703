//! Adding nodes to a graph.

use super::capture::plain_edges;
use super::copy::of_3d;
use super::launch::parameters;
use super::{
    functions, list_nodes, AllocParams, EdgeData, HostParams, KernelParams, Memcpy3d, MemcpyBody,
    MemsetParams, NodeParams, Out,
};
use crate::copy::{Copy, Fill};
use crate::event::EVENTS;
use crate::graph::{Action, Graph};
use crate::memory::graph::{self as graph_memory, GraphMemory};
use crate::module;
use crate::status::*;
use crate::work::{Host, Kernel, Work};
use crate::{context, device};

/// A kernel from its description in C.
pub fn kernel(params: Out<KernelParams>) -> Result<Work> {
    let p = params.get()?;
    let function = module::function(p.function)?;
    let kernel = Kernel {
        params: parameters(&function, p.params, p.extra)?,
        function,
        grid: p.grid,
        block: p.block,
        shared: p.shared,
    };
    kernel.check()?;
    Ok(Work::Kernel(kernel))
}

/// A copy from its description in C.
pub fn copy(params: Out<Memcpy3d>) -> Result<Work> {
    let copy: Copy = of_3d(&params.get()?)?;
    copy.check()?;
    Ok(Work::Copy(copy))
}

/// A fill from its description in C.
pub fn fill(params: Out<MemsetParams>) -> Result<Work> {
    let p = params.get()?;
    let fill = Fill {
        to: p.dst,
        pitch: p.pitch as u64,
        element: p.element,
        value: p.value,
        width: p.width as u64,
        height: p.height as u64,
    };
    fill.check()?;
    Ok(Work::Fill(fill))
}

/// A call of the program from its description in C.
pub fn host(params: Out<HostParams>) -> Result<Work> {
    let HostParams { function, data } = params.get()?;
    if function == 0 {
        return Err(INVALID_VALUE);
    }
    Ok(Work::Host(Host { function, data }))
}

/// The graph inside of a node: a copy of the one that is given.
pub fn child(graph: usize) -> Result<Action> {
    Ok(Action::Child(Graph::get(graph)?.copy(false)?))
}

fn record(event: usize) -> Result<Work> {
    Ok(Work::Record(EVENTS.get(event)?))
}

fn wait(event: usize) -> Result<Work> {
    Ok(Work::Wait(EVENTS.get(event)?))
}

/// Memory from its description in C, where its address is answered.
fn alloc(params: Out<AllocParams>) -> Result<Work> {
    let mut p = params.get()?;
    if p.size == 0 || p.pool.kind != 1 || p.pool.handles != 0 || p.pool.location.kind != 1 {
        return Err(INVALID_VALUE);
    }
    device::check(p.pool.location.id).map_err(|_| INVALID_VALUE)?;
    let memory = GraphMemory::reserve(p.size as u64, p.pool.location.id)?;
    p.address = memory.address;
    params.set(p);
    Ok(Work::Alloc(memory))
}

fn free(address: u64) -> Result<Work> {
    graph_memory::at(address)
        .map(Work::Free)
        .ok_or(INVALID_VALUE)
}

/// Adds a node after others.
fn add(
    node: Out<usize>,
    graph: usize,
    after: Out<usize>,
    count: usize,
    action: Action,
) -> Result<()> {
    node.required()?;
    let graph = Graph::get(graph)?;
    node.set(graph.add(action, &list_nodes(&graph, after, count)?)?);
    Ok(())
}

/// The part of a description that depends on the kind.
pub fn body<T>(params: Out<NodeParams>) -> Out<T> {
    // SAFETY: stays inside of the structure that C has given; the caller has checked that there is one.
    Out(unsafe { std::ptr::addr_of_mut!((*params.0).body).cast() })
}

/// What a node does, from a description of any kind.
pub fn any(params: Out<NodeParams>) -> Result<Action> {
    let work = match params.get()?.kind {
        0 => kernel(body(params))?,
        1 => {
            let of_node: Out<MemcpyBody> = body(params);
            let copy = of_3d(&of_node.get()?.copy)?;
            copy.check()?;
            Work::Copy(copy)
        }
        2 => fill(body(params))?,
        3 => host(body(params))?,
        4 => return child(body::<usize>(params).get()?),
        5 => Work::Empty,
        6 => wait(body::<usize>(params).get()?)?,
        7 => record(body::<usize>(params).get()?)?,
        10 => alloc(body(params))?,
        11 => free(body::<u64>(params).get()?)?,
        8 | 9 | 12 | 13 => return Err(NOT_SUPPORTED),
        _ => return Err(INVALID_VALUE),
    };
    Ok(Action::Work(work))
}

functions! {
    fn cuGraphAddKernelNode(
        node: Out<usize>,
        graph: usize,
        after: Out<usize>,
        count: usize,
        params: Out<KernelParams>,
    ) {
        add(node, graph, after, count, Action::Work(kernel(params)?))
    }

    fn cuGraphAddKernelNode_v2(
        node: Out<usize>,
        graph: usize,
        after: Out<usize>,
        count: usize,
        params: Out<KernelParams>,
    ) {
        add(node, graph, after, count, Action::Work(kernel(params)?))
    }

    fn cuGraphAddMemcpyNode(
        node: Out<usize>,
        graph: usize,
        after: Out<usize>,
        count: usize,
        params: Out<Memcpy3d>,
        context: usize,
    ) {
        context::Context::get(context)?;
        add(node, graph, after, count, Action::Work(copy(params)?))
    }

    fn cuGraphAddMemsetNode(
        node: Out<usize>,
        graph: usize,
        after: Out<usize>,
        count: usize,
        params: Out<MemsetParams>,
        context: usize,
    ) {
        context::Context::get(context)?;
        add(node, graph, after, count, Action::Work(fill(params)?))
    }

    fn cuGraphAddHostNode(
        node: Out<usize>,
        graph: usize,
        after: Out<usize>,
        count: usize,
        params: Out<HostParams>,
    ) {
        add(node, graph, after, count, Action::Work(host(params)?))
    }

    fn cuGraphAddChildGraphNode(
        node: Out<usize>,
        graph: usize,
        after: Out<usize>,
        count: usize,
        inner: usize,
    ) {
        add(node, graph, after, count, child(inner)?)
    }

    fn cuGraphAddEmptyNode(node: Out<usize>, graph: usize, after: Out<usize>, count: usize) {
        add(node, graph, after, count, Action::Work(Work::Empty))
    }

    fn cuGraphAddEventRecordNode(
        node: Out<usize>,
        graph: usize,
        after: Out<usize>,
        count: usize,
        event: usize,
    ) {
        add(node, graph, after, count, Action::Work(record(event)?))
    }

    fn cuGraphAddEventWaitNode(
        node: Out<usize>,
        graph: usize,
        after: Out<usize>,
        count: usize,
        event: usize,
    ) {
        add(node, graph, after, count, Action::Work(wait(event)?))
    }

    fn cuGraphAddMemAllocNode(
        node: Out<usize>,
        graph: usize,
        after: Out<usize>,
        count: usize,
        params: Out<AllocParams>,
    ) {
        add(node, graph, after, count, Action::Work(alloc(params)?))
    }

    fn cuGraphAddMemFreeNode(
        node: Out<usize>,
        graph: usize,
        after: Out<usize>,
        count: usize,
        address: u64,
    ) {
        add(node, graph, after, count, Action::Work(free(address)?))
    }

    fn cuGraphAddNode(
        node: Out<usize>,
        graph: usize,
        after: Out<usize>,
        count: usize,
        params: Out<NodeParams>,
    ) {
        add(node, graph, after, count, any(params)?)
    }

    fn cuGraphAddNode_v2(
        node: Out<usize>,
        graph: usize,
        after: Out<usize>,
        edges: Out<EdgeData>,
        count: usize,
        params: Out<NodeParams>,
    ) {
        plain_edges(edges, count)?;
        add(node, graph, after, count, any(params)?)
    }
}
