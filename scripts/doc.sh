#!/bin/sh
# Makes the pages of the manual with odoc. A warning of odoc is an error.
set -eu
cd "$(dirname "$0")/.."
if ! command -v odoc >/dev/null 2>&1; then
    echo "SKIPPED: the pages of the manual: odoc is not installed ('make setup-doc' on Debian, or opam install odoc)"
    exit 0
fi
built=${DUNE_BUILD_DIR:-_build}/default
# dune prints a warning once only, when it makes the page.
rm -rf "$built/_doc"
warnings=$(dune build @doc 2>&1) || { printf '%s\n' "$warnings" >&2; exit 1; }
if [ -n "$warnings" ]; then
    printf '%s\n' "$warnings" >&2
    exit 1
fi
pages=$built/_doc/_html
# dune 3.17 has no place for pictures.
cp doc/*.svg "$pages/cudagraph/"
for picture in $(grep -oh 'img src="[^"]*"' doc/*.mld | cut -d '"' -f 2); do
    [ -e "$pages/cudagraph/$picture" ] || { echo "doc: there is no doc/$picture" >&2; exit 1; }
done
echo "$pages/cudagraph/index.html"
