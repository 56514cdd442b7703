//! Calls and returns, lane by lane.

use super::code::{CallSite, Callee, FunctionCode, Pc, Place};
use super::context::{Context, Trouble};
use super::lanes::{Frame, LANES};
use super::memory::{lanes_of, read_lane, write_lane};
use super::warp::{Activation, Warp};
use crate::interface::FUNCTION_WINDOW;
use crate::FaultKind;

/// The most calls that may be open in a thread.
const MAX_DEPTH: usize = 4096;

impl Warp {
    /// Lanes call; the result is the set that entered a function. With a call through a register,
    /// only lanes that go to the same place enter together, and the others call later.
    pub fn call(
        &mut self,
        ctx: &Context,
        site_index: u32,
        mask: u32,
        frame: &Frame,
    ) -> Result<u32, Trouble> {
        let site = &ctx.code.calls[site_index as usize];
        let (callee, lanes) = match site.callee {
            Callee::Function(index) => (index, mask),
            Callee::Register(slot) => called(ctx, site, slot, mask, frame)?,
        };
        let function = &ctx.code.functions[callee as usize];
        let caller = &ctx.code.functions[site.caller as usize];
        let target = self.frame(ctx, callee);
        if self.stacks.is_empty() {
            self.stacks.resize_with(LANES, Vec::new);
        }
        for lane in lanes_of(lanes) {
            let base = self.frame_top[lane].next_multiple_of(16);
            let top = base.saturating_add(function.frame);
            if top > ctx.local || self.stacks[lane].len() >= MAX_DEPTH {
                return Err(Trouble::new(FaultKind::StackOverflow, lane as u32));
            }
            let saved = if site.saves {
                save(caller, frame, lane)
            } else {
                Vec::new()
            };
            let old = self.frame_base[lane];
            let ends = [(frame, old), (&target, base)];
            self.pass(ctx, &site.args, &function.params, ends, lane);
            self.stacks[lane].push(Activation {
                site: site_index,
                resume: self.pc[lane] + 1,
                frame_base: old,
                frame_top: self.frame_top[lane],
                saved,
            });
            self.frame_base[lane] = base;
            self.frame_top[lane] = top;
            self.pc[lane] = function.entry;
        }
        Ok(lanes)
    }

    /// Lanes return from the function that `pc` lies in, or end.
    pub fn ret(&mut self, ctx: &Context, mask: u32, pc: Pc, frame: &Frame) {
        let index = ctx.code.origins[pc as usize].function;
        let function = &ctx.code.functions[index as usize];
        for lane in lanes_of(mask) {
            let Some(activation) = self.stacks.get_mut(lane).and_then(Vec::pop) else {
                self.exit(1 << lane);
                continue;
            };
            let site = &ctx.code.calls[activation.site as usize];
            let target = self.frame(ctx, site.caller);
            let ends = [
                (frame, self.frame_base[lane]),
                (&target, activation.frame_base),
            ];
            if site.saves {
                // The results may lie in registers that are about to be restored.
                let results = self.read_registers(frame, &function.results, lane);
                let caller = &ctx.code.functions[site.caller as usize];
                restore(caller, &target, lane, &activation.saved);
                self.pass_values(ctx, &function.results, &results, &site.results, ends, lane);
            } else {
                self.pass(ctx, &function.results, &site.results, ends, lane);
            }
            self.frame_base[lane] = activation.frame_base;
            self.frame_top[lane] = activation.frame_top;
            self.pc[lane] = activation.resume;
        }
    }

    /// Copies values of one lane from places to places, each in the registers and at the frame base
    /// of its end.
    fn pass(
        &mut self,
        ctx: &Context,
        from: &[Place],
        to: &[Place],
        ends: [(&Frame, u32); 2],
        lane: usize,
    ) {
        let values = self.read_registers(ends[0].0, from, lane);
        self.pass_values(ctx, from, &values, to, ends, lane);
    }

    /// The values of those places that are registers; all are read before any is written, since a
    /// function may call itself.
    fn read_registers(&self, frame: &Frame, places: &[Place], lane: usize) -> Vec<u128> {
        if places
            .iter()
            .all(|place| matches!(place, Place::Frame { .. }))
        {
            return Vec::new();
        }
        let read = |place: &Place| match *place {
            // SAFETY: lowering has checked the register.
            Place::Register { slot, bytes } => unsafe { read_lane(frame, slot, bytes, lane) },
            // SAFETY: lowering has checked the predicate.
            Place::Pred(pred) => unsafe { u128::from(frame.pred(pred) >> lane & 1) },
            Place::Frame { .. } => 0,
        };
        places.iter().map(read).collect()
    }

    fn pass_values(
        &mut self,
        ctx: &Context,
        from: &[Place],
        values: &[u128],
        to: &[Place],
        [(_, from_base), (frame, to_base)]: [(&Frame, u32); 2],
        lane: usize,
    ) {
        for (index, (from, to)) in from.iter().zip(to).enumerate() {
            let value = values.get(index).copied().unwrap_or(0);
            match (*from, *to) {
                (Place::Frame { offset: a, size }, Place::Frame { offset: b, .. }) => {
                    self.copy_local(ctx, lane, from_base + a, to_base + b, size);
                }
                (Place::Frame { offset, size }, to) => {
                    let mut bytes = [0; 16];
                    let size = size.min(16);
                    let at = self.local_at(ctx, lane, from_base + offset, size);
                    // SAFETY: `local_at` vouches for these bytes of the thread's own memory.
                    unsafe { at.copy_to_nonoverlapping(bytes.as_mut_ptr(), size as usize) };
                    write_register(frame, to, lane, u128::from_le_bytes(bytes));
                }
                (_, Place::Frame { offset, size }) => {
                    let bytes = value.to_le_bytes();
                    let size = size.min(16);
                    let at = self.local_at(ctx, lane, to_base + offset, size);
                    // SAFETY: `local_at` vouches for these bytes of the thread's own memory.
                    unsafe { at.copy_from_nonoverlapping(bytes.as_ptr(), size as usize) };
                }
                (_, to) => write_register(frame, to, lane, value),
            }
        }
    }

    fn copy_local(&mut self, ctx: &Context, lane: usize, from: u32, to: u32, size: u32) {
        let from = self.local_at(ctx, lane, from, size);
        let to = self.local_at(ctx, lane, to, size);
        // SAFETY: `local_at` vouches for both ranges; `copy` allows them to overlap.
        unsafe { from.copy_to(to, size as usize) };
    }

    /// Host address of local memory of a thread. Frames were checked against the size of local
    /// memory when they were made.
    fn local_at(&mut self, ctx: &Context, lane: usize, offset: u32, size: u32) -> *mut u8 {
        assert!(u64::from(offset) + u64::from(size) <= u64::from(ctx.local));
        self.local(ctx)
            .wrapping_add(lane * ctx.local as usize + offset as usize)
    }
}

fn write_register(frame: &Frame, place: Place, lane: usize, value: u128) {
    match place {
        // SAFETY: lowering has checked the register.
        Place::Register { slot, bytes } => unsafe { write_lane(frame, slot, bytes, lane, value) },
        // SAFETY: lowering has checked the predicate.
        Place::Pred(pred) => unsafe {
            frame.set_pred(pred >> 1, 1 << lane, ((value as u32) & 1) << lane);
        },
        Place::Frame { .. } => {}
    }
}

/// The function that the first lane calls through a register, and the lanes that call it too.
fn called(
    ctx: &Context,
    site: &CallSite,
    slot: u32,
    mask: u32,
    frame: &Frame,
) -> Result<(u32, u32), Trouble> {
    // SAFETY: lowering has checked that the register holds 64 bits.
    let addresses = unsafe { frame.source::<u64>(slot) };
    let first = mask.trailing_zeros();
    let address = addresses[first as usize];
    let lanes = lanes_of(mask).fold(0, |set, lane| {
        set | u32::from(addresses[lane] == address) << lane
    });
    let offset = address.wrapping_sub(FUNCTION_WINDOW);
    let index = (offset / 16).wrapping_sub(1);
    let reachable = ctx
        .layout
        .frames
        .binary_search_by_key(&index, |f| u64::from(f.0))
        .is_ok();
    let valid = offset % 16 == 0 && reachable && index != u64::from(ctx.layout.function);
    let fits = valid && {
        let function = &ctx.code.functions[index as usize];
        same_sizes(&function.params, &site.args) && same_sizes(&function.results, &site.results)
    };
    if !fits {
        let trouble = Trouble::new(FaultKind::InvalidProgramCounter, first);
        return Err(Trouble { address, ..trouble });
    }
    Ok((index as u32, lanes))
}

fn size(place: &Place) -> u32 {
    match *place {
        Place::Register { bytes, .. } => bytes,
        Place::Pred(_) => 1,
        Place::Frame { size, .. } => size,
    }
}

fn same_sizes(a: &[Place], b: &[Place]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| size(a) == size(b))
}

fn save(function: &FunctionCode, frame: &Frame, lane: usize) -> Vec<u128> {
    let mut saved = Vec::with_capacity(function.registers.len() + function.preds as usize);
    for &(slot, bytes) in &function.registers {
        // SAFETY: these are the registers of the frame's function.
        saved.push(unsafe { read_lane(frame, slot, bytes, lane) });
    }
    for pred in 0..function.preds {
        // SAFETY: these are the predicates of the frame's function.
        saved.push(unsafe { u128::from(frame.pred(pred << 1) >> lane & 1) });
    }
    saved
}

fn restore(function: &FunctionCode, frame: &Frame, lane: usize, saved: &[u128]) {
    let (registers, preds) = saved.split_at(function.registers.len());
    for (&(slot, bytes), &value) in function.registers.iter().zip(registers) {
        // SAFETY: these are the registers of the frame's function.
        unsafe { write_lane(frame, slot, bytes, lane, value) };
    }
    for (pred, &value) in preds.iter().enumerate() {
        // SAFETY: these are the predicates of the frame's function.
        unsafe { frame.set_pred(pred as u32, 1 << lane, (value as u32) << lane) };
    }
}
