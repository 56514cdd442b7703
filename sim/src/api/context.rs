//! Contexts.

use super::{functions, Out};
use crate::context::{self, Context};
use crate::status::{INVALID_VALUE, UNSUPPORTED_LIMIT};
use crate::table::lock;
use crate::{capture, device, memory, stream};

functions! {
    fn cuDevicePrimaryCtxRetain(handle: Out<usize>, device: i32) {
        device::check(device)?;
        handle.required()?.set(context::retain_primary(device).handle);
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
        flags.set(0);
        active.set(context::primary_is_active(device) as i32);
        Ok(())
    }

    fn cuCtxCreate_v2(handle: Out<usize>, flags: u32, device: i32) {
        device::check(device)?;
        let handle = handle.required()?;
        let created = Context::create(device, flags);
        context::push(created.handle);
        handle.set(created.handle);
        Ok(())
    }

    fn cuCtxDestroy_v2(handle: usize) {
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
        let popped = context::pop()?;
        handle.set(popped);
        Ok(())
    }

    fn cuCtxGetDevice(device: Out<i32>) {
        device.required()?.set(context::current()?.device);
        Ok(())
    }

    fn cuCtxGetFlags(flags: Out<u32>) {
        flags.required()?.set(context::current()?.flags);
        Ok(())
    }

    fn cuCtxGetLimit(value: Out<usize>, limit: i32) {
        let context = context::current()?;
        let limits = lock(&context.limits);
        value.required()?.set(*limits.get(limit as usize).ok_or(UNSUPPORTED_LIMIT)?);
        Ok(())
    }

    fn cuCtxSetLimit(limit: i32, value: usize) {
        let context = context::current()?;
        *lock(&context.limits).get_mut(limit as usize).ok_or(UNSUPPORTED_LIMIT)? = value;
        Ok(())
    }

    fn cuCtxSynchronize() {
        let context = context::current()?;
        capture::waits_for_context(context.handle)?;
        stream::wait_idle(context.handle);
        context.check()
    }

    fn cuCtxGetStreamPriorityRange(least: Out<i32>, greatest: Out<i32>) {
        context::current()?;
        least.set(0);
        greatest.set(-5);
        Ok(())
    }

    fn cuMemGetInfo_v2(free: Out<usize>, total: Out<usize>) {
        context::current()?;
        free.set((memory::total() - memory::bytes_live()) as usize);
        total.set(memory::total() as usize);
        Ok(())
    }

    fn cuMemAlloc_v2(address: Out<u64>, size: usize) {
        let address = address.required()?;
        let context = context::current()?;
        capture::unsafe_call()?;
        address.set(memory::allocate(size as u64, context.handle, true)?);
        Ok(())
    }

    fn cuMemFree_v2(address: u64) {
        if address == 0 {
            return Ok(());
        }
        capture::unsafe_call()?;
        let block = memory::block_at(address).ok_or(INVALID_VALUE);
        if let Ok(block) = block {
            // As on a GPU: memory goes back only when nothing can be using it.
            stream::wait_idle(block.context);
            Context::get(block.context)?.check()?;
        }
        memory::free(address)
    }

    fn cuMemAllocHost_v2(address: Out<usize>, size: usize) {
        context::current()?;
        capture::unsafe_call()?;
        address.required()?.set(memory::allocate_host(size)?);
        Ok(())
    }

    fn cuMemFreeHost(address: usize) {
        capture::unsafe_call()?;
        memory::free_host(address)
    }

    fn cuMemGetAddressRange_v2(base: Out<u64>, size: Out<usize>, address: u64) {
        let block = memory::block_at(address).ok_or(crate::status::NOT_FOUND)?;
        base.set(block.start);
        size.set(block.size as usize);
        Ok(())
    }
}
