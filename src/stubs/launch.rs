//! Kernel launches: `Raw.launch_kernel` and `Raw.launch_arguments`.

use super::custom::{borrow, borrow_owner, get};
use super::run::{blocking, guarded, status};
use super::stream::StreamBlock;
use super::value::{bytes, field, tag, to_float, to_int, to_u64, UNIT};
use crate::driver::launch::{Argument, Launch};
use crate::driver::memory::Allocation;
use crate::driver::module::Function;
use half::{bf16, f16};
use ocaml::sys::Value;
use smallvec::SmallVec;
use std::borrow::Cow;
use std::mem::ManuallyDrop;
use std::sync::Arc;

/// One argument as OCaml gave it.
enum Param {
    Memory(ManuallyDrop<Arc<Allocation>>, i64),
    Plain(Argument<'static>),
    Bytes(Cow<'static, [u8]>),
}

impl Param {
    fn memory(v: Value, offset: i64) -> Param {
        Param::Memory(borrow_owner::<Allocation>(v), offset)
    }

    fn view(&self) -> Argument<'_> {
        match self {
            Param::Memory(memory, offset) => Argument::Memory(memory, *offset),
            Param::Plain(argument) => *argument,
            Param::Bytes(bytes) => Argument::Bytes(bytes),
        }
    }
}

/// The arguments of a launch: as borrowed from OCaml while the runtime lock is held, or with shares of
/// their own.
struct Params {
    list: SmallVec<[Param; 16]>,
    owned: bool,
}

impl Params {
    /// Reads an OCaml list.
    ///
    /// # Safety
    /// `list` must be a list that `read` can read, and the runtime lock held for as long as the result
    /// lives or until [`Params::own`].
    unsafe fn new(mut list: Value, read: unsafe fn(Value) -> Param) -> Params {
        let mut params = SmallVec::new();
        while list != UNIT {
            // SAFETY: a list cell has its head and its tail.
            unsafe {
                params.push(read(field(list, 0)));
                list = field(list, 1);
            }
        }
        Params {
            list: params,
            owned: false,
        }
    }

    /// Takes shares, so that the runtime lock may go.
    fn own(&mut self) {
        for param in &mut self.list {
            match param {
                Param::Memory(memory, _) => *memory = ManuallyDrop::new(Arc::clone(memory)),
                Param::Bytes(bytes) => *bytes = Cow::Owned(bytes.to_vec()),
                Param::Plain(_) => {}
            }
        }
        self.owned = true;
    }
}

impl Drop for Params {
    fn drop(&mut self) {
        if !self.owned {
            return;
        }
        for param in &mut self.list {
            if let Param::Memory(memory, _) = param {
                // SAFETY: `own` took this share, and nothing reads it after.
                unsafe { ManuallyDrop::drop(memory) };
            }
        }
    }
}

/// Reads a `Stream.kernel_param`.
///
/// # Safety
/// `v` must be one, and the runtime lock held.
unsafe fn kernel_param(v: Value) -> Param {
    // SAFETY: the constructors of `Stream.kernel_param`, in their order, each with one argument.
    unsafe {
        let content = field(v, 0);
        Param::Plain(match tag(v) {
            0 => return Param::memory(content, 0),
            // Deviceptr.region = { base; offset_bytes }
            1 => return Param::memory(field(content, 0), to_int(field(content, 1))),
            2 => Argument::Int(to_int(content)),
            3 => Argument::SizeT(to_u64(content)),
            4 => Argument::Single(to_float(content) as f32),
            _ => Argument::Double(to_float(content)),
        })
    }
}

/// Reads a `Stream.Argument.t`.
///
/// # Safety
/// `v` must be one, and the runtime lock held.
unsafe fn argument(v: Value) -> Param {
    // SAFETY: the constructors of `Stream.Argument.t`, in their order, each with one argument. OCaml has
    // checked the ranges of small integers.
    unsafe {
        let content = field(v, 0);
        let scalar = |name, bytes, bits| Param::Plain(Argument::Scalar(name, bytes, bits));
        match tag(v) {
            0 => kernel_param(content),
            1 => scalar("Int8", 1, to_int(content) as u64),
            2 => scalar("Int16", 2, to_int(content) as u64),
            3 => scalar("Int32", 4, to_u64(content)),
            4 => scalar("Int64", 8, to_u64(content)),
            5 => scalar("Half", 2, f16::from_f64(to_float(content)).to_bits().into()),
            6 => scalar(
                "Bfloat16",
                2,
                bf16::from_f64(to_float(content)).to_bits().into(),
            ),
            7 => scalar("Address", 8, to_u64(content)),
            _ => Param::Bytes(Cow::Borrowed(bytes(content))),
        }
    }
}

/// # Safety
/// `arguments` must be the ten arguments of the external, the last one a list for `read`.
unsafe fn launch(arguments: [Value; 10], read: unsafe fn(Value) -> Param) -> Value {
    let [function, gx, gy, gz, bx, by, bz, shared_bytes, stream, params] = arguments;
    // SAFETY: by the caller.
    let mut params = unsafe { Params::new(params, read) };
    let (grid, block) = ([gx, gy, gz].map(to_int), [bx, by, bz].map(to_int));
    let shared_bytes = to_int(shared_bytes);
    if let Some(stream) = borrow::<StreamBlock>(stream).own() {
        let launch = Launch {
            function: &borrow_owner::<Function>(function),
            grid,
            block,
            shared_bytes,
            arguments: params.list.iter().map(Param::view).collect(),
        };
        if let Some(result) = guarded(|| Ok(stream.try_launch(&launch))).transpose() {
            return status(result.and_then(|launched| launched));
        }
    }
    let (function, stream) = (get::<Function>(function), get::<StreamBlock>(stream));
    params.own();
    status(blocking(move || {
        let launch = Launch {
            function: &function,
            grid,
            block,
            shared_bytes,
            arguments: params.list.iter().map(Param::view).collect(),
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
            // SAFETY: the type of the external.
            unsafe { launch(all, $read) }
        }

        #[no_mangle]
        unsafe extern "C" fn $twin(arguments: *const Value, _count: i32) -> Value {
            // SAFETY: bytecode passes the ten arguments in an array.
            unsafe { launch(*arguments.cast(), $read) }
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
