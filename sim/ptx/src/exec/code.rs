//! Decoded code: what lowering makes and the interpreter runs.

use super::access::{Atomic, Transfer};
use super::lanes::{LaneFn, Operands, Plane, Pred, Slot};

/// Index of an instruction.
pub type Pc = u32;

/// A special register that differs between lanes, blocks or launches, or with time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Special {
    Tid(u8),
    Ntid(u8),
    Ctaid(u8),
    Nctaid(u8),
    LaneId,
    WarpId,
    NWarpId,
    SmId,
    NSmId,
    GridId,
    LaneMaskEq,
    LaneMaskLt,
    LaneMaskLe,
    LaneMaskGt,
    LaneMaskGe,
    Clock,
    ClockHigh,
    Clock64,
    GlobalTimer,
    GlobalTimerLow,
    GlobalTimerHigh,
    DynamicShared,
    TotalShared,
    /// An address in the reserved part of shared memory.
    ReservedShared(u32),
    /// The same in every launch.
    Fixed(u32),
}

/// What one instruction does.
#[derive(Clone, Copy)]
pub enum Op {
    /// Arithmetic.
    Lanes(LaneFn, Operands),
    /// The head of a basic block: lanes may join here.
    Head,
    Branch(Pc),
    /// A jump to entry `slot` of a table.
    BranchTable {
        index: Slot,
        table: u32,
    },
    Call(u32),
    Return,
    Exit,
    Trap,
    /// A call of the device-side assertion handler.
    Assert,
    Special {
        d: Slot,
        which: Special,
    },
    /// Address of a variable.
    Symbol {
        d: Slot,
        symbol: u32,
        offset: i64,
        wide: bool,
    },
    /// Address in the frame of the function.
    FrameAddress {
        d: Slot,
        offset: u32,
        wide: bool,
    },
    Load(u32),
    Store(u32),
    Atom(u32),
    Barrier(u32),
    Sync(u32),
    ActiveMask {
        d: Slot,
    },
    Fence,
    /// The thread waits for something: others should run.
    Relax,
    /// Whether a generic address lies in a state space.
    IsSpace {
        d: u32,
        a: Slot,
        space: Space,
        narrow: bool,
    },
    /// Stack memory of `size` bytes, aligned to `align`.
    Alloca {
        d: Slot,
        size: Slot,
        align: u32,
        wide: bool,
    },
    StackSave {
        d: Slot,
        wide: bool,
    },
    StackRestore {
        a: Slot,
        wide: bool,
    },
}

/// A decoded instruction.
#[derive(Clone, Copy)]
pub struct Inst {
    pub op: Op,
    /// A predicate, or 0 for none.
    pub guard: u32,
}

/// State spaces as the interpreter sees them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    Generic,
    Global,
    Const,
    Shared,
    Local,
    /// Parameters of the kernel.
    Param,
}

/// What an address is relative to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Base {
    None,
    /// A 64-bit register.
    Wide(Slot),
    /// A 32-bit register.
    Narrow(Slot),
    Symbol(u32),
    /// The frame of the function.
    Frame,
}

/// A load, a store or an atomic operation.
#[derive(Clone)]
pub struct MemOp {
    pub space: Space,
    pub base: Base,
    pub offset: i64,
    /// Bytes of one element.
    pub size: u32,
    /// Bytes that are accessed, and have to be aligned, together.
    pub total: u32,
    /// One register an element.
    pub slots: Vec<Slot>,
    pub transfer: Transfer,
    pub acquire: bool,
    pub release: bool,
    /// The access may be one of a loop that waits for another thread.
    pub waits: bool,
    /// For atomic operations.
    pub atomic: Option<AtomOp>,
}

/// The further parts of an atomic operation.
#[derive(Clone)]
pub struct AtomOp {
    /// What to do in global memory.
    pub global: Atomic,
    /// What to do in shared memory.
    pub shared: Atomic,
    /// The operand, one register an element.
    pub b: Vec<Slot>,
    /// The second operand, for compare-and-swap.
    pub c: Option<Slot>,
    /// Whether the old values are wanted; then they go to `slots`.
    pub returns: bool,
}

/// What a barrier does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BarrierKind {
    Sync,
    Arrive,
    Popc,
    And,
    Or,
    /// The halves of the barrier of a cluster, which is the block.
    ClusterArrive,
    ClusterWait,
}

/// Shared memory behind that of the user, for programs that ask for it.
pub const RESERVED_SHARED: u32 = 1024;

/// A barrier of the block.
#[derive(Clone, Copy, Debug)]
pub struct BarrierOp {
    pub kind: BarrierKind,
    pub id: Slot,
    pub count: Option<Slot>,
    pub pred: Pred,
    /// A register for [`BarrierKind::Popc`], otherwise the index of a predicate.
    pub d: u32,
}

/// What the threads of a warp do together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncKind {
    Barrier,
    ShuffleUp,
    ShuffleDown,
    ShuffleButterfly,
    ShuffleIndex,
    VoteAll,
    VoteAny,
    VoteUniform,
    VoteBallot,
    MatchAny,
    MatchAll,
    Elect,
    ReduceAdd,
    ReduceMin,
    ReduceMax,
    ReduceSignedMin,
    ReduceSignedMax,
    ReduceAnd,
    ReduceOr,
    ReduceXor,
}

/// An operation of the threads in a member mask.
#[derive(Clone, Copy, Debug)]
pub struct SyncOp {
    pub kind: SyncKind,
    pub members: Slot,
    pub d: Slot,
    /// Index of a predicate, 0 for none.
    pub p: u32,
    /// A register, or a predicate for a vote.
    pub a: u32,
    pub b: Slot,
    pub c: Slot,
    pub wide: bool,
}

/// Where an argument or a result lies in its function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    Register { slot: Slot, bytes: u32 },
    Pred(Pred),
    Frame { offset: u32, size: u32 },
}

/// What a call calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Callee {
    Function(u32),
    Register(Slot),
}

/// One call in the source.
#[derive(Clone, Debug)]
pub struct CallSite {
    pub caller: u32,
    pub callee: Callee,
    pub args: Vec<Place>,
    pub results: Vec<Place>,
    /// The callee may enter the caller again: its registers are saved.
    pub saves: bool,
}

/// A function or kernel.
#[derive(Clone, Debug, Default)]
pub struct FunctionCode {
    pub entry: Pc,
    pub planes: u32,
    pub preds: u32,
    /// First plane and bytes of each register, for a recursive call to save.
    pub registers: Vec<(Slot, u32)>,
    /// Bytes of local memory.
    pub frame: u32,
    pub params: Vec<Place>,
    pub results: Vec<Place>,
}

/// Where the parts of a kernel lie in the memory of a warp and of a block.
#[derive(Clone, Debug, Default)]
pub struct Layout {
    pub function: u32,
    /// Function, first plane and first predicate of each that the kernel reaches, in order.
    pub frames: Vec<(u32, u32, u32)>,
    pub planes: u32,
    pub preds: u32,
    /// Static local memory of a thread.
    pub local: u32,
    /// The kernel calls functions recursively, through pointers, or uses `alloca`.
    pub dynamic_stack: bool,
    /// Offsets of shared variables, by symbol.
    pub shared: Vec<(u32, u32)>,
    /// Symbols of variables of dynamic shared memory.
    pub dynamic: Vec<u32>,
    pub static_shared: u32,
    pub dynamic_align: u32,
}

/// What a symbol stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Symbol {
    Global(u32),
    Const(u32),
    Shared { size: u64, align: u64 },
    DynamicShared { align: u64 },
}

/// Where an instruction stands in the source.
#[derive(Clone, Copy, Debug)]
pub struct Origin {
    pub line: u32,
    pub start: u32,
    pub end: u32,
    pub function: u32,
}

/// All decoded code of a module.
#[derive(Default)]
pub struct Code {
    pub insts: Vec<Inst>,
    pub origins: Vec<Origin>,
    pub constants: Vec<Plane>,
    pub tables: Vec<Vec<Pc>>,
    pub calls: Vec<CallSite>,
    pub mem: Vec<MemOp>,
    pub barriers: Vec<BarrierOp>,
    pub syncs: Vec<SyncOp>,
    pub functions: Vec<FunctionCode>,
    pub layouts: Vec<Layout>,
    pub symbols: Vec<Symbol>,
    /// Whether the program uses reserved shared memory.
    pub reserved_shared: bool,
    pub source: String,
}
