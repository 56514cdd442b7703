//! Memory of the device and of the host.

use super::{functions, Location, Out};
use crate::context::{self, Context};
use crate::memory::{self, host, Block, Kind};
use crate::status::*;
use crate::stream::Stream;
use crate::{capture, stream};
use std::ffi::c_void;

fn allocate(address: Out<u64>, size: usize, kind: Kind) -> Result<()> {
    address.required()?;
    let context = context::current()?;
    capture::unsafe_call()?;
    let block = Block::new(size as u64, context.device, context.handle, kind);
    address.set(memory::allocate(block)?);
    Ok(())
}

/// Waits as long as anything in the context of a block may use it.
fn wait_for_users(block: &Block) -> Result<()> {
    let context = Context::get(block.context).map_err(|_| CONTEXT_IS_DESTROYED)?;
    stream::wait_idle(&context);
    context.check()
}

fn free(address: u64) -> Result<()> {
    if address == 0 {
        return Ok(());
    }
    capture::unsafe_call()?;
    let block = memory::block_from(address)?;
    match block.kind {
        Kind::Plain | Kind::Managed => {
            wait_for_users(&block)?;
            memory::free(address, Block::is_freeable)
        }
        // Measured: these do not wait.
        Kind::Async(_) => memory::free(address, Block::is_freeable),
        Kind::Graph => {
            let memory = memory::graph::at(address).ok_or(INVALID_VALUE)?;
            memory.give_up()?;
            memory.unmake();
            Ok(())
        }
        _ => memory::free(address, Block::is_freeable),
    }
}

fn pinned(address: Out<u64>, size: usize, flags: u32) -> Result<()> {
    address.required()?;
    let context = context::current()?;
    capture::unsafe_call()?;
    if flags > 7 {
        return Err(INVALID_VALUE);
    }
    address.set(host::allocate_pinned(
        size as u64,
        context.device,
        context.handle,
        flags,
    )?);
    Ok(())
}

/// Pinned or registered memory that holds an address.
fn pinned_block(address: u64) -> Result<Block> {
    let block = memory::block_at(address).ok_or(INVALID_VALUE)?;
    match block.kind {
        Kind::Host | Kind::Registered | Kind::Managed => Ok(block),
        _ => Err(INVALID_VALUE),
    }
}

/// One attribute of a pointer (CUpointer_attribute), written to a place of its own type.
fn pointer_attribute(place: *mut c_void, attribute: i32, address: u64) -> Result<()> {
    let block = memory::block_at(address).ok_or(INVALID_VALUE)?;
    let on_host = matches!(block.kind, Kind::Host | Kind::Registered);
    let place = place as usize;
    let write_long = |value: u64| Out(place as *mut u64).required().map(|p| p.set(value));
    let write_int = |value: i32| Out(place as *mut i32).required().map(|p| p.set(value));
    match attribute {
        1 => write_long(block.context as u64),
        2 => write_int(if on_host { 1 } else { 2 }),
        3 => write_long(address),
        4 if on_host || block.kind == Kind::Managed => write_long(address),
        7 => write_long(block.start),
        8 => write_int(i32::from(block.kind == Kind::Managed)),
        9 => write_int(block.device),
        11 | 19 => write_long(block.start),
        12 | 18 => write_long(block.size),
        13 => write_int(1),
        17 => write_long(match block.kind {
            Kind::Async(pool) => pool as u64,
            _ => 0,
        }),
        4 => Err(INVALID_VALUE),
        6 | 10 | 14 | 15 | 20 | 21 => write_int(0),
        16 => write_int(3),
        _ => Err(INVALID_VALUE),
    }
}

/// Advice has no effect, but it has to make sense.
fn advise(address: u64, size: usize) -> Result<()> {
    context::current()?;
    let block = memory::block_at(address).ok_or(INVALID_VALUE)?;
    if block.kind != Kind::Managed || !memory::is_live(address, size as u64) {
        return Err(INVALID_VALUE);
    }
    Ok(())
}

functions! {
    fn cuMemGetInfo_v2(free: Out<usize>, total: Out<usize>) {
        let context = context::current()?;
        free.required()?.set(memory::total().saturating_sub(memory::used(context.device)) as usize);
        total.required()?.set(memory::total() as usize);
        Ok(())
    }

    fn cuMemAlloc_v2(address: Out<u64>, size: usize) {
        allocate(address, size, Kind::Plain)
    }

    fn cuMemAllocPitch_v2(
        address: Out<u64>,
        pitch: Out<usize>,
        width: usize,
        height: usize,
        element: u32,
    ) {
        pitch.required()?;
        if !matches!(element, 4 | 8 | 16) || width == 0 || height == 0 {
            return Err(INVALID_VALUE);
        }
        let row = width.checked_next_multiple_of(512).ok_or(OUT_OF_MEMORY)?;
        allocate(address, row.checked_mul(height).ok_or(OUT_OF_MEMORY)?, Kind::Plain)?;
        pitch.set(row);
        Ok(())
    }

    fn cuMemAllocManaged(address: Out<u64>, size: usize, flags: u32) {
        if !matches!(flags, 1 | 2) {
            return Err(INVALID_VALUE);
        }
        allocate(address, size, Kind::Managed)
    }

    fn cuMemFree_v2(address: u64) {
        free(address)?;
        context::ended_in_current()
    }

    fn cuMemGetAddressRange_v2(base: Out<u64>, size: Out<usize>, address: u64) {
        let block = memory::block_at(address).ok_or(NOT_FOUND)?;
        base.set(block.start);
        size.set(block.size as usize);
        Ok(())
    }

    fn cuMemAllocHost_v2(address: Out<u64>, size: usize) {
        pinned(address, size, 0)
    }

    fn cuMemHostAlloc(address: Out<u64>, size: usize, flags: u32) {
        pinned(address, size, flags)
    }

    fn cuMemFreeHost(address: u64) {
        if address == 0 {
            return Ok(());
        }
        capture::unsafe_call()?;
        let block = memory::block_from(address)?;
        if block.kind != Kind::Host {
            return Err(INVALID_VALUE);
        }
        wait_for_users(&block)?;
        host::free_pinned(address)?;
        context::ended_in_current()
    }

    fn cuMemHostGetDevicePointer_v2(device: Out<u64>, address: u64, flags: u32) {
        if flags != 0 {
            return Err(INVALID_VALUE);
        }
        pinned_block(address)?;
        device.required()?.set(address);
        Ok(())
    }

    fn cuMemHostGetFlags(flags: Out<u32>, address: u64) {
        flags.required()?.set(pinned_block(address)?.flags);
        Ok(())
    }

    fn cuMemHostRegister_v2(address: u64, size: usize, flags: u32) {
        let context = context::current()?;
        capture::unsafe_call()?;
        if flags > 15 {
            return Err(INVALID_VALUE);
        }
        host::register(address, size as u64, context.device, context.handle, flags)
    }

    fn cuMemHostUnregister(address: u64) {
        context::current()?;
        capture::unsafe_call()?;
        if let Some(block) = memory::block_at(address).filter(|b| b.kind == Kind::Registered) {
            wait_for_users(&block)?;
        }
        host::unregister(address)
    }

    fn cuPointerGetAttribute(place: *mut c_void, attribute: i32, address: u64) {
        pointer_attribute(place, attribute, address)
    }

    fn cuPointerGetAttributes(
        count: u32,
        attributes: Out<i32>,
        places: Out<*mut c_void>,
        address: u64,
    ) {
        let places = places.list(count as usize)?;
        for (attribute, place) in attributes.list(count as usize)?.into_iter().zip(places) {
            // What does not apply is answered with a zero, as the driver does.
            if pointer_attribute(place, attribute, address).is_err() {
                Out(place.cast::<i32>()).set(0);
            }
        }
        Ok(())
    }

    fn cuPointerSetAttribute(_value: *const c_void, attribute: i32, address: u64) {
        memory::block_at(address).ok_or(INVALID_VALUE)?;
        if attribute == 6 { Ok(()) } else { Err(INVALID_VALUE) }
    }

    fn cuMemAdvise(address: u64, size: usize, advice: i32, _device: i32) {
        if !(1..=6).contains(&advice) {
            return Err(INVALID_VALUE);
        }
        advise(address, size)
    }

    fn cuMemAdvise_v2(address: u64, size: usize, advice: i32, _location: Location) {
        if !(1..=6).contains(&advice) {
            return Err(INVALID_VALUE);
        }
        advise(address, size)
    }

    fn cuMemPrefetchAsync / cuMemPrefetchAsync_ptsz(
        address: u64,
        size: usize,
        _device: i32,
        stream: usize,
    ) {
        Stream::get(stream)?;
        advise(address, size)
    }

    fn cuMemPrefetchAsync_v2 / cuMemPrefetchAsync_v2_ptsz(
        address: u64,
        size: usize,
        _location: Location,
        _flags: u32,
        stream: usize,
    ) {
        Stream::get(stream)?;
        advise(address, size)
    }

    fn cuStreamAttachMemAsync / cuStreamAttachMemAsync_ptsz(
        stream: usize,
        address: u64,
        _length: usize,
        flags: u32,
    ) {
        let stream = Stream::get(stream)?;
        if !matches!(flags, 1 | 2 | 4) || (flags == 4 && stream.is_null()) {
            return Err(INVALID_VALUE);
        }
        match memory::block_from(address)?.kind {
            Kind::Managed => Ok(()),
            _ => Err(INVALID_VALUE),
        }
    }
}
