#!/bin/sh
# Runs the benchmark in this folder; it needs nothing but a driver (CUDAGRAPH_DRIVER: see README.md).
# Options are those of ./compare; results go to ./results unless --out says otherwise.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
export CUDAGRAPH_SIM="${CUDAGRAPH_SIM:-$here/libcudagraph_sim.so}"
# The null driver may be named without its folder.
[ "${CUDAGRAPH_DRIVER:-}" != null ] || export CUDAGRAPH_DRIVER="$here/libnull_driver.so"
echo "machine: $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), $(nproc) cores, $(uname -sr)"
if command -v nvidia-smi >/dev/null 2>&1; then
    nvidia-smi --query-gpu=name,driver_version,clocks.sm --format=csv,noheader || true
fi
exec "$here/compare" --out "$here/results" "$@"
