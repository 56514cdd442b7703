//! Bit fields, as the instruction set defines them.

/// Position of the highest set bit, or all ones.
pub fn find_top(a: u64) -> u32 {
    if a == 0 {
        u32::MAX
    } else {
        63 - a.leading_zeros()
    }
}

/// How far the highest set bit is from the top, or all ones.
pub fn shift_to_top(a: u64, top: u32) -> u32 {
    if a == 0 {
        u32::MAX
    } else {
        top - find_top(a)
    }
}

/// The field of `length` bits from `start`, filled with the sign or with zeros.
pub fn extract(a: u64, start: u32, length: u32, width: u32, signed: bool) -> u64 {
    let (start, length) = (start & 0xff, length & 0xff);
    let top = width - 1;
    let sign = if !signed || length == 0 {
        0
    } else {
        a >> (start + length - 1).min(top) & 1
    };
    let mut out = if sign != 0 { u64::MAX } else { 0 };
    let held = length.min(width.saturating_sub(start));
    if held > 0 {
        let mask = u64::MAX >> (64 - held);
        out = (out & !mask) | (a >> start & mask);
    }
    out
}

/// `b` with `length` bits from `start` replaced by the low bits of `a`.
pub fn insert(a: u64, b: u64, start: u32, length: u32, width: u32) -> u64 {
    let (start, length) = (start & 0xff, length & 0xff);
    if length == 0 || start >= width {
        return b;
    }
    let held = length.min(width - start);
    let mask = (u64::MAX >> (64 - held)) << start;
    (b & !mask) | (a << start & mask)
}

/// Ones from `start` on, `length` of them.
pub fn mask(start: u32, length: u32, clamp: bool) -> u32 {
    let (start, length) = match clamp {
        true => (start.min(32), length.min(32)),
        false => (start & 31, length & 31),
    };
    let ones = if length >= 32 {
        u32::MAX
    } else {
        (1 << length) - 1
    };
    ones.checked_shl(start).unwrap_or(0)
}

/// The low `n` bits of `a`, extended.
pub fn extend(a: u32, n: u32, clamp: bool, signed: bool) -> u32 {
    let n = if clamp { n.min(32) } else { n & 31 };
    match (n, signed) {
        (0, _) => 0,
        (32, _) => a,
        (n, false) => a & ((1 << n) - 1),
        (n, true) => ((a << (32 - n)) as i32 >> (32 - n)) as u32,
    }
}

/// Position of the n-th set bit from `base` on, upwards or downwards, or all ones.
pub fn find_nth_set(mask: u32, base: u32, offset: u32) -> u32 {
    let offset = offset as i32;
    if base > 31 {
        return u32::MAX;
    }
    if offset == 0 {
        return if mask >> base & 1 != 0 {
            base
        } else {
            u32::MAX
        };
    }
    let mut left = offset.unsigned_abs();
    let mut at = base as i32;
    while (0..32).contains(&at) {
        if mask >> at & 1 != 0 {
            left -= 1;
            if left == 0 {
                return at as u32;
            }
        }
        at += offset.signum();
    }
    u32::MAX
}

/// Byte `n` of the eight bytes in `b` and `a`.
fn byte(a: u32, b: u32, n: u32) -> u32 {
    ((u64::from(b) << 32 | u64::from(a)) >> (8 * (n & 7))) as u32 & 0xff
}

/// Four bytes chosen by the nibbles of `c`; the top bit of a nibble asks for the sign instead.
pub fn permute(a: u32, b: u32, c: u32) -> u32 {
    let mut out = 0;
    for i in 0..4 {
        let selector = c >> (4 * i);
        let mut value = byte(a, b, selector);
        if selector & 8 != 0 {
            value = if value & 0x80 != 0 { 0xff } else { 0 };
        }
        out |= value << (8 * i);
    }
    out
}

/// The named modes of `prmt`: forward and backward four, replicate a byte, clamp at either edge,
/// replicate a half.
pub fn permute_by(a: u32, b: u32, c: u32, mode: u32) -> u32 {
    let n = c & 3;
    let mut out = 0;
    for i in 0..4 {
        let from = match mode {
            0 => n + i,
            1 => n.wrapping_sub(i),
            2 => n,
            3 => i.max(n),
            4 => i.min(n),
            _ => (n & 1) * 2 + (i & 1),
        };
        out |= byte(a, b, from) << (8 * i);
    }
    out
}

/// Any function of three bits, by its truth table.
#[inline(always)]
pub fn lop3(a: u32, b: u32, c: u32, table: u32) -> u32 {
    let row = |bit: u32| (table >> bit & 1).wrapping_neg();
    (row(0) & !a & !b & !c)
        | (row(1) & !a & !b & c)
        | (row(2) & !a & b & !c)
        | (row(3) & !a & b & c)
        | (row(4) & a & !b & !c)
        | (row(5) & a & !b & c)
        | (row(6) & a & b & !c)
        | (row(7) & a & b & c)
}

/// The high half of `b:a` shifted left.
#[inline(always)]
pub fn funnel_left(a: u32, b: u32, n: u32) -> u32 {
    ((u64::from(b) << 32 | u64::from(a)) << n >> 32) as u32
}

/// The low half of `b:a` shifted right.
#[inline(always)]
pub fn funnel_right(a: u32, b: u32, n: u32) -> u32 {
    ((u64::from(b) << 32 | u64::from(a)) >> n) as u32
}

/// An operation of the SIMD video instructions on each of `count` parts of a word.
pub fn by_parts(
    a: u32,
    b: u32,
    count: u32,
    signed: (bool, bool),
    f: impl Fn(i32, i32) -> i32,
) -> [i32; 4] {
    let width = 32 / count;
    let part = |word: u32, i: u32, signed: bool| {
        let up = word << (32 - width * (i + 1));
        match signed {
            true => up as i32 >> (32 - width),
            false => (up >> (32 - width)) as i32,
        }
    };
    let mut out = [0; 4];
    for i in 0..count {
        out[i as usize] = f(part(a, i, signed.0), part(b, i, signed.1));
    }
    out
}

/// Flags of a SIMD video instruction, in the immediate of a lane operation.
pub const QUAD: u32 = 1 << 4;
pub const SIGNED_D: u32 = 1 << 5;
pub const SIGNED_A: u32 = 1 << 6;
pub const SIGNED_B: u32 = 1 << 7;
pub const SATURATE: u32 = 1 << 8;
pub const ACCUMULATE: u32 = 1 << 9;

/// A SIMD video instruction; the low bits of the flags say which.
pub fn video(a: u32, b: u32, c: u32, flags: u32) -> u32 {
    let count = if flags & QUAD != 0 { 4 } else { 2 };
    let width = 32 / count;
    let signed = (flags & SIGNED_A != 0, flags & SIGNED_B != 0);
    let parts = by_parts(a, b, count, signed, |a, b| match flags & 15 {
        0 => a + b,
        1 => a - b,
        2 => (a + b + i32::from(a + b >= 0)) >> 1,
        3 => (a - b).abs(),
        4 => a.min(b),
        _ => a.max(b),
    });
    if flags & ACCUMULATE != 0 {
        return parts
            .iter()
            .fold(c, |sum, &part| sum.wrapping_add(part as u32));
    }
    let (low, high) = match flags & SIGNED_D != 0 {
        true => (-(1 << (width - 1)), (1 << (width - 1)) - 1),
        false => (0, ((1u32 << width) - 1) as i32),
    };
    let mask = (1u32 << width) - 1;
    parts
        .iter()
        .take(count as usize)
        .enumerate()
        .fold(0, |word, (i, &part)| {
            let part = if flags & SATURATE != 0 {
                part.clamp(low, high)
            } else {
                part
            };
            word | (part as u32 & mask) << (width * i as u32)
        })
}

/// A comparison of parts by a SIMD video instruction; the low bits of the flags say which.
pub fn video_set(a: u32, b: u32, c: u32, flags: u32) -> u32 {
    let count = if flags & QUAD != 0 { 4 } else { 2 };
    let signed = (flags & SIGNED_A != 0, flags & SIGNED_B != 0);
    let parts = by_parts(a, b, count, signed, |a, b| {
        i32::from(match flags & 15 {
            0 => a == b,
            1 => a != b,
            2 => a < b,
            3 => a <= b,
            4 => a > b,
            _ => a >= b,
        })
    });
    if flags & ACCUMULATE != 0 {
        return parts
            .iter()
            .fold(c, |sum, &part| sum.wrapping_add(part as u32));
    }
    let width = 32 / count;
    (0..count).fold(0, |word, i| {
        word | (parts[i as usize] as u32) << (width * i)
    })
}
