//! Changing an executable graph: from a whole graph of the same form, or one node at a time.

mod common;
use common::*;
use std::ptr::{null, null_mut};

/// A graph of two kernels in a row on a memory: `first`, then add.
struct Two {
    graph: CUgraph,
    nodes: [CUgraphNode; 2],
}

fn two(first: CUfunction, second: CUfunction, memory: CUdeviceptr, values: [u32; 2]) -> Two {
    let graph = get!(cuGraphCreate(0));
    let mut nodes = [null_mut(); 2];
    for (index, function) in [first, second].into_iter().enumerate() {
        let (mut memory, mut value) = (memory, values[index]);
        let mut arguments = arguments(&mut memory, &mut value);
        let params = kernel_params(function, 4, &mut arguments);
        let before = nodes;
        nodes[index] = get!(cuGraphAddKernelNode_v2(
            graph,
            before.as_ptr(),
            index,
            &params
        ));
    }
    Two { graph, nodes }
}

fn update(exec: CUgraphExec, graph: CUgraph) -> (CUresult, CUgraphExecUpdateResultInfo) {
    let mut info = CUgraphExecUpdateResultInfo {
        result: CUgraphExecUpdateResult::CU_GRAPH_EXEC_UPDATE_ERROR,
        errorNode: null_mut(),
        errorFromNode: null_mut(),
    };
    let status = status!(cuGraphExecUpdate_v2(exec, graph, &mut info));
    (status, info)
}

#[test]
fn other_arguments_are_taken_over() {
    let s = Session::new();
    let (set, add, stream) = (s.kernel(c"set"), s.kernel(c"add"), s.stream());
    let (a, b) = (words(4), upload(&[0; 4]));
    let exec = instantiate(two(set, add, a, [5, 1]).graph);
    run(exec, stream);
    assert_eq!(download(a, 4), [6; 4]);
    let (status, info) = update(exec, two(set, add, b, [7, 3]).graph);
    assert_eq!(status, CUresult::CUDA_SUCCESS);
    assert_eq!(
        info.result,
        CUgraphExecUpdateResult::CU_GRAPH_EXEC_UPDATE_SUCCESS
    );
    run(exec, stream);
    assert_eq!(download(b, 4), [10; 4]);
    assert_eq!(download(a, 4), [6; 4]);
}

#[test]
fn another_kernel_of_the_same_context_is_taken_over() {
    let s = Session::new();
    let (set, add, step) = (s.kernel(c"set"), s.kernel(c"add"), s.kernel(c"step"));
    let (memory, stream) = (words(4), s.stream());
    let exec = instantiate(two(set, add, memory, [5, 1]).graph);
    let (status, _) = update(exec, two(set, step, memory, [5, 1]).graph);
    assert_eq!(status, CUresult::CUDA_SUCCESS);
    run(exec, stream);
    assert_eq!(download(memory, 4), [11; 4]);
}

#[test]
fn a_pending_launch_keeps_what_it_was_launched_with() {
    let s = Session::new();
    let (set, add, stream) = (s.kernel(c"set"), s.kernel(c"add"), s.stream());
    let (a, b) = (upload(&[0; 4]), upload(&[0; 4]));
    let exec = instantiate(two(set, add, a, [5, 1]).graph);
    let gate = Gate::default();
    gate.close(stream);
    cu!(cuGraphLaunch(exec, stream));
    assert_eq!(
        update(exec, two(set, add, b, [7, 3]).graph).0,
        CUresult::CUDA_SUCCESS
    );
    gate.open();
    cu!(cuStreamSynchronize(stream));
    assert_eq!((download(a, 4), download(b, 4)), (vec![6; 4], vec![0; 4]));
}

/// Updates an executable graph of two kernels from something else: why not, and that it still does what
/// it did before.
fn refused(
    make: impl FnOnce(&Session, &Two, CUdeviceptr) -> CUgraph,
) -> CUgraphExecUpdateResultInfo {
    let s = Session::new();
    let (set, add, stream) = (s.kernel(c"set"), s.kernel(c"add"), s.stream());
    let memory = upload(&[0; 4]);
    let old = two(set, add, memory, [5, 1]);
    let exec = instantiate(old.graph);
    let graph = make(&s, &old, memory);
    let (status, info) = update(exec, graph);
    assert_eq!(
        status,
        CUresult::CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE,
        "{info:?}"
    );
    run(exec, stream);
    assert_eq!(download(memory, 4), [6; 4]);
    info
}

#[test]
fn one_more_node_changes_the_topology() {
    let info = refused(|s, _, memory| {
        let new = two(s.kernel(c"set"), s.kernel(c"add"), memory, [5, 1]);
        let _: CUgraphNode = get!(cuGraphAddEmptyNode(new.graph, new.nodes.as_ptr(), 1));
        new.graph
    });
    assert_eq!(
        info.result,
        CUgraphExecUpdateResult::CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED
    );
}

#[test]
fn a_missing_edge_changes_the_topology() {
    let info = refused(|s, _, memory| {
        let new = two(s.kernel(c"set"), s.kernel(c"add"), memory, [5, 1]);
        let [from, to] = new.nodes;
        cu!(cuGraphRemoveDependencies(new.graph, &from, &to, 1));
        new.graph
    });
    assert_eq!(
        info.result,
        CUgraphExecUpdateResult::CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED
    );
}

#[test]
fn another_kind_of_node_is_named() {
    let mut other = null_mut();
    let info = refused(|s, _, memory| {
        let graph = get!(cuGraphCreate(0));
        let (mut at, mut value) = (memory, 5);
        let mut arguments = arguments(&mut at, &mut value);
        let params = kernel_params(s.kernel(c"set"), 4, &mut arguments);
        let first: CUgraphNode = get!(cuGraphAddKernelNode_v2(graph, null(), 0, &params));
        let fill = CUDA_MEMSET_NODE_PARAMS {
            dst: memory,
            pitch: 0,
            value: 1,
            elementSize: 4,
            width: 4,
            height: 1,
        };
        other = get!(cuGraphAddMemsetNode(graph, &first, 1, &fill, s.context));
        graph
    });
    assert_eq!(
        info.result,
        CUgraphExecUpdateResult::CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED
    );
    assert_eq!(info.errorNode, other);
}

#[test]
fn a_kernel_of_another_context_is_refused() {
    let info = refused(|s, _, memory| {
        let other: CUcontext = get!(cuCtxCreate_v2(0, 0));
        let foreign = kernel(c"add");
        let _: CUcontext = get!(cuCtxPopCurrent_v2());
        assert_ne!(other, s.context);
        two(s.kernel(c"set"), foreign, memory, [5, 1]).graph
    });
    assert_eq!(
        info.result,
        CUgraphExecUpdateResult::CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE
    );
}

#[test]
fn the_older_form_names_the_node() {
    let s = Session::new();
    let (set, add, memory) = (s.kernel(c"set"), s.kernel(c"add"), words(4));
    let exec = instantiate(two(set, add, memory, [5, 1]).graph);
    type Update = extern "C" fn(CUgraphExec, CUgraph, *mut CUgraphNode, *mut u32) -> CUresult;
    let update = function!("cuGraphExecUpdate", Update);
    let (mut node, mut result) = (null_mut(), 9);
    let same = two(set, add, memory, [6, 1]).graph;
    let status = update(exec, same, &mut node, &mut result);
    assert_eq!((status, result), (CUresult::CUDA_SUCCESS, 0));
    let empty = get!(cuGraphCreate(0));
    let status = update(exec, empty, &mut node, &mut result);
    // It knows of no changed topology.
    let reason = CUgraphExecUpdateResult::CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED;
    let failure = CUresult::CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
    assert_eq!((status, result), (failure, reason as u32));
    assert!(node.is_null());
}

#[test]
fn the_exec_answers_to_the_nodes_that_it_was_made_of() {
    let s = Session::new();
    let (set, add, stream) = (s.kernel(c"set"), s.kernel(c"add"), s.stream());
    let memory = words(4);
    let old = two(set, add, memory, [5, 1]);
    let exec = instantiate(old.graph);
    let new = two(set, add, memory, [7, 3]);
    assert_eq!(update(exec, new.graph).0, CUresult::CUDA_SUCCESS);
    cu!(cuGraphNodeSetEnabled(exec, old.nodes[1], 0));
    fails!(INVALID_VALUE, cuGraphNodeSetEnabled(exec, new.nodes[1], 0));
    run(exec, stream);
    assert_eq!(download(memory, 4), [7; 4]);
}
