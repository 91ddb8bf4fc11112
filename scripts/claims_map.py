#!/usr/bin/env python3
"""Replaces newly measured columns in the map of docs/claims-map.md.

usage: scripts/claims_map.py OUTPUT [--write]

OUTPUT is what `anabranch claims --map --ids C01,...,C66 --conditions NAME,...` printed. Says which squares and verdicts differ; with --write the
map is changed. Marks `=` and `= NAME` are of the conditions of one command, so columns that the map marks as repetitions of one another are
replaced together or not at all; those that repeat `shipped`, which every output has, if it changes. What is told of the map in words, and in docs/claims.md, is left to whoever has read that.
"""

import re
import sys
from pathlib import Path

MAP = Path(__file__).resolve().parent.parent / "docs" / "claims-map.md"
ROW = re.compile(r"\| C\d\d \|")


def cells(line):
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def measured(path):
    """Returns the conditions of an output, and its rows by claim."""
    head, rows = None, {}
    for line in Path(path).read_text().splitlines():
        if line.startswith("| claim | the paper |"):
            head = cells(line)
        elif head and ROW.match(line):
            row = dict(zip(head, cells(line)))
            rows[row["claim"]] = row
    if not rows:
        sys.exit(f"{path}: no map in it: give what `anabranch claims --map` printed")
    return head[2:-1], rows


def verdict(row, conditions):
    if row["shipped"].startswith("+"):
        return "holds as shipped"
    if row["shipped"].startswith("i"):
        return "informative"
    under = [name for name in conditions if row[name].startswith("+")]
    return "holds under " + ", ".join(under) if under else "never here"


def apart(row, new, conditions):
    """Returns the columns that were not measured, but repeat a measured one in this row or are repeated by it. Every output
    has `shipped`: only if it has changed do the columns that repeat it count."""
    marks = {name: re.search(r" =(?: (\S+))?$", square) for name, square in row.items()}
    of = {name: mark[1] or "shipped" for name, mark in marks.items() if mark}
    found = set()
    for first in set(of.values()):
        if first == "shipped" and row[first] == new[first]:
            continue
        group = {first, *(name for name in of if of[name] == first)}
        if group & set(conditions):
            found |= group - set(conditions)
    return found


def update(lines, conditions, rows):
    """Returns the lines of the map with these columns, and prints the differences."""
    start = next(number for number, line in enumerate(lines) if line.startswith("| claim | shipped |"))
    head = cells(lines[start])
    differ, lacking = 0, set()
    for number in range(start + 2, len(lines)):
        if not ROW.match(lines[number]):
            break
        row = dict(zip(head, cells(lines[number])))
        new = rows.get(row["claim"])
        if new is None:
            continue
        lacking |= apart(row, new, conditions)
        for name in conditions:
            if row[name] != new[name]:
                differ += 1
                print(f"{row['claim']} {name}: {row[name]} -> {new[name]}")
            row[name] = new[name]
        before, row["verdict"] = row["verdict"], verdict(row, head[1:-1])
        if before != row["verdict"]:
            print(f"{row['claim']} {before} -> {row['verdict']}")
        lines[number] = "| " + " | ".join(row[name] for name in head) + " |"
    print(f"{differ} of {len(rows) * len(conditions)} squares differ")
    if lacking:
        names = ", ".join(name for name in head if name in lacking)
        sys.exit(f"measure these too, which repeat the same runs as some of these columns, or did: {names}")
    return lines


def main():
    paths = [argument for argument in sys.argv[1:] if argument != "--write"]
    if len(paths) != 1:
        sys.exit(__doc__.strip())
    lines = update(MAP.read_text().split("\n"), *measured(paths[0]))
    if "--write" in sys.argv:
        MAP.write_text("\n".join(lines))


if __name__ == "__main__":
    main()
