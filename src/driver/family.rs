//! A graph and the execs that were made from it.
//!
//! They share state inside of the driver that it does not guard: destroying one of them while another
//! thread destroys another, or makes one more, crashes the process (measured). So one thread at a time
//! makes or destroys members of a family. Launches pass by: launching one exec while other threads destroyed
//! others of the same graph did no harm (measured).
//!
//! Taken just around the driver call, after every other lock, and never with the OCaml runtime lock held.

use std::sync::{Arc, LazyLock, Mutex, MutexGuard};

/// Whom a graph or an exec is related to.
#[derive(Clone)]
pub struct Family(Arc<Mutex<()>>);

impl Family {
    /// That of a graph which nobody else knows yet.
    pub fn of_its_own() -> Family {
        Family(Arc::new(Mutex::new(())))
    }

    /// Of graphs and execs that other libraries made: nobody has said which of them are related, so all
    /// are.
    pub fn unknown() -> Family {
        static ALL: LazyLock<Family> = LazyLock::new(Family::of_its_own);
        ALL.clone()
    }

    /// No other thread destroys or instantiates one of the family until the guard goes.
    pub fn alone(&self) -> MutexGuard<'_, ()> {
        self.0.lock().unwrap_or_else(|e| e.into_inner())
    }
}
