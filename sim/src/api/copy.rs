//! Copies and fills, synchronous and in stream order.

use super::{functions, Memcpy2d, Memcpy3d, Out};
use crate::context::Context;
use crate::copy::{Copy, Fill, Place, Side};
use crate::status::{Result, INVALID_VALUE, NOT_SUPPORTED};
use crate::stream::Stream;
use crate::work::Work;
use crate::{capture, ledger};
use Place::{Device, Host};

/// Does work on the NULL stream and waits for it.
fn now(work: Work) -> Result<()> {
    let stream = Stream::get(0)?;
    let context = stream.context()?;
    if stream.is_null() {
        capture::uses_null_stream(context.handle)?;
    } else {
        capture::forbidden_on(&stream)?;
    }
    check(&work)?;
    let bytes = work.with_host_bytes()?;
    stream.push(crate::worker::Task::Work(bytes))?;
    stream.wait_idle();
    context.check()
}

/// Puts work into a stream, or into the capture that it takes part in.
fn later(stream: usize, work: Work) -> Result<()> {
    let stream = Stream::get(stream)?;
    check(&work)?;
    capture::submit(&stream, work)
}

/// Addresses that cannot be right are refused at once, as the driver does.
fn check(work: &Work) -> Result<()> {
    let checked = match work {
        Work::Copy(copy) => copy.check(),
        Work::Fill(fill) => fill.check(),
        _ => Ok(()),
    };
    checked.inspect_err(|_| {
        if let Work::Copy(Copy { to, from, .. }) = work {
            note_dead(to);
            note_dead(from);
        }
    })
}

/// Counts a copy that uses memory which is not there as a misuse of a handle.
fn note_dead(side: &Side) {
    if matches!(side.place, Device(address) if crate::memory::block_at(address).is_none()) {
        ledger::bad_handle();
    }
}

fn linear(to: Place, from: Place, size: usize) -> Work {
    Work::Copy(Copy::linear(to, from, size as u64))
}

fn fill(to: u64, element: u32, value: u32, width: usize) -> Work {
    rows(to, 0, element, value, width, 1)
}

fn rows(to: u64, pitch: usize, element: u32, value: u32, width: usize, height: usize) -> Work {
    Work::Fill(Fill {
        to,
        pitch: pitch as u64,
        element,
        value,
        width: width as u64,
        height: height as u64,
    })
}

/// A place that C describes by a type and one of several fields.
fn place(kind: u32, host: u64, device: u64) -> Result<Place> {
    match kind {
        1 => Ok(Host(host)),
        2 => Ok(Device(device)),
        // There are no arrays: textures are not simulated.
        3 => Err(NOT_SUPPORTED),
        4 => Ok(Place::unified(device)),
        _ => Err(INVALID_VALUE),
    }
}

/// The end of a copy that starts some way into a box of a pitch and a height.
fn side(
    place: Place,
    offset: [usize; 3],
    pitch: usize,
    height: usize,
    width: usize,
) -> Result<Side> {
    let pitch = if pitch == 0 { width } else { pitch } as u64;
    let layer = pitch.checked_mul(height as u64).ok_or(INVALID_VALUE)?;
    let [x, y, z] = offset.map(|n| n as u64);
    let skip = y.checked_mul(pitch).zip(z.checked_mul(layer));
    let skip = skip
        .and_then(|(y, z)| x.checked_add(y)?.checked_add(z))
        .ok_or(INVALID_VALUE)?;
    let moved = |address: u64| address.checked_add(skip).ok_or(INVALID_VALUE);
    let place = match place {
        Device(address) => Device(moved(address)?),
        Host(0) => Host(0),
        Host(address) => Host(moved(address)?),
    };
    Ok(Side {
        place,
        pitch,
        layer,
    })
}

/// A copy of a rectangle.
fn of_2d(params: Out<Memcpy2d>) -> Result<Work> {
    let p = params.get()?;
    let (dst, src) = (
        place(p.dst_type, p.dst_host, p.dst_device)?,
        place(p.src_type, p.src_host, p.src_device)?,
    );
    Ok(Work::Copy(Copy {
        to: side(dst, [p.dst_x, p.dst_y, 0], p.dst_pitch, p.height, p.width)?,
        from: side(src, [p.src_x, p.src_y, 0], p.src_pitch, p.height, p.width)?,
        width: p.width as u64,
        height: p.height as u64,
        depth: 1,
    }))
}

/// A copy of a box.
pub fn of_3d(p: &Memcpy3d) -> Result<Copy> {
    if p.src_lod != 0 || p.dst_lod != 0 {
        return Err(INVALID_VALUE);
    }
    let (dst, src) = (
        place(p.dst_type, p.dst_host, p.dst_device)?,
        place(p.src_type, p.src_host, p.src_device)?,
    );
    let rows = |height: usize| if height == 0 { p.height } else { height };
    let to = [p.dst_x, p.dst_y, p.dst_z];
    let from = [p.src_x, p.src_y, p.src_z];
    Ok(Copy {
        to: side(dst, to, p.dst_pitch, rows(p.dst_height), p.width)?,
        from: side(src, from, p.src_pitch, rows(p.src_height), p.width)?,
        width: p.width as u64,
        height: p.height as u64,
        depth: p.depth as u64,
    })
}

/// The description of a copy in C.
pub fn to_3d(copy: &Copy) -> Memcpy3d {
    let split = |place: Place| match place {
        Host(address) => (1, address, 0),
        Device(address) => (2, 0, address),
    };
    let (src_type, src_host, src_device) = split(copy.from.place);
    let (dst_type, dst_host, dst_device) = split(copy.to.place);
    let rows = |side: &Side| side.layer.checked_div(side.pitch).unwrap_or(0) as usize;
    Memcpy3d {
        src_type,
        src_host,
        src_device,
        src_pitch: copy.from.pitch as usize,
        src_height: rows(&copy.from),
        dst_type,
        dst_host,
        dst_device,
        dst_pitch: copy.to.pitch as usize,
        dst_height: rows(&copy.to),
        width: copy.width as usize,
        height: copy.height as usize,
        depth: copy.depth as usize,
        ..Memcpy3d::default()
    }
}

/// A copy between the devices of two contexts.
fn peer(to: u64, to_context: usize, from: u64, from_context: usize, size: usize) -> Result<Work> {
    Context::get(to_context)?;
    Context::get(from_context)?;
    Ok(linear(Device(to), Device(from), size))
}

functions! {
    fn cuMemcpyHtoD_v2 / cuMemcpyHtoD_v2_ptds(to: u64, from: u64, size: usize) {
        now(linear(Device(to), Host(from), size))
    }

    fn cuMemcpyDtoH_v2 / cuMemcpyDtoH_v2_ptds(to: u64, from: u64, size: usize) {
        now(linear(Host(to), Device(from), size))
    }

    fn cuMemcpyDtoD_v2 / cuMemcpyDtoD_v2_ptds(to: u64, from: u64, size: usize) {
        now(linear(Device(to), Device(from), size))
    }

    fn cuMemcpy / cuMemcpy_ptds(to: u64, from: u64, size: usize) {
        now(linear(Place::unified(to), Place::unified(from), size))
    }

    fn cuMemcpyPeer / cuMemcpyPeer_ptds(
        to: u64,
        to_context: usize,
        from: u64,
        from_context: usize,
        size: usize,
    ) {
        now(peer(to, to_context, from, from_context, size)?)
    }

    fn cuMemcpy2D_v2 / cuMemcpy2D_v2_ptds(params: Out<Memcpy2d>) {
        now(of_2d(params)?)
    }

    fn cuMemcpy2DUnaligned_v2 / cuMemcpy2DUnaligned_v2_ptds(params: Out<Memcpy2d>) {
        now(of_2d(params)?)
    }

    fn cuMemcpy3D_v2 / cuMemcpy3D_v2_ptds(params: Out<Memcpy3d>) {
        now(Work::Copy(of_3d(&params.get()?)?))
    }

    fn cuMemcpy3DPeer / cuMemcpy3DPeer_ptds(params: Out<Memcpy3d>) {
        now(Work::Copy(of_3d(&params.get()?)?))
    }

    fn cuMemcpyHtoDAsync_v2 / cuMemcpyHtoDAsync_v2_ptsz(
        to: u64,
        from: u64,
        size: usize,
        stream: usize,
    ) {
        later(stream, linear(Device(to), Host(from), size))
    }

    fn cuMemcpyDtoHAsync_v2 / cuMemcpyDtoHAsync_v2_ptsz(
        to: u64,
        from: u64,
        size: usize,
        stream: usize,
    ) {
        later(stream, linear(Host(to), Device(from), size))
    }

    fn cuMemcpyDtoDAsync_v2 / cuMemcpyDtoDAsync_v2_ptsz(
        to: u64,
        from: u64,
        size: usize,
        stream: usize,
    ) {
        later(stream, linear(Device(to), Device(from), size))
    }

    fn cuMemcpyAsync / cuMemcpyAsync_ptsz(to: u64, from: u64, size: usize, stream: usize) {
        later(stream, linear(Place::unified(to), Place::unified(from), size))
    }

    fn cuMemcpyPeerAsync / cuMemcpyPeerAsync_ptsz(
        to: u64,
        to_context: usize,
        from: u64,
        from_context: usize,
        size: usize,
        stream: usize,
    ) {
        later(stream, peer(to, to_context, from, from_context, size)?)
    }

    fn cuMemcpy2DAsync_v2 / cuMemcpy2DAsync_v2_ptsz(params: Out<Memcpy2d>, stream: usize) {
        later(stream, of_2d(params)?)
    }

    fn cuMemcpy3DAsync_v2 / cuMemcpy3DAsync_v2_ptsz(params: Out<Memcpy3d>, stream: usize) {
        later(stream, Work::Copy(of_3d(&params.get()?)?))
    }

    fn cuMemcpy3DPeerAsync / cuMemcpy3DPeerAsync_ptsz(params: Out<Memcpy3d>, stream: usize) {
        later(stream, Work::Copy(of_3d(&params.get()?)?))
    }

    fn cuMemsetD8_v2 / cuMemsetD8_v2_ptds(to: u64, value: u8, count: usize) {
        now(fill(to, 1, u32::from(value), count))
    }

    fn cuMemsetD16_v2 / cuMemsetD16_v2_ptds(to: u64, value: u16, count: usize) {
        now(fill(to, 2, u32::from(value), count))
    }

    fn cuMemsetD32_v2 / cuMemsetD32_v2_ptds(to: u64, value: u32, count: usize) {
        now(fill(to, 4, value, count))
    }

    fn cuMemsetD2D8_v2 / cuMemsetD2D8_v2_ptds(
        to: u64,
        pitch: usize,
        value: u8,
        width: usize,
        height: usize,
    ) {
        now(rows(to, pitch, 1, u32::from(value), width, height))
    }

    fn cuMemsetD2D16_v2 / cuMemsetD2D16_v2_ptds(
        to: u64,
        pitch: usize,
        value: u16,
        width: usize,
        height: usize,
    ) {
        now(rows(to, pitch, 2, u32::from(value), width, height))
    }

    fn cuMemsetD2D32_v2 / cuMemsetD2D32_v2_ptds(
        to: u64,
        pitch: usize,
        value: u32,
        width: usize,
        height: usize,
    ) {
        now(rows(to, pitch, 4, value, width, height))
    }

    fn cuMemsetD8Async / cuMemsetD8Async_ptsz(to: u64, value: u8, count: usize, stream: usize) {
        later(stream, fill(to, 1, u32::from(value), count))
    }

    fn cuMemsetD16Async / cuMemsetD16Async_ptsz(to: u64, value: u16, count: usize, stream: usize) {
        later(stream, fill(to, 2, u32::from(value), count))
    }

    fn cuMemsetD32Async / cuMemsetD32Async_ptsz(to: u64, value: u32, count: usize, stream: usize) {
        later(stream, fill(to, 4, value, count))
    }

    fn cuMemsetD2D8Async / cuMemsetD2D8Async_ptsz(
        to: u64,
        pitch: usize,
        value: u8,
        width: usize,
        height: usize,
        stream: usize,
    ) {
        later(stream, rows(to, pitch, 1, u32::from(value), width, height))
    }

    fn cuMemsetD2D16Async / cuMemsetD2D16Async_ptsz(
        to: u64,
        pitch: usize,
        value: u16,
        width: usize,
        height: usize,
        stream: usize,
    ) {
        later(stream, rows(to, pitch, 2, u32::from(value), width, height))
    }

    fn cuMemsetD2D32Async / cuMemsetD2D32Async_ptsz(
        to: u64,
        pitch: usize,
        value: u32,
        width: usize,
        height: usize,
        stream: usize,
    ) {
        later(stream, rows(to, pitch, 4, value, width, height))
    }
}
