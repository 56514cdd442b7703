//! Streams: queues of work, each emptied by a thread of its own.

use crate::context::Context;
use crate::event::Moment;
use crate::ledger::Kind;
use crate::status::{Result, CONTEXT_IS_DESTROYED};
use crate::table::{fresh_handle, lock, Table};
use crate::work::Work;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, Weak};

/// Launches that a stream takes before a further one waits.
const CAPACITY: usize = 1021;

/// The handle values that stand for the NULL stream.
pub const NULL_HANDLES: [usize; 2] = [0, 1];

/// One entry of a queue.
pub enum Task {
    /// Work, one operation after the other.
    Work(Vec<Work>),
    /// Waits for a moment.
    Wait(Arc<Moment>),
    /// Marks a moment.
    Mark(Arc<Moment>),
}

#[derive(Default)]
struct Queue {
    tasks: VecDeque<Task>,
    running: bool,
    launches: usize,
    started: bool,
    closed: bool,
}

/// A stream.
pub struct Stream {
    /// Its own handle, 0 for a NULL stream.
    pub handle: usize,
    /// A number that no other stream has.
    pub id: u64,
    /// The context it is in.
    pub context: Weak<Context>,
    /// Handle of that context.
    pub context_handle: usize,
    /// Flags as given: 1 is non-blocking.
    pub flags: u32,
    /// Priority as given.
    pub priority: i32,
    queue: Mutex<Queue>,
    changed: Condvar,
}

static STREAMS: Table<Stream> = Table::new(Kind::Stream);
static PAUSED: Mutex<bool> = Mutex::new(false);
static RESUMED: Condvar = Condvar::new();
/// Whether a stream was ever used in a way that orders it with others.
static NULL_USED: AtomicBool = AtomicBool::new(false);

/// Holds all streams until [`resume`].
pub fn pause() {
    *lock(&PAUSED) = true;
}

/// Lets held streams go on.
pub fn resume() {
    *lock(&PAUSED) = false;
    RESUMED.notify_all();
}

impl Stream {
    fn new(context: &Arc<Context>, handle: usize, flags: u32, priority: i32) -> Arc<Stream> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Arc::new(Stream {
            handle,
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            context: Arc::downgrade(context),
            context_handle: context.handle,
            flags,
            priority,
            queue: Mutex::default(),
            changed: Condvar::new(),
        })
    }

    /// The NULL stream of a context.
    pub fn null(context: &Arc<Context>) -> Arc<Stream> {
        Stream::new(context, 0, 0, 0)
    }

    /// A new stream.
    pub fn create(context: &Arc<Context>, flags: u32, priority: i32) -> Arc<Stream> {
        let handle = fresh_handle();
        let stream = Stream::new(context, handle, flags, priority);
        STREAMS.insert_as(handle, stream.clone());
        stream
    }

    /// The stream with a handle: a NULL handle is that of the current context.
    pub fn get(handle: usize) -> Result<Arc<Stream>> {
        if NULL_HANDLES.contains(&handle) {
            return crate::context::current()?.null_stream();
        }
        let stream = STREAMS.get(handle)?;
        stream.context()?;
        Ok(stream)
    }

    /// Takes the stream's handle away; its work goes on.
    pub fn destroy(handle: usize) -> Result<Arc<Stream>> {
        let stream = STREAMS.remove(handle)?;
        lock(&stream.queue).closed = true;
        stream.changed.notify_all();
        Ok(stream)
    }

    /// Its context, in working order.
    pub fn context(&self) -> Result<Arc<Context>> {
        let context = self.context.upgrade().ok_or(CONTEXT_IS_DESTROYED)?;
        context.check()?;
        Ok(context)
    }

    /// Whether it and the NULL stream wait for each other.
    pub fn is_blocking(&self) -> bool {
        self.flags & 1 == 0
    }

    /// Whether it is a NULL stream.
    pub fn is_null(&self) -> bool {
        self.handle == 0
    }

    /// Enqueues a task; a launch waits while the queue is full.
    pub fn push(self: &Arc<Self>, task: Task) -> Result<()> {
        let context = self.context()?;
        for moment in self.order_with_others(&context)? {
            self.push_one(Task::Wait(moment));
        }
        self.push_one(task);
        Ok(())
    }

    /// What blocking streams and the NULL stream have to wait for before their next task.
    fn order_with_others(&self, context: &Arc<Context>) -> Result<Vec<Arc<Moment>>> {
        if self.is_null() {
            NULL_USED.store(true, Ordering::Release);
            let others = STREAMS.all();
            let blocking = others
                .iter()
                .filter(|s| s.is_blocking() && s.context_handle == context.handle);
            return Ok(blocking.filter_map(|s| s.mark_if_busy()).collect());
        }
        if self.is_blocking() && NULL_USED.load(Ordering::Acquire) {
            return Ok(context.null_stream()?.mark_if_busy().into_iter().collect());
        }
        Ok(Vec::new())
    }

    fn mark_if_busy(self: &Arc<Self>) -> Option<Arc<Moment>> {
        if self.is_idle() {
            return None;
        }
        let moment = Arc::new(Moment::default());
        self.push_one(Task::Mark(moment.clone()));
        Some(moment)
    }

    fn push_one(self: &Arc<Self>, task: Task) {
        let is_launch = matches!(task, Task::Work(_));
        let mut queue = lock(&self.queue);
        while is_launch && queue.launches >= CAPACITY {
            queue = self.changed.wait(queue).unwrap_or_else(|e| e.into_inner());
        }
        queue.launches += usize::from(is_launch);
        queue.tasks.push_back(task);
        if !queue.started {
            queue.started = true;
            let stream = self.clone();
            let spawned = std::thread::Builder::new()
                .name(format!("cuda stream {}", self.id))
                .spawn(move || stream.work());
            if spawned.is_err() {
                eprintln!("simulator: no thread could be started for a stream");
                std::process::abort();
            }
        }
        drop(queue);
        self.changed.notify_all();
    }

    /// What the stream's thread does until the stream is closed and empty.
    fn work(&self) {
        loop {
            let mut queue = lock(&self.queue);
            let task = loop {
                if let Some(task) = queue.tasks.pop_front() {
                    queue.running = true;
                    break task;
                }
                if queue.closed {
                    return;
                }
                queue = self.changed.wait(queue).unwrap_or_else(|e| e.into_inner());
            };
            drop(queue);
            self.run(&task);
            let mut queue = lock(&self.queue);
            queue.running = false;
            queue.launches -= usize::from(matches!(task, Task::Work(_)));
            drop(queue);
            drop(task);
            self.changed.notify_all();
        }
    }

    fn run(&self, task: &Task) {
        let mut paused = lock(&PAUSED);
        while *paused {
            paused = RESUMED.wait(paused).unwrap_or_else(|e| e.into_inner());
        }
        drop(paused);
        match task {
            Task::Work(all) => {
                if let Some(context) = self.context.upgrade() {
                    all.iter().for_each(|work| work.run(&context));
                }
            }
            Task::Wait(moment) => moment.wait(),
            Task::Mark(moment) => moment.happen(),
        }
    }

    /// Whether nothing is queued or running.
    pub fn is_idle(&self) -> bool {
        let queue = lock(&self.queue);
        queue.tasks.is_empty() && !queue.running
    }

    /// Waits until nothing is queued or running.
    pub fn wait_idle(&self) {
        let mut queue = lock(&self.queue);
        while !queue.tasks.is_empty() || queue.running {
            queue = self.changed.wait(queue).unwrap_or_else(|e| e.into_inner());
        }
    }
}

/// Streams that lost their handle with work pending are still waited for.
fn of_context(context: usize) -> Vec<Arc<Stream>> {
    let mut streams = STREAMS.all();
    streams.retain(|s| s.context_handle == context);
    if let Ok(context) = Context::get(context) {
        streams.extend(context.null_stream());
    }
    streams.extend(
        orphans()
            .into_iter()
            .filter(|s| s.context_handle == context),
    );
    streams
}

static ORPHANS: Mutex<Vec<Weak<Stream>>> = Mutex::new(Vec::new());

/// Remembers a destroyed stream whose work goes on.
pub fn orphan(stream: &Arc<Stream>) {
    let mut orphans = lock(&ORPHANS);
    orphans.retain(|weak| weak.upgrade().is_some_and(|s| !s.is_idle()));
    orphans.push(Arc::downgrade(stream));
}

fn orphans() -> Vec<Arc<Stream>> {
    lock(&ORPHANS).iter().filter_map(Weak::upgrade).collect()
}

/// Waits for all work in a context.
pub fn wait_idle(context: usize) {
    of_context(context)
        .iter()
        .for_each(|stream| stream.wait_idle());
}

/// Takes the streams of a context that goes.
pub fn remove_context(context: usize) {
    for stream in STREAMS.remove_where(|s| s.context_handle == context) {
        lock(&stream.queue).closed = true;
        stream.changed.notify_all();
    }
}
