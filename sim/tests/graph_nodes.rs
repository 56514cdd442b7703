//! Graphs that are built node by node: each kind of node, what can be asked of it and changed, edges,
//! copies of graphs, and their picture.

mod common;
use common::*;
use std::cell::Cell;
use std::ffi::{c_void, CString};
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicU32, Ordering};

fn graph() -> CUgraph {
    get!(cuGraphCreate(0))
}

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

fn empty_node(graph: CUgraph, after: &[CUgraphNode]) -> CUgraphNode {
    get!(cuGraphAddEmptyNode(graph, after.as_ptr(), after.len()))
}

/// A fill of words.
fn fill(memory: CUdeviceptr, value: u32, count: usize) -> CUDA_MEMSET_NODE_PARAMS {
    CUDA_MEMSET_NODE_PARAMS {
        dst: memory,
        pitch: 0,
        value,
        elementSize: 4,
        width: count,
        height: 1,
    }
}

unsafe extern "C" fn count(counter: *mut c_void) {
    // SAFETY: the tests pass a counter that outlives the graph's launches.
    unsafe { &*counter.cast::<AtomicU32>() }.fetch_add(1, Ordering::SeqCst);
}

fn kind(node: CUgraphNode) -> CUgraphNodeType {
    let mut kind = CUgraphNodeType::CU_GRAPH_NODE_TYPE_EMPTY;
    cu!(cuGraphNodeGetType(node, &mut kind));
    kind
}

#[test]
fn kernels_fills_copies_and_host_functions_run_in_the_order_of_their_edges() {
    let s = Session::new();
    let (a, b) = (words(4), words(4));
    let mut result = [0u32; 4];
    let counter = AtomicU32::new(0);
    let g = graph();
    let filled = get!(cuGraphAddMemsetNode(
        g,
        null(),
        0,
        &fill(a, 3, 4),
        s.context
    ));
    let added = kernel_node(g, &[filled], s.kernel(c"add"), a, 4);
    let moved = get!(cuGraphAddMemcpyNode(
        g,
        &added,
        1,
        &copy_params((DEVICE, b), (DEVICE, a), 16),
        s.context
    ));
    let stepped = kernel_node(g, &[moved], s.kernel(c"step"), b, 1);
    let back = copy_params((HOST, result.as_mut_ptr() as u64), (DEVICE, b), 16);
    let read: CUgraphNode = get!(cuGraphAddMemcpyNode(g, &stepped, 1, &back, s.context));
    let host = CUDA_HOST_NODE_PARAMS {
        fn_: Some(count),
        userData: std::ptr::from_ref(&counter).cast_mut().cast(),
    };
    let told: CUgraphNode = get!(cuGraphAddHostNode(g, &read, 1, &host));
    let stream = s.stream();
    let exec = instantiate(g);
    run(exec, stream);
    run(exec, stream);
    assert_eq!(result, [15; 4]);
    assert_eq!(counter.load(Ordering::SeqCst), 2);
    use CUgraphNodeType::*;
    assert_eq!(
        [filled, added, moved, read, told].map(kind),
        [
            CU_GRAPH_NODE_TYPE_MEMSET,
            CU_GRAPH_NODE_TYPE_KERNEL,
            CU_GRAPH_NODE_TYPE_MEMCPY,
            CU_GRAPH_NODE_TYPE_MEMCPY,
            CU_GRAPH_NODE_TYPE_HOST
        ]
    );
}

#[test]
fn a_kernel_node_tells_its_parameters_and_takes_others() {
    let s = Session::new();
    let (set, add) = (s.kernel(c"set"), s.kernel(c"add"));
    let memory = upload(&[1; 4]);
    let g = graph();
    let node = kernel_node(g, &[], set, memory, 9);
    let mut told: CUDA_KERNEL_NODE_PARAMS = get!(fill_kernel_params(node));
    assert_eq!((told.func, told.blockDimX, told.gridDimX), (set, 4, 1));
    // SAFETY: C's array of the addresses of both arguments, which live as long as the node keeps them.
    let (at, value) = unsafe {
        let pointers = std::slice::from_raw_parts(told.kernelParams, 2);
        (*pointers[0].cast::<u64>(), *pointers[1].cast::<u32>())
    };
    assert_eq!((at, value), (memory, 9));
    let (mut memory_argument, mut value) = (memory, 30);
    let mut arguments = arguments(&mut memory_argument, &mut value);
    told.func = add;
    told.kernelParams = arguments.as_mut_ptr();
    cu!(cuGraphKernelNodeSetParams_v2(node, &told));
    run(instantiate(g), s.stream());
    assert_eq!(download(memory, 4), [31; 4]);
}

/// `cuGraphKernelNodeGetParams_v2` with the answer first.
unsafe fn fill_kernel_params(params: *mut CUDA_KERNEL_NODE_PARAMS, node: CUgraphNode) -> CUresult {
    // SAFETY: passed on.
    unsafe { cuGraphKernelNodeGetParams_v2(node, params) }
}

#[test]
fn fill_copy_and_host_nodes_tell_their_parameters_and_take_others() {
    let s = Session::new();
    let (a, b) = (upload(&[1, 2, 3, 4]), upload(&[0; 4]));
    let (first, second) = (AtomicU32::new(0), AtomicU32::new(0));
    let data = |counter: &AtomicU32| std::ptr::from_ref(counter).cast_mut().cast::<c_void>();
    let g = graph();
    let filled: CUgraphNode = get!(cuGraphAddMemsetNode(
        g,
        null(),
        0,
        &fill(a, 1, 4),
        s.context
    ));
    let moved: CUgraphNode = get!(cuGraphAddMemcpyNode(
        g,
        &filled,
        1,
        &copy_params((DEVICE, b), (DEVICE, a), 8),
        s.context
    ));
    let host = CUDA_HOST_NODE_PARAMS {
        fn_: Some(count),
        userData: data(&first),
    };
    let told: CUgraphNode = get!(cuGraphAddHostNode(g, &moved, 1, &host));

    let mut fills = fill(0, 0, 0);
    cu!(cuGraphMemsetNodeGetParams(filled, &mut fills));
    assert_eq!(
        (
            fills.dst,
            fills.value,
            fills.elementSize,
            fills.width,
            fills.height
        ),
        (a, 1, 4, 4, 1)
    );
    cu!(cuGraphMemsetNodeSetParams(filled, &fill(a, 8, 3)));

    let mut copies = copy_params((DEVICE, 0), (DEVICE, 0), 0);
    cu!(cuGraphMemcpyNodeGetParams(moved, &mut copies));
    assert_eq!(
        (copies.dstDevice, copies.srcDevice, copies.WidthInBytes),
        (b, a, 8)
    );
    copies.WidthInBytes = 16;
    cu!(cuGraphMemcpyNodeSetParams(moved, &copies));

    let mut hosts = host;
    cu!(cuGraphHostNodeGetParams(told, &mut hosts));
    assert_eq!(hosts.userData, data(&first));
    hosts.userData = data(&second);
    cu!(cuGraphHostNodeSetParams(told, &hosts));

    run(instantiate(g), s.stream());
    assert_eq!(download(b, 4), [8, 8, 8, 4]);
    let counts = [&first, &second].map(|c| c.load(Ordering::SeqCst));
    assert_eq!(counts, [0, 1]);
    // A node does not become one of another kind.
    fails!(
        INVALID_VALUE,
        cuGraphMemsetNodeSetParams(moved, &fill(a, 1, 1))
    );
    fails!(INVALID_VALUE, cuGraphHostNodeGetParams(filled, &mut hosts));
}

#[test]
fn event_nodes_record_and_wait_at_each_launch() {
    let s = Session::new();
    let (stream, other) = (s.stream(), s.stream());
    let (first, second) = (get!(cuEventCreate(0)), get!(cuEventCreate(0)));
    let memory = upload(&[0; 4]);
    let g = graph();
    let waits: CUgraphNode = get!(cuGraphAddEventWaitNode(g, null(), 0, first));
    let added = kernel_node(g, &[waits], s.kernel(c"step"), memory, 1);
    let records: CUgraphNode = get!(cuGraphAddEventRecordNode(g, &added, 1, second));
    let (exec, set, step) = (instantiate(g), s.kernel(c"set"), s.kernel(c"step"));
    // The graph's work waits for what the event was recorded behind, another stream for the graph.
    let gate = Gate::default();
    gate.close(other);
    assert_eq!(launch(set, 4, memory, 10, other), CUresult::CUDA_SUCCESS);
    cu!(cuEventRecord(first, other));
    cu!(cuGraphLaunch(exec, stream));
    cu!(cuStreamWaitEvent(other, second, 0));
    assert_eq!(launch(step, 4, memory, 100, other), CUresult::CUDA_SUCCESS);
    fails!(NOT_READY, cuEventQuery(second));
    gate.open();
    cu!(cuStreamSynchronize(other));
    cu!(cuEventQuery(second));
    assert_eq!(download(memory, 4), [142; 4]);
    // The events that they are of.
    let mut event = null_mut();
    cu!(cuGraphEventWaitNodeGetEvent(waits, &mut event));
    assert_eq!(event, first);
    cu!(cuGraphEventRecordNodeGetEvent(records, &mut event));
    assert_eq!(event, second);
    cu!(cuGraphEventRecordNodeSetEvent(records, first));
    cu!(cuGraphEventRecordNodeGetEvent(records, &mut event));
    assert_eq!(event, first);
    cu!(cuGraphEventWaitNodeSetEvent(waits, second));
    fails!(
        INVALID_VALUE,
        cuGraphEventWaitNodeGetEvent(records, &mut event)
    );
}

#[test]
fn a_child_graph_is_a_copy_of_its_own() {
    let s = Session::new();
    let memory = upload(&[0; 4]);
    let inner = graph();
    let step = kernel_node(inner, &[], s.kernel(c"step"), memory, 1);
    let outer = graph();
    let set = kernel_node(outer, &[], s.kernel(c"set"), memory, 5);
    let child: CUgraphNode = get!(cuGraphAddChildGraphNode(outer, &set, 1, inner));
    kernel_node(outer, &[child], s.kernel(c"step"), memory, 7);
    // What happens to the original afterwards does not matter.
    kernel_node(inner, &[step], s.kernel(c"set"), memory, 0);
    cu!(cuGraphDestroy(inner));
    run(instantiate(outer), s.stream());
    assert_eq!(download(memory, 4), [(5 * 2 + 1) * 2 + 7; 4]);
    // The graph inside belongs to the node.
    let mut inside = null_mut();
    cu!(cuGraphChildGraphNodeGetGraph(child, &mut inside));
    let mut number = 0;
    cu!(cuGraphGetNodes(inside, null_mut(), &mut number));
    assert_eq!(number, 1);
    fails!(INVALID_VALUE, cuGraphDestroy(inside));
    cu!(cuGraphDestroy(outer));
    fails!(
        INVALID_VALUE,
        cuGraphGetNodes(inside, null_mut(), &mut number)
    );
}

#[test]
fn a_child_graph_of_no_nodes_still_orders_its_neighbours() {
    let s = Session::new();
    let memory = words(4);
    let outer = graph();
    let first = kernel_node(outer, &[], s.kernel(c"set"), memory, 5);
    let child: CUgraphNode = get!(cuGraphAddChildGraphNode(outer, &first, 1, graph()));
    kernel_node(outer, &[child], s.kernel(c"step"), memory, 1);
    run(instantiate(outer), s.stream());
    assert_eq!(download(memory, 4), [11; 4]);
}

#[test]
fn edges_are_listed_added_and_removed() {
    let _s = Session::new();
    let g = graph();
    let [a, b, c] = [(); 3].map(|()| empty_node(g, &[]));
    cu!(cuGraphAddDependencies(
        g,
        [a, b].as_ptr(),
        [c, c].as_ptr(),
        2
    ));
    let edges = || {
        let mut count = 0;
        cu!(cuGraphGetEdges(g, null_mut(), null_mut(), &mut count));
        let (mut from, mut to) = (vec![null_mut(); count], vec![null_mut(); count]);
        cu!(cuGraphGetEdges(
            g,
            from.as_mut_ptr(),
            to.as_mut_ptr(),
            &mut count
        ));
        let mut edges: Vec<_> = from.into_iter().zip(to).collect();
        edges.sort();
        edges
    };
    assert_eq!(edges(), [(a, c), (b, c)]);
    // One after the other: the second is there already.
    fails!(
        INVALID_VALUE,
        cuGraphAddDependencies(g, [a, b].as_ptr(), [b, c].as_ptr(), 2)
    );
    assert_eq!(edges(), [(a, b), (a, c), (b, c)]);
    cu!(cuGraphRemoveDependencies(g, &a, &b, 1));
    cu!(cuGraphRemoveDependencies(g, &b, &c, 1));
    assert_eq!(edges(), [(a, c)]);
    fails!(INVALID_VALUE, cuGraphRemoveDependencies(g, &b, &c, 1));
    fails!(INVALID_VALUE, cuGraphAddDependencies(g, &a, &a, 1));

    let list = |of: unsafe fn(CUgraphNode, *mut CUgraphNode, *mut usize) -> CUresult, node| {
        let mut nodes = vec![null_mut(); 4];
        let mut count = nodes.len();
        cu!(of(node, nodes.as_mut_ptr(), &mut count));
        assert!(nodes[count..].iter().all(|n| n.is_null()));
        nodes.truncate(count);
        nodes
    };
    assert_eq!(list(cuGraphNodeGetDependencies, c), [a]);
    assert_eq!(list(cuGraphNodeGetDependentNodes, a), [c]);
    let mut roots = [null_mut(); 3];
    let mut count = 3;
    cu!(cuGraphGetRootNodes(g, roots.as_mut_ptr(), &mut count));
    assert_eq!((count, &roots[..2]), (2, &[a, b][..]));
    cu!(cuGraphDestroyNode(a));
    assert_eq!(edges(), []);
    fails!(INVALID_VALUE, cuGraphDestroyNode(a));
}

#[test]
fn a_circle_cannot_be_instantiated() {
    let _s = Session::new();
    let g = graph();
    let a = empty_node(g, &[]);
    let b = empty_node(g, &[a]);
    let mut exec = null_mut();
    let closed = status!(cuGraphAddDependencies(g, &b, &a, 1));
    // A driver may refuse the edge already.
    if closed == CUresult::CUDA_SUCCESS {
        fails!(INVALID_VALUE, cuGraphInstantiateWithFlags(&mut exec, g, 0));
        assert!(exec.is_null());
    }
}

#[test]
fn a_clone_has_nodes_of_its_own() {
    let s = Session::new();
    let memory = upload(&[0; 4]);
    let g = graph();
    let set = kernel_node(g, &[], s.kernel(c"set"), memory, 5);
    let step = kernel_node(g, &[set], s.kernel(c"step"), memory, 1);
    let clone = get!(cuGraphClone(g));
    let twin: CUgraphNode = get!(cuGraphNodeFindInClone(step, clone));
    assert_ne!(twin, step);
    let (mut at, mut value) = (memory, 3);
    let mut arguments = arguments(&mut at, &mut value);
    let params = kernel_params(s.kernel(c"step"), 4, &mut arguments);
    cu!(cuGraphKernelNodeSetParams_v2(twin, &params));
    let stream = s.stream();
    run(instantiate(clone), stream);
    assert_eq!(download(memory, 4), [13; 4]);
    run(instantiate(g), stream);
    assert_eq!(download(memory, 4), [11; 4]);
    let late = empty_node(g, &[]);
    let mut found = null_mut();
    fails!(
        INVALID_VALUE,
        cuGraphNodeFindInClone(&mut found, late, clone)
    );
    assert!(found.is_null());
}

#[test]
fn nodes_of_any_kind_are_made_from_one_description() {
    let s = Session::new();
    let (a, b) = (upload(&[0; 4]), upload(&[0; 4]));
    let g = graph();
    // SAFETY: numbers and addresses, for all of which zero is a value.
    let mut params: CUgraphNodeParams = unsafe { std::mem::zeroed() };
    params.type_ = CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEMSET;
    params.__bindgen_anon_1.memset = CUDA_MEMSET_NODE_PARAMS_v2 {
        dst: a,
        pitch: 0,
        value: 6,
        elementSize: 4,
        width: 4,
        height: 1,
        ctx: s.context,
    };
    let filled: CUgraphNode = get!(cuGraphAddNode(g, null(), 0, &mut params));
    // SAFETY: as above.
    params = unsafe { std::mem::zeroed() };
    params.type_ = CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEMCPY;
    params.__bindgen_anon_1.memcpy = CUDA_MEMCPY_NODE_PARAMS {
        flags: 0,
        reserved: 0,
        copyCtx: s.context,
        copyParams: copy_params((DEVICE, b), (DEVICE, a), 16),
    };
    let moved: CUgraphNode = get!(cuGraphAddNode_v2(g, &filled, null(), 1, &mut params));
    let (at, value) = (Cell::new(b), Cell::new(1u32));
    let mut arguments = [at.as_ptr().cast(), value.as_ptr().cast()];
    let launch = kernel_params(s.kernel(c"step"), 4, &mut arguments);
    // SAFETY: as above.
    params = unsafe { std::mem::zeroed() };
    params.type_ = CUgraphNodeType::CU_GRAPH_NODE_TYPE_KERNEL;
    params.__bindgen_anon_1.kernel = CUDA_KERNEL_NODE_PARAMS_v3 {
        func: launch.func,
        gridDimX: 1,
        gridDimY: 1,
        gridDimZ: 1,
        blockDimX: 4,
        blockDimY: 1,
        blockDimZ: 1,
        sharedMemBytes: 0,
        kernelParams: launch.kernelParams,
        extra: null_mut(),
        kern: null_mut(),
        ctx: null_mut(),
    };
    let stepped: CUgraphNode = get!(cuGraphAddNode(g, &moved, 1, &mut params));
    let stream = s.stream();
    let exec = instantiate(g);
    run(exec, stream);
    assert_eq!(download(b, 4), [13; 4]);
    value.set(2);
    cu!(cuGraphNodeSetParams(stepped, &mut params));
    value.set(4);
    cu!(cuGraphExecNodeSetParams(exec, stepped, &mut params));
    run(exec, stream);
    assert_eq!(download(b, 4), [16; 4]);
    run(instantiate(g), stream);
    assert_eq!(download(b, 4), [14; 4]);
    // The kind must be the node's.
    fails!(INVALID_VALUE, cuGraphNodeSetParams(filled, &mut params));
    params.type_ = CUgraphNodeType::CU_GRAPH_NODE_TYPE_CONDITIONAL;
    let mut node = null_mut();
    simulator_refuses!(
        NOT_SUPPORTED,
        cuGraphAddNode(&mut node, g, null(), 0, &mut params)
    );
}

#[test]
fn the_picture_names_nodes_and_edges() {
    let s = Session::new();
    let memory = words(4);
    let g = graph();
    let set = kernel_node(g, &[], s.kernel(c"set"), memory, 5);
    let filled: CUgraphNode = get!(cuGraphAddMemsetNode(
        g,
        &set,
        1,
        &fill(memory, 1, 4),
        s.context
    ));
    empty_node(g, &[filled]);
    let path = std::env::temp_dir().join(format!("cudagraph-{}.dot", std::process::id()));
    let name = CString::new(path.to_str().unwrap()).unwrap();
    cu!(cuGraphDebugDotPrint(g, name.as_ptr(), 1));
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    assert!(text.starts_with("digraph"), "{text}");
    assert_eq!(text.matches("->").count(), 2, "{text}");
    for word in ["set", "MEMSET", "EMPTY"] {
        assert!(text.contains(word), "no {word} in {text}");
    }
    let nowhere = c"/no/such/folder/graph.dot";
    let status = status!(cuGraphDebugDotPrint(g, nowhere.as_ptr(), 1));
    assert_ne!(status, CUresult::CUDA_SUCCESS);
}
