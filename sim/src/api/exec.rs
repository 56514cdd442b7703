//! Executable graphs.

use super::{
    functions, nodes, HostParams, InstantiateParams, KernelParams, Memcpy3d, MemsetParams,
    NodeParams, Out, UpdateInfo,
};
use crate::event::EVENTS;
use crate::graph::exec::{self, Exec};
use crate::graph::update::{self, Refusal, Shape};
use crate::graph::{plan::Plan, Action, Graph};
use crate::status::*;
use crate::stream::Stream;
use crate::work::Work;
use crate::{capture, context};

/// Instantiates a graph; the node that is to blame is answered with an error.
fn instantiate(place: Out<usize>, graph: usize, flags: u64, blame: Out<usize>) -> Result<()> {
    place.required()?.set(0);
    blame.set(0);
    let graph = Graph::get(graph)?;
    let context = context::current()?;
    capture::unsafe_call()?;
    match exec::instantiate(&graph, &context, flags) {
        Ok(handle) => {
            place.set(handle);
            Ok(())
        }
        Err((status, node)) => {
            blame.set(node);
            Err(status)
        }
    }
}

/// A stream that an executable graph may be launched or uploaded on.
fn stream_for(handle: usize) -> Result<std::sync::Arc<Stream>> {
    let stream = Stream::get(handle)?;
    if stream.is_null() {
        capture::uses_null_stream(stream.context_handle)?;
    }
    capture::forbidden_on(&stream)?;
    Ok(stream)
}

fn set(exec: usize, node: usize, work: Work) -> Result<()> {
    exec::get(exec)?.set(node, work)
}

/// Replaces the graph inside of a node by another of the same form.
fn set_child(exec: &Exec, node: usize, inner: &Graph) -> Result<()> {
    if inner.has_memory_nodes() {
        return Err(NOT_SUPPORTED);
    }
    let shape = crate::table::lock(&exec.shape);
    let pairs = shape.pair_child(node, &Shape::new(inner))?;
    let new = Plan::new(inner).map_err(|(status, _)| status)?;
    exec.change(|plan| {
        for (old, new_node) in pairs {
            plan.step_mut(old)?.work = new.step(new_node)?.work.clone();
        }
        Ok(())
    })
}

/// Updates an executable graph: why not, if it cannot be.
fn update(exec: usize, graph: usize) -> Result<Option<Refusal>> {
    let exec = exec::get(exec)?;
    let graph = Graph::get(graph)?;
    capture::unsafe_call()?;
    // Not the family of the exec: threads may well update an exec each of one graph.
    let _inside = graph.family.enter();
    Ok(update::update(&exec, &graph)?.err())
}

functions! {
    fn cuGraphInstantiate(
        exec: Out<usize>,
        graph: usize,
        blame: Out<usize>,
        log: Out<u8>,
        size: usize,
    ) {
        if !log.is_null() && size > 0 {
            log.set(0);
        }
        instantiate(exec, graph, 0, blame)
    }

    fn cuGraphInstantiate_v2(
        exec: Out<usize>,
        graph: usize,
        blame: Out<usize>,
        log: Out<u8>,
        size: usize,
    ) {
        if !log.is_null() && size > 0 {
            log.set(0);
        }
        instantiate(exec, graph, 0, blame)
    }

    fn cuGraphInstantiateWithFlags(exec: Out<usize>, graph: usize, flags: u64) {
        // A device cannot launch graphs here.
        if flags & 4 != 0 {
            return Err(NOT_SUPPORTED);
        }
        // To upload at once takes the form with parameters, which name a stream.
        if flags & 2 != 0 {
            return Err(INVALID_VALUE);
        }
        instantiate(exec, graph, flags, Out::null())
    }

    fn cuGraphInstantiateWithParams / cuGraphInstantiateWithParams_ptsz(
        exec: Out<usize>,
        graph: usize,
        params: Out<InstantiateParams>,
    ) {
        let mut p = params.get()?;
        if p.flags & 2 != 0 {
            Stream::get(p.upload)?;
        }
        if p.flags & 4 != 0 {
            return Err(NOT_SUPPORTED);
        }
        let mut blame = 0;
        let outcome = instantiate(exec, graph, p.flags, Out(&mut blame));
        p.error_node = blame;
        p.result = match outcome {
            Ok(()) => 0,
            // A graph with a circle in it.
            Err(INVALID_VALUE) => 2,
            Err(NOT_SUPPORTED) => 3,
            Err(_) => 1,
        };
        params.set(p);
        outcome
    }

    fn cuGraphExecGetFlags(exec: usize, flags: Out<u64>) {
        // That the nodes' priorities count is not told.
        flags.required()?.set(exec::get(exec)?.flags & !8);
        Ok(())
    }

    fn cuGraphUpload / cuGraphUpload_ptsz(exec: usize, stream: usize) {
        exec::get(exec)?;
        stream_for(stream).map(|_| ())
    }

    fn cuGraphLaunch / cuGraphLaunch_ptsz(exec: usize, stream: usize) {
        let exec = exec::get(exec)?;
        let stream = stream_for(stream)?;
        exec.launch(&stream)
    }

    fn cuGraphExecDestroy(exec: usize) {
        capture::unsafe_call()?;
        exec::destroy(exec)
    }

    fn cuGraphExecUpdate(exec: usize, graph: usize, blame: Out<usize>, result: Out<i32>) {
        result.required()?.set(update::ERROR);
        blame.set(0);
        match update(exec, graph)? {
            None => {
                result.set(0);
                Ok(())
            }
            Some(refusal) => {
                // This form knows of no changed topology.
                let reason = match refusal.reason {
                    update::TOPOLOGY_CHANGED => update::NOT_SUPPORTED,
                    reason => reason,
                };
                result.set(reason);
                blame.set(refusal.node);
                Err(GRAPH_EXEC_UPDATE_FAILURE)
            }
        }
    }

    fn cuGraphExecUpdate_v2(exec: usize, graph: usize, info: Out<UpdateInfo>) {
        let answer = |refusal: Refusal| UpdateInfo {
            result: refusal.reason,
            error_node: refusal.node,
            error_from: refusal.from,
        };
        let failed = Refusal { reason: update::ERROR, ..Refusal::default() };
        info.required()?.set(answer(failed));
        let refused = update(exec, graph)?;
        info.set(answer(refused.unwrap_or_default()));
        if refused.is_some() { Err(GRAPH_EXEC_UPDATE_FAILURE) } else { Ok(()) }
    }

    fn cuGraphExecKernelNodeSetParams(exec: usize, node: usize, params: Out<KernelParams>) {
        set(exec, node, nodes::kernel(params)?)
    }

    fn cuGraphExecKernelNodeSetParams_v2(exec: usize, node: usize, params: Out<KernelParams>) {
        set(exec, node, nodes::kernel(params)?)
    }

    fn cuGraphExecMemcpyNodeSetParams(
        exec: usize,
        node: usize,
        params: Out<Memcpy3d>,
        context: usize,
    ) {
        context::Context::get(context)?;
        set(exec, node, nodes::copy(params)?)
    }

    fn cuGraphExecMemsetNodeSetParams(
        exec: usize,
        node: usize,
        params: Out<MemsetParams>,
        context: usize,
    ) {
        context::Context::get(context)?;
        set(exec, node, nodes::fill(params)?)
    }

    fn cuGraphExecHostNodeSetParams(exec: usize, node: usize, params: Out<HostParams>) {
        set(exec, node, nodes::host(params)?)
    }

    fn cuGraphExecChildGraphNodeSetParams(exec: usize, node: usize, inner: usize) {
        let exec = exec::get(exec)?;
        let inner = Graph::get(inner)?;
        set_child(&exec, node, &inner)
    }

    fn cuGraphExecEventRecordNodeSetEvent(exec: usize, node: usize, event: usize) {
        set(exec, node, Work::Record(EVENTS.get(event)?))
    }

    fn cuGraphExecEventWaitNodeSetEvent(exec: usize, node: usize, event: usize) {
        set(exec, node, Work::Wait(EVENTS.get(event)?))
    }

    fn cuGraphExecNodeSetParams(exec: usize, node: usize, params: Out<NodeParams>) {
        let exec = exec::get(exec)?;
        match params.get()?.kind {
            4 => {
                let inner = Graph::get(nodes::body::<usize>(params).get()?)?;
                set_child(&exec, node, &inner)
            }
            10 | 11 => Err(NOT_SUPPORTED),
            _ => match nodes::any(params)? {
                Action::Work(work) => exec.set(node, work),
                Action::Child(_) => Err(INVALID_VALUE),
            },
        }
    }

    fn cuGraphNodeSetEnabled(exec: usize, node: usize, enabled: u32) {
        exec::get(exec)?.change(|plan| {
            let step = plan.step_mut(node)?;
            // Only these can be switched off.
            if !matches!(step.work, Work::Kernel(_) | Work::Copy(_) | Work::Fill(_)) {
                return Err(INVALID_VALUE);
            }
            step.enabled = enabled != 0;
            Ok(())
        })
    }

    fn cuGraphNodeGetEnabled(exec: usize, node: usize, enabled: Out<u32>) {
        let plan = exec::get(exec)?.plan();
        let step = plan.step(node)?;
        enabled.required()?.set(u32::from(step.enabled));
        Ok(())
    }
}
