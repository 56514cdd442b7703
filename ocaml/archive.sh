#!/bin/sh
# archive.sh RUST_ARCHIVE RAW_ML OUTPUT: one object that shows only the functions that RAW_ML names.
set -eu
input=$1 raw=$2 output=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
grep -o '"cudagraph_[a-z0-9_]*"' "$raw" | tr -d '"' | sort -u >"$work/exports"
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
