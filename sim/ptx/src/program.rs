//! A decoded module.

use crate::exec::code::Code;
use crate::{exec, lower, parse};
use crate::{CompileError, Fault, Global, Kernel, Launch};
use std::collections::HashMap;

/// The largest source that is accepted.
const MAX_SOURCE: usize = 256 << 20;

/// A decoded module. It is immutable: share it by `Arc` and launch from any thread.
pub struct Program {
    code: Code,
    kernels: Vec<Kernel>,
    names: HashMap<String, usize>,
    globals: Vec<Global>,
}

impl Program {
    /// Reads PTX text; anything after a NUL byte is ignored.
    pub fn compile(source: &[u8]) -> Result<Program, CompileError> {
        let end = source
            .iter()
            .position(|&byte| byte == 0)
            .unwrap_or(source.len());
        if end > MAX_SOURCE {
            return Err(CompileError::new(1, "the source is too large"));
        }
        // Only comments and strings may hold anything but ASCII.
        let text = String::from_utf8_lossy(&source[..end]);
        let module = parse::parse(&text)?;
        let lower::Lowered {
            code,
            kernels,
            globals,
        } = lower::lower(&module, &text)?;
        let names = kernels
            .iter()
            .enumerate()
            .map(|(i, k)| (k.name.clone(), i))
            .collect();
        Ok(Program {
            code,
            kernels,
            names,
            globals,
        })
    }

    /// The kernels, in the order of the source.
    pub fn kernels(&self) -> &[Kernel] {
        &self.kernels
    }

    /// Index of the kernel of this name.
    pub fn kernel(&self, name: &str) -> Option<usize> {
        self.names.get(name).copied()
    }

    /// The variables at module scope that the caller has to allocate and initialise.
    pub fn globals(&self) -> &[Global] {
        &self.globals
    }

    /// Runs a launch to its end; the calling thread takes part in the work.
    pub fn run(&self, launch: &Launch) -> Result<(), Fault> {
        self.run_counted(launch).0
    }

    /// The same, with the number of warp instructions that were run.
    pub fn run_counted(&self, launch: &Launch) -> (Result<(), Fault>, u64) {
        exec::run(&self.code, &self.kernels, launch)
    }
}

// A program is shared between threads.
const _: fn() = || {
    fn shared<T: Send + Sync>() {}
    shared::<Program>();
};
