//! CUDA graphs and the CUDA driver for OCaml: the Rust core.
//!
//! [`driver`] is safe Rust over the CUDA driver: it owns every handle and decides what is retained and
//! for how long. [`nvrtc`] is the compiler of CUDA C. Both know nothing of OCaml. `stubs` is what OCaml
//! calls: it converts values, releases the runtime lock around calls that can block, and decides nothing.
//!
//! Data flows one way: OCaml value -> stub -> driver layer -> CUDA. A failure comes back as a
//! status and a text; the OCaml side makes the exception. Nothing here raises into OCaml and no
//! panic leaves a stub.

pub mod driver;
pub mod nvrtc;
mod os_bytes;
// The stubs need the OCaml runtime, which a Rust test executable does not have.
#[cfg(not(test))]
mod stubs;
