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

use super::sync::atomic::{AtomicI64, AtomicU8, AtomicUsize, Ordering};
use super::sync::{in_total_order, yield_now};
use std::cell::Cell;

/// One thread's place, on a cache line of its own.
#[repr(align(128))]
struct Place(AtomicU8);

/// Where calls at once and calls that wait meet. Each thread with calls at once has a place; any more than
/// `PLACES` share them, and may find theirs taken.
pub struct Crossing<const PLACES: usize> {
    under_way: [Place; PLACES],
    /// Places that any thread has got: the others need no look.
    given_out: AtomicUsize,
    waiting: AtomicUsize,
}

impl<const PLACES: usize> Crossing<PLACES> {
    /// With nobody there.
    #[cfg(not(all(test, loom)))]
    const fn new() -> Crossing<PLACES> {
        Crossing {
            under_way: [const { Place(AtomicU8::new(0)) }; PLACES],
            given_out: AtomicUsize::new(0),
            waiting: AtomicUsize::new(0),
        }
    }

    /// With nobody there.
    #[cfg(all(test, loom))]
    pub fn new() -> Crossing<PLACES> {
        Crossing {
            under_way: std::array::from_fn(|_| Place(AtomicU8::new(0))),
            given_out: AtomicUsize::new(0),
            waiting: AtomicUsize::new(0),
        }
    }

    /// A place for a thread, before its first call at once.
    pub fn give_place(&self) -> usize {
        in_total_order(self.given_out.fetch_add(1, Ordering::SeqCst))
    }

    /// A call at once on the thread of this place. Nothing if a call that waits is under way.
    #[inline]
    pub fn begin_short(&self, place: usize) -> Option<Short<'_>> {
        let place = &self.under_way[place % PLACES].0;
        if in_total_order(place.swap(1, Ordering::SeqCst)) != 0 {
            // Another thread shares the place.
            return None;
        }
        let short = Short(place);
        (self.waiting.load(Ordering::SeqCst) == 0).then_some(short)
    }

    /// Announces a call that waits, and lets those end that count on its absence: each is one launch.
    pub fn begin_waiting(&self) -> Waiting<'_> {
        in_total_order(self.waiting.fetch_add(1, Ordering::SeqCst));
        // A thread that gets its place later finds this call waiting.
        let given_out = self.given_out.load(Ordering::SeqCst);
        for place in self.under_way.iter().take(given_out) {
            while place.0.load(Ordering::SeqCst) != 0 {
                yield_now();
            }
        }
        Waiting(&self.waiting)
    }
}

#[cfg(not(all(test, loom)))]
static CROSSING: Crossing<64> = Crossing::new();

#[cfg(all(test, loom))]
loom::lazy_static! { static ref CROSSING: Crossing<1> = Crossing::new(); }

/// The place of the calling thread.
fn place() -> usize {
    thread_local! { static PLACE: Cell<usize> = const { Cell::new(usize::MAX) }; }
    PLACE.with(|place| {
        if place.get() == usize::MAX {
            place.set(CROSSING.give_place());
        }
        place.get()
    })
}

/// While this lives no call that waits is under way on any thread, and no memory that was found alive is
/// given back: whoever frees it announces a call that waits, after having marked it dead.
pub struct Short<'a>(&'a AtomicU8);

impl Short<'static> {
    /// Nothing if a call that waits is under way.
    #[inline]
    pub fn begin() -> Option<Short<'static>> {
        CROSSING.begin_short(place())
    }
}

impl Drop for Short<'_> {
    fn drop(&mut self) {
        self.0.store(0, Ordering::Release);
    }
}

/// A call that may wait for the device. Made with the OCaml runtime let go.
pub struct Waiting<'a>(&'a AtomicUsize);

impl Waiting<'static> {
    /// Announces the call, and lets the calls at once end that are under way.
    pub fn begin() -> Waiting<'static> {
        CROSSING.begin_waiting()
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Release);
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
    use std::sync::Arc;

    #[test]
    fn a_short_call_excludes_waiting_ones_and_the_other_way_round() {
        let crossing = Arc::new(Crossing::<2>::new());
        let [place, _, shares_it] = std::array::from_fn(|_| crossing.give_place());
        let waiting = crossing.begin_waiting();
        assert!(crossing.begin_short(place).is_none());
        drop(waiting);
        let short = crossing.begin_short(place).expect("nobody waits");
        assert!(crossing.begin_short(shares_it).is_none());
        let waiter = {
            let crossing = crossing.clone();
            std::thread::spawn(move || drop(crossing.begin_waiting()))
        };
        assert!(!waiter.is_finished());
        drop(short);
        waiter.join().expect("the waiter got through");
        assert!(crossing.begin_short(place).is_some());
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
