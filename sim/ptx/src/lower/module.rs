//! A module: variables, functions, kernels.

use super::function::{FunctionLowering, Summary};
use super::layout;
use super::Result;
use crate::exec::code::{Code, FunctionCode, Space as ExecSpace, Symbol};
use crate::exec::lanes::{Plane, Slot, CONSTANT, LANES};
use crate::interface::{Global, Kernel, Param, Relocation, Space, FUNCTION_WINDOW};
use crate::parse::ast::{Function, Init, Module, Number, Storage, Variable};
use crate::types::{Kind, Type};
use crate::CompileError;
use std::collections::HashMap;

/// The largest parameter block of a kernel.
const MAX_PARAMS: u64 = 32764;
/// The largest static shared memory of a kernel.
const MAX_SHARED: u64 = 48 << 10;
/// The largest constant memory of a module.
const MAX_CONST: u64 = 64 << 10;
/// The largest variable.
const MAX_VARIABLE: u64 = 1 << 40;

/// A lowered module.
pub struct Lowered {
    pub code: Code,
    pub kernels: Vec<Kernel>,
    pub globals: Vec<Global>,
}

/// A module being lowered.
pub struct ModuleLowering<'a> {
    pub code: Code,
    globals: Vec<Global>,
    symbols: HashMap<&'a str, u32>,
    /// Variables that are declared here and defined nowhere.
    unresolved: HashMap<&'a str, u32>,
    functions: HashMap<&'a str, u32>,
    /// Functions that are declared, with or without a body.
    pub signatures: HashMap<&'a str, Function<'a>>,
    constants: HashMap<(u128, u32), Slot>,
    /// The text that the tree points into.
    pub text: &'a str,
    /// Functions whose address is taken.
    pub taken: Vec<u32>,
}

/// Lowers a whole module; `source` is the text that the tree was parsed from.
pub fn lower<'a>(module: &Module<'a>, source: &'a str) -> Result<Lowered> {
    let mut lowering = ModuleLowering {
        code: Code {
            source: source.to_owned(),
            ..Code::default()
        },
        globals: Vec::new(),
        symbols: HashMap::new(),
        unresolved: HashMap::new(),
        functions: HashMap::new(),
        signatures: HashMap::new(),
        constants: HashMap::new(),
        text: source,
        taken: Vec::new(),
    };
    lowering.declare_functions(module)?;
    for variable in &module.variables {
        lowering.module_variable(variable)?;
    }
    let mut summaries = Vec::new();
    for function in &module.functions {
        if let Some(body) = &function.body {
            let index = lowering.functions[function.name];
            lowering.check_signature(function)?;
            summaries.push(FunctionLowering::lower(
                &mut lowering,
                index,
                function,
                body,
            )?);
        }
    }
    lowering.finish(module, &summaries)
}

/// How much there is of everything, to go back to.
pub struct Mark {
    lengths: [usize; 8],
    globals: usize,
}

impl<'a> ModuleLowering<'a> {
    pub fn mark(&self) -> Mark {
        let code = &self.code;
        let lengths = [
            code.insts.len(),
            code.origins.len(),
            code.tables.len(),
            code.calls.len(),
            code.mem.len(),
            code.barriers.len(),
            code.syncs.len(),
            code.symbols.len(),
        ];
        Mark {
            lengths,
            globals: self.globals.len(),
        }
    }

    /// Drops what was lowered since.
    pub fn rewind(&mut self, mark: &Mark) {
        let code = &mut self.code;
        let [insts, origins, tables, calls, mem, barriers, syncs, symbols] = mark.lengths;
        code.insts.truncate(insts);
        code.origins.truncate(origins);
        code.tables.truncate(tables);
        code.calls.truncate(calls);
        code.mem.truncate(mem);
        code.barriers.truncate(barriers);
        code.syncs.truncate(syncs);
        code.symbols.truncate(symbols);
        self.globals.truncate(mark.globals);
    }

    fn declare_functions(&mut self, module: &Module<'a>) -> Result<()> {
        for function in &module.functions {
            if function.body.is_some() {
                let index = self.code.functions.len() as u32;
                if self.functions.insert(function.name, index).is_some() {
                    let message = format!("function `{}` is defined twice", function.name);
                    return Err(CompileError::new(function.line, message));
                }
                self.code.functions.push(FunctionCode::default());
            }
            let signature = function.header();
            self.signatures.entry(function.name).or_insert(signature);
        }
        for &(alias, aliasee, line) in &module.aliases {
            let Some(&index) = self.functions.get(aliasee) else {
                let message = format!("unknown function `{aliasee}`");
                return Err(CompileError::new(line, message));
            };
            self.functions.insert(alias, index);
            if let Some(signature) = self.signatures.get(aliasee).cloned() {
                self.signatures.insert(alias, signature);
            }
        }
        Ok(())
    }

    /// A definition must look like the declarations before it.
    fn check_signature(&self, function: &Function<'a>) -> Result<()> {
        let declared = &self.signatures[function.name];
        let same = |a: &[crate::parse::ast::Formal], b: &[crate::parse::ast::Formal]| {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.size == b.size)
        };
        if same(&declared.params, &function.params) && same(&declared.returns, &function.returns) {
            return Ok(());
        }
        let message = format!("`{}` differs from its declaration", function.name);
        Err(CompileError::new(function.line, message))
    }

    fn module_variable(&mut self, variable: &Variable<'a>) -> Result<()> {
        if variable.external && variable.storage != Storage::Shared {
            self.unresolved
                .entry(variable.name)
                .or_insert(variable.line);
            return Ok(());
        }
        if let (Some(&old), true) = (self.symbols.get(variable.name), variable.external) {
            // The same dynamic shared memory may be declared more than once.
            if matches!(
                self.code.symbols[old as usize],
                Symbol::DynamicShared { .. }
            ) {
                return Ok(());
            }
        }
        let symbol = self.declare_variable(variable)?;
        if self.symbols.insert(variable.name, symbol).is_some() {
            let message = format!("variable `{}` is defined twice", variable.name);
            return Err(CompileError::new(variable.line, message));
        }
        self.unresolved.remove(variable.name);
        Ok(())
    }

    /// Makes the symbol of a variable that lives outside of any frame.
    pub fn declare_variable(&mut self, variable: &Variable<'a>) -> Result<u32> {
        let fail = |message: &str| {
            Err(CompileError::new(
                variable.line,
                format!("`{}`: {message}", variable.name),
            ))
        };
        if variable.size() > MAX_VARIABLE {
            return fail("the variable is too large");
        }
        let symbol = match variable.storage {
            Storage::Shared => {
                if variable.init.is_some() {
                    return fail("shared memory cannot have an initialiser");
                }
                match variable.count {
                    Some(_) if !variable.external && variable.size() > MAX_SHARED => {
                        return fail("too much shared memory, 0xc000 bytes at most");
                    }
                    Some(_) if !variable.external => Symbol::Shared {
                        size: variable.size(),
                        align: variable.align,
                    },
                    None if !variable.external => return fail("the array has no size"),
                    _ => Symbol::DynamicShared {
                        align: variable.align,
                    },
                }
            }
            Storage::Global | Storage::Const => return self.declare_global(variable),
            Storage::Local | Storage::Param => {
                return fail("local and parameter memory belong inside a function");
            }
        };
        self.code.symbols.push(symbol);
        Ok(self.code.symbols.len() as u32 - 1)
    }

    fn declare_global(&mut self, variable: &Variable<'a>) -> Result<u32> {
        let space = match variable.storage {
            Storage::Const => Space::Const,
            _ => Space::Global,
        };
        let mut flat = Flat {
            bytes: Vec::new(),
            relocations: Vec::new(),
        };
        if let Some(init) = &variable.init {
            self.flatten(init, variable, &mut flat)?;
        }
        let size = match variable.count {
            Some(_) => variable.size(),
            None if variable.init.is_some() => flat.bytes.len() as u64,
            None => {
                let message = format!("`{}`: the array has no size", variable.name);
                return Err(CompileError::new(variable.line, message));
            }
        };
        if flat.bytes.len() as u64 > size {
            let message = format!("`{}`: the initialiser is too long", variable.name);
            return Err(CompileError::new(variable.line, message));
        }
        let index = self.globals.len() as u32;
        self.globals.push(Global {
            name: variable.name.to_owned(),
            size,
            align: variable.align,
            space,
            init: flat.bytes,
            relocations: flat.relocations,
        });
        self.code.symbols.push(match space {
            Space::Const => Symbol::Const(index),
            Space::Global => Symbol::Global(index),
        });
        Ok(self.code.symbols.len() as u32 - 1)
    }

    fn flatten(&mut self, init: &Init<'a>, variable: &Variable<'a>, out: &mut Flat) -> Result<()> {
        let fail = |message: String| Err(CompileError::new(variable.line, message));
        let width = variable.ty.bytes() as usize;
        match init {
            Init::List(list) => {
                for element in list {
                    self.flatten(element, variable, out)?;
                }
            }
            Init::Number(number) => {
                let bits = match element_bits(*number, variable.ty) {
                    Some(bits) => bits,
                    None => return fail(format!("`{}`: bad initialiser", variable.name)),
                };
                out.bytes.extend_from_slice(&bits.to_le_bytes()[..width]);
            }
            Init::Address(name, addend) => {
                if width != 8 {
                    return fail(format!("the address of `{name}` needs 64 bits"));
                }
                let offset = out.bytes.len() as u64;
                let mut value = 0;
                if let Some(&function) = self.functions.get(name) {
                    self.taken.push(function);
                    value = FUNCTION_WINDOW + 16 * (u64::from(function) + 1);
                } else {
                    let Some(&symbol) = self.symbols.get(name) else {
                        return fail(format!("unknown name `{name}`"));
                    };
                    match self.code.symbols[symbol as usize] {
                        Symbol::Global(index) | Symbol::Const(index) => {
                            let global = index as usize;
                            let relocation = Relocation {
                                offset,
                                global,
                                addend: *addend,
                            };
                            out.relocations.push(relocation);
                        }
                        _ => return fail(format!("`{name}` has no address before a launch")),
                    }
                }
                out.bytes.extend_from_slice(&u64::to_le_bytes(value));
            }
        }
        Ok(())
    }

    /// The symbol of a variable at module scope.
    pub fn symbol(&self, name: &str) -> Option<u32> {
        self.symbols.get(name).copied()
    }

    /// Whether the name is that of a variable which some other module would have to define.
    pub fn is_unresolved(&self, name: &str) -> bool {
        self.unresolved.contains_key(name)
    }

    pub fn symbol_space(&self, symbol: u32) -> ExecSpace {
        match self.code.symbols[symbol as usize] {
            Symbol::Global(_) => ExecSpace::Global,
            Symbol::Const(_) => ExecSpace::Const,
            Symbol::Shared { .. } | Symbol::DynamicShared { .. } => ExecSpace::Shared,
        }
    }

    /// Index of a function that has a body.
    pub fn function(&self, name: &str) -> Option<u32> {
        self.functions.get(name).copied()
    }

    /// A slot with this value in all lanes; `width` is 16, 32, 64 or 128 bits.
    pub fn constant(&mut self, bits: u128, width: u32) -> Slot {
        let bits = if width < 128 {
            bits & ((1 << width) - 1)
        } else {
            bits
        };
        if let Some(&slot) = self.constants.get(&(bits, width)) {
            return slot;
        }
        let first = self.code.constants.len() as Slot;
        let bytes = (width / 8) as usize;
        let mut image = Vec::with_capacity(bytes * LANES);
        for _ in 0..LANES {
            image.extend_from_slice(&bits.to_le_bytes()[..bytes]);
        }
        for chunk in image.chunks(4 * LANES) {
            let mut plane = Plane([0; LANES]);
            for (word, bytes) in plane.0.iter_mut().zip(chunk.chunks(4)) {
                *word = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
            }
            self.code.constants.push(plane);
        }
        let slot = first | CONSTANT;
        self.constants.insert((bits, width), slot);
        slot
    }

    /// Layout of the parameter block of a kernel.
    pub fn kernel_params(&self, function: &Function<'a>) -> Result<Vec<Param>> {
        let mut params = Vec::new();
        let mut end = 0u64;
        for formal in &function.params {
            if formal.register {
                let message = "a kernel parameter cannot be a register";
                return Err(CompileError::new(formal.line, message));
            }
            let align = formal.align.max(1);
            let offset = end.next_multiple_of(align);
            end = offset + formal.size;
            if end > MAX_PARAMS {
                let message = format!("the parameters of `{}` are too large", function.name);
                return Err(CompileError::new(formal.line, message));
            }
            let (offset, size, align) = (offset as u32, formal.size as u32, align as u32);
            params.push(Param {
                offset,
                size,
                align,
            });
        }
        Ok(params)
    }

    fn finish(mut self, module: &Module<'a>, summaries: &[Summary]) -> Result<Lowered> {
        let constant_bytes: u64 = self
            .globals
            .iter()
            .filter(|g| g.space == Space::Const)
            .map(|g| g.size)
            .sum();
        if constant_bytes > MAX_CONST {
            return Err(CompileError::new(
                1,
                "too much constant memory, 0x10000 bytes at most",
            ));
        }
        let graph = layout::Graph::new(&self.code, summaries, &self.taken);
        for call in &mut self.code.calls {
            call.saves = graph.is_recursive(call);
        }
        let mut kernels = Vec::new();
        for function in module
            .functions
            .iter()
            .filter(|f| f.entry && f.body.is_some())
        {
            let index = self.functions[function.name];
            let layout = graph.layout(&self.code, index);
            if u64::from(layout.static_shared) > MAX_SHARED {
                let message = format!(
                    "kernel `{}` uses too much shared memory ({:#x} bytes, 0xc000 at most)",
                    function.name, layout.static_shared
                );
                return Err(CompileError::new(function.line, message));
            }
            let params = self.kernel_params(function)?;
            let limit = function.required_threads.or(function.max_threads);
            let threads = limit.map_or(1024, |[x, y, z]| {
                let threads = u64::from(x) * u64::from(y).saturating_mul(u64::from(z));
                threads.min(1024) as u32
            });
            kernels.push(Kernel {
                name: function.name.to_owned(),
                param_bytes: params.last().map_or(0, |p| p.offset + p.size),
                params,
                static_shared_bytes: layout.static_shared,
                local_bytes: layout.local,
                const_bytes: constant_bytes as u32,
                registers: (layout.planes + 8).min(255),
                max_threads: threads,
                required_block: function.required_threads,
                ptx_version: module.version,
                target: module.target,
            });
            self.code.layouts.push(layout);
        }
        Ok(Lowered {
            code: self.code,
            kernels,
            globals: self.globals,
        })
    }
}

/// An initialiser as bytes.
struct Flat {
    bytes: Vec<u8>,
    relocations: Vec<Relocation>,
}

fn element_bits(number: Number, ty: Type) -> Option<u128> {
    Some(match (number, ty.kind, ty.bits) {
        (Number::Int(value), Kind::Float, 32) => u128::from((value as i64 as f32).to_bits()),
        (Number::Int(value), Kind::Float, 64) => u128::from((value as i64 as f64).to_bits()),
        (Number::Int(value), ..) => value as i64 as i128 as u128,
        (Number::F32(bits), Kind::Float | Kind::Bits, 32) => u128::from(bits),
        (Number::F32(bits), Kind::Float, 64) => {
            u128::from(f64::from(f32::from_bits(bits)).to_bits())
        }
        (Number::F64(bits), Kind::Float, 32) => u128::from((f64::from_bits(bits) as f32).to_bits()),
        (Number::F64(bits), Kind::Float | Kind::Bits, 64) => u128::from(bits),
        _ => return None,
    })
}
