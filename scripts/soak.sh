#!/usr/bin/env bash
# Runs random cases for an hour: three quarters of it in virtual time, one quarter against this machine's kernel (root).
# SOAK_SECONDS or MINUTES: the duration; KIND=transport, lab or kernel: only this kind; SEED: repeats a run; FIRST: the
# first case.
# With KIND, CASE: one case of a seed; REPLAY: the case in a file; SEGMENTS=1: prints every segment.
. "$(dirname "$0")/lib.sh"
need_cargo
seconds=${SOAK_SECONDS:-$((${MINUTES:-60} * 60))}
arguments=()
if [ -n "${SEED:-}" ]; then arguments+=(--seed "$SEED"); fi
if [ -n "${FIRST:-}" ]; then arguments+=(--first "$FIRST"); fi
if [ -n "${CASE:-}" ]; then arguments+=(--case "$CASE"); fi
if [ -n "${REPLAY:-}" ]; then arguments+=(--replay "$REPLAY"); fi
if [ -n "${SEGMENTS:-}" ]; then arguments+=(--segments); fi

# soak PACKAGE SECONDS [--kind KIND]: cases of a kind, or of all kinds in virtual time.
soak() {
    local package=$1 seconds=$2
    shift 2
    cargo run "${LOCKED[@]}" --quiet -p "$package" -- --seconds "$seconds" "$@" "${arguments[@]}"
}

case ${KIND:-} in
transport | lab) soak soak "$seconds" --kind "$KIND" ;;
kernel) soak soak-kernel "$seconds" ;;
'')
    # A single case has one kind; the program requires it, or knows it from the file.
    if [ -n "${CASE:-}${REPLAY:-}" ]; then soak soak "$seconds"; exit; fi
    status=0
    soak soak $((seconds * 3 / 4)) || status=1
    soak soak-kernel $((seconds / 4)) || status=1
    exit $status
    ;;
*) die "KIND=$KIND: choose 'transport', 'lab' or 'kernel', or leave it out for all" ;;
esac
