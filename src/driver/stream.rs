//! Streams: enqueuing work, and holding what it uses until the stream is known to be idle.

use super::capture::{self, Capture};
use super::context::Context;
use super::copy::{End, Fill};
use super::gate::{self, Passing, Shield};
use super::graph_memory::MemoryNodes;
use super::launch::Launch;
use super::memory::Allocation;
use super::release::{self, Drain, Release};
use super::retain::{Operand, Operands, PendingSet, Shared};
use super::{driver, Error, Result};
use cudarc::driver::sys::{self, CUresult};
use smallvec::smallvec;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Streams that have an owner, for `get_total_live_streams`.
static LIVE: AtomicUsize = AtomicUsize::new(0);

/// What is pending on a stream.
///
/// The lock is held from retaining an operation's resources until its driver call has returned, so
/// that a synchronize which ends in between cannot let go what is about to be enqueued.
#[derive(Default)]
pub struct StreamState {
    queue: Mutex<Queue>,
    /// Held while the stream is asked or waited for, and alone by what may make it capture: the driver
    /// would break the capture of a stream that is asked.
    asking: RwLock<()>,
    /// The last operation whose driver call has returned.
    enqueued: AtomicU64,
}

#[derive(Default)]
struct Queue {
    pending: PendingSet,
    /// The last operation that began.
    sequence: u64,
}

impl StreamState {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Marks a point: once the stream is idle, everything up to it may be released. Taken before
    /// the driver is asked.
    pub fn mark(&self) -> u64 {
        self.enqueued.load(Ordering::Acquire)
    }

    /// Lets go what only work up to `mark` has used.
    pub fn release_up_to(&self, mark: u64) {
        let done = self.lock().pending.take_up_to(mark);
        drop(done);
    }

    /// Lets go everything: the stream is gone or known to be idle for good.
    pub fn release_all(&self) {
        self.release_up_to(u64::MAX);
    }

    /// How many resources are held.
    pub fn held(&self) -> usize {
        self.lock().pending.len()
    }

    /// Nothing is enqueued while the result lives; nothing if a call is under way.
    fn try_quiet(&self) -> Option<impl Drop + '_> {
        self.queue.try_lock().ok()
    }

    /// Whether pending work may use `memory`; true if nobody can tell at this moment.
    pub fn may_use(&self, memory: &Arc<Allocation>) -> bool {
        match self.queue.try_lock() {
            Ok(queue) => queue.pending.holds(memory),
            Err(_) => true,
        }
    }
}

/// A stream, owned or the NULL stream of a context.
pub struct Stream {
    handle: usize,
    context: Arc<Context>,
    non_blocking: bool,
    state: Arc<StreamState>,
}

impl Stream {
    /// A new stream in the current context. `cuStreamCreateWithPriority`
    pub fn new(non_blocking: bool, priority: i32) -> Result<Arc<Stream>> {
        let context = Context::current()?;
        release::drain(Drain::Quick);
        let mut handle = std::ptr::null_mut();
        let flags = if non_blocking {
            sys::CUstream_flags::CU_STREAM_NON_BLOCKING as u32
        } else {
            0
        };
        driver!(cuStreamCreateWithPriority(&mut handle, flags, priority))?;
        let state = Arc::new(StreamState::default());
        context.adopt(&state);
        LIVE.fetch_add(1, Ordering::Relaxed);
        Ok(Arc::new(Stream {
            handle: handle as usize,
            context,
            non_blocking,
            state,
        }))
    }

    /// The NULL stream of the context that is current on this thread.
    pub fn null() -> Result<Arc<Stream>> {
        let context = Context::current()?;
        let state = context.null_stream.clone();
        Ok(Arc::new(Stream {
            handle: 0,
            context,
            non_blocking: false,
            state,
        }))
    }

    /// The driver's handle, 0 for the NULL stream.
    pub fn handle(&self) -> usize {
        self.handle
    }

    fn raw(&self) -> sys::CUstream {
        self.handle as sys::CUstream
    }

    /// The context that the stream belongs to.
    pub fn context(&self) -> &Arc<Context> {
        &self.context
    }

    /// Whether the stream ignores the NULL stream.
    pub fn is_non_blocking(&self) -> bool {
        self.non_blocking
    }

    /// How many resources the stream holds for work that may be pending.
    pub fn held(&self) -> usize {
        self.state.held()
    }

    /// How many streams have an owner.
    pub fn live() -> usize {
        LIVE.load(Ordering::Relaxed)
    }

    /// Enqueues one operation. Its operands are retained first: by the capture if the stream is
    /// capturing, else by the stream.
    pub fn submit(
        self: &Arc<Self>,
        operands: Operands,
        call: impl FnOnce(sys::CUstream) -> Result<()>,
    ) -> Result<()> {
        self.submit_passing(operands, Passing::Together, Passing::By, |s, _| call(s))
    }

    /// [`Stream::submit`] for calls that may break or join a capture, or make memory nodes of it: how
    /// they pass the gate if the stream is capturing, and if it is not.
    pub fn submit_passing(
        self: &Arc<Self>,
        operands: Operands,
        if_capturing: Passing,
        otherwise: Passing,
        call: impl FnOnce(sys::CUstream, Option<&mut MemoryNodes>) -> Result<()>,
    ) -> Result<()> {
        self.context.check_alive()?;
        let mut queue = self.state.lock();
        if !self.is_null() {
            if let Some(capture) = capture::of_stream(self)? {
                let record = |nodes: &mut MemoryNodes| call(self.raw(), Some(nodes));
                return capture.record(self, operands, if_capturing, record);
            }
        }
        for operand in &operands {
            if let Operand::Memory(held) = operand {
                held.allocation().check_allocated()?;
            }
        }
        let _passage = gate::pass(if self.is_null() {
            Passing::Together
        } else {
            otherwise
        });
        if self.is_null() {
            capture::refuse_uncaptured("work on the NULL stream", self.context.handle())?;
        }
        queue.sequence += 1;
        let sequence = queue.sequence;
        queue.pending.retain(&operands, sequence);
        let result = call(self.raw(), None);
        self.state.enqueued.store(sequence, Ordering::Release);
        drop(queue);
        result
    }

    fn is_null(&self) -> bool {
        self.handle == 0
    }

    /// Nobody asks or waits for the stream while this lives: it may come to capture.
    pub fn unasked(&self) -> RwLockWriteGuard<'_, ()> {
        self.state.asking.write().unwrap_or_else(|e| e.into_inner())
    }

    fn asking(&self) -> RwLockReadGuard<'_, ()> {
        self.state.asking.read().unwrap_or_else(|e| e.into_inner())
    }

    /// Runs `f` while nothing can be enqueued on this stream and nobody asks for it: beginning and
    /// ending a capture.
    pub fn exclusively<T>(&self, f: impl FnOnce() -> Result<T>) -> Result<T> {
        self.context.check_alive()?;
        let _unasked = self.unasked();
        let _queue = self.state.lock();
        f()
    }

    /// Nothing is enqueued while the result lives; nothing if a call is under way.
    pub fn try_quiet(&self) -> Option<impl Drop + '_> {
        self.state.try_quiet()
    }

    /// What is pending on it.
    pub fn state(&self) -> &Arc<StreamState> {
        &self.state
    }

    /// How asking or waiting for this stream passes the gate; refused if it would break the capture
    /// of another thread. The thread that captures breaks its own.
    fn ask(&self, what: &str) -> Result<Passing> {
        if self.is_null() {
            return Ok(Passing::Together);
        }
        capture::refuse_for_others(what, Some(self))?;
        let capturing = capture::of_stream(self)?.is_some();
        Ok(if capturing {
            Passing::Alone
        } else {
            Passing::By
        })
    }

    fn refuse_if_null(&self, what: &str) -> Result<()> {
        match self.is_null() {
            true => capture::refuse_null_stream(what, self.context.handle()),
            false => Ok(()),
        }
    }

    /// Waits for the stream's work, then lets go what it used. `cuStreamSynchronize`
    pub fn synchronize(&self) -> Result<()> {
        self.context.check_alive()?;
        let mark = self.state.mark();
        {
            let _asking = self.asking();
            let how = self.ask("waiting for a stream that captures")?;
            let _shield = Shield::for_others(how);
            self.refuse_if_null("waiting for the NULL stream")?;
            driver!(cuStreamSynchronize(self.raw()))?;
        }
        self.state.release_up_to(mark);
        release::drain(Drain::All);
        Ok(())
    }

    /// Whether the stream is idle; if so, lets go what its work used. `cuStreamQuery`
    pub fn is_idle(&self) -> Result<bool> {
        self.context.check_alive()?;
        let mark = self.state.mark();
        {
            let _asking = self.asking();
            let how = self.ask("asking whether a stream that captures is idle")?;
            // A query of this stream must not harm a capture on another one.
            let _shield = Shield::harmless(how);
            self.refuse_if_null("asking whether the NULL stream is idle")?;
            // SAFETY: the handle lives as long as `self`.
            let status = unsafe { sys::cuStreamQuery(self.raw()) };
            if status == CUresult::CUDA_ERROR_NOT_READY {
                return Ok(false);
            }
            super::error::check("cuStreamQuery", status)?;
        }
        self.state.release_up_to(mark);
        Ok(true)
    }

    /// The driver's number for the stream, unique in the process. `cuStreamGetId`
    pub fn id(&self) -> Result<u64> {
        let _entered = self.context.enter()?;
        let mut id = 0;
        driver!(cuStreamGetId(self.raw(), &mut id))?;
        Ok(id)
    }

    /// Whether work on the stream is being captured. `cuStreamIsCapturing`
    pub fn is_capturing(&self) -> Result<bool> {
        if self.is_null() {
            return Ok(false);
        }
        Ok(capture::status(self.handle)?
            != sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE)
    }

    /// Launches a kernel. `cuLaunchKernel`
    pub fn launch(self: &Arc<Self>, launch: &mut Launch) -> Result<()> {
        launch.check(&self.context)?;
        let operands = launch.operands()?;
        self.submit(operands, |stream| launch.enqueue(stream))
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
        let operands = host_and_device(source as usize, root, destination)?;
        let _entered = self.context.enter()?;
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
        let operands = host_and_device(destination as usize, root, source)?;
        let _entered = self.context.enter()?;
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
        let operands = smallvec![Operand::memory(destination)?, Operand::memory(source)?];
        let _entered = self.context.enter()?;
        self.submit(operands, |stream| {
            driver!(cuMemcpyDtoDAsync_v2(to, from, size as usize, stream))
        })
    }

    /// Copies between the memories of two contexts, in stream order. `cuMemcpyPeerAsync`
    pub fn copy_between(self: &Arc<Self>, destination: End, source: End, size: i64) -> Result<()> {
        let to = destination.address("dst", size)?;
        let from = source.address("src", size)?;
        let operands = smallvec![
            Operand::memory(destination.memory)?,
            Operand::memory(source.memory)?
        ];
        let contexts = [destination.context, source.context].map(|c| c.handle() as sys::CUcontext);
        let _entered = self.context.enter()?;
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
        let operands = smallvec![Operand::memory(memory)?];
        let _entered = self.context.enter()?;
        self.submit(operands, |stream| {
            driver!(cuStreamAttachMemAsync(stream, memory.address(), 0, flags)).map_err(|e| {
                match memory.is_managed() {
                    true => e,
                    false => e.explained("only managed memory can be attached to a stream"),
                }
            })
        })
    }

    /// Fills memory, in stream order. `cuMemsetD8Async`, `cuMemsetD16Async`, `cuMemsetD32Async`
    pub fn fill(self: &Arc<Self>, memory: &Arc<Allocation>, offset: i64, fill: Fill) -> Result<()> {
        let address = fill.address_in(memory, offset)?;
        let operands = smallvec![Operand::memory(memory)?];
        let _entered = self.context.enter()?;
        let count = fill.count as usize;
        self.submit(operands, |stream| match fill.width {
            1 => driver!(cuMemsetD8Async(address, fill.value as u8, count, stream)),
            2 => driver!(cuMemsetD16Async(address, fill.value as u16, count, stream)),
            _ => driver!(cuMemsetD32Async(address, fill.value, count, stream)),
        })
    }

    /// The capture that this stream began and that is still open.
    pub fn own_capture(&self) -> Result<Arc<Capture>> {
        capture::begun_on(self.handle).ok_or_else(|| {
            Error::new(
                CUresult::CUDA_ERROR_ILLEGAL_STATE,
                "the stream has not begun a capture",
            )
        })
    }
}

fn host_and_device(
    address: usize,
    root: Option<Shared>,
    memory: &Arc<Allocation>,
) -> Result<Operands> {
    let mut operands: Operands = smallvec![Operand::memory(memory)?];
    operands.extend(root.map(|root| Operand::Host(address, root)));
    Ok(operands)
}

impl Drop for Stream {
    fn drop(&mut self) {
        if self.handle != 0 {
            LIVE.fetch_sub(1, Ordering::Relaxed);
            let (context, state) = (self.context.clone(), self.state.clone());
            release::queue(Release::Stream(self.handle, context, state));
        }
    }
}
