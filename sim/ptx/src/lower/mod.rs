//! Syntax tree to decoded code: names are resolved, types checked, each instruction bound to the
//! routine that runs it.

mod arith;
mod atomic;
mod bits;
mod call;
mod cluster;
mod compare;
mod convert;
mod data;
mod float;
mod function;
mod half;
mod instruction;
mod layout;
mod memory;
mod modifiers;
mod module;
mod names;
mod operand;
mod registers;
mod video;
mod warp;

pub use module::{lower, Lowered};

type Result<T> = std::result::Result<T, crate::CompileError>;

/// Why an instruction cannot be accepted, judged by its name alone.
pub fn refusal(opcode: &str) -> Option<&'static str> {
    const UNSUPPORTED: [&str; 29] = [
        "tex",
        "tld4",
        "txq",
        "suld",
        "sust",
        "sured",
        "suq",
        "istypep",
        "wmma",
        "mma",
        "wgmma",
        "ldmatrix",
        "stmatrix",
        "movmatrix",
        "tcgen05",
        "mbarrier",
        "multimem",
        "tensormap",
        "griddepcontrol",
        "setmaxnreg",
        "vadd",
        "vsub",
        "vabsdiff",
        "vmin",
        "vmax",
        "vshl",
        "vshr",
        "vmad",
        "vset",
    ];
    if UNSUPPORTED.contains(&opcode) {
        return Some("unsupported instruction");
    }
    (!instruction::is_known(opcode)).then_some("unknown instruction")
}
