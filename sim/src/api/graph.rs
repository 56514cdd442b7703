//! Graphs.

use super::{functions, Out};
use crate::event::Moment;
use crate::graph::{Exec, EXECS, GRAPHS};
use crate::status::{Result, INVALID_VALUE};
use crate::stream::{Stream, Task};
use crate::table::lock;
use crate::{capture, context};
use std::sync::{Arc, Mutex};

fn instantiate(exec: Out<usize>, graph: usize) -> Result<()> {
    let exec = exec.required()?;
    exec.set(0);
    let graph = GRAPHS.get(graph).map_err(|_| INVALID_VALUE)?;
    let context = context::current()?;
    capture::unsafe_call()?;
    let nodes = lock(&graph.nodes).clone();
    exec.set(EXECS.insert(Arc::new(Exec {
        nodes,
        context_handle: context.handle,
        last_launch: Mutex::default(),
    })));
    Ok(())
}

functions! {
    fn cuGraphCreate(graph: Out<usize>, flags: u32) {
        if flags != 0 {
            return Err(INVALID_VALUE);
        }
        let made = crate::graph::Graph::new(Vec::new(), context::current_handle());
        graph.required()?.set(GRAPHS.insert(made));
        Ok(())
    }

    fn cuGraphGetNodes(graph: usize, nodes: Out<usize>, count: Out<usize>) {
        let handle = graph;
        let graph = GRAPHS.get(graph).map_err(|_| INVALID_VALUE)?;
        let number = lock(&graph.nodes).len();
        if !nodes.is_null() {
            // A node's handle is its place in its graph.
            nodes.fill((0..number).map(|i| handle + 1 + i), count.get()?);
        }
        count.required()?.set(number);
        Ok(())
    }

    fn cuGraphInstantiateWithFlags(exec: Out<usize>, graph: usize, _flags: u64) {
        instantiate(exec, graph)
    }

    fn cuGraphLaunch(exec: usize, stream: usize) {
        let exec = EXECS.get(exec).map_err(|_| INVALID_VALUE)?;
        let stream = Stream::get(stream)?;
        capture::forbidden_on(&stream)?;
        if stream.is_null() {
            capture::uses_null_stream(stream.context_handle)?;
        }
        // Launches of one exec never overlap. The lock keeps their order that of the calls.
        let mut last = lock(&exec.last_launch);
        let work = exec.work()?;
        if let Some(previous) = last.as_ref().filter(|moment| moment.at().is_none()) {
            stream.push(Task::Wait(previous.clone()))?;
        }
        let end = Arc::new(Moment::default());
        stream.push(Task::Work(work))?;
        stream.push(Task::Mark(end.clone()))?;
        *last = Some(end);
        Ok(())
    }

    fn cuGraphDestroy(graph: usize) {
        GRAPHS.remove(graph).map_err(|_| INVALID_VALUE)?;
        Ok(())
    }

    fn cuGraphExecDestroy(exec: usize) {
        capture::unsafe_call()?;
        EXECS.remove(exec).map_err(|_| INVALID_VALUE)?;
        Ok(())
    }
}
