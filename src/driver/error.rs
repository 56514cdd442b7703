//! What went wrong: a driver status and, where there is more to say, a text.

use cudarc::driver::sys::CUresult;

/// Result of everything in the driver layer.
pub type Result<T> = std::result::Result<T, Error>;

/// A refusal by the driver or by this layer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    /// The CUresult, or [`Error::INVALID_ARGUMENT`] when no driver call was made.
    pub status: i32,
    /// What a person needs to know beyond the status; may be empty.
    pub detail: String,
}

impl Error {
    /// The status of an argument that was refused before any driver call.
    pub const INVALID_ARGUMENT: i32 = -1;

    /// An argument that this layer refuses; the text names it, its value and the limit.
    pub fn invalid(detail: impl Into<String>) -> Error {
        Error {
            status: Self::INVALID_ARGUMENT,
            detail: detail.into(),
        }
    }

    /// A driver status with an explanation.
    pub fn new(status: CUresult, detail: impl Into<String>) -> Error {
        Error {
            status: status as i32,
            detail: detail.into(),
        }
    }

    /// The same status, explained.
    pub fn explained(mut self, detail: impl Into<String>) -> Error {
        self.detail = detail.into();
        self
    }

    /// The same refusal, with the argument that it is about in front.
    pub fn of_argument(mut self, name: &str) -> Error {
        if self.status == Self::INVALID_ARGUMENT {
            self.detail = format!("{name}: {}", self.detail);
        }
        self
    }

    /// Whether the driver answered `status`.
    pub fn is(&self, status: CUresult) -> bool {
        self.status == status as i32
    }
}

/// Turns the status of driver function `name` into a result. A failure during a capture may have
/// ended it: the capture is asked, and remembers this call if so.
pub fn check(name: &'static str, status: CUresult) -> Result<()> {
    if status == CUresult::CUDA_SUCCESS {
        return Ok(());
    }
    super::capture::blame(name, status);
    if is_sticky(status) {
        super::context::note_broken();
    }
    Err(Error {
        status: status as i32,
        detail: String::new(),
    })
}

/// Whether the driver answers so to everything from then on, until the context is destroyed or reset.
pub fn is_sticky(status: CUresult) -> bool {
    use CUresult::*;
    matches!(
        status,
        CUDA_ERROR_ECC_UNCORRECTABLE
            | CUDA_ERROR_NVLINK_UNCORRECTABLE
            | CUDA_ERROR_CONTAINED
            | CUDA_ERROR_ILLEGAL_ADDRESS
            | CUDA_ERROR_LAUNCH_TIMEOUT
            | CUDA_ERROR_ASSERT
            | CUDA_ERROR_HARDWARE_STACK_ERROR
            | CUDA_ERROR_ILLEGAL_INSTRUCTION
            | CUDA_ERROR_MISALIGNED_ADDRESS
            | CUDA_ERROR_INVALID_ADDRESS_SPACE
            | CUDA_ERROR_INVALID_PC
            | CUDA_ERROR_LAUNCH_FAILED
            | CUDA_ERROR_TENSOR_MEMORY_LEAK
    )
}

/// The name of a driver function as error messages write it: `cuMemAlloc_v2` is `cu_mem_alloc`.
pub fn snake_case(name: &str) -> String {
    let base = match name.rfind("_v") {
        Some(at) if name[at + 2..].bytes().all(|b| b.is_ascii_digit()) => &name[..at],
        _ => name,
    };
    // The direction of a copy keeps its capitals.
    for (direction, written) in [
        ("HtoD", "_H_to_D"),
        ("DtoH", "_D_to_H"),
        ("DtoD", "_D_to_D"),
    ] {
        if let Some((before, after)) = base.split_once(direction) {
            return format!("{}{written}{}", underscored(before), underscored(after));
        }
    }
    underscored(base)
}

fn underscored(name: &str) -> String {
    let mut snake = String::with_capacity(name.len() + 8);
    for c in name.chars() {
        let word_ends = snake.ends_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit());
        if c.is_ascii_uppercase() && (word_ends || snake.is_empty()) {
            snake.push('_');
        }
        snake.push(c);
    }
    snake.to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lose_their_version_and_gain_underscores() {
        assert_eq!(snake_case("cuMemAlloc_v2"), "cu_mem_alloc");
        assert_eq!(
            snake_case("cuGraphInstantiateWithFlags"),
            "cu_graph_instantiate_with_flags"
        );
        assert_eq!(snake_case("cuMemcpyHtoDAsync_v2"), "cu_memcpy_H_to_D_async");
        assert_eq!(snake_case("cuMemcpyHtoD_v2"), "cu_memcpy_H_to_D");
    }
}
