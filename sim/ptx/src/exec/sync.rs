//! What the threads of a warp do together, once they have met.

use super::code::{SyncKind, SyncOp};
use super::lanes::{Frame, LANES};
use super::memory::lanes_of;

/// Runs the operation for the lanes of a set, all of which take part.
pub fn together(op: &SyncOp, frame: &Frame, set: u32) {
    match op.kind {
        SyncKind::Barrier => {}
        SyncKind::ShuffleUp
        | SyncKind::ShuffleDown
        | SyncKind::ShuffleButterfly
        | SyncKind::ShuffleIndex => shuffle(op, frame, set),
        SyncKind::VoteAll | SyncKind::VoteAny | SyncKind::VoteUniform | SyncKind::VoteBallot => {
            vote(op, frame, set);
        }
        SyncKind::MatchAny | SyncKind::MatchAll => matching(op, frame, set),
        SyncKind::Elect => {
            let leader = set.trailing_zeros();
            // SAFETY: lowering has checked the operands.
            unsafe {
                frame.store(op.d, set, &[leader; LANES]);
                if op.p != 0 {
                    frame.set_pred(op.p, set, 1 << leader);
                }
            }
        }
        _ => reduce(op, frame, set),
    }
}

fn shuffle(op: &SyncOp, frame: &Frame, set: u32) {
    // SAFETY: lowering has checked that the operands are 32-bit registers.
    let (a, b, c) = unsafe {
        (
            *frame.source::<u32>(op.a),
            *frame.source::<u32>(op.b),
            *frame.source::<u32>(op.c),
        )
    };
    let mut values = [0u32; LANES];
    let mut inside = 0;
    for lane in lanes_of(set) {
        let this = lane as u32;
        let (distance, clamp, segment) = (b[lane] & 31, c[lane] & 31, c[lane] >> 8 & 31);
        let highest = this & segment | clamp & !segment;
        let (from, valid) = match op.kind {
            SyncKind::ShuffleUp => {
                let from = this.wrapping_sub(distance);
                (from, from as i32 >= highest as i32)
            }
            SyncKind::ShuffleDown => (this + distance, this + distance <= highest),
            SyncKind::ShuffleButterfly => (this ^ distance, this ^ distance <= highest),
            _ => {
                let from = this & segment | distance & !segment;
                (from, from <= highest)
            }
        };
        let from = if valid { from } else { this };
        values[lane] = a[from as usize & 31];
        inside |= u32::from(valid) << lane;
    }
    // SAFETY: lowering has checked the destinations.
    unsafe {
        frame.store(op.d, set, &values);
        if op.p != 0 {
            frame.set_pred(op.p, set, inside);
        }
    }
}

fn vote(op: &SyncOp, frame: &Frame, set: u32) {
    // SAFETY: lowering has checked the operands.
    unsafe {
        let yes = frame.pred(op.a) & set;
        match op.kind {
            SyncKind::VoteBallot => frame.store(op.d, set, &[yes; LANES]),
            SyncKind::VoteAll => frame.set_pred(op.p, set, if yes == set { set } else { 0 }),
            SyncKind::VoteAny => frame.set_pred(op.p, set, if yes != 0 { set } else { 0 }),
            _ => frame.set_pred(op.p, set, if yes == set || yes == 0 { set } else { 0 }),
        }
    }
}

fn matching(op: &SyncOp, frame: &Frame, set: u32) {
    // SAFETY: lowering has checked the width of the source.
    let value = |lane: usize| unsafe {
        match op.wide {
            true => frame.source::<u64>(op.a)[lane],
            false => u64::from(frame.source::<u32>(op.a)[lane]),
        }
    };
    let mut same = [0u32; LANES];
    for lane in lanes_of(set) {
        for other in lanes_of(set) {
            same[lane] |= u32::from(value(lane) == value(other)) << other;
        }
    }
    // SAFETY: lowering has checked the destinations.
    unsafe {
        if op.kind == SyncKind::MatchAny {
            frame.store(op.d, set, &same);
            return;
        }
        let agreed = lanes_of(set).all(|lane| same[lane] == set);
        frame.store(op.d, set, &[if agreed { set } else { 0 }; LANES]);
        if op.p != 0 {
            frame.set_pred(op.p, set, if agreed { set } else { 0 });
        }
    }
}

fn reduce(op: &SyncOp, frame: &Frame, set: u32) {
    // SAFETY: lowering has checked that the source is a 32-bit register.
    let a = unsafe { *frame.source::<u32>(op.a) };
    let f: fn(u32, u32) -> u32 = match op.kind {
        SyncKind::ReduceAdd => u32::wrapping_add,
        SyncKind::ReduceMin => u32::min,
        SyncKind::ReduceMax => u32::max,
        SyncKind::ReduceSignedMin => |a, b| (a as i32).min(b as i32) as u32,
        SyncKind::ReduceSignedMax => |a, b| (a as i32).max(b as i32) as u32,
        SyncKind::ReduceAnd => |a, b| a & b,
        SyncKind::ReduceOr => |a, b| a | b,
        _ => |a, b| a ^ b,
    };
    let result = lanes_of(set).map(|lane| a[lane]).reduce(f).unwrap_or(0);
    // SAFETY: lowering has checked the destination.
    unsafe { frame.store(op.d, set, &[result; LANES]) };
}
