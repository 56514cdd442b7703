//! Operands: registers, constants and addresses.

use super::function::FunctionLowering;
use super::names::{Entry, Register};
use super::registers::Role;
use super::Result;
use crate::exec::code::{Base, Op, Space, Special};
use crate::exec::lanes::Slot;
use crate::interface::FUNCTION_WINDOW;
use crate::parse::ast::{Number, Operand};
use crate::types::{Kind, Type};
use crate::CompileError;

/// An address operand.
#[derive(Clone, Copy)]
pub struct Address {
    pub space: Space,
    pub base: Base,
    pub offset: i64,
}

/// Whether a value of the register's type may be used as the other type of the same width.
fn agrees(register: Type, wanted: Type) -> bool {
    if register.kind == Kind::Bits || wanted.kind == Kind::Bits {
        return true;
    }
    match (register.packed, wanted.packed) {
        // Registers for pairs are `.f16x2`, or plain bits.
        (own, 2) => own == 2 && wanted.kind != Kind::Brain,
        (2, _) => wanted.is_int(),
        _ => register.is_float() == wanted.is_float() && wanted.kind != Kind::Brain,
    }
}

impl<'a> FunctionLowering<'_, 'a> {
    pub fn fail<T>(&self, message: impl Into<String>) -> Result<T> {
        Err(CompileError::new(self.line, message))
    }

    pub fn find_register(&mut self, name: &'a str) -> Result<Option<Register>> {
        let line = self.line;
        match self.names.find(name, line)? {
            Some(Entry::Register(register)) => Ok(Some(register)),
            _ => Ok(None),
        }
    }

    /// The register of this name, of exactly this width unless `wider` allows more.
    fn register(&mut self, name: &'a str, ty: Type, wider: bool) -> Result<Register> {
        let Some(register) = self.find_register(name)? else {
            return self.fail(format!("`{name}` is not a register"));
        };
        let width = if wider {
            register.ty.bits >= ty.bits
        } else {
            register.ty.bits == ty.bits
        };
        let pred = (register.ty.kind == Kind::Pred) == (ty.kind == Kind::Pred);
        // Wider registers are plain containers, except that floats stay floats.
        let kind = agrees(register.ty, ty);
        if width && pred && kind {
            return Ok(register);
        }
        self.fail(format!(
            "`{name}` is a register of type `.{}`, expected `.{}`",
            register.ty.name(),
            ty.name()
        ))
    }

    /// A slot of constants with this value in all lanes.
    pub fn constant(&mut self, bits: u128, width: u32) -> Slot {
        self.module.constant(bits, width)
    }

    /// A constant operand of this type.
    pub fn immediate(&mut self, number: Number, ty: Type) -> Result<Slot> {
        let bits = match (number, ty.kind, ty.bits) {
            (_, Kind::Pred, _) => return self.fail("a constant cannot be a predicate here"),
            _ if ty.is_half() => {
                let message = format!("a constant cannot be of type `.{}`", ty.name());
                return self.fail(message);
            }
            (Number::Int(value), Kind::Float, 32) if ty.packed == 1 => {
                // An integer is no floating point literal, but zero looks the same in both.
                if value != 0 {
                    return self.fail("an integer constant where a floating point one is expected");
                }
                0
            }
            (Number::Int(value), Kind::Float, 64) => {
                if value != 0 {
                    return self.fail("an integer constant where a floating point one is expected");
                }
                0
            }
            (Number::Int(value), _, 128) => value as i64 as i128 as u128,
            (Number::Int(value), ..) => u128::from(value),
            (Number::F32(bits), Kind::Float | Kind::Bits, 32) if ty.packed == 1 => u128::from(bits),
            (Number::F64(bits), Kind::Float, 32) if ty.packed == 1 => {
                u128::from((f64::from_bits(bits) as f32).to_bits())
            }
            (Number::F64(bits), Kind::Float | Kind::Bits, 64) => u128::from(bits),
            (Number::F32(bits), Kind::Float, 64) => {
                u128::from(f64::from(f32::from_bits(bits)).to_bits())
            }
            _ => {
                let message = format!(
                    "a floating point constant where `.{}` is expected",
                    ty.name()
                );
                return self.fail(message);
            }
        };
        Ok(self.constant(bits, ty.bits.max(16)))
    }

    /// A source of exactly this type.
    pub fn source(&mut self, operand: &Operand<'a>, ty: Type) -> Result<Slot> {
        self.source_of(operand, ty, false).map(|(slot, _)| slot)
    }

    /// A source whose register may be wider than the type; with the register's width.
    pub fn wide_source(&mut self, operand: &Operand<'a>, ty: Type) -> Result<(Slot, u32)> {
        self.source_of(operand, ty, true)
    }

    fn source_of(&mut self, operand: &Operand<'a>, ty: Type, wider: bool) -> Result<(Slot, u32)> {
        match operand {
            Operand::Number(number) => Ok((self.immediate(*number, ty)?, ty.bits.max(16))),
            Operand::Name(name) => match self.special(name, None) {
                Some((which, width)) => self.special_source(which, width, ty),
                None => {
                    let register = self.register(name, ty, wider)?;
                    self.note(register, Role::Read);
                    Ok((register.slot, register.ty.bits))
                }
            },
            Operand::Member(name, member) => match self.special(name, Some(member)) {
                Some((which, width)) => self.special_source(which, width, ty),
                None => self.fail(format!("unknown operand `{name}.{member}`")),
            },
            Operand::Sink => self.fail("`_` cannot be a source"),
            _ => self.fail("expected a register or a constant"),
        }
    }

    /// A special register read straight by an instruction that is no `mov`.
    fn special_source(&mut self, which: Special, width: u32, ty: Type) -> Result<(Slot, u32)> {
        if ty.bits > width {
            return self.fail("the special register is narrower than the operand");
        }
        let own = Type::new(Kind::Bits, width);
        let slot = self.scratch(own)?;
        self.emit_unguarded(Op::Special { d: slot, which });
        Ok((slot, width))
    }

    /// A register that nobody else uses.
    pub fn scratch(&mut self, ty: Type) -> Result<Slot> {
        let line = self.line;
        let slot = self.names.allocate(ty, line)?;
        self.note(Register { ty, slot }, Role::Written);
        Ok(slot)
    }

    /// A destination of exactly this type.
    pub fn target(&mut self, operand: &Operand<'a>, ty: Type) -> Result<Slot> {
        match operand {
            Operand::Sink => self.scratch(ty),
            Operand::Name(name) => {
                let register = self.register(name, ty, false)?;
                self.note(register, Role::Written);
                Ok(register.slot)
            }
            _ => self.fail("expected a register as the destination"),
        }
    }

    /// A destination whose register may be wider than the type; with its width.
    pub fn wide_target(&mut self, operand: &Operand<'a>, ty: Type) -> Result<(Slot, u32)> {
        match operand {
            Operand::Sink => {
                let width = ty.bits.max(16);
                Ok((self.scratch(Type::new(Kind::Bits, width))?, width))
            }
            Operand::Name(name) => {
                let register = self.register(name, ty, true)?;
                self.note(register, Role::Written);
                Ok((register.slot, register.ty.bits))
            }
            _ => self.fail("expected a register as the destination"),
        }
    }

    /// A predicate that is read.
    pub fn pred(&mut self, operand: &Operand<'a>) -> Result<u32> {
        match operand {
            Operand::Name(name) => Ok(self.register(name, Type::PRED, false)?.slot << 1),
            Operand::Not(name) => Ok(self.register(name, Type::PRED, false)?.slot << 1 | 1),
            _ => self.fail("expected a predicate"),
        }
    }

    /// A predicate that is written: its index.
    pub fn pred_target(&mut self, operand: &Operand<'a>) -> Result<u32> {
        self.target(operand, Type::PRED)
    }

    /// A predicate that is always true.
    pub fn always(&mut self) -> u32 {
        // Predicate 1 of each frame stays false.
        1 << 1 | 1
    }

    /// The address of a function.
    pub fn function_address(&self, name: &str) -> Option<u64> {
        self.module
            .function(name)
            .map(|index| FUNCTION_WINDOW + 16 * (index as u64 + 1))
    }

    /// An address operand of an instruction on this space; `None` stands for generic addressing.
    pub fn address(&mut self, operand: &Operand<'a>, space: Space) -> Result<Address> {
        let Operand::Address(base, offset) = operand else {
            return self.fail("expected an address in brackets");
        };
        let Some(name) = base else {
            return Ok(Address {
                space,
                base: Base::None,
                offset: *offset,
            });
        };
        let line = self.line;
        match self.names.find(name, line)? {
            Some(Entry::Register(register)) => {
                self.note(register, Role::Read);
                let base = match (register.ty.bits, register.ty.is_float()) {
                    (64, false) => Base::Wide(register.slot),
                    (32, false) => Base::Narrow(register.slot),
                    _ => return self.fail(format!("`{name}` cannot hold an address")),
                };
                // Parameters of a device function lie in its frame.
                let space = match space {
                    Space::Param if !self.is_kernel => Space::Local,
                    other => other,
                };
                Ok(Address {
                    space,
                    base,
                    offset: *offset,
                })
            }
            Some(Entry::Frame {
                offset: start,
                parameter,
            }) => {
                let fits = match space {
                    Space::Param => parameter,
                    Space::Local | Space::Generic => true,
                    _ => false,
                };
                if !fits {
                    return self.fail(format!("`{name}` lies in another state space"));
                }
                let offset = offset.wrapping_add(i64::from(start));
                Ok(Address {
                    space: Space::Local,
                    base: Base::Frame,
                    offset,
                })
            }
            Some(Entry::KernelParam { offset: start }) => {
                if !matches!(space, Space::Param | Space::Generic) {
                    return self.fail(format!("`{name}` lies in another state space"));
                }
                let offset = offset.wrapping_add(i64::from(start));
                Ok(Address {
                    space: Space::Param,
                    base: Base::None,
                    offset,
                })
            }
            Some(Entry::Symbol(symbol)) => self.symbol_address(name, symbol, *offset, space),
            None => match self.module.symbol(name) {
                Some(symbol) => self.symbol_address(name, symbol, *offset, space),
                None => self.fail(format!("unknown name `{name}`")),
            },
        }
    }

    fn symbol_address(
        &mut self,
        name: &str,
        symbol: u32,
        offset: i64,
        space: Space,
    ) -> Result<Address> {
        let own = self.module.symbol_space(symbol);
        self.used_symbols.insert(symbol);
        if space != own && space != Space::Generic {
            return self.fail(format!("`{name}` lies in another state space"));
        }
        Ok(Address {
            space: own,
            base: Base::Symbol(symbol),
            offset,
        })
    }
}
