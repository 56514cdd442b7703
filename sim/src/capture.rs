//! Captures: which streams take part, what breaks them, and the graph they build.

use crate::event::{Event, Recorded};
use crate::graph::{covers, Graph, Node, GRAPHS};
use crate::status::*;
use crate::stream::{Stream, Task};
use crate::table::lock;
use crate::work::Work;
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
    nodes: Vec<Node>,
    /// What the next work on each stream that takes part comes after, by the stream's handle.
    frontier: HashMap<usize, Vec<usize>>,
}

static OPEN: Mutex<Vec<Capture>> = Mutex::new(Vec::new());

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
    break_where(STREAM_CAPTURE_UNSUPPORTED, |c| {
        c.frontier.contains_key(&stream.handle)
    })
}

fn break_where(status: i32, affected: impl Fn(&Capture) -> bool) -> Result<()> {
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
    if stream.is_null() {
        uses_null_stream(stream.context_handle)?;
    } else {
        let mut open = lock(&OPEN);
        if let Some(capture) = open
            .iter_mut()
            .find(|c| c.frontier.contains_key(&stream.handle))
        {
            capture.check()?;
            let after = capture.frontier[&stream.handle].clone();
            capture.nodes.push(Node { work, after });
            let last = capture.nodes.len() - 1;
            capture.frontier.insert(stream.handle, vec![last]);
            return Ok(());
        }
    }
    stream.push(Task::Work(vec![work.with_host_bytes()?]))
}

impl Capture {
    fn check(&self) -> Result<()> {
        if self.valid {
            Ok(())
        } else {
            Err(STREAM_CAPTURE_INVALIDATED)
        }
    }
}

/// Begins a capture.
pub fn begin(stream: &Arc<Stream>, mode: i32) -> Result<()> {
    static NEXT: AtomicUsize = AtomicUsize::new(1);
    if stream.is_null() {
        return Err(STREAM_CAPTURE_UNSUPPORTED);
    }
    if !(GLOBAL..=RELAXED).contains(&mode) {
        return Err(INVALID_VALUE);
    }
    let mut open = lock(&OPEN);
    if open.iter().any(|c| c.frontier.contains_key(&stream.handle)) {
        return Err(ILLEGAL_STATE);
    }
    open.push(Capture {
        id: NEXT.fetch_add(1, Ordering::Relaxed) as u64,
        mode,
        thread: this_thread(),
        origin: stream.handle,
        blocking: stream.is_blocking(),
        context: stream.context_handle,
        valid: true,
        nodes: Vec::new(),
        frontier: HashMap::from([(stream.handle, Vec::new())]),
    });
    Ok(())
}

/// Ends a capture: the graph's handle. The capture is over whatever the outcome, except when it was
/// begun on another stream.
pub fn end(stream: &Arc<Stream>) -> Result<usize> {
    let mut open = lock(&OPEN);
    let index = open
        .iter()
        .position(|c| c.frontier.contains_key(&stream.handle))
        .ok_or(ILLEGAL_STATE)?;
    if open[index].origin != stream.handle {
        open[index].valid = false;
        return Err(STREAM_CAPTURE_UNMATCHED);
    }
    let capture = open.remove(index);
    drop(open);
    if capture.mode != RELAXED && capture.thread != this_thread() {
        return Err(STREAM_CAPTURE_WRONG_THREAD);
    }
    capture.check()?;
    let last = &capture.frontier[&stream.handle];
    if !capture
        .frontier
        .values()
        .all(|f| covers(&capture.nodes, last, f))
    {
        return Err(STREAM_CAPTURE_UNJOINED);
    }
    Ok(GRAPHS.insert(Graph::new(capture.nodes, capture.context)))
}

/// A stream is destroyed: the capture that it began is gone, one that it joined is broken.
pub fn stream_destroyed(stream: &Stream) {
    let mut open = lock(&OPEN);
    open.retain(|c| c.origin != stream.handle);
    for capture in open.iter_mut() {
        if capture.frontier.remove(&stream.handle).is_some() {
            capture.valid = false;
        }
    }
}

/// CUstreamCaptureStatus and the capture's number: 0 not capturing, 1 capturing, 2 broken.
pub fn info(stream: &Stream) -> (i32, u64) {
    match lock(&OPEN)
        .iter()
        .find(|c| c.frontier.contains_key(&stream.handle))
    {
        None => (0, 0),
        Some(c) if c.valid => (1, c.id),
        // The driver tells no number for a broken capture.
        Some(_) => (2, 0),
    }
}

/// Records an event on a stream that captures: marks a place. `None` if it does not capture.
pub fn record(event: &Event, stream: &Stream) -> Option<Result<()>> {
    let open = lock(&OPEN);
    let capture = open
        .iter()
        .find(|c| c.frontier.contains_key(&stream.handle))?;
    Some(capture.check().map(|()| {
        let after = capture.frontier[&stream.handle].clone();
        *lock(&event.recorded) = Recorded::Captured(capture.id, after);
    }))
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
    let recorded = lock(&event.recorded).clone();
    let mut open = lock(&OPEN);
    let own = open
        .iter()
        .position(|c| c.frontier.contains_key(&stream.handle));
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
                _ => {
                    let frontier = open[index].frontier.entry(stream.handle).or_default();
                    frontier.extend(places);
                    frontier.sort_unstable();
                    frontier.dedup();
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
