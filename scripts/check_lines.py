#!/usr/bin/env python3
"""Checks that lines of code have at most 140 columns, also in tests and scripts, and lines of prose in Markdown as well.

    scripts/check_lines.py              all files of the tree that git knows; prints each longer line, exits 1 if there are any
    scripts/check_lines.py --self-test  checks that planted lines are found

In Markdown, tables and code may be longer, and the targets of links do not count.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
COLUMNS = 140
CODE = {".swift", ".h", ".hpp", ".c", ".cpp", ".py", ".sh", ".cmake", ".js", ".css"}


def too_long(text: str) -> list[tuple[int, int]]:
    """Returns the number of each line that is too long, and its columns."""
    return [(number, len(line)) for number, line in enumerate(text.splitlines(), 1) if len(line) > COLUMNS]


def prose(text: str) -> str:
    """Returns a page of Markdown with empty lines for code and tables, and without the targets of links."""
    lines: list[str] = []
    is_fenced = was_code = False
    before = ""
    for line in text.splitlines():
        fence = line.lstrip().startswith("```")
        # Indented lines after an empty line are code; other indented lines continue an item of a list.
        is_code = line.startswith(("    ", "\t")) and (was_code or not before.strip())
        keep = not (is_fenced or fence or is_code or line.lstrip().startswith("|"))
        lines.append(re.sub(r"\]\([^)]*\)", "]()", line) if keep else "")
        is_fenced = is_fenced != fence
        was_code, before = is_code, line
    return "\n".join(lines)


def is_code(path: Path) -> bool:
    """Returns whether a file of the tree is code: by its suffix, or because it is a program without one."""
    if path.suffix:
        return path.suffix in CODE
    with path.open("rb") as file:
        return file.read(2) == b"#!"


def main() -> int:
    if "--self-test" in sys.argv:
        assert too_long("x" * COLUMNS + "\n" + "é" * COLUMNS) == []
        assert too_long("short\n" + "x" * (COLUMNS + 1)) == [(2, COLUMNS + 1)]
        long = "x" * (COLUMNS + 1)
        page = [f"a [link]({long})", long, "", f"    {long}", f"    {long}", "```", long, "```", f"| {long}"]
        page += ["- an item", f"  {long}", f"    {long}"]
        assert [number for number, _ in too_long(prose("\n".join(page)))] == [2, 11, 12]
        return 0
    listed = subprocess.run(["git", "-C", str(ROOT), "ls-files", "-z"], capture_output=True, text=True)
    # A copy of the tree without its history: all files except the results of builds.
    names = listed.stdout.split("\0")[:-1] if listed.returncode == 0 else []
    paths = [ROOT / name for name in names] or [
        path for path in ROOT.rglob("*") if not {"build", ".build", ".git"} & set(path.relative_to(ROOT).parts)
    ]
    found = 0
    for path in sorted(path for path in paths if path.is_file() and not path.is_symlink() and (is_code(path) or path.suffix == ".md")):
        text = path.read_text(encoding="utf-8")
        for number, columns in too_long(prose(text) if path.suffix == ".md" else text):
            print(f"{path.relative_to(ROOT)}:{number}: {columns} columns, {COLUMNS} at most")
            found += 1
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
