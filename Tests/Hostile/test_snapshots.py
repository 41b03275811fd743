"""Snapshots that another program changes while they are restored."""

from __future__ import annotations

import os
from pathlib import Path

import llvs
import pytest


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    """A folder with a snapshot of several chunks."""
    with llvs.Store(storage="memory") as store:
        head = None
        for i in range(4):
            head = store.make_version(head, insert={f"v{i}": os.urandom(6 << 20)})
        store.write_snapshot(tmp_path / "shared")
    assert len(list((tmp_path / "shared").rglob("chunk-*"))) >= 4
    return tmp_path / "shared"


@pytest.mark.parametrize("swap", ["other bytes", "another snapshot's", "gone"])
def test_a_chunk_that_is_swapped_after_it_was_checked(tmp_path: Path, shared: Path, swap: str) -> None:
    last = sorted(shared.rglob("chunk-*"))[-1]
    with llvs.Store(storage="memory") as other:
        other.make_version(None, insert={"evil": b"e" * (6 << 20)})
        other.write_snapshot(tmp_path / "other")
    foreign = sorted((tmp_path / "other").rglob("chunk-*"))[0].read_bytes()
    seen: list[int] = []

    def progress(done: llvs.control.Progress) -> bool:
        # The first pass is over once a chunk is read the second time.
        if done.stage == llvs.control.Stage.READING:
            if done.completed == 0 and seen and max(seen) > 0:
                if swap == "gone":
                    last.unlink(missing_ok=True)
                else:
                    last.write_bytes(foreign if swap == "another snapshot's" else bytes(reversed(last.read_bytes())))
            seen.append(done.completed)
        return True

    with llvs.Store(storage="memory") as store:
        with pytest.raises(llvs.Error) as caught:
            store.restore_snapshot(shared, progress=progress)
        added = len(list(store.history()))
        assert 0 < added < 4
        # The error says how many versions were added. No unchecked version was added.
        assert "changed while it was being restored" in str(caught.value) and f"{added} of its 4 versions were added" in str(caught.value)
        assert "Nothing of it was added" not in str(caught.value)
        assert not store.verify().damages and all("evil" not in store.at(version) for version in store.history())


@pytest.mark.parametrize("when", ["before", "after it was checked"])
def test_one_byte_of_a_value(tmp_path: Path, when: str) -> None:
    """Only the digest of the chunk detects the change: the ids are the caller's, not computed from contents."""
    values = [os.urandom(6 << 20) for _ in range(4)]
    with llvs.Store(storage="memory") as store:
        head = None
        for i, value in enumerate(values):
            head = store.make_version(head, id=f"version-{i}", insert={f"v{i}": value})
        store.write_snapshot(tmp_path / "shared")
    last = sorted((tmp_path / "shared").rglob("chunk-*"))[-1]
    data = bytearray(last.read_bytes())
    data[len(data) // 2] ^= 1
    if when == "before":
        last.write_bytes(data)
    seen: list[int] = []

    def progress(done: llvs.control.Progress) -> bool:
        # The first pass is over once a chunk is read the second time.
        if done.stage == llvs.control.Stage.READING:
            if done.completed == 0 and seen and max(seen) > 0:
                last.write_bytes(data)
            seen.append(done.completed)
        return True

    with llvs.Store(storage="memory") as store:
        with pytest.raises(llvs.Error, match="is damaged" if when == "before" else "changed while it was being restored"):
            store.restore_snapshot(tmp_path / "shared", progress=progress)
        present = list(store.history())
        assert len(present) < 4 and (when != "before" or not present)
        assert all(store.at(version)[f"v{i}"] == values[i] for i, version in enumerate(reversed(present)))
