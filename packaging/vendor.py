#!/usr/bin/env python3
"""vendor.py TREE: puts the crates that TREE's Cargo.lock names into TREE/vendor, and only what a build reads.

`cargo vendor` fetches and verifies them. Then go: tests, examples and other folders beside src, hidden files (dune
does not copy hidden folders), the libraries of cudarc that are not used, and the systems of libc that are not ours.
Licences stay, and vendor/LICENCES.txt lists them. Each crate's list of checksums is cut down to the files that are
left: the sums themselves stay as the registry made them, so cargo goes on refusing a changed file.
"""

import json
import pathlib
import shutil
import subprocess
import sys
import tomllib

# What a crate needs beside src, where its package has more folders than that.
ALSO_NEEDED = {
    "ocaml-boxroot-sys": {"vendor"},  # the C sources
    "ocaml-interop": {"docs"},  # included as text
}

# Folders and files of which only the named parts are read on Linux, macOS and Windows.
KEPT = {
    "cudarc": {"src": {"lib.rs", "types.rs", "driver"}},
    "libc": {
        "src": {"lib.rs", "macros.rs", "primitives.rs", "types.rs", "new", "unix", "windows"},
        "src/new": {"mod.rs", "apple", "common", "glibc", "linux_uapi", "musl", "ucrt"},
        "src/unix": {"mod.rs", "bsd", "linux_like"},
        "src/unix/bsd": {"mod.rs", "apple"},
        "src/unix/linux_like": {"mod.rs", "linux", "linux_l4re_shared.rs"},
    },
}

UNREAD_FILES = {"Cargo.lock", "Cargo.toml.orig", "Makefile", "dune-project"}


def remove(path):
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


def is_licence(name):
    return any(word in name.lower() for word in ("licen", "copying", "copyright", "notice", "unlicense"))


def trim(crate, name):
    """Removes from the folder `crate` what a build does not read."""
    needed = {"src"} | ALSO_NEEDED.get(name, set())
    for path in sorted(crate.iterdir()):
        if path.name == ".cargo-checksum.json" or is_licence(path.name):
            continue
        if path.is_dir() and path.name not in needed or path.name in UNREAD_FILES:
            remove(path)
    for folder, kept in KEPT.get(name, {}).items():
        missing = [part for part in kept if not (crate / folder / part).exists()]
        if missing:
            sys.exit(f"vendor.py: {name} has no {folder}/{missing[0]}: its layout changed, mend KEPT")
        for path in list((crate / folder).iterdir()):
            if path.name not in kept:
                remove(path)
    for path in sorted(crate.rglob("*"), reverse=True):
        if path.name != ".cargo-checksum.json" and path.name[0] in "._":
            if path.is_dir() or path.name[0] == ".":
                remove(path)


def keep_checksums(crate):
    """Cuts the crate's list of checksums down to the files that are there."""
    path = crate / ".cargo-checksum.json"
    sums = json.loads(path.read_text())
    sums["files"] = {file: sums["files"][file] for file in sorted(sums["files"]) if (crate / file).is_file()}
    path.write_text(json.dumps(sums, separators=(",", ":")) + "\n")


def licence_line(crate):
    package = tomllib.loads((crate / "Cargo.toml").read_text())["package"]
    texts = sorted(p.name for p in crate.iterdir() if is_licence(p.name))
    return "{name} {version}: {licence}. {authors}{home} {texts}".format(
        name=package["name"],
        version=package["version"],
        licence=package.get("license", "see its files"),
        authors="By " + ", ".join(package["authors"]) + ". " if package.get("authors") else "",
        home=package.get("repository", package.get("homepage", "")) + ".",
        texts="Texts: " + ", ".join(texts) + "." if texts else "The crate comes without a copy of the text.",
    )


def main():
    tree = pathlib.Path(sys.argv[1]).resolve()
    vendor = tree / "vendor"
    subprocess.run(
        ["cargo", "vendor", "--quiet", "--locked", str(vendor)],
        cwd=tree, check=True, stdout=subprocess.DEVNULL,
    )
    lines = []
    for crate in sorted(p for p in vendor.iterdir() if p.is_dir()):
        name = tomllib.loads((crate / "Cargo.toml").read_text())["package"]["name"]
        trim(crate, name)
        keep_checksums(crate)
        lines.append(licence_line(crate))
    (vendor / "LICENCES.txt").write_text(
        "Crates of other authors that cudagraph is built with, each under its own licence.\n\n"
        + "".join(line + "\n" for line in lines)
    )


main()
