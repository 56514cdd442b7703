//! `cvt`.

use super::function::FunctionLowering;
use super::instruction::Statement;
use super::Result;
use crate::exec::lanes::{lane1, lane3_imm, LaneFn, Operands};
use crate::exec::num::convert::{self, Plan, Side, TF32};
use crate::exec::num::float::canonical;
use crate::exec::num::soft::{Rounding, BF16, E4M3, E5M2, F16, F32, F64};
use crate::types::{Kind, Type};

/// A type word of `cvt`, some of which no register has.
#[derive(Clone, Copy, PartialEq)]
struct Word {
    side: Side,
    /// Two of them.
    pair: bool,
    /// What a register for it is like.
    ty: Type,
}

fn word(name: &str) -> Option<Word> {
    let (side, pair, ty) = match name {
        "e4m3x2" => (Side::float(E4M3, 8), true, Type::B16),
        "e5m2x2" => (Side::float(E5M2, 8), true, Type::B16),
        "tf32" => (Side::float(TF32, 32), false, Type::B32),
        _ => {
            let ty = Type::parse(name)?;
            let side = match (ty.kind, ty.bits / ty.packed) {
                (Kind::Unsigned, bits) if ty.packed == 1 => Side::int(false, bits),
                (Kind::Signed, bits) if ty.packed == 1 => Side::int(true, bits),
                (Kind::Float, 16) => Side::float(F16, 16),
                (Kind::Float, 32) => Side::float(F32, 32),
                (Kind::Float, 64) => Side::float(F64, 64),
                (Kind::Brain, 16) => Side::float(BF16, 16),
                _ => return None,
            };
            (side, ty.packed == 2, ty)
        }
    };
    Some(Word { side, pair, ty })
}

/// A conversion between registers of these widths, by the general routine.
fn general(from: u32, to: u32) -> LaneFn {
    macro_rules! pick {
        ($S:ty, $D:ty) => {
            lane3_imm(|a: $S, _: $S, _: $S, code| convert::convert(u64::from(a), code) as $D)
        };
    }
    match (from, to) {
        (16, 16) => pick!(u16, u16),
        (16, 32) => pick!(u16, u32),
        (16, _) => pick!(u16, u64),
        (32, 16) => pick!(u32, u16),
        (32, 32) => pick!(u32, u32),
        (32, _) => pick!(u32, u64),
        (_, 16) => pick!(u64, u16),
        (_, 32) => pick!(u64, u32),
        _ => pick!(u64, u64),
    }
}

impl<'a> FunctionLowering<'_, 'a> {
    /// `cvt`
    pub fn cvt(&mut self, s: &mut Statement<'_, 'a>) -> Result<()> {
        if s.mods.take("pack") {
            return self.cvt_pack(s);
        }
        let mode = s
            .mods
            .one_of(&["rn", "rz", "rm", "rp", "rna", "rni", "rzi", "rmi", "rpi"]);
        let ftz = s.mods.take("ftz");
        let sat = s.mods.take("sat");
        let sat_finite = s.mods.take("satfinite");
        let relu = s.mods.take("relu");
        let (Some(to), Some(from)) = (self.type_word(s), self.type_word(s)) else {
            return s
                .mods
                .fail("two types are needed that a conversion goes between");
        };
        let integral = matches!(mode, Some("rni" | "rzi" | "rmi" | "rpi"));
        let rounding = match mode {
            Some("rz" | "rzi") => Rounding::Zero,
            Some("rm" | "rmi") => Rounding::Down,
            Some("rp" | "rpi") => Rounding::Up,
            Some("rna") => Rounding::Away,
            _ => Rounding::Nearest,
        };
        let plan = Plan {
            from: from.side,
            to: to.side,
            mode: rounding,
            integral,
            ftz,
            sat,
            sat_finite,
            relu,
        };
        self.check_rounding(s, (from, to), mode, plan)?;
        if to.pair || from.pair {
            return self.cvt_pair(s, from, to, plan);
        }
        s.expect_operands(2)?;
        let (a, from_width) = self.wide_source(&s.operands[1], from.ty)?;
        let (d, to_width) = self.wide_target(&s.operands[0], to.ty)?;
        let (from_width, to_width) = (from_width.max(16), to_width.max(16));
        let f = match self.common(plan, from_width, to_width) {
            Some(f) => f,
            None => general(from_width, to_width),
        };
        self.lanes(
            f,
            Operands {
                d,
                a,
                b: a,
                c: a,
                imm: plan.encode(),
                ..Operands::default()
            },
        );
        Ok(())
    }

    fn type_word(&self, s: &mut Statement<'_, 'a>) -> Option<Word> {
        let name = s.mods.first_of(|w| word(w).is_some())?;
        word(name)
    }

    /// A conversion that may lose something needs a rounding mode, and others must have none.
    fn check_rounding(
        &self,
        s: &Statement<'_, 'a>,
        (from, to): (Word, Word),
        mode: Option<&str>,
        plan: Plan,
    ) -> Result<()> {
        let float_mode = matches!(mode, Some("rn" | "rz" | "rm" | "rp" | "rna"));
        match (from.side.float, to.side.float) {
            (None, None) if mode.is_some() => s.mods.fail("a conversion of integers is exact"),
            (None, None) if plan.ftz || plan.relu || plan.sat_finite => {
                s.mods.fail("a modifier does not go with this conversion")
            }
            (None, Some(_)) if !float_mode => s.mods.fail("the rounding mode is missing"),
            (Some(_), None) if !plan.integral => s.mods.fail("the rounding mode is missing"),
            (Some(a), Some(b)) if a.mantissa > b.mantissa && mode.is_none() => {
                s.mods.fail("the rounding mode is missing")
            }
            (Some(a), Some(b)) if plan.integral && a != b => {
                s.mods.fail("rounding to an integer keeps the type")
            }
            _ => Ok(()),
        }
    }

    /// The conversions that programs are full of.
    fn common(&self, plan: Plan, from_width: u32, to_width: u32) -> Option<LaneFn> {
        if plan.sat || plan.sat_finite || plan.relu || plan.ftz {
            return None;
        }
        let (from, to) = (plan.from, plan.to);
        if from_width != from.bits.max(16) || to_width != to.bits.max(16) {
            return None;
        }
        let ints = |side: Side| match side.float {
            None => Some((side.signed, side.bits)),
            Some(_) => None,
        };
        Some(match (ints(from), ints(to)) {
            (Some((false, 32)), Some((_, 64))) => lane1(|a: u32| u64::from(a)),
            (Some((true, 32)), Some((_, 64))) => lane1(|a: i32| i64::from(a)),
            (Some((_, 64)), Some((_, 32))) => lane1(|a: u64| a as u32),
            (Some((false, 16)), Some((_, 32))) => lane1(|a: u16| u32::from(a)),
            (Some((true, 16)), Some((_, 32))) => lane1(|a: i16| i32::from(a)),
            (Some((_, 32)), Some((_, 16))) => lane1(|a: u32| a as u16),
            (Some((false, 16)), Some((_, 64))) => lane1(|a: u16| u64::from(a)),
            (Some((true, 16)), Some((_, 64))) => lane1(|a: i16| i64::from(a)),
            (Some((true, 32)), None) if to.float == Some(F64) => lane1(|a: i32| f64::from(a)),
            (Some((false, 32)), None) if to.float == Some(F64) => lane1(|a: u32| f64::from(a)),
            (Some(int), None) if plan.mode == Rounding::Nearest => match (int, to.float?) {
                ((true, 32), F32) => lane1(|a: i32| a as f32),
                ((false, 32), F32) => lane1(|a: u32| a as f32),
                ((true, 64), F32) => lane1(|a: i64| a as f32),
                ((false, 64), F32) => lane1(|a: u64| a as f32),
                ((true, 64), F64) => lane1(|a: i64| a as f64),
                ((false, 64), F64) => lane1(|a: u64| a as f64),
                _ => return None,
            },
            (None, Some(int)) => match (from.float?, plan.mode, int) {
                // Rust saturates and makes zero of NaN, as the instruction does.
                (F32, Rounding::Zero, (true, 32)) => lane1(|a: f32| a as i32),
                (F32, Rounding::Zero, (false, 32)) => lane1(|a: f32| a as u32),
                (F32, Rounding::Nearest, (true, 32)) => lane1(|a: f32| a.round_ties_even() as i32),
                (F32, Rounding::Down, (true, 32)) => lane1(|a: f32| a.floor() as i32),
                (F32, Rounding::Up, (true, 32)) => lane1(|a: f32| a.ceil() as i32),
                _ => return None,
            },
            (None, None) => match (from.float?, to.float?, plan.mode) {
                (F32, F64, _) if !plan.integral => lane1(|a: f32| f64::from(a)),
                (F64, F32, Rounding::Nearest) => lane1(convert::f64_to_f32),
                (F16, F32, _) => lane1(convert::half_to_f32),
                (F32, F16, Rounding::Nearest) => lane1(|a: f32| convert::f32_to_half(a, false)),
                (F32, BF16, Rounding::Nearest) => lane1(|a: f32| convert::f32_to_half(a, true)),
                (F32, F32, Rounding::Nearest) if plan.integral => {
                    lane1(|a: f32| canonical(a.round_ties_even()))
                }
                (F32, F32, Rounding::Zero) if plan.integral => lane1(|a: f32| canonical(a.trunc())),
                (F32, F32, Rounding::Down) if plan.integral => lane1(|a: f32| canonical(a.floor())),
                (F32, F32, Rounding::Up) if plan.integral => lane1(|a: f32| canonical(a.ceil())),
                _ => return None,
            },
            _ => return None,
        })
    }

    /// `cvt.pack`: two integers, saturated, into the low end of a word; what a third operand holds
    /// moves up to make room.
    fn cvt_pack(&mut self, s: &mut Statement<'_, 'a>) -> Result<()> {
        if !s.mods.take("sat") {
            return s.mods.fail("`.sat` is missing");
        }
        let (signed, bits) = match s
            .mods
            .one_of(&["u16", "s16", "u8", "s8", "u4", "s4", "u2", "s2"])
        {
            Some(name) => (name.starts_with('s'), name[1..].parse().unwrap_or(16)),
            None => return s.mods.fail("the type to convert to is missing"),
        };
        let ty = s.mods.ty()?;
        if ty != Type::new(Kind::Signed, 32) {
            return s.mods.bad_type(ty);
        }
        let third = s.mods.try_ty();
        if third.is_some_and(|ty| ty != Type::B32) {
            return s.mods.fail("the third operand must be of type `.b32`");
        }
        if third.is_none() && bits != 16 {
            return s.mods.fail("a third operand is needed to fill the word");
        }
        s.expect_operands(if third.is_some() { 4 } else { 3 })?;
        let o = Operands {
            d: self.target(&s.operands[0], Type::B32)?,
            a: self.source(&s.operands[1], ty)?,
            b: self.source(&s.operands[2], ty)?,
            c: match third {
                Some(ty) => self.source(&s.operands[3], ty)?,
                None => self.constant(0, 32),
            },
            imm: bits | if signed { convert::PACK_SIGNED } else { 0 },
            ..Operands::default()
        };
        self.lanes(lane3_imm(convert::pack_integers), o);
        Ok(())
    }

    /// Two values at a time.
    fn cvt_pair(&mut self, s: &Statement<'_, 'a>, from: Word, to: Word, plan: Plan) -> Result<()> {
        let d = match s.operands.first() {
            Some(operand) => self.target(operand, to.ty)?,
            None => return s.mods.fail("the destination is missing"),
        };
        let imm = plan.encode();
        if !from.pair {
            if from.side != Side::float(F32, 32) {
                return s.mods.bad_type(from.ty);
            }
            s.expect_operands(3)?;
            // The first source goes to the upper half.
            let a = self.source(&s.operands[1], from.ty)?;
            let b = self.source(&s.operands[2], from.ty)?;
            let f = match to.ty.bits {
                32 => lane3_imm(|a: u32, b: u32, _, code| {
                    convert::pack(u64::from(a), u64::from(b), code)
                }),
                _ => lane3_imm(|a: u32, b: u32, _, code| {
                    convert::pack(u64::from(a), u64::from(b), code) as u16
                }),
            };
            self.lanes(
                f,
                Operands {
                    d,
                    a,
                    b,
                    c: a,
                    imm,
                    ..Operands::default()
                },
            );
            return Ok(());
        }
        s.expect_operands(2)?;
        let a = self.source(&s.operands[1], from.ty)?;
        let f = match (from.ty.bits, to.ty.bits, to.pair) {
            (16, 32, true) => lane3_imm(|a: u16, _, _, code| convert::unpack_bytes(a, code)),
            (32, 16, true) => lane3_imm(|a: u32, _, _, code| convert::pack_halves(a, code)),
            _ => return s.mods.bad_type(from.ty),
        };
        self.lanes(
            f,
            Operands {
                d,
                a,
                b: a,
                c: a,
                imm,
                ..Operands::default()
            },
        );
        Ok(())
    }
}
