//! The syntax tree.

use crate::types::Type;

/// Where a variable lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Storage {
    Global,
    Const,
    Shared,
    Local,
    Param,
}

/// A value known at compile time, or an expression of such values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    Int(u64),
    F32(u32),
    F64(u64),
}

/// One element of an initialiser.
#[derive(Clone, Debug)]
pub enum Init<'a> {
    Number(Number),
    /// Address of a variable or function, plus an offset; `generic(x)` means the same here.
    Address(&'a str, i64),
    List(Vec<Init<'a>>),
}

/// A variable declaration.
#[derive(Clone, Debug)]
pub struct Variable<'a> {
    pub line: u32,
    pub storage: Storage,
    pub external: bool,
    pub name: &'a str,
    pub ty: Type,
    pub align: u64,
    /// Elements in all, `None` for an array without a size.
    pub count: Option<u64>,
    pub init: Option<Init<'a>>,
}

impl Variable<'_> {
    /// Size in bytes; zero for an array without a size.
    pub fn size(&self) -> u64 {
        self.count
            .unwrap_or(0)
            .saturating_mul(u64::from(self.ty.bytes()))
    }
}

/// A formal parameter of a function, or of a call prototype.
#[derive(Clone, Debug)]
pub struct Formal<'a> {
    pub line: u32,
    pub name: &'a str,
    /// `.reg` rather than `.param`.
    pub register: bool,
    pub ty: Type,
    pub align: u64,
    pub size: u64,
}

/// Registers declared together.
#[derive(Clone, Debug)]
pub struct RegDecl<'a> {
    pub line: u32,
    pub ty: Type,
    pub name: &'a str,
    /// `%r<N>` declares `%r0` to `%rN-1`.
    pub count: Option<u64>,
}

/// An operand as written.
#[derive(Clone, Debug)]
pub enum Operand<'a> {
    Name(&'a str),
    /// `%tid.x`
    Member(&'a str, &'a str),
    Number(Number),
    /// `symbol+4`
    Offset(&'a str, i64),
    Vector(Vec<Operand<'a>>),
    /// `[base+offset]`; without a base, an absolute address.
    Address(Option<&'a str>, i64),
    /// `a|b`
    Pair(Box<Operand<'a>>, Box<Operand<'a>>),
    /// `!p`
    Not(&'a str),
    /// `_`
    Sink,
    /// `(a, b)`
    List(Vec<Operand<'a>>),
}

/// A predicate before an instruction.
#[derive(Clone, Copy, Debug)]
pub struct Guard<'a> {
    pub name: &'a str,
    pub negated: bool,
}

/// An instruction as written.
#[derive(Clone, Debug)]
pub struct Instruction<'a> {
    pub line: u32,
    /// The text, from the guard to the semicolon.
    pub text: &'a str,
    pub guard: Option<Guard<'a>>,
    pub opcode: &'a str,
    pub modifiers: Vec<&'a str>,
    pub operands: Vec<Operand<'a>>,
}

/// A call prototype.
#[derive(Clone, Debug)]
pub struct Prototype<'a> {
    pub returns: Vec<Formal<'a>>,
    pub params: Vec<Formal<'a>>,
}

/// A statement of a function body.
#[derive(Clone, Debug)]
pub enum Statement<'a> {
    Open,
    Close,
    Label(&'a str, u32),
    Reg(RegDecl<'a>),
    Variable(Variable<'a>),
    BranchTargets(&'a str, Vec<&'a str>, u32),
    CallTargets(&'a str, Vec<&'a str>, u32),
    Prototype(&'a str, Prototype<'a>),
    Instruction(Instruction<'a>),
}

/// A kernel or a device function; without a body, a declaration.
#[derive(Clone, Debug)]
pub struct Function<'a> {
    pub line: u32,
    pub entry: bool,
    pub name: &'a str,
    pub returns: Vec<Formal<'a>>,
    pub params: Vec<Formal<'a>>,
    pub max_threads: Option<[u32; 3]>,
    pub required_threads: Option<[u32; 3]>,
    pub body: Option<Vec<Statement<'a>>>,
}

impl<'a> Function<'a> {
    /// The function without its body.
    pub fn header(&self) -> Function<'a> {
        Function {
            name: self.name,
            returns: self.returns.clone(),
            params: self.params.clone(),
            body: None,
            ..*self
        }
    }
}

/// A whole module.
#[derive(Clone, Debug, Default)]
pub struct Module<'a> {
    /// 90 for `.version 9.0`.
    pub version: u32,
    /// 90 for `.target sm_90`.
    pub target: u32,
    pub variables: Vec<Variable<'a>>,
    pub functions: Vec<Function<'a>>,
    /// `.alias a, b;`
    pub aliases: Vec<(&'a str, &'a str, u32)>,
}
