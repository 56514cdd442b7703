//! Locks and atomics of the parts that loom checks in every order in which threads can meet, see
//! [`interleavings`](super::interleavings). Everywhere else they are the standard library's.

#[cfg(all(test, loom))]
pub use loom::sync::{atomic, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
#[cfg(all(test, loom))]
pub use loom::thread::yield_now;
#[cfg(not(all(test, loom)))]
pub use std::sync::{atomic, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
#[cfg(not(all(test, loom)))]
pub use std::thread::yield_now;

/// Loom knows the total order of `SeqCst` from fences alone: one after each such operation that counts on it.
#[inline]
pub fn in_total_order<T>(value: T) -> T {
    #[cfg(all(test, loom))]
    loom::sync::atomic::fence(atomic::Ordering::SeqCst);
    value
}
