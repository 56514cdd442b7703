#!/bin/sh
# Gets odoc, which makes the pages of the manual, and ocaml-mdx, which runs the code in them. Does nothing
# when they are there. It is no error when they cannot be had: scripts/check_doc.sh says what it leaves out.
set -eu

missing() {
    command -v odoc >/dev/null 2>&1 || echo ocaml-odoc
    command -v ocaml-mdx >/dev/null 2>&1 && ocamlfind query mdx.test >/dev/null 2>&1 || echo libmdx-ocaml-dev
}

packages=$(missing)
[ -n "$packages" ] || exit 0
if [ "$(id -u)" != 0 ] || ! apt-cache policy 2>/dev/null | grep -q 'n=trixie,'; then
    echo "setup: went on without these, which opam has as odoc and mdx:" $packages
    exit 0
fi
echo "setup: installing" $packages
# shellcheck disable=SC2086
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
    -o DPkg::Lock::Timeout=120 -t trixie $packages >/dev/null 2>&1 || true
packages=$(missing)
[ -z "$packages" ] || echo "setup: went on without" $packages
