//! Contexts: a stack of them on each thread, errors that stick, and what ends with them.

use crate::ledger::Kind;
use crate::memory::{self, DeviceMemory};
use crate::status::*;
use crate::stream::{self, Stream};
use crate::table::{fresh_handle, lock, Table};
use crate::{capture, event, graph, module};
use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// Limits at first, by number (CUlimit). The first is the stack of a thread.
const LIMITS: [usize; 7] = [1024, 1 << 20, 8 << 20, 2, 2048, 128, 0];

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
    error: AtomicI32,
    destroyed: AtomicBool,
    null: Mutex<Option<Arc<Stream>>>,
    /// Devices whose memory its kernels may use, one bit each.
    peers: AtomicU64,
    limits: Mutex<[usize; LIMITS.len()]>,
    /// Cache preference as set, without effect.
    pub cache_config: AtomicI32,
}

static CONTEXTS: Table<Context> = Table::new(Kind::Context);

/// The primary context of a device.
#[derive(Clone, Default)]
struct Primary {
    retains: u32,
    flags: u32,
    context: Option<Arc<Context>>,
    /// The error of a context that was broken when it was reset: the driver makes no new one.
    error: Option<i32>,
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
            error: AtomicI32::new(0),
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
        match self.error.load(Ordering::Acquire) {
            0 => Ok(()),
            status => Err(status),
        }
    }

    /// Whether it is gone.
    pub fn is_destroyed(&self) -> bool {
        self.destroyed.load(Ordering::Acquire)
    }

    /// Remembers the first error of the context's work: from now on everything fails with it.
    pub fn fail(&self, status: i32) {
        let _ = self
            .error
            .compare_exchange(0, status, Ordering::AcqRel, Ordering::Acquire);
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
            return Err(INVALID_DEVICE);
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
        let limits = lock(&self.limits);
        limits
            .get(number as usize)
            .copied()
            .ok_or(UNSUPPORTED_LIMIT)
    }

    /// Sets a limit.
    pub fn set_limit(&self, number: i32, value: usize) -> Result<()> {
        let most = if number == 0 { 512 << 10 } else { usize::MAX };
        let mut limits = lock(&self.limits);
        let limit = limits.get_mut(number as usize).ok_or(UNSUPPORTED_LIMIT)?;
        if value > most {
            return Err(INVALID_VALUE);
        }
        *limit = value;
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
        if let Some(error) = primary.error {
            return Err(error);
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

/// Whether a handle is that of a primary context.
pub fn is_primary(handle: usize) -> bool {
    (0..crate::device::count()).any(|device| primary_handle(device) == handle)
}

/// Gives one retain back; the last one ends the context.
pub fn release_primary(device: i32) -> Result<()> {
    let gone = with_primary(device, |primary| {
        primary.retains = primary.retains.checked_sub(1).ok_or(INVALID_CONTEXT)?;
        let gone = if primary.retains == 0 {
            primary.context.take()
        } else {
            None
        };
        Result::Ok(gone)
    })?;
    gone.map_or(Ok(()), |context| context.destroy())
}

/// Ends the primary context. Its retains stay; the next one makes it anew.
pub fn reset_primary(device: i32) -> Result<()> {
    let gone = with_primary(device, |primary| {
        let gone = primary.context.take();
        let broken = gone.as_ref().and_then(|context| context.check().err());
        primary.error = primary.error.or(broken);
        gone
    });
    gone.map_or(Ok(()), |context| context.destroy())
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
