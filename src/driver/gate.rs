//! Keeping calls apart that the driver cannot do at the same time.
//!
//! The driver keeps a list of open captures. A call that may be unsafe walks it and breaks the captures
//! that forbid the call; the driver does not guard that walk against another thread that begins or ends a
//! capture at that moment: the process crashes (measured). So beginning and ending a capture, and
//! every call that may break one, pass through one gate alone. A call that only must not overlap with
//! a begin or an end passes together with its like: also the question whether a stream captures, since
//! the end takes the answer away under it (the process crashes there too). Calls in mode RELAXED do not
//! walk the list and pass by the gate.
//!
//! The gate is the innermost lock but for the capture registry and the families of graphs, and is never
//! waited for with the OCaml runtime lock held.

use super::capture;
use cudarc::driver::sys::{self, CUresult, CUstreamCaptureMode};
use std::cell::Cell;
use std::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard, TryLockError};
use std::time::Duration;

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

thread_local! { static INSIDE: Cell<usize> = const { Cell::new(0) }; }

/// Whether the calling thread holds a passage through the gate.
fn inside() -> bool {
    INSIDE.with(|inside| inside.get() > 0)
}

enum Guard {
    By,
    Together(#[allow(dead_code)] RwLockReadGuard<'static, ()>),
    Alone(#[allow(dead_code)] RwLockWriteGuard<'static, ()>),
}

/// The way through the gate, closed or shared until this goes.
pub struct Passage(Guard);

impl Passage {
    fn through(guard: Guard) -> Passage {
        INSIDE.with(|inside| inside.set(inside.get() + 1));
        Passage(guard)
    }
}

impl Drop for Passage {
    fn drop(&mut self) {
        if !matches!(self.0, Guard::By) {
            INSIDE.with(|inside| inside.set(inside.get() - 1));
        }
    }
}

/// Passes the gate. Nobody who holds a passage may ask for another one.
pub fn pass(how: Passing) -> Passage {
    match how {
        Passing::By => Passage(Guard::By),
        Passing::Together => {
            let shared = GATE.read().unwrap_or_else(|e| e.into_inner());
            Passage::through(Guard::Together(shared))
        }
        Passing::Alone => {
            let alone = GATE.write().unwrap_or_else(|e| e.into_inner());
            Passage::through(Guard::Alone(alone))
        }
    }
}

/// Passes together, or stays on the passage that the thread already holds; nothing if that would have to
/// wait.
pub fn try_together() -> Option<Passage> {
    if inside() {
        return Some(Passage(Guard::By));
    }
    match GATE.try_read() {
        Ok(shared) => Some(Passage::through(Guard::Together(shared))),
        Err(TryLockError::Poisoned(e)) => Some(Passage::through(Guard::Together(e.into_inner()))),
        Err(TryLockError::WouldBlock) => None,
    }
}

/// Passes the gate alone, unless others are in the way for so long.
pub fn pass_alone_within(patience: Duration) -> Option<Passage> {
    let step = Duration::from_millis(5);
    let mut waited = Duration::ZERO;
    loop {
        let alone = match GATE.try_write() {
            Ok(alone) => alone,
            Err(TryLockError::Poisoned(e)) => e.into_inner(),
            Err(TryLockError::WouldBlock) if waited >= patience => return None,
            Err(TryLockError::WouldBlock) => {
                std::thread::sleep(step);
                waited += step;
                continue;
            }
        };
        return Some(Passage::through(Guard::Alone(alone)));
    }
}

/// The calling thread's capture mode is another one while this lives.
pub struct ThreadMode {
    /// Nothing if the driver has refused to change it.
    previous: Option<CUstreamCaptureMode>,
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
        // SAFETY: exchanges one word.
        let status = unsafe { sys::cuThreadExchangeStreamCaptureMode(&mut mode) };
        let changed = status == CUresult::CUDA_SUCCESS;
        ThreadMode {
            previous: changed.then_some(mode),
        }
    }
}

impl Drop for ThreadMode {
    fn drop(&mut self) {
        if let Some(mut mode) = self.previous {
            // SAFETY: as in `exchange`.
            let _ = unsafe { sys::cuThreadExchangeStreamCaptureMode(&mut mode) };
        }
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
