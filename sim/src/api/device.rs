//! Starting, errors, devices.

use super::{functions, Out};
use crate::status::{ALL, INVALID_VALUE, NO_DEVICE};
use crate::{device, entry, memory};
use std::ffi::{c_char, c_void};

/// `cuInit` of the driver.
#[no_mangle]
pub extern "C" fn cuInit(flags: u32) -> i32 {
    entry::run_early("cuInit", || {
        if flags != 0 {
            return Err(INVALID_VALUE);
        }
        if device::count() == 0 {
            return Err(NO_DEVICE);
        }
        entry::initialize();
        Ok(())
    })
}

/// `cuDriverGetVersion` of the driver.
#[no_mangle]
pub extern "C" fn cuDriverGetVersion(version: Out<i32>) -> i32 {
    entry::run_early("cuDriverGetVersion", || {
        version.required()?.set(13000);
        Ok(())
    })
}

fn status_text(
    status: i32,
    pick: fn(&(i32, &'static str, &'static str)) -> &'static str,
) -> *const c_char {
    ALL.iter()
        .find(|(s, _, _)| *s == status)
        .map_or(std::ptr::null(), |e| pick(e).as_ptr().cast())
}

/// `cuGetErrorName` of the driver.
#[no_mangle]
pub extern "C" fn cuGetErrorName(status: i32, name: Out<*const c_char>) -> i32 {
    let text = status_text(status, |e| e.1);
    name.set(text);
    if text.is_null() {
        INVALID_VALUE
    } else {
        0
    }
}

/// `cuGetErrorString` of the driver.
#[no_mangle]
pub extern "C" fn cuGetErrorString(status: i32, description: Out<*const c_char>) -> i32 {
    let text = status_text(status, |e| e.2);
    description.set(text);
    if text.is_null() {
        INVALID_VALUE
    } else {
        0
    }
}

functions! {
    fn cuDeviceGetCount(count: Out<i32>) {
        count.required()?.set(device::count());
        Ok(())
    }

    fn cuDeviceGet(device: Out<i32>, ordinal: i32) {
        device::check(ordinal)?;
        device.required()?.set(ordinal);
        Ok(())
    }

    fn cuDeviceGetName(name: Out<u8>, length: i32, device: i32) {
        device::check(device)?;
        let length = usize::try_from(length).map_err(|_| INVALID_VALUE)?;
        name.required()?.fill(device::NAME.bytes(), length);
        Ok(())
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

    fn cuDeviceCanAccessPeer(can: Out<i32>, device: i32, peer: i32) {
        device::check(device)?;
        device::check(peer)?;
        can.required()?.set((device != peer) as i32);
        Ok(())
    }

    fn cuDeviceGetUuid_v2(uuid: Out<[u8; 16]>, device: i32) {
        device::check(device)?;
        let mut bytes = *b"cudagraph sim  \0";
        bytes[15] = device as u8;
        uuid.required()?.set(bytes);
        Ok(())
    }
}

/// `cuGetProcAddress_v2` of the driver: the newest form of a function by its plain name.
#[no_mangle]
pub extern "C" fn cuGetProcAddress_v2(
    symbol: *const c_char,
    function: Out<*mut c_void>,
    _version: i32,
    _flags: u64,
    status: Out<i32>,
) -> i32 {
    entry::run_early("cuGetProcAddress_v2", || {
        let name = super::text(symbol)?;
        let found = ["_v4", "_v3", "_v2", ""].iter().find_map(|version| {
            let name = std::ffi::CString::new(format!("{name}{version}")).ok()?;
            // SAFETY: looks a name up among what is loaded.
            let address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
            (!address.is_null()).then_some(address)
        });
        function
            .required()?
            .set(found.unwrap_or(std::ptr::null_mut()));
        status.set(i32::from(found.is_none()));
        found.map(|_| ()).ok_or(crate::status::NOT_FOUND)
    })
}
