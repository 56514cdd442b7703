//! A decoded module.

use crate::{CompileError, Fault, FaultKind, Global, Kernel, Launch};

/// A decoded module. It is immutable: share it by `Arc` and launch from any thread.
pub struct Program {
    kernels: Vec<Kernel>,
    globals: Vec<Global>,
}

impl Program {
    /// Reads PTX text; anything after a NUL byte is ignored.
    pub fn compile(source: &[u8]) -> Result<Program, CompileError> {
        let _ = source;
        Err(CompileError::new(1, "the front end is not there yet"))
    }

    /// The kernels, in the order of the source.
    pub fn kernels(&self) -> &[Kernel] {
        &self.kernels
    }

    /// Index of the kernel of this name.
    pub fn kernel(&self, name: &str) -> Option<usize> {
        self.kernels.iter().position(|k| k.name == name)
    }

    /// The variables at module scope that the caller has to allocate and initialise.
    pub fn globals(&self) -> &[Global] {
        &self.globals
    }

    /// Runs a launch to its end; the calling thread takes part in the work.
    pub fn run(&self, launch: &Launch) -> Result<(), Fault> {
        Err(Fault {
            kind: FaultKind::Internal,
            kernel: self.kernels[launch.kernel].name.clone(),
            line: 0,
            instruction: String::from("the interpreter is not there yet"),
            block: [0; 3],
            thread: [0; 3],
            address: 0,
            size: 0,
            write: false,
        })
    }
}
