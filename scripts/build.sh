#!/usr/bin/env bash
# Builds the command for use: optimised as a whole, which takes some minutes.
. "$(dirname "$0")/lib.sh"
need_cargo
say "building the anabranch command (release): some minutes"
cargo build --release "${LOCKED[@]}" -p anabranch
say "the command is $TARGET/release/anabranch. Next: '$TARGET/release/anabranch scenarios' lists what it can run"
