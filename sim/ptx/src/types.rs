//! The fundamental types of PTX.

/// What the bits of a type mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Bits,
    Unsigned,
    Signed,
    Float,
    Brain,
    Pred,
}

/// A fundamental type: `packed` is 2 for `.f16x2` and the like, otherwise 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Type {
    pub kind: Kind,
    /// Width in bits, of all elements together.
    pub bits: u32,
    pub packed: u32,
}

impl Type {
    pub const PRED: Type = Type::new(Kind::Pred, 1);
    pub const B16: Type = Type::new(Kind::Bits, 16);
    pub const B32: Type = Type::new(Kind::Bits, 32);
    pub const B64: Type = Type::new(Kind::Bits, 64);
    pub const U32: Type = Type::new(Kind::Unsigned, 32);
    pub const U64: Type = Type::new(Kind::Unsigned, 64);

    pub const fn new(kind: Kind, bits: u32) -> Type {
        Type {
            kind,
            bits,
            packed: 1,
        }
    }

    /// The type of this name, without its dot.
    pub fn parse(name: &str) -> Option<Type> {
        use Kind::*;
        let (kind, bits, packed) = match name {
            "pred" => (Pred, 1, 1),
            "b8" => (Bits, 8, 1),
            "b16" => (Bits, 16, 1),
            "b32" => (Bits, 32, 1),
            "b64" => (Bits, 64, 1),
            "b128" => (Bits, 128, 1),
            "u8" => (Unsigned, 8, 1),
            "u16" => (Unsigned, 16, 1),
            "u32" => (Unsigned, 32, 1),
            "u64" => (Unsigned, 64, 1),
            "s8" => (Signed, 8, 1),
            "s16" => (Signed, 16, 1),
            "s32" => (Signed, 32, 1),
            "s64" => (Signed, 64, 1),
            "u16x2" => (Unsigned, 32, 2),
            "s16x2" => (Signed, 32, 2),
            "f16" => (Float, 16, 1),
            "f32" => (Float, 32, 1),
            "f64" => (Float, 64, 1),
            "f16x2" => (Float, 32, 2),
            "bf16" => (Brain, 16, 1),
            "bf16x2" => (Brain, 32, 2),
            _ => return None,
        };
        Some(Type { kind, bits, packed })
    }

    /// Its name, without the dot.
    pub fn name(self) -> String {
        let letter = match self.kind {
            Kind::Pred => return String::from("pred"),
            Kind::Bits => "b",
            Kind::Unsigned => "u",
            Kind::Signed => "s",
            Kind::Float => "f",
            Kind::Brain => "bf",
        };
        if self.packed == 2 {
            format!("{letter}{}x2", self.bits / 2)
        } else {
            format!("{letter}{}", self.bits)
        }
    }

    pub fn bytes(self) -> u32 {
        self.bits.div_ceil(8)
    }

    pub fn is_float(self) -> bool {
        matches!(self.kind, Kind::Float | Kind::Brain)
    }

    /// One half precision number, or a pair of numbers of 16 bits.
    pub fn is_half(self) -> bool {
        self.packed == 2 || self.is_float() && self.bits == 16
    }

    /// Whether registers and variables cannot have this type: they are plain bits then.
    pub fn of_instructions_only(self) -> bool {
        self.kind == Kind::Brain || self.packed == 2 && self.is_int()
    }

    pub fn is_signed(self) -> bool {
        self.kind == Kind::Signed
    }

    /// Unsigned, signed or plain bits.
    pub fn is_int(self) -> bool {
        matches!(self.kind, Kind::Bits | Kind::Unsigned | Kind::Signed)
    }
}
