//! What the tests share: the driver's own declarations, called through macros that say what failed,
//! and small kernels.
//!
//! The tests run on the simulator that cargo has built. With `CUDAGRAPH_DRIVER=system`, or the path of a
//! driver, they run on that one; tests that need the simulator's own functions say so by their names.
#![allow(missing_docs, dead_code, unused_imports, unused_macros)]

pub use cudarc::driver::sys::*;
use std::ffi::{c_void, CStr, CString};
use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::{Condvar, Mutex, MutexGuard, Once};

/// Calls a function of the driver: its status.
macro_rules! status {
    ($function:ident($($argument:expr),* $(,)?)) => {{
        // SAFETY: the arguments are what the driver documents, or nonsense that it must refuse.
        let result: CUresult = unsafe { $function($($argument),*) };
        result
    }};
}
pub(crate) use status;

/// Calls a function of the driver that must succeed.
macro_rules! cu {
    ($function:ident($($argument:expr),* $(,)?)) => {
        assert_eq!(
            crate::common::status!($function($($argument),*)),
            CUresult::CUDA_SUCCESS,
            stringify!($function)
        )
    };
}
pub(crate) use cu;

/// Calls a function that answers in its first argument: the answer.
macro_rules! get {
    ($function:ident($($argument:expr),* $(,)?)) => {{
        // SAFETY: numbers and handles, for all of which zero is a value.
        let mut answer = unsafe { std::mem::zeroed() };
        crate::common::cu!($function(&mut answer, $($argument),*));
        answer
    }};
}
pub(crate) use get;

/// A call that must fail with a status, named without its prefix.
macro_rules! fails {
    ($status:ident, $function:ident($($argument:expr),* $(,)?)) => {
        assert_eq!(
            format!("{:?}", crate::common::status!($function($($argument),*))),
            concat!("CUDA_ERROR_", stringify!($status)),
            stringify!($function($($argument),*))
        )
    };
}
pub(crate) use fails;

/// The library under test.
pub fn library() -> PathBuf {
    match std::env::var("CUDAGRAPH_DRIVER") {
        Ok(path) if path == "system" => "libcuda.so.1".into(),
        Ok(path) if path != "sim" => path.into(),
        _ => std::env::current_exe()
            .expect("a test knows its own path")
            .with_file_name("libcudagraph_sim.so"),
    }
}

/// Whether the library under test is the simulator.
pub fn is_simulator() -> bool {
    let path = library();
    let name = path.file_name().and_then(|name| name.to_str());
    name.is_some_and(|name| name.contains("cudagraph_sim"))
}

/// Ends a test that only the simulator can pass, or survive.
macro_rules! simulator_only {
    () => {
        if !crate::common::is_simulator() {
            eprintln!("skipped: only for the simulator");
            return;
        }
    };
}
pub(crate) use simulator_only;

/// Runs a body in a child with variables, and asserts that it succeeds: what it has written to stderr.
pub fn with(test: &str, variables: &[(&str, &str)], body: impl FnOnce()) -> Option<String> {
    if is_child(test) {
        body();
        return None;
    }
    let output = child(test, variables);
    assert!(output.status.success(), "{}", errors(&output));
    Some(errors(&output))
}

/// Runs the rest of the test in a process of its own: an error of a kernel breaks all of a process's
/// contexts on the device.
macro_rules! alone {
    () => {
        fn here() {}
        let path = std::any::type_name_of_val(&here);
        let test = path.rsplit("::").nth(1).expect("a function of a test");
        if !crate::common::is_child(test) {
            let output = crate::common::child(test, &[]);
            assert!(
                output.status.success(),
                "{}",
                crate::common::errors(&output)
            );
            return;
        }
    };
}
pub(crate) use alone;

/// [`fails`] for a mistake that the simulator refuses and the driver lets pass, or dies of.
macro_rules! simulator_refuses {
    ($status:ident, $($call:tt)*) => {
        if crate::common::is_simulator() {
            fails!($status, $($call)*);
        }
    };
}
pub(crate) use simulator_refuses;

/// Opens the library, under the name by which the declarations find it.
pub fn open() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let path = CString::new(library().to_str().expect("a plain path")).expect("no NUL");
        // SAFETY: opens a library, which stays open.
        let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL) };
        assert!(!handle.is_null(), "cannot open {path:?}");
    });
}

/// The address of a function of the library that has no declaration.
pub fn address_of(name: &str) -> *mut c_void {
    open();
    let name = CString::new(name).expect("no NUL");
    // SAFETY: a name that lives during the call.
    unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) }
}

/// A function of the library by its name and type.
macro_rules! function {
    ($name:literal, $type:ty) => {{
        let address = crate::common::address_of($name);
        assert!(!address.is_null(), concat!("no ", $name));
        // SAFETY: the function has this type.
        unsafe { std::mem::transmute::<*mut std::ffi::c_void, $type>(address) }
    }};
}
pub(crate) use function;

/// How many objects of a kind are live, by the simulator's count.
pub fn live(kind: &CStr) -> u64 {
    function!("cusimLive", extern "C" fn(*const std::ffi::c_char) -> u64)(kind.as_ptr())
}

/// A context of the test's own. Captures and errors reach beyond what they touch, so there is one test at
/// a time in a process; what a test breaks ends with its context.
pub struct Session {
    pub context: CUcontext,
    _alone: MutexGuard<'static, ()>,
}

impl Session {
    pub fn new() -> Session {
        static ALONE: Mutex<()> = Mutex::new(());
        let alone = ALONE.lock().unwrap_or_else(|e| e.into_inner());
        open();
        cu!(cuInit(0));
        let context = get!(cuCtxCreate_v2(0, 0));
        Session {
            context,
            _alone: alone,
        }
    }

    pub fn kernel(&self, name: &CStr) -> CUfunction {
        kernel(name)
    }

    pub fn stream(&self) -> CUstream {
        stream()
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let _ = status!(cuCtxDestroy_v2(self.context));
    }
}

/// Kernels by their names, in the current context.
pub fn kernel(name: &CStr) -> CUfunction {
    let module = get!(cuModuleLoadData(KERNELS.as_ptr().cast()));
    get!(cuModuleGetFunction(module, name.as_ptr()))
}

/// A new stream that does not wait for the NULL stream.
pub fn stream() -> CUstream {
    get!(cuStreamCreate(1))
}

/// Device memory of a number of 32-bit words.
pub fn words(count: usize) -> CUdeviceptr {
    get!(cuMemAlloc_v2(4 * count))
}

/// Device memory with these words.
pub fn upload(values: &[u32]) -> CUdeviceptr {
    let memory = words(values.len());
    cu!(cuMemcpyHtoD_v2(
        memory,
        values.as_ptr().cast(),
        4 * values.len()
    ));
    memory
}

/// The words at an address, by a copy that waits.
pub fn download(memory: CUdeviceptr, count: usize) -> Vec<u32> {
    let mut values = vec![0u32; count];
    cu!(cuMemcpyDtoH_v2(
        values.as_mut_ptr().cast(),
        memory,
        4 * count
    ));
    values
}

/// Launches one block of a kernel on (memory, value).
pub fn launch(
    function: CUfunction,
    threads: u32,
    memory: CUdeviceptr,
    value: u32,
    on: CUstream,
) -> CUresult {
    let (mut memory, mut value) = (memory, value);
    let mut arguments = arguments(&mut memory, &mut value);
    status!(cuLaunchKernel(
        function,
        1,
        1,
        1,
        threads,
        1,
        1,
        0,
        on,
        arguments.as_mut_ptr(),
        std::ptr::null_mut()
    ))
}

/// The arguments of [`KERNELS`], for C.
pub fn arguments(memory: &mut CUdeviceptr, value: &mut u32) -> [*mut c_void; 2] {
    [
        std::ptr::from_mut(memory).cast(),
        std::ptr::from_mut(value).cast(),
    ]
}

/// A kernel node's parameters: one block.
pub fn kernel_params(
    function: CUfunction,
    threads: u32,
    arguments: &mut [*mut c_void],
) -> CUDA_KERNEL_NODE_PARAMS {
    CUDA_KERNEL_NODE_PARAMS {
        func: function,
        gridDimX: 1,
        gridDimY: 1,
        gridDimZ: 1,
        blockDimX: threads,
        blockDimY: 1,
        blockDimZ: 1,
        sharedMemBytes: 0,
        kernelParams: arguments.as_mut_ptr(),
        extra: std::ptr::null_mut(),
        kern: std::ptr::null_mut(),
        ctx: std::ptr::null_mut(),
    }
}

pub const DEVICE: CUmemorytype = CUmemorytype::CU_MEMORYTYPE_DEVICE;
pub const HOST: CUmemorytype = CUmemorytype::CU_MEMORYTYPE_HOST;

/// A copy of bytes in a row, to and from an address of a kind.
pub fn copy_params(
    (to_kind, to): (CUmemorytype, u64),
    (from_kind, from): (CUmemorytype, u64),
    size: usize,
) -> CUDA_MEMCPY3D {
    CUDA_MEMCPY3D {
        srcXInBytes: 0,
        srcY: 0,
        srcZ: 0,
        srcLOD: 0,
        srcMemoryType: from_kind,
        srcHost: from as *const c_void,
        srcDevice: from,
        srcArray: std::ptr::null_mut(),
        reserved0: std::ptr::null_mut(),
        srcPitch: 0,
        srcHeight: 0,
        dstXInBytes: 0,
        dstY: 0,
        dstZ: 0,
        dstLOD: 0,
        dstMemoryType: to_kind,
        dstHost: to as *mut c_void,
        dstDevice: to,
        dstArray: std::ptr::null_mut(),
        reserved1: std::ptr::null_mut(),
        dstPitch: 0,
        dstHeight: 0,
        WidthInBytes: size,
        Height: 1,
        Depth: 1,
    }
}

pub fn instantiate(graph: CUgraph) -> CUgraphExec {
    get!(cuGraphInstantiateWithFlags(graph, 0))
}

/// Launches a graph and waits for it.
pub fn run(exec: CUgraphExec, on: CUstream) {
    cu!(cuGraphLaunch(exec, on));
    cu!(cuStreamSynchronize(on));
}

/// A gate for a stream: what is behind it waits until it is opened.
#[derive(Default)]
pub struct Gate {
    open: Mutex<bool>,
    changed: Condvar,
}

impl Gate {
    /// Makes a stream stop here. The gate must live until the stream has passed it.
    pub fn close(&self, on: CUstream) {
        cu!(cuLaunchHostFunc(on, Some(Gate::wait), self.data()));
    }

    pub fn open(&self) {
        *self.open.lock().unwrap() = true;
        self.changed.notify_all();
    }

    pub fn data(&self) -> *mut c_void {
        std::ptr::from_ref(self).cast_mut().cast()
    }

    /// The host function that waits for a gate.
    pub unsafe extern "C" fn wait(gate: *mut c_void) {
        // SAFETY: `close` passes a gate, which outlives the work.
        let gate = unsafe { &*gate.cast::<Gate>() };
        let mut open = gate.open.lock().unwrap();
        while !*open {
            open = gate.changed.wait(open).unwrap();
        }
    }
}

/// Runs one test of this file again in a process of its own, with these variables, as its child: for tests
/// of what is read from the environment, written to stderr, or done at the end.
pub fn child(test: &str, variables: &[(&str, &str)]) -> Output {
    let mut command = Command::new(std::env::current_exe().expect("a test knows its own path"));
    command.args(["--exact", test, "--nocapture", "--test-threads=1"]);
    command.env("SIM_TEST_CHILD", test);
    command.envs(variables.iter().copied());
    command.output().expect("a test can run itself")
}

/// Whether this process is the child for a test.
pub fn is_child(test: &str) -> bool {
    std::env::var("SIM_TEST_CHILD").is_ok_and(|name| name == test)
}

/// What a child has written to stderr.
pub fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Each kernel takes an address of words and a value; one thread for each word.
pub const KERNELS: &CStr = c"
.version 7.0
.target sm_70
.address_size 64

// word[i] = value
.visible .entry set(.param .u64 memory, .param .u32 value)
{
    .reg .b32 %r<4>;
    .reg .b64 %d<4>;
    ld.param.u64 %d1, [memory];
    ld.param.u32 %r1, [value];
    mov.u32 %r2, %tid.x;
    mul.wide.u32 %d2, %r2, 4;
    add.s64 %d3, %d1, %d2;
    st.global.u32 [%d3], %r1;
    ret;
}

// word[i] += value
.visible .entry add(.param .u64 memory, .param .u32 value)
{
    .reg .b32 %r<5>;
    .reg .b64 %d<4>;
    ld.param.u64 %d1, [memory];
    ld.param.u32 %r1, [value];
    mov.u32 %r2, %tid.x;
    mul.wide.u32 %d2, %r2, 4;
    add.s64 %d3, %d1, %d2;
    ld.global.u32 %r3, [%d3];
    add.u32 %r4, %r3, %r1;
    st.global.u32 [%d3], %r4;
    ret;
}

// word[i] = word[i] * 2 + value: tells in which order things were done
.visible .entry step(.param .u64 memory, .param .u32 value)
{
    .reg .b32 %r<5>;
    .reg .b64 %d<4>;
    ld.param.u64 %d1, [memory];
    ld.param.u32 %r1, [value];
    mov.u32 %r2, %tid.x;
    mul.wide.u32 %d2, %r2, 4;
    add.s64 %d3, %d1, %d2;
    ld.global.u32 %r3, [%d3];
    mad.lo.u32 %r4, %r3, 2, %r1;
    st.global.u32 [%d3], %r4;
    ret;
}

.visible .entry nothing()
{
    ret;
}
";
