//! Measures what the simulator takes: memory for a given amount of device memory, and time for launches.
//!
//!     cargo run --release -p cudagraph-sim --example measure

use cudagraph_sim as _;
use std::ffi::{c_char, c_void, CStr};
use std::ptr::{null, null_mut};
use std::time::Instant;

extern "C" {
    fn cuInit(flags: u32) -> i32;
    fn cuCtxCreate_v2(context: *mut usize, flags: u32, device: i32) -> i32;
    fn cuModuleLoadData(module: *mut usize, image: *const c_char) -> i32;
    fn cuModuleGetFunction(function: *mut usize, module: usize, name: *const c_char) -> i32;
    fn cuStreamCreate(stream: *mut usize, flags: u32) -> i32;
    fn cuStreamSynchronize(stream: usize) -> i32;
    fn cuStreamBeginCapture_v2(stream: usize, mode: i32) -> i32;
    fn cuStreamEndCapture(stream: usize, graph: *mut usize) -> i32;
    fn cuGraphInstantiateWithFlags(exec: *mut usize, graph: usize, flags: u64) -> i32;
    fn cuGraphLaunch(exec: usize, stream: usize) -> i32;
    fn cuMemAlloc_v2(address: *mut u64, size: usize) -> i32;
    fn cuMemFree_v2(address: u64) -> i32;
    fn cuMemsetD8_v2(address: u64, value: u8, count: usize) -> i32;
    #[allow(clippy::too_many_arguments)]
    fn cuLaunchKernel(
        function: usize,
        grid_x: u32,
        grid_y: u32,
        grid_z: u32,
        block_x: u32,
        block_y: u32,
        block_z: u32,
        shared: u32,
        stream: usize,
        params: *mut *mut c_void,
        extra: *mut *mut c_void,
    ) -> i32;
}

const EMPTY: &CStr =
    c".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry nothing()\n{\nret;\n}\n";

/// Calls a function of the driver that must succeed.
macro_rules! cu {
    ($($call:tt)*) => {{
        // SAFETY: the declarations above are the driver's; handles come from it, and places are valid.
        let status = unsafe { $($call)* };
        assert_eq!(status, 0, stringify!($($call)*));
    }};
}

/// Bytes of memory that the process has now.
fn resident() -> usize {
    let text = std::fs::read_to_string("/proc/self/statm").expect("Linux");
    let pages = text.split(' ').nth(1).and_then(|n| n.parse::<usize>().ok());
    pages.expect("a number of pages") * 4096
}

/// What the process takes for blocks of a size, all of which are used, by allocated byte.
fn memory(size: usize) {
    let total = 256 << 20;
    let before = resident();
    let mut blocks = vec![0u64; total / size];
    for block in &mut blocks {
        cu!(cuMemAlloc_v2(block, size));
        cu!(cuMemsetD8_v2(*block, 1, size));
    }
    let taken = resident() - before;
    let ratio = taken as f64 / total as f64;
    println!(
        "{:>9} blocks of {size:>9} bytes: {ratio:.2} bytes for each allocated byte",
        blocks.len()
    );
    for block in blocks {
        cu!(cuMemFree_v2(block));
    }
}

/// The median of the time of a call, over rounds of so many.
fn time(what: &str, calls: u32, mut call: impl FnMut(), mut end: impl FnMut()) {
    let mut rounds: Vec<f64> = (0..51)
        .map(|_| {
            let start = Instant::now();
            (0..calls).for_each(|_| call());
            let each = start.elapsed().as_nanos() as f64 / f64::from(calls);
            end();
            each
        })
        .collect();
    rounds.sort_by(f64::total_cmp);
    println!("{what}: {:.0} ns", rounds[rounds.len() / 2]);
}

fn main() {
    let (mut context, mut module, mut function, mut stream) = (0, 0, 0, 0);
    cu!(cuInit(0));
    cu!(cuCtxCreate_v2(&mut context, 0, 0));
    for size in [64 << 20, 1 << 20, 64 << 10, 4 << 10, 1 << 10, 256] {
        memory(size);
    }
    cu!(cuModuleLoadData(&mut module, EMPTY.as_ptr()));
    cu!(cuModuleGetFunction(
        &mut function,
        module,
        c"nothing".as_ptr()
    ));
    cu!(cuStreamCreate(&mut stream, 1));
    let launch = || {
        cu!(cuLaunchKernel(
            function,
            1,
            1,
            1,
            32,
            1,
            1,
            0,
            stream,
            null_mut(),
            null::<c_void>() as *mut *mut c_void
        ))
    };
    let wait = || cu!(cuStreamSynchronize(stream));
    time("launch of an empty kernel", 500, launch, wait);
    let both = || {
        launch();
        wait();
    };
    time("the same, and waiting for it", 200, both, || ());
    let (mut graph, mut exec) = (0, 0);
    cu!(cuStreamBeginCapture_v2(stream, 0));
    (0..100).for_each(|_| launch());
    cu!(cuStreamEndCapture(stream, &mut graph));
    cu!(cuGraphInstantiateWithFlags(&mut exec, graph, 0));
    let replay = || cu!(cuGraphLaunch(exec, stream));
    time("launch of a graph of 100 empty kernels", 20, replay, wait);
}
