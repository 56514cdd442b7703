//! Launching kernels.

use super::functions;
use crate::capture;
use crate::device::attribute;
use crate::module::{self, Function};
use crate::status::{Result, INVALID_VALUE, LAUNCH_OUT_OF_RESOURCES};
use crate::stream::Stream;
use crate::work::Work;
use std::ffi::c_void;
use std::sync::Arc;

/// Refuses what the device cannot run.
fn check(function: &Function, grid: [u32; 3], block: [u32; 3], shared: u32) -> Result<()> {
    let limit = |number| attribute(number, 0).map(|n| n as u32);
    for (index, (blocks, threads)) in grid.into_iter().zip(block).enumerate() {
        let index = index as i32;
        if blocks == 0 || threads == 0 || blocks > limit(5 + index)? || threads > limit(2 + index)?
        {
            return Err(INVALID_VALUE);
        }
    }
    let kernel = &function.module.program.kernels()[function.index];
    let threads = block.iter().map(|n| u64::from(*n)).product::<u64>();
    if threads > u64::from(limit(1)?) || threads > u64::from(kernel.max_threads) {
        return Err(INVALID_VALUE);
    }
    if kernel
        .required_block
        .is_some_and(|required| required != block)
    {
        return Err(INVALID_VALUE);
    }
    if u64::from(shared) + u64::from(kernel.static_shared_bytes) > u64::from(limit(97)?) {
        return Err(LAUNCH_OUT_OF_RESOURCES);
    }
    Ok(())
}

/// The parameter block, from one pointer for each parameter.
fn parameters(function: &Function, pointers: *const *const c_void) -> Result<Arc<[u8]>> {
    let kernel = &function.module.program.kernels()[function.index];
    let mut block = vec![0u8; kernel.param_bytes as usize];
    if pointers.is_null() && !kernel.params.is_empty() {
        return Err(INVALID_VALUE);
    }
    for (index, parameter) in kernel.params.iter().enumerate() {
        let (offset, size) = (parameter.offset as usize, parameter.size as usize);
        let to = block.get_mut(offset..offset + size).ok_or(INVALID_VALUE)?;
        // SAFETY: C passes one valid pointer for each parameter of the kernel, to as many bytes.
        unsafe {
            let from = *pointers.add(index);
            if from.is_null() {
                return Err(INVALID_VALUE);
            }
            std::ptr::copy_nonoverlapping(from.cast::<u8>(), to.as_mut_ptr(), size);
        }
    }
    Ok(block.into())
}

functions! {
    fn cuLaunchKernel(
        function: usize,
        grid_x: u32,
        grid_y: u32,
        grid_z: u32,
        block_x: u32,
        block_y: u32,
        block_z: u32,
        shared: u32,
        stream: usize,
        pointers: *const *const c_void,
        extra: *const *const c_void,
    ) {
        let function = module::function(function)?;
        let stream = Stream::get(stream)?;
        if !extra.is_null() {
            return Err(crate::status::NOT_SUPPORTED);
        }
        let (grid, block) = ([grid_x, grid_y, grid_z], [block_x, block_y, block_z]);
        check(&function, grid, block, shared)?;
        let params = parameters(&function, pointers)?;
        capture::submit(&stream, Work::Kernel { function, grid, block, shared, params })
    }
}
