//! Calls and returns, lane by lane.

use super::code::{Callee, CallSite, FunctionCode, Place};
use super::context::{Context, Trouble};
use super::lanes::{Frame, LANES};
use super::memory::{lanes_of, read_lane, write_lane};
use super::warp::{Activation, Warp};
use crate::interface::FUNCTION_WINDOW;
use crate::FaultKind;

/// The most calls that may be open in a thread.
const MAX_DEPTH: usize = 4096;

/// Bytes of an argument on its way.
type Bytes = Vec<u8>;

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
            let saved = if site.saves { save(caller, frame, lane) } else { Vec::new() };
            let old = self.frame_base[lane];
            // All arguments are read before any is written: a function may call itself.
            let args: Vec<Bytes> =
                site.args.iter().map(|&place| self.read(ctx, frame, place, old, lane)).collect();
            for (&place, bytes) in function.params.iter().zip(&args) {
                self.write(ctx, &target, place, base, lane, bytes);
            }
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

    /// Lanes return from a function, or end.
    pub fn ret(&mut self, ctx: &Context, mask: u32, frame: &Frame) {
        for lane in lanes_of(mask) {
            let Some(activation) = self.stacks.get_mut(lane).and_then(Vec::pop) else {
                self.exit(1 << lane);
                continue;
            };
            let site = &ctx.code.calls[activation.site as usize];
            let function = ctx.code.origins[self.pc_function(ctx, site, frame)].function;
            let results = &ctx.code.functions[function as usize].results;
            let base = self.frame_base[lane];
            let values: Vec<Bytes> =
                results.iter().map(|&place| self.read(ctx, frame, place, base, lane)).collect();
            let target = self.frame(ctx, site.caller);
            if site.saves {
                restore(&ctx.code.functions[site.caller as usize], &target, lane, &activation.saved);
            }
            self.frame_base[lane] = activation.frame_base;
            self.frame_top[lane] = activation.frame_top;
            self.pc[lane] = activation.resume;
            for (&place, bytes) in site.results.iter().zip(&values) {
                self.write(ctx, &target, place, activation.frame_base, lane, bytes);
            }
        }
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
    let lanes =
        lanes_of(mask).fold(0, |set, lane| set | u32::from(addresses[lane] == address) << lane);
    let offset = address.wrapping_sub(FUNCTION_WINDOW);
    let index = (offset / 16).wrapping_sub(1);
    let reachable = ctx.layout.frames.binary_search_by_key(&index, |f| u64::from(f.0)).is_ok();
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
