//! The names under which programs find the driver's functions.

mod common;
use common::*;
use std::ffi::{c_void, CString};

#[test]
fn every_function_of_the_driver_is_exported() {
    simulator_only!();
    // A name, and for what is newer than CUDA 12.0 a version.
    let missing: Vec<_> = include_str!("driver-names.txt")
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split(' ').next())
        .filter(|name| address_of(name).is_null())
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}

type Find =
    extern "C" fn(*const std::ffi::c_char, *mut *mut c_void, i32, u64, *mut u32) -> CUresult;

/// The address that the driver finds for a name: for a version, and for threads' own streams if flags is 2.
fn find(name: &str, version: i32, flags: u64) -> (CUresult, *mut c_void, u32) {
    let find = function!("cuGetProcAddress_v2", Find);
    let name = CString::new(name).unwrap();
    let (mut address, mut status) = (std::ptr::null_mut(), 9);
    let result = find(name.as_ptr(), &mut address, version, flags, &mut status);
    (result, address, status)
}

/// Names, a version, and the symbol that is meant.
const FORMS: &[(&str, i32, &str)] = &[
    ("cuInit", 12000, "cuInit"),
    ("cuMemAlloc", 12000, "cuMemAlloc_v2"),
    ("cuMemcpyHtoDAsync", 13000, "cuMemcpyHtoDAsync_v2"),
    ("cuStreamDestroy", 12000, "cuStreamDestroy_v2"),
    ("cuStreamBeginCapture", 12000, "cuStreamBeginCapture_v2"),
    ("cuCtxCreate", 12000, "cuCtxCreate_v3"),
    ("cuCtxCreate", 13000, "cuCtxCreate_v4"),
    ("cuGraphInstantiate", 12000, "cuGraphInstantiateWithFlags"),
    ("cuGraphExecUpdate", 12000, "cuGraphExecUpdate_v2"),
    ("cuGraphAddKernelNode", 12000, "cuGraphAddKernelNode_v2"),
    ("cuGraphAddNode", 12020, "cuGraphAddNode"),
    ("cuGraphAddNode", 13000, "cuGraphAddNode_v2"),
    ("cuGraphGetEdges", 12020, "cuGraphGetEdges"),
    ("cuGraphGetEdges", 13000, "cuGraphGetEdges_v2"),
    ("cuStreamGetCaptureInfo", 12000, "cuStreamGetCaptureInfo_v2"),
    ("cuStreamGetCaptureInfo", 13000, "cuStreamGetCaptureInfo_v3"),
    ("cuEventElapsedTime", 12000, "cuEventElapsedTime"),
    ("cuEventElapsedTime", 13000, "cuEventElapsedTime_v2"),
    ("cuMemPrefetchAsync", 12000, "cuMemPrefetchAsync"),
    ("cuMemPrefetchAsync", 13000, "cuMemPrefetchAsync_v2"),
    ("cuGetProcAddress", 12000, "cuGetProcAddress_v2"),
    (
        "cuDevicePrimaryCtxRelease",
        12000,
        "cuDevicePrimaryCtxRelease_v2",
    ),
];

#[test]
fn a_name_and_a_version_find_the_form() {
    simulator_only!();
    let _s = Session::new();
    for (name, version, symbol) in FORMS {
        let (status, address, found) = find(name, *version, 0);
        assert_eq!((status, found), (CUresult::CUDA_SUCCESS, 0), "{name}");
        assert_eq!(address, address_of(symbol), "{name} of {version}");
    }
}

#[test]
fn a_flag_finds_the_form_for_threads_of_their_own() {
    simulator_only!();
    let _s = Session::new();
    for (name, symbol) in [
        ("cuLaunchKernel", "cuLaunchKernel_ptsz"),
        ("cuMemcpyHtoD", "cuMemcpyHtoD_v2_ptds"),
        ("cuGraphLaunch", "cuGraphLaunch_ptsz"),
        ("cuMemAlloc", "cuMemAlloc_v2"),
    ] {
        let (_, address, _) = find(name, 12000, 2);
        assert_eq!(address, address_of(symbol), "{name}");
    }
}

#[test]
fn what_there_is_not_is_told() {
    simulator_only!();
    let _s = Session::new();
    for name in ["cuNoSuchFunction", "malloc", ""] {
        let (status, address, found) = find(name, 12000, 0);
        assert_eq!(status, CUresult::CUDA_ERROR_NOT_FOUND, "{name:?}");
        assert!(address.is_null());
        assert_ne!(found, 0);
    }
    let (status, ..) = find("cuInit", 12000, 9);
    assert_eq!(status, CUresult::CUDA_ERROR_INVALID_VALUE);
}
