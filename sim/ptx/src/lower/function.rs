//! One function: its declarations, statements and labels.

use super::module::ModuleLowering;
use super::names::{Entry, Fix, Names, Pending, Register, Scope};
use super::registers::{assign, Occurrence, Role};
use super::Result;
use crate::exec::code::{Inst, Op, Origin, Place};
use crate::exec::lanes::{pred_logic, Operands, Slot};
use crate::parse::ast::{Function, Instruction, Operand, Statement, Storage, Variable};
use crate::types::{Kind, Type};
use crate::CompileError;
use std::collections::{BTreeSet, HashMap, HashSet};

/// The most local memory that a thread can have.
pub const MAX_LOCAL: u64 = 512 << 10;

/// A function being lowered.
pub struct FunctionLowering<'m, 'a> {
    pub module: &'m mut ModuleLowering<'a>,
    pub names: Names<'a>,
    pub is_kernel: bool,
    pub index: u32,
    /// Line of the statement at hand.
    pub line: u32,
    /// Guard of the instruction at hand.
    guard: u32,
    span: (u32, u32),
    pub used_symbols: BTreeSet<u32>,
    pub callees: BTreeSet<u32>,
    pub calls_pointers: bool,
    pub uses_alloca: bool,
    /// Local memory in use here, and at most.
    frame: u64,
    frame_max: u64,
    frame_marks: Vec<u64>,
    targeted: HashSet<&'a str>,
    /// Where registers occur, and the instruction at which the statement at hand begins.
    occurrences: Vec<Occurrence>,
    at: u32,
    /// When the value that storage holds was defined, in the order of the text.
    defined: HashMap<Slot, usize>,
    definitions: usize,
}

/// What lowering learned about a function besides its code.
pub struct Summary {
    pub symbols: BTreeSet<u32>,
    pub callees: BTreeSet<u32>,
    pub calls_pointers: bool,
    pub uses_alloca: bool,
}

/// Labels that some branch goes to; the others, of debug information, start no basic block.
fn branch_targets<'a>(body: &[Statement<'a>]) -> HashSet<&'a str> {
    let mut targets = HashSet::new();
    for statement in body {
        match statement {
            Statement::BranchTargets(_, labels, _) => targets.extend(labels.iter().copied()),
            Statement::Instruction(Instruction {
                opcode: "bra",
                operands,
                ..
            }) => {
                for operand in operands {
                    if let Operand::Name(label) = operand {
                        targets.insert(*label);
                    }
                }
            }
            _ => {}
        }
    }
    targets
}

impl<'m, 'a> FunctionLowering<'m, 'a> {
    /// Lowers a function with a body.
    pub fn lower(
        module: &'m mut ModuleLowering<'a>,
        index: u32,
        function: &Function<'a>,
        body: &[Statement<'a>],
    ) -> Result<Summary> {
        let targeted = branch_targets(body);
        let mark = module.mark();
        let mut first = FunctionLowering::new(module, index, function.entry, &targeted);
        let entry = first.run(function, body)?;
        let end = first.here();
        let widths: Vec<u32> = first
            .names
            .registers
            .iter()
            .map(|&(_, bits)| bits)
            .collect();
        let occurrences = std::mem::take(&mut first.occurrences);
        let assignment = assign(&first.module.code, (entry, end), &widths, &occurrences);
        let mut last = first;
        if let Some(assignment) = assignment {
            let module = last.module;
            module.rewind(&mark);
            last = FunctionLowering::new(module, index, function.entry, &targeted);
            last.names.planes = assignment.planes;
            last.names.assigned = Some(assignment);
            last.run(function, body)?;
        }
        Ok(last.finish(entry))
    }

    fn new(
        module: &'m mut ModuleLowering<'a>,
        index: u32,
        is_kernel: bool,
        targeted: &HashSet<&'a str>,
    ) -> Self {
        FunctionLowering {
            module,
            // Predicate 0 is the carry, predicate 1 is false.
            names: Names {
                scopes: vec![Scope::default()],
                preds: 2,
                ..Names::default()
            },
            is_kernel,
            index,
            line: 0,
            guard: 0,
            span: (0, 0),
            used_symbols: BTreeSet::new(),
            callees: BTreeSet::new(),
            calls_pointers: false,
            uses_alloca: false,
            frame: 0,
            frame_max: 0,
            frame_marks: Vec::new(),
            targeted: targeted.clone(),
            occurrences: Vec::new(),
            at: 0,
            defined: HashMap::new(),
            definitions: 0,
        }
    }

    /// Lowers everything; the index of the first instruction.
    fn run(&mut self, function: &Function<'a>, body: &[Statement<'a>]) -> Result<u32> {
        self.line = function.line;
        let entry = self.here();
        self.at = entry;
        self.formals(function)?;
        self.open();
        for statement in body {
            self.statement(statement)?;
        }
        // A function that ends without `ret` returns.
        self.guard = 0;
        self.emit(Op::Return);
        self.close()?;
        self.close_scope()?;
        Ok(entry)
    }

    fn finish(self, entry: u32) -> Summary {
        let mut registers = self.names.registers;
        registers.sort_unstable();
        registers.dedup();
        let code = &mut self.module.code.functions[self.index as usize];
        code.entry = entry;
        code.planes = self.names.planes;
        code.preds = self.names.preds;
        code.registers = registers
            .into_iter()
            .map(|(slot, bits)| (slot, bits / 8))
            .collect();
        code.frame = self.frame_max.next_multiple_of(16) as u32;
        Summary {
            symbols: self.used_symbols,
            callees: self.callees,
            calls_pointers: self.calls_pointers,
            uses_alloca: self.uses_alloca,
        }
    }

    /// Notes that the statement at hand touches a register. What it writes under a guard keeps its
    /// old value in some lanes, so that counts as read too.
    pub fn note(&mut self, register: Register, role: Role) {
        if register.ty.kind == Kind::Pred {
            return;
        }
        if role != Role::Read {
            self.definitions += 1;
            self.defined.insert(register.slot, self.definitions);
        }
        if self.names.assigned.is_some() {
            return;
        }
        // The first time, slots rise with the order of allocation.
        let found = self
            .names
            .registers
            .binary_search_by_key(&register.slot, |r| r.0);
        let Ok(index) = found else { return };
        let occurrence = Occurrence {
            at: self.at,
            register: index as u32,
            role,
        };
        self.occurrences.push(occurrence);
        if role == Role::Written && self.guard != 0 {
            self.occurrences.push(Occurrence {
                role: Role::Read,
                ..occurrence
            });
        }
    }

    /// When the value of a source was defined. Constants come last.
    pub fn definition(&mut self, operand: Option<&Operand<'a>>) -> Result<usize> {
        let Some(Operand::Name(name)) = operand else {
            return Ok(usize::MAX);
        };
        let register = self.find_register(name)?;
        let order = register.and_then(|register| self.defined.get(&register.slot));
        Ok(order.copied().unwrap_or(usize::MAX))
    }

    /// Index of the next instruction.
    pub fn here(&self) -> u32 {
        self.module.code.insts.len() as u32
    }

    /// Appends an operation under the guard of the instruction at hand.
    pub fn emit(&mut self, op: Op) {
        self.push(op, self.guard);
    }

    /// Appends an operation that all active lanes do.
    pub fn emit_unguarded(&mut self, op: Op) {
        self.push(op, 0);
    }

    /// Appends an operation under the guard and a predicate.
    pub fn emit_and(&mut self, op: Op, pred: u32) -> Result<()> {
        let mut both = pred;
        if self.guard != 0 {
            let d = self.scratch(Type::PRED)?;
            let o = Operands {
                d,
                a: self.guard,
                b: pred,
                ..Operands::default()
            };
            self.emit_unguarded(Op::Lanes(pred_logic(|a, b| a & b), o));
            both = d << 1;
        }
        self.push(op, both);
        Ok(())
    }

    fn push(&mut self, op: Op, guard: u32) {
        let (start, end) = self.span;
        let origin = Origin {
            line: self.line,
            start,
            end,
            function: self.index,
        };
        self.module.code.insts.push(Inst { op, guard });
        self.module.code.origins.push(origin);
    }

    fn formals(&mut self, function: &Function<'a>) -> Result<()> {
        if function.entry {
            let params = self.module.kernel_params(function)?;
            for (formal, param) in function.params.iter().zip(params) {
                let entry = Entry::KernelParam {
                    offset: param.offset,
                };
                self.names.declare(formal.name, entry, formal.line)?;
            }
            return Ok(());
        }
        for (formals, results) in [(&function.params, false), (&function.returns, true)] {
            let mut places = Vec::new();
            for formal in formals {
                self.line = formal.line;
                if formal.register {
                    let slot = self.names.allocate(formal.ty, formal.line)?;
                    let register = Register {
                        ty: formal.ty,
                        slot,
                    };
                    self.names
                        .declare(formal.name, Entry::Register(register), formal.line)?;
                    places.push(self.register_place(register));
                } else {
                    let offset = self.reserve(formal.size, formal.align)?;
                    let entry = Entry::Frame {
                        offset,
                        parameter: true,
                    };
                    self.names.declare(formal.name, entry, formal.line)?;
                    places.push(Place::Frame {
                        offset,
                        size: formal.size as u32,
                    });
                }
            }
            let code = &mut self.module.code.functions[self.index as usize];
            if results {
                code.results = places;
            } else {
                code.params = places;
            }
        }
        Ok(())
    }

    /// Where a register lies, for a call.
    pub fn register_place(&self, register: Register) -> Place {
        if register.ty == Type::PRED {
            Place::Pred(register.slot << 1)
        } else {
            Place::Register {
                slot: register.slot,
                bytes: register.ty.bytes().max(2),
            }
        }
    }

    /// Room in the frame.
    pub fn reserve(&mut self, size: u64, align: u64) -> Result<u32> {
        let start = self.frame.next_multiple_of(align.max(1));
        let end = start.saturating_add(size);
        if end > MAX_LOCAL {
            return self.fail("the function uses too much local memory");
        }
        self.frame = end;
        self.frame_max = self.frame_max.max(end);
        Ok(start as u32)
    }

    fn open(&mut self) {
        self.names.scopes.push(Scope::default());
        self.frame_marks.push(self.frame);
    }

    fn close(&mut self) -> Result<()> {
        if let Some(mark) = self.frame_marks.pop() {
            self.frame = mark;
        }
        self.close_scope()
    }

    /// Binds the branches of a scope to its labels; the rest is left to the scope around it.
    fn close_scope(&mut self) -> Result<()> {
        let Some(mut scope) = self.names.scopes.pop() else {
            return Ok(());
        };
        let mut unresolved = Vec::new();
        for pending in std::mem::take(&mut scope.pending) {
            match scope.labels.get(pending.label) {
                Some(&target) => self.fix(pending.place, target),
                None => unresolved.push(pending),
            }
        }
        match (self.names.scopes.is_empty(), unresolved.first()) {
            (true, Some(pending)) => {
                let message = format!("unknown label `{}`", pending.label);
                Err(CompileError::new(pending.line, message))
            }
            (true, None) => Ok(()),
            (false, _) => {
                self.names.scope().pending.extend(unresolved);
                Ok(())
            }
        }
    }

    fn fix(&mut self, place: Fix, target: u32) {
        match place {
            Fix::Inst(index) => self.module.code.insts[index].op = Op::Branch(target),
            Fix::Table(table, index) => self.module.code.tables[table][index] = target,
        }
    }

    /// Notes that the address of a label is to be written somewhere.
    pub fn refer(&mut self, label: &'a str, place: Fix) {
        let line = self.line;
        self.names
            .scope()
            .pending
            .push(Pending { label, line, place });
    }

    fn statement(&mut self, statement: &Statement<'a>) -> Result<()> {
        match statement {
            Statement::Open => self.open(),
            Statement::Close => self.close()?,
            Statement::Label(name, line) => self.label(name, *line)?,
            Statement::Reg(decl) => {
                self.line = decl.line;
                self.names.declare_registers(decl)?;
            }
            Statement::Variable(variable) => self.variable(variable)?,
            Statement::BranchTargets(name, labels, line) => {
                self.names
                    .scope()
                    .targets
                    .insert(name, (labels.clone(), *line));
            }
            Statement::CallTargets(name, names, line) => {
                self.line = *line;
                self.names
                    .scope()
                    .targets
                    .insert(name, (names.clone(), *line));
                for name in names {
                    if self.module.function(name).is_none() {
                        return self.fail(format!("unknown function `{name}`"));
                    }
                }
            }
            Statement::Prototype(name, prototype) => {
                self.names
                    .scope()
                    .prototypes
                    .insert(name, prototype.clone());
            }
            Statement::Instruction(instruction) => self.guarded(instruction)?,
        }
        Ok(())
    }

    fn label(&mut self, name: &'a str, line: u32) -> Result<()> {
        self.line = line;
        if self.targeted.contains(name) {
            self.emit_unguarded(Op::Head);
        }
        let here = self.here();
        if self.names.scope().labels.insert(name, here).is_some() {
            return self.fail(format!("label `{name}` is defined twice"));
        }
        Ok(())
    }

    fn variable(&mut self, variable: &Variable<'a>) -> Result<()> {
        self.line = variable.line;
        let entry = match variable.storage {
            Storage::Local | Storage::Param => {
                if variable.init.is_some() {
                    return self.fail("a local variable cannot have an initialiser");
                }
                if variable.count.is_none() {
                    return self.fail("the array has no size");
                }
                let offset = self.reserve(variable.size(), variable.align)?;
                Entry::Frame {
                    offset,
                    parameter: variable.storage == Storage::Param,
                }
            }
            _ => Entry::Symbol(self.module.declare_variable(variable)?),
        };
        self.names.declare(variable.name, entry, variable.line)
    }

    fn guarded(&mut self, instruction: &Instruction<'a>) -> Result<()> {
        self.line = instruction.line;
        let base = self.module.text.as_ptr() as usize;
        let start = instruction.text.as_ptr() as usize - base;
        self.span = (start as u32, (start + instruction.text.len()) as u32);
        self.guard = 0;
        self.at = self.here();
        if let Some(guard) = instruction.guard {
            let operand = match guard.negated {
                true => Operand::Not(guard.name),
                false => Operand::Name(guard.name),
            };
            self.guard = self.pred(&operand)?;
        }
        self.instruction(instruction)?;
        self.guard = 0;
        Ok(())
    }
}
