//! One instruction: which family lowers it.

use super::function::FunctionLowering;
use super::modifiers::Modifiers;
use super::Result;
use crate::exec::code::Op;
use crate::parse::ast::{Instruction, Operand};

type Lower =
    for<'x, 'm, 'a> fn(&mut FunctionLowering<'m, 'a>, &mut Statement<'x, 'a>) -> Result<()>;

/// An instruction and the modifiers that nobody has claimed yet.
pub struct Statement<'x, 'a> {
    pub opcode: &'a str,
    pub mods: Modifiers<'a>,
    pub operands: &'x [Operand<'a>],
}

impl<'a> Statement<'_, 'a> {
    /// Fails unless there are this many operands.
    pub fn expect_operands(&self, count: usize) -> Result<()> {
        if self.operands.len() == count {
            return Ok(());
        }
        let found = self.operands.len();
        self.mods
            .fail(&format!("expected {count} operands, found {found}"))
    }
}

/// The routine for an opcode.
fn family(opcode: &str) -> Option<Lower> {
    Some(match opcode {
        "add" | "sub" | "mul" | "mad" | "fma" | "div" | "rem" | "abs" | "neg" | "min" | "max" => {
            |f, s| f.arithmetic(s)
        }
        "addc" | "subc" | "madc" => |f, s| f.carried(s),
        "mul24" | "mad24" | "sad" | "dp4a" | "dp2a" => |f, s| f.special_int(s),
        "popc" | "clz" | "brev" | "bfind" | "bfe" | "bfi" | "bmsk" | "szext" | "fns" | "prmt"
        | "lop3" | "shf" => |f, s| f.bit_field(s),
        "vadd2" | "vadd4" | "vsub2" | "vsub4" | "vavrg2" | "vavrg4" | "vabsdiff2" | "vabsdiff4"
        | "vmin2" | "vmin4" | "vmax2" | "vmax4" => |f, s| f.video(s),
        "vset2" | "vset4" => |f, s| f.video_set(s),
        "and" | "or" | "xor" | "not" | "cnot" | "shl" | "shr" => |f, s| f.logic(s),
        "rcp" | "sqrt" | "rsqrt" | "sin" | "cos" | "tanh" | "lg2" | "ex2" | "copysign" => {
            |f, s| f.function_of(s)
        }
        "setp" => |f, s| f.setp(s),
        "set" => |f, s| f.set(s),
        "selp" | "slct" => |f, s| f.select(s),
        "testp" => |f, s| f.testp(s),
        "cvt" => |f, s| f.cvt(s),
        "mov" => |f, s| f.mov(s),
        "cvta" => |f, s| f.cvta(s),
        "isspacep" => |f, s| f.isspacep(s),
        "ld" | "ldu" => |f, s| f.load(s),
        "st" => |f, s| f.store(s),
        "atom" | "red" => |f, s| f.atom(s),
        "cp" => |f, s| f.copy(s),
        "prefetch" | "prefetchu" | "applypriority" | "discard" | "createpolicy" => {
            |f, s| f.cache_hint(s)
        }
        "membar" | "fence" => |f, s| f.fence(s),
        "bra" => |f, s| f.branch(s),
        "brx" => |f, s| f.branch_table(s),
        "call" => |f, s| f.call(s),
        "ret" | "exit" | "trap" | "brkpt" => |f, s| f.leave(s),
        "nanosleep" => |f, s| f.nanosleep(s),
        "bar" | "barrier" => |f, s| f.barrier(s),
        "mapa" => |f, s| f.map_address(s),
        "getctarank" => |f, s| f.block_of_address(s),
        "pmevent" => |f, s| f.profiler_event(s),
        "shfl" | "vote" | "match" | "redux" | "activemask" | "elect" => |f, s| f.collective(s),
        "alloca" | "stacksave" | "stackrestore" => |f, s| f.stack(s),
        _ => return None,
    })
}

/// Whether there is an instruction of this name.
pub fn is_known(opcode: &str) -> bool {
    family(opcode).is_some()
}

impl<'a> FunctionLowering<'_, 'a> {
    /// Lowers one instruction; every modifier must be known to its family.
    pub fn instruction(&mut self, instruction: &Instruction<'a>) -> Result<()> {
        let mut statement = Statement {
            opcode: instruction.opcode,
            mods: Modifiers::new(instruction),
            operands: &instruction.operands,
        };
        match family(instruction.opcode) {
            Some(lower) => lower(self, &mut statement)?,
            None => return statement.mods.fail("unknown instruction"),
        }
        statement.mods.finish()
    }

    /// Appends a lane operation.
    pub fn lanes(&mut self, f: crate::exec::lanes::LaneFn, operands: crate::exec::lanes::Operands) {
        self.emit(Op::Lanes(f, operands));
    }
}
