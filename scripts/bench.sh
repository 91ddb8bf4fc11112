#!/usr/bin/env bash
# Runs the benches, one at a time with nothing beside them, because they measure time.
# usage: scripts/bench.sh [compare REV [--rounds N] [--programs NAME,...] [--only TEXT]]
. "$(dirname "$0")/lib.sh"
need_cargo
if [ "${1:-}" = compare ]; then
    shift
    have python3 || die "python3 is missing. As root: apt-get install python3"
    exec python3 scripts/bench_compare.py "$@"
fi
[ $# = 0 ] || die "unknown argument '$1'. usage: scripts/bench.sh [compare REV ...]"
cargo bench "${LOCKED[@]}" --workspace --benches
