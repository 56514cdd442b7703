#!/bin/sh
# Builds the benchmark and puts all it needs into out/bench, to be copied to a machine with a GPU.
set -eu
cd "$(dirname "$0")/.."
# As opam builds packages: in a build for development no call is inlined across OCaml modules.
dune build --profile release ./bench ./sim/libcudagraph_sim.so
target=${CARGO_TARGET_DIR:-$PWD/target}
cargo build --quiet --release --locked --ignore-rust-version --manifest-path bench/floor/Cargo.toml --target-dir "$target"
out=out/bench
built=${DUNE_BUILD_DIR:-_build}/default
rm -rf "$out"
mkdir -p "$out"
cp "$built/bench/ocaml/worker.exe" "$out/worker"
cp "$built/bench/ocaml/scale.exe" "$out/scale"
cp "$built/bench/compare/compare.exe" "$out/compare"
cp "$target/release/cudagraph-bench-floor" "$out/floor"
cp "$built/bench/libnull_driver.so" "$built/sim/libcudagraph_sim.so" "$out"
cp bench/kernels.ptx bench/peers.py bench/run.sh bench/README.md "$out"
chmod -R u+w "$out"
glibc=$(objdump -T "$out/worker" "$out/compare" "$out/floor" |
    sed -n 's/.*(GLIBC_\([0-9.]*\)).*/\1/p' | sort -V | tail -n 1)
echo "bench: $out is ready: run $out/run.sh, here or on another machine (glibc $glibc or newer)"
