//! What a graph shares with the execs that were made from it.
//!
//! The driver does not guard it: two threads that destroy a graph and its exec, or make another exec, at
//! the same time crash the process. An update from the graph is counted in because NVIDIA's documentation
//! lets one thread at a time use a graph. Here such a meeting is counted with the uses of dead handles.

use crate::{faults, ledger};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

/// A graph with its execs.
#[derive(Default)]
pub struct Family(AtomicUsize);

/// While a call is about one of the family.
pub struct Inside(Arc<Family>);

impl Family {
    /// A call begins. In tests it stays for as long as the rule for `cuGraph/inside` says.
    pub fn enter(self: &Arc<Self>) -> Inside {
        if self.0.fetch_add(1, Ordering::AcqRel) > 0 {
            ledger::bad_handle();
        }
        let inside = Inside(self.clone());
        faults::dwell("cuGraph/inside");
        inside
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        self.0 .0.fetch_sub(1, Ordering::AcqRel);
    }
}
