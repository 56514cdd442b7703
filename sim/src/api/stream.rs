//! Streams and captures.

use super::{functions, Out};
use crate::status::{Result, INVALID_VALUE, NOT_READY};
use crate::stream::{self, Stream};
use crate::{capture, context};
use std::ffi::c_void;
use std::sync::Arc;

fn create(handle: Out<usize>, flags: u32, priority: i32) -> Result<()> {
    let handle = handle.required()?;
    let context = context::current()?;
    if flags > 1 {
        return Err(INVALID_VALUE);
    }
    handle.set(Stream::create(&context, flags, priority.clamp(-5, 0)).handle);
    Ok(())
}

/// Asks or waits for a stream: forbidden on one that captures, unsafe on others while one does.
fn may_ask(stream: &Arc<Stream>) -> Result<()> {
    if stream.is_null() {
        capture::uses_null_stream(stream.context_handle)?;
    }
    capture::forbidden_on(stream)?;
    capture::unsafe_call()
}

functions! {
    fn cuStreamCreate(handle: Out<usize>, flags: u32) {
        create(handle, flags, 0)
    }

    fn cuStreamCreateWithPriority(handle: Out<usize>, flags: u32, priority: i32) {
        create(handle, flags, priority)
    }

    fn cuStreamDestroy_v2(handle: usize) {
        if stream::NULL_HANDLES.contains(&handle) {
            return Err(crate::status::INVALID_HANDLE);
        }
        let stream = Stream::destroy(handle)?;
        capture::stream_destroyed(&stream);
        stream::orphan(&stream);
        Ok(())
    }

    fn cuStreamSynchronize(handle: usize) {
        let stream = Stream::get(handle)?;
        may_ask(&stream)?;
        stream.wait_idle();
        stream.context()?;
        Ok(())
    }

    fn cuStreamQuery(handle: usize) {
        let stream = Stream::get(handle)?;
        may_ask(&stream)?;
        if stream.is_idle() {
            Ok(())
        } else {
            Err(NOT_READY)
        }
    }

    fn cuStreamGetCtx(handle: usize, context: Out<usize>) {
        context.required()?.set(Stream::get(handle)?.context_handle);
        Ok(())
    }

    fn cuStreamGetId(handle: usize, id: Out<u64>) {
        id.required()?.set(Stream::get(handle)?.id);
        Ok(())
    }

    fn cuStreamGetFlags(handle: usize, flags: Out<u32>) {
        flags.required()?.set(Stream::get(handle)?.flags);
        Ok(())
    }

    fn cuStreamGetPriority(handle: usize, priority: Out<i32>) {
        priority.required()?.set(Stream::get(handle)?.priority);
        Ok(())
    }

    fn cuStreamBeginCapture_v2(handle: usize, mode: i32) {
        capture::begin(&Stream::get(handle)?, mode)
    }

    fn cuStreamEndCapture(handle: usize, graph: Out<usize>) {
        let graph = graph.required()?;
        graph.set(0);
        graph.set(capture::end(&Stream::get(handle)?)?);
        Ok(())
    }

    fn cuStreamIsCapturing(handle: usize, status: Out<i32>) {
        let stream = Stream::get(handle)?;
        status.required()?.set(capture::info(&stream).0);
        Ok(())
    }

    fn cuStreamGetCaptureInfo_v2(
        handle: usize,
        status: Out<i32>,
        id: Out<u64>,
        _graph: Out<usize>,
        _dependencies: Out<*const usize>,
        _count: Out<usize>,
    ) {
        let (now, number) = capture::info(&*Stream::get(handle)?);
        status.required()?.set(now);
        id.set(number);
        Ok(())
    }

    fn cuThreadExchangeStreamCaptureMode(mode: Out<i32>) {
        let previous = capture::exchange_mode(mode.get()?)?;
        mode.set(previous);
        Ok(())
    }

    fn cuLaunchHostFunc(_stream: usize, _function: *mut c_void, _data: *mut c_void) {
        Err(crate::status::NOT_SUPPORTED)
    }
}
