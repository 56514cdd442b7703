//! Names of files as the bytes that OCaml and NVRTC know them by.

#[cfg(unix)]
pub use std::os::unix::ffi::OsStrExt;

/// The same two functions where names are not bytes. One that is not UTF-8 becomes the empty name, which no file has.
#[cfg(not(unix))]
pub trait OsStrExt {
    /// The name that is spelled by these bytes.
    fn from_bytes(bytes: &[u8]) -> &Self;
    /// The bytes that spell this name.
    fn as_bytes(&self) -> &[u8];
}

#[cfg(not(unix))]
impl OsStrExt for std::ffi::OsStr {
    fn from_bytes(bytes: &[u8]) -> &Self {
        Self::new(std::str::from_utf8(bytes).unwrap_or_default())
    }

    fn as_bytes(&self) -> &[u8] {
        self.as_encoded_bytes()
    }
}
