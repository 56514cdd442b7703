//! Work of a stream: launches, copies, fills.

use super::argument::Argument;
use super::capture;
use super::copy::{End, Fill};
use super::driver;
use super::launch::{is_plain, keep, Launch, Layout, Shape};
use super::memory::Allocation;
use super::module::Function;
use super::retain::{Borrowed, Operand, Operands, Shared};
use super::stream::{Stream, Submission};
use super::{Error, Result};
use cudarc::driver::sys;
use smallvec::smallvec;
use std::sync::Arc;

/// One stream alone uses the managed memory.
const SINGLE: u32 = sys::CUmemAttach_flags::CU_MEM_ATTACH_SINGLE as u32;

impl Stream {
    /// Launches a kernel. `cuLaunchKernel`
    pub fn launch(self: &Arc<Self>, launch: &Launch) -> Result<()> {
        let mut words = launch.check(self.context())?;
        let how = Submission {
            weight: launch.weight(),
            ..Submission::default()
        };
        self.submit_as(how, launch.operands()?, |stream, _| {
            launch.enqueue(&mut words, stream)
        })?;
        launch.function.set_warm();
        Ok(())
    }

    /// Launches a kernel at once if that cannot block and there is nothing to explain about it; nothing
    /// otherwise, see [`Stream::try_submit`]. `cuLaunchKernel`
    #[inline]
    pub fn try_launch<'a>(
        &self,
        function: Borrowed<Function>,
        shape: &Shape,
        arguments: impl Iterator<Item = Argument<'a>>,
    ) -> Option<Result<()>> {
        if !is_plain(function.get(), shape, self.context()) {
            return None;
        }
        let module = Borrowed::of(function.get().module());
        let mut layout = Layout::empty();
        if capture::any_open() {
            return self.try_record(|set, raw| {
                if !set.holds(module) {
                    set.retain_one(Operand::Shared(module.share()));
                }
                let keep = |memory| keep(memory, set);
                layout.launch(&function, shape, arguments, keep, raw)
            });
        }
        if !function.is_warm() {
            return None;
        }
        self.try_submit(1, |pending, sequence, raw| {
            pending.retain_owner(module, sequence);
            let retain = |memory: Borrowed<Allocation>| {
                pending.retain_owner(memory, sequence);
                memory.is_usable() && memory.context().is_alive()
            };
            layout.launch(&function, shape, arguments, retain, raw)
        })
    }

    /// Copies host bytes to the device, in stream order. `cuMemcpyHtoDAsync`
    ///
    /// # Safety
    /// `source` must be readable for `size` bytes for as long as `root`, if there is one, lives, or
    /// until the work is done.
    pub unsafe fn copy_from_host(
        self: &Arc<Self>,
        destination: &Arc<Allocation>,
        offset: i64,
        source: *const u8,
        size: usize,
        root: Option<Shared>,
    ) -> Result<()> {
        let address = destination.check_range("dst", offset, size as i64)?;
        let operands = host_and_device(source as usize, root, "dst", destination)?;
        let _entered = self.context().enter()?;
        self.submit(operands, |stream| {
            driver!(cuMemcpyHtoDAsync_v2(address, source.cast(), size, stream))
        })
    }

    /// Copies device bytes to the host, in stream order. `cuMemcpyDtoHAsync`
    ///
    /// # Safety
    /// `destination` must be writable for `size` bytes for as long as `root`, if there is one,
    /// lives, or until the work is done.
    pub unsafe fn copy_to_host(
        self: &Arc<Self>,
        destination: *mut u8,
        source: &Arc<Allocation>,
        offset: i64,
        size: usize,
        root: Option<Shared>,
    ) -> Result<()> {
        let address = source.check_range("src", offset, size as i64)?;
        let operands = host_and_device(destination as usize, root, "src", source)?;
        let _entered = self.context().enter()?;
        self.submit(operands, |stream| {
            driver!(cuMemcpyDtoHAsync_v2(
                destination.cast(),
                address,
                size,
                stream
            ))
        })
    }

    /// Copies on the device, in stream order. `cuMemcpyDtoDAsync`
    pub fn copy_on_device(
        self: &Arc<Self>,
        destination: &Arc<Allocation>,
        destination_offset: i64,
        source: &Arc<Allocation>,
        source_offset: i64,
        size: i64,
    ) -> Result<()> {
        let to = destination.check_range("dst", destination_offset, size)?;
        let from = source.check_range("src", source_offset, size)?;
        let operands = smallvec![
            Operand::argument("dst", destination)?,
            Operand::argument("src", source)?
        ];
        let _entered = self.context().enter()?;
        self.submit(operands, |stream| {
            driver!(cuMemcpyDtoDAsync_v2(to, from, size as usize, stream))
        })
    }

    /// Copies between the memories of two contexts, in stream order. `cuMemcpyPeerAsync`
    pub fn copy_between(self: &Arc<Self>, destination: End, source: End, size: i64) -> Result<()> {
        let to = destination.address("dst", size)?;
        let from = source.address("src", size)?;
        let operands = smallvec![
            Operand::argument("dst", destination.memory)?,
            Operand::argument("src", source.memory)?
        ];
        let contexts = [destination.context, source.context].map(|c| c.handle() as sys::CUcontext);
        let _entered = self.context().enter()?;
        self.submit(operands, |stream| {
            driver!(cuMemcpyPeerAsync(
                to,
                contexts[0],
                from,
                contexts[1],
                size as usize,
                stream
            ))
        })
    }

    /// Says which streams may use managed memory; `size` is 0 or all of it. `cuStreamAttachMemAsync`
    pub fn attach(self: &Arc<Self>, memory: &Arc<Allocation>, size: i64, flags: u32) -> Result<()> {
        if size != 0 && size != memory.size() as i64 {
            return Err(Error::invalid(format!(
                "length {size} is neither 0 nor the {} bytes of the allocation, which is attached as a \
                 whole",
                memory.size()
            )));
        }
        let operands = smallvec![Operand::argument("ptr", memory)?];
        let _entered = self.context().enter()?;
        self.submit(operands, |stream| {
            driver!(cuStreamAttachMemAsync(stream, memory.address(), 0, flags)).map_err(|e| {
                if !memory.is_managed() {
                    e.explained("only managed memory can be attached to a stream")
                } else if flags == SINGLE && self.handle() == 0 {
                    e.explained("SINGLE_stream needs a stream of its own, not the NULL stream")
                } else {
                    e
                }
            })
        })
    }

    /// Fills memory, in stream order. `cuMemsetD8Async`, `cuMemsetD16Async`, `cuMemsetD32Async`
    pub fn fill(self: &Arc<Self>, memory: &Arc<Allocation>, offset: i64, fill: Fill) -> Result<()> {
        let address = fill.address_in(memory, offset)?;
        let operands = smallvec![Operand::argument("ptr", memory)?];
        let _entered = self.context().enter()?;
        let count = fill.count as usize;
        self.submit(operands, |stream| match fill.width {
            1 => driver!(cuMemsetD8Async(address, fill.value as u8, count, stream)),
            2 => driver!(cuMemsetD16Async(address, fill.value as u16, count, stream)),
            _ => driver!(cuMemsetD32Async(address, fill.value, count, stream)),
        })
    }
}

fn host_and_device(
    address: usize,
    root: Option<Shared>,
    name: &str,
    memory: &Arc<Allocation>,
) -> Result<Operands> {
    // Without a root nothing is kept alive, but a graph is to know that it copies host memory. The
    // address is left to whoever has a root for it.
    let (key, root) = match root {
        Some(root) => (address, root),
        None => {
            let nothing: Shared = Arc::new(());
            (Arc::as_ptr(&nothing).cast::<()>() as usize, nothing)
        }
    };
    Ok(smallvec![
        Operand::argument(name, memory)?,
        Operand::Host(key, root)
    ])
}
