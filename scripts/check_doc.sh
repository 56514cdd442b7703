#!/bin/sh
# The pages of the manual: they are made without a warning, their code runs and prints what they say, and
# who follows the tutorial in an empty folder, with the package installed, arrives.
set -eu
# dune install finds what was built in _build only.
unset DUNE_BUILD_DIR
cd "$(dirname "$0")/.."
sh scripts/doc.sh

if command -v ocaml-mdx >/dev/null 2>&1 && ocamlfind query mdx.test >/dev/null 2>&1; then
    dune build @doc/runtest --force
    echo "the code in the pages prints what they say"
else
    echo "SKIPPED: the code in the pages: ocaml-mdx is not installed ('make setup-doc' on Debian, or opam install mdx)"
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
page=$PWD/doc/first_graph.mld
# blocks KIND N: the Nth block of the page that begins with {@KIND, or all of them with 0
blocks() {
    awk -v start="{@$1" -v wanted="$2" '
        index($0, start) == 1 { inside = 1; number++; next }
        /^]}$/ { inside = 0 }
        inside && (wanted == 0 || number == wanted)' "$page"
}
dune build @install
dune install --prefix "$work/prefix" cudagraph 2>/dev/null
mkdir "$work/first"
cd "$work/first"
blocks 'text' 1 >dune-project
blocks 'text' 2 >dune
blocks 'ocaml' 0 >first.ml
export CUDAGRAPH_DRIVER=sim OCAMLPATH="$work/prefix/lib${OCAMLPATH:+:$OCAMLPATH}" PATH="$work/prefix/bin:$PATH"
cudagraph doctor >doctor.txt || { cat doctor.txt >&2; exit 1; }
dune exec --root . ./first.exe >output.txt 2>errors.txt || { cat errors.txt output.txt >&2; exit 1; }
expected=$(sed -n 's/^{v \(.*\) v}$/\1/p' "$page")
if [ -z "$expected" ] || ! grep -Fxq "$expected" output.txt; then
    echo "the tutorial promises '$expected'; its program printed:" >&2
    cat output.txt >&2
    exit 1
fi
grep -q "$work/prefix/lib/cudagraph/libcudagraph_sim.so" output.txt || {
    echo "the tutorial's program did not run on the simulator that was installed:" >&2
    cat output.txt >&2
    exit 1
}
echo "the tutorial, in an empty folder, prints '$expected'"
cd - >/dev/null
dune uninstall --prefix "$work/prefix" cudagraph 2>/dev/null
left=$(find "$work/prefix" ! -type d)
if [ -n "$left" ]; then
    printf 'dune uninstall left\n%s\n' "$left" >&2
    exit 1
fi
echo "dune uninstall leaves nothing"
