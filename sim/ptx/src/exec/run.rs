//! A launch: its blocks, spread over the calling thread and the workers.

use super::block::{Block, Outcome};
use super::code::Code;
use super::context::Context;
use super::memory::Regions;
use super::pool::{lock, Pool};
use crate::{Fault, FaultKind, Kernel, Launch};
use std::collections::VecDeque;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

/// The most local memory of a thread, with its stack.
pub const MAX_LOCAL: u64 = 512 << 10;
/// Instructions that a block runs before another one gets its turn.
const SLICE: i64 = 1 << 18;
/// Instructions after which the calling thread asks for help.
const ALONE: u64 = 1 << 13;
/// Threads that are on the device at the same time, and the host memory that they may take.
const RESIDENT_THREADS: u64 = 132 * 2048;
const RESIDENT_BYTES: u64 = 1 << 30;

/// A launch that is running.
pub struct Job {
    /// The lifetime is not static: see [`run`].
    ctx: Context<'static>,
    blocks: u64,
    next: AtomicU64,
    /// Blocks that may be unfinished at the same time.
    capacity: u64,
    state: Mutex<State>,
    changed: Condvar,
    stop: AtomicBool,
}

#[derive(Default)]
struct State {
    /// Blocks whose time was over.
    paused: VecDeque<Box<Block>>,
    /// Blocks that have begun and not ended.
    resident: u64,
    finished: u64,
    /// Workers that are inside.
    helpers: usize,
    closed: bool,
    fault: Option<Box<Fault>>,
}

/// What a thread gets to do next.
enum Task {
    Begin(u64),
    Resume(Box<Block>),
    /// All blocks are taken; some may come back.
    Nothing,
    Over,
}

/// Runs a launch; with the number of warp instructions that it took.
pub fn run(code: &Code, kernels: &[Kernel], launch: &Launch) -> (Result<(), Fault>, u64) {
    let ctx = match Context::new(code, kernels, launch) {
        Ok(ctx) => ctx,
        Err(fault) => return (Err(fault), 0),
    };
    // SAFETY: only the lifetime changes. The context borrows from the launch and the program, which
    // outlive this call; `finish` below waits until no worker is inside the job, and none can
    // enter it after that, so the context is not used any more when this call returns. A worker
    // may keep the job alive for a moment, but dropping a context runs no code that follows its
    // references.
    let ctx = unsafe { std::mem::transmute::<Context<'_>, Context<'static>>(ctx) };
    let blocks = ctx.grid.iter().map(|&n| u64::from(n)).product();
    let block_bytes = u64::from(ctx.shared)
        + u64::from(ctx.threads.next_multiple_of(32))
            * (u64::from(ctx.layout.planes) * 4 + u64::from(ctx.local) + 64);
    if block_bytes > RESIDENT_BYTES {
        let message = String::from("a block needs too much memory");
        let fault = Fault {
            instruction: message,
            ..ctx.fault(FaultKind::InvalidLaunch, [0; 3])
        };
        return (Err(fault), 0);
    }
    let capacity = (RESIDENT_THREADS / u64::from(ctx.threads).max(64))
        .min(RESIDENT_BYTES / block_bytes.max(1))
        .max(2);
    let job = Arc::new(Job {
        ctx,
        blocks,
        next: AtomicU64::new(0),
        capacity,
        state: Mutex::default(),
        changed: Condvar::new(),
        stop: AtomicBool::new(false),
    });
    let offered = job.lead();
    if offered {
        Pool::get().withdraw(&job);
    }
    let fault = job.finish();
    let executed = job.ctx.executed.load(Ordering::Relaxed);
    (fault.map_or(Ok(()), |fault| Err(*fault)), executed)
}

impl Job {
    /// The calling thread works until the launch is over; whether it asked for help.
    fn lead(self: &Arc<Self>) -> bool {
        let mut regions = Regions::new();
        let mut spare = None;
        let mut offered = false;
        loop {
            match self.take() {
                Task::Over => return offered,
                Task::Nothing => {
                    let state = lock(&self.state);
                    if state.paused.is_empty() && !self.is_over(&state) {
                        // The time limit only matters if a wake-up is lost.
                        let _ = self
                            .changed
                            .wait_timeout(state, Duration::from_millis(10))
                            .unwrap_or_else(PoisonError::into_inner);
                    }
                }
                task => self.perform(task, &mut regions, &mut spare),
            }
            if !offered && self.blocks > 1 && self.ctx.executed.load(Ordering::Relaxed) > ALONE {
                offered = true;
                Pool::get().offer(Arc::clone(self));
            }
        }
    }

    /// A worker helps for a while; whether there may be more to do.
    pub fn help(&self) -> bool {
        {
            let mut state = lock(&self.state);
            if state.closed {
                return false;
            }
            state.helpers += 1;
        }
        let mut regions = Regions::new();
        let mut spare = None;
        let mut more = true;
        let start = self.ctx.executed.load(Ordering::Relaxed);
        loop {
            match self.take() {
                Task::Over => {
                    more = false;
                    break;
                }
                Task::Nothing => {
                    // Let the blocks that others run come back, without burning the core.
                    let state = lock(&self.state);
                    let wait = Duration::from_micros(500);
                    let _ = self
                        .changed
                        .wait_timeout(state, wait)
                        .unwrap_or_else(PoisonError::into_inner);
                    break;
                }
                task => self.perform(task, &mut regions, &mut spare),
            }
            let done = self.ctx.executed.load(Ordering::Relaxed) - start;
            if done > 4 * SLICE as u64 {
                break;
            }
        }
        let mut state = lock(&self.state);
        state.helpers -= 1;
        drop(state);
        self.changed.notify_all();
        more
    }

    fn is_over(&self, state: &State) -> bool {
        state.finished == self.blocks || self.stop.load(Ordering::Relaxed)
    }

    fn take(&self) -> Task {
        if self.stop.load(Ordering::Relaxed) {
            return Task::Over;
        }
        let mut state = lock(&self.state);
        if self.is_over(&state) {
            return Task::Over;
        }
        if state.resident < self.capacity && self.next.load(Ordering::Relaxed) < self.blocks {
            state.resident += 1;
            return Task::Begin(self.next.fetch_add(1, Ordering::Relaxed));
        }
        match state.paused.pop_front() {
            Some(block) => Task::Resume(block),
            None => Task::Nothing,
        }
    }

    fn perform(&self, task: Task, regions: &mut Regions, spare: &mut Option<Box<Block>>) {
        let result = catch_unwind(AssertUnwindSafe(|| {
            let mut block = match task {
                Task::Begin(linear) => match spare.take() {
                    Some(mut block) => {
                        block.restart(&self.ctx, linear);
                        block
                    }
                    None => Box::new(Block::new(&self.ctx, linear)),
                },
                Task::Resume(block) => block,
                Task::Nothing | Task::Over => return Ok(()),
            };
            match block.run(&self.ctx, regions, SLICE)? {
                Outcome::Finished => {
                    let mut state = lock(&self.state);
                    state.resident -= 1;
                    state.finished += 1;
                    if state.finished == self.blocks {
                        self.changed.notify_all();
                    }
                    drop(state);
                    *spare = Some(block);
                }
                Outcome::Paused => {
                    lock(&self.state).paused.push_back(block);
                    self.changed.notify_one();
                    // What the block waits for may need this core.
                    std::thread::yield_now();
                }
            }
            Ok::<(), Box<Fault>>(())
        }));
        let fault = match result {
            Ok(Ok(())) => return,
            Ok(Err(fault)) => fault,
            Err(_) => Box::new(self.ctx.fault(FaultKind::Internal, [0; 3])),
        };
        lock(&self.state).fault.get_or_insert(fault);
        self.stop.store(true, Ordering::Relaxed);
        self.changed.notify_all();
    }

    /// Closes the job and waits until no worker is inside.
    fn finish(&self) -> Option<Box<Fault>> {
        let mut state = lock(&self.state);
        state.closed = true;
        while state.helpers > 0 {
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
        state.paused.clear();
        state.fault.take()
    }
}
