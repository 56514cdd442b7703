//! Kernels of the corpus against the same computation in Rust.
#![allow(clippy::unwrap_used, clippy::needless_range_loop)]

mod common;
use common::reference::{check, own, BLOCK, THREADS};
use common::*;

/// Word `k` of the threads in the warp of this one.
fn warp_words(input: &[u32], thread: usize, k: usize) -> Vec<u32> {
    let first = thread / 32 * 32;
    (first..first + 32).map(|t| input[16 * t + k]).collect()
}

/// Word `k` of the threads in the block of this one.
fn block_words(input: &[u32], thread: usize, k: usize) -> Vec<u32> {
    let first = thread / BLOCK * BLOCK;
    (first..first + BLOCK).map(|t| input[16 * t + k]).collect()
}

#[test]
fn int32_arith() {
    check("int32", "int32_arith", |input, thread, o| {
        let a = own(input, thread);
        let (x, y, z) = (a[0] as i32, a[1] as i32, a[2] as i32);
        let (u, v, w) = (a[3], a[4], a[5]);
        o[0] = Some(x.wrapping_add(y.wrapping_mul(z)) as u32);
        o[1] = Some(if y != 0 { x.wrapping_div(y) as u32 } else { 1 });
        o[2] = Some(if z != 0 { x.wrapping_rem(z) as u32 } else { 2 });
        o[3] = Some(u.checked_div(v).unwrap_or(3));
        o[4] = Some(u.checked_rem(w).unwrap_or(4));
        o[5] = Some(((i64::from(x) * i64::from(y)) >> 32) as u32);
        o[6] = Some(((u64::from(u) * u64::from(v)) >> 32) as u32);
        o[8] = Some(u.min(v) ^ v.max(w));
        o[9] = Some(
            x.abs_diff(y)
                .wrapping_add(u)
                .wrapping_add(u.abs_diff(v))
                .wrapping_add(w),
        );
        let m24 = |x: i32| i64::from(x << 8 >> 8);
        o[10] = Some(
            ((m24(x) * m24(y)) as u32)
                .wrapping_add((u64::from(u & 0xff_ffff) * u64::from(v & 0xff_ffff)) as u32),
        );
        o[15] = Some(x.wrapping_neg().wrapping_sub(!y) as u32);
    });
}

#[test]
fn int32_bits() {
    check("int32", "int32_bits", |input, thread, o| {
        let a = own(input, thread);
        let (u, v, w, x) = (a[0], a[1], a[2], a[3] as i32);
        let ffs = if w == 0 { 0 } else { w.trailing_zeros() + 1 };
        o[0] = Some(u.count_ones() + 100 * v.leading_zeros() + 10000 * ffs);
        o[1] = Some(u.reverse_bits());
        let bytes: Vec<u8> = u.to_le_bytes().into_iter().chain(v.to_le_bytes()).collect();
        let pick = |s: u32| u32::from_le_bytes([0, 4, 8, 12].map(|b| bytes[(s >> b & 7) as usize]));
        o[2] = Some(pick(w & 0x7777));
        o[3] = Some(pick(0x5140));
        let both = u64::from(v) << 32 | u64::from(u);
        o[4] = Some((both << (w & 31) >> 32) as u32);
        o[5] = Some((both >> (w & 31)) as u32);
        o[6] = Some((both << (w & 63).min(32) >> 32) as u32);
        o[7] = Some((both >> (w & 63).min(32)) as u32);
        o[8] = Some((u & v) | (!u & w));
        o[9] = Some(u ^ v ^ w);
        o[10] = Some((u << (w & 31)) ^ (v >> (u & 31)));
        o[11] = Some((x >> (u & 31)) as u32);
        o[13] = Some((x << 7 >> 20) as u32);
    });
}

#[test]
fn int64_arith() {
    check("int64", "int64_arith", |input, thread, o| {
        let a = own(input, thread);
        let wide = |k: usize| u64::from(a[2 * k]) | u64::from(a[2 * k + 1]) << 32;
        let (x, y, z) = (wide(0) as i64, wide(1) as i64, wide(2) as i64);
        let (u, v, w) = (wide(3), wide(4), wide(5));
        let mut put = |k: usize, value: u64| {
            (o[2 * k], o[2 * k + 1]) = (Some(value as u32), Some((value >> 32) as u32));
        };
        put(0, x.wrapping_mul(y).wrapping_add(z) as u64);
        let quotient = if y != 0 { x.wrapping_div(y) } else { 0 };
        let remainder = if z != 0 { x.wrapping_rem(z) } else { 1 };
        put(1, quotient.wrapping_add(remainder) as u64);
        put(
            2,
            u.checked_div(v)
                .unwrap_or(0)
                .wrapping_add(u.checked_rem(w).unwrap_or(1)),
        );
        let high = ((i128::from(x) * i128::from(y)) >> 64) as u64;
        put(3, high ^ ((u128::from(u) * u128::from(v)) >> 64) as u64);
    });
}

#[test]
fn float32_arith_without_fast_math() {
    let source = kernel(
        "ld.global.v4.f32 {%f1,%f2,%f3,%f4}, [%out];\n\
         add.f32 %f5, %f1, %f2; mul.rn.f32 %f6, %f1, %f3; fma.rn.f32 %f7, %f1, %f2, %f3;\n\
         div.rn.f32 %f8, %f1, %f2; sqrt.rn.f32 %f9, %f4; sub.rz.f32 %f10, %f1, %f3;\n\
         st.global.v2.f32 [%out+16], {%f5,%f6}; st.global.v2.f32 [%out+24], {%f7,%f8};\n\
         st.global.v2.f32 [%out+32], {%f9,%f10};",
    );
    let program = compile(&source);
    let heap = Heap::default();
    let out = heap.alloc(64);
    let mut random = Random(3);
    for _ in 0..300 {
        let x: [f32; 4] = std::array::from_fn(|_| f32::from_bits(random.next() as u32));
        heap.write(out, &x);
        run(&program, "k", 1, 1, &Args::new().with(out), &heap).unwrap();
        let got = heap.read::<f32>(out + 16, 5);
        let want = [
            x[0] + x[1],
            x[0] * x[2],
            x[0].mul_add(x[1], x[2]),
            x[0] / x[1],
            x[3].sqrt(),
        ];
        for (got, want) in got.iter().zip(want) {
            let want = if want.is_nan() {
                0x7fff_ffff
            } else {
                want.to_bits()
            };
            assert_eq!(got.to_bits(), want, "{x:?}");
        }
    }
}

#[test]
fn control_loops() {
    check("control", "control_loops", |input, thread, o| {
        let a = own(input, thread);
        let (mut x, mut steps) = (a[0] | 1, 0);
        while x != 1 && steps < 300 {
            x = if x & 1 != 0 {
                x.wrapping_mul(3).wrapping_add(1)
            } else {
                x / 2
            };
            steps += 1;
        }
        o[0] = Some(steps);
        let mut sum = 0;
        for k in 0..a[1] & 63 {
            if k % 3 == a[2] % 3 {
                continue;
            }
            if sum > 5000 {
                break;
            }
            sum += k * k;
        }
        o[1] = Some(sum);
        let (mut p, mut q) = (a[3] & 0xffff, a[4] & 0xffff);
        while q != 0 {
            (p, q) = (q, p % q);
        }
        o[2] = Some(p);
    });
}

#[test]
fn control_recursion() {
    fn ackermann(m: u32, x: u32) -> u32 {
        match (m, x) {
            (0, x) => x + 1,
            (m, 0) => ackermann(m - 1, 1),
            (m, x) => ackermann(m - 1, ackermann(m, x - 1)),
        }
    }
    fn fib(k: u32) -> u32 {
        if k < 2 {
            k
        } else {
            fib(k - 1) + fib(k - 2)
        }
    }
    check("control", "control_recursion", |input, thread, o| {
        let a = own(input, thread);
        o[0] = Some(ackermann(a[0] & 1, a[1] & 3));
        o[1] = Some(fib(a[2] & 7));
        o[2] = Some(u32::from(a[3] & 15 & 1 == 0));
    });
}

#[test]
fn control_switch_and_pointers() {
    check("control", "control_pointers", |input, thread, o| {
        let a = own(input, thread);
        let mut r = a[0];
        for &word in &a[1..8] {
            r = match word % 3 {
                0 => r.wrapping_add(word),
                1 => r.wrapping_mul(word),
                _ => r ^ word,
            };
        }
        o[0] = Some(r);
        let square = |x: u32| x.wrapping_mul(x);
        o[1] = Some(match a[11] & 1 {
            1 => square(a[8]),
            _ => square(a[9]).wrapping_sub(square(a[10])).wrapping_mul(3),
        });
        o[2] = Some(a[12].wrapping_mul(2).wrapping_add(r));
    });
    check("control", "control_switch", |input, thread, o| {
        for (k, &w) in own(input, thread).iter().enumerate() {
            o[k] = Some(match w & 15 {
                0 => w.wrapping_add(1),
                1 => w.wrapping_mul(3),
                2 => w ^ 0xff,
                3 => w >> 3,
                4 | 5 => w.wrapping_sub(77),
                6 => w.count_ones(),
                7 => w / 5,
                9 => w % 11,
                11 => !w,
                _ => 42,
            });
        }
    });
}

#[test]
fn memory_shared() {
    check("memory", "memory_shared", |input, thread, o| {
        let t = thread % BLOCK;
        for k in 0..3 {
            o[k] = Some(block_words(input, thread, k)[(t * 5 + k) % BLOCK]);
        }
        let words = block_words(input, thread, 3);
        o[3] = Some(words[BLOCK - 1 - t]);
        o[4] = Some(words.iter().fold(0, |sum, &word| sum.wrapping_add(word)));
    });
}

#[test]
fn memory_vectors_and_copies() {
    check("memory", "memory_vectors", |input, thread, o| {
        let a = own(input, thread);
        for k in 0..4 {
            o[k] = Some(a[3 - k]);
        }
        o[4] = Some(a[4].wrapping_add(a[5]));
        o[5] = Some(a[4] ^ a[5]);
        o[15] = Some(a[14]);
    });
    check("memory", "memory_async", |input, thread, o| {
        let (t, first) = (thread % BLOCK, thread / BLOCK * BLOCK);
        let from = own(input, first + BLOCK - 1 - t);
        for k in 0..4 {
            o[k] = Some(from[k]);
        }
        let a = own(input, thread);
        o[4] = Some(if a[4] & 4 != 0 { a[5] } else { 0 });
    });
}

#[test]
fn warp_shuffles() {
    check("warp", "warp_shuffle", |input, thread, o| {
        let (lane, a) = (thread % 32, own(input, thread));
        let (first, second) = (warp_words(input, thread, 0), warp_words(input, thread, 2));
        o[0] = Some(first[a[1] as usize & 31]);
        o[1] = Some(first[if lane >= 3 { lane - 3 } else { lane }]);
        o[2] = Some(first[if lane + 5 < 32 { lane + 5 } else { lane }]);
        o[3] = Some(first[lane ^ 6]);
        o[4] = Some(second[lane / 8 * 8 + (a[3] as usize & 7)]);
        o[5] = Some(second[if lane % 4 >= 2 { lane - 2 } else { lane }]);
        o[6] = Some(second[if lane % 16 + 7 < 16 { lane + 7 } else { lane }]);
        let bytes = warp_words(input, thread, 5);
        o[10] = Some(bytes[..=lane].iter().map(|w| w & 0xff).sum());
    });
}

#[test]
fn warp_votes_and_reductions() {
    check("warp", "warp_vote", |input, thread, o| {
        let (lane, a) = (thread % 32, own(input, thread));
        let ballot = |k: usize, f: &dyn Fn(u32) -> bool| {
            warp_words(input, thread, k)
                .iter()
                .enumerate()
                .fold(0u32, |set, (lane, &word)| set | u32::from(f(word)) << lane)
        };
        o[0] = Some(ballot(0, &|w| w & 1 != 0));
        o[2] = Some(ballot(4, &|w| w & 3 == a[4] & 3));
        o[3] = Some(0);
        o[5] = Some(ballot(6, &|w| w & 1 == a[6] & 1));
        o[6] = Some((ballot(7, &|w| w & 1 != 0) & ((1 << lane) - 1)).count_ones());
        let odd = ballot(8, &|w| w & 1 != 0);
        o[9] = Some(match a[8] & 1 {
            1 => ballot(9, &|w| w & 1 != 0) & odd,
            _ => ballot(9, &|w| w & 2 != 0) & !odd,
        });
    });
    check("warp", "warp_reduce", |input, thread, o| {
        let words = |k: usize| warp_words(input, thread, k);
        o[0] = Some(words(0).iter().fold(0, |sum, &w| sum.wrapping_add(w)));
        o[1] = words(1).into_iter().min();
        o[2] = words(2).into_iter().max();
        o[3] = words(3)
            .into_iter()
            .map(|w| w as i32)
            .min()
            .map(|w| w as u32);
        o[4] = words(4)
            .into_iter()
            .map(|w| w as i32)
            .max()
            .map(|w| w as u32);
        o[7] = words(7).into_iter().reduce(|x, y| x ^ y);
        let lane = thread % 32;
        let tile = &words(8)[lane / 8 * 8..lane / 8 * 8 + 8];
        o[8] = Some(tile.iter().fold(0, |sum, &w| sum.wrapping_add(w)));
        o[9] = Some(words(9)[lane / 8 * 8]);
    });
    check("warp", "warp_relay", |input, thread, o| {
        let words = block_words(input, thread, 0);
        let value = words[..=thread % BLOCK].iter().fold(1u32, |value, w| {
            value.wrapping_mul(3).wrapping_add(w & 0xff)
        });
        o[0] = Some(value);
    });
}

#[test]
fn block_barriers_sort_and_scan() {
    check("block", "block_barriers", |input, thread, o| {
        let t = thread % BLOCK;
        let words = |k: usize| block_words(input, thread, k);
        o[0] = Some(words(0).iter().map(|w| w & 1).sum());
        o[1] = Some(u32::from(words(1).iter().all(|w| w & 0xf_ffff != 0)));
        o[2] = Some(u32::from(words(2).iter().any(|w| w & 0xff == 3)));
        o[3] = Some(if t < 64 {
            words(3)[63 - t]
        } else {
            words(4)[t ^ 1]
        });
        o[4] = Some(if t < 64 {
            0
        } else {
            words(5)[127 - t] ^ (127 - t) as u32
        });
        o[5] = Some(words(6).iter().map(|w| w >> 2 & 1).sum());
    });
    check("block", "block_sort", |input, thread, o| {
        let mut keys = block_words(input, thread, 0);
        keys.sort_unstable();
        o[0] = Some(keys[thread % BLOCK]);
    });
    check("block", "block_scan", |input, thread, o| {
        let words = block_words(input, thread, 0);
        o[0] = Some(words[..=thread % BLOCK].iter().map(|w| w & 0xffff).sum());
    });
}

#[test]
fn atomics_in_shared_memory() {
    check("atomics", "atomics_shared", |input, thread, o| {
        let first = thread / BLOCK * BLOCK;
        let words = &input[16 * first..16 * (first + BLOCK)];
        let bin = (thread % BLOCK) as u32 & 63;
        o[0] = Some(words.iter().filter(|w| *w & 63 == bin).count() as u32);
        let wide: u64 = block_words(input, thread, 0)
            .iter()
            .map(|&w| u64::from(w) << 3)
            .sum();
        o[1] = Some(wide as u32);
        o[2] = Some((wide >> 32) as u32);
        o[3] = Some(block_words(input, thread, 1).iter().map(|w| w & 15).sum());
        o[5] = Some(BLOCK as u32);
        o[6] = block_words(input, thread, 2).into_iter().max();
    });
    check("atomics", "atomics_lock", |input, thread, o| {
        o[0] = Some(
            block_words(input, thread, 0)
                .iter()
                .fold(0, |sum, &w| sum.wrapping_add(w)),
        );
    });
}

#[test]
fn the_last_block_adds_up() {
    check("atomics", "atomics_last_block", |input, thread, o| {
        if thread == 0 {
            o[0] = Some((0..THREADS).map(|t| input[16 * t] & 0xffff).sum());
        }
    });
}
