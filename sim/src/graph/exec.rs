//! Executable graphs.

use super::family::Family;
use super::plan::Plan;
use super::run::Launch;
use super::update;
use super::Graph;
use crate::context::Context;
use crate::event::Moment;
use crate::ledger::Kind;
use crate::memory::graph::Room;
use crate::status::*;
use crate::stream::Stream;
use crate::table::{fresh_handle, lock, Table};
use crate::work::Work;
use crate::worker::Task;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

/// Flag: memory of an earlier launch that nothing freed is freed by the next one.
pub const AUTO_FREE: u64 = 1;

/// An executable graph.
pub struct Exec {
    /// Its handle.
    pub handle: usize,
    /// Handle of its context.
    pub context_handle: usize,
    /// Flags as given.
    pub flags: u64,
    /// Of the graph that it was made from.
    pub family: Arc<Family>,
    /// The graph as it was, for updates.
    pub shape: Mutex<update::Shape>,
    plan: Mutex<Arc<Plan>>,
    /// The end of the latest launch.
    latest: Mutex<Option<Arc<Moment>>>,
}

/// The live executable graphs.
pub static EXECS: Table<Exec> = Table::new(Kind::Exec);

/// The executable graph with a handle.
pub fn get(handle: usize) -> Result<Arc<Exec>> {
    EXECS.get(handle).map_err(|status| match status {
        CONTEXT_IS_DESTROYED => status,
        _ => INVALID_VALUE,
    })
}

/// Ends the executable graph with a handle. Launches that are pending have all that they need.
pub fn destroy(handle: usize) -> Result<()> {
    let known = EXECS.is_live(handle).then(|| get(handle).ok()).flatten();
    let _inside = known.map(|exec| exec.family.enter());
    EXECS.remove(handle).map_err(|status| match status {
        CONTEXT_IS_DESTROYED => status,
        _ => INVALID_VALUE,
    })?;
    Ok(())
}

/// Makes an executable graph: its handle. The error names a node that is to blame.
pub fn instantiate(
    graph: &Graph,
    context: &Context,
    flags: u64,
) -> std::result::Result<usize, (i32, usize)> {
    if flags & !15 != 0 {
        return Err((INVALID_VALUE, 0));
    }
    if graph.has_memory_nodes() && graph.state().exec.strong_count() > 0 {
        return Err((NOT_SUPPORTED, 0));
    }
    let _inside = graph.family.enter();
    let plan = Plan::new(graph)?;
    let handle = fresh_handle();
    let exec = Arc::new(Exec {
        handle,
        context_handle: context.handle,
        flags,
        family: graph.family.clone(),
        shape: Mutex::new(update::Shape::new(graph)),
        plan: Mutex::new(Arc::new(plan)),
        latest: Mutex::new(None),
    });
    graph.state().exec = Arc::downgrade(&exec);
    EXECS.insert_as(handle, exec);
    Ok(handle)
}

impl Exec {
    /// The plan of its next launch.
    pub fn plan(&self) -> Arc<Plan> {
        lock(&self.plan).clone()
    }

    /// Changes the plan; launches that are pending keep the old one.
    pub fn change<R>(&self, change: impl FnOnce(&mut Plan) -> Result<R>) -> Result<R> {
        let mut plan = lock(&self.plan);
        let changed = change(Arc::make_mut(&mut plan))?;
        Arc::make_mut(&mut plan).note_special();
        Ok(changed)
    }

    /// Replaces the whole plan.
    pub fn replace(&self, plan: Plan) {
        *lock(&self.plan) = Arc::new(plan);
    }

    /// Sets what a node does.
    pub fn set(&self, node: usize, work: Work) -> Result<()> {
        self.change(|plan| {
            let step = plan.step_mut(node)?;
            if step.work.kind() != work.kind() || update::change(&step.work, &work).is_some() {
                return Err(INVALID_VALUE);
            }
            step.work = work;
            Ok(())
        })
    }

    /// Launches it on a stream.
    pub fn launch(&self, stream: &Arc<Stream>) -> Result<()> {
        stream.context()?;
        // Launches of one executable graph follow each other, also on different streams. The lock is held
        // until this one is in its stream: whoever waits for it could otherwise come before it there.
        let mut latest = lock(&self.latest);
        let plan = self.plan();
        let auto_free = self.flags & AUTO_FREE != 0;
        if !auto_free && plan.kept.iter().any(|memory| memory.is_outstanding()) {
            return Err(INVALID_VALUE);
        }
        if plan.freed.iter().any(|memory| !memory.is_outstanding()) {
            return Err(INVALID_VALUE);
        }
        let left_before: Vec<_> = plan.kept.iter().filter(|m| m.is_outstanding()).collect();
        // Before anything is changed.
        let room = Room::take(stream.id, &plan.needs, &left_before)?;
        let special = special_steps(&plan)?;
        // As the driver does: such a launch returns when it is done.
        let waits = plan.writes_pageable();
        let outstanding = plan.kept.iter().filter(|memory| memory.give_up().is_ok());
        let free_first: Vec<Work> = outstanding.map(|m| Work::Free(m.clone())).collect();
        plan.kept.iter().for_each(|memory| memory.promise());
        plan.freed.iter().for_each(|memory| {
            let _ = memory.give_up();
        });
        let done = Arc::new(Moment::default());
        let before = latest.replace(done.clone());
        let launch = Launch {
            plan,
            special,
            free_first,
            room: Some(room),
            done: done.clone(),
        };
        if let Some(before) = before.filter(|before| before.at().is_none()) {
            stream.push(Task::Wait(before))?;
        }
        stream.push(Task::Graph(Box::new(launch)))?;
        drop(latest);
        if waits {
            done.wait();
        }
        Ok(())
    }
}

/// The steps of a launch that are its own: bytes of the host are taken now, events mean their moments.
fn special_steps(plan: &Plan) -> Result<HashMap<usize, Work>> {
    let mut special = HashMap::new();
    for index in &plan.special {
        let step = &plan.steps[*index];
        if !step.enabled {
            continue;
        }
        let work = match &step.work {
            Work::Record(event) => Work::Mark(event.record_moment()),
            Work::Wait(event) => Work::Await(event.moment()),
            work => work.clone().with_host_bytes()?,
        };
        special.insert(*index, work);
    }
    Ok(special)
}
