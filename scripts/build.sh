#!/usr/bin/env bash
# Builds the command for use: optimised across crates, which takes twice as long as the build of the demo.
. "$(dirname "$0")/lib.sh"
need_cargo
say "building the anabranch command (release): three to ten minutes on two cores"
cargo build --release "${LOCKED[@]}" "${FEATURES[@]}" -p anabranch
say "the command is $TARGET/release/anabranch. Next: '$TARGET/release/anabranch scenarios' lists what it can run"
