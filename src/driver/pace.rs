//! How much the garbage collector should do for what is on the device.
//!
//! The collector sees small blocks where there may be gigabytes behind them. It is told of device memory once more
//! of it is in use than ever before: a program that frees by hand what it allocates costs it nothing, and one
//! that drops it has at most some cycles' worth lying about above what it has once used.

use std::sync::atomic::{AtomicUsize, Ordering};

/// The parts of a cycle: for as much device memory the collector looks once through the young values and once through
/// the whole heap. With half of that, no cycle ended in a thousand execs beside a large heap.
pub const PARTS: usize = 4096;

/// The bytes of a cycle, with a part of what is in use on top. Each domain has cycles of its own, so that with many of
/// them a larger part would let dropped memory make room for more.
const LEAST_CYCLE: usize = 256 << 20;

/// The device memory of one context, in bytes.
#[derive(Default)]
pub struct Pace {
    /// In use.
    live: AtomicUsize,
    /// In use when it was most, less what the collector has given back since.
    told: AtomicUsize,
}

impl Pace {
    /// Counts memory in.
    pub fn allocated(&self, bytes: usize) {
        self.live.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Counts out what was freed by hand.
    pub fn freed(&self, bytes: usize) {
        less(&self.live, bytes);
    }

    /// Counts out what was dropped: as much again is told of again.
    pub fn collected(&self, bytes: usize) {
        less(&self.live, bytes);
        less(&self.told, bytes);
    }

    /// What the collector was not told of so far and is from now on, in parts of a cycle. Nothing if it is less than
    /// one part.
    pub fn tell(&self) -> Option<usize> {
        let live = self.live.load(Ordering::Relaxed);
        let told = self.told.load(Ordering::Relaxed);
        let part = (LEAST_CYCLE + live / 32) / PARTS;
        if live < told + part {
            return None;
        }
        self.told.fetch_max(live, Ordering::Relaxed);
        Some(((live - told) / part).min(PARTS))
    }
}

/// Counts need not be exact while several threads change them, but never wrap.
fn less(count: &AtomicUsize, bytes: usize) {
    let less = |count: usize| Some(count.saturating_sub(bytes));
    let _ = count.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    #[test]
    fn what_is_freed_by_hand_is_told_of_once() {
        let pace = Pace::default();
        pace.allocated(64 * MIB);
        assert_eq!(pace.tell(), Some(PARTS * 64 / (256 + 2)));
        for _ in 0..3 {
            pace.freed(48 * MIB);
            pace.allocated(48 * MIB);
            assert_eq!(pace.tell(), None);
        }
        pace.allocated(64 * MIB);
        assert!(pace.tell().is_some());
    }

    #[test]
    fn what_is_dropped_is_told_of_again() {
        let pace = Pace::default();
        pace.allocated(64 * MIB);
        let first = pace.tell();
        pace.collected(64 * MIB);
        pace.allocated(64 * MIB);
        assert_eq!(pace.tell(), first);
        pace.collected(1 << 40);
        assert_eq!(pace.tell(), None);
    }

    #[test]
    fn little_by_little_is_told_of_in_the_end() {
        let pace = Pace::default();
        let told = (0..1 << 14).filter_map(|_| {
            pace.allocated(4096);
            pace.tell()
        });
        // 64 MiB, of a cycle that grows from 256 to 258.
        let told: usize = told.sum();
        assert!((950..=1024).contains(&told), "{told}");
    }

    #[test]
    fn more_than_a_cycle_is_one() {
        let pace = Pace::default();
        pace.allocated(1 << 40);
        pace.collected(1 << 39);
        pace.allocated(1 << 45);
        assert_eq!(pace.tell(), Some(PARTS));
        assert_eq!(pace.tell(), None);
    }
}
