#!/bin/sh
# Runs the tests that compile CUDA C with each NVRTC that scripts/setup_nvrtc.sh has got, on the
# simulator unless CUDAGRAPH_DRIVER is set.
set -eu
cd "$(dirname "$0")/.."
# shellcheck disable=SC2046,SC2086
tests="test_nvrtc_library test_nvrtc test_nvrtc_cache"
dune build $(printf './test/%s.exe ' $tests) ./examples/saxpy_nvrtc.exe \
    ./ocaml/tool/main.exe ./sim/libcudagraph_sim.so
export CUDAGRAPH_DRIVER="${CUDAGRAPH_DRIVER:-sim}"
built=${DUNE_BUILD_DIR:-_build}/default
status=0
for version in 12.9 13.0; do
    set -- .nvrtc/"$version"/nvidia/*/lib/libnvrtc.so.1?
    if [ ! -e "$1" ]; then
        echo "skipped: NVRTC $version; 'make setup-nvrtc' gets it"
        continue
    fi
    export CUDAGRAPH_NVRTC="$PWD/$1" CUDAGRAPH_TEST_NVRTC="$version"
    echo "NVRTC $version:"
    for test in $tests; do
        "$built"/test/"$test".exe || status=1
    done
    "$built"/examples/saxpy_nvrtc.exe || status=1
    "$built"/ocaml/tool/main.exe doctor | grep '^ok     NVRTC compiles' || {
        echo "cudagraph doctor does not compile with this NVRTC" >&2
        status=1
    }
done
exit $status
