//! Events: the order that they make, what they tell, and their times.

mod common;
use common::*;
use std::ptr::null_mut;
use std::time::Duration;

const SUCCESS: CUresult = CUresult::CUDA_SUCCESS;

fn event(flags: u32) -> CUevent {
    get!(cuEventCreate(flags))
}

#[test]
fn an_event_happens_when_the_work_before_it_is_done() {
    let s = Session::new();
    let (stream, event) = (s.stream(), event(0));
    // Never recorded: nothing to wait for.
    cu!(cuEventQuery(event));
    cu!(cuEventSynchronize(event));
    let gate = Gate::default();
    gate.close(stream);
    cu!(cuEventRecord(event, stream));
    fails!(NOT_READY, cuEventQuery(event));
    gate.open();
    cu!(cuEventSynchronize(event));
    cu!(cuEventQuery(event));
}

#[test]
fn after_its_last_event_a_stream_is_idle() {
    let s = Session::new();
    let (stream, event) = (s.stream(), event(0));
    let memory = upload(&[0; 4]);
    for _ in 0..500 {
        assert_eq!(launch(s.kernel(c"set"), 4, memory, 4, stream), SUCCESS);
        cu!(cuEventRecord(event, stream));
        cu!(cuEventSynchronize(event));
        cu!(cuStreamQuery(stream));
    }
}

#[test]
fn a_stream_waits_for_what_was_recorded_last_before_the_wait() {
    let s = Session::new();
    let (one, two, event) = (s.stream(), s.stream(), event(2));
    let (set, step) = (s.kernel(c"set"), s.kernel(c"step"));
    let memory = upload(&[0; 4]);
    let (first, second) = (Gate::default(), Gate::default());
    first.close(one);
    assert_eq!(launch(set, 4, memory, 1, one), SUCCESS);
    cu!(cuEventRecord(event, one));
    cu!(cuStreamWaitEvent(two, event, 0));
    // Recorded anew behind another gate: that does not concern the wait.
    second.close(one);
    cu!(cuEventRecord(event, one));
    assert_eq!(launch(step, 4, memory, 1, two), SUCCESS);
    fails!(NOT_READY, cuStreamQuery(two));
    first.open();
    cu!(cuStreamSynchronize(two));
    fails!(NOT_READY, cuEventQuery(event));
    second.open();
    cu!(cuEventSynchronize(event));
    assert_eq!(download(memory, 4), [3; 4]);
}

#[test]
fn an_event_may_be_destroyed_while_others_wait_for_it() {
    let s = Session::new();
    let (one, two, event) = (s.stream(), s.stream(), event(0));
    let gate = Gate::default();
    gate.close(one);
    cu!(cuEventRecord(event, one));
    cu!(cuStreamWaitEvent(two, event, 0));
    cu!(cuEventDestroy_v2(event));
    simulator_refuses!(INVALID_HANDLE, cuEventQuery(event));
    fails!(NOT_READY, cuStreamQuery(two));
    gate.open();
    cu!(cuStreamSynchronize(two));
}

#[test]
fn the_time_between_two_events_is_that_of_the_work() {
    let s = Session::new();
    let (stream, start, end) = (s.stream(), event(0), event(1));
    unsafe extern "C" fn sleep(_: *mut std::ffi::c_void) {
        std::thread::sleep(Duration::from_millis(30));
    }
    cu!(cuEventRecord(start, stream));
    cu!(cuLaunchHostFunc(stream, Some(sleep), null_mut()));
    cu!(cuEventRecord(end, stream));
    let mut milliseconds = 0.0;
    fails!(NOT_READY, cuEventElapsedTime(&mut milliseconds, start, end));
    cu!(cuEventSynchronize(end));
    cu!(cuEventElapsedTime(&mut milliseconds, start, end));
    assert!((29.0..5000.0).contains(&milliseconds), "{milliseconds}");
    let mut back = 0.0;
    cu!(cuEventElapsedTime_v2(&mut back, end, start));
    assert_eq!(back, -milliseconds);
    // Not every event has a time.
    let (without, never) = (event(2), event(0));
    cu!(cuEventRecord(without, stream));
    cu!(cuStreamSynchronize(stream));
    fails!(
        INVALID_HANDLE,
        cuEventElapsedTime(&mut milliseconds, start, without)
    );
    fails!(
        INVALID_HANDLE,
        cuEventElapsedTime(&mut milliseconds, start, never)
    );
}

#[test]
fn flags_are_checked() {
    let _s = Session::new();
    let mut made = null_mut();
    for flags in [0, 1, 2, 3] {
        cu!(cuEventCreate(&mut made, flags));
    }
    fails!(INVALID_VALUE, cuEventCreate(&mut made, 8));
    // For other processes it must have no time.
    fails!(INVALID_VALUE, cuEventCreate(&mut made, 4));
}

#[test]
fn an_event_keeps_to_its_context() {
    let s = Session::new();
    let event = event(0);
    let other: CUcontext = get!(cuCtxCreate_v2(0, 0));
    let foreign = stream();
    fails!(INVALID_HANDLE, cuEventRecord(event, foreign));
    let _: CUcontext = get!(cuCtxPopCurrent_v2());
    // Waiting across contexts is fine.
    cu!(cuEventRecord(event, s.stream()));
    cu!(cuStreamWaitEvent(foreign, event, 0));
    cu!(cuStreamSynchronize(foreign));
    cu!(cuCtxDestroy_v2(other));
}

#[test]
fn events_of_a_capture_belong_to_it() {
    let s = Session::new();
    let (one, two, fork, join) = (s.stream(), s.stream(), event(2), event(2));
    let (a, b) = (upload(&[0; 4]), upload(&[0; 4]));
    let add = s.kernel(c"add");
    let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
    cu!(cuStreamBeginCapture_v2(one, mode));
    cu!(cuEventRecord(fork, one));
    cu!(cuStreamWaitEvent(two, fork, 0));
    assert_eq!(launch(add, 4, a, 1, one), SUCCESS);
    assert_eq!(launch(add, 4, b, 2, two), SUCCESS);
    cu!(cuEventRecord(join, two));
    cu!(cuStreamWaitEvent(one, join, 0));
    let mut graph = null_mut();
    cu!(cuStreamEndCapture(one, &mut graph));
    run(instantiate(graph), one);
    assert_eq!((download(a, 4), download(b, 4)), (vec![1; 4], vec![2; 4]));
    // Afterwards they stand for nothing.
    for event in [fork, join] {
        fails!(INVALID_VALUE, cuEventQuery(event));
        fails!(INVALID_VALUE, cuEventSynchronize(event));
        fails!(INVALID_VALUE, cuStreamWaitEvent(two, event, 0));
    }
    // Until they are recorded again.
    cu!(cuEventRecord(fork, one));
    cu!(cuEventSynchronize(fork));
    // A question during the capture ends it.
    cu!(cuStreamBeginCapture_v2(one, mode));
    cu!(cuEventRecord(fork, one));
    fails!(CAPTURED_EVENT, cuEventQuery(fork));
    fails!(
        STREAM_CAPTURE_INVALIDATED,
        cuStreamEndCapture(one, &mut graph)
    );
}

#[test]
fn a_capture_can_record_an_event_for_those_outside() {
    let s = Session::new();
    let (one, two, event) = (s.stream(), s.stream(), event(0));
    let memory = upload(&[0; 4]);
    let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL;
    cu!(cuStreamBeginCapture_v2(one, mode));
    assert_eq!(launch(s.kernel(c"set"), 4, memory, 4, one), SUCCESS);
    cu!(cuEventRecordWithFlags(event, one, 1));
    let mut graph = null_mut();
    cu!(cuStreamEndCapture(one, &mut graph));
    let (exec, step) = (instantiate(graph), s.kernel(c"step"));
    let gate = Gate::default();
    gate.close(one);
    cu!(cuGraphLaunch(exec, one));
    cu!(cuStreamWaitEvent(two, event, 0));
    assert_eq!(launch(step, 4, memory, 1, two), SUCCESS);
    fails!(NOT_READY, cuStreamQuery(two));
    gate.open();
    cu!(cuStreamSynchronize(two));
    assert_eq!(download(memory, 4), [9; 4]);
}
