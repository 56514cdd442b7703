//! Contexts: a stack of them on each thread, errors that stick, and what ends with them.

use crate::ledger::Kind;
use crate::status::{Result, CONTEXT_IS_DESTROYED, INVALID_CONTEXT};
use crate::stream::Stream;
use crate::table::{lock, Table};
use crate::{event, graph, memory, module, stream};
use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, Mutex};

/// A context.
pub struct Context {
    /// Its own handle.
    pub handle: usize,
    /// The device it is on.
    pub device: i32,
    /// Flags as given.
    pub flags: u32,
    error: AtomicI32,
    destroyed: AtomicBool,
    null: Mutex<Option<Arc<Stream>>>,
    /// Limits as set, by number.
    pub limits: Mutex<[usize; 7]>,
}

static CONTEXTS: Table<Context> = Table::new(Kind::Context);

/// Retain counts and contexts of the devices.
static PRIMARY: Mutex<Vec<(u32, Option<Arc<Context>>)>> = Mutex::new(Vec::new());

thread_local! {
    static STACK: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

impl Context {
    fn with_handle(handle: usize, device: i32, flags: u32) -> Arc<Context> {
        let context = Arc::new(Context {
            handle,
            device,
            flags,
            error: AtomicI32::new(0),
            destroyed: AtomicBool::new(false),
            null: Mutex::new(None),
            limits: Mutex::new([1024, 1 << 20, 8 << 20, 2, 2048, 128, 0]),
        });
        *lock(&context.null) = Some(Stream::null(&context));
        CONTEXTS.insert_as(handle, context.clone());
        context
    }

    /// A new context.
    pub fn create(device: i32, flags: u32) -> Arc<Context> {
        Context::with_handle(crate::table::fresh_handle(), device, flags)
    }

    /// The context with a handle.
    pub fn get(handle: usize) -> Result<Arc<Context>> {
        CONTEXTS.get(handle).map_err(|_| INVALID_CONTEXT)
    }

    /// The NULL stream.
    pub fn null_stream(&self) -> Result<Arc<Stream>> {
        lock(&self.null).clone().ok_or(CONTEXT_IS_DESTROYED)
    }

    /// Fails when the context is gone or a kernel has broken it.
    pub fn check(&self) -> Result<()> {
        if self.destroyed.load(Ordering::Acquire) {
            return Err(CONTEXT_IS_DESTROYED);
        }
        match self.error.load(Ordering::Acquire) {
            0 => Ok(()),
            status => Err(status),
        }
    }

    /// Remembers the first error of the context's work: from now on everything fails with it.
    pub fn fail(&self, status: i32) {
        let _ = self
            .error
            .compare_exchange(0, status, Ordering::AcqRel, Ordering::Acquire);
    }

    /// Ends the context with all that is in it.
    pub fn destroy(self: &Arc<Self>) -> Result<()> {
        CONTEXTS.remove(self.handle).map_err(|_| INVALID_CONTEXT)?;
        stream::wait_idle(self.handle);
        self.destroyed.store(true, Ordering::Release);
        lock(&self.null).take();
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
    let handle = current_handle();
    if handle == 0 {
        return Err(INVALID_CONTEXT);
    }
    let context = Context::get(handle).map_err(|_| CONTEXT_IS_DESTROYED)?;
    context.check()?;
    Ok(context)
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

/// Retains the primary context of a device.
pub fn retain_primary(device: i32) -> Arc<Context> {
    let mut primary = lock(&PRIMARY);
    let index = device as usize;
    if primary.len() <= index {
        primary.resize(index + 1, (0, None));
    }
    let slot = &mut primary[index];
    slot.0 += 1;
    let handle = primary_handle(device);
    primary[index]
        .1
        .get_or_insert_with(|| Context::with_handle(handle, device, 0))
        .clone()
}

/// The handle of a primary context is the same each time it is made.
fn primary_handle(device: i32) -> usize {
    0x5000_0000_0000 + 0x40 * (device as usize + 1)
}

/// Gives one retain back; the last one ends the context.
pub fn release_primary(device: i32) -> Result<()> {
    let gone = {
        let mut primary = lock(&PRIMARY);
        match primary.get_mut(device as usize) {
            Some(slot) if slot.0 > 0 => {
                slot.0 -= 1;
                if slot.0 == 0 {
                    slot.1.take()
                } else {
                    None
                }
            }
            _ => return Err(INVALID_CONTEXT),
        }
    };
    gone.map_or(Ok(()), |context| context.destroy())
}

/// Ends what is in the primary context; its retains stay and get a new one.
pub fn reset_primary(device: i32) -> Result<()> {
    let mut primary = lock(&PRIMARY);
    let Some(slot) = primary.get_mut(device as usize) else {
        return Ok(());
    };
    if let Some(context) = slot.1.take() {
        context.destroy()?;
        if slot.0 > 0 {
            slot.1 = Some(Context::with_handle(primary_handle(device), device, 0));
        }
    }
    Ok(())
}

/// Whether a primary context is active.
pub fn primary_is_active(device: i32) -> bool {
    lock(&PRIMARY)
        .get(device as usize)
        .is_some_and(|slot| slot.1.is_some())
}
