//! Starting, errors, devices.

use super::{function, functions, write_text, Out};
use crate::status::{Result, ALL, INVALID_DEVICE, INVALID_VALUE, NO_DEVICE};
use crate::{device, entry, memory};
use std::ffi::c_char;

/// The version that is reported: 13.0.
pub const VERSION: i32 = 13000;

function!(run_early, cuInit, (), (flags: u32), {
    if flags != 0 {
        return Err(INVALID_VALUE);
    }
    if device::count() == 0 {
        return Err(NO_DEVICE);
    }
    entry::initialize();
    Ok(())
});

function!(run_early, cuDriverGetVersion, (), (version: Out<i32>), {
    version.required()?.set(VERSION);
    Ok(())
});

type Text = &'static str;

fn status_text(
    status: i32,
    place: Out<*const c_char>,
    pick: fn(&(i32, Text, Text)) -> Text,
) -> i32 {
    let known = ALL.iter().find(|(s, _, _)| *s == status);
    place.set(known.map_or(std::ptr::null(), |entry| pick(entry).as_ptr().cast()));
    match known {
        Some(_) if !place.is_null() => 0,
        _ => INVALID_VALUE,
    }
}

/// `cuGetErrorName` of the driver.
#[no_mangle]
pub extern "C" fn cuGetErrorName(status: i32, name: Out<*const c_char>) -> i32 {
    status_text(status, name, |entry| entry.1)
}

/// `cuGetErrorString` of the driver.
#[no_mangle]
pub extern "C" fn cuGetErrorString(status: i32, description: Out<*const c_char>) -> i32 {
    status_text(status, description, |entry| entry.2)
}

fn uuid(place: Out<[u8; 16]>, device: i32) -> Result<()> {
    device::check(device)?;
    let mut bytes = *b"cudagraph sim  \0";
    bytes[15] = device as u8;
    place.required()?.set(bytes);
    Ok(())
}

fn in_range(value: i32, low: i32, high: i32) -> Result<()> {
    if (low..=high).contains(&value) {
        Ok(())
    } else {
        Err(INVALID_VALUE)
    }
}

functions! {
    fn cuDeviceGetCount(count: Out<i32>) {
        count.required()?.set(device::count());
        Ok(())
    }

    fn cuDeviceGet(device: Out<i32>, ordinal: i32) {
        device.required()?;
        device::check(ordinal)?;
        device.set(ordinal);
        Ok(())
    }

    fn cuDeviceGetName(name: Out<u8>, length: i32, device: i32) {
        device::check(device)?;
        write_text(name, usize::try_from(length).map_err(|_| INVALID_VALUE)?, device::NAME)
    }

    fn cuDeviceGetAttribute(value: Out<i32>, attribute: i32, device: i32) {
        value.required()?.set(device::attribute(attribute, device)?);
        Ok(())
    }

    fn cuDeviceTotalMem_v2(bytes: Out<usize>, device: i32) {
        device::check(device)?;
        bytes.required()?.set(memory::total() as usize);
        Ok(())
    }

    fn cuDeviceComputeCapability(major: Out<i32>, minor: Out<i32>, device: i32) {
        major.required()?.set(device::attribute(75, device)?);
        minor.required()?.set(device::attribute(76, device)?);
        Ok(())
    }

    fn cuDeviceCanAccessPeer(can: Out<i32>, device: i32, peer: i32) {
        device::check(device)?;
        device::check(peer)?;
        can.required()?.set((device != peer) as i32);
        Ok(())
    }

    fn cuDeviceGetP2PAttribute(value: Out<i32>, attribute: i32, device: i32, peer: i32) {
        value.required()?;
        device::check(device)?;
        device::check(peer)?;
        in_range(attribute, 1, 5)?;
        if device == peer {
            return Err(INVALID_DEVICE);
        }
        // Access and native atomics, and no arrays; all pairs are as fast as each other.
        value.set((2..=3).contains(&attribute) as i32);
        Ok(())
    }

    fn cuDeviceGetUuid(uuid_place: Out<[u8; 16]>, device: i32) {
        uuid(uuid_place, device)
    }

    fn cuDeviceGetUuid_v2(uuid_place: Out<[u8; 16]>, device: i32) {
        uuid(uuid_place, device)
    }

    fn cuDeviceGetPCIBusId(name: Out<u8>, length: i32, device: i32) {
        device::check(device)?;
        let length = usize::try_from(length).map_err(|_| INVALID_VALUE)?;
        write_text(name, length, &device::pci_name(device))
    }

    fn cuDeviceGetByPCIBusId(device: Out<i32>, name: *const c_char) {
        let name = super::text(name)?;
        let found = (0..device::count()).find(|d| device::pci_name(*d).eq_ignore_ascii_case(name));
        device.required()?.set(found.ok_or(INVALID_DEVICE)?);
        Ok(())
    }
}
