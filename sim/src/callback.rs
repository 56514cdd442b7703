//! Functions of the program that the driver calls. They may not call the driver.

use crate::entry;
use crate::table::lock;
use crate::work::Host;
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex};

/// Calls a function of the program on this thread.
pub fn call(host: Host) {
    // SAFETY: C passes a function of this type, with data that it vouches for.
    let function: extern "C" fn(usize) = unsafe { std::mem::transmute::<usize, _>(host.function) };
    entry::callback(|| function(host.data));
}

#[derive(Default)]
struct Later {
    calls: VecDeque<Host>,
    started: bool,
}

static LATER: Mutex<Later> = Mutex::new(Later {
    calls: VecDeque::new(),
    started: false,
});
static FILLED: Condvar = Condvar::new();

/// Calls a function of the program soon, on a thread of the driver.
pub fn call_later(host: Host) {
    let mut later = lock(&LATER);
    later.calls.push_back(host);
    if !later.started {
        let thread = std::thread::Builder::new().name("cuda destructors".to_string());
        later.started = thread.spawn(work).is_ok();
    }
    FILLED.notify_one();
}

fn work() {
    let mut later = lock(&LATER);
    loop {
        match later.calls.pop_front() {
            Some(host) => {
                drop(later);
                call(host);
                later = lock(&LATER);
            }
            None => later = FILLED.wait(later).unwrap_or_else(|e| e.into_inner()),
        }
    }
}
