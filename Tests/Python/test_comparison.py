"""The table of docs/merging.md that compares the library with git and CRDTs: its results of the library and of git are true."""

from __future__ import annotations

import runpy
import shutil
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
COMPARISON: dict[str, Any] = runpy.run_path(str(ROOT / "Benchmarks" / "compare_merging.py"))
#: The number of columns before those of the CRDTs. The program prints these if their packages are available.
COLUMNS = 6


def told() -> list[list[str]]:
    """The rows of the page."""
    page = (ROOT / "docs" / "merging.md").read_text(encoding="utf-8")
    section = page.split("## Beside git and CRDTs\n")[1].split("\n## ")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if line.startswith("|")]
    return rows[2:]


@pytest.mark.skipif(shutil.which("git") is None, reason="there is no git")
def test_the_table_is_what_merging_gives() -> None:
    found = COMPARISON["rows"]()
    assert len(found) == 12
    assert [row[:COLUMNS] for row in told()] == [row[:COLUMNS] for row in found]
    assert all(cell for row in told() for cell in row)
