//! Functions for tests, beyond the driver: `cusim*`.

use super::text;
use crate::{entry, faults, ledger, memory, report, worker};
use std::ffi::c_char;

/// What a question is answered with where there is nothing to ask: after a fork.
fn ask(answer: impl FnOnce() -> u64) -> u64 {
    if entry::is_forked() {
        return 0;
    }
    answer()
}

fn count(kind: *const c_char, pick: fn((u64, u64)) -> u64) -> u64 {
    let kind = text(kind).ok().and_then(ledger::kind);
    kind.map_or(u64::MAX, |kind| pick(ledger::counts(kind)))
}

/// How many objects of a kind are live; all ones for an unknown kind.
#[no_mangle]
pub extern "C" fn cusimLive(kind: *const c_char) -> u64 {
    count(kind, |(made, destroyed)| made - destroyed)
}

/// How many objects of a kind were made.
#[no_mangle]
pub extern "C" fn cusimMade(kind: *const c_char) -> u64 {
    count(kind, |(made, _)| made)
}

/// How many objects of a kind were destroyed.
#[no_mangle]
pub extern "C" fn cusimDestroyed(kind: *const c_char) -> u64 {
    count(kind, |(_, destroyed)| destroyed)
}

/// Bytes of live device memory.
#[no_mangle]
pub extern "C" fn cusimBytesLive() -> u64 {
    ask(memory::bytes_live)
}

/// Calls of a function so far, with or without its version; of all functions for null.
#[no_mangle]
pub extern "C" fn cusimCalls(function: *const c_char) -> u64 {
    ledger::calls(text(function).ok())
}

/// Faults of kernels and copies so far.
#[no_mangle]
pub extern "C" fn cusimFaults() -> u64 {
    ledger::faults()
}

/// Uses of handles that were not live so far.
#[no_mangle]
pub extern "C" fn cusimBadHandles() -> u64 {
    ledger::bad_handles()
}

/// Replaces the rules by which calls fail; null or an empty text ends all. 0, or 1 for a text that
/// cannot be read, which changes nothing.
#[no_mangle]
pub extern "C" fn cusimFail(spec: *const c_char) -> i32 {
    if entry::is_forked() {
        return 1;
    }
    match faults::set(text(spec).unwrap_or("")) {
        Ok(()) => 0,
        Err(why) => {
            report::say(&why);
            1
        }
    }
}

/// Holds all streams: what is enqueued stays pending until [`cusimResume`].
#[no_mangle]
pub extern "C" fn cusimPause() {
    worker::pause();
}

/// Lets held streams go on.
#[no_mangle]
pub extern "C" fn cusimResume() {
    if !entry::is_forked() {
        worker::resume();
    }
}

/// Writes the table of what is live to stderr, as at exit with `CUDAGRAPH_SIM_REPORT=1`.
#[no_mangle]
pub extern "C" fn cusimReport() {
    if !entry::is_forked() {
        report::at_exit();
    }
}
