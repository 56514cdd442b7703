//! Registers of a warp, and arithmetic over the lanes of one.
//!
//! A register holds its 32 lanes side by side, so that one dispatch serves them all and the
//! compiler can turn the loop over the lanes into vector instructions. An operation without side
//! effects computes all lanes and stores the active ones.

use std::ptr::NonNull;

/// Lanes of a warp.
pub const LANES: usize = 32;
/// All of them.
pub const ALL: u32 = u32::MAX;

/// Storage of one 32-bit register, or of half of a 64-bit one.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub struct Plane(pub [u32; LANES]);

/// Index of a register's first plane; with [`CONSTANT`] set, in the table of constants.
pub type Slot = u32;
/// Marks a slot in the table of constants.
pub const CONSTANT: Slot = 1 << 31;

/// Index of a predicate register, shifted left by one; the low bit negates.
pub type Pred = u32;

/// Registers of the function that the active lanes are in.
#[derive(Clone, Copy)]
pub struct Frame {
    pub planes: *mut Plane,
    pub preds: *mut u32,
    pub constants: *const Plane,
}

/// Operands of a lane operation: destinations `d` and `e`, sources `a`, `b`, `c` and `x`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Operands {
    pub d: Slot,
    pub e: Slot,
    pub a: Slot,
    pub b: Slot,
    pub c: Slot,
    pub x: Slot,
    pub imm: u32,
}

/// A lane operation.
///
/// # Safety
/// The slots of the operands must lie in the frame and be as wide as the operation expects, which
/// lowering has checked.
pub type LaneFn = unsafe fn(&Frame, &Operands, u32);

/// A value that a lane of a register holds: plain bits of 2, 4, 8 or 16 bytes.
pub trait Lane: Copy + Default + 'static {}
impl Lane for u8 {}
impl Lane for u16 {}
impl Lane for i16 {}
impl Lane for u32 {}
impl Lane for i32 {}
impl Lane for f32 {}
impl Lane for u64 {}
impl Lane for i64 {}
impl Lane for f64 {}
impl Lane for u128 {}

impl Frame {
    /// The lanes of a source.
    ///
    /// # Safety
    /// The slot must lie in this frame, or in the constants, and be wide enough for `T`.
    #[inline(always)]
    pub unsafe fn source<T: Lane>(&self, slot: Slot) -> &[T; LANES] {
        let base = if slot & CONSTANT != 0 {
            self.constants.wrapping_add((slot & !CONSTANT) as usize)
        } else {
            self.planes.wrapping_add(slot as usize).cast_const()
        };
        // SAFETY: the caller says that the slot lies in the table; planes are aligned to 64 bytes.
        unsafe { &*base.cast() }
    }

    /// The lanes of a destination.
    ///
    /// # Safety
    /// As [`Frame::source`], the slot must be no constant, and no other reference to it may live.
    #[inline(always)]
    #[allow(clippy::mut_from_ref)]
    pub unsafe fn target<T: Lane>(&self, slot: Slot) -> &mut [T; LANES] {
        debug_assert!(slot & CONSTANT == 0);
        // SAFETY: the caller says that the slot lies in the frame.
        unsafe { &mut *self.planes.wrapping_add(slot as usize).cast() }
    }

    /// Stores the active lanes.
    ///
    /// # Safety
    /// As [`Frame::target`].
    #[inline(always)]
    pub unsafe fn store<T: Lane>(&self, slot: Slot, mask: u32, values: &[T; LANES]) {
        // SAFETY: passed on.
        let target = unsafe { self.target::<T>(slot) };
        if mask == ALL {
            *target = *values;
        } else {
            for lane in 0..LANES {
                if mask >> lane & 1 != 0 {
                    target[lane] = values[lane];
                }
            }
        }
    }

    /// The lanes in which a predicate holds.
    ///
    /// # Safety
    /// The predicate must lie in this frame.
    #[inline(always)]
    pub unsafe fn pred(&self, pred: Pred) -> u32 {
        // SAFETY: the caller says that the predicate lies in the frame.
        let lanes = unsafe { *self.preds.wrapping_add((pred >> 1) as usize) };
        lanes ^ (pred & 1).wrapping_neg()
    }

    /// Stores the active lanes of a predicate, given by index without the negation bit.
    ///
    /// # Safety
    /// The predicate must lie in this frame.
    #[inline(always)]
    pub unsafe fn set_pred(&self, index: u32, mask: u32, lanes: u32) {
        let place = self.preds.wrapping_add(index as usize);
        // SAFETY: the caller says that the predicate lies in the frame.
        unsafe { *place = (*place & !mask) | (lanes & mask) };
    }
}

/// A closure without captures, made out of its type.
///
/// The constructors below take such a closure by value, so one exists; it has no data to copy.
#[inline(always)]
pub fn conjure<F: Copy>() -> F {
    const {
        assert!(
            size_of::<F>() == 0,
            "a lane operation must not capture anything"
        )
    };
    // SAFETY: reading a value of size zero reads nothing, and `F: Copy` has a value already.
    unsafe { NonNull::<F>::dangling().as_ptr().read() }
}

/// The bits of a slice of bools, lane 0 lowest.
#[inline(always)]
fn pack(lanes: &[bool; LANES]) -> u32 {
    let mut bits = 0;
    for (lane, &set) in lanes.iter().enumerate() {
        bits |= u32::from(set) << lane;
    }
    bits
}

/// Whether the processor has the vector instructions that `choose!` prefers.
#[cfg(target_arch = "x86_64")]
pub fn has_wide_vectors() -> bool {
    is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma")
}

/// Makes one constructor of lane operations: `$name(f)` is the operation that applies `f` to its
/// sources. It exists twice, the second time compiled for wide vectors and fused multiply-add.
macro_rules! lane_constructor {
    ($name:ident, $($source:ident: $field:ident),+) => {
        pub fn $name<$($source: Lane,)+ R: Lane, F: Fn($($source),+) -> R + Copy>(_: F) -> LaneFn {
            #[inline(always)]
            unsafe fn body<$($source: Lane,)+ R: Lane, F: Fn($($source),+) -> R + Copy>(
                frame: &Frame,
                o: &Operands,
                mask: u32,
            ) {
                let f = conjure::<F>();
                let mut out = [R::default(); LANES];
                // SAFETY: the contract of `LaneFn`; the borrows of the sources end before `store`.
                unsafe {
                    $(let $field = frame.source::<$source>(o.$field);)+
                    for lane in 0..LANES {
                        out[lane] = f($($field[lane]),+);
                    }
                    frame.store(o.d, mask, &out);
                }
            }
            unsafe fn run<$($source: Lane,)+ R: Lane, F: Fn($($source),+) -> R + Copy>(
                frame: &Frame,
                o: &Operands,
                mask: u32,
            ) {
                // SAFETY: the contract of `LaneFn`.
                unsafe { body::<$($source,)+ R, F>(frame, o, mask) }
            }
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,fma")]
            unsafe fn wide<$($source: Lane,)+ R: Lane, F: Fn($($source),+) -> R + Copy>(
                frame: &Frame,
                o: &Operands,
                mask: u32,
            ) {
                // SAFETY: the contract of `LaneFn`.
                unsafe { body::<$($source,)+ R, F>(frame, o, mask) }
            }
            #[cfg(target_arch = "x86_64")]
            if has_wide_vectors() {
                return wide::<$($source,)+ R, F>;
            }
            run::<$($source,)+ R, F>
        }
    };
}

lane_constructor!(lane1, A: a);
lane_constructor!(lane2, A: a, B: b);
lane_constructor!(lane3, A: a, B: b, C: c);
lane_constructor!(lane4, A: a, B: b, C: c, X: x);

/// The same for an `f` so slow that only active lanes are to be computed.
macro_rules! sparse_constructor {
    ($sparse:ident, $($source:ident: $field:ident),+) => {
        pub fn $sparse<$($source: Lane,)+ R: Lane, F: Fn($($source),+) -> R + Copy>(
            _: F,
        ) -> LaneFn {
            unsafe fn run<$($source: Lane,)+ R: Lane, F: Fn($($source),+) -> R + Copy>(
                frame: &Frame,
                o: &Operands,
                mask: u32,
            ) {
                let f = conjure::<F>();
                let mut out = [R::default(); LANES];
                // SAFETY: the contract of `LaneFn`; the borrows of the sources end before `store`.
                unsafe {
                    $(let $field = frame.source::<$source>(o.$field);)+
                    for lane in 0..LANES {
                        if mask >> lane & 1 != 0 {
                            out[lane] = f($($field[lane]),+);
                        }
                    }
                    frame.store(o.d, mask, &out);
                }
            }
            run::<$($source,)+ R, F>
        }
    };
}

sparse_constructor!(sparse1, A: a);
sparse_constructor!(sparse2, A: a, B: b);

/// `f(a, b, c, imm)`.
pub fn lane3_imm<A: Lane, R: Lane, F: Fn(A, A, A, u32) -> R + Copy>(_: F) -> LaneFn {
    unsafe fn run<A: Lane, R: Lane, F: Fn(A, A, A, u32) -> R + Copy>(
        frame: &Frame,
        o: &Operands,
        mask: u32,
    ) {
        let f = conjure::<F>();
        let mut out = [R::default(); LANES];
        // SAFETY: the contract of `LaneFn`; the borrows of the sources end before `store`.
        unsafe {
            let a = frame.source::<A>(o.a);
            let b = frame.source::<A>(o.b);
            let c = frame.source::<A>(o.c);
            for lane in 0..LANES {
                out[lane] = f(a[lane], b[lane], c[lane], o.imm);
            }
            frame.store(o.d, mask, &out);
        }
    }
    run::<A, R, F>
}

/// `d = c ? a : b`, where `c` is a predicate.
pub fn lane_select<T: Lane>() -> LaneFn {
    unsafe fn run<T: Lane>(frame: &Frame, o: &Operands, mask: u32) {
        let mut out = [T::default(); LANES];
        // SAFETY: the contract of `LaneFn`.
        unsafe {
            let (a, b, choice) = (
                frame.source::<T>(o.a),
                frame.source::<T>(o.b),
                frame.pred(o.c),
            );
            for lane in 0..LANES {
                out[lane] = if choice >> lane & 1 != 0 {
                    a[lane]
                } else {
                    b[lane]
                };
            }
            frame.store(o.d, mask, &out);
        }
    }
    run::<T>
}

/// How the result of a comparison is combined with a third predicate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BoolOp {
    None,
    And,
    Or,
    Xor,
}

/// Where a comparison sends its result: `imm` holds the [`BoolOp`], whether there is a second
/// destination, and in `x` the third predicate.
pub const SECOND_PRED: u32 = 1 << 8;

/// # Safety
/// As [`LaneFn`].
#[inline(always)]
unsafe fn store_comparison(frame: &Frame, o: &Operands, mask: u32, result: u32) {
    // SAFETY: passed on.
    unsafe {
        let combine = |result: u32| match o.imm & 0xff {
            0 => result,
            1 => result & frame.pred(o.x),
            2 => result | frame.pred(o.x),
            _ => result ^ frame.pred(o.x),
        };
        let (first, second) = (combine(result), combine(!result));
        frame.set_pred(o.d, mask, first);
        if o.imm & SECOND_PRED != 0 {
            frame.set_pred(o.e, mask, second);
        }
    }
}

/// A comparison into predicates.
pub fn lane_compare<T: Lane, F: Fn(T, T) -> bool + Copy>(_: F) -> LaneFn {
    unsafe fn run<T: Lane, F: Fn(T, T) -> bool + Copy>(frame: &Frame, o: &Operands, mask: u32) {
        let f = conjure::<F>();
        let mut out = [false; LANES];
        // SAFETY: the contract of `LaneFn`.
        unsafe {
            let (a, b) = (frame.source::<T>(o.a), frame.source::<T>(o.b));
            for lane in 0..LANES {
                out[lane] = f(a[lane], b[lane]);
            }
            store_comparison(frame, o, mask, pack(&out));
        }
    }
    run::<T, F>
}

/// A comparison of both halves of packed values, into two predicates.
pub fn lane_compare_halves<F: Fn(u16, u16) -> bool + Copy>(_: F) -> LaneFn {
    unsafe fn run<F: Fn(u16, u16) -> bool + Copy>(frame: &Frame, o: &Operands, mask: u32) {
        let f = conjure::<F>();
        let (mut low, mut high) = ([false; LANES], [false; LANES]);
        // SAFETY: the contract of `LaneFn`.
        unsafe {
            let (a, b) = (frame.source::<u32>(o.a), frame.source::<u32>(o.b));
            for lane in 0..LANES {
                low[lane] = f(a[lane] as u16, b[lane] as u16);
                high[lane] = f((a[lane] >> 16) as u16, (b[lane] >> 16) as u16);
            }

            let (low, high) = (pack(&low), pack(&high));
            let combine = |result: u32| match o.imm & 0xff {
                0 => result,
                1 => result & frame.pred(o.x),
                2 => result | frame.pred(o.x),
                _ => result ^ frame.pred(o.x),
            };
            let (low, high) = (combine(low), combine(high));
            frame.set_pred(o.d, mask, low);
            if o.imm & SECOND_PRED != 0 {
                frame.set_pred(o.e, mask, high);
            }
        }
    }
    run::<F>
}

/// A comparison whose result, combined with a third predicate, is a value: `yes` or zero.
pub fn lane_set<T: Lane, R: Lane, F, Y>(_: F, _: Y) -> LaneFn
where
    F: Fn(T, T) -> bool + Copy,
    Y: Fn() -> R + Copy,
{
    unsafe fn run<T: Lane, R: Lane, F, Y>(frame: &Frame, o: &Operands, mask: u32)
    where
        F: Fn(T, T) -> bool + Copy,
        Y: Fn() -> R + Copy,
    {
        let (f, yes) = (conjure::<F>(), conjure::<Y>()());
        let mut out = [R::default(); LANES];
        // SAFETY: the contract of `LaneFn`.
        unsafe {
            let (a, b) = (frame.source::<T>(o.a), frame.source::<T>(o.b));
            let third = if o.imm & 0xff == 0 {
                0
            } else {
                frame.pred(o.x)
            };
            for lane in 0..LANES {
                let (first, third) = (f(a[lane], b[lane]), third >> lane & 1 != 0);
                let holds = match o.imm & 0xff {
                    0 => first,
                    1 => first & third,
                    2 => first | third,
                    _ => first ^ third,
                };
                out[lane] = if holds { yes } else { R::default() };
            }
            frame.store(o.d, mask, &out);
        }
    }
    run::<T, R, F, Y>
}

/// A test of one value into a predicate.
pub fn lane_test<T: Lane, F: Fn(T) -> bool + Copy>(_: F) -> LaneFn {
    unsafe fn run<T: Lane, F: Fn(T) -> bool + Copy>(frame: &Frame, o: &Operands, mask: u32) {
        let f = conjure::<F>();
        let mut out = [false; LANES];
        // SAFETY: the contract of `LaneFn`.
        unsafe {
            let a = frame.source::<T>(o.a);
            for lane in 0..LANES {
                out[lane] = f(a[lane]);
            }
            frame.set_pred(o.d, mask, pack(&out));
        }
    }
    run::<T, F>
}

/// Arithmetic with a carry: `f(a, b, c, carry in)` gives the result and the carry out, which is
/// stored if `imm` is not zero. The carry is predicate 0 of the frame.
pub fn lane_carry<T: Lane, F: Fn(T, T, T, bool) -> (T, bool) + Copy>(_: F) -> LaneFn {
    unsafe fn run<T: Lane, F: Fn(T, T, T, bool) -> (T, bool) + Copy>(
        frame: &Frame,
        o: &Operands,
        mask: u32,
    ) {
        let f = conjure::<F>();
        let (mut out, mut carry) = ([T::default(); LANES], [false; LANES]);
        // SAFETY: the contract of `LaneFn`.
        unsafe {
            let a = frame.source::<T>(o.a);
            let b = frame.source::<T>(o.b);
            let c = frame.source::<T>(o.c);
            let carry_in = frame.pred(0);
            for lane in 0..LANES {
                (out[lane], carry[lane]) = f(a[lane], b[lane], c[lane], carry_in >> lane & 1 != 0);
            }
            frame.store(o.d, mask, &out);
            if o.imm != 0 {
                frame.set_pred(0, mask, pack(&carry));
            }
        }
    }
    run::<T, F>
}

/// Predicate logic: `f(a, b)` over whole predicates.
pub fn pred_logic<F: Fn(u32, u32) -> u32 + Copy>(_: F) -> LaneFn {
    unsafe fn run<F: Fn(u32, u32) -> u32 + Copy>(frame: &Frame, o: &Operands, mask: u32) {
        // SAFETY: the contract of `LaneFn`.
        unsafe { frame.set_pred(o.d, mask, conjure::<F>()(frame.pred(o.a), frame.pred(o.b))) };
    }
    run::<F>
}

/// One value taken apart: `f(a, i)` is element `i` of `count`, and the destinations are `d`, `e`,
/// and for four of them `b` and `c`.
pub fn lane_split<A: Lane, R: Lane, F: Fn(A, u32) -> R + Copy>(_: F) -> LaneFn {
    unsafe fn run<A: Lane, R: Lane, F: Fn(A, u32) -> R + Copy>(
        frame: &Frame,
        o: &Operands,
        mask: u32,
    ) {
        let f = conjure::<F>();
        // SAFETY: the contract of `LaneFn`; the source is copied first, since a destination may
        // be the same register.
        unsafe {
            let a = *frame.source::<A>(o.a);
            for (index, &slot) in [o.d, o.e, o.b, o.c].iter().take(o.imm as usize).enumerate() {
                let mut out = [R::default(); LANES];
                for lane in 0..LANES {
                    out[lane] = f(a[lane], index as u32);
                }
                frame.store(slot, mask, &out);
            }
        }
    }
    run::<A, R, F>
}
