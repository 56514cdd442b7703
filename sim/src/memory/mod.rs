//! Device memory: addresses that double as host addresses, and what is live where.
//!
//! Memory comes from one reserved range. Blocks start at multiples of 256 with a gap of at least 256
//! bytes after each, so that a step over the end meets nothing. Freed blocks are filled with a pattern
//! and rest for a while before their addresses are used again.

pub mod graph;
mod heap;
pub mod host;
pub mod pool;

use crate::status::{Result, CONTEXT_IS_DESTROYED, INVALID_VALUE};
use crate::{device, ledger};
use cudagraph_ptx::Region;
pub use heap::{is_reserved, total};
use heap::{read, write};
use std::sync::atomic::{AtomicU64, Ordering};

/// What a block is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `cuMemAlloc`.
    Plain,
    /// `cuMemAllocManaged`.
    Managed,
    /// `cuMemAllocAsync`, from the pool with this number.
    Async(usize),
    /// Made and freed by nodes of graphs.
    Graph,
    /// A variable of a module.
    Variable,
    /// Pinned host memory.
    Host,
    /// The program's own host memory, registered.
    Registered,
}

impl Kind {
    fn ledger(self) -> Option<ledger::Kind> {
        match self {
            Kind::Plain | Kind::Managed => Some(ledger::Kind::Memory),
            Kind::Async(_) | Kind::Graph => Some(ledger::Kind::AsyncMemory),
            Kind::Host | Kind::Registered => Some(ledger::Kind::HostMemory),
            Kind::Variable => None,
        }
    }

    /// Words for reports.
    pub fn text(self) -> &'static str {
        match self {
            Kind::Plain => "device memory",
            Kind::Managed => "managed memory",
            Kind::Async(_) => "stream-ordered memory",
            Kind::Graph => "memory of a graph",
            Kind::Variable => "a variable of a module",
            Kind::Host => "pinned host memory",
            Kind::Registered => "registered host memory",
        }
    }

    /// Whether it takes memory of the device.
    fn is_on_device(self) -> bool {
        !matches!(self, Kind::Host | Kind::Registered)
    }
}

/// A block.
#[derive(Clone, Copy, Debug)]
pub struct Block {
    /// First address.
    pub start: u64,
    /// Bytes.
    pub size: u64,
    /// The device that it is on.
    pub device: i32,
    /// Handle of the context it goes with; 0 for memory of graphs.
    pub context: usize,
    /// What it is.
    pub kind: Kind,
    /// Whether kernels may write to it.
    pub writable: bool,
    /// False for memory of a graph while no launch has made it.
    pub live: bool,
    /// Whether the program has freed it in stream order, and the stream has not come to that yet.
    pub given_up: bool,
    /// Flags as given (host memory).
    pub flags: u32,
}

impl Block {
    /// A block of a kind, to be given an address.
    pub fn new(size: u64, device: i32, context: usize, kind: Kind) -> Self {
        Block {
            start: 0,
            size,
            device,
            context,
            kind,
            writable: true,
            live: true,
            given_up: false,
            flags: 0,
        }
    }

    fn end(&self) -> u64 {
        self.start + self.size
    }

    /// Whether its bytes count as used. Those of graphs count as what launches need.
    fn is_counted(&self) -> bool {
        self.live && self.kind.is_on_device() && self.kind != Kind::Graph
    }

    fn holds(&self, address: u64) -> bool {
        (self.start..self.end()).contains(&address)
    }

    /// Counts that it is gone.
    fn went(&self) {
        if self.live && !self.given_up {
            self.kind.ledger().into_iter().for_each(ledger::destroyed);
        }
        if let (Kind::Async(pool), false) = (self.kind, self.given_up) {
            if let Some(pool) = pool::find(pool) {
                pool.give_back(self.size);
            }
        }
    }

    /// Whether the program may free it by itself.
    pub fn is_freeable(&self) -> bool {
        matches!(
            self.kind,
            Kind::Plain | Kind::Managed | Kind::Async(_) | Kind::Graph
        )
    }
}

/// Changes whenever a block appears or goes.
static EPOCH: AtomicU64 = AtomicU64::new(1);

fn changed() {
    EPOCH.fetch_add(1, Ordering::Release);
}

/// Bytes of all devices that are in use.
pub fn bytes_live() -> u64 {
    let heap = read();
    (0..device::MOST as i32).map(|d| heap.taken(d)).sum()
}

/// Bytes of one device that are in use.
pub fn used(device: i32) -> u64 {
    read().taken(device)
}

/// Allocates a block: its address.
pub fn allocate(block: Block) -> Result<u64> {
    if block.size == 0 {
        return Err(INVALID_VALUE);
    }
    let start = write().place(block)?;
    if block.live {
        block.kind.ledger().into_iter().for_each(ledger::made);
    }
    changed();
    Ok(start)
}

/// Takes a block out that starts at an address: it is dead from now on.
pub fn free(start: u64, of: impl Fn(&Block) -> bool) -> Result<()> {
    let mut heap = write();
    match heap.blocks.get(&start) {
        Some(block) if of(block) && !block.given_up => {
            let block = *block;
            heap.retire(start);
            block.went();
            changed();
            Ok(())
        }
        _ if heap.orphaned.contains(&start) => Err(CONTEXT_IS_DESTROYED),
        _ => {
            ledger::bad_handle();
            Err(INVALID_VALUE)
        }
    }
}

/// Frees stream-ordered memory as far as the program is concerned: it lives until [`retire`].
pub fn give_up(start: u64) -> Result<()> {
    let mut heap = write();
    let orphaned = heap.orphaned.contains(&start);
    match heap.blocks.get_mut(&start) {
        Some(block) if matches!(block.kind, Kind::Async(_) | Kind::Plain) && !block.given_up => {
            block.went();
            block.given_up = true;
            Ok(())
        }
        None if orphaned => Err(CONTEXT_IS_DESTROYED),
        _ => {
            ledger::bad_handle();
            Err(INVALID_VALUE)
        }
    }
}

/// Takes out memory that was given up before.
pub fn retire(start: u64) {
    let mut heap = write();
    if heap.blocks.get(&start).is_some_and(|block| block.given_up) {
        heap.retire(start);
        changed();
    }
}

/// Frees everything of a context that goes.
pub fn free_context(context: usize) {
    let mut heap = write();
    let blocks = heap
        .blocks
        .values()
        .filter(|block| block.context == context);
    let blocks: Vec<Block> = blocks.copied().collect();
    for block in blocks {
        heap.retire(block.start);
        heap.orphaned.insert(block.start);
        block.went();
    }
    changed();
}

/// The block that holds an address, live or reserved.
pub fn block_at(address: u64) -> Option<Block> {
    read().holding(address)
}

/// The block that starts at an address. Otherwise the error of freeing it, with the misuse counted.
pub fn block_from(start: u64) -> Result<Block> {
    let heap = read();
    match heap.blocks.get(&start) {
        Some(block) => Ok(*block),
        None if heap.orphaned.contains(&start) => Err(CONTEXT_IS_DESTROYED),
        None => {
            ledger::bad_handle();
            Err(INVALID_VALUE)
        }
    }
}

/// Whether `size` bytes at an address lie in one block, live or reserved.
pub fn is_known(address: u64, size: u64) -> bool {
    size == 0 || block_at(address).is_some_and(|b| size <= b.end() - address)
}

/// Whether `size` bytes at an address lie in one live block.
pub fn is_live(address: u64, size: u64) -> bool {
    size == 0 || block_at(address).is_some_and(|b| b.live && size <= b.end() - address)
}

/// The largest blocks that the program could still free.
pub fn largest_live(count: usize) -> Vec<(u64, u64, &'static str)> {
    let heap = read();
    let wanted = |b: &&Block| b.live && !b.given_up && b.kind != Kind::Variable;
    let blocks = heap.blocks.values().filter(wanted);
    let mut found: Vec<_> = blocks.map(|b| (b.start, b.size, b.kind.text())).collect();
    found.sort_by_key(|(_, size, _)| std::cmp::Reverse(*size));
    found.truncate(count);
    found
}

/// What is at or near an address, for reports.
pub fn describe(address: u64) -> String {
    let heap = read();
    let text = |b: &Block| format!("{} bytes of {} at 0x{:x}", b.size, b.kind.text(), b.start);
    if let Some(b) = heap.holding(address) {
        return match b.live {
            true => format!("0x{address:x} is in {}", text(&b)),
            false => format!("0x{address:x} is in {}, which no launch has made", text(&b)),
        };
    }
    if let Some(b) = heap.freed.iter().rev().find(|b| b.holds(address)) {
        let offset = address - b.start;
        return format!(
            "0x{address:x} is {offset} bytes into {}, freed before",
            text(b)
        );
    }
    let before = heap.blocks.range(..=address).next_back().map(|(_, b)| b);
    let after = heap.blocks.range(address..).next().map(|(_, b)| b);
    let behind = before.map(|b| (address - b.end(), "behind the end of", b));
    let ahead = after.map(|a| (a.start - address, "before", a));
    let nearest = behind.into_iter().chain(ahead).min_by_key(|(d, ..)| *d);
    match nearest.filter(|(distance, ..)| *distance < NEAR) {
        Some((distance, word, b)) => {
            format!("0x{address:x} is {distance} bytes {word} {}", text(b))
        }
        None if address < NEAR => {
            format!("0x{address:x} is no address: a null pointer and an offset?")
        }
        None => format!("0x{address:x} is near no allocation: memory of the host, or never set?"),
    }
}

/// How far from a block an address may be for the block to be named.
const NEAR: u64 = 1 << 20;

/// Device memory as the kernels of a context see it.
pub struct DeviceMemory {
    /// The context's device.
    pub device: i32,
    /// Devices whose memory it may use, one bit each.
    pub peers: u64,
}

impl DeviceMemory {
    fn reaches(&self, block: &Block) -> bool {
        block.device == self.device
            || !block.kind.is_on_device()
            || block.kind == Kind::Managed
            || match block.kind {
                Kind::Async(pool) => pool::find(pool).is_some_and(|p| p.is_open_to(self.device)),
                _ => self.peers >> block.device & 1 == 1,
            }
    }

    /// What is at or near an address, and whether the context may use it, for reports.
    pub fn describe(&self, address: u64) -> String {
        let mut text = describe(address);
        if let Some(block) = block_at(address).filter(|block| !self.reaches(block)) {
            let (there, here) = (block.device, self.device);
            text += &format!(" on device {there}, to which device {here} has no access");
        }
        text
    }
}

impl cudagraph_ptx::Memory for DeviceMemory {
    fn region(&self, address: u64) -> Option<Region> {
        let block = block_at(address)?;
        (block.live && self.reaches(&block)).then(|| Region {
            start: block.start,
            end: block.end(),
            host: block.start as *mut u8,
            writable: block.writable,
        })
    }

    fn epoch(&self) -> u64 {
        EPOCH.load(Ordering::Acquire)
    }
}

/// A device number as an index.
fn slot(device: i32) -> usize {
    (device.max(0) as usize).min(device::MOST - 1)
}
