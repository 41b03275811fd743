"""The library uses the system's libdeflate, and zlib if there is none. Both read the same stores."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from pathlib import Path

import pytest

WAYS = ("libdeflate", "zlib")
SIZES = (100, 600, 5_000, 70_000, 900_000)

PROGRAM = """
import sys, llvs
with llvs.Store(sys.argv[2]) as store:
    values = {str(size): (b"%d apples and pears, " % size * size)[:size] for size in map(int, sys.argv[3:])}
    if sys.argv[1] == "save":
        store.make_version(None, insert=values)
    else:
        assert all(store.value(id, at=store.most_recent_head).data == value for id, value in values.items())
print("libdeflate" in open("/proc/self/maps").read())
"""


def has_libdeflate() -> bool:
    try:
        ctypes.CDLL("libdeflate.so.0")
    except OSError:
        return False
    return True


pytestmark = pytest.mark.skipif(not has_libdeflate() or not Path("/proc/self/maps").exists(), reason="needs libdeflate, and Linux")


def run(way: str, task: str, folder: Path) -> bool:
    """Saves or reads in a process of its own. Returns whether it loaded libdeflate."""
    arguments = [sys.executable, "-c", PROGRAM, task, str(folder), *map(str, SIZES)]
    done = subprocess.run(arguments, env={**os.environ, "LLVS_DEFLATE": way}, check=True, stdout=subprocess.PIPE, text=True)
    return done.stdout.strip() == "True"


@pytest.mark.parametrize("saving", WAYS)
@pytest.mark.parametrize("reading", WAYS)
def test_each_reads_what_the_other_saved(saving: str, reading: str, tmp_path: Path) -> None:
    assert run(saving, "save", tmp_path / "store") == (saving == "libdeflate")
    assert run(reading, "read", tmp_path / "store") == (reading == "libdeflate")
    assert sum(file.stat().st_size for file in (tmp_path / "store" / "segments").iterdir()) < sum(SIZES) / 4
