//! Addresses in registers of either width, and the state spaces of generic ones.

use super::code::{Space, Symbol};
use super::context::Context;
use super::lanes::{Frame, LANES};
use super::memory::{lanes_of, space_of};

/// Stores an address for each active lane.
pub fn store_address(frame: &Frame, d: u32, mask: u32, wide: bool, f: impl Fn(usize) -> u64) {
    // SAFETY: lowering has checked that the destination has this width.
    unsafe {
        if wide {
            frame.store(d, mask, &std::array::from_fn::<u64, LANES, _>(f));
        } else {
            frame.store(
                d,
                mask,
                &std::array::from_fn::<u32, LANES, _>(|lane| f(lane) as u32),
            );
        }
    }
}

/// One lane of a register that holds an address.
///
/// # Safety
/// The slot must have this width.
pub unsafe fn source_address(frame: &Frame, slot: u32, wide: bool, lane: usize) -> u64 {
    // SAFETY: passed on.
    unsafe {
        match wide {
            true => frame.source::<u64>(slot)[lane],
            false => u64::from(frame.source::<u32>(slot)[lane]),
        }
    }
}

pub fn is_space(
    ctx: &Context,
    frame: &Frame,
    d: u32,
    a: u32,
    (space, narrow): (Space, bool),
    mask: u32,
) {
    let mut yes = 0;
    for lane in lanes_of(mask) {
        // SAFETY: lowering has checked the source.
        let address = unsafe { source_address(frame, a, !narrow, lane) };
        let constant = space_of(address) == Space::Global && is_constant(ctx, address);
        let holds = match space {
            Space::Const => constant,
            Space::Global => space_of(address) == Space::Global && !constant,
            other => space_of(address) == other,
        };
        yes |= u32::from(holds) << lane;
    }
    // SAFETY: lowering has checked the destination.
    unsafe { frame.set_pred(d, mask, yes) };
}

/// Whether an address lies in a variable of constant memory.
fn is_constant(ctx: &Context, address: u64) -> bool {
    let Some(region) = ctx.memory.region(address) else {
        return false;
    };
    ctx.code
        .symbols
        .iter()
        .zip(&ctx.symbols)
        .any(|(symbol, &start)| {
            matches!(symbol, Symbol::Const(_)) && start >= region.start && start < region.end
        })
}
