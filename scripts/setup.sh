#!/usr/bin/env bash
# Installs missing packages (as root, through apt) or names them. Touches nothing else outside the tree.
# usage: scripts/setup.sh [demo|build|test]
. "$(dirname "$0")/lib.sh"
purpose=${1:-test}

# command or file, Debian package that contains it, and what is left out without it ("-": nothing works without it)
demo_tools='cc build-essential -
ip iproute2 the part of the demo against the kernel'
kernel_cc_tools='clang clang controllers for the running kernel (anabranch cc)
/usr/include/libelf.h libelf-dev controllers for the running kernel (anabranch cc)
/usr/include/zlib.h zlib1g-dev controllers for the running kernel (anabranch cc)
pkg-config pkg-config controllers for the running kernel (anabranch cc)'
build_tools="$demo_tools
$kernel_cc_tools
nft nftables phones and other uplinks (anabranch join, get --interface)"
test_tools="$demo_tools
$kernel_cc_tools
mptcpize mptcpize interop tests against the kernel
curl curl interop tests against the kernel
wget wget interop tests of the proxy
git git interop tests of the proxy
nft nftables interop tests with uplinks
python3 python3 interop tests against the kernel
tshark tshark checks of captures by an independent dissector
chromium chromium tests that open reports in a browser
valgrind valgrind the memory check of the C program
/usr/include/ns3/core-module.h libns3-dev tests of the engine inside ns-3"

# Once installed, it runs and listens. It is not for a person's own device, where its test is left out unless it is
# installed.
ci_tools="$test_tools
sshd openssh-server the test of ssh through the proxy"

missing_tools() {
    local tools=$demo_tools
    if [ "$purpose" = build ]; then tools=$build_tools; fi
    if [ "$purpose" = test ]; then tools=$test_tools; fi
    if [ "$purpose" = test ] && in_ci; then tools=$ci_tools; fi
    while read -r command package without; do
        have "$command" || [ -e "$command" ] || say "$package $without"
    done <<<"$tools"
}

apt_updated=no
apt_update() {
    [ $apt_updated = no ] || return 0
    say "setup: apt-get update"
    apt-get update -qq || say "setup: apt-get update failed; continuing with the existing package lists"
    apt_updated=yes
}

# All at once, otherwise one by one: a release may lack one of them. Shows apt's output only if that fails too.
apt_install() {
    apt_update
    say "setup: apt-get install $*"
    apt_get_install "$@" >/dev/null 2>&1 && return 0
    local package status=0
    for package in "$@"; do
        apt_get_install "$package" >/dev/null || status=1
    done
    return $status
}

apt_get_install() { apt-get install -y -qq -o Dpkg::Use-Pty=0 --no-install-recommends "$@"; }

apt_candidate() { apt-cache policy "$1" 2>/dev/null | sed -n 's/^ *Candidate: \([0-9.]*\).*/\1/p'; }

# The names under which Debian and Ubuntu carry a newer Rust than the release's own, then the release's own.
rust_packages() {
    local version
    if version_at_least "$(apt_candidate rustc-web)" "$RUST_NEEDED"; then
        say rustc-web cargo-web rust-web-clippy rustfmt-web
        return
    fi
    version=$(apt-cache pkgnames rustc-1. | sed -n 's/^rustc-\(1\.[0-9]*\)$/\1/p' | sort -rV | head -n1)
    if version_at_least "$version" "$RUST_NEEDED"; then
        say "rustc-$version" "cargo-$version" "rust-$version-clippy" "rustfmt-$version"
    elif version_at_least "$(apt_candidate rustc)" "$RUST_NEEDED"; then
        say rustc cargo rust-clippy rustfmt
    fi
}

setup_tools() {
    local missing packages
    missing=$(missing_tools)
    [ -n "$missing" ] || return 0
    packages=$(cut -d' ' -f1 <<<"$missing" | sort -u | tr '\n' ' ')
    if is_root && have apt-get; then
        # shellcheck disable=SC2086
        apt_install $packages || say "setup: apt-get could not install everything"
        missing=$(missing_tools)
    fi
    [ -n "$missing" ] || return 0
    if grep -q ' -$' <<<"$missing"; then die "no C compiler and linker. As root: apt-get install build-essential"; fi
    packages=$(cut -d' ' -f1 <<<"$missing" | sort -u | paste -sd' ')
    leave_out "$(cut -d' ' -f2- <<<"$missing" | sort -u | paste -sd, | sed 's/,/, /g'); missing packages: $packages"
}

setup_rust() {
    local packages='' remedy='install it with rustup (https://rustup.rs)'
    find_cargo && return 0
    if have apt-get; then
        if is_root; then apt_update; fi
        packages=$(rust_packages)
    fi
    # shellcheck disable=SC2086
    if [ -n "$packages" ] && is_root && apt_install $packages && find_cargo; then return 0; fi
    if [ -n "$packages" ]; then remedy="$remedy, or as root: apt-get install $packages"; fi
    die "no Rust $RUST_NEEDED or newer. Remedy: $remedy; then run this again"
}

say "setup: checks for tools; installs missing ones with apt when root; writes only into $TARGET/ (builds) and out/"
setup_tools
setup_rust
say "setup: ready ($(rustc --version), $(cargo --version))"
