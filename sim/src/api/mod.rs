//! The C functions of the driver, by area.
//!
//! Everything that a caller passes is checked: handles against the tables of what is live, outputs
//! against null.

mod capture;
mod context;
mod copy;
mod device;
mod event;
mod exec;
mod graph;
mod launch;
mod memory;
mod missing;
mod module;
mod node;
mod nodes;
mod older;
mod pool;
mod stream;
mod structs;
mod symbols;
mod test;

pub use structs::*;

use crate::graph::Graph;
use crate::status::{Result, INVALID_VALUE};
use std::ffi::{c_char, CStr};

/// Where a C caller wants an answer, or keeps an array.
#[repr(transparent)]
pub struct Out<T>(*mut T);

impl<T> Clone for Out<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Out<T> {}

impl<T> Out<T> {
    /// No place.
    pub fn null() -> Self {
        Out(std::ptr::null_mut())
    }

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

    /// The elements of an array of `count` places.
    pub fn list(self, count: usize) -> Result<Vec<T>>
    where
        T: Copy,
    {
        if count == 0 {
            return Ok(Vec::new());
        }
        self.required()?;
        // No process has more memory than this: the number is nonsense.
        if count > (1 << 47) / size_of::<T>().max(1) {
            return Err(INVALID_VALUE);
        }
        // SAFETY: the C caller says that there are so many.
        Ok((0..count)
            .map(|index| unsafe { *self.0.add(index) })
            .collect())
    }
}

/// A list of nodes of a graph. They are distinct, so there are no more of them than the graph has: a larger
/// number is refused before anything is read.
pub(crate) fn list_nodes(graph: &Graph, nodes: Out<usize>, count: usize) -> Result<Vec<usize>> {
    if count > graph.state().nodes.len() {
        return Err(INVALID_VALUE);
    }
    nodes.list(count)
}

/// Answers a question for a list in the driver's way: without a place only the number; otherwise as many
/// as there is room for, and zeros after the last.
pub(crate) fn answer_list(list: Out<usize>, count: Out<usize>, found: &[usize]) -> Result<()> {
    count.required()?;
    if list.is_null() {
        count.set(found.len());
        return Ok(());
    }
    let room = count.get()?;
    let padded = found.iter().copied().chain(std::iter::repeat(0));
    list.fill(padded, room);
    count.set(found.len().min(room));
    Ok(())
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

/// Writes a text and a NUL into an array of `capacity` places, cut to fit.
pub(crate) fn write_text(place: Out<u8>, capacity: usize, text: &str) -> Result<()> {
    let last = capacity.checked_sub(1).ok_or(INVALID_VALUE)?;
    let bytes = text.bytes().take(last).chain([0]);
    place.required()?.fill(bytes, capacity);
    Ok(())
}

/// Defines exported functions whose bodies give a `Result<()>`. The name after a slash is that of the
/// form whose NULL stream is the calling thread's own.
macro_rules! functions {
    ($(fn $name:ident $(/ $own:ident)? ($($arguments:tt)*) $body:block)*) => {$(
        $crate::api::function!(run, $name, ($($own)?), ($($arguments)*), $body);
    )*};
}
pub(crate) use functions;

/// Defines one exported function; `$run` is the entry that it goes through.
macro_rules! function {
    ($run:ident, $name:ident, (), ($($argument:ident: $type:ty),* $(,)?), $body:block) => {
        #[doc = concat!("`", stringify!($name), "` of the driver.")]
        #[no_mangle]
        pub extern "C" fn $name($($argument: $type),*) -> i32 {
            static FUNCTION: $crate::ledger::Function =
                $crate::ledger::Function::new(stringify!($name));
            $crate::entry::$run(&FUNCTION, move || $body)
        }
    };
    ($run:ident, $name:ident, ($own:ident), ($($argument:ident: $type:ty),* $(,)?), $body:block) => {
        $crate::api::function!($run, $name, (), ($($argument: $type),*), $body);

        #[doc = concat!("`", stringify!($own), "` of the driver.")]
        #[no_mangle]
        pub extern "C" fn $own($($argument: $type),*) -> i32 {
            $crate::entry::per_thread(move || $name($($argument),*))
        }
    };
}
pub(crate) use function;
