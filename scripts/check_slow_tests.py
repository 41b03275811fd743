#!/usr/bin/env python3
"""Checks that each test exists which scripts/lib/slow_tests.txt leaves out of the fast lane: a renamed one would run there silently.

    scripts/check_slow_tests.py               names those that do not exist, exits 1 if there are any
    scripts/check_slow_tests.py --self-test   checks that a planted name is found
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = {"python": ROOT / "Tests/Python", "hostile": ROOT / "Tests/Hostile"}


def is_there(suite: str, name: str) -> bool:
    """Returns whether a suite has a test with that name."""
    if suite == "swift":
        return any(re.search(rf"func {name}\b", path.read_text()) for path in (ROOT / "Tests").glob("LLVS*Tests/**/*.swift"))
    if suite == "c":
        # One program may run several times: the name of the run follows that of the file.
        stem, _, run = name.rpartition("_c")
        programs = (ROOT / "cmake/Programs.cmake").read_text()
        return (ROOT / f"Tests/C/{stem}.c").exists() and (not run or re.search(rf"\b{run[1:]}\b", programs) is not None)
    file, _, test = name.partition("::")
    path = FOLDERS[suite] / file
    return path.exists() and (not test or re.search(rf"^\s*(def |class )?{test}\b", path.read_text(), re.M) is not None)


def missing(text: str) -> list[str]:
    """Returns the lines of the list whose tests do not exist."""
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [line for line in lines if not is_there(*line.split(maxsplit=1))]


def main() -> int:
    if "--self-test" in sys.argv:
        planted = ["swift noSuchTest", "c test_none_c", "c test_stack_c_nowhere", "python test_store.py::test_none", "hostile test_none.py"]
        found = missing("\n".join(["# a comment", "c test_stack_c", *planted]))
        print("\n".join(found))
        return int(found != planted)
    found = missing((ROOT / "scripts/lib/slow_tests.txt").read_text())
    for line in found:
        print(f"scripts/lib/slow_tests.txt: there is no test {line}; it was renamed, or is gone")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
