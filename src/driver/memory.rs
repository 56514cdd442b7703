//! Device memory: who owns it, whether it may be freed, and copies that stay inside it.

use super::context::{Context, Entered};
use super::gate::{self, Passing, Shield, ThreadMode};
use super::module::Module;
use super::release::{self, Drain, Release};
use super::{capture, driver, library, Error, Result};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::Arc;

/// Set in [`Allocation::state`] once the user has freed the memory.
const DEAD: u32 = 1 << 31;
/// Set once the memory is back with the driver.
const RETURNED: u32 = 1 << 30;
/// The rest counts who holds the memory against an explicit free.
const HOLDS: u32 = RETURNED - 1;

enum Owner {
    /// Allocated here; freed when the last holder goes.
    Here,
    /// A variable of a module; lives as long as the module.
    Module { _module: Arc<Module> },
}

/// Device memory with a known extent.
pub struct Allocation {
    address: u64,
    size: usize,
    owner: Owner,
    context: Arc<Context>,
    state: AtomicU32,
}

impl Allocation {
    /// Allocates `size` bytes in the current context. `cuMemAlloc`
    pub fn new(size: usize) -> Result<Arc<Allocation>> {
        let context = Context::current()?;
        // An allocation may wait for the device anyway.
        release::drain(Drain::All);
        let _shield = Shield::for_others(Passing::By);
        let mut address = 0;
        driver!(cuMemAlloc_v2(&mut address, size)).map_err(|e| {
            let detail = format!("size_in_bytes {size}");
            e.explained(detail)
        })?;
        Ok(Arc::new(Allocation {
            address,
            size,
            owner: Owner::Here,
            context,
            state: AtomicU32::new(0),
        }))
    }

    /// The memory of a module's variable.
    pub fn of_module(address: u64, size: usize, module: Arc<Module>) -> Arc<Allocation> {
        Arc::new(Allocation {
            address,
            size,
            context: module.context().clone(),
            owner: Owner::Module { _module: module },
            state: AtomicU32::new(0),
        })
    }

    /// The device address.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Bytes.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Bytes that this allocation takes from the device, for the garbage collector's pace.
    pub fn owned_bytes(&self) -> usize {
        match self.owner {
            Owner::Here => self.size,
            Owner::Module { .. } => 0,
        }
    }

    /// Whether the user has freed it.
    pub fn is_freed(&self) -> bool {
        self.state.load(Ordering::Acquire) & DEAD != 0
    }

    /// Frees the memory now, or when the last capture, graph or exec that holds it goes. The value
    /// is dead to the user either way. Freeing twice is harmless.
    pub fn free(&self) -> Result<()> {
        if matches!(self.owner, Owner::Module { .. }) {
            return Err(Error::invalid(
                "the memory is a module's global variable, which goes with its module",
            ));
        }
        library::ready()?;
        let mut state = self.state.load(Ordering::Acquire);
        loop {
            if state & DEAD != 0 {
                return Ok(());
            }
            let free_now = state & HOLDS == 0;
            let next = state | DEAD | if free_now { RETURNED } else { 0 };
            match self
                .state
                .compare_exchange(state, next, Ordering::AcqRel, Ordering::Acquire)
            {
                Ok(_) if !free_now => return Ok(()),
                Ok(_) => break,
                Err(now) => state = now,
            }
        }
        if !self.context.is_alive() {
            return Ok(());
        }
        let _relaxed = ThreadMode::relaxed();
        let _entered = self.context.enter()?;
        driver!(cuMemFree_v2(self.address))
    }

    /// Checks that `size` bytes from `offset` are inside; `what` names the argument.
    pub fn check_range(&self, what: &str, offset: i64, size: i64) -> Result<u64> {
        let end = offset.checked_add(size);
        match end {
            Some(end) if offset >= 0 && size >= 0 && end <= self.size as i64 => {
                Ok(self.address + offset as u64)
            }
            _ => Err(Error::invalid(format!(
                "{what}: {size} bytes from offset {offset} are not inside the allocation of {} bytes",
                self.size
            ))),
        }
    }

    /// The context that the memory belongs to.
    pub fn context(&self) -> &Arc<Context> {
        &self.context
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        let returned = *self.state.get_mut() & RETURNED != 0;
        if matches!(self.owner, Owner::Here) && !returned {
            release::queue(Release::Memory(self.address, self.context.clone()));
        }
    }
}

/// A hold on an allocation: while it lives, an explicit free is put off.
pub struct Held(Arc<Allocation>);

impl Held {
    /// Holds live memory; an error if the user has freed it.
    pub fn new(allocation: &Arc<Allocation>) -> Result<Held> {
        let mut state = allocation.state.load(Ordering::Acquire);
        loop {
            if state & DEAD != 0 {
                return Err(Error::invalid(format!(
                    "the device memory at 0x{:x} was freed",
                    allocation.address
                )));
            }
            match allocation.state.compare_exchange(
                state,
                state + 1,
                Ordering::AcqRel,
                Ordering::Acquire,
            ) {
                Ok(_) => return Ok(Held(allocation.clone())),
                Err(now) => state = now,
            }
        }
    }

    /// What is held.
    pub fn allocation(&self) -> &Arc<Allocation> {
        &self.0
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.state.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Free and total bytes of the current context's device.
pub fn info() -> Result<(usize, usize)> {
    let _context = Context::current()?;
    let (mut free, mut total) = (0, 0);
    driver!(cuMemGetInfo_v2(&mut free, &mut total))?;
    Ok((free, total))
}

/// Prepares a synchronous operation on memory: not while this thread captures, and in the memory's
/// own context. No capture begins or ends while the result lives.
fn synchronous(memory: &Allocation) -> Result<(Entered, gate::Passage)> {
    let context = &memory.context;
    context.check_alive()?;
    let passage = gate::pass(Passing::Together);
    capture::refuse_uncaptured("a synchronous copy or memset", context.handle())?;
    Ok((context.enter()?, passage))
}

/// Copies host bytes to the device and waits. `cuMemcpyHtoD`
///
/// # Safety
/// `source` must be readable for `size` bytes.
pub unsafe fn copy_from_host(
    destination: &Arc<Allocation>,
    offset: i64,
    source: *const u8,
    size: usize,
) -> Result<()> {
    let held = Held::new(destination)?;
    let address = held.0.check_range("dst", offset, size as i64)?;
    let _prepared = synchronous(&held.0)?;
    driver!(cuMemcpyHtoD_v2(address, source.cast(), size))
}

/// Copies device bytes to the host and waits. `cuMemcpyDtoH`
///
/// # Safety
/// `destination` must be writable for `size` bytes.
pub unsafe fn copy_to_host(
    destination: *mut u8,
    source: &Arc<Allocation>,
    offset: i64,
    size: usize,
) -> Result<()> {
    let held = Held::new(source)?;
    let address = held.0.check_range("src", offset, size as i64)?;
    let _prepared = synchronous(&held.0)?;
    driver!(cuMemcpyDtoH_v2(destination.cast(), address, size))
}

/// Copies on the device. `cuMemcpyDtoD`
pub fn copy_on_device(
    destination: &Arc<Allocation>,
    destination_offset: i64,
    source: &Arc<Allocation>,
    source_offset: i64,
    size: i64,
) -> Result<()> {
    let (to, from) = (Held::new(destination)?, Held::new(source)?);
    let to_address = to.0.check_range("dst", destination_offset, size)?;
    let from_address = from.0.check_range("src", source_offset, size)?;
    let _prepared = synchronous(&to.0)?;
    driver!(cuMemcpyDtoD_v2(to_address, from_address, size as usize))
}

/// A pattern to fill memory with.
#[derive(Clone, Copy)]
pub struct Fill {
    /// Bytes of one element: 1, 2 or 4.
    pub width: i64,
    /// The element; its low `width` bytes count.
    pub value: u32,
    /// Elements.
    pub count: i64,
}

impl Fill {
    /// Checks the range and gives the device address.
    pub fn address_in(&self, memory: &Allocation, offset: i64) -> Result<u64> {
        if self.count < 0 {
            return Err(Error::invalid(format!("length {} is negative", self.count)));
        }
        if offset % self.width != 0 {
            return Err(Error::invalid(format!(
                "offset {offset} is not a multiple of the element's {} bytes",
                self.width
            )));
        }
        memory.check_range(
            "the filled range",
            offset,
            self.count.saturating_mul(self.width),
        )
    }
}

/// Fills device memory. `cuMemsetD8`, `cuMemsetD16`, `cuMemsetD32`
pub fn fill(memory: &Arc<Allocation>, offset: i64, fill: Fill) -> Result<()> {
    let held = Held::new(memory)?;
    let address = fill.address_in(&held.0, offset)?;
    let _prepared = synchronous(&held.0)?;
    let count = fill.count as usize;
    match fill.width {
        1 => driver!(cuMemsetD8_v2(address, fill.value as u8, count)),
        2 => driver!(cuMemsetD16_v2(address, fill.value as u16, count)),
        _ => driver!(cuMemsetD32_v2(address, fill.value, count)),
    }
}
