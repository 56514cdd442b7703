//! A PTX front end and interpreter.
//!
//! [`Program::compile`] reads PTX text once: it is parsed, checked and decoded into compact typed
//! operations. [`Program::run`] then executes one kernel launch on a pool of worker threads, in
//! parallel with any other launch. What the front end does not know is refused by name and line;
//! no instruction is ever skipped.
//!
//! The crate knows nothing of the CUDA driver. Its caller owns device memory and answers, through
//! [`Memory`], which live allocation holds an address. Every load, store and atomic operation is
//! checked against that answer: live region, bounds, alignment.
//!
//! ```no_run
//! use cudagraph_ptx::{Launch, Memory, Program};
//! # fn demo(memory: &dyn Memory, source: &[u8], params: &[u8], globals: &[u64])
//! #     -> Result<(), Box<dyn std::error::Error>> {
//! let program = Program::compile(source)?;
//! let kernel = program.kernel("saxpy").ok_or("no such kernel")?;
//! let mut launch = Launch::new(kernel, memory);
//! launch.grid = [4, 1, 1];
//! launch.block = [256, 1, 1];
//! launch.params = params;
//! launch.globals = globals;
//! program.run(&launch)?;
//! # Ok(())
//! # }
//! ```
//!
//! # Addresses
//!
//! Device addresses are 64 bits wide and chosen by the caller, below 2^48. Generic addresses of
//! shared, local and parameter memory and the addresses of functions lie in windows above that
//! ([`SHARED_WINDOW`] and the like), so that they never meet an allocation.

mod exec;
mod fault;
mod interface;
mod lower;
mod parse;
mod program;
mod types;

pub use fault::{CompileError, Fault, FaultKind};
pub use interface::{
    Global, Kernel, Launch, Memory, Param, Region, Relocation, Space, FUNCTION_WINDOW,
    LOCAL_WINDOW, PARAM_WINDOW, SHARED_WINDOW,
};
pub use program::Program;
