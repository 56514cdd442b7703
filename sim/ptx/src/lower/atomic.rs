//! Which routine does an atomic operation.

use crate::exec::access::{atomic128, atomic16, atomic32, atomic64, atomic_add32, Atomic};
use crate::exec::num::float::{self, canonical, flush, hand_on, Operation};
use crate::exec::num::half;
use crate::types::{Kind, Type};

/// The routines for an atomic operation, in global and in shared memory.
///
/// Global memory adds floats in the cache, by rules of its own: `f32` is flushed, and an `f64` that
/// is NaN stays as it is, the added one before the one in memory. Shared memory has no such unit: there the ordinary addition and a
/// compare-and-swap take turns.
pub fn atomic(name: &str, ty: Type, noftz: bool, count: usize) -> Option<(Atomic, Atomic)> {
    let routine = routine(name, ty, noftz, count)?;
    Some(match (name, ty.kind, ty.bits / ty.packed) {
        ("add", Kind::Float, 32) => (
            atomic32(|old, b, _| {
                let sum = flush(f32::from_bits(old)) + flush(f32::from_bits(b));
                flush(canonical(sum)).to_bits()
            }),
            routine,
        ),
        ("add", Kind::Float, 64) => (
            atomic64(|old, b, _| {
                let [x, y] = [old, b].map(f64::from_bits);
                match (x.is_nan(), y.is_nan()) {
                    (_, true) => b,
                    (true, false) => old,
                    (false, false) => hand_on(x + y, [x, y]).to_bits(),
                }
            }),
            routine,
        ),
        _ => (routine, routine),
    })
}

fn routine(name: &str, ty: Type, noftz: bool, count: usize) -> Option<Atomic> {
    let half = ty.is_float() && ty.bits / ty.packed == 16;
    if noftz != (half && name == "add") && !(half && count > 1) {
        return None;
    }
    Some(match (name, ty.kind, ty.bits) {
        ("exch", _, 16) if ty.kind == Kind::Bits => atomic16(|_, b, _| b),
        ("exch", Kind::Bits | Kind::Unsigned | Kind::Signed, 32) => atomic32(|_, b, _| b),
        ("exch", Kind::Bits | Kind::Unsigned | Kind::Signed, 64) => atomic64(|_, b, _| b),
        ("exch", Kind::Bits, 128) => atomic128(|_, b, _| b),
        ("cas", Kind::Bits, 16) => atomic16(|old, b, c| if old == b { c } else { old }),
        ("cas", Kind::Bits | Kind::Unsigned | Kind::Signed, 32) => {
            atomic32(|old, b, c| if old == b { c } else { old })
        }
        ("cas", Kind::Bits | Kind::Unsigned | Kind::Signed, 64) => {
            atomic64(|old, b, c| if old == b { c } else { old })
        }
        ("cas", Kind::Bits, 128) => atomic128(|old, b, c| if old == b { c } else { old }),
        ("and", Kind::Bits, 32) => atomic32(|old, b, _| old & b),
        ("or", Kind::Bits, 32) => atomic32(|old, b, _| old | b),
        ("xor", Kind::Bits, 32) => atomic32(|old, b, _| old ^ b),
        ("and", Kind::Bits, 64) => atomic64(|old, b, _| old & b),
        ("or", Kind::Bits, 64) => atomic64(|old, b, _| old | b),
        ("xor", Kind::Bits, 64) => atomic64(|old, b, _| old ^ b),
        ("add", Kind::Unsigned | Kind::Signed, 32) => atomic_add32(),
        ("add", Kind::Unsigned | Kind::Signed, 64) => atomic64(|old, b, _| old.wrapping_add(b)),
        ("inc", Kind::Unsigned, 32) => atomic32(|old, b, _| if old >= b { 0 } else { old + 1 }),
        ("dec", Kind::Unsigned, 32) => {
            atomic32(|old, b, _| if old == 0 || old > b { b } else { old - 1 })
        }
        ("min", Kind::Unsigned, 32) => atomic32(|old, b, _| old.min(b)),
        ("max", Kind::Unsigned, 32) => atomic32(|old, b, _| old.max(b)),
        ("min", Kind::Signed, 32) => atomic32(|old, b, _| (old as i32).min(b as i32) as u32),
        ("max", Kind::Signed, 32) => atomic32(|old, b, _| (old as i32).max(b as i32) as u32),
        ("min", Kind::Unsigned, 64) => atomic64(|old, b, _| old.min(b)),
        ("max", Kind::Unsigned, 64) => atomic64(|old, b, _| old.max(b)),
        ("min", Kind::Signed, 64) => atomic64(|old, b, _| (old as i64).min(b as i64) as u64),
        ("max", Kind::Signed, 64) => atomic64(|old, b, _| (old as i64).max(b as i64) as u64),
        ("add", Kind::Float, 32) if ty.packed == 1 => {
            atomic32(|old, b, _| canonical(f32::from_bits(old) + f32::from_bits(b)).to_bits())
        }
        ("add", Kind::Float, 64) => atomic64(|old, b, _| {
            let [x, y] = [old, b].map(f64::from_bits);
            hand_on(x + y, [x, y]).to_bits()
        }),
        ("add", Kind::Float, 32) => {
            atomic32(|old, b, _| half::arithmetic(Operation::Add, old, b, 0, half::PAIR))
        }
        ("add", Kind::Brain, 32) => atomic32(|old, b, _| {
            half::arithmetic(Operation::Add, old, b, 0, half::PAIR | half::BRAIN)
        }),
        ("add", Kind::Float, 16) => atomic16(|old, b, _| {
            half::arithmetic(Operation::Add, u32::from(old), u32::from(b), 0, 0) as u16
        }),
        ("add", Kind::Brain, 16) => atomic16(|old, b, _| {
            half::arithmetic(Operation::Add, u32::from(old), u32::from(b), 0, half::BRAIN) as u16
        }),
        ("min" | "max", Kind::Float | Kind::Brain, 16 | 32) if count > 1 => {
            return half_extreme(name == "max", ty);
        }
        _ => return None,
    })
}

/// `min` and `max` of vectors of halves.
fn half_extreme(max: bool, ty: Type) -> Option<Atomic> {
    macro_rules! pick {
        ($flags:expr) => {
            match ty.bits {
                16 => {
                    atomic16(|old, b, _| half::extreme(u32::from(old), u32::from(b), $flags) as u16)
                }
                _ => atomic32(|old, b, _| half::extreme(old, b, $flags | half::PAIR)),
            }
        };
    }
    if ty.bits == 32 && ty.packed == 1 {
        return None;
    }
    Some(match (max, ty.kind) {
        (false, Kind::Float) => pick!(0),
        (true, Kind::Float) => pick!(float::MAX),
        (false, _) => pick!(half::BRAIN),
        (true, _) => pick!(half::BRAIN | float::MAX),
    })
}
