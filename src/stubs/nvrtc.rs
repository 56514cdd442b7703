//! The compiler of CUDA C: `Raw_nvrtc`.

use super::run::{unlocked, value};
use super::value::{field, int, strings, to_bool, to_bytes, tuple};
use crate::driver;
use crate::nvrtc::library::Nvrtc;
use crate::nvrtc::program::{compile, Request};
use crate::nvrtc::{Error, Result};
use crate::os_bytes::OsStrExt;
use ocaml::sys::{self, Value};
use std::ffi::OsStr;

/// Runs `f` with the runtime lock released; an nvrtcResult takes the place of a CUresult.
fn outside<T>(f: impl FnOnce() -> Result<T>) -> driver::Result<T> {
    let answer = unlocked(|| Ok(f())).unwrap_or_else(|fault| {
        Err(Error {
            status: Error::INTERNAL,
            text: fault.detail,
        })
    });
    answer.map_err(|e| driver::Error {
        status: e.status,
        detail: e.text,
    })
}

/// # Safety
/// `array` must be an array of strings and the runtime lock held.
unsafe fn to_texts(array: Value) -> Vec<Vec<u8>> {
    // SAFETY: by the caller.
    unsafe {
        let count = sys::caml_array_length(array);
        (0..count).map(|i| to_bytes(field(array, i))).collect()
    }
}

/// Copies all of it: NVRTC reads it while the lock is released, when OCaml may move its strings.
///
/// # Safety
/// `v` must be a `Raw_nvrtc.request` and the runtime lock held.
unsafe fn to_request(v: Value) -> Request {
    // SAFETY: these are the fields of the record, in its order.
    unsafe {
        let path = |bytes: Vec<u8>| OsStr::from_bytes(&bytes).into();
        Request {
            source: to_bytes(field(v, 0)),
            name: to_bytes(field(v, 1)),
            options: to_texts(field(v, 2)),
            headers: to_texts(field(v, 3))
                .into_iter()
                .zip(to_texts(field(v, 4)))
                .collect(),
            expressions: to_texts(field(v, 5)),
            cubin_for: to_option(field(v, 6)),
            cache: to_option(field(v, 7)).map(path),
        }
    }
}

/// # Safety
/// `v` must be a `string option` and the runtime lock held.
unsafe fn to_option(v: Value) -> Option<Vec<u8>> {
    // SAFETY: `None` is the integer 0, `Some` a block of one field.
    to_bool(v).then(|| unsafe { to_bytes(field(v, 0)) })
}

#[no_mangle]
extern "C" fn cudagraph_nvrtc_compile(request: Value) -> Value {
    // SAFETY: OCaml passes a request.
    let request = unsafe { to_request(request) };
    value(outside(|| compile(&request)), |compiled| {
        let texts = [&compiled.image, &compiled.log]
            .into_iter()
            .chain(&compiled.lowered);
        tuple(&[strings(texts), int(compiled.cached.into())])
    })
}

#[no_mangle]
extern "C" fn cudagraph_nvrtc_version(_unit: Value) -> Value {
    value(outside(Nvrtc::get), |nvrtc| {
        let (major, minor) = nvrtc.version;
        tuple(&[int(major as isize), int(minor as isize)])
    })
}

#[no_mangle]
extern "C" fn cudagraph_nvrtc_architectures(_unit: Value) -> Value {
    value(outside(|| Nvrtc::get()?.architectures()), |found| {
        strings(found.iter().map(|n| n.to_string()))
    })
}

#[no_mangle]
extern "C" fn cudagraph_nvrtc_files(_unit: Value) -> Value {
    value(outside(Nvrtc::get), |nvrtc| {
        let files = [&nvrtc.path].into_iter().chain(&nvrtc.include_folders);
        strings(files.map(|file| file.as_os_str().as_bytes()))
    })
}
