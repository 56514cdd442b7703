//! Checking a kernel launch and laying out its arguments.
//!
//! Twice: [`Launch`] explains what is wrong with it and may wait; [`Layout`] takes a launch in which nothing
//! is wrong, as nearly all are, in one pass over its arguments.

use super::argument::Argument;
use super::context::Context;
use super::device::Limits;
use super::memory::Allocation;
use super::module::Function;
use super::retain::{Borrowed, KeepSet, Operand, Operands, Shared};
use super::{driver, Error, Result};
use cudarc::driver::sys;
use std::cell::RefCell;
use std::ffi::c_void;
use std::mem::MaybeUninit;

/// A kernel's parameter as the driver describes it.
#[derive(Debug, Clone, Copy)]
pub struct Parameter {
    /// Bytes.
    pub size: usize,
}

/// How many threads a launch has, and their memory.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    /// Blocks in each direction.
    pub grid: [i64; 3],
    /// Threads of a block in each direction.
    pub block: [i64; 3],
    /// Dynamic shared memory of a block, bytes.
    pub shared_bytes: i64,
}

impl Shape {
    /// Whether the device and the kernel can run it as they are.
    #[inline]
    fn fits(&self, function: &Function, limits: &Limits) -> bool {
        let inside = |sizes: [i64; 3], limits: [u32; 3]| {
            let [x, y, z] =
                std::array::from_fn(|i| (sizes[i] as u64).wrapping_sub(1) < u64::from(limits[i]));
            x & y & z
        };
        // Within the limits of a block the product is far from overflowing.
        let [x, y, z] = self.block;
        inside(self.grid, limits.grid)
            && inside(self.block, limits.block)
            && x * y * z <= i64::from(most_threads(function, limits))
            && (self.shared_bytes == 0 || function.admits_shared(self.shared_bytes))
    }

    /// Refuses what the device or the kernel cannot run, and has the kernel admit the shared memory.
    fn check(&self, function: &Function, limits: &Limits) -> Result<()> {
        if self.fits(function, limits) {
            return Ok(());
        }
        check_dimensions("grid_dim", self.grid, limits.grid)?;
        check_dimensions("block_dim", self.block, limits.block)?;
        let [x, y, z] = self.block;
        let (threads, most) = (x * y * z, most_threads(function, limits));
        if threads > i64::from(most) {
            return Err(Error::invalid(format!(
                "block_dim {x} x {y} x {z} is {threads} threads per block, and kernel {} can have at \
                 most {most}",
                function.name()
            )));
        }
        function.admit_shared(self.shared_bytes, limits.shared_bytes)
    }
}

/// Threads of a block that the kernel can have.
fn most_threads(function: &Function, limits: &Limits) -> u32 {
    match function.max_threads() {
        0 => limits.block_threads,
        kernel => kernel.min(limits.block_threads),
    }
}

fn check_dimensions(what: &str, sizes: [i64; 3], limits: [u32; 3]) -> Result<()> {
    for ((axis, size), limit) in ["x", "y", "z"].iter().zip(sizes).zip(limits) {
        if size < 1 || size > i64::from(limit) {
            return Err(Error::invalid(format!(
                "{what}_{axis} {size} is not between 1 and {limit}"
            )));
        }
    }
    Ok(())
}

/// A kernel launch.
pub struct Launch<'a> {
    /// The kernel.
    pub function: Borrowed<'a, Function>,
    /// Its threads.
    pub shape: Shape,
    /// In the order of the kernel's parameters.
    pub arguments: &'a [Argument<'a>],
}

impl Launch<'_> {
    /// Refuses what the device or the kernel cannot run. The words of the arguments.
    pub fn check(&self, context: &Context) -> Result<Vec<u64>> {
        let function = self.function;
        function.module().context().check_alive()?;
        if function.module().is_outside(context) {
            return Err(Error::invalid(format!(
                "kernel {} was loaded into another context than that of the stream",
                function.name()
            )));
        }
        self.shape.check(function.get(), context.limits()?)?;
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
        let word = |(index, argument): (usize, &Argument)| {
            let size = parameters.map(|p| p[index].size);
            argument.word(size).map_err(|why| self.refuse(index, &why))
        };
        self.arguments.iter().enumerate().map(word).collect()
    }

    fn refuse(&self, index: usize, why: &str) -> Error {
        Error::invalid(format!(
            "argument {index} of kernel {}: {why}",
            self.function.name()
        ))
    }

    /// As how many ordinary launches it counts in the launch queue.
    pub fn weight(&self) -> u64 {
        let large = |argument: &Argument| matches!(argument, Argument::Bytes(b) if is_large(b));
        match self.arguments.len() > MOST_AT_ONCE || self.arguments.iter().any(large) {
            true => 2,
            false => 1,
        }
    }

    /// What the launch uses: the kernel's module and the memory among its arguments.
    pub fn operands(&self) -> Result<Operands> {
        let mut operands = Operands::new();
        operands.push(Operand::Shared(self.function.module().clone() as Shared));
        for (index, argument) in self.arguments.iter().enumerate() {
            if let Argument::Memory(memory, _) = argument {
                let operand = Operand::memory(&memory.share());
                operands.push(operand.map_err(|e| Error {
                    detail: self.refuse(index, &e.detail).detail,
                    ..e
                })?);
            }
        }
        Ok(operands)
    }

    /// Makes the driver call, with the words that [`Launch::check`] has found.
    pub fn enqueue(&self, words: &mut [u64], stream: sys::CUstream) -> Result<()> {
        let place = |(word, argument): (&mut u64, &Argument)| match argument {
            Argument::Bytes(bytes) => bytes.as_ptr().cast_mut().cast(),
            _ => std::ptr::from_mut(word).cast(),
        };
        let mut places: Vec<_> = words.iter_mut().zip(self.arguments).map(place).collect();
        // Without their number the driver reads as many as the kernel has, which nobody could compare.
        let places = match self.function.parameters() {
            Some(_) => places.as_mut_ptr(),
            None => before_zeros(&mut places),
        };
        enqueue(self.function.get(), &self.shape, places, stream)
    }
}

/// `cuLaunchKernel`; `places` are those of as many arguments as the kernel has parameters.
#[inline]
fn enqueue(
    function: &Function,
    shape: &Shape,
    places: *mut *mut c_void,
    stream: sys::CUstream,
) -> Result<()> {
    let [gx, gy, gz] = shape.grid.map(|n| n as u32);
    let [bx, by, bz] = shape.block.map(|n| n as u32);
    driver!(cuLaunchKernel(
        function.handle() as sys::CUfunction,
        gx,
        gy,
        gz,
        bx,
        by,
        bz,
        shape.shared_bytes as u32,
        stream,
        places,
        std::ptr::null_mut(),
    ))
}

/// Arguments of a launch at once; with more it is a large one.
const MOST_AT_ONCE: usize = 32;

/// Whether an argument makes a launch a large one, which takes more room in the launch queue.
fn is_large(bytes: &[u8]) -> bool {
    bytes.len() > 256
}

/// The arguments of a launch in which nothing is wrong, as the driver reads them. Filled in place, once.
pub struct Layout {
    words: [MaybeUninit<u64>; MOST_AT_ONCE],
    places: [MaybeUninit<*mut c_void>; MOST_AT_ONCE],
}

impl Layout {
    /// Without arguments yet.
    #[inline]
    pub fn empty() -> Layout {
        Layout {
            words: [const { MaybeUninit::uninit() }; MOST_AT_ONCE],
            places: [const { MaybeUninit::uninit() }; MOST_AT_ONCE],
        }
    }

    /// Launches the kernel, with each memory among the arguments retained first. Nothing if there is
    /// anything to explain, or if `retain` refuses the memory: what it has retained by then does no harm.
    #[inline]
    pub fn launch<'a>(
        &mut self,
        function: &Function,
        shape: &Shape,
        mut arguments: impl Iterator<Item = Argument<'a>>,
        mut retain: impl FnMut(Borrowed<'a, Allocation>) -> bool,
        stream: sys::CUstream,
    ) -> Option<Result<()>> {
        let parameters = function.parameters()?;
        if parameters.len() > MOST_AT_ONCE {
            return None;
        }
        let rooms = self.words.iter_mut().zip(&mut self.places);
        for (parameter, (word, place)) in parameters.iter().zip(rooms) {
            let argument = arguments.next()?;
            let word = word.write(argument.fitting_word(parameter.size)?);
            place.write(std::ptr::from_mut(word).cast());
            match argument {
                Argument::Memory(memory, _) if !retain(memory) => return None,
                Argument::Bytes(bytes) if is_large(bytes) => return None,
                Argument::Bytes(bytes) => {
                    place.write(bytes.as_ptr().cast_mut().cast());
                }
                _ => {}
            }
        }
        if arguments.next().is_some() {
            return None;
        }
        // As many are filled as the kernel has parameters.
        let places = self.places.as_mut_ptr().cast();
        Some(enqueue(function, shape, places, stream))
    }
}

/// Whether a launch at once may use a kernel in this shape on a stream of `context`.
#[inline]
pub fn is_plain(function: &Function, shape: &Shape, context: &Context) -> bool {
    function.module().context().is(context)
        && context
            .known_limits()
            .is_some_and(|limits| shape.fits(function, limits))
}

/// Has a capture keep memory; false if the user has freed it.
#[inline]
pub fn keep(memory: Borrowed<Allocation>, set: &mut KeepSet) -> bool {
    // What is held already may have been freed by the user since, or have gone with another context.
    if !memory.is_freed() && memory.context().is_alive() && set.holds(memory) {
        return true;
    }
    Operand::memory(&memory.share()).is_ok_and(|operand| {
        set.retain_one(operand);
        true
    })
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

#[cfg(test)]
mod tests {
    use super::*;

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
    fn dimensions_name_the_axis_and_the_limit() {
        let error = check_dimensions("block_dim", [1, 0, 1], [1024, 1024, 64]).unwrap_err();
        assert_eq!(error.detail, "block_dim_y 0 is not between 1 and 1024");
    }
}
