"""Compares `anabranch select` with an integer-programming solver: the quality of its sets, and the time of both.

usage: pip install highspy; cargo build --release -p anabranch; python3 scripts/selection_milp.py [--anabranch PATH]

The solver (HiGHS) gets the same relays and two goals in turn: the least distance of the sum from the target, then, without
giving that up, the fewest relays. Its time is that of solving alone. Ours is that of the whole command, process
start included; the bench of the crate measures the search by itself.
"""

import argparse
import json
import random
import subprocess
import time

import highspy

TOLERANCE = 0.1
ROUNDS = 20


def relays_bps(count, seed):
    """Returns offers from 0.3 to 1.2 Mbit/s."""
    generator = random.Random(seed)
    return [generator.randrange(300_000, 1_200_001) for _ in range(count)]


def ours(command, rates, target):
    """Returns the active set's sum (bit/s) and number of relays, and the shortest time of several whole runs, s."""
    line = [command, "select", "--relays", ",".join(map(str, rates)), "--target", str(target), "--json"]
    shortest = float("inf")
    for _ in range(ROUNDS):
        start = time.perf_counter()
        run = subprocess.run(line, capture_output=True)
        # Exit code 1: no set is in range, and the nearest one is printed.
        if run.returncode > 1:
            run.check_returncode()
        output = run.stdout
        shortest = min(shortest, time.perf_counter() - start)
    active = json.loads(output)["active"]
    return active["sum_bps"], len(active["relays"]), shortest


class Solver:
    """Binary variables for the relays, and the distance of their sum from the target, in kbit/s to suit tolerances."""

    def __init__(self, rates, target, limit_s):
        self.rates, self.target = rates, target
        self.model = highspy.Highs()
        self.model.silent()
        options = {"time_limit": limit_s, "threads": 1, "mip_rel_gap": 0.0, "mip_abs_gap": 1e-4}
        for name, value in options.items():
            self.model.setOptionValue(name, value)
        self.taken = [self.model.addBinary() for _ in rates]
        self.distance = self.model.addVariable(lb=0, ub=target * TOLERANCE / 1000)
        total = self.model.qsum(rate / 1000 * taken for rate, taken in zip(rates, self.taken))
        self.model.addConstr(total - self.distance <= target / 1000)
        self.model.addConstr(total + self.distance >= target / 1000)

    def solve(self):
        """Returns sum (bit/s) and number of relays, time of both solutions, s, and whether both are proven optimal."""
        start = time.perf_counter()
        proven = self.minimise(self.distance)
        first = self.answer()
        if first is None:
            return None
        self.model.addConstr(self.distance <= abs(first[0] - self.target) / 1000)
        proven &= self.minimise(self.model.qsum(self.taken))
        reached = self.answer() or first
        return *reached, time.perf_counter() - start, proven

    def minimise(self, goal):
        self.model.minimize(goal)
        return self.model.getModelStatus() == highspy.HighsModelStatus.kOptimal

    def answer(self):
        """Returns the sum and number of relays of the best solution so far, if there is one."""
        if self.model.getInfo().primal_solution_status != highspy.SolutionStatus.kSolutionStatusFeasible:
            return None
        chosen = [rate for rate, taken in zip(self.rates, self.taken) if self.model.val(taken) > 0.5]
        return sum(chosen), len(chosen)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--anabranch", default="target/release/anabranch", help="the command")
    parser.add_argument("--limit", type=float, default=60.0, help="most time for one solution of the solver, s")
    parser.add_argument("--seeds", type=int, default=3)
    arguments = parser.parse_args()
    print(f"{'relays':>6} {'target':>13} {'seed':>4}   {'ours':>15} {'time':>9}   {'solver':>15} {'time':>9} {'proven':>6}   ratio")
    for count in (10, 100, 1000):
        for seed in range(arguments.seeds):
            rates = relays_bps(count, seed)
            for target in (3_000_000, sum(rates) // 2):
                sum_bps, number, seconds = ours(arguments.anabranch, rates, target)
                line = f"{count:>6} {target:>13} {seed:>4}   {result(sum_bps, number, target)} {seconds * 1e3:>6.1f} ms   "
                solved = Solver(rates, target, arguments.limit).solve()
                if solved is None:
                    print(f"{line}nothing within {arguments.limit} s")
                    continue
                theirs, their_number, their_seconds, proven = solved
                print(
                    f"{line}{result(theirs, their_number, target)} {their_seconds * 1e3:>6.0f} ms "
                    f"{'yes' if proven else 'no':>6}   {their_seconds / seconds:.0f}",
                    flush=True,
                )


def result(sum_bps, number, target):
    """Formats the number of relays, and the distance of their sum from the target."""
    return f"{number:>4} {sum_bps - target:>+6} bit/s".rjust(15)


if __name__ == "__main__":
    main()
