//! A CUDA driver on the CPU.
