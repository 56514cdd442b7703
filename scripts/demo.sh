#!/bin/sh
# Runs the digits example: on the system's CUDA driver if there is one that works, else on the
# simulator. An explicit CUDAGRAPH_DRIVER decides.
set -eu
cd "$(dirname "$0")/.."
dune build ./examples ./sim/libcudagraph_sim.so
if [ -n "${CUDAGRAPH_DRIVER:-}" ]; then
    echo "demo: CUDAGRAPH_DRIVER=$CUDAGRAPH_DRIVER"
elif ! PATH="$PATH:/sbin:/usr/sbin" ldconfig -p | grep -q 'libcuda\.so\.1' || [ ! -e /dev/nvidiactl ]; then
    export CUDAGRAPH_DRIVER=sim
    echo "demo: there is no CUDA driver and GPU here; running on the simulator"
elif CUDAGRAPH_DRIVER=system ./_build/default/examples/saxpy_graph.exe; then
    export CUDAGRAPH_DRIVER=system
    echo "demo: running on the system's CUDA driver"
else
    export CUDAGRAPH_DRIVER=sim
    echo "demo: the system's CUDA driver does not work (see above); running on the simulator"
fi
mkdir -p out
./_build/default/examples/digits/main.exe --output out/loss.svg "$@"
