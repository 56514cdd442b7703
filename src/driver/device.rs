//! Devices: small integers of the driver, their attributes and limits.

use super::{driver, library, Result};
use cudarc::driver::sys;

/// The number of devices.
pub fn count() -> Result<i32> {
    library::ready()?;
    let mut count = 0;
    driver!(cuDeviceGetCount(&mut count))?;
    Ok(count)
}

/// The device with an ordinal.
pub fn get(ordinal: i32) -> Result<i32> {
    library::ready()?;
    let mut device = 0;
    driver!(cuDeviceGet(&mut device, ordinal)).map_err(|e| {
        let count = count().unwrap_or(0);
        e.explained(format!("ordinal {ordinal}, and there are {count} devices"))
    })?;
    Ok(device)
}

/// The device's name.
pub fn name(device: i32) -> Result<String> {
    library::ready()?;
    let mut buffer = [0u8; 256];
    driver!(cuDeviceGetName(
        buffer.as_mut_ptr().cast(),
        buffer.len() as i32,
        device
    ))?;
    let end = buffer.iter().position(|b| *b == 0).unwrap_or(buffer.len());
    Ok(String::from_utf8_lossy(&buffer[..end]).into_owned())
}

/// The device's memory in bytes.
pub fn total_memory(device: i32) -> Result<usize> {
    library::ready()?;
    let mut bytes = 0;
    driver!(cuDeviceTotalMem_v2(&mut bytes, device))?;
    Ok(bytes)
}

/// An attribute by its number.
pub fn attribute(attribute: i32, device: i32) -> Result<i32> {
    type Attribute = unsafe extern "C" fn(*mut i32, i32, i32) -> sys::CUresult;
    library::ready()?;
    let mut value = 0;
    // Numbers that these declarations do not know are asked for too, so the function is called with
    // a plain integer in place of the enum.
    // SAFETY: `cuDeviceGetAttribute` has this C signature.
    let status = unsafe {
        match sys::culib().get::<Attribute>(b"cuDeviceGetAttribute") {
            Ok(function) => function(&mut value, attribute, device),
            Err(_) => sys::CUresult::CUDA_ERROR_NOT_SUPPORTED,
        }
    };
    super::error::check("cuDeviceGetAttribute", status)?;
    Ok(value)
}

/// An attribute of the link by which a device uses the memory of another, by its number.
/// `cuDeviceGetP2PAttribute`
pub fn link_attribute(attribute: i32, device: i32, peer: i32) -> Result<i32> {
    type Attribute = unsafe extern "C" fn(*mut i32, i32, i32, i32) -> sys::CUresult;
    library::ready()?;
    let mut value = 0;
    // SAFETY: `cuDeviceGetP2PAttribute` has this C signature; the enum is an int there.
    let status = unsafe {
        match sys::culib().get::<Attribute>(b"cuDeviceGetP2PAttribute") {
            Ok(function) => function(&mut value, attribute, device, peer),
            Err(_) => sys::CUresult::CUDA_ERROR_NOT_SUPPORTED,
        }
    };
    super::error::check("cuDeviceGetP2PAttribute", status).map_err(|e| match device == peer {
        true => e.explained(format!("dst and src are both device {device}")),
        false => e,
    })?;
    Ok(value)
}

/// Whether kernels on one device can be let use the memory of another. `cuDeviceCanAccessPeer`
pub fn can_access_peer(device: i32, peer: i32) -> Result<bool> {
    library::ready()?;
    let mut can = 0;
    driver!(cuDeviceCanAccessPeer(&mut can, device, peer))?;
    Ok(can != 0)
}

/// What a launch must not exceed on a device.
pub struct Limits {
    /// Threads in a block.
    pub block_threads: u32,
    /// Block size in each direction.
    pub block: [u32; 3],
    /// Grid size in each direction, in blocks.
    pub grid: [u32; 3],
    /// Shared memory of a block in bytes, with opt-in.
    pub shared_bytes: u32,
}

impl Limits {
    /// Asks the driver.
    pub fn of_device(device: i32) -> Result<Limits> {
        let get = |a: sys::CUdevice_attribute| -> Result<u32> {
            Ok(attribute(a as i32, device)?.max(0) as u32)
        };
        use sys::CUdevice_attribute::*;
        Ok(Limits {
            block_threads: get(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?,
            block: [
                get(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X)?,
                get(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y)?,
                get(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z)?,
            ],
            grid: [
                get(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X)?,
                get(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y)?,
                get(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z)?,
            ],
            shared_bytes: get(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?,
        })
    }
}
