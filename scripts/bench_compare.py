#!/usr/bin/env python3
"""Runs benches of this tree and of another revision in turns, and prints how many times as fast this tree is.

usage: scripts/bench.sh compare REV [--rounds N] [--only TEXT] [--programs NAME,...] [--without-sha]

The other revision is built in a worktree under target/compare/, with the same settings. Each round runs every program once
for each side, so that a drift of the machine's speed affects both equally; each ratio belongs to one round. Cases that
only one of the two has are left out, and named.
"""

import argparse
import collections
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve()

# Programs by name: their package, arguments (as little work as gives a steady figure), and output format.
PROGRAMS = {
    "engine": ("simulator", ["10"], "packets and seconds"),
    "packets_per_second": ("simulator", ["20"], "packets and seconds"),
    "local_flows": ("simulator", [], "costs"),
    "cell": ("lab", ["--bench", "--sample-count", "3"], "tree"),
    "selection": ("cooperation", ["--bench", "--sample-count", "50"], "tree"),
    "endpoint": ("transport", ["--bench"], "tree"),
}
DEFAULT = "engine,cell,selection"

UNITS_NS = {"ns": 1.0, "µs": 1e3, "us": 1e3, "ms": 1e6, "s": 1e9}
# A line of divan's tree: ├─ name   fastest │ slowest │ median │ mean │ ...
DIVAN_ROW = re.compile(r"^(?P<indent>[│ ]*)[├╰]─ (?P<name>\S+)\s*(?P<rest>.*)$")
DIVAN_TIME = re.compile(r"^([\d.]+) (ns|µs|us|ms|s)$")
# A line of the tables: a name, then only numbers.
TABLE_ROW = re.compile(r"^(?P<name>\S.*?)\s{1,}(?P<numbers>(?:[\d.]+\s+)*[\d.]+)$")


def main():
    options = arguments()
    programs = options.programs.split(",")
    unknown = [name for name in programs if name not in PROGRAMS]
    if unknown:
        sys.exit(f"error: no program {', '.join(unknown)}; there are {', '.join(PROGRAMS)}")
    theirs = worktree(options.revision)
    sides = {"this": build(ROOT, TARGET, programs, options), "other": build(theirs, theirs / "target", programs, options)}
    ratios, alone = measure(sides, programs, options)
    report(ratios, alone, options.revision)


def arguments():
    parser = argparse.ArgumentParser(prog="scripts/bench.sh compare", description=__doc__.split("\n")[0])
    parser.add_argument("revision", help="what to compare with: a commit, tag or branch")
    parser.add_argument("--rounds", type=int, default=5, help="how often each side runs (5)")
    parser.add_argument("--programs", default=DEFAULT, help=f"of {', '.join(PROGRAMS)} ({DEFAULT})")
    parser.add_argument("--only", default="", help="only cases whose name contains this")
    parser.add_argument("--without-sha", action="store_true",
                        help="as on a processor without SHA instructions: engine and cell")
    options = parser.parse_args()
    if options.rounds < 1:
        parser.error("--rounds: at least 1")
    return options


def git(*command):
    return subprocess.run(["git", *command], cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


def worktree(revision):
    """Returns a checkout of the revision, created once and kept with its build results."""
    try:
        commit = git("rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}")
    except subprocess.CalledProcessError:
        sys.exit(f"error: there is no revision {revision!r} here; 'git log' lists those there are")
    path = TARGET / "compare" / commit[:12]
    if not path.exists():
        git("worktree", "prune")
        git("worktree", "add", "--detach", str(path), commit)
    return path


def build(tree, target, programs, options):
    """Builds the benches of a tree, and returns the path of each."""
    packages = {PROGRAMS[name][0] for name in programs}
    print(f"building the benches of {tree}", file=sys.stderr)
    command = ["cargo", "bench", "--no-run", "--message-format", "json"]
    for name in programs:
        command += ["--bench", name]
    for package in sorted(packages):
        command += ["-p", package]
    if options.without_sha:
        command += ["--features", "sha2/force-soft"]
    environment = {**os.environ, "CARGO_TARGET_DIR": str(target)}
    built = subprocess.run(command, cwd=tree, env=environment, stdout=subprocess.PIPE, text=True)
    if built.returncode != 0:
        sys.exit(f"error: the benches of {tree} do not build\n  help: --programs names those that both revisions have")
    messages = [json.loads(line) for line in built.stdout.splitlines() if line.startswith("{")]
    return {
        message["target"]["name"]: message["executable"]
        for message in messages
        if message.get("executable") and "bench" in message["target"]["kind"]
    }


def measure(sides, programs, options):
    """Returns the ratios of every case, other over this, one per round; and the cases that one side lacks."""
    ratios, alone = collections.defaultdict(list), {}
    for round_number in range(1, options.rounds + 1):
        for name in programs:
            # The first program finds the machine in a different state, so alternate the order.
            order = ["this", "other"] if round_number % 2 else ["other", "this"]
            print(f"round {round_number} of {options.rounds}: {name}", file=sys.stderr)
            costs = {side: run(sides[side].get(name), name) for side in order}
            for case in costs["this"].keys() | costs["other"].keys():
                if options.only not in case:
                    continue
                if case in costs["this"] and case in costs["other"]:
                    ratios[name, case].append((costs["other"][case] / costs["this"][case], costs["this"][case]))
                else:
                    alone[name, case] = "this" if case in costs["this"] else "other"
    return ratios, alone


def run(program, name):
    """Returns the cost of each case in nanoseconds, whatever its unit of work."""
    if program is None:
        return {}
    _, arguments, prints = PROGRAMS[name]
    output = subprocess.run([program, *arguments], check=True, stdout=subprocess.PIPE, text=True).stdout
    return tree(output) if prints == "tree" else table(output, prints)


def table(output, prints):
    """Reads names with a number of packets and their seconds, or with a number of flows and, last, the cost."""
    costs = {}
    for line in output.splitlines():
        row = TABLE_ROW.match(line)
        numbers = [float(number) for number in row["numbers"].split()] if row else []
        if len(numbers) < 3:
            continue
        if prints == "costs":
            costs[f"{row['name']} {numbers[0]:g}"] = numbers[-1]
        elif numbers[0] > 0:
            costs[row["name"]] = numbers[1] / numbers[0] * 1e9
    return costs


def tree(output):
    """Returns the fastest run of each case in divan's output."""
    costs, above = {}, {}
    for line in output.splitlines():
        row = DIVAN_ROW.match(line)
        if row is None:
            continue
        depth = len(row["indent"]) // 3
        above[depth] = row["name"]
        fastest = DIVAN_TIME.match(row["rest"].split("│")[0].strip())
        if fastest:
            path = " ".join(above[level] for level in range(depth + 1))
            costs[path] = float(fastest[1]) * UNITS_NS[fastest[2]]
    return costs


def report(ratios, alone, revision):
    print(f"\nthis tree over {revision}: times as fast; above 1 this tree is faster")
    print(f"{'program':<20} {'case':<28} {'median':>7} {'lowest':>7} {'highest':>8}   {'here':>10}")
    for (program, case), rounds in sorted(ratios.items(), key=lambda item: natural(item[0])):
        values = [ratio for ratio, _ in rounds]
        here = human(statistics.median(cost for _, cost in rounds))
        print(
            f"{program:<20} {case:<28} {statistics.median(values):>7.2f} {min(values):>7.2f} {max(values):>8.2f}   {here:>10}"
        )
    for (program, case), side in sorted(alone.items()):
        print(f"{program:<20} {case:<28} only in {'this tree' if side == 'this' else revision}")
    print("\nNext: the same with --rounds 10 if lowest and highest lie far apart")


def natural(key):
    """Returns a sort key that orders numbers within names numerically."""
    return [[int(part) if part.isdigit() else part for part in re.split(r"(\d+)", text)] for text in key]


def human(nanoseconds):
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if nanoseconds >= size:
            return f"{nanoseconds / size:.3g} {unit}"
    return f"{nanoseconds:.3g} ns"


if __name__ == "__main__":
    main()
