//! Copies and fills that the caller waits for.

use super::context::{Context, Entered};
use super::gate::{self, Passing, ThreadMode};
use super::memory::{Allocation, Held};
use super::{capture, driver, Error, Result};
use cudarc::driver::sys;
use std::sync::Arc;

/// Makes a call on the NULL stream and waits for it: the driver returns before the bytes are on the
/// device, where work of a non-blocking stream could come first (measured). `cuStreamSynchronize`
fn finish(called: Result<()>) -> Result<()> {
    called?;
    // Waiting for a stream is unsafe to captures otherwise.
    let _relaxed = ThreadMode::relaxed();
    driver!(cuStreamSynchronize(std::ptr::null_mut()))
}

/// Prepares a synchronous operation on memory: not while this thread captures, and in the memory's
/// own context. No capture begins or ends while the result lives.
fn synchronous(memory: &Allocation) -> Result<(Entered, gate::Passage)> {
    let context = memory.context();
    context.check_alive()?;
    let passage = gate::pass(Passing::Together);
    capture::refuse_uncaptured("a synchronous copy or memset", context.handle())?;
    Ok((context.enter()?, passage))
}

/// Memory that neither goes nor stops being allocated during a call; `name` is the argument's.
fn hold(name: &str, memory: &Arc<Allocation>) -> Result<Held> {
    memory
        .check_allocated()
        .and_then(|()| Held::new(memory))
        .map_err(|e| e.of_argument(name))
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
    let held = hold("dst", destination)?;
    let address = held.check_range("dst", offset, size as i64)?;
    let _prepared = synchronous(&held)?;
    finish(driver!(cuMemcpyHtoD_v2(address, source.cast(), size)))
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
    let held = hold("src", source)?;
    let address = held.check_range("src", offset, size as i64)?;
    let _prepared = synchronous(&held)?;
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
    let (to, from) = (hold("dst", destination)?, hold("src", source)?);
    let to_address = to.check_range("dst", destination_offset, size)?;
    let from_address = from.check_range("src", source_offset, size)?;
    let _prepared = synchronous(&to)?;
    finish(driver!(cuMemcpyDtoD_v2(
        to_address,
        from_address,
        size as usize
    )))
}

/// One end of a copy between contexts: memory, its bytes from an offset, and the context given for it.
pub struct End<'a> {
    /// The memory.
    pub memory: &'a Arc<Allocation>,
    /// Bytes from its start.
    pub offset: i64,
    /// The context that it is said to belong to.
    pub context: &'a Context,
}

impl End<'_> {
    /// Checks the range and the context; `what` names the argument.
    pub fn address(&self, what: &str, size: i64) -> Result<u64> {
        self.context.check_alive()?;
        if !self.memory.is_in(self.context) {
            return Err(Error::invalid(format!(
                "{what}_ctx is not the context that {what} was allocated in"
            )));
        }
        self.memory.check_range(what, self.offset, size)
    }
}

/// Copies between the memories of two contexts, also on different devices. `cuMemcpyPeer`
pub fn copy_between(destination: End, source: End, size: i64) -> Result<()> {
    let (to_address, from_address) = (
        destination.address("dst", size)?,
        source.address("src", size)?,
    );
    let (to, _from) = (
        hold("dst", destination.memory)?,
        hold("src", source.memory)?,
    );
    let _prepared = synchronous(&to)?;
    capture::refuse_uncaptured("a synchronous copy", source.context.handle())?;
    finish(driver!(cuMemcpyPeer(
        to_address,
        destination.context.handle() as sys::CUcontext,
        from_address,
        source.context.handle() as sys::CUcontext,
        size as usize
    )))
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
    let held = hold("ptr", memory)?;
    let address = fill.address_in(&held, offset)?;
    let _prepared = synchronous(&held)?;
    let count = fill.count as usize;
    finish(match fill.width {
        1 => driver!(cuMemsetD8_v2(address, fill.value as u8, count)),
        2 => driver!(cuMemsetD16_v2(address, fill.value as u16, count)),
        _ => driver!(cuMemsetD32_v2(address, fill.value, count)),
    })
}
