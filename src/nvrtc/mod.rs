//! NVRTC, the compiler of CUDA C at run time. Knows nothing of OCaml.
//!
//! [`places`] says where a `libnvrtc` may be, [`library`] loads one, [`headers`] finds CUDA's headers that
//! go with it, [`program`] compiles, and [`cache`] keeps what was compiled on disk.

mod cache;
mod headers;
mod includes;
pub mod library;
mod places;
pub mod program;
mod python;

/// Result of everything here.
pub type Result<T> = std::result::Result<T, Error>;

/// A refusal by NVRTC or by this layer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    /// An nvrtcResult, or one of the constants below.
    pub status: i32,
    /// The function that failed, in snake case, and what it said; for [`Error::INVALID_ARGUMENT`] the
    /// argument, its value and the limit.
    pub text: String,
}

impl Error {
    /// An argument was refused before NVRTC was called.
    pub const INVALID_ARGUMENT: i32 = -1;
    /// There is no NVRTC that can be used.
    pub const NOT_FOUND: i32 = -2;

    const INVALID_OPTION: i32 = 5;
    const BUILTINS: i32 = 7;
    /// NVRTC_ERROR_INTERNAL_ERROR
    pub const INTERNAL: i32 = 11;

    fn new(status: i32, text: impl Into<String>) -> Error {
        let text = text.into();
        Error { status, text }
    }

    fn invalid(text: impl Into<String>) -> Error {
        Error::new(Self::INVALID_ARGUMENT, text)
    }
}

/// What is asked of the environment, so that tests can answer.
type Variables<'a> = &'a dyn Fn(&str) -> Option<std::ffi::OsString>;

/// The variable as a path, unless it is unset or empty.
fn path_in(variables: Variables, name: &str) -> Option<std::path::PathBuf> {
    variables(name).filter(|v| !v.is_empty()).map(Into::into)
}
