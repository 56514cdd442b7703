//! Streams and the work enqueued on them: `Raw.stream_*`, `Raw.launch_kernel`, `Raw.*_async`.

use super::custom::{alloc, borrow, get, Boxed};
use super::memory::{bare, check_host, checked_size, fill, host, PeerEnd};
use super::run::{blocking, status, value};
use super::value::{int, nativeint, to_bool, to_int, UNIT};
use crate::driver::memory::Allocation;
use crate::driver::stream::Stream;
use crate::driver::{Error, Result};
use cudarc::driver::sys::CUresult;
use ocaml::sys::Value;
use std::ffi::CStr;
use std::sync::Arc;

/// What a stream value holds: a stream, or the NULL stream of whatever context is current.
pub enum StreamBlock {
    /// A stream of its own.
    Owned(Arc<Stream>),
    /// The NULL stream.
    Null,
}

impl Drop for StreamBlock {
    fn drop(&mut self) {
        if let StreamBlock::Owned(stream) = self {
            stream.let_go();
        }
    }
}

impl Boxed for StreamBlock {
    const NAME: &'static CStr = c"cudagraph.stream";
    fn weight(&self) -> usize {
        4096
    }
    fn identity(&self) -> usize {
        match self {
            StreamBlock::Owned(stream) => stream.handle(),
            StreamBlock::Null => 0,
        }
    }
}

impl StreamBlock {
    /// The stream, if it is one of its own.
    pub fn own(&self) -> Option<&Arc<Stream>> {
        match self {
            StreamBlock::Owned(stream) => Some(stream),
            StreamBlock::Null => None,
        }
    }

    /// The stream to use on this thread now.
    pub fn resolve(&self) -> Result<Arc<Stream>> {
        match self {
            StreamBlock::Owned(stream) => Ok(stream.clone()),
            StreamBlock::Null => Stream::null(),
        }
    }
}

#[no_mangle]
extern "C" fn cudagraph_stream_create(non_blocking: Value, priority: Value) -> Value {
    let (non_blocking, priority) = (to_bool(non_blocking), to_int(priority));
    let created = blocking(|| {
        let priority = i32::try_from(priority).map_err(|_| {
            Error::invalid(format!("lower_priority {priority} does not fit a C int"))
        })?;
        Stream::new(non_blocking, priority)
    });
    value(created, |stream| {
        alloc(Arc::new(StreamBlock::Owned(stream)))
    })
}

#[no_mangle]
extern "C" fn cudagraph_stream_null(_unit: Value) -> Value {
    alloc(Arc::new(StreamBlock::Null))
}

#[no_mangle]
extern "C" fn cudagraph_stream_synchronize(stream: Value) -> Value {
    let stream = get::<StreamBlock>(stream);
    status(blocking(|| stream.resolve()?.synchronize()))
}

#[no_mangle]
extern "C" fn cudagraph_stream_query(stream: Value) -> Value {
    let stream = get::<StreamBlock>(stream);
    // The stream's lock may be held by a launch that blocks.
    match blocking(|| stream.resolve()?.is_idle()) {
        Ok(true) => UNIT,
        Ok(false) => int(CUresult::CUDA_ERROR_NOT_READY as isize),
        Err(error) => status(Err(error)),
    }
}

#[no_mangle]
extern "C" fn cudagraph_stream_context(stream: Value) -> Value {
    let stream = get::<StreamBlock>(stream);
    value(blocking(|| Ok(stream.resolve()?.context().clone())), alloc)
}

#[no_mangle]
extern "C" fn cudagraph_stream_id(stream: Value) -> Value {
    let stream = get::<StreamBlock>(stream);
    value(blocking(|| stream.resolve()?.id()), nativeint)
}

#[no_mangle]
extern "C" fn cudagraph_stream_address(stream: Value) -> Value {
    nativeint(borrow::<StreamBlock>(stream).identity() as u64)
}

#[no_mangle]
extern "C" fn cudagraph_stream_is_capturing(stream: Value) -> Value {
    let stream = get::<StreamBlock>(stream);
    value(blocking(|| stream.resolve()?.is_capturing()), |yes| {
        int(yes as isize)
    })
}

#[no_mangle]
extern "C" fn cudagraph_stream_held(stream: Value) -> Value {
    let stream = get::<StreamBlock>(stream);
    int(blocking(|| Ok(stream.resolve()?.held())).unwrap_or(0) as isize)
}

#[no_mangle]
extern "C" fn cudagraph_streams_live(_unit: Value) -> Value {
    int(Stream::live() as isize)
}

#[no_mangle]
extern "C" fn cudagraph_stream_mem_alloc(stream: Value, size: Value) -> Value {
    let (stream, size) = (get::<StreamBlock>(stream), to_int(size));
    let allocated = blocking(|| Allocation::on_stream(&stream.resolve()?, checked_size(size)?));
    value(allocated, alloc)
}

#[no_mangle]
extern "C" fn cudagraph_stream_mem_free(stream: Value, memory: Value) -> Value {
    let (stream, memory) = (get::<StreamBlock>(stream), get::<Allocation>(memory));
    status(blocking(|| memory.free_on(&stream.resolve()?)))
}

#[no_mangle]
extern "C" fn cudagraph_stream_attach(
    stream: Value,
    memory: Value,
    size: Value,
    flags: Value,
) -> Value {
    let (stream, memory) = (get::<StreamBlock>(stream), get::<Allocation>(memory));
    let (size, flags) = (to_int(size), to_int(flags) as u32);
    status(blocking(|| stream.resolve()?.attach(&memory, size, flags)))
}

#[no_mangle]
extern "C" fn cudagraph_peer_async(
    destination: Value,
    source: Value,
    size: Value,
    stream: Value,
) -> Value {
    let stream = get::<StreamBlock>(stream);
    // SAFETY: OCaml passes two such records.
    let (to, from) = unsafe { (PeerEnd::new(destination), PeerEnd::new(source)) };
    let size = to_int(size);
    status(blocking(|| {
        stream.resolve()?.copy_between(to.end(), from.end(), size)
    }))
}

#[no_mangle]
extern "C" fn cudagraph_h2d_async(
    destination: Value,
    offset: Value,
    source: Value,
    host_offset: Value,
    size: Value,
    stream: Value,
) -> Value {
    let (destination, stream) = (get::<Allocation>(destination), get::<StreamBlock>(stream));
    // SAFETY: OCaml passes a bigarray and has checked the interval.
    let (host, at) = unsafe { host(source, host_offset) };
    let (offset, size) = (to_int(offset), to_int(size) as usize);
    status(blocking(move || {
        let root = Some(host.into_root());
        // SAFETY: the root keeps the bigarray for as long as the work or its graph needs it.
        unsafe {
            stream
                .resolve()?
                .copy_from_host(&destination, offset, at.cast(), size, root)
        }
    }))
}

#[no_mangle]
extern "C" fn cudagraph_d2h_async(
    destination: Value,
    host_offset: Value,
    source: Value,
    offset: Value,
    size: Value,
    stream: Value,
) -> Value {
    let (source, stream) = (get::<Allocation>(source), get::<StreamBlock>(stream));
    // SAFETY: as in `cudagraph_h2d_async`.
    let (host, at) = unsafe { host(destination, host_offset) };
    let (offset, size) = (to_int(offset), to_int(size) as usize);
    status(blocking(move || {
        let root = Some(host.into_root());
        // SAFETY: as in `cudagraph_h2d_async`.
        unsafe {
            stream
                .resolve()?
                .copy_to_host(at.0, &source, offset, size, root)
        }
    }))
}

#[no_mangle]
extern "C" fn cudagraph_d2d_async(
    destination: Value,
    destination_offset: Value,
    source: Value,
    source_offset: Value,
    size: Value,
    stream: Value,
) -> Value {
    let (destination, source) = (get::<Allocation>(destination), get::<Allocation>(source));
    let stream = get::<StreamBlock>(stream);
    let (to, from, size) = (
        to_int(destination_offset),
        to_int(source_offset),
        to_int(size),
    );
    status(blocking(move || {
        stream
            .resolve()?
            .copy_on_device(&destination, to, &source, from, size)
    }))
}

#[no_mangle]
extern "C" fn cudagraph_memset_async(
    memory: Value,
    offset: Value,
    width: Value,
    element: Value,
    count: Value,
    stream: Value,
) -> Value {
    let (memory, stream) = (get::<Allocation>(memory), get::<StreamBlock>(stream));
    let (offset, fill) = (to_int(offset), fill(width, element, count));
    status(blocking(move || {
        stream.resolve()?.fill(&memory, offset, fill)
    }))
}

#[no_mangle]
extern "C" fn cudagraph_h2d_async_unsafe(
    destination: Value,
    address: Value,
    size: Value,
    stream: Value,
) -> Value {
    let (destination, stream) = (get::<Allocation>(destination), get::<StreamBlock>(stream));
    // SAFETY: OCaml passes a nativeint.
    let at = unsafe { bare(address) };
    let size = to_int(size);
    status(blocking(move || {
        let size = checked_size(size)?;
        check_host("src", at, size)?;
        // SAFETY: the caller keeps the memory, as the name of the OCaml function says.
        unsafe {
            stream
                .resolve()?
                .copy_from_host(&destination, 0, at.cast(), size, None)
        }
    }))
}

#[no_mangle]
extern "C" fn cudagraph_d2h_async_unsafe(
    address: Value,
    source: Value,
    size: Value,
    stream: Value,
) -> Value {
    let (source, stream) = (get::<Allocation>(source), get::<StreamBlock>(stream));
    // SAFETY: OCaml passes a nativeint.
    let at = unsafe { bare(address) };
    let size = to_int(size);
    status(blocking(move || {
        let size = checked_size(size)?;
        check_host("dst", at, size)?;
        // SAFETY: as in `cudagraph_h2d_async_unsafe`.
        unsafe { stream.resolve()?.copy_to_host(at.0, &source, 0, size, None) }
    }))
}

/// The bytecode twin of a function of six arguments.
macro_rules! of_bytecode {
    ($($twin:ident = $function:ident;)*) => {$(
        #[no_mangle]
        unsafe extern "C" fn $twin(arguments: *const Value, _count: i32) -> Value {
            // SAFETY: bytecode passes the six arguments in an array.
            let [a, b, c, d, e, f] = unsafe { *arguments.cast::<[Value; 6]>() };
            $function(a, b, c, d, e, f)
        }
    )*};
}

of_bytecode! {
    cudagraph_h2d_async_byte = cudagraph_h2d_async;
    cudagraph_d2h_async_byte = cudagraph_d2h_async;
    cudagraph_d2d_async_byte = cudagraph_d2d_async;
    cudagraph_memset_async_byte = cudagraph_memset_async;
}
