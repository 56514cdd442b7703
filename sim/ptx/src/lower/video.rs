//! The SIMD video instructions, on two or four parts of a word.

use super::function::FunctionLowering;
use super::instruction::Statement;
use super::Result;
use crate::exec::lanes::lane3_imm;
use crate::exec::num::bits;
use crate::types::{Kind, Type};

impl<'a> FunctionLowering<'_, 'a> {
    /// `vadd2`, `vabsdiff4` and their like.
    pub fn video(&mut self, s: &mut Statement<'_, 'a>) -> Result<()> {
        let (name, count) = s.opcode.split_at(s.opcode.len() - 1);
        let operation = match name {
            "vadd" => 0,
            "vsub" => 1,
            "vavrg" => 2,
            "vabsdiff" => 3,
            "vmin" => 4,
            _ => 5,
        };
        let types = [s.mods.ty()?, s.mods.ty()?, s.mods.ty()?];
        let mut flags = operation | if count == "4" { bits::QUAD } else { 0 };
        for (ty, flag) in types
            .iter()
            .zip([bits::SIGNED_D, bits::SIGNED_A, bits::SIGNED_B])
        {
            match ty.kind {
                Kind::Unsigned if ty.bits == 32 => {}
                Kind::Signed if ty.bits == 32 => flags |= flag,
                _ => return s.mods.bad_type(*ty),
            }
        }
        if s.mods.take("sat") {
            flags |= bits::SATURATE;
        }
        if s.mods.take("add") {
            flags |= bits::ACCUMULATE;
        }
        let mut o = self.same_typed(s, Type::B32, 3)?;
        o.imm = flags;
        self.lanes(lane3_imm(bits::video), o);
        Ok(())
    }
    /// `vset2` and `vset4`: one for each part that compares so, zero for the others.
    pub fn video_set(&mut self, s: &mut Statement<'_, 'a>) -> Result<()> {
        let comparisons = ["eq", "ne", "lt", "le", "gt", "ge"];
        let comparison = s.mods.one_of(&comparisons);
        let Some(index) = comparisons.iter().position(|c| Some(*c) == comparison) else {
            return s.mods.fail("the comparison is missing");
        };
        let types = [s.mods.ty()?, s.mods.ty()?];
        let mut flags = index as u32;
        if s.opcode == "vset4" {
            flags |= bits::QUAD;
        }
        for (ty, flag) in types.iter().zip([bits::SIGNED_A, bits::SIGNED_B]) {
            match ty.kind {
                Kind::Unsigned if ty.bits == 32 => {}
                Kind::Signed if ty.bits == 32 => flags |= flag,
                _ => return s.mods.bad_type(*ty),
            }
        }
        if s.mods.take("add") {
            flags |= bits::ACCUMULATE;
        }
        let mut o = self.same_typed(s, Type::B32, 3)?;
        o.imm = flags;
        self.lanes(lane3_imm(bits::video_set), o);
        Ok(())
    }
}
