//! What the simulator counts, and the table that it writes at the end.

mod common;
use common::*;
use std::ptr::null_mut;

const KINDS: [&std::ffi::CStr; 7] = [
    c"stream", c"event", c"graph", c"exec", c"memory", c"host", c"module",
];

fn counts() -> [u64; 7] {
    KINDS.map(live)
}

#[test]
fn every_handle_is_counted_by_kind() {
    simulator_only!();
    let s = Session::new();
    let before = counts();
    let stream = s.stream();
    let event: CUevent = get!(cuEventCreate(0));
    let graph = get!(cuGraphCreate(0));
    let exec = instantiate(graph);
    let memory = words(100);
    let host: *mut std::ffi::c_void = get!(cuMemAllocHost_v2(64));
    let module = get!(cuModuleLoadData(KERNELS.as_ptr().cast()));
    assert_eq!(counts(), before.map(|count| count + 1));
    cu!(cuModuleUnload(module));
    cu!(cuMemFreeHost(host));
    cu!(cuMemFree_v2(memory));
    cu!(cuGraphExecDestroy(exec));
    cu!(cuGraphDestroy(graph));
    cu!(cuEventDestroy_v2(event));
    cu!(cuStreamDestroy_v2(stream));
    assert_eq!(counts(), before);
    assert_eq!(live(c"no such kind"), u64::MAX);
}

#[test]
fn what_ends_with_its_context_is_counted_as_gone() {
    simulator_only!();
    let before = {
        let s = Session::new();
        drop(s);
        counts()
    };
    {
        let s = Session::new();
        s.stream();
        let _: CUevent = get!(cuEventCreate(0));
        words(100);
        let _: *mut std::ffi::c_void = get!(cuMemAllocHost_v2(64));
        s.kernel(c"set");
    }
    assert_eq!(counts(), before);
}

#[test]
fn captured_graphs_are_counted_when_they_are_handed_over() {
    simulator_only!();
    let s = Session::new();
    let before = live(c"graph");
    let stream = s.stream();
    let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL;
    cu!(cuStreamBeginCapture_v2(stream, mode));
    let mut graph = null_mut();
    cu!(cuStreamEndCapture(stream, &mut graph));
    assert_eq!(live(c"graph"), before + 1);
    cu!(cuGraphDestroy(graph));
    // One that fails leaves nothing.
    cu!(cuStreamBeginCapture_v2(stream, mode));
    fails!(STREAM_CAPTURE_UNSUPPORTED, cuStreamSynchronize(stream));
    fails!(
        STREAM_CAPTURE_INVALIDATED,
        cuStreamEndCapture(stream, &mut graph)
    );
    assert!(graph.is_null());
    assert_eq!(live(c"graph"), before);
}

#[test]
fn bytes_and_calls_and_dead_handles_are_counted() {
    simulator_only!();
    let s = Session::new();
    let bytes = function!("cusimBytesLive", extern "C" fn() -> u64);
    let calls = function!("cusimCalls", extern "C" fn(*const std::ffi::c_char) -> u64);
    let dead = function!("cusimBadHandles", extern "C" fn() -> u64);
    let (before, called, misused) = (bytes(), calls(c"cuMemAlloc".as_ptr()), dead());
    let memory: CUdeviceptr = get!(cuMemAlloc_v2(12345));
    assert_eq!(bytes(), before + 12345);
    assert_eq!(calls(c"cuMemAlloc".as_ptr()), called + 1);
    cu!(cuMemFree_v2(memory));
    assert_eq!(bytes(), before);
    assert_eq!(dead(), misused);
    fails!(INVALID_VALUE, cuMemFree_v2(memory));
    let stream = s.stream();
    cu!(cuStreamDestroy_v2(stream));
    fails!(INVALID_HANDLE, cuStreamQuery(stream));
    assert_eq!(dead(), misused + 2);
}

#[test]
fn the_table_at_the_end_names_what_is_left() {
    simulator_only!();
    let test = "the_table_at_the_end_names_what_is_left";
    if is_child(test) {
        let s = Session::new();
        s.stream();
        let gone = s.stream();
        cu!(cuStreamDestroy_v2(gone));
        words(1000);
        std::mem::forget(s);
        return;
    }
    let text = errors(&child(test, &[("CUDAGRAPH_SIM_REPORT", "1")]));
    let row = |kind: &str| -> Vec<String> {
        let start = format!("simulator: {kind} ");
        let line = text.lines().find(|line| line.starts_with(&start));
        let line = line.unwrap_or_else(|| panic!("no {kind} in:\n{text}"));
        line.split_whitespace().map(String::from).collect()
    };
    assert_eq!(row("stream")[2..], ["2", "1", "1", "leaked"]);
    assert_eq!(row("memory")[2..], ["1", "0", "1", "leaked"]);
    assert_eq!(row("event")[2..], ["0", "0", "0"]);
    for words in ["4000 bytes of device memory live", "live: 4000 bytes"] {
        assert!(text.contains(words), "no {words:?} in:\n{text}");
    }
    // Without the variable nothing is written.
    assert_eq!(errors(&child(test, &[("CUDAGRAPH_SIM_REPORT", "0")])), "");
}
