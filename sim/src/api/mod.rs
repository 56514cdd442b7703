//! The C functions of the driver, by area.
//!
//! Everything that a caller passes is checked: handles against the tables of what is live, outputs
//! against null.

mod context;
mod copy;
mod device;
mod event;
mod graph;
mod launch;
mod module;
mod stream;
mod test;

use crate::status::{Result, INVALID_VALUE};
use std::ffi::{c_char, CStr};

/// Where a C caller wants an answer.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct Out<T>(*mut T);

impl<T> Out<T> {
    /// Whether there is a place.
    pub fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// Fails without a place.
    pub fn required(self) -> Result<Self> {
        if self.0.is_null() {
            return Err(INVALID_VALUE);
        }
        Ok(self)
    }

    /// Gives the answer if there is a place for it.
    pub fn set(self, value: T) {
        if !self.0.is_null() {
            // SAFETY: a C caller passes null or a valid place.
            unsafe { self.0.write(value) };
        }
    }

    /// What is in the place.
    pub fn get(self) -> Result<T>
    where
        T: Copy,
    {
        self.required()?;
        // SAFETY: as in `set`.
        Ok(unsafe { *self.0 })
    }

    /// Fills an array of `capacity` places.
    pub fn fill(self, values: impl Iterator<Item = T>, capacity: usize) {
        for (index, value) in values.take(capacity).enumerate() {
            // SAFETY: the C caller says that there are so many places.
            unsafe { self.0.add(index).write(value) };
        }
    }
}

/// The text of a C string.
pub(crate) fn text<'a>(pointer: *const c_char) -> Result<&'a str> {
    if pointer.is_null() {
        return Err(INVALID_VALUE);
    }
    // SAFETY: a C caller passes a NUL-terminated string, which lives during the call.
    unsafe { CStr::from_ptr(pointer) }
        .to_str()
        .map_err(|_| INVALID_VALUE)
}

/// Defines exported functions whose bodies give a `Result<()>`.
macro_rules! functions {
    ($(fn $name:ident($($argument:ident: $type:ty),* $(,)?) $body:block)*) => {$(
        #[doc = concat!("`", stringify!($name), "` of the driver.")]
        #[no_mangle]
        pub extern "C" fn $name($($argument: $type),*) -> i32 {
            $crate::entry::run(stringify!($name), move || $body)
        }
    )*};
}
pub(crate) use functions;
