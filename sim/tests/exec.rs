//! Executable graphs: flags, parameters of single nodes, branches, and launches that follow each other.

mod common;
use common::*;
use std::ffi::c_void;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Barrier};

fn kernel_node(
    graph: CUgraph,
    after: &[CUgraphNode],
    function: CUfunction,
    memory: CUdeviceptr,
    value: u32,
) -> CUgraphNode {
    let (mut memory, mut value) = (memory, value);
    let mut arguments = arguments(&mut memory, &mut value);
    let params = kernel_params(function, 4, &mut arguments);
    get!(cuGraphAddKernelNode_v2(
        graph,
        after.as_ptr(),
        after.len(),
        &params
    ))
}

fn host_node(
    graph: CUgraph,
    after: &[CUgraphNode],
    function: unsafe extern "C" fn(*mut c_void),
    data: *mut c_void,
) -> CUgraphNode {
    let params = CUDA_HOST_NODE_PARAMS {
        fn_: Some(function),
        userData: data,
    };
    get!(cuGraphAddHostNode(
        graph,
        after.as_ptr(),
        after.len(),
        &params
    ))
}

#[test]
fn single_nodes_take_other_parameters() {
    let s = Session::new();
    let (set, add, stream) = (s.kernel(c"set"), s.kernel(c"add"), s.stream());
    let (a, b) = (upload(&[0; 4]), upload(&[0; 4]));
    let g = get!(cuGraphCreate(0));
    let first = kernel_node(g, &[], set, a, 5);
    let fill = CUDA_MEMSET_NODE_PARAMS {
        dst: b,
        pitch: 0,
        value: 1,
        elementSize: 4,
        width: 4,
        height: 1,
    };
    let second: CUgraphNode = get!(cuGraphAddMemsetNode(g, &first, 1, &fill, s.context));
    let copy = copy_params((DEVICE, b), (DEVICE, a), 8);
    let third: CUgraphNode = get!(cuGraphAddMemcpyNode(g, &second, 1, &copy, s.context));
    let exec = instantiate(g);
    run(exec, stream);
    assert_eq!(download(b, 4), [5, 5, 1, 1]);

    let (mut at, mut value) = (a, 2);
    let mut arguments = arguments(&mut at, &mut value);
    let params = kernel_params(add, 4, &mut arguments);
    cu!(cuGraphExecKernelNodeSetParams_v2(exec, first, &params));
    let fill = CUDA_MEMSET_NODE_PARAMS { value: 9, ..fill };
    cu!(cuGraphExecMemsetNodeSetParams(
        exec, second, &fill, s.context
    ));
    let copy = copy_params((DEVICE, b), (DEVICE, a), 4);
    cu!(cuGraphExecMemcpyNodeSetParams(
        exec, third, &copy, s.context
    ));
    run(exec, stream);
    assert_eq!(download(b, 4), [7, 9, 9, 9]);

    // A node takes no parameters of another kind, and what the exec does not know is refused.
    fails!(
        INVALID_VALUE,
        cuGraphExecMemsetNodeSetParams(exec, first, &fill, s.context)
    );
    let stranger = kernel_node(get!(cuGraphCreate(0)), &[], set, a, 1);
    fails!(
        INVALID_VALUE,
        cuGraphExecKernelNodeSetParams_v2(exec, stranger, &params)
    );
    // A copy between devices does not become one to the host.
    let mut here = [0u32; 4];
    let copy = copy_params((HOST, here.as_mut_ptr() as u64), (DEVICE, a), 4);
    fails!(
        INVALID_VALUE,
        cuGraphExecMemcpyNodeSetParams(exec, third, &copy, s.context)
    );
    run(exec, stream);
    assert_eq!((download(b, 4), here), (vec![9; 4], [0; 4]));
}

#[test]
fn nodes_are_switched_off_and_on() {
    let s = Session::new();
    let (memory, stream) = (upload(&[0; 4]), s.stream());
    let g = get!(cuGraphCreate(0));
    let first = kernel_node(g, &[], s.kernel(c"set"), memory, 5);
    let second = kernel_node(g, &[first], s.kernel(c"step"), memory, 1);
    let empty: CUgraphNode = get!(cuGraphAddEmptyNode(g, null(), 0));
    let exec = instantiate(g);
    cu!(cuGraphNodeSetEnabled(exec, second, 0));
    let mut enabled = 7;
    cu!(cuGraphNodeGetEnabled(exec, second, &mut enabled));
    run(exec, stream);
    assert_eq!((enabled, download(memory, 4)), (0, vec![5; 4]));
    cu!(cuGraphNodeSetEnabled(exec, second, 1));
    run(exec, stream);
    assert_eq!(download(memory, 4), [11; 4]);
    fails!(INVALID_VALUE, cuGraphNodeSetEnabled(exec, empty, 0));
}

#[test]
fn the_graph_inside_of_a_node_is_replaced() {
    let s = Session::new();
    let (memory, stream) = (upload(&[0; 4]), s.stream());
    let inner = |value| {
        let g = get!(cuGraphCreate(0));
        kernel_node(g, &[], s.kernel(c"set"), memory, value);
        g
    };
    let outer = get!(cuGraphCreate(0));
    let child: CUgraphNode = get!(cuGraphAddChildGraphNode(outer, null(), 0, inner(1)));
    kernel_node(outer, &[child], s.kernel(c"step"), memory, 0);
    let exec = instantiate(outer);
    cu!(cuGraphExecChildGraphNodeSetParams(exec, child, inner(4)));
    run(exec, stream);
    assert_eq!(download(memory, 4), [8; 4]);
    let larger = inner(3);
    let _: CUgraphNode = get!(cuGraphAddEmptyNode(larger, null(), 0));
    fails!(
        GRAPH_EXEC_UPDATE_FAILURE,
        cuGraphExecChildGraphNodeSetParams(exec, child, larger)
    );
    run(exec, stream);
    assert_eq!(download(memory, 4), [8; 4]);
}

unsafe extern "C" fn meet(barrier: *mut c_void) {
    // SAFETY: the test passes a barrier that outlives the launch.
    unsafe { &*barrier.cast::<Barrier>() }.wait();
}

#[test]
fn branches_of_a_graph_overlap() {
    // A driver may have one thread for all functions of the host.
    simulator_only!();
    let s = Session::new();
    let (memory, stream) = (upload(&[0; 4]), s.stream());
    // None of these returns before all of them run.
    let barrier = Barrier::new(6);
    let data = std::ptr::from_ref(&barrier).cast_mut().cast();
    let g = get!(cuGraphCreate(0));
    let root = kernel_node(g, &[], s.kernel(c"set"), memory, 1);
    let branches: Vec<_> = (0..6).map(|_| host_node(g, &[root], meet, data)).collect();
    kernel_node(g, &branches, s.kernel(c"step"), memory, 1);
    let exec = instantiate(g);
    for _ in 0..20 {
        run(exec, stream);
        assert_eq!(download(memory, 4), [3; 4]);
    }
}

#[test]
fn a_graph_of_many_branches_does_each_node_once_and_in_order() {
    let s = Session::new();
    let (add, step, stream) = (s.kernel(c"add"), s.kernel(c"step"), s.stream());
    let lanes: Vec<_> = (0..40).map(|_| upload(&[0; 4])).collect();
    let g = get!(cuGraphCreate(0));
    let root: CUgraphNode = get!(cuGraphAddEmptyNode(g, null(), 0));
    for memory in &lanes {
        let first = kernel_node(g, &[root], add, *memory, 1);
        kernel_node(g, &[first], step, *memory, 3);
    }
    let exec = instantiate(g);
    for _ in 0..5 {
        cu!(cuGraphLaunch(exec, stream));
    }
    cu!(cuStreamSynchronize(stream));
    let want = (0..5).fold(0, |word, _| (word + 1) * 2 + 3);
    for memory in lanes {
        assert_eq!(download(memory, 4), [want; 4]);
    }
}

#[test]
fn launches_of_one_exec_follow_each_other_on_all_streams() {
    let s = Session::new();
    let (memory, streams) = (upload(&[0; 4]), [s.stream(), s.stream()]);
    let running = AtomicU32::new(0);
    unsafe extern "C" fn alone(counter: *mut c_void) {
        // SAFETY: the test passes a counter that outlives the launches.
        let counter = unsafe { &*counter.cast::<AtomicU32>() };
        let others = counter.fetch_add(1, Ordering::SeqCst) & 0xff;
        std::thread::yield_now();
        let mark = if others > 0 { 0x100 } else { 0 };
        counter.fetch_add(mark, Ordering::SeqCst);
        counter.fetch_sub(1, Ordering::SeqCst);
    }
    let g = get!(cuGraphCreate(0));
    let data = std::ptr::from_ref(&running).cast_mut().cast();
    let first = host_node(g, &[], alone, data);
    kernel_node(g, &[first], s.kernel(c"add"), memory, 1);
    let exec = instantiate(g);
    for round in 0..100 {
        cu!(cuGraphLaunch(exec, streams[round % 2]));
    }
    cu!(cuCtxSynchronize());
    assert_eq!(running.load(Ordering::SeqCst), 0);
    assert_eq!(download(memory, 4), [100; 4]);
}

#[test]
fn many_threads_launch_one_exec_on_one_stream() {
    let s = Session::new();
    let (memory, stream) = (upload(&[0; 4]), s.stream());
    let g = get!(cuGraphCreate(0));
    kernel_node(g, &[], s.kernel(c"add"), memory, 1);
    // Handles are numbers; threads may share them.
    let (exec, on, context) = (instantiate(g) as usize, stream as usize, s.context as usize);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(move || {
                cu!(cuCtxSetCurrent(context as CUcontext));
                for _ in 0..500 {
                    cu!(cuGraphLaunch(exec as CUgraphExec, on as CUstream));
                }
            });
        }
    });
    cu!(cuStreamSynchronize(stream));
    assert_eq!(download(memory, 4), [2000; 4]);
}

#[test]
fn graph_and_exec_may_go_while_launches_are_pending() {
    let s = Session::new();
    let (memory, stream) = (upload(&[0; 4]), s.stream());
    let g = get!(cuGraphCreate(0));
    let node = kernel_node(g, &[], s.kernel(c"add"), memory, 1);
    let exec = instantiate(g);
    let gate = Gate::default();
    gate.close(stream);
    for _ in 0..3 {
        cu!(cuGraphLaunch(exec, stream));
    }
    cu!(cuGraphDestroy(g));
    cu!(cuGraphExecDestroy(exec));
    fails!(NOT_READY, cuStreamQuery(stream));
    gate.open();
    cu!(cuStreamSynchronize(stream));
    assert_eq!(download(memory, 4), [3; 4]);
    simulator_refuses!(INVALID_VALUE, cuGraphLaunch(exec, stream));
    let mut kind = CUgraphNodeType::CU_GRAPH_NODE_TYPE_EMPTY;
    simulator_refuses!(INVALID_VALUE, cuGraphNodeGetType(node, &mut kind));
}

#[test]
fn flags_are_checked_and_told() {
    let s = Session::new();
    let g = get!(cuGraphCreate(0));
    let (mut exec, mut flags) = (null_mut(), 0);
    // That the nodes' priorities count (8) is not told.
    for (given, told) in [(0, 0), (1, 1), (8, 0), (9, 1)] {
        cu!(cuGraphInstantiateWithFlags(&mut exec, g, given));
        cu!(cuGraphExecGetFlags(exec, &mut flags));
        assert_eq!(flags, told);
    }
    fails!(INVALID_VALUE, cuGraphInstantiateWithFlags(&mut exec, g, 2));
    fails!(INVALID_VALUE, cuGraphInstantiateWithFlags(&mut exec, g, 16));
    let stream = s.stream();
    let mut params = CUDA_GRAPH_INSTANTIATE_PARAMS {
        flags: 2,
        hUploadStream: stream,
        hErrNode_out: null_mut(),
        result_out: CUgraphInstantiateResult::CUDA_GRAPH_INSTANTIATE_ERROR,
    };
    cu!(cuGraphInstantiateWithParams(&mut exec, g, &mut params));
    assert_eq!(
        params.result_out,
        CUgraphInstantiateResult::CUDA_GRAPH_INSTANTIATE_SUCCESS
    );
    cu!(cuGraphUpload(exec, stream));
    run(exec, stream);
}

#[test]
fn an_exec_can_be_launched_on_a_stream_of_another_context() {
    let s = Session::new();
    let memory = upload(&[0; 4]);
    let g = get!(cuGraphCreate(0));
    kernel_node(g, &[], s.kernel(c"add"), memory, 5);
    let exec = instantiate(g);
    let other: CUcontext = get!(cuCtxCreate_v2(0, 0));
    let foreign = stream();
    run(exec, foreign);
    assert_eq!(
        launch_status(s.context, memory, foreign),
        "CUDA_ERROR_INVALID_HANDLE"
    );
    let _: CUcontext = get!(cuCtxPopCurrent_v2());
    run(exec, foreign);
    cu!(cuCtxDestroy_v2(other));
    run(exec, s.stream());
    assert_eq!(download(memory, 4), [15; 4]);
}

/// A single kernel, other than a graph, keeps to its context.
fn launch_status(context: CUcontext, memory: CUdeviceptr, stream: CUstream) -> String {
    cu!(cuCtxPushCurrent_v2(context));
    let add = kernel(c"add");
    let _: CUcontext = get!(cuCtxPopCurrent_v2());
    format!("{:?}", launch(add, 4, memory, 5, stream))
}

/// What a test lends to callbacks lives until the last of them has run.
#[test]
fn a_node_reads_its_arguments_when_it_is_made() {
    let s = Session::new();
    let (memory, stream) = (upload(&[0; 4]), s.stream());
    let g = get!(cuGraphCreate(0));
    let values = Arc::new([7u32]);
    let mut at = memory;
    let mut pointers = [
        std::ptr::from_mut(&mut at).cast(),
        values.as_ptr().cast_mut().cast(),
    ];
    let params = kernel_params(s.kernel(c"set"), 4, &mut pointers);
    let _: CUgraphNode = get!(cuGraphAddKernelNode_v2(g, null(), 0, &params));
    drop(values);
    run(instantiate(g), stream);
    assert_eq!(download(memory, 4), [7; 4]);
}
