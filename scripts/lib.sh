# Shared by the scripts of this directory; sourced, never run.
# shellcheck shell=bash

set -euo pipefail
# With it, cd might find another tree.
unset CDPATH
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Clippy is strict with this toolchain and in CI. Warnings of other toolchains are no fault of the tree.
RUST_LINTED_MINOR=95
RUST_NEEDED=$(sed -n 's/^rust-version = "\(.*\)"$/\1/p' Cargo.toml)
TARGET=${CARGO_TARGET_DIR:-target}
export DEBIAN_FRONTEND=noninteractive
# Where administrators' programs are, such as nft and sshd. Debian's ordinary users have paths without them.
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
# CI builds exactly what the lock file says; a developer may just have edited a manifest.
LOCKED=(); if [ "${CI:-}" = true ]; then LOCKED=(--locked); fi

# Optional features that can be built here: controllers for the running kernel, whose loader links with these two
# libraries.
FEATURES=(); if [ -e /usr/include/libelf.h ] && [ -e /usr/include/zlib.h ]; then FEATURES=(--features kernel-cc); fi

# Nobody debugs programs in CI: without line tables the compiler does an eighth less work.
if [ "${CI:-}" = true ]; then export CARGO_PROFILE_DEV_DEBUG=${CARGO_PROFILE_DEV_DEBUG:-none}; fi
# Incremental data speed up the build after an edit, but make the first build take half as long again. CI and fresh
# trees do without.
if [ "${CI:-}" = true ] || [ ! -d "$TARGET/debug/incremental" ]; then export CARGO_INCREMENTAL=${CARGO_INCREMENTAL:-0}; fi

in_ci() { [ "${CI:-}" = true ]; }
is_root() { [ "$(id -u)" = 0 ]; }
have() { command -v "$1" >/dev/null 2>&1; }
say() { printf '%s\n' "$*"; }
die() { printf 'error: %s\n' "$*" >&2; exit 1; }

# A prerequisite is missing: CI fails; a person gets one line about what is left out.
leave_out() {
    if in_ci; then die "$1 (CI leaves nothing out)"; fi
    say "left out: $1"
}

# version_at_least 1.95.0 1.85
version_at_least() { [ "$(printf '%s\n%s\n' "$2" "$1" | sort -V | head -n1)" = "$2" ]; }

cargo_version() { "$1" --version 2>/dev/null | sed -n 's/^cargo \([0-9.]*\).*/\1/p'; }

# Puts a new enough cargo first on PATH: the installed one, rustup's, or one of Ubuntu's versioned packages.
find_cargo() {
    local candidates candidate version
    # Some containers and services set no HOME; the tilde then means what /etc/passwd says.
    candidates=$(command -v cargo || true; say "${CARGO_HOME:-"$(echo ~)/.cargo"}/bin/cargo"; ls -r /usr/lib/rust-*/bin/cargo 2>/dev/null || true)
    while read -r candidate; do
        [ -x "$candidate" ] || continue
        version=$(cargo_version "$candidate")
        if [ -n "$version" ] && version_at_least "$version" "$RUST_NEEDED"; then
            PATH="$(dirname "$candidate"):$PATH"
            return 0
        fi
    done <<<"$candidates"
    return 1
}

need_cargo() { find_cargo || die "cargo $RUST_NEEDED or newer is missing: 'make setup' says how to get it"; }
rust_minor() { rustc --version | sed -n 's/^rustc 1\.\([0-9]*\).*/\1/p'; }
