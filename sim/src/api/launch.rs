//! Launching kernels and functions of the program.

use super::{functions, LaunchConfig, Out};
use crate::module::{self, Function};
use crate::status::*;
use crate::stream::Stream;
use crate::work::{Host, Kernel, Params, Work};
use crate::worker::Task;
use crate::{capture, memory};
use std::ffi::c_void;
use std::sync::Arc;

/// The parameter block, from one pointer for each parameter or from a block that C has filled.
pub fn parameters(
    function: &Function,
    pointers: *const *const c_void,
    extra: *const *const c_void,
) -> Result<Arc<Params>> {
    let kernel = function.kernel();
    if !extra.is_null() {
        if !pointers.is_null() {
            return Err(INVALID_VALUE);
        }
        return block(kernel.param_bytes as usize, extra);
    }
    if pointers.is_null() && !kernel.params.is_empty() {
        return Err(INVALID_VALUE);
    }
    let mut bytes = vec![0u8; kernel.param_bytes as usize];
    for (index, parameter) in kernel.params.iter().enumerate() {
        let (offset, size) = (parameter.offset as usize, parameter.size as usize);
        let to = bytes.get_mut(offset..offset + size).ok_or(INVALID_VALUE)?;
        // SAFETY: C passes one valid pointer for each parameter of the kernel, to as many bytes.
        unsafe {
            let from = *pointers.add(index);
            if from.is_null() {
                return Err(INVALID_VALUE);
            }
            std::ptr::copy_nonoverlapping(from.cast::<u8>(), to.as_mut_ptr(), size);
        }
    }
    Ok(Params::new(bytes))
}

/// Reads a list of names and values: a buffer, a place that tells its size, an end.
fn block(needed: usize, extra: *const *const c_void) -> Result<Arc<Params>> {
    let (mut buffer, mut size) = (std::ptr::null::<u8>(), 0usize);
    for index in 0..8 {
        // SAFETY: the list ends with a zero, and each name has its value behind it.
        let (name, value) = unsafe {
            let name = *extra.add(2 * index) as usize;
            let value = if name == 0 {
                std::ptr::null()
            } else {
                *extra.add(2 * index + 1)
            };
            (name, value)
        };
        match name {
            0 => break,
            1 => buffer = value.cast(),
            2 => size = Out(value.cast_mut().cast::<usize>()).get()?,
            _ => return Err(INVALID_VALUE),
        }
    }
    if buffer.is_null() || size < needed {
        return Err(INVALID_VALUE);
    }
    // SAFETY: the C caller says that the buffer has this size.
    Ok(Params::new(
        unsafe { std::slice::from_raw_parts(buffer, needed) }.to_vec(),
    ))
}

/// Puts a kernel into a stream, or into the capture that it takes part in.
fn launch(kernel: Kernel, stream: &Arc<Stream>) -> Result<()> {
    kernel.check()?;
    if kernel.function.module.context_handle != stream.context_handle {
        return Err(INVALID_HANDLE);
    }
    capture::submit(stream, Work::Kernel(kernel))
}

/// Refuses what a launch may ask for and the simulator does not have.
fn check_attributes(config: &LaunchConfig) -> Result<()> {
    let attributes = Out(config.attributes.cast_mut()).list(config.count as usize)?;
    for attribute in attributes {
        let [x, y, z, ..] = attribute.value;
        match attribute.id {
            2 if x != 0 => return Err(NOT_SUPPORTED),
            4 if (x, y, z) != (1, 1, 1) => return Err(NOT_SUPPORTED),
            6 if x != 0 => return Err(NOT_SUPPORTED),
            7 | 11 | 12 | 13 => return Err(NOT_SUPPORTED),
            0..=16 => {}
            _ => return Err(INVALID_VALUE),
        }
    }
    Ok(())
}

functions! {
    fn cuLaunchKernel / cuLaunchKernel_ptsz(
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
        let params = parameters(&function, pointers, extra)?;
        let (grid, block) = ([grid_x, grid_y, grid_z], [block_x, block_y, block_z]);
        launch(Kernel { function, grid, block, shared, params }, &stream)
    }

    fn cuLaunchKernelEx / cuLaunchKernelEx_ptsz(
        config: Out<LaunchConfig>,
        function: usize,
        pointers: *const *const c_void,
        extra: *const *const c_void,
    ) {
        let config = config.get()?;
        let function = module::function(function)?;
        let stream = Stream::get(config.stream)?;
        check_attributes(&config)?;
        let params = parameters(&function, pointers, extra)?;
        let (grid, block, shared) = (config.grid, config.block, config.shared);
        launch(Kernel { function, grid, block, shared, params }, &stream)
    }

    fn cuLaunchHostFunc / cuLaunchHostFunc_ptsz(stream: usize, function: usize, data: usize) {
        let stream = Stream::get(stream)?;
        if function == 0 {
            return Err(INVALID_VALUE);
        }
        capture::submit(&stream, Work::Host(Host { function, data }))
    }

    fn cuStreamAddCallback / cuStreamAddCallback_ptsz(
        handle: usize,
        function: usize,
        data: usize,
        flags: u32,
    ) {
        let stream = Stream::get(handle)?;
        if function == 0 || flags != 0 {
            return Err(INVALID_VALUE);
        }
        if stream.is_null() {
            capture::uses_null_stream(stream.context_handle)?;
        }
        capture::forbidden_on(&stream)?;
        stream.push(Task::Work(Work::Callback(Host { function, data }, handle)))
    }

    fn cuProfilerStart() {
        crate::context::current().map(|_| ())
    }

    fn cuProfilerStop() {
        crate::context::current().map(|_| ())
    }

    fn cuStreamWriteValue32_v2 / cuStreamWriteValue32_v2_ptsz(
        stream: usize,
        address: u64,
        value: u32,
        flags: u32,
    ) {
        let stream = Stream::get(stream)?;
        if flags > 1 || address % 4 != 0 || !memory::is_known(address, 4) {
            return Err(INVALID_VALUE);
        }
        capture::forbidden_on(&stream)?;
        let fill = crate::copy::Fill {
            to: address,
            pitch: 0,
            element: 4,
            value,
            width: 1,
            height: 1,
        };
        capture::submit(&stream, Work::Fill(fill))
    }
}
