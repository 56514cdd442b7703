#!/bin/sh
# Makes out/cudagraph-VERSION.tar.gz from the last commit: the tree and, in vendor/, the Rust crates that
# it is built with, so that it builds without a network. The same commit gives the same bytes.
set -eu
cd "$(dirname "$0")/.."
python3 -c 'import tomllib' 2>/dev/null || {
    echo "dist: Python 3.11 or newer, which chooses what is kept of the crates, was not found as python3" >&2
    exit 1
}
version=$(sed -n 's/^(version \(.*\))$/\1/p' dune-project)
rust_version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -n 1)
if [ "$version" != "$rust_version" ]; then
    echo "dist: dune-project says version $version, Cargo.toml says $rust_version" >&2
    exit 1
fi
[ -z "$(git status --porcelain)" ] || echo "dist: what is not committed is not in the archive" >&2
name=cudagraph-$version
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
git archive --prefix="$name/" HEAD | tar -x -C "$work"
python3 packaging/vendor.py "$work/$name"
mkdir -p out
tar --create --directory "$work" --sort=name --owner=0 --group=0 --numeric-owner --mode=u+rw,go+r-w \
    --mtime="@$(git log -1 --format=%ct)" "$name" | gzip -9n >"out/$name.tar.gz"
echo "out/$name.tar.gz"
