#!/bin/sh
# What a user reads where Rust is missing or too old: the build stops with one clear message.
set -eu
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
wanted=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
failed=0

mkdir "$work/tools"
for tool in sh sed awk ocamlc uname dirname basename cat cp rm; do
    ln -s "$(command -v "$tool")" "$work/tools/$tool"
done
fake() { # fake NAME VERSION: a program that only says its version
    printf '#!/bin/sh\necho "%s %s (0123456 2020-01-01)"\n' "$1" "$2" >"$work/tools/$1"
    chmod +x "$work/tools/$1"
}
refused() { # refused CASE TEXT: cargo.sh must fail and say TEXT
    if output=$(env -u RUSTC PATH="$work/tools" sh ocaml/cargo.sh cudagraph libcudagraph.a 2>&1); then
        echo "rust: $1: was taken" >&2
        failed=1
    elif case $output in *"Rust $wanted or newer, and $2"*"Install Rust"*) true ;; *) false ;; esac then
        echo "rust: $1: refused as it should be"
    else
        printf 'rust: %s: says\n%s\n' "$1" "$output" >&2
        failed=1
    fi
}

refused "no cargo" "cargo was not found on the PATH."
fake cargo 1.63.0
refused "an old cargo" "cargo here is 1.63.0 ($work/tools/cargo)."
fake cargo "${wanted%.*}.$((${wanted#*.} - 1)).9"
refused "a cargo one version too old" "cargo here is ${wanted%.*}.$((${wanted#*.} - 1)).9 ($work/tools/cargo)."
fake cargo "$wanted.0"
refused "no rustc" "rustc was not found on the PATH."
fake rustc 1.63.0
refused "an old rustc" "rustc here is 1.63.0 ($work/tools/rustc)."
printf '#!/bin/sh\nexit 1\n' >"$work/tools/rustc"
refused "a rustc that does not run" "rustc does not run: 'rustc --version' failed."
fake rustc "$wanted.0"
env -u RUSTC PATH="$work/tools" sh ocaml/cargo.sh --check
fake cargo 2.0.0
fake rustc "1.100.0-nightly"
env -u RUSTC PATH="$work/tools" sh ocaml/cargo.sh --check
exit "$failed"
