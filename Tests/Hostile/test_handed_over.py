"""Stores from other people that are made to cost more than they have: one large value that records name under very many ids. What they take
of the disk, and what is read, is in proportion to the store."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from packs import records
from packs.reader import BlobReference
from test_opening import HEADER, ID, frame

import llvs

SIZE = (1 << 20) + 1
NAMES = 64


def named_often(path: Path, versions: int) -> bytes:
    """Makes a store with one large value, which each of these versions names under 64 ids. Returns the value."""
    value = os.urandom(SIZE)
    with llvs.Store(path) as store:
        store.make_version(None, id="v", insert={"large": value})
    (blob,) = (path / "blobs").glob("*.blob")
    reference = BlobReference(bytes.fromhex(blob.stem), SIZE, hashlib.sha256(value).digest(), ())
    data = HEADER
    for n in range(versions):
        content = records.record(
            f"v{n}", [f"v{n - 1}" if n else "v"], n + 1.0, blobs={b"%d-%d" % (n, i): reference for i in range(NAMES)}
        )
        data += frame(ID, len(data), content)
    (path / "segments" / f"{ID.hex()}.seg").write_bytes(data)
    return value


def size(path: Path) -> int:
    return sum(part.stat().st_size for part in path.rglob("*") if part.is_file())


@pytest.mark.parametrize("versions", [1, 4])
def test_a_salvage_copies_a_large_value_once(tmp_path: Path, versions: int) -> None:
    value = named_often(tmp_path / "store", versions)
    report = llvs.Store.salvage(tmp_path / "store", tmp_path / "new")
    assert report.versions == versions + 1 and not report.waiting and not report.made
    assert size(tmp_path / "new") < size(tmp_path / "store") + (64 << 10)
    with llvs.Store(tmp_path / "new") as store:
        assert not store.verify().damages
        state = store.at(f"v{versions - 1}")
        assert len(state) == versions * NAMES + 1 and state["0-63"] == value == state["large"]


def test_a_verification_reads_a_large_value_once(tmp_path: Path) -> None:
    named_often(tmp_path / "store", 4)
    script = f"""
import json, llvs
with llvs.Store({str(tmp_path / "store")!r}, read_only=True) as store:
    before = int(open("/proc/self/io").read().split()[1])
    report = store.verify()
    print(json.dumps([report.values, int(open("/proc/self/io").read().split()[1]) - before, not report.damages]))
"""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr[-2_000:]
    values, read, is_whole = json.loads(run.stdout)
    assert values == 4 * NAMES + 1 and is_whole and read < 4 * SIZE


def test_a_large_value_that_is_damaged_is_told_for_each_id(tmp_path: Path) -> None:
    """A value counts as read only if it was valid."""
    named_often(tmp_path / "store", 2)
    (blob,) = (tmp_path / "store" / "blobs").glob("*.blob")
    with blob.open("r+b") as file:
        file.seek(SIZE // 2)
        file.write(b"other bytes")
    with llvs.Store(tmp_path / "store", read_only=True) as store:
        report = store.verify()
    assert len([one for one in report.damages if one.value_id is not None]) == 2 * NAMES + 1
