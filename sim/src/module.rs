//! Modules: PTX that was compiled, its variables in device memory, its kernels.

use crate::ledger::Kind;
use crate::memory;
use crate::status::{Result, INVALID_IMAGE, INVALID_PTX, NOT_FOUND};
use crate::table::{fresh_handle, lock, Table};
use cudagraph_ptx::{Program, Space};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

/// A loaded module.
pub struct Module {
    /// The compiled code.
    pub program: Program,
    /// The address of each variable.
    pub globals: Vec<u64>,
    /// Handle of its context.
    pub context_handle: usize,
    functions: Mutex<HashMap<usize, usize>>,
}

/// A kernel, with the module that it keeps in memory.
pub struct Function {
    /// The module.
    pub module: Arc<Module>,
    /// Its number among the module's kernels.
    pub index: usize,
}

/// The live modules.
pub static MODULES: Table<Module> = Table::new(Kind::Module);
static FUNCTIONS: Mutex<Option<HashMap<usize, Arc<Function>>>> = Mutex::new(None);

impl Module {
    /// Compiles an image and allocates its variables. The text explains a failure.
    pub fn load(image: &[u8], context: usize) -> std::result::Result<Arc<Module>, (i32, String)> {
        if image.starts_with(b"\x7fELF") || image.starts_with(&[0x50, 0xed, 0x55, 0xba]) {
            let text = "the simulator runs PTX, not machine code (cubin or fatbin)";
            return Err((INVALID_IMAGE, text.to_string()));
        }
        let program =
            Program::compile(image).map_err(|e| (INVALID_PTX, format!("ptx simulator: {e}")))?;
        let mut module = Module {
            program,
            globals: Vec::new(),
            context_handle: context,
            functions: Mutex::default(),
        };
        for index in 0..module.program.globals().len() {
            let size = module.program.globals()[index].size.max(1);
            let address = memory::allocate(size, context, false)
                .map_err(|status| (status, "no memory for the module's variables".to_string()))?;
            module.globals.push(address);
        }
        module.initialize();
        Ok(Arc::new(module))
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
        let index = self.program.kernel(name).ok_or(NOT_FOUND)?;
        let mut functions = lock(&self.functions);
        let handle = *functions.entry(index).or_insert_with(fresh_handle);
        let function = Arc::new(Function {
            module: self.clone(),
            index,
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
        let found = globals
            .iter()
            .position(|g| g.name == name)
            .ok_or(NOT_FOUND)?;
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

    fn unload(&self) {
        let handles: Vec<usize> = lock(&self.functions).values().copied().collect();
        if let Some(functions) = lock(&FUNCTIONS).as_mut() {
            handles.iter().for_each(|handle| {
                functions.remove(handle);
            });
        }
        self.globals
            .iter()
            .for_each(|address| memory::free_variable(*address));
    }
}

/// Unloads a module: using its kernels is an error from now on.
pub fn unload(handle: usize) -> Result<()> {
    MODULES.remove(handle)?.unload();
    Ok(())
}

/// Takes the modules of a context that goes.
pub fn remove_context(context: usize) {
    MODULES
        .remove_where(|m| m.context_handle == context)
        .iter()
        .for_each(|m| m.unload());
}

/// The kernel with a handle.
pub fn function(handle: usize) -> Result<Arc<Function>> {
    let found = lock(&FUNCTIONS)
        .as_ref()
        .and_then(|functions| functions.get(&handle).cloned());
    found.ok_or_else(|| {
        crate::ledger::bad_handle();
        crate::status::INVALID_HANDLE
    })
}
