//! Special registers.

use super::code::Special;
use super::context::Context;
use super::lanes::{Frame, LANES};
use super::warp::Warp;
use std::time::{SystemTime, UNIX_EPOCH};

/// Multiprocessors that blocks seem to run on.
const MULTIPROCESSORS: u32 = 132;

fn global_timer() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |t| t.as_nanos() as u64)
}

/// Reads a special register in all lanes.
pub fn read(
    ctx: &Context,
    warp: &Warp,
    block: [u32; 3],
    frame: &Frame,
    d: u32,
    which: Special,
    mask: u32,
) {
    let clock = || ctx.start.elapsed().as_nanos() as u64;
    let wide = match which {
        Special::Clock64 => Some(clock()),
        Special::GlobalTimer => Some(global_timer()),
        Special::GridId => Some(ctx.grid_id),
        _ => None,
    };
    if let Some(value) = wide {
        // SAFETY: lowering gives these registers 64 bits.
        unsafe { frame.store(d, mask, &[value; LANES]) };
        return;
    }
    let all = |value: u32| [value; LANES];
    let each = |f: fn(u32) -> u32| std::array::from_fn(|lane| f(lane as u32));
    let linear = || {
        let (x, y) = (u64::from(ctx.grid[0]), u64::from(ctx.grid[1]));
        u64::from(block[0]) + x * (u64::from(block[1]) + y * u64::from(block[2]))
    };
    let values: [u32; LANES] = match which {
        Special::Tid(axis) => warp.tid[axis as usize],
        Special::Ntid(axis) => all(ctx.block[axis as usize]),
        Special::Ctaid(axis) => all(block[axis as usize]),
        Special::Nctaid(axis) => all(ctx.grid[axis as usize]),
        Special::LaneId => each(|lane| lane),
        Special::WarpId => all(warp.index),
        Special::NWarpId => all(64),
        Special::SmId => all((linear() % u64::from(MULTIPROCESSORS)) as u32),
        Special::NSmId => all(MULTIPROCESSORS),
        Special::LaneMaskEq => each(|lane| 1 << lane),
        Special::LaneMaskLt => each(|lane| (1 << lane) - 1),
        Special::LaneMaskLe => each(|lane| u32::MAX >> (31 - lane)),
        Special::LaneMaskGt => each(|lane| !(u32::MAX >> (31 - lane))),
        Special::LaneMaskGe => each(|lane| u32::MAX << lane),
        Special::Clock => all(clock() as u32),
        Special::ClockHigh => all((clock() >> 32) as u32),
        Special::GlobalTimerLow => all(global_timer() as u32),
        Special::GlobalTimerHigh => all((global_timer() >> 32) as u32),
        Special::DynamicShared => all(ctx.dynamic_shared),
        Special::TotalShared => all(ctx.user_shared),
        Special::ReservedShared(offset) => all(ctx.reserved_shared() + offset),
        Special::Fixed(value) => all(value),
        Special::Clock64 | Special::GlobalTimer | Special::GridId => all(0),
    };
    // SAFETY: lowering gives these registers 32 bits.
    unsafe { frame.store(d, mask, &values) };
}
