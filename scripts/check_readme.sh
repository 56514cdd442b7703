#!/bin/sh
# The first OCaml block of README.md must be examples/saxpy_graph.ml; with --update, it is made so.
set -eu
cd "$(dirname "$0")/.."
made=$(mktemp)
trap 'rm -f "$made"' EXIT
# README.md with the example put into its first OCaml block.
awk '
    /^```ocaml$/ && !found {
        print
        while ((getline line <"examples/saxpy_graph.ml") > 0) print line
        found = skip = 1
        next
    }
    /^```$/ { skip = 0 }
    !skip
    END { exit !found }' README.md >"$made" || { echo "README.md has no OCaml block" >&2; exit 1; }
if [ "${1:-}" = --update ]; then
    cat "$made" >README.md
elif ! diff -u README.md "$made"; then
    echo "README.md does not show examples/saxpy_graph.ml; run scripts/check_readme.sh --update" >&2
    exit 1
fi
