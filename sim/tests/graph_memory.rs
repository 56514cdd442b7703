//! Memory that nodes of graphs make and free.

mod common;
use common::*;
use std::ptr::{null, null_mut};

fn alloc_params(size: usize) -> CUDA_MEM_ALLOC_NODE_PARAMS_v1 {
    CUDA_MEM_ALLOC_NODE_PARAMS_v1 {
        poolProps: CUmemPoolProps {
            allocType: CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED,
            handleTypes: CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_NONE,
            location: CUmemLocation {
                type_: CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE,
                id: 0,
            },
            win32SecurityAttributes: null_mut(),
            maxSize: 0,
            usage: 0,
            reserved: [0; 54],
        },
        accessDescs: null(),
        accessDescCount: 0,
        bytesize: size,
        dptr: 0,
    }
}

/// A graph that makes memory and sets its words: the address.
fn making(s: &Session, value: u32) -> (CUgraph, CUgraphNode, CUdeviceptr) {
    let g = get!(cuGraphCreate(0));
    let mut params = alloc_params(16);
    let made: CUgraphNode = get!(cuGraphAddMemAllocNode(g, null(), 0, &mut params));
    assert_ne!(params.dptr, 0);
    let (mut at, mut value) = (params.dptr, value);
    let mut arguments = arguments(&mut at, &mut value);
    let launch = kernel_params(s.kernel(c"set"), 4, &mut arguments);
    let set = get!(cuGraphAddKernelNode_v2(g, &made, 1, &launch));
    (g, set, params.dptr)
}

#[test]
fn memory_made_and_freed_in_one_graph_serves_each_launch() {
    alone!();
    let s = Session::new();
    let result = upload(&[0; 4]);
    let (g, set, memory) = making(&s, 6);
    let copy = copy_params((DEVICE, result), (DEVICE, memory), 16);
    let moved: CUgraphNode = get!(cuGraphAddMemcpyNode(g, &set, 1, &copy, s.context));
    let freed: CUgraphNode = get!(cuGraphAddMemFreeNode(g, &moved, 1, memory));
    let (exec, stream) = (instantiate(g), s.stream());
    for _ in 0..3 {
        cu!(cuMemsetD32_v2(result, 0, 4));
        run(exec, stream);
        assert_eq!(download(result, 4), [6; 4]);
    }
    let mut address = 0u64;
    cu!(cuGraphMemFreeNodeGetParams(freed, &mut address));
    assert_eq!(address, memory);
    // Between the launches there is nothing.
    let mut words = [0u32; 4];
    assert_ne!(
        status!(cuMemcpyDtoH_v2(words.as_mut_ptr().cast(), memory, 16)),
        CUresult::CUDA_SUCCESS
    );
}

#[test]
fn memory_that_outlives_a_launch_is_freed_before_the_next() {
    let s = Session::new();
    let (g, _, memory) = making(&s, 4);
    let (exec, stream) = (instantiate(g), s.stream());
    run(exec, stream);
    assert_eq!(download(memory, 4), [4; 4]);
    fails!(INVALID_VALUE, cuGraphLaunch(exec, stream));
    assert_eq!(download(memory, 4), [4; 4]);
    cu!(cuMemFreeAsync(memory, stream));
    run(exec, stream);
    cu!(cuMemFree_v2(memory));
    run(exec, stream);
    fails!(INVALID_VALUE, cuGraphLaunch(exec, stream));
    cu!(cuMemFreeAsync(memory, stream));
    cu!(cuStreamSynchronize(stream));
    fails!(INVALID_VALUE, cuMemFreeAsync(memory, stream));
}

#[test]
fn a_flag_frees_what_the_launch_before_has_left() {
    let s = Session::new();
    let (g, _, memory) = making(&s, 4);
    let exec: CUgraphExec = get!(cuGraphInstantiateWithFlags(g, 1));
    let stream = s.stream();
    for _ in 0..3 {
        run(exec, stream);
        assert_eq!(download(memory, 4), [4; 4]);
    }
}

#[test]
fn one_exec_at_a_time_and_nothing_is_taken_out_or_copied() {
    let s = Session::new();
    let (g, set, _) = making(&s, 4);
    let exec = instantiate(g);
    let (mut other, mut node) = (null_mut(), null_mut());
    fails!(NOT_SUPPORTED, cuGraphInstantiateWithFlags(&mut other, g, 0));
    cu!(cuGraphExecDestroy(exec));
    let again = instantiate(g);
    let mut clone = null_mut();
    fails!(NOT_SUPPORTED, cuGraphClone(&mut clone, g));
    fails!(NOT_SUPPORTED, cuGraphDestroyNode(set));
    let outer = get!(cuGraphCreate(0));
    fails!(
        NOT_SUPPORTED,
        cuGraphAddChildGraphNode(&mut node, outer, null(), 0, g)
    );
    // More may be added.
    let late: CUgraphNode = get!(cuGraphAddEmptyNode(g, null(), 0));
    cu!(cuGraphAddDependencies(g, &set, &late, 1));
    fails!(NOT_SUPPORTED, cuGraphRemoveDependencies(g, &set, &late, 1));
    cu!(cuGraphExecDestroy(again));
}

#[test]
fn a_graph_frees_what_another_has_made() {
    let s = Session::new();
    let (g, _, memory) = making(&s, 4);
    let free = get!(cuGraphCreate(0));
    let _: CUgraphNode = get!(cuGraphAddMemFreeNode(free, null(), 0, memory));
    let (make, free, stream) = (instantiate(g), instantiate(free), s.stream());
    fails!(INVALID_VALUE, cuGraphLaunch(free, stream));
    for _ in 0..3 {
        run(make, stream);
        run(free, stream);
    }
}

#[test]
fn capturing_an_allocation_makes_nodes() {
    let s = Session::new();
    let (stream, set) = (s.stream(), s.kernel(c"set"));
    let result = upload(&[0; 4]);
    let foreign: CUdeviceptr = get!(cuMemAllocAsync(16, stream));
    cu!(cuStreamSynchronize(stream));
    cu!(cuStreamBeginCapture_v2(
        stream,
        CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL
    ));
    let memory: CUdeviceptr = get!(cuMemAllocAsync(16, stream));
    assert_eq!(launch(set, 4, memory, 8, stream), CUresult::CUDA_SUCCESS);
    // Memory from outside cannot be freed by a graph; the capture is not harmed.
    fails!(INVALID_VALUE, cuMemFreeAsync(foreign, stream));
    cu!(cuMemcpyDtoDAsync_v2(result, memory, 16, stream));
    cu!(cuMemFreeAsync(memory, stream));
    let mut g = null_mut();
    cu!(cuStreamEndCapture(stream, &mut g));
    let mut nodes = [null_mut(); 8];
    let mut count = nodes.len();
    cu!(cuGraphGetNodes(g, nodes.as_mut_ptr(), &mut count));
    assert_eq!(count, 4);
    let mut params = alloc_params(0);
    cu!(cuGraphMemAllocNodeGetParams(nodes[0], &mut params));
    assert_eq!((params.dptr, params.bytesize), (memory, 16));
    let exec = instantiate(g);
    run(exec, stream);
    run(exec, stream);
    assert_eq!(download(result, 4), [8; 4]);
}

#[test]
fn what_graphs_use_is_counted_for_each_device() {
    let s = Session::new();
    let attribute = |number| {
        let mut value = 0u64;
        cu!(cuDeviceGetGraphMemAttribute(
            0,
            number,
            std::ptr::from_mut(&mut value).cast()
        ));
        value
    };
    use CUgraphMem_attribute::*;
    let before = attribute(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT);
    let (g, _, memory) = making(&s, 4);
    let (exec, stream) = (instantiate(g), s.stream());
    run(exec, stream);
    assert!(attribute(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT) >= before + 16);
    assert!(attribute(CU_GRAPH_MEM_ATTR_USED_MEM_HIGH) >= before + 16);
    cu!(cuMemFreeAsync(memory, stream));
    cu!(cuStreamSynchronize(stream));
    cu!(cuDeviceGraphMemTrim(0));
    assert_eq!(attribute(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT), before);
    let mut zero = 0u64;
    let high = CU_GRAPH_MEM_ATTR_USED_MEM_HIGH;
    cu!(cuDeviceSetGraphMemAttribute(
        0,
        high,
        std::ptr::from_mut(&mut zero).cast()
    ));
    assert_eq!(attribute(high), before);
}

#[test]
fn sizes_that_cannot_be_are_refused() {
    let _s = Session::new();
    let g = get!(cuGraphCreate(0));
    let mut node = null_mut();
    fails!(
        INVALID_VALUE,
        cuGraphAddMemAllocNode(&mut node, g, null(), 0, &mut alloc_params(0))
    );
    fails!(
        OUT_OF_MEMORY,
        cuGraphAddMemAllocNode(&mut node, g, null(), 0, &mut alloc_params(1 << 60))
    );
    fails!(
        INVALID_VALUE,
        cuGraphAddMemFreeNode(&mut node, g, null(), 0, 0x1234)
    );
}

const MIB: usize = 1 << 20;

/// Runs `f` alone on a device of 64 MiB.
fn on_a_small_device(test: &str, f: impl FnOnce(Session)) {
    with(test, &[("CUDAGRAPH_SIM_MEMORY", "64M")], || {
        f(Session::new())
    });
}

/// A graph in which memory is made and, if so told, freed before the next is made: its addresses.
fn making_in_turn(mib: &[usize], freed: bool) -> (CUgraph, Vec<CUdeviceptr>) {
    let g = get!(cuGraphCreate(0));
    let (mut last, mut addresses): (Option<CUgraphNode>, _) = (None, Vec::new());
    for size in mib {
        let mut params = alloc_params(size * MIB);
        let after = last.as_ref().map_or(null(), std::ptr::from_ref);
        let count = usize::from(last.is_some());
        let made = get!(cuGraphAddMemAllocNode(g, after, count, &mut params));
        last = Some(made);
        if freed {
            last = Some(get!(cuGraphAddMemFreeNode(g, &made, 1, params.dptr)));
        }
        addresses.push(params.dptr);
    }
    (g, addresses)
}

fn in_use() -> usize {
    let (mut free, mut total) = (0, 0);
    cu!(cuMemGetInfo_v2(&mut free, &mut total));
    (total - free) / MIB
}

#[test]
fn a_launch_without_room_is_refused_and_the_context_lives_on() {
    simulator_only!();
    let name = "a_launch_without_room_is_refused_and_the_context_lives_on";
    on_a_small_device(name, |s| {
        let stream = s.stream();
        let (big, _) = making_in_turn(&[40, 40], false);
        let big = instantiate(big);
        for _ in 0..2 {
            fails!(OUT_OF_MEMORY, cuGraphLaunch(big, stream));
            cu!(cuStreamSynchronize(stream));
        }
        assert_eq!(in_use(), 0);
        // Others work as if nothing had been.
        let (g, _, memory) = making(&s, 4);
        run(instantiate(g), stream);
        assert_eq!(download(memory, 4), [4; 4]);
    });
}

#[test]
fn a_refused_launch_has_recorded_no_event() {
    simulator_only!();
    on_a_small_device("a_refused_launch_has_recorded_no_event", |s| {
        let (g, _) = making_in_turn(&[40, 40], false);
        let event = get!(cuEventCreate(0));
        let _: CUgraphNode = get!(cuGraphAddEventRecordNode(g, null(), 0, event));
        let (exec, stream, busy) = (instantiate(g), s.stream(), s.stream());
        let gate = Gate::default();
        gate.close(busy);
        cu!(cuEventRecord(event, busy));
        fails!(OUT_OF_MEMORY, cuGraphLaunch(exec, stream));
        fails!(NOT_READY, cuEventQuery(event));
        gate.open();
        cu!(cuEventSynchronize(event));
    });
}

#[test]
fn memory_that_is_held_elsewhere_is_not_there() {
    simulator_only!();
    on_a_small_device("memory_that_is_held_elsewhere_is_not_there", |s| {
        let stream = s.stream();
        let (g, addresses) = making_in_turn(&[40], false);
        let (other, other_addresses) = making_in_turn(&[40], false);
        let (exec, other) = (instantiate(g), instantiate(other));
        // By the launch of another graph...
        cu!(cuGraphLaunch(exec, stream));
        assert_eq!(in_use(), 40);
        fails!(OUT_OF_MEMORY, cuGraphLaunch(other, stream));
        let mut plain = 0;
        fails!(OUT_OF_MEMORY, cuMemAlloc_v2(&mut plain, 40 * MIB));
        // ... until it is freed, be it by a stream that has not come to that yet.
        let gate = Gate::default();
        gate.close(stream);
        cu!(cuMemFreeAsync(addresses[0], stream));
        cu!(cuGraphLaunch(other, stream));
        gate.open();
        cu!(cuStreamSynchronize(stream));
        cu!(cuMemFree_v2(other_addresses[0]));
        // Or by the program.
        cu!(cuMemAlloc_v2(&mut plain, 40 * MIB));
        fails!(OUT_OF_MEMORY, cuGraphLaunch(exec, stream));
        cu!(cuMemFree_v2(plain));
        run(exec, stream);
        cu!(cuMemFree_v2(addresses[0]));
        assert_eq!(in_use(), 0);
    });
}

#[test]
fn the_most_at_once_counts() {
    simulator_only!();
    on_a_small_device("the_most_at_once_counts", |s| {
        let stream = s.stream();
        // One after the other.
        let (g, _) = making_in_turn(&[40, 30, 50], true);
        run(instantiate(g), stream);
        // Beside each other.
        let g = get!(cuGraphCreate(0));
        for _ in 0..2 {
            let mut params = alloc_params(40 * MIB);
            let made: CUgraphNode = get!(cuGraphAddMemAllocNode(g, null(), 0, &mut params));
            let _: CUgraphNode = get!(cuGraphAddMemFreeNode(g, &made, 1, params.dptr));
        }
        fails!(OUT_OF_MEMORY, cuGraphLaunch(instantiate(g), stream));
        // What an earlier launch has left is freed first.
        let (g, _) = making_in_turn(&[40], false);
        let exec = get!(cuGraphInstantiateWithFlags(g, 1));
        for _ in 0..3 {
            cu!(cuGraphLaunch(exec, stream));
        }
        cu!(cuStreamSynchronize(stream));
        assert_eq!(in_use(), 40);
    });
}

#[test]
fn launches_of_one_stream_share_room_and_those_of_two_do_not() {
    simulator_only!();
    let name = "launches_of_one_stream_share_room_and_those_of_two_do_not";
    on_a_small_device(name, |s| {
        let (one, two, gate) = (s.stream(), s.stream(), Gate::default());
        let execs = [40, 50].map(|mib| instantiate(making_in_turn(&[mib], true).0));
        gate.close(one);
        for exec in execs {
            cu!(cuGraphLaunch(exec, one));
        }
        assert_eq!(in_use(), 50);
        let other = instantiate(making_in_turn(&[20], true).0);
        fails!(OUT_OF_MEMORY, cuGraphLaunch(other, two));
        gate.open();
        cu!(cuStreamSynchronize(one));
        assert_eq!(in_use(), 0);
        run(other, two);
    });
}
