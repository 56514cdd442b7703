#!/bin/sh
# archive.sh RUST_ARCHIVE RUST_SHARED RAW_ML ARCHIVE SHARED: what OCaml links. Only the functions that
# RAW_ML names stay visible, so that it can be linked beside another library made by Rust, of whatever
# version. Where the linker cannot do that, the libraries are taken as Rust made them.
set -eu
rust_archive=$1 rust_shared=$2 raw=$3 archive=$4 shared=$5
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
case $(uname -s) in
Linux)
    grep -o '"cudagraph_[a-z0-9_]*"' "$raw" | tr -d '"' | sort -u >"$work/exports"
    # Section groups are dissolved: the linker would take ours for another archive's of the same name, and the
    # symbol in it is no longer visible to that archive.
    # shellcheck disable=SC2046
    ld -r --gc-sections --force-group-allocation $(sed 's/^/-u /' "$work/exports") "$rust_archive" -o "$work/core.o"
    objcopy --strip-unneeded --keep-global-symbols="$work/exports" \
        --remove-section=.llvmbc --remove-section=.llvmcmd "$work/core.o"
    rm -f "$archive" "$shared"
    ar rcs "$archive" "$work/core.o"
    # shellcheck disable=SC2046
    ${CC:-cc} -shared -o "$shared" "$work/core.o" $(tr -d '()' <link_flags.sexp)
    ;;
*)
    cp "$rust_archive" "$archive"
    cp "$rust_shared" "$shared"
    ;;
esac
