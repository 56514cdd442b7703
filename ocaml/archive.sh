#!/bin/sh
# archive.sh RUST_ARCHIVE LINK_FLAGS ARCHIVE DLL FILE...: makes the two libraries that OCaml links of the one that
# Rust made. Only the functions that the files name stay visible, as "cudagraph_x" in OCaml and as cudagraph_c_x
# in C, so that they can be linked beside another library made by Rust, of whatever version.
set -eu
rust=$1 flags=$(tr -d '()' <"$2") archive=$3 dll=$4
shift 4
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
grep -ohE '"cudagraph_[a-z0-9_]*"|cudagraph_c_[a-z_]*' "$@" | tr -d '"' | sort -u >"$work/exports"
rm -f "$archive" "$dll"

one_object() {
    # Section groups are dissolved: the linker would take ours for another archive's of the same name, and the
    # symbol in it is no longer visible to that archive.
    # shellcheck disable=SC2046
    ld -r --gc-sections --force-group-allocation $(sed 's/^/-u /' "$work/exports") "$rust" -o "$work/core.o"
    objcopy --strip-unneeded --keep-global-symbols="$work/exports" \
        --remove-section=.llvmbc --remove-section=.llvmcmd "$work/core.o"
    ar rcs "$archive" "$work/core.o"
}

# shellcheck disable=SC2086
case $(uname -s) in
Linux)
    one_object
    ${CC:-cc} -shared -o "$dll" "$work/core.o" $flags
    ;;
Darwin)
    # Apple's tools cannot hide the symbols of an archive; those of the dll they can.
    sed 's/^/_/' "$work/exports" >"$work/exported"
    cp "$rust" "$archive"
    ${CC:-cc} -shared -o "$dll" -undefined dynamic_lookup -Wl,-all_load "$rust" \
        -Wl,-exported_symbols_list,"$work/exported" $flags
    ;;
*)
    # Windows: OCaml's own linker makes a dll whose missing symbols are the program's.
    one_object
    ocamlmklib -o cudagraph_stubs "$work/core.o" $flags
    ;;
esac
