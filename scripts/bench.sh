#!/usr/bin/env bash
# Runs the benches. One at a time, nothing beside them: they measure.
. "$(dirname "$0")/lib.sh"
need_cargo
cargo bench "${LOCKED[@]}" --workspace --benches
