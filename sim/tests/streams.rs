//! Streams: which work waits for which, the default streams, the bounded queue.

mod common;
use common::*;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

const SUCCESS: CUresult = CUresult::CUDA_SUCCESS;
/// Handles that stand for the NULL stream and for the thread's own.
const LEGACY: CUstream = 1 as CUstream;
const OWN: CUstream = 2 as CUstream;

#[test]
fn two_streams_overlap() {
    let s = Session::new();
    let streams = [s.stream(), s.stream()];
    let gates = [Gate::default(), Gate::default()];
    let (memory, set, step) = (upload(&[0; 4]), s.kernel(c"set"), s.kernel(c"step"));
    // The first stream stands until the second has done all of its work.
    gates[0].close(streams[0]);
    assert_eq!(launch(step, 4, memory, 100, streams[0]), SUCCESS);
    assert_eq!(launch(set, 4, memory, 3, streams[1]), SUCCESS);
    cu!(cuStreamSynchronize(streams[1]));
    fails!(NOT_READY, cuStreamQuery(streams[0]));
    gates[0].open();
    cu!(cuStreamSynchronize(streams[0]));
    cu!(cuStreamQuery(streams[0]));
    assert_eq!(download_async(memory, streams[1]), [106; 4]);
}

fn download_async(memory: CUdeviceptr, on: CUstream) -> Vec<u32> {
    let mut words = vec![0u32; 4];
    cu!(cuMemcpyDtoHAsync_v2(
        words.as_mut_ptr().cast(),
        memory,
        16,
        on
    ));
    cu!(cuStreamSynchronize(on));
    words
}

#[test]
fn the_null_stream_and_blocking_streams_wait_for_each_other() {
    let s = Session::new();
    let blocking: CUstream = get!(cuStreamCreate(0));
    let apart = s.stream();
    let (set, step) = (s.kernel(c"set"), s.kernel(c"step"));
    let memory = upload(&[0; 4]);
    let gate = Gate::default();
    gate.close(blocking);
    assert_eq!(launch(set, 4, memory, 1, blocking), SUCCESS);
    assert_eq!(launch(step, 4, memory, 1, null_mut()), SUCCESS);
    assert_eq!(launch(step, 4, memory, 2, blocking), SUCCESS);
    fails!(NOT_READY, cuStreamQuery(null_mut()));
    // One that does not take part goes on.
    let other = upload_async(&[7; 4], apart);
    assert_eq!(download_async(other, apart), [7; 4]);
    gate.open();
    cu!(cuStreamSynchronize(blocking));
    assert_eq!(download_async(memory, apart), [8; 4]);
}

fn upload_async(words: &[u32], on: CUstream) -> CUdeviceptr {
    let memory: CUdeviceptr = get!(cuMemAllocAsync(4 * words.len(), on));
    cu!(cuMemcpyHtoDAsync_v2(
        memory,
        words.as_ptr().cast(),
        4 * words.len(),
        on
    ));
    memory
}

#[test]
fn each_thread_has_a_default_stream_of_its_own() {
    let s = Session::new();
    let (set, add) = (s.kernel(c"set"), s.kernel(c"add"));
    let (mine, theirs) = (upload(&[0; 4]), upload(&[0; 4]));
    let gate = Gate::default();
    gate.close(OWN);
    assert_eq!(launch(set, 4, mine, 1, OWN), SUCCESS);
    let (add, context) = (add as usize, s.context as usize);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            cu!(cuCtxSetCurrent(context as CUcontext));
            assert_eq!(launch(add as CUfunction, 4, theirs, 5, OWN), SUCCESS);
            cu!(cuStreamSynchronize(OWN));
            assert_eq!(download_async(theirs, OWN), [5; 4]);
        });
    });
    fails!(NOT_READY, cuStreamQuery(OWN));
    gate.open();
    cu!(cuStreamSynchronize(OWN));
    assert_eq!(download(mine, 4), [1; 4]);
}

type Launch = extern "C" fn(
    CUfunction,
    u32,
    u32,
    u32,
    u32,
    u32,
    u32,
    u32,
    CUstream,
    *mut *mut std::ffi::c_void,
    *mut *mut std::ffi::c_void,
) -> CUresult;
type OnStream = extern "C" fn(CUstream) -> CUresult;
type ToDevice = extern "C" fn(CUdeviceptr, *const u32, usize) -> CUresult;

#[test]
fn the_forms_for_threads_mean_the_thread_s_own_stream() {
    let s = Session::new();
    let launch_own = function!("cuLaunchKernel_ptsz", Launch);
    let synchronize_own = function!("cuStreamSynchronize_ptsz", OnStream);
    let query_own = function!("cuStreamQuery_ptsz", OnStream);
    let copy_own = function!("cuMemcpyHtoD_v2_ptds", ToDevice);
    let memory = upload(&[0; 4]);
    let mut at = memory;
    let mut value = 4;
    let mut arguments = arguments(&mut at, &mut value);
    let add = s.kernel(c"add");
    let gate = Gate::default();
    // An apart stream would hold nothing up; the NULL stream's work would be seen in it.
    gate.close(OWN);
    let status = launch_own(
        add,
        1,
        1,
        1,
        4,
        1,
        1,
        0,
        null_mut(),
        arguments.as_mut_ptr(),
        null_mut(),
    );
    assert_eq!(status, SUCCESS);
    assert_eq!(query_own(null_mut()), CUresult::CUDA_ERROR_NOT_READY);
    // The plain form asks the NULL stream, which waits for this one.
    fails!(NOT_READY, cuStreamQuery(null_mut()));
    gate.open();
    assert_eq!(synchronize_own(null_mut()), SUCCESS);
    assert_eq!(download(memory, 4), [4; 4]);
    assert_eq!(copy_own(memory, [9u32; 4].as_ptr(), 16), SUCCESS);
    assert_eq!(download(memory, 4), [9; 4]);
}

#[test]
fn the_null_stream_is_not_ready_while_a_blocking_stream_has_work() {
    let s = Session::new();
    let (blocking, apart): (CUstream, _) = (get!(cuStreamCreate(0)), s.stream());
    let not_ready = CUresult::CUDA_ERROR_NOT_READY;
    for (stream, null) in [
        (blocking, not_ready),
        (OWN, not_ready),
        (apart, CUresult::CUDA_SUCCESS),
    ] {
        let gate = Gate::default();
        gate.close(stream);
        let asked = [stream, null_mut()].map(|stream| status!(cuStreamQuery(stream)));
        gate.open();
        cu!(cuStreamSynchronize(stream));
        assert_eq!(asked, [not_ready, null]);
        cu!(cuStreamQuery(null_mut()));
    }
}

#[test]
fn the_default_stream_of_a_thread_can_be_captured() {
    let s = Session::new();
    let memory = upload(&[0; 4]);
    let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
    cu!(cuStreamBeginCapture_v2(OWN, mode));
    assert_eq!(launch(s.kernel(c"add"), 4, memory, 1, OWN), SUCCESS);
    let mut graph = null_mut();
    cu!(cuStreamEndCapture(OWN, &mut graph));
    run(instantiate(graph), OWN);
    assert_eq!(download(memory, 4), [1; 4]);
    fails!(
        STREAM_CAPTURE_UNSUPPORTED,
        cuStreamBeginCapture_v2(LEGACY, mode)
    );
}

#[test]
fn work_of_a_thread_that_has_ended_is_waited_for() {
    let s = Session::new();
    let memory = upload(&[0; 4]);
    let gate = Gate::default();
    let (add, context) = (s.kernel(c"add") as usize, s.context as usize);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            cu!(cuCtxSetCurrent(context as CUcontext));
            gate.close(OWN);
            assert_eq!(launch(add as CUfunction, 4, memory, 5, OWN), SUCCESS);
        });
    });
    let opened = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(20));
            opened.store(true, Ordering::SeqCst);
            gate.open();
        });
        cu!(cuCtxSynchronize());
        assert!(opened.load(Ordering::SeqCst));
    });
    assert_eq!(download(memory, 4), [5; 4]);
}

#[test]
fn a_full_queue_holds_the_next_launch_up() {
    let s = Session::new();
    let (stream, add) = (s.stream(), s.kernel(c"add") as usize);
    let memory = upload(&[0; 4]);
    let gate = Gate::default();
    let done = AtomicU32::new(0);
    gate.close(stream);
    std::thread::scope(|scope| {
        let (on, context) = (stream as usize, s.context as usize);
        let (done, gate) = (&done, &gate);
        scope.spawn(move || {
            cu!(cuCtxSetCurrent(context as CUcontext));
            for _ in 0..1500 {
                assert_eq!(
                    launch(add as CUfunction, 4, memory, 1, on as CUstream),
                    SUCCESS
                );
                done.fetch_add(1, Ordering::SeqCst);
            }
        });
        // It comes as far as there is room, and no further while the stream stands.
        let start = Instant::now();
        while done.load(Ordering::SeqCst) < 1000 && start.elapsed().as_secs() < 60 {
            std::thread::yield_now();
        }
        std::thread::sleep(Duration::from_millis(100));
        let count = done.load(Ordering::SeqCst);
        assert!((1000..1100).contains(&count), "{count} launches");
        gate.open();
    });
    cu!(cuStreamSynchronize(stream));
    assert_eq!(download(memory, 4), [1500; 4]);
}

#[test]
fn a_destroyed_stream_finishes_its_work() {
    let s = Session::new();
    let stream = s.stream();
    let (memory, add) = (upload(&[0; 4]), s.kernel(c"add"));
    let gate = Gate::default();
    gate.close(stream);
    assert_eq!(launch(add, 4, memory, 5, stream), SUCCESS);
    cu!(cuStreamDestroy_v2(stream));
    simulator_refuses!(INVALID_HANDLE, cuStreamQuery(stream));
    gate.open();
    cu!(cuCtxSynchronize());
    assert_eq!(download(memory, 4), [5; 4]);
}

#[test]
fn streams_tell_what_they_are() {
    let s = Session::new();
    let (mut least, mut greatest) = (9, 9);
    cu!(cuCtxGetStreamPriorityRange(&mut least, &mut greatest));
    assert!(greatest < least, "{greatest} {least}");
    let urgent: CUstream = get!(cuStreamCreateWithPriority(1, greatest));
    let beyond: CUstream = get!(cuStreamCreateWithPriority(0, -1000));
    let (mut priority, mut flags, mut context) = (0, 9, null_mut());
    cu!(cuStreamGetPriority(urgent, &mut priority));
    assert_eq!(priority, greatest);
    cu!(cuStreamGetPriority(beyond, &mut priority));
    assert_eq!(priority, greatest);
    cu!(cuStreamGetFlags(urgent, &mut flags));
    assert_eq!(flags, 1);
    cu!(cuStreamGetCtx(urgent, &mut context));
    assert_eq!(context, s.context);
    let id = |stream| {
        let mut id = 0;
        cu!(cuStreamGetId(stream, &mut id));
        id
    };
    assert_ne!(id(urgent), id(beyond));
    assert_ne!(id(urgent), id(null_mut()));
    assert_eq!(id(LEGACY), id(null_mut()));
    let mut stream = null_mut();
    fails!(INVALID_VALUE, cuStreamCreate(&mut stream, 2));
}

#[test]
fn callbacks_run_in_order_and_may_not_call_the_driver() {
    let s = Session::new();
    let stream = s.stream();
    static SEEN: AtomicU32 = AtomicU32::new(0);
    SEEN.store(0, Ordering::SeqCst);
    unsafe extern "C" fn inside(_data: *mut std::ffi::c_void) {
        let mut memory = 0;
        let status = status!(cuMemAlloc_v2(&mut memory, 16));
        SEEN.store(status as u32, Ordering::SeqCst);
    }
    cu!(cuLaunchHostFunc(stream, Some(inside), null_mut()));
    cu!(cuStreamSynchronize(stream));
    let refused = CUresult::CUDA_ERROR_NOT_PERMITTED as u32;
    assert_eq!(SEEN.load(Ordering::SeqCst), refused);
    unsafe extern "C" fn told(of: CUstream, status: CUresult, data: *mut std::ffi::c_void) {
        let good = !of.is_null() && status == CUresult::CUDA_SUCCESS;
        SEEN.store(if good { data as u32 } else { 0 }, Ordering::SeqCst);
    }
    cu!(cuStreamAddCallback(
        stream,
        Some(told),
        77 as *mut std::ffi::c_void,
        0
    ));
    cu!(cuStreamSynchronize(stream));
    assert_eq!(SEEN.load(Ordering::SeqCst), 77);
}
