#!/usr/bin/env bash
# Runs the checks as named steps. usage: scripts/test.sh [long]
. "$(dirname "$0")/lib.sh"
need_cargo
mode=${1:-short}
logs=$TARGET/steps
mkdir -p "$logs"
failed=()
# Failed tests and their reasons, repeated at the end: there may be thousands of lines between.
why=$logs/why.txt
: >"$why"
touch "$logs/started"

# On a terminal, shows the current output of a step until it is killed.
watch_step() {
    local name=$1 log=$2 line
    while sleep 1; do
        line=$(tail -n1 "$log" 2>/dev/null | tr -d '\r' | cut -c1-60)
        printf '\r\033[K%-28s %4d s  %s' "$name" $((SECONDS - step_start)) "$line"
    done
}

# step NAME COMMAND...: runs the command with its output in a log; shows the log in CI, with VERBOSE=1 and on failure.
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

# Names and processes of the steps that run beside the others.
beside_names=() beside_pids=()

# start_beside NAME COMMAND...: runs it beside the following steps; finish_beside waits for all of them and reports
# their results.
start_beside() {
    local name=$1 log=$logs/${1// /-}.log start=$SECONDS
    shift
    # A process group of its own: everything it starts ends with this script.
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
    # Cargo lets only one command build at a time: this step must get its turn before the following ones.
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

# report NAME LOG STATUS SECONDS: prints the line of a finished step.
report() {
    printf '%-28s %s  %d s%s\n' "$1" "$([ "$3" = 0 ] && echo ok || echo FAILED)" "$4" "$(summary "$2")"
    # What the tests themselves left out, one line each.
    grep -h '^left out:' "$2" | sort -u | sed 's/^/  /' || true
    if [ "$3" != 0 ]; then
        panics "$2" | tee -a "$why"
        case $1 in
            interop | daemons) try_again_later "$1" "$2" ;;
            *) failed+=("$1") ;;
        esac
    fi
    # Tests must use what was built for them: rebuilding with other features would take minutes unnoticed.
    case $1 in tests | interop | daemons | "second attempt" | "random cases with a kernel")
        if grep -q '^ *Compiling' "$2"; then
            say "  built again: $(sed -n 's/^ *Compiling \([^ ]*\).*/\1/p' "$2" | tr '\n' ' ')"
            if in_ci; then failed+=("$1, which builds again"); fi
        fi
    esac
}

# Nothing is built twice between steps: cargo builds a library again if one step needs it, or what it depends on, with
# other features (tests/interop/Cargo.toml). The file names of both then differ by their hash.
no_library_twice() {
    local twice
    twice=$(find "$TARGET/debug/deps" -name 'lib*.rlib' -newer "$logs/started" -printf '%f\n' |
        sed -E 's/^lib(.*)-[0-9a-f]+\.rlib$/\1/' | sort | uniq -d | grep -Fxf <(own_libraries)) || return 0
    say "built twice, with different features:" $twice
    return 1
}

# A library has the name of its folder, unless its manifest gives it another.
own_libraries() {
    local folder name
    for folder in crates/* tests/*; do
        name=$(sed -n '/^\[lib\]/,/^\[/s/^name = "\(.*\)"/\1/p' "$folder/Cargo.toml")
        say "${name:-$(basename "$folder" | tr - _)}"
    done
}

# Failed tests with the first line of the reason; nothing about tests that are expected to panic.
panics() {
    awk '/^failures:$/ { failures = 1 } /^test result:/ { failures = 0 }
         failures && /^thread .* panicked at / { where = $0; getline; print "  " where " " substr($0, 1, 300) }' "$1"
}

# The counts of the test runner, if the step ran one.
summary() {
    awk '/^test result:/ { passed += $4; failed += $6; ignored += $8; any = 1 }
         END { if (any) printf "  (%d passed, %d failed, %d ignored)", passed, failed, ignored }' "$1"
}

# Tests in real time that failed beside the build. They run once more with the machine to themselves: a busy machine can
# fail them, a fault of the program fails them again.
again=()
AGAIN_MAX=5

# try_again_later STEP LOG: notes the failed tests of a step. A step with many, or without a result, has failed for good.
try_again_later() {
    local names
    mapfile -t names < <(failed_tests "$2")
    if [ ${#names[@]} = 0 ] || [ ${#names[@]} -gt $AGAIN_MAX ]; then
        failed+=("$1")
    else
        again+=("${names[@]}")
        say "  to be tried again alone: ${names[*]}"
    fi
}

# The names in the last list of each test run that failed; the list before has what the tests said.
failed_tests() {
    awk '/^failures:$/ { names = ""; listing = 1; next }
         listing && /^    [^ ]+$/ { names = names $1 "\n" }
         /^test result:/ { printf "%s", names; names = ""; listing = 0 }' "$1"
}

# Each of them must pass: the test runner is content with a name that is no test's.
second_attempt() {
    local results=$logs/second-attempt-results.txt
    with_kernel --test integration -- --exact --test-threads=1 --show-output "${again[@]}" | tee "$results"
    grep -q "^test result: ok. ${#again[@]} passed" "$results"
}

lint() {
    local deny=()
    if in_ci || [ "$(rust_minor)" = $RUST_LINTED_MINOR ]; then deny=(-- -D warnings); fi
    cargo clippy "${LOCKED[@]}" "${FEATURES[@]}" --workspace --all-targets "${deny[@]}"
}

# Libraries only: the doc comments of the command are its help texts, not links. There are no examples, but the option
# makes cargo use the features of a test build, so other people's crates that the lint has checked are not checked
# again.
docs() {
    RUSTDOCFLAGS='-D warnings' cargo doc "${LOCKED[@]}" "${FEATURES[@]}" --workspace --lib --examples --no-deps --document-private-items
}

# Properties are tried with the same cases every time, so the result for a change is repeatable. The long tests look for
# new cases.
tests() {
    PROPTEST_RNG_SEED=${PROPTEST_RNG_SEED:-8684} \
        cargo test "${LOCKED[@]}" "${FEATURES[@]}" --no-fail-fast --workspace --exclude interop --exclude soak-kernel -- --show-output
}

# Includes the slow tests, with more cases for every property, optimised as a user's build, but with overflow checks.
long_tests() {
    PROPTEST_CASES=4096 cargo test "${LOCKED[@]}" "${FEATURES[@]}" --no-fail-fast --profile long-test --workspace --exclude interop --exclude soak-kernel -- --include-ignored
}

# Tests that need a kernel: with the features of the whole build, which cargo uses only if both packages are named.
with_kernel() { cargo test "${LOCKED[@]}" "${FEATURES[@]}" --no-fail-fast -p interop -p soak-kernel "$@"; }

# They mostly wait. They run one at a time, so each has the devices to itself.
interop() { with_kernel --test integration "$@" -- --test-threads=1 --show-output "${DAEMON_TESTS[@]/#/--skip=}"; }

# `join` with its proxy and uplinks, and `relay`. Rates are low and time limits generous, so these run beside
# the others. Not in three groups at once: links keep a core busy, and a build beside them would exceed the time limits.
# The two groups take equally long: nothing else runs at the end.
DAEMON_TESTS=(join:: uplinks:: lending:: product:: proxy::)
daemons() { with_kernel --test integration "$@" -- --test-threads=1 --show-output "${DAEMON_TESTS[@]}"; }

# Gives way to tests that measure times and use little of the processor. Raising those above all others would not work:
# the kernel's own threads, which forward packets, have no priority either.
later() {
    renice -n 5 -p "$BASHPID" >/dev/null
    "$@"
}

# Random cases in real time. A busy machine would change which packets are lost, so nothing runs beside them.
kernel_soak() { with_kernel --lib --test short "$@" -- --test-threads=1 --show-output; }

# Runs each bench once, unmeasured, to show that it still builds and runs.
bench_smoke() { cargo test "${LOCKED[@]}" "${FEATURES[@]}" --workspace --bench '*'; }

# The fuzz targets are a workspace of their own. Checking them needs neither nightly nor libFuzzer.
fuzz_check() {
    CUSTOM_LIBFUZZER_PATH=none/libfuzzer.a cargo check --locked --manifest-path fuzz/Cargo.toml --target-dir "$TARGET/fuzz"
}

if [ ${#FEATURES[@]} = 0 ]; then leave_out "the tests of controllers in the kernel: libelf-dev or zlib1g-dev is missing"; fi
if have rustfmt; then step "format" cargo fmt --all --check; else leave_out "the format check: rustfmt is missing"; fi
step "build interop" with_kernel --no-run
# These run in real time, mostly wait, and tolerate a busy machine.
start_beside "interop" later interop
start_beside "daemons" daemons
renice -n 10 -p $$ >/dev/null # the following steps give way to it
step "build tests" cargo test "${LOCKED[@]}" "${FEATURES[@]}" --workspace --no-run
step "no library built twice" no_library_twice
step "tests" tests
if have cargo-clippy; then step "lint" lint; else leave_out "the lint: clippy is missing"; fi
step "docs" docs
step "benches run" bench_smoke
step "fuzz targets check" fuzz_check
finish_beside
if [ ${#again[@]} -gt 0 ]; then step "second attempt" second_attempt; fi
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
if [ ${#again[@]} -gt 0 ]; then say "passed only in the second attempt: ${again[*]}"; fi
say "all good in $SECONDS s. Next: 'make demo' sends a file over four relays; 'make test-long' tests longer; 'make bench' measures speed."
