//! Between OCaml values and Rust ones.

use super::roots::Root;
use ocaml::sys::{self, Value};
use ocaml_interop::{internal, OCamlRuntime};
use std::any::Any;
use std::sync::Arc;

/// OCaml's `()`, which is also `0`, `false` and status success.
pub const UNIT: Value = int(0);

/// An OCaml integer.
pub const fn int(n: isize) -> Value {
    ((n << 1) | 1) as Value
}

/// The integer in a value.
pub fn to_int(v: Value) -> i64 {
    (v as i64) >> 1
}

/// The boolean in a value.
pub fn to_bool(v: Value) -> bool {
    v != UNIT
}

/// The bytes of an OCaml string, copied.
///
/// # Safety
/// `v` must be an OCaml string and the runtime lock held.
pub unsafe fn to_bytes(v: Value) -> Vec<u8> {
    // SAFETY: by the caller.
    unsafe { bytes(v) }.to_vec()
}

/// The bytes of an OCaml string where they are.
///
/// # Safety
/// `v` must be an OCaml string, and the runtime lock held for as long as the result is used.
pub unsafe fn bytes(v: Value) -> &'static [u8] {
    // SAFETY: an OCaml string has this many bytes at its address.
    unsafe { std::slice::from_raw_parts(v as *const u8, sys::caml_string_length(v)) }
}

/// Field `index` of a block.
///
/// # Safety
/// `v` must be a block with that field and the runtime lock held.
pub unsafe fn field(v: Value, index: usize) -> Value {
    // SAFETY: a block is an array of words.
    unsafe { *(v as *const Value).add(index) }
}

/// The tag of a block.
///
/// # Safety
/// `v` must be a block and the runtime lock held.
pub unsafe fn tag(v: Value) -> u8 {
    // SAFETY: the header is the word before the block, its low byte the tag.
    unsafe { (*(v as *const usize).sub(1) & 0xff) as u8 }
}

/// The float in a boxed float.
///
/// # Safety
/// `v` must be a boxed float and the runtime lock held.
pub unsafe fn to_float(v: Value) -> f64 {
    // SAFETY: a boxed float is one double.
    unsafe { *(v as *const f64) }
}

/// The 64 bits in a boxed integer of a custom block (nativeint, Unsigned.size_t).
///
/// # Safety
/// `v` must be such a block and the runtime lock held.
pub unsafe fn to_u64(v: Value) -> u64 {
    // SAFETY: the data of a custom block follows the pointer to its operations.
    unsafe { *(v as *const u64).add(1) }
}

/// A new `nativeint`.
pub fn nativeint(n: u64) -> Value {
    // SAFETY: allocates; stubs hold no unrooted value at this point.
    unsafe { sys::caml_copy_nativeint(n as isize) }
}

/// A new float.
pub fn float(x: f64) -> Value {
    // SAFETY: as in `nativeint`.
    unsafe { sys::caml_copy_double(x) }
}

/// A new string.
pub fn string(text: &[u8]) -> Value {
    // SAFETY: copies exactly this many bytes into a new string.
    unsafe { sys::caml_alloc_initialized_string(text.len(), text.as_ptr().cast()) }
}

/// A new block of tag 0 with these fields.
pub fn tuple(fields: &[Value]) -> Value {
    block(0, fields)
}

extern "C" {
    // The runtime's own, which keep the fields while they allocate.
    fn caml_alloc_1(tag: u32, a: Value) -> Value;
    fn caml_alloc_2(tag: u32, a: Value, b: Value) -> Value;
    fn caml_alloc_4(tag: u32, a: Value, b: Value, c: Value, d: Value) -> Value;
}

/// A new small block.
pub fn block(tag: u8, fields: &[Value]) -> Value {
    // SAFETY: with the runtime lock held, as everywhere here, and valid fields.
    unsafe {
        match *fields {
            [a] => caml_alloc_1(tag.into(), a),
            [a, b] => caml_alloc_2(tag.into(), a, b),
            [a, b, c, d] => caml_alloc_4(tag.into(), a, b, c, d),
            _ => unreachable!("no block of {} fields is made", fields.len()),
        }
    }
}

/// A new array of strings.
pub fn strings<T: AsRef<[u8]>>(texts: impl IntoIterator<Item = T>) -> Value {
    let runtime = runtime();
    let texts: Vec<Root> = texts
        .into_iter()
        .map(|text| Root::new(runtime, string(text.as_ref())))
        .collect();
    // SAFETY: the fields of a fresh block are valid values; `caml_modify` allocates nothing, so that
    // `array` stays where it is.
    unsafe {
        let array = sys::caml_alloc(texts.len(), 0);
        for (index, text) in texts.iter().enumerate() {
            sys::caml_modify((array as *mut Value).add(index), text.get(runtime));
        }
        texts.into_iter().for_each(|text| text.forget(runtime));
        array
    }
}

/// The proof that the runtime lock is held, for whoever knows that it is.
pub fn runtime() -> &'static OCamlRuntime {
    // SAFETY: stubs are called by OCaml with the runtime lock held.
    unsafe { internal::recover_runtime_handle() }
}

/// What keeps an OCaml value alive.
pub fn keep(v: Value) -> Arc<dyn Any + Send + Sync> {
    Arc::new(Root::new(runtime(), v))
}

/// A bigarray's memory, kept alive for pending or captured copies.
pub struct HostMemory {
    /// Where its data begins.
    pub data: *mut u8,
    root: Root,
}

impl HostMemory {
    /// Looks into a bigarray and roots it.
    ///
    /// # Safety
    /// `v` must be a bigarray and the runtime lock held.
    pub unsafe fn new(v: Value) -> HostMemory {
        // SAFETY: the data pointer is the first word of a bigarray's custom data.
        let data = unsafe { bigarray_data(v) };
        HostMemory {
            data,
            root: Root::new(runtime(), v),
        }
    }

    /// Lets go of the bigarray at once.
    pub fn forget(self) {
        self.root.forget(runtime());
    }

    /// What keeps the memory alive.
    pub fn into_root(self) -> Arc<dyn Any + Send + Sync> {
        Arc::new(self.root)
    }
}

/// Where a bigarray's data begins.
///
/// # Safety
/// `v` must be a bigarray and the runtime lock held.
pub unsafe fn bigarray_data(v: Value) -> *mut u8 {
    // SAFETY: `struct caml_ba_array` follows the operations pointer of the custom block.
    unsafe {
        (*((v as *const usize).add(1) as *const sys::bigarray::Bigarray))
            .data
            .cast()
    }
}
