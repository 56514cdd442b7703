#!/bin/sh
# Runs the digits example: on the system's CUDA driver if there is one that works, else on the
# simulator. An explicit CUDAGRAPH_DRIVER decides.
set -eu
cd "$(dirname "$0")/.."
built=${DUNE_BUILD_DIR:-_build}/default
dune build ./examples ./sim/libcudagraph_sim.so
if [ -n "${CUDAGRAPH_DRIVER:-}" ]; then
    echo "demo: CUDAGRAPH_DRIVER=$CUDAGRAPH_DRIVER"
elif reason=$(CUDAGRAPH_DRIVER=system "$built"/examples/saxpy_graph.exe 2>&1); then
    export CUDAGRAPH_DRIVER=system
    echo "demo: running on the system's CUDA driver"
else
    export CUDAGRAPH_DRIVER=sim
    echo "demo: the system has no CUDA driver that works; running on the simulator. It said:"
    printf '%s\n' "$reason" | sed 's/^/    /'
fi
mkdir -p out
"$built"/examples/digits/main.exe --output out/loss.svg "$@"
