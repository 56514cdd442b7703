#!/bin/sh
# archive.sh RUST_ARCHIVE OUTPUT FILE...: one object that shows only the functions that the files name:
# as "cudagraph_x" in OCaml, as cudagraph_c_x in C.
set -eu
input=$1 output=$2
shift 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
grep -ohE '"cudagraph_[a-z0-9_]*"|cudagraph_c_[a-z_]*' "$@" | tr -d '"' | sort -u >"$work/exports"
case $(uname -s) in
Linux)
    # shellcheck disable=SC2046
    ld -r --gc-sections $(sed 's/^/-u /' "$work/exports") "$input" -o "$work/core.o"
    objcopy --strip-debug --keep-global-symbols="$work/exports" \
        --remove-section=.llvmbc --remove-section=.llvmcmd "$work/core.o"
    rm -f "$output"
    ar rcs "$output" "$work/core.o"
    ;;
*) cp "$input" "$output" ;;
esac
