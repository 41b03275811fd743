"""The notes of coordinators: old ones, forged ones, and other files in their place."""

from __future__ import annotations

import fcntl
import os
import shutil
import struct
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import llvs

KINDS = ["file", "sqlite"]
LATE = [(1 << 62) - 1, 1 << 62, (1 << 63) - 1, 1 << 63, (1 << 64) - 2, (1 << 64) - 1]


def note_of(path: Path, kind: str) -> Path:
    return path / "cache" / "coordinator-main.note" if kind == "file" else path.with_name(path.name + "-coordinator-main.note")


def crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 & -(crc & 1))
    return crc ^ 0xFFFFFFFF


def said(version: str, number: int) -> bytes:
    """The bytes of a note with one slot."""
    data = version.encode()
    head = b"LLVSnt2\n" + struct.pack("<QI", number, len(data))
    return bytes(512 * (number % 2)) + head + struct.pack("<I", crc32c(head + data)) + data


def put(place: Path, what: str) -> None:
    """Puts something else than a file in the place of a note."""
    if what == "link":
        place.symlink_to("/nowhere")
    elif what == "pipe":
        os.mkfifo(place)
    else:
        place.mkdir()
        if what == "full directory":
            (place / "x").touch()


@pytest.mark.parametrize("lost", ["emptied", "removed"])
@pytest.mark.parametrize("kind", KINDS)
def test_an_old_cache_is_not_believed_when_the_note_is_lost(tmp_path: Path, kind: str, lost: str) -> None:
    """If no note can be written, a cache replaces it. The first note that is written invalidates the cache."""
    path = tmp_path / "store"
    note = note_of(path, kind)
    llvs.Store(path, storage=kind).close()
    note.parent.mkdir(exist_ok=True)
    put(note, "full directory")
    at = None
    for i in range(2):
        # Without a note the cache holds the current version.
        with llvs.Coordinator(path, storage=kind) as coordinator:
            assert at is None or coordinator.current_version.id == at
            first = coordinator.save(insert={f"old{i}": b"1"})
            assert first is not None
            aside = coordinator.store.make_version(first, insert={"aside": b"1"})
            coordinator.current_version = at = aside.id
    shutil.rmtree(note)
    with llvs.Coordinator(path, storage=kind) as coordinator:
        assert coordinator.current_version.id == at
        newest = coordinator.save(insert={"new": b"1"})
    assert newest is not None
    if lost == "emptied":
        os.truncate(note, 0)
    else:
        note.unlink()
    with llvs.Coordinator(path, storage=kind) as coordinator:
        assert coordinator.current_version == newest and coordinator.missing_version is None


@pytest.mark.parametrize("number", LATE)
def test_a_note_of_a_high_number(tmp_path: Path, number: int) -> None:
    """The next note that is written has a higher number nevertheless."""
    path = tmp_path / "store"
    with llvs.Coordinator(path) as coordinator:
        first = coordinator.save(insert={"a": b"1"})
        coordinator.save(insert={"b": b"1"})
    assert first is not None
    note_of(path, "file").write_bytes(said(first.id, number))
    at = first.id
    for i in range(4):
        with llvs.Coordinator(path) as coordinator:
            assert i == 0 or coordinator.current_version.id == at
            made = coordinator.save(insert={f"c{i}": b"1"})
            assert made is not None
            at = made.id


@pytest.mark.parametrize("what", ["link", "pipe", "directory", "full directory"])
@pytest.mark.parametrize("kind", KINDS)
def test_something_in_the_place_of_a_note(tmp_path: Path, kind: str, what: str) -> None:
    """One name can be open only once, also if no note can exist. Files that can be removed safely are removed; the log names the others."""
    path = tmp_path / "store"
    note = note_of(path, kind)
    llvs.Store(path, storage=kind).close()
    note.parent.mkdir(exist_ok=True)
    put(note, what)
    messages: list[str] = []
    with llvs.log.observe_log(lambda level, message: messages.append(message), "warning"), llvs.Coordinator(path, storage=kind) as one:
        with pytest.raises(llvs.BusyError):
            llvs.Coordinator(path, storage=kind)
        made = one.save(insert={"a": b"1"})
    assert made is not None
    if what == "full directory":
        assert (note / "x").exists() and any("cannot be removed" in message for message in messages)
    else:
        assert note.is_file() and not note.is_symlink() and not messages
    with llvs.Coordinator(path, storage=kind) as again:
        assert again.current_version == made


def test_a_close_waits_for_the_save_of_another_thread(tmp_path: Path) -> None:
    """A version that a save returned is the current one when the coordinator is opened again."""
    for i in range(25):
        path = tmp_path / str(i)
        coordinator = llvs.Coordinator(path, durability="normal")
        made: list[str] = []

        def save(coordinator: llvs.Coordinator = coordinator, made: list[str] = made) -> None:
            try:
                while True:
                    saved = coordinator.save(insert={f"k{len(made)}": bytes(5_000)})
                    assert saved is not None
                    made.append(saved.id)
            except llvs.ClosedError:
                pass

        thread = threading.Thread(target=save)
        thread.start()
        while len(made) < 1 + i % 5:
            time.sleep(0.0003)
        coordinator.close()
        thread.join()
        with llvs.Coordinator(path) as again:
            assert again.current_version.id == made[-1] and again.missing_version is None, i


# ---- Notes of other users ----


@pytest.fixture
def shared() -> Iterator[Path]:
    """A directory in which all users may create files, like /tmp."""
    place = Path(tempfile.mkdtemp())
    try:
        place.chmod(0o1777)
        yield place
    finally:
        os.seteuid(os.getuid())
        shutil.rmtree(place)


VICTIM, NEIGHBOUR = 65_534, 65_533


@pytest.mark.parametrize("is_sticky", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_a_note_of_another_user(shared: Path, kind: str, is_sticky: bool) -> None:
    """Another user's note is not used, and locks out no device. It is replaced, or ignored if it cannot be."""
    if os.geteuid() != 0:
        return  # Only root can give files away.
    place = shared / "place"
    place.mkdir()
    os.chown(place, *((0, 0) if is_sticky else (VICTIM, VICTIM)))
    place.chmod(0o1777 if is_sticky else 0o755)
    path = place / "store"
    caches = place / "caches" if kind == "file" else None
    options: dict[str, Any] = {"storage": kind, "options": llvs.CoordinatorOptions(cache_directory=caches)}
    if kind == "file":
        (place / "caches").mkdir()
        shutil.copystat(place, place / "caches")
        os.chown(place / "caches", place.stat().st_uid, place.stat().st_gid)
    note = place / "caches" / "coordinator-main.note" if kind == "file" else note_of(path, kind)
    os.seteuid(VICTIM)
    with llvs.Store(path, **options) as store:
        first = store.make_version(insert={"a": b"1"})
        newest = store.make_version(first, insert={"b": b"1"})
    os.seteuid(0)
    note.write_bytes(said(first.id, 7))
    note.chmod(0o666)
    os.chown(note, NEIGHBOUR, NEIGHBOUR)
    messages: list[str] = []
    with open(note, "r+b") as file, llvs.log.observe_log(lambda level, message: messages.append(message), "warning"):
        fcntl.flock(file, fcntl.LOCK_EX)
        os.seteuid(VICTIM)
        at = newest.id
        with llvs.Coordinator(path, read_only=True, **options) as reader:
            assert reader.current_version.id == at
        for i in range(2):
            with llvs.Coordinator(path, **options) as coordinator:
                assert coordinator.current_version.id == at and coordinator.missing_version is None
                made = coordinator.save(insert={f"c{i}": b"1"})
                assert made is not None
                at = made.id
    assert note.stat().st_uid == (NEIGHBOUR if is_sticky else VICTIM)
    assert any("who may not write the store" in message for message in messages) == is_sticky
