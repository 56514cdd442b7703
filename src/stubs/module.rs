//! Modules and functions: `Raw.module_*` and `Raw.func_*`.

use super::custom::{alloc, borrow, get};
use super::run::{blocking, status, value};
use super::value::{
    bigarray_data, field, int, nativeint, string, to_bytes, to_int, tuple, HostMemory,
};
use crate::driver::module::{Function, JitOption, Module};
use crate::driver::{Error, Result};
use ocaml::sys::{self, Value};

#[no_mangle]
extern "C" fn cudagraph_module_load(image: Value, options: Value, logs: Value) -> Value {
    // SAFETY: OCaml passes a string, an array of integer pairs, and an array of bigarrays.
    let (image, options, roots) =
        unsafe { (to_bytes(image), read_options(options, logs), root_all(logs)) };
    let loaded = blocking(|| {
        let options = options?;
        // SAFETY: the log buffers are rooted until after the call, and bigarray data do not move.
        unsafe { Module::load(&image, &options) }
    });
    roots.into_iter().for_each(HostMemory::forget);
    value(loaded, alloc)
}

/// # Safety
/// `array` must be an array of bigarrays.
unsafe fn root_all(array: Value) -> Vec<HostMemory> {
    // SAFETY: by the caller.
    unsafe {
        let count = sys::caml_array_length(array);
        (0..count)
            .map(|i| HostMemory::new(field(array, i)))
            .collect()
    }
}

/// # Safety
/// `options` must be an array of integer pairs and `logs` an array of one-dimensional bigarrays.
unsafe fn read_options(options: Value, logs: Value) -> Result<Vec<JitOption>> {
    /// `CU_JIT_INFO_LOG_BUFFER` and `CU_JIT_ERROR_LOG_BUFFER`
    const LOGS: [i64; 2] = [3, 5];
    // SAFETY: by the caller.
    unsafe {
        let count = sys::caml_array_length(options);
        let option = |i| {
            let pair = field(options, i);
            let (name, argument) = (to_int(field(pair, 0)), to_int(field(pair, 1)));
            if !LOGS.contains(&name) {
                return Ok(JitOption::Value(name as i32, argument as usize));
            }
            if argument < 0 || argument as usize >= sys::caml_array_length(logs) {
                return Err(Error::invalid(format!(
                    "log buffer {argument} is not among the logs"
                )));
            }
            let log = field(logs, argument as usize);
            let data = bigarray_data(log);
            // The dimensions follow data, number of dimensions, flags and proxy.
            let size = *(log as *const usize).add(1 + 4);
            Ok(JitOption::Log(name as i32, data, size))
        };
        (0..count).map(option).collect()
    }
}

#[no_mangle]
extern "C" fn cudagraph_module_function(module: Value, name: Value) -> Value {
    let module = get::<Module>(module);
    // SAFETY: OCaml passes a string.
    let name = unsafe { to_bytes(name) };
    // The driver may load the kernel's code now.
    value(
        blocking(|| module.function(&String::from_utf8_lossy(&name))),
        alloc,
    )
}

#[no_mangle]
extern "C" fn cudagraph_module_global(module: Value, name: Value) -> Value {
    let module = get::<Module>(module);
    // SAFETY: OCaml passes a string.
    let name = unsafe { to_bytes(name) };
    value(
        blocking(|| module.global(&String::from_utf8_lossy(&name))),
        alloc,
    )
}

#[no_mangle]
extern "C" fn cudagraph_module_address(module: Value) -> Value {
    nativeint(borrow::<Module>(module).handle() as u64)
}

#[no_mangle]
extern "C" fn cudagraph_func_name(function: Value) -> Value {
    let function = get::<Function>(function);
    string(function.name().as_bytes())
}

#[no_mangle]
extern "C" fn cudagraph_func_attribute(function: Value, attribute: Value) -> Value {
    let function = get::<Function>(function);
    let attribute = to_int(attribute) as i32;
    value(blocking(|| function.attribute(attribute)), |n| {
        int(n as isize)
    })
}

#[no_mangle]
extern "C" fn cudagraph_func_set_shared_limit(function: Value, bytes: Value) -> Value {
    let function = get::<Function>(function);
    let bytes = to_int(bytes);
    status(blocking(|| {
        let device = function.module().context().limits()?.shared_bytes;
        function.set_shared_limit("bytes", bytes, device)
    }))
}

#[no_mangle]
extern "C" fn cudagraph_func_active_blocks(function: Value, block: Value, shared: Value) -> Value {
    let function = get::<Function>(function);
    let (block, shared) = (to_int(block), to_int(shared));
    value(blocking(|| function.active_blocks(block, shared)), |n| {
        int(n as isize)
    })
}

#[no_mangle]
extern "C" fn cudagraph_func_best_block(function: Value, shared: Value, limit: Value) -> Value {
    let function = get::<Function>(function);
    let (shared, limit) = (to_int(shared), to_int(limit));
    value(
        blocking(|| function.best_block(shared, limit)),
        |(grid, block)| tuple(&[int(grid as isize), int(block as isize)]),
    )
}
