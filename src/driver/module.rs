//! Modules, their kernels and their variables.

use super::context::Context;
use super::foreign::Whose;
use super::launch::Parameter;
use super::memory::Allocation;
use super::pressure::Waiting;
use super::release::{self, Drain, Release};
use super::{driver, library, Error, Result};
use cudarc::driver::sys::{self, CUjit_option, CUresult};
use std::ffi::{c_void, CString};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::Arc;

const SHARED: i32 = sys::CUfunction_attribute::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES as i32;
const MAX_DYNAMIC_SHARED: i32 =
    sys::CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES as i32;

/// A loaded module.
pub struct Module {
    handle: usize,
    context: Arc<Context>,
    whose: Whose,
}

/// One option of the driver's compiler.
pub enum JitOption {
    /// A number, as the driver takes it in place of a pointer.
    Value(i32, usize),
    /// A buffer for a log: its address and bytes.
    Log(i32, *mut u8, usize),
}

const INFO_LOG: i32 = CUjit_option::CU_JIT_INFO_LOG_BUFFER as i32;
const ERROR_LOG: i32 = CUjit_option::CU_JIT_ERROR_LOG_BUFFER as i32;

impl Module {
    /// Loads an image (PTX text, or a cubin or fatbin) into the current context; on failure the
    /// compiler's log is in the error. `cuModuleLoadDataEx`
    ///
    /// # Safety
    /// Log buffers must be writable and stay where they are during the call.
    pub unsafe fn load(image: &[u8], options: &[JitOption]) -> Result<Arc<Module>> {
        type Load = unsafe extern "C" fn(
            *mut sys::CUmodule,
            *const c_void,
            u32,
            *mut i32,
            *mut *mut c_void,
        ) -> CUresult;
        let context = Context::current()?;
        release::drain(Drain::Quick);
        let _waiting = Waiting::begin();
        // The driver reads text up to its NUL.
        let mut image = image.to_vec();
        image.push(0);
        let mut own_log = vec![0u8; 16 * 1024];
        let mut names = Vec::new();
        let mut values: Vec<*mut c_void> = Vec::new();
        let mut log = |name: i32, address: *mut u8, size: usize| {
            // The size option follows each buffer option in the driver's numbering.
            names.extend([name, name + 1]);
            values.extend([address.cast::<c_void>(), size as *mut c_void]);
        };
        let mut error_log: (*const u8, usize) = (own_log.as_ptr(), own_log.len());
        let mut has_error_log = false;
        for option in options {
            if let JitOption::Log(name, address, size) = *option {
                if name != INFO_LOG && name != ERROR_LOG {
                    return Err(Error::invalid(format!("option {name} takes no buffer")));
                }
                if name == ERROR_LOG {
                    error_log = (address, size);
                    has_error_log = true;
                }
                log(name, address, size);
            }
        }
        if !has_error_log {
            log(ERROR_LOG, own_log.as_mut_ptr(), own_log.len());
        }
        for option in options {
            if let JitOption::Value(name, value) = *option {
                names.push(name);
                values.push(value as *mut c_void);
            }
        }
        let mut handle = std::ptr::null_mut();
        // SAFETY: `cuModuleLoadDataEx` has this C signature (the option enum is an int); both
        // arrays have `names.len()` entries and all buffers outlive the call.
        let status = unsafe {
            match sys::culib().get::<Load>(b"cuModuleLoadDataEx") {
                Ok(function) => function(
                    &mut handle,
                    image.as_ptr().cast(),
                    names.len() as u32,
                    names.as_mut_ptr(),
                    values.as_mut_ptr(),
                ),
                Err(_) => CUresult::CUDA_ERROR_NOT_SUPPORTED,
            }
        };
        super::error::check("cuModuleLoadDataEx", status).map_err(|e| {
            // SAFETY: the driver writes a NUL-terminated text into this buffer of known size.
            let text = unsafe { std::slice::from_raw_parts(error_log.0, error_log.1) };
            let end = text.iter().position(|b| *b == 0).unwrap_or(text.len());
            let log = String::from_utf8_lossy(&text[..end]);
            let what = not_an_image(&image).filter(|_| e.is(CUresult::CUDA_ERROR_INVALID_IMAGE));
            let parts = [Some(log.trim()), what.as_deref()];
            let said: Vec<&str> = parts
                .into_iter()
                .flatten()
                .filter(|s| !s.is_empty())
                .collect();
            e.explained(said.join("\n"))
        })?;
        Ok(Arc::new(Module {
            handle: handle as usize,
            context,
            whose: Whose::Ours,
        }))
    }

    /// A module that another library loaded.
    pub fn foreign(handle: usize, context: Arc<Context>, whose: Whose) -> Arc<Module> {
        Arc::new(Module {
            handle,
            context,
            whose,
        })
    }

    /// The context that the module was loaded into.
    pub fn context(&self) -> &Arc<Context> {
        &self.context
    }

    /// Whether it was surely loaded into another context: of borrowed modules nobody knows for sure.
    #[inline]
    pub fn is_outside(&self, context: &Context) -> bool {
        self.context.handle() != context.handle() && self.whose.is_ours()
    }

    /// The driver's handle.
    pub fn handle(&self) -> usize {
        self.handle
    }

    /// A kernel by its name. `cuModuleGetFunction`
    pub fn function(self: &Arc<Self>, name: &str) -> Result<Arc<Function>> {
        let _entered = self.context.enter()?;
        let _waiting = Waiting::begin();
        let c_name = c_name(name)?;
        let mut handle = std::ptr::null_mut();
        let module = self.handle as sys::CUmodule;
        driver!(cuModuleGetFunction(&mut handle, module, c_name.as_ptr()))
            .map_err(|e| e.explained(format!("the module has no kernel named {name:?}")))?;
        Function::new(handle as usize, name, self.clone())
    }

    /// A variable by its name. `cuModuleGetGlobal`
    pub fn global(self: &Arc<Self>, name: &str) -> Result<Arc<Allocation>> {
        let _entered = self.context.enter()?;
        let c_name = c_name(name)?;
        let (mut address, mut size) = (0, 0);
        let module = self.handle as sys::CUmodule;
        driver!(cuModuleGetGlobal_v2(
            &mut address,
            &mut size,
            module,
            c_name.as_ptr()
        ))
        .map_err(|e| e.explained(format!("the module has no variable named {name:?}")))?;
        Ok(Allocation::of_module(address, size, self.clone()))
    }
}

/// What is wrong with an image that is neither PTX nor machine code, of which the driver says little.
fn not_an_image(image: &[u8]) -> Option<String> {
    let machine_code = [&b"\x7fELF"[..], &[0x50, 0xed, 0x55, 0xba]];
    if image.windows(8).any(|part| part == b".version")
        || machine_code.iter().any(|magic| image.starts_with(magic))
    {
        return None;
    }
    let end = image.iter().position(|b| *b == 0).unwrap_or(image.len());
    let begin = String::from_utf8_lossy(&image[..end.min(40)]);
    Some(format!(
        "the image begins with {begin:?}: PTX has a .version directive, a cubin begins with the bytes of ELF"
    ))
}

fn c_name(name: &str) -> Result<CString> {
    CString::new(name).map_err(|_| Error::invalid(format!("name {name:?} holds a NUL character")))
}

impl Drop for Module {
    fn drop(&mut self) {
        if self.whose.is_ours() {
            release::queue(Release::Module(self.handle, self.context.clone()));
        }
    }
}

/// A kernel, which keeps its module loaded.
pub struct Function {
    handle: usize,
    name: String,
    module: Arc<Module>,
    /// The kernel's parameters, or `None` if the driver cannot tell (before CUDA 12.4).
    parameters: Option<Vec<Parameter>>,
    max_threads: u32,
    /// Dynamic shared memory that a block may ask for at present, bytes.
    shared_limit: AtomicU32,
    /// Whether it was launched: the first launch may load code or make room, and so wait.
    warm: AtomicBool,
}

impl Function {
    /// Asks the driver about a kernel.
    pub fn new(handle: usize, name: &str, module: Arc<Module>) -> Result<Arc<Function>> {
        let mut function = Function {
            handle,
            name: name.to_string(),
            module,
            parameters: None,
            max_threads: 0,
            shared_limit: AtomicU32::new(0),
            warm: AtomicBool::new(false),
        };
        let attribute = sys::CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK;
        function.max_threads = function.attribute(attribute as i32)?.max(0) as u32;
        let shared = function.attribute(MAX_DYNAMIC_SHARED)?.max(0) as u32;
        function.shared_limit = AtomicU32::new(shared);
        function.parameters = function.ask_parameters()?;
        Ok(Arc::new(function))
    }

    fn ask_parameters(&self) -> Result<Option<Vec<Parameter>>> {
        if !library::has("cuFuncGetParamInfo") {
            return Ok(None);
        }
        let mut parameters = Vec::new();
        loop {
            let (mut offset, mut size) = (0, 0);
            let function = self.handle as sys::CUfunction;
            // SAFETY: the symbol is there, the handle is alive, the pointers are to locals.
            let status = unsafe {
                sys::cuFuncGetParamInfo(function, parameters.len(), &mut offset, &mut size)
            };
            match status {
                CUresult::CUDA_SUCCESS => parameters.push(Parameter { size }),
                // The index after the last parameter.
                CUresult::CUDA_ERROR_INVALID_VALUE => return Ok(Some(parameters)),
                CUresult::CUDA_ERROR_NOT_SUPPORTED => return Ok(None),
                status => super::error::check("cuFuncGetParamInfo", status)?,
            }
        }
    }

    /// An attribute by its number. `cuFuncGetAttribute`
    pub fn attribute(&self, attribute: i32) -> Result<i32> {
        type Get = unsafe extern "C" fn(*mut i32, i32, sys::CUfunction) -> CUresult;
        let _entered = self.module.context.enter()?;
        let mut value = 0;
        // SAFETY: `cuFuncGetAttribute` has this C signature; the enum is an int there.
        let status = unsafe {
            match sys::culib().get::<Get>(b"cuFuncGetAttribute") {
                Ok(function) => function(&mut value, attribute, self.handle as sys::CUfunction),
                Err(_) => CUresult::CUDA_ERROR_NOT_SUPPORTED,
            }
        };
        super::error::check("cuFuncGetAttribute", status)?;
        Ok(value)
    }

    /// Sets an attribute by its number. `cuFuncSetAttribute`
    pub fn set_attribute(&self, attribute: i32, value: i32) -> Result<()> {
        type Set = unsafe extern "C" fn(sys::CUfunction, i32, i32) -> CUresult;
        let _entered = self.module.context.enter()?;
        // SAFETY: `cuFuncSetAttribute` has this C signature; the enum is an int there.
        let status = unsafe {
            match sys::culib().get::<Set>(b"cuFuncSetAttribute") {
                Ok(function) => function(self.handle as sys::CUfunction, attribute, value),
                Err(_) => CUresult::CUDA_ERROR_NOT_SUPPORTED,
            }
        };
        super::error::check("cuFuncSetAttribute", status)?;
        if attribute == MAX_DYNAMIC_SHARED {
            self.shared_limit
                .store(value.max(0) as u32, Ordering::Release);
        }
        Ok(())
    }

    /// Sees to it that a block may have so much dynamic shared memory: above the usual 48 KiB a kernel
    /// must be told. `device` is what the device admits.
    pub fn admit_shared(&self, bytes: i64, device: u32) -> Result<()> {
        if self.admits_shared(bytes) {
            return Ok(());
        }
        self.set_shared_limit("shared_mem_bytes", bytes, device)
    }

    /// Whether a block may have so much dynamic shared memory as things are.
    pub fn admits_shared(&self, bytes: i64) -> bool {
        bytes >= 0 && bytes <= i64::from(self.shared_limit.load(Ordering::Acquire))
    }

    /// Admits blocks with so much dynamic shared memory; `name` is the argument's. `device` is what the
    /// device admits. `cuFuncSetAttribute`
    pub fn set_shared_limit(&self, name: &str, bytes: i64, device: u32) -> Result<()> {
        let own = self.attribute(SHARED)?.max(0);
        let most = i64::from(device) - i64::from(own);
        if bytes < 0 || bytes > most {
            return Err(Error::invalid(format!(
                "{name} {bytes} is not between 0 and {most}, which is what kernel {} leaves of the \
                 device's {device} bytes",
                self.name
            )));
        }
        self.set_attribute(MAX_DYNAMIC_SHARED, bytes as i32)
    }

    /// Blocks of so many threads that a multiprocessor can run at once.
    /// `cuOccupancyMaxActiveBlocksPerMultiprocessor`
    pub fn active_blocks(&self, block: i64, shared_bytes: i64) -> Result<i32> {
        let (block, shared) = check_block("block_size", block, 1, shared_bytes)?;
        let _entered = self.module.context.enter()?;
        let mut blocks = 0;
        let function = self.handle as sys::CUfunction;
        driver!(cuOccupancyMaxActiveBlocksPerMultiprocessor(
            &mut blocks,
            function,
            block,
            shared
        ))?;
        Ok(blocks)
    }

    /// The smallest grid that fills the device, and the block size for it, at most `limit` threads (0:
    /// no limit). `cuOccupancyMaxPotentialBlockSize`
    pub fn best_block(&self, shared_bytes: i64, limit: i64) -> Result<(i32, i32)> {
        let (limit, shared) = check_block("block_size_limit", limit, 0, shared_bytes)?;
        let _entered = self.module.context.enter()?;
        let (mut grid, mut block) = (0, 0);
        driver!(cuOccupancyMaxPotentialBlockSize(
            &mut grid,
            &mut block,
            self.handle as sys::CUfunction,
            None,
            shared,
            limit
        ))?;
        Ok((grid, block))
    }

    /// Whether it was launched before.
    pub fn is_warm(&self) -> bool {
        self.warm.load(Ordering::Relaxed)
    }

    /// Notes a launch.
    pub fn set_warm(&self) {
        self.warm.store(true, Ordering::Relaxed);
    }

    /// The driver's handle.
    pub fn handle(&self) -> usize {
        self.handle
    }

    /// The kernel's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The module that the kernel is in.
    pub fn module(&self) -> &Arc<Module> {
        &self.module
    }

    /// Threads that a block of this kernel may have.
    pub fn max_threads(&self) -> u32 {
        self.max_threads
    }

    /// The kernel's parameters where the driver can tell.
    pub fn parameters(&self) -> Option<&[Parameter]> {
        self.parameters.as_deref()
    }
}

/// The threads of the argument called `name`, at least `least`, and the shared memory, as the driver
/// takes them.
fn check_block(name: &str, threads: i64, least: i32, shared_bytes: i64) -> Result<(i32, usize)> {
    let in_range = i32::try_from(threads).ok().filter(|n| *n >= least);
    let threads = in_range.ok_or_else(|| {
        Error::invalid(format!(
            "{name} {threads} is not between {least} and {}",
            i32::MAX
        ))
    })?;
    let shared = usize::try_from(shared_bytes)
        .map_err(|_| Error::invalid(format!("shared_mem_bytes {shared_bytes} is negative")))?;
    Ok((threads, shared))
}
