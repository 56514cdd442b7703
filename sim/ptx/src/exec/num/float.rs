//! `f32` and `f64` arithmetic.

use super::soft::{self, Exact, Format, Rounding, Value};

/// The flags of an operation that is not the plain one, packed into the immediate of a lane
/// operation: the rounding mode in the low bits.
pub const FTZ: u32 = 1 << 3;
pub const SAT: u32 = 1 << 4;

/// Single precision operations have one NaN.
#[inline(always)]
pub fn canonical(x: f32) -> f32 {
    if x.is_nan() {
        f32::from_bits(0x7fff_ffff)
    } else {
        x
    }
}

/// Subnormal numbers become zero.
#[inline(always)]
pub fn flush(x: f32) -> f32 {
    let bits = x.to_bits();
    if bits & 0x7f80_0000 == 0 {
        f32::from_bits(bits & 0x8000_0000)
    } else {
        x
    }
}

/// Into [0, 1]; NaN becomes zero.
#[inline(always)]
pub fn saturate(x: f32) -> f32 {
    if x > 0.0 {
        if x < 1.0 {
            x
        } else {
            1.0
        }
    } else {
        0.0
    }
}

/// Into [0, 1]; NaN becomes zero.
#[inline(always)]
pub fn saturate64(x: f64) -> f64 {
    if x > 0.0 {
        if x < 1.0 {
            x
        } else {
            1.0
        }
    } else {
        0.0
    }
}

/// An operation on one format, exactly rounded. `None` if an operand is not finite, or for what has
/// no finite result; the processor knows the answer then, and rounding does not matter.
fn rounded(
    operands: [u64; 3],
    format: Format,
    mode: Rounding,
    f: impl Fn(Exact, Exact, Exact) -> Option<Exact>,
) -> Option<u64> {
    let mut exact = [Exact {
        negative: false,
        sig: 0,
        exp: 0,
        sticky: false,
    }; 3];
    for (exact, bits) in exact.iter_mut().zip(operands) {
        match soft::unpack(bits, format) {
            Value::Finite(value) => *exact = value,
            _ => return None,
        }
    }
    let [a, b, c] = exact;
    Some(soft::round(f(a, b, c)?, format, mode))
}

/// The operations that take a rounding mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    Add,
    Sub,
    Mul,
    Fma,
    Div,
    Sqrt,
}

fn exactly(op: Operation, mode: Rounding, a: Exact, b: Exact, c: Exact) -> Option<Exact> {
    Some(match op {
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
        Operation::Fma => soft::add(soft::mul(a, b), c, mode),
        Operation::Div if a.sig == 0 || b.sig == 0 => return None,
        Operation::Div => soft::div(a, b),
        Operation::Sqrt if a.sig == 0 || a.negative => return None,
        Operation::Sqrt => soft::sqrt(a),
    })
}

/// An operation with flags.
#[inline]
pub fn with_flags(op: Operation, a: f32, b: f32, c: f32, flags: u32) -> f32 {
    let ftz = flags & FTZ != 0;
    let [a, b, c] = if ftz {
        [flush(a), flush(b), flush(c)]
    } else {
        [a, b, c]
    };
    let native = |op| match op {
        Operation::Add => a + b,
        Operation::Sub => a - b,
        Operation::Mul => a * b,
        Operation::Fma => a.mul_add(b, c),
        Operation::Div => a / b,
        Operation::Sqrt => a.sqrt(),
    };
    let mode = Rounding::from_code(flags);
    let mut result = if mode == Rounding::Nearest {
        native(op)
    } else {
        let operands = [a, b, c].map(|x| u64::from(x.to_bits()));
        match rounded(operands, soft::F32, mode, |a, b, c| {
            exactly(op, mode, a, b, c)
        }) {
            Some(bits) => f32::from_bits(bits as u32),
            None => native(op),
        }
    };
    result = canonical(result);
    if ftz {
        result = flush(result);
    }
    if flags & SAT != 0 {
        result = saturate(result);
    }
    result
}

/// The same in double precision, which knows no `ftz`.
#[inline]
pub fn with_flags64(op: Operation, a: f64, b: f64, c: f64, flags: u32) -> f64 {
    let mode = Rounding::from_code(flags);
    let operands = [a, b, c].map(f64::to_bits);
    let result = match rounded(operands, soft::F64, mode, |a, b, c| {
        exactly(op, mode, a, b, c)
    }) {
        Some(bits) => f64::from_bits(bits),
        None => match op {
            Operation::Add => a + b,
            Operation::Sub => a - b,
            Operation::Mul => a * b,
            Operation::Fma => a.mul_add(b, c),
            Operation::Div => a / b,
            Operation::Sqrt => a.sqrt(),
        },
    };
    if flags & SAT != 0 {
        saturate64(result)
    } else {
        result
    }
}

/// Flags of `min` and `max`.
pub const NAN: u32 = 1 << 5;
pub const XOR_SIGN: u32 = 1 << 6;
pub const MAX: u32 = 1 << 7;

/// `min` or `max`: a number wins over NaN unless the flag says otherwise, and -0 is less than +0.
#[inline(always)]
pub fn extreme(a: f32, b: f32, flags: u32) -> f32 {
    let [mut a, mut b] = if flags & FTZ != 0 {
        [flush(a), flush(b)]
    } else {
        [a, b]
    };
    let sign = if flags & XOR_SIGN != 0 {
        let sign = (a.to_bits() ^ b.to_bits()) & 0x8000_0000;
        a = a.abs();
        b = b.abs();
        sign
    } else {
        0
    };
    let nan = f32::from_bits(0x7fff_ffff);
    let result = if a.is_nan() || b.is_nan() {
        match (a.is_nan() && b.is_nan()) || flags & NAN != 0 {
            true => nan,
            false if a.is_nan() => b,
            false => a,
        }
    } else {
        let less = a < b || a == b && a.is_sign_negative();
        if less == (flags & MAX == 0) {
            a
        } else {
            b
        }
    };
    if result.is_nan() {
        return result;
    }
    f32::from_bits(result.to_bits() | sign)
}

/// The same in double precision.
#[inline(always)]
pub fn extreme64(a: f64, b: f64, flags: u32) -> f64 {
    if a.is_nan() {
        return b;
    }
    if b.is_nan() {
        return a;
    }
    let less = a < b || a == b && a.is_sign_negative();
    if less == (flags & MAX == 0) {
        a
    } else {
        b
    }
}
