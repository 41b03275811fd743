#!/usr/bin/env python3
"""Looks for files of the engine that name a type of a layer above their own.

    scripts/check_layers.py              Sources/LLVS, by scripts/lib/layers.txt; prints each violation, exits 1 if there are any
    scripts/check_layers.py --self-test  looks whether a planted violation is found

Types are those that a file defines at its outermost level. A name that is defined in several layers counts as the lowest of them.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DEFINITION = re.compile(r"^(?:[@\w()]+ +)*(?:struct|class|enum|protocol|actor|typealias) +([A-Z]\w*)", re.MULTILINE)


def layers(text: str) -> dict[str, int]:
    """The folders and how high they are."""
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return {folder: height for height, line in enumerate(lines) for folder in line.split()}


def without_comments_and_strings(text: str) -> str:
    """The code alone. Definitions stay at the beginning of their lines."""
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    text = re.sub(r"//[^\n]*", "", text)
    return re.sub(r'"(?:\\.|[^"\\\n])*"', '""', text)


def violations(files: dict[str, str], heights: dict[str, int]) -> list[str]:
    """A line for each type of a layer above that a file names. The files are named by folder, a slash and the rest."""
    code = {path: without_comments_and_strings(text) for path, text in files.items()}
    unknown = sorted({path.split("/")[0] for path in code} - set(heights))
    if unknown:
        return [f"scripts/lib/layers.txt does not say where the folder {folder} belongs" for folder in unknown]
    defined: dict[str, str] = {}
    for path, text in code.items():
        folder = path.split("/")[0]
        for name in DEFINITION.findall(text):
            if name not in defined or heights[folder] < heights[defined[name]]:
                defined[name] = folder
    found = []
    for path, text in sorted(code.items()):
        own = path.split("/")[0]
        for name in sorted(set(re.findall(r"\b[A-Z]\w*", text))):
            if name in defined and heights[defined[name]] > heights[own]:
                found.append(f"{path} names {name} of the layer {defined[name]}, which is above {own}")
    return found


def main() -> int:
    heights = layers((ROOT / "scripts/lib/layers.txt").read_text())
    engine = ROOT / "Sources/LLVS"
    files = {str(path.relative_to(engine)): path.read_text() for path in engine.rglob("*.swift")}
    if "--self-test" in sys.argv:
        planted = files | {"Support/Planted.swift": "func planted(_ store: Store) { // not here: Exchange\n}"}
        expected = ["Support/Planted.swift names Store of the layer Store, which is above Support"]
        return 0 if violations(planted, heights) == expected else 1
    found = violations(files, heights)
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
