//! Moving values between memory and registers, and atomic operations on memory.
//!
//! Kernels race with each other and with the host as they do on a GPU, so every access to memory is
//! a relaxed atomic one. On the usual machines that is a plain load or store.

use super::lanes::{Frame, Lane, Slot, LANES};
use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, AtomicU8, Ordering::Relaxed};

/// Host addresses of the lanes' accesses.
pub type Pointers = [*mut u8; LANES];

/// Moves one element of each active lane: its address is the lane's pointer plus the offset.
///
/// # Safety
/// The pointers of the active lanes must be valid for the element at this offset and aligned to it;
/// the slot must lie in the frame.
pub type Transfer = unsafe fn(&Frame, Slot, u32, &Pointers, usize);

/// An atomic operation on memory with one or two operands; the result is the old value.
///
/// # Safety
/// The pointer must be valid and aligned.
pub type Atomic = unsafe fn(*mut u8, u128, u128) -> u128;

/// A value in memory.
pub trait Word: Lane {
    /// # Safety
    /// The pointer must be valid and aligned.
    unsafe fn load(from: *mut u8) -> Self;
    /// # Safety
    /// The pointer must be valid and aligned.
    unsafe fn store(self, to: *mut u8);
}

macro_rules! word {
    ($ty:ty, $atomic:ty) => {
        impl Word for $ty {
            #[inline(always)]
            unsafe fn load(from: *mut u8) -> Self {
                // SAFETY: the caller says that the pointer is valid and aligned.
                unsafe { <$atomic>::from_ptr(from.cast()) }.load(Relaxed)
            }
            #[inline(always)]
            unsafe fn store(self, to: *mut u8) {
                // SAFETY: the caller says that the pointer is valid and aligned.
                unsafe { <$atomic>::from_ptr(to.cast()) }.store(self, Relaxed)
            }
        }
    };
}

word!(u8, AtomicU8);
word!(u16, AtomicU16);
word!(u32, AtomicU32);
word!(u64, AtomicU64);

impl Word for u128 {
    #[inline(always)]
    unsafe fn load(from: *mut u8) -> Self {
        // SAFETY: both halves lie in the 16 bytes that the caller vouches for.
        let (low, high) = unsafe { (u64::load(from), u64::load(from.wrapping_add(8))) };
        u128::from(low) | u128::from(high) << 64
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: both halves lie in the 16 bytes that the caller vouches for.
        unsafe {
            (self as u64).store(to);
            ((self >> 64) as u64).store(to.wrapping_add(8));
        }
    }
}

/// A load of a `W`, converted to what the register holds.
pub fn load<W: Word, R: Lane, F: Fn(W) -> R + Copy>(convert: F) -> Transfer {
    let _ = convert;
    unsafe fn run<W: Word, R: Lane, F: Fn(W) -> R + Copy>(
        frame: &Frame,
        slot: Slot,
        mask: u32,
        pointers: &Pointers,
        offset: usize,
    ) {
        let convert = super::lanes::conjure::<F>();
        // SAFETY: the contract of `Transfer`.
        unsafe {
            let target = frame.target::<R>(slot);
            if mask == u32::MAX {
                for lane in 0..LANES {
                    target[lane] = convert(W::load(pointers[lane].wrapping_add(offset)));
                }
                return;
            }
            for lane in 0..LANES {
                if mask >> lane & 1 != 0 {
                    target[lane] = convert(W::load(pointers[lane].wrapping_add(offset)));
                }
            }
        }
    }
    run::<W, R, F>
}

/// A store of the low bits of a register.
pub fn store<W: Word, R: Lane, F: Fn(R) -> W + Copy>(convert: F) -> Transfer {
    let _ = convert;
    unsafe fn run<W: Word, R: Lane, F: Fn(R) -> W + Copy>(
        frame: &Frame,
        slot: Slot,
        mask: u32,
        pointers: &Pointers,
        offset: usize,
    ) {
        let convert = super::lanes::conjure::<F>();
        // SAFETY: the contract of `Transfer`.
        unsafe {
            let source = frame.source::<R>(slot);
            for lane in 0..LANES {
                if mask >> lane & 1 != 0 {
                    convert(source[lane]).store(pointers[lane].wrapping_add(offset));
                }
            }
        }
    }
    run::<W, R, F>
}

/// An atomic operation by compare-and-swap; `f` gets the old value and both operands.
macro_rules! atomic_constructor {
    ($name:ident, $ty:ty, $atomic:ty) => {
        pub fn $name<F: Fn($ty, $ty, $ty) -> $ty + Copy>(_: F) -> Atomic {
            unsafe fn run<F: Fn($ty, $ty, $ty) -> $ty + Copy>(
                at: *mut u8,
                b: u128,
                c: u128,
            ) -> u128 {
                let f = super::lanes::conjure::<F>();
                // SAFETY: the contract of `Atomic`.
                let place = unsafe { <$atomic>::from_ptr(at.cast()) };
                let mut old = place.load(Relaxed);
                loop {
                    let new = f(old, b as $ty, c as $ty);
                    match place.compare_exchange_weak(old, new, Relaxed, Relaxed) {
                        Ok(_) => return u128::from(old),
                        Err(now) => old = now,
                    }
                }
            }
            run::<F>
        }
    };
}

atomic_constructor!(atomic16, u16, AtomicU16);
atomic_constructor!(atomic32, u32, AtomicU32);
atomic_constructor!(atomic64, u64, AtomicU64);

/// An addition, which hardware does in one instruction.
pub fn atomic_add32() -> Atomic {
    unsafe fn run(at: *mut u8, b: u128, _: u128) -> u128 {
        // SAFETY: the contract of `Atomic`.
        let place = unsafe { AtomicU32::from_ptr(at.cast()) };
        u128::from(place.fetch_add(b as u32, Relaxed))
    }
    run
}

/// Sixteen bytes at a time have no portable atomic operation: they take turns at a lock, which only
/// other operations of this size respect.
pub fn atomic128<F: Fn(u128, u128, u128) -> u128 + Copy>(_: F) -> Atomic {
    unsafe fn run<F: Fn(u128, u128, u128) -> u128 + Copy>(at: *mut u8, b: u128, c: u128) -> u128 {
        static LOCK: std::sync::Mutex<()> = std::sync::Mutex::new(());
        let _turn = LOCK.lock().unwrap_or_else(|e| e.into_inner());
        // SAFETY: the contract of `Atomic`.
        unsafe {
            let old = u128::load(at);
            super::lanes::conjure::<F>()(old, b, c).store(at);
            old
        }
    }
    run::<F>
}
