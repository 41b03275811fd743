"""Caches that contain more than the records do: damaged caches, or caches restored from an older copy. A store opens with the contents of
its records alone."""

from __future__ import annotations

import shutil
import sqlite3
import struct
from contextlib import closing
from pathlib import Path

import format_reader as reader
import llvs
import pytest

COUNT = 1_100
"""The fewest versions of which a cache is made, and some more."""


def written(path: Path, storage: str) -> list[str]:
    """Makes a store with a cache of its history. Returns the ids of its versions, each made from the one before."""
    with llvs.Coordinator(path, storage=storage, durability="normal") as coordinator:
        for i in range(COUNT):
            coordinator.save(insert={f"x{i:04}": b"1"})
        ids = [version.id for version in coordinator.store.history()]
    assert storage == "sqlite" or history(path).exists()
    # The oldest version is the empty root.
    return ids[-2::-1]


def history(path: Path) -> Path:
    """The path of the cache."""
    return path / "cache" / "history.cache"


def damage(path: Path, version: str) -> None:
    """Changes one byte in a version's record: in its own id, which comes before the ids that refer to it."""
    file = next((path / "segments").iterdir()) if path.is_dir() else path
    data, name = bytearray(file.read_bytes()), bytes.fromhex(version.replace("-", ""))
    start = 0
    if not path.is_dir():
        with closing(sqlite3.connect(path)) as database:
            records = (row[0] for row in database.execute("SELECT data FROM records ORDER BY seq"))
            start = data.index(next(record for record in records if name in record))
    data[data.index(name, start) + 3] ^= 0x10
    file.write_bytes(data)


@pytest.mark.parametrize("storage", ["file", "sqlite"])
@pytest.mark.parametrize("lost", [1, COUNT // 2], ids=["newest", "middle"])
def test_a_damaged_header(tmp_path: Path, storage: str, lost: int) -> None:
    """The damaged version is lost, and its descendants are pending, whether a cache contains them or not."""
    path = tmp_path / "store"
    ids = written(path, storage)
    whole = ids[:-lost]
    damage(path, ids[-lost])
    with llvs.Store(path, storage=storage, read_only=True) as store:
        assert {version.id for version in store.history()} >= set(whole)
        assert [version.id for version in store.heads()] == [whole[-1]] and store.most_recent_head == store.heads()[0]
        assert store.version(ids[-lost]) is None and store.version(ids[-1]) is None
        assert [version.id for version in store.history()][:-1] == whole[::-1]
        assert (store.statistics().damaged, store.statistics().pending) == (1, lost - 1)
        assert "version" in [damage.lost for damage in store.verify().damages]
    with llvs.Coordinator(path, storage=storage) as coordinator:
        if lost == 1:
            assert (coordinator.current_version.id, coordinator.missing_version) == (whole[-1], ids[-1])
        assert [version.id for version in coordinator.store.history()][-len(whole) - 1:-1] == whole[::-1]
    # Saving removed the cache: from here on the records decide.
    for again in range(2):
        with llvs.Coordinator(path, storage=storage) as coordinator:
            assert coordinator.missing_version == (None if again else ids[-1])
            assert len(coordinator.keys()) == len(whole) + again and coordinator.store.statistics().pending == lost - 1
            coordinator.save(insert={f"y{again}": b"1"})


def test_verifying_removes_a_cache_that_names_a_damaged_record(tmp_path: Path) -> None:
    path = tmp_path / "store"
    ids = written(path, "file")
    damage(path, ids[500])
    with llvs.Store(path) as store:
        report = store.verify()
        assert [damage.lost for damage in report.damages] == ["version"]
        assert not history(path).exists()
    with llvs.Store(path) as store:
        assert [head.id for head in store.heads()] == [ids[499]] and store.statistics().pending == COUNT - 501


def test_older_segments_beside_a_newer_cache(tmp_path: Path) -> None:
    """A copy that was made while the store was open is as long as the segment was later, with unused space at its end. The cache names
    versions that do not exist, and is ignored."""
    path, backup = tmp_path / "store", tmp_path / "backup"
    with llvs.Store(path) as store:
        newest = store.make_version(None, insert={f"x{i}": b"1" for i in range(3)})
        for i in range(COUNT):
            newest = store.make_version(newest, update={"x0": str(i).encode()})
        shutil.copytree(path / "segments", backup)
        lost = newest
        for i in range(20):
            lost = store.make_version(lost, insert={f"y{i}": bytes(100)})
    shutil.rmtree(path / "segments")
    shutil.copytree(backup, path / "segments")
    for again in range(2):
        with llvs.Store(path) as store:
            assert [head.id for head in store.heads()] == [newest.id] and lost not in store
            report = store.verify()
            assert report.versions == store.statistics().versions and not report.damages
            newest = store.make_version(newest, insert={f"z{again}": b"acknowledged"})


def enveloped(data: bytes, **fields: int | bytes) -> bytes:
    """The cache with other fields in its envelope, and a correct checksum."""
    envelope = {
        "magic": b"LLVScch\n", "format": 1, "name": reader.checksum(b"history"), "size": len(data), "checksum": reader.checksum(data),
    }
    envelope.update(fields)
    head = struct.pack("<8sIIQI", *envelope.values())
    return head + struct.pack("<I", reader.checksum(head)) + data


def test_the_envelope_of_a_cache(tmp_path: Path) -> None:
    """A cache with one wrong field is rebuilt. A cache without wrong fields is left unchanged."""
    path = tmp_path / "store"
    ids = written(path, "file")
    whole = history(path).read_bytes()
    data = whole[32:]
    assert enveloped(data) == whole
    others = {
        "magic": enveloped(data, magic=b"LLVSblb\n"),
        "format": enveloped(data, format=2),
        "no format": enveloped(data, format=0),
        "of another name": enveloped(data, name=reader.checksum(b"maps")),
        "too long": enveloped(data, size=len(data) + 1),
        "too short": enveloped(data, size=len(data) - 1),
        "a terabyte": enveloped(data, size=1 << 40),
        "not to be counted": enveloped(data, size=(1 << 64) - 1),
        "checksum of the data": enveloped(data, checksum=reader.checksum(data) ^ 1),
        "checksum of the envelope": enveloped(data)[:28] + bytes(4) + data,
        "half an envelope": whole[:16],
        "the envelope alone": whole[:32],
        "nothing": b"",
    }
    for name, file in {"as it was": whole, **others}.items():
        history(path).write_bytes(file)
        before = history(path).stat().st_ino
        with llvs.Store(path, durability="normal") as store:
            assert [version.id for version in store.history()][-2::-1] == ids, name
            assert not store.verify().damages, name
        assert (history(path).stat().st_ino == before) == (name == "as it was"), name
        assert enveloped(history(path).read_bytes()[32:]) == history(path).read_bytes(), name
