"""Files that a peer writes beside the versions of an exchange folder, or into them, to damage what others make of all of them: their
snapshots, the clock of their processes, their memory."""

from __future__ import annotations

import json
import os
import shutil
import time
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest

import llvs
from test_ids import files_of, folder, publish

__all__ = ["folder"]
HERE = "snapshots/llvs-v1"
SINCE = 978307200.0  # 2001-01-01, from which files count


# ---- snapshots that coordinators write automatically ----


def bootstrapped(place: Path) -> dict[str, bytes]:
    """Returns the contents of a new replica that starts from the snapshot there."""
    with llvs.Coordinator(storage="memory", exchange=place) as notes:
        assert notes.bootstrap()
        return dict(notes)


@pytest.fixture
def notes(folder: Path) -> Any:
    """One that puts snapshots, and has put one."""
    with llvs.Coordinator(storage="memory", exchange=folder, options=llvs.CoordinatorOptions(snapshots="auto")) as notes:
        notes.save(insert={"a": b"1"})
        assert not notes.sync().before.problems
        yield notes


def test_a_snapshot_of_the_far_future(folder: Path, notes: llvs.Coordinator) -> None:
    """A snapshot from the far future does not prevent new ones: the number of versions decides."""
    for name in (f"{HERE}/manifest.json", "snapshots/manifest.json"):
        said = json.loads((folder / HERE / "manifest.json").read_bytes())
        said["createdAt"] = 1e300
        said["versionCount"] += 1
        (folder / name).write_text(json.dumps(said))
        for number in range(25):
            notes.save(insert={f"{name} {number}": b"1"})
        assert not notes.sync().before.problems
        assert bootstrapped(folder) == dict(notes)


def test_a_broken_snapshot_is_passed_over_and_replaced(tmp_path: Path, folder: Path, notes: llvs.Coordinator) -> None:
    """Bootstrapping continues with the next exchange. The device that found the broken snapshot writes another."""
    bad = tmp_path / "bad"
    shutil.copytree(folder, bad)
    (bad / HERE / "chunk-000").write_bytes(b"garbage")
    for places in ((folder, bad), (bad, folder)):
        with llvs.Coordinator(storage="memory", options=llvs.CoordinatorOptions(snapshots="auto")) as late:
            for place in places:
                late.attach(place)
            assert late.bootstrap() and dict(late) == {"a": b"1"}
            assert not late.sync().before.problems
    assert bootstrapped(bad) == {"a": b"1"}
    (bad / HERE / "chunk-000").write_bytes(b"garbage")
    with llvs.Coordinator(storage="memory", exchange=bad) as alone, pytest.raises(llvs.Error) as caught:
        alone.bootstrap()
    assert caught.value.code == llvs.ErrorCode.SNAPSHOT_DAMAGED


@pytest.mark.parametrize("what", ["file", "inner file", "link", "directory", "full directory", "pipe", "sparse"])
def test_something_in_the_place_of_a_snapshot(tmp_path: Path, folder: Path, what: str) -> None:
    """Another file in the place of a snapshot is replaced, or is a problem in the result. It fails no exchange."""
    inner = folder / HERE
    manifest = inner / "manifest.json"
    (folder / "snapshots").mkdir()
    if what == "file":
        (folder / "snapshots").rmdir()
        (folder / "snapshots").write_text("x")
    elif what == "inner file":
        inner.write_text("x")
    elif what == "link":
        (tmp_path / "elsewhere").mkdir()
        inner.symlink_to(tmp_path / "elsewhere")
    else:
        inner.mkdir()
    if what == "directory":
        manifest.mkdir()
    elif what == "full directory":
        (manifest / "x").mkdir(parents=True)
    elif what == "pipe":
        os.mkfifo(manifest)
    elif what == "sparse":
        with open(manifest, "wb") as file:
            file.truncate(200 << 20)
    with llvs.Coordinator(storage="memory", exchange=folder, options=llvs.CoordinatorOptions(snapshots="auto")) as notes:
        for key in "ab":
            notes.save(insert={key: b"1"})
            result = notes.sync().before
            assert result.sent
            assert {problem.name for problem in result.problems} <= {"snapshots"}
        if result.problems:
            assert result.problems[0].reason
        else:
            assert set(bootstrapped(folder)) <= {"a", "b"}
    assert not (tmp_path / "elsewhere").exists() or not list((tmp_path / "elsewhere").iterdir())


def test_a_manifest_of_millions_of_chunks(folder: Path, notes: llvs.Coordinator) -> None:
    """Of a manifest of this library at most a million chunks are read, of another implementation's manifest none."""
    said = json.loads((folder / HERE / "manifest.json").read_bytes())
    body = json.dumps({**said, "chunkDigests": ["X"]}).replace('"X"', ",".join(['""'] * 1_000_001))
    (folder / HERE / "manifest.json").write_text(body)
    assert not notes.sync().before.problems
    assert bootstrapped(folder) == {"a": b"1"}
    (folder / "snapshots" / "manifest.json").write_text(
        json.dumps({"snapshotId": "x", "format": "other", "createdAt": 1, "chunkDigests": [["any"], 1]})
    )
    assert not notes.sync().before.problems
    assert bootstrapped(folder) == {"a": b"1"}


def test_a_snapshot_with_the_largest_metadata(tmp_path: Path) -> None:
    """In JSON a control character of a key takes six bytes. A snapshot can hold all metadata that a store accepts."""
    metadata = {"\x01" * 4_090 + "%04d" % i: None for i in range(2_800)}
    with llvs.Store(storage="memory") as store:
        store.make_version(insert={"a": b"1"}, metadata=metadata)
        store.write_snapshot(tmp_path / "snapshot")
    with llvs.Store(storage="memory") as late:
        late.restore_snapshot(tmp_path / "snapshot")
        assert len(list(late.history())) == 1


# ---- the clock ----


def test_many_versions_of_the_far_future(folder: Path) -> None:
    """Only descendants of these versions get times in the far future, in this store and in others of the process. Users see when they were
    made."""
    soon = time.time() - SINCE + 3_600
    publish(folder, "soon", files_of("soon", (), {"a": b"1"}, soon))
    far = [f"far-{i}" for i in range(1_030)]
    for i, id in enumerate(far):
        publish(folder, id, files_of(id, (), {}, 1e300 * (1 + i * 1e-9)))
    with llvs.Store(storage="memory") as store, llvs.Exchange(store, folder) as exchange, llvs.Store(storage="memory") as other:
        assert [problem.code for problem in exchange.retrieve().problems] == [llvs.ErrorCode.CLOCK_AHEAD]
        store.make_version("soon", insert={"b": b"1"})
        for id in far:
            store.make_version(id, insert={"b": b"1"})
        assert store.make_version("soon", insert={"b": b"2"}).timestamp < soon + SINCE + 60
        assert max(version.made_at for version in store.history()) < time.time() + 60
        assert other.make_version(insert={"b": b"1"}).timestamp < time.time() + 60


# ---- metadata ----


@pytest.mark.parametrize("data", [b"1e999", b"-1e999", b"[1e999]", rb'"\ud800"', rb'{"\udc00":1}', b"NaN", b"9" * 5_000])
def test_metadata_that_no_program_writes(folder: Path, data: bytes) -> None:
    """Metadata that cannot be written as JSON is returned as bytes, so that it can be printed and saved."""
    version = json.dumps({"version": {"identifier": "v", "timestamp": 1, "metadata": ["k", {"data": b64encode(data).decode()}]}}).encode()
    publish(folder, "v", (version, b"[]"))
    with llvs.Store(storage="memory") as store, llvs.Exchange(store, folder) as exchange:
        exchange.retrieve()
        assert store["v"].metadata == {"k": data}


# ---- strings without end ----


@pytest.mark.parametrize(
    "start, code",
    [
        (b'{"version":{"identifier":"', llvs.ErrorCode.INVALID_VERSION_ID),
        (b'{"version":{"identifier":"junk","timestamp":1,"metadata":["', llvs.ErrorCode.INVALID_METADATA),
    ],
)
def test_a_long_string(folder: Path, start: bytes, code: int) -> None:
    """An id or a key is refused once it is too long, before the end of the file."""
    publish(folder, "junk", (start + b"A" * (4 << 20), b"[]"))
    with llvs.Store(storage="memory") as store, llvs.Exchange(store, folder) as exchange:
        assert [problem.code for problem in exchange.retrieve().problems] == [code]


def test_more_metadata_than_fits(folder: Path) -> None:
    """Reading ends at the limit, before the bytes after it."""
    pair = b'"%04d",{"data":"' + b"A" * (1 << 20) + b'"},'
    text = b'{"version":{"identifier":"junk","timestamp":1,"metadata":[' + b"".join(pair % i for i in range(24)) + b"nonsense"
    publish(folder, "junk", (text, b"[]"))
    with llvs.Store(storage="memory") as store, llvs.Exchange(store, folder) as exchange:
        assert [problem.code for problem in exchange.retrieve().problems] == [llvs.ErrorCode.INVALID_METADATA]


# ---- what problems say ----


def test_what_waits_says_so(folder: Path) -> None:
    """The reason does not suggest copying the file by hand. This holds also for a version that preserves the bytes of an absent one."""
    publish(folder, "r", files_of("r"))
    version, _ = files_of("m", ("r",))
    publish(folder, "m", (version, json.dumps([{"preserve": {"valueId": "a", "storedVersionId": "gone"}}]).encode()))
    with llvs.Store(storage="memory") as store, llvs.Exchange(store, folder) as exchange:
        (problem,) = exchange.retrieve().problems
        assert problem.code == llvs.ErrorCode.MISSING_PREDECESSOR
        assert problem.reason.startswith("The version m waits for its predecessor gone, which is neither in the store nor there yet.")
