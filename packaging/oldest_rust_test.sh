#!/bin/sh
# Compiles the Rust of this package, tests too, with the oldest compiler that it claims to build with: Debian 13's,
# unpacked into a folder of its own. Where that cannot be had, or has another version by now, it says so and stops.
set -eu
cd "$(dirname "$0")/.."
wanted=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
folder=$PWD/target/oldest-rust
skip() {
    echo "oldest Rust: NOT TRIED: $1"
    exit 0
}

rustc=$folder/usr/bin/rustc
if [ ! -x "$rustc" ]; then
    command -v apt-get >/dev/null 2>&1 || skip "this is no Debian"
    version=$(apt-cache madison libstd-rust-dev 2>/dev/null | awk '{ print $3 }' | grep "^$wanted\." | head -n 1) || true
    [ -n "$version" ] || skip "the package sources have no rustc $wanted"
    packages=$(mktemp -d)
    trap 'rm -rf "$packages"' EXIT
    (
        cd "$packages"
        # As root, apt-get fetches as another user.
        chmod 755 .
        apt-get download -qq "rustc=$version" "libstd-rust-dev=$version" "libstd-rust-$wanted=$version" \
            "$(apt-cache depends "libstd-rust-$wanted=$version" | sed -n 's/.*Depends: \(libllvm[0-9]*\)$/\1/p')/trixie"
    ) 2>/dev/null || skip "the packages could not be fetched"
    mkdir -p "$folder"
    for file in "$packages"/*.deb; do
        dpkg-deb -x "$file" "$folder"
    done
fi
libraries=$folder/usr/lib/$(dpkg-architecture -qDEB_HOST_MULTIARCH 2>/dev/null || echo x86_64-linux-gnu)
printf '#!/bin/sh\nLD_LIBRARY_PATH=%s exec %s "$@"\n' "$libraries" "$rustc" >"$folder/rustc"
chmod +x "$folder/rustc"
found=$("$folder/rustc" --version) || skip "Debian's rustc does not run here"
case $found in
"rustc $wanted."*) ;;
*) skip "the compiler is $found, not $wanted" ;;
esac
check() { # check CARGO_OPTION...
    RUSTC=$folder/rustc cargo check --quiet --all-targets --locked --ignore-rust-version \
        --target-dir "$folder/target" "$@"
}
check --workspace
check --manifest-path bench/floor/Cargo.toml
echo "oldest Rust: everything compiles with $found"
