//! What all blocks of a launch share.

use super::code::{Code, Layout, Symbol, RESERVED_SHARED};
use crate::interface::{Launch, Memory};
use crate::{Fault, FaultKind, Kernel};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::time::Instant;

/// A launch that has been checked.
pub struct Context<'a> {
    pub code: &'a Code,
    pub kernel: &'a Kernel,
    pub layout: &'a Layout,
    pub grid: [u32; 3],
    pub block: [u32; 3],
    /// Threads of a block.
    pub threads: u32,
    /// Warps of a block.
    pub warps: u32,
    /// The parameter block, padded to eight bytes.
    pub params: Box<[u64]>,
    /// Address of each symbol.
    pub symbols: Vec<u64>,
    /// Shared memory of a block: all, what the user asked for, and the dynamic part of that.
    pub shared: u32,
    pub user_shared: u32,
    pub dynamic_shared: u32,
    /// Local memory of a thread.
    pub local: u32,
    pub memory: &'a dyn Memory,
    pub cancel: &'a AtomicBool,
    /// Warp instructions left.
    pub budget: Option<AtomicI64>,
    /// Warp instructions done.
    pub executed: AtomicU64,
    pub start: Instant,
    pub grid_id: u64,
}

/// What went wrong in a warp, before it is known where that is in the source.
#[derive(Debug)]
pub struct Trouble {
    pub kind: FaultKind,
    pub lane: u32,
    pub address: u64,
    pub size: u32,
    pub write: bool,
}

impl Trouble {
    pub fn new(kind: FaultKind, lane: u32) -> Trouble {
        Trouble {
            kind,
            lane,
            address: 0,
            size: 0,
            write: false,
        }
    }
}

/// Where reserved memory starts behind this much of the user's.
fn reserved_shared(user: u32) -> u32 {
    user.next_multiple_of(16)
}

/// The largest shared memory of a block.
const MAX_SHARED: u64 = 228 << 10;

impl<'a> Context<'a> {
    /// Where reserved shared memory starts.
    pub fn reserved_shared(&self) -> u32 {
        reserved_shared(self.user_shared)
    }

    /// Checks a launch.
    pub fn new(code: &'a Code, kernels: &'a [Kernel], launch: &Launch<'a>) -> Result<Self, Fault> {
        static GRIDS: AtomicU64 = AtomicU64::new(1);
        let Some(kernel) = kernels.get(launch.kernel) else {
            return Err(invalid("", "there is no such kernel"));
        };
        let layout = &code.layouts[launch.kernel];
        let threads = launch.block.iter().map(|&n| u64::from(n)).product::<u64>();
        if threads == 0 || threads > u64::from(kernel.max_threads) || launch.block[2] > 64 {
            return Err(invalid(
                &kernel.name,
                "the block has too many threads, or none",
            ));
        }
        if kernel
            .required_block
            .is_some_and(|required| required != launch.block)
        {
            return Err(invalid(
                &kernel.name,
                "the block is not what `.reqntid` demands",
            ));
        }
        if launch.grid.contains(&0) {
            return Err(invalid(&kernel.name, "the grid is empty"));
        }
        if launch.grid[1] > 65535 || launch.grid[2] > 65535 || launch.grid[0] > i32::MAX as u32 {
            return Err(invalid(&kernel.name, "the grid is too large"));
        }
        if launch.params.len() < kernel.param_bytes as usize {
            return Err(invalid(&kernel.name, "parameters are missing"));
        }
        let dynamic_start = layout.static_shared.next_multiple_of(layout.dynamic_align);
        let shared = match launch.dynamic_shared_bytes {
            0 => u64::from(layout.static_shared),
            dynamic => u64::from(dynamic_start) + u64::from(dynamic),
        };
        if shared > MAX_SHARED {
            return Err(invalid(
                &kernel.name,
                "the block needs too much shared memory",
            ));
        }
        let mut params = vec![0u64; kernel.param_bytes.div_ceil(8) as usize];
        for (word, bytes) in params.iter_mut().zip(launch.params.chunks(8)) {
            let mut padded = [0; 8];
            padded[..bytes.len()].copy_from_slice(bytes);
            *word = u64::from_le_bytes(padded);
        }
        let symbols = symbols(code, kernel, layout, launch, dynamic_start)?;
        let stack = if layout.dynamic_stack {
            launch.stack_bytes.max(1024) * 16
        } else {
            0
        };
        let local = u64::from(layout.local) + u64::from(stack);
        Ok(Context {
            code,
            kernel,
            layout,
            grid: launch.grid,
            block: launch.block,
            threads: threads as u32,
            warps: (threads as u32).div_ceil(32),
            params: params.into_boxed_slice(),
            symbols,
            shared: match code.reserved_shared {
                true => reserved_shared(shared as u32) + RESERVED_SHARED,
                false => shared as u32,
            },
            user_shared: shared as u32,
            dynamic_shared: launch.dynamic_shared_bytes,
            local: local.min(super::run::MAX_LOCAL).next_multiple_of(16) as u32,
            memory: launch.memory,
            cancel: launch.cancel,
            budget: launch
                .budget
                .map(|n| AtomicI64::new(n.min(i64::MAX as u64) as i64)),
            executed: AtomicU64::new(0),
            start: Instant::now(),
            grid_id: GRIDS.fetch_add(1, Ordering::Relaxed),
        })
    }

    /// A fault that no instruction is to blame for.
    pub fn fault(&self, kind: FaultKind, block: [u32; 3]) -> Fault {
        Fault {
            kind,
            kernel: self.kernel.name.clone(),
            line: 0,
            instruction: String::new(),
            block,
            thread: [0; 3],
            address: 0,
            size: 0,
            write: false,
        }
    }

    /// Index of a block in the grid.
    pub fn block_index(&self, linear: u64) -> [u32; 3] {
        let (x, y) = (u64::from(self.grid[0]), u64::from(self.grid[1]));
        [
            (linear % x) as u32,
            (linear / x % y) as u32,
            (linear / x / y) as u32,
        ]
    }

    /// Index of a thread in its block.
    pub fn thread_index(&self, linear: u32) -> [u32; 3] {
        let [x, y, _] = self.block;
        [linear % x, linear / x % y, linear / x / y]
    }

    /// First plane and first predicate of a function.
    pub fn frame_start(&self, function: u32) -> (u32, u32) {
        match self.layout.frames.binary_search_by_key(&function, |f| f.0) {
            Ok(at) => (self.layout.frames[at].1, self.layout.frames[at].2),
            Err(_) => (0, 0),
        }
    }
}

fn symbols(
    code: &Code,
    kernel: &Kernel,
    layout: &Layout,
    launch: &Launch<'_>,
    dynamic_start: u32,
) -> Result<Vec<u64>, Fault> {
    let mut addresses = vec![0; code.symbols.len()];
    for (address, symbol) in addresses.iter_mut().zip(&code.symbols) {
        if let Symbol::Global(index) | Symbol::Const(index) = *symbol {
            *address = match launch.globals.get(index as usize) {
                Some(&address) => address,
                None => return Err(invalid(&kernel.name, "addresses of variables are missing")),
            };
        }
    }
    for &(symbol, offset) in &layout.shared {
        addresses[symbol as usize] = u64::from(offset);
    }
    for &symbol in &layout.dynamic {
        addresses[symbol as usize] = u64::from(dynamic_start);
    }
    Ok(addresses)
}

fn invalid(kernel: &str, message: &str) -> Fault {
    Fault {
        kind: FaultKind::InvalidLaunch,
        kernel: kernel.to_owned(),
        line: 0,
        instruction: message.to_owned(),
        block: [0; 3],
        thread: [0; 3],
        address: 0,
        size: 0,
        write: false,
    }
}
