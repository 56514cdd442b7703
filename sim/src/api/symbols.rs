//! Looking functions up by their plain names and a version of the interface.

use super::{function, text, Out};
use crate::status::{Result, INVALID_VALUE, NOT_FOUND};
use std::ffi::{c_char, c_void, CString};

/// Functions whose forms take different arguments: the form with a suffix, and the version of the
/// interface that it came with. Other suffixes are older than any program.
const FORMS: &[(&str, &str, i32)] = &[
    ("cuCtxCreate", "_v4", 12050),
    ("cuCtxCreate", "_v3", 11040),
    ("cuStreamGetCaptureInfo", "_v3", 12030),
    ("cuStreamGetCaptureInfo", "_v2", 11030),
    ("cuStreamUpdateCaptureDependencies", "_v2", 12030),
    ("cuStreamGetCtx", "_v2", 12050),
    ("cuCtxGetDevice", "_v2", 13000),
    ("cuCtxSynchronize", "_v2", 13000),
    ("cuDeviceGetUuid", "_v2", 11040),
    ("cuMemPrefetchAsync", "_v2", 12020),
    ("cuMemAdvise", "_v2", 12020),
    ("cuEventElapsedTime", "_v2", 12080),
    ("cuGraphAddKernelNode", "_v2", 12000),
    ("cuGraphKernelNodeGetParams", "_v2", 12000),
    ("cuGraphKernelNodeSetParams", "_v2", 12000),
    ("cuGraphExecKernelNodeSetParams", "_v2", 12000),
    ("cuGraphExecUpdate", "_v2", 12000),
    ("cuGraphGetEdges", "_v2", 12030),
    ("cuGraphNodeGetDependencies", "_v2", 12030),
    ("cuGraphNodeGetDependentNodes", "_v2", 12030),
    ("cuGraphAddDependencies", "_v2", 12030),
    ("cuGraphRemoveDependencies", "_v2", 12030),
    ("cuGraphAddNode", "_v2", 12030),
    ("cuGraphInstantiate", "WithFlags", 12000),
    ("cuGetProcAddress", "_v2", 12000),
];

/// The symbol of this library.
fn symbol(name: &str) -> Option<*mut c_void> {
    let name = CString::new(name).ok()?;
    // SAFETY: asks the loader about this library, which stays loaded, by names that live long enough.
    let address = unsafe {
        let mut info: libc::Dl_info = std::mem::zeroed();
        let here = symbol as *const c_void;
        let known = libc::dladdr(here, &mut info) != 0 && !info.dli_fname.is_null();
        let flags = libc::RTLD_NOLOAD | libc::RTLD_LAZY;
        let handle = if known {
            libc::dlopen(info.dli_fname, flags)
        } else {
            std::ptr::null_mut()
        };
        // A program that links the crate has the functions in itself.
        let handle = if handle.is_null() {
            libc::RTLD_DEFAULT
        } else {
            handle
        };
        libc::dlsym(handle, name.as_ptr())
    };
    (!address.is_null()).then_some(address)
}

/// The newest form of a function that a version of the interface has.
fn find(name: &str, version: i32, per_thread: bool) -> Option<*mut c_void> {
    let own: &[&str] = if per_thread {
        &["_ptsz", "_ptds", ""]
    } else {
        &[""]
    };
    let form = |suffix: &str| {
        own.iter()
            .find_map(|own| symbol(&format!("{name}{suffix}{own}")))
    };
    let mut forms = FORMS
        .iter()
        .filter(|(known, _, _)| *known == name)
        .peekable();
    if forms.peek().is_none() {
        return form("_v2").or_else(|| form(""));
    }
    let newest = forms.find_map(|(_, suffix, since)| (version >= *since).then(|| form(suffix))?);
    newest.or_else(|| {
        if name == "cuCtxCreate" {
            form("_v2")
        } else {
            form("")
        }
    })
}

fn look_up(
    name: *const c_char,
    place: Out<*mut c_void>,
    version: i32,
    flags: u64,
    status: Out<i32>,
) -> Result<()> {
    let name = text(name)?;
    place.required()?.set(std::ptr::null_mut());
    if flags > 2 || version < 2000 {
        return Err(INVALID_VALUE);
    }
    let found = name
        .starts_with("cu")
        .then(|| find(name, version, flags == 2))
        .flatten();
    status.set(i32::from(found.is_none()));
    place.set(found.ok_or(NOT_FOUND)?);
    Ok(())
}

function!(run_early, cuGetProcAddress, (), (
    name: *const c_char,
    place: Out<*mut c_void>,
    version: i32,
    flags: u64,
), {
    look_up(name, place, version, flags, Out::null())
});

function!(run_early, cuGetProcAddress_v2, (), (
    name: *const c_char,
    place: Out<*mut c_void>,
    version: i32,
    flags: u64,
    status: Out<i32>,
), {
    look_up(name, place, version, flags, status)
});
