//! Faults on demand: calls that fail, calls that take long, a small device. What is read from the
//! environment is tested in processes of their own.

mod common;
use common::*;
use std::ffi::{CStr, CString};
use std::ptr::null_mut;
use std::time::{Duration, Instant};

fn set(rules: &CStr) -> i32 {
    function!("cusimFail", extern "C" fn(*const std::ffi::c_char) -> i32)(rules.as_ptr())
}

#[test]
fn the_nth_call_fails() {
    simulator_only!();
    with(
        "the_nth_call_fails",
        &[(
            "CUDAGRAPH_SIM_FAIL",
            "cuMemAlloc@3=OUT_OF_MEMORY, cuGraphInstantiateWithFlags@1=CUDA_ERROR_UNKNOWN",
        )],
        || {
            let _s = Session::new();
            let mut memory = 0;
            cu!(cuMemAlloc_v2(&mut memory, 16));
            cu!(cuMemAlloc_v2(&mut memory, 16));
            fails!(OUT_OF_MEMORY, cuMemAlloc_v2(&mut memory, 16));
            cu!(cuMemAlloc_v2(&mut memory, 16));
            let graph = get!(cuGraphCreate(0));
            let mut exec = null_mut();
            fails!(UNKNOWN, cuGraphInstantiateWithFlags(&mut exec, graph, 0));
            cu!(cuGraphInstantiateWithFlags(&mut exec, graph, 0));
        },
    );
}

#[test]
fn a_rule_that_cannot_be_read_is_named() {
    simulator_only!();
    let text = with(
        "a_rule_that_cannot_be_read_is_named",
        &[("CUDAGRAPH_SIM_FAIL", "cuMemAlloc@x=OUT_OF_MEMORY")],
        || {
            let _s = Session::new();
            words(4);
        },
    );
    if let Some(text) = text {
        assert!(text.contains("cuMemAlloc@x=OUT_OF_MEMORY"), "{text}");
    }
}

#[test]
fn rules_are_set_and_ended_by_a_test() {
    simulator_only!();
    let s = Session::new();
    let stream = s.stream();
    assert_eq!(set(c"cuStreamQuery=NOT_READY"), 0);
    fails!(NOT_READY, cuStreamQuery(stream));
    fails!(NOT_READY, cuStreamQuery(stream));
    // Nonsense changes nothing.
    assert_eq!(set(c"cuStreamQuery=NO_SUCH_ERROR"), 1);
    fails!(NOT_READY, cuStreamQuery(stream));
    assert_eq!(set(c""), 0);
    cu!(cuStreamQuery(stream));
}

#[test]
fn any_call_may_fail_with_a_probability() {
    simulator_only!();
    let s = Session::new();
    let stream = s.stream();
    let run = || {
        assert_eq!(set(c"cuStreamQuery%0.25/seed=5=NOT_READY"), 0);
        let results: Vec<bool> = (0..400)
            .map(|_| status!(cuStreamQuery(stream)) == CUresult::CUDA_SUCCESS)
            .collect();
        assert_eq!(set(c""), 0);
        results
    };
    let first = run();
    let failed = first.iter().filter(|good| !**good).count();
    assert!((60..140).contains(&failed), "{failed}");
    assert_eq!(first, run());
}

#[test]
fn every_call_takes_longer() {
    simulator_only!();
    let s = Session::new();
    let (stream, nothing) = (s.stream(), s.kernel(c"nothing"));
    assert_eq!(set(c"cuLaunchKernel~20ms"), 0);
    let start = Instant::now();
    for _ in 0..3 {
        assert_eq!(launch(nothing, 1, 0, 0, stream), CUresult::CUDA_SUCCESS);
    }
    assert!(start.elapsed() >= Duration::from_millis(60));
    assert_eq!(set(c""), 0);
    cu!(cuStreamSynchronize(stream));
}

#[test]
fn every_function_can_fail() {
    simulator_only!();
    let s = Session::new();
    let (stream, memory, nothing) = (s.stream(), words(4), s.kernel(c"nothing"));
    let graph = get!(cuGraphCreate(0));
    let exec = instantiate(graph);
    let fail = |name: &str| {
        let rule = CString::new(format!("{name}=SYSTEM_NOT_READY")).unwrap();
        assert_eq!(set(&rule), 0);
    };
    let mut address = 0;
    let mut handle = null_mut();
    fail("cuMemFree");
    fails!(SYSTEM_NOT_READY, cuMemFree_v2(memory));
    fail("cuMemFree_v2");
    fails!(SYSTEM_NOT_READY, cuMemFree_v2(memory));
    fail("cuLaunchKernel");
    let status = launch(nothing, 1, 0, 0, stream);
    assert_eq!(status, CUresult::CUDA_ERROR_SYSTEM_NOT_READY);
    fail("cuGraphLaunch");
    fails!(SYSTEM_NOT_READY, cuGraphLaunch(exec, stream));
    fail("cuStreamSynchronize");
    fails!(SYSTEM_NOT_READY, cuStreamSynchronize(stream));
    fail("*");
    fails!(SYSTEM_NOT_READY, cuMemAlloc_v2(&mut address, 16));
    fails!(SYSTEM_NOT_READY, cuStreamCreate(&mut handle, 0));
    fails!(SYSTEM_NOT_READY, cuCtxSynchronize());
    assert_eq!(set(c""), 0);
    // What failed was not done.
    cu!(cuMemFree_v2(memory));
}

#[test]
fn a_small_device_is_full_soon() {
    simulator_only!();
    with(
        "a_small_device_is_full_soon",
        &[("CUDAGRAPH_SIM_MEMORY", "64M")],
        || {
            let s = Session::new();
            let (mut free, mut total) = (0, 0);
            cu!(cuMemGetInfo_v2(&mut free, &mut total));
            assert_eq!(total, 64 << 20);
            let mut bytes = 0;
            cu!(cuDeviceTotalMem_v2(&mut bytes, 0));
            assert_eq!(bytes, total);
            let first: CUdeviceptr = get!(cuMemAlloc_v2(40 << 20));
            let mut memory = 0;
            fails!(OUT_OF_MEMORY, cuMemAlloc_v2(&mut memory, 40 << 20));
            let stream = s.stream();
            fails!(
                OUT_OF_MEMORY,
                cuMemAllocAsync(&mut memory, 40 << 20, stream)
            );
            cu!(cuMemFree_v2(first));
            cu!(cuMemAlloc_v2(&mut memory, 40 << 20));
        },
    );
}

#[test]
fn variables_that_cannot_be_read_are_named() {
    simulator_only!();
    let text = with(
        "variables_that_cannot_be_read_are_named",
        &[
            ("CUDAGRAPH_SIM_MEMORY", "64MB"),
            ("CUDAGRAPH_SIM_DEVICES", "two"),
        ],
        || {
            let _s = Session::new();
            words(4);
        },
    );
    let Some(text) = text else { return };
    for words in [
        "CUDAGRAPH_SIM_MEMORY: cannot read \"64MB\"",
        "CUDAGRAPH_SIM_DEVICES: cannot read \"two\"",
    ] {
        assert!(text.contains(words), "no {words:?} in:\n{text}");
    }
}

#[test]
fn a_machine_without_a_device() {
    simulator_only!();
    with(
        "a_machine_without_a_device",
        &[("CUDAGRAPH_SIM_DEVICES", "0")],
        || {
            open();
            fails!(NO_DEVICE, cuInit(0));
            let mut count = 0;
            fails!(NOT_INITIALIZED, cuDeviceGetCount(&mut count));
        },
    );
}

#[test]
fn before_the_start_nothing_works() {
    simulator_only!();
    with("before_the_start_nothing_works", &[], || {
        open();
        let mut address = 0;
        fails!(NOT_INITIALIZED, cuMemAlloc_v2(&mut address, 16));
        fails!(INVALID_VALUE, cuInit(1));
        let mut version = 0;
        cu!(cuDriverGetVersion(&mut version));
        assert_eq!(version, 13000);
    });
}

#[test]
fn streams_are_held_and_let_go() {
    simulator_only!();
    let s = Session::new();
    let (stream, memory) = (s.stream(), upload(&[0; 4]));
    function!("cusimPause", extern "C" fn())();
    let status = launch(s.kernel(c"set"), 4, memory, 3, stream);
    assert_eq!(status, CUresult::CUDA_SUCCESS);
    std::thread::sleep(Duration::from_millis(20));
    fails!(NOT_READY, cuStreamQuery(stream));
    function!("cusimResume", extern "C" fn())();
    cu!(cuStreamSynchronize(stream));
    assert_eq!(download(memory, 4), [3; 4]);
}

#[test]
fn what_is_missing_says_its_name_once() {
    simulator_only!();
    let text = with("what_is_missing_says_its_name_once", &[], || {
        let _s = Session::new();
        let mut library = null_mut();
        for _ in 0..2 {
            fails!(
                NOT_SUPPORTED,
                cuLibraryLoadData(
                    &mut library,
                    KERNELS.as_ptr().cast(),
                    null_mut(),
                    null_mut(),
                    0,
                    null_mut(),
                    null_mut(),
                    0
                )
            );
        }
    });
    if let Some(text) = text {
        assert_eq!(text.matches("cuLibraryLoadData").count(), 1, "{text}");
    }
}

#[test]
fn a_graph_and_its_exec_are_ended_one_after_the_other() {
    simulator_only!();
    with(
        "a_graph_and_its_exec_are_ended_one_after_the_other",
        &[],
        || {
            let _s = Session::new();
            let misused = function!("cusimBadHandles", extern "C" fn() -> u64);
            let make = || {
                let graph = get!(cuGraphCreate(0));
                (graph as usize, instantiate(graph) as usize)
            };
            // Apart is well, however long each takes.
            assert_eq!(set(c"cuGraph/inside~20ms"), 0);
            let (graph, exec) = make();
            cu!(cuGraphExecDestroy(exec as CUgraphExec));
            cu!(cuGraphDestroy(graph as CUgraph));
            assert_eq!(misused(), 0);
            // Together crashes the driver.
            let (graph, exec) = make();
            std::thread::scope(|threads| {
                threads.spawn(|| cu!(cuGraphExecDestroy(exec as CUgraphExec)));
                threads.spawn(|| cu!(cuGraphDestroy(graph as CUgraph)));
            });
            assert_eq!(misused(), 1);
            // So is an update of another exec from the graph kept apart from these.
            let (graph, exec) = make();
            let (_, other) = make();
            let update = || {
                let mut info = CUgraphExecUpdateResultInfo {
                    result: CUgraphExecUpdateResult::CU_GRAPH_EXEC_UPDATE_ERROR,
                    errorNode: null_mut(),
                    errorFromNode: null_mut(),
                };
                let (other, graph) = (other as CUgraphExec, graph as CUgraph);
                cu!(cuGraphExecUpdate_v2(other, graph, &mut info));
            };
            std::thread::scope(|threads| {
                threads.spawn(update);
                threads.spawn(|| cu!(cuGraphExecDestroy(exec as CUgraphExec)));
            });
            assert_eq!(misused(), 2);
            update();
            assert_eq!(misused(), 2);
        },
    );
}
