//! CUDA graphs and the CUDA driver for OCaml: the Rust core.
