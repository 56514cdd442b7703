//! Memory in stream order, and the pools it comes from.

use super::{functions, AccessDesc, Location, Out, PoolProps};
use crate::memory::pool::{self, Pool};
use crate::memory::{self, graph, Block, Kind};
use crate::status::*;
use crate::stream::Stream;
use crate::work::Work;
use crate::worker::Task;
use crate::{capture, device};
use std::ffi::c_void;
use std::sync::atomic::Ordering;
use std::sync::Arc;

fn allocate(address: Out<u64>, size: usize, pool: Option<Arc<Pool>>, stream: usize) -> Result<()> {
    address.required()?;
    let stream = Stream::get(stream)?;
    if size == 0 {
        // In a capture too, where it makes no node.
        address.set(0);
        return Ok(());
    }
    if let Some(captured) = capture::allocate(&stream, size as u64) {
        address.set(captured?);
        return Ok(());
    }
    capture::unsafe_call()?;
    if stream.is_null() {
        capture::uses_null_stream(stream.context_handle)?;
    }
    let pool = match pool {
        Some(pool) => pool,
        None => pool::current_of(stream.device)?,
    };
    pool.take(size as u64)?;
    let kind = Kind::Async(pool.handle);
    let block = Block::new(size as u64, pool.device, stream.context_handle, kind);
    address.set(memory::allocate(block).inspect_err(|_| pool.give_back(size as u64))?);
    Ok(())
}

fn free(address: u64, stream: usize) -> Result<()> {
    let stream = Stream::get(stream)?;
    if address == 0 {
        return Ok(());
    }
    if let Some(captured) = capture::free(&stream, address) {
        return captured;
    }
    capture::unsafe_call()?;
    if stream.is_null() {
        capture::uses_null_stream(stream.context_handle)?;
    }
    if let Some(memory) = graph::at(address) {
        memory.give_up()?;
        return stream.push(Task::Work(Work::Free(memory)));
    }
    memory::give_up(address)?;
    stream.push(Task::Work(Work::Retire(address)))
}

/// The device that a location names.
fn located(location: Location) -> Result<i32> {
    if location.kind != 1 {
        return Err(INVALID_VALUE);
    }
    device::check(location.id).map_err(|_| INVALID_VALUE)?;
    Ok(location.id)
}

/// The type that an attribute of a pool has in C: the first three are ints.
fn is_int(attribute: i32) -> bool {
    (1..=3).contains(&attribute)
}

functions! {
    fn cuMemAllocAsync / cuMemAllocAsync_ptsz(address: Out<u64>, size: usize, stream: usize) {
        allocate(address, size, None, stream)
    }

    fn cuMemAllocFromPoolAsync / cuMemAllocFromPoolAsync_ptsz(
        address: Out<u64>,
        size: usize,
        pool: usize,
        stream: usize,
    ) {
        allocate(address, size, Some(pool::get(pool)?), stream)
    }

    fn cuMemFreeAsync / cuMemFreeAsync_ptsz(address: u64, stream: usize) {
        free(address, stream)
    }

    fn cuDeviceGetDefaultMemPool(pool: Out<usize>, device: i32) {
        pool.required()?.set(pool::default_of(device)?.handle);
        Ok(())
    }

    fn cuDeviceGetMemPool(pool: Out<usize>, device: i32) {
        pool.required()?.set(pool::current_of(device)?.handle);
        Ok(())
    }

    fn cuDeviceSetMemPool(device: i32, pool: usize) {
        device::check(device)?;
        pool::set_current(device, pool::get(pool)?)
    }

    fn cuMemPoolCreate(pool: Out<usize>, props: Out<PoolProps>) {
        let props = props.get()?;
        if props.kind != 1 || props.handles != 0 {
            return Err(INVALID_VALUE);
        }
        pool.required()?.set(Pool::create(located(props.location)?, props.most as u64)?);
        Ok(())
    }

    fn cuMemPoolDestroy(pool: usize) {
        pool::destroy(pool)
    }

    fn cuMemPoolTrimTo(pool: usize, _keep: usize) {
        pool::get(pool).map(|_| ())
    }

    fn cuMemPoolGetAttribute(pool: usize, attribute: i32, value: *mut c_void) {
        let found = pool::get(pool)?.attribute(attribute)?;
        match is_int(attribute) {
            true => Out(value.cast::<i32>()).required()?.set(found as i32),
            false => Out(value.cast::<u64>()).required()?.set(found),
        }
        Ok(())
    }

    fn cuMemPoolSetAttribute(pool: usize, attribute: i32, value: *mut c_void) {
        let pool = pool::get(pool)?;
        let value = match is_int(attribute) {
            true => Out(value.cast::<i32>()).get()? as u64,
            false => Out(value.cast::<u64>()).get()?,
        };
        pool.set_attribute(attribute, value)
    }

    fn cuMemPoolSetAccess(pool: usize, map: Out<AccessDesc>, count: usize) {
        let pool = pool::get(pool)?;
        for access in map.list(count)? {
            let device = located(access.location)?;
            match access.flags {
                0 if device == pool.device => return Err(INVALID_VALUE),
                0 => pool.access.fetch_and(!(1 << device), Ordering::AcqRel),
                3 => pool.access.fetch_or(1 << device, Ordering::AcqRel),
                _ => return Err(INVALID_VALUE),
            };
        }
        Ok(())
    }

    fn cuMemPoolGetAccess(flags: Out<i32>, pool: usize, location: Out<Location>) {
        let pool = pool::get(pool)?;
        let device = located(location.get()?)?;
        flags.required()?.set(if pool.is_open_to(device) { 3 } else { 0 });
        Ok(())
    }

    fn cuDeviceGetGraphMemAttribute(device: i32, attribute: i32, value: Out<u64>) {
        device::check(device)?;
        let (used, high) = graph::usage(device);
        value.required()?.set(match attribute {
            0 | 2 => used,
            1 | 3 => high,
            _ => return Err(INVALID_VALUE),
        });
        Ok(())
    }

    fn cuDeviceSetGraphMemAttribute(device: i32, attribute: i32, value: Out<u64>) {
        device::check(device)?;
        if !matches!(attribute, 1 | 3) || value.get()? != 0 {
            return Err(INVALID_VALUE);
        }
        graph::reset_high(device);
        Ok(())
    }

    fn cuDeviceGraphMemTrim(device: i32) {
        device::check(device)
    }
}
