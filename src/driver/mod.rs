//! Safe Rust over the CUDA driver: one file per concept.
//!
//! Lock order, outermost first: the calls that a reset waits for, an exec, a graph or an event, a stream, a capture, the gate, the
//! capture registry, a family of graphs.
//! None of these is ever taken while the OCaml runtime lock is held, except for an instant.

pub mod argument;
pub mod capture;
pub mod context;
pub mod copy;
pub mod device;
pub mod error;
pub mod event;
pub mod family;
pub mod foreign;
pub mod gate;
pub mod graph;
pub mod graph_memory;
#[cfg(all(test, loom))]
mod interleavings;
pub mod launch;
pub mod library;
pub mod life;
pub mod memory;
pub mod module;
pub mod pace;
pub mod pressure;
pub mod queue;
pub mod release;
pub mod reset;
pub mod retain;
pub mod stream;
pub mod stream_memory;
pub mod stream_work;
pub mod sync;

pub use error::{Error, Result};

/// Calls a driver function and turns its status into a `Result` that knows the function's name.
macro_rules! driver {
    ($name:ident ( $($arg:expr),* $(,)? )) => {
        $crate::driver::error::check(
            stringify!($name),
            // SAFETY: `library::ready` has found the symbol; handles come from live owners of this
            // layer, and every pointer is to a local or to memory that outlives the call.
            unsafe { cudarc::driver::sys::$name($($arg),*) },
        )
    };
}
pub(crate) use driver;
