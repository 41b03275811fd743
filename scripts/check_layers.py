#!/usr/bin/env python3
"""Finds files of the engine that name a type of a layer above their own, and checks that ARCHITECTURE.md draws the layers as they are.

    scripts/check_layers.py              Sources/LLVS, by scripts/lib/layers.txt; prints each violation, exits 1 if there are any
    scripts/check_layers.py --self-test  checks that planted violations are found

Types are those that a file defines at its outermost level. A name that is defined in several layers counts for the lowest of them.
The page draws the highest layer first; folders that share a line of layers.txt may be in any order.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DEFINITION = re.compile(r"^(?:[@\w()]+ +)*(?:struct|class|enum|protocol|actor|typealias) +([A-Z]\w*)", re.MULTILINE)


def layers(text: str) -> dict[str, int]:
    """Returns the folders, each with the number of its layer."""
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return {folder: height for height, line in enumerate(lines) for folder in line.split()}


def without_comments_and_strings(text: str) -> str:
    """Returns the code alone. Definitions stay at the beginning of their lines."""
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    text = re.sub(r"//[^\n]*", "", text)
    return re.sub(r'"(?:\\.|[^"\\\n])*"', '""', text)


def violations(files: dict[str, str], heights: dict[str, int]) -> list[str]:
    """Returns a line for each type of a higher layer that a file names. Files are named by folder, a slash and the rest."""
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


def drawn(page: str) -> list[str]:
    """Returns the folders of the engine in the order in which a page draws them: the indented rows below that of Sources/LLVS."""
    found: list[str] = []
    is_engine = False
    for line in page.splitlines():
        if line.startswith("    Sources/LLVS "):
            is_engine = True
        elif is_engine and (row := re.match(r"      (\w+)/ ", line)):
            found.append(row[1])
        elif is_engine and not line.startswith("       "):
            break
    return found


def misdrawn(page: str, heights: dict[str, int]) -> list[str]:
    """Returns a line for each folder that a page does not draw, or draws above a folder of a higher layer."""
    rows = drawn(page)
    found = [f"ARCHITECTURE.md does not draw the folder {folder}" for folder in sorted(set(heights) - set(rows))]
    known = [folder for folder in rows if folder in heights]
    unknown = [folder for folder in rows if folder not in heights]
    found += [f"ARCHITECTURE.md draws the folder {folder}, which scripts/lib/layers.txt has not" for folder in unknown]
    return found + [
        f"ARCHITECTURE.md draws {above} above {below}, which is the higher layer"
        for above, below in zip(known, known[1:]) if heights[above] < heights[below]
    ]


def self_test(files: dict[str, str], page: str, heights: dict[str, int]) -> int:
    planted = files | {"Support/Planted.swift": "func planted(_ store: Store) { // not here: Exchange\n}"}
    lines = page.splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith(f"      {drawn(page)[0]}/ "))
    model = next(i for i, line in enumerate(lines) if line.startswith("      Model/ "))
    lines[first], lines[model] = lines[model], lines[first]
    without_model = page.replace("      Model/ ", "      Modal/ ")
    found = violations(planted, heights) + misdrawn("\n".join(lines), heights)[:1] + misdrawn(without_model, heights)
    print("\n".join(found))
    expected = [
        "Support/Planted.swift names Store of the layer Store, which is above Support",
        f"ARCHITECTURE.md draws Model above {drawn(page)[1]}, which is the higher layer",
        "ARCHITECTURE.md does not draw the folder Model",
        "ARCHITECTURE.md draws the folder Modal, which scripts/lib/layers.txt has not",
    ]
    return int(found != expected)


def main() -> int:
    heights = layers((ROOT / "scripts/lib/layers.txt").read_text())
    engine = ROOT / "Sources/LLVS"
    files = {str(path.relative_to(engine)): path.read_text() for path in engine.rglob("*.swift")}
    page = (ROOT / "ARCHITECTURE.md").read_text()
    if "--self-test" in sys.argv:
        return self_test(files, page, heights)
    found = violations(files, heights) + misdrawn(page, heights)
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
