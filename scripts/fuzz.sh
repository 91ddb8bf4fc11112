#!/usr/bin/env bash
# Runs every fuzz target for a while. Needs a nightly toolchain and cargo-fuzz.
. "$(dirname "$0")/lib.sh"
need_cargo
cargo +nightly --version >/dev/null 2>&1 || die "fuzzing needs a nightly toolchain: rustup toolchain install nightly"
have cargo-fuzz || die "fuzzing needs cargo-fuzz: cargo install cargo-fuzz"
for target in $(cargo +nightly fuzz list); do
    say "fuzzing $target for ${SECONDS_EACH:-60} s"
    cargo +nightly fuzz run "$target" -- -max_total_time="${SECONDS_EACH:-60}"
done
