"""Single guards, each with an attack that it stops: if a guard is removed, one of these tests fails."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import socket
import sqlite3
import struct
import uuid
from contextlib import closing
from pathlib import Path
from typing import Any, Callable

import llvs
import pytest

# ---- Files that are no database of the library ----


def refuses(path: Path, message: str, code: llvs.ErrorCode) -> None:
    for options in ({}, {"create": False}, {"read_only": True}):
        with pytest.raises(llvs.Error, match=message) as caught:
            llvs.Store(path, storage="sqlite", **options).close()
        assert caught.value.code == code, (options, caught.value)


@pytest.mark.parametrize(
    "number, message, code",
    [
        (0, "it has no format number", llvs.ErrorCode.NOT_A_STORE),
        (-1, "it has no format number", llvs.ErrorCode.NOT_A_STORE),
        (2, "it has format 2", llvs.ErrorCode.NEWER_FORMAT),
        ((1 << 31) - 1, "it has format 2147483647", llvs.ErrorCode.NEWER_FORMAT),
    ],
)
def test_the_format_of_a_database(tmp_path: Path, number: int, message: str, code: llvs.ErrorCode) -> None:
    path = tmp_path / "store.db"
    with llvs.Store(path, storage="sqlite") as store:
        store.make_version(None, insert={"a": b"1"})
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA user_version").fetchone() == (1,)
    connection.execute(f"PRAGMA user_version={number}")
    connection.close()
    refuses(path, message, code)


@pytest.mark.parametrize("size", [1, 16, 99])
def test_a_file_that_is_shorter_than_a_header(tmp_path: Path, size: int) -> None:
    path = tmp_path / "store.db"
    path.write_bytes(b"precious".ljust(size, b"!")[:size])
    before = path.read_bytes()
    refuses(path, "too short to be a database", llvs.ErrorCode.NOT_A_STORE)
    assert path.read_bytes() == before and [file.name for file in tmp_path.iterdir()] == ["store.db"]


@pytest.mark.parametrize("what", ["directory", "pipe"])
def test_a_database_that_is_no_file(tmp_path: Path, what: str) -> None:
    path = tmp_path / "store.db"
    path.mkdir() if what == "directory" else os.mkfifo(path)
    refuses(path, "it is not a file", llvs.ErrorCode.NOT_A_STORE)
    assert [file.name for file in tmp_path.iterdir()] == ["store.db"]


def exchanged(path: Path) -> None:
    with llvs.Store(storage="memory") as store, llvs.Exchange(store, path.as_uri()) as exchange:
        store.make_version(insert={"a": b"1"})
        exchange.send()


def imported(path: Path) -> None:
    with llvs.Store(storage="memory") as store:
        store.import_store(path)


@pytest.mark.parametrize(
    "use",
    [
        lambda path: llvs.Store(path),
        lambda path: llvs.Store(path, read_only=True),
        lambda path: llvs.Coordinator(path),
        lambda path: llvs.Store.salvage(path, Path(f"{path}-new")),
        exchanged,
        imported,
    ],
    ids=["store", "store to be read", "coordinator", "salvage", "exchange", "import"],
)
@pytest.mark.parametrize("what", ["pipe", "socket"])
def test_a_path_of_the_caller_that_is_no_file(tmp_path: Path, what: str, use: Callable[[Path], Any]) -> None:
    """No call waits for the other end of a pipe or socket. (The alarm would end a call that waits, together with the process.)"""
    path = tmp_path / "place"
    with closing(socket.socket(socket.AF_UNIX)) as listener:
        os.mkfifo(path) if what == "pipe" else listener.bind(str(path))
        signal.alarm(300)
        try:
            with pytest.raises(llvs.Error):
                use(path)
        finally:
            signal.alarm(0)
    assert not Path(f"{path}-new").exists()


# ---- Imports read files only ----


@pytest.mark.parametrize("whole", [True, False], ids=["the version", "a value"])
def test_an_import_takes_nothing_from_a_pipe(tmp_path: Path, whole: bool) -> None:
    """An import reads no pipe, even if the pipe's content would be valid."""
    version, folder = "00000000-0000-4000-8000-000000000001", tmp_path / "theirs"
    leaf = {"children": {"values": [{"valueReference": {"valueId": "ab", "storedVersionId": version}}]}}
    files = {
        f"versions/{version[:2]}/{version[2:]}.json": json.dumps({"identifier": version, "timestamp": 1.5, "metadata": []}).encode(),
        f"maps/__llvs_values/__/llvs_root/{version[0]}/{version[1:]}.json": json.dumps(leaf).encode(),
        f"values/ab/{version[0]}/{version[1:]}.json": b"1",
    }
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    with llvs.Store(storage="memory") as store:
        assert not store.import_store(folder).problems and store.at(version)["ab"] == b"1"
    name = next(name for name in files if name.startswith("versions" if whole else "values"))
    (folder / name).unlink()
    os.mkfifo(folder / name)
    # Open for reading as well, so that no call blocks and the written bytes stay in the pipe.
    pipe = os.open(folder / name, os.O_RDWR | os.O_NONBLOCK)
    try:
        os.write(pipe, files[name])
        with llvs.Store(storage="memory") as store:
            result = store.import_store(folder)
            assert result.problems and not result.retrieved and not store.heads()
    finally:
        os.close(pipe)


# ---- The claims of a snapshot ----


INSERT = struct.pack("<BI", 1, 1) + b"a" + struct.pack("<Q", 1) + b"1"


def entry(name: str, *predecessors: str, changes: tuple[bytes, ...] = (INSERT,)) -> bytes:
    version = {"identifier": name, "timestamp": 7e8, "metadata": []}
    if predecessors:
        version["predecessors"] = dict(zip(("idOfFirst", "idOfSecond"), predecessors))
    file = json.dumps({"version": version}).encode()
    return struct.pack("<Q", len(file)) + file + struct.pack("<I", len(changes)) + b"".join(changes)


TWO = (entry("v1"), entry("v2", "v1"))


def snapshot(folder: Path, *entries: bytes, chunk_id: str | None = None, **claims: Any) -> Path:
    """Makes a snapshot of two versions, or of the given entries, by docs/snapshot.md. All digests are correct; the claims may be false."""
    id = str(uuid.uuid4()).upper()
    payload, count = b"".join(entries or TWO), len(entries or TWO)
    chunk = (chunk_id or id).encode() + struct.pack("<BI", 0, len(payload)) + payload
    (folder / "snapshots").mkdir(parents=True)
    (folder / "snapshots" / "chunk-000").write_bytes(chunk)
    manifest = {"snapshotId": id, "format": "llvs-v1", "createdAt": 7e8, "latestVersionId": "v2", "versionCount": count, "chunkCount": 1}
    manifest |= {"totalSize": len(chunk), "chunkDigests": [hashlib.sha256(chunk).hexdigest()]} | claims
    (folder / "snapshots" / "manifest.json").write_text(json.dumps(manifest))
    return folder


def test_a_snapshot_that_is_as_it_says(tmp_path: Path) -> None:
    with llvs.Store(storage="memory") as store:
        store.restore_snapshot(snapshot(tmp_path))
        assert store.at("v2")["a"] == b"1"


@pytest.mark.parametrize(
    "claims, message",
    [
        ({"chunk_id": "00000000-0000-4000-8000-000000000001"}, "does not have the form of a chunk of this snapshot"),
        ({"versionCount": 1}, "it holds 2 versions"),
        ({"versionCount": 3}, "it holds 2 versions"),
        ({"versionCount": 0}, "without versions"),
        ({"totalSize": 1}, "and its manifest says 2 in 1"),
        ({"chunkCount": 2}, "counts do not fit together"),
        ({"chunkCount": 0, "chunkDigests": []}, "it holds 0 versions"),
        ({"chunkDigests": ["0" * 64]}, "does not match its manifest"),
        ({"snapshotId": "short"}, "counts do not fit together"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_snapshot_that_is_not_as_it_says(tmp_path: Path, claims: dict[str, Any], message: str) -> None:
    with llvs.Store(storage="memory") as store:
        with pytest.raises(llvs.Error, match=message) as caught:
            store.restore_snapshot(snapshot(tmp_path, **claims))
        assert caught.value.code in (llvs.ErrorCode.SNAPSHOT_DAMAGED, llvs.ErrorCode.SNAPSHOT_MISSING), caught.value
        assert not store.heads()


def preserve(id: bytes, stored: bytes) -> bytes:
    return struct.pack("<BI", 4, len(id)) + id + struct.pack("<B", len(stored)) + stored


def removal(id: bytes) -> bytes:
    return struct.pack("<BI", 3, len(id)) + id


@pytest.mark.parametrize(
    "entries, message",
    [
        ((entry("v2", "v1"), entry("v1")), "the version v2 comes before its predecessor v1"),
        ((entry("v1"), entry("v2", "v0")), "the version v2 comes before its predecessor v0"),
        ((entry("v1"), entry("v2", "v2")), "the version is its own predecessor"),
        ((*TWO, entry("v3", "v2", "v1", changes=(preserve(b"a", b"v9"),))), "the version v3 preserves bytes of v9, which is not before it"),
        (
            (*TWO, entry("v3", "v2", "v1", changes=(preserve(b"a", b"v4"),)), entry("v4", "v1")),
            "the version v3 preserves bytes of v4, which is not before it",
        ),
        ((*TWO, entry("v1")), "the version v1 occurs twice"),
        ((entry("v1"), entry("v2", "v1", changes=(removal(b"b"), removal(b"a")))), "the changes of the version v2 are not in order"),
        ((entry("v1"), entry("v2", "v1", changes=(INSERT, INSERT))), "the changes of the version v2 are not in order"),
        ((entry("v1"), entry("v2", "v1", changes=(b"\x06" + INSERT[1:],))), "a change of an unknown kind"),
        ((entry("v1"), entry("v2", "v1", changes=(preserve(b"a", b"no/id"),))), "by an invalid id"),
        ((entry("v1"), entry("v2", "v1", changes=(struct.pack("<BI", 3, (1 << 32) - 1),))), "a size that no store can hold"),
        ((entry("v1"), entry("v2", "v1", changes=(INSERT[:6] + struct.pack("<Q", (1 << 64) - 1),))), "a size that no store can hold"),
        ((entry("v1"), entry("v2", "v1")[:-1]), "it ends too early"),
        ((entry("v1"), struct.pack("<Q", (1 << 64) - 1)), "a size that no store can hold"),
        ((entry("v1"), entry("v2", "v1", changes=())[:-4] + b"\xff" * 4), "too many changes"),
    ],
    ids=lambda value: value[-40:] if isinstance(value, str) else "",
)
def test_the_order_within_a_snapshot(tmp_path: Path, entries: tuple[bytes, ...], message: str) -> None:
    """The digests and counts are correct. The error names the entry that is out of order, and no version of the snapshot is added."""
    with llvs.Store(storage="memory") as store:
        with pytest.raises(llvs.Error, match=message) as caught:
            store.restore_snapshot(snapshot(tmp_path, *entries))
        assert caught.value.code == llvs.ErrorCode.SNAPSHOT_DAMAGED and not store.heads()


# ---- Large values: files of their own ----


@pytest.fixture
def with_value(tmp_path: Path) -> Path:
    with llvs.Store(tmp_path / "store", durability="normal") as store:
        store.make_version(None, id="one", insert={"large": b"l" * 2_000_000})
    return next((tmp_path / "store" / "blobs").glob("*.blob"))


def crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 & -(crc & 1))
    return crc ^ 0xFFFFFFFF


@pytest.mark.parametrize("field, value", [(0, b"X"), (8, b"\2"), (12, b"\1"), (16, b"\0" * 16), (32, struct.pack("<Q", 1 << 40))])
def test_the_header_of_a_value(with_value: Path, field: int, value: bytes) -> None:
    """The magic, format, block size, name or size is wrong, and the checksum is correct."""
    header = bytearray(with_value.read_bytes()[:64])
    header[field : field + len(value)] = value
    header[60:64] = struct.pack("<I", crc32c(bytes(header[:60])))
    with with_value.open("r+b") as file:
        file.write(header)
    # An old file: no writer is still writing it.
    os.utime(with_value, (1_000_000_000, 1_000_000_000))
    with llvs.Store(with_value.parent.parent) as store:
        with pytest.raises(llvs.Error) as caught:
            store.at("one")["large"]
        assert caught.value.code == llvs.ErrorCode.DAMAGED, caught.value
        assert store.verify().damages


@pytest.mark.parametrize("keeps", ["half", "less than the table", "less than the header", "nothing"])
def test_the_length_of_a_value(with_value: Path, keeps: str) -> None:
    sizes = {"half": 1_000_000, "less than the table": 100, "less than the header": 40, "nothing": 0}
    with with_value.open("r+b") as file:
        file.truncate(sizes[keeps])
    os.utime(with_value, (1_000_000_000, 1_000_000_000))
    with llvs.Store(with_value.parent.parent) as store:
        with pytest.raises(llvs.Error) as caught:
            store.at("one")["large"]
        assert caught.value.code in (llvs.ErrorCode.DAMAGED, llvs.ErrorCode.NOT_FOUND), caught.value
        assert store.verify().damages
