#!/bin/sh
# cargo.sh PACKAGE FILE...: builds a crate of this workspace and copies the files it makes to the
# current folder. Run by dune, inside _build/default/<folder>. Shared libraries are asked for, and
# copied, under their name on Linux.
# cargo.sh --check: fails where Rust is missing or too old, and says so.
# cargo.sh --link-flags: the C libraries that a program with Rust inside needs, as an S-expression.
set -eu
here=$PWD
root=$(cd "$(dirname "$0")/.." && pwd)
wanted=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' "$root/Cargo.toml")

refuse() {
    echo "cudagraph is built with Rust $wanted or newer, and $1." >&2
    echo "Install Rust with rustup, or the package cargo of your system where that is new enough;" >&2
    echo "then build again." >&2
    exit 1
}

check() { # check NAME COMMAND: refuses what is missing or older than wanted
    command -v "$2" >/dev/null 2>&1 || refuse "$1 was not found on the PATH"
    line=$("$2" --version 2>/dev/null) || refuse "$1 does not run: '$2 --version' failed"
    version=$(printf '%s\n' "$line" | awk '{ print $2; exit }')
    awk -v found="$version" -v wanted="$wanted" 'BEGIN {
        split(found, f, "."); split(wanted, w, ".")
        exit !(f[1] + 0 > w[1] + 0 || (f[1] + 0 == w[1] + 0 && f[2] + 0 >= w[2] + 0)) }' ||
        refuse "$1 here is ${version:-of an unknown version} ($(command -v "$2"))"
}

rustc=${RUSTC:-rustc}
check cargo cargo
check rustc "$rustc"
[ "$1" != --check ] || exit 0

# On Windows, the Rust target whose objects OCaml's own C compiler can link; elsewhere the host.
case $(ocamlc -config-var system 2>/dev/null || true) in
mingw64) target=x86_64-pc-windows-gnu ;;
win64) target=x86_64-pc-windows-msvc ;;
*) target= ;;
esac

# With musl, rustup's compiler makes static programs only, unless told that there is a shared C library.
case $("$rustc" -vV) in
*"host: "*-musl*) export RUSTFLAGS="${RUSTFLAGS:-} -C target-feature=-crt-static" ;;
esac

if [ "$1" = --link-flags ]; then
    note=$(echo | "$rustc" ${target:+--target "$target"} --crate-type staticlib \
        --print native-static-libs -o "$here/link-flags.tmp" - 2>&1) || refuse "rustc failed: $note"
    rm -f "$here/link-flags.tmp"
    # The C compiler adds its own libgcc_s, or what stands for it in a static program.
    printf '(%s)\n' "$(printf '%s\n' "$note" | sed -n 's/.*native-static-libs: *//p' | sed 's/-lgcc_s *//')"
    exit
fi

package=$1
shift
# Beside the folder that dune keeps clean, so that crates are compiled once.
folder=${root%/default}/.cargo-target
cd "$root"
build() { # build CARGO_OPTION...
    cargo build --quiet --release --locked --ignore-rust-version --package "$package" --lib \
        --target-dir "$folder" ${target:+--target "$target"} "$@"
}
if [ -d vendor ]; then
    # A release archive brings its crates along: nothing is fetched.
    build --offline --config "source.crates-io.replace-with = 'vendored'" \
        --config "source.vendored.directory = '$root/vendor'"
else
    build
fi
for file in "$@"; do
    name=${file%.*}
    case $file:$(uname -s) in
    *.so:Darwin) made=$name.dylib ;;
    *.so:CYGWIN* | *.so:MINGW* | *.so:MSYS*) made=${name#lib}.dll ;;
    *) made=$file ;;
    esac
    [ "$target:$made" != "x86_64-pc-windows-msvc:$name.a" ] || made=${name#lib}.lib
    cp "$folder/${target:+$target/}release/$made" "$here/$file"
done
