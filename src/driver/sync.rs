//! Locks and atomics of the parts that loom checks in every order in which threads can meet, see
//! [`interleavings`](super::interleavings). Everywhere else they are the standard library's.

#[cfg(all(test, loom))]
pub use loom::sync::{atomic, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
#[cfg(not(all(test, loom)))]
pub use std::sync::{atomic, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
