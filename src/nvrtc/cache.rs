//! What was compiled, kept on disk.
//!
//! One file for each program, named by a digest of all that the result depends on. A file is written under
//! another name and then renamed, so that a reader sees all of it or nothing, however many processes
//! write; its own digest is its last part, so that a damaged file is told from a good one and made anew.

use super::includes::{included, Included};
use super::library::Nvrtc;
use super::program::{Compiled, Request};
use super::{Error, Result};
use crate::os_bytes::OsStrExt;
use sha2::{Digest, Sha256};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Begins every file, and is part of every name: to be changed with the format.
const FORMAT: &[u8] = b"cudagraph nvrtc cache 1\n";
const DIGEST: usize = 32;

/// The place of one program's result.
pub struct Cache {
    folder: PathBuf,
    file: PathBuf,
}

impl Cache {
    /// Where the result of `request` belongs in the cache in `folder`, which is made if need be. `None`
    /// if it cannot be told what the result depends on.
    pub fn for_request(folder: &Path, request: &Request, nvrtc: &Nvrtc) -> Result<Option<Cache>> {
        let refused = |why: String| {
            Error::invalid(format!(
                "cache {folder:?}: this folder cannot be made: {why}"
            ))
        };
        if folder.as_os_str().is_empty() {
            return Err(refused("it has no name".to_string()));
        }
        fs::create_dir_all(folder).map_err(|e| refused(e.to_string()))?;
        let included = included_by(request, nvrtc);
        if included.unknown {
            return Ok(None);
        }
        let mut name = String::new();
        for byte in digest_of(request, nvrtc, &included) {
            name.push_str(&format!("{byte:02x}"));
        }
        Ok(Some(Cache {
            folder: folder.to_path_buf(),
            file: folder.join(name + ".nvrtc"),
        }))
    }

    /// The result, unless it is not there or damaged.
    pub fn read(&self) -> Option<Compiled> {
        decode(&fs::read(&self.file).ok()?)
    }

    /// Keeps a result. It is not an error if that cannot be done: the result is there all the same.
    pub fn write(&self, compiled: &Compiled) {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let unique = format!(".{}-{count}.part", std::process::id());
        let part = self.folder.join(unique);
        let written = fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&part)
            .and_then(|mut file| file.write_all(&encode(compiled)))
            .and_then(|()| fs::rename(&part, &self.file));
        if written.is_err() {
            let _ = fs::remove_file(&part);
        }
    }
}

/// Everything that may be included. A precompiled header counts as unknown.
fn included_by(request: &Request, nvrtc: &Nvrtc) -> Included {
    let mut texts: Vec<&[u8]> = vec![&request.source];
    texts.extend(request.headers.iter().map(|(_, text)| text.as_slice()));
    // NVRTC also looks in the current folder, and beside the source if its name has a folder.
    let mut folders = vec![PathBuf::from(".")];
    folders.extend(path(&request.name).parent().map(Path::to_path_buf));
    folders.extend(values_of(&["-I", "--include-path"], &request.options));
    folders.extend(nvrtc.include_folders.iter().cloned());
    let forced = values_of(&["-include", "--pre-include"], &request.options);
    let mut found = included(&texts, &forced, &folders, &nvrtc.include_folders);
    let mut names = request.options.iter().map(|o| String::from_utf8_lossy(o));
    found.unknown |= names.any(|o| o.starts_with('-') && o.contains("pch"));
    found
}

fn path(bytes: &[u8]) -> PathBuf {
    PathBuf::from(std::ffi::OsStr::from_bytes(bytes))
}

/// The values of an option, written as `-Ivalue`, `-I value`, `-I=value` or in two.
fn values_of(names: &[&str], options: &[Vec<u8>]) -> Vec<PathBuf> {
    let mut values = Vec::new();
    for (i, option) in options.iter().enumerate() {
        for name in names {
            let Some(value) = option.strip_prefix(name.as_bytes()) else {
                continue;
            };
            let start = value.iter().position(|c| !b" =".contains(c));
            match start {
                Some(start) => values.push(path(&value[start..])),
                None => values.extend(options.get(i + 1).map(|next| path(next))),
            }
        }
    }
    values
}

fn digest_of(request: &Request, nvrtc: &Nvrtc, included: &Included) -> [u8; DIGEST] {
    let mut digest = Sha256::new();
    // With their lengths and counts, so that no two lists of texts are the same bytes.
    let mut list = |texts: &[&[u8]]| {
        digest.update((texts.len() as u64).to_le_bytes());
        for text in texts {
            digest.update((text.len() as u64).to_le_bytes());
            digest.update(text);
        }
    };
    let version = format!("{:?}", nvrtc.version);
    list(&[FORMAT, version.as_bytes(), &nvrtc.fingerprint]);
    list(&[&request.source, &request.name]);
    list(&refs(&request.options));
    list(
        &request
            .cubin_for
            .iter()
            .map(Vec::as_slice)
            .collect::<Vec<_>>(),
    );
    list(&refs(&request.expressions));
    for (name, text) in &request.headers {
        list(&[name, text]);
    }
    let folders = nvrtc.include_folders.iter();
    list(
        &folders
            .map(|f| f.as_os_str().as_bytes())
            .collect::<Vec<_>>(),
    );
    for (name, text) in &included.files {
        list(&[name.as_os_str().as_bytes(), text]);
    }
    digest.finalize().into()
}

fn refs(texts: &[Vec<u8>]) -> Vec<&[u8]> {
    texts.iter().map(Vec::as_slice).collect()
}

/// The format, each text after its length, the digest of all that.
fn encode(compiled: &Compiled) -> Vec<u8> {
    let mut bytes = FORMAT.to_vec();
    for text in [&compiled.image, &compiled.log]
        .into_iter()
        .chain(&compiled.lowered)
    {
        bytes.extend((text.len() as u64).to_le_bytes());
        bytes.extend(text);
    }
    let digest = Sha256::digest(&bytes);
    bytes.extend(digest);
    bytes
}

fn decode(bytes: &[u8]) -> Option<Compiled> {
    let (content, digest) = bytes.split_at_checked(bytes.len().checked_sub(DIGEST)?)?;
    if Sha256::digest(content).as_slice() != digest {
        return None;
    }
    let mut rest = content.strip_prefix(FORMAT)?;
    let mut texts = Vec::new();
    while !rest.is_empty() {
        let (length, after) = rest.split_first_chunk::<8>()?;
        let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
        let (text, after) = after.split_at_checked(length)?;
        texts.push(text.to_vec());
        rest = after;
    }
    let mut texts = texts.into_iter();
    Some(Compiled {
        image: texts.next()?,
        log: texts.next()?,
        lowered: texts.collect(),
        cached: true,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nvrtc::places::tests::Scratch;

    fn sample() -> Compiled {
        Compiled {
            image: b"\x7fELF\0\0".to_vec(),
            log: b"a warning".to_vec(),
            lowered: vec![b"_Z1fi".to_vec(), Vec::new()],
            cached: true,
        }
    }

    #[test]
    fn what_is_written_is_read_and_no_damage_passes() {
        let whole = encode(&sample());
        assert_eq!(decode(&whole), Some(sample()));
        for end in 0..whole.len() {
            assert_eq!(decode(&whole[..end]), None, "cut at {end}");
        }
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 1;
            assert_eq!(decode(&damaged), None, "changed at {at}");
        }
        assert_eq!(decode(&[whole.as_slice(), b"x"].concat()), None);
    }

    #[test]
    fn writers_leave_nothing_but_the_file() {
        let scratch = Scratch::new();
        let cache = |folder: &str| Cache {
            folder: scratch.0.join(folder),
            file: scratch.0.join(folder).join("k.nvrtc"),
        };
        let cache_here = cache("");
        assert_eq!(cache_here.read(), None);
        std::thread::scope(|threads| {
            for _ in 0..4 {
                threads.spawn(|| {
                    for _ in 0..20 {
                        cache_here.write(&sample());
                        assert_eq!(cache_here.read(), Some(sample()));
                    }
                });
            }
        });
        let names = fs::read_dir(&scratch.0)
            .unwrap()
            .map(|e| e.unwrap().file_name());
        assert_eq!(names.collect::<Vec<_>>(), ["k.nvrtc"]);
        // A folder that went: nothing is kept, nothing is wrong.
        cache("gone").write(&sample());
        assert_eq!(cache("gone").read(), None);
    }

    #[test]
    fn every_way_to_write_an_option() {
        let options = [
            "-Ia",
            "-I",
            "b",
            "--include-path=c",
            "-I d",
            "-DI=e",
            "--include-path",
        ];
        let options: Vec<Vec<u8>> = options.iter().map(|o| o.as_bytes().to_vec()).collect();
        let values = values_of(&["-I", "--include-path"], &options);
        assert_eq!(values, ["a", "b", "c", "d"].map(PathBuf::from));
    }
}
