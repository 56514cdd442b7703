//! Streams: their handles, and in which order their work runs.

use crate::context::{self, Context};
use crate::event::Moment;
use crate::ledger::Kind;
use crate::status::{Result, CONTEXT_IS_DESTROYED, INVALID_HANDLE};
use crate::table::{fresh_handle, lock, Table};
use crate::worker::{Queue, Task};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};

/// The priority of the most urgent streams; 0 is that of the least urgent.
pub const GREATEST_PRIORITY: i32 = -5;

/// The handle values that stand for the NULL stream.
const NULL_HANDLES: [usize; 2] = [0, 1];
/// The handle value that stands for a thread's own default stream.
const PER_THREAD_HANDLE: usize = 2;

/// Whether a handle names one of the streams that are always there.
pub fn is_default(handle: usize) -> bool {
    handle <= PER_THREAD_HANDLE
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
    /// The device of that context.
    pub device: i32,
    /// Flags as given: 1 is non-blocking.
    pub flags: u32,
    /// Priority as given.
    pub priority: i32,
    queue: Arc<Queue>,
}

static STREAMS: Table<Stream> = Table::new(Kind::Stream);
/// Destroyed streams whose work may still go on.
static ORPHANS: Mutex<Vec<Arc<Stream>>> = Mutex::new(Vec::new());
/// The default streams of threads, also of threads that have ended while work goes on.
static OF_THREADS: Mutex<Vec<Arc<Stream>>> = Mutex::new(Vec::new());
/// Whether a NULL stream was ever used.
static NULL_USED: AtomicBool = AtomicBool::new(false);

thread_local! {
    static PER_THREAD: Cell<bool> = const { Cell::new(false) };
    static OWN: RefCell<HashMap<usize, Arc<Stream>>> = RefCell::new(HashMap::new());
}

/// Makes the handle 0 mean the thread's own default stream, or the NULL stream; tells what it meant.
pub fn set_per_thread(own: bool) -> bool {
    PER_THREAD.replace(own)
}

impl Stream {
    fn new(context: &Arc<Context>, handle: usize, flags: u32, priority: i32) -> Arc<Stream> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Arc::new(Stream {
            handle,
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            context: Arc::downgrade(context),
            context_handle: context.handle,
            device: context.device,
            flags,
            priority,
            queue: Queue::new(Arc::downgrade(context)),
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

    /// The stream with a handle, in working order. The default streams are those of the current context.
    pub fn get(handle: usize) -> Result<Arc<Stream>> {
        let own = handle == PER_THREAD_HANDLE || (handle == 0 && PER_THREAD.get());
        if own {
            return per_thread(&context::current()?);
        }
        if NULL_HANDLES.contains(&handle) {
            return context::current()?.null_stream();
        }
        let stream = STREAMS.get(handle)?;
        stream.context()?;
        Ok(stream)
    }

    /// Takes the stream's handle away; its work goes on.
    pub fn destroy(handle: usize) -> Result<Arc<Stream>> {
        if is_default(handle) {
            return Err(INVALID_HANDLE);
        }
        let stream = STREAMS.remove(handle)?;
        let mut orphans = lock(&ORPHANS);
        orphans.retain(|orphan| !orphan.is_idle());
        orphans.push(stream.clone());
        stream.queue.close();
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
        for moment in self.comes_after(&context)? {
            self.queue.push(Task::Wait(moment))?;
        }
        self.queue.push(task)
    }

    /// What blocking streams and the NULL stream have to wait for before their next task.
    fn comes_after(&self, context: &Arc<Context>) -> Result<Vec<Arc<Moment>>> {
        if self.is_null() {
            NULL_USED.store(true, Ordering::Release);
            let blocking = handled(context.handle)
                .into_iter()
                .filter(|s| s.is_blocking());
            return blocking
                .filter_map(|s| s.end_of_work().transpose())
                .collect();
        }
        if self.is_blocking() && NULL_USED.load(Ordering::Acquire) {
            return Ok(context.null_stream()?.end_of_work()?.into_iter().collect());
        }
        Ok(Vec::new())
    }

    /// The moment when everything that is in the stream now is done, unless that is so already.
    fn end_of_work(&self) -> Result<Option<Arc<Moment>>> {
        if self.is_idle() {
            return Ok(None);
        }
        let moment = Arc::new(Moment::default());
        self.queue.push(Task::Mark(moment.clone()))?;
        Ok(Some(moment))
    }

    /// Whether nothing is queued or running.
    pub fn is_idle(&self) -> bool {
        self.queue.is_idle()
    }

    /// Whether the driver calls it done: a NULL stream is not while a blocking stream has work.
    pub fn is_done(&self) -> bool {
        self.is_idle()
            && (!self.is_null()
                || handled(self.context_handle)
                    .iter()
                    .all(|stream| !stream.is_blocking() || stream.is_idle()))
    }

    /// Waits for everything that is in the stream now.
    pub fn wait_idle(&self) {
        self.queue.wait_idle();
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.queue.close();
    }
}

/// The default stream of this thread in a context.
fn per_thread(context: &Arc<Context>) -> Result<Arc<Stream>> {
    OWN.with_borrow_mut(|own| {
        let stale = |s: &Arc<Stream>| s.context.upgrade().is_none_or(|c| c.is_destroyed());
        own.retain(|_, stream| !stale(stream));
        let stream = own.entry(context.handle).or_insert_with(|| {
            let stream = Stream::new(context, fresh_handle(), 0, 0);
            let mut all = lock(&OF_THREADS);
            all.retain(|s| Arc::strong_count(s) > 1 || !s.is_idle());
            all.push(stream.clone());
            stream
        });
        Ok(stream.clone())
    })
}

/// The streams of a context, without its NULL stream.
fn handled(context: usize) -> Vec<Arc<Stream>> {
    let mut streams = STREAMS.all();
    streams.extend(lock(&ORPHANS).iter().cloned());
    streams.extend(lock(&OF_THREADS).iter().cloned());
    streams.retain(|s| s.context_handle == context);
    streams
}

/// Waits for all work in a context.
pub fn wait_idle(context: &Context) {
    let mut streams = handled(context.handle);
    streams.extend(context.null_stream());
    streams.iter().for_each(|stream| stream.wait_idle());
}

/// Takes the streams of a context that goes.
pub fn remove_context(context: usize) {
    lock(&OF_THREADS).retain(|s| s.context_handle != context);
    lock(&ORPHANS).retain(|s| s.context_handle != context);
    for stream in STREAMS.remove_where(|s| s.context_handle == context) {
        stream.queue.close();
    }
}
