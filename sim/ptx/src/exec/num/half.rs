//! Half precision: `f16` and `bf16`, one by one and in pairs.
//!
//! An operation on halves is exact in double precision but for a tail that only matters as a sign
//! of inexactness. It is rounded to odd there, and once more to the format.

use super::float::{self, Operation};
use super::soft::{self, Format, Rounding, Value, BF16, F16};

/// Flags beyond those of [`float`], in the immediate of a lane operation.
pub const RELU: u32 = 1 << 8;
/// The format is `bf16`.
pub const BRAIN: u32 = 1 << 9;
/// The operand is a pair.
pub const PAIR: u32 = 1 << 10;

pub fn format(flags: u32) -> Format {
    if flags & BRAIN != 0 {
        BF16
    } else {
        F16
    }
}

/// The value of an `f16`.
#[inline]
pub fn f16_to_f32(bits: u16) -> f32 {
    let sign = u32::from(bits & 0x8000) << 16;
    let rest = u32::from(bits & 0x7fff);
    let magnitude = match rest >> 10 {
        // A subnormal number is a small integer, scaled.
        0 => return f32::from_bits((rest as f32 * 2f32.powi(-24)).to_bits() | sign),
        31 if rest & 0x3ff != 0 => return f32::from_bits(0x7fff_ffff),
        31 => 0x7f80_0000,
        _ => (rest << 13) + (112 << 23),
    };
    f32::from_bits(magnitude | sign)
}

/// The value of a `bf16`.
#[inline]
pub fn bf16_to_f32(bits: u16) -> f32 {
    f32::from_bits(u32::from(bits) << 16)
}

#[inline]
pub fn to_f32(bits: u16, flags: u32) -> f32 {
    if flags & BRAIN != 0 {
        bf16_to_f32(bits)
    } else {
        f16_to_f32(bits)
    }
}

/// To the nearest half, ties to even.
#[inline]
pub fn from_f64(x: f64, format: Format) -> u16 {
    let bits = x.to_bits();
    let sign = (bits >> 48) as u16 & 0x8000;
    if x.is_nan() {
        return 0x7fff;
    }
    let mantissa = format.mantissa;
    let bias = format.bias() as i64;
    let magnitude = bits & (u64::MAX >> 1);
    let exponent = (magnitude >> 52) as i64 - 1023;
    if exponent < 1 - bias {
        // Subnormal: adding this number leaves the integer we want in its low bits.
        let magic = f64::from_bits(((1023 + 52 + 1 - bias - i64::from(mantissa)) as u64) << 52);
        return sign | ((f64::from_bits(magnitude) + magic).to_bits() - magic.to_bits()) as u16;
    }
    let drop = 52 - mantissa;
    let rebased = magnitude - (((1023 - bias) as u64) << 52);
    let round = (1u64 << (drop - 1)) - 1 + (rebased >> drop & 1);
    let rounded = (rebased + round) >> drop;
    sign | rounded.min(format.infinity()) as u16
}

/// The sum, with its last bit odd if it is not exact.
#[inline]
fn add_odd(a: f64, b: f64) -> f64 {
    let sum = a + b;
    let part = sum - a;
    let error = (a - (sum - part)) + (b - part);
    let bits = sum.to_bits();
    if error == 0.0 || !sum.is_finite() || bits & 1 != 0 {
        return sum;
    }
    f64::from_bits(if (error > 0.0) == (sum > 0.0) {
        bits + 1
    } else {
        bits - 1
    })
}

fn flush_half(bits: u16, format: Format) -> u16 {
    if u64::from(bits) & format.infinity() == 0 {
        bits & 0x8000
    } else {
        bits
    }
}

/// `add`, `sub`, `mul` or `fma` of one half each, rounded to nearest.
#[inline]
fn one(op: Operation, [mut a, mut b, mut c]: [u16; 3], flags: u32) -> u16 {
    let format = format(flags);
    if flags & float::FTZ != 0 {
        [a, b, c] = [a, b, c].map(|x| flush_half(x, format));
    }
    let [x, y, z] = [a, b, c].map(|h| f64::from(to_f32(h, flags)));
    let exact = match op {
        Operation::Add => add_odd(x, y),
        Operation::Sub => add_odd(x, -y),
        Operation::Mul => x * y,
        _ => add_odd(x * y, z),
    };
    let mode = Rounding::from_code(flags);
    let mut result = if mode == Rounding::Nearest {
        from_f64(exact, format)
    } else {
        match soft::unpack(exact.to_bits(), soft::F64) {
            Value::Finite(value) => soft::round(value, format, mode) as u16,
            _ => from_f64(exact, format),
        }
    };
    if flags & float::FTZ != 0 {
        result = flush_half(result, format);
    }
    if flags & (float::SAT | RELU) != 0 {
        result = clamp(result, flags);
    }
    result
}

/// `sat` brings a value into [0, 1], `relu` makes it at least zero; NaN becomes zero by the first
/// and stays by the second.
pub fn clamp(bits: u16, flags: u32) -> u16 {
    let value = to_f32(bits, flags);
    let one = if flags & BRAIN != 0 { 0x3f80 } else { 0x3c00 };
    if value.is_nan() {
        return if flags & float::SAT != 0 { 0 } else { 0x7fff };
    }
    if bits & 0x8000 != 0 {
        return 0;
    }
    if flags & float::SAT != 0 && value > 1.0 {
        one
    } else {
        bits
    }
}

/// Both halves of a word, or the low one alone.
#[inline(always)]
fn each(flags: u32, f: impl Fn(u32) -> u16) -> u32 {
    let low = u32::from(f(0));
    if flags & PAIR != 0 {
        low | u32::from(f(16)) << 16
    } else {
        low
    }
}

/// `add`, `sub`, `mul` or `fma` of halves or pairs.
#[inline]
pub fn arithmetic(op: Operation, a: u32, b: u32, c: u32, flags: u32) -> u32 {
    each(flags, |at| {
        one(
            op,
            [(a >> at) as u16, (b >> at) as u16, (c >> at) as u16],
            flags,
        )
    })
}

/// `min` or `max`.
pub fn extreme(a: u32, b: u32, flags: u32) -> u32 {
    each(flags, |at| {
        let [mut a, mut b] = [(a >> at) as u16, (b >> at) as u16];
        if flags & float::FTZ != 0 {
            [a, b] = [a, b].map(|x| flush_half(x, format(flags)));
        }
        // The comparison is exact in single precision, and so is the way back.
        let wide = float::extreme(to_f32(a, flags), to_f32(b, flags), flags & !float::FTZ);
        if wide.is_nan() {
            return 0x7fff;
        }
        from_f64(f64::from(wide), format(flags))
    })
}

/// The result of a change of sign: there is one NaN, and subnormals are flushed if asked for.
fn signed(bits: u16, flags: u32) -> u16 {
    let format = format(flags);
    if u64::from(bits & 0x7fff) > format.infinity() {
        0x7fff
    } else if flags & float::FTZ != 0 {
        flush_half(bits, format)
    } else {
        bits
    }
}

pub fn abs(a: u32, flags: u32) -> u32 {
    each(flags, |at| signed((a >> at) as u16 & 0x7fff, flags))
}

pub fn neg(a: u32, flags: u32) -> u32 {
    each(flags, |at| signed((a >> at) as u16 ^ 0x8000, flags))
}

/// A function computed in single precision.
pub fn function(a: u32, flags: u32, f: impl Fn(f32) -> f32) -> u32 {
    each(flags, |at| {
        let mut bits = (a >> at) as u16;
        if flags & float::FTZ != 0 {
            bits = flush_half(bits, format(flags));
        }
        let result = from_f64(f64::from(f(to_f32(bits, flags))), format(flags));
        if flags & float::FTZ != 0 {
            flush_half(result, format(flags))
        } else {
            result
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exec::num::soft::Exact;

    /// The operation by exact integer arithmetic.
    fn exactly(op: Operation, operands: [u16; 3], flags: u32) -> Option<u16> {
        let format = format(flags);
        let mut exact = [Exact {
            negative: false,
            sig: 0,
            exp: 0,
            sticky: false,
        }; 3];
        for (exact, bits) in exact.iter_mut().zip(operands) {
            match soft::unpack(u64::from(bits), format) {
                Value::Finite(value) => *exact = value,
                _ => return None,
            }
        }
        let [a, b, c] = exact;
        let mode = Rounding::Nearest;
        let result = match op {
            Operation::Add => soft::add(a, b, mode),
            Operation::Sub => soft::add(
                a,
                Exact {
                    negative: !b.negative,
                    ..b
                },
                mode,
            ),
            Operation::Mul => soft::mul(a, b),
            _ => soft::add(soft::mul(a, b), c, mode),
        };
        Some(soft::round(result, format, mode) as u16)
    }

    #[test]
    fn arithmetic_is_correctly_rounded() {
        let mut state = 3u64;
        let mut next = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as u16
        };
        let operations = [
            Operation::Add,
            Operation::Sub,
            Operation::Mul,
            Operation::Fma,
        ];
        for round in 0..300_000 {
            let mut operands = [next(), next(), next()];
            if round % 2 == 0 {
                // Exponents near each other.
                operands = operands.map(|x| x & 0x8fff | 0x3000);
            }
            for flags in [0, BRAIN] {
                for op in operations {
                    let Some(want) = exactly(op, operands, flags) else {
                        continue;
                    };
                    let got = one(op, operands, flags);
                    assert_eq!(got, want, "{op:?} {operands:x?} {flags:#x}");
                }
            }
        }
    }

    #[test]
    fn every_half_survives_the_way_through_single_precision() {
        for bits in 0..=u16::MAX {
            for (flags, format) in [(0, F16), (BRAIN, BF16)] {
                let wide = to_f32(bits, flags);
                if wide.is_nan() {
                    assert_eq!(from_f64(f64::from(wide), format), 0x7fff);
                } else {
                    assert_eq!(from_f64(f64::from(wide), format), bits);
                }
            }
        }
    }

    #[test]
    fn narrowing_agrees_with_exact_rounding() {
        for step in 0..400_000u32 {
            let x = f32::from_bits(step.wrapping_mul(10_739));
            for format in [F16, BF16] {
                let Value::Finite(exact) = soft::unpack(u64::from(x.to_bits()), soft::F32) else {
                    continue;
                };
                let want = soft::round(exact, format, Rounding::Nearest) as u16;
                assert_eq!(from_f64(f64::from(x), format), want, "{x:e}");
            }
        }
    }
}
