"""Snapshots in the format of the other implementation (`zip-v1`), and other manifests, that a peer writes to an exchange folder."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import time
import zipfile
from hashlib import sha256
from pathlib import Path
from typing import Any, Mapping, Optional
from zlib import decompress

import pytest

import llvs
from test_ids import folder
from test_spending import memory

__all__ = ["folder"]
ID = "5D0A1B2C-0000-4000-8000-000000000001"
VERSION = json.dumps({"identifier": ID, "timestamp": 1, "metadata": []}).encode()


def store_files(top: str, value: bytes) -> dict[str, bytes]:
    """The files of a store directory with one version, in which "key" has the value."""
    child = {"valueReference": {"valueId": "key", "storedVersionId": ID}}
    return {
        f"{top}versions/{ID[:2]}/{ID[2:]}.json": VERSION,
        f"{top}maps/__llvs_values/__/llvs_root/{ID[0]}/{ID[1:]}.json": json.dumps({"children": {"values": [child]}}).encode(),
        f"{top}values/ke/y/{ID[0]}/{ID[1:]}.json": value,
    }


def packed(files: Mapping[str, bytes]) -> bytes:
    zip = io.BytesIO()
    with zipfile.ZipFile(zip, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return zip.getvalue()


def put(folder: Path, data: Optional[bytes], **members: Any) -> None:
    """Writes a snapshot of one chunk with these bytes."""
    place = folder / "snapshots"
    place.mkdir(exist_ok=True, parents=True)
    if data is not None:
        (place / "chunk-000").write_bytes(data)
    manifest = {"snapshotId": "S", "format": "zip-v1", "createdAt": 8e8, "latestVersionId": ID, "versionCount": 1, "chunkCount": 1}
    (place / "manifest.json").write_text(json.dumps({**manifest, "totalSize": len(data or b""), **members}))


def restored(folder: Path) -> Optional[dict[str, bytes]]:
    """The values that a new replica restores from the snapshot; None if it is damaged."""
    with llvs.Store(storage="memory") as store, llvs.Exchange(store, folder) as exchange:
        try:
            exchange.restore_snapshot()
        except llvs.Error as error:
            assert error.code == llvs.ErrorCode.SNAPSHOT_DAMAGED
            assert not list(store.history())
            return None
        return dict(store.at(ID))


# ---- which store ----


ONE = {"key": b'"one"'}


@pytest.mark.parametrize("tops, expected", [(("", "store/"), ONE), (("one/", "two/"), None), (("store/",), ONE)])
def test_two_stores_in_one_zip(folder: Path, tops: tuple[str, ...], expected: Optional[dict[str, bytes]]) -> None:
    """All devices read the same store: the one at the top level, or none."""
    files: dict[str, bytes] = {}
    for top, value in zip(tops, (b'"one"', b'"two"')):
        files |= store_files(top, value)
    put(folder, packed(files))
    # Each run visits the names in another order.
    assert [restored(folder) for _ in range(12)] == [expected] * 12


# ---- snapshots of nothing ----


def late(*places: Path) -> tuple[bool, dict[str, bytes]]:
    """Whether a new coordinator restored a snapshot, and its values."""
    with llvs.Coordinator(storage="memory") as notes:
        for place in places:
            notes.attach(place)
        return notes.bootstrap().restored, dict(notes)


@pytest.fixture
def good(tmp_path: Path) -> Path:
    """A folder with a snapshot."""
    (tmp_path / "good").mkdir()
    with llvs.Coordinator(storage="memory", exchange=tmp_path / "good", options=llvs.CoordinatorOptions(snapshots="auto")) as notes:
        notes.save(insert={"a": b"1"})
        notes.sync()
    return tmp_path / "good"


def test_a_snapshot_without_versions(folder: Path, good: Path) -> None:
    """No library writes a snapshot without versions. It counts as damaged, and is replaced."""
    manifest = good / "snapshots" / "llvs-v1" / "manifest.json"
    empty = {"snapshotId": "A" * 36, "format": "llvs-v1", "createdAt": time.time() - 978307200, "latestVersionId": "x", "chunkDigests": []}
    text = json.dumps({**empty, "versionCount": 0, "chunkCount": 0, "totalSize": 0})
    (folder / "snapshots" / "llvs-v1").mkdir(parents=True)
    (folder / "snapshots" / "llvs-v1" / "manifest.json").write_text(text)
    assert late(folder, good) == (True, {"a": b"1"})
    manifest.write_text(text)
    with pytest.raises(llvs.Error) as caught:
        late(good)
    assert caught.value.code == llvs.ErrorCode.SNAPSHOT_DAMAGED
    with llvs.Coordinator(storage="memory", exchange=good, options=llvs.CoordinatorOptions(snapshots="auto")) as notes:
        notes.sync()
    assert late(good) == (True, {"a": b"1"})


@pytest.mark.parametrize("what", ["no store", "no index", "no version", "no permission", "forged"])
def test_the_next_snapshot_has_its_turn(folder: Path, good: Path, what: str) -> None:
    """The next snapshot is used if the first one is unusable, or has nothing that can be added."""
    if what == "no permission":
        put(folder, b"")
        manifest = folder / "snapshots" / "manifest.json"
        manifest.chmod(0)
        if os.access(manifest, os.R_OK):  # root can read everything
            manifest.unlink()
            manifest.mkdir()
    elif what == "forged":
        with llvs.Store(storage="memory") as store:
            store.make_version(None, insert={"a": b"evil"})
            store.write_snapshot(folder)
        forge(folder)
    else:
        files = {
            "no store": {"readme": b"x"},
            "no index": {f"versions/{ID[:2]}/{ID[2:]}.json": VERSION},
            "no version": {"versions/": b"", "maps/x": b""},
        }
        put(folder, packed(files[what]))
    assert late(folder, good) == (True, {"a": b"1"})
    with pytest.raises(llvs.Error):
        late(folder)


def forge(folder: Path) -> None:
    """Changes a value in a snapshot of this library, with all checksums correct: the version does not match its id."""
    place = folder / "snapshots" / "llvs-v1"
    chunk = (place / "chunk-000").read_bytes()
    payload = decompress(chunk[41:], -15) if chunk[36] else chunk[41:]
    chunk = chunk[:36] + b"\0" + chunk[37:41] + payload.replace(b"evil", b"good")
    (place / "chunk-000").write_bytes(chunk)
    said = json.loads((place / "manifest.json").read_bytes())
    (place / "manifest.json").write_text(json.dumps({**said, "totalSize": len(chunk), "chunkDigests": [sha256(chunk).hexdigest()]}))


# ---- False claims ----


def test_sparse_chunks(folder: Path, tmp_path: Path) -> None:
    """A chunk has at most 5 MB. Larger ones are refused before anything is written, and holes use no disk space."""
    for sizes, most in (([128 << 20] * 2, 0), ([5_000_000] * 20, 1 << 20)):
        put(folder, None, chunkCount=len(sizes), totalSize=sum(sizes))
        for i, size in enumerate(sizes):
            with open(folder / "snapshots" / f"chunk-{i:03}", "wb") as file:
                file.truncate(size)
        assert written(folder, tmp_path) <= most


def written(folder: Path, temporary: Path) -> int:
    """Restores the snapshot in a process of its own, which refuses it. Returns the number of bytes written."""
    script = f"""
import llvs
with llvs.Store(storage="memory") as store, llvs.Exchange(store, {str(folder)!r}) as exchange:
    try:
        exchange.restore_snapshot()
    except llvs.Error as error:
        assert error.code == llvs.ErrorCode.SNAPSHOT_DAMAGED, error
print(next(line for line in open("/proc/self/io") if line.startswith("write_bytes")).split()[1])
"""
    environment = {**os.environ, "TMPDIR": str(temporary), "PYTHONDONTWRITEBYTECODE": "1"}
    run = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr[-2_000:]
    return int(run.stdout)


def test_a_version_file_that_inflates(folder: Path) -> None:
    """Version files and index nodes are small. A larger one is refused before memory is allocated for it."""
    spaces = b" " * (200 << 20)
    put(folder, packed({**store_files("", b'"one"'), f"versions/{ID[:2]}/{ID[2:]}.json": spaces + VERSION}))
    del spaces
    took, result = memory(folder, """
    result = None
    try:
        exchange.restore_snapshot()
    except llvs.Error as error:
        result = error.code""")
    assert result == llvs.ErrorCode.SNAPSHOT_DAMAGED
    assert took < 32, took


def test_a_zip_that_takes_too_much_is_refused_by_one_error(folder: Path) -> None:
    """Each version file is within its limit; together they take more than 1,100 times the zip and 256 MiB, since each is read twice."""
    files = store_files("", b'"one"')
    spaces = b" " * (180 << 20)
    for n in range(2):
        id = ID[:-1] + str(n + 2)
        version = json.dumps({"identifier": id, "timestamp": 2 + n, "metadata": [], "predecessors": {"idOfFirst": ID}})
        files[f"versions/{id[:2]}/{id[2:]}.json"] = spaces + version.encode()
        files[f"maps/__llvs_values/__/llvs_root/{id[0]}/{id[1:]}.json"] = json.dumps({"children": {"values": []}}).encode()
    put(folder, packed(files))
    del files, spaces
    with llvs.Store(storage="memory") as store, llvs.Exchange(store, folder) as exchange:
        with pytest.raises(llvs.Error) as error:
            exchange.restore_snapshot()
        assert error.value.code == llvs.ErrorCode.SNAPSHOT_DAMAGED and "what is read of the zip in" in str(error.value)
        assert not list(store.history())


def test_a_sparse_version_file(tmp_path: Path) -> None:
    """A sparse version file of 1 GiB in a directory that is imported is refused as too large, and takes little memory."""
    theirs = tmp_path / "theirs"
    (theirs / "versions" / "AB").mkdir(parents=True)
    (theirs / "maps").mkdir()
    with open(theirs / "versions" / "AB" / "CD.json", "wb") as file:
        file.truncate(1 << 30)
    (tmp_path / "shared").mkdir()
    took, result = memory(tmp_path / "shared", f"result = [problem.code for problem in store.import_store({str(theirs)!r}).problems]")
    assert result == [llvs.ErrorCode.TOO_LARGE]
    assert took < 32, took
