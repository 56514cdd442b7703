//! Kernels about words and their bits against the same computation in Rust: numbers of several
//! words, parts of words, comparisons, clusters.
#![allow(clippy::unwrap_used)]

mod common;
use common::reference::{check, own, BLOCK};

fn join(low: u32, high: u32) -> u64 {
    u64::from(low) | u64::from(high) << 32
}

fn join128(words: &[u32]) -> u128 {
    u128::from(join(words[0], words[1])) | u128::from(join(words[2], words[3])) << 64
}

/// The words of a number, lowest first.
fn split<const N: usize>(value: u128) -> [Option<u32>; N] {
    std::array::from_fn(|k| Some((value >> (32 * k)) as u32))
}

#[test]
fn wide_carries() {
    check("wide", "wide_carries", |input, thread, want| {
        let a = own(input, thread);
        let (x, y) = (join128(&a[0..4]), join128(&a[4..8]));
        want[0..4].copy_from_slice(&split::<4>(x.wrapping_add(y)));
        want[4..8].copy_from_slice(&split::<4>(x.wrapping_sub(y)));
        // 64 by 32 bits, plus 96.
        let product = u128::from(join(a[8], a[9])) * u128::from(a[10]);
        let added = u128::from(join(a[11], a[12])) | u128::from(a[13]) << 64;
        want[8..11].copy_from_slice(&split::<3>(product.wrapping_add(added)));
        // An addition carries where a subtraction does not borrow.
        let carries = a[8].checked_add(a[9]).is_none();
        let borrows = a[8] < a[9];
        let rest = a[10].wrapping_sub(a[11]);
        want[11] = Some(rest.wrapping_sub(u32::from(!carries)));
        want[12] = Some(a[10].wrapping_add(a[11]).wrapping_add(u32::from(!borrows)));
        let product = u128::from(join(a[4], a[5])) * u128::from(join(a[6], a[7]));
        let added = join128(&a[8..12]);
        let sum = product.wrapping_add(added);
        want[13] = Some(sum as u32 ^ (sum >> 32) as u32);
        want[14] = Some((sum >> 64) as u32);
        want[15] = Some((sum >> 96) as u32);
    });
}

#[test]
fn wide_shifts() {
    check("wide", "wide_shifts", |input, thread, want| {
        let a = own(input, thread);
        let both = join(a[0], a[1]);
        let high = |value: u128| (value >> 32) as u32;
        want[0] = Some(high(u128::from(both) << (a[2] & 31)));
        want[1] = Some(high(u128::from(both) << (a[2] & 63).min(32)));
        want[2] = Some((both >> (a[2] & 31)) as u32);
        want[3] = Some((both >> (a[2] & 63).min(32)) as u32);
        let (x, y) = (join(a[4], a[5]), join(a[6], a[7]));
        let first = if y == 0 { 0 } else { y.trailing_zeros() + 1 };
        let bits = x.reverse_bits()
            ^ u64::from(y.leading_zeros()) << 50
            ^ u64::from(x.count_ones()) << 20
            ^ u64::from(first);
        want[4..6].copy_from_slice(&split::<2>(bits.into()));
        let shifted = x >> (a[2] & 63);
        want[6] = Some(shifted.checked_ilog2().unwrap_or(u32::MAX));
        let signed = x as i64 >> (a[2] & 63);
        let differing = (signed ^ signed >> 63) as u64;
        want[7] = Some(differing.checked_ilog2().map_or(u32::MAX, |top| 63 - top));
        let n = y as u32 & 127;
        let left = if n > 63 { 0 } else { x << n };
        want[8..10].copy_from_slice(&split::<2>(left.into()));
        let right = (x as i64 >> n.min(63)) as u64;
        want[10..12].copy_from_slice(&split::<2>(right.into()));
        let product = i128::from(x as i64) * i128::from(y as i64);
        want[12..14].copy_from_slice(&split::<2>((product >> 64) as u128));
        let turned = x.wrapping_add(y).rotate_left(32);
        want[14..16].copy_from_slice(&split::<2>(turned.into()));
    });
}

/// Applies a function to each part of this width, as signed numbers and as unsigned ones.
fn parts(x: u32, y: u32, width: u32, f: impl Fn([i64; 2], [i64; 2]) -> i64) -> u32 {
    let mask = u32::MAX >> (32 - width);
    let mut out = 0;
    for at in (0..32).step_by(width as usize) {
        let unsigned = [x, y].map(|w| i64::from(w >> at & mask));
        let signed = [x, y].map(|w| i64::from(((w >> at) << (32 - width)) as i32 >> (32 - width)));
        out |= (f(signed, unsigned) as u32 & mask) << at;
    }
    out
}

#[test]
fn packed_simd() {
    check("packed", "packed_simd", |input, thread, want| {
        let [x, y, z, w, ..] = *own(input, thread) else {
            unreachable!("sixteen words")
        };
        let add4 = parts(x, y, 8, |_, [a, b]| a + b);
        want[0] = Some(add4 ^ parts(z, w, 16, |_, [a, b]| a - b));
        let saturated = parts(x, y, 16, |[a, b], _| (a + b).clamp(-32768, 32767));
        want[1] = Some(saturated ^ parts(z, w, 8, |_, [a, b]| (a - b).max(0)));
        let saturated = parts(x, y, 8, |_, [a, b]| (a + b).min(255));
        let other = parts(z, w, 8, |[a, b], _| (a - b).clamp(-128, 127));
        want[2] = Some(saturated.wrapping_add(other));
        let average = parts(x, y, 16, |[a, b], _| (a + b + i64::from(a + b >= 0)) >> 1);
        want[3] = Some(average ^ parts(z, w, 8, |_, [a, b]| (a + b + 1) >> 1));
        let half = parts(x, y, 8, |_, [a, b]| (a + b) >> 1);
        want[4] = Some(half ^ parts(z, w, 16, |_, [a, b]| (a + b) >> 1));
        let distance = parts(x, y, 8, |[a, b], _| (a - b).abs());
        want[5] = Some(distance ^ parts(z, w, 16, |_, [a, b]| (a - b).abs()));
        let extremes = parts(x, y, 8, |[a, b], _| a.max(b));
        want[6] = Some(extremes ^ parts(z, w, 16, |_, [a, b]| a.min(b)));
        let extremes = parts(x, y, 16, |[a, b], _| a.min(b));
        want[7] = Some(extremes ^ parts(z, w, 8, |_, [a, b]| a.max(b)));
        let compared = parts(x, y, 8, |[a, b], _| -i64::from(a > b));
        want[8] = Some(compared ^ parts(z, w, 16, |_, [a, b]| -i64::from(a <= b)));
        let compared = parts(x, y, 16, |[a, b], _| i64::from(a <= b));
        let other = parts(z, w, 8, |_, [a, b]| i64::from(a > b));
        want[9] = Some(compared.wrapping_add(other.wrapping_mul(8)));
        let sum = |word: u32, width: u32| -> u32 {
            let mask = u32::MAX >> (32 - width);
            (0..32 / width).map(|k| word >> (k * width) & mask).sum()
        };
        let distances = parts(x, y, 8, |[a, b], _| (a - b).abs());
        let others = parts(z, w, 16, |_, [a, b]| (a - b).abs());
        want[10] = Some(sum(distances, 8) + sum(others, 16));
        let magnitude = parts(x, x, 8, |[a, _], _| a.abs());
        let bounded = parts(y, y, 16, |[a, _], _| a.abs().min(32767));
        let negative = parts(z, z, 16, |[a, _], _| -a);
        let both = parts(w, w, 8, |[a, _], _| (-a).min(127));
        want[11] = Some(magnitude ^ bounded ^ negative ^ both);
    });
}

/// A sum over all parts.
fn total(word: u32, width: u32) -> u32 {
    let mask = u32::MAX >> (32 - width);
    let parts = (0..32 / width).map(|k| word >> (k * width) & mask);
    parts.fold(0, u32::wrapping_add)
}

#[test]
fn packed_video() {
    check("packed", "packed_video", |input, thread, want| {
        let a = own(input, thread);
        let sum = parts(a[0], a[1], 16, |[_, y], [x, _]| {
            (x + y).clamp(-32768, 32767)
        });
        want[0] = Some(sum);
        let rest = parts(a[0], a[1], 8, |[x, _], [_, y]| (x - y).clamp(0, 255));
        want[1] = Some(rest);
        let average = |[x, y]: [i64; 2]| (x + y + i64::from(x + y >= 0)) >> 1;
        want[2] = Some(parts(a[0], a[1], 8, |signed, _| average(signed)));
        want[3] = Some(parts(a[0], a[1], 16, |_, unsigned| average(unsigned)));
        let distances = parts(a[3], a[4], 8, |_, [x, y]| (x - y).abs());
        want[4] = Some(total(distances, 8).wrapping_add(a[5]));
        want[5] = Some(parts(a[3], a[4], 16, |[x, y], _| (x - y).abs()));
        want[6] = Some(parts(a[3], a[4], 8, |[x, y], _| x.min(y)));
        let largest = parts(a[3], a[4], 16, |_, [x, y]| x.max(y));
        want[7] = Some(total(largest, 16).wrapping_add(a[5]));
        want[8] = Some(parts(a[6], a[7], 8, |_, [x, y]| i64::from(x < y)));
        want[9] = Some(parts(a[6], a[7], 16, |[x, y], _| i64::from(x >= y)));
        let differ = parts(a[6], a[7], 8, |[x, _], [_, y]| i64::from(x != y));
        want[10] = Some(total(differ, 8).wrapping_add(a[8]));

        let (x, y) = (
            a[9] as i32 >> (a[10] & 31),
            a[11] as i32 >> (a[10] >> 8 & 31),
        );
        let pack = |x: i32, y: i32, low: i32, high: i32, bits: u32| -> u32 {
            let part = |v: i32| v.clamp(low, high) as u32 & (u32::MAX >> (32 - bits));
            part(x) << bits | part(y)
        };
        want[11] = Some(pack(x, y, -32768, 32767, 16));
        want[12] = Some(pack(x, y, 0, 65535, 16));
        want[13] = Some(a[12] << 16 | pack(x, a[11] as i32 >> 20, 0, 255, 8));
        let (x, y) = (a[9] as i32 >> 22, a[11] as i32 >> (a[10] & 31));
        want[14] = Some(a[12] << 16 | pack(x, y, -128, 127, 8));

        let sum = parts(a[13], a[14], 16, |_, [x, y]| x + y);
        let least = parts(sum, a[15], 16, |[x, y], _| x.min(y));
        want[15] = Some(parts(least, a[13], 16, |_, [x, y]| x.max(y)));
    });
}

/// A sum of products of the parts of two words, each with a sign or without.
fn dot(x: [i64; 4], y: [i64; 4], added: u32) -> u32 {
    let products = x.into_iter().zip(y).map(|(x, y)| x * y);
    added.wrapping_add(products.sum::<i64>() as u32)
}

fn bytes(word: u32, signed: bool) -> [i64; 4] {
    word.to_le_bytes().map(|byte| match signed {
        true => i64::from(byte as i8),
        false => i64::from(byte),
    })
}

/// The halves of a word, for the lower or the upper two bytes of another.
fn halves(word: u32, signed: bool, high: bool) -> [i64; 4] {
    let [low, top] = [word as u16, (word >> 16) as u16].map(|half| match signed {
        true => i64::from(half as i16),
        false => i64::from(half),
    });
    match high {
        true => [0, 0, low, top],
        false => [low, top, 0, 0],
    }
}

/// The position of the set bit that is so many steps away from the base.
fn nth_bit(mask: u32, base: u32, offset: i32) -> u32 {
    let set = |position: &u32| mask >> position & 1 != 0;
    let steps = offset.unsigned_abs().saturating_sub(1) as usize;
    let found = match offset.signum() {
        0 => Some(base).filter(set),
        1 => (base..32).filter(set).nth(steps),
        _ => (0..=base).rev().filter(set).nth(steps),
    };
    found.unwrap_or(u32::MAX)
}

/// So many ones from a position on.
fn ones(position: u32, count: u32) -> u32 {
    (position..(position + count).min(32)).fold(0, |bits, k| bits | 1 << k)
}

#[test]
fn packed_products() {
    check("packed", "packed_products", |input, thread, want| {
        let a = own(input, thread);
        want[0] = Some(dot(bytes(a[0], true), bytes(a[1], true), a[2]));
        want[1] = Some(dot(bytes(a[0], false), bytes(a[1], false), a[2]));
        want[2] = Some(dot(bytes(a[0], true), bytes(a[1], false), a[2]));
        want[3] = Some(dot(halves(a[3], true, false), bytes(a[4], true), a[5]));
        want[4] = Some(dot(halves(a[3], false, true), bytes(a[4], false), a[5]));
        want[5] = Some(dot(halves(a[3], false, true), bytes(a[4], true), a[5]));

        let narrow = |word: u32| i64::from((word << 8) as i32 >> 8);
        let product = narrow(a[6]) * narrow(a[7]);
        want[6] = Some(product as u32);
        let unsigned = u64::from(a[6] & 0xff_ffff) * u64::from(a[7] & 0xff_ffff);
        want[7] = Some((unsigned >> 16) as u32);
        let saturated = |high: i64| (high as i32).saturating_add(a[8] as i32) as u32;
        want[8] = Some(saturated(product >> 16));
        let product = i64::from(a[6] as i32) * i64::from(a[7] as i32);
        want[9] = Some(saturated(product >> 32));
        let signed = (a[9] as i32).abs_diff(a[10] as i32).wrapping_add(a[11]);
        want[10] = Some(signed ^ a[9].abs_diff(a[10]).wrapping_add(a[11]));

        want[11] = Some(nth_bit(a[12], a[13] & 31, (a[14] & 15) as i32 - 7));
        want[12] = Some(ones(a[13] & 31, a[14] & 31));
        want[13] = Some(ones(a[13] & 63, a[14] & 63));
        // The lowest bits with a sign, and the lowest bits without.
        let signed = match a[14] & 31 {
            0 => 0,
            width => ((a[15] << (32 - width)) as i32 >> (32 - width)) as u32,
        };
        want[14] = Some(signed ^ (a[15] & ones(0, a[14] & 63)));

        let both = join(a[0], a[1]).to_le_bytes();
        let n = a[2] as usize & 3;
        let choose = |f: &dyn Fn(usize) -> usize| {
            u32::from_le_bytes(std::array::from_fn(|k| both[f(k) % 8]))
        };
        let backwards = choose(&|k| n + 8 - k) ^ choose(&|_| n);
        let left = backwards.wrapping_add(choose(&|k| k.max(n)));
        want[15] = Some(left ^ choose(&|k| k.min(n)));
    });
}

#[test]
fn compare_integers() {
    check("compare", "compare_integers", |input, thread, want| {
        let a = own(input, thread);
        fn signed<T: PartialOrd>(x: T, y: T) -> u32 {
            let holds = [x == y, x != y, x < y, x <= y, x > y, x >= y];
            (0..6).map(|k| u32::from(holds[k]) << k).sum()
        }
        fn unsigned<T: PartialOrd>(x: T, y: T) -> u32 {
            let holds = [x < y, x <= y, x > y, x >= y];
            let also: u32 = (0..4).map(|k| u32::from(holds[k]) << (8 + k)).sum();
            signed(x, y) | also
        }
        let (x, y) = (a[0], if a[1] & 3 != 0 { a[1] } else { a[0] });
        let u = join(a[2], a[3]);
        let v = if a[1] & 4 != 0 { u } else { join(a[4], a[5]) };
        let s = a[6] as u16;
        let t = if a[6] >> 24 & 1 != 0 { a[7] as u16 } else { s };
        want[0] = Some(signed(x as i32, y as i32));
        want[1] = Some(unsigned(x, y));
        want[2] = Some(signed(u as i64, v as i64));
        want[3] = Some(unsigned(u, v));
        want[4] = Some(signed(s as i16, t as i16));
        want[5] = Some(unsigned(s, t));
        let (less, third) = ((x as i32) < y as i32, a[8] & 1 != 0);
        let pair = |first: bool, second: bool| Some(u32::from(first) + 2 * u32::from(second));
        want[6] = pair(less && third, !less && third);
        want[7] = pair(less || !third, !less || !third);
        want[8] = pair((x > y) != third, (x <= y) != third);
        let set = (x as i32 <= y as i32) != third;
        want[9] = Some(if set { u32::MAX } else { 0 });
        want[10] = Some(if a[9] as i32 >= 0 { x } else { y });
        let chosen = if f32::from_bits(a[10]) >= 0.0 { u } else { v };
        want[11..13].copy_from_slice(&[Some(chosen as u32), Some((chosen >> 32) as u32)]);
        let (p, q) = (x < y, a[11] & 1 != 0);
        let s = p != q || !q;
        want[13] = Some(if p && s { 5 } else { 9 } + if s { 64 } else { 0 });
        // `a & b & !c`
        let value = a[12] & a[13] & !a[14] & 3;
        want[14] = Some(value + u32::from(value != 0 || a[15] & 1 != 0));
        want[15] = Some(1 - (a[12] & 1));
    });
}

#[test]
fn clusters_and_publishing() {
    check("cluster", "cluster_alone", |input, thread, want| {
        let (block, t) = (thread / BLOCK, thread % BLOCK);
        let other = |t: usize, k: usize| own(input, block * BLOCK + t)[k];
        let a = own(input, thread);
        let sum = (0..4).fold(0u32, |sum, k| sum.wrapping_add(a[k]));
        want[0] = Some(other(127 - t, 0).wrapping_add(sum));
        want[1] = Some(other(127 - t, 0));
        want[2..7].copy_from_slice(&[0, 0, 1, 2, block as u32].map(Some));
        want[7] = Some(if t < 64 { other(63 - t, 1) } else { 0 });
    });
    check("caches", "caches_publish", |input, thread, want| {
        let from = thread / BLOCK * BLOCK + thread % 32;
        want[0] = Some(own(input, from)[0]);
    });
}
