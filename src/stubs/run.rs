//! Running the driver layer from a stub: the runtime lock, panics, and results.

use super::roots;
use super::value::{self, int, UNIT};
use crate::driver::{reset, Error, Result};
use ocaml::sys::Value;
use std::cell::RefCell;
use std::panic::{catch_unwind, AssertUnwindSafe};

extern "C" {
    /// Unlike `caml_enter_blocking_section` this runs no signal handler, whose exception would jump
    /// over the Rust frames below.
    fn caml_enter_blocking_section_no_pending();
    fn caml_leave_blocking_section();
}

thread_local! {
    /// The text that explains the last failure on this thread.
    static DETAIL: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Runs `f` and turns a panic into an error: none may reach OCaml.
pub fn guarded<T>(f: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(f)).unwrap_or_else(|panic| {
        let text = panic
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| panic.downcast_ref::<&str>().copied())
            .unwrap_or("unknown");
        Err(Error::new(
            cudarc::driver::sys::CUresult::CUDA_ERROR_UNKNOWN,
            format!("a fault inside cudagraph, please report it: {text}"),
        ))
    })
}

/// Runs `f`, which calls the driver, with the runtime lock released. `f` must touch no OCaml value.
pub fn blocking<T>(f: impl FnOnce() -> Result<T>) -> Result<T> {
    unlocked(|| {
        let _held_off = reset::hold_off();
        f()
    })
}

/// [`blocking`] for what a reset of a context need not wait for.
pub fn unlocked<T>(f: impl FnOnce() -> Result<T>) -> Result<T> {
    // SAFETY: called from a stub, which holds the lock; the two calls are paired since `guarded`
    // catches every unwinding.
    unsafe {
        caml_enter_blocking_section_no_pending();
        let result = guarded(f);
        caml_leave_blocking_section();
        roots::sweep(value::runtime());
        result
    }
}

/// Runs `f` with the runtime lock held: the status of what was done at once, if it was.
pub fn at_once(f: impl FnOnce() -> Option<Result<()>>) -> Option<Value> {
    let done = guarded(|| Ok(f())).transpose()?;
    Some(status(done.and_then(|result| result)))
}

fn fail(error: Error) -> Value {
    let status = int(error.status as isize);
    DETAIL.with_borrow_mut(|detail| *detail = error.detail);
    status
}

/// A result as an OCaml status.
pub fn status(result: Result<()>) -> Value {
    match result {
        Ok(()) => UNIT,
        Err(error) => fail(error),
    }
}

/// A result as an OCaml `('a, status) result`; `make` builds the value.
pub fn value<T>(result: Result<T>, make: impl FnOnce(T) -> Value) -> Value {
    match result {
        Ok(x) => value::block(0, &[make(x)]),
        Err(error) => value::block(1, &[fail(error)]),
    }
}

/// Takes the text of the last failure.
pub fn take_detail() -> String {
    DETAIL.with_borrow_mut(std::mem::take)
}

/// `external detail : unit -> string`
#[no_mangle]
extern "C" fn cudagraph_detail(_unit: Value) -> Value {
    value::string(take_detail().as_bytes())
}
