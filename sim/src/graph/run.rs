//! One launch of an executable graph.

use super::plan::Plan;
use crate::context::Context;
use crate::event::Moment;
use crate::memory::graph::Room;
use crate::report;
use crate::status::UNKNOWN;
use crate::table::lock;
use crate::work::Work;
use std::collections::{HashMap, VecDeque};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};

/// A launch: a plan, and the steps that are its own.
pub struct Launch {
    /// The plan as it was when the launch was made.
    pub plan: Arc<Plan>,
    /// Steps in the form of this launch, by number.
    pub special: HashMap<usize, Work>,
    /// Memory of an earlier launch that this one frees first.
    pub free_first: Vec<Work>,
    /// Room for the memory that it makes.
    pub room: Option<Room>,
    /// Happens at the end.
    pub done: Arc<Moment>,
}

/// However a launch ends, nothing waits for it in vain.
impl Drop for Launch {
    fn drop(&mut self) {
        for work in self.special.values() {
            if let Work::Mark(moment) = work {
                moment.happen();
            }
        }
        self.done.happen();
    }
}

impl Launch {
    /// Does it.
    pub fn run(mut self, context: &Arc<Context>) {
        let (done, room) = (self.done.clone(), self.room.take());
        self.free_first.iter().for_each(|work| work.run(context));
        let progress;
        if self.plan.is_chain {
            (0..self.plan.steps.len()).for_each(|step| self.step(step, context));
        } else {
            progress = Arc::new(Progress::new(self, context.clone()));
            branches(&progress);
        }
        // First: whoever knows that it is done counts on the room.
        drop(room);
        done.happen();
    }

    fn step(&self, index: usize, context: &Context) {
        let step = &self.plan.steps[index];
        if step.enabled {
            self.special.get(&index).unwrap_or(&step.work).run(context);
        }
    }
}

/// A launch with branches, shared by the threads that run it.
struct Progress {
    launch: Launch,
    context: Arc<Context>,
    /// For each step, how many it still waits for.
    missing: Vec<AtomicUsize>,
    state: Mutex<Ready>,
    changed: Condvar,
}

struct Ready {
    steps: VecDeque<usize>,
    /// Steps that are not done yet.
    left: usize,
}

impl Progress {
    fn new(launch: Launch, context: Arc<Context>) -> Progress {
        let steps = &launch.plan.steps;
        let missing = steps.iter().map(|s| AtomicUsize::new(s.needs)).collect();
        let roots = steps.iter().enumerate().filter(|(_, s)| s.needs == 0);
        let ready = Ready {
            steps: roots.map(|(index, _)| index).collect(),
            left: steps.len(),
        };
        Progress {
            missing,
            context,
            state: Mutex::new(ready),
            changed: Condvar::new(),
            launch,
        }
    }

    /// Runs steps that are ready until there are none.
    fn drain(self: &Arc<Self>) {
        while let Some(step) = self.take() {
            self.step(step);
            let next = self.launch.plan.steps[step].next.iter();
            let freed = next.filter(|n| self.missing[**n].fetch_sub(1, Ordering::AcqRel) == 1);
            let freed: Vec<usize> = freed.copied().collect();
            let mut state = lock(&self.state);
            state.left -= 1;
            state.steps.extend(freed);
            drop(state);
            self.changed.notify_all();
        }
    }

    /// Does a step. A defect of the simulator breaks the context; the other steps still come to an end.
    fn step(&self, step: usize) {
        let run = || self.launch.step(step, &self.context);
        if catch_unwind(AssertUnwindSafe(run)).is_err() {
            report::say("work of a graph failed inside; please report it");
            self.context.fail(UNKNOWN);
        }
    }

    /// A step that is ready. Further ones are left to helpers.
    fn take(self: &Arc<Self>) -> Option<usize> {
        let mut state = lock(&self.state);
        let step = state.steps.pop_front()?;
        let more = state.steps.len();
        drop(state);
        if more > 0 {
            let progress = self.clone();
            help(Box::new(move || progress.drain()));
        }
        Some(step)
    }
}

/// Runs a launch with branches to its end.
fn branches(progress: &Arc<Progress>) {
    loop {
        progress.drain();
        let mut state = lock(&progress.state);
        while state.left > 0 && state.steps.is_empty() {
            state = progress
                .changed
                .wait(state)
                .unwrap_or_else(|e| e.into_inner());
        }
        if state.left == 0 {
            return;
        }
    }
}

type Job = Box<dyn FnOnce() + Send>;

/// Threads that run branches. A branch may wait for something that another one does, so there is always
/// a thread for a job, up to a number that no sensible graph reaches.
#[derive(Default)]
struct Helpers {
    jobs: VecDeque<Job>,
    idle: usize,
    threads: usize,
}

const MOST_HELPERS: usize = 64;
static HELPERS: Mutex<Helpers> = Mutex::new(Helpers {
    jobs: VecDeque::new(),
    idle: 0,
    threads: 0,
});
static FILLED: Condvar = Condvar::new();

fn help(job: Job) {
    let mut helpers = lock(&HELPERS);
    helpers.jobs.push_back(job);
    if helpers.jobs.len() > helpers.idle && helpers.threads < MOST_HELPERS {
        let thread = std::thread::Builder::new().name("cuda graph branch".to_string());
        helpers.threads += usize::from(thread.spawn(work).is_ok());
    }
    FILLED.notify_one();
}

fn work() {
    let mut helpers = lock(&HELPERS);
    loop {
        if let Some(job) = helpers.jobs.pop_front() {
            drop(helpers);
            job();
            helpers = lock(&HELPERS);
        } else {
            helpers.idle += 1;
            helpers = FILLED.wait(helpers).unwrap_or_else(|e| e.into_inner());
            helpers.idle -= 1;
        }
    }
}
