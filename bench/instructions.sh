#!/bin/sh
# Counts the instructions of one call of each measure on the driver that does nothing, with valgrind, and
# compares with instructions.tsv: more than 5 % more is a failure. With UPDATE=1, the file is written anew.
# To be run after assemble.sh. What start-up costs cancels out: one run makes twice as many calls.
set -eu
cd "$(dirname "$0")"
built=../out/bench
file=instructions.tsv
export CUDAGRAPH_DRIVER="$PWD/$built/libnull_driver.so"
log=$(mktemp)
counted=$(mktemp)
trap 'rm -f "$log" "$counted"' EXIT

total() { # total PROGRAM MEASURE CALLS: instructions of the whole program
    if ! valgrind --tool=callgrind --callgrind-out-file=/dev/null "$built/$1" once "$2" "$3" >"$log" 2>&1; then
        cat "$log" >&2
        echo "bench-instructions: $1 $2 failed" >&2
        exit 1
    fi
    sed -n 's/.*Collected : \([0-9]*\).*/\1/p' "$log"
}

per_call() { # per_call PROGRAM MEASURE CALLS PARTS
    few=$(total "$1" "$2" "$3")
    many=$(total "$1" "$2" $(($3 * 2)))
    awk -v few="$few" -v many="$many" -v calls="$3" -v parts="$4" \
        'BEGIN { if (few == "" || many <= few) exit 1; printf "%.1f", (many - few) / calls / parts }'
}

count() { # count MEASURE CALLS PARTS: a line of the table
    worker=$(per_call worker "$@")
    floor=$(per_call floor "$@")
    printf '%s\t%s\t%s\n' "$1" "$worker" "$floor" >>"$counted"
}

for measure in launch_1 launch_5 launch_12 graph_1 event_record event_pair h2d d2d memset; do
    count "$measure" 1000 1
done
count capture_100 20 100
count instantiate_10 100 1

versions="# Instructions of one call, of a node for capture. $(rustc --version | cut -d ' ' -f 1,2), OCaml $(ocamlfind ocamlopt -version)."
if [ -n "${UPDATE:-}" ]; then
    { echo "$versions" && printf 'measure\tcudagraph\tfloor\n' && cat "$counted"; } >"$file"
    cat "$file"
    exit 0
fi
awk -F '\t' -v versions="$versions" '
    FNR == 1 { input++ }
    input == 1 && /^#/ { made = $0; next }
    input == 1 { kept[$1] = $2; next }
    FNR == 1 { printf "%-16s %10s %10s %10s\n", "measure", "kept", "now", "floor" }
    {
        note = ""
        if (!($1 in kept)) { note = "  is not in the file"; bad++ }
        else if ($2 > kept[$1] * 1.05) { note = sprintf("  +%.1f %%", 100 * ($2 / kept[$1] - 1)); bad++ }
        else if ($2 < kept[$1] * 0.95) { note = sprintf("  %.1f %%: better", 100 * ($2 / kept[$1] - 1)); better++ }
        printf "%-16s %10s %10.1f %10.1f%s\n", $1, kept[$1], $2, $3, note
    }
    END {
        if (made != versions) print "The file was made with other compilers:\n" made "\nand now:\n" versions
        if (better) print "Keep what was won: make bench-instructions UPDATE=1"
        if (bad) { print bad " measures cost more than 5 % more instructions than bench/instructions.tsv says"; exit 1 }
    }' "$file" "$counted"
