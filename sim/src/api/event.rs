//! Events.

use super::{functions, Out};
use crate::capture::{self, Waiting};
use crate::context;
use crate::event::{Event, Moment, Recorded, EVENTS};
use crate::status::*;
use crate::stream::Stream;
use crate::worker::Task;
use std::sync::Arc;

const EXTERNAL: u32 = 1;
const DISABLE_TIMING: u32 = 2;
const INTERPROCESS: u32 = 4;

fn record(handle: usize, stream: usize, flags: u32) -> Result<()> {
    if flags > EXTERNAL {
        return Err(INVALID_VALUE);
    }
    let event = EVENTS.get(handle)?;
    let stream = Stream::get(stream)?;
    if stream.context_handle != event.context_handle {
        return Err(INVALID_HANDLE);
    }
    if stream.is_null() {
        capture::uses_null_stream(stream.context_handle)?;
    } else if let Some(captured) = capture::record(&event, &stream, flags == EXTERNAL) {
        return captured;
    }
    // Outside of a capture there is no node to make.
    if flags == EXTERNAL {
        return Err(ILLEGAL_STATE);
    }
    stream.push(Task::Mark(event.record_moment()))
}

fn wait(stream: usize, handle: usize, flags: u32) -> Result<()> {
    let event = EVENTS.get(handle)?;
    let stream = Stream::get(stream)?;
    if flags > EXTERNAL {
        return Err(INVALID_VALUE);
    }
    if stream.is_null() {
        capture::uses_null_stream(stream.context_handle)?;
    }
    if flags == EXTERNAL {
        return capture::wait_external(&event, &stream).unwrap_or(Err(ILLEGAL_STATE));
    }
    match capture::wait(&event, &stream)? {
        Waiting::Captured => Ok(()),
        Waiting::Plain => match event.moment() {
            Some(moment) if moment.at().is_none() => stream.push(Task::Wait(moment)),
            _ => Ok(()),
        },
    }
}

/// Asks about an event: an error for one that belongs to a capture, and unsafe while others are open.
fn ask(handle: usize) -> Result<Arc<Event>> {
    let event = EVENTS.get(handle)?;
    if let Recorded::Captured(id, _) = event.recorded() {
        return Err(capture::query_captured(id));
    }
    capture::unsafe_call()?;
    Ok(event)
}

fn check_context(event: &Event) -> Result<()> {
    event
        .context
        .upgrade()
        .map_or(Err(CONTEXT_IS_DESTROYED), |context| context.check())
}

fn elapsed(milliseconds: Out<f32>, start: usize, end: usize) -> Result<()> {
    milliseconds.required()?;
    // Both must be events with a time before it matters whether they have happened.
    let start = timed(start)?;
    let end = timed(end)?;
    let (start, end) = start.at().zip(end.at()).ok_or(NOT_READY)?;
    let seconds = match end.checked_duration_since(start) {
        Some(after) => after.as_secs_f64(),
        None => -(start - end).as_secs_f64(),
    };
    milliseconds.set((seconds * 1e3) as f32);
    Ok(())
}

/// The moment of an event that was recorded, and has a time.
fn timed(handle: usize) -> Result<Arc<Moment>> {
    let event = EVENTS.get(handle)?;
    check_context(&event)?;
    match event.recorded() {
        Recorded::Captured(id, _) => Err(capture::query_captured(id)),
        Recorded::Moment(moment) if event.flags & DISABLE_TIMING == 0 => Ok(moment),
        _ => Err(INVALID_HANDLE),
    }
}

functions! {
    fn cuEventCreate(handle: Out<usize>, flags: u32) {
        handle.required()?;
        let context = context::current()?;
        if flags > 7 || (flags & INTERPROCESS != 0 && flags & DISABLE_TIMING == 0) {
            return Err(INVALID_VALUE);
        }
        if flags & INTERPROCESS != 0 {
            return Err(NOT_SUPPORTED);
        }
        handle.set(Event::create(&context, flags));
        Ok(())
    }

    fn cuEventDestroy_v2(handle: usize) {
        EVENTS.remove(handle)?;
        context::ended_in_current()
    }

    fn cuEventRecord / cuEventRecord_ptsz(handle: usize, stream: usize) {
        record(handle, stream, 0)
    }

    fn cuEventRecordWithFlags / cuEventRecordWithFlags_ptsz(handle: usize, stream: usize, flags: u32) {
        record(handle, stream, flags)
    }

    fn cuStreamWaitEvent / cuStreamWaitEvent_ptsz(stream: usize, handle: usize, flags: u32) {
        wait(stream, handle, flags)
    }

    fn cuEventQuery(handle: usize) {
        let event = ask(handle)?;
        check_context(&event)?;
        match event.moment() {
            Some(moment) if moment.at().is_none() => Err(NOT_READY),
            _ => Ok(()),
        }
    }

    fn cuEventSynchronize(handle: usize) {
        let event = ask(handle)?;
        event.moment().inspect(|moment| moment.wait());
        check_context(&event)
    }

    fn cuEventElapsedTime(milliseconds: Out<f32>, start: usize, end: usize) {
        elapsed(milliseconds, start, end)
    }

    fn cuEventElapsedTime_v2(milliseconds: Out<f32>, start: usize, end: usize) {
        elapsed(milliseconds, start, end)
    }
}
