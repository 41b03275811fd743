"""Well-formed snapshots with correct digests whose contents no store can add: they are refused as a whole."""

from __future__ import annotations

import hashlib
import json
import struct
import uuid
from pathlib import Path
from typing import Any

import llvs
import pytest


def change(kind: int, id: str, rest: bytes = b"") -> bytes:
    return struct.pack("<BI", kind, len(id.encode())) + id.encode() + rest


def insert(id: str, data: bytes) -> bytes:
    return change(1, id, struct.pack("<Q", len(data)) + data)


def preserve(id: str, version: str) -> bytes:
    return change(4, id, struct.pack("<B", len(version)) + version.encode())


def entry(id: str, *changes: bytes, after: tuple[str, ...] = (), count: int | None = None, **more: Any) -> bytes:
    version: dict[str, Any] = {"identifier": id, "timestamp": 700000000.0, "metadata": [], **more}
    if after:
        version["predecessors"] = dict(zip(("idOfFirst", "idOfSecond"), after))
    file = json.dumps({"version": version}).encode()
    return struct.pack("<Q", len(file)) + file + struct.pack("<I", len(changes) if count is None else count) + b"".join(changes)


def write(folder: Path, *entries: bytes) -> Path:
    """A snapshot by docs/snapshot.md."""
    id, payload = str(uuid.uuid4()).upper(), b"".join(entries)
    chunk = id.encode() + struct.pack("<BI", 0, len(payload)) + payload
    (folder / "snapshots").mkdir(parents=True, exist_ok=True)
    (folder / "snapshots" / "chunk-000").write_bytes(chunk)
    manifest = {
        "snapshotId": id,
        "format": "llvs-v1",
        "createdAt": 7e8,
        "latestVersionId": "v1",
        "versionCount": len(entries),
        "chunkCount": 1,
    }
    manifest |= {"totalSize": len(chunk), "chunkDigests": [hashlib.sha256(chunk).hexdigest()]}
    (folder / "snapshots" / "manifest.json").write_text(json.dumps(manifest))
    return folder


GOOD = entry("v1", insert("a", b"1"))


def test_a_good_one(memory: llvs.Store, tmp_path: Path) -> None:
    memory.restore_snapshot(write(tmp_path, GOOD, entry("v2", preserve("a", "v1"), after=("v1",))))
    assert memory.at("v2")["a"] == b"1"


@pytest.mark.parametrize(
    "bad",
    [
        entry("v2", preserve("b", "v1"), after=("v1",)),
        entry("v2", preserve("a", "v1")),
        entry("v2", preserve("a", "v9"), after=("v1",)),
        entry("v2", after=("v9",)),
        entry("v2", after=("v2",)),
        entry("v2", after=("v1", "v1")),
        entry("v1"),
        entry("v2", insert("", b"")),
        entry("v2", insert("x" * 5000, b"")),
        entry("v2", insert("b", b""), insert("a", b"")),
        entry("v2", insert("a", b""), insert("a", b"")),
        entry("v2", change(9, "a")),
        entry("v2", change(1, "a", struct.pack("<Q", 2**64 - 1))),
        entry("v2", change(1, "a", struct.pack("<Q", 1 << 30))),
        entry("v2", struct.pack("<BI", 3, 2**32 - 1)),
        entry("v2", count=2**32 - 1),
        entry("no id"),
        entry("v2", timestamp="soon"),
        entry("v2", metadata=["k" * 5000, {"data": ""}]),
        struct.pack("<Q", 2**64 - 1),
        b"\x00" * 7,
        b"",
    ],
)
def test_all_of_it_or_nothing(memory: llvs.Store, tmp_path: Path, bad: bytes) -> None:
    folder = write(tmp_path, GOOD, bad)
    with pytest.raises(llvs.Error) as caught:
        memory.restore_snapshot(folder)
    assert caught.value.code == llvs.ErrorCode.SNAPSHOT_DAMAGED and str(folder) in str(caught.value)
    assert list(memory.history()) == []
    memory.restore_snapshot(write(tmp_path, GOOD))
    assert memory.at("v1")["a"] == b"1"


def test_a_version_that_is_here_and_differs(memory: llvs.Store, tmp_path: Path) -> None:
    here = memory.make_version(insert={"a": b"mine"}, id="v2")
    with pytest.raises(llvs.Error) as caught:
        memory.restore_snapshot(write(tmp_path, GOOD, entry("v2", insert("a", b"else"))))
    assert caught.value.code == llvs.ErrorCode.STORE_NOT_EMPTY and "v2" in str(caught.value)
    assert list(memory.history()) == [here]
