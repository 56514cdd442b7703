//! `f32` and `f64` arithmetic.

use super::soft::{self, Exact, Format, Rounding, Value};

/// The flags of an operation that is not the plain one, packed into the immediate of a lane
/// operation: the rounding mode in the low bits.
pub const FTZ: u32 = 1 << 3;
pub const SAT: u32 = 1 << 4;
/// Of a subtraction: the assembler has the second operand first, with the other sign.
pub const EXCHANGED: u32 = 1 << 8;

/// Single precision operations have one NaN. To the compiler all are equal, hence the integers.
#[inline(always)]
pub fn canonical(x: f32) -> f32 {
    let bits = x.to_bits();
    f32::from_bits(if bits & 0x7fff_ffff > 0x7f80_0000 {
        0x7fff_ffff
    } else {
        bits
    })
}

/// Double precision operations hand on an operand that is NaN, made quiet: the first of these. What
/// has no number for a result makes a NaN of its own.
#[inline(always)]
pub fn hand_on<const N: usize>(result: f64, operands: [f64; N]) -> f64 {
    if !result.is_nan() {
        return result;
    }
    let mut bits = 0xfff8_0000_0000_0000;
    for operand in operands.iter().rev() {
        if operand.is_nan() {
            bits = operand.to_bits() | QUIET;
        }
    }
    f64::from_bits(bits)
}

/// The bit of a double precision NaN that tells a quiet one.
const QUIET: u64 = 1 << 51;

/// A NaN made quiet, and else `f` of the bits: a change of sign leaves a NaN as it is.
#[inline(always)]
pub fn sign64(bits: u64, f: impl Fn(u64) -> u64) -> u64 {
    if f64::from_bits(bits).is_nan() {
        bits | QUIET
    } else {
        f(bits)
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

impl Operation {
    /// The operands that the operation has; the others become zero.
    fn own<T: Default>(self, [a, b, c]: [T; 3]) -> [T; 3] {
        match self {
            Operation::Sqrt => [a, T::default(), T::default()],
            Operation::Fma => [a, b, c],
            _ => [a, b, T::default()],
        }
    }
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
        let operands = op.own([a, b, c]).map(|x| u64::from(x.to_bits()));
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
    let operands = op.own([a, b, c]).map(f64::to_bits);
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
    let [a, b, c] = op.own([a, b, c]);
    let by_precedence = match op {
        Operation::Fma => [b, c, a],
        Operation::Add | Operation::Mul => [b, a, c],
        Operation::Sub if flags & EXCHANGED == 0 => [b, a, c],
        _ => [a, b, c],
    };
    hand_on(result, by_precedence)
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
        return canonical(result);
    }
    f32::from_bits(result.to_bits() | sign)
}

/// The same in double precision.
#[inline(always)]
pub fn extreme64(a: f64, b: f64, flags: u32) -> f64 {
    match (a.is_nan(), b.is_nan()) {
        (true, true) => return f64::from_bits(b.to_bits() | QUIET),
        (true, false) => return b,
        (false, true) => return a,
        (false, false) => {}
    }
    let less = a < b || a == b && a.is_sign_negative();
    if less == (flags & MAX == 0) {
        a
    } else {
        b
    }
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;
    use std::arch::asm;

    /// The processor's own answer under a rounding mode.
    macro_rules! native {
        ($name:ident, $ty:ty, $add:literal, $sub:literal, $mul:literal, $div:literal, $sqrt:literal,
         $fma:literal) => {
            fn $name(op: Operation, a: $ty, b: $ty, c: $ty, mode: Rounding) -> $ty {
                let control: u32 = 0x1f80
                    | match mode {
                        Rounding::Down => 1 << 13,
                        Rounding::Up => 2 << 13,
                        Rounding::Zero => 3 << 13,
                        _ => 0,
                    };
                let usual = 0x1f80u32;
                let mut result = a;
                macro_rules! run {
                                            ($instruction:literal) => {
                                                // SAFETY: the control register is put back before the block ends.
                                                unsafe {
                                                    asm!(
                                                        "ldmxcsr [{control}]",
                                                        $instruction,
                                                        "ldmxcsr [{usual}]",
                                                        control = in(reg) &raw const control,
                                                        usual = in(reg) &raw const usual,
                                                        result = inout(xmm_reg) result,
                                                        b = in(xmm_reg) b,
                                                        c = in(xmm_reg) c,
                                                    )
                                                }
                                            };
                                        }
                match op {
                    Operation::Add => run!($add),
                    Operation::Sub => run!($sub),
                    Operation::Mul => run!($mul),
                    Operation::Div => run!($div),
                    Operation::Sqrt => run!($sqrt),
                    Operation::Fma => run!($fma),
                }
                result
            }
        };
    }

    native!(
        native32,
        f32,
        "addss {result}, {b} // {c}",
        "subss {result}, {b} // {c}",
        "mulss {result}, {b} // {c}",
        "divss {result}, {b} // {c}",
        "sqrtss {result}, {result} // {b} {c}",
        "vfmadd213ss {result}, {b}, {c}"
    );
    native!(
        native64,
        f64,
        "addsd {result}, {b} // {c}",
        "subsd {result}, {b} // {c}",
        "mulsd {result}, {b} // {c}",
        "divsd {result}, {b} // {c}",
        "sqrtsd {result}, {result} // {b} {c}",
        "vfmadd213sd {result}, {b}, {c}"
    );

    const OPERATIONS: [Operation; 6] = [
        Operation::Add,
        Operation::Sub,
        Operation::Mul,
        Operation::Fma,
        Operation::Div,
        Operation::Sqrt,
    ];
    const MODES: [Rounding; 4] = [
        Rounding::Nearest,
        Rounding::Zero,
        Rounding::Down,
        Rounding::Up,
    ];

    fn next(state: &mut u64) -> u64 {
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = *state;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// Bit patterns: anything, near one, near the lowest exponents, or special.
    fn bits(state: &mut u64, mantissa: u32, width: u32) -> u64 {
        let any = next(state);
        let low = (1u64 << mantissa) - 1;
        let bias = ((1u64 << (width - mantissa - 2)) - 1) << mantissa;
        let sign = any & 1 << (width - 1);
        let full = u64::MAX >> (64 - width);
        match next(state) % 8 {
            0..=2 => any & full,
            3 | 4 => sign | (bias + (any >> 5 & (low << 3 | 7))) & (full >> 1),
            5 => sign | any & low,
            6 => sign | any & (low << 2 | 3),
            _ => {
                sign | [0, 1, low, low + 1, bias, bias + low, (bias << 1 | low) - 1]
                    [any as usize % 7]
            }
        }
    }

    #[test]
    fn f32_operations_match_the_processor_in_every_mode() {
        if !is_x86_feature_detected!("fma") {
            return;
        }
        let mut state = 1;
        for _ in 0..200_000 {
            let [a, b, c] = [(); 3].map(|()| f32::from_bits(bits(&mut state, 23, 32) as u32));
            for op in OPERATIONS {
                for mode in MODES {
                    let got = with_flags(op, a, b, c, mode.code());
                    let want = canonical(native32(op, a, b, c, mode));
                    assert_eq!(
                        got.to_bits(),
                        want.to_bits(),
                        "{op:?} {mode:?} {a:e} {b:e} {c:e}: {got:e}, not {want:e}"
                    );
                }
            }
        }
    }

    #[test]
    fn f64_operations_match_the_processor_in_every_mode() {
        if !is_x86_feature_detected!("fma") {
            return;
        }
        let mut state = 2;
        for _ in 0..200_000 {
            let [a, b, c] = [(); 3].map(|()| f64::from_bits(bits(&mut state, 52, 64)));
            for op in OPERATIONS {
                for mode in MODES {
                    let got = with_flags64(op, a, b, c, mode.code());
                    let want = native64(op, a, b, c, mode);
                    let same = got.to_bits() == want.to_bits() || got.is_nan() && want.is_nan();
                    assert!(
                        same,
                        "{op:?} {mode:?} {a:e} {b:e} {c:e}: {got:e}, not {want:e}"
                    );
                }
            }
        }
    }

    #[test]
    fn saturation_and_flushing() {
        let tiny = f32::from_bits(1);
        assert_eq!(
            with_flags(Operation::Add, tiny, -0.0, 0.0, FTZ).to_bits(),
            0
        );
        assert_eq!(
            with_flags(Operation::Mul, -tiny, 1.0, 0.0, FTZ).to_bits(),
            0x8000_0000
        );
        assert_eq!(with_flags(Operation::Add, 2.0, 1.0, 0.0, SAT), 1.0);
        assert_eq!(with_flags(Operation::Sub, 1.0, 2.0, 0.0, SAT).to_bits(), 0);
        assert_eq!(
            with_flags(Operation::Mul, f32::NAN, 2.0, 0.0, SAT).to_bits(),
            0
        );
    }

    #[test]
    fn extremes_order_zeros_and_skip_nan() {
        assert_eq!(extreme(0.0, -0.0, 0).to_bits(), 0x8000_0000);
        assert_eq!(extreme(-0.0, 0.0, MAX).to_bits(), 0);
        assert_eq!(extreme(f32::NAN, 3.0, 0), 3.0);
        assert_eq!(extreme(f32::NAN, 3.0, NAN).to_bits(), 0x7fff_ffff);
        assert_eq!(extreme(-3.0, 2.0, XOR_SIGN), -2.0);
    }
}
