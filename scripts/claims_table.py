#!/usr/bin/env python3
"""Puts newly measured numbers into the table of docs/claims.md.

usage: scripts/claims_table.py OUTPUT [--write]

OUTPUT is what `anabranch claims --seeds 20` printed. Says what differs; with --write the table is changed. The page calls checks by shorter names
than the command, and keeps them. What is told of the table in words is left to whoever has read the differences.
"""

import re
import sys
from pathlib import Path

PAGE = Path(__file__).resolve().parent.parent / "docs" / "claims.md"
ROW = re.compile(r"\| C\d\d \| ")
HEAD = ["claim", "paper", "source", "measured", "interval", "checks", "seeds", "verdict"]
NUMBER = r"-?[\d.]+(?: [kM])?"
CHECK = re.compile(rf"(?P<name>.*?)(?: \((?P<value>{NUMBER}(?:, {NUMBER} to {NUMBER})?)\))?")


def row(line):
    """Returns the cells of a line of the table by name, or None."""
    cells = [cell.strip() for cell in line.strip().strip("|").split(" | ")]
    return dict(zip(HEAD, cells)) if ROW.match(line) and len(cells) == len(HEAD) else None


def checks(text):
    """Returns each check: whether it fails, its name, and its value (none for the first)."""
    parsed = []
    for part in text.split("; "):
        match = CHECK.fullmatch(part.replace("**", ""))
        parsed.append((part.startswith("**"), match["name"], match["value"]))
    return parsed


def merged(before, now):
    """Returns the cell of checks with the page's names and the new values, and prints what differs."""
    old, new = checks(before["checks"]), checks(now["checks"])
    if [value is None for _, _, value in old] != [value is None for _, _, value in new]:
        sys.exit(f"{now['claim']}: its checks are others than those of the page: write them by hand")
    parts = []
    for (failed, name, was), (fails, _, value) in zip(old, new):
        if was != value:
            print(f"{now['claim']} {name}: {was} -> {value}")
        if failed != fails:
            print(f"{now['claim']} {name}: {'fails' if fails else 'holds'} now")
        parts.append((f"**{name}**" if fails else name) + (f" ({value})" if value else ""))
    return "; ".join(parts)


def update(lines, rows):
    for number, line in enumerate(lines):
        before = row(line)
        now = before and rows.get(before["claim"])
        if not now:
            continue
        for name in ("measured", "interval", "seeds", "verdict"):
            if before[name] != now[name]:
                print(f"{now['claim']} {name}: {before[name]} -> {now[name]}")
        kept = {"paper": before["paper"], "source": before["source"], "checks": merged(before, now)}
        lines[number] = "| " + " | ".join({**now, **kept}.values()) + " |"
    return lines


def main():
    paths = [argument for argument in sys.argv[1:] if argument != "--write"]
    if len(paths) != 1:
        sys.exit(__doc__.strip())
    rows = {found["claim"]: found for found in map(row, Path(paths[0]).read_text().splitlines()) if found}
    if not rows:
        sys.exit(f"{paths[0]}: no table in it: give what `anabranch claims` printed")
    lines = update(PAGE.read_text().split("\n"), rows)
    if "--write" in sys.argv:
        PAGE.write_text("\n".join(lines))


if __name__ == "__main__":
    main()
