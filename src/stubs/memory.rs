//! Device memory: `Raw.mem_*`, `Raw.ptr_*` and the synchronous copies.

use super::custom::{alloc, borrow, get};
use super::run::{blocking, status, value};
use super::value::{field, int, nativeint, to_int, to_u64, HostMemory};
use crate::driver::context::Context;
use crate::driver::copy::{self, End, Fill};
use crate::driver::memory::Allocation;
use crate::driver::Error;
use ocaml::sys::Value;
use std::sync::Arc;

#[no_mangle]
extern "C" fn cudagraph_mem_alloc(size: Value) -> Value {
    let size = to_int(size);
    let allocated = blocking(|| Allocation::new(checked_size(size)?));
    value(allocated, alloc)
}

#[no_mangle]
extern "C" fn cudagraph_mem_alloc_managed(size: Value, flags: Value) -> Value {
    let (size, flags) = (to_int(size), to_int(flags) as u32);
    let allocated = blocking(|| Allocation::managed(checked_size(size)?, flags));
    value(allocated, alloc)
}

#[no_mangle]
extern "C" fn cudagraph_mem_free(memory: Value) -> Value {
    let memory = get::<Allocation>(memory);
    status(blocking(|| memory.free()))
}

#[no_mangle]
extern "C" fn cudagraph_ptr_address(memory: Value) -> Value {
    nativeint(borrow::<Allocation>(memory).address())
}

#[no_mangle]
extern "C" fn cudagraph_ptr_size(memory: Value) -> Value {
    int(borrow::<Allocation>(memory).size() as isize)
}

#[no_mangle]
extern "C" fn cudagraph_ptr_is_freed(memory: Value) -> Value {
    int(borrow::<Allocation>(memory).is_freed() as isize)
}

#[no_mangle]
extern "C" fn cudagraph_h2d(
    destination: Value,
    offset: Value,
    source: Value,
    host_offset: Value,
    size: Value,
) -> Value {
    let destination = get::<Allocation>(destination);
    // SAFETY: OCaml passes a bigarray and has checked that the interval is inside it; the root
    // keeps it while the lock is released.
    let (host, at) = unsafe { host(source, host_offset) };
    let (offset, size) = (to_int(offset), to_int(size) as usize);
    // SAFETY: see above.
    let copied =
        blocking(|| unsafe { copy::copy_from_host(&destination, offset, at.cast(), size) });
    host.forget();
    status(copied)
}

#[no_mangle]
extern "C" fn cudagraph_d2h(
    destination: Value,
    host_offset: Value,
    source: Value,
    offset: Value,
    size: Value,
) -> Value {
    let source = get::<Allocation>(source);
    // SAFETY: as in `cudagraph_h2d`.
    let (host, at) = unsafe { host(destination, host_offset) };
    let (offset, size) = (to_int(offset), to_int(size) as usize);
    // SAFETY: see above.
    let copied = blocking(|| unsafe { copy::copy_to_host(at.0, &source, offset, size) });
    host.forget();
    status(copied)
}

/// An address that may travel into a closure.
#[derive(Clone, Copy)]
pub struct Address(pub *mut u8);

impl Address {
    /// For reading.
    pub fn cast(self) -> *const u8 {
        self.0
    }
}

/// A bigarray and the address of its byte `offset`.
///
/// # Safety
/// `bigarray` must be a bigarray that holds that byte.
pub unsafe fn host(bigarray: Value, offset: Value) -> (HostMemory, Address) {
    // SAFETY: by the caller.
    let host = unsafe { HostMemory::new(bigarray) };
    let address = host.data.wrapping_add(to_int(offset) as usize);
    (host, Address(address))
}

/// The bare host address in a `nativeint`.
///
/// # Safety
/// `v` must be a `nativeint`.
pub unsafe fn bare(v: Value) -> Address {
    // SAFETY: by the caller.
    Address(unsafe { to_u64(v) } as *mut u8)
}

#[no_mangle]
extern "C" fn cudagraph_h2d_unsafe(destination: Value, address: Value, size: Value) -> Value {
    let destination = get::<Allocation>(destination);
    // SAFETY: OCaml passes a nativeint; its owner vouches for the memory, as the name says.
    let at = unsafe { bare(address) };
    let size = to_int(size);
    status(blocking(|| {
        let size = checked_size(size)?;
        check_host("src", at, size)?;
        // SAFETY: see above.
        unsafe { copy::copy_from_host(&destination, 0, at.cast(), size) }
    }))
}

#[no_mangle]
extern "C" fn cudagraph_d2h_unsafe(address: Value, source: Value, size: Value) -> Value {
    let source = get::<Allocation>(source);
    // SAFETY: as in `cudagraph_h2d_unsafe`.
    let at = unsafe { bare(address) };
    let size = to_int(size);
    status(blocking(|| {
        let size = checked_size(size)?;
        check_host("dst", at, size)?;
        // SAFETY: see above.
        unsafe { copy::copy_to_host(at.0, &source, 0, size) }
    }))
}

/// Refuses NULL where there are bytes; `name` is the argument's.
pub fn check_host(name: &str, at: Address, size: usize) -> Result<(), Error> {
    match at.0.is_null() && size > 0 {
        true => Err(Error::invalid(format!(
            "{name} is NULL, with {size} bytes to copy"
        ))),
        false => Ok(()),
    }
}

/// A size in bytes that is not negative.
pub fn checked_size(size: i64) -> Result<usize, Error> {
    usize::try_from(size).map_err(|_| Error::invalid(format!("size_in_bytes {size} is negative")))
}

#[no_mangle]
extern "C" fn cudagraph_d2d(
    destination: Value,
    destination_offset: Value,
    source: Value,
    source_offset: Value,
    size: Value,
) -> Value {
    let (destination, source) = (get::<Allocation>(destination), get::<Allocation>(source));
    let (to, from, size) = (
        to_int(destination_offset),
        to_int(source_offset),
        to_int(size),
    );
    status(blocking(|| {
        copy::copy_on_device(&destination, to, &source, from, size)
    }))
}

/// One end of a copy between contexts, with what keeps it while the runtime lock is released.
pub struct PeerEnd {
    memory: Arc<Allocation>,
    offset: i64,
    context: Arc<Context>,
}

impl PeerEnd {
    /// Reads a `Raw.peer_end`.
    ///
    /// # Safety
    /// `v` must be one and the runtime lock held.
    pub unsafe fn new(v: Value) -> PeerEnd {
        // SAFETY: a record of a deviceptr, an offset in bytes and a context.
        unsafe {
            PeerEnd {
                memory: get(field(v, 0)),
                offset: to_int(field(v, 1)),
                context: get(field(v, 2)),
            }
        }
    }

    /// The end as the driver layer takes it.
    pub fn end(&self) -> End<'_> {
        End {
            memory: &self.memory,
            offset: self.offset,
            context: &self.context,
        }
    }
}

#[no_mangle]
extern "C" fn cudagraph_peer(destination: Value, source: Value, size: Value) -> Value {
    // SAFETY: OCaml passes two such records.
    let (to, from) = unsafe { (PeerEnd::new(destination), PeerEnd::new(source)) };
    let size = to_int(size);
    status(blocking(|| copy::copy_between(to.end(), from.end(), size)))
}

#[no_mangle]
extern "C" fn cudagraph_memset(
    memory: Value,
    offset: Value,
    width: Value,
    element: Value,
    count: Value,
) -> Value {
    let memory = get::<Allocation>(memory);
    let (offset, fill) = (to_int(offset), fill(width, element, count));
    status(blocking(|| copy::fill(&memory, offset, fill)))
}

/// A fill from its OCaml arguments.
pub fn fill(width: Value, element: Value, count: Value) -> Fill {
    Fill {
        width: to_int(width),
        value: to_int(element) as u32,
        count: to_int(count),
    }
}
