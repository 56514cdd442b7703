#!/bin/sh
# cargo.sh PACKAGE FILE...: builds a crate of this workspace and copies the files it makes to the
# current folder. Run by dune, inside _build/default/<folder>.
set -eu
package=$1
shift
here=$PWD
root=$(cd .. && pwd)
if ! command -v cargo >/dev/null 2>&1; then
    echo "cudagraph is built with Rust, and cargo was not found on the PATH." >&2
    echo "Install Rust (the package cargo of your system, or rustup) and build again." >&2
    exit 1
fi
# Beside the folder that dune keeps clean, so that crates are compiled once.
target=${root%/default}/.cargo-target
cd "$root"
cargo build --quiet --release --locked --package "$package" --lib --target-dir "$target"
for file in "$@"; do
    cp "$target/release/$file" "$here/$file"
done
