//! Clusters: there are none beyond the one that each block is by itself.
//!
//! A program that works with clusters of any size runs with clusters of one block, as it does on a
//! device when the launch asks for no more.

use super::function::FunctionLowering;
use super::instruction::Statement;
use super::Result;
use crate::exec::code::{BarrierKind, BarrierOp};
use crate::exec::lanes::{lane1, lane2, Operands};
use crate::parse::ast::Operand;
use crate::types::Type;

impl<'a> FunctionLowering<'_, 'a> {
    /// `barrier.cluster`
    pub fn cluster_barrier(&mut self, s: &mut Statement<'_, 'a>) -> Result<()> {
        let kind = match s.mods.one_of(&["arrive", "wait"]) {
            Some("arrive") => BarrierKind::ClusterArrive,
            Some(_) => BarrierKind::ClusterWait,
            None => return s.mods.fail("`.arrive` or `.wait` is missing"),
        };
        // Memory is as strong as the strongest of these in any case.
        s.mods.one_of(&["release", "acquire", "relaxed"]);
        s.mods.take("aligned");
        s.expect_operands(0)?;
        let id = self.constant(0, 32);
        self.emit_barrier(BarrierOp {
            kind,
            id,
            count: None,
            pred: 0,
            d: 0,
        });
        Ok(())
    }

    /// `mapa`: the same address in another block of the cluster. Only block 0 has one.
    pub fn map_address(&mut self, s: &mut Statement<'_, 'a>) -> Result<()> {
        s.mods.take("shared::cluster");
        let ty = s.mods.ty()?;
        s.expect_operands(3)?;
        let a = match &s.operands[1] {
            Operand::Name(name) if self.find_register(name)?.is_none() => {
                let d = self.scratch(ty)?;
                self.mov_address(d, ty, name, 0)?;
                d
            }
            Operand::Offset(name, offset) => {
                let d = self.scratch(ty)?;
                self.mov_address(d, ty, name, *offset)?;
                d
            }
            register => self.source(register, ty)?,
        };
        let f = match ty {
            Type::U32 => lane2(|a: u32, rank: u32| if rank == 0 { a } else { u32::MAX }),
            Type::U64 => lane2(|a: u64, rank: u32| if rank == 0 { a } else { u64::MAX }),
            _ => return s.mods.bad_type(ty),
        };
        let o = Operands {
            d: self.target(&s.operands[0], ty)?,
            a,
            b: self.source(&s.operands[2], Type::U32)?,
            ..Operands::default()
        };
        self.lanes(f, o);
        Ok(())
    }

    /// `getctarank`: which block of the cluster an address belongs to.
    pub fn block_of_address(&mut self, s: &mut Statement<'_, 'a>) -> Result<()> {
        s.mods.take("shared::cluster");
        let ty = s.mods.ty()?;
        if !matches!(ty, Type::U32 | Type::U64) {
            return s.mods.bad_type(ty);
        }
        s.expect_operands(2)?;
        match &s.operands[1] {
            Operand::Offset(..) => {}
            Operand::Name(name) if self.find_register(name)?.is_none() => {
                let d = self.scratch(ty)?;
                self.mov_address(d, ty, name, 0)?;
            }
            register => {
                self.source(register, ty)?;
            }
        }
        let o = Operands {
            d: self.target(&s.operands[0], Type::U32)?,
            a: self.constant(0, 32),
            ..Operands::default()
        };
        self.lanes(lane1(|a: u32| a), o);
        Ok(())
    }
}
