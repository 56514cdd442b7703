//! Integer arithmetic; floating point operands are passed on.

use super::function::FunctionLowering;
use super::instruction::Statement;
use super::Result;
use crate::exec::lanes::{lane1, lane2, lane3, lane_carry, sparse2, LaneFn, Operands};
use crate::types::{Kind, Type};

/// Picks by width and sign; the macro body names the type `$T`.
macro_rules! by_int {
    ($statement:expr, $ty:expr, $T:ident => $f:expr) => {
        match ($ty.is_signed(), $ty.bits) {
            (false, 16) => {
                type $T = u16;
                $f
            }
            (true, 16) => {
                type $T = i16;
                $f
            }
            (false, 32) => {
                type $T = u32;
                $f
            }
            (true, 32) => {
                type $T = i32;
                $f
            }
            (false, 64) => {
                type $T = u64;
                $f
            }
            (true, 64) => {
                type $T = i64;
                $f
            }
            _ => return $statement.mods.bad_type($ty),
        }
    };
}

/// Both halves of packed values.
fn halves(a: u32, b: u32, f: impl Fn(u16, u16) -> u16) -> u32 {
    u32::from(f(a as u16, b as u16)) | u32::from(f((a >> 16) as u16, (b >> 16) as u16)) << 16
}

fn wide_u(a: u32, b: u32) -> u64 {
    u64::from(a) * u64::from(b)
}

fn wide_s(a: i32, b: i32) -> i64 {
    i64::from(a) * i64::from(b)
}

fn high_u64(a: u64, b: u64) -> u64 {
    ((u128::from(a) * u128::from(b)) >> 64) as u64
}

fn high_s64(a: i64, b: i64) -> i64 {
    ((i128::from(a) * i128::from(b)) >> 64) as i64
}

impl<'a> FunctionLowering<'_, 'a> {
    /// `add`, `sub`, `mul`, `mad`, `fma`, `div`, `rem`, `abs`, `neg`, `min`, `max`.
    pub fn arithmetic(&mut self, s: &mut Statement<'_, 'a>) -> Result<()> {
        if s.mods.take("cc") {
            return self.carry_chain(s, false, true);
        }
        let Some(ty) = s.mods.try_ty() else {
            return s.mods.fail("the type is missing");
        };
        match ty.kind {
            Kind::Float if ty.bits >= 32 && ty.packed == 1 => self.float_arithmetic(s, ty),
            Kind::Float | Kind::Brain => self.half_arithmetic(s, ty),
            Kind::Unsigned | Kind::Signed => self.int_arithmetic(s, ty),
            _ => s.mods.bad_type(ty),
        }
    }

    /// Destination and sources, all of this type.
    pub fn same_typed(
        &mut self,
        s: &Statement<'_, 'a>,
        ty: Type,
        count: usize,
    ) -> Result<Operands> {
        s.expect_operands(count + 1)?;
        let mut o = Operands {
            d: self.target(&s.operands[0], ty)?,
            ..Operands::default()
        };
        let slots = [&mut o.a, &mut o.b, &mut o.c];
        for (slot, operand) in slots.into_iter().zip(&s.operands[1..]) {
            *slot = self.source(operand, ty)?;
        }
        Ok(o)
    }

    fn int_arithmetic(&mut self, s: &mut Statement<'_, 'a>, ty: Type) -> Result<()> {
        if ty.packed == 2 {
            return self.packed_int(s, ty);
        }
        let saturate = s.mods.take("sat");
        if saturate
            && !(matches!(s.opcode, "add" | "sub" | "mad") && ty == Type::new(Kind::Signed, 32))
        {
            return s.mods.fail("`.sat` needs `.s32`");
        }
        let (f, count): (LaneFn, usize) = match s.opcode {
            "add" if saturate => (lane2(|a: i32, b: i32| a.saturating_add(b)), 2),
            "sub" if saturate => (lane2(|a: i32, b: i32| a.saturating_sub(b)), 2),
            "add" => (
                by_int!(s, ty, T => lane2(|a: T, b: T| a.wrapping_add(b))),
                2,
            ),
            "sub" => (
                by_int!(s, ty, T => lane2(|a: T, b: T| a.wrapping_sub(b))),
                2,
            ),
            "mul" => return self.multiply(s, ty),
            "mad" => return self.multiply_add(s, ty, saturate),
            // The hardware answers a division by zero with all ones, and its remainder with the
            // dividend.
            "div" => (
                by_int!(s, ty, T => sparse2(|a: T, b: T| {
                    if b == 0 { !0 } else { a.wrapping_div(b) }
                })),
                2,
            ),
            "rem" => (
                by_int!(s, ty, T => sparse2(|a: T, b: T| {
                    if b == 0 { a } else { a.wrapping_rem(b) }
                })),
                2,
            ),
            "min" => {
                let relu = s.mods.take("relu");
                if relu && ty != Type::new(Kind::Signed, 32) {
                    return s.mods.fail("`.relu` needs a signed type");
                }
                match relu {
                    true => (lane2(|a: i32, b: i32| a.min(b).max(0)), 2),
                    false => (by_int!(s, ty, T => lane2(|a: T, b: T| a.min(b))), 2),
                }
            }
            "max" => {
                let relu = s.mods.take("relu");
                if relu && ty != Type::new(Kind::Signed, 32) {
                    return s.mods.fail("`.relu` needs a signed type");
                }
                match relu {
                    true => (lane2(|a: i32, b: i32| a.max(b).max(0)), 2),
                    false => (by_int!(s, ty, T => lane2(|a: T, b: T| a.max(b))), 2),
                }
            }
            "abs" if ty.is_signed() => match ty.bits {
                16 => (lane1(|a: i16| a.wrapping_abs()), 1),
                32 => (lane1(|a: i32| a.wrapping_abs()), 1),
                64 => (lane1(|a: i64| a.wrapping_abs()), 1),
                _ => return s.mods.bad_type(ty),
            },
            "neg" if ty.is_signed() => match ty.bits {
                16 => (lane1(|a: i16| a.wrapping_neg()), 1),
                32 => (lane1(|a: i32| a.wrapping_neg()), 1),
                64 => (lane1(|a: i64| a.wrapping_neg()), 1),
                _ => return s.mods.bad_type(ty),
            },
            _ => return s.mods.bad_type(ty),
        };
        let o = self.same_typed(s, ty, count)?;
        self.lanes(f, o);
        Ok(())
    }

    fn packed_int(&mut self, s: &mut Statement<'_, 'a>, ty: Type) -> Result<()> {
        let f = match (s.opcode, ty.is_signed()) {
            ("add", _) => lane2(|a: u32, b: u32| halves(a, b, u16::wrapping_add)),
            ("min", false) => lane2(|a: u32, b: u32| halves(a, b, u16::min)),
            ("max", false) => lane2(|a: u32, b: u32| halves(a, b, u16::max)),
            ("min", true) if s.mods.take("relu") => {
                lane2(|a: u32, b: u32| halves(a, b, |a, b| (a as i16).min(b as i16).max(0) as u16))
            }
            ("max", true) if s.mods.take("relu") => {
                lane2(|a: u32, b: u32| halves(a, b, |a, b| (a as i16).max(b as i16).max(0) as u16))
            }
            ("min", true) => {
                lane2(|a: u32, b: u32| halves(a, b, |a, b| (a as i16).min(b as i16) as u16))
            }
            ("max", true) => {
                lane2(|a: u32, b: u32| halves(a, b, |a, b| (a as i16).max(b as i16) as u16))
            }
            _ => return s.mods.bad_type(ty),
        };
        let o = self.same_typed(s, ty, 2)?;
        self.lanes(f, o);
        Ok(())
    }

    fn multiply(&mut self, s: &mut Statement<'_, 'a>, ty: Type) -> Result<()> {
        if s.mods.take("wide") {
            let o = self.wide_operands(s, ty, 2)?;
            let f = match (ty.is_signed(), ty.bits) {
                (false, 16) => lane2(|a: u16, b: u16| u32::from(a) * u32::from(b)),
                (true, 16) => lane2(|a: i16, b: i16| i32::from(a) * i32::from(b)),
                (false, 32) => lane2(wide_u),
                (true, 32) => lane2(wide_s),
                _ => return s.mods.bad_type(ty),
            };
            self.lanes(f, o);
            return Ok(());
        }
        let f = if s.mods.take("hi") {
            match (ty.is_signed(), ty.bits) {
                (false, 16) => lane2(|a: u16, b: u16| ((u32::from(a) * u32::from(b)) >> 16) as u16),
                (true, 16) => lane2(|a: i16, b: i16| ((i32::from(a) * i32::from(b)) >> 16) as i16),
                (false, 32) => lane2(|a: u32, b: u32| (wide_u(a, b) >> 32) as u32),
                (true, 32) => lane2(|a: i32, b: i32| (wide_s(a, b) >> 32) as i32),
                (false, 64) => lane2(high_u64),
                (true, 64) => lane2(high_s64),
                _ => return s.mods.bad_type(ty),
            }
        } else if s.mods.take("lo") {
            by_int!(s, ty, T => lane2(|a: T, b: T| a.wrapping_mul(b)))
        } else {
            return s.mods.fail("`.lo`, `.hi` or `.wide` is missing");
        };
        let o = self.same_typed(s, ty, 2)?;
        self.lanes(f, o);
        Ok(())
    }

    /// Sources of this type; destination and third source twice as wide.
    fn wide_operands(&mut self, s: &Statement<'_, 'a>, ty: Type, count: usize) -> Result<Operands> {
        s.expect_operands(count + 1)?;
        let double = Type::new(ty.kind, ty.bits * 2);
        Ok(Operands {
            d: self.target(&s.operands[0], double)?,
            a: self.source(&s.operands[1], ty)?,
            b: self.source(&s.operands[2], ty)?,
            c: if count > 2 {
                self.source(&s.operands[3], double)?
            } else {
                0
            },
            ..Operands::default()
        })
    }

    fn multiply_add(&mut self, s: &mut Statement<'_, 'a>, ty: Type, saturate: bool) -> Result<()> {
        if s.mods.take("wide") {
            let o = self.wide_operands(s, ty, 3)?;
            let f = match (ty.is_signed(), ty.bits) {
                (false, 16) => {
                    lane3(|a: u16, b: u16, c: u32| (u32::from(a) * u32::from(b)).wrapping_add(c))
                }
                (true, 16) => {
                    lane3(|a: i16, b: i16, c: i32| (i32::from(a) * i32::from(b)).wrapping_add(c))
                }
                (false, 32) => lane3(|a: u32, b: u32, c: u64| wide_u(a, b).wrapping_add(c)),
                (true, 32) => lane3(|a: i32, b: i32, c: i64| wide_s(a, b).wrapping_add(c)),
                _ => return s.mods.bad_type(ty),
            };
            self.lanes(f, o);
            return Ok(());
        }
        let f = if s.mods.take("hi") {
            match (ty.is_signed(), ty.bits) {
                (true, 32) if saturate => {
                    lane3(|a: i32, b: i32, c: i32| ((wide_s(a, b) >> 32) as i32).saturating_add(c))
                }
                (false, 16) => lane3(|a: u16, b: u16, c: u16| {
                    (((u32::from(a) * u32::from(b)) >> 16) as u16).wrapping_add(c)
                }),
                (true, 16) => lane3(|a: i16, b: i16, c: i16| {
                    (((i32::from(a) * i32::from(b)) >> 16) as i16).wrapping_add(c)
                }),
                (false, 32) => {
                    lane3(|a: u32, b: u32, c: u32| ((wide_u(a, b) >> 32) as u32).wrapping_add(c))
                }
                (true, 32) => {
                    lane3(|a: i32, b: i32, c: i32| ((wide_s(a, b) >> 32) as i32).wrapping_add(c))
                }
                (false, 64) => lane3(|a: u64, b: u64, c: u64| high_u64(a, b).wrapping_add(c)),
                (true, 64) => lane3(|a: i64, b: i64, c: i64| high_s64(a, b).wrapping_add(c)),
                _ => return s.mods.bad_type(ty),
            }
        } else if saturate {
            return s.mods.fail("`.sat` needs `.hi.s32`");
        } else if s.mods.take("lo") {
            by_int!(s, ty, T => lane3(|a: T, b: T, c: T| a.wrapping_mul(b).wrapping_add(c)))
        } else {
            return s.mods.fail("`.lo`, `.hi` or `.wide` is missing");
        };
        let o = self.same_typed(s, ty, 3)?;
        self.lanes(f, o);
        Ok(())
    }

    /// `addc`, `subc`, `madc`, which may set the carry again.
    pub fn carried(&mut self, s: &mut Statement<'_, 'a>) -> Result<()> {
        let sets = s.mods.take("cc");
        self.carry_chain(s, true, sets)
    }

    /// Arithmetic that reads the carry, sets it, or both.
    fn carry_chain(&mut self, s: &mut Statement<'_, 'a>, reads: bool, sets: bool) -> Result<()> {
        let ty = s.mods.ty()?;
        if ty.packed != 1 || !ty.is_int() {
            return s.mods.bad_type(ty);
        }
        let multiply = matches!(s.opcode, "mad" | "madc");
        let high = multiply && s.mods.take("hi");
        if multiply && !high && !s.mods.take("lo") {
            return s.mods.fail("`.lo` or `.hi` is missing");
        }
        macro_rules! chain {
            ($T:ty, $high:expr) => {
                match (s.opcode, reads) {
                    ("add", _) => lane_carry(|a: $T, b: $T, _: $T, _| a.overflowing_add(b)),
                    ("addc", _) => lane_carry(|a: $T, b: $T, _: $T, carry| {
                        let (sum, first) = a.overflowing_add(b);
                        let (sum, second) = sum.overflowing_add(<$T>::from(carry));
                        (sum, first | second)
                    }),
                    // A subtraction adds the complement: the flag is set when nothing is borrowed.
                    ("sub", _) => lane_carry(|a: $T, b: $T, _: $T, _| {
                        let (rest, borrow) = a.overflowing_sub(b);
                        (rest, !borrow)
                    }),
                    ("subc", _) => lane_carry(|a: $T, b: $T, _: $T, carry| {
                        let (rest, first) = a.overflowing_sub(b);
                        let (rest, second) = rest.overflowing_sub(<$T>::from(!carry));
                        (rest, !(first | second))
                    }),
                    (_, false) if high => {
                        lane_carry(|a: $T, b: $T, c: $T, _| $high(a, b).overflowing_add(c))
                    }
                    (_, false) => {
                        lane_carry(|a: $T, b: $T, c: $T, _| a.wrapping_mul(b).overflowing_add(c))
                    }
                    (_, true) if high => lane_carry(|a: $T, b: $T, c: $T, carry| {
                        let (sum, first) = $high(a, b).overflowing_add(c);
                        let (sum, second) = sum.overflowing_add(<$T>::from(carry));
                        (sum, first | second)
                    }),
                    (_, true) => lane_carry(|a: $T, b: $T, c: $T, carry| {
                        let (sum, first) = a.wrapping_mul(b).overflowing_add(c);
                        let (sum, second) = sum.overflowing_add(<$T>::from(carry));
                        (sum, first | second)
                    }),
                }
            };
        }
        fn high_u32(a: u32, b: u32) -> u32 {
            (wide_u(a, b) >> 32) as u32
        }
        fn high_s32(a: u32, b: u32) -> u32 {
            (wide_s(a as i32, b as i32) >> 32) as u32
        }
        fn high_signed64(a: u64, b: u64) -> u64 {
            high_s64(a as i64, b as i64) as u64
        }
        let f = match (ty.bits, ty.is_signed()) {
            (32, false) => chain!(u32, high_u32),
            (32, true) => chain!(u32, high_s32),
            (64, false) => chain!(u64, high_u64),
            (64, true) => chain!(u64, high_signed64),
            _ => return s.mods.bad_type(ty),
        };
        let count = if multiply { 3 } else { 2 };
        let mut o = self.same_typed(s, ty, count)?;
        if !multiply {
            o.c = o.a;
        }
        o.imm = u32::from(sets);
        self.lanes(f, o);
        Ok(())
    }

    /// `mul24`, `mad24`, `sad`, `dp4a`, `dp2a`.
    pub fn special_int(&mut self, s: &mut Statement<'_, 'a>) -> Result<()> {
        match s.opcode {
            "dp4a" => return self.dot_product(s, false),
            "dp2a" => return self.dot_product(s, true),
            _ => {}
        }
        let ty = s.mods.ty()?;
        if ty.packed != 1 {
            return s.mods.bad_type(ty);
        }
        if s.opcode == "sad" {
            let f = by_int!(s, ty, T => lane3(|a: T, b: T, c: T| {
                (if a < b { b.wrapping_sub(a) } else { a.wrapping_sub(b) }).wrapping_add(c)
            }));
            let o = self.same_typed(s, ty, 3)?;
            self.lanes(f, o);
            return Ok(());
        }
        let high = s.mods.take("hi");
        if !high && !s.mods.take("lo") {
            return s.mods.fail("`.lo` or `.hi` is missing");
        }
        fn product_u(a: u32, b: u32) -> u64 {
            wide_u(a & 0xff_ffff, b & 0xff_ffff)
        }
        fn product_s(a: u32, b: u32) -> u64 {
            wide_s((a as i32) << 8 >> 8, (b as i32) << 8 >> 8) as u64
        }
        let f = match (s.opcode, ty.kind, ty.bits, high) {
            ("mul24", Kind::Unsigned, 32, false) => lane2(|a, b| product_u(a, b) as u32),
            ("mul24", Kind::Unsigned, 32, true) => lane2(|a, b| (product_u(a, b) >> 16) as u32),
            ("mul24", Kind::Signed, 32, false) => lane2(|a, b| product_s(a, b) as u32),
            ("mul24", Kind::Signed, 32, true) => lane2(|a, b| (product_s(a, b) >> 16) as u32),
            ("mad24", Kind::Unsigned, 32, false) => {
                lane3(|a, b, c: u32| (product_u(a, b) as u32).wrapping_add(c))
            }
            ("mad24", Kind::Unsigned, 32, true) => {
                lane3(|a, b, c: u32| ((product_u(a, b) >> 16) as u32).wrapping_add(c))
            }
            ("mad24", Kind::Signed, 32, false) => {
                lane3(|a, b, c: u32| (product_s(a, b) as u32).wrapping_add(c))
            }
            ("mad24", Kind::Signed, 32, true) => {
                if s.mods.take("sat") {
                    lane3(|a, b, c: u32| {
                        ((product_s(a, b) >> 16) as i32).saturating_add(c as i32) as u32
                    })
                } else {
                    lane3(|a, b, c: u32| ((product_s(a, b) >> 16) as u32).wrapping_add(c))
                }
            }
            _ => return s.mods.bad_type(ty),
        };
        let count = if s.opcode == "mul24" { 2 } else { 3 };
        let o = self.same_typed(s, ty, count)?;
        self.lanes(f, o);
        Ok(())
    }

    fn dot_product(&mut self, s: &mut Statement<'_, 'a>, two: bool) -> Result<()> {
        let first = s.mods.ty()?;
        let second = s.mods.ty()?;
        if first.bits != 32 || second.bits != 32 || !first.is_int() || !second.is_int() {
            return s.mods.bad_type(first);
        }
        fn byte(word: u32, index: u32, signed: bool) -> i32 {
            let byte = (word >> (8 * index)) as u8;
            if signed {
                i32::from(byte as i8)
            } else {
                i32::from(byte)
            }
        }
        fn half(word: u32, index: u32, signed: bool) -> i32 {
            let half = (word >> (16 * index)) as u16;
            if signed {
                i32::from(half as i16)
            } else {
                i32::from(half)
            }
        }
        fn dot4(a: u32, b: u32, c: u32, signed: (bool, bool)) -> u32 {
            (0..4).fold(c, |sum, i| {
                sum.wrapping_add(byte(a, i, signed.0).wrapping_mul(byte(b, i, signed.1)) as u32)
            })
        }
        fn dot2(a: u32, b: u32, c: u32, from: u32, signed: (bool, bool)) -> u32 {
            (0..2).fold(c, |sum, i| {
                let product = half(a, i, signed.0).wrapping_mul(byte(b, from + i, signed.1));
                sum.wrapping_add(product as u32)
            })
        }
        let high = two && s.mods.take("hi");
        if two && !high && !s.mods.take("lo") {
            return s.mods.fail("`.lo` or `.hi` is missing");
        }
        macro_rules! pick {
            ($signs:expr) => {
                match (two, high) {
                    (false, _) => lane3(|a, b, c| dot4(a, b, c, $signs)),
                    (true, false) => lane3(|a, b, c| dot2(a, b, c, 0, $signs)),
                    (true, true) => lane3(|a, b, c| dot2(a, b, c, 2, $signs)),
                }
            };
        }
        let f = match (first.is_signed(), second.is_signed()) {
            (false, false) => pick!((false, false)),
            (false, true) => pick!((false, true)),
            (true, false) => pick!((true, false)),
            (true, true) => pick!((true, true)),
        };
        let o = self.same_typed(s, Type::B32, 3)?;
        self.lanes(f, o);
        Ok(())
    }
}
