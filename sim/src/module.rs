//! Modules: PTX that was compiled, its variables in device memory, its kernels.

use crate::context::Context;
use crate::device;
use crate::ledger::Kind;
use crate::memory::{self, Block};
use crate::status::*;
use crate::table::{fresh_handle, lock, Table};
use cudagraph_ptx::{Kernel, Program, Space};
use std::collections::HashMap;
use std::ffi::{CStr, CString};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

/// A loaded module.
pub struct Module {
    /// Its handle.
    pub handle: usize,
    /// The compiled code.
    pub program: Program,
    /// The address of each variable.
    pub globals: Vec<u64>,
    /// Handle of its context.
    pub context_handle: usize,
    unloaded: AtomicBool,
    functions: Mutex<HashMap<usize, usize>>,
}

/// A kernel, with the module that it keeps in the simulator's own memory.
pub struct Function {
    /// Its handle.
    pub handle: usize,
    /// The module.
    pub module: Arc<Module>,
    /// Its number among the module's kernels.
    pub index: usize,
    /// Dynamic shared memory that the program asked for; -1 before.
    pub dynamic_shared: AtomicI32,
    /// Preferred share of shared memory as set, without effect.
    pub carveout: AtomicI32,
    name: OnceLock<CString>,
}

/// The live modules.
pub static MODULES: Table<Module> = Table::new(Kind::Module);
static FUNCTIONS: Mutex<Option<HashMap<usize, Arc<Function>>>> = Mutex::new(None);

/// The newest version of PTX that is accepted, 90 for 9.0.
const NEWEST_PTX: u32 = 90;
/// The device's architecture.
const TARGET: u32 = 90;

type Loaded<T> = std::result::Result<T, (i32, String)>;

impl Module {
    /// Compiles an image and allocates its variables. The text explains a failure.
    pub fn load(image: &[u8], context: &Context) -> Loaded<Arc<Module>> {
        let handle = fresh_handle();
        let mut module = Module {
            handle,
            program: compile(image)?,
            globals: Vec::new(),
            context_handle: context.handle,
            unloaded: AtomicBool::new(false),
            functions: Mutex::default(),
        };
        for index in 0..module.program.globals().len() {
            let global = &module.program.globals()[index];
            let kind = memory::Kind::Variable;
            let mut block = Block::new(global.size.max(1), context.device, context.handle, kind);
            block.writable = global.space == Space::Global;
            let address = memory::allocate(block).map_err(|status| {
                module.free_variables();
                (status, "no memory for the module's variables".to_string())
            })?;
            module.globals.push(address);
        }
        module.initialize();
        let module = Arc::new(module);
        MODULES.insert_as(handle, module.clone());
        Ok(module)
    }

    fn initialize(&self) {
        for (global, address) in self.program.globals().iter().zip(&self.globals) {
            // SAFETY: the block was allocated with this size, and `init` is no longer.
            unsafe {
                std::ptr::write_bytes(*address as *mut u8, 0, global.size as usize);
                let init = &global.init[..global.init.len().min(global.size as usize)];
                std::ptr::copy_nonoverlapping(init.as_ptr(), *address as *mut u8, init.len());
            }
            for relocation in &global.relocations {
                let target = self.globals.get(relocation.global).copied().unwrap_or(0);
                let value = target.wrapping_add_signed(relocation.addend);
                if relocation.offset + 8 <= global.size {
                    let at = (address + relocation.offset) as *mut u64;
                    // SAFETY: inside the block, as just checked.
                    unsafe { at.write_unaligned(value) };
                }
            }
        }
    }

    /// The handle of a kernel.
    pub fn function(self: &Arc<Self>, name: &str) -> Result<usize> {
        if name.is_empty() {
            return Err(INVALID_VALUE);
        }
        let index = self.program.kernel(name).ok_or(NOT_FOUND)?;
        let mut functions = lock(&self.functions);
        let handle = *functions.entry(index).or_insert_with(fresh_handle);
        let function = Arc::new(Function {
            handle,
            module: self.clone(),
            index,
            dynamic_shared: AtomicI32::new(-1),
            carveout: AtomicI32::new(-1),
            name: OnceLock::new(),
        });
        lock(&FUNCTIONS)
            .get_or_insert_with(HashMap::new)
            .entry(handle)
            .or_insert(function);
        Ok(handle)
    }

    /// Address and size of a variable.
    pub fn global(&self, name: &str) -> Result<(u64, u64)> {
        let globals = self.program.globals();
        let absent = match name.is_empty() || self.program.kernel(name).is_some() {
            true => INVALID_VALUE,
            false => NOT_FOUND,
        };
        let found = globals.iter().position(|g| g.name == name).ok_or(absent)?;
        Ok((self.globals[found], globals[found].size))
    }

    /// Constant memory in bytes.
    pub fn const_bytes(&self) -> u64 {
        self.program
            .globals()
            .iter()
            .filter(|g| g.space == Space::Const)
            .map(|g| g.size)
            .sum()
    }

    /// Whether its code is gone.
    pub fn is_unloaded(&self) -> bool {
        self.unloaded.load(Ordering::Acquire)
    }

    fn unload(&self) {
        self.unloaded.store(true, Ordering::Release);
        let handles: Vec<usize> = lock(&self.functions).values().copied().collect();
        if let Some(functions) = lock(&FUNCTIONS).as_mut() {
            handles.iter().for_each(|handle| {
                functions.remove(handle);
            });
        }
        self.free_variables();
    }

    fn free_variables(&self) {
        for address in &self.globals {
            // They go with their context if that is first.
            let _ = memory::free(*address, |block| block.kind == memory::Kind::Variable);
        }
    }
}

impl Function {
    /// What the compiler knows of it.
    pub fn kernel(&self) -> &Kernel {
        &self.module.program.kernels()[self.index]
    }

    /// Its name for C.
    pub fn c_name(&self) -> &CStr {
        let make = || CString::new(self.kernel().name.as_str()).unwrap_or_default();
        self.name.get_or_init(make)
    }

    /// The most dynamic shared memory that a launch may ask for.
    pub fn most_dynamic_shared(&self) -> u32 {
        let own = self.kernel().static_shared_bytes;
        let asked = self.dynamic_shared.load(Ordering::Relaxed);
        u32::try_from(asked).unwrap_or(device::SHARED.saturating_sub(own))
    }
}

fn compile(image: &[u8]) -> Loaded<Program> {
    if is_binary(image) {
        let text = "the simulator runs PTX, not machine code (cubin or fatbin)";
        return Err((INVALID_IMAGE, text.to_string()));
    }
    if !image.windows(8).any(|part| part == b".version") {
        let text = "error   : Binary format for key='0', ident='' is not recognized";
        return Err((INVALID_IMAGE, text.to_string()));
    }
    let program = Program::compile(image).map_err(|e| (INVALID_PTX, format!("ptx: {e}")))?;
    for kernel in program.kernels() {
        if kernel.ptx_version > NEWEST_PTX {
            let text = format!(
                "ptx: version {} is newer than {NEWEST_PTX}",
                kernel.ptx_version
            );
            return Err((UNSUPPORTED_PTX_VERSION, text));
        }
        if kernel.target > TARGET {
            let text = format!("ptx: target sm_{} is newer than sm_{TARGET}", kernel.target);
            return Err((INVALID_PTX, text));
        }
    }
    Ok(program)
}

/// Whether an image, of which the first four bytes are looked at, is machine code.
pub fn is_binary(image: &[u8]) -> bool {
    image.starts_with(b"\x7fELF") || image.starts_with(&[0x50, 0xed, 0x55, 0xba])
}

/// Unloads a module: using its kernels is an error from now on.
pub fn unload(handle: usize) -> Result<()> {
    MODULES.remove(handle)?.unload();
    Ok(())
}

/// Takes the modules of a context that goes.
pub fn remove_context(context: usize) {
    let gone = MODULES.remove_where(|m| m.context_handle == context);
    gone.iter().for_each(|m| m.unload());
}

/// The kernel with a handle.
pub fn function(handle: usize) -> Result<Arc<Function>> {
    let functions = lock(&FUNCTIONS);
    let found = functions.as_ref().and_then(|all| all.get(&handle).cloned());
    found.ok_or_else(|| {
        if handle != 0 {
            crate::ledger::bad_handle();
        }
        INVALID_HANDLE
    })
}
