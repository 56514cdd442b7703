//! Comparisons and selection.

// With NaN, `!(a < b)` is not `a >= b`, and `a < b || a > b` is not `a != b`: that is the point.
#![allow(clippy::double_comparisons, clippy::neg_cmp_op_on_partial_ord)]

use super::function::FunctionLowering;
use super::instruction::Statement;
use super::Result;
use crate::exec::lanes::{
    lane3, lane_compare, lane_compare_halves, lane_select, lane_set, lane_test, BoolOp, LaneFn,
    Operands, SECOND_PRED,
};
use crate::exec::num::float::flush;
use crate::exec::num::half::{bf16_to_f32, f16_to_f32};
use crate::parse::ast::Operand;
use crate::types::{Kind, Type};

const COMPARISONS: [&str; 18] = [
    "eq", "ne", "lt", "le", "gt", "ge", "lo", "ls", "hi", "hs", "equ", "neu", "ltu", "leu", "gtu",
    "geu", "num", "nan",
];

/// Picks the constructor call for a comparison of floats; `$via` brings a lane to a float.
macro_rules! float_comparison {
    ($s:expr, $cmp:expr, $T:ty, $make:ident, $via:expr $(, $extra:expr)*) => {
        match $cmp {
            "eq" => $make(|a: $T, b: $T| $via(a) == $via(b) $(, $extra)*),
            "ne" => $make(|a: $T, b: $T| { let (a, b) = ($via(a), $via(b)); a < b || a > b } $(, $extra)*),
            "lt" => $make(|a: $T, b: $T| $via(a) < $via(b) $(, $extra)*),
            "le" => $make(|a: $T, b: $T| $via(a) <= $via(b) $(, $extra)*),
            "gt" => $make(|a: $T, b: $T| $via(a) > $via(b) $(, $extra)*),
            "ge" => $make(|a: $T, b: $T| $via(a) >= $via(b) $(, $extra)*),
            "equ" => $make(|a: $T, b: $T| { let (a, b) = ($via(a), $via(b)); !(a < b || a > b) } $(, $extra)*),
            "neu" => $make(|a: $T, b: $T| $via(a) != $via(b) $(, $extra)*),
            "ltu" => $make(|a: $T, b: $T| !($via(a) >= $via(b)) $(, $extra)*),
            "leu" => $make(|a: $T, b: $T| !($via(a) > $via(b)) $(, $extra)*),
            "gtu" => $make(|a: $T, b: $T| !($via(a) <= $via(b)) $(, $extra)*),
            "geu" => $make(|a: $T, b: $T| !($via(a) < $via(b)) $(, $extra)*),
            "num" => $make(|a: $T, b: $T| !$via(a).is_nan() && !$via(b).is_nan() $(, $extra)*),
            "nan" => $make(|a: $T, b: $T| $via(a).is_nan() || $via(b).is_nan() $(, $extra)*),
            _ => return $s.mods.fail("the comparison does not go with the type"),
        }
    };
}

macro_rules! int_comparison {
    ($s:expr, $cmp:expr, $T:ty, $make:ident $(, $extra:expr)*) => {
        match $cmp {
            "eq" => $make(|a: $T, b: $T| a == b $(, $extra)*),
            "ne" => $make(|a: $T, b: $T| a != b $(, $extra)*),
            "lt" | "lo" => $make(|a: $T, b: $T| a < b $(, $extra)*),
            "le" | "ls" => $make(|a: $T, b: $T| a <= b $(, $extra)*),
            "gt" | "hi" => $make(|a: $T, b: $T| a > b $(, $extra)*),
            "ge" | "hs" => $make(|a: $T, b: $T| a >= b $(, $extra)*),
            _ => return $s.mods.fail("the comparison does not go with the type"),
        }
    };
}

/// A comparison by source type, made by `$make`.
macro_rules! comparison {
    ($s:expr, $cmp:expr, $ty:expr, $ftz:expr, $make:ident $(, $extra:expr)*) => {{
        let unsigned_only = matches!($cmp, "lo" | "ls" | "hi" | "hs");
        if unsigned_only && $ty.kind != Kind::Unsigned {
            return $s.mods.fail("the comparison needs an unsigned type");
        }
        match ($ty.kind, $ty.bits) {
            (Kind::Bits, _) if !matches!($cmp, "eq" | "ne") => {
                return $s.mods.fail("bits can only be compared by `.eq` and `.ne`");
            }
            (Kind::Bits | Kind::Unsigned, 16) => int_comparison!($s, $cmp, u16, $make $(, $extra)*),
            (Kind::Bits | Kind::Unsigned, 32) => int_comparison!($s, $cmp, u32, $make $(, $extra)*),
            (Kind::Bits | Kind::Unsigned, 64) => int_comparison!($s, $cmp, u64, $make $(, $extra)*),
            (Kind::Signed, 16) => int_comparison!($s, $cmp, i16, $make $(, $extra)*),
            (Kind::Signed, 32) => int_comparison!($s, $cmp, i32, $make $(, $extra)*),
            (Kind::Signed, 64) => int_comparison!($s, $cmp, i64, $make $(, $extra)*),
            (Kind::Float, 32) if $ftz => float_comparison!($s, $cmp, f32, $make, flush $(, $extra)*),
            (Kind::Float, 32) => float_comparison!($s, $cmp, f32, $make, same $(, $extra)*),
            (Kind::Float, 64) => float_comparison!($s, $cmp, f64, $make, same $(, $extra)*),
            (Kind::Float, 16) if $ftz => float_comparison!($s, $cmp, u16, $make, f16_flushed $(, $extra)*),
            (Kind::Float, 16) => float_comparison!($s, $cmp, u16, $make, f16_to_f32 $(, $extra)*),
            (Kind::Brain, 16) => float_comparison!($s, $cmp, u16, $make, bf16_to_f32 $(, $extra)*),
            _ => return $s.mods.bad_type($ty),
        }
    }};
}

#[inline(always)]
fn same<T>(x: T) -> T {
    x
}

#[inline(always)]
fn f16_flushed(bits: u16) -> f32 {
    f16_to_f32(if bits & 0x7c00 == 0 {
        bits & 0x8000
    } else {
        bits
    })
}

/// What `set` writes when the comparison holds.
fn one_f32() -> u32 {
    1f32.to_bits()
}
fn ones() -> u32 {
    u32::MAX
}
fn one_f16() -> u16 {
    0x3c00
}
fn one_bf16() -> u16 {
    0x3f80
}
fn ones16() -> u16 {
    u16::MAX
}

/// The comparison of one half by name.
fn compare_halves(cmp: u32, a: f32, b: f32) -> bool {
    match COMPARISONS[cmp as usize] {
        "eq" => a == b,
        "ne" => a < b || a > b,
        "lt" => a < b,
        "le" => a <= b,
        "gt" => a > b,
        "ge" => a >= b,
        "equ" => !(a < b || a > b),
        "neu" => a != b,
        "ltu" => a.is_nan() || b.is_nan() || a < b,
        "leu" => a.is_nan() || b.is_nan() || a <= b,
        "gtu" => a.is_nan() || b.is_nan() || a > b,
        "geu" => a.is_nan() || b.is_nan() || a >= b,
        "num" => !a.is_nan() && !b.is_nan(),
        _ => a.is_nan() || b.is_nan(),
    }
}

/// `set` on pairs: the comparison, the format and the results are in `imm`.
fn set_halves(a: u32, b: u32, flags: u32) -> u32 {
    let one = |at: u32| {
        let [x, y] = [(a >> at) as u16, (b >> at) as u16];
        let via = |bits: u16| match flags >> 8 & 3 {
            0 => f16_to_f32(bits),
            1 => f16_flushed(bits),
            _ => bf16_to_f32(bits),
        };
        if !compare_halves(flags & 0xff, via(x), via(y)) {
            return 0;
        }
        match flags >> 10 & 3 {
            0 => 0x3c00,
            1 => 0x3f80,
            _ => 0xffff,
        }
    };
    one(0) | one(16) << 16
}

impl<'a> FunctionLowering<'_, 'a> {
    /// The comparison, and how its result is combined with a third predicate.
    fn comparison_words(&self, s: &mut Statement<'_, 'a>) -> Result<(&'a str, BoolOp)> {
        let Some(cmp) = s.mods.one_of(&COMPARISONS) else {
            return s.mods.fail("the comparison is missing");
        };
        let combine = match s.mods.one_of(&["and", "or", "xor"]) {
            None => BoolOp::None,
            Some("and") => BoolOp::And,
            Some("or") => BoolOp::Or,
            Some(_) => BoolOp::Xor,
        };
        Ok((cmp, combine))
    }

    /// The operands behind the destination: two sources, and a predicate if one is combined.
    fn comparison_operands(
        &mut self,
        s: &Statement<'_, 'a>,
        ty: Type,
        combine: BoolOp,
    ) -> Result<Operands> {
        s.expect_operands(if combine == BoolOp::None { 3 } else { 4 })?;
        let mut o = Operands {
            a: self.source(&s.operands[1], ty)?,
            b: self.source(&s.operands[2], ty)?,
            imm: combine as u32,
            ..Operands::default()
        };
        if combine != BoolOp::None {
            o.x = self.pred(&s.operands[3])?;
        }
        Ok(o)
    }

    /// `setp`
    pub fn setp(&mut self, s: &mut Statement<'_, 'a>) -> Result<()> {
        let (cmp, combine) = self.comparison_words(s)?;
        let ftz = s.mods.take("ftz");
        let ty = s.mods.ty()?;
        let mut o = self.comparison_operands(s, ty, combine)?;
        let f = match (ty.kind, ty.packed) {
            (Kind::Float, 2) if ftz => {
                float_comparison!(s, cmp, u16, lane_compare_halves, f16_flushed)
            }
            (Kind::Float, 2) => float_comparison!(s, cmp, u16, lane_compare_halves, f16_to_f32),
            (Kind::Brain, 2) => float_comparison!(s, cmp, u16, lane_compare_halves, bf16_to_f32),
            _ => comparison!(s, cmp, ty, ftz, lane_compare),
        };
        let destination = &s.operands[0];
        if let Operand::Pair(first, second) = destination {
            o.d = self.pred_target(first)?;
            o.e = self.pred_target(second)?;
            o.imm |= SECOND_PRED;
        } else {
            o.d = self.pred_target(destination)?;
        }
        self.lanes(f, o);
        Ok(())
    }

    /// `set`
    pub fn set(&mut self, s: &mut Statement<'_, 'a>) -> Result<()> {
        let (cmp, combine) = self.comparison_words(s)?;
        let ftz = s.mods.take("ftz");
        let (to, ty) = (s.mods.ty()?, s.mods.ty()?);
        let mut o = self.comparison_operands(s, ty, combine)?;
        o.d = self.target(&s.operands[0], to)?;
        if ty.packed == 2 {
            return self.set_pair(s, cmp, ftz, (to, ty), o);
        }
        let f = match (to.kind, to.bits) {
            (Kind::Float, 32) => comparison!(s, cmp, ty, ftz, lane_set, one_f32),
            (Kind::Unsigned | Kind::Signed, 32) => comparison!(s, cmp, ty, ftz, lane_set, ones),
            (Kind::Float, 16) => comparison!(s, cmp, ty, ftz, lane_set, one_f16),
            (Kind::Brain, 16) => comparison!(s, cmp, ty, ftz, lane_set, one_bf16),
            (Kind::Unsigned | Kind::Signed, 16) => {
                comparison!(s, cmp, ty, ftz, lane_set, ones16)
            }
            _ => return s.mods.bad_type(to),
        };
        self.lanes(f, o);
        Ok(())
    }

    fn set_pair(
        &mut self,
        s: &Statement<'_, 'a>,
        cmp: &str,
        ftz: bool,
        (to, ty): (Type, Type),
        mut o: Operands,
    ) -> Result<()> {
        if o.imm != BoolOp::None as u32 {
            return s.mods.fail("a third predicate is not supported for pairs");
        }
        let Some(index) = COMPARISONS.iter().position(|c| *c == cmp) else {
            return s.mods.fail("unknown comparison");
        };
        if matches!(cmp, "lo" | "ls" | "hi" | "hs") {
            return s.mods.fail("the comparison needs an unsigned type");
        }
        let format = match (ty.kind, ftz) {
            (Kind::Float, false) => 0,
            (Kind::Float, true) => 1,
            (Kind::Brain, false) => 2,
            _ => return s.mods.bad_type(ty),
        };
        let yes = match (to.kind, to.bits, to.packed) {
            (Kind::Float, 32, 2) => 0,
            (Kind::Brain, 32, 2) => 1,
            (Kind::Unsigned | Kind::Signed, 32, _) => 2,
            _ => return s.mods.bad_type(to),
        };
        o.imm = index as u32 | format << 8 | yes << 10;
        o.c = o.a;
        self.lanes(
            crate::exec::lanes::lane3_imm(|a, b, _, f| set_halves(a, b, f)),
            o,
        );
        Ok(())
    }

    /// `selp` and `slct`
    pub fn select(&mut self, s: &mut Statement<'_, 'a>) -> Result<()> {
        let ftz = s.opcode == "slct" && s.mods.take("ftz");
        let ty = s.mods.ty()?;
        if !matches!(ty.bits, 16 | 32 | 64) || ty.packed != 1 {
            return s.mods.bad_type(ty);
        }
        s.expect_operands(4)?;
        let mut o = Operands {
            d: self.target(&s.operands[0], ty)?,
            a: self.source(&s.operands[1], ty)?,
            b: self.source(&s.operands[2], ty)?,
            ..Operands::default()
        };
        if s.opcode == "selp" {
            o.c = self.pred(&s.operands[3])?;
            let f = match ty.bits {
                16 => lane_select::<u16>(),
                32 => lane_select::<u32>(),
                _ => lane_select::<u64>(),
            };
            self.lanes(f, o);
            return Ok(());
        }
        let by = s.mods.ty()?;
        o.c = self.source(&s.operands[3], by)?;
        macro_rules! pick {
            ($T:ty) => {
                match (by.kind, by.bits) {
                    (Kind::Signed, 32) => lane3(|a: $T, b: $T, c: i32| if c >= 0 { a } else { b }),
                    // A NaN chooses the second operand.
                    (Kind::Float, 32) if ftz => {
                        lane3(|a: $T, b: $T, c: f32| if flush(c) >= 0.0 { a } else { b })
                    }
                    (Kind::Float, 32) => lane3(|a: $T, b: $T, c: f32| if c >= 0.0 { a } else { b }),
                    _ => return s.mods.bad_type(by),
                }
            };
        }
        let f: LaneFn = match ty.bits {
            16 => pick!(u16),
            32 => pick!(u32),
            _ => pick!(u64),
        };
        self.lanes(f, o);
        Ok(())
    }

    /// `testp`
    pub fn testp(&mut self, s: &mut Statement<'_, 'a>) -> Result<()> {
        let Some(test) = s.mods.one_of(&[
            "finite",
            "infinite",
            "number",
            "notanumber",
            "normal",
            "subnormal",
        ]) else {
            return s.mods.fail("the test is missing");
        };
        let ty = s.mods.ty()?;
        s.expect_operands(2)?;
        macro_rules! pick {
            ($T:ty) => {
                match test {
                    "finite" => lane_test(|a: $T| a.is_finite()),
                    "infinite" => lane_test(|a: $T| a.is_infinite()),
                    "number" => lane_test(|a: $T| !a.is_nan()),
                    "notanumber" => lane_test(|a: $T| a.is_nan()),
                    // Zero counts as normal.
                    "normal" => lane_test(|a: $T| a.is_normal() || a == 0.0),
                    _ => lane_test(|a: $T| a.is_subnormal()),
                }
            };
        }
        let f = match (ty.kind, ty.bits) {
            (Kind::Float, 32) => pick!(f32),
            (Kind::Float, 64) => pick!(f64),
            _ => return s.mods.bad_type(ty),
        };
        let d = self.pred_target(&s.operands[0])?;
        let a = self.source(&s.operands[1], ty)?;
        self.lanes(
            f,
            Operands {
                d,
                a,
                ..Operands::default()
            },
        );
        Ok(())
    }
}
