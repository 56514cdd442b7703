//! Whether memory may be used and who gives it back: one word, changed by whatever thread.

use super::sync::atomic::{AtomicU32, Ordering};

/// Set once the user has freed the memory.
const DEAD: u32 = 1 << 31;
/// Set once the memory is back with the driver, or somebody is about to give it back.
const RETURNED: u32 = 1 << 30;
/// The rest counts who holds the memory against an explicit free.
const HOLDS: u32 = RETURNED - 1;

/// The state of memory from its allocation on.
#[derive(Debug)]
pub struct Life(AtomicU32);

/// What an explicit free finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Freeing {
    /// The caller is to give the memory back.
    Now,
    /// Something holds the memory: it goes back when the last owner goes.
    Later,
    /// It was freed before.
    Again,
}

impl Life {
    /// Of memory that was just allocated.
    pub fn begin() -> Life {
        Life(AtomicU32::new(0))
    }

    /// Whether the user has freed it.
    pub fn is_dead(&self) -> bool {
        self.0.load(Ordering::Acquire) & DEAD != 0
    }

    /// The user frees it: nobody can hold it from now on.
    pub fn free(&self) -> Freeing {
        let mut state = self.0.load(Ordering::Acquire);
        loop {
            if state & DEAD != 0 {
                return Freeing::Again;
            }
            let now = state & HOLDS == 0;
            let next = state | DEAD | if now { RETURNED } else { 0 };
            match self
                .0
                .compare_exchange(state, next, Ordering::AcqRel, Ordering::Acquire)
            {
                Ok(_) if now => return Freeing::Now,
                Ok(_) => return Freeing::Later,
                Err(other) => state = other,
            }
        }
    }

    /// The user frees it, and something else gives it back.
    pub fn free_elsewhere(&self) {
        self.0.fetch_or(DEAD | RETURNED, Ordering::AcqRel);
    }

    /// Who was to give it back now could not: it goes back when the last owner goes.
    pub fn not_returned(&self) {
        self.0.fetch_and(!RETURNED, Ordering::AcqRel);
    }

    /// Puts an explicit free off until [`Life::unhold`]; false if the user has freed it already.
    #[inline]
    pub fn hold(&self) -> bool {
        let before = self.0.fetch_add(1, Ordering::AcqRel);
        if before & DEAD != 0 {
            self.unhold();
            return false;
        }
        true
    }

    /// Takes one [`Life::hold`] back.
    #[inline]
    pub fn unhold(&self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }

    /// Whether it is back with the driver, as its last owner sees it.
    pub fn is_returned(&mut self) -> bool {
        self.0.load(Ordering::Acquire) & RETURNED != 0
    }
}
