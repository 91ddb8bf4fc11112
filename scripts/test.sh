#!/usr/bin/env bash
# Runs the checks as named steps. usage: scripts/test.sh [long]
. "$(dirname "$0")/lib.sh"
need_cargo
mode=${1:-short}
logs=$TARGET/steps
mkdir -p "$logs"
failed=()
# The tests that have failed and why, said again at the end: the lines between may be thousands.
why=$logs/why.txt
: >"$why"

# On a terminal, shows what a step is doing until it is killed.
watch_step() {
    local name=$1 log=$2 line
    while sleep 1; do
        line=$(tail -n1 "$log" 2>/dev/null | tr -d '\r' | cut -c1-60)
        printf '\r\033[K%-28s %4d s  %s' "$name" $((SECONDS - step_start)) "$line"
    done
}

# step NAME COMMAND...: runs it, its output in a log; shows the log in CI, with VERBOSE=1 and when it fails.
step() {
    local name=$1 log=$logs/${1// /-}.log status=0 watcher=
    shift
    step_start=$SECONDS
    if is_verbose; then
        say "=== $name"
        "$@" </dev/null 2>&1 | tee "$log" || status=$?
    else
        if [ -t 1 ]; then watch_step "$name" "$log" & watcher=$!; fi
        "$@" </dev/null >"$log" 2>&1 || status=$?
        stop_watching "$watcher"
        if [ $status != 0 ]; then tail -n 80 "$log"; fi
    fi
    report "$name" "$log" $status $((SECONDS - step_start))
}

# Steps that run beside the others: their names and processes.
beside_names=() beside_pids=()

# start_beside NAME COMMAND...: runs it beside the steps that follow; finish_beside waits for all of them and says what came of each.
start_beside() {
    local name=$1 log=$logs/${1// /-}.log start=$SECONDS
    shift
    # A process group of its own: whatever it has started ends with this script.
    set -m
    {
        status=0
        "$@" </dev/null >"$log" 2>&1 || status=$?
        say $((SECONDS - start)) >"$log.seconds"
        exit $status
    } &
    set +m
    beside_names+=("$name") beside_pids+=($!)
    trap 'for pid in "${beside_pids[@]}"; do kill -- "-$pid" 2>/dev/null; done' EXIT
    # Cargo lets one command build at a time: what follows must not be the first.
    until grep -qs '^ *Running' "$log" || ! kill -0 $! 2>/dev/null; do sleep 0.2; done
}

finish_beside() {
    local index name log status watcher
    for index in "${!beside_names[@]}"; do
        name=${beside_names[$index]} log=$logs/${beside_names[$index]// /-}.log status=0 watcher=
        step_start=$SECONDS
        if [ -t 1 ] && ! is_verbose; then watch_step "$name" "$log" & watcher=$!; fi
        wait "${beside_pids[$index]}" || status=$?
        stop_watching "$watcher"
        if is_verbose; then
            say "=== $name"
            cat "$log"
        elif [ $status != 0 ]; then
            tail -n 80 "$log"
        fi
        report "$name" "$log" $status "$(cat "$log.seconds")"
    done
    trap - EXIT
}

is_verbose() { in_ci || [ -n "${VERBOSE:-}" ]; }

stop_watching() {
    [ -n "$1" ] || return 0
    kill "$1" 2>/dev/null || true
    wait "$1" 2>/dev/null || true
    printf '\r\033[K'
}

# report NAME LOG STATUS SECONDS: the line of a step that has ended.
report() {
    printf '%-28s %s  %d s%s\n' "$1" "$([ "$3" = 0 ] && echo ok || echo FAILED)" "$4" "$(summary "$2")"
    # What the tests themselves could not do here, one line each.
    grep -h '^left out:' "$2" | sort -u | sed 's/^/  /' || true
    if [ "$3" != 0 ]; then
        failed+=("$1")
        panics "$2" | tee -a "$why"
    fi
    # Tests run what was built for them: built again with other features, it would take minutes that nobody sees.
    case $1 in tests | interop | daemons | "random cases with a kernel")
        if grep -q '^ *Compiling' "$2"; then
            say "  built again: $(sed -n 's/^ *Compiling \([^ ]*\).*/\1/p' "$2" | tr '\n' ' ')"
            if in_ci; then failed+=("$1, which builds again"); fi
        fi
    esac
}

# Which tests have failed, and the first line of why: of tests that are to panic nothing.
panics() {
    awk '/^failures:$/ { failures = 1 } /^test result:/ { failures = 0 }
         failures && /^thread .* panicked at / { where = $0; getline; print "  " where " " substr($0, 1, 300) }' "$1"
}

# What the test runner counted, if the step ran one.
summary() {
    awk '/^test result:/ { passed += $4; failed += $6; ignored += $8; any = 1 }
         END { if (any) printf "  (%d passed, %d failed, %d ignored)", passed, failed, ignored }' "$1"
}

lint() {
    local deny=()
    if in_ci || [ "$(rust_minor)" = $RUST_LINTED_MINOR ]; then deny=(-- -D warnings); fi
    cargo clippy "${LOCKED[@]}" "${FEATURES[@]}" --workspace --all-targets "${deny[@]}"
}

# Libraries only: the doc comments of the command are its help texts, not links. There are no examples; but with that word cargo
# takes the features of a build of tests, and what the lint has checked of other people's crates need not be checked again.
docs() {
    RUSTDOCFLAGS='-D warnings' cargo doc "${LOCKED[@]}" "${FEATURES[@]}" --workspace --lib --examples --no-deps --document-private-items
}

# Properties are tried with the same cases every time: a change that passes once passes always. The long tests look for new ones.
tests() {
    PROPTEST_RNG_SEED=${PROPTEST_RNG_SEED:-8684} \
        cargo test "${LOCKED[@]}" "${FEATURES[@]}" --no-fail-fast --workspace --exclude interop --exclude soak-kernel -- --show-output
}

# The slow ones too, more cases for every property, and optimised as a user's build is, but for checks of overflow.
long_tests() {
    PROPTEST_CASES=4096 cargo test "${LOCKED[@]}" "${FEATURES[@]}" --no-fail-fast --profile long-test --workspace --exclude interop --exclude soak-kernel -- --include-ignored
}

# What needs a kernel: built with the features that all is built with, which cargo takes only where both are named.
with_kernel() { cargo test "${LOCKED[@]}" "${FEATURES[@]}" --no-fail-fast -p interop -p soak-kernel "$@"; }

# They wait most of the time, one for another: each has the devices' time for itself.
interop() { with_kernel --test integration "$@" -- --test-threads=1 --show-output "${DAEMON_TESTS[@]/#/--skip=}"; }

# What people's devices run, and what that takes: rates are low, and times have room, so that these run beside the others. Not in two groups at
# once: links keep a core busy, and with a build beside them that is more than their times have room for.
DAEMON_TESTS=(join:: kernel_mode:: uplinks:: doctor:: lending:: product:: proxy::)
daemons() { with_kernel --test integration "$@" -- --test-threads=1 --show-output "${DAEMON_TESTS[@]}"; }

# Gives way to what measures times with little of the processor. Going before all others would not do: the kernel's own threads, which pass
# packets on, have no priority either.
later() {
    renice -n 5 -p "$BASHPID" >/dev/null
    "$@"
}

# Random cases in real time, whose losses a busy machine moves about: nothing runs beside them.
kernel_soak() { with_kernel --lib --test short "$@" -- --test-threads=1 --show-output; }

# Each bench once, unmeasured: it still builds and runs.
bench_smoke() { cargo test "${LOCKED[@]}" "${FEATURES[@]}" --workspace --bench '*'; }

# The fuzz targets are a workspace of their own. Checking them needs neither nightly nor libFuzzer.
fuzz_check() {
    CUSTOM_LIBFUZZER_PATH=none/libfuzzer.a cargo check --locked --manifest-path fuzz/Cargo.toml --target-dir "$TARGET/fuzz"
}

if [ ${#FEATURES[@]} = 0 ]; then leave_out "the tests of controllers in the kernel: libelf-dev or zlib1g-dev is missing"; fi
if have rustfmt; then step "format" cargo fmt --all --check; else leave_out "the format check: rustfmt is missing"; fi
step "build interop" with_kernel --no-run
# In real time, mostly waiting, and made to bear a busy machine.
start_beside "interop" later interop
start_beside "daemons" daemons
renice -n 10 -p $$ >/dev/null # what follows gives way to it
step "build tests" cargo test "${LOCKED[@]}" "${FEATURES[@]}" --workspace --no-run
step "tests" tests
if have cargo-clippy; then step "lint" lint; else leave_out "the lint: clippy is missing"; fi
step "docs" docs
step "benches run" bench_smoke
step "fuzz targets check" fuzz_check
finish_beside
step "random cases with a kernel" kernel_soak
if [ "$mode" = long ]; then
    step "long tests" long_tests
    step "interop, optimised" interop --profile long-test
    step "daemons, optimised" daemons --profile long-test
    step "random cases, optimised" kernel_soak --profile long-test
fi

if [ ${#failed[@]} -gt 0 ]; then
    cat "$why"
    say "failed: $(printf '%s; ' "${failed[@]}" | sed 's/; $//'). Logs: $logs/"
    exit 1
fi
say "all good in $SECONDS s. Next: 'make demo' sends a file over four relays; 'make test-long' looks harder; 'make bench' measures."
