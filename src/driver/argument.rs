//! Arguments of a kernel, and their bits as the driver reads them.

use super::memory::Allocation;
use super::retain::Borrowed;

/// One argument of a launch.
#[derive(Clone, Copy)]
pub enum Argument<'a> {
    /// A device address inside an allocation.
    Memory(Borrowed<'a, Allocation>, i64),
    /// A C `int`, from an OCaml integer that may not fit.
    Int(i64),
    /// A C `size_t`.
    SizeT(u64),
    /// A C `float`.
    Single(f32),
    /// A C `double`.
    Double(f64),
    /// A scalar of one width.
    Scalar(Scalar, u64),
    /// The bytes of a C struct.
    Bytes(&'a [u8]),
}

/// Scalars that are given by their width.
#[derive(Clone, Copy, Debug)]
pub enum Scalar {
    /// 1 byte.
    Int8,
    /// 2 bytes.
    Int16,
    /// 4 bytes.
    Int32,
    /// 8 bytes.
    Int64,
    /// 2 bytes.
    Half,
    /// 2 bytes.
    Bfloat16,
    /// 8 bytes.
    Address,
}

impl Scalar {
    fn bytes(self) -> usize {
        match self {
            Scalar::Int8 => 1,
            Scalar::Int16 | Scalar::Half | Scalar::Bfloat16 => 2,
            Scalar::Int32 => 4,
            Scalar::Int64 | Scalar::Address => 8,
        }
    }
}

impl Argument<'_> {
    /// [`Argument::word`] where the argument has just the size of the parameter: nearly always.
    #[inline]
    pub fn fitting_word(&self, size: usize) -> Option<u64> {
        const NEVER: usize = usize::MAX;
        let (bytes, word) = match *self {
            Argument::Memory(memory, offset) => {
                let inside = offset as u64 <= memory.size() as u64;
                (
                    if inside { 8 } else { NEVER },
                    memory.address().wrapping_add(offset as u64),
                )
            }
            Argument::Int(value) => {
                let int = value as i32;
                let fits = i64::from(int) == value;
                (if fits { 4 } else { NEVER }, u64::from(int as u32))
            }
            Argument::SizeT(value) => (8, value),
            Argument::Single(value) => (4, u64::from(value.to_bits())),
            Argument::Double(value) => (8, value.to_bits()),
            Argument::Scalar(kind, bits) => (kind.bytes(), bits),
            Argument::Bytes(bytes) => (bytes.len(), 0),
        };
        (bytes == size).then_some(word)
    }

    /// The bits of the argument for a parameter of `size` bytes, if the size is known.
    pub fn word(&self, size: Option<usize>) -> Result<u64, String> {
        let expect = |what: &str, bytes: usize| match size {
            Some(size) if size != bytes => Err(format!(
                "{what} has {bytes} bytes, and the kernel's parameter has {size}"
            )),
            _ => Ok(()),
        };
        match *self {
            Argument::Memory(memory, offset) => {
                expect("Tensor", 8)?;
                if offset < 0 || offset > memory.size() as i64 {
                    return Err(format!(
                        "offset_bytes {offset} is not inside the allocation of {} bytes",
                        memory.size()
                    ));
                }
                Ok(memory.address() + offset as u64)
            }
            Argument::Int(value) => {
                let int = i32::try_from(value)
                    .map_err(|_| format!("Int {value} does not fit a C int of 32 bits"))?;
                // A narrower integer parameter takes the low bytes, if the value fits it.
                let fits = match size {
                    Some(1) => (-128..=255).contains(&int),
                    Some(2) => (-32768..=65535).contains(&int),
                    _ => expect("Int", 4).map(|()| true)?,
                };
                if !fits {
                    return Err(format!(
                        "Int {value} does not fit the kernel's parameter of {} bytes",
                        size.unwrap_or(4)
                    ));
                }
                Ok(u64::from(int as u32))
            }
            Argument::SizeT(value) => match size {
                Some(4) if value <= u64::from(u32::MAX) => Ok(value),
                _ => expect("Size_t", 8).map(|()| value),
            },
            Argument::Single(value) => expect("Single", 4).map(|()| u64::from(value.to_bits())),
            Argument::Double(value) => expect("Double", 8).map(|()| value.to_bits()),
            Argument::Scalar(kind, bits) => match size {
                Some(size) if size != kind.bytes() => Err(format!(
                    "{kind:?} has {} bytes, and the kernel's parameter has {size}",
                    kind.bytes()
                )),
                _ => Ok(bits),
            },
            Argument::Bytes(bytes) => expect("Struct", bytes.len()).map(|()| 0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_that_do_not_fit_are_refused_and_never_cut() {
        assert_eq!(Argument::Int(-1).word(Some(4)), Ok(0xffff_ffff));
        assert!(Argument::Int(1 << 31).word(Some(4)).is_err());
        assert!(Argument::Int(300).word(Some(1)).is_err());
        assert!(Argument::Int(7).word(Some(8)).is_err());
        assert_eq!(Argument::Int(7).word(None), Ok(7));
    }

    #[test]
    fn a_size_must_match_the_parameter_or_fit_it() {
        assert_eq!(Argument::SizeT(7).word(Some(8)), Ok(7));
        assert_eq!(Argument::SizeT(7).word(Some(4)), Ok(7));
        assert!(Argument::SizeT(1 << 32).word(Some(4)).is_err());
        assert!(Argument::Double(1.0).word(Some(4)).is_err());
        assert_eq!(Argument::Single(1.0).word(Some(4)), Ok(0x3f80_0000));
    }

    #[test]
    fn the_short_way_to_the_bits_agrees_with_the_long_one() {
        let bytes = [0; 12];
        let arguments = [
            Argument::Int(-1),
            Argument::Int(i64::from(i32::MAX) + 1),
            Argument::Int(i64::from(i32::MIN) - 1),
            Argument::SizeT(u64::MAX),
            Argument::Single(-1.5),
            Argument::Double(-1.5),
            Argument::Scalar(Scalar::Int8, 0xff),
            Argument::Scalar(Scalar::Bfloat16, 0x3f80),
            Argument::Bytes(&bytes),
        ];
        let mut fitting = 0;
        for argument in &arguments {
            for size in 0..=16 {
                if let Some(word) = argument.fitting_word(size) {
                    assert_eq!(argument.word(Some(size)), Ok(word));
                    fitting += 1;
                }
            }
        }
        assert_eq!(fitting, 7);
    }

    #[test]
    fn scalars_and_structs_have_the_size_of_the_parameter() {
        assert_eq!(
            Argument::Scalar(Scalar::Half, 0x3c00).word(Some(2)),
            Ok(0x3c00)
        );
        assert!(Argument::Scalar(Scalar::Int64, 1).word(Some(4)).is_err());
        assert!(Argument::Bytes(&[0; 12]).word(Some(12)).is_ok());
        assert!(Argument::Bytes(&[0; 12]).word(Some(16)).is_err());
    }
}
