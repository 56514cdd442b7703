//! What goes wrong: an error of the front end, or a fault of a running kernel.

use std::fmt;

/// PTX that cannot be accepted, with the line that says so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompileError {
    /// Line in the source, from 1.
    pub line: u32,
    /// What is wrong there.
    pub message: String,
}

impl CompileError {
    pub(crate) fn new(line: u32, message: impl Into<String>) -> Self {
        CompileError {
            line,
            message: message.into(),
        }
    }
}

impl fmt::Display for CompileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.message)
    }
}

impl std::error::Error for CompileError {}

/// The kind of a [`Fault`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FaultKind {
    /// An access outside every live allocation, or across the end of one.
    IllegalAddress,
    /// An access whose address is no multiple of its size.
    MisalignedAddress,
    /// A generic address in a window where the instruction may not go.
    InvalidAddressSpace,
    /// A call or a jump to something that is no function of the program.
    InvalidProgramCounter,
    /// An instruction used in a way that the hardware leaves undefined, such as a shuffle by a
    /// thread that its own member mask leaves out.
    IllegalInstruction,
    /// A store to memory that may only be read.
    ReadOnly,
    /// A device-side `assert` that failed.
    Assert,
    /// `trap` or `brkpt`.
    Trap,
    /// More nested calls than the stack holds.
    StackOverflow,
    /// Every thread of a block waits for another one: the hardware would hang.
    Deadlock,
    /// The launch asks for what the kernel cannot have: too many threads, too few parameter bytes.
    InvalidLaunch,
    /// [`crate::Launch::cancel`] was set.
    Cancelled,
    /// [`crate::Launch::budget`] ran out.
    BudgetExceeded,
    /// The interpreter itself failed; this is a defect of the interpreter.
    Internal,
}

impl FaultKind {
    fn text(self) -> &'static str {
        match self {
            FaultKind::IllegalAddress => "illegal address",
            FaultKind::MisalignedAddress => "misaligned address",
            FaultKind::InvalidAddressSpace => "invalid address space",
            FaultKind::InvalidProgramCounter => "invalid program counter",
            FaultKind::IllegalInstruction => "illegal instruction",
            FaultKind::ReadOnly => "store to read-only memory",
            FaultKind::Assert => "assertion failed",
            FaultKind::Trap => "trap",
            FaultKind::StackOverflow => "stack overflow",
            FaultKind::Deadlock => "deadlock: every thread of the block waits",
            FaultKind::InvalidLaunch => "invalid launch",
            FaultKind::Cancelled => "cancelled",
            FaultKind::BudgetExceeded => "instruction budget exceeded",
            FaultKind::Internal => "internal error of the interpreter",
        }
    }
}

/// The first thing that went wrong in a launch, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// What went wrong.
    pub kind: FaultKind,
    /// Name of the kernel.
    pub kernel: String,
    /// Line of the PTX source, 0 if no instruction is to blame.
    pub line: u32,
    /// Text of the instruction, or an explanation if no instruction is to blame.
    pub instruction: String,
    /// Block index in the grid.
    pub block: [u32; 3],
    /// Thread index in the block.
    pub thread: [u32; 3],
    /// Address of the access, 0 if there was none.
    pub address: u64,
    /// Bytes of the access, 0 if there was none.
    pub size: u32,
    /// Whether the access was a store or an atomic operation.
    pub write: bool,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "kernel `{}`: {}", self.kernel, self.kind.text())?;
        if self.size > 0 {
            let verb = if self.write { "writing" } else { "reading" };
            write!(f, " {verb} {} bytes at {:#x}", self.size, self.address)?;
        }
        if self.line > 0 {
            let ([bx, by, bz], [tx, ty, tz]) = (self.block, self.thread);
            write!(f, ", thread ({tx},{ty},{tz}) of block ({bx},{by},{bz})")?;
            write!(f, ", PTX line {}: `{}`", self.line, self.instruction)?;
        } else if !self.instruction.is_empty() {
            write!(f, ": {}", self.instruction)?;
        }
        Ok(())
    }
}

impl std::error::Error for Fault {}
