#!/bin/sh
# Ten times as many random programs as CI runs.
set -eu
cd "$(dirname "$0")/../.."
dune build ./test/model/model.exe
CUDAGRAPH_DRIVER=sim CUDAGRAPH_MODEL_PROGRAMS=${CUDAGRAPH_MODEL_PROGRAMS:-100000} \
    "${DUNE_BUILD_DIR:-_build}/default/test/model/model.exe"
