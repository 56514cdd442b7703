//! Exact floating point arithmetic by integers, for any format and rounding mode.
//!
//! The processor rounds to nearest. The other modes, and the formats that it lacks, go through here:
//! an exact result (with a sticky bit for what is beyond 128 bits) is rounded once.

/// A rounding mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounding {
    Nearest,
    Zero,
    Down,
    Up,
    /// To nearest, ties away from zero.
    Away,
}

impl Rounding {
    /// The mode by the number that [`Rounding::code`] gives.
    #[inline]
    pub fn from_code(code: u32) -> Rounding {
        match code & 7 {
            0 => Rounding::Nearest,
            1 => Rounding::Zero,
            2 => Rounding::Down,
            3 => Rounding::Up,
            _ => Rounding::Away,
        }
    }

    pub fn code(self) -> u32 {
        self as u32
    }
}

/// A binary interchange format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    pub exponent: u32,
    pub mantissa: u32,
    /// The all-ones exponent holds numbers, and only the last of them is NaN (`e4m3`).
    pub finite: bool,
}

pub const F64: Format = Format {
    exponent: 11,
    mantissa: 52,
    finite: false,
};
pub const F32: Format = Format {
    exponent: 8,
    mantissa: 23,
    finite: false,
};
pub const F16: Format = Format {
    exponent: 5,
    mantissa: 10,
    finite: false,
};
pub const BF16: Format = Format {
    exponent: 8,
    mantissa: 7,
    finite: false,
};
pub const E4M3: Format = Format {
    exponent: 4,
    mantissa: 3,
    finite: true,
};
pub const E5M2: Format = Format {
    exponent: 5,
    mantissa: 2,
    finite: false,
};

impl Format {
    pub fn bias(self) -> i32 {
        (1 << (self.exponent - 1)) - 1
    }

    fn top(self) -> u64 {
        (1 << self.exponent) - 1
    }

    pub fn sign_bit(self) -> u64 {
        1 << (self.exponent + self.mantissa)
    }

    pub fn infinity(self) -> u64 {
        self.top() << self.mantissa
    }

    /// The largest finite number.
    pub fn largest(self) -> u64 {
        if self.finite {
            self.sign_bit() - 2
        } else {
            self.infinity() - 1
        }
    }

    /// The NaN that operations make.
    pub fn nan(self) -> u64 {
        self.sign_bit() - 1
    }
}

/// A number taken apart: `sig * 2^exp`.
#[derive(Clone, Copy, Debug)]
pub struct Exact {
    pub negative: bool,
    pub sig: u128,
    pub exp: i32,
    /// The true value is a little larger in magnitude.
    pub sticky: bool,
}

/// What the bits of a format stand for.
#[derive(Clone, Copy, Debug)]
pub enum Value {
    Nan,
    Infinite(bool),
    Finite(Exact),
}

pub fn unpack(bits: u64, format: Format) -> Value {
    let negative = bits & format.sign_bit() != 0;
    let field = bits >> format.mantissa & format.top();
    let mantissa = bits & ((1 << format.mantissa) - 1);
    let lowest = 1 - format.bias() - format.mantissa as i32;
    if field == format.top() {
        if format.finite {
            if mantissa == (1 << format.mantissa) - 1 {
                return Value::Nan;
            }
        } else if mantissa != 0 {
            return Value::Nan;
        } else {
            return Value::Infinite(negative);
        }
    }
    let (sig, exp) = match field {
        0 => (mantissa, lowest),
        _ => (mantissa | 1 << format.mantissa, lowest + field as i32 - 1),
    };
    Value::Finite(Exact {
        negative,
        sig: u128::from(sig),
        exp,
        sticky: false,
    })
}

/// Whether a magnitude between two neighbours goes to the upper one: `rest` compares what is cut off
/// with one half.
fn rounds_up(rest: Rest, odd: bool, negative: bool, mode: Rounding) -> bool {
    match mode {
        Rounding::Nearest => rest == Rest::More || rest == Rest::Half && odd,
        Rounding::Away => rest == Rest::More || rest == Rest::Half,
        Rounding::Zero => false,
        Rounding::Down => negative && rest != Rest::None,
        Rounding::Up => !negative && rest != Rest::None,
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Rest {
    None,
    Less,
    Half,
    More,
}

/// Drops `shift` low bits.
fn split(sig: u128, shift: u32, sticky: bool) -> (u128, Rest) {
    if shift == 0 {
        return (sig, if sticky { Rest::Less } else { Rest::None });
    }
    if shift > 128 {
        return (
            0,
            if sig != 0 || sticky {
                Rest::Less
            } else {
                Rest::None
            },
        );
    }
    let half = 1u128 << (shift - 1);
    let cut = if shift == 128 {
        sig
    } else {
        sig & ((1 << shift) - 1)
    };
    let kept = if shift == 128 { 0 } else { sig >> shift };
    let rest = match cut.cmp(&half) {
        std::cmp::Ordering::Greater => Rest::More,
        std::cmp::Ordering::Equal if sticky => Rest::More,
        std::cmp::Ordering::Equal => Rest::Half,
        _ if cut == 0 && !sticky => Rest::None,
        _ => Rest::Less,
    };
    (kept, rest)
}

/// Rounds to a format. A zero keeps its sign.
pub fn round(x: Exact, format: Format, mode: Rounding) -> u64 {
    let sign = if x.negative { format.sign_bit() } else { 0 };
    let (sig, exp) = match (x.sig, x.sticky) {
        (0, false) => return sign,
        // Less than anything that the format can hold.
        (0, true) => (1, -100_000),
        (sig, _) => (sig, x.exp),
    };
    let mantissa = format.mantissa as i32;
    let lowest = 1 - format.bias() - mantissa;
    let top = exp + 127 - sig.leading_zeros() as i32;
    let mut quantum = (top - mantissa).max(lowest);
    let (mut kept, rest) = match quantum - exp {
        shift if shift >= 0 => split(sig, shift as u32, x.sticky),
        shift => (
            sig << -shift,
            if x.sticky { Rest::Less } else { Rest::None },
        ),
    };
    if rounds_up(rest, kept & 1 != 0, x.negative, mode) {
        kept += 1;
    }
    if kept >> (mantissa + 1) != 0 {
        kept >>= 1;
        quantum += 1;
    }
    if kept >> mantissa == 0 {
        return sign | kept as u64;
    }
    let field = (quantum - lowest + 1) as u64;
    let bits = (field << mantissa) + (kept as u64 - (1 << mantissa));
    if bits <= format.largest() && field <= format.top() {
        return sign | bits;
    }
    let inward = match mode {
        Rounding::Nearest | Rounding::Away => false,
        Rounding::Zero => true,
        Rounding::Down => !x.negative,
        Rounding::Up => x.negative,
    };
    match (inward, format.finite) {
        (true, _) => sign | format.largest(),
        (false, true) => sign | format.nan(),
        (false, false) => sign | format.infinity(),
    }
}

/// The product, exactly.
pub fn mul(a: Exact, b: Exact) -> Exact {
    Exact {
        negative: a.negative != b.negative,
        sig: a.sig * b.sig,
        exp: a.exp + b.exp,
        sticky: false,
    }
}

/// With its highest bit at position 125.
fn normalise(x: Exact) -> Exact {
    let shift = x.sig.leading_zeros() as i32 - 2;
    Exact {
        sig: x.sig << shift,
        exp: x.exp - shift,
        ..x
    }
}

/// The sum. An exact zero out of two non-zeros, or of zeros of both signs, is negative only when
/// rounding down.
pub fn add(a: Exact, b: Exact, mode: Rounding) -> Exact {
    if a.sig == 0 && b.sig == 0 {
        let negative = match a.negative == b.negative {
            true => a.negative,
            false => mode == Rounding::Down,
        };
        return Exact { negative, ..a };
    }
    if a.sig == 0 {
        return b;
    }
    if b.sig == 0 {
        return a;
    }
    let (mut big, mut small) = (normalise(a), normalise(b));
    if (small.exp, small.sig) > (big.exp, big.sig) {
        std::mem::swap(&mut big, &mut small);
    }
    let distance = (big.exp - small.exp) as u32;
    let shifted = small.sig.checked_shr(distance).unwrap_or(0);
    let sticky = shifted.checked_shl(distance).unwrap_or(0) != small.sig;
    let sig = match big.negative == small.negative {
        true => big.sig + shifted,
        false => big.sig - shifted - u128::from(sticky),
    };
    let negative = if sig == 0 && !sticky {
        mode == Rounding::Down
    } else {
        big.negative
    };
    Exact {
        negative,
        sig,
        exp: big.exp,
        sticky,
    }
}

/// The quotient of numbers that are not zero, to at least 64 bits.
pub fn div(a: Exact, b: Exact) -> Exact {
    let a = normalise(a);
    let sig = a.sig / b.sig;
    Exact {
        negative: a.negative != b.negative,
        sig,
        exp: a.exp - b.exp,
        sticky: sig * b.sig != a.sig,
    }
}

/// The square root of a positive number, to at least 60 bits.
pub fn sqrt(x: Exact) -> Exact {
    let mut x = normalise(x);
    if x.exp & 1 != 0 {
        x.sig <<= 1;
        x.exp -= 1;
    }
    let mut root = 0u128;
    for bit in (0..64).rev() {
        let next = root | 1 << bit;
        if next * next <= x.sig {
            root = next;
        }
    }
    Exact {
        negative: false,
        sig: root,
        exp: x.exp / 2,
        sticky: root * root != x.sig,
    }
}

/// Rounds to an integer; the value must be less than 2^127 in magnitude.
pub fn to_integer(x: Exact, mode: Rounding) -> i128 {
    let magnitude = if x.exp >= 0 {
        x.sig << x.exp
    } else {
        let (kept, rest) = split(x.sig, x.exp.unsigned_abs(), x.sticky);
        kept + u128::from(rounds_up(rest, kept & 1 != 0, x.negative, mode))
    };
    match x.negative {
        true => -(magnitude as i128),
        false => magnitude as i128,
    }
}
