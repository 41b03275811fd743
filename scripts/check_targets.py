#!/usr/bin/env python3
"""Checks that each target of Package.swift names the modules of this package that its sources import.

    scripts/check_targets.py               prints each import that is not named, exits 1 if there are any
    scripts/check_targets.py --self-test   checks that planted imports are found

SwiftPM finds a module that is already built, whether it is named or not. Then a test of a low module could use a higher one, and objects
would not be compiled again when that module changes.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
IMPORT = re.compile(r"^\s*(?:@\w+ )*import (?:(?:struct|class|enum|protocol|func|var) )?(\w+)", re.M)


def dependencies(target: dict) -> set[str]:
    """Returns the names of the targets and products that a target depends on."""
    found: set[str] = set()
    for each in target["dependencies"]:
        for kind in ("byName", "target", "product"):
            if kind in each:
                found.add(each[kind][0])
    return found


def folder(target: dict) -> Path:
    """Returns where the sources of a target are."""
    return ROOT / (target.get("path") or f"{'Tests' if target['type'] == 'test' else 'Sources'}/{target['name']}")


def unnamed(targets: list[dict], texts: dict[str, dict[str, str]]) -> list[str]:
    """Returns the imports of Swift modules of this package that a target does not name. `texts` has the sources, by target and file."""
    modules = {name for name, sources in texts.items() if sources}
    return [
        f"{file}: imports {name}, which Package.swift does not name in the dependencies of {target['name']}"
        for target in targets
        for file, text in sorted(texts.get(target["name"], {}).items())
        for name in sorted(set(IMPORT.findall(text)) & modules - dependencies(target) - {target["name"]})
    ]


def self_test() -> bool:
    """Checks that an import that is not named is found, of a usual module and of one for tests, and no other one."""
    targets = [
        {"name": "Low", "type": "regular", "dependencies": []},
        {"name": "High", "type": "regular", "dependencies": [{"byName": ["Low", None]}]},
        {"name": "LowTests", "type": "test", "dependencies": [{"target": ["Low", None]}]},
    ]
    texts = {
        "Low": {"low.swift": "import Glibc\n// import High\n"},
        "High": {"high.swift": "@_exported import Low\nimport struct Low.Thing\n"},
        "LowTests": {"good.swift": "@testable import Low\nimport Testing\n", "bad.swift": "import Low\n@testable import High\n"},
    }
    found = unnamed(targets, texts)
    print("\n".join(found))
    return [line.partition(":")[0] for line in found] == ["bad.swift"]


def main() -> int:
    if "--self-test" in sys.argv:
        return int(not self_test())
    dump = subprocess.run(
        ["swift", "package", "dump-package"], cwd=ROOT, env=os.environ | {"LLVS_WHOLE_TREE": "1"}, capture_output=True, text=True)
    if dump.returncode != 0:
        sys.exit(f"Package.swift cannot be read:\n{dump.stderr}")
    targets = json.loads(dump.stdout)["targets"]
    texts = {
        target["name"]: {str(path.relative_to(ROOT)): path.read_text() for path in folder(target).rglob("*.swift")} for target in targets}
    if not texts["LLVSCore"]:
        sys.exit("No sources of LLVSCore were found.")
    found = unnamed(targets, texts)
    print("\n".join(found))
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
