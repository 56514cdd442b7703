//! Captures: which streams take part, what breaks them, and the graph they build.

use crate::event::{Event, Recorded};
use crate::graph::{Action, Graph};
use crate::memory::{self, graph::GraphMemory};
use crate::status::*;
use crate::stream::Stream;
use crate::table::lock;
use crate::work::Work;
use crate::worker::Task;
use std::cell::Cell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// CUstreamCaptureMode
pub const GLOBAL: i32 = 0;
/// CUstreamCaptureMode
pub const THREAD_LOCAL: i32 = 1;
/// CUstreamCaptureMode
pub const RELAXED: i32 = 2;

/// An open capture.
struct Capture {
    id: u64,
    mode: i32,
    thread: usize,
    origin: usize,
    /// Whether its first stream waits for the NULL stream.
    blocking: bool,
    context: usize,
    valid: bool,
    graph: Arc<Graph>,
    /// What the next work on each stream that takes part comes after, by the stream's handle.
    frontier: HashMap<usize, Vec<usize>>,
}

static OPEN: Mutex<Vec<Capture>> = Mutex::new(Vec::new());
/// How many are open.
static NUMBER: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static MODE: Cell<i32> = const { Cell::new(GLOBAL) };
    static THREAD: Cell<usize> = const { Cell::new(0) };
}

fn this_thread() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(1);
    THREAD.with(|t| {
        if t.get() == 0 {
            t.set(NEXT.fetch_add(1, Ordering::Relaxed));
        }
        t.get()
    })
}

/// Exchanges the calling thread's mode.
pub fn exchange_mode(mode: i32) -> Result<i32> {
    if !(GLOBAL..=RELAXED).contains(&mode) {
        return Err(INVALID_VALUE);
    }
    Ok(MODE.replace(mode))
}

/// A call that may be unsafe during a capture: breaks each capture that forbids it to this thread.
pub fn unsafe_call() -> Result<()> {
    let mine = MODE.get();
    let thread = this_thread();
    break_where(STREAM_CAPTURE_UNSUPPORTED, |c| {
        let own = c.thread == thread && c.mode != RELAXED;
        match mine {
            RELAXED => false,
            THREAD_LOCAL => own,
            _ => own || c.mode == GLOBAL,
        }
    })
}

/// A call that waits for everything in a context: breaks every capture there.
pub fn waits_for_context(context: usize) -> Result<()> {
    break_where(STREAM_CAPTURE_UNSUPPORTED, |c| c.context == context)
}

/// A use of the NULL stream: breaks the captures on blocking streams of the context.
pub fn uses_null_stream(context: usize) -> Result<()> {
    break_where(STREAM_CAPTURE_IMPLICIT, |c| {
        c.blocking && c.context == context
    })
}

/// A call on a stream that no capture admits: breaks the capture that the stream takes part in.
pub fn forbidden_on(stream: &Stream) -> Result<()> {
    break_where(STREAM_CAPTURE_UNSUPPORTED, |c| c.has(stream))
}

fn break_where(status: i32, affected: impl Fn(&Capture) -> bool) -> Result<()> {
    // Most programs capture rarely and call often.
    if NUMBER.load(Ordering::Acquire) == 0 {
        return Ok(());
    }
    let mut broken = false;
    for capture in lock(&OPEN).iter_mut().filter(|c| affected(c)) {
        capture.valid = false;
        broken = true;
    }
    if broken {
        Err(status)
    } else {
        Ok(())
    }
}

/// Runs work on a stream, or records it if the stream takes part in a capture.
pub fn submit(stream: &Arc<Stream>, work: Work) -> Result<()> {
    let work = match recorded(stream, work)? {
        Some(work) => work,
        None => return Ok(()),
    };
    let waits = matches!(&work, Work::Copy(copy) if copy.writes_pageable());
    stream.push(Task::Work(work.with_host_bytes()?))?;
    if waits {
        // As the driver does: such a copy returns when it is done.
        stream.wait_idle();
    }
    Ok(())
}

/// Records work if the stream takes part in a capture; gives it back if not.
fn recorded(stream: &Stream, work: Work) -> Result<Option<Work>> {
    if stream.is_null() {
        uses_null_stream(stream.context_handle)?;
        return Ok(Some(work));
    }
    if NUMBER.load(Ordering::Acquire) == 0 {
        return Ok(Some(work));
    }
    let mut open = lock(&OPEN);
    match open.iter_mut().find(|c| c.has(stream)) {
        Some(capture) => capture.add(stream, work).map(|_| None),
        None => Ok(Some(work)),
    }
}

impl Capture {
    fn has(&self, stream: &Stream) -> bool {
        self.frontier.contains_key(&stream.handle)
    }

    fn check(&self) -> Result<()> {
        if self.valid {
            Ok(())
        } else {
            Err(STREAM_CAPTURE_INVALIDATED)
        }
    }

    /// Adds a node at the end of a stream.
    fn add(&mut self, stream: &Stream, work: Work) -> Result<usize> {
        self.check()?;
        let after = self.frontier.entry(stream.handle).or_default();
        let node = self.graph.add(Action::Work(work), after)?;
        *after = vec![node];
        Ok(node)
    }
}

/// Whether a stream takes part in a capture.
pub fn is_capturing(stream: &Stream) -> bool {
    NUMBER.load(Ordering::Acquire) != 0 && lock(&OPEN).iter().any(|c| c.has(stream))
}

/// Allocates memory on a stream that captures: the address of a graph's memory. `None` if it does not.
pub fn allocate(stream: &Stream, size: u64) -> Option<Result<u64>> {
    let mut open = lock(&OPEN);
    let capture = open.iter_mut().find(|c| c.has(stream))?;
    let add = |capture: &mut Capture| {
        capture.check()?;
        let memory = GraphMemory::reserve(size, stream.device)?;
        let address = memory.address;
        capture.add(stream, Work::Alloc(memory))?;
        Ok(address)
    };
    Some(add(capture))
}

/// Frees memory on a stream that captures; only that of a graph can be. `None` if it does not capture.
pub fn free(stream: &Stream, address: u64) -> Option<Result<()>> {
    let mut open = lock(&OPEN);
    let capture = open.iter_mut().find(|c| c.has(stream))?;
    Some(match memory::graph::at(address) {
        Some(memory) => capture.add(stream, Work::Free(memory)).map(|_| ()),
        None => capture.check().and(Err(INVALID_VALUE)),
    })
}

/// Begins a capture, into a graph of the program after some of its nodes, or into a new one.
pub fn begin(
    stream: &Arc<Stream>,
    mode: i32,
    into: Option<(Arc<Graph>, Vec<usize>)>,
) -> Result<()> {
    static NEXT: AtomicUsize = AtomicUsize::new(1);
    if stream.is_null() {
        return Err(STREAM_CAPTURE_UNSUPPORTED);
    }
    if !(GLOBAL..=RELAXED).contains(&mode) {
        return Err(INVALID_VALUE);
    }
    let mut open = lock(&OPEN);
    if open.iter().any(|c| c.has(stream)) {
        return Err(ILLEGAL_STATE);
    }
    let (graph, after) = into.unwrap_or_else(|| (Graph::captured(), Vec::new()));
    open.push(Capture {
        id: NEXT.fetch_add(1, Ordering::Relaxed) as u64,
        mode,
        thread: this_thread(),
        origin: stream.handle,
        blocking: stream.is_blocking(),
        context: stream.context_handle,
        valid: true,
        graph,
        frontier: HashMap::from([(stream.handle, after)]),
    });
    NUMBER.store(open.len(), Ordering::Release);
    Ok(())
}

/// Ends a capture: the graph's handle. The capture is over whatever the outcome, except when it was
/// begun on another stream.
pub fn end(stream: &Arc<Stream>) -> Result<usize> {
    let mut open = lock(&OPEN);
    let index = open
        .iter()
        .position(|c| c.has(stream))
        .ok_or(ILLEGAL_STATE)?;
    if open[index].origin != stream.handle {
        open[index].valid = false;
        return Err(STREAM_CAPTURE_UNMATCHED);
    }
    let capture = open.remove(index);
    NUMBER.store(open.len(), Ordering::Release);
    drop(open);
    if capture.mode != RELAXED && capture.thread != this_thread() {
        return Err(STREAM_CAPTURE_WRONG_THREAD);
    }
    capture.check()?;
    let state = capture.graph.state();
    let last = &capture.frontier[&stream.handle];
    if !capture.frontier.values().all(|f| state.covers(last, f)) {
        return Err(STREAM_CAPTURE_UNJOINED);
    }
    drop(state);
    capture.graph.hand_over();
    Ok(capture.graph.handle)
}

/// A stream is destroyed: the capture that it began is gone, one that it joined is broken.
pub fn stream_destroyed(stream: &Stream) {
    let mut open = lock(&OPEN);
    let gone = open.iter().position(|c| c.origin == stream.handle);
    let gone = gone.map(|index| open.remove(index));
    for capture in open.iter_mut() {
        if capture.frontier.remove(&stream.handle).is_some() {
            capture.valid = false;
        }
    }
    NUMBER.store(open.len(), Ordering::Release);
    drop(open);
    drop(gone);
}

/// A context is gone, and with it its captures.
pub fn remove_context(context: usize) {
    let mut open = lock(&OPEN);
    let all = std::mem::take(&mut *open);
    let (gone, kept): (Vec<_>, Vec<_>) = all.into_iter().partition(|c| c.context == context);
    *open = kept;
    NUMBER.store(open.len(), Ordering::Release);
    drop(open);
    drop(gone);
}

/// What a program may ask of a stream's capture.
#[derive(Default)]
pub struct Info {
    /// CUstreamCaptureStatus: 0 not capturing, 1 capturing, 2 broken.
    pub status: i32,
    /// The capture's number. The driver tells none for a broken one.
    pub id: u64,
    /// The graph that is being made.
    pub graph: usize,
    /// What the next work on the stream comes after.
    pub after: Vec<usize>,
}

/// What there is to know of a stream's capture. Nothing can be asked of the NULL stream while a blocking
/// stream captures.
pub fn info(stream: &Stream) -> Result<Info> {
    if NUMBER.load(Ordering::Acquire) == 0 {
        return Ok(Info::default());
    }
    let open = lock(&OPEN);
    let blocking = |c: &Capture| c.blocking && c.context == stream.context_handle;
    if stream.is_null() && open.iter().any(blocking) {
        return Err(STREAM_CAPTURE_IMPLICIT);
    }
    Ok(match open.iter().find(|c| c.has(stream)) {
        None => Info::default(),
        Some(c) if c.valid => Info {
            status: 1,
            id: c.id,
            graph: c.graph.handle,
            after: c.frontier[&stream.handle].clone(),
        },
        Some(_) => Info {
            status: 2,
            ..Info::default()
        },
    })
}

/// Changes what the next work on a capturing stream comes after: adds nodes, or replaces all.
pub fn update_dependencies(stream: &Stream, nodes: &[usize], replace: bool) -> Result<()> {
    let mut open = lock(&OPEN);
    let capture = open
        .iter_mut()
        .find(|c| c.has(stream))
        .ok_or(ILLEGAL_STATE)?;
    capture.check()?;
    let state = capture.graph.state();
    if nodes.iter().any(|node| !state.nodes.contains_key(node)) {
        return Err(INVALID_VALUE);
    }
    drop(state);
    let after = capture.frontier.entry(stream.handle).or_default();
    if replace {
        after.clear();
    }
    extend(after, nodes);
    Ok(())
}

fn extend(after: &mut Vec<usize>, nodes: &[usize]) {
    after.extend(nodes);
    after.sort_unstable();
    after.dedup();
}

/// Records an event on a stream that captures: marks a place, or makes a node that will record it at each
/// launch. `None` if it does not capture.
pub fn record(event: &Arc<Event>, stream: &Stream, external: bool) -> Option<Result<()>> {
    let mut open = lock(&OPEN);
    let capture = open.iter_mut().find(|c| c.has(stream))?;
    if external {
        return Some(capture.add(stream, Work::Record(event.clone())).map(|_| ()));
    }
    Some(capture.check().map(|()| {
        let after = capture.frontier[&stream.handle].clone();
        event.record(Recorded::Captured(capture.id, after));
    }))
}

/// Makes a stream that captures wait for an event at each launch. `None` if it does not capture.
pub fn wait_external(event: &Arc<Event>, stream: &Stream) -> Option<Result<()>> {
    let mut open = lock(&OPEN);
    let capture = open.iter_mut().find(|c| c.has(stream))?;
    Some(capture.add(stream, Work::Wait(event.clone())).map(|_| ()))
}

/// What waiting for an event means to captures.
pub enum Waiting {
    /// Nothing: the stream waits for the moment, if there is one.
    Plain,
    /// It was dealt with.
    Captured,
}

/// Makes a stream wait for an event as far as captures are concerned: it may join one.
pub fn wait(event: &Event, stream: &Stream) -> Result<Waiting> {
    let recorded = event.recorded();
    let mut open = lock(&OPEN);
    let own = open.iter().position(|c| c.has(stream));
    if let Some(index) = own {
        open[index].check()?;
    }
    match (recorded, own) {
        (Recorded::Captured(id, places), own) => {
            let index = open.iter().position(|c| c.id == id).ok_or(INVALID_VALUE)?;
            open[index].check()?;
            match own {
                Some(other) if other != index => {
                    open[index].valid = false;
                    open[other].valid = false;
                    Err(STREAM_CAPTURE_MERGE)
                }
                None if stream.is_null() => {
                    open[index].valid = false;
                    Err(STREAM_CAPTURE_UNSUPPORTED)
                }
                _ => {
                    extend(
                        open[index].frontier.entry(stream.handle).or_default(),
                        &places,
                    );
                    Ok(Waiting::Captured)
                }
            }
        }
        (Recorded::Moment(_), Some(index)) => {
            open[index].valid = false;
            Err(STREAM_CAPTURE_ISOLATION)
        }
        (Recorded::Never, Some(_)) => Ok(Waiting::Captured),
        (_, None) => Ok(Waiting::Plain),
    }
}

/// Asks about an event that was recorded inside a capture: an error in any case, and the end of the
/// capture if it is open.
pub fn query_captured(id: u64) -> i32 {
    match break_where(CAPTURED_EVENT, |c| c.id == id) {
        Ok(()) => INVALID_VALUE,
        Err(status) => status,
    }
}
