//! Events.

use super::capture::{self, Place};
use super::context::Context;
use super::foreign::Whose;
use super::gate::{Passing, Shield};
use super::release::{self, Drain, Release};
use super::retain::{Borrowed, Operand, Shared};
use super::stream::{Stream, Submission};
use super::{driver, Error, Result};
use cudarc::driver::sys::{self, CUresult};
use smallvec::smallvec;
use std::cmp::Ordering as CmpOrdering;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, RwLock, RwLockReadGuard};

/// An event of a context.
pub struct Event {
    handle: usize,
    context: Arc<Context>,
    /// Whether the latest record was made in a capture.
    in_capture: AtomicBool,
    /// Shared by whatever uses the event; alone while it is recorded into a capture, since nobody may
    /// use it as an ordinary one then.
    using: RwLock<()>,
    /// Whether another library knows the event too, and may record it in a capture unseen.
    shared: AtomicBool,
    whose: Whose,
}

impl Event {
    /// A new event in the current context. `cuEventCreate`
    pub fn new(flags: u32) -> Result<Arc<Event>> {
        Event::in_context(Context::current()?, flags)
    }

    /// A new event in a context. `cuEventCreate`
    pub fn in_context(context: Arc<Context>, flags: u32) -> Result<Arc<Event>> {
        let _entered = context.enter()?;
        release::drain(Drain::Quick);
        let mut handle = std::ptr::null_mut();
        driver!(cuEventCreate(&mut handle, flags)).map_err(|e| explain_flags(e, flags))?;
        let event = Event::foreign(handle as usize, context.clone(), Whose::Ours);
        event.shared.store(false, Ordering::Relaxed);
        Ok(event)
    }

    /// An event that another library made.
    pub fn foreign(handle: usize, context: Arc<Context>, whose: Whose) -> Arc<Event> {
        Arc::new(Event {
            handle,
            context,
            in_capture: AtomicBool::new(false),
            using: RwLock::new(()),
            shared: AtomicBool::new(true),
            whose,
        })
    }

    /// The context that the event belongs to.
    pub fn context(&self) -> &Arc<Context> {
        &self.context
    }

    /// Notes that another library gets to know the event.
    pub fn share(&self) {
        self.shared.store(true, Ordering::Relaxed);
    }

    /// The driver's handle.
    pub fn handle(&self) -> usize {
        self.handle
    }

    fn raw(&self) -> sys::CUevent {
        self.handle as sys::CUevent
    }

    fn using(&self) -> RwLockReadGuard<'_, ()> {
        self.using.read().unwrap_or_else(|e| e.into_inner())
    }

    /// Records the event on a stream. `cuEventRecordWithFlags`
    pub fn record(self: &Arc<Self>, stream: &Arc<Stream>, external: bool) -> Result<()> {
        self.context.check_alive()?;
        if self.whose.is_ours() && self.context.handle() != stream.context().handle() {
            return Err(Error::invalid(
                "the event was made in another context than the stream",
            ));
        }
        let using = self.using();
        if self.record_unless(stream, external, |captured| captured)? {
            return Ok(());
        }
        drop(using);
        let _alone = self.using.write().unwrap_or_else(|e| e.into_inner());
        self.record_unless(stream, external, |_| false).map(|_| ())
    }

    /// [`Event::record`] at once, if that cannot block and nothing captures. Nothing otherwise, see
    /// [`Stream::try_submit`].
    #[inline]
    pub fn try_record(event: Borrowed<Event>, stream: &Stream) -> Option<Result<()>> {
        Event::try_use(event, stream, |s| {
            driver!(cuEventRecordWithFlags(event.raw(), s, 0))
        })
    }

    /// [`Event::wait`] at once, likewise.
    #[inline]
    pub fn try_wait(event: Borrowed<Event>, stream: &Stream) -> Option<Result<()>> {
        Event::try_use(event, stream, |s| {
            driver!(cuStreamWaitEvent(s, event.raw(), 0)).map_err(|e| event.explain(e))
        })
    }

    #[inline]
    fn try_use(
        event: Borrowed<Event>,
        stream: &Stream,
        call: impl FnOnce(sys::CUstream) -> Result<()>,
    ) -> Option<Result<()>> {
        let _using = event.using.try_read().ok()?;
        let ordinary = event.asking() == Passing::By
            && event.context.is_alive()
            && event.context.handle() == stream.context().handle();
        if !ordinary {
            return None;
        }
        stream.try_submit(1, |pending, sequence, s| {
            pending.retain_owner(event, sequence);
            Some(call(s))
        })
    }

    /// Records the event unless `refused`, which is told whether it would go into a capture. Whether
    /// it was recorded.
    fn record_unless(
        self: &Arc<Self>,
        stream: &Arc<Stream>,
        external: bool,
        refused: impl FnOnce(bool) -> bool,
    ) -> Result<bool> {
        let operands = smallvec![Operand::Shared(self.clone() as Shared)];
        // An event that was recorded inside a capture leaves that capture now.
        let otherwise = self.asking();
        let if_capturing = if otherwise == Passing::By {
            Passing::Together
        } else {
            otherwise
        };
        let how = Submission {
            if_capturing,
            otherwise,
            ..Submission::default()
        };
        let mut recorded = true;
        stream.submit_as(how, operands, |s, captured| {
            if refused(captured.is_some()) {
                recorded = false;
                return Ok(());
            }
            driver!(cuEventRecordWithFlags(self.raw(), s, external as u32))
                .map_err(|e| explain_external(e, external, captured.is_some()))?;
            self.in_capture.store(captured.is_some(), Ordering::Release);
            Ok(())
        })?;
        Ok(recorded)
    }

    /// Makes later work on the stream wait for the event. `cuStreamWaitEvent`
    pub fn wait(self: &Arc<Self>, stream: &Arc<Stream>, external: bool) -> Result<()> {
        self.context.check_alive()?;
        stream.context().check_alive()?;
        let _using = self.using();
        let operands = smallvec![Operand::Shared(self.clone() as Shared)];
        let call = |s, captured: bool| {
            driver!(cuStreamWaitEvent(s, self.raw(), external as u32))
                .map_err(|e| self.explain_wait(e, external, captured))
        };
        if !capture::any_open() && self.asking() == Passing::By {
            return stream.submit(operands, |s| call(s, false));
        }
        // The stream may join the event's capture.
        let _unasked = stream.unasked();
        let before = !matches!(capture::place(stream)?, Place::Outside);
        let how = Submission {
            if_capturing: Passing::Alone,
            otherwise: Passing::Alone,
            ..Submission::default()
        };
        if self.shared.load(Ordering::Relaxed) {
            // It may join a capture that another library began.
            stream.share();
        }
        stream.submit_as(how, operands, |s, captured| call(s, captured.is_some()))?;
        if !before {
            capture::note_joined(stream)?;
        }
        Ok(())
    }

    /// How a call about the event passes the gate: one that was recorded inside a capture is part of
    /// it, also after the end.
    fn asking(&self) -> Passing {
        let shared = self.shared.load(Ordering::Relaxed);
        match self.in_capture.load(Ordering::Acquire) || shared {
            true => Passing::Alone,
            false => Passing::By,
        }
    }

    /// Whether what the event was recorded after is done. `cuEventQuery`
    pub fn query(&self) -> Result<bool> {
        self.context.check_alive()?;
        let _using = self.using();
        let _shield = Shield::harmless(self.asking());
        // SAFETY: the handle lives as long as `self`.
        match unsafe { sys::cuEventQuery(self.raw()) } {
            CUresult::CUDA_ERROR_NOT_READY => Ok(false),
            status => super::error::check("cuEventQuery", status)
                .map(|()| true)
                .map_err(|e| self.explain(e)),
        }
    }

    /// Waits until the event has happened. `cuEventSynchronize`
    pub fn synchronize(&self) -> Result<()> {
        self.context.check_alive()?;
        let _using = self.using();
        let _shield = Shield::for_others(self.asking());
        driver!(cuEventSynchronize(self.raw())).map_err(|e| self.explain(e))
    }

    /// Milliseconds between two events that have happened. `cuEventElapsedTime`
    pub fn elapsed_since(&self, start: &Event) -> Result<f32> {
        self.context.check_alive()?;
        start.context.check_alive()?;
        // In one order for every pair, and once if they are the same.
        let (first, second) = match (self as *const Event).cmp(&(start as *const Event)) {
            CmpOrdering::Equal => (self, None),
            CmpOrdering::Less => (self, Some(start)),
            CmpOrdering::Greater => (start, Some(self)),
        };
        let _using = (first.using(), second.map(Event::using));
        let passings = [self.asking(), start.asking()];
        let how = if passings.contains(&Passing::Alone) {
            Passing::Alone
        } else {
            Passing::By
        };
        let _shield = Shield::harmless(how);
        let mut milliseconds = 0.0;
        driver!(cuEventElapsedTime(
            &mut milliseconds,
            start.raw(),
            self.raw()
        ))
        .map_err(|e| match e.is(CUresult::CUDA_ERROR_INVALID_HANDLE) {
            true => e.explained(
                "both events must have been created in one context with enable_timing, and recorded",
            ),
            false => self.explain(e),
        })?;
        Ok(milliseconds)
    }

    fn explain_wait(&self, error: Error, external: bool, captured: bool) -> Error {
        match explain_external(error, external, captured) {
            error if error.detail.is_empty() && self.in_capture.load(Ordering::Acquire) => {
                self.explain(error)
            }
            error => error,
        }
    }

    fn explain(&self, error: Error) -> Error {
        if error.is(CUresult::CUDA_ERROR_CAPTURED_EVENT)
            || error.is(CUresult::CUDA_ERROR_INVALID_VALUE)
        {
            return error.explained(
                "the event was last recorded inside a capture, where it marks a place in the graph \
                 and no moment; record it again outside",
            );
        }
        error
    }
}

/// Says what the driver minds about the flags of an event.
fn explain_flags(error: Error, flags: u32) -> Error {
    const NO_TIME: u32 = sys::CUevent_flags::CU_EVENT_DISABLE_TIMING as u32;
    const PROCESSES: u32 = sys::CUevent_flags::CU_EVENT_INTERPROCESS as u32;
    let timed = flags & (NO_TIME | PROCESSES) == PROCESSES;
    match timed && error.is(CUresult::CUDA_ERROR_INVALID_VALUE) {
        true => error.explained("an interprocess event cannot have enable_timing"),
        false => error,
    }
}

/// Says that `external_` is for streams that capture, where that may be what the driver minds.
fn explain_external(error: Error, external: bool, captured: bool) -> Error {
    match external && !captured && error.is(CUresult::CUDA_ERROR_ILLEGAL_STATE) {
        true => {
            error.explained("external_ is only for a stream that captures, and this one does not")
        }
        false => error,
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        if !self.whose.is_ours() {
            return;
        }
        let how = self.asking();
        release::queue(Release::Event(self.handle, self.context.clone(), how));
    }
}
