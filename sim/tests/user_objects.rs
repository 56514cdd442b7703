//! User objects: what a graph keeps for the program, and when it lets go.

mod common;
use common::*;
use std::ffi::c_void;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Counts its destructor's calls.
#[derive(Default)]
struct Counter(AtomicU32);

impl Counter {
    fn object(&self, references: u32) -> CUuserObject {
        let flag = CUuserObject_flags::CU_USER_OBJECT_NO_DESTRUCTOR_SYNC as u32;
        get!(cuUserObjectCreate(
            std::ptr::from_ref(self).cast_mut().cast(),
            Some(destroyed),
            references,
            flag
        ))
    }

    /// The number of calls, when one more may still be on its way.
    fn settled(&self) -> u32 {
        let start = Instant::now();
        while self.0.load(Ordering::SeqCst) == 0 && start.elapsed() < Duration::from_secs(20) {
            std::thread::sleep(Duration::from_millis(1));
        }
        self.now()
    }

    fn now(&self) -> u32 {
        std::thread::sleep(Duration::from_millis(20));
        self.0.load(Ordering::SeqCst)
    }
}

unsafe extern "C" fn destroyed(counter: *mut c_void) {
    // SAFETY: the tests' counters outlive their objects.
    let counter = unsafe { &*counter.cast::<Counter>() };
    // A destructor may not call the driver.
    let mut memory = 0;
    let status = status!(cuMemAlloc_v2(&mut memory, 16));
    let refused = status == CUresult::CUDA_ERROR_NOT_PERMITTED;
    counter
        .0
        .fetch_add(if refused { 1 } else { 100 }, Ordering::SeqCst);
}

#[test]
fn the_last_reference_of_the_program_ends_it() {
    let _s = Session::new();
    let counter = Counter::default();
    let object = counter.object(2);
    cu!(cuUserObjectRetain(object, 1));
    cu!(cuUserObjectRelease(object, 2));
    assert_eq!(counter.now(), 0);
    simulator_refuses!(INVALID_VALUE, cuUserObjectRelease(object, 2));
    cu!(cuUserObjectRelease(object, 1));
    assert_eq!(counter.settled(), 1);
    simulator_refuses!(INVALID_VALUE, cuUserObjectRetain(object, 1));
    simulator_refuses!(INVALID_VALUE, cuUserObjectRelease(object, 1));
}

#[test]
fn a_graph_keeps_it_and_so_do_its_clone_and_its_exec() {
    let s = Session::new();
    let counter = Counter::default();
    let graph = get!(cuGraphCreate(0));
    // The program's own reference moves to the graph.
    cu!(cuGraphRetainUserObject(graph, counter.object(1), 1, 1));
    let clone = get!(cuGraphClone(graph));
    let exec = instantiate(graph);
    cu!(cuGraphDestroy(graph));
    assert_eq!(counter.now(), 0);
    cu!(cuGraphDestroy(clone));
    assert_eq!(counter.now(), 0);
    let stream = s.stream();
    let gate = Gate::default();
    gate.close(stream);
    cu!(cuGraphLaunch(exec, stream));
    cu!(cuGraphExecDestroy(exec));
    // The pending launch may need it.
    assert_eq!(counter.now(), 0);
    gate.open();
    cu!(cuStreamSynchronize(stream));
    assert_eq!(counter.settled(), 1);
}

#[test]
fn a_graph_inside_of_another_keeps_it() {
    let _s = Session::new();
    let counter = Counter::default();
    let (outer, inner) = (get!(cuGraphCreate(0)), get!(cuGraphCreate(0)));
    cu!(cuGraphRetainUserObject(inner, counter.object(1), 1, 1));
    let _: CUgraphNode = get!(cuGraphAddChildGraphNode(outer, null(), 0, inner));
    let exec = instantiate(outer);
    cu!(cuGraphDestroy(inner));
    cu!(cuGraphDestroy(outer));
    assert_eq!(counter.now(), 0);
    cu!(cuGraphExecDestroy(exec));
    assert_eq!(counter.settled(), 1);
}

#[test]
fn references_of_a_graph_are_given_back() {
    let _s = Session::new();
    let counter = Counter::default();
    let object = counter.object(1);
    let graph = get!(cuGraphCreate(0));
    cu!(cuGraphRetainUserObject(graph, object, 3, 0));
    cu!(cuUserObjectRelease(object, 1));
    simulator_refuses!(INVALID_VALUE, cuGraphReleaseUserObject(graph, object, 4));
    cu!(cuGraphReleaseUserObject(graph, object, 2));
    assert_eq!(counter.now(), 0);
    cu!(cuGraphReleaseUserObject(graph, object, 1));
    assert_eq!(counter.settled(), 1);
    simulator_refuses!(INVALID_VALUE, cuGraphRetainUserObject(graph, object, 1, 0));
}

#[test]
fn nonsense_is_refused() {
    let _s = Session::new();
    let mut object = null_mut();
    let counter = Counter::default();
    let data = std::ptr::from_ref(&counter).cast_mut().cast::<c_void>();
    fails!(
        INVALID_VALUE,
        cuUserObjectCreate(&mut object, data, Some(destroyed), 0, 1)
    );
    fails!(
        INVALID_VALUE,
        cuUserObjectCreate(&mut object, data, None, 1, 1)
    );
    fails!(
        INVALID_VALUE,
        cuUserObjectCreate(&mut object, data, Some(destroyed), 1, 0)
    );
    fails!(INVALID_VALUE, cuUserObjectRetain(null_mut(), 1));
    simulator_refuses!(INVALID_VALUE, cuUserObjectRelease(0x40 as CUuserObject, 1));
}
