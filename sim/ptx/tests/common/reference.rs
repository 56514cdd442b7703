//! Kernels of the corpus against the same computation in Rust.

use super::*;
use std::path::Path;

pub const THREADS: usize = 256;
pub const BLOCK: usize = 128;

/// Words that a reference computes for one thread; `None` is not compared.
pub type Words = [Option<u32>; 16];

fn input() -> Vec<u32> {
    let mut random = Random(7);
    (0..16 * THREADS)
        .map(|_| {
            let z = random.next();
            match z >> 60 {
                0 => [0, 1, u32::MAX, 0x8000_0000, 0x7fff_ffff][(z >> 32) as usize % 5],
                1 => z as u32 & 0xff,
                _ => z as u32,
            }
        })
        .collect()
}

/// Runs a kernel in every variant and compares it with a reference, which gets all input words and
/// the index of a thread.
pub fn check(stem: &str, kernel: &str, reference: impl Fn(&[u32], usize, &mut Words)) {
    let input = input();
    for variant in [
        "12.9.default",
        "12.9.debug",
        "12.9.fast",
        "13.0.default",
        "13.0.debug",
        "13.0.fast",
    ] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join(format!("tests/kernels/ptx/{stem}.{variant}.ptx"));
        let program = compile(&std::fs::read_to_string(path).unwrap());
        let heap = Heap::default();
        let (from, to) = (heap.upload(&input), heap.alloc(input.len() * 4));
        let args = Args::new().with(from).with(to).with(THREADS as i32);
        let grid = [(THREADS / BLOCK) as u32, 1, 1];
        run_with(
            &program,
            kernel,
            grid,
            [BLOCK as u32, 1, 1],
            4 * BLOCK as u32,
            &args,
            &heap,
        )
        .unwrap();
        let got = heap.read::<u32>(to, input.len());
        for thread in 0..THREADS {
            let mut want = Words::default();
            reference(&input, thread, &mut want);
            for (word, want) in want.iter().enumerate() {
                if let Some(want) = *want {
                    let got = got[16 * thread + word];
                    assert_eq!(
                        got, want,
                        "{kernel} {variant}, thread {thread}, word {word}"
                    );
                }
            }
        }
    }
}

pub fn own(input: &[u32], thread: usize) -> &[u32] {
    &input[16 * thread..16 * thread + 16]
}
