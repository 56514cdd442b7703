//! Loads, stores, atomic operations and what else concerns memory.

use super::atomic::atomic;
use super::function::FunctionLowering;
use super::instruction::Statement;
use super::modifiers::Modifiers;
use super::operand::Address;
use super::Result;
use crate::exec::access::{load, store, Transfer};
use crate::exec::code::{AtomOp, MemOp, Op, Space};
use crate::exec::lanes::{lane2, Operands};
use crate::parse::ast::{Number, Operand};
use crate::types::{Kind, Type};

/// The routine that loads this type into a register of this width.
fn load_transfer(ty: Type, width: u32) -> Option<Transfer> {
    Some(match (ty.is_signed(), ty.bits, width) {
        (false, 8, 16) => load(|v: u8| u16::from(v)),
        (false, 8, 32) => load(|v: u8| u32::from(v)),
        (false, 8, 64) => load(|v: u8| u64::from(v)),
        (true, 8, 16) => load(|v: u8| i16::from(v as i8)),
        (true, 8, 32) => load(|v: u8| i32::from(v as i8)),
        (true, 8, 64) => load(|v: u8| i64::from(v as i8)),
        (_, 16, 16) => load(|v: u16| v),
        (false, 16, 32) => load(|v: u16| u32::from(v)),
        (false, 16, 64) => load(|v: u16| u64::from(v)),
        (true, 16, 32) => load(|v: u16| i32::from(v as i16)),
        (true, 16, 64) => load(|v: u16| i64::from(v as i16)),
        (_, 32, 32) => load(|v: u32| v),
        (false, 32, 64) => load(|v: u32| u64::from(v)),
        (true, 32, 64) => load(|v: u32| i64::from(v as i32)),
        (_, 64, 64) => load(|v: u64| v),
        (_, 128, 128) => load(|v: u128| v),
        _ => return None,
    })
}

/// The routine that stores this many low bits of a register of this width.
fn store_transfer(bits: u32, width: u32) -> Option<Transfer> {
    Some(match (bits, width) {
        (8, 16) => store(|v: u16| v as u8),
        (8, 32) => store(|v: u32| v as u8),
        (8, 64) => store(|v: u64| v as u8),
        (16, 16) => store(|v: u16| v),
        (16, 32) => store(|v: u32| v as u16),
        (16, 64) => store(|v: u64| v as u16),
        (32, 32) => store(|v: u32| v),
        (32, 64) => store(|v: u64| v as u32),
        (64, 64) => store(|v: u64| v),
        (128, 128) => store(|v: u128| v),
        _ => return None,
    })
}

/// How an access is ordered.
#[derive(Clone, Copy, Default)]
struct Order {
    acquire: bool,
    release: bool,
    /// Volatile, relaxed or stronger.
    strong: bool,
}

fn order(mods: &mut Modifiers<'_>) -> Order {
    let word = mods.one_of(&[
        "weak", "volatile", "relaxed", "acquire", "release", "acq_rel", "mmio",
    ]);
    if word == Some("mmio") {
        mods.take("relaxed");
    }
    mods.one_of(&["cta", "cluster", "gpu", "sys"]);
    Order {
        acquire: matches!(word, Some("acquire" | "acq_rel")),
        release: matches!(word, Some("release" | "acq_rel")),
        strong: !matches!(word, None | Some("weak")),
    }
}

/// Caching is not modelled: its operators and hints are checked and dropped.
fn cache(mods: &mut Modifiers<'_>) {
    mods.one_of(&["ca", "cg", "cs", "lu", "cv", "wb", "wt"]);
    mods.take_all(|word| {
        let hint = word
            .strip_prefix("L1::")
            .or_else(|| word.strip_prefix("L2::"))
            .is_some_and(|hint| {
                matches!(
                    hint,
                    "evict_normal"
                        | "evict_unchanged"
                        | "evict_first"
                        | "evict_last"
                        | "no_allocate"
                        | "cache_hint"
                        | "64B"
                        | "128B"
                        | "256B"
                )
            });
        hint
    });
}

fn vector(mods: &mut Modifiers<'_>) -> usize {
    match mods.one_of(&["v2", "v4", "v8"]) {
        Some("v2") => 2,
        Some("v4") => 4,
        Some(_) => 8,
        None => 1,
    }
}

impl<'a> FunctionLowering<'_, 'a> {
    /// The registers of a scalar or vector operand.
    fn elements<'x>(
        &self,
        s: &Statement<'_, 'a>,
        operand: &'x Operand<'a>,
        count: usize,
    ) -> Result<&'x [Operand<'a>]> {
        match operand {
            Operand::Vector(parts) if parts.len() == count => Ok(parts),
            Operand::Vector(_) => s.mods.fail(&format!("expected a vector of {count}")),
            _ if count == 1 => Ok(std::slice::from_ref(operand)),
            _ => s.mods.fail(&format!("expected a vector of {count}")),
        }
    }

    fn push_mem(&mut self, op: MemOp) -> u32 {
        self.module.code.mem.push(op);
        self.module.code.mem.len() as u32 - 1
    }

    fn access(&mut self, s: &Statement<'_, 'a>, ty: Type, count: usize) -> Result<u32> {
        if !matches!(ty.bits, 8 | 16 | 32 | 64 | 128) {
            return s.mods.bad_type(ty);
        }
        let total = ty.bytes() * count as u32;
        if total > 32 {
            return s.mods.fail("the vector is too long");
        }
        Ok(total)
    }

    /// `ld` and `ldu`
    pub fn load(&mut self, s: &mut Statement<'_, 'a>) -> Result<()> {
        let order = order(&mut s.mods);
        let space = self.space(s).unwrap_or(Space::Generic);
        s.mods.take("nc");
        cache(&mut s.mods);
        let count = vector(&mut s.mods);
        let ty = s.mods.ty()?;
        self.drop_policy(s, 2)?;
        let total = self.access(s, ty, count)?;
        let (mut slots, mut widths) = (Vec::new(), Vec::new());
        for element in self.elements(s, &s.operands[0], count)? {
            let (slot, width) = self.wide_target(element, ty)?;
            slots.push(slot);
            widths.push(width.max(16));
        }
        let width = self.same_width(s, &widths)?;
        let Some(transfer) = load_transfer(ty, width) else {
            return s.mods.bad_type(ty);
        };
        let Address {
            space,
            base,
            offset,
        } = self.address(&s.operands[1], space)?;
        let op = MemOp {
            space,
            base,
            offset,
            size: ty.bytes(),
            total,
            slots,
            transfer,
            acquire: order.acquire,
            release: false,
            waits: order.strong,
            atomic: None,
        };
        let index = self.push_mem(op);
        self.emit(Op::Load(index));
        Ok(())
    }

    /// A cache policy may follow the operands; it has no effect here.
    fn drop_policy(&mut self, s: &Statement<'_, 'a>, count: usize) -> Result<()> {
        if s.operands.len() == count + 1 {
            self.source(&s.operands[count], Type::B64)?;
            return Ok(());
        }
        s.expect_operands(count)
    }

    /// `st`
    pub fn store(&mut self, s: &mut Statement<'_, 'a>) -> Result<()> {
        let order = order(&mut s.mods);
        let space = self.space(s).unwrap_or(Space::Generic);
        cache(&mut s.mods);
        let count = vector(&mut s.mods);
        let ty = s.mods.ty()?;
        self.drop_policy(s, 2)?;
        let total = self.access(s, ty, count)?;
        let Address {
            space,
            base,
            offset,
        } = self.address(&s.operands[0], space)?;
        if matches!(space, Space::Const | Space::Param) {
            return s.mods.fail("the state space can only be read");
        }
        let (mut slots, mut widths) = (Vec::new(), Vec::new());
        for element in self.elements(s, &s.operands[1], count)? {
            let (slot, width) = self.wide_source(element, ty)?;
            slots.push(slot);
            widths.push(width.max(16));
        }
        let width = self.same_width(s, &widths)?;
        let Some(transfer) = store_transfer(ty.bits, width) else {
            return s.mods.bad_type(ty);
        };
        let op = MemOp {
            space,
            base,
            offset,
            size: ty.bytes(),
            total,
            slots,
            transfer,
            acquire: false,
            release: order.release,
            waits: false,
            atomic: None,
        };
        let index = self.push_mem(op);
        self.emit(Op::Store(index));
        Ok(())
    }

    fn same_width(&self, s: &Statement<'_, 'a>, widths: &[u32]) -> Result<u32> {
        match widths {
            [first, rest @ ..] if rest.iter().all(|width| width == first) => Ok(*first),
            _ => s.mods.fail("the registers of the vector differ in width"),
        }
    }

    /// `atom` and `red`
    pub fn atom(&mut self, s: &mut Statement<'_, 'a>) -> Result<()> {
        let returns = s.opcode == "atom";
        if s.mods.take("async") {
            return s.mods.fail("unsupported modifier `.async`");
        }
        let order = order(&mut s.mods);
        let space = self.space(s).unwrap_or(Space::Generic);
        if !matches!(space, Space::Generic | Space::Global | Space::Shared) {
            return s
                .mods
                .fail("an atomic operation needs global or shared memory");
        }
        cache(&mut s.mods);
        let Some(name) = s.mods.one_of(&[
            "add", "inc", "dec", "min", "max", "and", "or", "xor", "exch", "cas",
        ]) else {
            return s.mods.fail("the operation is missing");
        };
        if !returns && matches!(name, "exch" | "cas") {
            return s.mods.fail("the operation needs `atom`");
        }
        let noftz = s.mods.take("noftz");
        let count = vector(&mut s.mods);
        let ty = s.mods.ty()?;
        if count > 1 && !ty.is_float() {
            return s.mods.bad_type(ty);
        }
        let cas = name == "cas";
        let first = usize::from(returns);
        let inputs = if cas { 3 } else { 2 };
        if s.operands.len() != first + inputs + 1 {
            s.expect_operands(first + inputs)?;
        } else {
            self.source(&s.operands[first + inputs], Type::B64)?;
        }
        let Some((global, shared)) = atomic(name, ty, noftz, count) else {
            return s.mods.bad_type(ty);
        };
        let total = self.access(s, ty, count)?;
        let mut slots = Vec::new();
        if returns {
            for element in self.elements(s, &s.operands[0], count)? {
                slots.push(self.target(element, ty)?);
            }
        }
        let Address {
            space,
            base,
            offset,
        } = self.address(&s.operands[first], space)?;
        if matches!(space, Space::Const | Space::Param) {
            return s.mods.fail("the state space can only be read");
        }
        let mut b = Vec::new();
        for element in self.elements(s, &s.operands[first + 1], count)? {
            b.push(self.source(element, ty)?);
        }
        let c = if cas {
            Some(self.source(&s.operands[first + 2], ty)?)
        } else {
            None
        };
        let Some(transfer) = load_transfer(ty, ty.bits) else {
            return s.mods.bad_type(ty);
        };
        let op = MemOp {
            space,
            base,
            offset,
            size: ty.bytes(),
            total,
            slots,
            transfer,
            acquire: order.acquire,
            release: order.release,
            waits: returns,
            atomic: Some(AtomOp {
                global,
                shared,
                b,
                c,
                returns,
            }),
        };
        let index = self.push_mem(op);
        self.emit(Op::Atom(index));
        Ok(())
    }

    /// `cp.async`, which copies at once.
    pub fn copy(&mut self, s: &mut Statement<'_, 'a>) -> Result<()> {
        if !s.mods.take("async") {
            return s.mods.fail("unsupported instruction");
        }
        if s.mods.take("commit_group") || s.mods.take("wait_all") {
            self.emit_unguarded(Op::Fence);
            return s.expect_operands(0);
        }
        if s.mods.take("wait_group") {
            self.emit_unguarded(Op::Fence);
            return s.expect_operands(1);
        }
        if let Some(word) = s.mods.one_of(&["bulk", "mbarrier", "reduce"]) {
            return s.mods.fail(&format!("unsupported modifier `.{word}`"));
        }
        cache(&mut s.mods);
        if !s.mods.take("shared") && !s.mods.take("shared::cta") || !s.mods.take("global") {
            return s.mods.fail("the copy goes from `.global` to `.shared`");
        }
        if s.operands.len() < 3 {
            return s.expect_operands(3);
        }
        let Operand::Number(Number::Int(size @ (4 | 8 | 16))) = s.operands[2] else {
            return s.mods.fail("the size must be 4, 8 or 16");
        };
        self.copy_elements(s, size as u32)
    }

    fn copy_elements(&mut self, s: &Statement<'_, 'a>, size: u32) -> Result<()> {
        let from = self.address(&s.operands[1], Space::Global)?;
        let to = self.address(&s.operands[0], Space::Shared)?;
        let ty = Type::new(Kind::Bits, size * 8);
        let slot = self.scratch(ty)?;
        let (Some(reads), Some(writes)) =
            (load_transfer(ty, ty.bits), store_transfer(ty.bits, ty.bits))
        else {
            return s.mods.bad_type(ty);
        };
        let access = |at: Address, transfer| MemOp {
            space: at.space,
            base: at.base,
            offset: at.offset,
            size,
            total: size,
            slots: vec![slot],
            transfer,
            acquire: false,
            release: false,
            waits: false,
            atomic: None,
        };
        let index = self.push_mem(access(from, reads));
        // Fewer bytes than the size may be wanted; the rest is filled with zeros.
        let wanted = match s.operands.get(3) {
            None => None,
            Some(Operand::Number(Number::Int(n))) if *n == u64::from(size) => None,
            Some(operand) => Some(self.source(operand, Type::U32)?),
        };
        let Some(wanted) = wanted else {
            self.emit(Op::Load(index));
            let index = self.push_mem(access(to, writes));
            self.emit(Op::Store(index));
            return Ok(());
        };
        // With nothing wanted, the source is not read.
        let some = self.scratch(Type::PRED)?;
        let zero = self.constant(0, 32);
        let compare = crate::exec::lanes::lane_compare(|a: u32, b: u32| a != b);
        self.lanes(
            compare,
            Operands {
                d: some,
                a: wanted,
                b: zero,
                ..Operands::default()
            },
        );
        self.emit_and(Op::Load(index), some << 1)?;
        let o = Operands {
            d: slot,
            a: slot,
            b: wanted,
            ..Operands::default()
        };
        let keep = match size {
            4 => lane2(|v: u32, n: u32| keep_bytes(u128::from(v), n) as u32),
            8 => lane2(|v: u64, n: u32| keep_bytes(u128::from(v), n) as u64),
            _ => lane2(keep_bytes),
        };
        self.lanes(keep, o);
        let index = self.push_mem(access(to, writes));
        self.emit(Op::Store(index));
        Ok(())
    }

    /// Cache control: operands are checked, and nothing happens.
    pub fn cache_hint(&mut self, s: &mut Statement<'_, 'a>) -> Result<()> {
        match s.opcode {
            "createpolicy" => {
                s.mods.take("fractional");
                s.mods.take_all(|w| w.starts_with("L2::"));
                let ty = s.mods.ty()?;
                if s.operands.is_empty() {
                    return s.mods.fail("the destination is missing");
                }
                let d = self.target(&s.operands[0], ty)?;
                let a = self.constant(0, 64);
                if ty != Type::B64 {
                    return s.mods.bad_type(ty);
                }
                let o = Operands {
                    d,
                    a,
                    ..Operands::default()
                };
                self.lanes(crate::exec::lanes::lane1(|a: u64| a), o);
            }
            _ => {
                let space = self.space(s).unwrap_or(Space::Generic);
                s.mods.take_all(|w| {
                    matches!(w, "L1" | "L2" | "tensormap")
                        || w.starts_with("L2::")
                        || w.starts_with("L1::")
                });
                if s.operands.is_empty() {
                    return s.mods.fail("the address is missing");
                }
                self.address(&s.operands[0], space)?;
            }
        }
        Ok(())
    }

    /// `membar` and `fence`
    pub fn fence(&mut self, s: &mut Statement<'_, 'a>) -> Result<()> {
        if s.mods.take("proxy") {
            s.mods.one_of(&[
                "alias",
                "async",
                "async.global",
                "async::generic",
                "tensormap::generic",
            ]);
            self.space(s);
        }
        s.mods.one_of(&["sc", "acq_rel", "acquire", "release"]);
        s.mods.one_of(&["cta", "cluster", "gpu", "sys", "gl"]);
        s.expect_operands(0)?;
        self.emit_unguarded(Op::Fence);
        Ok(())
    }
}

/// The low `n` bytes.
fn keep_bytes(value: u128, n: u32) -> u128 {
    if n >= 16 {
        value
    } else {
        value & ((1 << (8 * n)) - 1)
    }
}
