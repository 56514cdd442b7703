#!/bin/sh
# The first OCaml block of README.md must be examples/saxpy_graph.ml.
set -eu
cd "$(dirname "$0")/.."
block=$(mktemp)
trap 'rm -f "$block"' EXIT
awk '/^```ocaml$/ { inside = 1; next } /^```$/ && inside { exit } inside' README.md >"$block"
diff "$block" examples/saxpy_graph.ml && echo "README.md shows examples/saxpy_graph.ml"
