//! Errors that come late and stay.

mod common;
use common::*;
use std::ptr::{null, null_mut};

const SUCCESS: CUresult = CUresult::CUDA_SUCCESS;

/// Breaks the current context by a kernel that writes to address 64.
fn break_context(s: &Session) {
    let stream = s.stream();
    assert_eq!(launch(s.kernel(c"set"), 4, 64, 0, stream), SUCCESS);
    fails!(ILLEGAL_ADDRESS, cuStreamSynchronize(stream));
}

#[test]
fn a_kernel_s_error_comes_after_its_launch() {
    alone!();
    let s = Session::new();
    let (stream, set) = (s.stream(), s.kernel(c"set"));
    let gate = Gate::default();
    gate.close(stream);
    assert_eq!(launch(set, 4, 64, 0, stream), SUCCESS);
    // Until the kernel runs all is well.
    let memory = words(4);
    cu!(cuMemsetD8Async(memory, 0, 16, stream));
    fails!(NOT_READY, cuStreamQuery(stream));
    gate.open();
    fails!(ILLEGAL_ADDRESS, cuStreamSynchronize(stream));
}

#[test]
fn a_broken_context_stays_broken() {
    alone!();
    let s = Session::new();
    let (stream, set, memory) = (s.stream(), s.kernel(c"set"), words(4));
    let graph = get!(cuGraphCreate(0));
    let exec = instantiate(graph);
    let event: CUevent = get!(cuEventCreate(0));
    break_context(&s);
    let (mut handle, mut address) = (null_mut(), 0u64);
    let mut made = null_mut();
    fails!(ILLEGAL_ADDRESS, cuStreamSynchronize(stream));
    fails!(ILLEGAL_ADDRESS, cuStreamQuery(stream));
    fails!(ILLEGAL_ADDRESS, cuCtxSynchronize());
    fails!(ILLEGAL_ADDRESS, cuMemAlloc_v2(&mut address, 16));
    fails!(ILLEGAL_ADDRESS, cuMemsetD8_v2(memory, 0, 4));
    fails!(ILLEGAL_ADDRESS, cuStreamCreate(&mut handle, 0));
    fails!(ILLEGAL_ADDRESS, cuGraphLaunch(exec, stream));
    fails!(ILLEGAL_ADDRESS, cuEventSynchronize(event));
    fails!(
        ILLEGAL_ADDRESS,
        cuGraphInstantiateWithFlags(&mut made, graph, 0)
    );
    let status = launch(set, 4, memory, 0, stream);
    assert_eq!(status, CUresult::CUDA_ERROR_ILLEGAL_ADDRESS);
    // Graphs are the process's own.
    cu!(cuGraphExecDestroy(exec));
    cu!(cuGraphDestroy(graph));
    let _: CUgraph = get!(cuGraphCreate(0));
    // What is on the device ends, and says what is wrong.
    fails!(ILLEGAL_ADDRESS, cuEventDestroy_v2(event));
    fails!(ILLEGAL_ADDRESS, cuStreamDestroy_v2(stream));
    fails!(ILLEGAL_ADDRESS, cuMemFree_v2(memory));
    let mut flags = 9;
    cu!(cuCtxGetFlags(&mut flags));
    assert_eq!(flags, 0);
}

#[test]
fn every_context_of_the_device_is_broken() {
    alone!();
    let s = Session::new();
    let other: CUcontext = get!(cuCtxCreate_v2(0, 0));
    let (stream, memory, add) = (stream(), upload(&[1; 4]), kernel(c"add"));
    cu!(cuCtxSetCurrent(s.context));
    break_context(&s);
    cu!(cuCtxSetCurrent(other));
    let status = launch(add, 4, memory, 2, stream);
    assert_eq!(status, CUresult::CUDA_ERROR_ILLEGAL_ADDRESS);
    fails!(ILLEGAL_ADDRESS, cuCtxSynchronize());
    fails!(ILLEGAL_ADDRESS, cuStreamQuery(stream));
    fails!(ILLEGAL_ADDRESS, cuMemFree_v2(memory));
    cu!(cuCtxDestroy_v2(other));
    let mut new = null_mut();
    fails!(ILLEGAL_ADDRESS, cuCtxCreate_v2(&mut new, 0, 0));
}

#[test]
fn who_waits_for_work_of_a_broken_context_is_told() {
    alone!();
    let s = Session::new();
    let (stream, event) = (s.stream(), get!(cuEventCreate(0)));
    let graph = get!(cuGraphCreate(0));
    let (mut at, mut value) = (64u64, 0u32);
    let mut arguments = arguments(&mut at, &mut value);
    let params = kernel_params(s.kernel(c"set"), 4, &mut arguments);
    let bad: CUgraphNode = get!(cuGraphAddKernelNode_v2(graph, null(), 0, &params));
    let _: CUgraphNode = get!(cuGraphAddEventRecordNode(graph, &bad, 1, event));
    let exec = instantiate(graph);
    let gate = Gate::default();
    gate.close(stream);
    cu!(cuGraphLaunch(exec, stream));
    cu!(cuGraphLaunch(exec, stream));
    gate.open();
    fails!(ILLEGAL_ADDRESS, cuEventSynchronize(event));
    fails!(ILLEGAL_ADDRESS, cuStreamSynchronize(stream));
}

#[test]
fn a_reset_of_the_primary_context_does_not_mend_it() {
    alone!();
    let s = Session::new();
    let primary: CUcontext = get!(cuDevicePrimaryCtxRetain(0));
    cu!(cuCtxSetCurrent(primary));
    let (stream, memory) = (s.stream(), words(4));
    break_context(&s);
    cu!(cuDevicePrimaryCtxReset_v2(0));
    // What was in it is gone.
    simulator_refuses!(CONTEXT_IS_DESTROYED, cuStreamDestroy_v2(stream));
    simulator_refuses!(CONTEXT_IS_DESTROYED, cuMemFree_v2(memory));
    let mut again: CUcontext = null_mut();
    fails!(ILLEGAL_ADDRESS, cuDevicePrimaryCtxRetain(&mut again, 0));
    cu!(cuDevicePrimaryCtxRelease_v2(0));
    cu!(cuCtxSetCurrent(s.context));
}

#[test]
fn a_module_that_does_not_load_says_why_in_the_log() {
    let _s = Session::new();
    let bad = c".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry k() {\n  frobnicate.s32 %r1;\n ret;\n}\n";
    let mut log = [0u8; 512];
    let mut options = [
        CUjit_option::CU_JIT_ERROR_LOG_BUFFER,
        CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
    ];
    let mut values = [
        log.as_mut_ptr().cast::<std::ffi::c_void>(),
        log.len() as *mut _,
    ];
    let mut module = null_mut();
    fails!(
        INVALID_PTX,
        cuModuleLoadDataEx(
            &mut module,
            bad.as_ptr().cast(),
            2,
            options.as_mut_ptr(),
            values.as_mut_ptr()
        )
    );
    assert!(module.is_null());
    let written = values[1] as usize;
    let text = std::str::from_utf8(&log[..written]).unwrap();
    assert!(text.contains("frobnicate") && text.contains('5'), "{text}");
    // Machine code is not for the simulator; the text says that.
    let binary = b"\x7fELF\x02\x01\x01\0";
    values[1] = log.len() as *mut _;
    let status = status!(cuModuleLoadDataEx(
        &mut module,
        binary.as_ptr().cast(),
        2,
        options.as_mut_ptr(),
        values.as_mut_ptr()
    ));
    assert_eq!(status, CUresult::CUDA_ERROR_INVALID_IMAGE);
    let nowhere = c"/no/such/file.ptx";
    fails!(FILE_NOT_FOUND, cuModuleLoad(&mut module, nowhere.as_ptr()));
}

#[test]
fn errors_have_names_and_texts() {
    open();
    for number in [0u32, 1, 2, 3, 201, 400, 700, 716, 900, 910, 999] {
        // SAFETY: each of these numbers is a status.
        let status = unsafe { std::mem::transmute::<u32, CUresult>(number) };
        let (mut name, mut text) = (null(), null());
        cu!(cuGetErrorName(status, &mut name));
        cu!(cuGetErrorString(status, &mut text));
        // SAFETY: the answers are C strings that stay.
        let [name, text] = [name, text].map(|t| unsafe { std::ffi::CStr::from_ptr(t) });
        assert_eq!(name.to_str().unwrap(), format!("{status:?}"));
        assert!(!text.is_empty(), "{name:?}");
    }
    type Name = extern "C" fn(u32, *mut *const std::ffi::c_char) -> CUresult;
    let name_of = function!("cuGetErrorName", Name);
    let mut text = null();
    assert_eq!(
        name_of(12345, &mut text),
        CUresult::CUDA_ERROR_INVALID_VALUE
    );
    assert!(text.is_null());
}
