//! Custom blocks: each holds one `Arc`, which its finalizer hands to the release queue.

use crate::driver::context::Context;
use crate::driver::event::Event;
use crate::driver::graph::{Exec, Graph};
use crate::driver::memory::Allocation;
use crate::driver::module::{Function, Module};
use crate::driver::retain::Borrowed;
use crate::driver::{pace, release};
use ocaml::sys::{self, Value};
use std::ffi::{c_char, CStr};
use std::sync::Arc;

/// The C layout of `struct custom_operations`.
#[repr(C)]
struct Operations {
    identifier: *const c_char,
    finalize: Option<unsafe extern "C" fn(Value)>,
    compare: Option<unsafe extern "C" fn(Value, Value) -> i32>,
    hash: Option<unsafe extern "C" fn(Value) -> isize>,
    serialize: Option<unsafe extern "C" fn(Value, *mut usize, *mut usize)>,
    deserialize: Option<unsafe extern "C" fn(*mut std::ffi::c_void) -> usize>,
    compare_ext: Option<unsafe extern "C" fn(Value, Value) -> i32>,
    fixed_length: *const std::ffi::c_void,
}

extern "C" {
    /// The collector is to do `resources / most` of a cycle more.
    fn caml_adjust_gc_speed(resources: usize, most: usize);
}

/// A type that custom blocks hold.
pub trait Boxed: Send + Sync + Sized + 'static {
    /// Unique name of the block's kind.
    const NAME: &'static CStr;

    /// Bytes of the host that the garbage collector should think the value weighs.
    fn weight(&self) -> usize {
        0
    }

    /// Device memory of which the garbage collector is to be told, in [`pace::PARTS`].
    fn untold(&self) -> Option<usize> {
        None
    }

    /// What equality and hashing of OCaml see: by default the identity of the owner.
    fn identity(&self) -> usize {
        std::ptr::from_ref(self) as usize
    }
}

impl Boxed for Context {
    const NAME: &'static CStr = c"cudagraph.context";
    fn identity(&self) -> usize {
        self.handle()
    }
}
impl Boxed for Allocation {
    const NAME: &'static CStr = c"cudagraph.deviceptr";
    fn weight(&self) -> usize {
        256
    }
    fn untold(&self) -> Option<usize> {
        self.context().pace.tell()
    }
    fn identity(&self) -> usize {
        self.address() as usize
    }
}
impl Boxed for Module {
    const NAME: &'static CStr = c"cudagraph.module";
    fn weight(&self) -> usize {
        64 * 1024
    }
}
impl Boxed for Function {
    const NAME: &'static CStr = c"cudagraph.func";
}
impl Boxed for Event {
    const NAME: &'static CStr = c"cudagraph.event";
    fn weight(&self) -> usize {
        512
    }
}
impl Boxed for Graph {
    const NAME: &'static CStr = c"cudagraph.graph";
    fn weight(&self) -> usize {
        1024 + 64 * self.info().nodes
    }
}
impl Boxed for Exec {
    const NAME: &'static CStr = c"cudagraph.exec";
    fn weight(&self) -> usize {
        4096 + 256 * self.info().nodes
    }
    fn untold(&self) -> Option<usize> {
        self.untold()
    }
}

struct Kind<T>(std::marker::PhantomData<T>);

impl<T: Boxed> Kind<T> {
    const OPERATIONS: &'static Operations = &Operations {
        identifier: T::NAME.as_ptr(),
        finalize: Some(finalize::<T>),
        compare: Some(compare::<T>),
        hash: Some(hash::<T>),
        serialize: None,
        deserialize: None,
        compare_ext: None,
        fixed_length: std::ptr::null(),
    };
}

fn pointer<T>(v: Value) -> *const T {
    // SAFETY: every block of this kind was made by `alloc` and holds a pointer in its data word.
    unsafe { *(v as *const *const T).add(1) }
}

unsafe extern "C" fn finalize<T: Boxed>(v: Value) {
    // SAFETY: `alloc` put a pointer from `Arc::into_raw` there, and a block is finalized once.
    release::dropped(unsafe { Arc::from_raw(pointer::<T>(v)) });
}

unsafe extern "C" fn compare<T: Boxed>(a: Value, b: Value) -> i32 {
    borrow::<T>(a).identity().cmp(&borrow::<T>(b).identity()) as i32
}

unsafe extern "C" fn hash<T: Boxed>(v: Value) -> isize {
    borrow::<T>(v).identity() as isize
}

/// A new block that holds `owner`.
pub fn alloc<T: Boxed>(owner: Arc<T>) -> Value {
    let operations = std::ptr::from_ref(Kind::<T>::OPERATIONS);
    let operations = operations.cast_mut().cast();
    // SAFETY: the operations are static and never written; the data word is filled before anything
    // can look at the block.
    unsafe {
        let v = match owner.untold() {
            Some(parts) => {
                // Also for those of these values that die old: young ones alone make no cycle.
                caml_adjust_gc_speed(parts, pace::PARTS);
                sys::caml_alloc_custom(operations, 8, parts, pace::PARTS)
            }
            None => sys::caml_alloc_custom_mem(operations, 8, owner.weight()),
        };
        *(v as *mut *const T).add(1) = Arc::into_raw(owner);
        v
    }
}

/// The owner in a block, to be used while the runtime lock is held.
pub fn borrow<'a, T: Boxed>(v: Value) -> &'a T {
    // SAFETY: the block holds an `Arc`, and the caller's argument keeps the block.
    unsafe { &*pointer::<T>(v) }
}

/// The owner in a block without a share of it, to be used while the runtime lock is held: no block that
/// an argument refers to is finalized before.
///
/// # Safety
/// The lock must be held for `'a`.
pub unsafe fn borrow_owner<'a, T: Boxed>(v: Value) -> Borrowed<'a, T> {
    // SAFETY: the block holds a share for as long as it is not finalized.
    unsafe { Borrowed::from_raw(pointer::<T>(v)) }
}

/// A share of the owner in a block, which outlives the block.
pub fn get<T: Boxed>(v: Value) -> Arc<T> {
    let pointer = pointer::<T>(v);
    // SAFETY: as in `borrow`; the count goes up before the new `Arc` takes the share.
    unsafe {
        Arc::increment_strong_count(pointer);
        Arc::from_raw(pointer)
    }
}
