//! `cvt` in general: any type to any type. The common cases have faster routines of their own.

use super::half::{self, f16_to_f32};
use super::soft::{self, Exact, Format, Rounding, Value};

/// A type of a conversion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Side {
    pub float: Option<Format>,
    pub signed: bool,
    pub bits: u32,
}

/// How a conversion goes, packed into the immediate of a lane operation.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    pub from: Side,
    pub to: Side,
    pub mode: Rounding,
    /// Round to an integer first, by `mode`.
    pub integral: bool,
    pub ftz: bool,
    pub sat: bool,
    pub sat_finite: bool,
    pub relu: bool,
}

const FORMATS: [Format; 7] = [
    soft::F16,
    soft::BF16,
    soft::F32,
    soft::F64,
    soft::E4M3,
    soft::E5M2,
    TF32,
];

/// `f32` with a short mantissa: it is rounded as this, and then moved up.
pub const TF32: Format = Format {
    exponent: 8,
    mantissa: 10,
    finite: false,
};

impl Side {
    pub const fn int(signed: bool, bits: u32) -> Side {
        Side {
            float: None,
            signed,
            bits,
        }
    }

    pub const fn float(format: Format, bits: u32) -> Side {
        Side {
            float: Some(format),
            signed: true,
            bits,
        }
    }

    fn encode(self) -> u32 {
        match self.float {
            Some(format) => FORMATS.iter().position(|f| *f == format).unwrap_or(0) as u32,
            None => 8 | u32::from(self.signed) << 2 | (self.bits / 8).trailing_zeros(),
        }
    }

    fn decode(code: u32) -> Side {
        if code & 8 != 0 {
            return Side::int(code & 4 != 0, 8 << (code & 3));
        }
        let format = FORMATS[(code & 7).min(6) as usize];
        let bits = match format {
            TF32 => 32,
            _ => 1 + format.exponent + format.mantissa,
        };
        Side::float(format, bits)
    }
}

impl Plan {
    pub fn encode(self) -> u32 {
        self.from.encode()
            | self.to.encode() << 4
            | self.mode.code() << 8
            | u32::from(self.integral) << 11
            | u32::from(self.ftz) << 12
            | u32::from(self.sat) << 13
            | u32::from(self.sat_finite) << 14
            | u32::from(self.relu) << 15
    }

    pub fn decode(code: u32) -> Plan {
        Plan {
            from: Side::decode(code & 15),
            to: Side::decode(code >> 4 & 15),
            mode: Rounding::from_code(code >> 8),
            integral: code >> 11 & 1 != 0,
            ftz: code >> 12 & 1 != 0,
            sat: code >> 13 & 1 != 0,
            sat_finite: code >> 14 & 1 != 0,
            relu: code >> 15 & 1 != 0,
        }
    }
}

/// Converts the low bits of a value. An integer result is extended to 64 bits by its sign.
pub fn convert(bits: u64, code: u32) -> u64 {
    let plan = Plan::decode(code);
    match plan.from.float {
        None => {
            let value = int_value(bits, plan.from);
            match plan.to.float {
                None => int_to_int(value, plan),
                Some(format) => {
                    let exact = Exact {
                        negative: value < 0,
                        sig: value.unsigned_abs(),
                        exp: 0,
                        sticky: false,
                    };
                    finish_float(soft::round(exact, format, plan.mode), format, plan)
                }
            }
        }
        Some(format) => {
            let bits = bits & (u64::MAX >> (64 - plan.from.bits));
            let bits = if plan.ftz && format == soft::F32 {
                flush(bits, format)
            } else {
                bits
            };
            match plan.to.float {
                None => float_to_int(soft::unpack(bits, format), plan),
                Some(to) => float_to_float(bits, format, to, plan),
            }
        }
    }
}

fn int_value(bits: u64, side: Side) -> i128 {
    let shift = 64 - side.bits;
    match side.signed {
        true => i128::from((bits << shift) as i64 >> shift),
        false => i128::from(bits << shift >> shift),
    }
}

fn limits(side: Side) -> (i128, i128) {
    match side.signed {
        true => (-(1i128 << (side.bits - 1)), (1i128 << (side.bits - 1)) - 1),
        false => (0, (1i128 << side.bits) - 1),
    }
}

fn int_to_int(value: i128, plan: Plan) -> u64 {
    let (low, high) = limits(plan.to);
    let value = if plan.sat {
        value.clamp(low, high)
    } else {
        value
    };
    int_value(value as u64, plan.to) as u64
}

fn float_to_int(value: Value, plan: Plan) -> u64 {
    let (low, high) = limits(plan.to);
    let integer = match value {
        // Zero for narrow types, the top bit alone for wide ones.
        Value::Nan if plan.from.bits == 64 || plan.to.bits == 64 => {
            return int_value(1 << (plan.to.bits - 1), plan.to) as u64;
        }
        Value::Nan => 0,
        Value::Infinite(true) => low,
        Value::Infinite(false) => high,
        Value::Finite(x) if x.exp > 64 && x.sig != 0 => {
            if x.negative {
                low
            } else {
                high
            }
        }
        Value::Finite(x) => soft::to_integer(
            Exact {
                exp: x.exp.min(64),
                ..x
            },
            plan.mode,
        ),
    };
    integer.clamp(low, high) as u64
}

fn flush(bits: u64, format: Format) -> u64 {
    if bits & format.infinity() == 0 {
        bits & format.sign_bit()
    } else {
        bits
    }
}

/// A double precision NaN to single precision: the upper bits of what it carries, made quiet.
fn narrow_nan(bits: u64) -> u64 {
    (bits >> 63) << 31 | 0x7fc0_0000 | bits >> 29 & 0x3f_ffff
}

/// `f64` to `f32`, to nearest.
#[inline]
pub fn f64_to_f32(x: f64) -> f32 {
    if x.is_nan() {
        f32::from_bits(narrow_nan(x.to_bits()) as u32)
    } else {
        x as f32
    }
}

/// What becomes of a NaN. Double precision keeps what it carries, unless flushing makes the one NaN
/// of single precision of it first. A `bf16` is the upper half of its `f32`, whatever it holds.
fn convert_nan(bits: u64, from: Format, to: Format, plan: Plan) -> u64 {
    if plan.sat {
        return 0;
    }
    match (from, to) {
        (soft::F64, soft::F64) => bits | 1 << 51,
        (soft::F64, soft::F32) => narrow_nan(bits),
        (soft::F64, soft::F16) => (bits >> 48) & 0x8000 | 0x7e00 | bits >> 42 & 0x1ff,
        (soft::F32, soft::F64) if !plan.ftz => f64::from(f32::from_bits(bits as u32)).to_bits(),
        (_, soft::F64) => 0x7fff_ffff_e000_0000,
        (soft::BF16, soft::F32) => bits << 16,
        (_, TF32) => 0x7fff_ffff,
        _ => to.nan(),
    }
}

fn float_to_float(bits: u64, from: Format, to: Format, plan: Plan) -> u64 {
    let result = match soft::unpack(bits, from) {
        Value::Nan => return convert_nan(bits, from, to, plan),
        Value::Infinite(negative) => {
            let sign = if negative { to.sign_bit() } else { 0 };
            sign | if to.finite { to.nan() } else { to.infinity() }
        }
        Value::Finite(x) if plan.integral && x.exp < 0 => {
            let integer = soft::to_integer(x, plan.mode);
            let sig = integer.unsigned_abs();
            soft::round(Exact { sig, exp: 0, ..x }, to, Rounding::Nearest)
        }
        Value::Finite(x) => soft::round(x, to, plan.mode),
    };
    finish_float(result, to, plan)
}

/// The modifiers, for the result of a number.
fn finish_float(mut bits: u64, to: Format, plan: Plan) -> u64 {
    let sign = bits & to.sign_bit();
    if plan.sat_finite && bits & !sign > to.largest() {
        bits = sign | to.largest();
    }
    if plan.ftz && to == soft::F32 {
        bits = flush(bits, to);
    }
    if sign != 0 && (plan.relu || plan.sat) {
        bits = 0;
    }
    if plan.sat {
        bits = bits.min((to.bias() as u64) << to.mantissa);
    }
    if to == TF32 {
        bits <<= 13;
    }
    bits
}

/// Two values into the halves of a word, the first one into the upper half.
pub fn pack(high: u64, low: u64, code: u32) -> u32 {
    let width = Plan::decode(code).to.bits;
    let mask = (1u64 << width) - 1;
    ((convert(high, code) & mask) << width | (convert(low, code) & mask)) as u32
}

/// With the width of the parts in the immediate of a lane operation: they are signed.
pub const PACK_SIGNED: u32 = 1 << 8;

/// Two integers, saturated to parts of a word, below what `c` holds.
pub fn pack_integers(a: u32, b: u32, c: u32, flags: u32) -> u32 {
    let width = flags & 0xff;
    let (low, high) = match flags & PACK_SIGNED != 0 {
        true => (-(1 << (width - 1)), (1 << (width - 1)) - 1),
        false => (0, (1 << width) - 1),
    };
    let part = |x: u32| (x as i32).clamp(low, high) as u32 & ((1 << width) - 1);
    c.checked_shl(2 * width).unwrap_or(0) | part(a) << width | part(b)
}

/// Each byte of a half word to an `f16` of a word.
pub fn unpack_bytes(pair: u16, code: u32) -> u32 {
    let low = convert(u64::from(pair & 0xff), code) as u32;
    let high = convert(u64::from(pair >> 8), code) as u32;
    low | high << 16
}

/// Each half of a word to a byte of a half word.
pub fn pack_halves(pair: u32, code: u32) -> u16 {
    pack(u64::from(pair >> 16), u64::from(pair & 0xffff), code) as u16
}

/// `f32` to `f16` or `bf16`, to nearest.
#[inline]
pub fn f32_to_half(x: f32, brain: bool) -> u16 {
    half::from_f64(f64::from(x), if brain { soft::BF16 } else { soft::F16 })
}

/// `f16` to `f32`.
#[inline]
pub fn half_to_f32(x: u16) -> f32 {
    f16_to_f32(x)
}
