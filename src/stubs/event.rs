//! Events: `Raw.event_*`.

use super::custom::{alloc, borrow, get};
use super::run::{blocking, status, value};
use super::stream::StreamBlock;
use super::value::{float, int, nativeint, to_bool, to_int, UNIT};
use crate::driver::event::Event;
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

#[no_mangle]
extern "C" fn cudagraph_event_record(event: Value, stream: Value, external: Value) -> Value {
    let (event, stream) = (get::<Event>(event), get::<StreamBlock>(stream));
    let external = to_bool(external);
    status(blocking(|| event.record(&stream.resolve()?, external)))
}

#[no_mangle]
extern "C" fn cudagraph_event_wait(stream: Value, event: Value, external: Value) -> Value {
    let (event, stream) = (get::<Event>(event), get::<StreamBlock>(stream));
    let external = to_bool(external);
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
