//! Pieces of work, as they stand in a stream's queue and in a graph.

use crate::callback;
use crate::context::Context;
use crate::copy::{Copy, Fill, Upload};
use crate::event::{Event, Moment};
use crate::memory::{self, graph::GraphMemory, DeviceMemory};
use crate::module::Function;
use crate::report;
use crate::status::*;
use crate::{entry, ledger};
use cudagraph_ptx::{Fault, FaultKind, Launch};
use std::sync::{Arc, OnceLock};

/// The values of a kernel's parameters.
pub struct Params {
    /// The parameter block.
    pub bytes: Box<[u8]>,
    pointers: OnceLock<Box<[usize]>>,
}

impl Params {
    /// A parameter block.
    pub fn new(bytes: Vec<u8>) -> Arc<Params> {
        Arc::new(Params {
            bytes: bytes.into(),
            pointers: OnceLock::new(),
        })
    }

    /// One address for each parameter, as C wants them. They live as long as the block.
    pub fn pointers(&self, function: &Function) -> *const usize {
        let make = || {
            let params = function.kernel().params.iter();
            let base = self.bytes.as_ptr() as usize;
            params.map(|p| base + p.offset as usize).collect()
        };
        self.pointers.get_or_init(make).as_ptr()
    }
}

/// A launch of a kernel.
#[derive(Clone)]
pub struct Kernel {
    /// The kernel.
    pub function: Arc<Function>,
    /// Blocks.
    pub grid: [u32; 3],
    /// Threads of a block.
    pub block: [u32; 3],
    /// Dynamic shared memory.
    pub shared: u32,
    /// Parameters.
    pub params: Arc<Params>,
}

/// A function of the program.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Host {
    /// Its address.
    pub function: usize,
    /// What it is given.
    pub data: usize,
}

/// One operation.
#[derive(Clone)]
pub enum Work {
    /// A kernel.
    Kernel(Kernel),
    /// A copy.
    Copy(Copy),
    /// A copy of bytes that were taken from the host before.
    Upload(Upload),
    /// A fill.
    Fill(Fill),
    /// A call of the program.
    Host(Host),
    /// A call of the program that is told the status of the stream (`cuStreamAddCallback`).
    Callback(Host, usize),
    /// Records an event: in a graph.
    Record(Arc<Event>),
    /// Waits for an event: in a graph.
    Wait(Arc<Event>),
    /// Marks a moment: an event's record in one launch of a graph.
    Mark(Arc<Moment>),
    /// Waits for a moment: an event's in one launch of a graph.
    Await(Option<Arc<Moment>>),
    /// Makes memory: in a graph.
    Alloc(Arc<GraphMemory>),
    /// Frees memory of a graph.
    Free(Arc<GraphMemory>),
    /// Frees stream-ordered memory.
    Retire(u64),
    /// Nothing: joins branches.
    Empty,
}

impl Work {
    /// The number that the driver has for a node that does it (CUgraphNodeType).
    pub fn kind(&self) -> i32 {
        match self {
            Work::Kernel(_) => 0,
            Work::Copy(_) | Work::Upload(_) => 1,
            Work::Fill(_) => 2,
            Work::Host(_) | Work::Callback(..) => 3,
            Work::Empty => 5,
            Work::Wait(_) | Work::Await(_) => 6,
            Work::Record(_) | Work::Mark(_) => 7,
            Work::Alloc(_) => 10,
            Work::Free(_) | Work::Retire(_) => 11,
        }
    }

    /// The work with what it reads from pageable host memory taken now.
    pub fn with_host_bytes(self) -> Result<Work> {
        match self {
            Work::Copy(copy) if copy.reads_pageable() => {
                let taken = copy.taken().map_err(|status| match status {
                    OUT_OF_MEMORY => status,
                    _ => {
                        ledger::fault();
                        INVALID_VALUE
                    }
                });
                Ok(Work::Upload(taken?))
            }
            work => Ok(work),
        }
    }

    /// Does it. A failure is reported and breaks the context. In a broken context nothing is done, but
    /// who waits for it is told.
    pub fn run(&self, context: &Context) {
        match (context.check(), self) {
            (Ok(()), _) => {
                if let Err(status) = self.attempt(context) {
                    ledger::fault();
                    context.fail(status);
                }
            }
            (Err(status), Work::Callback(host, stream)) => call_back(*host, *stream, status),
            (Err(_), Work::Mark(moment)) => moment.happen(),
            (Err(_), _) => {}
        }
    }

    fn attempt(&self, context: &Context) -> Result<()> {
        match self {
            Work::Kernel(kernel) => kernel.run(context),
            Work::Copy(copy) => copy.run(),
            Work::Upload(upload) => upload.run(),
            Work::Fill(fill) => fill.run(),
            Work::Host(host) => {
                callback::call(*host);
                Ok(())
            }
            Work::Callback(host, stream) => {
                call_back(*host, *stream, 0);
                Ok(())
            }
            Work::Mark(moment) => {
                moment.happen();
                Ok(())
            }
            Work::Await(moment) => {
                moment.iter().for_each(|moment| moment.wait());
                Ok(())
            }
            Work::Alloc(memory) => {
                memory.make();
                Ok(())
            }
            Work::Free(memory) => {
                memory.unmake();
                Ok(())
            }
            Work::Retire(address) => {
                memory::retire(*address);
                Ok(())
            }
            // Events of a graph are replaced by moments when it is launched.
            Work::Record(_) | Work::Wait(_) | Work::Empty => Ok(()),
        }
    }
}

fn call_back(host: Host, stream: usize, status: i32) {
    // SAFETY: C passes a function of this type, with data that it vouches for.
    let function: extern "C" fn(usize, i32, usize) =
        unsafe { std::mem::transmute::<usize, _>(host.function) };
    entry::callback(|| function(stream, status, host.data));
}

impl Kernel {
    /// Refuses what the device cannot run, as the driver does when it is asked for the launch.
    pub fn check(&self) -> Result<()> {
        use crate::device::{MAX_BLOCK, MAX_GRID, MAX_THREADS, SHARED};
        let kernel = self.function.kernel();
        for dimension in 0..3 {
            let (blocks, threads) = (self.grid[dimension], self.block[dimension]);
            if !(1..=MAX_GRID[dimension]).contains(&blocks)
                || !(1..=MAX_BLOCK[dimension]).contains(&threads)
            {
                return Err(INVALID_VALUE);
            }
        }
        let threads: u64 = self.block.iter().map(|n| u64::from(*n)).product();
        let shared = u64::from(self.shared) + u64::from(kernel.static_shared_bytes);
        let fits = threads <= u64::from(MAX_THREADS.min(kernel.max_threads))
            && kernel
                .required_block
                .is_none_or(|block| block == self.block)
            && (shared <= u64::from(SHARED) || self.shared <= self.function.most_dynamic_shared());
        fits.then_some(()).ok_or(INVALID_VALUE)
    }

    fn run(&self, context: &Context) -> Result<()> {
        let module = &self.function.module;
        if module.is_unloaded() {
            let name = &self.function.kernel().name;
            report::say(&format!(
                "kernel `{name}` belongs to a module that was unloaded"
            ));
            return Err(ILLEGAL_ADDRESS);
        }
        let memory = context.memory();
        let mut launch = Launch::new(self.function.index, &memory);
        launch.grid = self.grid;
        launch.block = self.block;
        launch.dynamic_shared_bytes = self.shared;
        launch.params = &self.params.bytes;
        launch.globals = &module.globals;
        launch.stack_bytes = context.limit(0).unwrap_or(1024) as u32;
        module
            .program
            .run(&launch)
            .map_err(|fault| report_fault(&fault, &memory))
    }
}

/// Tells people of a fault; the driver's error for it.
fn report_fault(fault: &Fault, memory: &DeviceMemory) -> i32 {
    report::say(&fault.to_string());
    if fault.size != 0 {
        report::say(&memory.describe(fault.address));
    }
    match fault.kind {
        FaultKind::IllegalAddress | FaultKind::ReadOnly => ILLEGAL_ADDRESS,
        FaultKind::MisalignedAddress => MISALIGNED_ADDRESS,
        FaultKind::InvalidAddressSpace => INVALID_ADDRESS_SPACE,
        FaultKind::InvalidProgramCounter => INVALID_PC,
        FaultKind::IllegalInstruction => ILLEGAL_INSTRUCTION,
        FaultKind::Assert => ASSERT,
        FaultKind::StackOverflow => HARDWARE_STACK_ERROR,
        FaultKind::Deadlock | FaultKind::BudgetExceeded => LAUNCH_TIMEOUT,
        _ => LAUNCH_FAILED,
    }
}
