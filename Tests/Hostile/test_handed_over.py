"""Stores from other people that are made to cost more than they have: one large value that records name under very many ids, and records
that claim very much. What they take of the disk and of memory, and what is read, is in proportion to the store."""

from __future__ import annotations

import hashlib
import json
import os
import struct
import subprocess
import sys
from pathlib import Path

import format_reader as reader
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
    before = int(Path("/proc/self/io").read_text().split()[1])
    report = llvs.Store.salvage(tmp_path / "store", tmp_path / "new")
    # The bytes are read to find out that they are undamaged, and again for the copy.
    assert int(Path("/proc/self/io").read_text().split()[1]) - before < 4 * SIZE
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


def test_a_large_value_that_is_damaged_is_reported_for_each_id(tmp_path: Path) -> None:
    """A value counts as read only if it was valid."""
    named_often(tmp_path / "store", 2)
    (blob,) = (tmp_path / "store" / "blobs").glob("*.blob")
    with blob.open("r+b") as file:
        file.seek(SIZE // 2)
        file.write(b"other bytes")
    with llvs.Store(tmp_path / "store", read_only=True) as store:
        report = store.verify()
    assert len([one for one in report.damages if one.value_id is not None]) == 2 * NAMES + 1


def claiming(changes: int = 1, pages: int = 1, others: int = 0, size: int = 1) -> bytes:
    """A record "evil" with one change, whose header or table claims more. `others`: predecessors, dependencies, blobs and metadata."""
    entry = bytes([1, 1]) + b"k" + records.varint(size)
    page = struct.pack("<I", len(entry) + 2) + b"\0\0" + entry
    table = struct.pack("<I", reader.checksum(page)) + page
    length = struct.pack("<I", 1)
    body = struct.pack("<I", reader.checksum(length, b"k", b"evil", b"v")) + length + b"v"
    header = records.version_id("evil") + records.varint(0) + struct.pack("<d", 1.0) + records.varint(size)
    header += records.varint(changes) + records.varint(pages) + records.varint(others) * 3
    prelude = struct.pack("<BBHIQQ", 1, 0, 0, len(header), len(table), len(body))
    return prelude + struct.pack("<I", reader.checksum(prelude, header)) + header + table + body


@pytest.mark.parametrize(
    "claims",
    [
        {"changes": 1 << 24, "pages": 1 << 18},
        {"changes": 1 << 60, "pages": 1 << 54},
        {"others": 1 << 40},
        {"size": 1 << 30},
        {"size": 1 << 62},
    ],
    ids=str,
)
def test_counts_that_a_record_claims_cost_nothing(tmp_path: Path, claims: dict[str, int]) -> None:
    """A record with false counts is opened, read, verified and salvaged: the versions beside it are present, and the memory is in
    proportion to the bytes of the record."""
    path = tmp_path / "store"
    with llvs.Store(path) as store:
        store.make_version(None, id="whole", insert={"a": b"1"})
    data = HEADER + frame(ID, len(HEADER), claiming(**claims))
    data += frame(ID, len(data), records.record("good", (), 2.0, {b"b": b"2"}))
    (path / "segments" / f"{ID.hex()}.seg").write_bytes(data)
    script = f"""
import json, llvs
def peak():
    return int(next(line for line in open("/proc/self/status") if line.startswith("VmHWM")).split()[1])
before, lost = peak(), 0
with llvs.Store({str(path)!r}) as store:
    heads = sorted(head.id for head in store.heads())
    for head in store.heads():
        try:
            dict(store.at(head))
        except llvs.Error:
            lost += 1
    damages = len(store.verify().damages)
report = llvs.Store.salvage({str(path)!r}, {str(tmp_path / "new")!r})
print(json.dumps([heads, lost, damages, report.versions, (peak() - before) >> 10]))
"""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr[-2_000:]
    heads, lost, damages, salvaged, took = json.loads(run.stdout)
    with llvs.Store(tmp_path / "new") as store:
        found = {bytes(store.at(head).get("k", b"")) for head in store.heads()}
    # The salvage makes a version of the values that the first page of the table names.
    assert (b"v" in found) == (claims.get("pages") == 1 << 18)
    assert {"good", "whole"} <= set(heads) and lost == ("evil" in heads) and damages > 0 and salvaged == 2 and took < 64
