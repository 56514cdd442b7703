//! Handles: numbers that stand for live objects, and are never used again.

use crate::ledger::{self, Kind};
use crate::status::{Result, CONTEXT_IS_DESTROYED, INVALID_HANDLE};
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

/// Locks, also after another thread panicked while it held the lock.
pub fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|e| e.into_inner())
}

/// Looks like an address and never meets one.
static NEXT: AtomicUsize = AtomicUsize::new(0x5100_0000_0000);

/// A number for a new object.
pub fn fresh_handle() -> usize {
    NEXT.fetch_add(0x40, Ordering::Relaxed)
}

/// The live objects of one kind.
pub struct Table<T> {
    kind: Kind,
    live: Mutex<Option<HashMap<usize, Arc<T>>>>,
}

impl<T> Table<T> {
    /// An empty table.
    pub const fn new(kind: Kind) -> Self {
        Table {
            kind,
            live: Mutex::new(None),
        }
    }

    /// Adds an object and gives its handle.
    pub fn insert(&self, object: Arc<T>) -> usize {
        let handle = fresh_handle();
        self.insert_as(handle, object);
        handle
    }

    /// Adds an object under a handle that was made before.
    pub fn insert_as(&self, handle: usize, object: Arc<T>) {
        ledger::made(self.kind);
        lock(&self.live)
            .get_or_insert_with(HashMap::new)
            .insert(handle, object);
    }

    /// The object with a handle.
    pub fn get(&self, handle: usize) -> Result<Arc<T>> {
        let found = lock(&self.live)
            .as_ref()
            .and_then(|live| live.get(&handle).cloned());
        found.ok_or_else(|| {
            if handle != 0 {
                ledger::bad_handle();
            }
            INVALID_HANDLE
        })
    }

    /// Takes the object out: its handle is dead from now on.
    pub fn remove(&self, handle: usize) -> Result<Arc<T>> {
        let taken = lock(&self.live)
            .as_mut()
            .and_then(|live| live.remove(&handle));
        match taken {
            Some(object) => {
                ledger::destroyed(self.kind);
                Ok(object)
            }
            None => {
                if handle != 0 {
                    ledger::bad_handle();
                }
                Err(INVALID_HANDLE)
            }
        }
    }

    /// Takes out all objects that `of` picks: their context goes.
    pub fn remove_where(&self, of: impl Fn(&T) -> bool) -> Vec<Arc<T>> {
        let mut live = lock(&self.live);
        let Some(live) = live.as_mut() else {
            return Vec::new();
        };
        let handles: Vec<usize> = live
            .iter()
            .filter(|(_, o)| of(o))
            .map(|(h, _)| *h)
            .collect();
        handles
            .into_iter()
            .filter_map(|handle| live.remove(&handle))
            .inspect(|_| ledger::destroyed(self.kind))
            .collect()
    }

    /// Every live object.
    pub fn all(&self) -> Vec<Arc<T>> {
        lock(&self.live)
            .as_ref()
            .map(|live| live.values().cloned().collect())
            .unwrap_or_default()
    }
}

/// What an operation on a dead context answers.
pub const DEAD_CONTEXT: i32 = CONTEXT_IS_DESTROYED;
