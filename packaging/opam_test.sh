#!/bin/sh
# opam_test.sh [--with-test]: a user's way with opam, in a network namespace without network and with a home
# that cannot be written. A fresh root and switch on the system's compiler; the release archive, pinned and installed;
# a project outside the tree that runs a graph on the simulator; `opam remove`, which must leave nothing.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
fail() {
    echo "opam_test: $1" >&2
    exit 1
}

if [ "${1:-}" != --inside ]; then
    for tool in opam python3 unshare; do
        command -v "$tool" >/dev/null 2>&1 || fail "$tool is not installed"
    done
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    trap 'exit 1' INT TERM
    archive=$(cd "$here/.." && sh scripts/dist.sh)
    cp "$here/../$archive" "$work/"
    sh "$here/stubs.sh" "$work/repository"
    mkdir -p "$work/home/.cache/dune"
    cp -R "$here/project" "$work/project"
    # Past rustup, whose own folder is in the home that is taken away.
    PATH=$(rustc --print sysroot)/bin:$PATH
    export PATH
    user=
    [ "$(id -u)" = 0 ] || user=--map-root-user
    # shellcheck disable=SC2086
    unshare $user --net --mount --pid --fork --kill-child --mount-proc sh "$here/opam_test.sh" --inside "$work" "$@"
    exit
fi

work=$2
option=${3:-}
mount --bind "$work/home" "$work/home"
mount -o remount,bind,ro "$work/home"
export HOME="$work/home" CARGO_HOME="$work/home/.cargo" OPAMROOT="$work/opam" OPAMROOTISOK=1 OPAMYES=1 \
    OPAMCOLOR=never OPAMNODEPEXTS=1 CUDAGRAPH_DRIVER=sim DUNE_CACHE=disabled
unset DUNE_BUILD_DIR OPAMSWITCH OPAM_SWITCH_PREFIX OCAMLPATH CAML_LD_LIBRARY_PATH CUDAGRAPH_SIM RUSTUP_TOOLCHAIN RUSTC
! touch "$HOME/x" 2>/dev/null || fail "the home can be written"
[ "$(wc -l </proc/net/route)" -le 1 ] || fail "there is a route to a network"

# opam's own sandbox too, where the machine has what it needs; opam tries it out.
sandboxing=
command -v bwrap >/dev/null 2>&1 || sandboxing=--disable-sandboxing
opam init --quiet --bare --no-setup $sandboxing local "$work/repository"
case $(opam option --global wrap-build-commands) in
*sandbox*) echo "opam_test: in opam's sandbox" ;;
*) echo "opam_test: without opam's sandbox" ;;
esac
opam switch create --quiet fresh --packages ocaml-system,ocamlfind,dune
prefix=$(opam var prefix)
contents() {
    (cd "$prefix" && find . -path ./.opam-switch -prune -o ! -type d -print | sort)
}
contents >"$work/before"

opam pin add --quiet --no-action cudagraph "$work"/cudagraph-*.tar.gz >/dev/null
# shellcheck disable=SC2086
opam install --verbose $option cudagraph >"$work/log" 2>&1 || {
    cat "$work/log"
    fail "cudagraph could not be installed"
}
contents >"$work/installed"
if [ -n "$option" ]; then
    suites=$(grep -c 'Test Successful' "$work/log") || fail "no test ran"
    echo "opam_test: $suites test suites passed"
fi
echo "opam_test: installed $(comm -13 "$work/before" "$work/installed" | wc -l) files"

cd "$work/project"
output=$(opam exec -- dune exec --display=quiet ./program.exe)
printf 'opam_test: the project says: %s\n' "$output"
case $output in
"42 on simulator $prefix/lib/cudagraph/libcudagraph_sim.so, CUDA "*) ;;
*) fail "the project should say: 42 on simulator $prefix/lib/cudagraph/libcudagraph_sim.so, CUDA ..." ;;
esac

opam remove cudagraph >/dev/null
opam pin remove --quiet cudagraph >/dev/null
contents >"$work/after"
diff "$work/before" "$work/after" || fail "opam remove left files behind"
echo "opam_test: passed"
