//! Counts: what was made and destroyed, which functions were called, how often programs erred.

use std::ptr;
use std::sync::atomic::Ordering::{self, Relaxed};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64};

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
    AsyncMemory,
    HostMemory,
    UserObject,
    Pool,
}

/// The kinds with the names that reports and `cusim*` functions use.
pub const KINDS: [(Kind, &str); 11] = [
    (Kind::Context, "context"),
    (Kind::Module, "module"),
    (Kind::Stream, "stream"),
    (Kind::Event, "event"),
    (Kind::Graph, "graph"),
    (Kind::Exec, "exec"),
    (Kind::Memory, "memory"),
    (Kind::AsyncMemory, "async"),
    (Kind::HostMemory, "host"),
    (Kind::UserObject, "object"),
    (Kind::Pool, "pool"),
];

static MADE: [AtomicU64; KINDS.len()] = [const { AtomicU64::new(0) }; KINDS.len()];
static DESTROYED: [AtomicU64; KINDS.len()] = [const { AtomicU64::new(0) }; KINDS.len()];
static FAULTS: AtomicU64 = AtomicU64::new(0);
static BAD_HANDLES: AtomicU64 = AtomicU64::new(0);

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
    // Destroyed first: another thread may make and destroy in between.
    let destroyed = DESTROYED[kind as usize].load(Relaxed);
    (MADE[kind as usize].load(Relaxed).max(destroyed), destroyed)
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

/// A function of the interface, with its count of calls.
pub struct Function {
    /// Its name.
    pub name: &'static str,
    calls: AtomicU64,
    listed: AtomicBool,
    refused: AtomicBool,
    next: AtomicPtr<Function>,
}

/// The functions that were called so far, linked.
static CALLED: AtomicPtr<Function> = AtomicPtr::new(ptr::null_mut());

impl Function {
    /// A function that was not called yet.
    pub const fn new(name: &'static str) -> Self {
        Function {
            name,
            calls: AtomicU64::new(0),
            listed: AtomicBool::new(false),
            refused: AtomicBool::new(false),
            next: AtomicPtr::new(ptr::null_mut()),
        }
    }

    /// Whether this is the first time that somebody asks.
    pub fn is_first_refusal(&self) -> bool {
        !self.refused.swap(true, Relaxed)
    }

    /// Counts a call.
    pub fn called(&'static self) {
        self.calls.fetch_add(1, Relaxed);
        if self.listed.load(Relaxed) || self.listed.swap(true, Relaxed) {
            return;
        }
        let this = ptr::from_ref(self).cast_mut();
        let mut head = CALLED.load(Ordering::Acquire);
        loop {
            self.next.store(head, Relaxed);
            match CALLED.compare_exchange(head, this, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return,
                Err(now) => head = now,
            }
        }
    }
}

/// Every function that was called, with its count.
pub fn functions() -> Vec<(&'static str, u64)> {
    let mut found = Vec::new();
    let mut at = CALLED.load(Ordering::Acquire);
    // SAFETY: the list links statics, and a function is in it only once.
    while let Some(function) = unsafe { at.as_ref() } {
        found.push((function.name, function.calls.load(Relaxed)));
        at = function.next.load(Relaxed);
    }
    found
}

/// Calls so far: of one function, with or without its version, or of all.
pub fn calls(name: Option<&str>) -> u64 {
    functions()
        .into_iter()
        .filter(|(called, _)| name.is_none_or(|name| name == *called || name == base(called)))
        .map(|(_, count)| count)
        .sum()
}

/// The name of a function without its version.
pub fn base(name: &str) -> &str {
    match name.rfind("_v") {
        Some(at) if name[at + 2..].bytes().all(|b| b.is_ascii_digit()) => &name[..at],
        _ => name,
    }
}
