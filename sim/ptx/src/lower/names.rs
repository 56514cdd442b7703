//! Names inside a function: registers, variables, labels, in nested scopes.

use super::registers::Assignment;
use super::Result;
use crate::exec::lanes::Slot;
use crate::parse::ast::{Prototype, RegDecl};
use crate::types::Type;
use crate::CompileError;
use std::collections::HashMap;

/// What a name in a function stands for.
#[derive(Clone, Copy, Debug)]
pub enum Entry {
    Register(Register),
    /// A variable of local or parameter memory: offset in the frame.
    Frame {
        offset: u32,
        parameter: bool,
    },
    /// A parameter of the kernel: offset in the parameter block.
    KernelParam {
        offset: u32,
    },
    /// A variable elsewhere.
    Symbol(u32),
}

/// A register: a slot, or the index of a predicate.
#[derive(Clone, Copy, Debug)]
pub struct Register {
    pub ty: Type,
    pub slot: Slot,
}

/// `%r<10>`
struct Family {
    ty: Type,
    count: u64,
}

/// A block of statements.
#[derive(Default)]
pub struct Scope<'a> {
    entries: HashMap<&'a str, Entry>,
    families: HashMap<&'a str, Family>,
    pub labels: HashMap<&'a str, u32>,
    pub targets: HashMap<&'a str, (Vec<&'a str>, u32)>,
    pub prototypes: HashMap<&'a str, Prototype<'a>>,
    /// Branches to labels that have not been seen.
    pub pending: Vec<Pending<'a>>,
}

/// A place where the address of a label is to be written.
pub struct Pending<'a> {
    pub label: &'a str,
    pub line: u32,
    pub place: Fix,
}

/// Which place that is.
#[derive(Clone, Copy)]
pub enum Fix {
    Inst(usize),
    Table(usize, usize),
}

/// All names that are visible at some point, and how many registers they need.
#[derive(Default)]
pub struct Names<'a> {
    pub scopes: Vec<Scope<'a>>,
    pub planes: u32,
    pub preds: u32,
    /// First plane and bits of each register, in the order of their allocation.
    pub registers: Vec<(Slot, u32)>,
    /// Where the registers are to lie, if that is known already.
    pub assigned: Option<Assignment>,
}

/// More registers than this are an error, not a reason to run out of memory.
const MAX_PLANES: u32 = 1 << 20;
const MAX_PREDS: u32 = 1 << 16;

impl<'a> Names<'a> {
    pub fn scope(&mut self) -> &mut Scope<'a> {
        let last = self.scopes.len() - 1;
        &mut self.scopes[last]
    }

    pub fn declare(&mut self, name: &'a str, entry: Entry, line: u32) -> Result<()> {
        if self.scope().entries.insert(name, entry).is_some() {
            return Err(CompileError::new(
                line,
                format!("`{name}` is declared twice"),
            ));
        }
        Ok(())
    }

    pub fn declare_registers(&mut self, decl: &RegDecl<'a>) -> Result<()> {
        match decl.count {
            Some(count) => {
                let family = Family { ty: decl.ty, count };
                if self.scope().families.insert(decl.name, family).is_some() {
                    let message = format!("`{}` is declared twice", decl.name);
                    return Err(CompileError::new(decl.line, message));
                }
                Ok(())
            }
            None => {
                let slot = self.allocate(decl.ty, decl.line)?;
                let register = Register { ty: decl.ty, slot };
                self.declare(decl.name, Entry::Register(register), decl.line)
            }
        }
    }

    /// Room for a register of this type.
    pub fn allocate(&mut self, ty: Type, line: u32) -> Result<Slot> {
        if ty.bits == 1 {
            self.preds += 1;
            if self.preds > MAX_PREDS {
                return Err(CompileError::new(
                    line,
                    "the function uses too many predicates",
                ));
            }
            return Ok(self.preds - 1);
        }
        let bits = ty.bits.max(16);
        let slot = match &self.assigned {
            Some(assignment) => assignment
                .slots
                .get(self.registers.len())
                .copied()
                .unwrap_or(0),
            None => {
                self.planes += bits.div_ceil(32);
                self.planes - bits.div_ceil(32)
            }
        };
        if self.planes > MAX_PLANES {
            return Err(CompileError::new(
                line,
                "the function uses too many registers",
            ));
        }
        self.registers.push((slot, bits));
        Ok(slot)
    }

    /// Finds a name, innermost scope first. A register of a family gets its slot at its first use.
    pub fn find(&mut self, name: &'a str, line: u32) -> Result<Option<Entry>> {
        let digits = name.bytes().rev().take_while(u8::is_ascii_digit).count();
        let (prefix, number) = name.split_at(name.len() - digits);
        for level in (0..self.scopes.len()).rev() {
            if let Some(entry) = self.scopes[level].entries.get(name) {
                return Ok(Some(*entry));
            }
            let Some(family) = self.scopes[level].families.get(prefix) else {
                continue;
            };
            let canonical = number == "0" || !number.starts_with('0');
            let Ok(index) = number.parse::<u64>() else {
                continue;
            };
            if canonical && index < family.count {
                let ty = family.ty;
                let slot = self.allocate(ty, line)?;
                let entry = Entry::Register(Register { ty, slot });
                self.scopes[level].entries.insert(name, entry);
                return Ok(Some(entry));
            }
        }
        Ok(None)
    }
}
