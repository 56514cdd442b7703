//! The folders where the active Python keeps its packages, found without running Python.

use super::{path_in, Variables};
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The active Python's folders of packages that exist, the likeliest first.
pub fn package_folders(variables: Variables) -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = Vec::new();
    let python_path = variables("PYTHONPATH").unwrap_or_default();
    folders.extend(std::env::split_paths(&python_path).filter(|p| p.is_absolute()));
    let mut prefixes: Vec<PathBuf> = ["VIRTUAL_ENV", "CONDA_PREFIX"]
        .iter()
        .filter_map(|name| path_in(variables, name))
        .collect();
    prefixes.extend(prefixes_on_path(variables));
    folders.extend(prefixes.iter().flat_map(|prefix| of_prefix(prefix)));
    if !prefixes.iter().any(|prefix| is_isolated(prefix)) {
        // What `pip install --user` fills.
        let home = path_in(variables, "HOME").map(|home| home.join(".local"));
        folders.extend(home.iter().flat_map(|prefix| of_prefix(prefix)));
    }
    let mut seen = Vec::new();
    for folder in folders {
        if folder.is_dir() && !seen.contains(&folder) {
            seen.push(folder);
        }
    }
    seen
}

/// `lib/python3.*/site-packages` and its like, the newest Python first.
fn of_prefix(prefix: &Path) -> Vec<PathBuf> {
    let mut folders = Vec::new();
    // Debian puts what pip installs for everybody under /usr/local and calls the folder dist-packages.
    for root in [prefix.to_path_buf(), prefix.join("local")] {
        for lib in [root.join("lib"), root.join("lib64")] {
            for python in versions_of(&lib, "python3") {
                folders.push(python.join("site-packages"));
                folders.push(python.join("dist-packages"));
            }
        }
    }
    folders
}

/// The folders in `parent` named `name` or `name.VERSION`, the highest version first.
fn versions_of(parent: &Path, name: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    let mut found: Vec<(Vec<u32>, PathBuf)> = entries
        .filter_map(|entry| {
            let file_name = entry.file_name();
            let rest = file_name.to_str()?.strip_prefix(name)?;
            let numbers = rest.split('.').skip(1).map(|n| n.parse().unwrap_or(0));
            (rest.is_empty() || rest.starts_with('.')).then(|| (numbers.collect(), entry.path()))
        })
        .collect();
    found.sort();
    found.into_iter().rev().map(|(_, path)| path).collect()
}

/// The prefixes of the `python3` that a shell would start.
fn prefixes_on_path(variables: Variables) -> Vec<PathBuf> {
    let path = variables("PATH").unwrap_or_default();
    for bin in std::env::split_paths(&path).filter(|p| p.is_absolute()) {
        let python = bin.join("python3");
        if !python.is_file() {
            continue;
        }
        if !is_script(&python) {
            return prefixes_of(&bin, &python);
        }
        if let Some(prefix) = pyenv_prefix(&bin, variables) {
            return vec![prefix];
        }
        // Some other program that starts Python: what it would start is not known.
    }
    Vec::new()
}

fn is_script(file: &Path) -> bool {
    let mut start = [0; 2];
    fs::File::open(file).is_ok_and(|mut f| f.read_exact(&mut start).is_ok()) && &start == b"#!"
}

/// A virtual environment is the folder of the link that was found; otherwise links are followed too.
fn prefixes_of(bin: &Path, python: &Path) -> Vec<PathBuf> {
    let Some(prefix) = bin.parent().map(Path::to_path_buf) else {
        return Vec::new();
    };
    if is_isolated(&prefix) {
        return vec![prefix];
    }
    let real = python.canonicalize().unwrap_or_default();
    let real = real.ancestors().nth(2).map(Path::to_path_buf);
    std::iter::once(prefix).chain(real).collect()
}

/// Whether this is a virtual environment that does not see the system's packages.
fn is_isolated(prefix: &Path) -> bool {
    fs::read_to_string(prefix.join("pyvenv.cfg")).is_ok_and(|text| {
        !text.lines().any(|line| {
            line.split_once('=').is_some_and(|(name, value)| {
                name.trim() == "include-system-site-packages"
                    && value.trim().eq_ignore_ascii_case("true")
            })
        })
    })
}

/// What pyenv's `shims/python3` would start: PYENV_VERSION, a `.python-version` here or above, or the
/// version chosen for all.
fn pyenv_prefix(bin: &Path, variables: Variables) -> Option<PathBuf> {
    if bin.file_name()? != "shims" {
        return None;
    }
    let root = path_in(variables, "PYENV_ROOT").unwrap_or(bin.parent()?.to_path_buf());
    let read = |file: PathBuf| fs::read_to_string(file).ok();
    let here = std::env::current_dir().unwrap_or_default();
    let chosen = variables("PYENV_VERSION")
        .and_then(|v| v.into_string().ok())
        .or_else(|| {
            here.ancestors()
                .find_map(|d| read(d.join(".python-version")))
        })
        .or_else(|| read(root.join("version")))?;
    let name = chosen.split([':', '\n']).next()?.trim();
    if name.is_empty() || name.contains('/') {
        return None;
    }
    // "3.11" means the newest 3.11.
    versions_of(&root.join("versions"), name).into_iter().next()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nvrtc::places::tests::Scratch;

    #[test]
    fn a_virtual_environment_hides_the_rest() {
        let scratch = Scratch::new();
        let packages = scratch.folder("venv/lib/python3.11/site-packages");
        scratch.folder("home/.local/lib/python3.11/site-packages");
        scratch.file("venv/pyvenv.cfg", "include-system-site-packages = false\n");
        scratch.file("venv/bin/python3", "\x7fELF");
        let found = |with: &[(&str, &str)]| scratch.ask(with, package_folders);
        let home = ("HOME", "home");
        for active in [("VIRTUAL_ENV", "venv"), ("PATH", "nothing:venv/bin")] {
            assert_eq!(found(&[active, home]), std::slice::from_ref(&packages));
        }
        scratch.file("venv/pyvenv.cfg", "include-system-site-packages = true\n");
        assert_eq!(found(&[("VIRTUAL_ENV", "venv"), home]).len(), 2);
        assert_eq!(found(&[]), Vec::<PathBuf>::new());
    }

    #[test]
    fn the_newest_python_of_a_prefix_is_first() {
        let scratch = Scratch::new();
        let old = scratch.folder("usr/lib/python3.9/site-packages");
        let new = scratch.folder("usr/lib/python3.11/site-packages");
        let debian = scratch.folder("usr/lib/python3/dist-packages");
        let local = scratch.folder("usr/local/lib/python3.11/dist-packages");
        scratch.folder("usr/lib/python3ish/site-packages");
        scratch.file("usr/bin/python3", "\x7fELF");
        let found = scratch.ask(&[("PATH", "usr/bin")], package_folders);
        assert_eq!(found, [new, old, debian, local]);
    }

    #[test]
    fn a_shim_of_pyenv_leads_to_the_chosen_version() {
        let scratch = Scratch::new();
        scratch.file("pyenv/shims/python3", "#!/bin/sh\n");
        scratch.file("pyenv/version", "3.9.1\n");
        let old = scratch.folder("pyenv/versions/3.9.1/lib/python3.9/site-packages");
        let new = scratch.folder("pyenv/versions/3.12.4/lib/python3.12/site-packages");
        scratch.folder("pyenv/versions/3.12.0/lib/python3.12/site-packages");
        let path = ("PATH", "pyenv/shims");
        assert_eq!(scratch.ask(&[path], package_folders), [old]);
        let chosen = [path, ("PYENV_VERSION", "3.12")];
        assert_eq!(scratch.ask(&chosen, package_folders), [new]);
    }
}
