//! Memory that nodes of graphs make and free: its address is known from the start, it is live only
//! between the node that makes it and what frees it.

use super::heap::write;
use super::{allocate, changed, Block, Kind};
use crate::status::{Result, INVALID_VALUE, OUT_OF_MEMORY};
use crate::table::lock;
use crate::{device, ledger};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};

/// Memory of an allocation node.
pub struct GraphMemory {
    /// Its address.
    pub address: u64,
    /// Bytes.
    pub size: u64,
    /// The device that it is on.
    pub device: i32,
    /// Whether a launch has made it and nothing was told to free it.
    outstanding: AtomicBool,
}

static KNOWN: Mutex<Option<HashMap<u64, Weak<GraphMemory>>>> = Mutex::new(None);
/// What was made and not freed: it can be freed also when its graph is gone.
static OUTSTANDING: Mutex<Option<HashMap<u64, Arc<GraphMemory>>>> = Mutex::new(None);
/// Bytes on each device.
static USED: [AtomicU64; device::MOST] = [const { AtomicU64::new(0) }; device::MOST];
static HIGH: [AtomicU64; device::MOST] = [const { AtomicU64::new(0) }; device::MOST];

impl GraphMemory {
    /// Takes an address for memory that a launch will make.
    pub fn reserve(size: u64, device: i32) -> Result<Arc<GraphMemory>> {
        if size > super::total() {
            return Err(OUT_OF_MEMORY);
        }
        let mut block = Block::new(size, device, 0, Kind::Graph);
        block.live = false;
        let memory = Arc::new(GraphMemory {
            address: allocate(block)?,
            size,
            device,
            outstanding: AtomicBool::new(false),
        });
        lock(&KNOWN)
            .get_or_insert_with(HashMap::new)
            .insert(memory.address, Arc::downgrade(&memory));
        Ok(memory)
    }

    /// A launch will make it.
    pub fn promise(self: &Arc<Self>) {
        self.outstanding.store(true, Ordering::Release);
        lock(&OUTSTANDING)
            .get_or_insert_with(HashMap::new)
            .insert(self.address, self.clone());
    }

    /// Something will free it. An error if nothing is there to be freed.
    pub fn give_up(&self) -> Result<()> {
        if !self.outstanding.swap(false, Ordering::AcqRel) {
            return Err(INVALID_VALUE);
        }
        // Dropped after the lock.
        let _outstanding = lock(&OUTSTANDING)
            .as_mut()
            .and_then(|all| all.remove(&self.address));
        Ok(())
    }

    /// Whether it was made, or will be, and not freed.
    pub fn is_outstanding(&self) -> bool {
        self.outstanding.load(Ordering::Acquire)
    }

    /// Makes it.
    pub fn make(&self) -> Result<()> {
        write().set_live(self.address, true)?;
        changed();
        ledger::made(ledger::Kind::AsyncMemory);
        let slot = super::slot(self.device);
        let used = USED[slot].fetch_add(self.size, Ordering::Relaxed) + self.size;
        HIGH[slot].fetch_max(used, Ordering::Relaxed);
        Ok(())
    }

    /// Frees it.
    pub fn unmake(&self) -> Result<()> {
        write().set_live(self.address, false)?;
        changed();
        ledger::destroyed(ledger::Kind::AsyncMemory);
        USED[super::slot(self.device)].fetch_sub(self.size, Ordering::Relaxed);
        Ok(())
    }
}

impl Drop for GraphMemory {
    fn drop(&mut self) {
        // Memory that nothing freed stays where it is: the program has its address.
        if !self.is_outstanding() {
            if let Some(known) = lock(&KNOWN).as_mut() {
                known.remove(&self.address);
            }
            write().retire(self.address);
            changed();
        }
    }
}

/// The memory of a graph at an address.
pub fn at(address: u64) -> Option<Arc<GraphMemory>> {
    lock(&KNOWN).as_ref()?.get(&address)?.upgrade()
}

/// Bytes of a device in use by graphs now, and the most so far.
pub fn usage(device: i32) -> (u64, u64) {
    let slot = super::slot(device);
    let read = |bytes: &AtomicU64| bytes.load(Ordering::Relaxed);
    (read(&USED[slot]), read(&HIGH[slot]))
}

/// Forgets the most so far.
pub fn reset_high(device: i32) {
    let (used, _) = usage(device);
    HIGH[super::slot(device)].store(used, Ordering::Relaxed);
}
