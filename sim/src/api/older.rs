//! First names of functions that were only renamed.

use super::{capture, context, event, stream, symbols, Out};
use std::ffi::{c_char, c_void};

macro_rules! renamed {
    ($(fn $old:ident($($argument:ident: $type:ty),*) = $module:ident::$new:ident;)*) => {$(
        #[doc = concat!("`", stringify!($old), "` of the driver.")]
        #[no_mangle]
        pub extern "C" fn $old($($argument: $type),*) -> i32 {
            $module::$new($($argument),*)
        }
    )*};
}

renamed! {
    fn cuStreamDestroy(handle: usize) = stream::cuStreamDestroy_v2;
    fn cuEventDestroy(handle: usize) = event::cuEventDestroy_v2;
    fn cuCtxDestroy(handle: usize) = context::cuCtxDestroy_v2;
    fn cuCtxPushCurrent(handle: usize) = context::cuCtxPushCurrent_v2;
    fn cuCtxPopCurrent(handle: Out<usize>) = context::cuCtxPopCurrent_v2;
    fn cuDevicePrimaryCtxRelease(device: i32) = context::cuDevicePrimaryCtxRelease_v2;
    fn cuDevicePrimaryCtxReset(device: i32) = context::cuDevicePrimaryCtxReset_v2;
    fn cuDevicePrimaryCtxSetFlags(device: i32, flags: u32) = context::cuDevicePrimaryCtxSetFlags_v2;
}

/// `cuStreamBeginCapture` of the driver: the form without a mode.
#[no_mangle]
pub extern "C" fn cuStreamBeginCapture(handle: usize) -> i32 {
    capture::cuStreamBeginCapture_v2(handle, 0)
}

/// `cuStreamBeginCapture_ptsz` of the driver.
#[no_mangle]
pub extern "C" fn cuStreamBeginCapture_ptsz(handle: usize) -> i32 {
    capture::cuStreamBeginCapture_v2_ptsz(handle, 0)
}

/// `cuGetProcAddress_v2_ptsz` of the driver: finds the forms for threads' own streams.
#[no_mangle]
pub extern "C" fn cuGetProcAddress_v2_ptsz(
    name: *const c_char,
    place: Out<*mut c_void>,
    version: i32,
    flags: u64,
    status: Out<i32>,
) -> i32 {
    // Without a flag the program means the streams that it was compiled for.
    let flags = if flags == 0 { 2 } else { flags };
    symbols::cuGetProcAddress_v2(name, place, version, flags, status)
}
