//! Modules, kernels, variables.

use super::{functions, text, Out};
use crate::device;
use crate::module::{self, Function, Module, MODULES};
use crate::status::*;
use crate::{capture, context, stream};
use std::ffi::{c_char, c_void, CStr};
use std::fmt::Write as _;
use std::sync::atomic::Ordering;
use std::time::Instant;

const WALL_TIME: i32 = 2;
const INFO_LOG: i32 = 3;
const ERROR_LOG: i32 = 5;
const TARGET: i32 = 9;
const VERBOSE: i32 = 12;
const LAST_OPTION: i32 = 34;

/// Options of the compiler, as C passes them: a value stands in the pointer's own bits, and answers are
/// written over it.
struct Options {
    names: Vec<i32>,
    values: Out<*mut c_void>,
}

impl Options {
    fn new(count: u32, names: Out<i32>, values: Out<*mut c_void>) -> Result<Options> {
        let names = names.list(count as usize)?;
        if names.iter().any(|name| !(0..=LAST_OPTION).contains(name)) {
            return Err(INVALID_VALUE);
        }
        if !names.is_empty() {
            values.required()?;
        }
        Ok(Options { names, values })
    }

    fn slot(&self, name: i32) -> Option<Out<*mut c_void>> {
        let index = self.names.iter().position(|n| *n == name)?;
        // SAFETY: the C caller says that there are as many values as names.
        Some(Out(unsafe { self.values.0.add(index) }))
    }

    fn value(&self, name: i32) -> Option<usize> {
        Some(self.slot(name)?.get().ok()? as usize)
    }

    fn answer(&self, name: i32, value: usize) {
        if let Some(slot) = self.slot(name) {
            slot.set(value as *mut c_void);
        }
    }

    /// Writes a text into the log buffer of an option, cut to the size in the option after it, where the
    /// number of bytes is answered.
    fn log(&self, buffer: i32, message: &str) {
        let (Some(address), Some(size)) = (self.value(buffer), self.value(buffer + 1)) else {
            return;
        };
        // The size is a C unsigned int.
        let size = size as u32 as usize;
        if address == 0 || size == 0 {
            return;
        }
        let written = message.len().min(size - 1);
        let bytes = message.bytes().take(written).chain([0]);
        Out(address as *mut u8).fill(bytes, size);
        self.answer(buffer + 1, written);
    }
}

fn load(handle: Out<usize>, image: &[u8], options: &Options) -> Result<()> {
    handle.required()?;
    let context = context::current()?;
    if options.value(TARGET).is_some_and(|target| target > 90) {
        options.log(
            ERROR_LOG,
            "the device is sm_90: another target cannot run on it",
        );
        return Err(NO_BINARY_FOR_GPU);
    }
    let start = Instant::now();
    match Module::load(image, &context) {
        Ok(module) => {
            let verbose = options.value(VERBOSE).is_some_and(|v| v as i32 != 0);
            options.log(
                INFO_LOG,
                &if verbose {
                    describe(&module)
                } else {
                    String::new()
                },
            );
            options.log(ERROR_LOG, "");
            let milliseconds = start.elapsed().as_secs_f32() * 1e3;
            options.answer(WALL_TIME, milliseconds.to_bits() as usize);
            handle.set(module.handle);
            Ok(())
        }
        Err((status, message)) => {
            options.log(ERROR_LOG, &message);
            Err(status)
        }
    }
}

/// What a verbose compiler tells.
fn describe(module: &Module) -> String {
    let mut text = String::new();
    for kernel in module.program.kernels() {
        let _ = writeln!(
            text,
            "simulator: {}: {} registers, {} bytes of shared memory, {} bytes of parameters, {} bytes of stack",
            kernel.name,
            kernel.registers,
            kernel.static_shared_bytes,
            kernel.param_bytes,
            kernel.local_bytes
        );
    }
    text
}

/// The bytes of an image: a NUL-terminated text, or as much of a binary as tells that it is one.
fn image_bytes<'a>(image: *const c_void) -> Result<&'a [u8]> {
    if image.is_null() {
        return Err(INVALID_VALUE);
    }
    let first: *const u8 = image.cast();
    // SAFETY: an image is a NUL-terminated text, or a binary of which these four bytes are the start. The
    // bytes are read one by one so that a shorter text is not overrun.
    unsafe {
        let length = (0..4).take_while(|i| *first.add(*i) != 0).count();
        let head = std::slice::from_raw_parts(first, length);
        match module::is_binary(head) {
            true => Ok(head),
            false => Ok(CStr::from_ptr(image.cast()).to_bytes()),
        }
    }
}

fn attribute(function: &Function, attribute: i32) -> Result<i32> {
    let kernel = function.kernel();
    Ok(match attribute {
        0 => kernel.max_threads as i32,
        1 => kernel.static_shared_bytes as i32,
        2 => kernel.const_bytes as i32,
        3 => kernel.local_bytes as i32,
        4 => kernel.registers as i32,
        5 => kernel.ptx_version as i32,
        6 => 90,
        7 => 0,
        8 => function.most_dynamic_shared() as i32,
        9 => function.carveout.load(Ordering::Relaxed),
        10..=15 => 0,
        _ => return Err(INVALID_VALUE),
    })
}

fn set_attribute(function: &Function, attribute: i32, value: i32) -> Result<()> {
    let most = device::SHARED_OPTIN
        - function
            .kernel()
            .static_shared_bytes
            .min(device::SHARED_OPTIN);
    match attribute {
        8 if (0..=most as i32).contains(&value) => {
            function.dynamic_shared.store(value, Ordering::Relaxed);
            Ok(())
        }
        9 if (-1..=100).contains(&value) => {
            function.carveout.store(value, Ordering::Relaxed);
            Ok(())
        }
        14 => Ok(()),
        _ => Err(INVALID_VALUE),
    }
}

/// How many blocks a multiprocessor holds at once.
fn blocks_at_once(function: &Function, block: i32, shared: usize) -> Result<i32> {
    let kernel = function.kernel();
    let threads = u32::try_from(block)
        .ok()
        .filter(|n| *n > 0)
        .ok_or(INVALID_VALUE)?;
    if threads > kernel.max_threads || shared > function.most_dynamic_shared() as usize {
        return Ok(0);
    }
    let warps = threads.div_ceil(32) * 32;
    let registers = (kernel.registers.max(16) * warps).max(1);
    let of_block = shared as u32 + kernel.static_shared_bytes + 1024;
    let most = [
        device::BLOCKS_OF_MULTIPROCESSOR,
        device::THREADS_OF_MULTIPROCESSOR / warps,
        device::REGISTERS / registers,
        233_472 / of_block,
    ];
    Ok(most.into_iter().min().unwrap_or(0) as i32)
}

/// The block size that keeps a multiprocessor busiest.
fn best_block(
    function: &Function,
    shared: impl Fn(i32) -> usize,
    limit: i32,
) -> Result<(i32, i32)> {
    let most = function.kernel().max_threads as i32;
    let most = if limit > 0 { most.min(limit) } else { most };
    let mut best = (0, 0, 0);
    for block in (1..=most.max(1))
        .rev()
        .filter(|b| b % 32 == 0 || *b == most)
    {
        let blocks = blocks_at_once(function, block, shared(block))?;
        if blocks * block > best.0 {
            best = (blocks * block, blocks, block);
        }
    }
    Ok((best.1 * device::attribute(16, 0)?, best.2))
}

functions! {
    fn cuModuleLoad(handle: Out<usize>, path: *const c_char) {
        let image = std::fs::read(text(path)?).map_err(|_| FILE_NOT_FOUND)?;
        load(handle, &image, &Options::new(0, Out::null(), Out::null())?)
    }

    fn cuModuleLoadData(handle: Out<usize>, image: *const c_void) {
        load(handle, image_bytes(image)?, &Options::new(0, Out::null(), Out::null())?)
    }

    fn cuModuleLoadDataEx(
        handle: Out<usize>,
        image: *const c_void,
        count: u32,
        names: Out<i32>,
        values: Out<*mut c_void>,
    ) {
        load(handle, image_bytes(image)?, &Options::new(count, names, values)?)
    }

    fn cuModuleLoadFatBinary(handle: Out<usize>, _image: *const c_void) {
        handle.required()?;
        context::current()?;
        Err(INVALID_IMAGE)
    }

    fn cuModuleUnload(handle: usize) {
        let module = MODULES.get(handle)?;
        capture::unsafe_call()?;
        let context = context::Context::get(module.context_handle)?;
        stream::wait_idle(&context);
        module::unload(handle)?;
        context::ended_in_current()
    }

    fn cuModuleGetLoadingMode(mode: Out<i32>) {
        mode.required()?.set(1);
        Ok(())
    }

    fn cuModuleGetFunction(function: Out<usize>, handle: usize, name: *const c_char) {
        let module = MODULES.get(handle)?;
        function.required()?.set(module.function(text(name)?)?);
        Ok(())
    }

    fn cuModuleGetFunctionCount(count: Out<u32>, handle: usize) {
        count.required()?.set(MODULES.get(handle)?.program.kernels().len() as u32);
        Ok(())
    }

    fn cuModuleEnumerateFunctions(functions: Out<usize>, count: u32, handle: usize) {
        let module = MODULES.get(handle)?;
        let names = module.program.kernels().iter().map(|kernel| module.function(&kernel.name));
        let found: Vec<usize> = names.collect::<Result<_>>()?;
        functions.required()?.fill(found.into_iter(), count as usize);
        Ok(())
    }

    fn cuModuleGetGlobal_v2(address: Out<u64>, size: Out<usize>, handle: usize, name: *const c_char) {
        let (at, bytes) = MODULES.get(handle)?.global(text(name)?)?;
        address.set(at);
        size.set(bytes as usize);
        Ok(())
    }

    fn cuFuncGetAttribute(value: Out<i32>, number: i32, handle: usize) {
        let function = module::function(handle)?;
        value.required()?.set(attribute(&function, number)?);
        Ok(())
    }

    fn cuFuncSetAttribute(handle: usize, number: i32, value: i32) {
        let function = module::function(handle)?;
        set_attribute(&function, number, value)
    }

    fn cuFuncSetCacheConfig(handle: usize, config: i32) {
        module::function(handle)?;
        if (0..=3).contains(&config) { Ok(()) } else { Err(INVALID_VALUE) }
    }

    fn cuFuncSetSharedMemConfig(handle: usize, config: i32) {
        module::function(handle)?;
        if (0..=2).contains(&config) { Ok(()) } else { Err(INVALID_VALUE) }
    }

    fn cuFuncGetModule(module: Out<usize>, handle: usize) {
        module.required()?.set(module::function(handle)?.module.handle);
        Ok(())
    }

    fn cuFuncGetName(name: Out<*const c_char>, handle: usize) {
        let function = module::function(handle)?;
        name.required()?.set(function.c_name().as_ptr());
        Ok(())
    }

    fn cuFuncGetParamInfo(handle: usize, index: usize, offset: Out<usize>, size: Out<usize>) {
        let function = module::function(handle)?;
        let parameter = function.kernel().params.get(index).ok_or(INVALID_VALUE)?;
        offset.required()?.set(parameter.offset as usize);
        size.set(parameter.size as usize);
        Ok(())
    }

    fn cuFuncIsLoaded(state: Out<i32>, handle: usize) {
        module::function(handle)?;
        state.required()?.set(1);
        Ok(())
    }

    fn cuFuncLoad(handle: usize) {
        module::function(handle).map(|_| ())
    }

    fn cuOccupancyMaxActiveBlocksPerMultiprocessor(
        blocks: Out<i32>,
        handle: usize,
        block: i32,
        shared: usize,
    ) {
        let function = module::function(handle)?;
        blocks.required()?.set(blocks_at_once(&function, block, shared)?);
        Ok(())
    }

    fn cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        blocks: Out<i32>,
        handle: usize,
        block: i32,
        shared: usize,
        flags: u32,
    ) {
        let function = module::function(handle)?;
        if flags > 1 {
            return Err(INVALID_VALUE);
        }
        blocks.required()?.set(blocks_at_once(&function, block, shared)?);
        Ok(())
    }

    fn cuOccupancyMaxPotentialBlockSize(
        grid: Out<i32>,
        block: Out<i32>,
        handle: usize,
        shared_of: Option<extern "C" fn(i32) -> usize>,
        shared: usize,
        limit: i32,
    ) {
        let function = module::function(handle)?;
        let shared = |block| shared_of.map_or(shared, |f| f(block));
        let (blocks, threads) = best_block(&function, shared, limit)?;
        grid.required()?.set(blocks);
        block.required()?.set(threads);
        Ok(())
    }

    fn cuOccupancyAvailableDynamicSMemPerBlock(
        shared: Out<usize>,
        handle: usize,
        blocks: i32,
        _block: i32,
    ) {
        let function = module::function(handle)?;
        let blocks = usize::try_from(blocks).ok().filter(|n| *n > 0).ok_or(INVALID_VALUE)?;
        let own = function.kernel().static_shared_bytes as usize;
        let each = (233_472 / blocks).saturating_sub(1024 + own);
        shared.required()?.set(each.min(device::SHARED_OPTIN as usize - own));
        Ok(())
    }
}
