.PHONY: help setup setup-nvrtc build demo test test-rust test-ocaml test-nvrtc test-full \
  test-loom test-debug-runtime test-valgrind soak \
  lint lint-rust-layout lint-rust lint-ocaml-layout clean \
  bench bench-smoke bench-instructions dist doc setup-doc check-doc

help: ## this list
	@grep -E '^[a-z-]+:.*##' Makefile | sed -E 's/:.*## /\t/' | expand -t 26

setup: ## install what is missing to build and test (Debian, as root)
	@sh scripts/setup.sh

setup-nvrtc: ## get NVRTC 12.9 and 13.0 with pip, for the tests that compile CUDA C
	@sh scripts/setup_nvrtc.sh

setup-doc: setup ## get odoc and ocaml-mdx, for the manual (Debian, as root)
	@sh scripts/setup_doc.sh

build: setup ## build everything
	dune build

demo: setup ## train a small network on handwritten digits, as one captured graph
	@sh scripts/demo.sh

test: test-rust test-ocaml test-nvrtc ## run all tests, on the simulator unless CUDAGRAPH_DRIVER is set

test-rust: setup
	cargo test --workspace --locked --ignore-rust-version

test-ocaml: setup
	dune build
	CUDAGRAPH_DRIVER=$${CUDAGRAPH_DRIVER:-sim} dune test --force

test-nvrtc: setup
	@sh scripts/test_nvrtc.sh

test-full: test test-loom test-debug-runtime test-valgrind ## also the tests that take longer
	cargo test --workspace --locked --ignore-rust-version --release -- --ignored
	sh test/model/many.sh

test-loom: setup ## what threads share, in every order in which they can meet
	RUSTFLAGS="--cfg loom" cargo test --locked --ignore-rust-version \
	  --manifest-path test/loom/Cargo.toml --target-dir target/loom --lib interleavings

test-debug-runtime: setup ## the OCaml tests with the checks of OCaml's debug runtime
	CUDAGRAPH_MODEL_PROGRAMS=$${CUDAGRAPH_MODEL_PROGRAMS:-300} CUDAGRAPH_DRIVER=sim \
	  dune build --force --profile debug-runtime @test/runtest

test-valgrind: setup ## OCaml tests with every access to the host's memory checked
	@sh scripts/setup.sh valgrind
	@sh test/valgrind.sh

soak: setup ## domains that capture, launch and drop, with memory flat; CUDAGRAPH_SOAK_SECONDS, _DOMAINS, _ROUNDS
	dune build ./test/soak/soak.exe ./sim/libcudagraph_sim.so
	CUDAGRAPH_DRIVER=$${CUDAGRAPH_DRIVER:-sim} $${DUNE_BUILD_DIR:-_build}/default/test/soak/soak.exe

bench: setup ## build out/bench, which measures the cost of calls on a machine with a GPU
	@sh bench/assemble.sh

bench-smoke: bench ## run all of the benchmark on the simulator, with few calls
	CUDAGRAPH_DRIVER=sim out/bench/run.sh --smoke

bench-instructions: bench ## count instructions of calls (UPDATE=1: keep as the measure)
	@sh scripts/setup.sh valgrind
	@UPDATE="$(UPDATE)" sh bench/instructions.sh

lint: lint-rust-layout lint-rust lint-ocaml-layout ## check layout and warnings

lint-rust-layout: setup
	cargo fmt --all --check
	cargo fmt --check --manifest-path bench/floor/Cargo.toml

lint-rust: setup
	cargo clippy --workspace --all-targets --locked --ignore-rust-version -- -D warnings
	cargo clippy --all-targets --locked --ignore-rust-version --manifest-path bench/floor/Cargo.toml --target-dir target -- -D warnings

lint-ocaml-layout: setup
	@if command -v ocamlformat >/dev/null; then dune build @fmt; \
	else echo "ocamlformat is not installed: the layout of OCaml files is not checked"; fi

doc: setup ## make the pages of the manual, and say where they are
	@sh scripts/doc.sh

check-doc: setup-doc ## make the manual, run the code in it, follow the tutorial
	@sh scripts/check_doc.sh

dist: ## make the release archive, crates included
	@sh scripts/dist.sh

clean: ## remove what was built
	dune clean
	cargo clean
	rm -rf out
