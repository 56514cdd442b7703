//! Events.

use super::context::Context;
use super::gate::{Passing, Shield};
use super::release::{self, Drain, Release};
use super::retain::{Operand, Shared};
use super::stream::{Stream, Submission};
use super::{capture, driver, Result};
use cudarc::driver::sys::{self, CUresult};
use smallvec::smallvec;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

/// An event of a context.
pub struct Event {
    handle: usize,
    context: Arc<Context>,
    /// Whether the latest record was made in a capture.
    in_capture: AtomicBool,
}

impl Event {
    /// A new event in the current context. `cuEventCreate`
    pub fn new(flags: u32) -> Result<Arc<Event>> {
        let context = Context::current()?;
        release::drain(Drain::Quick);
        let mut handle = std::ptr::null_mut();
        driver!(cuEventCreate(&mut handle, flags))?;
        Ok(Arc::new(Event {
            handle: handle as usize,
            context,
            in_capture: AtomicBool::new(false),
        }))
    }

    /// The driver's handle.
    pub fn handle(&self) -> usize {
        self.handle
    }

    fn raw(&self) -> sys::CUevent {
        self.handle as sys::CUevent
    }

    /// Records the event on a stream. `cuEventRecordWithFlags`
    pub fn record(self: &Arc<Self>, stream: &Arc<Stream>, external: bool) -> Result<()> {
        self.context.check_alive()?;
        let operands = smallvec![Operand::Shared(self.clone() as Shared)];
        let in_capture = capture::of_stream(stream)?.is_some();
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
        stream.submit_as(how, operands, |s, _| {
            driver!(cuEventRecordWithFlags(self.raw(), s, external as u32))?;
            self.in_capture.store(in_capture, Ordering::Release);
            Ok(())
        })
    }

    /// Makes later work on the stream wait for the event. `cuStreamWaitEvent`
    pub fn wait(self: &Arc<Self>, stream: &Arc<Stream>, external: bool) -> Result<()> {
        self.context.check_alive()?;
        let operands = smallvec![Operand::Shared(self.clone() as Shared)];
        let call = |s| driver!(cuStreamWaitEvent(s, self.raw(), external as u32));
        if !capture::any_open() && self.asking() == Passing::By {
            return stream.submit(operands, call);
        }
        // The stream may join the event's capture.
        let _unasked = stream.unasked();
        let before = capture::of_stream(stream)?.is_some();
        let how = Submission {
            if_capturing: Passing::Alone,
            otherwise: Passing::Alone,
            ..Submission::default()
        };
        stream.submit_as(how, operands, |s, _| call(s))?;
        if !before {
            capture::note_joined(stream)?;
        }
        Ok(())
    }

    /// How a call about the event passes the gate: one that was recorded inside a capture is part of
    /// it, also after the end.
    fn asking(&self) -> Passing {
        match self.in_capture.load(Ordering::Acquire) {
            true => Passing::Alone,
            false => Passing::By,
        }
    }

    /// Whether what the event was recorded after is done. `cuEventQuery`
    pub fn query(&self) -> Result<bool> {
        self.context.check_alive()?;
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
        let _shield = Shield::for_others(self.asking());
        driver!(cuEventSynchronize(self.raw())).map_err(|e| self.explain(e))
    }

    /// Milliseconds between two events that have happened. `cuEventElapsedTime`
    pub fn elapsed_since(&self, start: &Event) -> Result<f32> {
        self.context.check_alive()?;
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
        .map_err(|e| self.explain(e))?;
        Ok(milliseconds)
    }

    fn explain(&self, error: super::Error) -> super::Error {
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

impl Drop for Event {
    fn drop(&mut self) {
        let how = self.asking();
        release::queue(Release::Event(self.handle, self.context.clone(), how));
    }
}
