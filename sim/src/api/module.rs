//! Modules, kernels, variables.

use super::{functions, text, Out};
use crate::module::{self, Module, MODULES};
use crate::status::{Result, INVALID_VALUE};
use crate::{capture, context, stream};
use std::ffi::{c_char, c_void, CStr};

/// Options of the compiler, as C passes them.
fn options(count: u32, names: *const i32, values: *const *mut c_void) -> Vec<(i32, usize)> {
    if names.is_null() || values.is_null() {
        return Vec::new();
    }
    // SAFETY: the C caller says that both arrays have `count` entries.
    (0..count as usize)
        .map(|i| unsafe { (*names.add(i), *values.add(i) as usize) })
        .collect()
}

/// Writes a text into the log buffer that option `buffer` names, cut to the size in the next option.
fn log(options: &[(i32, usize)], buffer: i32, message: &str) {
    let find = |wanted| {
        options
            .iter()
            .find(|(name, _)| *name == wanted)
            .map(|(_, value)| *value)
    };
    let (Some(address), Some(size)) = (find(buffer), find(buffer + 1)) else {
        return;
    };
    if address == 0 || size == 0 {
        return;
    }
    let length = message.len().min(size - 1);
    // SAFETY: the C caller says that the buffer has this size.
    unsafe {
        let to = address as *mut u8;
        std::ptr::copy_nonoverlapping(message.as_ptr(), to, length);
        to.add(length).write(0);
    }
}

const INFO_LOG: i32 = 3;
const ERROR_LOG: i32 = 5;

fn load(handle: Out<usize>, image: *const c_void, options: &[(i32, usize)]) -> Result<()> {
    let handle = handle.required()?;
    let context = context::current()?;
    if image.is_null() {
        return Err(INVALID_VALUE);
    }
    // SAFETY: an image is a NUL-terminated text, or a binary whose first bytes tell it apart.
    let bytes = unsafe {
        let head = std::slice::from_raw_parts(image.cast::<u8>(), 4);
        if head == b"\x7fELF" || head == [0x50, 0xed, 0x55, 0xba] {
            head
        } else {
            CStr::from_ptr(image.cast()).to_bytes()
        }
    };
    match Module::load(bytes, context.handle) {
        Ok(module) => {
            log(options, INFO_LOG, "");
            handle.set(MODULES.insert(module));
            Ok(())
        }
        Err((status, message)) => {
            log(options, ERROR_LOG, &message);
            Err(status)
        }
    }
}

functions! {
    fn cuModuleLoadData(handle: Out<usize>, image: *const c_void) {
        load(handle, image, &[])
    }

    fn cuModuleLoadDataEx(
        handle: Out<usize>,
        image: *const c_void,
        count: u32,
        names: *const i32,
        values: *const *mut c_void,
    ) {
        load(handle, image, &options(count, names, values))
    }

    fn cuModuleUnload(handle: usize) {
        let module = MODULES.get(handle)?;
        capture::unsafe_call()?;
        stream::wait_idle(module.context_handle);
        module::unload(handle)
    }

    fn cuModuleGetFunction(function: Out<usize>, handle: usize, name: *const c_char) {
        let module = MODULES.get(handle)?;
        function.required()?.set(module.function(text(name)?)?);
        Ok(())
    }

    fn cuModuleGetGlobal_v2(address: Out<u64>, size: Out<usize>, handle: usize, name: *const c_char) {
        let (at, bytes) = MODULES.get(handle)?.global(text(name)?)?;
        address.set(at);
        size.set(bytes as usize);
        Ok(())
    }

    fn cuFuncGetAttribute(value: Out<i32>, attribute: i32, handle: usize) {
        let function = module::function(handle)?;
        let kernel = &function.module.program.kernels()[function.index];
        value.required()?.set(match attribute {
            0 => kernel.max_threads as i32,
            1 => kernel.static_shared_bytes as i32,
            2 => function.module.const_bytes() as i32,
            3 => kernel.local_bytes as i32,
            4 => kernel.registers as i32,
            5 => kernel.ptx_version as i32,
            6 => 90,
            7 => 0,
            8 => 232_448 - kernel.static_shared_bytes as i32,
            9 => -1,
            10..=15 => 0,
            _ => return Err(INVALID_VALUE),
        });
        Ok(())
    }

    fn cuFuncSetAttribute(handle: usize, attribute: i32, value: i32) {
        module::function(handle)?;
        if (8..=9).contains(&attribute) && value >= -1 {
            return Ok(());
        }
        Err(INVALID_VALUE)
    }

    fn cuFuncGetParamInfo(handle: usize, index: usize, offset: Out<usize>, size: Out<usize>) {
        let function = module::function(handle)?;
        let kernel = &function.module.program.kernels()[function.index];
        let parameter = kernel.params.get(index).ok_or(INVALID_VALUE)?;
        offset.required()?.set(parameter.offset as usize);
        size.set(parameter.size as usize);
        Ok(())
    }
}
