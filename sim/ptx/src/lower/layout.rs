//! The call graph, and where the functions of a kernel keep their registers.
//!
//! Each function has one place for its registers in a warp: lanes that are in it at the same time
//! use their own column. Only recursion needs more, and saves registers on a stack.

use super::function::Summary;
use crate::exec::code::{CallSite, Callee, Code, Layout, Symbol};
use std::collections::BTreeSet;

/// The call graph. After the functions comes one node that stands for a call through a pointer.
pub struct Graph<'s> {
    summaries: &'s [Summary],
    taken: BTreeSet<u32>,
    /// The strongly connected component of each node.
    component: Vec<u32>,
    /// Whether a component has a cycle.
    cyclic: Vec<bool>,
    /// Local memory below each node, itself included.
    depth: Vec<u64>,
}

impl<'s> Graph<'s> {
    pub fn new(code: &Code, summaries: &'s [Summary], taken: &[u32]) -> Self {
        let nodes = summaries.len() + 1;
        let mut graph = Graph {
            summaries,
            taken: taken.iter().copied().collect(),
            component: vec![u32::MAX; nodes],
            cyclic: Vec::new(),
            depth: vec![0; nodes],
        };
        graph.connect(code);
        graph
    }

    fn pointer_node(&self) -> u32 {
        self.summaries.len() as u32
    }

    fn successors(&self, node: u32) -> Vec<u32> {
        if node == self.pointer_node() {
            return self.taken.iter().copied().collect();
        }
        let summary = &self.summaries[node as usize];
        let mut next: Vec<u32> = summary.callees.iter().copied().collect();
        if summary.calls_pointers {
            next.push(self.pointer_node());
        }
        next
    }

    /// Tarjan's algorithm with a stack of its own, so that a long chain of calls is no danger.
    fn connect(&mut self, code: &Code) {
        let nodes = self.component.len();
        let (mut order, mut low) = (vec![u32::MAX; nodes], vec![0u32; nodes]);
        let (mut open, mut clock) = (Vec::new(), 0u32);
        for root in 0..nodes as u32 {
            if order[root as usize] != u32::MAX {
                continue;
            }
            let mut path = vec![(root, self.successors(root), 0usize)];
            while let Some((node, next, at)) = path.last_mut() {
                let node = *node;
                let n = node as usize;
                if *at == 0 && order[n] == u32::MAX {
                    order[n] = clock;
                    low[n] = clock;
                    clock += 1;
                    open.push(node);
                }
                if let Some(&child) = next.get(*at) {
                    *at += 1;
                    let c = child as usize;
                    if order[c] == u32::MAX {
                        let successors = self.successors(child);
                        path.push((child, successors, 0));
                    } else if self.component[c] == u32::MAX {
                        low[n] = low[n].min(order[c]);
                    }
                    continue;
                }
                path.pop();
                if let Some((parent, ..)) = path.last() {
                    let p = *parent as usize;
                    low[p] = low[p].min(low[n]);
                }
                if low[n] == order[n] {
                    self.close(code, node, &mut open);
                }
            }
        }
    }

    /// All of the component above `root` on the stack is known, and all that it calls.
    fn close(&mut self, code: &Code, root: u32, open: &mut Vec<u32>) {
        let id = self.cyclic.len() as u32;
        let start = open.iter().rposition(|&n| n == root).unwrap_or(0);
        let members = open.split_off(start);
        for &member in &members {
            self.component[member as usize] = id;
        }
        let (mut own, mut below, mut cyclic) = (0u64, 0u64, false);
        for &member in &members {
            if let Some(function) = code.functions.get(member as usize) {
                own += u64::from(function.frame);
            }
            for next in self.successors(member) {
                if self.component[next as usize] == id {
                    cyclic = true;
                } else {
                    below = below.max(self.depth[next as usize]);
                }
            }
        }
        for &member in &members {
            self.depth[member as usize] = own + below;
        }
        self.cyclic.push(cyclic);
    }

    /// Whether a call may come back into its caller before it returns.
    pub fn is_recursive(&self, call: &CallSite) -> bool {
        let callee = match call.callee {
            Callee::Function(index) => index,
            Callee::Register(_) => self.pointer_node(),
        };
        self.component[call.caller as usize] == self.component[callee as usize]
    }

    /// The layout of the kernel that is this function.
    pub fn layout(&self, code: &Code, kernel: u32) -> Layout {
        let mut layout = Layout {
            function: kernel,
            dynamic_align: 16,
            ..Layout::default()
        };
        let (mut seen, mut work) = (BTreeSet::from([kernel]), vec![kernel]);
        let mut symbols = BTreeSet::new();
        while let Some(node) = work.pop() {
            layout.dynamic_stack |= self.cyclic[self.component[node as usize] as usize];
            if let Some(summary) = self.summaries.get(node as usize) {
                symbols.extend(summary.symbols.iter().copied());
                layout.dynamic_stack |= summary.uses_alloca;
            }
            for next in self.successors(node) {
                if seen.insert(next) {
                    work.push(next);
                }
            }
        }
        for &node in &seen {
            if let Some(function) = code.functions.get(node as usize) {
                layout.frames.push((node, layout.planes, layout.preds));
                layout.planes += function.planes;
                layout.preds += function.preds;
            }
        }
        layout.local = self.depth[kernel as usize].min(u64::from(u32::MAX)) as u32;
        let mut shared = 0u64;
        for symbol in symbols {
            match code.symbols[symbol as usize] {
                Symbol::Shared { size, align } => {
                    let start = shared.next_multiple_of(align.max(1));
                    layout.shared.push((symbol, start as u32));
                    shared = (start + size).min(u64::from(u32::MAX));
                }
                Symbol::DynamicShared { align } => {
                    layout.dynamic.push(symbol);
                    layout.dynamic_align = layout.dynamic_align.max(align as u32);
                }
                _ => {}
            }
        }
        layout.static_shared = shared as u32;
        layout
    }
}
