#!/usr/bin/env bash
# What is in ns3/: the engine inside ns-3, and ns-3's own results.
# usage: scripts/ns3.sh [examples|radio|tests|wlan|lte]...   (default: examples)
#   examples    builds the module with its examples and runs them
#   radio       builds the radio for `anabranch run --backend ns3`
#   tests       runs the module's tests
#   wlan, lte   measure ns-3's own results, into out/ns3/ as JSON lines
# NS3_PREFIX=dir: where ns-3 is installed, by default /usr. OUT=dir: where results go instead of out/ns3.
# EPA=file, EVA=file: fading traces (ns3/agreement/README.md); set-ups without a trace are left out.
. "$(dirname "$0")/lib.sh"
PREFIX=${NS3_PREFIX:-/usr}
OUT=${OUT:-out/ns3}
JOBS=${JOBS:-$(nproc)}
if [ $# = 0 ]; then set -- examples; fi

need_ns3() {
    local missing=()
    if [ ! -e "$PREFIX/include/ns3/lte-module.h" ] && [ -z "${NS3_PREFIX:-}" ]; then missing+=(libns3-dev); fi
    if ! have g++; then missing+=(g++); fi
    if [ ${#missing[@]} != 0 ] && is_root && have apt-get; then
        say "ns3: apt-get install ${missing[*]}"
        apt-get update -qq || say "ns3: apt-get update failed; continuing with the existing package lists"
        apt-get install -y -qq -o Dpkg::Use-Pty=0 --no-install-recommends "${missing[@]}" >/dev/null ||
            die "apt-get could not install ${missing[*]}; if ns-3 is installed elsewhere, set NS3_PREFIX"
    fi
    [ -e "$PREFIX/include/ns3/lte-module.h" ] ||
        die "no ns-3 in $PREFIX. As root: apt-get install libns3-dev; or set NS3_PREFIX to its folder"
    have g++ || die "no C++ compiler. As root: apt-get install g++"
    # All was written for 3.37 and measured with it; other releases may differ.
    if [ -z "${NS3_PREFIX:-}" ] && have dpkg-query; then
        say "ns3: libns3-dev $(dpkg-query -W -f '${Version}' libns3-dev 2>/dev/null || say unknown)"
    fi
}

# make_ns3 TARGET...
make_ns3() { make -s -f ns3/Makefile "-j$JOBS" NS3_PREFIX="$PREFIX" OUT="$TARGET/ns3" ENGINE="$TARGET/quick/libanabranch_c.a" "$@"; }

build_engine() {
    need_cargo
    say "ns3: building the engine ($TARGET/quick/libanabranch_c.a)"
    cargo build "${LOCKED[@]}" --quiet -p capi --profile quick
}

run_examples() {
    local phones
    build_engine
    make_ns3 examples
    say "ns3: a laptop downloads for 5 s over its own LTE link and those of phones on its Wi-Fi"
    for phones in 0 1 2; do "$TARGET/ns3/examples/phones" --phones=$phones; done
    say "next: $TARGET/ns3/examples/phones --help; ns3/README.md says how to use the engine in your own programs"
}

run_tests() {
    build_engine
    make_ns3 tests
    "$TARGET/ns3/tests"
}

# One line of options per run.
wlan_runs() {
    local rate stations seed
    for rate in 54 6; do for stations in 1 2 3 5 10; do for seed in 1 2 3 4 5; do
        say "--rate=$rate --stations=$stations --seed=$seed"
    done; done; done
}

ten=810,830,850,870,890,910,930,950,970,990
lte_runs() {
    local seed ues tcp='--tcp=1 --wire=20 --seconds=20'
    say "--name=light --rates=20"
    say "--name=one --rates=50"
    say "--name=distances --distances=500,900,2000,4000"
    say "--name=ten --distances=$ten --rates=5"
    say "--name=reserved --distances=900,900,900,900 --rates=20,1"
    for scheduler in FdBet Pf Rr; do
        say "--name=$scheduler --distances=900,900,6000 --scheduler=ns3::${scheduler}FfMacScheduler"
    done
    for ues in 900 900,900,900 $ten; do
        say "--name=tcp-am --distances=$ues $tcp"
        say "--name=tcp-um --distances=$ues $tcp --um=1"
    done
    for seed in 1 2 3 4 5 6; do fading_runs "--seed=$seed"; done
}

fading_runs() {
    if [ -n "${EPA:-}" ]; then
        say "--name=ten-epa --distances=$ten --rates=5 --fading=$EPA $1"
        say "--name=ten-epa-2.6 --distances=$ten --rates=2.6 --fading=$EPA $1"
        say "--name=ten-epa-2.0 --distances=$ten --rates=2 --fading=$EPA $1"
        say "--name=near-epa --distances=900,900,900 --fading=$EPA $1"
        say "--name=far-epa --distances=4000,4000,4000 --rates=10 --fading=$EPA $1"
        say "--name=farther-epa --distances=6000,6000,6000,6000,6000,6000 --rates=3 --fading=$EPA $1"
    fi
    if [ -n "${EVA:-}" ]; then
        say "--name=far-eva --distances=3000,3000 --rates=15 --fading=$EVA $1"
    fi
}

# measure wlan: all its runs, several at a time; announces each at its start. Each run writes a file of its own, since
# lines of several writers might mix, and marks it once it has succeeded.
measure() {
    local program=$1 runs options number=0 parts failed=()
    mkdir -p "$OUT"
    parts=$(mktemp -d "$OUT/$program.XXXXXX")
    mapfile -t runs < <("${program}_runs")
    for options in "${runs[@]}"; do
        number=$((number + 1))
        say "ns3: $program $number of ${#runs[@]}: $options"
        while [ "$(jobs -rp | wc -l)" -ge "$JOBS" ]; do wait -n || true; done
        # shellcheck disable=SC2086
        { "$TARGET/ns3/$program" $options >"$parts/$number" && : >"$parts/$number.done"; } &
    done
    wait
    for number in $(seq ${#runs[@]}); do
        [ -e "$parts/$number.done" ] || failed+=("${runs[number - 1]}")
    done
    if [ ${#failed[@]} != 0 ]; then
        printf '  failed: %s\n' "${failed[@]}" >&2
        die "${#failed[@]} of ${#runs[@]} runs of $program failed; results of the others are in $parts, one file each"
    fi
    for number in $(seq ${#runs[@]}); do cat "$parts/$number"; done >"$OUT/$program.jsonl"
    rm -r "$parts"
    say "ns3: results in $OUT/$program.jsonl"
}

need_ns3
for part in "$@"; do
    case $part in
        examples) run_examples ;;
        tests) run_tests ;;
        radio)
            make_ns3 radio
            say "next: anabranch run thesis-4.3 --backend ns3 --set cell.scheduler=blind-equal-throughput-fd"
            ;;
        wlan | lte)
            make_ns3 "$TARGET/ns3/$part"
            measure "$part"
            ;;
        *) die "no part is called '$part': examples, radio, tests, wlan or lte" ;;
    esac
done
