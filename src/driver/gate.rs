//! Keeping calls apart that the driver cannot do at the same time.
//!
//! The driver keeps a list of open captures. A call that may be unsafe walks it and breaks the captures
//! that forbid the call; the driver does not guard that walk against another thread that begins or ends a
//! capture at that moment: the process crashes (measured). So beginning and ending a capture, and
//! every call that may break one, pass through one gate alone. A call that only must not overlap with
//! a begin or an end passes together with its like. Calls in mode RELAXED do not walk the list and pass
//! by the gate.
//!
//! The gate is the innermost lock but for the capture registry, and is never waited for with the OCaml
//! runtime lock held.

use super::capture;
use cudarc::driver::sys::{self, CUstreamCaptureMode};
use std::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};

static GATE: RwLock<()> = RwLock::new(());

/// How a call passes the gate.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Passing {
    /// Not through it: the call touches no capture.
    By,
    /// With others of this kind: the call must not overlap with a begin or an end.
    Together,
    /// With nobody: the call begins, ends or breaks a capture.
    Alone,
}

/// The way through the gate, closed or shared until this goes.
pub enum Passage {
    /// See [`Passing::By`].
    By,
    /// See [`Passing::Together`].
    Together(#[allow(dead_code)] RwLockReadGuard<'static, ()>),
    /// See [`Passing::Alone`].
    Alone(#[allow(dead_code)] RwLockWriteGuard<'static, ()>),
}

/// Passes the gate. Nobody who holds a passage may ask for another one.
pub fn pass(how: Passing) -> Passage {
    match how {
        Passing::By => Passage::By,
        Passing::Together => Passage::Together(GATE.read().unwrap_or_else(|e| e.into_inner())),
        Passing::Alone => Passage::Alone(GATE.write().unwrap_or_else(|e| e.into_inner())),
    }
}

/// The calling thread's capture mode is another one while this lives.
pub struct ThreadMode {
    previous: CUstreamCaptureMode,
}

impl ThreadMode {
    /// Calls that the driver thinks unsafe do no harm to any capture.
    pub fn relaxed() -> ThreadMode {
        ThreadMode::exchange(CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED)
    }

    /// They break captures of this thread alone.
    fn thread_local() -> ThreadMode {
        ThreadMode::exchange(CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)
    }

    fn exchange(mut mode: CUstreamCaptureMode) -> ThreadMode {
        // SAFETY: exchanges one word; it has no way to fail with a valid mode.
        let _ = unsafe { sys::cuThreadExchangeStreamCaptureMode(&mut mode) };
        ThreadMode { previous: mode }
    }
}

impl Drop for ThreadMode {
    fn drop(&mut self) {
        // SAFETY: as in `exchange`.
        let _ = unsafe { sys::cuThreadExchangeStreamCaptureMode(&mut self.previous) };
    }
}

/// Makes a call that may be unsafe harmless to the captures of other threads.
pub struct Shield {
    // In this order: the mode is restored before another thread passes the gate.
    _mode: ThreadMode,
    _passage: Passage,
}

impl Shield {
    /// For a call that harms no capture at all, unless it is about one.
    pub fn harmless(how: Passing) -> Shield {
        let passage = pass(how);
        Shield {
            _mode: ThreadMode::relaxed(),
            _passage: passage,
        }
    }

    /// For a call that breaks a capture of the calling thread, as documented; it must not harm those
    /// of others, nor those that begin meanwhile.
    pub fn for_others(how: Passing) -> Shield {
        if !capture::forbids_unsafe_calls_here() {
            return Shield::harmless(how);
        }
        let passage = pass(Passing::Alone);
        Shield {
            _mode: ThreadMode::thread_local(),
            _passage: passage,
        }
    }
}
