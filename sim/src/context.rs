//! Contexts: a stack of them on each thread, errors that stick, and what ends with them.

use crate::ledger::Kind;
use crate::memory::{self, DeviceMemory};
use crate::status::*;
use crate::stream::{self, Stream};
use crate::table::{fresh_handle, lock, Table};
use crate::{capture, event, graph, module};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// Limits at first, by number (CUlimit). The first is the stack of a thread; number 3 is not supported.
const LIMITS: [usize; 9] = [
    1024,
    8_650_752,
    8 << 20,
    0,
    2048,
    64,
    11_796_480,
    232_448,
    0,
];

/// What a limit becomes when it is set, as measured.
fn limited(number: i32, value: usize) -> Result<usize> {
    const L2_PART: usize = 3_932_160;
    match number {
        0 if value <= 512 << 10 => Ok(value.next_multiple_of(16)),
        1 => Ok(value.clamp(512 << 10, 2 << 30)),
        2 => Ok(value.max(4 << 20)),
        4 => Ok(value.clamp(32, 599_186)),
        5 if value <= 128 => Ok(value),
        6 if value <= 60 << 20 => Ok(value.next_multiple_of(L2_PART)),
        0 | 5 | 6 => Err(INVALID_VALUE),
        7 | 8 => Err(NOT_PERMITTED),
        _ => Err(UNSUPPORTED_LIMIT),
    }
}

/// A context.
pub struct Context {
    /// Its own handle.
    pub handle: usize,
    /// A number that no other context has.
    pub id: u64,
    /// The device it is on.
    pub device: i32,
    /// Flags as given.
    pub flags: AtomicU32,
    destroyed: AtomicBool,
    null: Mutex<Option<Arc<Stream>>>,
    /// Devices whose memory its kernels may use, one bit each.
    peers: AtomicU64,
    limits: Mutex<[usize; LIMITS.len()]>,
    /// Cache preference as set, without effect.
    pub cache_config: AtomicI32,
}

/// The first error of the work on each device. The driver makes nothing new there for this process.
static ERRORS: Mutex<BTreeMap<i32, i32>> = Mutex::new(BTreeMap::new());
static ANY_ERROR: AtomicBool = AtomicBool::new(false);

/// Fails when work on the device has broken what this process has there.
pub fn check_device(device: i32) -> Result<()> {
    if !ANY_ERROR.load(Ordering::Acquire) {
        return Ok(());
    }
    lock(&ERRORS)
        .get(&device)
        .map_or(Ok(()), |error| Err(*error))
}

/// What ends an object says after it has: the error of its device.
pub fn ended_in_current() -> Result<()> {
    match current_even_broken() {
        Ok(context) => check_device(context.device),
        Err(_) => Ok(()),
    }
}

static CONTEXTS: Table<Context> = Table::new(Kind::Context);

/// The primary context of a device.
#[derive(Clone, Default)]
struct Primary {
    retains: u32,
    flags: u32,
    context: Option<Arc<Context>>,
}

static PRIMARY: Mutex<Vec<Primary>> = Mutex::new(Vec::new());

thread_local! {
    static STACK: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

impl Context {
    fn with_handle(handle: usize, device: i32, flags: u32) -> Arc<Context> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let context = Arc::new(Context {
            handle,
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            device,
            flags: AtomicU32::new(flags),
            destroyed: AtomicBool::new(false),
            null: Mutex::new(None),
            peers: AtomicU64::new(0),
            limits: Mutex::new(LIMITS),
            cache_config: AtomicI32::new(0),
        });
        *lock(&context.null) = Some(Stream::null(&context));
        CONTEXTS.insert_as(handle, context.clone());
        context
    }

    /// A new context.
    pub fn create(device: i32, flags: u32) -> Arc<Context> {
        Context::with_handle(fresh_handle(), device, flags)
    }

    /// The context with a handle.
    pub fn get(handle: usize) -> Result<Arc<Context>> {
        CONTEXTS.get(handle).map_err(|_| INVALID_CONTEXT)
    }

    /// The NULL stream.
    pub fn null_stream(&self) -> Result<Arc<Stream>> {
        lock(&self.null).clone().ok_or(CONTEXT_IS_DESTROYED)
    }

    /// Fails when the context is gone or its work has broken it.
    pub fn check(&self) -> Result<()> {
        if self.is_destroyed() {
            return Err(CONTEXT_IS_DESTROYED);
        }
        check_device(self.device)
    }

    /// Whether it is gone.
    pub fn is_destroyed(&self) -> bool {
        self.destroyed.load(Ordering::Acquire)
    }

    /// Remembers the first error of the context's work: from now on everything fails with it, in all of
    /// the process's contexts on the device.
    pub fn fail(&self, status: i32) {
        lock(&ERRORS).entry(self.device).or_insert(status);
        ANY_ERROR.store(true, Ordering::Release);
    }

    /// Memory as its kernels see it.
    pub fn memory(&self) -> DeviceMemory {
        DeviceMemory {
            device: self.device,
            peers: self.peers.load(Ordering::Acquire),
        }
    }

    /// Lets its kernels use the memory of a device, or forbids it.
    pub fn set_peer(&self, device: i32, allowed: bool) -> Result<()> {
        if device == self.device {
            return Err(match allowed {
                true => PEER_ACCESS_UNSUPPORTED,
                false => PEER_ACCESS_NOT_ENABLED,
            });
        }
        let bit = 1 << device;
        let before = match allowed {
            true => self.peers.fetch_or(bit, Ordering::AcqRel),
            false => self.peers.fetch_and(!bit, Ordering::AcqRel),
        };
        match (allowed, before & bit != 0) {
            (true, true) => Err(PEER_ACCESS_ALREADY_ENABLED),
            (false, false) => Err(PEER_ACCESS_NOT_ENABLED),
            _ => Ok(()),
        }
    }

    /// A limit by its number.
    pub fn limit(&self, number: i32) -> Result<usize> {
        match (number, lock(&self.limits).get(number as usize)) {
            (3, _) | (_, None) => Err(UNSUPPORTED_LIMIT),
            (_, Some(limit)) => Ok(*limit),
        }
    }

    /// Sets a limit.
    pub fn set_limit(&self, number: i32, value: usize) -> Result<()> {
        let value = limited(number, value)?;
        lock(&self.limits)[number as usize] = value;
        Ok(())
    }

    /// Ends the context with all that is in it.
    pub fn destroy(self: &Arc<Self>) -> Result<()> {
        CONTEXTS.remove(self.handle).map_err(|_| INVALID_CONTEXT)?;
        stream::wait_idle(self);
        self.destroyed.store(true, Ordering::Release);
        lock(&self.null).take();
        capture::remove_context(self.handle);
        stream::remove_context(self.handle);
        event::remove_context(self.handle);
        module::remove_context(self.handle);
        graph::remove_context(self.handle);
        memory::free_context(self.handle);
        Ok(())
    }
}

/// The context that is current on this thread, in working order.
pub fn current() -> Result<Arc<Context>> {
    let context = current_even_broken()?;
    context.check()?;
    Ok(context)
}

/// The context that is current on this thread.
pub fn current_even_broken() -> Result<Arc<Context>> {
    match current_handle() {
        0 => Err(INVALID_CONTEXT),
        handle if CONTEXTS.is_live(handle) => Context::get(handle),
        _ => Err(CONTEXT_IS_DESTROYED),
    }
}

/// The handle of the current context, 0 for none.
pub fn current_handle() -> usize {
    STACK.with_borrow(|stack| stack.last().copied().unwrap_or(0))
}

/// Replaces the current context; 0 takes it away.
pub fn set_current(handle: usize) {
    STACK.with_borrow_mut(|stack| {
        stack.pop();
        if handle != 0 {
            stack.push(handle);
        }
    });
}

/// Pushes a context.
pub fn push(handle: usize) {
    STACK.with_borrow_mut(|stack| stack.push(handle));
}

/// Takes the current context off the stack.
pub fn pop() -> Result<usize> {
    STACK.with_borrow_mut(Vec::pop).ok_or(INVALID_CONTEXT)
}

fn with_primary<R>(device: i32, f: impl FnOnce(&mut Primary) -> R) -> R {
    let mut all = lock(&PRIMARY);
    let index = device as usize;
    if all.len() <= index {
        all.resize(index + 1, Primary::default());
    }
    f(&mut all[index])
}

/// Retains the primary context of a device: makes it if it is not there.
pub fn retain_primary(device: i32) -> Result<Arc<Context>> {
    with_primary(device, |primary| {
        if primary.context.is_none() {
            check_device(device)?;
        }
        primary.retains += 1;
        let flags = primary.flags;
        let make = || Context::with_handle(primary_handle(device), device, flags);
        Ok(primary.context.get_or_insert_with(make).clone())
    })
}

/// The handle of a primary context is the same each time it is made.
fn primary_handle(device: i32) -> usize {
    0x5000_0000_0000 + 0x40 * (device as usize + 1)
}

/// The device of which a handle is the primary context.
pub fn primary_device(handle: usize) -> Option<i32> {
    (0..crate::device::count()).find(|device| primary_handle(*device) == handle)
}

/// Whether a handle is that of a primary context.
pub fn is_primary(handle: usize) -> bool {
    primary_device(handle).is_some()
}

/// Gives one retain back; the last one ends the context.
pub fn release_primary(device: i32) -> Result<()> {
    with_primary(device, |primary| {
        primary.retains = primary.retains.checked_sub(1).ok_or(INVALID_CONTEXT)?;
        let gone = if primary.retains == 0 {
            primary.context.take()
        } else {
            None
        };
        gone.map_or(Ok(()), |context| context.destroy())
    })
}

/// Ends the primary context. Its retains stay; the next one makes it anew.
pub fn reset_primary(device: i32) -> Result<()> {
    // The next one has the same handle: it is not made before all of this one is gone.
    with_primary(device, |primary| {
        let gone = primary.context.take();
        gone.map_or(Ok(()), |context| context.destroy())
    })
}

/// Flags of a primary context, and whether it is active.
pub fn primary_state(device: i32) -> (u32, bool) {
    with_primary(device, |primary| (primary.flags, primary.context.is_some()))
}

/// Sets the flags of a primary context.
pub fn set_primary_flags(device: i32, flags: u32) {
    with_primary(device, |primary| {
        primary.flags = flags;
        if let Some(context) = &primary.context {
            context.flags.store(flags, Ordering::Release);
        }
    });
}
