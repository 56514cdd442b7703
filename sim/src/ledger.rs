//! Counts of everything that was made and destroyed, calls, faults and misused handles.

use crate::table::lock;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::Mutex;

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Kind {
    Context,
    Module,
    Stream,
    Event,
    Graph,
    Exec,
    Memory,
    Host,
}

/// The kinds with the names that reports and `cusim*` functions use.
pub const KINDS: [(Kind, &str); 8] = [
    (Kind::Context, "context"),
    (Kind::Module, "module"),
    (Kind::Stream, "stream"),
    (Kind::Event, "event"),
    (Kind::Graph, "graph"),
    (Kind::Exec, "exec"),
    (Kind::Memory, "memory"),
    (Kind::Host, "host"),
];

static MADE: [AtomicU64; 8] = [const { AtomicU64::new(0) }; 8];
static DESTROYED: [AtomicU64; 8] = [const { AtomicU64::new(0) }; 8];
static FAULTS: AtomicU64 = AtomicU64::new(0);
static BAD_HANDLES: AtomicU64 = AtomicU64::new(0);
static CALLS: Mutex<Option<HashMap<&'static str, u64>>> = Mutex::new(None);

/// Counts a new object.
pub fn made(kind: Kind) {
    MADE[kind as usize].fetch_add(1, Relaxed);
}

/// Counts an object that is gone.
pub fn destroyed(kind: Kind) {
    DESTROYED[kind as usize].fetch_add(1, Relaxed);
}

/// Made and destroyed so far.
pub fn counts(kind: Kind) -> (u64, u64) {
    (
        MADE[kind as usize].load(Relaxed),
        DESTROYED[kind as usize].load(Relaxed),
    )
}

/// The kind with a name.
pub fn kind(name: &str) -> Option<Kind> {
    KINDS
        .iter()
        .find(|(_, n)| *n == name)
        .map(|(kind, _)| *kind)
}

/// Counts a fault of a kernel or copy.
pub fn fault() {
    FAULTS.fetch_add(1, Relaxed);
}

/// Faults so far.
pub fn faults() -> u64 {
    FAULTS.load(Relaxed)
}

/// Counts a use of a handle that is not live.
pub fn bad_handle() {
    BAD_HANDLES.fetch_add(1, Relaxed);
}

/// Uses of dead handles so far.
pub fn bad_handles() -> u64 {
    BAD_HANDLES.load(Relaxed)
}

/// Counts a call; gives its number among the calls of this function and among all calls.
pub fn call(name: &'static str) -> (u64, u64) {
    static ALL: AtomicU64 = AtomicU64::new(0);
    let mut calls = lock(&CALLS);
    let count = calls
        .get_or_insert_with(HashMap::new)
        .entry(name)
        .or_insert(0);
    *count += 1;
    (*count, ALL.fetch_add(1, Relaxed) + 1)
}

/// Calls so far: of one function, or of all.
pub fn calls(name: Option<&str>) -> u64 {
    let calls = lock(&CALLS);
    let Some(calls) = calls.as_ref() else {
        return 0;
    };
    match name {
        Some(name) => calls.get(name).copied().unwrap_or(0),
        None => calls.values().sum(),
    }
}

/// A table of what is live, for people.
pub fn report() -> String {
    let mut text = String::from("simulator: kind       made  destroyed       live\n");
    for (kind, name) in KINDS {
        let (made, destroyed) = counts(kind);
        let live = made - destroyed;
        text += &format!("simulator: {name:<8} {made:>6} {destroyed:>10} {live:>10}\n");
    }
    text += &format!(
        "simulator: {} bytes of device memory live, {} faults, {} uses of dead handles\n",
        crate::memory::bytes_live(),
        faults(),
        bad_handles()
    );
    text
}
