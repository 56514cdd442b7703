//! `f16` and `bf16` arithmetic and functions, one by one and in pairs.

use super::float::rounding;
use super::function::FunctionLowering;
use super::instruction::Statement;
use super::Result;
use crate::exec::lanes::{lane3_imm, LaneFn};
use crate::exec::num::float::{self, Operation};
use crate::exec::num::half;
use crate::exec::num::soft::Rounding;
use crate::types::{Kind, Type};

/// An operation on halves: both widths of register go through the 32-bit routine.
macro_rules! halves {
    ($pair:expr, |$a:ident, $b:ident, $c:ident, $flags:ident| $body:expr) => {
        if $pair {
            lane3_imm(|$a: u32, $b: u32, $c: u32, $flags: u32| {
                let _ = ($b, $c);
                $body
            })
        } else {
            lane3_imm(|a: u16, b: u16, c: u16, $flags: u32| {
                let ($a, $b, $c) = (u32::from(a), u32::from(b), u32::from(c));
                let _ = ($b, $c);
                $body as u16
            })
        }
    };
}

impl<'a> FunctionLowering<'_, 'a> {
    fn half_flags(&self, s: &mut Statement<'_, 'a>, ty: Type) -> u32 {
        let mut flags = 0;
        let mut set = |present: bool, flag: u32| {
            if present {
                flags |= flag;
            }
        };
        set(ty.kind == Kind::Brain, half::BRAIN);
        set(ty.packed == 2, half::PAIR);
        set(s.mods.take("ftz"), float::FTZ);
        set(s.mods.take("sat"), float::SAT);
        set(s.mods.take("relu"), half::RELU);
        set(s.mods.take("NaN"), float::NAN);
        set(s.mods.take("xorsign"), float::XOR_SIGN);
        flags
    }

    /// `add`, `sub`, `mul`, `fma`, `abs`, `neg`, `min`, `max`.
    pub fn half_arithmetic(&mut self, s: &mut Statement<'_, 'a>, ty: Type) -> Result<()> {
        let mut flags = self.half_flags(s, ty);
        let pair = ty.packed == 2;
        if flags & float::XOR_SIGN != 0 && !s.mods.take("abs") {
            return s.mods.fail("`.xorsign` needs `.abs`");
        }
        // The only mode there is; `noftz` and `oob` belong to other instructions.
        if let Some(mode) = rounding(&mut s.mods) {
            if mode != Rounding::Nearest {
                return s.mods.fail("half precision only rounds to nearest");
            }
        } else if s.opcode == "fma" {
            return s.mods.fail("the rounding mode is missing");
        }
        let (f, count): (LaneFn, usize) = match s.opcode {
            "add" => (
                halves!(pair, |a, b, c, f| half::arithmetic(
                    Operation::Add,
                    a,
                    b,
                    0,
                    f
                )),
                2,
            ),
            "sub" => (
                halves!(pair, |a, b, c, f| half::arithmetic(
                    Operation::Sub,
                    a,
                    b,
                    0,
                    f
                )),
                2,
            ),
            "mul" => (
                halves!(pair, |a, b, c, f| half::arithmetic(
                    Operation::Mul,
                    a,
                    b,
                    0,
                    f
                )),
                2,
            ),
            "fma" => (
                halves!(pair, |a, b, c, f| half::arithmetic(
                    Operation::Fma,
                    a,
                    b,
                    c,
                    f
                )),
                3,
            ),
            "abs" => (halves!(pair, |a, b, c, f| half::abs(a, f)), 1),
            "neg" => (halves!(pair, |a, b, c, f| half::neg(a, f)), 1),
            "min" => (halves!(pair, |a, b, c, f| half::extreme(a, b, f)), 2),
            "max" => {
                flags |= float::MAX;
                (halves!(pair, |a, b, c, f| half::extreme(a, b, f)), 2)
            }
            _ => return s.mods.bad_type(ty),
        };
        let allowed = match s.opcode {
            "add" | "sub" | "mul" => float::SAT | float::FTZ,
            "fma" => float::SAT | float::FTZ | half::RELU,
            "abs" | "neg" => float::FTZ,
            _ => float::FTZ | float::NAN | float::XOR_SIGN | float::MAX,
        };
        if flags & !(allowed | half::BRAIN | half::PAIR) != 0 {
            return s.mods.fail("a modifier does not go with this instruction");
        }
        let mut o = self.same_typed(s, ty, count)?;
        if count < 2 {
            o.b = o.a;
        }
        if count < 3 {
            o.c = o.a;
        }
        o.imm = flags;
        self.lanes(f, o);
        Ok(())
    }

    /// `tanh` and `ex2`.
    pub fn half_function(&mut self, s: &mut Statement<'_, 'a>, ty: Type) -> Result<()> {
        if !s.mods.take("approx") {
            return s.mods.fail("`.approx` is missing");
        }
        let flags = self.half_flags(s, ty);
        let pair = ty.packed == 2;
        if flags & !(float::FTZ | half::BRAIN | half::PAIR) != 0 {
            return s.mods.fail("a modifier does not go with this instruction");
        }
        let f = match s.opcode {
            "tanh" => halves!(pair, |a, b, c, f| half::function(a, f, f32::tanh)),
            "ex2" => halves!(pair, |a, b, c, f| half::function(a, f, f32::exp2)),
            _ => return s.mods.bad_type(ty),
        };
        let mut o = self.same_typed(s, ty, 1)?;
        (o.b, o.c, o.imm) = (o.a, o.a, flags);
        self.lanes(f, o);
        Ok(())
    }
}
