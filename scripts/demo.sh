#!/usr/bin/env bash
# Builds the command and runs the demo. FILE=path sends that file instead of a generated one.
. "$(dirname "$0")/lib.sh"
need_cargo
say "building the anabranch command, for a first look"
cargo build --profile quick "${LOCKED[@]}" -p anabranch
"$TARGET/quick/anabranch" demo ${FILE:+--file "$FILE"}
say "Next: 'make demo FILE=path' sends one of your files, 'make build' builds the command for use, 'make test' runs every check"
