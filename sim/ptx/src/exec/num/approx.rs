//! The approximate functions, computed in double precision: closer than the hardware's bounds.

use super::float::{canonical, flush};

/// A function of one `f32`, with or without flushing of subnormals.
#[inline(always)]
fn by_double(x: f32, ftz: bool, f: impl Fn(f64) -> f64) -> f32 {
    let x = if ftz { flush(x) } else { x };
    let y = canonical(f(f64::from(x)) as f32);
    if ftz {
        flush(y)
    } else {
        y
    }
}

pub fn rcp(x: f32, ftz: bool) -> f32 {
    by_double(x, ftz, |x| 1.0 / x)
}

pub fn sqrt(x: f32, ftz: bool) -> f32 {
    by_double(x, ftz, f64::sqrt)
}

pub fn rsqrt(x: f32, ftz: bool) -> f32 {
    by_double(x, ftz, |x| 1.0 / x.sqrt())
}

pub fn sin(x: f32, ftz: bool) -> f32 {
    by_double(x, ftz, f64::sin)
}

pub fn cos(x: f32, ftz: bool) -> f32 {
    by_double(x, ftz, f64::cos)
}

pub fn tanh(x: f32) -> f32 {
    by_double(x, false, f64::tanh)
}

pub fn lg2(x: f32, ftz: bool) -> f32 {
    by_double(x, ftz, f64::log2)
}

pub fn ex2(x: f32, ftz: bool) -> f32 {
    by_double(x, ftz, f64::exp2)
}

/// The quotient, correctly rounded but for the range in which the hardware answers zero.
pub fn div(a: f32, b: f32, ftz: bool, full: bool) -> f32 {
    let [a, b] = if ftz { [flush(a), flush(b)] } else { [a, b] };
    let magnitude = b.abs();
    let y = if !full && magnitude > 2f32.powi(126) && magnitude.is_finite() {
        if a.is_infinite() || a.is_nan() {
            f32::NAN
        } else {
            (0.0f32).copysign(a) * 1f32.copysign(b)
        }
    } else {
        a / b
    };
    let y = canonical(y);
    if ftz {
        flush(y)
    } else {
        y
    }
}

/// The rough double precision forms look at the upper half of their operand and leave the lower
/// half of the result zero. Subnormals are flushed.
fn rough(x: f64, f: impl Fn(f64) -> f64) -> f64 {
    let upper = f64::from_bits(x.to_bits() & 0xffff_ffff_0000_0000);
    let upper = if upper.is_subnormal() {
        0f64.copysign(upper)
    } else {
        upper
    };
    if x.is_nan() {
        return f64::from_bits(0x7fff_ffff_0000_0000);
    }
    let y = f(upper);
    if y.is_nan() {
        return f64::from_bits(0x7fff_ffff_0000_0000);
    }
    let y = if y.is_subnormal() {
        0f64.copysign(y)
    } else {
        y
    };
    f64::from_bits(y.to_bits() & 0xffff_ffff_0000_0000)
}

pub fn rcp64(x: f64) -> f64 {
    rough(x, |x| 1.0 / x)
}

/// `rsqrt.approx.ftz.f64`
pub fn rsqrt64_rough(x: f64) -> f64 {
    rough(x, |x| 1.0 / x.sqrt())
}

/// `rsqrt.approx.f64`
pub fn rsqrt64(x: f64) -> f64 {
    1.0 / x.sqrt()
}
