//! A warp: which lanes run next, and the loop that runs them.
//!
//! Each lane has its own program counter, as on hardware with independent thread scheduling. The
//! lanes at the lowest one run together, and others join them when they get there, so that lanes
//! that went different ways meet again as early as they can. When a warp has used up its time while
//! its lanes are apart, the next group gets a turn out of order: a lane that waits in a loop for
//! another lane of its warp does not keep that one from running.

use super::address::{is_space, source_address, store_address};
use super::block::BlockState;
use super::code::{BarrierKind, Op, Pc};
use super::context::{Context, Trouble};
use super::lanes::{Frame, Plane, ALL, LANES};
use super::memory::{lanes_of, Access, Regions};
use super::special;
use crate::FaultKind;
use std::sync::atomic::{fence, Ordering};

/// What an operation costs that a loop which waits for another thread is made of.
const WAIT_COST: i64 = 64;

/// The barrier of the cluster, behind the sixteen of the block.
pub const CLUSTER_BARRIER: u8 = 16;

/// A call that has not returned.
pub struct Activation {
    pub site: u32,
    pub resume: Pc,
    pub frame_base: u32,
    pub frame_top: u32,
    /// Registers and predicates of the caller, if the callee may use them too.
    pub saved: Vec<u128>,
}

/// A warp of a block.
pub struct Warp {
    pub index: u32,
    planes: Box<[Plane]>,
    preds: Box<[u32]>,
    local: Box<[Plane]>,
    pub tid: [[u32; LANES]; 3],
    pub pc: [Pc; LANES],
    /// Lanes whose threads have not ended.
    pub live: u32,
    /// Lanes that wait at a barrier of the block, and at which one.
    pub at_barrier: u32,
    pub barrier: [u8; LANES],
    /// Lanes that have arrived at the barrier of the cluster, and those that need not wait there
    /// any more.
    pub arrived: u32,
    pub passed: u32,
    /// Lanes that wait for others of the warp, and for which.
    pub at_sync: u32,
    pub members: [u32; LANES],
    /// Lanes that need not wait again when they run their collective operation.
    pub met: u32,
    pub frame_base: [u32; LANES],
    pub frame_top: [u32; LANES],
    pub stacks: Vec<Vec<Activation>>,
    /// Where the last turn ended in the middle of things.
    last: Option<Pc>,
}

/// A mutable view on what a running warp needs.
pub struct Machine<'x, 'a> {
    pub ctx: &'x Context<'a>,
    pub block: &'x mut BlockState,
    pub regions: &'x mut Regions,
}

impl Warp {
    pub fn new(ctx: &Context, index: u32) -> Warp {
        let mut warp = Warp {
            index,
            planes: vec![Plane([0; LANES]); ctx.layout.planes as usize].into_boxed_slice(),
            preds: vec![0; ctx.layout.preds as usize].into_boxed_slice(),
            local: Box::new([]),
            tid: [[0; LANES]; 3],
            pc: [0; LANES],
            live: 0,
            at_barrier: 0,
            barrier: [0; LANES],
            arrived: 0,
            passed: 0,
            at_sync: 0,
            members: [0; LANES],
            met: 0,
            frame_base: [0; LANES],
            frame_top: [0; LANES],
            stacks: Vec::new(),
            last: None,
        };
        for lane in 0..LANES {
            let index = ctx.thread_index(index * LANES as u32 + lane as u32);
            for axis in 0..3 {
                warp.tid[axis][lane] = index[axis];
            }
        }
        warp.restart(ctx);
        warp
    }

    /// Makes the warp that of another block.
    pub fn restart(&mut self, ctx: &Context) {
        let function = &ctx.code.functions[ctx.layout.function as usize];
        self.planes.fill(Plane([0; LANES]));
        self.preds.fill(0);
        self.pc = [function.entry; LANES];
        let threads = ctx.threads - self.index * LANES as u32;
        self.live = if threads >= 32 {
            ALL
        } else {
            (1 << threads) - 1
        };
        (self.at_barrier, self.at_sync, self.met) = (0, 0, 0);
        (self.arrived, self.passed) = (0, 0);
        self.frame_base = [0; LANES];
        self.frame_top = [function.frame; LANES];
        for stack in &mut self.stacks {
            stack.clear();
        }
        self.last = None;
    }

    /// Local memory of the warp, one thread after the other; it is allocated at its first use.
    pub fn local(&mut self, ctx: &Context) -> *mut u8 {
        if self.local.is_empty() {
            let bytes = ctx.local as usize * LANES;
            let planes = bytes.div_ceil(size_of::<Plane>());
            self.local = vec![Plane([0; LANES]); planes].into_boxed_slice();
        }
        self.local.as_mut_ptr().cast()
    }

    /// The registers of a function.
    pub fn frame(&mut self, ctx: &Context, function: u32) -> Frame {
        let (plane, pred) = ctx.frame_start(function);
        Frame {
            planes: self.planes.as_mut_ptr().wrapping_add(plane as usize),
            preds: self.preds.as_mut_ptr().wrapping_add(pred as usize),
            constants: ctx.code.constants.as_ptr(),
        }
    }

    fn ready(&self) -> u32 {
        self.live & !self.at_barrier & !self.at_sync
    }

    /// Whether some lane can run.
    pub fn is_ready(&self) -> bool {
        self.ready() != 0
    }

    pub fn put(&mut self, mask: u32, pc: Pc) {
        for lane in lanes_of(mask) {
            self.pc[lane] = pc;
        }
    }

    pub fn lanes_at(&self, mask: u32, pc: Pc) -> u32 {
        lanes_of(mask).fold(0, |set, lane| set | u32::from(self.pc[lane] == pc) << lane)
    }

    /// Chooses the lanes to run: program counter, lanes, and the lowest program counter of others.
    fn choose(&mut self, ready: u32) -> (Pc, u32, Pc) {
        let lowest = lanes_of(ready).map(|lane| self.pc[lane]).min().unwrap_or(0);
        let mut pc = lowest;
        let mut out_of_turn = false;
        if let Some(last) = self.last.take() {
            // The group behind the one that has run for so long; the lowest one after the highest.
            let next = lanes_of(ready)
                .map(|lane| self.pc[lane])
                .filter(|&pc| pc > last)
                .min();
            if let Some(next) = next {
                out_of_turn = next != lowest;
                pc = next;
            }
        }
        let active = self.lanes_at(ready, pc);
        let others = lanes_of(ready & !active).map(|lane| self.pc[lane]).min();
        // A group that runs out of turn runs on until its time is over.
        let limit = if out_of_turn {
            Pc::MAX
        } else {
            others.unwrap_or(Pc::MAX)
        };
        (pc, active, limit)
    }

    /// Runs until every lane waits or has ended, or the fuel is used up. Fuel is counted in
    /// instructions.
    pub fn run(&mut self, m: &mut Machine<'_, '_>, fuel: &mut i64) -> Result<(), (Pc, Trouble)> {
        let ctx = m.ctx;
        let insts = ctx.code.insts.as_slice();
        loop {
            let ready = self.ready();
            if ready == 0 {
                return Ok(());
            }
            if *fuel <= 0 {
                return Ok(());
            }
            let (mut pc, mut active, limit) = self.choose(ready);
            let mut frame = self.frame(ctx, ctx.code.origins[pc as usize].function);
            // Ends the turn if lanes may join here, or time is over.
            macro_rules! arrive {
                ($at:expr) => {
                    pc = $at;
                    if pc >= limit || *fuel <= 0 {
                        self.put(active, pc);
                        if *fuel <= 0 && limit != Pc::MAX || *fuel <= 0 && active != self.ready() {
                            self.last = Some(pc);
                        }
                        break;
                    }
                };
            }
            loop {
                let inst = &insts[pc as usize];
                *fuel -= 1;
                let mask = if inst.guard == 0 {
                    active
                } else {
                    // SAFETY: lowering has checked the predicate.
                    active & unsafe { frame.pred(inst.guard) }
                };
                match inst.op {
                    Op::Lanes(f, ref o) => {
                        if mask != 0 {
                            // SAFETY: lowering has checked the operands.
                            unsafe { f(&frame, o, mask) };
                        }
                        pc += 1;
                    }
                    Op::Head => {
                        arrive!(pc + 1);
                    }
                    Op::Branch(target) => {
                        if mask == active {
                            arrive!(target);
                        } else if mask == 0 {
                            arrive!(pc + 1);
                        } else {
                            self.put(mask, target);
                            self.put(active & !mask, pc + 1);
                            break;
                        }
                    }
                    Op::Load(index) => {
                        let op = &ctx.code.mem[index as usize];
                        if mask != 0 {
                            self.access(m)
                                .load(self, &frame, op, mask)
                                .map_err(|t| (pc, t))?;
                        }
                        if op.waits {
                            *fuel -= WAIT_COST;
                        }
                        pc += 1;
                    }
                    Op::Store(index) => {
                        let op = &ctx.code.mem[index as usize];
                        if mask != 0 {
                            self.access(m)
                                .store(self, &frame, op, mask)
                                .map_err(|t| (pc, t))?;
                        }
                        pc += 1;
                    }
                    Op::Atom(index) => {
                        let op = &ctx.code.mem[index as usize];
                        if mask != 0 {
                            self.access(m)
                                .atom(self, &frame, op, mask)
                                .map_err(|t| (pc, t))?;
                        }
                        if op.waits {
                            *fuel -= WAIT_COST;
                        }
                        pc += 1;
                    }
                    Op::Special { d, which } => {
                        special::read(ctx, self, m.block.index, &frame, d, which, mask);
                        pc += 1;
                    }
                    Op::Symbol {
                        d,
                        symbol,
                        offset,
                        wide,
                    } => {
                        let address = ctx.symbols[symbol as usize].wrapping_add(offset as u64);
                        store_address(&frame, d, mask, wide, |_| address);
                        pc += 1;
                    }
                    Op::FrameAddress { d, offset, wide } => {
                        let bases = self.frame_base;
                        store_address(&frame, d, mask, wide, |lane| {
                            u64::from(bases[lane].wrapping_add(offset))
                        });
                        pc += 1;
                    }
                    Op::Exit => {
                        self.exit(mask);
                        active &= !mask;
                        if active == 0 {
                            break;
                        }
                        pc += 1;
                    }
                    Op::Return => {
                        if mask == 0 {
                            pc += 1;
                            continue;
                        }
                        self.put(active & !mask, pc + 1);
                        self.ret(ctx, mask, pc, &frame);
                        active &= self.live;
                        if active != mask || active == 0 {
                            break;
                        }
                        let first = self.pc[active.trailing_zeros() as usize];
                        if self.lanes_at(active, first) != active {
                            break;
                        }
                        frame = self.frame(ctx, ctx.code.origins[first as usize].function);
                        arrive!(first);
                    }
                    Op::Call(site) => {
                        if mask == 0 {
                            pc += 1;
                            continue;
                        }
                        self.put(active & !mask, pc + 1);
                        self.put(mask, pc);
                        let entered = self.call(ctx, site, mask, &frame).map_err(|t| (pc, t))?;
                        if entered != active {
                            break;
                        }
                        let entry = self.pc[entered.trailing_zeros() as usize];
                        frame = self.frame(ctx, ctx.code.origins[entry as usize].function);
                        arrive!(entry);
                    }
                    Op::BranchTable { index, table } => {
                        // SAFETY: lowering has checked the index.
                        let indices = unsafe { frame.source::<u32>(index) };
                        let targets = &ctx.code.tables[table as usize];
                        for lane in lanes_of(mask) {
                            let Some(&target) = targets.get(indices[lane] as usize) else {
                                let kind = FaultKind::InvalidProgramCounter;
                                return Err((pc, Trouble::new(kind, lane as u32)));
                            };
                            self.pc[lane] = target;
                        }
                        self.put(active & !mask, pc + 1);
                        break;
                    }
                    Op::Barrier(index) => {
                        if mask == 0 {
                            pc += 1;
                            continue;
                        }
                        self.put(active, pc + 1);
                        let blocks = self.barrier(m, index, &frame, mask).map_err(|t| (pc, t))?;
                        pc += 1;
                        if blocks {
                            break;
                        }
                    }
                    Op::Sync(index) => {
                        let op = &ctx.code.syncs[index as usize];
                        if mask == 0 {
                            pc += 1;
                            continue;
                        }
                        let went = self.meet(op, &frame, mask, pc).map_err(|t| (pc, t))?;
                        if went != active {
                            self.put(active & !mask, pc + 1);
                            self.put(went, pc + 1);
                            break;
                        }
                        pc += 1;
                    }
                    Op::ActiveMask { d } => {
                        // SAFETY: lowering has checked the destination.
                        unsafe { frame.store(d, mask, &[mask; LANES]) };
                        pc += 1;
                    }
                    Op::Fence => {
                        fence(Ordering::SeqCst);
                        pc += 1;
                    }
                    Op::Relax => {
                        *fuel -= 16 * WAIT_COST;
                        pc += 1;
                    }
                    Op::IsSpace {
                        d,
                        a,
                        space,
                        narrow,
                    } => {
                        is_space(ctx, &frame, d, a, (space, narrow), mask);
                        pc += 1;
                    }
                    Op::Alloca {
                        d,
                        size,
                        align,
                        wide,
                    } => {
                        self.alloca(ctx, &frame, mask, (d, size, align, wide))
                            .map_err(|t| (pc, t))?;
                        pc += 1;
                    }
                    Op::StackSave { d, wide } => {
                        let tops = self.frame_top;
                        store_address(&frame, d, mask, wide, |lane| u64::from(tops[lane]));
                        pc += 1;
                    }
                    Op::StackRestore { a, wide } => {
                        for lane in lanes_of(mask) {
                            // SAFETY: lowering has checked the source.
                            let top = unsafe { source_address(&frame, a, wide, lane) };
                            self.frame_top[lane] = top.min(u64::from(ctx.local)) as u32;
                        }
                        pc += 1;
                    }
                    Op::Trap | Op::Assert => {
                        if mask != 0 {
                            let kind = match inst.op {
                                Op::Trap => FaultKind::Trap,
                                _ => FaultKind::Assert,
                            };
                            return Err((pc, Trouble::new(kind, mask.trailing_zeros())));
                        }
                        pc += 1;
                    }
                }
            }
        }
    }

    fn access<'m, 'a>(&self, m: &'m mut Machine<'_, 'a>) -> Access<'m, 'a> {
        Access {
            ctx: m.ctx,
            shared: m.block.shared(),
            regions: m.regions,
        }
    }

    /// Lanes come to a barrier of the block; whether they wait there.
    fn barrier(
        &mut self,
        m: &mut Machine<'_, '_>,
        index: u32,
        frame: &Frame,
        mask: u32,
    ) -> Result<bool, Trouble> {
        let op = &m.ctx.code.barriers[index as usize];
        match op.kind {
            BarrierKind::ClusterArrive => {
                self.arrived |= mask;
                m.block.cluster_arrivals = true;
                return Ok(false);
            }
            BarrierKind::ClusterWait => {
                let wait = mask & !self.passed;
                self.passed &= !mask;
                self.at_barrier |= wait;
                for lane in lanes_of(wait) {
                    self.barrier[lane] = CLUSTER_BARRIER;
                }
                return Ok(wait != 0);
            }
            _ => {}
        }
        // SAFETY: lowering has checked the operands.
        let (ids, counts, preds) = unsafe {
            let counts = op.count.map(|count| *frame.source::<u32>(count));
            (*frame.source::<u32>(op.id), counts, frame.pred(op.pred))
        };
        for lane in lanes_of(mask) {
            let id = ids[lane];
            let count = counts.map(|c| c[lane]);
            let bad_count = count.is_some_and(|c| c == 0 || c % 32 != 0);
            if id > 15 || bad_count {
                return Err(Trouble::new(FaultKind::IllegalInstruction, lane as u32));
            }
            let barrier = &mut m.block.barriers[id as usize];
            barrier.count = count;
            barrier.touched = true;
            if op.kind == BarrierKind::Arrive {
                barrier.arrived += 1;
                continue;
            }
            self.barrier[lane] = id as u8;
            self.at_barrier |= 1 << lane;
            let yes = preds >> lane & 1;
            barrier.yes += yes;
            barrier.no += 1 - yes;
        }
        if op.kind == BarrierKind::Arrive && mask == self.live {
            // A warp counts in full, even if it lacks threads.
            let id = ids[mask.trailing_zeros() as usize];
            m.block.barriers[id as usize].arrived += 32 - mask.count_ones();
        }
        Ok(op.kind != BarrierKind::Arrive)
    }

    fn alloca(
        &mut self,
        ctx: &Context,
        frame: &Frame,
        mask: u32,
        (d, size, align, wide): (u32, u32, u32, bool),
    ) -> Result<(), Trouble> {
        let mut starts = [0; LANES];
        for lane in lanes_of(mask) {
            // SAFETY: lowering has checked the source.
            let size = unsafe { source_address(frame, size, wide, lane) };
            let start = u64::from(self.frame_top[lane].next_multiple_of(align));
            let end = start.saturating_add(size);
            if end > u64::from(ctx.local) {
                return Err(Trouble::new(FaultKind::StackOverflow, lane as u32));
            }
            starts[lane] = start;
            self.frame_top[lane] = end as u32;
        }
        store_address(frame, d, mask, wide, |lane| starts[lane]);
        Ok(())
    }
}
