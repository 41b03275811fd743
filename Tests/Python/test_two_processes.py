"""Two processes at one store, between which locks within a process have no effect."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import llvs

OPENING = """
import sys, llvs
try:
    llvs.Coordinator(sys.argv[1], storage=sys.argv[2]).close()
except llvs.BusyError:
    sys.exit(3)
"""


@pytest.mark.parametrize("storage", ["file", "sqlite"])
def test_a_name_is_open_in_one_process(tmp_path: Path, storage: str) -> None:
    def status_of_another() -> int:
        return subprocess.run([sys.executable, "-c", OPENING, str(tmp_path / "store"), storage], check=False).returncode

    with llvs.Coordinator(tmp_path / "store", storage=storage):
        assert status_of_another() == 3
    assert status_of_another() == 0
