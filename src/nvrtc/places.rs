//! Where a `libnvrtc` may be.

use super::{path_in, python, Variables};
use std::path::{Path, PathBuf};

/// The libraries of the CUDA versions that are known here, the newest first.
pub const NAMES: [&str; 2] = ["libnvrtc.so.13", "libnvrtc.so.12"];

/// One place to look at.
#[derive(Debug, PartialEq, Eq)]
pub enum Place {
    /// This file and no other, as the user asked.
    Chosen(PathBuf),
    /// Whatever the system's loader finds under these [`NAMES`].
    System,
    /// These folders, and how to call them in a message.
    Folders(String, Vec<PathBuf>),
}

/// Every place, in the order in which they are tried.
pub fn places(variables: Variables) -> Vec<Place> {
    if let Some(chosen) = path_in(variables, "CUDAGRAPH_NVRTC") {
        return vec![Place::Chosen(chosen)];
    }
    let mut places = Vec::new();
    for name in ["CUDA_PATH", "CUDA_HOME"] {
        if let Some(root) = path_in(variables, name) {
            let label = format!("{name}={}", root.display());
            places.push(Place::Folders(label, toolkit_libraries(&root)));
        }
    }
    places.push(Place::System);
    let usual = Path::new("/usr/local/cuda");
    places.push(Place::Folders(
        usual.display().to_string(),
        toolkit_libraries(usual),
    ));
    if let Some(root) = path_in(variables, "CONDA_PREFIX") {
        let label = format!("CONDA_PREFIX={}", root.display());
        places.push(Place::Folders(label, toolkit_libraries(&root)));
    }
    let packages = python::package_folders(variables);
    places.push(Place::Folders(
        match packages.as_slice() {
            [] => "Python's packages (no python3 was found)".to_string(),
            _ => {
                let names: Vec<_> = packages.iter().map(|p| p.display().to_string()).collect();
                format!("Python's packages in {}", names.join(" and "))
            }
        },
        packages.iter().flat_map(|p| wheel_libraries(p)).collect(),
    ));
    places
}

/// Folders of libraries in an installed CUDA toolkit.
fn toolkit_libraries(root: &Path) -> Vec<PathBuf> {
    let target = format!("targets/{}-linux/lib", std::env::consts::ARCH);
    ["lib64", "lib", &target]
        .iter()
        .map(|l| root.join(l))
        .collect()
}

/// Folders of libraries that the packages nvidia-cuda-nvrtc (CUDA 13) and nvidia-cuda-nvrtc-cu12 fill.
fn wheel_libraries(packages: &Path) -> Vec<PathBuf> {
    ["cu13", "cuda_nvrtc"]
        .iter()
        .map(|package| packages.join("nvidia").join(package).join("lib"))
        .collect()
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use std::ffi::OsString;
    use std::fs;
    use std::sync::atomic::{AtomicU32, Ordering};

    /// A folder that goes with the test.
    pub struct Scratch(pub PathBuf);

    impl Scratch {
        pub fn new() -> Scratch {
            static COUNT: AtomicU32 = AtomicU32::new(0);
            let count = COUNT.fetch_add(1, Ordering::Relaxed);
            let name = format!("cudagraph-test-{}-{count}", std::process::id());
            let folder = std::env::temp_dir().join(name);
            fs::create_dir_all(&folder).unwrap();
            Scratch(folder)
        }

        pub fn folder(&self, name: &str) -> PathBuf {
            let folder = self.0.join(name);
            fs::create_dir_all(&folder).unwrap();
            folder
        }

        pub fn file(&self, name: &str, content: &str) -> PathBuf {
            let file = self.0.join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(&file, content).unwrap();
            file
        }

        /// `ask` in an environment whose values are paths in this folder, or `:`-lists of them; a
        /// version starts with a digit and is left as it is.
        pub fn ask<T>(&self, with: &[(&str, &str)], ask: impl Fn(Variables) -> T) -> T {
            ask(&|name| {
                let (_, value) = with.iter().find(|(n, _)| *n == name)?;
                if value.starts_with(|c: char| c.is_ascii_digit()) {
                    return Some(OsString::from(value));
                }
                let paths = value.split(':').map(|p| self.0.join(p));
                Some(std::env::join_paths(paths).unwrap())
            })
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn the_users_choice_is_the_only_place() {
        let scratch = Scratch::new();
        let chosen = [("CUDAGRAPH_NVRTC", "my.so"), ("CUDA_PATH", "cuda")];
        assert_eq!(
            scratch.ask(&chosen, places),
            [Place::Chosen(scratch.0.join("my.so"))]
        );
    }

    #[test]
    fn a_named_toolkit_is_before_the_system_and_a_wheel_after_it() {
        let scratch = Scratch::new();
        let packages = scratch.folder("venv/lib/python3.11/site-packages");
        scratch.file("venv/pyvenv.cfg", "");
        let with = [("CUDA_HOME", "cuda"), ("VIRTUAL_ENV", "venv")];
        let found = scratch.ask(&with, places);
        let [Place::Folders(label, toolkit), Place::System, Place::Folders(..), Place::Folders(_, wheels)] =
            found.as_slice()
        else {
            panic!("{found:?}");
        };
        assert!(label.starts_with("CUDA_HOME="), "{label}");
        assert_eq!(toolkit[0], scratch.0.join("cuda/lib64"));
        let nvidia = packages.join("nvidia");
        assert_eq!(
            *wheels,
            [nvidia.join("cu13/lib"), nvidia.join("cuda_nvrtc/lib")]
        );
    }
}
