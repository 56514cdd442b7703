//! How fast the interpreter is: `cargo run --release --example speed`
//!
//! Prints thread instructions per second and core for kernels in the style of saxpy and of
//! reductions, on one core and on all, and the time that the launch of an empty kernel takes.

#[path = "../tests/common/mod.rs"]
mod common;

use common::{Args, Heap};
use cudagraph_ptx::{Launch, Program};
use std::time::Instant;

const N: usize = 1 << 22;

fn main() {
    let source = include_bytes!("speed.ptx");
    let program = Program::compile(source).expect("the benchmark compiles");
    let heap = Heap::default();
    let x = heap.upload(&vec![1f32; N]);
    let y = heap.upload(&vec![2f32; N]);
    let n = N as i32;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    println!("{cores} cores");
    let blocks = (N / 256) as u32;
    let saxpy = Args::new().with(2f32).with(x).with(y).with(n);
    measure(&program, &heap, "saxpy", blocks, &saxpy, cores);
    measure(
        &program,
        &heap,
        "reduce",
        512,
        &Args::new().with(x).with(y).with(n),
        cores,
    );
    let shared = Args::new().with(x).with(y).with(n);
    measure(&program, &heap, "reduce_shared", blocks / 2, &shared, cores);
    empty(&program, &heap);
}

fn launch<'a>(
    program: &Program,
    heap: &'a Heap,
    name: &str,
    grid: u32,
    args: &'a Args,
) -> Launch<'a> {
    let mut launch = Launch::new(program.kernel(name).expect("the kernel exists"), heap);
    launch.grid = [grid, 1, 1];
    launch.block = [256, 1, 1];
    launch.params = &args.0;
    launch
}

/// Best of some runs.
fn measure(program: &Program, heap: &Heap, name: &str, grid: u32, args: &Args, cores: usize) {
    let launch = launch(program, heap, name, grid, args);
    let mut best = 0f64;
    for _ in 0..7 {
        let start = Instant::now();
        let (result, warp_instructions) = program.run_counted(&launch);
        result.expect("the kernel runs");
        best = best.max(32.0 * warp_instructions as f64 / start.elapsed().as_secs_f64());
    }
    let per_core = best / cores as f64 / 1e6;
    println!(
        "{name}: {:.0} M thread instructions/s, {per_core:.0} M per core",
        best / 1e6
    );
}

fn empty(program: &Program, heap: &Heap) {
    let args = Args::new();
    let mut launch = launch(program, heap, "empty", 1, &args);
    launch.block = [32, 1, 1];
    let count = 100_000;
    let start = Instant::now();
    for _ in 0..count {
        program.run(&launch).expect("the kernel runs");
    }
    let time = start.elapsed().as_secs_f64() / f64::from(count) * 1e9;
    println!("empty kernel: {time:.0} ns a launch");
}
