//! How a process ends, and what is left of the driver in a child that was forked.

mod common;
use common::*;
use std::ptr::null_mut;
use std::time::{Duration, Instant};

/// Makes one of everything, with work that is pending and a capture that is open: the stream that stands.
fn leave_everything_live(s: Session, gate: &'static Gate) -> CUstream {
    let (stream, capturing) = (s.stream(), s.stream());
    let (memory, add) = (upload(&[0; 4]), s.kernel(c"add"));
    let _: CUevent = get!(cuEventCreate(0));
    let _: CUdeviceptr = get!(cuMemAllocAsync(16, stream));
    let exec = instantiate(get!(new_graph()));
    gate.close(stream);
    cu!(cuGraphLaunch(exec, stream));
    assert_eq!(launch(add, 4, memory, 1, stream), CUresult::CUDA_SUCCESS);
    let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
    cu!(cuStreamBeginCapture_v2(capturing, mode));
    std::mem::forget(s);
    stream
}

unsafe fn new_graph(graph: *mut CUgraph) -> CUresult {
    // SAFETY: passed on.
    unsafe { cuGraphCreate(graph, 0) }
}

fn gate() -> &'static Gate {
    Box::leak(Box::default())
}

/// Runs a test's child: it must end soon, with a code, and say nothing.
fn ends(test: &str, code: Option<i32>) {
    let start = Instant::now();
    let output = child(test, &[]);
    assert_eq!(output.status.code(), code, "{}", errors(&output));
    assert_eq!(errors(&output), "");
    assert!(start.elapsed() < Duration::from_secs(20));
}

#[test]
fn a_program_may_exit_with_everything_live() {
    simulator_only!();
    let test = "a_program_may_exit_with_everything_live";
    if is_child(test) {
        leave_everything_live(Session::new(), gate());
        std::process::exit(3);
    }
    ends(test, Some(3));
}

#[test]
fn a_program_may_return_with_everything_live() {
    simulator_only!();
    let test = "a_program_may_return_with_everything_live";
    if is_child(test) {
        leave_everything_live(Session::new(), gate());
        return;
    }
    ends(test, Some(0));
}

#[test]
fn another_thread_may_exit() {
    simulator_only!();
    let test = "another_thread_may_exit";
    if is_child(test) {
        leave_everything_live(Session::new(), gate());
        let _ = std::thread::spawn(|| std::process::exit(5)).join();
    }
    ends(test, Some(5));
}

#[test]
fn a_program_may_exit_while_others_wait_for_a_stream() {
    simulator_only!();
    let test = "a_program_may_exit_while_others_wait_for_a_stream";
    if is_child(test) {
        let s = Session::new();
        let context = s.context as usize;
        let stream = leave_everything_live(s, gate()) as usize;
        for _ in 0..3 {
            std::thread::spawn(move || {
                cu!(cuCtxSetCurrent(context as CUcontext));
                cu!(cuStreamSynchronize(stream as CUstream));
            });
        }
        std::thread::sleep(Duration::from_millis(50));
        std::process::exit(0);
    }
    ends(test, Some(0));
}

#[test]
fn the_table_is_written_while_work_is_pending() {
    simulator_only!();
    let test = "the_table_is_written_while_work_is_pending";
    if is_child(test) {
        leave_everything_live(Session::new(), gate());
        std::process::exit(0);
    }
    let output = child(test, &[("CUDAGRAPH_SIM_REPORT", "1")]);
    assert_eq!(output.status.code(), Some(0));
    assert!(errors(&output).contains("leaked"), "{}", errors(&output));
}

/// Forks; the child runs a body and ends with its answer.
fn forked(body: impl FnOnce() -> i32) -> i32 {
    // SAFETY: the child calls the body and ends; it allocates little, and takes no lock that this test's
    // threads hold.
    unsafe {
        match libc::fork() {
            0 => libc::_exit(body()),
            child => {
                let mut status = 0;
                assert_eq!(libc::waitpid(child, &mut status, 0), child);
                assert!(libc::WIFEXITED(status), "status {status}");
                libc::WEXITSTATUS(status)
            }
        }
    }
}

#[test]
fn a_forked_child_gets_an_error_from_everything() {
    simulator_only!();
    let s = Session::new();
    let (stream, memory) = (s.stream(), upload(&[1; 4]));
    let exec = instantiate(get!(new_graph()));
    let add = s.kernel(c"add");
    let refused = CUresult::CUDA_ERROR_NOT_INITIALIZED;
    let wrong = forked(|| {
        let mut address = 0;
        let mut event = null_mut();
        let answers = [
            status!(cuInit(0)),
            status!(cuMemAlloc_v2(&mut address, 16)),
            status!(cuMemFree_v2(memory)),
            status!(cuEventCreate(&mut event, 0)),
            status!(cuStreamSynchronize(stream)),
            status!(cuStreamDestroy_v2(stream)),
            status!(cuGraphLaunch(exec, stream)),
            status!(cuGraphExecDestroy(exec)),
            status!(cuCtxSynchronize()),
            launch(add, 4, memory, 1, stream),
        ];
        answers.iter().filter(|status| **status != refused).count() as i32
    });
    assert_eq!(wrong, 0);
    // The parent's goes on.
    run(exec, stream);
    assert_eq!(launch(add, 4, memory, 1, stream), CUresult::CUDA_SUCCESS);
    cu!(cuStreamSynchronize(stream));
    assert_eq!(download(memory, 4), [2; 4]);
}

#[test]
fn a_child_that_was_forked_before_the_start_has_a_driver() {
    simulator_only!();
    let test = "a_child_that_was_forked_before_the_start_has_a_driver";
    if is_child(test) {
        open();
        let answer = forked(|| {
            cu!(cuInit(0));
            let _: CUcontext = get!(cuCtxCreate_v2(0, 0));
            let memory = upload(&[6; 4]);
            download(memory, 4)[3] as i32
        });
        assert_eq!(answer, 6);
        return;
    }
    ends(test, Some(0));
}

#[test]
fn a_process_that_can_have_no_more_threads_gets_an_error() {
    simulator_only!();
    let test = "a_process_that_can_have_no_more_threads_gets_an_error";
    if !is_child(test) {
        let output = child(test, &[]);
        assert!(output.status.success(), "{}", errors(&output));
        assert!(errors(&output).contains("no thread could be started"));
        return;
    }
    let s = Session::new();
    let (stream, memory) = (s.stream(), words(4));
    // A thread's stack does not fit into what is left of the address space.
    let limit = |soft| {
        let mut limits = libc::rlimit {
            rlim_cur: 0,
            rlim_max: 0,
        };
        // SAFETY: both calls get a valid place.
        unsafe {
            assert_eq!(libc::getrlimit(libc::RLIMIT_AS, &mut limits), 0);
            limits.rlim_cur = soft;
            assert_eq!(libc::setrlimit(libc::RLIMIT_AS, &limits), 0);
        }
    };
    limit(1 << 20);
    fails!(OPERATING_SYSTEM, cuMemsetD32Async(memory, 5, 4, stream));
    limit(libc::RLIM_INFINITY);
    cu!(cuMemsetD32Async(memory, 6, 4, stream));
    cu!(cuStreamSynchronize(stream));
    assert_eq!(download(memory, 4), [6; 4]);
}

#[test]
fn a_thread_may_end_with_work_pending() {
    simulator_only!();
    let s = Session::new();
    let (add, context) = (s.kernel(c"add") as usize, s.context as usize);
    let memory = upload(&[0; 4]);
    for _ in 0..20 {
        std::thread::spawn(move || {
            cu!(cuCtxSetCurrent(context as CUcontext));
            let stream = stream();
            assert_eq!(
                launch(add as CUfunction, 4, memory, 1, stream),
                CUresult::CUDA_SUCCESS
            );
        })
        .join()
        .unwrap();
    }
    cu!(cuCtxSynchronize());
    assert_eq!(download(memory, 4), [20; 4]);
}
