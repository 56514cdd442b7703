//! The devices: an H200 as the driver describes it, less what a CPU cannot do.

use crate::report;
use crate::status::{Result, INVALID_DEVICE, INVALID_VALUE};
use std::sync::OnceLock;

/// The most devices there can be.
pub const MOST: usize = 16;

/// How many there are: `CUDAGRAPH_SIM_DEVICES`, 1 unless set.
pub fn count() -> i32 {
    static COUNT: OnceLock<i32> = OnceLock::new();
    *COUNT.get_or_init(|| {
        let text = std::env::var("CUDAGRAPH_SIM_DEVICES").unwrap_or_default();
        if text.is_empty() {
            return 1;
        }
        let number = text.parse().ok().filter(|n| (0..=MOST as i32).contains(n));
        number.unwrap_or_else(|| {
            report::say(&format!(
                "CUDAGRAPH_SIM_DEVICES: cannot read {text:?}: a number from 0 to {MOST}"
            ));
            1
        })
    })
}

/// Checks a device number.
pub fn check(device: i32) -> Result<()> {
    if (0..count()).contains(&device) {
        Ok(())
    } else {
        Err(INVALID_DEVICE)
    }
}

/// The name of every device.
pub const NAME: &str = "cudagraph simulator";
/// Threads of a block.
pub const MAX_THREADS: u32 = 1024;
/// Shared memory of a block without asking for more.
pub const SHARED: u32 = 49152;
/// Shared memory of a block for a kernel that asks for it.
pub const SHARED_OPTIN: u32 = 232_448;
/// Threads of a multiprocessor.
pub const THREADS_OF_MULTIPROCESSOR: u32 = 2048;
/// Blocks of a multiprocessor.
pub const BLOCKS_OF_MULTIPROCESSOR: u32 = 32;
/// Registers of a multiprocessor.
pub const REGISTERS: u32 = 65536;

/// The largest block in each dimension.
pub const MAX_BLOCK: [u32; 3] = [1024, 1024, 64];
/// The largest grid in each dimension.
pub const MAX_GRID: [u32; 3] = [i32::MAX as u32, 65535, 65535];

/// Attributes that are not zero, by number (CUdevice_attribute).
const ATTRIBUTES: &[(i32, i32)] = &[
    (1, MAX_THREADS as i32),
    (2, MAX_BLOCK[0] as i32),
    (3, MAX_BLOCK[1] as i32),
    (4, MAX_BLOCK[2] as i32),
    (5, MAX_GRID[0] as i32),
    (6, MAX_GRID[1] as i32),
    (7, MAX_GRID[2] as i32),
    (8, SHARED as i32),
    (9, 65536),     // constant memory
    (10, 32),       // warp
    (11, i32::MAX), // pitch
    (12, REGISTERS as i32),
    (13, 1_980_000), // clock in kHz
    (14, 512),       // texture alignment
    (15, 1),         // copies while kernels run
    (16, 132),       // multiprocessors
    (19, 1),         // maps host memory
    (21, 131_072),   // textures: these sizes are reported, but there are none
    (22, 131_072),
    (23, 65_000),
    (24, 16_384),
    (25, 16_384),
    (26, 16_384),
    (27, 32_768),
    (28, 32_768),
    (29, 2048),
    (30, 512), // surface alignment
    (31, 1),   // concurrent kernels
    (32, 1),   // ECC
    (36, 3_201_000),
    (37, 6144),
    (38, 60 << 20), // L2
    (39, THREADS_OF_MULTIPROCESSOR as i32),
    (40, 3), // copy engines
    (41, 1), // unified addresses
    (42, 32_768),
    (43, 2048),
    (44, 1),
    (45, 32_768),
    (46, 32_768),
    (47, 8192),
    (48, 8192),
    (49, 32_768),
    (51, 32), // texture pitch
    (52, 32_768),
    (53, 32_768),
    (54, 2046),
    (55, 32_768),
    (56, 131_072),
    (57, 65_536),
    (58, 16_384),
    (59, 16_384),
    (60, 16_384),
    (61, 32_768),
    (62, 2048),
    (63, 32_768),
    (64, 32_768),
    (65, 2048),
    (66, 32_768),
    (67, 32_768),
    (68, 2046),
    (69, 268_435_456),
    (70, 131_072),
    (71, 65_000),
    (72, 2_097_120),
    (73, 32_768),
    (74, 32_768),
    (75, 9), // compute capability 9.0
    (77, 32_768),
    (78, 1), // stream priorities
    (79, 1), // L1 for globals
    (80, 1), // L1 for locals
    (81, 233_472),
    (82, REGISTERS as i32),
    (83, 1), // managed memory
    (87, 2), // double is half as fast as single
    (89, 1), // concurrent managed access
    (90, 1), // compute preemption
    (91, 1), // registered memory keeps its address
    (97, SHARED_OPTIN as i32),
    (99, 1), // registers host memory
    (106, BLOCKS_OF_MULTIPROCESSOR as i32),
    (111, 1024), // shared memory that the system takes of a block
    (115, 1),    // memory pools
    (126, 4),    // memory synchronization domains
    (130, 0),
    (131, -1),
    (134, 0),
];

/// An attribute by its number.
pub fn attribute(number: i32, device: i32) -> Result<i32> {
    check(device)?;
    match number {
        33 => Ok(16 + device), // PCI bus
        1..=147 => Ok(ATTRIBUTES
            .iter()
            .find(|(known, _)| *known == number)
            .map_or(0, |(_, value)| *value)),
        _ => Err(INVALID_VALUE),
    }
}

/// The PCI name of a device.
pub fn pci_name(device: i32) -> String {
    format!("0000:{:02X}:00.0", 16 + device)
}
