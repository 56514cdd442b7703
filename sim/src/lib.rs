//! A CUDA driver on the CPU.
//!
//! It exports the driver's C functions, runs streams asynchronously on threads, captures,
//! instantiates and replays graphs, and interprets PTX. It checks every access of every kernel and
//! copy, counts every handle, and can fail any chosen call.
//!
//! `api` holds the C functions by area; each checks its handles and arguments and calls the modules
//! beside it, which hold the state: one concept a file.

pub mod api;
pub mod callback;
pub mod capture;
pub mod context;
pub mod copy;
pub mod device;
pub mod entry;
pub mod event;
pub mod faults;
pub mod graph;
pub mod ledger;
pub mod memory;
pub mod module;
pub mod report;
pub mod status;
pub mod stream;
pub mod table;
pub mod work;
pub mod worker;
