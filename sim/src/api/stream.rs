//! Streams.

use super::{functions, Out};
use crate::capture;
use crate::context;
use crate::status::*;
use crate::stream::{Stream, GREATEST_PRIORITY};
use std::ffi::c_void;
use std::sync::Arc;

fn create(handle: Out<usize>, flags: u32, priority: i32) -> Result<()> {
    handle.required()?;
    let context = context::current()?;
    if flags > 1 {
        return Err(INVALID_VALUE);
    }
    let priority = priority.clamp(GREATEST_PRIORITY, 0);
    handle.set(Stream::create(&context, flags, priority).handle);
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
        let stream = Stream::destroy(handle)?;
        capture::stream_destroyed(&stream);
        context::ended_in_current()
    }

    fn cuStreamSynchronize / cuStreamSynchronize_ptsz(handle: usize) {
        let stream = Stream::get(handle)?;
        may_ask(&stream)?;
        stream.wait_idle();
        stream.context().map(|_| ())
    }

    fn cuStreamQuery / cuStreamQuery_ptsz(handle: usize) {
        let stream = Stream::get(handle)?;
        may_ask(&stream)?;
        if stream.is_done() { Ok(()) } else { Err(NOT_READY) }
    }

    fn cuStreamGetCtx / cuStreamGetCtx_ptsz(handle: usize, context: Out<usize>) {
        context.required()?.set(Stream::get(handle)?.context_handle);
        Ok(())
    }

    fn cuStreamGetCtx_v2 / cuStreamGetCtx_v2_ptsz(
        handle: usize,
        context: Out<usize>,
        green: Out<usize>,
    ) {
        context.required()?.set(Stream::get(handle)?.context_handle);
        green.set(0);
        Ok(())
    }

    fn cuStreamGetDevice / cuStreamGetDevice_ptsz(handle: usize, device: Out<i32>) {
        device.required()?.set(Stream::get(handle)?.device);
        Ok(())
    }

    fn cuStreamGetId / cuStreamGetId_ptsz(handle: usize, id: Out<u64>) {
        id.required()?.set(Stream::get(handle)?.id);
        Ok(())
    }

    fn cuStreamGetFlags / cuStreamGetFlags_ptsz(handle: usize, flags: Out<u32>) {
        flags.required()?.set(Stream::get(handle)?.flags);
        Ok(())
    }

    fn cuStreamGetPriority / cuStreamGetPriority_ptsz(handle: usize, priority: Out<i32>) {
        priority.required()?.set(Stream::get(handle)?.priority);
        Ok(())
    }

    fn cuStreamCopyAttributes / cuStreamCopyAttributes_ptsz(to: usize, from: usize) {
        Stream::get(to)?;
        Stream::get(from).map(|_| ())
    }

    fn cuStreamSetAttribute / cuStreamSetAttribute_ptsz(
        handle: usize,
        attribute: u32,
        value: *const c_void,
    ) {
        Stream::get(handle)?;
        // An access window, a way to wait, memory domains: hints that change no result.
        if matches!(attribute, 1 | 3 | 9 | 10) && !value.is_null() {
            Ok(())
        } else {
            Err(INVALID_VALUE)
        }
    }
}
