//! Events: `Raw.event_*`.

use super::custom::{alloc, borrow, borrow_owner, get};
use super::run::{self, blocking, status, value};
use super::stream::StreamBlock;
use super::value::{float, int, nativeint, to_bool, to_int, UNIT};
use crate::driver::event::Event;
use crate::driver::retain::Borrowed;
use crate::driver::stream::Stream;
use crate::driver::Result;
use cudarc::driver::sys::CUresult;
use ocaml::sys::Value;

#[no_mangle]
extern "C" fn cudagraph_event_create(flags: Value) -> Value {
    let flags = to_int(flags) as u32;
    value(blocking(|| Event::new(flags)), alloc)
}

#[no_mangle]
extern "C" fn cudagraph_event_create_for(stream: Value, flags: Value) -> Value {
    let (stream, flags) = (get::<StreamBlock>(stream), to_int(flags) as u32);
    let create = || Event::in_context(stream.resolve()?.context().clone(), flags);
    value(blocking(create), alloc)
}

/// Does something with an event on a stream of its own while the runtime lock is held, if it can be done.
fn at_once(
    event: Value,
    stream: Value,
    act: fn(Borrowed<Event>, &Stream) -> Option<Result<()>>,
) -> Option<Value> {
    let stream = borrow::<StreamBlock>(stream).own()?;
    // SAFETY: OCaml passes an event, and the lock is held throughout.
    let event = unsafe { borrow_owner::<Event>(event) };
    run::at_once(|| act(event, stream))
}

#[no_mangle]
extern "C" fn cudagraph_event_record(event: Value, stream: Value, external: Value) -> Value {
    let external = to_bool(external);
    if !external {
        if let Some(done) = at_once(event, stream, Event::try_record) {
            return done;
        }
    }
    let (event, stream) = (get::<Event>(event), get::<StreamBlock>(stream));
    status(blocking(|| event.record(&stream.resolve()?, external)))
}

#[no_mangle]
extern "C" fn cudagraph_event_wait(stream: Value, event: Value, external: Value) -> Value {
    let external = to_bool(external);
    if !external {
        if let Some(done) = at_once(event, stream, Event::try_wait) {
            return done;
        }
    }
    let (event, stream) = (get::<Event>(event), get::<StreamBlock>(stream));
    status(blocking(|| event.wait(&stream.resolve()?, external)))
}

#[no_mangle]
extern "C" fn cudagraph_event_query(event: Value) -> Value {
    let event = get::<Event>(event);
    match blocking(|| event.query()) {
        Ok(true) => UNIT,
        Ok(false) => int(CUresult::CUDA_ERROR_NOT_READY as isize),
        Err(error) => status(Err(error)),
    }
}

#[no_mangle]
extern "C" fn cudagraph_event_synchronize(event: Value) -> Value {
    let event = get::<Event>(event);
    status(blocking(|| event.synchronize()))
}

#[no_mangle]
extern "C" fn cudagraph_event_elapsed(start: Value, end: Value) -> Value {
    let (start, end) = (get::<Event>(start), get::<Event>(end));
    value(blocking(|| end.elapsed_since(&start)), |ms| {
        float(f64::from(ms))
    })
}

#[no_mangle]
extern "C" fn cudagraph_event_address(event: Value) -> Value {
    nativeint(borrow::<Event>(event).handle() as u64)
}
