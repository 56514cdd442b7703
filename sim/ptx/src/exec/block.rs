//! A block: its warps take turns on one worker.

use super::context::Context;
use super::lanes::{Plane, ALL, LANES};
use super::memory::{lanes_of, Regions, Shared};
use super::warp::{Machine, Warp, CLUSTER_BARRIER};
use crate::exec::code::{BarrierKind, Op, Pc};
use crate::exec::context::Trouble;
use crate::{Fault, FaultKind};
use std::sync::atomic::Ordering;

/// Instructions of a warp's turn.
const TURN: i64 = 8192;
/// What fresh shared memory is full of, so that reading it before writing shows.
const POISON: u32 = 0xcdcd_cdcd;

/// A barrier that threads of the block wait at.
#[derive(Clone, Copy, Default)]
pub struct Barrier {
    /// Threads that a `bar.arrive` has counted.
    pub arrived: u32,
    /// How many threads are awaited; all of the block if `None`.
    pub count: Option<u32>,
    pub touched: bool,
    /// Votes of a reduction.
    pub yes: u32,
    pub no: u32,
}

/// What the warps of a block share.
pub struct BlockState {
    pub index: [u32; 3],
    pub barriers: [Barrier; 16],
    /// Somebody has arrived at the barrier of the cluster.
    pub cluster_arrivals: bool,
    shared: Box<[Plane]>,
    shared_bytes: u32,
}

impl BlockState {
    pub fn shared(&mut self) -> Shared {
        Shared {
            host: self.shared.as_mut_ptr().cast(),
            size: self.shared_bytes,
        }
    }
}

/// A block that is running, or waits for its next turn.
pub struct Block {
    state: BlockState,
    warps: Vec<Warp>,
}

/// How a turn of a block ended.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    Finished,
    /// Its time is over.
    Paused,
}

impl Block {
    pub fn new(ctx: &Context, linear: u64) -> Block {
        let planes = (ctx.shared as usize).div_ceil(size_of::<Plane>());
        Block {
            state: BlockState {
                index: ctx.block_index(linear),
                barriers: [Barrier::default(); 16],
                cluster_arrivals: false,
                shared: vec![Plane([POISON; LANES]); planes].into_boxed_slice(),
                shared_bytes: ctx.shared,
            },
            warps: (0..ctx.warps).map(|index| Warp::new(ctx, index)).collect(),
        }
    }

    /// Makes it another block of the same launch.
    pub fn restart(&mut self, ctx: &Context, linear: u64) {
        self.state.index = ctx.block_index(linear);
        self.state.barriers = [Barrier::default(); 16];
        self.state.cluster_arrivals = false;
        self.state.shared.fill(Plane([POISON; LANES]));
        for warp in &mut self.warps {
            warp.restart(ctx);
        }
    }

    /// Runs for about this many instructions.
    pub fn run(
        &mut self,
        ctx: &Context,
        regions: &mut Regions,
        mut time: i64,
    ) -> Result<Outcome, Box<Fault>> {
        loop {
            let (mut ran, mut live) = (false, 0);
            for index in 0..self.warps.len() {
                let warp = &mut self.warps[index];
                if warp.is_ready() {
                    ran = true;
                    let left = ctx
                        .budget
                        .as_ref()
                        .map_or(TURN, |b| b.load(Ordering::Relaxed));
                    if left <= 0 {
                        return Err(Box::new(
                            ctx.fault(FaultKind::BudgetExceeded, self.state.index),
                        ));
                    }
                    let turn = TURN.min(left);
                    let mut fuel = turn;
                    let mut machine = Machine {
                        ctx,
                        block: &mut self.state,
                        regions,
                    };
                    let result = warp.run(&mut machine, &mut fuel);
                    let used = turn - fuel;
                    ctx.executed.fetch_add(used as u64, Ordering::Relaxed);
                    if let Some(budget) = &ctx.budget {
                        budget.fetch_sub(used, Ordering::Relaxed);
                    }
                    time -= used;
                    if let Err((pc, trouble)) = result {
                        return Err(Box::new(self.fault(ctx, index as u32, pc, &trouble)));
                    }
                }
                live |= self.warps[index].live;
            }
            if live == 0 {
                return Ok(Outcome::Finished);
            }
            let released = self.release(ctx);
            if !ran && !released {
                return Err(Box::new(self.deadlock(ctx)));
            }
            if ctx.cancel.load(Ordering::Relaxed) {
                return Err(Box::new(ctx.fault(FaultKind::Cancelled, self.state.index)));
            }
            if time <= 0 {
                return Ok(Outcome::Paused);
            }
        }
    }

    /// Lets the threads go whose barrier is complete.
    fn release(&mut self, ctx: &Context) -> bool {
        let mut released = false;
        for id in 0..self.state.barriers.len() {
            let barrier = self.state.barriers[id];
            if !barrier.touched {
                continue;
            }
            let (mut waiting, mut full, mut live) = (0, 0, 0);
            for warp in &self.warps {
                let here = lanes_of(warp.at_barrier).fold(0, |set, lane| {
                    set | u32::from(usize::from(warp.barrier[lane]) == id) << lane
                });
                waiting += here.count_ones();
                // Lanes without a thread count with their warp.
                full += if here != 0 && here == warp.live {
                    32
                } else {
                    here.count_ones()
                };
                live += warp.live.count_ones();
            }
            let complete = match barrier.count {
                None => waiting + barrier.arrived >= live,
                Some(count) => full + barrier.arrived >= count,
            };
            if complete {
                released |= waiting > 0;
                self.open(ctx, id);
            }
        }
        released | (self.state.cluster_arrivals && self.release_cluster())
    }

    /// Lets the threads go that wait for the cluster, if all have arrived. Those that come to wait
    /// later pass by.
    fn release_cluster(&mut self) -> bool {
        if self.warps.iter().any(|warp| warp.live & !warp.arrived != 0) {
            return false;
        }
        self.state.cluster_arrivals = false;
        let mut released = false;
        for warp in &mut self.warps {
            let waiting = lanes_of(warp.at_barrier).fold(0, |set, lane| {
                set | u32::from(warp.barrier[lane] == CLUSTER_BARRIER) << lane
            });
            warp.at_barrier &= !waiting;
            warp.passed |= warp.arrived & !waiting;
            warp.arrived = 0;
            released |= waiting != 0;
        }
        released
    }

    fn open(&mut self, ctx: &Context, id: usize) {
        let barrier = std::mem::take(&mut self.state.barriers[id]);
        for warp in &mut self.warps {
            for lane in lanes_of(warp.at_barrier) {
                if usize::from(warp.barrier[lane]) != id {
                    continue;
                }
                warp.at_barrier &= !(1 << lane);
                // The lane is behind the instruction that it waited at.
                let pc = warp.pc[lane] - 1;
                let Op::Barrier(index) = ctx.code.insts[pc as usize].op else {
                    continue;
                };
                let op = &ctx.code.barriers[index as usize];
                let frame = warp.frame(ctx, ctx.code.origins[pc as usize].function);
                let all = |holds: bool| if holds { ALL } else { 0 };
                // SAFETY: lowering has checked the destinations.
                unsafe {
                    match op.kind {
                        BarrierKind::Popc => frame.store(op.d, 1 << lane, &[barrier.yes; LANES]),
                        BarrierKind::And => frame.set_pred(op.d, 1 << lane, all(barrier.no == 0)),
                        BarrierKind::Or => frame.set_pred(op.d, 1 << lane, all(barrier.yes != 0)),
                        _ => {}
                    }
                }
            }
        }
    }

    fn fault(&self, ctx: &Context, warp: u32, pc: Pc, trouble: &Trouble) -> Fault {
        let origin = ctx.code.origins[pc as usize];
        let text = ctx
            .code
            .source
            .get(origin.start as usize..origin.end as usize);
        Fault {
            line: origin.line,
            instruction: text
                .unwrap_or_default()
                .split_whitespace()
                .collect::<Vec<_>>()
                .join(" "),
            thread: ctx.thread_index(warp * LANES as u32 + trouble.lane),
            address: trouble.address,
            size: trouble.size,
            write: trouble.write,
            ..ctx.fault(trouble.kind, self.state.index)
        }
    }

    /// No thread can go on: the first one that waits is named.
    fn deadlock(&self, ctx: &Context) -> Fault {
        for warp in &self.warps {
            if warp.live != 0 {
                let lane = warp.live.trailing_zeros();
                let waits = warp.at_barrier >> lane & 1;
                let pc = warp.pc[lane as usize] - waits;
                return self.fault(
                    ctx,
                    warp.index,
                    pc,
                    &Trouble::new(FaultKind::Deadlock, lane),
                );
            }
        }
        ctx.fault(FaultKind::Deadlock, self.state.index)
    }
}
