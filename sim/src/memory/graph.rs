//! Memory that nodes of graphs make and free: its address is known from the start, it is live only
//! between the node that makes it and what frees it.
//!
//! Room on the device is found when a graph is launched: a launch for which there is none is refused, and
//! the nodes of one that is not find what they need.

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
        write().graphs[super::slot(self.device)].out += self.size;
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
        write().graphs[super::slot(self.device)].out -= self.size;
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
    pub fn make(&self) {
        write().set_live(self.address, true);
        changed();
        ledger::made(ledger::Kind::AsyncMemory);
        let slot = super::slot(self.device);
        let used = USED[slot].fetch_add(self.size, Ordering::Relaxed) + self.size;
        HIGH[slot].fetch_max(used, Ordering::Relaxed);
    }

    /// Frees it.
    pub fn unmake(&self) {
        write().set_live(self.address, false);
        changed();
        ledger::destroyed(ledger::Kind::AsyncMemory);
        USED[super::slot(self.device)].fetch_sub(self.size, Ordering::Relaxed);
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

/// What graphs need of a device, in the order of the calls: what is to be freed by an earlier call is there for
/// a later one.
#[derive(Default)]
pub(super) struct Demand {
    /// Bytes that were made, or will be, and that nothing was told to free.
    out: u64,
    /// For each stream the launches that are pending there, and the most that is out while each of them runs.
    pending: HashMap<u64, HashMap<u64, u64>>,
}

impl Demand {
    /// Launches of one stream use the same room in turn, those of several may run at once.
    pub(super) fn bytes(&self) -> u64 {
        let most = self.pending.values().filter_map(|of| of.values().max());
        let above = most.map(|most| most.saturating_sub(self.out));
        self.out + above.sum::<u64>()
    }

    fn add(&mut self, stream: u64, launch: u64, most: u64) {
        let of_stream = self.pending.entry(stream).or_default();
        of_stream.insert(launch, most);
    }

    fn remove(&mut self, stream: u64, launch: u64) {
        if let Some(of_stream) = self.pending.get_mut(&stream) {
            of_stream.remove(&launch);
            if of_stream.is_empty() {
                self.pending.remove(&stream);
            }
        }
    }
}

/// What a launch needs of one device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Need {
    /// The device.
    pub device: i32,
    /// Bytes by which what is out goes up while the launch runs, at the most.
    pub bytes: u64,
}

/// Room for a launch, until it is done.
pub struct Room {
    stream: u64,
    launch: u64,
    needs: Vec<Need>,
}

impl Room {
    /// Takes room for a launch on the stream with a number, which frees some memory first.
    pub fn take(stream: u64, needs: &[Need], freed_first: &[&Arc<GraphMemory>]) -> Result<Room> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let launch = NEXT.fetch_add(1, Ordering::Relaxed);
        let mut room = Room {
            stream,
            launch,
            needs: Vec::new(),
        };
        for need in needs {
            let on_device = freed_first.iter().filter(|m| m.device == need.device);
            let freed: u64 = on_device.map(|memory| memory.size).sum();
            let mut heap = write();
            let taken = heap.taken(need.device);
            let demand = &mut heap.graphs[super::slot(need.device)];
            let most = demand.out.saturating_sub(freed) + need.bytes;
            demand.add(stream, launch, most);
            // What is there already may be used in any case.
            let now = heap.taken(need.device);
            drop(heap);
            // Given back with the rest if there is too little.
            room.needs.push(*need);
            if now > taken && now > super::total() {
                return Err(OUT_OF_MEMORY);
            }
        }
        Ok(room)
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        for need in &self.needs {
            write().graphs[super::slot(need.device)].remove(self.stream, self.launch);
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
