//! CUDA's own headers (`cuda_fp16.h` and its like) for a given NVRTC.

use super::{path_in, python, Variables};
use std::fs;
use std::path::{Path, PathBuf};

/// The folders to search for headers: the first with headers of the library's CUDA version, and its
/// `cccl` where there is one. Empty if there are no such headers. `libraries` are the names of its file.
pub fn folders(libraries: &[&Path], major: i32, variables: Variables) -> Vec<PathBuf> {
    let Some(folder) = candidates(libraries, major, variables)
        .into_iter()
        .find(|folder| is_for(folder, major))
    else {
        return Vec::new();
    };
    // Since CUDA 13 the C++ library has a folder of its own.
    let cccl = Some(folder.join("cccl")).filter(|cccl| cccl.is_dir());
    std::iter::once(folder).chain(cccl).collect()
}

fn candidates(libraries: &[&Path], major: i32, variables: Variables) -> Vec<PathBuf> {
    let mut found = Vec::new();
    // Beside the library: a toolkit has lib64/ and include/, or targets/ARCH/lib and include/; a wheel has
    // nvidia/cu13/lib and include/, or nvidia/cuda_nvrtc/lib and nvidia/cuda_runtime/include.
    for library in libraries {
        let above: Vec<&Path> = library.ancestors().skip(2).take(2).collect();
        for root in &above {
            found.push(root.join("include"));
        }
        if let [_, nvidia] = above[..] {
            found.push(nvidia.join("cuda_runtime/include"));
        }
    }
    let target = format!("targets/{}-linux/include", std::env::consts::ARCH);
    let mut roots: Vec<PathBuf> = ["CUDA_PATH", "CUDA_HOME"]
        .iter()
        .filter_map(|name| path_in(variables, name))
        .collect();
    roots.push("/usr/local/cuda".into());
    roots.extend(path_in(variables, "CONDA_PREFIX"));
    for root in roots {
        found.push(root.join("include"));
        found.push(root.join(&target));
    }
    for packages in python::package_folders(variables) {
        let nvidia = packages.join("nvidia");
        found.push(nvidia.join(format!("cu{major}/include")));
        found.push(nvidia.join("cuda_runtime/include"));
    }
    found.push("/usr/include".into());
    found
}

/// Whether the folder has CUDA's headers, and they are not another version's.
fn is_for(folder: &Path, major: i32) -> bool {
    if !folder.join("cuda_fp16.h").is_file() {
        return false;
    }
    let text = fs::read(folder.join("cuda_runtime_api.h")).unwrap_or_default();
    match defined(&String::from_utf8_lossy(&text), "CUDART_VERSION") {
        Some(version) => version / 1000 == major,
        None => true,
    }
}

/// The number in `#define NAME NUMBER`.
fn defined(text: &str, name: &str) -> Option<i32> {
    text.lines().find_map(|line| {
        let mut words = line.split_whitespace();
        let is_it = words.next() == Some("#define") && words.next() == Some(name);
        words.next().filter(|_| is_it)?.parse().ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nvrtc::places::tests::Scratch;

    fn headers(scratch: &Scratch, folder: &str, version: &str) -> PathBuf {
        scratch.file(&format!("{folder}/cuda_fp16.h"), "");
        scratch.file(
            &format!("{folder}/cuda_runtime_api.h"),
            &format!("#define CUDART_VERSION  {version}\n"),
        );
        scratch.0.join(folder)
    }

    #[test]
    fn headers_beside_the_library_come_first() {
        let scratch = Scratch::new();
        let beside = headers(&scratch, "nvidia/cu13/include", "13000");
        headers(&scratch, "cuda/include", "13010");
        let library = scratch.0.join("nvidia/cu13/lib/libnvrtc.so.13");
        let found = scratch.ask(&[("CUDA_PATH", "cuda")], |v| folders(&[&library], 13, v));
        assert_eq!(found, [beside]);
    }

    #[test]
    fn the_wheels_of_cuda_12_are_neighbours() {
        let scratch = Scratch::new();
        let runtime = headers(&scratch, "nvidia/cuda_runtime/include", "12090");
        let library = scratch.0.join("nvidia/cuda_nvrtc/lib/libnvrtc.so.12");
        assert_eq!(scratch.ask(&[], |v| folders(&[&library], 12, v)), [runtime]);
    }

    #[test]
    fn headers_of_another_version_are_passed_over() {
        let scratch = Scratch::new();
        headers(&scratch, "one/include", "12090");
        let right = headers(&scratch, "two/include", "13000");
        let cccl = scratch.folder("two/include/cccl");
        let library = scratch.0.join("elsewhere/lib/libnvrtc.so.13");
        let with = [("CUDA_PATH", "one"), ("CUDA_HOME", "two")];
        let found = scratch.ask(&with, |v| folders(&[&library], 13, v));
        assert_eq!(found, [right, cccl]);
    }
}
