//! What is run when an executable graph is launched: all nodes, those of inner graphs too, in one list.

use super::object::UserObject;
use super::{Action, Graph};
use crate::memory::graph::{GraphMemory, Need};
use crate::status::{Result, INVALID_VALUE};
use crate::work::Work;
use std::collections::HashMap;
use std::sync::Arc;

/// One node in a plan.
#[derive(Clone)]
pub struct Step {
    /// What it does.
    pub work: Work,
    /// Steps that come after it, by number.
    pub next: Vec<usize>,
    /// How many steps it comes after.
    pub needs: usize,
    /// False for a node that was switched off.
    pub enabled: bool,
}

/// A plan.
#[derive(Clone, Default)]
pub struct Plan {
    /// The steps; each comes after those that it depends on.
    pub steps: Vec<Step>,
    /// The step of each node.
    pub of_node: HashMap<usize, usize>,
    /// Whether each step just follows the one before.
    pub is_chain: bool,
    /// Steps of which each launch needs its own form.
    pub special: Vec<usize>,
    /// Memory that a launch makes and does not free.
    pub kept: Vec<Arc<GraphMemory>>,
    /// Memory of other graphs that a launch frees.
    pub freed: Vec<Arc<GraphMemory>>,
    /// What a launch needs of each device for the memory that it makes.
    pub needs: Vec<Need>,
    /// Objects that live as long as a launch may need them.
    objects: Vec<Arc<UserObject>>,
}

impl Plan {
    /// A plan of a graph as it is now. The error names a node that is to blame.
    pub fn new(graph: &Graph) -> std::result::Result<Plan, (i32, usize)> {
        let mut plan = Plan::default();
        plan.add(graph)?;
        plan.finish();
        Ok(plan)
    }

    fn push(&mut self, work: Work) -> usize {
        self.steps.push(Step {
            work,
            next: Vec::new(),
            needs: 0,
            enabled: true,
        });
        self.steps.len() - 1
    }

    fn connect(&mut self, from: usize, to: usize) {
        self.steps[from].next.push(to);
        self.steps[to].needs += 1;
    }

    /// Adds the nodes of a graph; gives the steps that nothing comes before and after.
    fn add(
        &mut self,
        graph: &Graph,
    ) -> std::result::Result<(Vec<usize>, Vec<usize>), (i32, usize)> {
        let state = graph.state();
        self.objects.extend(state.objects.objects());
        let order = order(&state).ok_or((INVALID_VALUE, 0usize))?;
        // Where a node's work ends: another step than where it starts for an inner graph.
        let mut ends: HashMap<usize, usize> = HashMap::new();
        let mut roots = Vec::new();
        for handle in order {
            let node = &state.nodes[&handle];
            let (start, end) = match &node.action {
                Action::Work(work) => {
                    let step = self.push(work.clone());
                    (step, step)
                }
                Action::Child(child) => {
                    let start = self.push(Work::Empty);
                    let (first, last) = self.add(child)?;
                    let end = self.push(Work::Empty);
                    first.iter().for_each(|step| self.connect(start, *step));
                    last.iter().for_each(|step| self.connect(*step, end));
                    if first.is_empty() {
                        self.connect(start, end);
                    }
                    (start, end)
                }
            };
            node.after
                .iter()
                .for_each(|before| self.connect(ends[before], start));
            if node.after.is_empty() {
                roots.push(start);
            }
            self.of_node.insert(handle, start);
            ends.insert(handle, end);
        }
        let leaves = ends
            .values()
            .copied()
            .filter(|end| self.steps[*end].next.is_empty());
        Ok((roots, leaves.collect()))
    }

    fn finish(&mut self) {
        let chained = |(index, step): (usize, &Step)| match step.next.as_slice() {
            [next] => *next == index + 1,
            [] => index + 1 == self.steps.len(),
            _ => false,
        };
        self.is_chain = self.steps.iter().enumerate().all(chained);
        self.note_special();
        let freed = |memory: &Arc<GraphMemory>| {
            self.steps
                .iter()
                .any(|s| matches!(&s.work, Work::Free(m) if Arc::ptr_eq(m, memory)))
        };
        let made = |memory: &Arc<GraphMemory>| {
            self.steps
                .iter()
                .any(|s| matches!(&s.work, Work::Alloc(m) if Arc::ptr_eq(m, memory)))
        };
        for step in &self.steps {
            match &step.work {
                Work::Alloc(memory) if !freed(memory) => self.kept.push(memory.clone()),
                Work::Free(memory) if !made(memory) => self.freed.push(memory.clone()),
                _ => {}
            }
        }
        self.note_needs();
    }

    /// Finds out how much memory there may be at once: when a step makes some, all that is not freed before it
    /// and not made after it.
    fn note_needs(&mut self) {
        let mut needs: HashMap<i32, i64> = HashMap::new();
        for (maker, step) in self.steps.iter().enumerate() {
            let Work::Alloc(memory) = &step.work else {
                continue;
            };
            let device = memory.device;
            let (before, after) = self.around(maker);
            let change = |(index, step): (usize, &Step)| match &step.work {
                Work::Alloc(m) if m.device == device && !after[index] => m.size as i64,
                Work::Free(m) if m.device == device && before[index] => -(m.size as i64),
                _ => 0,
            };
            let bytes: i64 = self.steps.iter().enumerate().map(change).sum();
            let most = needs.entry(device).or_default();
            *most = bytes.max(*most);
        }
        let need = |(device, bytes)| Need {
            device,
            bytes: bytes as u64,
        };
        self.needs = needs.into_iter().map(need).collect();
    }

    /// For each step, whether it must come before a certain one, and whether it must come after that.
    fn around(&self, step: usize) -> (Vec<bool>, Vec<bool>) {
        let mut before = vec![false; self.steps.len()];
        for index in (0..step).rev() {
            let mut next = self.steps[index].next.iter();
            before[index] = next.any(|next| *next == step || before[*next]);
        }
        let mut after = vec![false; self.steps.len()];
        for index in step..self.steps.len() {
            if index == step || after[index] {
                self.steps[index].next.iter().for_each(|n| after[*n] = true);
            }
        }
        (before, after)
    }

    /// Finds the steps of which each launch needs its own form.
    pub fn note_special(&mut self) {
        let special = |step: &Step| match &step.work {
            Work::Copy(copy) => copy.reads_pageable(),
            Work::Record(_) | Work::Wait(_) => true,
            _ => false,
        };
        let steps = self.steps.iter().enumerate();
        self.special = steps.filter(|(_, s)| special(s)).map(|(i, _)| i).collect();
    }

    /// Whether bytes go from the device to pageable host memory.
    pub fn writes_pageable(&self) -> bool {
        let writes = |step: &Step| matches!(&step.work, Work::Copy(copy) if copy.writes_pageable());
        self.steps.iter().any(|step| step.enabled && writes(step))
    }

    /// The step of a node.
    pub fn step(&self, node: usize) -> Result<&Step> {
        let index = self.of_node.get(&node).ok_or(INVALID_VALUE)?;
        Ok(&self.steps[*index])
    }

    /// The step of a node, to be changed.
    pub fn step_mut(&mut self, node: usize) -> Result<&mut Step> {
        let index = self.of_node.get(&node).ok_or(INVALID_VALUE)?;
        Ok(&mut self.steps[*index])
    }
}

/// The nodes so that each comes after those it depends on, otherwise as they were made. `None` if they
/// depend on each other in a circle.
fn order(state: &super::State) -> Option<Vec<usize>> {
    use std::cmp::Reverse;
    let mut missing: HashMap<usize, usize> = HashMap::new();
    let mut next: HashMap<usize, Vec<usize>> = HashMap::new();
    let mut ready = std::collections::BinaryHeap::new();
    for (handle, node) in &state.nodes {
        missing.insert(*handle, node.after.len());
        node.after
            .iter()
            .for_each(|b| next.entry(*b).or_default().push(*handle));
        if node.after.is_empty() {
            ready.push(Reverse(*handle));
        }
    }
    let mut order = Vec::with_capacity(state.nodes.len());
    while let Some(Reverse(handle)) = ready.pop() {
        order.push(handle);
        for after in next.get(&handle).into_iter().flatten() {
            let left = missing.get_mut(after)?;
            *left -= 1;
            if *left == 0 {
                ready.push(Reverse(*after));
            }
        }
    }
    (order.len() == state.nodes.len()).then_some(order)
}
