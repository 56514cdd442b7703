//! Putting the nodes of another graph of the same form into an executable graph.

use super::exec::Exec;
use super::plan::Plan;
use super::{Action, Graph};
use crate::copy::Place;
use crate::status::{Result, GRAPH_EXEC_UPDATE_FAILURE, INVALID_VALUE};
use crate::table::lock;
use crate::work::Work;
use std::collections::HashMap;

/// CUgraphExecUpdateResult
pub const ERROR: i32 = 1;
/// Nodes or edges were added or taken out.
pub const TOPOLOGY_CHANGED: i32 = 2;
const NODE_TYPE_CHANGED: i32 = 3;
const PARAMETERS_CHANGED: i32 = 5;
/// Such a node cannot be updated.
pub const NOT_SUPPORTED: i32 = 6;
const UNSUPPORTED_FUNCTION_CHANGE: i32 = 7;

/// Why an update was refused: the reason, and the node of the new graph that is to blame; also the node
/// on the other side of an edge.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Refusal {
    /// The reason.
    pub reason: i32,
    /// The node.
    pub node: usize,
    /// Where the edge comes from.
    pub from: usize,
}

/// The form of a graph: what an update may not change.
#[derive(Clone, Default)]
pub struct Shape {
    nodes: Vec<Form>,
}

#[derive(Clone)]
struct Form {
    handle: usize,
    kind: i32,
    /// What it does; `None` for a graph inside. The graph itself is not kept: it ends with its node.
    work: Option<Work>,
    /// The numbers of the nodes that it comes after.
    after: Vec<usize>,
    inner: Shape,
}

impl Shape {
    /// The form of a graph as it is now. Nodes are paired in the order in which they were made.
    pub fn new(graph: &Graph) -> Shape {
        let state = graph.state();
        let numbers = state
            .nodes
            .keys()
            .enumerate()
            .map(|(index, handle)| (*handle, index));
        let numbers: HashMap<usize, usize> = numbers.collect();
        let nodes = state.nodes.iter().map(|(handle, node)| Form {
            handle: *handle,
            kind: node.action.kind(),
            after: node.after.iter().map(|before| numbers[before]).collect(),
            work: match &node.action {
                Action::Work(work) => Some(work.clone()),
                Action::Child(_) => None,
            },
            inner: match &node.action {
                Action::Child(child) => Shape::new(child),
                Action::Work(_) => Shape::default(),
            },
        });
        Shape {
            nodes: nodes.collect(),
        }
    }

    /// Compares with the form of another graph, and notes which node stands for which.
    fn pair(
        &self,
        new: &Shape,
        pairs: &mut HashMap<usize, usize>,
    ) -> std::result::Result<(), Refusal> {
        let refuse = |reason, node, from| Err(Refusal { reason, node, from });
        if self.nodes.len() != new.nodes.len() {
            // The driver names no node then.
            return refuse(TOPOLOGY_CHANGED, 0, 0);
        }
        for (old, new_node) in self.nodes.iter().zip(&new.nodes) {
            if old.kind != new_node.kind {
                return refuse(NODE_TYPE_CHANGED, new_node.handle, 0);
            }
            if old.after != new_node.after {
                let added = new_node.after.iter().find(|n| !old.after.contains(n));
                let from = added.map_or(0, |index| new.nodes[*index].handle);
                return refuse(TOPOLOGY_CHANGED, new_node.handle, from);
            }
            if let (Some(old), Some(new)) = (&old.work, &new_node.work) {
                if let Some(reason) = change(old, new) {
                    return refuse(reason, new_node.handle, 0);
                }
            }
            pairs.insert(old.handle, new_node.handle);
            old.inner.pair(&new_node.inner, pairs)?;
        }
        Ok(())
    }

    /// Pairs the nodes inside of a node with those of another graph.
    pub fn pair_child(&self, node: usize, new: &Shape) -> Result<HashMap<usize, usize>> {
        let form = self.find(node).ok_or(INVALID_VALUE)?;
        if form.work.is_some() {
            return Err(INVALID_VALUE);
        }
        let mut pairs = HashMap::new();
        form.inner
            .pair(new, &mut pairs)
            .map_err(|_| GRAPH_EXEC_UPDATE_FAILURE)?;
        Ok(pairs)
    }

    fn find(&self, node: usize) -> Option<&Form> {
        let inside = |form: &'_ Form| form.handle == node;
        let here = self.nodes.iter().find(|form| inside(form));
        here.or_else(|| self.nodes.iter().find_map(|form| form.inner.find(node)))
    }

    /// Gives the nodes the work of another graph; their handles stay.
    fn take(&mut self, new: &Shape) {
        for (old, new) in self.nodes.iter_mut().zip(&new.nodes) {
            old.work = new.work.clone();
            old.inner.take(&new.inner);
        }
    }
}

/// What is wrong with a changed node.
pub fn change(old: &Work, new: &Work) -> Option<i32> {
    let on_host = |place: Place| matches!(place, Place::Host(_));
    match (old, new) {
        (Work::Kernel(old), Work::Kernel(new)) => {
            let contexts = [old, new].map(|k| k.function.module.context_handle);
            (contexts[0] != contexts[1]).then_some(UNSUPPORTED_FUNCTION_CHANGE)
        }
        (Work::Copy(old), Work::Copy(new)) => {
            let kinds = [old, new].map(|c| (on_host(c.to.place), on_host(c.from.place)));
            let rows = [old, new].map(|c| (c.height, c.depth) == (1, 1));
            (kinds[0] != kinds[1] || rows[0] != rows[1]).then_some(PARAMETERS_CHANGED)
        }
        (Work::Fill(old), Work::Fill(new)) => {
            let rows = [old, new].map(|f| f.height == 1);
            (rows[0] != rows[1]).then_some(PARAMETERS_CHANGED)
        }
        (Work::Alloc(_) | Work::Free(_), _) => Some(NOT_SUPPORTED),
        _ => None,
    }
}

/// Updates an executable graph from a graph. Nothing has changed after an error.
pub fn update(exec: &Exec, graph: &Graph) -> Result<std::result::Result<(), Refusal>> {
    let new = Shape::new(graph);
    let mut shape = lock(&exec.shape);
    let mut pairs = HashMap::new();
    if let Err(refusal) = shape.pair(&new, &mut pairs) {
        return Ok(Err(refusal));
    }
    let mut plan = Plan::new(graph).map_err(|_| GRAPH_EXEC_UPDATE_FAILURE)?;
    let old = exec.plan();
    // The executable graph goes on answering to the handles it was made with.
    let moved = pairs
        .iter()
        .filter_map(|(old, new)| Some((*old, *plan.of_node.get(new)?)));
    plan.of_node = moved.collect();
    for (node, index) in &plan.of_node {
        plan.steps[*index].enabled = old.step(*node).map_or(true, |step| step.enabled);
    }
    shape.take(&new);
    exec.replace(plan);
    Ok(Ok(()))
}
