//! The reserved range and the blocks in it.

use super::graph::Demand;
use super::{slot, Block, Kind};
use crate::status::{Result, OUT_OF_MEMORY};
use crate::{device, report};
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::{OnceLock, RwLock, RwLockReadGuard, RwLockWriteGuard};

const ALIGN: u64 = 256;
/// Address space that is reserved; memory is taken from the host only when it is touched.
const RESERVED: u64 = 1 << 42;
/// Addresses become usable in steps of this size.
const STEP: u64 = 64 << 20;
/// What freed memory is filled with.
const POISON: u8 = 0xdd;
/// What new memory is filled with: a program that counts on zeros is wrong.
const FRESH: u8 = 0xcd;
/// Blocks from this size on are neither filled nor poisoned, but given back to the host when freed.
const LARGE: u64 = 1 << 20;
/// Bytes of small freed blocks that rest before the oldest is used again.
const RESTING_SMALL: u64 = 32 << 20;
/// The latest frees that reports can name.
const REMEMBERED: usize = 4096;

/// Blocks by their first address, and where the next ones go.
#[derive(Default)]
pub(super) struct Heap {
    pub(super) blocks: BTreeMap<u64, Block>,
    /// Bytes used on each device, but for memory of graphs.
    used: [u64; device::MOST],
    /// What graphs need of each device.
    pub(super) graphs: [Demand; device::MOST],
    /// Starts of blocks that went with their context.
    pub(super) orphaned: HashSet<u64>,
    /// The latest frees.
    pub(super) freed: VecDeque<Block>,
    base: u64,
    next: u64,
    usable: u64,
    end: u64,
    small: Resting,
    large: Resting,
    reusable: HashMap<u64, Vec<u64>>,
}

/// Freed extents whose addresses are not used for now.
#[derive(Default)]
struct Resting {
    extents: VecDeque<(u64, u64)>,
    bytes: u64,
}

static HEAP: OnceLock<RwLock<Heap>> = OnceLock::new();

fn heap() -> &'static RwLock<Heap> {
    HEAP.get_or_init(|| RwLock::new(Heap::reserve()))
}

pub(super) fn read() -> RwLockReadGuard<'static, Heap> {
    heap().read().unwrap_or_else(|e| e.into_inner())
}

pub(super) fn write() -> RwLockWriteGuard<'static, Heap> {
    heap().write().unwrap_or_else(|e| e.into_inner())
}

/// Whether an address is in the range that blocks come from.
pub fn is_reserved(address: u64) -> bool {
    let heap = read();
    (heap.base..heap.end).contains(&address)
}

/// Bytes that each device has: `CUDAGRAPH_SIM_MEMORY` (with K, M or G), an H200's unless set.
pub fn total() -> u64 {
    static TOTAL: OnceLock<u64> = OnceLock::new();
    *TOTAL.get_or_init(|| {
        let text = std::env::var("CUDAGRAPH_SIM_MEMORY").unwrap_or_default();
        if text.is_empty() {
            return TOTAL_OF_H200;
        }
        bytes(&text).unwrap_or_else(|| {
            report::say(&format!(
                "CUDAGRAPH_SIM_MEMORY: cannot read {text:?}: a number of bytes, with K, M or G"
            ));
            TOTAL_OF_H200
        })
    })
}

const TOTAL_OF_H200: u64 = 150_754_820_096;

/// A number of bytes, where K, M and G stand for powers of 1024.
fn bytes(text: &str) -> Option<u64> {
    let (digits, unit) = match text.as_bytes().last()? {
        b'K' => (&text[..text.len() - 1], 1 << 10),
        b'M' => (&text[..text.len() - 1], 1 << 20),
        b'G' => (&text[..text.len() - 1], 1 << 30),
        _ => (text, 1),
    };
    digits.parse::<u64>().ok()?.checked_mul(unit)
}

impl Heap {
    fn reserve() -> Heap {
        let mut heap = Heap::default();
        // All at once: who measures what a program leaves is not to find a list of ours that has grown.
        let most = RESTING_SMALL / (2 * ALIGN);
        heap.small.extents.reserve_exact(most as usize + 1);
        heap.freed.reserve_exact(REMEMBERED + 1);
        let mut size = RESERVED;
        while size >= 1 << 30 {
            // SAFETY: reserves fresh addresses; nothing is replaced.
            let base = unsafe {
                libc::mmap(
                    std::ptr::null_mut(),
                    size as usize,
                    libc::PROT_NONE,
                    libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                    -1,
                    0,
                )
            };
            if base != libc::MAP_FAILED {
                // Nearly all of it is empty: a core dump does not need it.
                #[cfg(target_os = "linux")]
                // SAFETY: the range was mapped just now.
                unsafe {
                    libc::madvise(base, size as usize, libc::MADV_DONTDUMP)
                };
                heap.base = base as u64;
                heap.next = heap.base + ALIGN;
                heap.usable = heap.base;
                heap.end = heap.base + size;
                break;
            }
            size /= 2;
        }
        heap
    }

    /// Bytes of a device that are not to be had.
    pub(super) fn taken(&self, device: i32) -> u64 {
        self.used[slot(device)] + self.graphs[slot(device)].bytes()
    }

    /// Finds an address for a block and makes it part of the heap.
    pub(super) fn place(&mut self, mut block: Block) -> Result<u64> {
        let left = total().saturating_sub(self.taken(block.device));
        if block.is_counted() && block.size > left {
            return Err(OUT_OF_MEMORY);
        }
        block.start = self.find(block.size)?;
        if block.is_counted() {
            self.used[slot(block.device)] += block.size;
        }
        self.blocks.insert(block.start, block);
        self.orphaned.remove(&block.start);
        if block.size < LARGE {
            fill(&block, if block.kind == Kind::Host { 0 } else { FRESH });
        }
        Ok(block.start)
    }

    fn find(&mut self, size: u64) -> Result<u64> {
        let extent = extent(size)?;
        if let Some(start) = self.reusable.get_mut(&extent).and_then(Vec::pop) {
            return Ok(start);
        }
        let end = self.next.checked_add(extent).filter(|end| *end <= self.end);
        let end = end.ok_or(OUT_OF_MEMORY)?;
        if end > self.usable {
            let until = end.next_multiple_of(STEP).min(self.end);
            // SAFETY: the range is ours and nothing lies in it yet.
            let failed = unsafe {
                libc::mprotect(
                    self.usable as *mut _,
                    (until - self.usable) as usize,
                    libc::PROT_READ | libc::PROT_WRITE,
                )
            };
            if failed != 0 {
                return Err(OUT_OF_MEMORY);
            }
            self.usable = until;
        }
        let start = self.next;
        self.next = end;
        Ok(start)
    }

    /// Adds memory of the program's own.
    pub(super) fn adopt(&mut self, block: Block) {
        self.blocks.insert(block.start, block);
    }

    /// Takes a block out.
    pub(super) fn retire(&mut self, start: u64) {
        let Some(block) = self.blocks.remove(&start) else {
            return;
        };
        if block.is_counted() {
            self.used[slot(block.device)] -= block.size;
        }
        self.freed.push_back(block);
        if self.freed.len() > REMEMBERED {
            self.freed.pop_front();
        }
        if block.kind == Kind::Registered {
            return;
        }
        empty(&block);
        let Ok(extent) = extent(block.size) else {
            return;
        };
        let (resting, most) = if block.size >= LARGE {
            // These hold addresses only, of which there are enough.
            (&mut self.large, (self.end - self.base) / 4)
        } else {
            (&mut self.small, RESTING_SMALL)
        };
        resting.extents.push_back((start, extent));
        resting.bytes += extent;
        while resting.bytes > most {
            let Some((start, extent)) = resting.extents.pop_front() else {
                break;
            };
            resting.bytes -= extent;
            self.reusable.entry(extent).or_default().push(start);
        }
    }

    /// Makes the memory of a graph live or not. There is room: the launch has taken it.
    pub(super) fn set_live(&mut self, start: u64, live: bool) {
        if let Some(block) = self.blocks.get_mut(&start) {
            if block.live && !live {
                empty(block);
            }
            block.live = live;
        }
    }

    pub(super) fn holding(&self, address: u64) -> Option<Block> {
        let (_, block) = self.blocks.range(..=address).next_back()?;
        block.holds(address).then_some(*block)
    }
}

/// What a block takes of the range, with the gap behind it.
fn extent(size: u64) -> Result<u64> {
    let rounded = size.checked_next_multiple_of(ALIGN);
    rounded
        .and_then(|r| r.checked_add(ALIGN))
        .ok_or(OUT_OF_MEMORY)
}

fn fill(block: &Block, byte: u8) {
    // SAFETY: the block lies in the usable part of the range, and it is nobody's but its own.
    unsafe { std::ptr::write_bytes(block.start as *mut u8, byte, block.size as usize) };
}

/// Makes the contents of a block useless.
fn empty(block: &Block) {
    if block.size < LARGE {
        fill(block, POISON);
        return;
    }
    let page = 4096;
    let from = block.start.next_multiple_of(page);
    let to = block.end() / page * page;
    // SAFETY: whole pages of the block, which nobody needs any more.
    unsafe { libc::madvise(from as *mut _, (to - from) as usize, libc::MADV_DONTNEED) };
}

#[cfg(test)]
mod tests {
    use super::bytes;

    #[test]
    fn sizes_are_read() {
        assert_eq!(bytes("64M"), Some(64 << 20));
        assert_eq!(bytes("3K"), Some(3072));
        assert_eq!(bytes("2G"), Some(2 << 30));
        assert_eq!(bytes("1000"), Some(1000));
        for nonsense in [
            "",
            "M",
            "64MB",
            "64KM",
            "-1",
            "1.5G",
            "99999999999999999999",
            "99999999999G",
        ] {
            assert_eq!(bytes(nonsense), None, "{nonsense:?}");
        }
    }
}
