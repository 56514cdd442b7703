//! `Raw.init`, `Raw.ctx_*` and the release queue.

use super::custom::{alloc, get};
use super::run::{blocking, guarded, status, unlocked, value};
use super::value::{block, int, nativeint, string, to_int, tuple, UNIT};
use crate::driver::context::Context;
use crate::driver::error::snake_case;
use crate::driver::release::{self, Drain};
use crate::driver::reset::reset_primary;
use crate::driver::{driver, library, Error};
use ocaml::sys::Value;

#[no_mangle]
extern "C" fn cudagraph_init(flags: Value) -> Value {
    let flags = to_int(flags);
    status(blocking(|| {
        let flags = u32::try_from(flags)
            .map_err(|_| Error::invalid(format!("flags {flags} does not fit a C unsigned int")))?;
        library::init(flags)
    }))
}

#[no_mangle]
extern "C" fn cudagraph_driver_description(_unit: Value) -> Value {
    string(library::description().as_bytes())
}

#[no_mangle]
extern "C" fn cudagraph_driver_version(_unit: Value) -> Value {
    value(guarded(library::version), |v| int(v as isize))
}

#[no_mangle]
extern "C" fn cudagraph_primary_ctx_reset(device: Value) -> Value {
    let device = to_int(device) as i32;
    status(unlocked(|| reset_primary(device)))
}

#[no_mangle]
extern "C" fn cudagraph_ctx_primary(device: Value) -> Value {
    let device = to_int(device) as i32;
    value(blocking(|| Context::primary(device)), alloc)
}

#[no_mangle]
extern "C" fn cudagraph_ctx_create(flags: Value, device: Value) -> Value {
    let (flags, device) = (to_int(flags) as u32, to_int(device) as i32);
    value(blocking(|| Context::create(flags, device)), alloc)
}

#[no_mangle]
extern "C" fn cudagraph_ctx_current(_unit: Value) -> Value {
    value(blocking(Context::current), alloc)
}

#[no_mangle]
extern "C" fn cudagraph_ctx_set_current(context: Value) -> Value {
    let context = get::<Context>(context);
    status(blocking(|| context.set_current()))
}

#[no_mangle]
extern "C" fn cudagraph_ctx_push(context: Value) -> Value {
    let context = get::<Context>(context);
    status(blocking(|| context.push()))
}

#[no_mangle]
extern "C" fn cudagraph_ctx_pop(_unit: Value) -> Value {
    value(blocking(Context::pop), alloc)
}

#[no_mangle]
extern "C" fn cudagraph_ctx_device(_unit: Value) -> Value {
    let device = blocking(|| {
        let _context = Context::current()?;
        let mut device = 0;
        driver!(cuCtxGetDevice(&mut device))?;
        Ok(device)
    });
    value(device, |d| int(d as isize))
}

#[no_mangle]
extern "C" fn cudagraph_ctx_flags(_unit: Value) -> Value {
    let flags = blocking(|| {
        let _context = Context::current()?;
        let mut flags = 0;
        driver!(cuCtxGetFlags(&mut flags))?;
        Ok(flags)
    });
    value(flags, |f| int(f as isize))
}

#[no_mangle]
extern "C" fn cudagraph_ctx_get_limit(limit: Value) -> Value {
    let limit = to_int(limit) as i32;
    value(blocking(|| Context::limit(limit)), |n| int(n as isize))
}

#[no_mangle]
extern "C" fn cudagraph_ctx_set_limit(limit: Value, n: Value) -> Value {
    let (limit, n) = (to_int(limit) as i32, to_int(n));
    status(blocking(|| Context::set_limit(limit, n)))
}

#[no_mangle]
extern "C" fn cudagraph_ctx_enable_peer_access(peer: Value, flags: Value) -> Value {
    let (peer, flags) = (get::<Context>(peer), to_int(flags) as u32);
    status(blocking(|| Context::enable_peer_access(&peer, flags)))
}

#[no_mangle]
extern "C" fn cudagraph_ctx_disable_peer_access(peer: Value) -> Value {
    let peer = get::<Context>(peer);
    status(blocking(|| Context::disable_peer_access(&peer)))
}

#[no_mangle]
extern "C" fn cudagraph_ctx_synchronize(_unit: Value) -> Value {
    status(blocking(Context::synchronize))
}

#[no_mangle]
extern "C" fn cudagraph_ctx_address(context: Value) -> Value {
    nativeint(get::<Context>(context).handle() as u64)
}

#[no_mangle]
extern "C" fn cudagraph_release_done(_unit: Value) -> Value {
    let _ = blocking(|| {
        Context::release_done();
        Ok(())
    });
    UNIT
}

#[no_mangle]
extern "C" fn cudagraph_make_room(_unit: Value) -> Value {
    let _ = blocking(|| {
        Context::release_done();
        release::drain(Drain::All);
        Context::trim_graph_memory();
        Ok(())
    });
    UNIT
}

#[no_mangle]
extern "C" fn cudagraph_ctx_is_usable(context: Value) -> Value {
    let context = get::<Context>(context);
    value(blocking(|| context.is_usable()), |yes| int(yes as isize))
}

/// `external take_failed_release : unit -> (string * status) option`
#[no_mangle]
extern "C" fn cudagraph_take_failed_release(_unit: Value) -> Value {
    match release::take_failure() {
        None => UNIT,
        Some((function, status)) => {
            let name = string(snake_case(function).as_bytes());
            block(0, &[tuple(&[name, int(status as isize)])])
        }
    }
}

#[no_mangle]
extern "C" fn cudagraph_failed_releases(_unit: Value) -> Value {
    int(release::failed() as isize)
}
