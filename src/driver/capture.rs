//! Captures: which streams capture, what captured work retains, and who broke a capture.
//!
//! A capture is found by the driver's capture id, so that work on a second stream that joined it by
//! an event is retained as well.

use super::error::snake_case;
use super::gate::{self, Passage, Passing};
use super::graph::Graph;
use super::graph_memory::MemoryNodes;
use super::release::{self, Drain};
use super::retain::{KeepSet, Operands, Shared};
use super::stream::Stream;
use super::{driver, library, Error, Result};
use cudarc::driver::sys::{self, CUresult, CUstreamCaptureMode, CUstreamCaptureStatus};
use std::cell::Cell;
use std::ffi::c_void;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

/// How many captures are open: the one check that work makes when nobody captures.
static OPEN: AtomicUsize = AtomicUsize::new(0);
static CAPTURES: Mutex<Vec<Arc<Capture>>> = Mutex::new(Vec::new());

fn captures() -> MutexGuard<'static, Vec<Arc<Capture>>> {
    CAPTURES.lock().unwrap_or_else(|e| e.into_inner())
}

/// Some of them, to be used without the lock.
fn captures_where(wanted: impl Fn(&Capture) -> bool) -> Vec<Arc<Capture>> {
    let open = captures();
    open.iter().filter(|c| wanted(c)).cloned().collect()
}

/// A number for the calling thread; never 0.
fn this_thread() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(1);
    thread_local! { static NUMBER: Cell<usize> = const { Cell::new(0) }; }
    NUMBER.with(|number| {
        if number.get() == 0 {
            number.set(NEXT.fetch_add(1, Ordering::Relaxed));
        }
        number.get()
    })
}

/// [`this_thread`], which closes its captures when it ends.
fn captures_from_here() -> usize {
    // The main thread ends with the process, which has nothing to wait for.
    if !library::is_main_thread() {
        ENDING.with(|_| ());
    }
    this_thread()
}

/// Closes the captures that the calling thread leaves open when it ends: nobody else could end them, and
/// the driver would still know of a thread that is gone.
pub fn close_own() {
    if !library::usable() || !any_open() {
        return;
    }
    let thread = this_thread();
    let own = captures_where(|c| c.thread == thread);
    // The whole process may be ending while others wait: then it is left.
    let patient = || gate::pass_alone_within(Duration::from_secs(1));
    own.iter().for_each(|capture| close(capture, patient));
}

/// Calls [`close_own`] when its thread ends.
struct Ending;

impl Drop for Ending {
    fn drop(&mut self) {
        close_own();
    }
}

thread_local! { static ENDING: Ending = const { Ending }; }

/// An open capture.
pub struct Capture {
    id: u64,
    origin: usize,
    origin_is_non_blocking: bool,
    context: usize,
    mode: CUstreamCaptureMode,
    thread: usize,
    recording: Mutex<Recording>,
    /// The call that broke the capture, as `cu_mem_alloc: CUDA_ERROR_...`.
    culprit: Mutex<Option<String>>,
}

#[derive(Default)]
struct Recording {
    keep: KeepSet,
    /// Streams that joined: they must outlive the capture.
    joined: Vec<Arc<Stream>>,
    ended: bool,
}

impl Recording {
    /// What the captured work uses. The capture stays ended for whoever still waits for it.
    fn finish(&mut self) -> KeepSet {
        self.joined.clear();
        std::mem::take(&mut self.keep)
    }
}

impl Capture {
    fn recording(&self) -> MutexGuard<'_, Recording> {
        self.recording.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// The error for a call that is refused for the sake of this capture.
    fn refusal(&self, status: CUresult, what: &str, why: &str) -> Error {
        let who = if self.thread == this_thread() {
            "this"
        } else {
            "another"
        };
        let origin = self.origin;
        let detail = format!("{who} thread is capturing stream 0x{origin:x}, and {what} {why}");
        Error::new(status, detail)
    }

    /// Retains the operands with the capture, then makes the driver call that records the work. The
    /// lock is held throughout: the capture cannot end in between.
    pub fn record(
        &self,
        stream: &Arc<Stream>,
        operands: Operands,
        how: Passing,
        call: impl FnOnce(&mut MemoryNodes) -> Result<()>,
    ) -> Result<()> {
        let mut recording = self.recording();
        if recording.ended {
            return Err(Error::new(
                CUresult::CUDA_ERROR_ILLEGAL_STATE,
                "another thread ended the capture at this moment",
            ));
        }
        recording.keep.retain(operands);
        let _passage = gate::pass(how);
        let known = |joined: &Arc<Stream>| joined.handle() == stream.handle();
        if stream.handle() != self.origin && !recording.joined.iter().any(known) {
            recording.joined.push(stream.clone());
            recording.keep.note_context(stream.context());
        }
        call(&mut recording.keep.memory)
    }
}

impl Capture {
    /// Records an operation at once if nobody is in the way; nothing otherwise. It is to have what it
    /// uses kept before it makes its driver call.
    #[inline]
    pub fn try_record(
        &self,
        operation: impl FnOnce(&mut KeepSet) -> Option<Result<()>>,
    ) -> Option<Result<()>> {
        let mut recording = self.recording.try_lock().ok()?;
        if recording.ended {
            return None;
        }
        let _together = gate::try_together()?;
        operation(&mut recording.keep)
    }

    /// Whether a stream of this context has joined it.
    fn has_joined(&self, context: usize) -> bool {
        let recording = self.recording();
        let mut joined = recording.joined.iter();
        joined.any(|stream| stream.context().handle() == context)
    }

    /// Whether it was ended or closed.
    pub fn has_ended(&self) -> bool {
        self.recording().ended
    }
}

/// After a stream waited for an event: if that made it join a capture, the capture holds the stream.
pub fn note_joined(stream: &Arc<Stream>) -> Result<()> {
    match place(stream)? {
        Place::Inside(capture) => capture.record(stream, Operands::new(), Passing::By, |_| Ok(())),
        Place::Outside | Place::Elsewhere => Ok(()),
    }
}

/// Begins to capture a stream. `cuStreamBeginCapture`
pub fn begin(stream: &Arc<Stream>, mode: CUstreamCaptureMode) -> Result<()> {
    release::drain(Drain::Quick);
    stream.exclusively(|queue| {
        if begun_on(stream.handle()).is_some() {
            return Err(Error::new(
                CUresult::CUDA_ERROR_ILLEGAL_STATE,
                "the stream is already capturing; end that capture first",
            ));
        }
        let _alone = gate::pass(Passing::Alone);
        driver!(cuStreamBeginCapture_v2(
            stream.handle() as sys::CUstream,
            mode
        ))
        .map_err(|e| match stream.handle() == 0 && e.detail.is_empty() {
            true => e.explained("the NULL stream, Stream.no_stream, cannot capture"),
            false => e,
        })?;
        let (_, id) = info(stream.handle()).inspect_err(|_| {
            let (_, graph) = end_in_driver(stream.handle());
            discard(graph);
        })?;
        let capture = Arc::new(Capture {
            id,
            origin: stream.handle(),
            origin_is_non_blocking: stream.is_non_blocking(),
            context: stream.context().handle(),
            mode,
            thread: captures_from_here(),
            recording: Mutex::default(),
            culprit: Mutex::default(),
        });
        captures().push(capture.clone());
        queue.capture = Some(capture);
        OPEN.fetch_add(1, Ordering::Release);
        Ok(())
    })
}

/// Ends the capture that the stream began: the graph owns what the captured work uses. Whatever the
/// outcome, the capture is over. `cuStreamEndCapture`
pub fn end(stream: &Arc<Stream>) -> Result<Arc<Graph>> {
    let ended = stream.exclusively(|queue| {
        queue.capture = None;
        let capture = stream.own_capture()?;
        let mut recording = capture.recording();
        if std::mem::replace(&mut recording.ended, true) {
            return Err(Error::new(
                CUresult::CUDA_ERROR_ILLEGAL_STATE,
                "another thread ended the capture at this moment",
            ));
        }
        let alone = gate::pass(Passing::Alone);
        let (result, graph) = end_in_driver(stream.handle());
        forget(&capture);
        drop(alone);
        let keep = recording.finish();
        match result {
            Ok(()) if !graph.is_null() => {
                Graph::new(graph as usize, stream.context().clone(), keep)
            }
            // The driver has destroyed the graph of a broken capture itself.
            Ok(()) => Err(Error::new(
                CUresult::CUDA_ERROR_STREAM_CAPTURE_INVALIDATED,
                explain(&capture),
            )),
            Err(error) if error.is(CUresult::CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD) => Err(error
                .explained(
                "another thread began the capture, and only one of mode RELAXED may be ended here",
            )),
            Err(error) => Err(error.explained(explain(&capture))),
        }
    });
    release::drain(Drain::All);
    ended
}

/// Closes the capture that the stream with this handle began, if any, and forgets its graph.
pub fn abandon(origin: usize) {
    if let Some(capture) = begun_on(origin) {
        abandon_this(&capture);
    }
}

/// Closes the captures that streams of a context have begun or joined which is about to go: nobody could end
/// them afterwards.
pub fn abandon_in(context: usize) {
    let open = captures_where(|_| true);
    let own = open
        .iter()
        .filter(|c| c.context == context || c.has_joined(context));
    own.for_each(abandon_this);
}

/// Closes a capture, if it is still open, and forgets its graph.
pub fn abandon_this(capture: &Arc<Capture>) {
    close(capture, || Some(gate::pass(Passing::Alone)));
}

fn close(capture: &Arc<Capture>, pass: impl Fn() -> Option<Passage>) {
    let mut recording = capture.recording();
    if recording.ended {
        return;
    }
    let Some(alone) = pass() else {
        return;
    };
    recording.ended = true;
    let (_, graph) = end_in_driver(capture.origin);
    // Before it is forgotten: a reset of the context waits for the captures it knows, and not for threads that
    // end.
    discard(graph);
    forget(capture);
    drop(alone);
    drop(recording.finish());
}

/// Ends the driver's capture that the stream with this handle began. A refusal, as by a thread other
/// than the one that began, ends the capture all the same; should it not have, a second call does.
/// `cuStreamEndCapture`
fn end_in_driver(origin: usize) -> (Result<()>, sys::CUgraph) {
    let stream = origin as sys::CUstream;
    let mut graph = std::ptr::null_mut();
    let ended = driver!(cuStreamEndCapture(stream, &mut graph));
    if ended.is_ok() {
        return (ended, graph);
    }
    let idle = CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
    let mut now = idle;
    // SAFETY: an open capture's stream is alive; its release closes the capture first.
    let asked = unsafe { sys::cuStreamIsCapturing(stream, &mut now) };
    if asked == CUresult::CUDA_SUCCESS && now != idle {
        let mut graph = std::ptr::null_mut();
        // SAFETY: as above.
        if unsafe { sys::cuStreamEndCapture(stream, &mut graph) } == CUresult::CUDA_SUCCESS {
            discard(graph);
        }
    }
    (ended, std::ptr::null_mut())
}

/// Destroys a graph that the driver has just handed over and nobody else has seen.
fn discard(graph: sys::CUgraph) {
    if !graph.is_null() {
        // SAFETY: see above.
        let _ = unsafe { sys::cuGraphDestroy(graph) };
    }
}

fn forget(capture: &Arc<Capture>) {
    captures().retain(|open| !Arc::ptr_eq(open, capture));
    OPEN.fetch_sub(1, Ordering::Release);
}

fn explain(capture: &Capture) -> String {
    let culprit = capture.culprit.lock().unwrap_or_else(|e| e.into_inner());
    match culprit.as_deref() {
        Some(call) => format!("the capture was broken by {call}"),
        None => String::new(),
    }
}

/// The open capture that the stream with this handle began.
pub fn begun_on(origin: usize) -> Option<Arc<Capture>> {
    if OPEN.load(Ordering::Acquire) == 0 {
        return None;
    }
    captures().iter().find(|c| c.origin == origin).cloned()
}

/// Where work of a stream goes.
pub enum Place {
    /// To the device.
    Outside,
    /// Into a capture that was begun here.
    Inside(Arc<Capture>),
    /// Into a capture that another library began, or a broken one that the stream had joined.
    Elsewhere,
}

/// Where work of a stream goes at this moment. The caller holds no passage through the gate.
pub fn place(stream: &Stream) -> Result<Place> {
    // The NULL stream never captures, and asking it would harm captures on blocking streams.
    let nobody = OPEN.load(Ordering::Acquire) == 0 && !stream.is_shared();
    if nobody || stream.handle() == 0 {
        return Ok(Place::Outside);
    }
    let (status, id) = {
        let _together = gate::pass(Passing::Together);
        info(stream.handle())?
    };
    if status == CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE {
        return Ok(Place::Outside);
    }
    // A broken capture has no id any more.
    let captures = captures();
    let by_origin = || captures.iter().find(|c| c.origin == stream.handle());
    let found = captures.iter().find(|c| c.id == id).or_else(by_origin);
    Ok(found.map_or(Place::Elsewhere, |capture| Place::Inside(capture.clone())))
}

/// Has the graph of a capture that another library began keep the operands: until the graph and its
/// execs are destroyed and their work is done. `cuGraphRetainUserObject`
///
/// The caller has passed the gate.
pub fn keep_elsewhere(stream: &Stream, operands: Operands) -> Result<()> {
    let mut status = CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
    let (mut id, mut graph) = (0, std::ptr::null_mut());
    driver!(cuStreamGetCaptureInfo_v2(
        stream.handle() as sys::CUstream,
        &mut status,
        &mut id,
        &mut graph,
        std::ptr::null_mut(),
        std::ptr::null_mut(),
    ))?;
    if status != CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_ACTIVE || operands.is_empty() {
        // Nothing is recorded into a broken capture.
        return Ok(());
    }
    let mut keep = KeepSet::default();
    keep.retain(operands);
    let keep: Shared = Arc::new(keep);
    let kept = Box::into_raw(Box::new(keep));
    let mut object = std::ptr::null_mut();
    let no_sync = sys::CUuserObject_flags::CU_USER_OBJECT_NO_DESTRUCTOR_SYNC as u32;
    let made = driver!(cuUserObjectCreate(
        &mut object,
        kept.cast(),
        Some(let_go),
        1,
        no_sync
    ));
    if let Err(error) = made {
        // SAFETY: nobody else has seen the box.
        drop(unsafe { Box::from_raw(kept) });
        return Err(error);
    }
    let moved = sys::CUuserObjectRetain_flags::CU_GRAPH_USER_OBJECT_MOVE as u32;
    driver!(cuGraphRetainUserObject(graph, object, 1, moved)).inspect_err(|_| {
        // Nobody else holds the object, so this calls `let_go`.
        // SAFETY: gives back the reference that the creation gave.
        let _ = unsafe { sys::cuUserObjectRelease(object, 1) };
    })
}

/// Called by the driver, on a thread of its own that must not call it back.
unsafe extern "C" fn let_go(kept: *mut c_void) {
    // SAFETY: `keep_elsewhere` made the box, and the driver calls this once.
    release::dropped(*unsafe { Box::from_raw(kept.cast::<Shared>()) });
}

/// What the driver says; the caller has passed the gate.
fn info(stream: usize) -> Result<(CUstreamCaptureStatus, u64)> {
    let mut status = CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
    let mut id = 0;
    driver!(cuStreamGetCaptureInfo_v2(
        stream as sys::CUstream,
        &mut status,
        &mut id,
        std::ptr::null_mut(),
        std::ptr::null_mut(),
        std::ptr::null_mut(),
    ))?;
    Ok((status, id))
}

/// Whether a stream is capturing, validly or not, or the driver does not tell. The caller has passed the
/// gate.
pub fn is_captured(stream: usize) -> bool {
    let idle = CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
    info(stream).map_or(true, |(status, _)| status != idle)
}

/// Whether a stream is capturing, validly or not. `cuStreamIsCapturing`
pub fn status(stream: usize) -> Result<CUstreamCaptureStatus> {
    let _together = gate::pass(Passing::Together);
    let mut status = CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
    driver!(cuStreamIsCapturing(stream as sys::CUstream, &mut status))?;
    Ok(status)
}

/// Refuses any use of a context's NULL stream while a blocking stream of that context captures: the
/// driver would break the capture, whoever calls and in whatever mode.
pub fn refuse_null_stream(what: &str, context: usize) -> Result<()> {
    if OPEN.load(Ordering::Acquire) == 0 {
        return Ok(());
    }
    match captures()
        .iter()
        .find(|c| !c.origin_is_non_blocking && c.context == context)
    {
        None => Ok(()),
        Some(capture) => Err(capture.refusal(
            CUresult::CUDA_ERROR_STREAM_CAPTURE_IMPLICIT,
            what,
            "would wait for that stream, which is blocking, and so break the capture; create the \
             stream with ~non_blocking:true",
        )),
    }
}

/// Refuses work on the NULL stream that would silently run once instead of being captured: made by
/// a thread that captures, unless its capture is RELAXED.
pub fn refuse_uncaptured(what: &str, context: usize) -> Result<()> {
    refuse_null_stream(what, context)?;
    if OPEN.load(Ordering::Acquire) == 0 {
        return Ok(());
    }
    let thread = this_thread();
    let relaxed = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
    match captures()
        .iter()
        .find(|c| c.thread == thread && c.mode != relaxed)
    {
        None => Ok(()),
        Some(capture) => Err(capture.refusal(
            CUresult::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
            what,
            "would run now and not be captured; enqueue it on that stream, or begin the capture \
             with mode RELAXED",
        )),
    }
}

/// Whether the calling thread has a capture that unsafe calls of this thread break.
pub fn forbids_unsafe_calls_here() -> bool {
    if OPEN.load(Ordering::Acquire) == 0 {
        return false;
    }
    let thread = this_thread();
    let relaxed = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
    captures()
        .iter()
        .any(|c| c.thread == thread && c.mode != relaxed)
}

/// Whether the calling thread has begun a capture that is still open.
pub fn begun_here() -> bool {
    OPEN.load(Ordering::Acquire) > 0 && {
        let thread = this_thread();
        captures().iter().any(|c| c.thread == thread)
    }
}

/// Whether any capture is open.
pub fn any_open() -> bool {
    OPEN.load(Ordering::Acquire) > 0
}

/// Refuses a call that would break the capture of another thread: on `stream`, or on anything in
/// the process. The thread that captures gets the driver's own answer.
pub fn refuse_for_others(what: &str, stream: Option<&Stream>) -> Result<()> {
    if OPEN.load(Ordering::Acquire) == 0 {
        return Ok(());
    }
    let thread = this_thread();
    let found = match stream {
        Some(stream) => match place(stream)? {
            Place::Inside(capture) => Some(capture),
            Place::Outside | Place::Elsewhere => None,
        },
        None => captures().iter().find(|c| c.thread != thread).cloned(),
    };
    match found.filter(|capture| capture.thread != thread) {
        None => Ok(()),
        Some(capture) => Err(capture.refusal(
            CUresult::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
            what,
            "would break that capture",
        )),
    }
}

/// After a failed call: every capture that is broken now and was not before remembers the call.
#[cold]
pub fn blame(name: &str, status: CUresult) {
    if OPEN.load(Ordering::Acquire) == 0 {
        return;
    }
    let Some(_together) = gate::try_together() else {
        return;
    };
    for capture in captures().iter() {
        let mut culprit = capture.culprit.lock().unwrap_or_else(|e| e.into_inner());
        if culprit.is_some() {
            continue;
        }
        let mut now = CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
        // SAFETY: an open capture's stream is alive; its release closes the capture first.
        let asked = unsafe { sys::cuStreamIsCapturing(capture.origin as sys::CUstream, &mut now) };
        if asked == CUresult::CUDA_SUCCESS
            && now == CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_INVALIDATED
        {
            *culprit = Some(format!("{}: {status:?}", snake_case(name)));
        }
    }
}
