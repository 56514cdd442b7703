//! Events.

use super::{functions, Out};
use crate::capture::{self, Waiting};
use crate::context;
use crate::event::{Event, Moment, Recorded, EVENTS};
use crate::status::*;
use crate::stream::{Stream, Task};
use crate::table::lock;
use std::sync::{Arc, Mutex};

fn recorded(event: &Event) -> Recorded {
    lock(&event.recorded).clone()
}

fn record(handle: usize, stream: usize) -> Result<()> {
    let event = EVENTS.get(handle)?;
    let stream = Stream::get(stream)?;
    if stream.context_handle != event.context_handle {
        return Err(INVALID_HANDLE);
    }
    if stream.is_null() {
        capture::uses_null_stream(stream.context_handle)?;
    } else if let Some(captured) = capture::record(&event, &stream) {
        return captured;
    }
    let moment = Arc::new(Moment::default());
    *lock(&event.recorded) = Recorded::Moment(moment.clone());
    stream.push(Task::Mark(moment))
}

functions! {
    fn cuEventCreate(handle: Out<usize>, flags: u32) {
        let handle = handle.required()?;
        let context = context::current()?;
        if flags > 7 || (flags & 4 != 0 && flags & 2 == 0) {
            return Err(INVALID_VALUE);
        }
        handle.set(EVENTS.insert(Arc::new(Event {
            context: Arc::downgrade(&context),
            context_handle: context.handle,
            flags,
            recorded: Mutex::default(),
        })));
        Ok(())
    }

    fn cuEventDestroy_v2(handle: usize) {
        EVENTS.remove(handle)?;
        Ok(())
    }

    fn cuEventRecord(handle: usize, stream: usize) {
        record(handle, stream)
    }

    fn cuEventRecordWithFlags(handle: usize, stream: usize, flags: u32) {
        if flags > 1 {
            return Err(INVALID_VALUE);
        }
        if flags == 1 {
            return Err(NOT_SUPPORTED);
        }
        record(handle, stream)
    }

    fn cuStreamWaitEvent(stream: usize, handle: usize, flags: u32) {
        let event = EVENTS.get(handle)?;
        let stream = Stream::get(stream)?;
        if flags > 1 {
            return Err(INVALID_VALUE);
        }
        match capture::wait(&event, &stream)? {
            Waiting::Captured => Ok(()),
            Waiting::Plain => match recorded(&event) {
                Recorded::Moment(moment) => stream.push(Task::Wait(moment)),
                _ => Ok(()),
            },
        }
    }

    fn cuEventQuery(handle: usize) {
        let event = EVENTS.get(handle)?;
        match recorded(&event) {
            Recorded::Captured(id, _) => Err(capture::query_captured(id)),
            recorded => {
                capture::unsafe_call()?;
                if let Some(context) = event.context.upgrade() {
                    context.check()?;
                }
                match recorded {
                    Recorded::Moment(moment) if moment.at().is_none() => Err(NOT_READY),
                    _ => Ok(()),
                }
            }
        }
    }

    fn cuEventSynchronize(handle: usize) {
        let event = EVENTS.get(handle)?;
        match recorded(&event) {
            Recorded::Captured(id, _) => Err(capture::query_captured(id)),
            recorded => {
                capture::unsafe_call()?;
                if let Recorded::Moment(moment) = recorded {
                    moment.wait();
                }
                event.context.upgrade().map_or(Ok(()), |context| context.check())
            }
        }
    }

    fn cuEventElapsedTime(milliseconds: Out<f32>, start: usize, end: usize) {
        let milliseconds = milliseconds.required()?;
        let mut times = [None; 2];
        for (slot, handle) in times.iter_mut().zip([start, end]) {
            let event = EVENTS.get(handle)?;
            match recorded(&event) {
                Recorded::Captured(id, _) => return Err(capture::query_captured(id)),
                Recorded::Moment(moment) if event.flags & 2 == 0 => {
                    *slot = Some(moment.at().ok_or(NOT_READY)?);
                }
                _ => return Err(INVALID_HANDLE),
            }
        }
        if let [Some(start), Some(end)] = times {
            let seconds = match end.checked_duration_since(start) {
                Some(after) => after.as_secs_f64(),
                None => -(start - end).as_secs_f64(),
            };
            milliseconds.set((seconds * 1e3) as f32);
        }
        Ok(())
    }
}
