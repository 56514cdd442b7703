//! Handles: numbers that stand for live objects, and are never used again.

use crate::ledger::{self, Kind};
use crate::status::{Result, CONTEXT_IS_DESTROYED, INVALID_HANDLE};
use std::collections::{HashMap, HashSet};
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

/// The objects of one kind.
pub struct Table<T> {
    kind: Kind,
    objects: Mutex<Option<Objects<T>>>,
}

struct Objects<T> {
    live: HashMap<usize, Arc<T>>,
    /// Handles of objects that went with their context.
    orphaned: HashSet<usize>,
}

impl<T> Table<T> {
    /// An empty table.
    pub const fn new(kind: Kind) -> Self {
        Table {
            kind,
            objects: Mutex::new(None),
        }
    }

    fn with<R>(&self, f: impl FnOnce(&mut Objects<T>) -> R) -> R {
        f(lock(&self.objects).get_or_insert_with(|| Objects {
            live: HashMap::new(),
            orphaned: HashSet::new(),
        }))
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
        self.with(|objects| objects.live.insert(handle, object));
    }

    /// The object with a handle.
    pub fn get(&self, handle: usize) -> Result<Arc<T>> {
        self.with(|objects| match objects.live.get(&handle) {
            Some(object) => Ok(object.clone()),
            None => Err(objects.missing(handle)),
        })
    }

    /// Whether a handle is live; asking is no misuse.
    pub fn is_live(&self, handle: usize) -> bool {
        self.with(|objects| objects.live.contains_key(&handle))
    }

    /// Takes the object out: its handle is dead from now on.
    pub fn remove(&self, handle: usize) -> Result<Arc<T>> {
        self.with(|objects| match objects.live.remove(&handle) {
            Some(object) => {
                ledger::destroyed(self.kind);
                Ok(object)
            }
            None => Err(objects.missing(handle)),
        })
    }

    /// Takes out all objects that `of` picks: their context goes.
    pub fn remove_where(&self, of: impl Fn(&T) -> bool) -> Vec<Arc<T>> {
        self.with(|objects| {
            let picked = objects.live.iter().filter(|(_, object)| of(object));
            let handles: Vec<usize> = picked.map(|(handle, _)| *handle).collect();
            objects.orphaned.extend(&handles);
            let taken = handles
                .iter()
                .filter_map(|handle| objects.live.remove(handle));
            taken.inspect(|_| ledger::destroyed(self.kind)).collect()
        })
    }

    /// Every live object.
    pub fn all(&self) -> Vec<Arc<T>> {
        self.with(|objects| objects.live.values().cloned().collect())
    }
}

impl<T> Objects<T> {
    /// Why there is no such object: counts the misuse.
    fn missing(&self, handle: usize) -> i32 {
        if handle != 0 {
            ledger::bad_handle();
        }
        match self.orphaned.contains(&handle) {
            true => CONTEXT_IS_DESTROYED,
            false => INVALID_HANDLE,
        }
    }
}
