//! Moves, special registers, addresses.

use super::function::FunctionLowering;
use super::instruction::Statement;
use super::names::Entry;
use super::Result;
use crate::exec::code::{Op, Space, Special, RESERVED_SHARED};
use crate::exec::lanes::{lane1, lane2, lane4, lane_split, pred_logic, LaneFn, Operands};
use crate::interface::{LOCAL_WINDOW, PARAM_WINDOW, SHARED_WINDOW};
use crate::parse::ast::Operand;
use crate::types::{Kind, Type};

/// A lane operation that copies registers of this width.
fn copy(bits: u32) -> Option<LaneFn> {
    Some(match bits {
        8 | 16 => lane1(|a: u16| a),
        32 => lane1(|a: u32| a),
        64 => lane1(|a: u64| a),
        128 => lane1(|a: u128| a),
        _ => return None,
    })
}

impl<'a> FunctionLowering<'_, 'a> {
    /// The special register of this name and its width.
    pub fn special(&mut self, name: &'a str, member: Option<&str>) -> Option<(Special, u32)> {
        let axis = match member {
            Some("x") => 0,
            Some("y") => 1,
            Some("z") => 2,
            Some("w") => 3,
            Some(_) => return None,
            None => 4,
        };
        let vector = |which: fn(u8) -> Special, last: u32| match axis {
            0..=2 => Some((which(axis as u8), 32)),
            3 => Some((Special::Fixed(last), 32)),
            _ => None,
        };
        if member.is_some() {
            return match name {
                "%tid" => vector(Special::Tid, 0),
                "%ntid" => vector(Special::Ntid, 1),
                "%ctaid" => vector(Special::Ctaid, 0),
                "%nctaid" => vector(Special::Nctaid, 1),
                // Without clusters, each block is one of its own.
                "%clusterid" => vector(Special::Ctaid, 0),
                "%nclusterid" => vector(Special::Nctaid, 1),
                "%cluster_ctaid" => Some((Special::Fixed(0), 32)),
                "%cluster_nctaid" => Some((Special::Fixed(1), 32)),
                _ => None,
            };
        }
        Some(match name {
            "%laneid" => (Special::LaneId, 32),
            "%warpid" => (Special::WarpId, 32),
            "%nwarpid" => (Special::NWarpId, 32),
            "%smid" => (Special::SmId, 32),
            "%nsmid" => (Special::NSmId, 32),
            "%gridid" => (Special::GridId, 64),
            "%lanemask_eq" => (Special::LaneMaskEq, 32),
            "%lanemask_lt" => (Special::LaneMaskLt, 32),
            "%lanemask_le" => (Special::LaneMaskLe, 32),
            "%lanemask_gt" => (Special::LaneMaskGt, 32),
            "%lanemask_ge" => (Special::LaneMaskGe, 32),
            "%clock" => (Special::Clock, 32),
            "%clock_hi" => (Special::ClockHigh, 32),
            "%clock64" => (Special::Clock64, 64),
            "%globaltimer" => (Special::GlobalTimer, 64),
            "%globaltimer_lo" => (Special::GlobalTimerLow, 32),
            "%globaltimer_hi" => (Special::GlobalTimerHigh, 32),
            "%dynamic_smem_size" => (Special::DynamicShared, 32),
            "%total_smem_size" | "%aggr_smem_size" => (Special::TotalShared, 32),
            "%reserved_smem_offset_begin"
            | "%reserved_smem_offset_0"
            | "%reserved_smem_offset_1" => self.reserved_shared(0),
            "%reserved_smem_offset_end" => self.reserved_shared(RESERVED_SHARED),
            "%reserved_smem_offset_cap" => (Special::Fixed(RESERVED_SHARED), 32),
            "%cluster_ctarank" => (Special::Fixed(0), 32),
            "%cluster_nctarank" => (Special::Fixed(1), 32),
            _ => {
                // What a driver passes in here is zero without a cooperative launch.
                let number: u32 = name.strip_prefix("%envreg")?.parse().ok()?;
                return (number < 32).then_some((Special::Fixed(0), 32));
            }
        })
    }

    /// An address in the memory that is reserved for the system's own use.
    fn reserved_shared(&mut self, offset: u32) -> (Special, u32) {
        self.module.code.reserved_shared = true;
        (Special::ReservedShared(offset), 32)
    }

    /// `mov`
    pub fn mov(&mut self, s: &mut Statement<'_, 'a>) -> Result<()> {
        let ty = s.mods.ty()?;
        s.expect_operands(2)?;
        if ty.kind == Kind::Pred {
            return self.mov_pred(s);
        }
        let (target, source) = (&s.operands[0], &s.operands[1]);
        match (target, source) {
            (Operand::Vector(parts), _) => self.unpack(s, ty, parts, source),
            (_, Operand::Vector(parts)) => self.pack(s, ty, target, parts),
            (_, Operand::Name(name)) => {
                if self.find_register(name)?.is_some() {
                    return self.mov_register(s, ty);
                }
                if let Some((which, width)) = self.special(name, None) {
                    return self.mov_special(target, ty, which, width);
                }
                let d = self.target(target, ty)?;
                self.mov_address(d, ty, name, 0)
            }
            (_, Operand::Member(name, member)) => match self.special(name, Some(member)) {
                Some((which, width)) => self.mov_special(target, ty, which, width),
                None => self.fail(format!("unknown operand `{name}.{member}`")),
            },
            (_, Operand::Offset(name, offset)) => {
                let d = self.target(target, ty)?;
                self.mov_address(d, ty, name, *offset)
            }
            _ => self.mov_register(s, ty),
        }
    }

    fn mov_register(&mut self, s: &Statement<'_, 'a>, ty: Type) -> Result<()> {
        let Some(f) = copy(ty.bits) else {
            return s.mods.bad_type(ty);
        };
        let d = self.target(&s.operands[0], ty)?;
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

    fn mov_pred(&mut self, s: &Statement<'_, 'a>) -> Result<()> {
        let d = self.pred_target(&s.operands[0])?;
        let a = match &s.operands[1] {
            Operand::Number(crate::parse::ast::Number::Int(value)) => {
                self.always() ^ u32::from(*value == 0)
            }
            operand => self.pred(operand)?,
        };
        self.lanes(
            pred_logic(|a, _| a),
            Operands {
                d,
                a,
                b: a,
                ..Operands::default()
            },
        );
        Ok(())
    }

    fn mov_special(
        &mut self,
        target: &Operand<'a>,
        ty: Type,
        which: Special,
        width: u32,
    ) -> Result<()> {
        let d = self.target(target, ty)?;
        match (ty.bits, width) {
            (a, b) if a == b => self.emit(Op::Special { d, which }),
            // Old code reads some of them with another width.
            (16, 32) => {
                let wide = self.scratch(Type::B32)?;
                self.emit(Op::Special { d: wide, which });
                let o = Operands {
                    d,
                    a: wide,
                    ..Operands::default()
                };
                self.lanes(lane1(|a: u32| a as u16), o);
            }
            (32, 64) => {
                let wide = self.scratch(Type::B64)?;
                self.emit(Op::Special { d: wide, which });
                let o = Operands {
                    d,
                    a: wide,
                    ..Operands::default()
                };
                self.lanes(lane1(|a: u64| a as u32), o);
            }
            (64, 32) => {
                let narrow = self.scratch(Type::B32)?;
                self.emit(Op::Special { d: narrow, which });
                let o = Operands {
                    d,
                    a: narrow,
                    ..Operands::default()
                };
                self.lanes(lane1(|a: u32| u64::from(a)), o);
            }
            _ => return self.fail("the special register has another width"),
        }
        Ok(())
    }

    /// The address of a variable or function.
    pub fn mov_address(&mut self, d: u32, ty: Type, name: &'a str, offset: i64) -> Result<()> {
        if !matches!(ty.bits, 32 | 64) || ty.is_float() {
            return self.fail("an address needs an integer register of 32 or 64 bits");
        }
        let wide = ty.bits == 64;
        let line = self.line;
        let symbol = match self.names.find(name, line)? {
            Some(Entry::Frame { offset: start, .. }) => {
                let offset = (i64::from(start)).wrapping_add(offset) as u32;
                self.emit(Op::FrameAddress { d, offset, wide });
                return Ok(());
            }
            Some(Entry::KernelParam { offset: start }) => {
                let bits = offset.wrapping_add(i64::from(start)) as u64;
                return self.mov_constant(d, bits, ty);
            }
            Some(Entry::Symbol(symbol)) => Some(symbol),
            Some(Entry::Register(_)) => {
                return self.fail("an offset can only be added to an address");
            }
            None => self.module.symbol(name),
        };
        if let Some(symbol) = symbol {
            self.used_symbols.insert(symbol);
            self.emit(Op::Symbol {
                d,
                symbol,
                offset,
                wide,
            });
            return Ok(());
        }
        if let (Some(address), Some(index)) =
            (self.function_address(name), self.module.function(name))
        {
            self.module.taken.push(index);
            return self.mov_constant(d, address, ty);
        }
        if self.module.is_unresolved(name) {
            return self.fail(format!("unresolved external variable `{name}`"));
        }
        if self.module.signatures.contains_key(name) {
            return self.fail(format!("unresolved external function `{name}`"));
        }
        self.fail(format!("unknown name `{name}`"))
    }

    fn mov_constant(&mut self, d: u32, bits: u64, ty: Type) -> Result<()> {
        let a = self.constant(u128::from(bits), ty.bits);
        match copy(ty.bits) {
            Some(f) => self.lanes(
                f,
                Operands {
                    d,
                    a,
                    ..Operands::default()
                },
            ),
            None => return self.fail("an address needs a register of 32 or 64 bits"),
        }
        Ok(())
    }

    /// `mov.b64 d, {a, b}`
    fn pack(
        &mut self,
        s: &Statement<'_, 'a>,
        ty: Type,
        target: &Operand<'a>,
        parts: &[Operand<'a>],
    ) -> Result<()> {
        let count = parts.len() as u32;
        if !matches!(count, 2 | 4) || ty.kind != Kind::Bits {
            return s.mods.bad_type(ty);
        }
        let part = Type::new(Kind::Bits, ty.bits / count);
        let f = match (count, ty.bits) {
            (2, 16) => lane2(|a: u16, b: u16| a & 0xff | b << 8),
            (2, 32) => lane2(|a: u16, b: u16| u32::from(a) | u32::from(b) << 16),
            (2, 64) => lane2(|a: u32, b: u32| u64::from(a) | u64::from(b) << 32),
            (2, 128) => lane2(|a: u64, b: u64| u128::from(a) | u128::from(b) << 64),
            (4, 32) => lane4(|a: u16, b: u16, c: u16, d: u16| {
                u32::from_le_bytes([a as u8, b as u8, c as u8, d as u8])
            }),
            (4, 64) => lane4(|a: u16, b: u16, c: u16, d: u16| {
                u64::from(a) | u64::from(b) << 16 | u64::from(c) << 32 | u64::from(d) << 48
            }),
            (4, 128) => lane4(|a: u32, b: u32, c: u32, d: u32| {
                u128::from(a) | u128::from(b) << 32 | u128::from(c) << 64 | u128::from(d) << 96
            }),
            _ => return s.mods.bad_type(ty),
        };
        let mut o = Operands {
            d: self.target(target, ty)?,
            ..Operands::default()
        };
        let slots = [&mut o.a, &mut o.b, &mut o.c, &mut o.x];
        for (slot, operand) in slots.into_iter().zip(parts) {
            *slot = match part.bits {
                8 => self.wide_source(operand, part)?.0,
                _ => self.source(operand, part)?,
            };
        }
        self.lanes(f, o);
        Ok(())
    }

    /// `mov.b64 {d, e}, a`
    fn unpack(
        &mut self,
        s: &Statement<'_, 'a>,
        ty: Type,
        parts: &[Operand<'a>],
        source: &Operand<'a>,
    ) -> Result<()> {
        let count = parts.len() as u32;
        if !matches!(count, 2 | 4) || ty.kind != Kind::Bits {
            return s.mods.bad_type(ty);
        }
        let part = Type::new(Kind::Bits, ty.bits / count);
        let f = match (count, ty.bits) {
            (2, 16) => lane_split(|a: u16, i| a >> (8 * i) & 0xff),
            (2, 32) => lane_split(|a: u32, i| (a >> (16 * i)) as u16),
            (2, 64) => lane_split(|a: u64, i| (a >> (32 * i)) as u32),
            (2, 128) => lane_split(|a: u128, i| (a >> (64 * i)) as u64),
            (4, 32) => lane_split(|a: u32, i| (a >> (8 * i)) as u16 & 0xff),
            (4, 64) => lane_split(|a: u64, i| (a >> (16 * i)) as u16),
            (4, 128) => lane_split(|a: u128, i| (a >> (32 * i)) as u32),
            _ => return s.mods.bad_type(ty),
        };
        let mut o = Operands {
            a: self.source(source, ty)?,
            imm: count,
            ..Operands::default()
        };
        let slots = [&mut o.d, &mut o.e, &mut o.b, &mut o.c];
        for (slot, operand) in slots.into_iter().zip(parts) {
            *slot = match part.bits {
                8 => {
                    let (slot, width) = self.wide_target(operand, part)?;
                    if width > 16 {
                        return self.fail("a byte goes to a register of 8 or 16 bits");
                    }
                    slot
                }
                _ => self.target(operand, part)?,
            };
        }
        self.lanes(f, o);
        Ok(())
    }

    /// A state space among the modifiers; `::cta` and the like change nothing here.
    pub fn space(&self, s: &mut Statement<'_, 'a>) -> Option<Space> {
        let word = s.mods.one_of(&[
            "global",
            "shared",
            "shared::cta",
            "shared::cluster",
            "local",
            "const",
            "param",
            "param::entry",
            "param::func",
        ])?;
        Some(match word {
            "global" => Space::Global,
            "local" => Space::Local,
            "const" => Space::Const,
            "shared" | "shared::cta" | "shared::cluster" => Space::Shared,
            _ => Space::Param,
        })
    }

    /// `cvta`
    pub fn cvta(&mut self, s: &mut Statement<'_, 'a>) -> Result<()> {
        let back = s.mods.take("to");
        let Some(space) = self.space(s) else {
            return s.mods.fail("the state space is missing");
        };
        let ty = s.mods.ty()?;
        s.expect_operands(2)?;
        if ty.kind != Kind::Unsigned || !matches!(ty.bits, 32 | 64) {
            return s.mods.bad_type(ty);
        }
        let window = match space {
            Space::Shared => SHARED_WINDOW,
            Space::Local => LOCAL_WINDOW,
            // A parameter of a device function lies in local memory.
            Space::Param if self.is_kernel => PARAM_WINDOW,
            Space::Param => LOCAL_WINDOW,
            _ => 0,
        };
        if ty.bits == 32 && window != 0 {
            return s.mods.fail("generic addresses need 64 bits");
        }
        let d = self.target(&s.operands[0], ty)?;
        let a = match &s.operands[1] {
            // The name of a variable instead of a register that holds its address.
            operand @ (Operand::Name(_) | Operand::Offset(..)) if !self.is_register(operand)? => {
                let (name, offset) = match operand {
                    Operand::Offset(name, offset) => (*name, *offset),
                    Operand::Name(name) => (*name, 0),
                    _ => return s.mods.fail("expected an address"),
                };
                let slot = self.scratch(ty)?;
                self.mov_address(slot, ty, name, offset)?;
                slot
            }
            operand => self.source(operand, ty)?,
        };
        let window = self.constant(u128::from(window), ty.bits);
        let f = match (ty.bits, back) {
            (32, _) => lane1(|a: u32| a),
            (_, false) => lane2(|a: u64, w: u64| a.wrapping_add(w)),
            (_, true) => lane2(|a: u64, w: u64| a.wrapping_sub(w)),
        };
        self.lanes(
            f,
            Operands {
                d,
                a,
                b: window,
                ..Operands::default()
            },
        );
        Ok(())
    }

    fn is_register(&mut self, operand: &Operand<'a>) -> Result<bool> {
        match operand {
            Operand::Name(name) => Ok(self.find_register(name)?.is_some()),
            _ => Ok(false),
        }
    }

    /// `isspacep`
    pub fn isspacep(&mut self, s: &mut Statement<'_, 'a>) -> Result<()> {
        let Some(space) = self.space(s) else {
            return s.mods.fail("the state space is missing");
        };
        s.expect_operands(2)?;
        let d = self.pred_target(&s.operands[0])?;
        let narrow = match &s.operands[1] {
            Operand::Name(name) => self.find_register(name)?.is_some_and(|r| r.ty.bits == 32),
            _ => false,
        };
        let a = self.source(&s.operands[1], if narrow { Type::B32 } else { Type::B64 })?;
        self.emit(Op::IsSpace {
            d,
            a,
            space,
            narrow,
        });
        Ok(())
    }
}
