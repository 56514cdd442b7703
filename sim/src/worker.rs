//! The queue of a stream, and the thread that empties it.

use crate::context::Context;
use crate::event::Moment;
use crate::graph::run::Launch;
use crate::report;
use crate::status::{Result, OPERATING_SYSTEM, UNKNOWN};
use crate::table::lock;
use crate::work::Work;
use std::collections::VecDeque;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, Weak};
use std::time::Duration;

/// Launches that may be pending; a further one waits. The driver was seen to take one that runs and
/// 1021 behind it.
const CAPACITY: usize = 1022;
/// A thread without work ends after this time.
const PATIENCE: Duration = Duration::from_secs(10);

/// One entry of a queue.
pub enum Task {
    /// One operation.
    Work(Work),
    /// A launch of an executable graph.
    Graph(Box<Launch>),
    /// Waits for a moment.
    Wait(Arc<Moment>),
    /// Marks a moment.
    Mark(Arc<Moment>),
}

impl Task {
    fn is_launch(&self) -> bool {
        matches!(self, Task::Work(_) | Task::Graph(_))
    }
}

#[derive(Clone, Copy, Default, PartialEq)]
enum Thread {
    #[default]
    None,
    Sleeping,
    Busy,
}

#[derive(Default)]
struct State {
    tasks: VecDeque<Task>,
    /// Tasks ever put in.
    entered: u64,
    /// Tasks ever done.
    done: u64,
    /// Launches that are pending.
    launches: usize,
    thread: Thread,
    /// How many wait for progress.
    waiters: usize,
    closed: bool,
}

/// A queue.
pub struct Queue {
    context: Weak<Context>,
    state: Mutex<State>,
    /// Wakes the thread.
    filled: Condvar,
    /// Wakes those who wait for progress.
    progress: Condvar,
}

static PAUSED: AtomicBool = AtomicBool::new(false);
static PAUSE: Mutex<()> = Mutex::new(());
static RESUMED: Condvar = Condvar::new();

/// Holds all queues until [`resume`].
pub fn pause() {
    PAUSED.store(true, Ordering::Release);
}

/// Lets held queues go on.
pub fn resume() {
    let _guard = lock(&PAUSE);
    PAUSED.store(false, Ordering::Release);
    RESUMED.notify_all();
}

fn wait_while_paused() {
    if !PAUSED.load(Ordering::Acquire) {
        return;
    }
    let mut guard = lock(&PAUSE);
    while PAUSED.load(Ordering::Acquire) {
        guard = RESUMED.wait(guard).unwrap_or_else(|e| e.into_inner());
    }
}

impl Queue {
    /// The queue of a stream in a context.
    pub fn new(context: Weak<Context>) -> Arc<Queue> {
        Arc::new(Queue {
            context,
            state: Mutex::default(),
            filled: Condvar::new(),
            progress: Condvar::new(),
        })
    }

    /// Puts a task in; a launch waits while too many are pending. Fails if there is no thread to do it.
    pub fn push(self: &Arc<Self>, task: Task) -> Result<()> {
        let is_launch = task.is_launch();
        let mut state = lock(&self.state);
        while is_launch && state.launches >= CAPACITY {
            state = self.wait_for_progress(state);
        }
        let is_asleep = state.thread == Thread::Sleeping;
        if state.thread == Thread::None {
            // With the lock held: nobody counts on a thread that does not come.
            self.start()?;
        }
        state.thread = Thread::Busy;
        state.launches += usize::from(is_launch);
        state.entered += 1;
        state.tasks.push_back(task);
        drop(state);
        if is_asleep {
            self.filled.notify_one();
        }
        Ok(())
    }

    fn start(self: &Arc<Self>) -> Result<()> {
        let queue = self.clone();
        let spawned = std::thread::Builder::new()
            .name("cuda stream".to_string())
            .spawn(move || queue.work());
        spawned.map(|_| ()).map_err(|error| {
            report::say(&format!("no thread could be started for a stream: {error}"));
            OPERATING_SYSTEM
        })
    }

    /// What the thread does.
    fn work(&self) {
        let mut state = lock(&self.state);
        loop {
            while state.tasks.is_empty() {
                if state.closed {
                    state.thread = Thread::None;
                    return;
                }
                state.thread = Thread::Sleeping;
                let (guard, timeout) = self
                    .filled
                    .wait_timeout(state, PATIENCE)
                    .unwrap_or_else(|e| e.into_inner());
                state = guard;
                if timeout.timed_out() && state.tasks.is_empty() {
                    state.thread = Thread::None;
                    return;
                }
            }
            state.thread = Thread::Busy;
            if let Some(task) = state.tasks.pop_front() {
                drop(state);
                wait_while_paused();
                let is_launch = task.is_launch();
                let mark = match &task {
                    Task::Mark(moment) => Some(moment.clone()),
                    _ => None,
                };
                self.run(task);
                state = lock(&self.state);
                state.done += 1;
                // With the lock held: whoever has waited for the moment finds the stream to be that far.
                mark.inspect(|moment| moment.happen());
                state.launches -= usize::from(is_launch);
                if state.waiters > 0 {
                    self.progress.notify_all();
                }
            }
        }
    }

    /// Does a task. A defect of the simulator breaks the context, not the stream.
    fn run(&self, task: Task) {
        let context = self.context.upgrade();
        let outcome = catch_unwind(AssertUnwindSafe(|| match (task, &context) {
            (Task::Work(work), Some(context)) => work.run(context),
            (Task::Graph(launch), Some(context)) => launch.run(context),
            (Task::Wait(moment), _) => moment.wait(),
            (Task::Mark(_), _) | (_, None) => {}
        }));
        if outcome.is_err() {
            report::say("work of a stream failed inside; please report it");
            context.inspect(|context| context.fail(UNKNOWN));
        }
    }

    fn wait_for_progress<'a>(&self, mut state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        state.waiters += 1;
        let mut state = self.progress.wait(state).unwrap_or_else(|e| e.into_inner());
        state.waiters -= 1;
        state
    }

    /// Whether everything is done.
    pub fn is_idle(&self) -> bool {
        let state = lock(&self.state);
        state.done == state.entered
    }

    /// Waits until everything that is in the queue now is done.
    pub fn wait_idle(&self) {
        let mut state = lock(&self.state);
        let until = state.entered;
        while state.done < until {
            state = self.wait_for_progress(state);
        }
    }

    /// Nothing will be put in any more: the thread ends when it has done everything.
    pub fn close(&self) {
        lock(&self.state).closed = true;
        self.filled.notify_one();
    }
}
