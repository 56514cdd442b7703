//! Which files a source may include: what a cached result depends on besides its source.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The files that a program may include.
pub struct Included {
    /// Each file once, with its content.
    pub files: Vec<(PathBuf, Vec<u8>)>,
    /// Whether something is included under a name that only the preprocessor could tell.
    pub unknown: bool,
}

/// Finds what `texts` include, directly or not, from `folders`. Conditions are not looked at and every
/// file of a name is taken, so this is rather too much than too little.
///
/// Headers under one of `trusted` may include by a macro's name without being `unknown`: those are
/// CUDA's own, which change with its version.
pub fn included(
    texts: &[&[u8]],
    forced: &[PathBuf],
    folders: &[PathBuf],
    trusted: &[PathBuf],
) -> Included {
    let mut found = Included {
        files: Vec::new(),
        unknown: false,
    };
    let mut seen = HashSet::new();
    let mut open: Vec<PathBuf> = Vec::new();
    let look = |text: &[u8], beside: Option<&Path>, open: &mut Vec<PathBuf>| {
        let (names, computed) = names_in(text);
        let places = beside
            .into_iter()
            .chain(folders.iter().map(|f| f.as_path()));
        let places: Vec<&Path> = places.collect();
        for name in names {
            open.extend(places.iter().map(|place| place.join(&name)));
        }
        computed
    };
    for text in texts {
        found.unknown |= look(text, None, &mut open);
    }
    for name in forced {
        open.extend(folders.iter().map(|folder| folder.join(name)));
    }
    while let Some(file) = open.pop() {
        if !seen.insert(file.clone()) {
            continue;
        }
        let Some(content) = read_file(&file) else {
            continue;
        };
        let computed = look(&content, file.parent(), &mut open);
        found.unknown |= computed && !trusted.iter().any(|folder| file.starts_with(folder));
        found.files.push((file, content));
    }
    found.files.sort();
    found
}

fn read_file(file: &Path) -> Option<Vec<u8>> {
    // Not a pipe, whose reading might never end.
    file.is_file().then(|| fs::read(file).ok())?
}

/// The names after `include`, `include_next` and `__has_include`, and whether one is not written out.
fn names_in(text: &[u8]) -> (Vec<PathBuf>, bool) {
    use crate::os_bytes::OsStrExt;
    let mut names = Vec::new();
    let mut computed = false;
    let mut rest = text;
    while let Some(at) = find(rest, b"include") {
        let before = &text[..text.len() - rest.len() + at];
        let directive = is_directive(before);
        let question = before.ends_with(b"__has_");
        rest = &rest[at + b"include".len()..];
        let after = rest.strip_prefix(b"_next").unwrap_or(rest);
        let name = skip_space(after);
        let inner = name.strip_prefix(b"(").filter(|_| question);
        let name = inner.map_or(name, skip_space);
        let close = match name.first() {
            Some(b'<') => b'>',
            Some(b'"') => b'"',
            // Here a word is a macro; elsewhere "include" is just a word.
            _ => {
                computed |=
                    (directive || inner.is_some()) && name.first().is_some_and(|c| is_word(*c));
                continue;
            }
        };
        let name = &name[1..];
        let end = name.iter().position(|c| *c == close || *c == b'\n');
        if let Some(end) = end.filter(|end| name[*end] == close) {
            names.push(PathBuf::from(std::ffi::OsStr::from_bytes(&name[..end])));
        }
    }
    (names, computed)
}

fn is_word(c: u8) -> bool {
    c == b'_' || c.is_ascii_alphabetic()
}

/// Whether the text ends with the `#` of a directive.
fn is_directive(before: &[u8]) -> bool {
    let mut before = before;
    loop {
        before = match before {
            [start @ .., b' ' | b'\t'] => start,
            [start @ .., b'\\', b'\n'] | [start @ .., b'\\', b'\r', b'\n'] => start,
            _ => return before.ends_with(b"#"),
        }
    }
}

fn skip_space(text: &[u8]) -> &[u8] {
    let mut text = text;
    loop {
        text = match text {
            [b' ' | b'\t', rest @ ..] => rest,
            [b'\\', b'\n', rest @ ..] | [b'\\', b'\r', b'\n', rest @ ..] => rest,
            _ => return text,
        }
    }
}

fn find(text: &[u8], word: &[u8]) -> Option<usize> {
    text.windows(word.len()).position(|w| w == word)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nvrtc::places::tests::Scratch;

    fn names(text: &str) -> (Vec<String>, bool) {
        let (names, computed) = names_in(text.as_bytes());
        let names = names.iter().map(|n| n.display().to_string()).collect();
        (names, computed)
    }

    #[test]
    fn every_way_to_include() {
        let (found, computed) = names(
            "#include <a.h>\n  # \t include \"b c.h\"\n#include_next <d>\n#if __has_include( <e> )\n\
             #\\\ninclude \\\n<g.h>\n// includes: <no\n#include <never\n>",
        );
        assert_eq!(found, ["a.h", "b c.h", "d", "e", "g.h"]);
        assert!(!computed);
        assert_eq!(names("#include NAME\n"), (vec![], true));
        assert_eq!(names("#if __has_include(NAME)"), (vec![], true));
        assert_eq!(names("#ifdef __has_include\nx"), (vec![], false));
        assert_eq!(names("// we include NAME"), (vec![], false));
        assert_eq!(names("#include"), (vec![], false));
    }

    #[test]
    fn headers_of_headers_are_found_from_every_folder() {
        let scratch = Scratch::new();
        let a = scratch.file("one/a.h", "#include \"b.h\"\n#include <a.h>\n");
        let beside = scratch.file("one/b.h", "#include COMPUTED\n");
        let other = scratch.file("two/b.h", "");
        scratch.file("two/c.h", "");
        let folders = [scratch.0.join("one"), scratch.0.join("two")];
        let look = |trusted: &[PathBuf]| included(&[b"#include <a.h>"], &[], &folders, trusted);
        let found = look(&[]);
        let files: Vec<_> = found.files.iter().map(|f| &f.0).collect();
        assert_eq!(files, [&a, &beside, &other]);
        assert!(found.unknown);
        assert!(!look(&folders[..1]).unknown);
        let forced = included(&[], &["c.h".into()], &folders, &[]);
        assert_eq!(forced.files.len(), 1);
    }
}
