//! Loading the driver that `CUDAGRAPH_DRIVER` names, as the library does, and checking its answers.

use cudarc::driver::sys::{self, CUresult};
use std::ffi::c_void;
use std::path::PathBuf;

/// Calls a function of the driver; the program ends when it fails.
macro_rules! call {
    ($name:ident ( $($argument:expr),* $(,)? )) => {{
        // SAFETY: `work.rs` passes handles that are alive and pointers to locals, in the types that
        // the driver's declarations ask for.
        let status = unsafe { cudarc::driver::sys::$name($($argument),*) };
        if status != cudarc::driver::sys::CUresult::CUDA_SUCCESS {
            $crate::driver::fail(stringify!($name), status);
        }
    }};
}
pub(crate) use call;

/// Ends the program: after a failure there is nothing to measure.
#[cold]
pub fn fail(name: &str, status: CUresult) -> ! {
    eprintln!("floor: {name}: {status:?}");
    std::process::exit(1)
}

/// Loads the driver and starts it; its description.
pub fn load() -> Result<String, String> {
    let choice = std::env::var("CUDAGRAPH_DRIVER").unwrap_or_default();
    let names = match choice.as_str() {
        "" | "system" => vec!["libcuda.so.1".into(), "libcuda.so".into()],
        "sim" => vec![simulator()],
        path => vec![PathBuf::from(path)],
    };
    let mut tried = Vec::new();
    for name in &names {
        // SAFETY: loading a driver runs its constructors, which is what was asked for.
        match unsafe { libloading::Library::new(name) } {
            Ok(library) => {
                check_same(&library)?;
                // cudarc's functions are in it until the program ends.
                std::mem::forget(library);
                call!(cuInit(0));
                return Ok(name.display().to_string());
            }
            Err(e) => tried.push(e.to_string()),
        }
    }
    Err(format!("no CUDA driver: {}", tried.join("; ")))
}

/// Where CUDAGRAPH_SIM says, or beside the program.
fn simulator() -> PathBuf {
    std::env::var_os("CUDAGRAPH_SIM").map_or_else(
        || {
            let program = std::env::current_exe().unwrap_or_default();
            program.with_file_name("libcudagraph_sim.so")
        },
        PathBuf::from,
    )
}

/// cudarc opens the driver by name, which finds a library that is loaded already under that name.
fn check_same(library: &libloading::Library) -> Result<(), String> {
    // SAFETY: only the addresses are looked at.
    let addresses = unsafe {
        [library, sys::culib()].map(|l| l.get::<*const c_void>(b"cuInit").map(|s| *s as usize))
    };
    match addresses {
        [Ok(chosen), Ok(used)] if chosen == used => Ok(()),
        _ => Err("another CUDA driver than the chosen one would be used".to_string()),
    }
}
