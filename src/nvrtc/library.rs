//! The loaded NVRTC: its functions, its version, and the headers that go with it.

use super::places::{places, Place, NAMES};
use super::{headers, Error, Result};
#[cfg(unix)]
use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
#[cfg(not(unix))]
use libloading::Library;
use std::ffi::{c_char, c_int, c_void};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// An `nvrtcProgram`.
pub type Handle = *mut c_void;

macro_rules! functions {
    ($($name:ident: $symbol:literal ($($argument:ty),*);)*) => {
        /// NVRTC's functions, as its header declares them; each answers with an nvrtcResult.
        pub struct Functions {
            $(
                #[doc = concat!("`", $symbol, "`")]
                pub $name: unsafe extern "C" fn($($argument),*) -> c_int,
            )*
        }

        impl Functions {
            fn load(library: &Library) -> std::result::Result<Functions, String> {
                $(
                    // SAFETY: NVRTC's function of this name has had this C type since CUDA 11.1.
                    let $name = match unsafe { library.get($symbol.as_bytes()) } {
                        Ok(symbol) => *symbol,
                        Err(_) => return Err(format!("it has no {}", $symbol)),
                    };
                )*
                Ok(Functions { $($name),* })
            }
        }
    };
}

functions! {
    version: "nvrtcVersion" (*mut c_int, *mut c_int);
    architecture_count: "nvrtcGetNumSupportedArchs" (*mut c_int);
    architectures: "nvrtcGetSupportedArchs" (*mut c_int);
    create: "nvrtcCreateProgram" (
        *mut Handle, *const c_char, *const c_char, c_int, *const *const c_char, *const *const c_char);
    destroy: "nvrtcDestroyProgram" (*mut Handle);
    compile: "nvrtcCompileProgram" (Handle, c_int, *const *const c_char);
    log_size: "nvrtcGetProgramLogSize" (Handle, *mut usize);
    log: "nvrtcGetProgramLog" (Handle, *mut c_char);
    ptx_size: "nvrtcGetPTXSize" (Handle, *mut usize);
    ptx: "nvrtcGetPTX" (Handle, *mut c_char);
    cubin_size: "nvrtcGetCUBINSize" (Handle, *mut usize);
    cubin: "nvrtcGetCUBIN" (Handle, *mut c_char);
    add_expression: "nvrtcAddNameExpression" (Handle, *const c_char);
    lowered_name: "nvrtcGetLoweredName" (Handle, *const c_char, *mut *const c_char);
}

/// An NVRTC that can be used. It stays loaded until the process ends.
pub struct Nvrtc {
    /// Its functions.
    pub functions: Functions,
    /// The file that it was loaded from.
    pub path: PathBuf,
    /// Its CUDA version: (12, 9) for 12.9.
    pub version: (i32, i32),
    /// Where CUDA's headers are, to be searched after the user's own folders.
    pub include_folders: Vec<PathBuf>,
    /// Tells this build from another one of the same version.
    pub fingerprint: Vec<u8>,
    /// Keeps both libraries loaded; none if the functions are not a library's.
    pub libraries: Vec<Library>,
}

static LOADED: Mutex<Option<&'static Nvrtc>> = Mutex::new(None);

impl Nvrtc {
    /// The NVRTC of this process, loaded on first use. After a failure the next call tries again.
    pub fn get() -> Result<&'static Nvrtc> {
        let mut loaded = LOADED.lock().unwrap_or_else(|e| e.into_inner());
        if let Some(nvrtc) = *loaded {
            return Ok(nvrtc);
        }
        let nvrtc: &'static Nvrtc = Box::leak(Box::new(find()?));
        *loaded = Some(nvrtc);
        Ok(nvrtc)
    }

    /// The architectures that it compiles for, 90 for `compute_90`.
    pub fn architectures(&self) -> Result<Vec<i32>> {
        let mut count = 0;
        // SAFETY: writes one int.
        check("nvrtc_get_num_supported_archs", unsafe {
            (self.functions.architecture_count)(&mut count)
        })?;
        let mut found = vec![0; count.max(0) as usize];
        // SAFETY: writes as many ints as it has just said.
        check("nvrtc_get_supported_archs", unsafe {
            (self.functions.architectures)(found.as_mut_ptr())
        })?;
        Ok(found)
    }
}

/// The status of NVRTC's function `name` as a result.
pub fn check(name: &str, status: c_int) -> Result<()> {
    match status {
        0 => Ok(()),
        _ => Err(Error::new(status, name)),
    }
}

fn find() -> Result<Nvrtc> {
    let variables = |name: &str| std::env::var_os(name);
    let mut tried = Vec::new();
    for place in places(&variables) {
        match place {
            Place::Chosen(path) => match load(&path) {
                Ok(nvrtc) => return Ok(nvrtc),
                Err(reason) => {
                    return Err(Error::new(
                        Error::NOT_FOUND,
                        format!(
                        "nvrtc: CUDAGRAPH_NVRTC={} cannot be used: {reason}. It must be the path \
                             of a libnvrtc.so; unset, NVRTC is looked for in the usual places",
                        path.display()
                    ),
                    ))
                }
            },
            Place::System => {
                for name in NAMES {
                    match load(Path::new(name)) {
                        Ok(nvrtc) => return Ok(nvrtc),
                        Err(reason) => tried.push(format!("{name} of the system ({reason})")),
                    }
                }
            }
            Place::Folders(label, folders) => {
                let files = folders
                    .iter()
                    .flat_map(|folder| NAMES.iter().map(|name| folder.join(name)))
                    .filter(|file| file.exists());
                let mut reasons = Vec::new();
                for file in files {
                    match load(&file) {
                        Ok(nvrtc) => return Ok(nvrtc),
                        Err(reason) => reasons.push(format!("{}: {reason}", file.display())),
                    }
                }
                tried.push(match reasons.as_slice() {
                    // The label says it all.
                    [] if folders.is_empty() => label,
                    [] => format!("{label} (no libnvrtc there)"),
                    _ => format!("{label} ({})", reasons.join("; ")),
                });
            }
        }
    }
    Err(Error::new(
        Error::NOT_FOUND,
        format!(
            "nvrtc: no NVRTC of CUDA 12 or 13 was found: tried {}. Install it with the CUDA toolkit or \
             with pip (nvidia-cuda-nvrtc for CUDA 13, nvidia-cuda-nvrtc-cu12 for CUDA 12), or set \
             CUDAGRAPH_NVRTC to the path of a libnvrtc.so",
            tried.join(", ")
        ),
    ))
}

fn open(file: &Path) -> std::result::Result<Library, String> {
    if file.is_absolute() && !file.exists() {
        return Err("no such file".to_string());
    }
    // SAFETY: loading runs the library's constructors, which is what the user asked for.
    #[cfg(unix)]
    let opened = unsafe { Library::open(Some(file), RTLD_NOW | RTLD_LOCAL) };
    // SAFETY: as above.
    #[cfg(not(unix))]
    let opened = unsafe { Library::new(file) };
    opened.map_err(|e| match e {
        // The loader's own words name the file.
        libloading::Error::DlOpen { source } => source.to_string(),
        other => other.to_string(),
    })
}

fn load(file: &Path) -> std::result::Result<Nvrtc, String> {
    let library = open(file)?;
    let functions = Functions::load(&library)?;
    let (mut major, mut minor) = (0, 0);
    // SAFETY: writes two ints.
    let status = unsafe { (functions.version)(&mut major, &mut minor) };
    if status != 0 {
        return Err(format!("nvrtcVersion failed with {status}"));
    }
    if major < 12 {
        return Err(format!(
            "it is NVRTC {major}.{minor}; 12.0 or newer is needed"
        ));
    }
    let path = file_of(functions.version as *const c_void).unwrap_or_else(|| file.to_path_buf());
    // What belongs to a library may be beside the link to it or beside the file itself.
    let real = path.canonicalize().unwrap_or_else(|_| path.clone());
    let places = [path.as_path(), real.as_path()];
    // NVRTC opens its second library by name when it compiles, and where it was loaded from a folder that
    // the system does not search, not every version finds it. One that is loaded already is found.
    let builtins = format!("libnvrtc-builtins.so.{major}.{minor}");
    let builtins = places
        .iter()
        .find_map(|p| open(&p.with_file_name(&builtins)).ok());
    let variables = |name: &str| std::env::var_os(name);
    Ok(Nvrtc {
        functions,
        version: (major, minor),
        include_folders: headers::folders(&places, major, &variables),
        fingerprint: fingerprint(&real),
        libraries: builtins.into_iter().chain([library]).collect(),
        path,
    })
}

/// The file, as the loader calls it, from which the function at this address was loaded.
#[cfg(unix)]
fn file_of(address: *const c_void) -> Option<PathBuf> {
    use crate::os_bytes::OsStrExt;
    use std::ffi::CStr;
    // SAFETY: all zeros is a valid `Dl_info`, a struct of pointers.
    let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: `info` is writable; any address may be asked about.
    if unsafe { libc::dladdr(address, &mut info) } == 0 || info.dli_fname.is_null() {
        return None;
    }
    // SAFETY: the loader's own text, which lives as long as the library is loaded.
    let name = unsafe { CStr::from_ptr(info.dli_fname) };
    std::path::absolute(std::ffi::OsStr::from_bytes(name.to_bytes())).ok()
}

#[cfg(not(unix))]
fn file_of(_address: *const c_void) -> Option<PathBuf> {
    None
}

/// The size of a library and its beginning, which holds its build id and the addresses of its functions.
fn fingerprint(path: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Ok(file) = File::open(path) {
        let size = file.metadata().map_or(0, |m| m.len());
        bytes.extend(size.to_le_bytes());
        // A file that cannot be read to that point only makes the fingerprint shorter.
        let _ = file.take(64 * 1024).read_to_end(&mut bytes);
    }
    bytes
}
