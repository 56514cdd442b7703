//! What OCaml calls: one function per `external` of `ocaml/cudagraph/raw.ml` and `raw_nvrtc.ml`.
//!
//! Every stub has the same shape: read the arguments into Rust values, release the runtime lock if
//! the call may block, let the driver layer decide, drop all Rust values, build the OCaml result.
//! Values of OCaml are never touched while the lock is released.

mod context;
mod custom;
mod device;
mod event;
mod graph;
mod interop;
mod launch;
mod managed;
mod memory;
mod module;
mod nvrtc;
mod roots;
mod run;
mod stream;
mod value;
