//! Whatever compiles also runs, for a bounded number of instructions, without leaving its memory.
#![no_main]

use cudagraph_ptx::{Launch, Memory, Program, Region};
use libfuzzer_sys::fuzz_target;

const START: u64 = 0x7000_0000_0000;
const SIZE: usize = 1 << 16;

/// One allocation.
struct Heap(Vec<u128>);

// SAFETY: the bytes are only reached through the pointer that `region` gives.
unsafe impl Sync for Heap {}

impl Memory for Heap {
    fn region(&self, addr: u64) -> Option<Region> {
        let end = START + SIZE as u64;
        let host = self.0.as_ptr().cast::<u8>().cast_mut();
        (START..end).contains(&addr).then_some(Region { start: START, end, host, writable: true })
    }
    fn epoch(&self) -> u64 {
        1
    }
}

fuzz_target!(|source: &[u8]| {
    let Ok(program) = Program::compile(source) else { return };
    let heap = Heap(vec![0; SIZE / 16]);
    let params: Vec<u8> = START.to_le_bytes().repeat(4096);
    let globals = vec![START; program.globals().len()];
    for kernel in 0..program.kernels().len().min(4) {
        let mut launch = Launch::new(kernel, &heap);
        launch.block = [48, 1, 1];
        launch.params = &params;
        launch.globals = &globals;
        launch.budget = Some(20_000);
        let _ = program.run(&launch);
    }
});
