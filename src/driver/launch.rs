//! Checking a kernel launch and laying out its arguments.

use super::context::Context;
use super::memory::Allocation;
use super::module::Function;
use super::retain::{Borrowed, KeepSet, Operand, Operands, PendingSet, Shared};
use super::{driver, Error, Result};
use cudarc::driver::sys;
use smallvec::SmallVec;
use std::cell::RefCell;
use std::ffi::c_void;

/// A kernel's parameter as the driver describes it.
#[derive(Debug, Clone, Copy)]
pub struct Parameter {
    /// Bytes.
    pub size: usize,
}

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

/// A kernel launch in preparation.
pub struct Launch<'a> {
    /// The kernel.
    pub function: Borrowed<'a, Function>,
    /// Blocks in each direction.
    pub grid: [i64; 3],
    /// Threads of a block in each direction.
    pub block: [i64; 3],
    /// Dynamic shared memory of a block, bytes.
    pub shared_bytes: i64,
    /// In the order of the kernel's parameters.
    pub arguments: &'a [Argument<'a>],
}

/// As many parameters as a kernel can have unless most are smaller than 8 bytes: their size is the limit.
const MOST_PARAMETERS: usize = 4096;

/// What a driver reads that cannot tell how many arguments are missing: as large as all parameters may be.
static ZEROS: [u64; MOST_PARAMETERS] = [0; MOST_PARAMETERS];

/// The places of arguments, with those of zeros behind them: valid until this thread's next launch. They are
/// laid out once a thread, since they are many.
#[cold]
fn before_zeros(places: &mut [*mut c_void]) -> *mut *mut c_void {
    const ZERO: *mut c_void = ZEROS.as_ptr().cast_mut().cast();
    thread_local! {
        static FOLLOWED: RefCell<(Vec<*mut c_void>, usize)> =
            RefCell::new((vec![ZERO; MOST_PARAMETERS], 0));
    }
    if places.len() >= MOST_PARAMETERS {
        return places.as_mut_ptr();
    }
    FOLLOWED.with_borrow_mut(|(followed, used)| {
        followed[..*used].fill(ZERO);
        *used = places.len();
        followed[..*used].copy_from_slice(places);
        followed.as_mut_ptr()
    })
}

/// The arguments as the driver reads them: the words of scalars, and where each argument is. Filled in
/// place: it is too large to be moved at every launch.
#[derive(Default)]
pub struct Prepared {
    words: SmallVec<[u64; 16]>,
    places: SmallVec<[*mut c_void; 16]>,
}

impl<'a> Launch<'a> {
    /// Refuses what the device or the kernel cannot run, and lays out the arguments.
    pub fn check(&self, context: &Context, prepared: &mut Prepared) -> Result<()> {
        let function = self.function;
        function.module().context().check_alive()?;
        if function.module().is_outside(context) {
            return Err(Error::invalid(format!(
                "kernel {} was loaded into another context than that of the stream",
                function.name()
            )));
        }
        let limits = context.limits()?;
        check_dimensions("grid_dim", self.grid, limits.grid)?;
        check_dimensions("block_dim", self.block, limits.block)?;
        let threads = self.block.iter().product::<i64>();
        let most = match function.max_threads() {
            0 => limits.block_threads,
            kernel => kernel.min(limits.block_threads),
        };
        if threads > i64::from(most) {
            let [x, y, z] = self.block;
            return Err(Error::invalid(format!(
                "block_dim {x} x {y} x {z} is {threads} threads per block, and kernel {} can have at \
                 most {most}",
                function.name()
            )));
        }
        if self.shared_bytes != 0 {
            function.admit_shared(self.shared_bytes, limits.shared_bytes)?;
        }
        self.check_arguments(prepared)
    }

    fn check_arguments(&self, prepared: &mut Prepared) -> Result<()> {
        let function = self.function;
        let parameters = function.parameters();
        if let Some(parameters) = parameters {
            if parameters.len() != self.arguments.len() {
                return Err(Error::invalid(format!(
                    "kernel {} takes {} arguments and got {}",
                    function.name(),
                    parameters.len(),
                    self.arguments.len()
                )));
            }
        }
        for (index, argument) in self.arguments.iter().enumerate() {
            let size = parameters.map(|p| p[index].size);
            let word = match size.and_then(|size| argument.fitting_word(size)) {
                Some(word) => word,
                None => argument
                    .word(size)
                    .map_err(|why| self.refuse(index, &why))?,
            };
            prepared.words.push(word);
        }
        Ok(())
    }

    #[cold]
    fn refuse(&self, index: usize, why: &str) -> Error {
        Error::invalid(format!(
            "argument {index} of kernel {}: {why}",
            self.function.name()
        ))
    }

    /// As how many ordinary launches it counts in the launch queue.
    pub fn weight(&self) -> u64 {
        let large = |argument: &Argument| matches!(argument, Argument::Bytes(b) if b.len() > 256);
        match self.arguments.len() > 32 || self.arguments.iter().any(large) {
            true => 2,
            false => 1,
        }
    }

    fn memories(&self) -> impl Iterator<Item = (usize, Borrowed<'a, Allocation>)> {
        let all = self.arguments.iter().enumerate();
        all.filter_map(|(index, argument)| match argument {
            Argument::Memory(memory, _) => Some((index, *memory)),
            _ => None,
        })
    }

    /// What the launch uses: the kernel's module and the memory among its arguments.
    pub fn operands(&self) -> Result<Operands> {
        let mut operands = Operands::new();
        operands.push(Operand::Shared(self.function.module().clone() as Shared));
        for (index, memory) in self.memories() {
            let operand = Operand::memory(&memory.share());
            operands.push(operand.map_err(|e| self.refuse(index, &e.detail))?);
        }
        Ok(operands)
    }

    /// [`Launch::operands`] for the moment of a driver call that cannot block.
    pub fn hold(&self) -> Result<Holds<'a>> {
        let mut holds = Holds(&self.arguments[..0]);
        for (index, memory) in self.memories() {
            memory
                .check_allocated()
                .and_then(|()| memory.hold())
                .map_err(|e| self.refuse(index, &e.detail))?;
            holds.0 = &self.arguments[..=index];
        }
        Ok(holds)
    }

    /// Has a stream keep what the launch uses.
    pub fn retain(&self, pending: &mut PendingSet, sequence: u64) {
        pending.retain_owner(Borrowed::of(self.function.get().module()), sequence);
        for (_, memory) in self.memories() {
            pending.retain_owner(memory, sequence);
        }
    }

    /// Has a capture keep what the launch uses.
    pub fn keep(&self, keep: &mut KeepSet) -> Result<()> {
        let module = self.function.get().module();
        if !keep.holds(Borrowed::of(module)) {
            keep.retain_one(Operand::Shared(module.clone() as Shared));
        }
        for (index, memory) in self.memories() {
            // What is held already may have been freed by the user since.
            if memory.is_freed() || !keep.holds(memory) {
                let operand = Operand::memory(&memory.share());
                keep.retain_one(operand.map_err(|e| self.refuse(index, &e.detail))?);
            }
        }
        Ok(())
    }

    /// Makes the driver call with what [`Launch::check`] has prepared.
    pub(super) fn enqueue(&self, prepared: &mut Prepared, stream: sys::CUstream) -> Result<()> {
        let Prepared { words, places } = prepared;
        places.clear();
        for (word, argument) in words.iter_mut().zip(self.arguments) {
            places.push(match argument {
                Argument::Bytes(bytes) => bytes.as_ptr().cast_mut().cast(),
                _ => std::ptr::from_mut(word).cast(),
            });
        }
        let [gx, gy, gz] = self.grid.map(|n| n as u32);
        let [bx, by, bz] = self.block.map(|n| n as u32);
        // Without their number the driver reads as many as the kernel has, which nobody could compare.
        let places = match self.function.get().parameters() {
            Some(_) => places.as_mut_ptr(),
            None => before_zeros(places),
        };
        driver!(cuLaunchKernel(
            self.function.handle() as sys::CUfunction,
            gx,
            gy,
            gz,
            bx,
            by,
            bz,
            self.shared_bytes as u32,
            stream,
            places,
            std::ptr::null_mut(),
        ))
    }
}

/// The memory among these arguments cannot be freed explicitly while this lives.
pub struct Holds<'a>(&'a [Argument<'a>]);

impl Drop for Holds<'_> {
    fn drop(&mut self) {
        for argument in self.0 {
            if let Argument::Memory(memory, _) = argument {
                memory.unhold();
            }
        }
    }
}

fn check_dimensions(what: &str, sizes: [i64; 3], limits: [u32; 3]) -> Result<()> {
    let [x, y, z] = std::array::from_fn(|i| sizes[i] >= 1 && sizes[i] <= i64::from(limits[i]));
    if x & y & z {
        return Ok(());
    }
    for ((axis, size), limit) in ["x", "y", "z"].iter().zip(sizes).zip(limits) {
        if size < 1 || size > i64::from(limit) {
            return Err(Error::invalid(format!(
                "{what}_{axis} {size} is not between 1 and {limit}"
            )));
        }
    }
    Ok(())
}

impl Argument<'_> {
    /// [`Argument::word`] where the argument has just the size of the parameter: nearly always.
    #[inline]
    fn fitting_word(&self, size: usize) -> Option<u64> {
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
    fn word(&self, size: Option<usize>) -> std::result::Result<u64, String> {
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
    fn zeros_follow_the_places_of_arguments() {
        let mut word = 7u64;
        let place: *mut c_void = std::ptr::from_mut(&mut word).cast();
        for count in [3, 1, 0, 2] {
            let at = before_zeros(&mut vec![place; count]);
            // SAFETY: the places, and a number behind each, are there until the next launch.
            let read = |i| unsafe { *(*at.add(i)).cast::<u64>() };
            assert!((0..count).all(|i| read(i) == 7));
            assert!((count..MOST_PARAMETERS).all(|i| read(i) == 0));
        }
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

    #[test]
    fn dimensions_name_the_axis_and_the_limit() {
        let error = check_dimensions("block_dim", [1, 0, 1], [1024, 1024, 64]).unwrap_err();
        assert_eq!(error.detail, "block_dim_y 0 is not between 1 and 1024");
    }
}
