#!/bin/sh
# Runs OCaml tests under valgrind's memcheck: no invalid access in the Rust core, the stubs or the
# simulator, which copies by system calls that valgrind does not see: so nothing is said of unset bytes.
# Not those tests that reserve more memory than valgrind gives.
set -eu
cd "$(dirname "$0")/.."
dune build ./test
suppressions=$PWD/test/valgrind.supp
cd "${DUNE_BUILD_DIR:-_build}/default/test"
export CUDAGRAPH_DRIVER=sim CUDAGRAPH_MODEL_PROGRAMS=30 CUDAGRAPH_MODEL_SEED=1
# A domain's fibers may lie less than 2 MB from its stack: by default valgrind then takes the change to a fiber for
# one huge frame, and what is in between for no longer in use.
check() {
    valgrind -q --max-stackframe=65536 --suppressions="$suppressions" --undef-value-errors=no --error-exitcode=9 --fair-sched=yes --trace-children=yes "$@"
}
for test in graph modules stream_memory delimited_events; do
    check "./test_$test.exe" -c
done
check ./model/model.exe
