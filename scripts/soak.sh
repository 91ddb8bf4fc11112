#!/usr/bin/env bash
# Runs random scenarios for an hour. SOAK_SECONDS or MINUTES: for how long; KIND: only transport or lab; SEED: the same again; FIRST: from
# which case on; CASE: one case of a seed and kind; REPLAY: the case in a file; SEGMENTS=1: with every segment.
. "$(dirname "$0")/lib.sh"
need_cargo
arguments=(--seconds "${SOAK_SECONDS:-$((${MINUTES:-60} * 60))}")
if [ -n "${KIND:-}" ]; then arguments+=(--kind "$KIND"); fi
if [ -n "${SEED:-}" ]; then arguments+=(--seed "$SEED"); fi
if [ -n "${FIRST:-}" ]; then arguments+=(--first "$FIRST"); fi
if [ -n "${CASE:-}" ]; then arguments+=(--case "$CASE"); fi
if [ -n "${REPLAY:-}" ]; then arguments+=(--replay "$REPLAY"); fi
if [ -n "${SEGMENTS:-}" ]; then arguments+=(--segments); fi
exec cargo run "${LOCKED[@]}" --quiet -p soak -- "${arguments[@]}"
