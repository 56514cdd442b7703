#!/bin/sh
# Gets NVRTC of CUDA 12.9 and of CUDA 13.0, with CUDA's headers, by pip into .nvrtc, for the tests that
# compile CUDA C. Does nothing when they are there. It is no error when pip cannot get them: those tests
# then say that they are skipped.
set -eu
cd "$(dirname "$0")/.."

have_pip() {
    python3 -m pip --version >/dev/null 2>&1
}

install_pip() {
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq -o DPkg::Lock::Timeout=120 \
        --no-install-recommends python3-pip >/dev/null 2>&1
}

get() { # get VERSION REQUIREMENT...: into .nvrtc/VERSION, all of it or nothing
    version=$1
    shift
    [ ! -d ".nvrtc/$version" ] || return 0
    if ! have_pip && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
        echo "setup: installing pip"
        install_pip || { apt-get update -qq && install_pip; } || true
    fi
    if ! have_pip; then
        echo "setup: went on without NVRTC $version: python3 has no pip"
        return 0
    fi
    mkdir -p .nvrtc
    part=$(mktemp -d .nvrtc/part.XXXXXX)
    log=$part.log
    echo "setup: getting NVRTC $version with pip (about 100 MB)"
    if timeout 240 python3 -m pip install --quiet --disable-pip-version-check --no-deps \
        --only-binary :all: --no-cache-dir --target "$part" "$@" </dev/null >"$log" 2>&1; then
        chmod 755 "$part"
        mv "$part" ".nvrtc/$version"
    else
        echo "setup: went on without NVRTC $version; pip said:"
        tail -n 3 "$log" | sed 's/^/    /'
        rm -rf "$part"
    fi
    rm -f "$log"
}

get 12.9 'nvidia-cuda-nvrtc-cu12==12.9.*' 'nvidia-cuda-runtime-cu12==12.9.*'
get 13.0 'nvidia-cuda-nvrtc==13.0.*' 'nvidia-cuda-runtime==13.0.*'
