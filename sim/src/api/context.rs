//! Contexts.

use super::{functions, CtxParams, Out};
use crate::context::{self, Context};
use crate::status::*;
use crate::{capture, device, stream};
use std::ffi::c_void;
use std::sync::atomic::Ordering;

/// Flags that a context may have: how to wait, and others without effect here.
const FLAGS: u32 = 0xff;

fn create(handle: Out<usize>, flags: u32, device: i32) -> Result<()> {
    handle.required()?;
    device::check(device)?;
    if flags & !FLAGS != 0 || (flags & 7).count_ones() > 1 {
        return Err(INVALID_VALUE);
    }
    context::check_device(device)?;
    let created = Context::create(device, flags);
    context::push(created.handle);
    handle.set(created.handle);
    Ok(())
}

/// Waits for everything in a context.
fn synchronize(context: &Context) -> Result<()> {
    capture::waits_for_context(context.handle)?;
    stream::wait_idle(context);
    context.check()
}

functions! {
    fn cuDevicePrimaryCtxRetain(handle: Out<usize>, device: i32) {
        handle.required()?;
        device::check(device)?;
        handle.set(context::retain_primary(device)?.handle);
        Ok(())
    }

    fn cuDevicePrimaryCtxRelease_v2(device: i32) {
        device::check(device)?;
        context::release_primary(device)
    }

    fn cuDevicePrimaryCtxReset_v2(device: i32) {
        device::check(device)?;
        context::reset_primary(device)
    }

    fn cuDevicePrimaryCtxGetState(device: i32, flags: Out<u32>, active: Out<i32>) {
        device::check(device)?;
        let (now, is_active) = context::primary_state(device);
        flags.set(now);
        active.set(i32::from(is_active));
        Ok(())
    }

    fn cuDevicePrimaryCtxSetFlags_v2(device: i32, flags: u32) {
        device::check(device)?;
        if flags & !FLAGS != 0 {
            return Err(INVALID_VALUE);
        }
        context::set_primary_flags(device, flags);
        Ok(())
    }

    fn cuCtxCreate_v2(handle: Out<usize>, flags: u32, device: i32) {
        create(handle, flags, device)
    }

    fn cuCtxCreate_v3(
        handle: Out<usize>,
        _affinity: *const c_void,
        count: i32,
        flags: u32,
        device: i32,
    ) {
        if count != 0 {
            return Err(UNSUPPORTED_EXEC_AFFINITY);
        }
        create(handle, flags, device)
    }

    fn cuCtxCreate_v4(handle: Out<usize>, params: Out<CtxParams>, flags: u32, device: i32) {
        if !params.is_null() {
            let params = params.get()?;
            if params.count != 0 || params.cig != 0 {
                return Err(NOT_SUPPORTED);
            }
        }
        create(handle, flags, device)
    }

    fn cuCtxDestroy_v2(handle: usize) {
        if context::is_primary(handle) {
            return Err(INVALID_CONTEXT);
        }
        let context = Context::get(handle)?;
        if context::current_handle() == handle {
            context::pop()?;
        }
        context.destroy()
    }

    fn cuCtxGetCurrent(handle: Out<usize>) {
        handle.required()?.set(context::current_handle());
        Ok(())
    }

    fn cuCtxSetCurrent(handle: usize) {
        if handle != 0 {
            Context::get(handle)?;
        }
        context::set_current(handle);
        Ok(())
    }

    fn cuCtxPushCurrent_v2(handle: usize) {
        Context::get(handle)?;
        context::push(handle);
        Ok(())
    }

    fn cuCtxPopCurrent_v2(handle: Out<usize>) {
        handle.set(context::pop()?);
        Ok(())
    }

    fn cuCtxGetDevice(device: Out<i32>) {
        device.required()?;
        // The device of a primary context is told even when the context is gone.
        device.set(match context::primary_device(context::current_handle()) {
            Some(number) => number,
            None => context::current_even_broken()?.device,
        });
        Ok(())
    }

    fn cuCtxGetDevice_v2(device: Out<i32>, handle: usize) {
        let context = match handle {
            0 => context::current_even_broken()?,
            handle => Context::get(handle)?,
        };
        device.required()?.set(context.device);
        Ok(())
    }

    fn cuCtxGetId(handle: usize, id: Out<u64>) {
        let context = match handle {
            0 => context::current_even_broken()?,
            handle => Context::get(handle)?,
        };
        id.required()?.set(context.id);
        Ok(())
    }

    fn cuCtxGetFlags(flags: Out<u32>) {
        flags.required()?.set(context::current_even_broken()?.flags.load(Ordering::Acquire));
        Ok(())
    }

    fn cuCtxSetFlags(flags: u32) {
        let context = context::current()?;
        if flags & !FLAGS != 0 {
            return Err(INVALID_VALUE);
        }
        context.flags.store(flags, Ordering::Release);
        Ok(())
    }

    fn cuCtxGetApiVersion(handle: usize, version: Out<u32>) {
        if handle == 0 {
            context::current()?;
        } else {
            Context::get(handle)?;
        }
        version.required()?.set(3020);
        Ok(())
    }

    fn cuCtxGetLimit(value: Out<usize>, limit: i32) {
        value.required()?.set(context::current()?.limit(limit)?);
        Ok(())
    }

    fn cuCtxSetLimit(limit: i32, value: usize) {
        context::current()?.set_limit(limit, value)
    }

    fn cuCtxGetCacheConfig(config: Out<i32>) {
        config.required()?.set(context::current()?.cache_config.load(Ordering::Relaxed));
        Ok(())
    }

    fn cuCtxSetCacheConfig(config: i32) {
        let context = context::current()?;
        if !(0..=3).contains(&config) {
            return Err(INVALID_VALUE);
        }
        context.cache_config.store(config, Ordering::Relaxed);
        Ok(())
    }

    fn cuCtxGetSharedMemConfig(config: Out<i32>) {
        context::current()?;
        config.required()?.set(1);
        Ok(())
    }

    fn cuCtxSetSharedMemConfig(config: i32) {
        context::current()?;
        if (0..=2).contains(&config) { Ok(()) } else { Err(INVALID_VALUE) }
    }

    fn cuCtxResetPersistingL2Cache() {
        context::current().map(|_| ())
    }

    fn cuCtxSynchronize() {
        synchronize(&*context::current()?)
    }

    fn cuCtxSynchronize_v2(handle: usize) {
        match handle {
            0 => synchronize(&*context::current()?),
            handle => synchronize(&*Context::get(handle)?),
        }
    }

    fn cuCtxGetStreamPriorityRange(least: Out<i32>, greatest: Out<i32>) {
        context::current()?;
        least.set(0);
        greatest.set(stream::GREATEST_PRIORITY);
        Ok(())
    }

    fn cuCtxEnablePeerAccess(peer: usize, flags: u32) {
        let context = context::current()?;
        let peer = Context::get(peer)?;
        if flags != 0 {
            return Err(INVALID_VALUE);
        }
        context.set_peer(peer.device, true)
    }

    fn cuCtxDisablePeerAccess(peer: usize) {
        let context = context::current()?;
        let peer = Context::get(peer)?;
        context.set_peer(peer.device, false)
    }
}
