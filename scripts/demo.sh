#!/usr/bin/env bash
# Builds the command and runs the demo. FILE=path sends that file instead of a generated one.
. "$(dirname "$0")/lib.sh"
need_cargo
say "building the anabranch command (release)"
cargo build --release "${LOCKED[@]}" -p anabranch
"$TARGET/release/anabranch" demo ${FILE:+--file "$FILE"}
say "the command is $TARGET/release/anabranch. Next: 'make demo FILE=path' sends a file of yours, 'make test' runs every check"
