//! The devices: an H200 as the driver describes it, less what a CPU cannot do.

use crate::status::{Result, INVALID_DEVICE, INVALID_VALUE};

/// How many there are: `CUDAGRAPH_SIM_DEVICES`, 1 unless set.
pub fn count() -> i32 {
    std::env::var("CUDAGRAPH_SIM_DEVICES")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(1)
        .clamp(0, 16)
}

/// Checks a device number.
pub fn check(device: i32) -> Result<()> {
    if (0..count()).contains(&device) {
        Ok(())
    } else {
        Err(INVALID_DEVICE)
    }
}

/// The name of every device, NUL-terminated.
pub const NAME: &str = "cudagraph simulator\0";

/// An attribute by its number (CUdevice_attribute).
pub fn attribute(number: i32, device: i32) -> Result<i32> {
    check(device)?;
    let value = match number {
        1 => 1024,         // threads per block
        2 | 3 => 1024,     // block x, y
        4 => 64,           // block z
        5 => i32::MAX,     // grid x
        6 | 7 => 65535,    // grid y, z
        8 => 49152,        // shared memory per block
        9 => 65536,        // constant memory
        10 => 32,          // warp
        11 => i32::MAX,    // pitch
        12 => 65536,       // registers per block
        13 => 1_980_000,   // clock
        14 => 512,         // texture alignment
        16 => 132,         // multiprocessors
        19 => 1,           // map host memory
        30 => 512,         // surface alignment
        31 => 1,           // concurrent kernels
        32 => 1,           // ECC
        33 => 16 + device, // PCI bus
        36 => 3_201_000,   // memory clock
        37 => 6144,        // memory bus
        38 => 60 << 20,    // L2
        39 => 2048,        // threads per multiprocessor
        40 => 3,           // copy engines
        41 => 1,           // unified addressing
        51 => 32,          // texture pitch alignment
        75 => 9,           // compute capability
        76 => 0,
        78 => 1,       // stream priorities
        79 | 80 => 1,  // L1 for globals, locals
        81 => 233_472, // shared per multiprocessor
        82 => 65536,   // registers per multiproc.
        87 => 2,       // single to double
        90 => 1,       // compute preemption
        97 => 232_448, // shared, opt-in
        106 => 32,     // blocks per multiprocessor
        111 => 1024,   // reserved shared memory
        other if (1..150).contains(&other) => 0,
        _ => return Err(INVALID_VALUE),
    };
    Ok(value)
}
