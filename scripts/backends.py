#!/usr/bin/env python3
"""Runs scenarios in the simulator and on another backend, and prints the results side by side (docs/backends.md).

usage: scripts/backends.py [--backend linux|ns3] [--anabranch PATH] [--seeds 1..5] [--jobs N] [--out DIR] [SCENARIO[:SOURCE] ...]

linux needs root; there, SOURCE is engine or kernel. Existing results in DIR (out/backends/BACKEND) are not
measured again: use one for each backend.
"""

import argparse
import concurrent.futures
import json
import pathlib
import statistics
import subprocess
import sys

SCENARIOS = [
    "demo:engine",
    "demo:kernel",
    "cell:engine",
    "cell:kernel",
    "thesis-4.3:engine",
    "thesis-4.5a:engine",
    "thesis-4.5b:engine",
    "thesis-5.4:engine",
    "thesis-6.4:engine",
    "thesis-6.6a:engine",
    "comptcp-5:engine",
    "video:engine",
]
WITH_NS3 = ["thesis-4.3", "thesis-4.5a", "thesis-5.4", "thesis-6.4", "thesis-6.6a"]
# Permitted differences between the simulator and the other backend.
THROUGHPUT_TOLERANCE, GOODPUT_TOLERANCE = 0.10, 0.15
# Settings for the kernel, which has no coupled controller and at most nine subflows.
# ns-3 has no time-domain scheduler that asks UEs whether they have data.
CELL = ["--set", "cell.scheduler=blind-equal-throughput-fd"]
NAMES = {"linux": "Linux", "ns3": "radio of ns-3"}
KERNEL = ["--set", "connection.congestion=cubic", "--set", "connection.subflows_max=9"]


def run(anabranch, case, out, settings):
    """Runs one case, unless its results exist; returns them."""
    scenario, source, variant, seed, backend = case
    path = out / "-".join([scenario, source, variant or "as-written", str(seed), backend]).replace(" ", "_").replace("/", "_")
    if not path.exists():
        command = [anabranch, "run", scenario, "--json", "--seed", str(seed), "--backend", backend]
        command += ["--variant", variant] if variant else []
        command += settings + (KERNEL if source == "kernel" else [])
        command += ["--source", source] if backend == "linux" else []
        done = subprocess.run(command, capture_output=True, text=True)
        if not done.stdout.strip():
            sys.exit(f"{' '.join(command)}: {done.stderr}")
        if done.returncode:
            print(f"{' '.join(command)}: {done.stderr}", file=sys.stderr)
        path.write_text(done.stdout)
    return json.loads(path.read_text())


def first_set(results):
    """Returns the relays that were chosen first."""
    selection = results.get("selection")
    return sorted(selection["migrations"][0]["to"]) if selection and selection["migrations"] else None


def row(scenario, source, variant, pairs):
    """Returns one line: the means of both worlds, their differences, and the number of equal first sets."""
    means = {key: [statistics.mean(results["totals"][key] for results in world) / 1e6 for world in zip(*pairs)]
             for key in ("aggregate_throughput_bps", "goodput_in_order_bps")}
    apart = {key: real / simulated - 1 if simulated else 0.0 for key, (simulated, real) in means.items()}
    sets = [(first_set(simulated), first_set(real)) for simulated, real in pairs]
    same = sum(one == other for one, other in sets if one is not None)
    chosen = f"{same} of {sum(one is not None for one, _ in sets)}" if any(one for one, _ in sets) else "–"
    throughput, goodput = apart["aggregate_throughput_bps"], apart["goodput_in_order_bps"]
    good = abs(throughput) <= THROUGHPUT_TOLERANCE and abs(goodput) <= GOODPUT_TOLERANCE
    cells = [scenario, source, variant or "as written"]
    for key in means:
        cells += [f"{means[key][0]:.2f}", f"{means[key][1]:.2f}", f"{apart[key]:+.1%}".replace("%", " %")]
    return cells + [chosen, "yes" if good else "**no**"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", choices=NAMES, default="linux")
    parser.add_argument("--anabranch", default="target/release/anabranch")
    parser.add_argument("--seeds", default="1..5")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=pathlib.Path, default=None)
    parser.add_argument("scenarios", nargs="*")
    arguments = parser.parse_args()
    other, settings = arguments.backend, CELL if arguments.backend == "ns3" else []
    first, last = (int(number) for number in arguments.seeds.split(".."))
    # Both worlds have other settings with ns-3, so the simulator's results are others, too.
    arguments.out = arguments.out or pathlib.Path("out/backends") / other
    arguments.out.mkdir(parents=True, exist_ok=True)
    groups = []
    for entry in arguments.scenarios or (WITH_NS3 if other == "ns3" else SCENARIOS):
        scenario, _, source = entry.partition(":")
        groups += [(scenario, source or "engine", variant) for variant in names_of(scenario)]
    cases = [(*group, seed, backend) for group in groups for seed in range(first, last + 1) for backend in ("simulator", other)]
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        done = {}
        for case, results in zip(cases, pool.map(lambda case: run(arguments.anabranch, case, arguments.out, settings), cases)):
            done[case] = results
            print(f"\r{len(done)} of {len(cases)}", end="", file=sys.stderr)
    print(file=sys.stderr)
    print(f"| scenario | source | variant | throughput, simulator | {NAMES[other]} | apart | goodput, simulator | {NAMES[other]} | apart | same first set | within tolerance |")
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    for group in groups:
        pairs = [[done[(*group, seed, backend)] for backend in ("simulator", other)] for seed in range(first, last + 1)]
        print("| " + " | ".join(row(*group, pairs)) + " |")


def names_of(scenario):
    """Returns the variants that a scenario file names, or [None] for the scenario as written."""
    path = pathlib.Path(scenario) if scenario.endswith(".toml") else pathlib.Path("scenarios") / f"{scenario}.toml"
    lines = path.read_text().splitlines()
    names = [lines[at + 1].split('"')[1] for at, line in enumerate(lines[:-1]) if line.strip() == "[[variants]]"]
    return names or [None]


if __name__ == "__main__":
    main()
