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

//!
//! # How a launch runs
//!
//! A warp's 32 threads run in lockstep as long as they go the same way, on registers that hold
//! their 32 values side by side. Each thread has a program counter of its own; threads that are
//! apart take turns, so that one may wait for another of its warp. A block's warps take turns on
//! one worker thread, and blocks that have run for long make way for others: blocks of one launch,
//! and of different ones, may wait for each other, as long as they are resident together (as many
//! as a large device holds). The calling thread always works on its own launch; the workers, one a
//! core but one, are made at the first launch that can use them.
//!
//! A launch ends with its first [`Fault`]. Stores made before it stay.
//!
//! # What differs from a device
//!
//! * Shared memory starts out full of `0xcd`, registers are zero.
//! * Approximate functions are closer to the true value than the hardware's.
//! * Reading a special register such as `%clock64` gives nanoseconds; `%smid` is made up.
//! * Caches, their operators and prefetches have no effect; `cp.async` copies at once.
//! * A thread that is missing from its own member mask is a fault, not undefined.
//! * `mul` and `add` without a rounding mode stay two operations; an assembler may fuse them. NVRTC
//!   fuses what it wants fused, except with `-G`.
//! * Of two double precision NaNs, an operation hands on the one that was defined later, because the
//!   assembler orders the operands by their definitions. "Later" is by the text here.
//! * Each block is a cluster of its own.
//! * Not supported, and refused by name: textures and surfaces, matrix instructions, `mbarrier` and
//!   bulk copies, clusters of several blocks, `printf`, the device's heap, video instructions on
//!   scalars.

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
