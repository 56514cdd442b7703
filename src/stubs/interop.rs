//! Handles in and out: `Raw_interop`, and what `cudagraph.h` offers to C.

use super::custom::{alloc, borrow, get};
use super::run::{blocking, status, value};
use super::stream::StreamBlock;
use super::value::{field, int, keep, nativeint, to_bool, to_bytes, to_int, to_u64, UNIT};
use crate::driver::context::Context;
use crate::driver::event::Event;
use crate::driver::foreign::{self, Whose};
use crate::driver::graph::{Exec, Graph};
use crate::driver::memory::Allocation;
use crate::driver::module::{Function, Module};
use crate::driver::retain::{Operand, Shared};
use crate::driver::{device, Error};
use ocaml::sys::Value;
use smallvec::smallvec;
use std::sync::Arc;

/// What keeps a handle alive, from `keep : 'a option`.
fn given(kept: Value) -> Option<Shared> {
    // SAFETY: `Some x` is a block with one field.
    (kept != UNIT).then(|| unsafe { keep(field(kept, 0)) })
}

/// Whose a handle is, from `own : bool` and `keep : 'a option`, which OCaml does not give together.
fn whose(own: Value, kept: Value) -> Whose {
    match to_bool(own) {
        true => Whose::Ours,
        false => Whose::Theirs { _keep: given(kept) },
    }
}

/// The handle in a `nativeint`.
fn handle(v: Value) -> usize {
    // SAFETY: OCaml passes a nativeint.
    unsafe { to_u64(v) as usize }
}

/// A function from a handle, whether it is ours, and what keeps it, to a value.
macro_rules! taker {
    ($name:ident, $take:path, $make:expr) => {
        #[no_mangle]
        extern "C" fn $name(h: Value, own: Value, kept: Value) -> Value {
            let (handle, whose) = (handle(h), whose(own, kept));
            value(blocking(move || $take(handle, whose)), $make)
        }
    };
}

taker!(cudagraph_take_stream, foreign::stream, |stream| alloc(
    Arc::new(StreamBlock::Owned(stream))
));
taker!(cudagraph_take_module, foreign::module, alloc);
taker!(cudagraph_take_event, foreign::event, alloc);

/// Likewise for what holds work of its own, which needs what is kept even if the handle is ours.
macro_rules! work_taker {
    ($name:ident, $take:path) => {
        #[no_mangle]
        extern "C" fn $name(h: Value, own: Value, kept: Value) -> Value {
            let (handle, ours, keep) = (handle(h), to_bool(own), given(kept));
            value(blocking(move || $take(handle, ours, keep)), alloc)
        }
    };
}

work_taker!(cudagraph_take_graph, foreign::graph);
work_taker!(cudagraph_take_exec, foreign::exec);

#[no_mangle]
extern "C" fn cudagraph_take_context(h: Value) -> Value {
    let handle = handle(h);
    value(blocking(move || foreign::context(handle)), alloc)
}

#[no_mangle]
extern "C" fn cudagraph_take_func(h: Value, name: Value, kept: Value) -> Value {
    let (handle, whose) = (handle(h), whose(int(0), kept));
    // SAFETY: OCaml passes a string.
    let name = unsafe { to_bytes(name) };
    let taken = blocking(move || foreign::function(handle, &String::from_utf8_lossy(&name), whose));
    value(taken, alloc)
}

#[no_mangle]
extern "C" fn cudagraph_take_memory(h: Value, size: Value, own: Value, kept: Value) -> Value {
    let (address, size, whose) = (handle(h) as u64, to_int(size), whose(own, kept));
    let taken = blocking(move || {
        let size = super::memory::checked_size(size)?;
        foreign::memory(address, size, whose)
    });
    value(taken, alloc)
}

#[no_mangle]
extern "C" fn cudagraph_take_device(number: Value) -> Value {
    let number = to_int(number);
    let taken = blocking(|| {
        let count = device::count()?;
        match number >= 0 && number < i64::from(count) {
            true => Ok(number),
            false => Err(Error::invalid(format!(
                "device {number}, and there are {count} devices"
            ))),
        }
    });
    value(taken, |n| int(n as isize))
}

/// What another library has just enqueued on the stream needs the value.
#[no_mangle]
extern "C" fn cudagraph_keep_for(stream: Value, kept: Value) -> Value {
    let stream = get::<StreamBlock>(stream);
    let kept = keep(kept);
    status(blocking(move || {
        stream
            .resolve()?
            .submit(smallvec![Operand::Shared(kept)], |_| Ok(()))
    }))
}

/// The stream's handle; from now on others may capture on it.
#[no_mangle]
extern "C" fn cudagraph_share_stream(stream: Value) -> Value {
    nativeint(shared_stream(stream) as u64)
}

fn shared_stream(stream: Value) -> usize {
    borrow::<StreamBlock>(stream).own().map_or(0, |stream| {
        stream.share();
        stream.handle()
    })
}

/// The event's handle; from now on others may record it in a capture.
#[no_mangle]
extern "C" fn cudagraph_share_event(event: Value) -> Value {
    nativeint(cudagraph_c_event(event) as u64)
}

#[no_mangle]
extern "C" fn cudagraph_func_address(function: Value) -> Value {
    nativeint(cudagraph_c_func(function) as u64)
}

/// `CUstream cudagraph_c_stream(value stream)`: of a `Cuda.Stream.t`.
#[no_mangle]
extern "C" fn cudagraph_c_stream(stream: Value) -> usize {
    // SAFETY: a `Stream.t` is a record whose first field is the stream.
    shared_stream(unsafe { field(stream, 0) })
}

/// `CUevent cudagraph_c_event(value event)`
#[no_mangle]
extern "C" fn cudagraph_c_event(event: Value) -> usize {
    let event = borrow::<Event>(event);
    event.share();
    event.handle()
}

/// `CUcontext cudagraph_c_context(value context)`
#[no_mangle]
extern "C" fn cudagraph_c_context(context: Value) -> usize {
    borrow::<Context>(context).handle()
}

/// `CUmodule cudagraph_c_module(value module)`
#[no_mangle]
extern "C" fn cudagraph_c_module(module: Value) -> usize {
    borrow::<Module>(module).handle()
}

/// `CUfunction cudagraph_c_func(value func)`
#[no_mangle]
extern "C" fn cudagraph_c_func(function: Value) -> usize {
    borrow::<Function>(function).handle()
}

/// `CUdeviceptr cudagraph_c_deviceptr(value deviceptr)`; 0 once freed.
#[no_mangle]
extern "C" fn cudagraph_c_deviceptr(memory: Value) -> u64 {
    let memory = borrow::<Allocation>(memory);
    match memory.is_freed() {
        true => 0,
        false => memory.address(),
    }
}

/// `size_t cudagraph_c_deviceptr_size(value deviceptr)`: bytes of the allocation.
#[no_mangle]
extern "C" fn cudagraph_c_deviceptr_size(memory: Value) -> usize {
    borrow::<Allocation>(memory).size()
}

/// `CUgraph cudagraph_c_graph(value graph)`; null once destroyed.
#[no_mangle]
extern "C" fn cudagraph_c_graph(graph: Value) -> usize {
    borrow::<Graph>(graph).info().address
}

/// `CUgraphExec cudagraph_c_exec(value exec)`; null once destroyed.
#[no_mangle]
extern "C" fn cudagraph_c_exec(exec: Value) -> usize {
    borrow::<Exec>(exec).info().address
}
