#!/bin/sh
# Makes this machine able to build and test cudagraph. Does nothing, quickly, when it already is.
#
# On Debian, as root, what is missing is installed: OCaml 5.3 and its libraries come from Debian 13
# ("trixie"), which is added to the package sources with a priority so low that nothing else ever
# comes from it. Elsewhere, and for other users, the script only says what is missing.
#
# setup.sh valgrind: that as well, which counts instructions for make bench-instructions.
set -eu

valgrind=
case ${1:-} in
'') ;;
valgrind) valgrind=valgrind ;;
*)
    echo "setup: what is $1?" >&2
    exit 1
    ;;
esac

libraries="ctypes integers sexplib0 alcotest qcheck-core"
debian_packages="ocaml-nox ocaml-dune ocaml-findlib libctypes-ocaml-dev libintegers-ocaml-dev
    libsexplib0-ocaml-dev libalcotest-ocaml-dev libqcheck-ocaml-dev"

at_least() { # at_least WANTED FOUND: whether version FOUND is WANTED or newer
    [ "$(printf '%s\n%s\n' "$1" "$2" | sort -V | head -n 1)" = "$1" ]
}

missing() {
    if ! command -v ocamlfind >/dev/null 2>&1; then
        echo "ocamlfind"
    else
        for library in $libraries; do
            ocamlfind query "$library" >/dev/null 2>&1 || echo "the OCaml library $library"
        done
    fi
    at_least 5.1 "$(ocamlc -version 2>/dev/null || echo 0)" || echo "OCaml 5.1 or newer"
    at_least 3.17 "$(dune --version 2>/dev/null || echo 0)" || echo "dune 3.17 or newer"
    for tool in gcc ld objcopy make $valgrind; do
        command -v "$tool" >/dev/null 2>&1 || echo "$tool"
    done
}

# Says what is wrong with the Rust here, if something is.
sh "$(dirname "$0")/../ocaml/cargo.sh" --check

[ -n "$(missing)" ] || exit 0

is_debian() { # whether packages of Debian 13 can be installed here
    [ "$(. /etc/os-release 2>/dev/null && echo "${ID:-}")" = debian ] &&
        at_least 12 "$(. /etc/os-release && echo "${VERSION_ID:-99}")"
}

if [ "$(id -u)" != 0 ] || ! is_debian; then
    echo "These are needed and were not found:" >&2
    missing | sed 's/^/  /' >&2
    echo "With opam: opam install dune ocamlfind ctypes integers sexplib0 alcotest qcheck-core" >&2
    echo "On Debian 12 and newer, run this as root and it installs them." >&2
    exit 1
fi

export DEBIAN_FRONTEND=noninteractive
if [ "$(missing)" = valgrind ]; then
    echo "setup: installing valgrind"
    [ -n "$(apt-cache search --names-only '^valgrind$')" ] || apt-get update -qq
    # It reads the symbols of the C library, whose package has to be of the installed version.
    symbols="libc6-dbg=$(dpkg-query -W -f '${Version}' libc6)"
    apt-get install -y -qq --no-install-recommends -o DPkg::Lock::Timeout=120 valgrind "$symbols" >/dev/null
    exit 0
fi

echo "setup: installing OCaml and its libraries from Debian 13 (about a minute)"
apt_install() { # apt_install PACKAGE...: waits for another apt-get to end
    apt-get install -y -qq -o DPkg::Lock::Timeout=120 -t trixie "$@"
}
mirror() { # the address of this machine's own Debian mirror
    apt-get indextargets --format '$(CODENAME) $(ORIGIN) $(REPO_URI)' "Created-By: Packages" |
        awk '$2 == "Debian" && ($1 == "bookworm" || $1 == "trixie") { print $3; exit }'
}
[ -n "$(mirror)" ] || apt-get update -qq
if ! apt-cache policy | grep -q 'n=trixie,'; then
    mirror=$(mirror)
    if [ -z "$mirror" ]; then
        echo "setup: no Debian mirror is among this machine's package sources" >&2
        exit 1
    fi
    printf 'Types: deb\nURIs: %s\nSuites: trixie\nComponents: main\nSigned-By: %s\n' \
        "$mirror" /usr/share/keyrings/debian-archive-keyring.gpg \
        >/etc/apt/sources.list.d/cudagraph-trixie.sources
    printf 'Package: *\nPin: release n=trixie\nPin-Priority: 100\n' \
        >/etc/apt/preferences.d/cudagraph-trixie
fi
apt-get update -qq
for pair in gcc:gcc ld:binutils make:make; do
    command -v "${pair%:*}" >/dev/null 2>&1 || debian_packages="$debian_packages ${pair#*:}"
done
# shellcheck disable=SC2086
apt_install $debian_packages >/dev/null
# Only for the check of the code's layout.
apt_install ocamlformat >/dev/null 2>&1 || echo "setup: went on without ocamlformat"

if [ "$(missing)" = valgrind ]; then
    exec sh "$0" valgrind
elif [ -n "$(missing)" ]; then
    echo "setup: still missing:" >&2
    missing | sed 's/^/  /' >&2
    exit 1
fi
echo "setup: done"
