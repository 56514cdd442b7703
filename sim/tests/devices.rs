//! Two devices: memory of the one on the other, copies between them, and who may use what.

mod common;
use common::*;
use std::ptr::null_mut;

const SUCCESS: CUresult = CUresult::CUDA_SUCCESS;

/// A session with a second device and a context on it; the first one's is current.
fn two() -> Option<(Session, CUcontext)> {
    std::env::set_var("CUDAGRAPH_SIM_DEVICES", "2");
    let s = Session::new();
    let mut count = 0;
    cu!(cuDeviceGetCount(&mut count));
    if count < 2 {
        eprintln!("skipped: this machine has one device");
        return None;
    }
    let other = get!(cuCtxCreate_v2(0, 1));
    cu!(cuCtxSetCurrent(s.context));
    Some((s, other))
}

fn on<R>(context: CUcontext, body: impl FnOnce() -> R) -> R {
    cu!(cuCtxPushCurrent_v2(context));
    let result = body();
    let _: CUcontext = get!(cuCtxPopCurrent_v2());
    result
}

#[test]
fn they_are_alike_and_apart() {
    let Some((_s, other)) = two() else { return };
    let mut device = 9;
    on(other, || cu!(cuCtxGetDevice(&mut device)));
    assert_eq!(device, 1);
    let mut can = 0;
    cu!(cuDeviceCanAccessPeer(&mut can, 0, 1));
    assert_eq!(can, 1);
    cu!(cuDeviceCanAccessPeer(&mut can, 0, 0));
    assert_eq!(can, 0);
    let name = |device| {
        let mut text = [0 as std::ffi::c_char; 32];
        cu!(cuDeviceGetPCIBusId(text.as_mut_ptr(), 32, device));
        let mut found = 9;
        cu!(cuDeviceGetByPCIBusId(&mut found, text.as_ptr()));
        assert_eq!(found, device);
        text
    };
    assert_ne!(name(0), name(1));
    let (a, b): (CUuuid, CUuuid) = (get!(cuDeviceGetUuid_v2(0)), get!(cuDeviceGetUuid_v2(1)));
    assert_ne!(a.bytes, b.bytes);
    let mut none = 0;
    fails!(INVALID_DEVICE, cuDeviceGet(&mut none, 64));
    cu!(cuCtxDestroy_v2(other));
}

#[test]
fn bytes_go_between_devices_without_peer_access() {
    let Some((s, other)) = two() else { return };
    let here = upload(&[1, 2, 3, 4]);
    let there = on(other, || upload(&[0; 4]));
    cu!(cuMemcpyPeer(there, other, here, s.context, 16));
    assert_eq!(on(other, || download(there, 4)), [1, 2, 3, 4]);
    let stream = s.stream();
    cu!(cuMemsetD32_v2(here, 8, 4));
    cu!(cuMemcpyPeerAsync(there, other, here, s.context, 8, stream));
    cu!(cuStreamSynchronize(stream));
    assert_eq!(on(other, || download(there, 4)), [8, 8, 3, 4]);
    cu!(cuMemcpyDtoD_v2(here, there, 16));
    assert_eq!(download(here, 4), [8, 8, 3, 4]);
    cu!(cuCtxDestroy_v2(other));
}

#[test]
fn a_kernel_needs_peer_access_for_the_other_s_memory() {
    alone!();
    let Some((s, other)) = two() else { return };
    let there = on(other, || upload(&[5; 4]));
    let (stream, add) = (s.stream(), s.kernel(c"add"));
    cu!(cuCtxEnablePeerAccess(other, 0));
    fails!(PEER_ACCESS_ALREADY_ENABLED, cuCtxEnablePeerAccess(other, 0));
    assert_eq!(launch(add, 4, there, 2, stream), SUCCESS);
    cu!(cuStreamSynchronize(stream));
    assert_eq!(on(other, || download(there, 4)), [7; 4]);
    cu!(cuCtxDisablePeerAccess(other));
    fails!(PEER_ACCESS_NOT_ENABLED, cuCtxDisablePeerAccess(other));
    assert_eq!(launch(add, 4, there, 2, stream), SUCCESS);
    fails!(ILLEGAL_ADDRESS, cuStreamSynchronize(stream));
    // The other device goes on.
    assert_eq!(on(other, || download(there, 4)), [7; 4]);
    cu!(cuCtxDestroy_v2(other));
}

#[test]
fn a_pool_is_opened_to_the_other_device() {
    let Some((s, other)) = two() else { return };
    let (theirs, memory) = on(other, || {
        let stream = stream();
        let memory: CUdeviceptr = get!(cuMemAllocAsync(16, stream));
        cu!(cuMemsetD32Async(memory, 1, 4, stream));
        cu!(cuStreamSynchronize(stream));
        (stream, memory)
    });
    let pool: CUmemoryPool = get!(cuDeviceGetDefaultMemPool(1));
    let mut location = CUmemLocation {
        type_: CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE,
        id: 0,
    };
    let mut flags = CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    cu!(cuMemPoolGetAccess(&mut flags, pool, &mut location));
    assert_eq!(flags, CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_NONE);
    let access = CUmemAccessDesc {
        location,
        flags: CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
    };
    cu!(cuMemPoolSetAccess(pool, &access, 1));
    let stream = s.stream();
    assert_eq!(launch(s.kernel(c"add"), 4, memory, 2, stream), SUCCESS);
    cu!(cuStreamSynchronize(stream));
    assert_eq!(on(other, || download(memory, 4)), [3; 4]);
    let closed = CUmemAccessDesc {
        flags: CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_NONE,
        ..access
    };
    cu!(cuMemPoolSetAccess(pool, &closed, 1));
    // Its own device cannot be shut out.
    let own = CUmemAccessDesc {
        location: CUmemLocation { id: 1, ..location },
        ..closed
    };
    fails!(INVALID_VALUE, cuMemPoolSetAccess(pool, &own, 1));
    on(other, || cu!(cuMemFreeAsync(memory, theirs)));
    cu!(cuCtxDestroy_v2(other));
}

#[test]
fn streams_and_kernels_keep_to_their_device() {
    let Some((s, other)) = two() else { return };
    let foreign = on(other, stream);
    let memory = words(4);
    let refused = launch(s.kernel(c"set"), 4, memory, 2, foreign);
    assert_eq!(refused, CUresult::CUDA_ERROR_INVALID_HANDLE);
    // An event orders work across them.
    let (mine, set, step) = (s.stream(), s.kernel(c"set"), s.kernel(c"step"));
    let event: CUevent = get!(cuEventCreate(2));
    let gate = Gate::default();
    gate.close(mine);
    assert_eq!(launch(set, 4, memory, 2, mine), SUCCESS);
    cu!(cuEventRecord(event, mine));
    cu!(cuStreamWaitEvent(foreign, event, 0));
    fails!(NOT_READY, cuStreamQuery(foreign));
    gate.open();
    cu!(cuStreamSynchronize(foreign));
    assert_eq!(launch(step, 4, memory, 1, mine), SUCCESS);
    cu!(cuStreamSynchronize(mine));
    assert_eq!(download(memory, 4), [5; 4]);
    cu!(cuCtxDestroy_v2(other));
}

#[test]
fn memory_is_counted_on_its_device() {
    let Some((_s, other)) = two() else { return };
    let free = || {
        let (mut free, mut total) = (0, 0);
        cu!(cuMemGetInfo_v2(&mut free, &mut total));
        free
    };
    let before = (free(), on(other, free));
    let memory = on(other, || get!(cuMemAlloc_v2(64 << 20)));
    let after = (free(), on(other, free));
    assert_eq!(before.0, after.0);
    assert!(before.1 - after.1 >= 64 << 20);
    cu!(cuMemFree_v2(memory));
    cu!(cuCtxDestroy_v2(other));
}

#[test]
fn a_captured_peer_copy_is_replayed() {
    let Some((s, other)) = two() else { return };
    let (here, stream) = (upload(&[1; 4]), s.stream());
    let there = on(other, || upload(&[0; 4]));
    let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL;
    cu!(cuStreamBeginCapture_v2(stream, mode));
    cu!(cuMemcpyPeerAsync(there, other, here, s.context, 16, stream));
    let mut graph = null_mut();
    cu!(cuStreamEndCapture(stream, &mut graph));
    let exec = instantiate(graph);
    cu!(cuMemsetD32_v2(here, 6, 4));
    run(exec, stream);
    assert_eq!(on(other, || download(there, 4)), [6; 4]);
    cu!(cuCtxDestroy_v2(other));
}
