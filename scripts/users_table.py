#!/usr/bin/env python3
"""Puts what people notice of each module into the tables of docs/claims-map.md and docs/claims.md.

usage: scripts/users_table.py OUTPUT [--write]

OUTPUT is what `anabranch claims --map` printed, of all claims or with `--ids users`, under all conditions. Says which rows differ, and what was
not measured or had faults; with --write the tables are changed. What is told of them in words is left to whoever has read the differences.
"""

import re
import sys
from pathlib import Path

DOCS = Path(__file__).resolve().parent.parent / "docs"
SQUARE = re.compile(
    r"(?:\*\*(?P<state>better|worse)\*\* )?(?P<without>\S+) -> (?P<with>\S+)"
    r"(?: \(\d+ runs faulty\))?(?P<same> =.*)?"
)
NOT_MEASURED = re.compile(r"x\b.*")
FAULTY = re.compile(r"\(\d+ runs faulty\)")
# Beyond as many names, a cell names the exceptions.
NAMES = 14
# Modules of the longer table only.
COMBINED = "adaptive congestion control and differentiated forwarding"


def cells(line):
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def measured(path):
    """Returns by module and measure each row's counts, and its squares by condition, `None` if not measured."""
    conditions, rows = None, {}
    for line in Path(path).read_text().splitlines():
        if line.startswith("| module | what a person notices |"):
            conditions = cells(line)[3:]
        elif conditions and not line.startswith("|"):
            break
        elif conditions and line.startswith("| "):
            module, measure, counts, *squares = cells(line)
            rows[module, measure] = (counts, squares_of(f"{module}, {measure}", dict(zip(conditions, squares))))
    if not rows:
        sys.exit(f"{path}: no table of what people notice")
    missing = [name for name in all_conditions() if name not in conditions]
    if missing:
        sys.exit(f"{path}: not under {', '.join(missing)}: the tables are of all conditions")
    return rows


def squares_of(what, texts):
    """Returns the squares of a row, `None` for those not measured; prints which these are, and which had faults."""
    lacking = [name for name, text in texts.items() if NOT_MEASURED.fullmatch(text)]
    squares = {name: None if name in lacking else SQUARE.fullmatch(text) for name, text in texts.items()}
    unknown = [text for name, text in texts.items() if name not in lacking and not squares[name]]
    if unknown:
        sys.exit(f"{what}: not a square of this table: {unknown[0]}")
    if "shipped" in lacking:
        sys.exit(f"{what}: not measured as shipped")
    faulty = [name for name, text in texts.items() if FAULTY.search(text)]
    for names, state in [(lacking, "not measured"), (faulty, "runs with faults")]:
        if names:
            print(f"{what}: {state}: {', '.join(names)}")
    return squares


def all_conditions():
    """Returns the conditions that the map of the claims has."""
    lines = (DOCS / "claims-map.md").read_text().splitlines()
    return next(cells(line)[1:-1] for line in lines if line.startswith("| claim | shipped |"))


def gap(square):
    return abs(float(square["with"]) - float(square["without"]))


def named(squares, state):
    """Returns the cell that names the conditions of a state, what was not measured, and the largest difference."""
    distinct = {name: square for name, square in squares.items() if square and not square["same"]}
    those = {name: square for name, square in distinct.items() if square["state"] == state}
    if not those:
        return ""
    largest = max(those, key=lambda name: gap(those[name]))
    means = f"{largest} {those[largest]['without']} -> {those[largest]['with']}"
    others = [f"`{name}`" for name in distinct if name not in those]
    lacking = [f"`{name}`" for name, square in squares.items() if not square]
    gaps = f", not measured: {', '.join(lacking)}" if lacking else ""
    if not others and not lacking:
        return f"all; {means}"
    if len(those) > NAMES:
        exceptions = f", all but {', '.join(others)}" if others else ""
        return f"{len(those)}{exceptions}{gaps}; {means}"
    return f"{', '.join(f'`{name}`' for name in those)}{gaps}; {means}"


def long_rows(rows):
    """Returns the rows of the claims' map; those without any difference are left out."""
    for (module, measure), (_, squares) in rows.items():
        better, worse = (named(squares, state) for state in ["better", "worse"])
        if better or worse:
            shipped = squares["shipped"]
            yield f"| {module} | {measure} | {shipped['without']} -> {shipped['with']} | {better} | {worse} |"


def short_rows(rows):
    """Returns the rows of the claims: per module the counts and the means as shipped of each measure."""
    modules = dict.fromkeys(module for module, _ in rows if module != COMBINED)
    for module in modules:
        entries = []
        for (_, _), (counts, squares) in ((key, row) for key, row in rows.items() if key[0] == module):
            better, worse = re.match(r"(\d+) / (\d+)", counts).groups()
            shown = f"**{better}**" if better != "0" else "0"
            shipped = squares["shipped"]
            entries.append(f"{shown} / {worse}: {shipped['without']} -> {shipped['with']}")
        yield f"| {module} | {' | '.join(entries)} |"


def replaced(text, head, rows):
    """Returns the text with other rows under the table's head, and prints the rows that differ."""
    before, table = text.split(head, 1)
    ruler, *lines = table.lstrip("\n").splitlines(keepends=True)
    length = next((index for index, line in enumerate(lines) if not line.startswith("|")), len(lines))
    old = [line.rstrip("\n") for line in lines[:length]]
    for line in [line for line in old if line not in rows]:
        print(f"- {line}")
    for line in [line for line in rows if line not in old]:
        print(f"+ {line}")
    return before + head + "\n" + ruler + "".join(f"{row}\n" for row in rows) + "".join(lines[length:])


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    rows = measured(sys.argv[1])
    pages = [
        ("claims-map.md", "| module | what a person notices | shipped | better | worse |", list(long_rows(rows))),
        (
            "claims.md",
            "| module | video of 3 Mbit/s: stall time, s | page: mean, s | page: slowest twentieth, s "
            "| file of 8 MB, s | owners of relays: least share |",
            list(short_rows(rows)),
        ),
    ]
    for name, head, lines in pages:
        page = DOCS / name
        text = replaced(page.read_text(), head, lines)
        if "--write" in sys.argv[2:]:
            page.write_text(text)


if __name__ == "__main__":
    main()
