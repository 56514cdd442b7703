#!/bin/sh
# check.sh: the installed package (in dune's install folder, found by findlib) linked in every way that OCaml has.
# Each way runs the graph of program.ml on the simulator.
set -eu
export CUDAGRAPH_DRIVER=sim
# The projects below have build folders of their own.
unset DUNE_BUILD_DIR
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp ./*.ml ./with_stubs.c ./other.rs "$work/"
cd "$work"
failed=0

way() { # way NAME COMMAND...: the command must print 'graph ok'
    name=$1
    shift
    if output=$("$@" 2>&1) && printf '%s\n' "$output" | grep -q '^graph ok$'; then
        echo "linking: $name: ok"
    else
        printf 'linking: %s: FAILED\n%s\n' "$name" "$output" >&2
        failed=1
    fi
}
find_c() { # find_c COMPILER ARGUMENT...
    compiler=$1
    shift
    ocamlfind "$compiler" -package cudagraph.cuda "$@"
}

native() { find_c ocamlopt -linkpkg program.ml -o native.exe && ./native.exe; }
bytecode() { find_c ocamlc -linkpkg program.ml -o program.bc && ocamlrun ./program.bc; }
custom() { find_c ocamlc -custom -linkpkg program.ml -o custom.exe && ./custom.exe; }
complete() {
    find_c ocamlc -output-complete-exe -linkpkg program.ml -o complete.exe &&
        env -u CAML_LD_LIBRARY_PATH ./complete.exe
}
shared_object() { # the whole program as a C library
    printf '#include <caml/callback.h>\nint main(int c, char **v) { caml_startup(v); return c - 1; }\n' >main.c
    find_c ocamlopt -output-complete-obj -runtime-variant _pic -linkpkg program.ml -o program.so &&
        ${CC:-cc} -I"$(ocamlc -where)" main.c ./program.so -o embedded.exe && ./embedded.exe
}
toplevel() {
    printf '#use "topfind";;\n#require "cudagraph.cuda";;\n#use "program.ml";;\n' >top.ml
    ocaml -noinit top.ml
}
packages() { # packages PREDICATE: the archives of the library and of what it needs, in order
    ocamlfind query -recursive -predicates "$1" -format '%d/%a' cudagraph.cuda
}
plugin() {
    find_c ocamlopt -shared program.ml -o plugin.cmxs
    ocamlfind ocamlopt -package dynlink -linkpkg -linkall host.ml -o host.exe
    # shellcheck disable=SC2046
    ./host.exe $(packages native | sed 's/cmxa$/cmxs/') plugin.cmxs
}
plugin_of_user() {
    find_c ocamlopt -shared program.ml -o plugin.cmxs
    find_c ocamlopt -package dynlink -linkpkg -linkall host_with_cuda.ml -o host_with_cuda.exe &&
        ./host_with_cuda.exe plugin.cmxs
}
plugin_bytecode() {
    find_c ocamlc -c program.ml && ocamlfind ocamlc -package dynlink -linkpkg -linkall host.ml -o host.bc
    # shellcheck disable=SC2046
    ocamlrun ./host.bc $(packages byte) program.cmo
}
other_rust() { # other_rust RUSTC_OPTION...: beside another archive made by Rust
    # shellcheck disable=SC2086
    ${RUSTC:-rustc} --edition 2021 --crate-type staticlib -C opt-level=2 "$@" other.rs -o libother.a
    find_c ocamlopt -linkpkg program.ml with_other.ml libother.a -cclib -ldl -cclib -lpthread -o both.exe
    output=$(./both.exe) && printf '%s\n' "$output" && [ "${output##*
}" = "other ok" ]
}
profile() { # profile NAME: a dune project of its own
    rm -rf project && mkdir project && cp program.ml project/
    echo '(lang dune 3.0)' >project/dune-project
    echo '(executable (name program) (modes exe byte) (libraries cudagraph.cuda))' >project/dune
    dune exec --root project --profile "$1" --display=quiet ./program.exe
}
library_of_user() { # a dune project with a library that uses ours
    rm -rf project && mkdir -p project/lib && cp program.ml project/
    echo '(lang dune 3.0)' >project/dune-project
    echo '(library (name mine) (libraries cudagraph.cuda))' >project/lib/dune
    echo 'let () = Cuda.init () let answer = 42' >project/lib/mine.ml
    echo ';; assert (Mine.answer = 42)' >>project/program.ml
}
stubs() { # stubs LANGUAGE FILE: a dune project whose own stubs include the header that is installed
    rm -rf project && mkdir project && cp program.ml with_stubs.ml project/ && cp with_stubs.c "project/$2"
    echo '(lang dune 3.0)' >project/dune-project
    echo "(executable (name with_stubs) (libraries cudagraph.cuda) (foreign_stubs (language $1) (names with_stubs)))" \
        >project/dune
    echo 'include Program' >>project/with_stubs.ml
    dune exec --root project --display=quiet ./with_stubs.exe
}
dune_top() {
    library_of_user
    (cd project && dune top --root . 2>/dev/null >../top.init) &&
        cat top.init project/program.ml >top.ml && ocaml -noinit top.ml
}
dune_utop() {
    library_of_user
    (cd project && dune utop --root . lib -- program.ml)
}
static() { # it cannot load a driver, and must say so instead of crashing
    find_c ocamlopt -linkpkg program.ml -ccopt -static -o static.exe 2>/dev/null || return 1
    if output=$(./static.exe 2>&1); then return 1; fi
    printf '%s\n' "$output" | grep -q 'linked statically.*link it without -static' && echo "graph ok"
}
dune_toplevel() { # an executable toplevel with the library in it, which is how dune makes utop
    rm -rf project && mkdir project && cp program.ml project/
    echo '(lang dune 3.0)' >project/dune-project
    echo '(toplevel (name top) (libraries cudagraph.cuda))' >project/dune
    (cd project && dune exec --root . --display=quiet -- ./top.exe -noinit program.ml)
}

way native native
way bytecode bytecode
way "bytecode, -custom" custom
way "bytecode, -output-complete-exe" complete
way "in a C program, -output-complete-obj" shared_object
way "toplevel, #require" toplevel
way "plugin in a host without the library" plugin
way "plugin in a host with the library" plugin_of_user
way "bytecode plugin" plugin_bytecode
way "dune, profile dev" profile dev
way "dune, profile release" profile release
way "dune, stubs in C" stubs c with_stubs.c
if echo '#include <cstddef>' | ${CXX:-g++} -E -x c++ - >/dev/null 2>&1; then
    way "dune, stubs in C++" stubs cxx with_stubs.cpp
else
    echo "linking: dune, stubs in C++: skipped, there is no C++ compiler"
fi
way "dune top" dune_top
if ocamlfind query utop >/dev/null 2>&1; then
    way "dune utop" dune_utop
else
    echo "linking: dune utop: skipped, utop is not installed"
fi
way "a toplevel built by dune" dune_toplevel
if echo 'int main(void) { return 0; }' | ${CC:-cc} -static -x c - -lm -o smallest.exe 2>/dev/null; then
    way "static: a clear refusal" static
else
    echo "linking: static: skipped, this system has no static C library"
fi
way "beside another Rust library" other_rust
way "beside another Rust library, with fat LTO" other_rust -C lto=fat -C codegen-units=1

# One prefix, no debug information, a sane size.
prefix=$(ocamlfind query cudagraph)
archive=$prefix/cudagraph/libcudagraph_stubs.a
dll=$prefix/../stublibs/dllcudagraph_stubs.so
expect() { # expect TEXT CONDITION...
    text=$1
    shift
    if "$@"; then
        echo "linking: $text: ok"
    else
        echo "linking: $text: FAILED" >&2
        failed=1
    fi
}
[ -e "$archive" ] || archive=$prefix/libcudagraph_stubs.a
foreign() { nm "$@" --defined-only | awk 'NF == 3 && $2 ~ /[A-Z]/ && $3 !~ /^cudagraph_/ { print $3 }'; }
debug() { objdump -h "$1" | grep -c '\.debug_' || true; }
size() { wc -c <"$1"; }
if [ "$(uname -s)" = Linux ]; then
    expect "the archive shows only cudagraph_ names" [ -z "$(foreign -g "$archive")" ]
    expect "the dll shows only cudagraph_ names" [ -z "$(foreign -D "$dll")" ]
    expect "they show the same ones" [ "$(nm -g --defined-only "$archive" | awk 'NF == 3 { print $3 }' | sort)" = \
        "$(nm -D --defined-only "$dll" | awk '{ print $3 }' | sort)" ]
    expect "the archive has no debug information" [ "$(debug "$archive")" = 0 ]
    expect "the simulator has no debug information" [ "$(debug "$prefix/libcudagraph_sim.so")" = 0 ]
    expect "the archive is smaller than 4 MB" [ "$(size "$archive")" -lt 4000000 ]
    expect "the dll is smaller than 2 MB" [ "$(size "$dll")" -lt 2000000 ]
    expect "the simulator is smaller than 10 MB" [ "$(size "$prefix/libcudagraph_sim.so")" -lt 10000000 ]
fi
exit "$failed"
