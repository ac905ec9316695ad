"""The table, and what stands under it: failures, what was left out, and cells that differ."""

import textwrap
import tomllib
from collections import defaultdict
from fnmatch import fnmatchcase
from pathlib import Path

from .suite import FAIL, PASS, SKIP
from .tools import TOOLS

NAMES = {"barnabas": "Barnabas", "kafka": "Apache Kafka", "kafka-3": "Apache Kafka 3.9"}


def _known():
    with open(Path(__file__).resolve().parent.parent / "known.toml", "rb") as file:
        return tomllib.load(file).get("known", [])


def explained(key, peer):
    """The reason for which this cell may fail with this peer, or None."""
    row, column = key
    for entry in _known():
        if peer in entry["peers"] and fnmatchcase(row, entry["client"]) and any(fnmatchcase(column, c) for c in entry["scenarios"]):
            return entry["reason"]
    return None


def _mark(first, other):
    """One word for a cell; with two peers, both words where they differ, and a sign where only something told does."""
    if first is None:
        return ""
    if other is None:
        return first.status
    if first.status == other.status:
        return first.status + ("*" if first.told != other.told else "")
    return f"{first.status}≠{other.status}"


def print_table(rows, names, first, other, peers):
    print()
    print(f"{NAMES[peers[0]]}" + (f" (≠ {NAMES[peers[1]]}, where it differs)" if other is not None else "")
          + f": {PASS} passed, {FAIL} failed, {SKIP} not in this client or not on this machine")
    print()
    tools = [row for row, _ in first if row not in {r.name for r in rows}]
    headings = [row.name for row in rows]
    versions = [row.version for row in rows]
    width = max([len("scenario"), *(len(name) for name in names)])
    cells = {(row.name, name): _mark(first.get((row.name, name)), other.get((row.name, name)) if other is not None else None)
             for row in rows for name in names}
    widths = [max(len(h), len(v), *(len(cells[h, name]) for name in names)) for h, v in zip(headings, versions)]
    if rows:
        print("  ".join(["scenario".ljust(width), *(h.ljust(w) for h, w in zip(headings, widths))]))
        print("  ".join(["".ljust(width), *(v.ljust(w) for v, w in zip(versions, widths))]))
    for name in names if rows else ():
        print("  ".join([name.ljust(width), *(cells[h, name].ljust(w) for h, w in zip(headings, widths))]).rstrip())
    for tool in dict.fromkeys(tools):
        print()
        print(tool)
        for (row, column), result in sorted(first.items(), key=lambda entry: order(entry[0][1])):
            if row == tool:
                mark = _mark(result, other.get((row, column)) if other is not None else None)
                print(f"  {column.ljust(38)} {mark.ljust(8)} {result.reason if result.status == PASS else ''}".rstrip())


def order(column):
    names = list(TOOLS)
    return names.index(column) if column in names else len(names)


def print_failures(peers, columns):
    for peer in peers:
        failures = [(key, result) for key, result in columns[peer].items() if result.status == FAIL]
        if failures:
            print(f"\n{NAMES[peer]}: what failed")
        for (row, column), result in sorted(failures):
            why = explained((row, column), peer)
            print(textwrap.fill(f"{row} · {column}: {result.reason}" + (f" [known: {why}]" if why else ""), 150, initial_indent="  ", subsequent_indent="      "))


def print_accidents(peers, columns):
    """Cells that failed among the others and passed alone."""
    for peer in peers:
        accidents = [(key, result.first) for key, result in columns[peer].items() if result.first]
        if accidents:
            print(f"\n{NAMES[peer]}: what failed among the others and passed alone, on a fresh node")
        for (row, column), reason in sorted(accidents):
            print(textwrap.fill(f"{row} · {column}: {reason}", 150, initial_indent="  ", subsequent_indent="      "))


def print_skips(results):
    reasons = defaultdict(list)
    for (row, column), result in results.items():
        if result.status == SKIP:
            reasons[row, result.reason].append(column)
    if reasons:
        print("\nLeft out")
    for (row, reason), columns in sorted(reasons.items()):
        print(textwrap.fill(f"{row}: {reason} ({', '.join(columns) if len(columns) < 6 else f'{len(columns)} scenarios'})", 150, initial_indent="  ", subsequent_indent="      "))


def print_differences(first, other, peers):
    """Prints the cells that differ; returns how many of them nobody explained."""
    unexplained = 0
    differing = [(key, result, other[key]) for key, result in first.items()
                 if key in other and (other[key].status, other[key].told) != (result.status, result.told)]
    print(f"\nCells that differ from {NAMES[peers[1]]}: {len(differing)}")
    for key, one, two in sorted(differing, key=lambda entry: entry[0]):
        why = explained(key, peers[1]) or explained(key, peers[0])
        unexplained += why is None and one.status != FAIL
        words = [f"{what}: {one.told.get(what)} here, {two.told.get(what)} there" for what in sorted(one.told.keys() | two.told.keys()) if one.told.get(what) != two.told.get(what)]
        words = [f"{one.status} here, {two.status} there"] if one.status != two.status else words
        print(textwrap.fill(f"{key[0]} · {key[1]}: {'; '.join(words)}: {why or 'NOT EXPLAINED'}", 150, initial_indent="  ", subsequent_indent="      "))
    return unexplained
