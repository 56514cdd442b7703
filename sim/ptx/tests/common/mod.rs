//! Device memory for tests, and launches in a line.
#![allow(dead_code)]

pub mod reference;

use cudagraph_ptx::{Fault, Launch, Memory, Program, Region, Space};
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::RwLock;

/// An allocation that is as aligned as its device address.
struct Allocation {
    start: u64,
    size: u64,
    bytes: Box<[UnsafeCell<u128>]>,
    writable: bool,
}

// SAFETY: the bytes are only reached through raw pointers, by kernels and by tests that wait.
unsafe impl Sync for Allocation {}
// SAFETY: as above.
unsafe impl Send for Allocation {}

/// Device memory.
#[derive(Default)]
pub struct Heap {
    allocations: RwLock<Vec<Allocation>>,
    epoch: AtomicU64,
}

impl Heap {
    pub fn alloc(&self, size: usize) -> u64 {
        self.alloc_with(size, true)
    }

    pub fn alloc_with(&self, size: usize, writable: bool) -> u64 {
        let mut allocations = self.allocations.write().unwrap();
        let last = allocations
            .last()
            .map_or(0x7000_0000_0000, |a| a.start + a.size);
        let start = (last + 4096).next_multiple_of(512);
        let bytes = (0..size.div_ceil(16)).map(|_| UnsafeCell::new(0)).collect();
        allocations.push(Allocation {
            start,
            size: size as u64,
            bytes,
            writable,
        });
        self.epoch.fetch_add(1, Ordering::SeqCst);
        start
    }

    pub fn upload<T: Copy>(&self, values: &[T]) -> u64 {
        let address = self.alloc(size_of_val(values));
        self.write(address, values);
        address
    }

    pub fn write<T: Copy>(&self, address: u64, values: &[T]) {
        let region = self.region(address).expect("live");
        assert!(address + size_of_val(values) as u64 <= region.end);
        // SAFETY: in bounds, and no kernel runs.
        unsafe {
            let to = region.host.add((address - region.start) as usize);
            to.copy_from(values.as_ptr().cast(), size_of_val(values));
        }
    }

    pub fn read<T: Copy + Default>(&self, address: u64, count: usize) -> Vec<T> {
        let mut values = vec![T::default(); count];
        if count == 0 {
            return values;
        }
        let region = self.region(address).expect("live");
        assert!(address + size_of_val(&values[..]) as u64 <= region.end);
        // SAFETY: in bounds, and no kernel runs.
        unsafe {
            let from = region.host.add((address - region.start) as usize);
            from.copy_to(values.as_mut_ptr().cast(), size_of_val(&values[..]));
        }
        values
    }

    pub fn free(&self, address: u64) {
        let mut allocations = self.allocations.write().unwrap();
        allocations.retain(|a| a.start != address);
        self.epoch.fetch_add(1, Ordering::SeqCst);
    }

    /// Allocates and initialises the variables of a module.
    pub fn globals(&self, program: &Program) -> Vec<u64> {
        let addresses: Vec<u64> = program
            .globals()
            .iter()
            .map(|g| self.alloc_with(g.size.max(1) as usize, true))
            .collect();
        for (global, &address) in program.globals().iter().zip(&addresses) {
            self.write(address, &global.init);
            for relocation in &global.relocations {
                let value = addresses[relocation.global].wrapping_add(relocation.addend as u64);
                self.write(address + relocation.offset, &[value]);
            }
            assert!(matches!(global.space, Space::Global | Space::Const));
        }
        addresses
    }
}

impl Memory for Heap {
    fn region(&self, addr: u64) -> Option<Region> {
        let allocations = self.allocations.read().unwrap();
        let a = allocations
            .iter()
            .find(|a| addr >= a.start && addr < a.start + a.size)?;
        let host = a.bytes.as_ptr().cast::<u8>().cast_mut();
        Some(Region {
            start: a.start,
            end: a.start + a.size,
            host,
            writable: a.writable,
        })
    }

    fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::SeqCst)
    }
}

/// Kernel arguments, laid out one after the other with their own alignment.
#[derive(Default)]
pub struct Args(pub Vec<u8>);

impl Args {
    pub fn new() -> Self {
        Args::default()
    }

    pub fn with<T: Copy>(mut self, value: T) -> Self {
        self.0
            .resize(self.0.len().next_multiple_of(align_of::<T>()), 0);
        // SAFETY: the value is plain data.
        let bytes =
            unsafe { std::slice::from_raw_parts((&raw const value).cast::<u8>(), size_of::<T>()) };
        self.0.extend_from_slice(bytes);
        self
    }
}

pub fn compile(source: &str) -> Program {
    match Program::compile(source.as_bytes()) {
        Ok(program) => program,
        Err(error) => panic!("{error}"),
    }
}

/// Runs a kernel on a heap, with fresh variables of the module.
pub fn run(
    program: &Program,
    name: &str,
    grid: u32,
    block: u32,
    args: &Args,
    heap: &Heap,
) -> Result<(), Fault> {
    run_with(program, name, [grid, 1, 1], [block, 1, 1], 0, args, heap)
}

pub fn run_with(
    program: &Program,
    name: &str,
    grid: [u32; 3],
    block: [u32; 3],
    shared: u32,
    args: &Args,
    heap: &Heap,
) -> Result<(), Fault> {
    let globals = heap.globals(program);
    let kernel = program
        .kernel(name)
        .unwrap_or_else(|| panic!("no kernel {name}"));
    let mut launch = Launch::new(kernel, heap);
    launch.grid = grid;
    launch.block = block;
    launch.dynamic_shared_bytes = shared;
    launch.params = &args.0;
    launch.globals = &globals;
    program.run(&launch)
}

/// Wraps instructions into a kernel `k` with one pointer parameter `%out`, registers of all kinds
/// and the thread's index in `%tid`.
pub fn kernel(body: &str) -> String {
    format!(
        ".version 9.0\n.target sm_90\n.address_size 64\n\
         .visible .entry k(.param .u64 out) {{\n\
         .reg .pred %p<20>; .reg .b16 %h<20>; .reg .b32 %r<40>; .reg .b64 %d<40>; .reg .b32 %t;\n\
         .reg .f32 %f<40>; .reg .f64 %g<20>; .reg .b64 %out; .reg .b64 %at;\n\
         ld.param.u64 %out, [out]; cvta.to.global.u64 %out, %out; mov.u32 %t, %tid.x;\n\
         mad.wide.u32 %at, %t, 4, %out;\n\
         {body}\nret;\n}}\n"
    )
}

/// Runs such a kernel with one warp; the words that its threads stored at `%at`.
pub fn words(body: &str) -> Vec<u32> {
    let heap = Heap::default();
    let out = heap.alloc(32 * 64);
    let program = compile(&kernel(body));
    run(&program, "k", 1, 32, &Args::new().with(out), &heap).unwrap();
    heap.read(out, 32)
}

/// A small generator of random numbers, the same on every machine.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }
}
