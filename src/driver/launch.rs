//! Checking a kernel launch and laying out its arguments.

use super::context::Context;
use super::memory::Allocation;
use super::module::Function;
use super::retain::{Operand, Operands, Shared};
use super::{driver, Error, Result};
use cudarc::driver::sys;
use smallvec::SmallVec;
use std::ffi::c_void;
use std::sync::Arc;

/// A kernel's parameter as the driver describes it.
#[derive(Debug, Clone, Copy)]
pub struct Parameter {
    /// Bytes.
    pub size: usize,
}

/// One argument of a launch.
pub enum Argument {
    /// A device address inside an allocation.
    Memory(Arc<Allocation>, i64),
    /// A C `int`, from an OCaml integer that may not fit.
    Int(i64),
    /// A C `size_t`.
    SizeT(u64),
    /// A C `float`.
    Single(f32),
    /// A C `double`.
    Double(f64),
}

/// A kernel launch in preparation.
pub struct Launch {
    /// The kernel.
    pub function: Arc<Function>,
    /// Blocks in each direction.
    pub grid: [i64; 3],
    /// Threads of a block in each direction.
    pub block: [i64; 3],
    /// Dynamic shared memory of a block, bytes.
    pub shared_bytes: i64,
    /// In the order of the kernel's parameters.
    pub arguments: SmallVec<[Argument; 16]>,
    /// The arguments as the driver reads them.
    words: SmallVec<[u64; 16]>,
}

impl Launch {
    /// A launch to be checked.
    pub fn new(
        function: Arc<Function>,
        grid: [i64; 3],
        block: [i64; 3],
        shared_bytes: i64,
        arguments: SmallVec<[Argument; 16]>,
    ) -> Launch {
        Launch {
            function,
            grid,
            block,
            shared_bytes,
            arguments,
            words: SmallVec::new(),
        }
    }

    /// Refuses what the device or the kernel cannot run, and lays out the arguments.
    pub fn check(&mut self, context: &Context) -> Result<()> {
        self.function.module().context().check_alive()?;
        let limits = context.limits()?;
        check_dimensions("grid_dim", self.grid, limits.grid)?;
        check_dimensions("block_dim", self.block, limits.block)?;
        let threads = self.block.iter().product::<i64>();
        let most = match self.function.max_threads() {
            0 => limits.block_threads,
            kernel => kernel.min(limits.block_threads),
        };
        if threads > i64::from(most) {
            let [x, y, z] = self.block;
            return Err(Error::invalid(format!(
                "block_dim {x} x {y} x {z} is {threads} threads per block, and kernel {} can have at \
                 most {most}",
                self.function.name()
            )));
        }
        if self.shared_bytes < 0 || self.shared_bytes > i64::from(limits.shared_bytes) {
            return Err(Error::invalid(format!(
                "shared_mem_bytes {} is not between 0 and {}",
                self.shared_bytes, limits.shared_bytes
            )));
        }
        self.check_arguments()
    }

    fn check_arguments(&mut self) -> Result<()> {
        let function = self.function.clone();
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
            let word = argument.word(size).map_err(|why| {
                Error::invalid(format!(
                    "argument {index} of kernel {}: {why}",
                    function.name()
                ))
            })?;
            self.words.push(word);
        }
        Ok(())
    }

    /// What the launch uses: the kernel's module and the memory among its arguments.
    pub fn operands(&self) -> Result<Operands> {
        let mut operands = Operands::new();
        operands.push(Operand::Shared(self.function.module().clone() as Shared));
        for (index, argument) in self.arguments.iter().enumerate() {
            if let Argument::Memory(memory, _) = argument {
                let operand = Operand::memory(memory).map_err(|e| {
                    let detail = format!(
                        "argument {index} of kernel {}: {}",
                        self.function.name(),
                        e.detail
                    );
                    e.explained(detail)
                })?;
                operands.push(operand);
            }
        }
        Ok(operands)
    }

    /// Makes the driver call; [`Launch::check`] came first.
    pub(super) fn enqueue(&mut self, stream: sys::CUstream) -> Result<()> {
        let mut pointers: SmallVec<[*mut c_void; 16]> = self
            .words
            .iter_mut()
            .map(|word| std::ptr::from_mut(word).cast())
            .collect();
        let [gx, gy, gz] = self.grid.map(|n| n as u32);
        let [bx, by, bz] = self.block.map(|n| n as u32);
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
            pointers.as_mut_ptr(),
            std::ptr::null_mut(),
        ))
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

impl Argument {
    /// The bits of the argument for a parameter of `size` bytes, if the size is known.
    fn word(&self, size: Option<usize>) -> std::result::Result<u64, String> {
        let expect = |what: &str, bytes: usize| match size {
            Some(size) if size != bytes => Err(format!(
                "{what} has {bytes} bytes, and the kernel's parameter has {size}"
            )),
            _ => Ok(()),
        };
        match *self {
            Argument::Memory(ref memory, offset) => {
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
    fn dimensions_name_the_axis_and_the_limit() {
        let error = check_dimensions("block_dim", [1, 0, 1], [1024, 1024, 64]).unwrap_err();
        assert_eq!(error.detail, "block_dim_y 0 is not between 1 and 1024");
    }
}
