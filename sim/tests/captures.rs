//! Captures, beyond the tables of what breaks them: who may end one, how streams join it, what can be asked
//! of it, and what is not captured.

mod common;
use common::*;
use std::ptr::{null, null_mut};

const SUCCESS: CUresult = CUresult::CUDA_SUCCESS;
use CUstreamCaptureMode::*;
const MODES: [CUstreamCaptureMode; 3] = [
    CU_STREAM_CAPTURE_MODE_GLOBAL,
    CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
    CU_STREAM_CAPTURE_MODE_RELAXED,
];

fn begin(stream: CUstream, mode: CUstreamCaptureMode) {
    cu!(cuStreamBeginCapture_v2(stream, mode));
}

fn end(stream: CUstream) -> CUgraph {
    let mut graph = null_mut();
    cu!(cuStreamEndCapture(stream, &mut graph));
    graph
}

fn end_fails(stream: CUstream) -> CUresult {
    let mut graph = null_mut();
    let status = status!(cuStreamEndCapture(stream, &mut graph));
    assert!(graph.is_null());
    status
}

fn nodes(graph: CUgraph) -> usize {
    let mut count = 0;
    cu!(cuGraphGetNodes(graph, null_mut(), &mut count));
    count
}

fn is_capturing(stream: CUstream) -> CUstreamCaptureStatus {
    let mut status = CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_INVALIDATED;
    cu!(cuStreamIsCapturing(stream, &mut status));
    status
}

/// Calls something on another thread, with the context of this one.
fn elsewhere<R: Send>(s: &Session, body: impl FnOnce() -> R + Send) -> R {
    let context = s.context as usize;
    std::thread::scope(|scope| {
        let there = scope.spawn(move || {
            cu!(cuCtxSetCurrent(context as CUcontext));
            body()
        });
        there.join().unwrap()
    })
}

#[test]
fn a_strict_capture_is_ended_by_its_own_thread() {
    let s = Session::new();
    let stream = s.stream();
    for mode in &MODES[..2] {
        begin(stream, *mode);
        let on = stream as usize;
        let status = elsewhere(&s, move || end_fails(on as CUstream));
        assert_eq!(status, CUresult::CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
        assert_eq!(end_fails(stream), CUresult::CUDA_ERROR_ILLEGAL_STATE);
        cu!(cuStreamSynchronize(stream));
    }
    begin(stream, CU_STREAM_CAPTURE_MODE_RELAXED);
    let on = stream as usize;
    elsewhere(&s, move || cu!(cuGraphDestroy(end(on as CUstream))));
}

#[test]
fn a_fork_that_is_not_joined_fails_and_its_stream_is_well() {
    let s = Session::new();
    let (one, two, event) = (s.stream(), s.stream(), get!(cuEventCreate(2)));
    let memory = upload(&[0; 4]);
    begin(one, CU_STREAM_CAPTURE_MODE_GLOBAL);
    cu!(cuEventRecord(event, one));
    cu!(cuStreamWaitEvent(two, event, 0));
    assert_eq!(launch(s.kernel(c"add"), 4, memory, 1, two), SUCCESS);
    assert_eq!(end_fails(one), CUresult::CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
    assert_eq!(
        is_capturing(two),
        CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE
    );
    assert_eq!(launch(s.kernel(c"add"), 4, memory, 2, two), SUCCESS);
    cu!(cuStreamSynchronize(two));
    assert_eq!(download(memory, 4), [2; 4]);
}

#[test]
fn begin_twice_and_end_without_begin() {
    let s = Session::new();
    let stream = s.stream();
    assert_eq!(end_fails(stream), CUresult::CUDA_ERROR_ILLEGAL_STATE);
    begin(stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
    fails!(
        ILLEGAL_STATE,
        cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL)
    );
    assert_eq!(launch(s.kernel(c"nothing"), 1, 0, 0, stream), SUCCESS);
    assert_eq!(nodes(end(stream)), 1);
}

#[test]
fn a_capture_of_nothing_is_a_graph_of_nothing() {
    let s = Session::new();
    let stream = s.stream();
    begin(stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
    let graph = end(stream);
    assert_eq!(nodes(graph), 0);
    run(instantiate(graph), stream);
}

#[test]
fn a_capture_ends_with_its_stream() {
    let s = Session::new();
    let stream = s.stream();
    begin(stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
    assert_eq!(launch(s.kernel(c"nothing"), 1, 0, 0, stream), SUCCESS);
    cu!(cuStreamDestroy_v2(stream));
    // Nothing is left that an unsafe call could break.
    let other = s.stream();
    words(4);
    cu!(cuCtxSynchronize());
    begin(other, CU_STREAM_CAPTURE_MODE_GLOBAL);
    assert_eq!(nodes(end(other)), 0);
}

#[test]
fn what_is_synchronous_runs_at_once_while_another_stream_captures() {
    let s = Session::new();
    let stream = s.stream();
    let (add, memory) = (s.kernel(c"add"), words(4));
    for mode in MODES {
        cu!(cuMemsetD32_v2(memory, 0, 4));
        begin(stream, mode);
        cu!(cuMemcpyHtoD_v2(memory, [5u32; 4].as_ptr().cast(), 16));
        assert_eq!(launch(add, 4, memory, 1, null_mut()), SUCCESS);
        assert_eq!(nodes(end(stream)), 0);
        cu!(cuStreamSynchronize(null_mut()));
        assert_eq!(download(memory, 4), [6; 4]);
    }
}

#[test]
fn the_null_stream_breaks_a_capture_on_a_blocking_stream() {
    let s = Session::new();
    let (nothing, memory) = (s.kernel(c"nothing"), words(4));
    let own = [0u32; 4];
    for mode in MODES {
        for number in 0..2 {
            let stream: CUstream = get!(cuStreamCreate(0));
            begin(stream, mode);
            let status = match number {
                0 => launch(nothing, 1, 0, 0, null_mut()),
                _ => status!(cuMemcpyHtoD_v2(memory, own.as_ptr().cast(), 16)),
            };
            assert_eq!(status, CUresult::CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
            assert_eq!(
                is_capturing(stream),
                CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_INVALIDATED
            );
            assert_eq!(
                end_fails(stream),
                CUresult::CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
            );
        }
    }
}

#[test]
fn a_capture_waits_for_nothing_outside() {
    let s = Session::new();
    let (one, two) = (s.stream(), s.stream());
    let never: CUevent = get!(cuEventCreate(2));
    begin(one, CU_STREAM_CAPTURE_MODE_GLOBAL);
    cu!(cuStreamWaitEvent(one, never, 0));
    assert_eq!(nodes(end(one)), 0);
    let outside: CUevent = get!(cuEventCreate(2));
    cu!(cuEventRecord(outside, two));
    begin(one, CU_STREAM_CAPTURE_MODE_GLOBAL);
    fails!(STREAM_CAPTURE_ISOLATION, cuStreamWaitEvent(one, outside, 0));
    assert_eq!(
        end_fails(one),
        CUresult::CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
    );
}

#[test]
fn two_captures_do_not_become_one() {
    let s = Session::new();
    let (one, two, event) = (s.stream(), s.stream(), get!(cuEventCreate(2)));
    begin(one, CU_STREAM_CAPTURE_MODE_RELAXED);
    begin(two, CU_STREAM_CAPTURE_MODE_RELAXED);
    cu!(cuEventRecord(event, one));
    fails!(STREAM_CAPTURE_MERGE, cuStreamWaitEvent(two, event, 0));
    for stream in [one, two] {
        assert_eq!(
            end_fails(stream),
            CUresult::CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
        );
    }
}

#[test]
fn a_stream_that_joined_cannot_end_the_capture() {
    let s = Session::new();
    let (one, two, event) = (s.stream(), s.stream(), get!(cuEventCreate(2)));
    begin(one, CU_STREAM_CAPTURE_MODE_GLOBAL);
    cu!(cuEventRecord(event, one));
    cu!(cuStreamWaitEvent(two, event, 0));
    assert_eq!(
        end_fails(two),
        CUresult::CUDA_ERROR_STREAM_CAPTURE_UNMATCHED
    );
    assert_ne!(end_fails(one), SUCCESS);
}

#[test]
fn a_capture_tells_its_number_its_graph_and_where_it_stands() {
    let s = Session::new();
    let (one, two, event) = (s.stream(), s.stream(), get!(cuEventCreate(2)));
    let nothing = s.kernel(c"nothing");
    let info = |stream| {
        let mut status = CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
        let (mut id, mut graph, mut count) = (0, null_mut(), 0);
        let mut after: *const CUgraphNode = null();
        cu!(cuStreamGetCaptureInfo_v2(
            stream,
            &mut status,
            &mut id,
            &mut graph,
            &mut after,
            &mut count
        ));
        let after = match count {
            0 => Vec::new(),
            // SAFETY: the driver answers with an array of so many nodes.
            _ => unsafe { std::slice::from_raw_parts(after, count) }.to_vec(),
        };
        (status, id, graph, after)
    };
    let (status, ..) = info(one);
    assert_eq!(status, CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE);
    begin(one, CU_STREAM_CAPTURE_MODE_GLOBAL);
    let (status, id, graph, after) = info(one);
    assert_eq!(
        status,
        CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_ACTIVE
    );
    assert!(!graph.is_null() && after.is_empty());
    assert_eq!(launch(nothing, 1, 0, 0, one), SUCCESS);
    cu!(cuEventRecord(event, one));
    cu!(cuStreamWaitEvent(two, event, 0));
    let (_, other, _, joined) = info(two);
    let (.., first) = info(one);
    assert_eq!((other, joined.as_slice()), (id, first.as_slice()));
    assert_eq!(launch(nothing, 1, 0, 0, two), SUCCESS);
    // The first stream goes on behind what the second has done, without an event.
    let (.., mut second) = info(two);
    cu!(cuStreamUpdateCaptureDependencies(
        one,
        second.as_mut_ptr(),
        second.len(),
        1
    ));
    assert_eq!(info(one).3, second);
    let graph_at_end = end(one);
    assert_eq!((graph_at_end, nodes(graph)), (graph, 2));
    begin(one, CU_STREAM_CAPTURE_MODE_GLOBAL);
    assert_ne!(info(one).1, id);
    end(one);
}

#[test]
fn a_capture_fills_a_graph_of_the_program() {
    let s = Session::new();
    let (stream, memory) = (s.stream(), words(4));
    let graph = get!(cuGraphCreate(0));
    let (mut at, mut value) = (memory, 3);
    let mut arguments = arguments(&mut at, &mut value);
    let params = kernel_params(s.kernel(c"set"), 4, &mut arguments);
    let first: CUgraphNode = get!(cuGraphAddKernelNode_v2(graph, null(), 0, &params));
    cu!(cuStreamBeginCaptureToGraph(
        stream,
        graph,
        &first,
        null(),
        1,
        CU_STREAM_CAPTURE_MODE_GLOBAL
    ));
    assert_eq!(launch(s.kernel(c"step"), 4, memory, 1, stream), SUCCESS);
    assert_eq!(end(stream), graph);
    assert_eq!(nodes(graph), 2);
    run(instantiate(graph), stream);
    assert_eq!(download(memory, 4), [7; 4]);
    cu!(cuGraphDestroy(graph));
}

#[test]
fn a_thread_exchanges_its_mode() {
    let s = Session::new();
    let mut mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    cu!(cuThreadExchangeStreamCaptureMode(&mut mode));
    assert_eq!(mode, CU_STREAM_CAPTURE_MODE_GLOBAL);
    // A new thread begins with the strictest.
    let theirs = elsewhere(&s, || {
        let mut mode = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        cu!(cuThreadExchangeStreamCaptureMode(&mut mode));
        mode
    });
    assert_eq!(theirs, CU_STREAM_CAPTURE_MODE_GLOBAL);
    cu!(cuThreadExchangeStreamCaptureMode(&mut mode));
    assert_eq!(mode, CU_STREAM_CAPTURE_MODE_RELAXED);
}

#[test]
fn copies_fills_and_host_functions_are_captured() {
    let s = Session::new();
    let stream = s.stream();
    let (a, b) = (upload(&[0; 4]), upload(&[0; 4]));
    let gate = Gate::default();
    gate.open();
    begin(stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
    cu!(cuMemsetD32Async(a, 4, 4, stream));
    cu!(cuMemcpyDtoDAsync_v2(b, a, 8, stream));
    gate.close(stream);
    let graph = end(stream);
    assert_eq!(nodes(graph), 3);
    assert_eq!(download(b, 4), [0; 4]);
    run(instantiate(graph), stream);
    assert_eq!(download(b, 4), [4, 4, 0, 0]);
}

#[test]
fn a_launch_of_a_graph_is_not_captured() {
    let s = Session::new();
    let stream = s.stream();
    let exec = instantiate(get!(cuGraphCreate(0)));
    begin(stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
    fails!(STREAM_CAPTURE_UNSUPPORTED, cuGraphLaunch(exec, stream));
    assert_eq!(
        end_fails(stream),
        CUresult::CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
    );
}
