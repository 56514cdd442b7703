//! Graphs as a whole: making and destroying them, what is in them, edges, what they keep.

use super::capture::plain_edges;
use super::{answer_list, functions, text, EdgeData, Out};
use crate::graph::{self, dot, object, Graph};
use crate::status::*;
use crate::work::Host;
use std::ffi::c_char;

/// Answers with the edges of a graph in the driver's way.
fn edges(graph: usize, from: Out<usize>, to: Out<usize>, count: Out<usize>) -> Result<()> {
    let found = Graph::get(graph)?.state().edges();
    if from.is_null() != to.is_null() {
        return Err(INVALID_VALUE);
    }
    let (sources, targets): (Vec<usize>, Vec<usize>) = found.into_iter().unzip();
    let room = if from.is_null() { 0 } else { count.get()? };
    answer_list(from, count, &sources)?;
    if !to.is_null() {
        count.set(room);
        answer_list(to, count, &targets)?;
    }
    Ok(())
}

fn before(node: usize) -> Result<Vec<usize>> {
    let graph = graph::of_node(node)?;
    let state = graph.state();
    Ok(state
        .nodes
        .get(&node)
        .map(|n| n.after.iter().copied().collect())
        .unwrap_or_default())
}

fn behind(node: usize) -> Result<Vec<usize>> {
    let graph = graph::of_node(node)?;
    let state = graph.state();
    let behind = state.nodes.iter().filter(|(_, n)| n.after.contains(&node));
    Ok(behind.map(|(handle, _)| *handle).collect())
}

/// Adds edges or takes them out, one after the other. After an error those before it stay changed.
fn change_edges(
    graph: usize,
    from: Out<usize>,
    to: Out<usize>,
    count: usize,
    change: fn(&mut graph::State, usize, usize) -> Result<()>,
) -> Result<()> {
    let graph = Graph::get(graph)?;
    let (from, to) = (from.list(count)?, to.list(count)?);
    let mut state = graph.state();
    from.into_iter()
        .zip(to)
        .try_for_each(|(from, to)| change(&mut state, from, to))
}

fn connect(graph: usize, from: Out<usize>, to: Out<usize>, count: usize) -> Result<()> {
    change_edges(graph, from, to, count, graph::State::connect)
}

fn disconnect(graph: usize, from: Out<usize>, to: Out<usize>, count: usize) -> Result<()> {
    // Nothing can be taken out of a graph that makes or frees memory.
    if Graph::get(graph)?.has_memory_nodes() {
        return Err(NOT_SUPPORTED);
    }
    change_edges(graph, from, to, count, graph::State::disconnect)
}

/// Tells of every edge that it is a plain one.
fn plain(data: Out<EdgeData>, count: Out<usize>) -> Result<()> {
    if !data.is_null() {
        data.fill(std::iter::repeat(EdgeData::default()), count.get()?);
    }
    Ok(())
}

functions! {
    fn cuGraphCreate(graph: Out<usize>, flags: u32) {
        graph.required()?;
        if flags != 0 {
            return Err(INVALID_VALUE);
        }
        graph.set(Graph::create().handle);
        Ok(())
    }

    fn cuGraphDestroy(graph: usize) {
        Graph::destroy(graph)
    }

    fn cuGraphClone(clone: Out<usize>, graph: usize) {
        clone.required()?;
        let copy = Graph::get(graph)?.copy(true)?;
        copy.hand_over();
        clone.set(copy.handle);
        Ok(())
    }

    fn cuGraphNodeFindInClone(found: Out<usize>, node: usize, clone: usize) {
        found.required()?.set(0);
        let clone = Graph::get(clone)?;
        let state = clone.state();
        let there = state.clones.get(&node).copied().ok_or(INVALID_VALUE)?;
        found.set(there);
        Ok(())
    }

    fn cuGraphGetNodes(graph: usize, nodes: Out<usize>, count: Out<usize>) {
        let found: Vec<usize> = Graph::get(graph)?.state().nodes.keys().copied().collect();
        answer_list(nodes, count, &found)
    }

    fn cuGraphGetRootNodes(graph: usize, nodes: Out<usize>, count: Out<usize>) {
        let graph = Graph::get(graph)?;
        let state = graph.state();
        let roots = state.nodes.iter().filter(|(_, node)| node.after.is_empty());
        let found: Vec<usize> = roots.map(|(handle, _)| *handle).collect();
        answer_list(nodes, count, &found)
    }

    fn cuGraphGetEdges(graph: usize, from: Out<usize>, to: Out<usize>, count: Out<usize>) {
        edges(graph, from, to, count)
    }

    fn cuGraphGetEdges_v2(
        graph: usize,
        from: Out<usize>,
        to: Out<usize>,
        data: Out<EdgeData>,
        count: Out<usize>,
    ) {
        edges(graph, from, to, count)?;
        plain(data, count)
    }

    fn cuGraphNodeGetDependencies(node: usize, nodes: Out<usize>, count: Out<usize>) {
        answer_list(nodes, count, &before(node)?)
    }

    fn cuGraphNodeGetDependencies_v2(
        node: usize,
        nodes: Out<usize>,
        data: Out<EdgeData>,
        count: Out<usize>,
    ) {
        answer_list(nodes, count, &before(node)?)?;
        plain(data, count)
    }

    fn cuGraphNodeGetDependentNodes(node: usize, nodes: Out<usize>, count: Out<usize>) {
        answer_list(nodes, count, &behind(node)?)
    }

    fn cuGraphNodeGetDependentNodes_v2(
        node: usize,
        nodes: Out<usize>,
        data: Out<EdgeData>,
        count: Out<usize>,
    ) {
        answer_list(nodes, count, &behind(node)?)?;
        plain(data, count)
    }

    fn cuGraphAddDependencies(graph: usize, from: Out<usize>, to: Out<usize>, count: usize) {
        connect(graph, from, to, count)
    }

    fn cuGraphAddDependencies_v2(
        graph: usize,
        from: Out<usize>,
        to: Out<usize>,
        data: Out<EdgeData>,
        count: usize,
    ) {
        plain_edges(data, count)?;
        connect(graph, from, to, count)
    }

    fn cuGraphRemoveDependencies(graph: usize, from: Out<usize>, to: Out<usize>, count: usize) {
        disconnect(graph, from, to, count)
    }

    fn cuGraphRemoveDependencies_v2(
        graph: usize,
        from: Out<usize>,
        to: Out<usize>,
        data: Out<EdgeData>,
        count: usize,
    ) {
        plain_edges(data, count)?;
        disconnect(graph, from, to, count)
    }

    fn cuGraphDestroyNode(node: usize) {
        let graph = graph::of_node(node)?;
        if graph.has_memory_nodes() {
            return Err(NOT_SUPPORTED);
        }
        let removed = graph.state().remove(node);
        removed
    }

    fn cuGraphDebugDotPrint(graph: usize, path: *const c_char, flags: u32) {
        let graph = Graph::get(graph)?;
        let path = text(path)?;
        if flags >= 1 << 16 {
            return Err(INVALID_VALUE);
        }
        std::fs::write(path, dot::text(&graph, flags)).map_err(|_| OPERATING_SYSTEM)
    }

    fn cuUserObjectCreate(
        object: Out<usize>,
        data: usize,
        destructor: usize,
        references: u32,
        flags: u32,
    ) {
        object.required()?;
        if destructor == 0 || flags != 1 || !(1..=i32::MAX as u32).contains(&references) {
            return Err(INVALID_VALUE);
        }
        object.set(object::create(Host { function: destructor, data }, references));
        Ok(())
    }

    fn cuUserObjectRetain(object: usize, count: u32) {
        if !(1..=i32::MAX as u32).contains(&count) {
            return Err(INVALID_VALUE);
        }
        object::retain(object, count)
    }

    fn cuUserObjectRelease(object: usize, count: u32) {
        if !(1..=i32::MAX as u32).contains(&count) {
            return Err(INVALID_VALUE);
        }
        object::release(object, count)
    }

    fn cuGraphRetainUserObject(graph: usize, object: usize, count: u32, flags: u32) {
        let graph = Graph::get(graph)?;
        if flags > 1 || !(1..=i32::MAX as u32).contains(&count) {
            return Err(INVALID_VALUE);
        }
        let mut state = graph.state();
        object::keep(&mut state.objects, object, count, flags == 1)
    }

    fn cuGraphReleaseUserObject(graph: usize, object: usize, count: u32) {
        let graph = Graph::get(graph)?;
        if !(1..=i32::MAX as u32).contains(&count) {
            return Err(INVALID_VALUE);
        }
        let gone = graph.state().objects.release(object, count)?;
        drop(gone);
        Ok(())
    }
}
