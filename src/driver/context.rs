//! Contexts: owners, the one that is current on a thread, and entering one for a call.

use super::device::Limits;
use super::gate::{self, Passing, Shield, ThreadMode};
use super::memory::Allocation;
use super::pace::Pace;
use super::pressure::{Backlog, Waiting};
use super::queue::StreamState;
use super::release::{self, Release};
use super::stream::Stream;
use super::{capture, driver, library, Error, Result};
use cudarc::driver::sys::{self, CUresult};
use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Ownership {
    /// One retain of the device's primary context.
    Primary,
    /// Made by `cuCtxCreate`.
    Created,
    /// Made by someone else in this process.
    Borrowed,
}

/// A context and the streams in it. Everything made in it holds it.
pub struct Context {
    handle: usize,
    device: i32,
    ownership: Ownership,
    /// False once the context was reset: its handles must not be used or released any more.
    alive: AtomicBool,
    /// True once the driver has given an answer that it gives to everything from then on.
    broken: AtomicBool,
    /// Work pending on the NULL stream of this context.
    pub null_stream: Arc<StreamState>,
    backlog: Arc<Backlog>,
    /// The device memory in use, for the garbage collector.
    pub pace: Pace,
    /// The state of a stream outlives the stream until its work is done.
    streams: Mutex<Vec<(Weak<StreamState>, Weak<Stream>)>>,
    limits: OnceLock<Limits>,
}

/// Every context that has an owner here, with its handle, the newest last: a handle comes again after a
/// reset, and one that was borrowed first may be asked for as a primary context.
static KNOWN: Mutex<Vec<(usize, Weak<Context>)>> = Mutex::new(Vec::new());

thread_local! {
    /// The contexts on this thread's stack: one that is current must not go, even when the program
    /// has dropped its value, as in `Context.set_current (Context.get_primary device)`.
    static STACK: RefCell<Vec<Arc<Context>>> = const { RefCell::new(Vec::new()) };
}

impl Context {
    fn new(handle: usize, device: i32, ownership: Ownership) -> Arc<Context> {
        let backlog = Arc::new(Backlog::default());
        let context = Arc::new(Context {
            handle,
            device,
            ownership,
            alive: AtomicBool::new(true),
            broken: AtomicBool::new(false),
            null_stream: StreamState::new(&backlog),
            backlog,
            pace: Pace::default(),
            streams: Mutex::new(Vec::new()),
            limits: OnceLock::new(),
        });
        let mut known = KNOWN.lock().unwrap_or_else(|e| e.into_inner());
        known.retain(|(_, context)| context.strong_count() > 0);
        known.push((handle, Arc::downgrade(&context)));
        context
    }

    /// The newest context with the handle, also one that was reset.
    fn newest(handle: usize) -> Option<Arc<Context>> {
        let known = KNOWN.lock().unwrap_or_else(|e| e.into_inner());
        let mut same = known.iter().rev().filter(|(of, _)| *of == handle);
        same.find_map(|(_, context)| context.upgrade())
    }

    fn known(handle: usize) -> Option<Arc<Context>> {
        Context::newest(handle).filter(|context| context.is_alive())
    }

    /// Whether the handle is of a context that was reset and that something here still has.
    fn was_reset(handle: usize) -> bool {
        Context::newest(handle).is_some_and(|context| !context.is_alive())
    }

    /// The primary context of a device; retained once however often it is asked for.
    pub fn primary(device: i32) -> Result<Arc<Context>> {
        library::ready()?;
        release::drain(release::Drain::Quick);
        let _waiting = Waiting::begin();
        let mut handle = std::ptr::null_mut();
        driver!(cuDevicePrimaryCtxRetain(&mut handle, device))?;
        match Context::known(handle as usize).filter(|c| c.ownership == Ownership::Primary) {
            Some(context) => {
                driver!(cuDevicePrimaryCtxRelease_v2(device))?;
                Ok(context)
            }
            None => Ok(Context::new(handle as usize, device, Ownership::Primary)),
        }
    }

    /// A new context, pushed on this thread's stack.
    pub fn create(flags: u32, device: i32) -> Result<Arc<Context>> {
        library::ready()?;
        release::drain(release::Drain::Quick);
        let _waiting = Waiting::begin();
        let mut handle = std::ptr::null_mut();
        driver!(cuCtxCreate_v2(&mut handle, flags, device)).map_err(|e| {
            match e.is(CUresult::CUDA_ERROR_INVALID_VALUE) {
                true => e.explained(format!(
                    "flags 0x{flags:x}; of SCHED_SPIN, SCHED_YIELD and SCHED_BLOCKING_SYNC only one can be \
                     given, and SCHED_MASK is none of them"
                )),
                false => e,
            }
        })?;
        let context = Context::new(handle as usize, device, Ownership::Created);
        STACK.with_borrow_mut(|stack| stack.push(context.clone()));
        Ok(context)
    }

    /// The context that is current on this thread.
    pub fn current() -> Result<Arc<Context>> {
        library::ready()?;
        let mut handle = std::ptr::null_mut();
        driver!(cuCtxGetCurrent(&mut handle))?;
        if handle.is_null() {
            return Err(Error::new(
                CUresult::CUDA_ERROR_INVALID_CONTEXT,
                "no context is current on this thread: call Context.set_current first",
            ));
        }
        if let Some(context) = Context::known(handle as usize) {
            return Ok(context);
        }
        let device = Context::device_of_current(handle as usize)?;
        Ok(Context::new(handle as usize, device, Ownership::Borrowed))
    }

    /// The device of the context that is current on this thread, which has `handle`. A handle that was reset
    /// may not be used otherwise.
    fn device_of_current(handle: usize) -> Result<i32> {
        if Context::was_reset(handle) {
            // The driver tells the device also of a context that is gone, but not its limits.
            let mut size = 0;
            let limit = sys::CUlimit::CU_LIMIT_STACK_SIZE;
            driver!(cuCtxGetLimit(&mut size, limit)).map_err(|_| destroyed())?;
        }
        let mut device = 0;
        driver!(cuCtxGetDevice(&mut device))?;
        Ok(device)
    }

    /// Every context here that was not reset.
    fn all_alive() -> Vec<Arc<Context>> {
        let known = KNOWN.lock().unwrap_or_else(|e| e.into_inner());
        let all = known.iter().map(|(_, context)| context);
        let mut contexts: Vec<_> = all.filter_map(Weak::upgrade).collect();
        // What goes here is dropped after the lock.
        drop(known);
        contexts.retain(|context| context.is_alive());
        contexts
    }

    /// Every other context here.
    pub fn others(of: &[Arc<Context>]) -> Vec<Arc<Context>> {
        let mut contexts = Context::all_alive();
        contexts.retain(|context| !of.iter().any(|own| Arc::ptr_eq(own, context)));
        contexts
    }

    /// Every context here that goes with a reset of the device's primary one.
    /// `cuDevicePrimaryCtxRetain`, `cuDevicePrimaryCtxRelease`
    pub fn primary_of(device: i32) -> Result<Vec<Arc<Context>>> {
        let mut contexts = Context::all_alive();
        contexts.retain(|c| c.device == device && c.ownership != Ownership::Created);
        if contexts.iter().any(|c| c.ownership == Ownership::Borrowed) {
            // Another library may have made it by `cuCtxCreate`.
            let mut primary = std::ptr::null_mut();
            driver!(cuDevicePrimaryCtxRetain(&mut primary, device))?;
            driver!(cuDevicePrimaryCtxRelease_v2(device))?;
            contexts.retain(|c| c.handle == primary as usize);
        }
        Ok(contexts)
    }

    /// Notes that it was reset.
    pub fn note_reset(&self) {
        self.alive.store(false, Ordering::Release);
    }

    /// Lets go what done work used on any stream, for programs that never wait for one. Waits for nothing:
    /// the work under way may need what the calling thread does next.
    pub fn release_done() {
        for context in Context::all_alive() {
            let Ok(_entered) = context.enter() else {
                continue;
            };
            let streams = context.live_streams();
            streams.iter().for_each(|stream| stream.release_done());
            // A library that shares streams with us may capture on a blocking one of its own, and asking for
            // the NULL stream would break that.
            if !streams.iter().any(|stream| stream.is_shared()) {
                Stream::null_of(context.clone()).release_done();
            }
        }
    }

    /// Gives back the memory that devices keep for later launches of graphs: each that has a context here,
    /// since work of any may be short of it on a thread where another context is current, or none.
    /// `cuDeviceGraphMemTrim`
    pub fn trim_graph_memory() {
        let contexts = Context::all_alive();
        let mut devices: Vec<i32> = contexts.iter().map(|context| context.device).collect();
        devices.sort_unstable();
        devices.dedup();
        let _shield = Shield::harmless(Passing::By);
        let _waiting = Waiting::begin();
        for device in devices {
            // Each helps without the others.
            let _ = driver!(cuDeviceGraphMemTrim(device));
        }
    }

    /// A context by the driver's handle, whoever made it.
    pub fn of_handle(handle: usize) -> Result<Arc<Context>> {
        if let Some(context) = Context::known(handle) {
            return Ok(context);
        }
        let raw = handle as sys::CUcontext;
        driver!(cuCtxPushCurrent_v2(raw))?;
        let device = Context::device_of_current(handle);
        let mut popped = std::ptr::null_mut();
        driver!(cuCtxPopCurrent_v2(&mut popped))?;
        Ok(Context::new(handle, device?, Ownership::Borrowed))
    }

    /// Makes this the current context of the thread.
    pub fn set_current(self: &Arc<Self>) -> Result<()> {
        self.check_alive()?;
        driver!(cuCtxSetCurrent(self.handle as sys::CUcontext))?;
        STACK.with_borrow_mut(|stack| {
            stack.pop();
            stack.push(self.clone());
        });
        Ok(())
    }

    /// Pushes this context on the thread's stack.
    pub fn push(self: &Arc<Self>) -> Result<()> {
        self.check_alive()?;
        driver!(cuCtxPushCurrent_v2(self.handle as sys::CUcontext))?;
        STACK.with_borrow_mut(|stack| stack.push(self.clone()));
        Ok(())
    }

    /// Takes the top of the thread's stack.
    pub fn pop() -> Result<Arc<Context>> {
        let context = Context::current()?;
        let mut handle = std::ptr::null_mut();
        driver!(cuCtxPopCurrent_v2(&mut handle))?;
        STACK.with_borrow_mut(|stack| stack.pop());
        Ok(context)
    }

    /// Waits for all work in the current context, then lets go what that work used.
    pub fn synchronize() -> Result<()> {
        let context = Context::current()?;
        // Closes captures whose streams are garbage: they would be in the way.
        release::drain(release::Drain::Quick);
        let marks = context.marks();
        wait_for_all()?;
        marks
            .into_iter()
            .for_each(|(state, mark)| state.release_up_to(mark));
        release::drain(release::Drain::All);
        Ok(())
    }

    /// Every stream state of this context with its last finished operation.
    fn marks(&self) -> Vec<(Arc<StreamState>, u64)> {
        let marked = |state: Arc<StreamState>| {
            let mark = state.mark();
            (state, mark)
        };
        self.states().into_iter().map(marked).collect()
    }

    fn states(&self) -> Vec<Arc<StreamState>> {
        let streams = self.streams.lock().unwrap_or_else(|e| e.into_inner());
        let own = streams.iter().filter_map(|(state, _)| state.upgrade());
        own.chain([self.null_stream.clone()]).collect()
    }

    /// The same, each with its stream if that has an owner.
    pub fn all_streams(self: &Arc<Self>) -> Vec<(Arc<StreamState>, Option<Arc<Stream>>)> {
        let streams = self.streams.lock().unwrap_or_else(|e| e.into_inner());
        let own = streams.iter();
        let own = own.filter_map(|(state, stream)| Some((state.upgrade()?, stream.upgrade())));
        let null = Arc::new(Stream::null_of(self.clone()));
        own.chain([(self.null_stream.clone(), Some(null))])
            .collect()
    }

    /// The streams of this context that have an owner.
    fn live_streams(&self) -> Vec<Arc<Stream>> {
        let streams = self.streams.lock().unwrap_or_else(|e| e.into_inner());
        streams.iter().filter_map(|(_, s)| s.upgrade()).collect()
    }

    /// Whether pending work of any context may use the memory; true if nobody can tell at this moment. The
    /// work of `one` stream is passed over.
    pub fn others_may_use(&self, memory: &Arc<Allocation>, one: Option<&Arc<StreamState>>) -> bool {
        let is_one = |state: &Arc<StreamState>| one.is_some_and(|one| Arc::ptr_eq(state, one));
        let mut states = self.states();
        states.extend(self.outside_states());
        states.iter().any(|s| !is_one(s) && s.may_use(memory))
    }

    /// Whether pending work of another context uses the memory: a kernel can reach it from there, and freeing
    /// it waits for its own context. Waits for calls that enqueue at this moment.
    pub fn outsiders_use(&self, memory: &Arc<Allocation>) -> bool {
        self.outside_states().iter().any(|s| s.uses(memory))
    }

    /// The stream states of every other context.
    fn outside_states(&self) -> Vec<Arc<StreamState>> {
        let others = Context::all_alive();
        let others = others.iter().filter(|other| !std::ptr::eq(&***other, self));
        others.flat_map(|other| other.states()).collect()
    }

    /// The context that an allocation of any library belongs to; the current one if the driver does not
    /// say. `cuPointerGetAttribute`
    pub fn of_memory(address: u64) -> Result<Arc<Context>> {
        let current = Context::current();
        let mut handle: sys::CUcontext = std::ptr::null_mut();
        let attribute = sys::CUpointer_attribute::CU_POINTER_ATTRIBUTE_CONTEXT;
        let out = std::ptr::from_mut(&mut handle).cast();
        // SAFETY: this attribute is a context handle.
        let status = unsafe { sys::cuPointerGetAttribute(out, attribute, address) };
        match status {
            CUresult::CUDA_SUCCESS if !handle.is_null() => Context::of_handle(handle as usize),
            _ => current,
        }
    }

    /// Remembers a stream that was made in this context.
    pub fn adopt(&self, stream: &Arc<Stream>) {
        let mut streams = self.streams.lock().unwrap_or_else(|e| e.into_inner());
        streams.retain(|(state, _)| state.strong_count() > 0);
        streams.push((Arc::downgrade(stream.state()), Arc::downgrade(stream)));
    }

    /// Makes this the current context until the guard goes. Costs one query when it already is.
    pub fn enter(&self) -> Result<Entered> {
        self.check_alive()?;
        let mut current = std::ptr::null_mut();
        driver!(cuCtxGetCurrent(&mut current))?;
        if current as usize == self.handle {
            return Ok(Entered { pushed: false });
        }
        driver!(cuCtxPushCurrent_v2(self.handle as sys::CUcontext))?;
        Ok(Entered { pushed: true })
    }

    /// [`Context::enter`] where a context that was reset is no error.
    pub fn enter_if_alive(&self) -> Result<Option<Entered>> {
        self.is_alive().then(|| self.enter()).transpose()
    }

    /// An error if the context was reset since.
    pub fn check_alive(&self) -> Result<()> {
        library::ready()?;
        if self.alive.load(Ordering::Acquire) {
            return Ok(());
        }
        Err(destroyed())
    }

    /// Whether work can still be done in it: it was not reset, and no kernel has brought it down.
    /// `cuEventCreate`, `cuEventDestroy`
    pub fn is_usable(&self) -> Result<bool> {
        library::ready()?;
        if !self.is_alive() || self.broken.load(Ordering::Relaxed) {
            return Ok(false);
        }
        let _relaxed = ThreadMode::relaxed();
        let _entered = self.enter()?;
        let mut event = std::ptr::null_mut();
        let asked =
            driver!(cuEventCreate(&mut event, 0)).and_then(|()| driver!(cuEventDestroy_v2(event)));
        match asked {
            Err(_) if self.broken.load(Ordering::Relaxed) => Ok(false),
            asked => asked.map(|()| true),
        }
    }

    /// Whether an answer of the driver has shown that nothing works in it any more.
    pub fn is_broken(&self) -> bool {
        self.broken.load(Ordering::Relaxed)
    }

    /// Whether the context was not reset since.
    pub fn is_alive(&self) -> bool {
        self.alive.load(Ordering::Acquire)
    }

    /// The limits of this context's device, asked for once.
    pub fn limits(&self) -> Result<&Limits> {
        if let Some(limits) = self.limits.get() {
            return Ok(limits);
        }
        let limits = Limits::of_device(self.device)?;
        Ok(self.limits.get_or_init(|| limits))
    }

    /// [`Context::limits`], if they were asked for.
    #[inline]
    pub fn known_limits(&self) -> Option<&Limits> {
        self.limits.get()
    }

    /// What is enqueued in it and not known to be done.
    pub fn backlog(&self) -> &Arc<Backlog> {
        &self.backlog
    }

    /// The driver's handle.
    pub fn handle(&self) -> usize {
        self.handle
    }

    /// Whether this is `other`, a live context, and was not reset before that one got its handle.
    #[inline]
    pub fn is(&self, other: &Context) -> bool {
        std::ptr::eq(self, other) || self.handle == other.handle && self.is_alive()
    }
}

fn destroyed() -> Error {
    Error::new(
        CUresult::CUDA_ERROR_CONTEXT_IS_DESTROYED,
        "its context was reset; whatever was made in it is gone",
    )
}

impl Drop for Context {
    fn drop(&mut self) {
        match self.ownership {
            Ownership::Primary => release::queue(Release::PrimaryContext(self.device)),
            Ownership::Created => release::queue(Release::CreatedContext(self.handle)),
            Ownership::Borrowed => {}
        }
    }
}

/// Notes that the context of the calling thread can do no more work.
#[cold]
pub fn note_broken() {
    let mut handle = std::ptr::null_mut();
    // SAFETY: asks for the handle that is current on this thread.
    let asked = unsafe { sys::cuCtxGetCurrent(&mut handle) };
    if asked == CUresult::CUDA_SUCCESS {
        if let Some(context) = Context::known(handle as usize) {
            context.broken.store(true, Ordering::Relaxed);
        }
    }
}

/// `cuCtxSynchronize`, which breaks every open capture: those of others are protected, and none begins
/// while this waits.
fn wait_for_all() -> Result<()> {
    let mut passage = gate::pass(Passing::Together);
    if capture::any_open() {
        drop(passage);
        passage = gate::pass(Passing::Alone);
    }
    capture::refuse_for_others("waiting for the whole context", None)?;
    let result = driver!(cuCtxSynchronize()).map_err(|e| match capture::begun_here() {
        true if e.detail.is_empty() => e.explained(
            "this thread is capturing a stream, and the driver cannot wait for a capture",
        ),
        _ => e,
    });
    drop(passage);
    result
}

/// A context that stays current until this goes.
pub struct Entered {
    pushed: bool,
}

impl Drop for Entered {
    fn drop(&mut self) {
        if self.pushed {
            let mut handle = std::ptr::null_mut();
            // SAFETY: pops what `enter` pushed on this thread; the result has nowhere to go.
            let _ = unsafe { sys::cuCtxPopCurrent_v2(&mut handle) };
        }
    }
}

impl Context {
    /// A limit of the current context, by its number. `cuCtxGetLimit`
    pub fn limit(limit: i32) -> Result<usize> {
        let _current = Context::current()?;
        let mut n = 0;
        driver!(cuCtxGetLimit(&mut n, known_limit(limit)?))
            .map_err(|e| e.explained(limit_name(limit)))?;
        Ok(n)
    }

    /// Changes a limit of the current context. `cuCtxSetLimit`
    pub fn set_limit(limit: i32, n: i64) -> Result<()> {
        let _current = Context::current()?;
        let n = usize::try_from(n).map_err(|_| Error::invalid(format!("value {n} is negative")))?;
        driver!(cuCtxSetLimit(known_limit(limit)?, n))
            .map_err(|e| e.explained(format!("{} {n}", limit_name(limit))))
    }
}

impl Context {
    /// Lets kernels of the current context use the memory of `peer`. `cuCtxEnablePeerAccess`
    pub fn enable_peer_access(peer: &Context, flags: u32) -> Result<()> {
        peer.check_alive()?;
        let current = Context::current()?;
        driver!(cuCtxEnablePeerAccess(peer.handle as sys::CUcontext, flags))
            .map_err(|e| current.explain_peer(e, peer, flags))
    }

    /// Takes that back. `cuCtxDisablePeerAccess`
    pub fn disable_peer_access(peer: &Context) -> Result<()> {
        peer.check_alive()?;
        let current = Context::current()?;
        driver!(cuCtxDisablePeerAccess(peer.handle as sys::CUcontext))
            .map_err(|e| current.explain_peer(e, peer, 0))
    }

    /// Says what the driver minds about `peer`, with this as the current context.
    fn explain_peer(&self, error: Error, peer: &Context, flags: u32) -> Error {
        if flags != 0 && error.is(CUresult::CUDA_ERROR_INVALID_VALUE) {
            error.explained(format!("flags {flags}, and there are none but 0"))
        } else if self.handle == peer.handle {
            error.explained("peer is the current context itself")
        } else if self.device == peer.device {
            error.explained(format!(
                "peer is another context of the same device {}",
                self.device
            ))
        } else {
            error.explained(format!(
                "the current context is of device {}, and peer of device {}",
                self.device, peer.device
            ))
        }
    }
}

/// The name of a limit as OCaml has it.
fn limit_name(limit: i32) -> String {
    match known_limit(limit) {
        Ok(known) => format!("{known:?}").replace("CU_LIMIT_", ""),
        Err(_) => limit.to_string(),
    }
}

fn known_limit(limit: i32) -> Result<sys::CUlimit> {
    use sys::CUlimit::*;
    [
        CU_LIMIT_STACK_SIZE,
        CU_LIMIT_PRINTF_FIFO_SIZE,
        CU_LIMIT_MALLOC_HEAP_SIZE,
        CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH,
        CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT,
        CU_LIMIT_MAX_L2_FETCH_GRANULARITY,
        CU_LIMIT_PERSISTING_L2_CACHE_SIZE,
    ]
    .into_iter()
    .find(|known| *known as i32 == limit)
    .ok_or_else(|| Error::invalid(format!("limit {limit} is not known")))
}
