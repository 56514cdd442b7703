//! Pieces of work, as they stand in a stream's queue and in a graph.

use crate::context::Context;
use crate::ledger;
use crate::memory::{self, DeviceMemory};
use crate::module::Function;
use crate::status::*;
use cudagraph_ptx::{FaultKind, Launch};
use std::sync::Arc;

/// Where a copy's bytes come from or go to.
#[derive(Clone, Copy, Debug)]
pub enum Place {
    /// Device memory.
    Device(u64),
    /// Host memory.
    Host(usize),
}

/// One operation.
#[derive(Clone)]
pub enum Work {
    /// A kernel with its parameter block.
    Kernel {
        /// The kernel.
        function: Arc<Function>,
        /// Blocks.
        grid: [u32; 3],
        /// Threads of a block.
        block: [u32; 3],
        /// Dynamic shared memory.
        shared: u32,
        /// The parameter block.
        params: Arc<[u8]>,
    },
    /// A copy.
    Copy {
        /// To.
        to: Place,
        /// From.
        from: Place,
        /// Bytes.
        size: usize,
    },
    /// A copy of bytes that were taken from the host before.
    Upload {
        /// Device address.
        to: u64,
        /// The bytes.
        bytes: Arc<[u8]>,
    },
    /// A fill.
    Fill {
        /// Device address.
        to: u64,
        /// Bytes of an element.
        width: usize,
        /// The element.
        value: u32,
        /// Elements.
        count: usize,
    },
    /// Nothing: joins branches.
    Empty,
}

impl Work {
    /// The work with what it reads from pageable host memory taken now.
    pub fn with_host_bytes(&self) -> Result<Work> {
        match *self {
            Work::Copy {
                to: Place::Device(to),
                from: Place::Host(from),
                size,
            } => Ok(Work::Upload {
                to,
                bytes: memory::read_host(from, size)?.into(),
            }),
            _ => Ok(self.clone()),
        }
    }

    /// Does it. A failure is reported and breaks the context.
    pub fn run(&self, context: &Context) {
        if context.check().is_err() {
            return;
        }
        if let Err(status) = self.attempt() {
            ledger::fault();
            context.fail(status);
        }
    }

    fn attempt(&self) -> Result<()> {
        match self {
            Work::Kernel {
                function,
                grid,
                block,
                shared,
                params,
            } => {
                let mut launch = Launch::new(function.index, &DeviceMemory);
                launch.grid = *grid;
                launch.block = *block;
                launch.dynamic_shared_bytes = *shared;
                launch.params = params;
                launch.globals = &function.module.globals;
                function.module.program.run(&launch).map_err(|fault| {
                    eprintln!("simulator: {fault}");
                    if fault.address != 0 {
                        eprintln!("simulator: {}", memory::describe(fault.address));
                    }
                    status_of(fault.kind)
                })
            }
            Work::Copy { to, from, size } => copy(*to, *from, *size),
            Work::Upload { to, bytes } => {
                check_device("copy to", *to, bytes.len())?;
                // SAFETY: checked just now; the source is ours.
                unsafe {
                    std::ptr::copy_nonoverlapping(bytes.as_ptr(), *to as *mut u8, bytes.len())
                };
                Ok(())
            }
            Work::Fill {
                to,
                width,
                value,
                count,
            } => {
                check_device("fill", *to, width * count)?;
                for index in 0..*count {
                    let at = (*to as usize + index * width) as *mut u8;
                    let bytes = value.to_le_bytes();
                    // SAFETY: inside the range that was checked.
                    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), at, *width) };
                }
                Ok(())
            }
            Work::Empty => Ok(()),
        }
    }
}

fn copy(to: Place, from: Place, size: usize) -> Result<()> {
    match (to, from) {
        (Place::Device(to), Place::Device(from)) => {
            check_device("copy to", to, size)?;
            check_device("copy from", from, size)?;
            // SAFETY: both ranges were checked just now.
            unsafe { std::ptr::copy(from as *const u8, to as *mut u8, size) };
            Ok(())
        }
        (Place::Host(to), Place::Device(from)) => {
            check_device("copy from", from, size)?;
            memory::write_host(to, from, size).map_err(|_| bad_host(to, size))
        }
        (Place::Device(to), Place::Host(from)) => {
            check_device("copy to", to, size)?;
            let bytes = memory::read_host(from, size).map_err(|_| bad_host(from, size))?;
            // SAFETY: the destination was checked just now.
            unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to as *mut u8, size) };
            Ok(())
        }
        (Place::Host(to), Place::Host(from)) => {
            let bytes = memory::read_host(from, size).map_err(|_| bad_host(from, size))?;
            memory::write_host(to, bytes.as_ptr() as u64, size).map_err(|_| bad_host(to, size))
        }
    }
}

fn bad_host(address: usize, size: usize) -> i32 {
    eprintln!(
        "simulator: a copy of {size} bytes uses host memory at 0x{address:x} that is not there"
    );
    ILLEGAL_ADDRESS
}

fn check_device(what: &str, address: u64, size: usize) -> Result<()> {
    if memory::is_valid(address, size as u64) {
        return Ok(());
    }
    eprintln!("simulator: illegal {what} {size} bytes at 0x{address:x}");
    eprintln!("simulator: {}", memory::describe(address));
    Err(ILLEGAL_ADDRESS)
}

fn status_of(kind: FaultKind) -> i32 {
    match kind {
        FaultKind::IllegalAddress | FaultKind::ReadOnly => ILLEGAL_ADDRESS,
        FaultKind::MisalignedAddress => MISALIGNED_ADDRESS,
        FaultKind::InvalidAddressSpace => INVALID_ADDRESS_SPACE,
        FaultKind::InvalidProgramCounter => INVALID_PC,
        FaultKind::IllegalInstruction | FaultKind::Trap => ILLEGAL_INSTRUCTION,
        FaultKind::Assert => ASSERT,
        FaultKind::Deadlock | FaultKind::BudgetExceeded => LAUNCH_TIMEOUT,
        _ => LAUNCH_FAILED,
    }
}
