//! Graphs: nodes, edges, and what they own.

pub mod dot;
pub mod exec;
pub mod family;
pub mod object;
pub mod plan;
pub mod run;
pub mod update;

use crate::ledger::{self, Kind};
use crate::memory::graph::GraphMemory;
use crate::status::*;
use crate::table::{lock, Table};
use crate::work::Work;
pub use exec::{Exec, EXECS};
use family::Family;
use object::References;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};

/// What a node does.
#[derive(Clone)]
pub enum Action {
    /// One operation.
    Work(Work),
    /// A graph of its own.
    Child(Arc<Graph>),
}

/// A node.
#[derive(Clone)]
pub struct Node {
    /// What it does.
    pub action: Action,
    /// The nodes that it comes after.
    pub after: BTreeSet<usize>,
    /// Priority of a kernel as set, without effect.
    pub priority: i32,
}

/// A graph.
pub struct Graph {
    /// Its handle, from which those of its nodes follow.
    pub handle: usize,
    /// False for a graph inside a node, or one that is being captured: not the program's to destroy.
    is_own: bool,
    /// Its execs belong to it too.
    pub family: Arc<Family>,
    state: Mutex<State>,
}

/// The contents of a graph.
#[derive(Default)]
pub struct State {
    /// Its nodes by their handles, in the order in which they were made.
    pub nodes: BTreeMap<usize, Node>,
    next: usize,
    /// In a clone: the node for each node of the original.
    pub clones: HashMap<usize, usize>,
    /// User objects that it keeps.
    pub objects: References,
    /// The latest executable graph made of it.
    pub exec: Weak<Exec>,
}

/// The graphs that the program may destroy.
pub static GRAPHS: Table<Graph> = Table::new(Kind::Graph);
/// Every graph, also those inside of nodes, by its handle.
static ALL: Mutex<Option<HashMap<usize, Weak<Graph>>>> = Mutex::new(None);

/// Room for the handles of a graph's nodes.
const SPAN: usize = 1 << 32;
/// The handle of the first graph: above all other handles and addresses.
static NEXT: AtomicUsize = AtomicUsize::new(1 << 49);

impl Graph {
    fn make(is_own: bool) -> Arc<Graph> {
        let handle = NEXT.fetch_add(SPAN, Ordering::Relaxed);
        let graph = Arc::new(Graph {
            handle,
            is_own,
            family: Arc::default(),
            state: Mutex::new(State::default()),
        });
        let weak = Arc::downgrade(&graph);
        lock(&ALL)
            .get_or_insert_with(HashMap::new)
            .insert(handle, weak);
        graph
    }

    /// A new graph of the program.
    pub fn create() -> Arc<Graph> {
        let graph = Graph::make(true);
        GRAPHS.insert_as(graph.handle, graph.clone());
        graph
    }

    /// A graph that a capture fills.
    pub fn captured() -> Arc<Graph> {
        Graph::make(true)
    }

    /// A captured graph becomes the program's own.
    pub fn hand_over(self: &Arc<Self>) {
        if !GRAPHS.is_live(self.handle) {
            GRAPHS.insert_as(self.handle, self.clone());
        }
    }

    /// The graph with a handle, also one inside of a node.
    pub fn get(handle: usize) -> Result<Arc<Graph>> {
        find(handle).ok_or_else(|| {
            if handle != 0 {
                ledger::bad_handle();
            }
            INVALID_VALUE
        })
    }

    /// Destroys the program's graph with a handle.
    pub fn destroy(handle: usize) -> Result<()> {
        let found = find(handle);
        let _inside = found.as_ref().map(|graph| graph.family.enter());
        if found.is_some_and(|graph| !graph.is_own) {
            return Err(INVALID_VALUE);
        }
        let graph = GRAPHS.remove(handle).map_err(|_| INVALID_VALUE)?;
        // Its handles are dead although a capture or a launch may still hold it.
        if let Some(all) = lock(&ALL).as_mut() {
            all.remove(&handle);
        }
        let objects = std::mem::take(&mut graph.state().objects);
        drop(objects);
        Ok(())
    }

    /// Its contents.
    pub fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Adds a node after others of the graph.
    pub fn add(&self, action: Action, after: &[usize]) -> Result<usize> {
        let mut state = self.state();
        let distinct: BTreeSet<usize> = after.iter().copied().collect();
        if distinct.len() != after.len() || after.iter().any(|n| !state.nodes.contains_key(n)) {
            return Err(INVALID_VALUE);
        }
        state.next += 1;
        let handle = self.handle + 0x40 * state.next;
        let node = Node {
            action,
            after: distinct,
            priority: 0,
        };
        state.nodes.insert(handle, node);
        Ok(handle)
    }

    /// A copy of it with nodes of its own; the map leads from the old ones to the new.
    pub fn copy(&self, is_own: bool) -> Result<Arc<Graph>> {
        if self.has_memory_nodes() {
            return Err(NOT_SUPPORTED);
        }
        let copy = Graph::make(is_own);
        let from = self.state();
        let mut to = copy.state();
        for (old, node) in &from.nodes {
            let new = copy.handle + (old - self.handle);
            to.clones.insert(*old, new);
            let mut node = node.clone();
            node.after = node
                .after
                .iter()
                .map(|n| copy.handle + (n - self.handle))
                .collect();
            if let Action::Child(child) = &node.action {
                let copied = child.copy(false)?;
                to.clones.extend(copied.state().clones.iter());
                node.action = Action::Child(copied);
            }
            to.nodes.insert(new, node);
        }
        to.next = from.next;
        to.objects = from.objects.clone();
        drop(to);
        Ok(copy)
    }

    /// Whether nodes of it make or free memory.
    pub fn has_memory_nodes(&self) -> bool {
        let memory =
            |node: &Node| matches!(node.action, Action::Work(Work::Alloc(_) | Work::Free(_)));
        self.state().nodes.values().any(memory)
    }

    /// The memory that nodes of it make.
    pub fn allocations(&self) -> Vec<Arc<GraphMemory>> {
        let allocation = |node: &Node| match &node.action {
            Action::Work(Work::Alloc(memory)) => Some(memory.clone()),
            _ => None,
        };
        self.state().nodes.values().filter_map(allocation).collect()
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        if let Some(all) = lock(&ALL).as_mut() {
            all.remove(&self.handle);
        }
    }
}

impl State {
    /// Adds an edge.
    pub fn connect(&mut self, from: usize, to: usize) -> Result<()> {
        if from == to || !self.nodes.contains_key(&from) {
            return Err(INVALID_VALUE);
        }
        let node = self.nodes.get_mut(&to).ok_or(INVALID_VALUE)?;
        node.after.insert(from).then_some(()).ok_or(INVALID_VALUE)
    }

    /// Takes an edge out.
    pub fn disconnect(&mut self, from: usize, to: usize) -> Result<()> {
        let node = self.nodes.get_mut(&to).ok_or(INVALID_VALUE)?;
        node.after.remove(&from).then_some(()).ok_or(INVALID_VALUE)
    }

    /// Takes a node out, with its edges.
    pub fn remove(&mut self, node: usize) -> Result<()> {
        self.nodes.remove(&node).ok_or(INVALID_VALUE)?;
        self.nodes.values_mut().for_each(|other| {
            other.after.remove(&node);
        });
        Ok(())
    }

    /// Every edge: from, to.
    pub fn edges(&self) -> Vec<(usize, usize)> {
        let nodes = self.nodes.iter();
        nodes
            .flat_map(|(to, node)| node.after.iter().map(|from| (*from, *to)))
            .collect()
    }

    /// Whether every node of `inner` is one of `outer` or comes before one.
    pub fn covers(&self, outer: &[usize], inner: &[usize]) -> bool {
        let mut before = HashSet::new();
        let mut open = outer.to_vec();
        while let Some(handle) = open.pop() {
            if before.insert(handle) {
                open.extend(
                    self.nodes
                        .get(&handle)
                        .into_iter()
                        .flat_map(|node| &node.after),
                );
            }
        }
        inner.iter().all(|node| before.contains(node))
    }
}

impl Action {
    /// The number that the driver has for it (CUgraphNodeType).
    pub fn kind(&self) -> i32 {
        match self {
            Action::Child(_) => 4,
            Action::Work(work) => work.kind(),
        }
    }
}

fn find(handle: usize) -> Option<Arc<Graph>> {
    lock(&ALL).as_ref()?.get(&handle)?.upgrade()
}

/// The graph that a node is in.
pub fn of_node(node: usize) -> Result<Arc<Graph>> {
    let graph = Graph::get(node & !(SPAN - 1))?;
    if !graph.state().nodes.contains_key(&node) {
        ledger::bad_handle();
        return Err(INVALID_VALUE);
    }
    Ok(graph)
}

/// What a node does.
pub fn action(node: usize) -> Result<Action> {
    let graph = of_node(node)?;
    let state = graph.state();
    state
        .nodes
        .get(&node)
        .map(|n| n.action.clone())
        .ok_or(INVALID_VALUE)
}

/// Takes the executable graphs of a context that goes. Graphs themselves live on in the host's memory.
pub fn remove_context(context: usize) {
    EXECS.remove_where(|e| e.context_handle == context);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_branch_that_nothing_joins_is_not_covered() {
        let graph = Graph::captured();
        let add = |after: &[usize]| graph.add(Action::Work(Work::Empty), after).unwrap();
        let root = add(&[]);
        let (left, right) = (add(&[root]), add(&[root]));
        let end = add(&[left]);
        let state = graph.state();
        assert!(state.covers(&[end], &[root, left]));
        assert!(!state.covers(&[end], &[right]));
        assert!(state.covers(&[end, right], &[right]));
    }

    #[test]
    fn edges_come_and_go() {
        let graph = Graph::captured();
        let add = |after: &[usize]| graph.add(Action::Work(Work::Empty), after).unwrap();
        let (a, b) = (add(&[]), add(&[]));
        let mut state = graph.state();
        assert_eq!(state.connect(a, b), Ok(()));
        assert_eq!(state.connect(a, b), Err(INVALID_VALUE));
        assert_eq!(state.edges(), [(a, b)]);
        assert_eq!(state.disconnect(a, b), Ok(()));
        assert_eq!(state.disconnect(a, b), Err(INVALID_VALUE));
        assert_eq!(state.connect(a, a), Err(INVALID_VALUE));
    }
}
