//! Finding and loading the driver that `CUDAGRAPH_DRIVER` asks for.
//!
//! cudarc opens `libcuda.so` by name. glibc answers a name with a library of that SONAME that is
//! already loaded, so the chosen library is loaded first, by its path; then it is checked that
//! cudarc's functions are indeed the chosen library's.

use super::{driver, Error, Result};
use cudarc::driver::sys::{self, CUresult};
use std::ffi::c_void;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::Mutex;

const UNLOADED: u8 = 0;
const READY: u8 = 1;
const FORKED: u8 = 2;

/// The state of the driver in this process, read by every operation.
static STATE: AtomicU8 = AtomicU8::new(UNLOADED);

struct Loaded {
    /// Keeps the library mapped for the life of the process.
    _library: libloading::Library,
    description: String,
}

static LOADED: Mutex<Option<Loaded>> = Mutex::new(None);

/// What every program needs; a driver without one of them is too old.
const REQUIRED: &[&str] = &[
    "cuInit",
    "cuDriverGetVersion",
    "cuDeviceGetCount",
    "cuDeviceGet",
    "cuDeviceGetName",
    "cuDeviceGetAttribute",
    "cuDeviceTotalMem_v2",
    "cuDeviceGetP2PAttribute",
    "cuDeviceCanAccessPeer",
    "cuDevicePrimaryCtxRetain",
    "cuDevicePrimaryCtxRelease_v2",
    "cuDevicePrimaryCtxReset_v2",
    "cuCtxCreate_v2",
    "cuCtxDestroy_v2",
    "cuCtxGetCurrent",
    "cuCtxSetCurrent",
    "cuCtxPushCurrent_v2",
    "cuCtxPopCurrent_v2",
    "cuCtxGetDevice",
    "cuCtxGetFlags",
    "cuCtxGetLimit",
    "cuCtxSetLimit",
    "cuCtxSynchronize",
    "cuCtxEnablePeerAccess",
    "cuCtxDisablePeerAccess",
    "cuMemGetInfo_v2",
    "cuMemAlloc_v2",
    "cuMemFree_v2",
    "cuMemAllocManaged",
    "cuMemAllocAsync",
    "cuMemFreeAsync",
    "cuMemcpyPeer",
    "cuMemcpyPeerAsync",
    "cuPointerGetAttribute",
    "cuMemcpyHtoD_v2",
    "cuMemcpyDtoH_v2",
    "cuMemcpyDtoD_v2",
    "cuMemcpyHtoDAsync_v2",
    "cuMemcpyDtoHAsync_v2",
    "cuMemcpyDtoDAsync_v2",
    "cuMemsetD8_v2",
    "cuMemsetD16_v2",
    "cuMemsetD32_v2",
    "cuMemsetD8Async",
    "cuMemsetD16Async",
    "cuMemsetD32Async",
    "cuModuleLoadDataEx",
    "cuModuleUnload",
    "cuModuleGetFunction",
    "cuModuleGetGlobal_v2",
    "cuFuncGetModule",
    "cuFuncGetAttribute",
    "cuFuncSetAttribute",
    "cuOccupancyMaxActiveBlocksPerMultiprocessor",
    "cuOccupancyMaxPotentialBlockSize",
    "cuStreamCreateWithPriority",
    "cuStreamDestroy_v2",
    "cuStreamSynchronize",
    "cuStreamQuery",
    "cuStreamGetId",
    "cuStreamGetCtx",
    "cuStreamGetFlags",
    "cuStreamWaitEvent",
    "cuStreamAttachMemAsync",
    "cuStreamBeginCapture_v2",
    "cuStreamEndCapture",
    "cuStreamIsCapturing",
    "cuStreamGetCaptureInfo_v2",
    "cuThreadExchangeStreamCaptureMode",
    "cuLaunchKernel",
    "cuEventCreate",
    "cuEventDestroy_v2",
    "cuEventRecord",
    "cuEventRecordWithFlags",
    "cuEventQuery",
    "cuEventSynchronize",
    "cuEventElapsedTime",
    "cuGraphGetNodes",
    "cuGraphInstantiateWithFlags",
    "cuGraphRetainUserObject",
    "cuUserObjectCreate",
    "cuUserObjectRelease",
    "cuGraphLaunch",
    "cuDeviceGraphMemTrim",
    "cuGraphDestroy",
    "cuGraphExecDestroy",
];

/// Succeeds when driver calls may be made: after [`init`], and not in a forked child.
#[inline]
pub fn ready() -> Result<()> {
    if STATE.load(Ordering::Acquire) == READY {
        Ok(())
    } else {
        Err(not_ready())
    }
}

#[cold]
fn not_ready() -> Error {
    Error::new(
        CUresult::CUDA_ERROR_NOT_INITIALIZED,
        match STATE.load(Ordering::Acquire) {
            FORKED => {
                "this is a forked process: CUDA state does not survive fork; call Cuda.init \
                       in a process that has not used CUDA before it forked"
            }
            _ => "Cuda.init was not called",
        },
    )
}

/// Whether releases may still call the driver.
pub fn usable() -> bool {
    STATE.load(Ordering::Acquire) == READY
}

/// Loads the driver unless it is loaded, and calls `cuInit(flags)`.
pub fn init(flags: u32) -> Result<()> {
    if STATE.load(Ordering::Acquire) == FORKED {
        return Err(not_ready());
    }
    let mut loaded = LOADED.lock().unwrap_or_else(|e| e.into_inner());
    if loaded.is_none() {
        let found = load()?;
        require_symbols()?;
        #[cfg(unix)]
        // SAFETY: registers a handler that only stores to an atomic.
        unsafe {
            libc::pthread_atfork(None, None, Some(mark_forked))
        };
        *loaded = Some(found);
    }
    driver!(cuInit(flags)).map_err(|e| {
        let name = loaded.as_ref().map_or("", |l| l.description.as_str());
        match flags {
            0 => e.explained(format!("the driver {name} refused to start")),
            _ => e.explained(format!(
                "the driver {name} refused to start with flags {flags}"
            )),
        }
    })?;
    STATE.store(READY, Ordering::Release);
    Ok(())
}

#[cfg(unix)]
extern "C" fn mark_forked() {
    STATE.store(FORKED, Ordering::Release);
}

/// Whether the calling thread is the one that the process began with, or nobody can tell.
pub fn is_main_thread() -> bool {
    #[cfg(target_os = "linux")]
    // SAFETY: both only ask for a number.
    return unsafe { libc::syscall(libc::SYS_gettid) == libc::c_long::from(libc::getpid()) };
    #[cfg(not(target_os = "linux"))]
    return true;
}

/// Which driver is in use, for people: its path or name, and its CUDA version.
pub fn description() -> String {
    let loaded = LOADED.lock().unwrap_or_else(|e| e.into_inner());
    match loaded.as_ref() {
        None => "no driver loaded".to_string(),
        Some(l) => match version() {
            Ok(v) => format!("{}, CUDA {}.{}", l.description, v / 1000, v % 1000 / 10),
            Err(_) => l.description.clone(),
        },
    }
}

/// The CUDA version of the driver, 12040 for 12.4.
pub fn version() -> Result<i32> {
    ready()?;
    let mut version = 0;
    driver!(cuDriverGetVersion(&mut version))?;
    Ok(version)
}

/// Whether the loaded driver has a function that older drivers lack.
pub fn has(symbol: &str) -> bool {
    // SAFETY: only the presence of the symbol is asked for; it is not called with this type.
    unsafe { sys::culib().get::<*const c_void>(symbol.as_bytes()).is_ok() }
}

fn load() -> Result<Loaded> {
    if statically_linked() {
        return Err(Error::new(
            CUresult::CUDA_ERROR_SHARED_OBJECT_INIT_FAILED,
            "this program is linked statically, and such a program cannot load a driver, nor the simulator: \
             link it without -static",
        ));
    }
    let choice = std::env::var_os("CUDAGRAPH_DRIVER").unwrap_or_default();
    let (candidates, label, wrong, mend) = match choice.to_str() {
        Some("" | "system") => (
            SYSTEM_NAMES.iter().map(PathBuf::from).collect(),
            "",
            "no CUDA driver found".to_string(),
            "Install the NVIDIA driver, or set CUDAGRAPH_DRIVER=sim to run on the simulator, or to the \
             path of a libcuda",
        ),
        Some("sim") => (
            simulator_candidates(),
            "simulator ",
            "the simulator, CUDAGRAPH_DRIVER=sim, was not found".to_string(),
            "It is installed with the package, as lib/cudagraph/libcudagraph_sim.so; if that is elsewhere, set \
             CUDAGRAPH_SIM to the file",
        ),
        _ => (
            vec![PathBuf::from(&choice)],
            "",
            format!("CUDAGRAPH_DRIVER={} cannot be used", choice.to_string_lossy()),
            "It must be the path of a libcuda; CUDAGRAPH_DRIVER=sim is the simulator, and unset it is the \
             installed driver",
        ),
    };
    let mut tried = Vec::new();
    for candidate in &candidates {
        if candidate.is_absolute() && !candidate.exists() {
            tried.push(format!("{} (no such file)", candidate.display()));
            continue;
        }
        // SAFETY: loading a driver runs its constructors, which is what the user asked for.
        match unsafe { libloading::Library::new(candidate) } {
            Ok(library) => {
                same_library(&library, candidate)?;
                let description = format!("{label}{}", candidate.display());
                return Ok(Loaded {
                    _library: library,
                    description,
                });
            }
            // The loader's own words: which file, or which of the libraries that it needs.
            Err(libloading::Error::DlOpen { source }) => {
                tried.push(format!("{} ({source})", candidate.display()));
            }
            Err(e) => tried.push(format!("{} ({e})", candidate.display())),
        }
    }
    Err(Error::new(
        CUresult::CUDA_ERROR_SHARED_OBJECT_INIT_FAILED,
        format!("{wrong}: tried {}. {mend}", tried.join(", ")),
    ))
}

#[cfg(all(unix, not(target_os = "macos")))]
const SYSTEM_NAMES: &[&str] = &["libcuda.so.1", "libcuda.so"];
#[cfg(target_os = "macos")]
const SYSTEM_NAMES: &[&str] = &["libcuda.dylib"];
#[cfg(windows)]
const SYSTEM_NAMES: &[&str] = &["nvcuda.dll"];

/// Whether this program has no loader. What it opens then brings a second C library along, and crashes.
#[cfg(target_os = "linux")]
fn statically_linked() -> bool {
    unsafe extern "C" fn look(
        object: *mut libc::dl_phdr_info,
        _size: usize,
        loader_found: *mut c_void,
    ) -> libc::c_int {
        // SAFETY: the caller passes an object that is there while this runs, and the flag below.
        unsafe {
            let name = (*object).dlpi_name;
            // The C library has a path; the program itself has no name, and the kernel's part no path.
            if !name.is_null() && *name.cast::<u8>() == b'/' {
                *loader_found.cast::<bool>() = true;
                return 1;
            }
        }
        0
    }
    let mut loader_found = false;
    // SAFETY: `look` only reads what it is given, and the flag lives until the call returns.
    unsafe { libc::dl_iterate_phdr(Some(look), (&raw mut loader_found).cast()) };
    !loader_found
}

#[cfg(not(target_os = "linux"))]
fn statically_linked() -> bool {
    false
}

/// Checks that cudarc's functions come from the library that was chosen.
fn same_library(library: &libloading::Library, path: &Path) -> Result<()> {
    let wrong = |what: String| Error::new(CUresult::CUDA_ERROR_SHARED_OBJECT_INIT_FAILED, what);
    // SAFETY: the symbol's address is compared, never called through this type.
    let ours = unsafe { library.get::<*const c_void>(b"cuInit") }.map_err(|_| {
        wrong(format!(
            "{} is not a CUDA driver: it has no cuInit",
            path.display()
        ))
    })?;
    // `culib` panics when it finds no library at all.
    let theirs = std::panic::catch_unwind(|| {
        // SAFETY: as above.
        unsafe {
            sys::culib()
                .get::<*const c_void>(b"cuInit")
                .map(|s| *s as usize)
        }
    });
    match theirs {
        Ok(Ok(address)) if address == *ours as usize => Ok(()),
        // musl finds a library that is already loaded by the name under which it is found, not by its SONAME.
        _ if cfg!(target_env = "musl") => Err(wrong(format!(
            "{} cannot be used: with musl, LD_LIBRARY_PATH has to name a folder in which libcuda.so \
             is a link to it",
            path.display()
        ))),
        _ => Err(wrong(format!(
            "{} cannot be used: another CUDA driver is loaded in this process, or its SONAME is \
             not libcuda.so",
            path.display()
        ))),
    }
}

/// Every place where the simulator may be: beside the program in a build tree, in the library
/// folder of the program's prefix, of the active OCaml installation, or where CUDAGRAPH_SIM says.
fn simulator_candidates() -> Vec<PathBuf> {
    const NAME: &str = "libcudagraph_sim.so";
    if let Some(path) = std::env::var_os("CUDAGRAPH_SIM") {
        return vec![PathBuf::from(path)];
    }
    let mut places = Vec::new();
    let program = std::env::current_exe()
        .and_then(|p| p.canonicalize())
        .unwrap_or_default();
    let here = std::env::current_dir().unwrap_or_default();
    for folder in program
        .ancestors()
        .skip(1)
        .take(6)
        .chain(here.ancestors().take(6))
    {
        places.push(folder.join("sim").join(NAME));
        places.push(folder.join("lib/cudagraph").join(NAME));
        places.push(folder.join(NAME));
    }
    let installed = |root: PathBuf| root.join("cudagraph").join(NAME);
    for variable in ["OCAMLPATH", "CAML_LD_LIBRARY_PATH"] {
        let paths = std::env::var_os(variable).unwrap_or_default();
        for path in std::env::split_paths(&paths).filter(|p| p.is_absolute()) {
            places.push(path.join(NAME));
            places.push(installed(path));
        }
    }
    if let Some(prefix) = std::env::var_os("OPAM_SWITCH_PREFIX") {
        places.push(installed(PathBuf::from(prefix).join("lib")));
    }
    places.push(installed(PathBuf::from(env!("CUDAGRAPH_OCAML_LIB"))));
    let found: Vec<PathBuf> = places
        .iter()
        .filter(|p| p.exists())
        .take(2)
        .cloned()
        .collect();
    if !found.is_empty() {
        return found;
    }
    // Only for the error text: the likeliest places, which are the prefix of an installed program and the
    // OCaml installation.
    let prefix = program.ancestors().nth(2).map(|p| installed(p.join("lib")));
    prefix.into_iter().chain(places.pop()).collect()
}

fn require_symbols() -> Result<()> {
    let missing: Vec<&str> = REQUIRED.iter().copied().filter(|s| !has(s)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let mut version = 0;
    if has("cuDriverGetVersion") {
        driver!(cuDriverGetVersion(&mut version))?;
    }
    Err(Error::new(
        CUresult::CUDA_ERROR_NOT_SUPPORTED,
        format!(
            "the driver (CUDA {}.{}) is too old: it has no {}; CUDA 12.0 or newer is needed",
            version / 1000,
            version % 1000 / 10,
            missing.join(", ")
        ),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// cudarc panics in a call of a function that the driver lacks.
    #[test]
    fn whatever_is_called_is_required() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/driver");
        let mut calls = Vec::new();
        for file in std::fs::read_dir(folder).expect("the sources are there") {
            let text = std::fs::read_to_string(file.expect("a file").path()).expect("a text");
            for before in ["driver!(", "sys::", "b\""] {
                for (at, _) in text.match_indices(before) {
                    let name: String = text[at + before.len()..]
                        .trim_start()
                        .chars()
                        .take_while(|c| c.is_ascii_alphanumeric() || *c == '_')
                        .collect();
                    if name.starts_with("cu") && name != "culib" {
                        calls.push(name);
                    }
                }
            }
        }
        // Asked for with `has` first.
        calls.retain(|name| name != "cuFuncGetParamInfo");
        assert!(calls.len() > 100, "{calls:?}");
        calls.retain(|name| !REQUIRED.contains(&name.as_str()));
        assert!(calls.is_empty(), "{calls:?}");
    }
}
