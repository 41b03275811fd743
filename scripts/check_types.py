#!/usr/bin/env python3
"""Counts the members and the stored properties of each type, and checks that none has more than it may.

    scripts/check_types.py GRAPH...        symbol graphs of the engine's modules with private declarations; names each type that has grown
    scripts/check_types.py --list GRAPH... prints the types beyond the limits, as scripts/lib/large_types.txt has them
    scripts/check_types.py --self-test     checks that types that have grown are found

A type has at most 60 members, in all its extensions and modules, and 12 stored properties. Larger types are in scripts/lib/large_types.txt
with the numbers that they may have. Lower these when you make a type smaller, and remove its line when it is within the limits.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIST = ROOT / "scripts/lib/large_types.txt"
#: The largest number of members and of stored properties of a type that is not in the list.
LIMITS = (60, 12)
TYPES = {"swift.struct", "swift.class", "swift.enum", "swift.protocol"}

Counts = dict[str, tuple[int, int]]


def is_stored(symbol: dict) -> bool:
    """Returns whether a symbol is a stored property. Those that are computed are shown with their accessors."""
    text = "".join(part["spelling"] for part in symbol["declarationFragments"])
    return symbol["kind"]["identifier"] == "swift.property" and "{" not in text


def counted(graphs: list[dict]) -> Counts:
    """Returns the members and the stored properties of each type, by its name. A member of an extension is one of its type."""
    names: dict[str, str] = {}
    members: dict[str, set[str]] = defaultdict(set)
    stored: dict[str, set[str]] = defaultdict(set)
    for graph in graphs:
        symbols = {symbol["identifier"]["precise"]: symbol for symbol in graph["symbols"]}
        for id, symbol in symbols.items():
            if symbol["kind"]["identifier"] in TYPES:
                names[id] = ".".join(symbol["pathComponents"])
        for relation in graph["relationships"]:
            symbol = symbols.get(relation["source"])
            if relation["kind"] == "memberOf" and symbol and "::SYNTHESIZED::" not in relation["source"]:
                members[relation["target"]].add(relation["source"])
                if is_stored(symbol):
                    stored[relation["target"]].add(relation["source"])
    # Types of other libraries that the engine extends are not counted. Private types of two files can have one name.
    found: Counts = {}
    for id, name in names.items():
        before = found.get(name, (0, 0))
        found[name] = (max(before[0], len(members[id])), max(before[1], len(stored[id])))
    return found


def large(counts: Counts) -> Counts:
    """Returns the types beyond the limits."""
    return {name: each for name, each in counts.items() if each[0] > LIMITS[0] or each[1] > LIMITS[1]}


def listed(text: str) -> Counts:
    """Returns the numbers in the list."""
    lines = [line.split() for line in text.splitlines() if line and not line.startswith("#")]
    return {name: (int(members), int(stored)) for name, members, stored in lines}


def faults(counts: Counts, allowed: Counts) -> list[str]:
    """Returns a line for each type that has grown, and for each line of the list that is no longer needed."""
    beyond = large(counts)
    found = []
    for name, (members, stored) in sorted(beyond.items()):
        most = allowed.get(name, (0, 0))
        if members > max(most[0], LIMITS[0]) or stored > max(most[1], LIMITS[1]):
            found.append(
                f"{name} has {members} members and {stored} stored properties; it may have {max(most[0], LIMITS[0])} and "
                f"{max(most[1], LIMITS[1])}. Give a part of it a type of its own.")
    found += [f"{LIST.name}: {name} is within the limits, or gone; remove its line" for name in sorted(allowed.keys() - beyond.keys())]
    return found


def self_test() -> bool:
    """Checks that growing types and superfluous lines are found, and that extensions and computed properties are counted as they should."""

    def symbol(id: str, kind: str, text: str = "") -> dict:
        return {"identifier": {"precise": id}, "kind": {"identifier": kind}, "pathComponents": [id],
                "declarationFragments": [{"spelling": text}]}

    def graph(members: int, stored: int) -> list[dict]:
        inside = [symbol(f"s{i}", "swift.property", f"let s{i}: Int") for i in range(stored)]
        beside = [symbol(f"c{i}", "swift.property", f"var c{i}: Int {{ get }}") for i in range(members - stored)]
        relate = [{"kind": "memberOf", "source": each["identifier"]["precise"], "target": "T"} for each in inside + beside]
        return [{"symbols": [symbol("T", "swift.class"), *inside], "relationships": relate[:stored]},
                {"symbols": beside, "relationships": relate[stored:]}]

    allowed = {"T": (70, 14)}
    results = [len(faults(counted(graph(*each)), allowed)) for each in [(70, 14), (71, 14), (70, 15), (60, 12), (61, 3)]]
    results += [len(faults(counted(graph(*each)), {})) for each in [(60, 12), (61, 12), (60, 13)]]
    return results == [0, 1, 1, 1, 0, 0, 1, 1]


def main() -> int:
    if "--self-test" in sys.argv:
        return int(not self_test())
    paths = [argument for argument in sys.argv[1:] if not argument.startswith("--")]
    counts = counted([json.loads(Path(path).read_text()) for path in paths])
    if "Store" not in counts:
        sys.exit("The symbol graphs have no Store. Give those of all modules of the engine.")
    if "--list" in sys.argv:
        for name, (members, stored) in sorted(large(counts).items()):
            print(name, members, stored)
        return 0
    found = faults(counts, listed(LIST.read_text()))
    print("\n".join(found))
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
