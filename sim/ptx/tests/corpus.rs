//! Kernels in CUDA C, compiled by two versions of NVRTC in three modes, against the answers of a GPU.
//!
//! `tests/kernels/generate.py` makes the PTX, `tests/kernels/record.py` runs it on a GPU. Answers
//! must agree bit by bit; for the approximate functions, within the bounds that CUDA documents.
#![allow(clippy::unwrap_used)]

mod common;
use common::*;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

const THREADS: u32 = 256;
const BLOCK: u32 = 128;
const WORDS: usize = 16 * THREADS as usize;

const SPECIAL: [u32; 24] = [
    0,
    1,
    2,
    0xffff_ffff,
    0x7fff_ffff,
    0x8000_0000,
    0x7f80_0000,
    0xff80_0000,
    0x7fc0_0000,
    0x7f80_0001,
    0x0080_0000,
    0x007f_ffff,
    0x3f80_0000,
    0xbf80_0000,
    0x7f7f_ffff,
    0x0000_0010,
    0x7ff0_0000,
    0x7ff8_0000,
    0x3ff0_0000,
    0x7c00_7c00,
    0x7e01_fc00,
    0x0001_0001,
    0x03ff_8400,
    0x7bff_3c00,
];

fn input() -> Vec<u32> {
    let word = |index: u64| {
        let mut random = Random(index.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let z = random.next();
        match z >> 40 & 7 {
            0 => SPECIAL[(z >> 44) as usize % SPECIAL.len()],
            _ => z as u32,
        }
    };
    (0..WORDS as u64).map(word).collect()
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kernels")
}

/// How far the answers of a kernel may be from the GPU's.
enum Bound {
    Exact,
    /// Units in the last place, and an absolute error that is small enough in any case.
    F32(u32, f32),
    F64(u64, f64),
}

/// Another answer that is right too, where PTX leaves a choice and the assembler makes it: without a
/// rounding mode, `mul.f32` and `add.f32` may become one fused operation. NVRTC fuses by itself
/// except with `-G`; the interpreter never does.
fn alternative(kernel: &str, mode: &str, at: usize, input: &[u32]) -> Option<u32> {
    let a = &input[at / 16 * 16..];
    match (kernel, mode, at % 16) {
        ("float32_arith", "debug", 3) => {
            let [x, y, z] = [a[0], a[1], a[2]].map(f32::from_bits);
            let fused = x.mul_add(y, z);
            Some(if fused.is_nan() {
                0x7fff_ffff
            } else {
                fused.to_bits()
            })
        }
        _ => None,
    }
}

/// Kernels and modes for which there is such an answer.
const CHOICES: [(&str, &str); 1] = [("float32_arith", "debug")];

fn bound(kernel: &str, mode: &str) -> Bound {
    match (kernel, mode) {
        ("math_f32", "fast") => Bound::F32(1 << 14, 2e-5),
        ("math_f32_large", "fast") => Bound::F32(1 << 16, f32::INFINITY),
        ("math_f32" | "math_f32_large", _) => Bound::F32(4, 0.0),
        ("math_intrinsics", _) => Bound::F32(1 << 10, 1e-6),
        ("math_f64", _) => Bound::F64(2, 0.0),
        ("functions_f32", "fast") => Bound::F32(1 << 14, 2e-5),
        ("functions_f32", _) => Bound::F32(6, 1e-6),
        ("functions_f64", _) => Bound::F64(4, 0.0),
        // Two units of half precision.
        ("functions_half", _) => Bound::F32(1 << 14, 1e-3),
        // `-use_fast_math` divides and takes roots approximately.
        ("float32_arith" | "float32_near", "fast") => Bound::F32(3, 0.0),
        ("half_arith" | "half_near", "fast") => Bound::Exact,
        _ => Bound::Exact,
    }
}

fn ordered32(bits: u32) -> i64 {
    let magnitude = i64::from(bits & 0x7fff_ffff);
    if bits >> 31 != 0 {
        -magnitude
    } else {
        magnitude
    }
}

fn ordered64(bits: u64) -> i128 {
    let magnitude = i128::from(bits & (u64::MAX >> 1));
    if bits >> 63 != 0 {
        -magnitude
    } else {
        magnitude
    }
}

/// The first word that is off, if any.
fn difference(got: &[u32], want: &[u32], bound: &Bound) -> Option<usize> {
    match *bound {
        Bound::Exact => (0..got.len()).find(|&i| got[i] != want[i]),
        Bound::F32(ulp, absolute) => (0..got.len()).find(|&i| {
            let (a, b) = (f32::from_bits(got[i]), f32::from_bits(want[i]));
            let near = (ordered32(got[i]) - ordered32(want[i])).unsigned_abs() <= u64::from(ulp);
            !(near || a.is_nan() && b.is_nan() || (a - b).abs() <= absolute)
        }),
        Bound::F64(ulp, absolute) => (0..got.len() / 2).find_map(|i| {
            let join = |words: &[u32]| u64::from(words[2 * i]) | u64::from(words[2 * i + 1]) << 32;
            let (x, y) = (join(got), join(want));
            let (a, b) = (f64::from_bits(x), f64::from_bits(y));
            let near = (ordered64(x) - ordered64(y)).unsigned_abs() <= u128::from(ulp);
            (!(near || a.is_nan() && b.is_nan() || (a - b).abs() <= absolute)).then_some(2 * i)
        }),
    }
}

/// Kernel, version and mode to the file with the GPU's answer.
fn expected() -> BTreeMap<(String, String, String), Vec<u32>> {
    let folder = folder().join("expected");
    let index = std::fs::read_to_string(folder.join("index.tsv")).unwrap_or_default();
    index
        .lines()
        .map(|line| {
            let fields: Vec<&str> = line.split('\t').collect();
            let bytes = std::fs::read(folder.join(fields[3])).unwrap();
            let words = bytes
                .chunks(4)
                .map(|b| u32::from_le_bytes(b.try_into().unwrap()));
            let key = (fields[0].into(), fields[1].into(), fields[2].into());
            (key, words.collect())
        })
        .collect()
}

/// Runs all kernels of one source file.
fn corpus(stem: &str) {
    let expected = expected();
    let input = input();
    let mut failures = Vec::new();
    let mut ran = 0;
    // Of each choice that this file has: whether the GPU has ever made another one than we.
    let mut chosen: BTreeMap<(String, &str), bool> = BTreeMap::new();
    for version in ["12.9", "13.0"] {
        for mode in ["default", "debug", "fast"] {
            let path = folder().join(format!("ptx/{stem}.{version}.{mode}.ptx"));
            let program = compile(&std::fs::read_to_string(&path).unwrap());
            for kernel in program.kernels() {
                let heap = Heap::default();
                let from = heap.upload(&input);
                let to = heap.alloc(WORDS * 4);
                let args = Args::new().with(from).with(to).with(THREADS as i32);
                let grid = [THREADS / BLOCK, 1, 1];
                let result = run_with(
                    &program,
                    &kernel.name,
                    grid,
                    [BLOCK, 1, 1],
                    BLOCK * 4,
                    &args,
                    &heap,
                );
                ran += 1;
                if let Err(fault) = result {
                    failures.push(format!("{version} {mode}: {fault}"));
                    continue;
                }
                let mut got = heap.read::<u32>(to, WORDS);
                if let Ok(dump) = std::env::var("CORPUS_DUMP") {
                    let bytes: Vec<u8> = got.iter().flat_map(|w| w.to_le_bytes()).collect();
                    let name = format!("{}.{version}.{mode}.bin", kernel.name);
                    std::fs::write(Path::new(&dump).join(name), bytes).unwrap();
                }
                let key = (kernel.name.clone(), version.to_string(), mode.to_string());
                let Some(want) = expected.get(&key) else {
                    // It could hang a GPU, and was not run there.
                    assert_eq!(kernel.name, "warp_relay", "no answer of a GPU is recorded");
                    continue;
                };
                if CHOICES.contains(&(&*kernel.name, mode)) {
                    let other = chosen.entry((kernel.name.clone(), mode)).or_default();
                    for at in 0..got.len() {
                        let choice = alternative(&kernel.name, mode, at, &input);
                        if got[at] != want[at] && choice == Some(want[at]) {
                            got[at] = want[at];
                            *other = true;
                        }
                    }
                }
                if let Some(at) = difference(&got, want, &bound(&kernel.name, mode)) {
                    failures.push(format!(
                        "{} {version} {mode}: thread {} word {}: {:#010x}, the GPU has {:#010x}",
                        kernel.name,
                        at / 16,
                        at % 16,
                        got[at],
                        want[at]
                    ));
                }
            }
        }
    }
    for ((kernel, mode), _) in chosen.iter().filter(|(_, other)| !**other) {
        failures.push(format!("{kernel} {mode}: the other choice is never needed"));
    }
    assert!(
        failures.is_empty(),
        "{} of {ran}:\n{}",
        failures.len(),
        failures.join("\n")
    );
    assert!(ran > 0);
}

macro_rules! corpus {
    ($($stem:ident),+) => {
        $(#[test]
        fn $stem() {
            corpus(stringify!($stem));
        })+
    };
}

corpus!(
    atomics, block, caches, cluster, compare, control, convert, float32, float64, functions, half,
    int32, int64, math, memory, nan, packed, returns, warp, wide
);
