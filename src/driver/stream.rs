//! Streams: enqueuing work, and holding what it uses until the stream is known to be idle.

use super::capture::{self, Capture, Place};
use super::context::Context;
use super::foreign::Whose;
use super::gate::{self, Passing, Shield, ThreadMode};
use super::graph_memory::MemoryNodes;
use super::pressure::{Short, Waiting};
use super::queue::{Queue, StreamState};
use super::release::{self, Drain, Release};
use super::retain::{KeepSet, Operand, Operands, PendingSet};
use super::sync::RwLockWriteGuard;
use super::{driver, library, Error, Result};
use cudarc::driver::sys::{self, CUresult};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::Arc;

/// Streams that have an owner, for `get_total_live_streams`.
static LIVE: AtomicUsize = AtomicUsize::new(0);

/// How an operation is submitted.
#[derive(Clone, Copy)]
pub struct Submission {
    /// How the call passes the gate if the stream is capturing.
    pub if_capturing: Passing,
    /// And if it is not.
    pub otherwise: Passing,
    /// As how many ordinary operations it counts in the launch queue.
    pub weight: u64,
}

impl Default for Submission {
    fn default() -> Submission {
        Submission {
            if_capturing: Passing::Together,
            otherwise: Passing::By,
            weight: 1,
        }
    }
}

/// A stream, owned or the NULL stream of a context.
pub struct Stream {
    handle: usize,
    context: Arc<Context>,
    non_blocking: bool,
    state: Arc<StreamState>,
    /// Whether another library knows the stream too, and may capture on it unseen.
    shared: AtomicBool,
    whose: Whose,
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
        let waiting = Waiting::begin();
        driver!(cuStreamCreateWithPriority(&mut handle, flags, priority))?;
        drop(waiting);
        let (handle, whose) = (handle as usize, Whose::Ours);
        Ok(Stream::with_owner(
            handle,
            context,
            non_blocking,
            false,
            whose,
        ))
    }

    /// The NULL stream of the context that is current on this thread.
    pub fn null() -> Result<Arc<Stream>> {
        Ok(Arc::new(Stream::null_of(Context::current()?)))
    }

    /// The NULL stream of a context.
    pub fn null_of(context: Arc<Context>) -> Stream {
        Stream {
            handle: 0,
            state: context.null_stream.clone(),
            context,
            non_blocking: false,
            shared: AtomicBool::new(false),
            whose: Whose::Ours,
        }
    }

    /// A stream that another library made.
    pub fn foreign(
        handle: usize,
        context: Arc<Context>,
        non_blocking: bool,
        whose: Whose,
    ) -> Arc<Stream> {
        Stream::with_owner(handle, context, non_blocking, true, whose)
    }

    fn with_owner(
        handle: usize,
        context: Arc<Context>,
        non_blocking: bool,
        shared: bool,
        whose: Whose,
    ) -> Arc<Stream> {
        LIVE.fetch_add(1, Ordering::Relaxed);
        let stream = Arc::new(Stream {
            handle,
            state: StreamState::new(context.backlog()),
            context,
            non_blocking,
            shared: AtomicBool::new(shared),
            whose,
        });
        stream.context.adopt(&stream);
        stream
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

    /// Whether another library knows the stream too, and may capture on it unseen.
    #[inline]
    pub fn is_shared(&self) -> bool {
        self.shared.load(Ordering::Relaxed)
    }

    /// Whether it is destroyed here; else its owner may destroy it before the value here goes.
    pub fn is_ours(&self) -> bool {
        self.whose.is_ours()
    }

    /// Notes that another library gets to know the stream.
    pub fn share(&self) {
        self.shared.store(true, Ordering::Relaxed);
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
        let how = Submission::default();
        self.submit_as(how, operands, |stream, _| call(stream))
    }

    /// [`Stream::submit`] for calls that may break or join a capture, make memory nodes of it, or
    /// are large.
    pub fn submit_as(
        self: &Arc<Self>,
        how: Submission,
        operands: Operands,
        call: impl FnOnce(sys::CUstream, Option<&mut MemoryNodes>) -> Result<()>,
    ) -> Result<()> {
        library::ready()?;
        let mut queue = self.state.lock();
        self.context.check_alive()?;
        let place = match &queue.capture {
            Some(capture) if !capture.has_ended() => Place::Inside(capture.clone()),
            _ => capture::place(self)?,
        };
        match place {
            Place::Inside(capture) => {
                let record = |nodes: &mut MemoryNodes| call(self.raw(), Some(nodes));
                return capture.record(self, operands, how.if_capturing, record);
            }
            Place::Elsewhere => {
                let _passage = gate::pass(how.if_capturing);
                capture::keep_elsewhere(self, operands)?;
                return call(self.raw(), Some(&mut MemoryNodes::default()));
            }
            Place::Outside => {}
        }
        for operand in &operands {
            if let Operand::Memory(held) = operand {
                held.allocation().check_allocated()?;
            }
        }
        let passage = gate::pass(if self.is_null() {
            Passing::Together
        } else {
            how.otherwise
        });
        if self.is_null() {
            capture::refuse_uncaptured("work on the NULL stream", self.context.handle())?;
        }
        let operation = |pending: &mut PendingSet, sequence| {
            operands.iter().for_each(|o| pending.retain(o, sequence));
            call(self.raw(), None)
        };
        let result = self.state.enqueue(&mut queue, how.weight, operation);
        drop(passage);
        let mut released = Vec::new();
        // A stream that is not ours may be gone when we ask how far it is: each operation is marked.
        let due = queue.progress_is_due() || !self.whose.is_ours();
        if due && !self.is_null() {
            if let Ok(_entered) = self.context.enter() {
                released = queue.note_progress(self.raw(), !self.whose.is_ours());
            }
        }
        drop(queue);
        drop(released);
        result
    }

    /// Enqueues one operation at once, if that cannot block and nothing captures. Nothing otherwise, or
    /// if the operation says so: then it is to be submitted with the OCaml runtime let go.
    #[inline]
    pub fn try_submit(
        &self,
        weight: u64,
        operation: impl FnOnce(&mut PendingSet, u64, sys::CUstream) -> Option<Result<()>>,
    ) -> Option<Result<()>> {
        let _short = Short::begin()?;
        let mut queue = self.state.try_lock()?;
        if !self.is_ordinary() || queue.progress_is_due() || !self.context.backlog().has_room() {
            return None;
        }
        let operation =
            |pending: &mut PendingSet, sequence: u64| operation(pending, sequence, self.raw());
        self.state.enqueue(&mut queue, weight, operation)
    }

    /// Records one operation at once into the capture that the stream began, if it did. Nothing
    /// otherwise, see [`Stream::try_submit`].
    #[inline]
    pub fn try_record(
        &self,
        operation: impl FnOnce(&mut KeepSet, sys::CUstream) -> Option<Result<()>>,
    ) -> Option<Result<()>> {
        let _short = Short::begin()?;
        let queue = self.state.try_lock()?;
        if !self.context.is_alive() || !library::usable() {
            return None;
        }
        let capture = queue.capture.as_ref()?;
        capture.try_record(|keep| operation(keep, self.raw()))
    }

    /// Whether nothing captures, and the stream is a live one of its own.
    #[inline]
    pub fn is_ordinary(&self) -> bool {
        !self.is_null()
            && !self.is_shared()
            && !capture::any_open()
            && self.context.is_alive()
            && library::usable()
    }

    fn is_null(&self) -> bool {
        self.handle == 0
    }

    /// Nobody asks or waits for the stream while this lives: it may come to capture.
    pub fn unasked(&self) -> RwLockWriteGuard<'_, ()> {
        self.state.unasked()
    }

    /// Runs `f` while nothing can be enqueued on this stream and nobody asks for it: beginning and
    /// ending a capture.
    pub fn exclusively<T>(&self, f: impl FnOnce(&mut Queue) -> Result<T>) -> Result<T> {
        library::ready()?;
        let _unasked = self.unasked();
        let mut queue = self.state.lock();
        self.context.check_alive()?;
        f(&mut queue)
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
        Ok(match capture::place(self)? {
            Place::Outside => Passing::By,
            Place::Inside(_) | Place::Elsewhere => Passing::Alone,
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
        library::ready()?;
        self.state.release_if_idle(|| {
            let _asking = self.state.asking();
            self.context.check_alive()?;
            let how = self.ask("waiting for a stream that captures")?;
            let _shield = Shield::for_others(how);
            self.refuse_if_null("waiting for the NULL stream")?;
            driver!(cuStreamSynchronize(self.raw())).map(|()| true)
        })?;
        release::drain(Drain::All);
        Ok(())
    }

    /// Waits for work of the stream, whose context is current; harms no capture, and so waits for no
    /// stream that captures. `cuStreamSynchronize`
    pub fn outlast(&self) -> Result<()> {
        if self.is_capturing()? {
            return Ok(());
        }
        let idle = || {
            let _asking = self.state.asking();
            let how = match self.is_null() {
                true => Passing::Together,
                false => Passing::By,
            };
            let _shield = Shield::harmless(how);
            self.refuse_if_null("waiting for the NULL stream")?;
            driver!(cuStreamSynchronize(self.raw())).map(|()| true)
        };
        self.state.release_if_idle(idle).map(drop)
    }

    /// Whether the stream is idle; if so, lets go what its work used. `cuStreamQuery`
    pub fn is_idle(&self) -> Result<bool> {
        library::ready()?;
        self.state.release_if_idle(|| {
            let _asking = self.state.asking();
            self.context.check_alive()?;
            let how = self.ask("asking whether a stream that captures is idle")?;
            // A query of this stream must not harm a capture on another one.
            let _shield = Shield::harmless(how);
            self.refuse_if_null("asking whether the NULL stream is idle")?;
            // SAFETY: the handle lives as long as `self`.
            let status = unsafe { sys::cuStreamQuery(self.raw()) };
            if status == CUresult::CUDA_ERROR_NOT_READY {
                return Ok(false);
            }
            super::error::check("cuStreamQuery", status).map(|()| true)
        })
    }

    /// Lets go what done work used, without waiting for anything, be it another thread that uses the stream
    /// at this moment. The context is current. `cuStreamQuery`, `cuEventQuery`
    pub fn release_done(&self) {
        let Some(_asking) = self.state.try_asking() else {
            return;
        };
        let Some(mut queue) = self.state.try_lock() else {
            return;
        };
        if queue.pending.is_empty() {
            return;
        }
        let Some(passage) = gate::try_together() else {
            return;
        };
        let relaxed = ThreadMode::relaxed();
        let released = match self.is_seen_idle() {
            true => queue.take_all(),
            false => queue.take_marked(),
        };
        drop(relaxed);
        drop(passage);
        drop(queue);
        drop(released);
    }

    /// Whether the stream is idle; false also where asking could break a capture. The caller has passed the
    /// gate, with nothing to be enqueued and the thread's mode RELAXED.
    fn is_seen_idle(&self) -> bool {
        let may_capture = self.is_shared()
            || capture::any_open() && (self.is_null() || capture::is_captured(self.handle));
        // SAFETY: the handle lives as long as `self`.
        !may_capture && unsafe { sys::cuStreamQuery(self.raw()) } == CUresult::CUDA_SUCCESS
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
        self.context.check_alive()?;
        if self.is_null() {
            return Ok(false);
        }
        Ok(capture::status(self.handle)?
            != sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE)
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

impl Stream {
    /// The program has let go of the stream: a capture that it began is closed by the next drain. Not on
    /// the stream of another library, which may still end it.
    pub fn let_go(self: &Arc<Self>) {
        if self.whose.is_ours() && capture::any_open() {
            release::queue(Release::Capture(self.clone()));
        }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if self.handle != 0 {
            LIVE.fetch_sub(1, Ordering::Relaxed);
            let (context, state) = (self.context.clone(), self.state.clone());
            release::queue(match self.whose {
                Whose::Ours => Release::Stream(self.handle, context, state),
                Whose::Theirs { .. } => Release::StreamWork(context, state),
            });
        }
    }
}
