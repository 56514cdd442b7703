//! Memory that a graph allocates when it is launched, from an allocation made inside a capture.
//!
//! The address is fixed when the allocation is captured, and valid from the node that allocates it to
//! whatever frees it: a node of the same or another graph, an ordinary free, or the next launch of an
//! exec that frees by itself. The driver refuses to launch a graph whose memory is still allocated.

use super::context::Context;
use super::release::{self, Release};
use super::{Error, Result};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

/// The memory of one allocation node.
pub struct GraphMemory {
    address: u64,
    size: usize,
    context: Arc<Context>,
    /// A launch has allocated it and nothing was enqueued since that frees it.
    allocated: AtomicBool,
}

impl GraphMemory {
    /// The memory that a node just captured will allocate.
    pub fn new(address: u64, size: usize, context: Arc<Context>) -> Arc<GraphMemory> {
        Arc::new(GraphMemory {
            address,
            size,
            context,
            allocated: AtomicBool::new(false),
        })
    }

    /// The device address.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Whether a launch has allocated it and nothing has freed it since.
    pub fn is_allocated(&self) -> bool {
        self.allocated.load(Ordering::Acquire)
    }

    /// Notes what the launch of a graph does to it.
    pub fn set_allocated(&self, allocated: bool) {
        self.allocated.store(allocated, Ordering::Release);
    }

    /// Refuses work that is not captured while there is no memory behind the address.
    pub fn check_allocated(&self) -> Result<()> {
        match self.is_allocated() {
            true => Ok(()),
            false => Err(Error::invalid(format!(
                "the device memory at 0x{:x} was allocated inside a capture: it exists from the launch \
                 of that graph until it is freed, and not now",
                self.address
            ))),
        }
    }

    /// Frees what the last launch has allocated; nothing to do if there is none.
    pub fn free_by(&self, give_back: impl FnOnce(u64) -> Result<()>) -> Result<()> {
        if !self.allocated.swap(false, Ordering::AcqRel) {
            return Ok(());
        }
        give_back(self.address).inspect_err(|_| self.set_allocated(true))
    }
}

impl Drop for GraphMemory {
    fn drop(&mut self) {
        // Pending launches hold their exec and so this: the work is done.
        if *self.allocated.get_mut() {
            release::queue(Release::Memory(self.address, self.context.clone()));
        }
    }
}

/// The allocation nodes and free nodes of a captured graph.
#[derive(Default)]
pub struct MemoryNodes {
    /// What is still allocated after a launch.
    allocates: Vec<Arc<GraphMemory>>,
    /// What was allocated by another graph and is not after a launch.
    frees: Vec<Arc<GraphMemory>>,
    /// Whether there are any nodes of either kind.
    exist: bool,
}

impl MemoryNodes {
    /// Notes an allocation node.
    pub fn allocate(&mut self, memory: &Arc<GraphMemory>) {
        self.allocates.push(memory.clone());
        self.exist = true;
    }

    /// Notes a free node. Whether the same graph allocates the memory, which then never outlives a
    /// launch.
    pub fn free(&mut self, memory: &Arc<GraphMemory>) -> bool {
        let before = self.allocates.len();
        self.allocates.retain(|own| !Arc::ptr_eq(own, memory));
        let own = self.allocates.len() < before;
        if !own {
            self.frees.push(memory.clone());
        }
        self.exist = true;
        own
    }

    /// Bytes of the device that an exec takes whose launch leaves memory allocated: the driver reserves 32 MiB
    /// for 256 KiB (measured: 8220 MiB for 256 execs).
    pub fn reserved_bytes(&self) -> usize {
        const BLOCK: usize = 32 << 20;
        let bytes = self.allocates.iter().map(|memory| memory.size);
        let bytes = bytes.fold(0, usize::saturating_add);
        bytes.div_ceil(BLOCK).saturating_mul(BLOCK)
    }

    /// Whether a launch has left memory that nothing has freed since.
    pub fn are_left(&self) -> bool {
        self.allocates.iter().any(|memory| memory.is_allocated())
    }

    /// Whether the graph has memory nodes at all.
    pub fn exist(&self) -> bool {
        self.exist
    }

    /// Refuses a launch that the driver would refuse, in words.
    pub fn check_launch(&self, frees_by_itself: bool) -> Result<()> {
        match self.allocates.iter().find(|memory| memory.is_allocated()) {
            Some(memory) if !frees_by_itself => Err(Error::invalid(format!(
                "the memory at 0x{:x} that the graph allocates is still allocated by an earlier launch: \
                 free it with Stream.mem_free before the next launch, free it inside the capture, or \
                 instantiate the graph with ~auto_free_on_launch:true",
                memory.address
            ))),
            _ => Ok(()),
        }
    }

    /// Notes that the graph was launched.
    pub fn launched(&self) {
        self.frees.iter().for_each(|m| m.set_allocated(false));
        self.allocates.iter().for_each(|m| m.set_allocated(true));
    }
}
