//! What every C function does first and last: count, fail on demand, catch panics.

use crate::ledger::Function;
use crate::report;
use crate::status::{Result, NOT_INITIALIZED, NOT_PERMITTED, UNKNOWN};
use crate::{faults, stream};
use std::cell::Cell;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Once;

static INITIALIZED: AtomicBool = AtomicBool::new(false);
static FORKED: AtomicBool = AtomicBool::new(false);
static REPORT: AtomicBool = AtomicBool::new(false);

thread_local! {
    static IN_CALLBACK: Cell<bool> = const { Cell::new(false) };
}

/// Starts the driver: reads the environment once.
pub fn initialize() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        if let Ok(spec) = std::env::var("CUDAGRAPH_SIM_FAIL") {
            if let Err(text) = faults::set(&spec) {
                report::say(&format!("CUDAGRAPH_SIM_FAIL: {text}"));
            }
        }
        let wanted = std::env::var("CUDAGRAPH_SIM_REPORT").is_ok_and(|v| v != "0" && !v.is_empty());
        REPORT.store(wanted, Ordering::Release);
        // SAFETY: both register a plain function of this library, which is never unloaded.
        unsafe {
            libc::pthread_atfork(None, None, Some(forked));
            libc::atexit(exiting);
        }
        INITIALIZED.store(true, Ordering::Release);
    });
}

extern "C" fn forked() {
    FORKED.store(true, Ordering::Release);
}

extern "C" fn exiting() {
    report::silence();
    if REPORT.load(Ordering::Acquire) && !is_forked() {
        report::at_exit();
    }
}

/// Whether this process is a child that was forked from one that uses the simulator. Neither the
/// threads that do the work nor the locks that they hold come along.
pub fn is_forked() -> bool {
    FORKED.load(Ordering::Acquire)
}

/// Runs a function of the program that may not call the driver.
pub fn callback(function: impl FnOnce()) {
    IN_CALLBACK.set(true);
    function();
    IN_CALLBACK.set(false);
}

/// Runs a function whose NULL stream is the calling thread's own.
pub fn per_thread(call: impl FnOnce() -> i32) -> i32 {
    let before = stream::set_per_thread(true);
    let status = call();
    stream::set_per_thread(before);
    status
}

/// Runs a function that works before `cuInit`.
pub fn run_early(function: &'static Function, body: impl FnOnce() -> Result<()>) -> i32 {
    if is_forked() {
        return NOT_INITIALIZED;
    }
    if IN_CALLBACK.get() {
        return NOT_PERMITTED;
    }
    function.called();
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        faults::inject(function.name)?;
        body()
    }));
    match outcome {
        Ok(Ok(())) => 0,
        Ok(Err(status)) => status,
        Err(_) => {
            report::say(&format!(
                "{} failed inside; please report it",
                function.name
            ));
            UNKNOWN
        }
    }
}

/// Runs a function that needs `cuInit`.
pub fn run(function: &'static Function, body: impl FnOnce() -> Result<()>) -> i32 {
    if !INITIALIZED.load(Ordering::Acquire) {
        return NOT_INITIALIZED;
    }
    run_early(function, body)
}
