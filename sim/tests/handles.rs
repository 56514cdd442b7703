//! Null and dangling handles of every kind, and null places for answers: the error that the driver gives,
//! never a crash.

mod common;
use common::*;
use std::ptr::{null, null_mut};

/// Handles of a kind that are not live: none, one that was destroyed, and numbers that never were one.
fn dead<T>(destroyed: *mut T) -> [*mut T; 4] {
    [null_mut(), destroyed, 0x40 as *mut T, usize::MAX as *mut T]
}

/// Checks that a call fails for each dead handle, with one of these statuses.
macro_rules! refuses {
    ($handle:ident in $handles:expr, [$($status:ident),*], $function:ident($($argument:tt)*)) => {
        for $handle in ($handles)[..].iter().copied() {
            let got = format!("{:?}", status!($function($($argument)*)));
            let want = [$(concat!("CUDA_ERROR_", stringify!($status))),*];
            assert!(
                want.contains(&got.as_str()),
                "{} for {:?}: {got}", stringify!($function($($argument)*)), $handle
            );
        }
    };
}

#[test]
fn streams() {
    simulator_only!();
    let s = Session::new();
    let stream = s.stream();
    cu!(cuStreamDestroy_v2(stream));
    let handles = &dead(stream)[1..];
    let (mut id, mut number, mut flags, mut graph) = (0, 0, 0, null_mut());
    let mut status = CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
    let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL;
    let event: CUevent = get!(cuEventCreate(0));
    let memory = words(4);
    refuses!(h in dead(stream), [INVALID_HANDLE], cuStreamDestroy_v2(h));
    refuses!(h in handles, [INVALID_HANDLE], cuStreamSynchronize(h));
    refuses!(h in handles, [INVALID_HANDLE], cuStreamQuery(h));
    refuses!(h in handles, [INVALID_HANDLE], cuStreamGetId(h, &mut id));
    refuses!(h in handles, [INVALID_HANDLE], cuStreamGetFlags(h, &mut flags));
    refuses!(h in handles, [INVALID_HANDLE], cuStreamGetPriority(h, &mut number));
    refuses!(h in handles, [INVALID_HANDLE], cuStreamBeginCapture_v2(h, mode));
    refuses!(h in handles, [INVALID_HANDLE], cuStreamEndCapture(h, &mut graph));
    refuses!(h in handles, [INVALID_HANDLE], cuStreamIsCapturing(h, &mut status));
    refuses!(h in handles, [INVALID_HANDLE], cuStreamWaitEvent(h, event, 0));
    refuses!(h in handles, [INVALID_HANDLE], cuEventRecord(event, h));
    refuses!(h in handles, [INVALID_HANDLE], cuMemsetD8Async(memory, 0, 4, h));
    refuses!(h in handles, [INVALID_HANDLE], cuMemFreeAsync(memory, h));
    let nothing = s.kernel(c"nothing");
    for handle in handles {
        assert_eq!(
            launch(nothing, 1, 0, 0, *handle),
            CUresult::CUDA_ERROR_INVALID_HANDLE
        );
    }
}

#[test]
fn events() {
    simulator_only!();
    let s = Session::new();
    let (stream, event): (_, CUevent) = (s.stream(), get!(cuEventCreate(0)));
    let good: CUevent = get!(cuEventCreate(0));
    cu!(cuEventRecord(good, stream));
    cu!(cuEventDestroy_v2(event));
    let handles = dead(event);
    let mut time = 0.0;
    let graph = get!(cuGraphCreate(0));
    let mut node = null_mut();
    refuses!(h in handles, [INVALID_HANDLE], cuEventDestroy_v2(h));
    refuses!(h in handles, [INVALID_HANDLE], cuEventQuery(h));
    refuses!(h in handles, [INVALID_HANDLE], cuEventSynchronize(h));
    refuses!(h in handles, [INVALID_HANDLE], cuEventRecord(h, stream));
    refuses!(h in handles, [INVALID_HANDLE], cuStreamWaitEvent(stream, h, 0));
    refuses!(h in handles, [INVALID_HANDLE], cuEventElapsedTime(&mut time, good, h));
    refuses!(
        h in handles, [INVALID_HANDLE, INVALID_VALUE],
        cuGraphAddEventRecordNode(&mut node, graph, null(), 0, h)
    );
}

#[test]
fn contexts() {
    simulator_only!();
    let s = Session::new();
    let other: CUcontext = get!(cuCtxCreate_v2(0, 0));
    cu!(cuCtxDestroy_v2(other));
    let handles = dead(other);
    let (mut version, mut id) = (0, 0);
    refuses!(h in handles, [INVALID_CONTEXT], cuCtxDestroy_v2(h));
    refuses!(h in handles, [INVALID_CONTEXT], cuCtxPushCurrent_v2(h));
    refuses!(h in handles[1..], [INVALID_CONTEXT], cuCtxSetCurrent(h));
    refuses!(h in handles[1..], [INVALID_CONTEXT], cuCtxGetApiVersion(h, &mut version));
    refuses!(h in handles[1..], [INVALID_CONTEXT, CONTEXT_IS_DESTROYED], cuCtxGetId(h, &mut id));
    refuses!(h in handles, [INVALID_CONTEXT], cuCtxEnablePeerAccess(h, 0));
    let mut current: CUcontext = get!(cuCtxGetCurrent());
    assert_eq!(current, s.context);
    // A context that goes while it is current leaves the thread with a dead one, then with none.
    current = get!(cuCtxCreate_v2(0, 0));
    let shared = current as usize;
    std::thread::spawn(move || cu!(cuCtxDestroy_v2(shared as CUcontext)))
        .join()
        .unwrap();
    let mut memory = 0;
    fails!(CONTEXT_IS_DESTROYED, cuMemAlloc_v2(&mut memory, 16));
    // Setting none takes the top off the thread's stack.
    cu!(cuCtxSetCurrent(null_mut()));
    cu!(cuMemAlloc_v2(&mut memory, 16));
    cu!(cuCtxSetCurrent(null_mut()));
    fails!(INVALID_CONTEXT, cuMemAlloc_v2(&mut memory, 16));
    cu!(cuCtxSetCurrent(s.context));
}

#[test]
fn a_thread_without_a_context() {
    simulator_only!();
    let s = Session::new();
    let (stream, memory, event) = (s.stream(), words(4), get!(cuEventCreate(0)));
    let graph = get!(cuGraphCreate(0));
    let exec = instantiate(graph);
    let nothing = s.kernel(c"nothing");
    cu!(cuCtxSetCurrent(null_mut()));
    let (mut address, mut made, mut handle, mut new_event) =
        (0, null_mut(), null_mut(), null_mut());
    fails!(
        INVALID_CONTEXT,
        cuGraphInstantiateWithFlags(&mut made, graph, 0)
    );
    fails!(INVALID_CONTEXT, cuMemAlloc_v2(&mut address, 16));
    fails!(INVALID_CONTEXT, cuStreamCreate(&mut handle, 0));
    fails!(INVALID_CONTEXT, cuEventCreate(&mut new_event, 0));
    fails!(INVALID_CONTEXT, cuCtxSynchronize());
    // What has a handle knows its context.
    assert_eq!(launch(nothing, 1, 0, 0, stream), CUresult::CUDA_SUCCESS);
    cu!(cuGraphLaunch(exec, stream));
    let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL;
    cu!(cuStreamBeginCapture_v2(stream, mode));
    let mut captured = null_mut();
    cu!(cuStreamEndCapture(stream, &mut captured));
    cu!(cuStreamSynchronize(stream));
    cu!(cuMemFree_v2(memory));
    cu!(cuGraphExecDestroy(exec));
    cu!(cuGraphDestroy(graph));
    cu!(cuEventDestroy_v2(event));
    cu!(cuStreamDestroy_v2(stream));
    cu!(cuCtxSetCurrent(s.context));
}

#[test]
fn modules_and_kernels() {
    simulator_only!();
    let s = Session::new();
    let module = get!(cuModuleLoadData(KERNELS.as_ptr().cast()));
    let function = get!(cuModuleGetFunction(module, c"set".as_ptr()));
    let (mut found, mut address, mut size) = (null_mut(), 0, 0);
    fails!(
        NOT_FOUND,
        cuModuleGetFunction(&mut found, module, c"other".as_ptr())
    );
    fails!(
        NOT_FOUND,
        cuModuleGetGlobal_v2(&mut address, &mut size, module, c"other".as_ptr())
    );
    fails!(
        INVALID_VALUE,
        cuModuleGetFunction(&mut found, module, null())
    );
    cu!(cuModuleUnload(module));
    let modules = dead(module);
    refuses!(h in modules, [INVALID_HANDLE], cuModuleUnload(h));
    refuses!(h in modules, [INVALID_HANDLE], cuModuleGetFunction(&mut found, h, c"set".as_ptr()));
    let functions = dead(function);
    let mut value = 0;
    let most = CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK;
    refuses!(h in functions, [INVALID_HANDLE], cuFuncGetAttribute(&mut value, most, h));
    let stream = s.stream();
    for handle in functions {
        let status = launch(handle, 1, 0, 0, stream);
        assert_eq!(status, CUresult::CUDA_ERROR_INVALID_HANDLE);
    }
    let graph = get!(cuGraphCreate(0));
    let mut node = null_mut();
    for handle in functions {
        let params = kernel_params(handle, 1, &mut []);
        let got = status!(cuGraphAddKernelNode_v2(
            &mut node,
            graph,
            null(),
            0,
            &params
        ));
        assert_ne!(got, CUresult::CUDA_SUCCESS);
    }
    let mut module = null_mut();
    fails!(INVALID_VALUE, cuModuleLoadData(&mut module, null()));
    fails!(INVALID_VALUE, cuModuleLoad(&mut module, null()));
}

#[test]
fn graphs_nodes_and_execs() {
    simulator_only!();
    let s = Session::new();
    let stream = s.stream();
    let graph = get!(cuGraphCreate(0));
    let node: CUgraphNode = get!(cuGraphAddEmptyNode(graph, null(), 0));
    let exec = instantiate(graph);
    let other = get!(cuGraphCreate(0));
    let foreign: CUgraphNode = get!(cuGraphAddEmptyNode(other, null(), 0));
    cu!(cuGraphDestroy(graph));
    cu!(cuGraphExecDestroy(exec));
    let (graphs, nodes, execs) = (dead(graph), dead(node), dead(exec));
    let (mut count, mut made, mut clone, mut new) = (0, null_mut(), null_mut(), null_mut());
    let mut kind = CUgraphNodeType::CU_GRAPH_NODE_TYPE_EMPTY;
    refuses!(h in graphs, [INVALID_VALUE], cuGraphDestroy(h));
    refuses!(h in graphs, [INVALID_VALUE], cuGraphGetNodes(h, null_mut(), &mut count));
    refuses!(h in graphs, [INVALID_VALUE], cuGraphInstantiateWithFlags(&mut made, h, 0));
    refuses!(h in graphs, [INVALID_VALUE], cuGraphClone(&mut clone, h));
    refuses!(h in graphs, [INVALID_VALUE], cuGraphAddEmptyNode(&mut new, h, null(), 0));
    refuses!(h in graphs, [INVALID_VALUE], cuGraphAddChildGraphNode(&mut new, other, null(), 0, h));
    refuses!(h in nodes, [INVALID_VALUE], cuGraphNodeGetType(h, &mut kind));
    refuses!(h in nodes, [INVALID_VALUE], cuGraphDestroyNode(h));
    refuses!(h in nodes, [INVALID_VALUE], cuGraphAddEmptyNode(&mut new, other, &h, 1));
    refuses!(h in nodes, [INVALID_VALUE], cuGraphAddDependencies(other, &foreign, &h, 1));
    refuses!(h in execs, [INVALID_VALUE], cuGraphLaunch(h, stream));
    refuses!(h in execs, [INVALID_VALUE], cuGraphExecDestroy(h));
    refuses!(h in execs, [INVALID_VALUE], cuGraphUpload(h, stream));
    let mut info = CUgraphExecUpdateResultInfo {
        result: CUgraphExecUpdateResult::CU_GRAPH_EXEC_UPDATE_ERROR,
        errorNode: null_mut(),
        errorFromNode: null_mut(),
    };
    refuses!(h in execs, [INVALID_VALUE], cuGraphExecUpdate_v2(h, other, &mut info));
    // Twice the same node, more nodes than there are, a list that is not there.
    fails!(
        INVALID_VALUE,
        cuGraphAddEmptyNode(&mut new, other, [foreign, foreign].as_ptr(), 2)
    );
    fails!(
        INVALID_VALUE,
        cuGraphAddEmptyNode(&mut new, other, &foreign, usize::MAX)
    );
    fails!(
        INVALID_VALUE,
        cuGraphAddEmptyNode(&mut new, other, null(), 1)
    );
    fails!(
        INVALID_VALUE,
        cuGraphAddDependencies(other, &foreign, &foreign, usize::MAX)
    );
    assert!(new.is_null());
}

#[test]
fn memory_and_pools() {
    simulator_only!();
    let s = Session::new();
    let stream = s.stream();
    let memory = words(4);
    cu!(cuMemFree_v2(memory));
    for address in [memory, memory + 4, 0x40, u64::MAX] {
        fails!(INVALID_VALUE, cuMemFree_v2(address));
        fails!(INVALID_VALUE, cuMemFreeAsync(address, stream));
        fails!(INVALID_VALUE, cuMemsetD8_v2(address, 0, 1));
        fails!(INVALID_VALUE, cuMemFreeHost(address as *mut _));
    }
    let live = words(4);
    fails!(INVALID_VALUE, cuMemFree_v2(live + 4));
    // Freeing nothing is no error.
    cu!(cuMemFree_v2(0));
    cu!(cuMemFreeHost(null_mut()));
    let mut address = 0;
    fails!(INVALID_VALUE, cuMemAlloc_v2(&mut address, 0));
    fails!(OUT_OF_MEMORY, cuMemAlloc_v2(&mut address, 1 << 60));
    fails!(OUT_OF_MEMORY, cuMemAlloc_v2(&mut address, usize::MAX));
    let mut host = null_mut();
    fails!(OUT_OF_MEMORY, cuMemHostAlloc(&mut host, usize::MAX, 0));
    let mut value = 0u64;
    let place = std::ptr::from_mut(&mut value).cast();
    let used = CUmemPool_attribute::CU_MEMPOOL_ATTR_USED_MEM_CURRENT;
    refuses!(h in dead(null_mut()), [INVALID_VALUE], cuMemPoolDestroy(h));
    refuses!(h in dead(null_mut()), [INVALID_VALUE], cuMemPoolTrimTo(h, 0));
    refuses!(h in dead(null_mut()), [INVALID_VALUE], cuMemPoolGetAttribute(h, used, place));
    refuses!(
        h in dead(null_mut()), [INVALID_VALUE],
        cuMemAllocFromPoolAsync(&mut address, 16, h, stream)
    );
}

#[test]
fn answers_need_a_place() {
    simulator_only!();
    let s = Session::new();
    let (stream, graph) = (s.stream(), get!(cuGraphCreate(0)));
    let exec = instantiate(graph);
    let event: CUevent = get!(cuEventCreate(0));
    let module = get!(cuModuleLoadData(KERNELS.as_ptr().cast()));
    fails!(INVALID_VALUE, cuDeviceGetCount(null_mut()));
    fails!(INVALID_VALUE, cuDeviceGet(null_mut(), 0));
    fails!(INVALID_VALUE, cuDriverGetVersion(null_mut()));
    fails!(INVALID_VALUE, cuCtxCreate_v2(null_mut(), 0, 0));
    fails!(INVALID_VALUE, cuDevicePrimaryCtxRetain(null_mut(), 0));
    fails!(INVALID_VALUE, cuMemAlloc_v2(null_mut(), 16));
    fails!(INVALID_VALUE, cuMemAllocAsync(null_mut(), 16, stream));
    fails!(INVALID_VALUE, cuMemAllocHost_v2(null_mut(), 16));
    fails!(INVALID_VALUE, cuStreamCreate(null_mut(), 0));
    fails!(INVALID_VALUE, cuStreamIsCapturing(stream, null_mut()));
    fails!(INVALID_VALUE, cuEventCreate(null_mut(), 0));
    fails!(INVALID_VALUE, cuEventElapsedTime(null_mut(), event, event));
    fails!(INVALID_VALUE, cuGraphCreate(null_mut(), 0));
    fails!(INVALID_VALUE, cuGraphClone(null_mut(), graph));
    fails!(
        INVALID_VALUE,
        cuGraphInstantiateWithFlags(null_mut(), graph, 0)
    );
    fails!(
        INVALID_VALUE,
        cuGraphGetNodes(graph, null_mut(), null_mut())
    );
    fails!(
        INVALID_VALUE,
        cuGraphAddEmptyNode(null_mut(), graph, null(), 0)
    );
    let mut node = null_mut();
    fails!(
        INVALID_VALUE,
        cuGraphAddKernelNode_v2(&mut node, graph, null(), 0, null())
    );
    fails!(
        INVALID_VALUE,
        cuGraphAddMemcpyNode(&mut node, graph, null(), 0, null(), s.context)
    );
    fails!(
        INVALID_VALUE,
        cuGraphAddMemsetNode(&mut node, graph, null(), 0, null(), s.context)
    );
    fails!(
        INVALID_VALUE,
        cuGraphAddHostNode(&mut node, graph, null(), 0, null())
    );
    fails!(
        INVALID_VALUE,
        cuGraphAddNode(&mut node, graph, null(), 0, null_mut())
    );
    fails!(INVALID_VALUE, cuGraphExecUpdate_v2(exec, graph, null_mut()));
    fails!(INVALID_VALUE, cuGraphDebugDotPrint(graph, null(), 0));
    fails!(
        INVALID_VALUE,
        cuModuleLoadData(null_mut(), KERNELS.as_ptr().cast())
    );
    fails!(
        INVALID_VALUE,
        cuModuleGetFunction(null_mut(), module, c"set".as_ptr())
    );
    fails!(INVALID_VALUE, cuMemcpy2D_v2(null()));
    fails!(INVALID_VALUE, cuMemcpy3D_v2(null()));
    fails!(INVALID_VALUE, cuThreadExchangeStreamCaptureMode(null_mut()));
    fails!(INVALID_VALUE, cuLaunchHostFunc(stream, None, null_mut()));
    let params = null_mut();
    let set = get!(cuModuleGetFunction(module, c"set".as_ptr()));
    let status = status!(cuLaunchKernel(
        set, 1, 1, 1, 1, 1, 1, 0, stream, params, params
    ));
    assert_eq!(status, CUresult::CUDA_ERROR_INVALID_VALUE);
}

#[test]
fn a_launch_that_cannot_be_is_refused() {
    simulator_only!();
    let s = Session::new();
    let (stream, nothing) = (s.stream(), s.kernel(c"nothing"));
    let try_launch = |grid: [u32; 3], block: [u32; 3], shared: u32| {
        status!(cuLaunchKernel(
            nothing,
            grid[0],
            grid[1],
            grid[2],
            block[0],
            block[1],
            block[2],
            shared,
            stream,
            null_mut(),
            null_mut()
        ))
    };
    let wrong = CUresult::CUDA_ERROR_INVALID_VALUE;
    assert_eq!(try_launch([0, 1, 1], [1, 1, 1], 0), wrong);
    assert_eq!(try_launch([1, 1, 1], [1, 0, 1], 0), wrong);
    assert_eq!(try_launch([1, 1, 1], [1025, 1, 1], 0), wrong);
    assert_eq!(try_launch([1, 1, 1], [32, 32, 2], 0), wrong);
    assert_eq!(try_launch([1, 1, 1], [1, 1, 65], 0), wrong);
    assert_eq!(try_launch([1, 65536, 1], [1, 1, 1], 0), wrong);
    assert_eq!(try_launch([u32::MAX, 1, 1], [1, 1, 1], 0), wrong);
    assert_eq!(try_launch([1, 1, 1], [1, 1, 1], 49153), wrong);
    assert_eq!(
        try_launch([1, 1, 1], [1024, 1, 1], 49152),
        CUresult::CUDA_SUCCESS
    );
    cu!(cuStreamSynchronize(stream));
}
