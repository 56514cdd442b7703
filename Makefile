.PHONY: help setup build demo test test-full lint clean

help: ## this list
	@grep -E '^[a-z-]+:.*##' Makefile | sed -E 's/:.*## /\t/' | expand -t 12

setup: ## install what is missing to build and test (Debian, as root)
	@sh scripts/setup.sh

build: setup ## build everything
	dune build

demo: setup ## train a small network on handwritten digits, as one captured graph
	@sh scripts/demo.sh

test: setup ## run all tests, on the simulator unless CUDAGRAPH_DRIVER says otherwise
	cargo test --workspace --locked
	dune build
	dune test --force

test-full: test ## also what takes longer

lint: setup ## check the layout of the code and the compiler's warnings
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings
	@if command -v ocamlformat >/dev/null; then dune build @fmt; \
	else echo "ocamlformat is not installed: the layout of OCaml files is not checked"; fi

clean: ## remove what was built
	dune clean
	cargo clean
	rm -rf out
