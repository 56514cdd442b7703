//! Logic, shifts and bit fields.

use super::function::FunctionLowering;
use super::instruction::Statement;
use super::Result;
use crate::exec::lanes::{
    lane1, lane2, lane3, lane3_imm, lane4, lane_compare, pred_logic, BoolOp, LaneFn, Operands,
};
use crate::exec::num::bits;
use crate::parse::ast::{Number, Operand};
use crate::types::{Kind, Type};

macro_rules! by_width {
    ($statement:expr, $ty:expr, $T:ident => $f:expr) => {
        match $ty.bits {
            16 => {
                type $T = u16;
                $f
            }
            32 => {
                type $T = u32;
                $f
            }
            64 => {
                type $T = u64;
                $f
            }
            _ => return $statement.mods.bad_type($ty),
        }
    };
}

impl<'a> FunctionLowering<'_, 'a> {
    /// `and`, `or`, `xor`, `not`, `cnot`, `shl`, `shr`.
    pub fn logic(&mut self, s: &mut Statement<'_, 'a>) -> Result<()> {
        let ty = s.mods.ty()?;
        if ty.kind == Kind::Pred {
            return self.pred_logic(s);
        }
        if !ty.is_int() || ty.packed != 1 {
            return s.mods.bad_type(ty);
        }
        if matches!(s.opcode, "shl" | "shr") {
            return self.shift(s, ty);
        }
        if ty.kind != Kind::Bits {
            return s.mods.bad_type(ty);
        }
        let (f, count): (LaneFn, usize) = match s.opcode {
            "and" => (by_width!(s, ty, T => lane2(|a: T, b: T| a & b)), 2),
            "or" => (by_width!(s, ty, T => lane2(|a: T, b: T| a | b)), 2),
            "xor" => (by_width!(s, ty, T => lane2(|a: T, b: T| a ^ b)), 2),
            "not" => (by_width!(s, ty, T => lane1(|a: T| !a)), 1),
            _ => (by_width!(s, ty, T => lane1(|a: T| T::from(a == 0))), 1),
        };
        let o = self.same_typed(s, ty, count)?;
        self.lanes(f, o);
        Ok(())
    }

    fn pred_logic(&mut self, s: &mut Statement<'_, 'a>) -> Result<()> {
        let unary = s.opcode == "not";
        s.expect_operands(if unary { 2 } else { 3 })?;
        let f = match s.opcode {
            "and" => pred_logic(|a, b| a & b),
            "or" => pred_logic(|a, b| a | b),
            "xor" => pred_logic(|a, b| a ^ b),
            "not" => pred_logic(|a, _| !a),
            _ => return s.mods.bad_type(Type::PRED),
        };
        let d = self.pred_target(&s.operands[0])?;
        let a = self.pred(&s.operands[1])?;
        let b = if unary { a } else { self.pred(&s.operands[2])? };
        self.lanes(
            f,
            Operands {
                d,
                a,
                b,
                ..Operands::default()
            },
        );
        Ok(())
    }

    fn shift(&mut self, s: &mut Statement<'_, 'a>, ty: Type) -> Result<()> {
        s.expect_operands(3)?;
        let f = match (s.opcode, ty.kind, ty.bits) {
            // A shift by the width or more leaves nothing, or only copies of the sign.
            ("shl", Kind::Bits, _) => {
                by_width!(s, ty, T => lane2(|a: T, n: u32| a.checked_shl(n).unwrap_or(0)))
            }
            ("shr", Kind::Signed, 16) => lane2(|a: i16, n: u32| a >> n.min(15)),
            ("shr", Kind::Signed, 32) => lane2(|a: i32, n: u32| a >> n.min(31)),
            ("shr", Kind::Signed, 64) => lane2(|a: i64, n: u32| a >> n.min(63)),
            ("shr", Kind::Bits | Kind::Unsigned, _) => {
                by_width!(s, ty, T => lane2(|a: T, n: u32| a.checked_shr(n).unwrap_or(0)))
            }
            _ => return s.mods.bad_type(ty),
        };
        let o = Operands {
            d: self.target(&s.operands[0], ty)?,
            a: self.source(&s.operands[1], ty)?,
            b: self.source(&s.operands[2], Type::U32)?,
            ..Operands::default()
        };
        self.lanes(f, o);
        Ok(())
    }

    /// The remaining instructions on bit fields.
    pub fn bit_field(&mut self, s: &mut Statement<'_, 'a>) -> Result<()> {
        match s.opcode {
            "popc" | "clz" | "brev" => self.count_bits(s),
            "bfind" => self.bfind(s),
            "bfe" => self.bfe(s),
            "bfi" => self.bfi(s),
            "bmsk" | "szext" => self.mask(s),
            "fns" => {
                let ty = s.mods.ty()?;
                if ty != Type::B32 {
                    return s.mods.bad_type(ty);
                }
                let o = self.same_typed(s, Type::B32, 3)?;
                self.lanes(lane3(bits::find_nth_set), o);
                Ok(())
            }
            "prmt" => self.prmt(s),
            "lop3" => self.lop3(s),
            _ => self.funnel(s),
        }
    }

    fn count_bits(&mut self, s: &mut Statement<'_, 'a>) -> Result<()> {
        let ty = s.mods.ty()?;
        s.expect_operands(2)?;
        let f = match (s.opcode, ty) {
            ("popc", Type::B32) => lane1(|a: u32| a.count_ones()),
            ("popc", Type::B64) => lane1(|a: u64| a.count_ones()),
            ("clz", Type::B32) => lane1(|a: u32| a.leading_zeros()),
            ("clz", Type::B64) => lane1(|a: u64| a.leading_zeros()),
            ("brev", Type::B32) => lane1(|a: u32| a.reverse_bits()),
            ("brev", Type::B64) => lane1(|a: u64| a.reverse_bits()),
            _ => return s.mods.bad_type(ty),
        };
        let result = if s.opcode == "brev" { ty } else { Type::U32 };
        let d = self.target(&s.operands[0], result)?;
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

    fn bfind(&mut self, s: &mut Statement<'_, 'a>) -> Result<()> {
        let shift = s.mods.take("shiftamt");
        let ty = s.mods.ty()?;
        s.expect_operands(2)?;
        let f = match (ty.kind, ty.bits, shift) {
            (Kind::Unsigned, 32, false) => lane1(|a: u32| bits::find_top(u64::from(a))),
            (Kind::Unsigned, 32, true) => lane1(|a: u32| bits::shift_to_top(u64::from(a), 31)),
            (Kind::Unsigned, 64, false) => lane1(|a: u64| bits::find_top(a)),
            (Kind::Unsigned, 64, true) => lane1(|a: u64| bits::shift_to_top(a, 63)),
            // The top bit of a negative number is the highest one that differs from the sign.
            (Kind::Signed, 32, false) => {
                lane1(|a: i32| bits::find_top(u64::from((a ^ a >> 31) as u32)))
            }
            (Kind::Signed, 32, true) => {
                lane1(|a: i32| bits::shift_to_top(u64::from((a ^ a >> 31) as u32), 31))
            }
            (Kind::Signed, 64, false) => lane1(|a: i64| bits::find_top((a ^ a >> 63) as u64)),
            (Kind::Signed, 64, true) => {
                lane1(|a: i64| bits::shift_to_top((a ^ a >> 63) as u64, 63))
            }
            _ => return s.mods.bad_type(ty),
        };
        let d = self.target(&s.operands[0], Type::U32)?;
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

    fn bfe(&mut self, s: &mut Statement<'_, 'a>) -> Result<()> {
        let ty = s.mods.ty()?;
        s.expect_operands(4)?;
        let f = match (ty.kind, ty.bits) {
            (Kind::Unsigned, 32) => {
                lane3(|a: u32, b, c| bits::extract(u64::from(a), b, c, 32, false) as u32)
            }
            (Kind::Signed, 32) => {
                lane3(|a: u32, b, c| bits::extract(u64::from(a), b, c, 32, true) as u32)
            }
            (Kind::Unsigned, 64) => lane3(|a: u64, b, c| bits::extract(a, b, c, 64, false)),
            (Kind::Signed, 64) => lane3(|a: u64, b, c| bits::extract(a, b, c, 64, true)),
            _ => return s.mods.bad_type(ty),
        };
        let o = Operands {
            d: self.target(&s.operands[0], ty)?,
            a: self.source(&s.operands[1], ty)?,
            b: self.source(&s.operands[2], Type::U32)?,
            c: self.source(&s.operands[3], Type::U32)?,
            ..Operands::default()
        };
        self.lanes(f, o);
        Ok(())
    }

    fn bfi(&mut self, s: &mut Statement<'_, 'a>) -> Result<()> {
        let ty = s.mods.ty()?;
        s.expect_operands(5)?;
        let f = match ty {
            Type::B32 => lane4(|a: u32, b: u32, c, d| {
                bits::insert(u64::from(a), u64::from(b), c, d, 32) as u32
            }),
            Type::B64 => lane4(|a: u64, b: u64, c, d| bits::insert(a, b, c, d, 64)),
            _ => return s.mods.bad_type(ty),
        };
        let o = Operands {
            d: self.target(&s.operands[0], ty)?,
            a: self.source(&s.operands[1], ty)?,
            b: self.source(&s.operands[2], ty)?,
            c: self.source(&s.operands[3], Type::U32)?,
            x: self.source(&s.operands[4], Type::U32)?,
            ..Operands::default()
        };
        self.lanes(f, o);
        Ok(())
    }

    /// `bmsk` and `szext`, whose positions clamp or wrap.
    fn mask(&mut self, s: &mut Statement<'_, 'a>) -> Result<()> {
        let Some(mode) = s.mods.one_of(&["clamp", "wrap"]) else {
            return s.mods.fail("`.clamp` or `.wrap` is missing");
        };
        let clamp = mode == "clamp";
        let ty = s.mods.ty()?;
        let f = match (s.opcode, ty.kind, ty.bits, clamp) {
            ("bmsk", Kind::Bits, 32, true) => lane2(|a, b| bits::mask(a, b, true)),
            ("bmsk", Kind::Bits, 32, false) => lane2(|a, b| bits::mask(a, b, false)),
            ("szext", Kind::Unsigned, 32, true) => lane2(|a, b| bits::extend(a, b, true, false)),
            ("szext", Kind::Unsigned, 32, false) => lane2(|a, b| bits::extend(a, b, false, false)),
            ("szext", Kind::Signed, 32, true) => lane2(|a, b| bits::extend(a, b, true, true)),
            ("szext", Kind::Signed, 32, false) => lane2(|a, b| bits::extend(a, b, false, true)),
            _ => return s.mods.bad_type(ty),
        };
        let o = self.same_typed(s, Type::B32, 2)?;
        self.lanes(f, o);
        Ok(())
    }

    fn prmt(&mut self, s: &mut Statement<'_, 'a>) -> Result<()> {
        let ty = s.mods.ty()?;
        if ty != Type::B32 {
            return s.mods.bad_type(ty);
        }
        let f = match s.mods.one_of(&["f4e", "b4e", "rc8", "ecl", "ecr", "rc16"]) {
            None => lane3(bits::permute),
            Some("f4e") => lane3(|a, b, c: u32| bits::permute_by(a, b, c, 0)),
            Some("b4e") => lane3(|a, b, c: u32| bits::permute_by(a, b, c, 1)),
            Some("rc8") => lane3(|a, b, c: u32| bits::permute_by(a, b, c, 2)),
            Some("ecl") => lane3(|a, b, c: u32| bits::permute_by(a, b, c, 3)),
            Some("ecr") => lane3(|a, b, c: u32| bits::permute_by(a, b, c, 4)),
            Some(_) => lane3(|a, b, c: u32| bits::permute_by(a, b, c, 5)),
        };
        let o = self.same_typed(s, Type::B32, 3)?;
        self.lanes(f, o);
        Ok(())
    }

    fn lop3(&mut self, s: &mut Statement<'_, 'a>) -> Result<()> {
        let combine = match s.mods.one_of(&["and", "or"]) {
            Some("and") => BoolOp::And,
            Some(_) => BoolOp::Or,
            None => BoolOp::None,
        };
        let ty = s.mods.ty()?;
        if ty != Type::B32 {
            return s.mods.bad_type(ty);
        }
        let predicate = combine != BoolOp::None;
        s.expect_operands(if predicate { 6 } else { 5 })?;
        let Operand::Number(Number::Int(table @ 0..=255)) = s.operands[4] else {
            return s.mods.fail("the table must be a constant from 0 to 255");
        };
        let (value, test) = match (&s.operands[0], predicate) {
            (Operand::Pair(value, test), true) => (&**value, Some(&**test)),
            (value, false) => (value, None),
            _ => {
                return s
                    .mods
                    .fail("the destination must be a register and a predicate")
            }
        };
        let d = match value {
            Operand::Sink if predicate => self.scratch(ty)?,
            value => self.target(value, ty)?,
        };
        let o = Operands {
            d,
            a: self.source(&s.operands[1], ty)?,
            b: self.source(&s.operands[2], ty)?,
            c: self.source(&s.operands[3], ty)?,
            imm: table as u32,
            ..Operands::default()
        };
        self.lanes(lane3_imm(bits::lop3), o);
        if let Some(test) = test {
            // Whether the result is not zero, combined with another predicate.
            let o = Operands {
                d: self.pred_target(test)?,
                a: d,
                b: self.constant(0, 32),
                x: self.pred(&s.operands[5])?,
                imm: combine as u32,
                ..Operands::default()
            };
            self.lanes(lane_compare(|a: u32, b: u32| a != b), o);
        }
        Ok(())
    }

    fn funnel(&mut self, s: &mut Statement<'_, 'a>) -> Result<()> {
        let left = s.mods.take("l");
        if !left && !s.mods.take("r") {
            return s.mods.fail("`.l` or `.r` is missing");
        }
        let clamp = s.mods.take("clamp");
        if !clamp && !s.mods.take("wrap") {
            return s.mods.fail("`.clamp` or `.wrap` is missing");
        }
        let ty = s.mods.ty()?;
        if ty != Type::B32 {
            return s.mods.bad_type(ty);
        }
        let f = match (left, clamp) {
            (true, true) => lane3(|a, b, n: u32| bits::funnel_left(a, b, n.min(32))),
            (true, false) => lane3(|a, b, n: u32| bits::funnel_left(a, b, n & 31)),
            (false, true) => lane3(|a, b, n: u32| bits::funnel_right(a, b, n.min(32))),
            (false, false) => lane3(|a, b, n: u32| bits::funnel_right(a, b, n & 31)),
        };
        let o = self.same_typed(s, Type::B32, 3)?;
        self.lanes(f, o);
        Ok(())
    }
}
