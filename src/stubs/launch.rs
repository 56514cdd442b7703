//! Kernel launches: `Raw.launch_kernel` and `Raw.launch_arguments`.

use super::custom::{borrow, borrow_owner, get};
use super::run::{at_once, blocking, status};
use super::stream::StreamBlock;
use super::value::{bytes, field, tag, to_float, to_int, to_u64, UNIT};
use crate::driver::argument::{Argument, Scalar};
use crate::driver::launch::{Launch, Shape};
use crate::driver::memory::Allocation;
use crate::driver::module::Function;
use crate::driver::retain::Borrowed;
use half::{bf16, f16};
use ocaml::sys::Value;
use std::sync::Arc;

/// The arguments in an OCaml list, which is read in place.
struct Arguments<R> {
    list: Value,
    read: R,
}

impl<'a, R: Fn(Value) -> Argument<'a>> Iterator for Arguments<R> {
    type Item = Argument<'a>;

    #[inline]
    fn next(&mut self) -> Option<Argument<'a>> {
        if self.list == UNIT {
            return None;
        }
        // SAFETY: a list cell has its head and its tail.
        let (head, tail) = unsafe { (field(self.list, 0), field(self.list, 1)) };
        self.list = tail;
        Some((self.read)(head))
    }
}

/// Parameters of a kernel have up to 32764 bytes together.
const MOST_ARGUMENTS: usize = 32764;

/// What arguments refer to, with shares of its own: for as long as the runtime lock is let go.
#[derive(Default)]
struct Owned {
    memory: Vec<Arc<Allocation>>,
    bytes: Vec<Vec<u8>>,
}

impl Owned {
    fn of(arguments: &[Argument]) -> Owned {
        let mut owned = Owned::default();
        for argument in arguments {
            match argument {
                Argument::Memory(memory, _) => owned.memory.push(memory.share()),
                Argument::Bytes(bytes) => owned.bytes.push(bytes.to_vec()),
                _ => {}
            }
        }
        owned
    }

    /// The same arguments, referring to this.
    fn arguments<'a>(&'a self, borrowed: &[Argument]) -> Vec<Argument<'a>> {
        let (mut memory, mut bytes) = (self.memory.iter(), self.bytes.iter());
        let owned = borrowed.iter().filter_map(|argument| {
            Some(match *argument {
                Argument::Memory(_, offset) => {
                    Argument::Memory(Borrowed::of(memory.next()?), offset)
                }
                Argument::Bytes(_) => Argument::Bytes(bytes.next()?),
                Argument::Int(n) => Argument::Int(n),
                Argument::SizeT(n) => Argument::SizeT(n),
                Argument::Single(x) => Argument::Single(x),
                Argument::Double(x) => Argument::Double(x),
                Argument::Scalar(kind, bits) => Argument::Scalar(kind, bits),
            })
        });
        owned.collect()
    }
}

/// # Safety
/// `v` must be a deviceptr, and the runtime lock held for `'a`.
unsafe fn memory<'a>(v: Value, offset: i64) -> Argument<'a> {
    // SAFETY: by the caller; no block that an argument refers to is finalized before the lock is let go.
    Argument::Memory(unsafe { borrow_owner::<Allocation>(v) }, offset)
}

/// Reads a `Stream.kernel_param`.
///
/// # Safety
/// `v` must be one, and the runtime lock held for `'a`.
unsafe fn kernel_param<'a>(v: Value) -> Argument<'a> {
    // SAFETY: the constructors of `Stream.kernel_param`, in their order, each with one argument.
    unsafe {
        let content = field(v, 0);
        match tag(v) {
            0 => memory(content, 0),
            // Deviceptr.region = { base; offset_bytes }
            1 => memory(field(content, 0), to_int(field(content, 1))),
            2 => Argument::Int(to_int(content)),
            3 => Argument::SizeT(to_u64(content)),
            4 => Argument::Single(to_float(content) as f32),
            _ => Argument::Double(to_float(content)),
        }
    }
}

/// Reads a `Stream.Argument.t`.
///
/// # Safety
/// `v` must be one, and the runtime lock held for `'a`.
unsafe fn argument<'a>(v: Value) -> Argument<'a> {
    // SAFETY: the constructors of `Stream.Argument.t`, in their order, each with one argument. OCaml has
    // checked the ranges of small integers.
    unsafe {
        let content = field(v, 0);
        let half = |x: f64| u64::from(f16::from_f64(x).to_bits());
        let bfloat = |x: f64| u64::from(bf16::from_f64(x).to_bits());
        match tag(v) {
            0 => kernel_param(content),
            1 => Argument::Scalar(Scalar::Int8, to_int(content) as u64),
            2 => Argument::Scalar(Scalar::Int16, to_int(content) as u64),
            3 => Argument::Scalar(Scalar::Int32, to_u64(content)),
            4 => Argument::Scalar(Scalar::Int64, to_u64(content)),
            5 => Argument::Scalar(Scalar::Half, half(to_float(content))),
            6 => Argument::Scalar(Scalar::Bfloat16, bfloat(to_float(content))),
            7 => Argument::Scalar(Scalar::Address, to_u64(content)),
            _ => Argument::Bytes(bytes(content)),
        }
    }
}

/// # Safety
/// `values` must be the ten arguments of the external, the last one a list for `read`.
#[inline(always)]
unsafe fn launch<'a>(values: [Value; 10], read: impl Fn(Value) -> Argument<'a>) -> Value {
    let [function, gx, gy, gz, bx, by, bz, shared_bytes, stream, list] = values;
    let shape = Shape {
        grid: [gx, gy, gz].map(to_int),
        block: [bx, by, bz].map(to_int),
        shared_bytes: to_int(shared_bytes),
    };
    let read = &read;
    if let Some(stream) = borrow::<StreamBlock>(stream).own() {
        // SAFETY: the lock is held throughout.
        let function = unsafe { borrow_owner::<Function>(function) };
        let arguments = Arguments { list, read };
        if let Some(done) = at_once(|| stream.try_launch(function, &shape, arguments)) {
            return done;
        }
    }
    let (function, stream) = (get::<Function>(function), get::<StreamBlock>(stream));
    // A list may have no end.
    let arguments: Vec<_> = Arguments { list, read }.take(MOST_ARGUMENTS + 1).collect();
    let owned = Owned::of(&arguments);
    let arguments = owned.arguments(&arguments);
    status(blocking(|| {
        let launch = Launch {
            function: Borrowed::of(&function),
            shape,
            arguments: &arguments,
        };
        stream.resolve()?.launch(&launch)
    }))
}

/// A function of ten arguments, and its twin for bytecode.
macro_rules! launcher {
    ($name:ident, $twin:ident, $read:ident) => {
        #[no_mangle]
        #[allow(clippy::too_many_arguments)]
        extern "C" fn $name(
            function: Value,
            gx: Value,
            gy: Value,
            gz: Value,
            bx: Value,
            by: Value,
            bz: Value,
            shared_bytes: Value,
            stream: Value,
            params: Value,
        ) -> Value {
            let all = [
                function,
                gx,
                gy,
                gz,
                bx,
                by,
                bz,
                shared_bytes,
                stream,
                params,
            ];
            // SAFETY: the type of the external; the lock is held while arguments are read and used.
            unsafe { launch(all, |v| $read(v)) }
        }

        #[no_mangle]
        unsafe extern "C" fn $twin(arguments: *const Value, _count: i32) -> Value {
            // SAFETY: bytecode passes the ten arguments in an array.
            unsafe { launch(*arguments.cast(), |v| $read(v)) }
        }
    };
}

launcher!(
    cudagraph_launch_kernel,
    cudagraph_launch_kernel_byte,
    kernel_param
);
launcher!(
    cudagraph_launch_arguments,
    cudagraph_launch_arguments_byte,
    argument
);
