//! What waits for the device when it is released, and what does not.

mod common;
use common::*;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const SUCCESS: CUresult = CUresult::CUDA_SUCCESS;

/// Whether a call waits until a stream, which something else holds up, has gone on.
fn waits(s: &Session, call: impl FnOnce()) -> bool {
    let stream = s.stream();
    let gate = Gate::default();
    let opened = AtomicBool::new(false);
    gate.close(stream);
    let waited = std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(60));
            opened.store(true, Ordering::SeqCst);
            gate.open();
        });
        call();
        opened.load(Ordering::SeqCst)
    });
    cu!(cuStreamSynchronize(stream));
    waited
}

#[test]
fn memory_and_modules_wait_for_everything_in_the_context() {
    let s = Session::new();
    let memory = words(4);
    assert!(waits(&s, || cu!(cuMemFree_v2(memory))));
    let module = get!(cuModuleLoadData(KERNELS.as_ptr().cast()));
    assert!(waits(&s, || cu!(cuModuleUnload(module))));
    let host: *mut std::ffi::c_void = get!(cuMemAllocHost_v2(64));
    assert!(waits(&s, || cu!(cuMemFreeHost(host))));
}

#[test]
fn the_rest_returns_at_once() {
    let s = Session::new();
    let idle = s.stream();
    let stream_ordered: CUdeviceptr = get!(cuMemAllocAsync(16, idle));
    let plain_freed: CUdeviceptr = get!(cuMemAllocAsync(16, idle));
    cu!(cuStreamSynchronize(idle));
    assert!(!waits(&s, || cu!(cuMemFreeAsync(stream_ordered, idle))));
    assert!(!waits(&s, || cu!(cuMemFree_v2(plain_freed))));
    let event: CUevent = get!(cuEventCreate(0));
    assert!(!waits(&s, || cu!(cuEventDestroy_v2(event))));
    let graph = get!(cuGraphCreate(0));
    let exec = instantiate(graph);
    assert!(!waits(&s, || cu!(cuGraphExecDestroy(exec))));
    assert!(!waits(&s, || cu!(cuGraphDestroy(graph))));
    let busy = s.stream();
    let gate = Gate::default();
    gate.close(busy);
    cu!(cuStreamDestroy_v2(busy));
    gate.open();
    cu!(cuCtxSynchronize());
}

#[test]
fn an_exec_goes_while_many_launches_of_it_are_pending() {
    let s = Session::new();
    let (stream, memory) = (s.stream(), upload(&[0; 4]));
    let add = s.kernel(c"add");
    let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL;
    cu!(cuStreamBeginCapture_v2(stream, mode));
    for _ in 0..100 {
        assert_eq!(launch(add, 4, memory, 1, stream), SUCCESS);
    }
    let mut graph = null_mut();
    cu!(cuStreamEndCapture(stream, &mut graph));
    let exec = instantiate(graph);
    let gate = Gate::default();
    gate.close(stream);
    for _ in 0..50 {
        cu!(cuGraphLaunch(exec, stream));
    }
    cu!(cuGraphExecDestroy(exec));
    fails!(NOT_READY, cuStreamQuery(stream));
    gate.open();
    cu!(cuStreamSynchronize(stream));
    assert_eq!(download(memory, 4), [5000; 4]);
}
