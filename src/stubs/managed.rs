//! Bigarrays over managed memory, which they keep.
//!
//! OCaml gives a part of a bigarray (`sub`, `slice`) the custom operations of the whole, and counts
//! whole and parts in a proxy, as for mapped files. So a finalizer of our own sees the last of them go;
//! it only queues the address, as every finalizer here.

use super::custom::get;
use super::run::{guarded, value};
use super::value::{field, to_int};
use crate::driver::memory::Allocation;
use crate::driver::{release, Error, Result};
use crossbeam_queue::SegQueue;
use ocaml::sys::{self, Value};
use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::atomic::{AtomicIsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

/// `struct caml_ba_array`, up to its dimensions.
#[repr(C)]
struct Array {
    data: *mut c_void,
    dimensions: isize,
    flags: isize,
    proxy: *mut Proxy,
}

/// `struct caml_ba_proxy`
#[repr(C)]
struct Proxy {
    count: AtomicIsize,
    data: *mut c_void,
    size: usize,
}

extern "C" {
    fn caml_ba_alloc(flags: i32, dimensions: i32, data: *mut c_void, sizes: *const isize) -> Value;
    fn caml_stat_free(block: *mut c_void);
    /// The operations of an ordinary bigarray.
    static caml_ba_ops: [usize; 8];
}

/// `CAML_BA_MAPPED_FILE`: memory that a finalizer gives back, and that parts share.
const MAPPED: i32 = 0x400;

/// What each address in use keeps, once for every bigarray made over it.
static KEPT: Mutex<Option<HashMap<usize, Vec<Arc<Allocation>>>>> = Mutex::new(None);
static GONE: SegQueue<usize> = SegQueue::new();

/// An ordinary bigarray's operations but for the finalizer.
fn operations() -> &'static [usize; 8] {
    static OPERATIONS: OnceLock<[usize; 8]> = OnceLock::new();
    OPERATIONS.get_or_init(|| {
        // SAFETY: a constant of the OCaml runtime: eight words, of which the second is the finalizer.
        let mut operations = unsafe { caml_ba_ops };
        operations[1] = finalize as *const () as usize;
        operations
    })
}

unsafe extern "C" fn finalize(v: Value) {
    // SAFETY: the data of a bigarray's block; OCaml finalizes it once, and frees a proxy's block only
    // here, where its count reaches zero.
    unsafe {
        let array = &*((v as *const usize).add(1).cast::<Array>());
        if array.proxy.is_null() {
            GONE.push(array.data as usize);
        } else if (*array.proxy).count.fetch_sub(1, Ordering::AcqRel) == 1 {
            GONE.push((*array.proxy).data as usize);
            caml_stat_free(array.proxy.cast());
        }
    }
}

/// Lets go what bigarrays that are gone have kept.
fn collect() {
    let mut kept = KEPT.lock().unwrap_or_else(|e| e.into_inner());
    while let Some(address) = GONE.pop() {
        if let Some(owners) = kept.as_mut().and_then(|kept| kept.get_mut(&address)) {
            if let Some(owner) = owners.pop() {
                release::dropped(owner);
            }
        }
    }
}

/// `external managed_array : deviceptr -> int -> int -> int array -> ...`: flags of kind and layout,
/// bytes, dimensions.
#[no_mangle]
extern "C" fn cudagraph_managed_array(
    memory: Value,
    flags: Value,
    bytes: Value,
    sizes: Value,
) -> Value {
    collect();
    let owner = get::<Allocation>(memory);
    let (flags, bytes) = (to_int(flags) as i32, to_int(bytes));
    // SAFETY: OCaml passes an array of integers.
    let sizes: Vec<isize> = unsafe {
        (0..sys::caml_array_length(sizes))
            .map(|i| to_int(field(sizes, i)) as isize)
            .collect()
    };
    value(guarded(|| keep(owner, bytes)), |address| {
        // SAFETY: the memory has room for these dimensions and is kept until the finalizer runs; the
        // operations are a bigarray's, and put in place before anything else can see the block.
        unsafe {
            let dimensions = sizes.len() as i32;
            let v = caml_ba_alloc(
                flags | MAPPED,
                dimensions,
                address as *mut c_void,
                sizes.as_ptr(),
            );
            *(v as *mut *const [usize; 8]) = operations();
            v
        }
    })
}

fn keep(owner: Arc<Allocation>, bytes: i64) -> Result<usize> {
    if !owner.is_managed() {
        return Err(Error::invalid(
            "the memory is not managed: the host cannot use it; see Deviceptr.mem_alloc_managed",
        ));
    }
    if owner.is_freed() {
        return Err(Error::invalid("the memory was freed"));
    }
    owner.context().check_alive()?;
    owner.check_range("the array", 0, bytes)?;
    let address = owner.address() as usize;
    let mut kept = KEPT.lock().unwrap_or_else(|e| e.into_inner());
    let owners = kept.get_or_insert_with(HashMap::new).entry(address);
    owners.or_default().push(owner);
    Ok(address)
}
