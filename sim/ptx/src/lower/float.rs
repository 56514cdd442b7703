//! `f32` and `f64` arithmetic and functions.

use super::function::FunctionLowering;
use super::instruction::Statement;
use super::modifiers::Modifiers;
use super::Result;
use crate::exec::lanes::{lane1, lane2, lane3, lane3_imm, sparse1, LaneFn, Operands};
use crate::exec::num::approx;
use crate::exec::num::float::{self, canonical, flush, hand_on, saturate, sign64, Operation};
use crate::exec::num::soft::Rounding;
use crate::types::{Kind, Type};

/// Claims a rounding mode.
pub fn rounding(mods: &mut Modifiers<'_>) -> Option<Rounding> {
    Some(match mods.one_of(&["rn", "rz", "rm", "rp"])? {
        "rn" => Rounding::Nearest,
        "rz" => Rounding::Zero,
        "rm" => Rounding::Down,
        _ => Rounding::Up,
    })
}

/// The four combinations of `ftz` and `sat` of a plain operation.
macro_rules! flagged {
    ($lane:ident, $ftz:expr, $sat:expr, |$($x:ident),+| $body:expr) => {
        match ($ftz, $sat) {
            (false, false) => $lane(|$($x: f32),+| canonical($body)),
            (true, false) => $lane(|$($x: f32),+| {
                $(let $x = flush($x);)+
                flush(canonical($body))
            }),
            (false, true) => $lane(|$($x: f32),+| saturate($body)),
            (true, true) => $lane(|$($x: f32),+| {
                $(let $x = flush($x);)+
                saturate(flush($body))
            }),
        }
    };
}

/// A three-operand operation with flags known only at run time.
macro_rules! by_flags {
    ($ty:expr, $op:expr) => {
        if $ty.bits == 32 {
            lane3_imm(|a: f32, b, c, flags| float::with_flags($op, a, b, c, flags))
        } else {
            lane3_imm(|a: f64, b, c, flags| float::with_flags64($op, a, b, c, flags))
        }
    };
}

impl<'a> FunctionLowering<'_, 'a> {
    /// `add`, `sub`, `mul`, `mad`, `fma`, `div`, `abs`, `neg`, `min`, `max`.
    pub fn float_arithmetic(&mut self, s: &mut Statement<'_, 'a>, ty: Type) -> Result<()> {
        let single = ty.bits == 32;
        let ftz = single && s.mods.take("ftz");
        match s.opcode {
            "min" | "max" => return self.float_extreme(s, ty, ftz),
            "abs" | "neg" => return self.float_sign(s, ty, ftz),
            "div" => return self.float_div(s, ty, ftz),
            "rem" => return s.mods.bad_type(ty),
            _ => {}
        }
        let sat = single && s.mods.take("sat");
        let mode = rounding(&mut s.mods);
        let fused = matches!(s.opcode, "fma" | "mad");
        if fused && mode.is_none() {
            return s.mods.fail("the rounding mode is missing");
        }
        let mode = mode.unwrap_or(Rounding::Nearest);
        let op = match s.opcode {
            "add" => Operation::Add,
            "sub" => Operation::Sub,
            "mul" => Operation::Mul,
            _ => Operation::Fma,
        };
        let exchanged = !single && self.exchanged(s)?;
        let mut o = self.same_typed(s, ty, if fused { 3 } else { 2 })?;
        if exchanged && op != Operation::Sub {
            std::mem::swap(&mut o.a, &mut o.b);
        }
        let plain = mode == Rounding::Nearest;
        let f = match (op, plain, single) {
            (Operation::Add, true, true) => flagged!(lane2, ftz, sat, |a, b| a + b),
            (Operation::Sub, true, true) => flagged!(lane2, ftz, sat, |a, b| a - b),
            (Operation::Mul, true, true) => flagged!(lane2, ftz, sat, |a, b| a * b),
            (_, true, true) => flagged!(lane3, ftz, sat, |a, b, c| a.mul_add(b, c)),
            (Operation::Add, true, false) => lane2(|a: f64, b: f64| hand_on(a + b, [b, a])),
            (Operation::Sub, true, false) => match exchanged {
                true => lane2(|a: f64, b: f64| hand_on(a - b, [a, b])),
                false => lane2(|a: f64, b: f64| hand_on(a - b, [b, a])),
            },
            (Operation::Mul, true, false) => lane2(|a: f64, b: f64| hand_on(a * b, [b, a])),
            (_, true, false) => lane3(|a: f64, b: f64, c: f64| hand_on(a.mul_add(b, c), [b, c, a])),
            (Operation::Add, false, _) => by_flags!(ty, Operation::Add),
            (Operation::Sub, false, _) => by_flags!(ty, Operation::Sub),
            (Operation::Mul, false, _) => by_flags!(ty, Operation::Mul),
            (_, false, _) => by_flags!(ty, Operation::Fma),
        };
        if !plain {
            o.imm = flags(mode, ftz, sat) | if exchanged { float::EXCHANGED } else { 0 };
            if !fused {
                o.c = o.b;
            }
        }
        self.lanes(f, o);
        Ok(())
    }

    /// Whether the assembler exchanges the first two sources: it puts the value first that was defined
    /// first. In double precision this decides which NaN is handed on.
    fn exchanged(&mut self, s: &Statement<'_, 'a>) -> Result<bool> {
        let first = self.definition(s.operands.get(1))?;
        let second = self.definition(s.operands.get(2))?;
        Ok(first > second)
    }

    fn float_extreme(&mut self, s: &mut Statement<'_, 'a>, ty: Type, ftz: bool) -> Result<()> {
        let exchanged = ty.bits == 64 && self.exchanged(s)?;
        let mut o = self.same_typed(s, ty, 2)?;
        let max = s.opcode == "max";
        if ty.bits == 64 {
            if exchanged {
                std::mem::swap(&mut o.a, &mut o.b);
            }
            let f = match max {
                true => lane2(|a, b| float::extreme64(a, b, float::MAX)),
                false => lane2(|a, b| float::extreme64(a, b, 0)),
            };
            self.lanes(f, o);
            return Ok(());
        }
        let nan = s.mods.take("NaN");
        let sign = s.mods.take("xorsign");
        if sign && !s.mods.take("abs") {
            return s.mods.fail("`.xorsign` needs `.abs`");
        }
        let f = match (nan || sign || ftz, max) {
            (false, true) => lane2(|a, b| float::extreme(a, b, float::MAX)),
            (false, false) => lane2(|a, b| float::extreme(a, b, 0)),
            (true, _) => lane3_imm(|a, b, _, flags| float::extreme(a, b, flags)),
        };
        o.c = o.a;
        o.imm = if max { float::MAX } else { 0 }
            | if ftz { float::FTZ } else { 0 }
            | if nan { float::NAN } else { 0 }
            | if sign { float::XOR_SIGN } else { 0 };
        self.lanes(f, o);
        Ok(())
    }

    fn float_sign(&mut self, s: &mut Statement<'_, 'a>, ty: Type, ftz: bool) -> Result<()> {
        let o = self.same_typed(s, ty, 1)?;
        let f = match (s.opcode, ty.bits, ftz) {
            ("abs", 32, false) => lane1(|a: f32| canonical(a.abs())),
            ("abs", 32, true) => lane1(|a: f32| canonical(flush(a).abs())),
            ("neg", 32, false) => lane1(|a: f32| canonical(-a)),
            ("neg", 32, true) => lane1(|a: f32| canonical(-flush(a))),
            ("abs", ..) => lane1(|a: u64| sign64(a, |bits| bits & (u64::MAX >> 1))),
            _ => lane1(|a: u64| sign64(a, |bits| bits ^ 1 << 63)),
        };
        self.lanes(f, o);
        Ok(())
    }

    fn float_div(&mut self, s: &mut Statement<'_, 'a>, ty: Type, ftz: bool) -> Result<()> {
        let single = ty.bits == 32;
        let how = s.mods.one_of(&["approx", "full"]);
        let mode = rounding(&mut s.mods);
        let mut o = self.same_typed(s, ty, 2)?;
        let f = match (how, mode, single) {
            (Some("approx"), None, true) => match ftz {
                true => lane2(|a, b| approx::div(a, b, true, false)),
                false => lane2(|a, b| approx::div(a, b, false, false)),
            },
            (Some(_), None, true) => match ftz {
                true => lane2(|a, b| approx::div(a, b, true, true)),
                false => lane2(|a, b| approx::div(a, b, false, true)),
            },
            (None, Some(Rounding::Nearest), true) => flagged!(lane2, ftz, false, |a, b| a / b),
            (None, Some(Rounding::Nearest), false) => {
                lane2(|a: f64, b: f64| hand_on(a / b, [a, b]))
            }
            (None, Some(mode), _) => {
                o.c = o.b;
                o.imm = flags(mode, ftz, false);
                by_flags!(ty, Operation::Div)
            }
            _ => return s.mods.fail("the rounding mode is missing"),
        };
        self.lanes(f, o);
        Ok(())
    }

    /// `rcp`, `sqrt`, `rsqrt`, `sin`, `cos`, `tanh`, `lg2`, `ex2`, `copysign`.
    pub fn function_of(&mut self, s: &mut Statement<'_, 'a>) -> Result<()> {
        let ty = s.mods.ty()?;
        if s.opcode == "copysign" {
            let f = match (ty.kind, ty.bits) {
                // The first operand gives the sign.
                (Kind::Float, 32) => lane2(|a: f32, b: f32| b.copysign(a)),
                (Kind::Float, 64) => lane2(|a: f64, b: f64| b.copysign(a)),
                _ => return s.mods.bad_type(ty),
            };
            let o = self.same_typed(s, ty, 2)?;
            self.lanes(f, o);
            return Ok(());
        }
        if ty.is_float() && (ty.bits == 16 || ty.packed == 2) {
            return self.half_function(s, ty);
        }
        if ty.kind != Kind::Float {
            return s.mods.bad_type(ty);
        }
        let approximate = s.mods.take("approx");
        let mode = rounding(&mut s.mods);
        let ftz = s.mods.take("ftz");
        let o = self.same_typed(s, ty, 1)?;
        match (approximate, mode) {
            (true, None) => {
                let f = self.approximation(s, ty, ftz)?;
                self.lanes(f, o);
                Ok(())
            }
            (false, Some(mode)) => self.rounded_function(s, ty, ftz, mode, o),
            _ => s.mods.fail("`.approx` or the rounding mode is missing"),
        }
    }

    fn approximation(&mut self, s: &Statement<'_, 'a>, ty: Type, ftz: bool) -> Result<LaneFn> {
        macro_rules! pick {
            ($f:path) => {
                match ftz {
                    true => sparse1(|a: f32| $f(a, true)),
                    false => sparse1(|a: f32| $f(a, false)),
                }
            };
        }
        Ok(match (s.opcode, ty.bits) {
            ("rcp", 32) => pick!(approx::rcp),
            ("sqrt", 32) => pick!(approx::sqrt),
            ("rsqrt", 32) => pick!(approx::rsqrt),
            ("sin", 32) => pick!(approx::sin),
            ("cos", 32) => pick!(approx::cos),
            ("lg2", 32) => pick!(approx::lg2),
            ("ex2", 32) => pick!(approx::ex2),
            ("tanh", 32) if !ftz => sparse1(|a: f32| approx::tanh(a)),
            ("rcp", 64) if ftz => sparse1(|a: f64| approx::rcp64(a)),
            ("rsqrt", 64) if ftz => sparse1(|a: f64| approx::rsqrt64_rough(a)),
            ("rsqrt", 64) => sparse1(|a: f64| approx::rsqrt64(a)),
            _ => return s.mods.bad_type(ty),
        })
    }

    fn rounded_function(
        &mut self,
        s: &Statement<'_, 'a>,
        ty: Type,
        ftz: bool,
        mode: Rounding,
        mut o: Operands,
    ) -> Result<()> {
        if ftz && ty.bits == 64 {
            return s.mods.fail("`.ftz` needs `.f32`");
        }
        let f = match (s.opcode, ty.bits, mode) {
            ("rcp", 32, Rounding::Nearest) => flagged!(lane1, ftz, false, |a| 1.0 / a),
            ("rcp", 64, Rounding::Nearest) => lane1(|a: f64| hand_on(1.0 / a, [a])),
            ("sqrt", 32, Rounding::Nearest) => flagged!(lane1, ftz, false, |a| a.sqrt()),
            ("sqrt", 64, Rounding::Nearest) => lane1(|a: f64| hand_on(a.sqrt(), [a])),
            ("rcp", ..) => {
                let one = match ty.bits {
                    32 => self.constant(u128::from(1f32.to_bits()), 32),
                    _ => self.constant(u128::from(1f64.to_bits()), 64),
                };
                o = Operands {
                    a: one,
                    b: o.a,
                    c: o.a,
                    ..o
                };
                by_flags!(ty, Operation::Div)
            }
            ("sqrt", ..) => {
                o = Operands {
                    b: o.a,
                    c: o.a,
                    ..o
                };
                by_flags!(ty, Operation::Sqrt)
            }
            _ => return s.mods.bad_type(ty),
        };
        o.imm = flags(mode, ftz, false);
        self.lanes(f, o);
        Ok(())
    }
}

fn flags(mode: Rounding, ftz: bool, sat: bool) -> u32 {
    mode.code() | if ftz { float::FTZ } else { 0 } | if sat { float::SAT } else { 0 }
}
