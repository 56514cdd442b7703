//! What every C function does first and last: count, fail on demand, catch panics.

use crate::status::{Result, NOT_INITIALIZED, UNKNOWN};
use crate::{faults, ledger};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Once;

static INITIALIZED: AtomicBool = AtomicBool::new(false);
static FORKED: AtomicBool = AtomicBool::new(false);

/// Starts the driver: reads the environment once.
pub fn initialize() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        if let Ok(spec) = std::env::var("CUDAGRAPH_SIM_FAIL") {
            if let Err(text) = faults::set(&spec) {
                eprintln!("simulator: CUDAGRAPH_SIM_FAIL: {text}");
            }
        }
        // SAFETY: both register a plain function of this library.
        unsafe {
            libc::pthread_atfork(None, None, Some(forked));
            if std::env::var("CUDAGRAPH_SIM_REPORT").as_deref() == Ok("1") {
                libc::atexit(report);
            }
        }
        INITIALIZED.store(true, Ordering::Release);
    });
}

extern "C" fn forked() {
    FORKED.store(true, Ordering::Release);
}

extern "C" fn report() {
    if !FORKED.load(Ordering::Acquire) {
        eprint!("{}", ledger::report());
    }
}

/// Runs a function that works before `cuInit`.
pub fn run_early(name: &'static str, body: impl FnOnce() -> Result<()>) -> i32 {
    // The threads that do the work do not survive a fork.
    if FORKED.load(Ordering::Acquire) {
        return NOT_INITIALIZED;
    }
    let (nth, total) = ledger::call(name);
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        faults::inject(name, nth, total)?;
        body()
    }));
    match outcome {
        Ok(Ok(())) => 0,
        Ok(Err(status)) => status,
        Err(_) => {
            eprintln!("simulator: {name} failed inside; please report it");
            UNKNOWN
        }
    }
}

/// Runs a function that needs `cuInit`.
pub fn run(name: &'static str, body: impl FnOnce() -> Result<()>) -> i32 {
    if !INITIALIZED.load(Ordering::Acquire) {
        return NOT_INITIALIZED;
    }
    run_early(name, body)
}
