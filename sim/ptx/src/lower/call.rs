//! Branches, calls, ends.

use super::function::FunctionLowering;
use super::instruction::Statement;
use super::names::{Entry, Fix};
use super::registers::Role;
use super::Result;
use crate::exec::code::{CallSite, Callee, Op, Place};
use crate::parse::ast::{Formal, Operand};
use crate::types::{Kind, Type};

impl<'a> FunctionLowering<'_, 'a> {
    /// `bra`
    pub fn branch(&mut self, s: &mut Statement<'_, 'a>) -> Result<()> {
        s.mods.take("uni");
        s.expect_operands(1)?;
        let Operand::Name(label) = s.operands[0] else {
            return s.mods.fail("expected a label");
        };
        let at = self.here() as usize;
        self.emit(Op::Branch(0));
        self.refer(label, Fix::Inst(at));
        Ok(())
    }

    /// `brx.idx`
    pub fn branch_table(&mut self, s: &mut Statement<'_, 'a>) -> Result<()> {
        if !s.mods.take("idx") {
            return s.mods.fail("`.idx` is missing");
        }
        s.mods.take("uni");
        s.expect_operands(2)?;
        let index = self.source(&s.operands[0], Type::U32)?;
        let Operand::Name(list) = s.operands[1] else {
            return s.mods.fail("expected a list of labels");
        };
        let found = self
            .names
            .scopes
            .iter()
            .rev()
            .find_map(|scope| scope.targets.get(list));
        let Some((labels, _)) = found.cloned() else {
            return s.mods.fail(&format!("unknown list of labels `{list}`"));
        };
        let table = self.module.code.tables.len();
        self.module.code.tables.push(vec![0; labels.len()]);
        for (entry, label) in labels.iter().enumerate() {
            self.refer(label, Fix::Table(table, entry));
        }
        self.emit(Op::BranchTable {
            index,
            table: table as u32,
        });
        Ok(())
    }

    /// `ret`, `exit`, `trap`, `brkpt`
    pub fn leave(&mut self, s: &mut Statement<'_, 'a>) -> Result<()> {
        if s.opcode == "ret" {
            s.mods.take("uni");
        }
        s.expect_operands(0)?;
        self.emit(match s.opcode {
            "ret" => Op::Return,
            "exit" => Op::Exit,
            _ => Op::Trap,
        });
        Ok(())
    }

    /// `call`, whose operands are `(results), callee, (arguments), prototype`, all but the callee
    /// optional.
    pub fn call(&mut self, s: &mut Statement<'_, 'a>) -> Result<()> {
        s.mods.take("uni");
        let mut rest = s.operands;
        let results: &[Operand<'a>] = match rest {
            [Operand::List(list), tail @ ..] => {
                rest = tail;
                list
            }
            _ => &[],
        };
        let [Operand::Name(callee), tail @ ..] = rest else {
            return s.mods.fail("expected the name of a function");
        };
        let (args, prototype): (&[Operand<'a>], _) = match tail {
            [] => (&[], None),
            [Operand::List(list)] => (list, None),
            [Operand::Name(prototype)] => (&[], Some(*prototype)),
            [Operand::List(list), Operand::Name(prototype)] => (list, Some(*prototype)),
            _ => return s.mods.fail("bad operands"),
        };
        if let Some(register) = self.find_register(callee)? {
            if register.ty.bits != 64 || register.ty.is_float() {
                return s
                    .mods
                    .fail("a call through a register needs a 64-bit address");
            }
            self.note(register, Role::Read);
            return self.call_pointer(s, register.slot, results, args, prototype);
        }
        let Some(signature) = self.module.signatures.get(callee).cloned() else {
            return s.mods.fail(&format!("unknown function `{callee}`"));
        };
        if signature.entry {
            return s.mods.fail(&format!("`{callee}` is a kernel"));
        }
        let Some(index) = self.module.function(callee) else {
            return self.call_builtin(s, callee);
        };
        let args = self.places(s, args, &signature.params)?;
        let results = self.places(s, results, &signature.returns)?;
        self.callees.insert(index);
        self.emit_call(Callee::Function(index), args, results);
        Ok(())
    }

    /// A function that is declared but has no body.
    fn call_builtin(&mut self, s: &Statement<'_, 'a>, name: &str) -> Result<()> {
        match name {
            "__assertfail" | "__assert_fail" => {
                self.emit(Op::Assert);
                Ok(())
            }
            "vprintf" => s
                .mods
                .fail("device-side `printf` (`vprintf`) is not supported"),
            "malloc" | "free" => s
                .mods
                .fail(&format!("the device's heap (`{name}`) is not supported")),
            _ => s
                .mods
                .fail(&format!("unresolved external function `{name}`")),
        }
    }

    fn call_pointer(
        &mut self,
        s: &Statement<'_, 'a>,
        slot: u32,
        results: &[Operand<'a>],
        args: &[Operand<'a>],
        prototype: Option<&str>,
    ) -> Result<()> {
        let Some(name) = prototype else {
            return s.mods.fail("a call through a register needs a prototype");
        };
        let mut found = self
            .names
            .scopes
            .iter()
            .rev()
            .find_map(|scope| scope.prototypes.get(name))
            .cloned();
        if found.is_none() {
            // A list of targets: they all look alike.
            let targets = self
                .names
                .scopes
                .iter()
                .rev()
                .find_map(|scope| scope.targets.get(name));
            let first = targets.and_then(|(names, _)| names.first().copied());
            found = first
                .and_then(|first| self.module.signatures.get(first))
                .map(|signature| crate::parse::ast::Prototype {
                    returns: signature.returns.clone(),
                    params: signature.params.clone(),
                });
        }
        let Some(prototype) = found else {
            return s.mods.fail(&format!("unknown prototype `{name}`"));
        };
        let args = self.places(s, args, &prototype.params)?;
        let results = self.places(s, results, &prototype.returns)?;
        self.calls_pointers = true;
        self.emit_call(Callee::Register(slot), args, results);
        Ok(())
    }

    fn emit_call(&mut self, callee: Callee, args: Vec<Place>, results: Vec<Place>) {
        let site = CallSite {
            caller: self.index,
            callee,
            args,
            results,
            saves: false,
        };
        self.module.code.calls.push(site);
        let index = self.module.code.calls.len() as u32 - 1;
        self.emit(Op::Call(index));
    }

    /// Where the actual parameters lie; they must match the formal ones.
    fn places(
        &mut self,
        s: &Statement<'_, 'a>,
        actual: &[Operand<'a>],
        formal: &[Formal<'a>],
    ) -> Result<Vec<Place>> {
        if actual.len() != formal.len() {
            let (want, have) = (formal.len(), actual.len());
            return s
                .mods
                .fail(&format!("expected {want} parameters, found {have}"));
        }
        let mut places = Vec::new();
        for (operand, formal) in actual.iter().zip(formal) {
            places.push(self.place(s, operand, formal)?);
        }
        Ok(places)
    }

    fn place(
        &mut self,
        s: &Statement<'_, 'a>,
        operand: &Operand<'a>,
        formal: &Formal<'a>,
    ) -> Result<Place> {
        let line = self.line;
        if let Operand::Name(name) = operand {
            match self.names.find(name, line)? {
                Some(Entry::Frame {
                    offset,
                    parameter: true,
                }) if !formal.register => {
                    return Ok(Place::Frame {
                        offset,
                        size: formal.size as u32,
                    });
                }
                Some(Entry::Register(register)) => {
                    let same = match formal.ty.kind {
                        Kind::Pred => register.ty.kind == Kind::Pred,
                        _ => u64::from(register.ty.bytes()) == formal.size,
                    };
                    if same {
                        // A result is written later than the instruction; being read is safe.
                        self.note(register, Role::Read);
                        return Ok(self.register_place(register));
                    }
                    return s
                        .mods
                        .fail(&format!("`{name}` has another size than the parameter"));
                }
                _ => {}
            }
            return s.mods.fail(&format!("`{name}` cannot be a parameter"));
        }
        match operand {
            Operand::Number(number) => {
                let slot = self.immediate(*number, formal.ty)?;
                Ok(Place::Register {
                    slot,
                    bytes: formal.ty.bytes().max(2),
                })
            }
            _ => s.mods.fail("bad parameter"),
        }
    }

    /// `alloca`, `stacksave`, `stackrestore`
    pub fn stack(&mut self, s: &mut Statement<'_, 'a>) -> Result<()> {
        let ty = s.mods.ty()?;
        if !matches!(ty, Type::U32 | Type::U64) {
            return s.mods.bad_type(ty);
        }
        let wide = ty == Type::U64;
        self.uses_alloca = true;
        if s.operands.is_empty() {
            return s.mods.fail("an operand is missing");
        }
        match s.opcode {
            "stacksave" => {
                s.expect_operands(1)?;
                let d = self.target(&s.operands[0], ty)?;
                self.emit(Op::StackSave { d, wide });
            }
            "stackrestore" => {
                s.expect_operands(1)?;
                let a = self.source(&s.operands[0], ty)?;
                self.emit(Op::StackRestore { a, wide });
            }
            _ => {
                let align = match s.operands.get(2) {
                    None => 8,
                    Some(Operand::Number(crate::parse::ast::Number::Int(n)))
                        if n.is_power_of_two() && *n <= 1 << 23 =>
                    {
                        *n as u32
                    }
                    Some(_) => return s.mods.fail("bad alignment"),
                };
                if s.operands.len() < 2 {
                    return s.expect_operands(2);
                }
                let d = self.target(&s.operands[0], ty)?;
                let size = self.source(&s.operands[1], ty)?;
                self.emit(Op::Alloca {
                    d,
                    size,
                    align,
                    wide,
                });
            }
        }
        Ok(())
    }
}
