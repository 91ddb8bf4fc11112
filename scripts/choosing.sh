#!/usr/bin/env bash
# Runs the sweeps behind docs/choosing.md and writes a report with plots for each: out/choosing-*/report.html.
# SEEDS=1..3 is faster.
. "$(dirname "$0")/lib.sh"
need_cargo
say "building the anabranch command (release)"
cargo build --release "${LOCKED[@]}" -p anabranch
for scenario in scenarios/choosing-*.toml; do
    "$TARGET/release/anabranch" sweep "$scenario" ${SEEDS:+--seeds "$SEEDS"} --out "out/$(basename "$scenario" .toml)"
done
