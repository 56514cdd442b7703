//! The interpreter.

// A lane indexes several registers at once.
#![allow(clippy::needless_range_loop)]

pub mod access;
mod address;
mod block;
mod call;
pub mod code;
mod context;
pub mod lanes;
mod meet;
mod memory;
pub mod num;
mod pool;
mod run;
mod special;
mod sync;
mod warp;

pub use run::run;
