//! Graphs and executable graphs.

use crate::event::Moment;
use crate::ledger::Kind;
use crate::status::Result;
use crate::table::Table;
use crate::work::Work;
use std::sync::{Arc, Mutex};

/// A node: work, and the nodes it comes after.
#[derive(Clone)]
pub struct Node {
    /// What it does.
    pub work: Work,
    /// Earlier nodes, by number.
    pub after: Vec<usize>,
}

/// A graph.
pub struct Graph {
    /// Its nodes; each comes after those that it depends on.
    pub nodes: Mutex<Vec<Node>>,
    /// Handle of the context that was current when it was made.
    pub context_handle: usize,
}

/// An executable graph: the nodes as they were.
pub struct Exec {
    /// In an order that respects their dependencies.
    pub nodes: Vec<Node>,
    /// Handle of its context.
    pub context_handle: usize,
    /// The end of the latest launch: the next one waits for it, on whatever stream it is.
    pub last_launch: Mutex<Option<Arc<Moment>>>,
}

/// The live graphs.
pub static GRAPHS: Table<Graph> = Table::new(Kind::Graph);
/// The live executable graphs.
pub static EXECS: Table<Exec> = Table::new(Kind::Exec);

impl Graph {
    /// A graph of these nodes.
    pub fn new(nodes: Vec<Node>, context_handle: usize) -> Arc<Graph> {
        Arc::new(Graph {
            nodes: Mutex::new(nodes),
            context_handle,
        })
    }
}

impl Exec {
    /// The work of one launch, with what it reads from host memory taken now.
    pub fn work(&self) -> Result<Vec<Work>> {
        self.nodes
            .iter()
            .map(|node| node.work.with_host_bytes())
            .collect()
    }
}

/// Whether every node of `inner` is one of `outer` or comes before one.
pub fn covers(nodes: &[Node], outer: &[usize], inner: &[usize]) -> bool {
    let mut before = vec![false; nodes.len()];
    let mut open: Vec<usize> = outer.to_vec();
    while let Some(node) = open.pop() {
        if !std::mem::replace(&mut before[node], true) {
            open.extend(&nodes[node].after);
        }
    }
    inner.iter().all(|node| before[*node])
}

/// Takes the graphs of a context that goes. Graphs themselves live on in the host's memory.
pub fn remove_context(context: usize) {
    EXECS.remove_where(|e| e.context_handle == context);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_branch_that_nothing_joins_is_not_covered() {
        let node = |after: &[usize]| Node {
            work: Work::Empty,
            after: after.to_vec(),
        };
        let nodes = [node(&[]), node(&[0]), node(&[0]), node(&[1])];
        assert!(covers(&nodes, &[3], &[0, 1]));
        assert!(!covers(&nodes, &[3], &[2]));
        assert!(covers(&nodes, &[3, 2], &[2]));
    }
}
