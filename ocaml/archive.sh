#!/bin/sh
# archive.sh RUST_ARCHIVE OUTPUT RAW_ML...: one object that shows only the functions that the RAW_ML name.
set -eu
input=$1 output=$2
shift 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
grep -oh '"cudagraph_[a-z0-9_]*"' "$@" | tr -d '"' | sort -u >"$work/exports"
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
