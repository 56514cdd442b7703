//! `Raw.device_*` and `Raw.mem_info`.

use super::run::{blocking, guarded, value};
use super::value::{int, string, to_int, tuple};
use crate::driver::{device, memory, Error, Result};
use ocaml::sys::Value;

/// An OCaml integer as the driver's C int.
fn c_int(what: &str, v: Value) -> Result<i32> {
    let n = to_int(v);
    i32::try_from(n).map_err(|_| Error::invalid(format!("{what} {n} does not fit a C int")))
}

#[no_mangle]
extern "C" fn cudagraph_device_count(_unit: Value) -> Value {
    value(guarded(device::count), |n| int(n as isize))
}

#[no_mangle]
extern "C" fn cudagraph_device_get(ordinal: Value) -> Value {
    value(guarded(|| device::get(c_int("ordinal", ordinal)?)), |d| {
        int(d as isize)
    })
}

#[no_mangle]
extern "C" fn cudagraph_device_name(device: Value) -> Value {
    value(guarded(|| device::name(c_int("device", device)?)), |name| {
        string(name.as_bytes())
    })
}

#[no_mangle]
extern "C" fn cudagraph_device_attribute(device: Value, attribute: Value) -> Value {
    let asked =
        guarded(|| device::attribute(c_int("attribute", attribute)?, c_int("device", device)?));
    value(asked, |n| int(n as isize))
}

#[no_mangle]
extern "C" fn cudagraph_device_total_memory(device: Value) -> Value {
    value(
        guarded(|| device::total_memory(c_int("device", device)?)),
        |n| int(n as isize),
    )
}

#[no_mangle]
extern "C" fn cudagraph_mem_info(_unit: Value) -> Value {
    value(blocking(memory::info), |(free, total)| {
        tuple(&[int(free as isize), int(total as isize)])
    })
}

#[no_mangle]
extern "C" fn cudagraph_device_link_attribute(
    attribute: Value,
    device: Value,
    peer: Value,
) -> Value {
    let asked = guarded(|| {
        device::link_attribute(
            c_int("attribute", attribute)?,
            c_int("device", device)?,
            c_int("peer", peer)?,
        )
    });
    value(asked, |n| int(n as isize))
}

#[no_mangle]
extern "C" fn cudagraph_device_can_access_peer(device: Value, peer: Value) -> Value {
    let asked = guarded(|| device::can_access_peer(c_int("device", device)?, c_int("peer", peer)?));
    value(asked, |can| int(can as isize))
}
