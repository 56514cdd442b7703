//! Device memory: addresses that double as host addresses, and what is live where.
//!
//! Memory comes from one reserved range. Blocks are 256 bytes aligned with a gap of at least 256 bytes
//! after each, so that a step over the end meets nothing. Freed blocks are filled with a pattern and
//! rest for a while before their addresses are used again.

use crate::ledger::{self, Kind};
use crate::status::{Result, INVALID_VALUE, OUT_OF_MEMORY};
use crate::table::lock;
use cudagraph_ptx::Region;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, RwLock};

const ALIGN: u64 = 256;
/// Address space that is reserved; memory is taken from the host only when it is touched.
const RESERVED: usize = 1 << 42;
/// Bytes of freed blocks that rest before the oldest is used again.
const RESTING: u64 = 64 << 20;
/// What freed memory is filled with.
const POISON: u8 = 0xdd;
/// Freed blocks from this size on are given back to the host instead of being filled.
const LARGE: u64 = 1 << 20;

/// A live block.
#[derive(Clone, Copy, Debug)]
pub struct Block {
    /// First address.
    pub start: u64,
    /// Bytes.
    pub size: u64,
    /// Handle of the context it belongs to.
    pub context: usize,
    /// False for the variables of a module, which are not freed one by one.
    pub freeable: bool,
    /// Whether kernels may write to it.
    pub writable: bool,
}

#[derive(Default)]
struct Heap {
    live: BTreeMap<u64, Block>,
    bytes: u64,
    next: u64,
    end: u64,
    resting: VecDeque<(u64, u64)>,
    resting_bytes: u64,
    reusable: HashMap<u64, Vec<u64>>,
    /// The latest frees, for reports.
    freed: VecDeque<Block>,
}

static HEAP: OnceLock<RwLock<Heap>> = OnceLock::new();
static EPOCH: AtomicU64 = AtomicU64::new(1);

fn heap() -> &'static RwLock<Heap> {
    HEAP.get_or_init(|| {
        let mut heap = Heap::default();
        let mut size = RESERVED;
        while size >= 1 << 32 {
            // SAFETY: reserves fresh addresses; nothing is replaced.
            let base = unsafe {
                libc::mmap(
                    std::ptr::null_mut(),
                    size,
                    libc::PROT_READ | libc::PROT_WRITE,
                    libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                    -1,
                    0,
                )
            };
            if base != libc::MAP_FAILED {
                heap.next = (base as u64).next_multiple_of(ALIGN);
                heap.end = base as u64 + size as u64;
                break;
            }
            size /= 2;
        }
        RwLock::new(heap)
    })
}

/// Bytes that the device has: `CUDAGRAPH_SIM_MEMORY` (with K, M or G), an H200's unless set.
pub fn total() -> u64 {
    static TOTAL: OnceLock<u64> = OnceLock::new();
    *TOTAL.get_or_init(|| {
        let text = std::env::var("CUDAGRAPH_SIM_MEMORY").unwrap_or_default();
        let digits = text.trim_end_matches(['K', 'M', 'G']);
        let unit = match text.as_bytes().last() {
            Some(b'K') => 1 << 10,
            Some(b'M') => 1 << 20,
            Some(b'G') => 1 << 30,
            _ => 1,
        };
        digits
            .parse::<u64>()
            .map_or(150_754_820_096, |n| n.saturating_mul(unit))
    })
}

/// Bytes of live blocks.
pub fn bytes_live() -> u64 {
    heap().read().unwrap_or_else(|e| e.into_inner()).bytes
}

/// Allocates a block.
pub fn allocate(size: u64, context: usize, freeable: bool) -> Result<u64> {
    if size == 0 {
        return Err(INVALID_VALUE);
    }
    let mut heap = heap().write().unwrap_or_else(|e| e.into_inner());
    if size > total() || heap.bytes + size > total() {
        return Err(OUT_OF_MEMORY);
    }
    let extent = size.next_multiple_of(ALIGN) + ALIGN;
    let start = match heap.reusable.get_mut(&extent).and_then(Vec::pop) {
        Some(start) => start,
        None if heap.next + extent <= heap.end => {
            heap.next += extent;
            heap.next - extent
        }
        None => return Err(OUT_OF_MEMORY),
    };
    heap.bytes += size;
    heap.live.insert(
        start,
        Block {
            start,
            size,
            context,
            freeable,
            writable: true,
        },
    );
    if freeable {
        ledger::made(Kind::Memory);
    }
    EPOCH.fetch_add(1, Ordering::Release);
    Ok(start)
}

/// Frees the block that starts at an address.
pub fn free(start: u64) -> Result<()> {
    let mut heap = heap().write().unwrap_or_else(|e| e.into_inner());
    match heap.live.get(&start) {
        Some(block) if block.freeable => {}
        _ => {
            ledger::bad_handle();
            return Err(INVALID_VALUE);
        }
    }
    ledger::destroyed(Kind::Memory);
    heap.retire(start);
    Ok(())
}

/// Frees a module's variable.
pub fn free_variable(start: u64) {
    heap()
        .write()
        .unwrap_or_else(|e| e.into_inner())
        .retire(start);
}

/// Frees everything of a context that goes.
pub fn free_context(context: usize) {
    let mut heap = heap().write().unwrap_or_else(|e| e.into_inner());
    let blocks: Vec<Block> = heap
        .live
        .values()
        .filter(|block| block.context == context)
        .copied()
        .collect();
    for block in blocks {
        if block.freeable {
            ledger::destroyed(Kind::Memory);
        }
        heap.retire(block.start);
    }
}

impl Heap {
    fn retire(&mut self, start: u64) {
        let Some(block) = self.live.remove(&start) else {
            return;
        };
        EPOCH.fetch_add(1, Ordering::Release);
        self.bytes -= block.size;
        // SAFETY: the block lies in the reserved range and nobody else's data does.
        unsafe {
            if block.size >= LARGE {
                let page = 4096;
                let from = start.next_multiple_of(page);
                let to = (start + block.size) / page * page;
                libc::madvise(from as *mut _, (to - from) as usize, libc::MADV_DONTNEED);
            } else {
                std::ptr::write_bytes(start as *mut u8, POISON, block.size as usize);
            }
        }
        let extent = block.size.next_multiple_of(ALIGN) + ALIGN;
        self.resting.push_back((start, extent));
        self.resting_bytes += extent;
        while self.resting_bytes > RESTING {
            let Some((start, extent)) = self.resting.pop_front() else {
                break;
            };
            self.resting_bytes -= extent;
            self.reusable.entry(extent).or_default().push(start);
        }
        self.freed.push_back(block);
        if self.freed.len() > 1024 {
            self.freed.pop_front();
        }
    }

    fn holding(&self, address: u64) -> Option<Block> {
        let (_, block) = self.live.range(..=address).next_back()?;
        (address < block.start + block.size).then_some(*block)
    }
}

/// The live block that holds an address.
pub fn block_at(address: u64) -> Option<Block> {
    heap()
        .read()
        .unwrap_or_else(|e| e.into_inner())
        .holding(address)
}

/// Whether `size` bytes at an address are inside one live block.
pub fn is_valid(address: u64, size: u64) -> bool {
    size == 0 || block_at(address).is_some_and(|b| size <= b.start + b.size - address)
}

/// What is near an address, for reports.
pub fn describe(address: u64) -> String {
    let heap = heap().read().unwrap_or_else(|e| e.into_inner());
    if let Some(b) = heap.freed.iter().rev().find(|b| {
        address >= b.start && address < b.start + b.size && !heap.live.contains_key(&b.start)
    }) {
        return format!("it is in freed memory: {} bytes at 0x{:x}", b.size, b.start);
    }
    match heap.live.range(..=address).next_back() {
        Some((_, b)) if address < b.start + b.size => {
            format!("it is in live memory: {} bytes at 0x{:x}", b.size, b.start)
        }
        Some((_, b)) => format!(
            "the nearest live memory before it has {} bytes at 0x{:x} and ends {} bytes earlier",
            b.size,
            b.start,
            address - (b.start + b.size)
        ),
        None => "no live memory is before it".to_string(),
    }
}

/// Device memory as running kernels see it.
pub struct DeviceMemory;

impl cudagraph_ptx::Memory for DeviceMemory {
    fn region(&self, address: u64) -> Option<Region> {
        block_at(address).map(|b| Region {
            start: b.start,
            end: b.start + b.size,
            host: b.start as *mut u8,
            writable: b.writable,
        })
    }

    fn epoch(&self) -> u64 {
        EPOCH.load(Ordering::Acquire)
    }
}

/// Copies bytes out of host memory that may not be there.
pub fn read_host(address: usize, size: usize) -> Result<Vec<u8>> {
    let mut bytes = vec![0u8; size];
    transfer(address, bytes.as_mut_ptr() as usize, size, false)?;
    Ok(bytes)
}

/// Copies bytes into host memory that may not be there.
pub fn write_host(address: usize, source: u64, size: usize) -> Result<()> {
    transfer(address, source as usize, size, true)
}

/// Moves bytes between this process's own addresses by way of the kernel, which answers an error for
/// a bad address where a plain copy would end the process.
fn transfer(host: usize, local: usize, size: usize, to_host: bool) -> Result<()> {
    let mut done = 0;
    while done < size {
        let length = (size - done).min(1 << 30);
        let at = |base: usize| libc::iovec {
            iov_base: (base + done) as *mut _,
            iov_len: length,
        };
        let (local, host) = (at(local), at(host));
        // SAFETY: the kernel checks both ranges; `local` is valid by the caller.
        let moved = unsafe {
            let me = libc::getpid();
            if to_host {
                libc::process_vm_writev(me, &local, 1, &host, 1, 0)
            } else {
                libc::process_vm_readv(me, &local, 1, &host, 1, 0)
            }
        };
        if moved > 0 {
            done += moved as usize;
            continue;
        }
        let error = std::io::Error::last_os_error().raw_os_error();
        if error == Some(libc::EFAULT) || moved == 0 {
            return Err(INVALID_VALUE);
        }
        // The call is not permitted here: copy without the check.
        let (local, host) = (local.iov_base.cast::<u8>(), host.iov_base.cast::<u8>());
        // SAFETY: the program vouches for its own pointer.
        unsafe {
            if to_host {
                std::ptr::copy(local, host, length);
            } else {
                std::ptr::copy(host, local, length);
            }
        }
        done += length;
    }
    Ok(())
}

/// Pinned host memory that the driver handed out, by address.
static PINNED: Mutex<Option<HashMap<usize, usize>>> = Mutex::new(None);

/// Allocates pinned host memory.
pub fn allocate_host(size: usize) -> Result<usize> {
    if size == 0 {
        return Err(INVALID_VALUE);
    }
    let layout = std::alloc::Layout::from_size_align(size, 4096).map_err(|_| OUT_OF_MEMORY)?;
    // SAFETY: the size is not zero.
    let address = unsafe { std::alloc::alloc_zeroed(layout) } as usize;
    if address == 0 {
        return Err(OUT_OF_MEMORY);
    }
    ledger::made(Kind::Host);
    lock(&PINNED)
        .get_or_insert_with(HashMap::new)
        .insert(address, size);
    Ok(address)
}

/// Frees pinned host memory.
pub fn free_host(address: usize) -> Result<()> {
    let size = lock(&PINNED)
        .as_mut()
        .and_then(|p| p.remove(&address))
        .ok_or(INVALID_VALUE)?;
    ledger::destroyed(Kind::Host);
    let layout = std::alloc::Layout::from_size_align(size, 4096).map_err(|_| INVALID_VALUE)?;
    // SAFETY: `allocate_host` made it with this layout.
    unsafe { std::alloc::dealloc(address as *mut u8, layout) };
    Ok(())
}
