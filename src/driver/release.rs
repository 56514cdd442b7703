//! Giving handles back to the driver: the only place that destroys anything.
//!
//! A finalizer of the OCaml garbage collector only moves its `Arc` to [`DROPPED`]. Dropping the last
//! `Arc` of an owner, wherever that happens, only queues a [`Release`]. Ordinary calls drain the
//! queues. Freeing memory and unloading modules wait for the whole device, so these are drained only
//! where waiting is expected.

use super::capture;
use super::context::Context;
use super::family::Family;
use super::gate::{self, Passing, ThreadMode};
use super::pressure::Waiting;
use super::queue::StreamState;
use super::retain::Shared;
use super::stream::Stream;
use super::{driver, library, Error, Result};
use crossbeam_queue::SegQueue;
use cudarc::driver::sys::{self, CUresult};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// A handle that nobody holds any more.
pub enum Release {
    /// `cuMemFree`; waits for the device.
    Memory(u64, Arc<Context>),
    /// `cuMemFreeAsync` in the order of the stream that it was allocated on.
    StreamMemory(u64, Arc<Stream>),
    /// `cuModuleUnload`; waits for the device.
    Module(usize, Arc<Context>),
    /// `cuDevicePrimaryCtxRelease` for a device.
    PrimaryContext(i32),
    /// `cuCtxDestroy`
    CreatedContext(usize),
    /// `cuEventDestroy`, and how it passes the gate.
    Event(usize, Arc<Context>, Passing),
    /// `cuStreamDestroy`, once its pending work is done.
    Stream(usize, Arc<Context>, Arc<StreamState>),
    /// Nothing to destroy: work of a stream that another library owns, to be done before what it uses
    /// may go.
    StreamWork(Arc<Context>, Arc<StreamState>),
    /// The capture of a stream that nobody can end any more; its memory may keep the stream itself.
    Capture(Arc<Stream>),
    /// `cuGraphDestroy`
    Graph(usize, Arc<Context>, Family),
    /// `cuGraphExecDestroy`
    Exec(usize, Arc<Context>, Family),
}

static DROPPED: SegQueue<Shared> = SegQueue::new();
static QUICK: SegQueue<Release> = SegQueue::new();
static SLOW: SegQueue<Release> = SegQueue::new();
/// Streams without an owner whose work is not known to be done, and memory of streams that capture.
static LINGERING: Mutex<Vec<Release>> = Mutex::new(Vec::new());
static FAILED: AtomicU64 = AtomicU64::new(0);
static FAILURES: SegQueue<(&str, i32)> = SegQueue::new();

/// Which releases a call is ready to wait for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Drain {
    /// Those that return at once.
    Quick,
    /// Also those that wait until the device is idle.
    All,
}

/// Takes over what a garbage-collected value held. Safe to call from a GC finalizer: no driver
/// call, no lock, no panic.
pub fn dropped(owner: Shared) {
    DROPPED.push(owner);
}

/// Queues the destruction of a handle.
pub fn queue(release: Release) {
    match release {
        Release::Memory(..)
        | Release::Module(..)
        | Release::PrimaryContext(_)
        | Release::CreatedContext(_) => SLOW.push(release),
        _ => QUICK.push(release),
    }
}

/// Whether a stream without an owner has work that is not known to be done.
pub fn lingers(of: &Arc<StreamState>) -> bool {
    let lingering = LINGERING.lock().unwrap_or_else(|e| e.into_inner());
    lingering.iter().any(|release| match release {
        Release::Stream(_, _, state) | Release::StreamWork(_, state) => Arc::ptr_eq(state, of),
        _ => false,
    })
}

/// How many releases the driver has refused so far.
pub fn failed() -> u64 {
    FAILED.load(Ordering::Relaxed)
}

/// Runs what is queued. Never fails: a refused release is counted.
pub fn drain(how: Drain) {
    if !library::usable() {
        return;
    }
    retry_lingering();
    // Dropping an owner may queue releases, and a release may drop owners.
    loop {
        if let Some(owner) = DROPPED.pop() {
            drop(owner);
            continue;
        }
        let slow = || if how == Drain::All { SLOW.pop() } else { None };
        match QUICK.pop().or_else(slow) {
            Some(release) => run(release),
            None => return,
        }
    }
}

fn retry_lingering() {
    let waiting = match LINGERING.try_lock() {
        Ok(mut lingering) => std::mem::take(&mut *lingering),
        Err(_) => return,
    };
    waiting.into_iter().for_each(run);
}

impl Release {
    /// The driver function that it comes down to.
    fn function(&self) -> &'static str {
        match self {
            Release::Memory(..) => "cuMemFree",
            Release::StreamMemory(..) => "cuMemFreeAsync",
            Release::Module(..) => "cuModuleUnload",
            Release::PrimaryContext(_) => "cuDevicePrimaryCtxRelease",
            Release::CreatedContext(_) => "cuCtxDestroy",
            Release::Event(..) => "cuEventDestroy",
            Release::Stream(..) => "cuStreamDestroy",
            Release::StreamWork(..) => "cuEventQuery",
            Release::Capture(_) => "cuStreamEndCapture",
            Release::Graph(..) => "cuGraphDestroy",
            Release::Exec(..) => "cuGraphExecDestroy",
        }
    }

    /// The context that must be current for it.
    fn context(&self) -> Option<&Arc<Context>> {
        match self {
            Release::Memory(_, context)
            | Release::Module(_, context)
            | Release::Event(_, context, _)
            | Release::Stream(_, context, _)
            | Release::StreamWork(context, _)
            | Release::Graph(_, context, _)
            | Release::Exec(_, context, _) => Some(context),
            Release::StreamMemory(_, stream) | Release::Capture(stream) => Some(stream.context()),
            Release::PrimaryContext(_) | Release::CreatedContext(_) => None,
        }
    }
}

fn run(release: Release) {
    let _relaxed = ThreadMode::relaxed();
    let context = release.context().cloned();
    let _entered = match context.as_ref().map(|context| context.enter()).transpose() {
        Ok(entered) => entered,
        Err(error) if is_gone(&error) => return,
        // Its turn comes again.
        Err(_) => return linger(release),
    };
    let function = release.function();
    if let Err(error) = attempt(release) {
        let broken = context.is_some_and(|context| context.is_broken());
        if !broken && !is_gone(&error) {
            note_failure(function, error.status);
        }
    }
}

/// Counts a refusal, and keeps the last ones for whoever wants to know.
fn note_failure(function: &'static str, status: i32) {
    const MOST: usize = 1000;
    FAILED.fetch_add(1, Ordering::Relaxed);
    while FAILURES.len() >= MOST && FAILURES.pop().is_some() {}
    FAILURES.push((function, status));
}

/// Takes the oldest refusal that was not taken yet: the driver function and its status.
pub fn take_failure() -> Option<(&'static str, i32)> {
    FAILURES.pop()
}

/// Whether the context is gone and has taken its handles along.
fn is_gone(error: &Error) -> bool {
    [
        CUresult::CUDA_ERROR_CONTEXT_IS_DESTROYED,
        CUresult::CUDA_ERROR_DEINITIALIZED,
        CUresult::CUDA_ERROR_INVALID_CONTEXT,
    ]
    .iter()
    .any(|status| error.is(*status))
}

fn linger(release: Release) {
    let mut lingering = LINGERING.lock().unwrap_or_else(|e| e.into_inner());
    lingering.push(release);
}

/// Destroys the events of a stream that is gone; each that the driver refuses counts as a failure.
fn destroy_events(events: Vec<usize>) {
    for event in events {
        if let Err(error) = driver!(cuEventDestroy_v2(event as sys::CUevent)) {
            note_failure("cuEventDestroy", error.status);
        }
    }
}

/// In its context, harmless to captures. `cuGraphDestroy`
pub fn destroy_graph(graph: usize, family: &Family) -> Result<()> {
    let _alone = family.alone();
    driver!(cuGraphDestroy(graph as sys::CUgraph))
}

/// In its context, harmless to captures. `cuGraphExecDestroy`
pub fn destroy_exec(exec: usize, family: &Family) -> Result<()> {
    let _alone = family.alone();
    driver!(cuGraphExecDestroy(exec as sys::CUgraphExec))
}

/// In the release's own context.
fn attempt(release: Release) -> Result<()> {
    match release {
        Release::Memory(address, _) => {
            let _waiting = Waiting::begin();
            driver!(cuMemFree_v2(address))
        }
        Release::StreamMemory(address, stream) => {
            if !stream.take_back(address)? {
                linger(Release::StreamMemory(address, stream));
            }
            Ok(())
        }
        Release::Module(module, _) => {
            let _waiting = Waiting::begin();
            driver!(cuModuleUnload(module as sys::CUmodule))
        }
        Release::PrimaryContext(device) => {
            let _waiting = Waiting::begin();
            driver!(cuDevicePrimaryCtxRelease_v2(device))
        }
        Release::CreatedContext(context) => {
            let _waiting = Waiting::begin();
            driver!(cuCtxDestroy_v2(context as sys::CUcontext))
        }
        Release::Event(event, _, how) => {
            let _passage = gate::pass(how);
            driver!(cuEventDestroy_v2(event as sys::CUevent))
        }
        Release::Capture(stream) => {
            // Begun through this very value: another one may stand for the same stream.
            let begun = stream.state().lock().capture.take();
            if let Some(begun) = begun {
                capture::abandon_this(&begun);
            }
            Ok(())
        }
        Release::Graph(graph, _, family) => destroy_graph(graph, &family),
        Release::Exec(exec, _, family) => {
            let _waiting = Waiting::begin();
            destroy_exec(exec, &family)
        }
        Release::StreamWork(context, state) => {
            if !state.is_done_by_markers() {
                linger(Release::StreamWork(context, state));
                return Ok(());
            }
            destroy_events(state.release_all());
            Ok(())
        }
        Release::Stream(stream, context, state) => {
            capture::abandon(stream);
            // Destroying a stream does not wait for its work, so what that work uses stays until
            // the stream is known to be idle.
            // SAFETY: the handle is destroyed only below.
            let status = unsafe { sys::cuStreamQuery(stream as sys::CUstream) };
            if status == CUresult::CUDA_ERROR_NOT_READY {
                linger(Release::Stream(stream, context, state));
                return Ok(());
            }
            destroy_events(state.release_all());
            // It may have joined a capture that another library began.
            let _alone = gate::pass(Passing::Alone);
            driver!(cuStreamDestroy_v2(stream as sys::CUstream))
        }
    }
}
