#!/usr/bin/env python3
"""Checks that types that threads share name their locks, and that the engine's locks have an order.

    scripts/check_locks.py              Sources; prints each violation, exits 1 if there are any
    scripts/check_locks.py --self-test  checks that planted violations are found

- Each type that is `@unchecked Sendable` has a line "// Sendable: ..." at the head of its body. It names the lock, or the rule, that makes
  the type safe. "// Sendable, with what derives from it: ..." applies to derived classes as well.
- Each lock of the engine has a rank (Support/LockRank.swift).
- The table "Locks" of ARCHITECTURE.md has these ranks, in this order.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
UNCHECKED = re.compile(r"\b(?:class|struct|enum) (\w+)(?:<[^>]*>)?:(.*)@unchecked Sendable")
#: The modules of the engine, without those beside it.
ENGINE = re.compile(r"LLVS(?!ABI|Async|Test|ExchangeTest)\w*/")
UNRANKED = re.compile(r"= (?:Lock|ReadWriteLock)\(\)")


def unexplained(files: dict[str, str]) -> list[str]:
    """Returns the places with an `@unchecked Sendable` that has no reason."""
    found: dict[str, tuple[str, str]] = {}
    heads: set[str] = set()
    for path, text in files.items():
        lines = text.splitlines()
        for number, line in enumerate(lines):
            match = UNCHECKED.search(line)
            if not match or line.lstrip().startswith("//"):
                continue
            around = "\n".join(lines[max(0, number - 1) : number + 2])
            if "// Sendable, with what derives from it: " in around:
                heads.add(match[1])
            elif "// Sendable: " not in around:
                found[f"{path}:{number + 1}"] = (match[1], match[2])
    while True:
        derived = {where for where, (_, bases) in found.items() if heads & set(re.findall(r"\w+", bases))}
        if not derived:
            return [f"{where}: {name} does not say what makes it Sendable" for where, (name, _) in sorted(found.items())]
        heads |= {found.pop(where)[0] for where in derived}


def unranked(files: dict[str, str]) -> list[str]:
    """Returns the locks of the engine that have no rank."""
    return [
        f"{path}:{number}: a lock without a rank"
        for path, text in sorted(files.items())
        if ENGINE.match(path) and path not in ("LLVSCore/Support/Lock.swift", "LLVSCore/Support/ReadWriteLock.swift")
        for number, line in enumerate(text.splitlines(), 1)
        if UNRANKED.search(line)
    ]


def misplaced(ranks: str, page: str) -> list[str]:
    """Returns an error if the table has other ranks, or another order."""
    defined = re.findall(r"^    case (\w+)$", ranks, re.MULTILINE)[1:]
    told = re.findall(r"^\| `(\w+)` \|", page[page.index("\n## Locks\n") :].split("\n## ", 2)[1], re.MULTILINE)
    return [] if defined == told else [f"ARCHITECTURE.md has the ranks {' '.join(told)}, LockRank has {' '.join(defined)}"]


def main() -> int:
    sources = ROOT / "Sources"
    files = {str(path.relative_to(sources)): path.read_text() for path in sources.rglob("*.swift")}
    ranks, page = files["LLVSCore/Support/LockRank.swift"], (ROOT / "ARCHITECTURE.md").read_text()
    if "--self-test" in sys.argv:
        before = unexplained(files)
        planted = files | {"LLVSCore/Store/Planted.swift": "final class Planted: Base, @unchecked Sendable {\n    let lock = Lock()\n}\n"}
        assert [line for line in unexplained(planted) if line not in before] == [
            "LLVSCore/Store/Planted.swift:1: Planted does not say what makes it Sendable"
        ]
        assert unranked(planted) == ["LLVSCore/Store/Planted.swift:2: a lock without a rank"]
        first, second = "| `commit` |", "| `syncing` |"
        assert misplaced(ranks, page.replace(first, "|| ").replace(second, first).replace("|| ", second)) != []
        return 0
    found = unexplained(files) + unranked(files) + misplaced(ranks, page)
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
