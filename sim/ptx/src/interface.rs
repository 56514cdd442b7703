//! What a program is made of as its user sees it, and what a launch needs.

use std::sync::atomic::AtomicBool;

/// Generic addresses of a block's shared memory start here.
pub const SHARED_WINDOW: u64 = 0x00fe_0000_0000_0000;
/// Generic addresses of a thread's local memory start here.
pub const LOCAL_WINDOW: u64 = 0x00ff_0000_0000_0000;
/// Generic addresses of the kernel's parameters start here.
pub const PARAM_WINDOW: u64 = 0x00fd_0000_0000_0000;
/// Addresses of functions start here.
pub const FUNCTION_WINDOW: u64 = 0x00fc_0000_0000_0000;

/// One parameter of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Param {
    /// Offset in the parameter block.
    pub offset: u32,
    /// Size in bytes.
    pub size: u32,
    /// Alignment in bytes.
    pub align: u32,
}

/// A kernel (`.entry`) of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// Name as written in the source.
    pub name: String,
    /// Parameters in order.
    pub params: Vec<Param>,
    /// Size of the parameter block.
    pub param_bytes: u32,
    /// Static shared memory of a block.
    pub static_shared_bytes: u32,
    /// Local memory of a thread.
    pub local_bytes: u32,
    /// Constant memory of the module that the kernel can reach.
    pub const_bytes: u32,
    /// Registers of a thread: an estimate, at most 255.
    pub registers: u32,
    /// The largest block that may be launched (`.maxntid`, `.reqntid`, otherwise 1024).
    pub max_threads: u32,
    /// The only block shape that may be launched (`.reqntid`).
    pub required_block: Option<[u32; 3]>,
    /// PTX version, 90 for `.version 9.0`.
    pub ptx_version: u32,
    /// Target architecture, 90 for `.target sm_90a`.
    pub target: u32,
}

/// State space of a module-scope variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    /// `.global`
    Global,
    /// `.const`
    Const,
}

/// Eight bytes of an initialiser that are to hold the address of a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Relocation {
    /// Where in the initialiser.
    pub offset: u64,
    /// Index of the variable in [`crate::Program::globals`].
    pub global: usize,
    /// What to add to the address.
    pub addend: i64,
}

/// A variable at module scope, to be allocated by the caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Global {
    /// Name as written in the source.
    pub name: String,
    /// Size in bytes.
    pub size: u64,
    /// Alignment in bytes.
    pub align: u64,
    /// State space.
    pub space: Space,
    /// First bytes of the variable; what follows, up to `size`, is zero.
    pub init: Vec<u8>,
    /// Addresses to be written over `init`.
    pub relocations: Vec<Relocation>,
}

/// A live allocation.
///
/// `start` and `host` must agree in their alignment up to 32 bytes, so that what is aligned on the
/// device is aligned on the host.
#[derive(Clone, Copy, Debug)]
pub struct Region {
    /// First device address.
    pub start: u64,
    /// Device address behind the last byte.
    pub end: u64,
    /// Host address of the byte at `start`.
    pub host: *mut u8,
    /// Whether kernels may store to it.
    pub writable: bool,
}

/// Device memory as a running kernel sees it.
///
/// A region that was handed out must stay mapped on the host for as long as a launch that may have
/// seen it runs, even if it is freed meanwhile.
pub trait Memory: Sync {
    /// The live allocation that holds `addr`, or `None`.
    fn region(&self, addr: u64) -> Option<Region>;
    /// A number that changes whenever an allocation appears or goes. A region is looked up again
    /// when it does.
    fn epoch(&self) -> u64;
}

/// One launch of a kernel.
pub struct Launch<'a> {
    /// Index in [`crate::Program::kernels`].
    pub kernel: usize,
    /// Blocks in each dimension.
    pub grid: [u32; 3],
    /// Threads of a block in each dimension.
    pub block: [u32; 3],
    /// Dynamic shared memory of a block.
    pub dynamic_shared_bytes: u32,
    /// The parameter block, at least [`Kernel::param_bytes`] long.
    pub params: &'a [u8],
    /// Device address of each of [`crate::Program::globals`].
    pub globals: &'a [u64],
    /// Device memory.
    pub memory: &'a dyn Memory,
    /// Set by anybody to stop the launch soon.
    pub cancel: &'a AtomicBool,
    /// Stack of a thread for recursive and indirect calls.
    pub stack_bytes: u32,
    /// Warp instructions after which the launch is stopped.
    pub budget: Option<u64>,
}

static NEVER: AtomicBool = AtomicBool::new(false);

impl<'a> Launch<'a> {
    /// A launch of one block of one thread without parameters, to be filled in.
    pub fn new(kernel: usize, memory: &'a dyn Memory) -> Self {
        Launch {
            kernel,
            grid: [1; 3],
            block: [1; 3],
            dynamic_shared_bytes: 0,
            params: &[],
            globals: &[],
            memory,
            cancel: &NEVER,
            stack_bytes: 1024,
            budget: None,
        }
    }
}
