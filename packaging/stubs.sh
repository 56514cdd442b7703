#!/bin/sh
# stubs.sh FOLDER: makes an opam repository whose packages stand for what the system has installed: the
# compiler, dune and the libraries. They install nothing; opam only learns their versions.
set -eu
repository=$1

package() { # package NAME VERSION [LINE]...: an empty package; the lines go into its opam file
    folder=$repository/packages/$1/$1.$2
    mkdir -p "$folder"
    {
        printf 'opam-version: "2.0"\nmaintainer: "nobody"\nsynopsis: "What the system has"\n'
        shift 2
        [ $# = 0 ] || printf '%s\n' "$@"
    } >"$folder/opam"
}

library() { # library NAME [VERSION]: VERSION where the library does not say; nothing where it is not installed
    version=$(ocamlfind query -format '%v' "$1" 2>/dev/null) || return 0
    [ "$version" != "[unspecified]" ] || version=$2
    package "$1" "$version" 'depends: ["ocaml"]'
}

mkdir -p "$repository"
echo 'opam-version: "2.0"' >"$repository/repo"
ocaml=$(ocamlc -version)
package ocaml-system "$ocaml" 'flags: compiler'
package ocaml "$ocaml" "depends: [\"ocaml-system\" {= \"$ocaml\"}]"
package dune "$(dune --version)" 'depends: ["ocaml"]'
package ocamlfind "$(ocamlfind query -format '%v' findlib)" 'depends: ["ocaml"]' \
    'setenv: [OCAMLPATH += "%{lib}%"]'
# As in opam's own repository, less the packages of the system.
package conf-rust-2024 1 'flags: conf' 'build: [
  ["cargo" "--version"]
  ["sh" "-c" "echo \"fn main() {}\" >test.rs && rustc --edition 2024 test.rs"]
]'
library sexplib0 v0.16
library ctypes 0.21
library integers 0.7.0
library alcotest 1.7
library qcheck-core 0.21
# The library of odoc is no part of Debian's package.
! command -v odoc >/dev/null 2>&1 || package odoc "$(odoc --version)" 'depends: ["ocaml"]'
