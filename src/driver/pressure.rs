//! Whether a launch can block.
//!
//! A launch returns at once, unless the launch queue is full or another thread is in a call that waits
//! for the device while it holds the driver's lock: allocating, freeing, loading, instantiating
//! (measured). Where neither can be, the caller need not let go of the OCaml runtime for it, which costs
//! as much as all the rest of this library in a launch.
//!
//! Two parts: calls that may wait announce themselves ([`Waiting`]) and stay out until the launches under
//! way that rely on their absence ([`Short`]) are over; and each context counts what is not known
//! to be done ([`Backlog`]). Work that other libraries send to the device is not seen, so a stream
//! that is shared with one is never launched on this way.

use super::sync::atomic::AtomicI64;
use std::cell::Cell;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};

/// Threads that take part, each with a place of its own; any more share, and may find it taken.
const PLACES: usize = 64;

/// One thread's place, on a cache line of its own.
#[repr(align(128))]
struct Place(AtomicU8);

static UNDER_WAY: [Place; PLACES] = [const { Place(AtomicU8::new(0)) }; PLACES];
static WAITING: AtomicUsize = AtomicUsize::new(0);

fn place() -> &'static AtomicU8 {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! { static PLACE: Cell<usize> = const { Cell::new(usize::MAX) }; }
    PLACE.with(|place| {
        if place.get() == usize::MAX {
            place.set(NEXT.fetch_add(1, Ordering::Relaxed) % PLACES);
        }
        &UNDER_WAY[place.get()].0
    })
}

/// While this lives no call that waits is under way on any thread.
pub struct Short(&'static AtomicU8);

impl Short {
    /// Nothing if such a call is under way.
    pub fn begin() -> Option<Short> {
        let place = place();
        if place.swap(1, Ordering::SeqCst) != 0 {
            // Another thread shares the place.
            return None;
        }
        let short = Short(place);
        (WAITING.load(Ordering::SeqCst) == 0).then_some(short)
    }
}

impl Drop for Short {
    fn drop(&mut self) {
        self.0.store(0, Ordering::Release);
    }
}

/// A call that may wait for the device. Made with the OCaml runtime let go.
pub struct Waiting(());

impl Waiting {
    /// Announces the call, and lets those end that count on its absence: each is one launch.
    pub fn begin() -> Waiting {
        WAITING.fetch_add(1, Ordering::SeqCst);
        for place in &UNDER_WAY {
            while place.0.load(Ordering::SeqCst) != 0 {
                std::thread::yield_now();
            }
        }
        Waiting(())
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        WAITING.fetch_sub(1, Ordering::Release);
    }
}

/// What is enqueued in a context and not known to be done, in operations of ordinary size.
#[derive(Default)]
pub struct Backlog(AtomicI64);

impl Backlog {
    /// The launch queue holds 1021 launches of ordinary size (measured), 733 with 4000 bytes of
    /// parameters and 829 of a graph of 5000 nodes; streams may share it.
    const ROOM: i64 = 600;

    /// Counts operations in, or out once they are known to be done.
    pub fn add(&self, operations: i64) {
        self.0.fetch_add(operations, Ordering::Relaxed);
    }

    /// Whether the launch queue cannot be full.
    pub fn has_room(&self) -> bool {
        self.0.load(Ordering::Relaxed) < Backlog::ROOM
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_call_excludes_waiting_ones_and_the_other_way_round() {
        let waiting = Waiting::begin();
        assert!(Short::begin().is_none());
        drop(waiting);
        let short = Short::begin().expect("nobody waits");
        let waiter = std::thread::spawn(|| drop(Waiting::begin()));
        assert!(!waiter.is_finished());
        drop(short);
        waiter.join().expect("the waiter got through");
        assert!(Short::begin().is_some());
    }

    #[test]
    fn a_backlog_has_room_until_it_is_full() {
        let backlog = Backlog::default();
        backlog.add(Backlog::ROOM);
        assert!(!backlog.has_room());
        backlog.add(-1);
        assert!(backlog.has_room());
    }
}
