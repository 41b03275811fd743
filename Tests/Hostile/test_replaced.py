"""Other programs change the files of a store while it is open: they replace directories (a restore, or a syncing program), remove caches,
make hard links, take locks. Acknowledged versions remain, and no file of another user is written."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Callable

import llvs
import pytest

LARGE = 1_200_000


def put_anew(folder: Path) -> None:
    """Replaces a directory by a copy with the same files, as a restore does."""
    os.rename(folder, folder.with_name("was"))
    shutil.copytree(folder.with_name("was"), folder)


def replaced(folder: Path) -> None:
    """Replaces a directory by a copy that was made before, as a syncing program does."""
    shutil.copytree(folder, folder.with_name("new"))
    os.rename(folder, folder.with_name("was"))
    os.rename(folder.with_name("new"), folder)


def moved_away(folder: Path) -> None:
    os.rename(folder, folder.with_name("was"))


# If large values that were acknowledged at `normal` were only moved away, closing reports it.
@pytest.mark.parametrize(
    "change, durability", [(put_anew, "full"), (put_anew, "normal"), (replaced, "full"), (replaced, "normal"), (moved_away, "full")]
)
@pytest.mark.parametrize("name", ["segments", "blobs"])
def test_what_is_acknowledged_is_there(tmp_path: Path, name: str, change: Callable[[Path], None], durability: str) -> None:
    path = tmp_path / "store"
    with llvs.Store(path, durability=durability) as store:
        first = store.make_version(None, insert={"small": b"1"})
        if name == "blobs":
            # Save on another line. It is lost if the directory is only moved away.
            store.make_version(first, insert={"other": os.urandom(LARGE)})
        change(path / name)
        acknowledged, expected = [], {}
        for i in range(4):
            data = os.urandom(LARGE if i % 2 else 20)
            made = store.make_version(first if i == 0 else acknowledged[-1], insert={f"k{i}": data})
            acknowledged.append(made)
            expected[f"k{i}"] = data
    with llvs.Store(path, create=False) as store:
        for made in acknowledged:
            assert made.id in store, made
        assert {id: store.at(acknowledged[-1])[id] for id in expected} == expected
        if change is not moved_away:
            assert not store.verify().damages


# ---- The note of a coordinator ----

SLEEPER = """
import os, sys, llvs
path, kind, dies = sys.argv[1:]
coordinator = llvs.Coordinator(path, storage=kind)
coordinator.save(insert={"a": b"1"})
child = os.fork()
if child == 0:
    os.write(1, b"child" + bytes([10]))
    os.read(0, 1)
    os._exit(0)
if dies == "dies":
    os._exit(0)
coordinator.close()
try:
    llvs.Coordinator(path, storage=kind).close()
    answer = "opened"
except llvs.Error as error:
    answer = str(error)
os.write(1, answer.encode() + bytes([10]))  # At once: the child writes, too.
os.read(0, 1)
os._exit(0)
"""


def one_file_restored(copy: Path, segments: Path) -> None:
    file = next(copy.iterdir())
    os.rename(file, segments / file.name)


def all_restored(copy: Path, segments: Path) -> None:
    os.rename(segments, segments.with_name("was"))
    os.rename(copy, segments)


@pytest.mark.parametrize("put_back", [one_file_restored, all_restored])
@pytest.mark.parametrize("durability", ["full", "normal"])
def test_closing_keeps_what_was_acknowledged(tmp_path: Path, durability: str, put_back: Callable[[Path, Path], None]) -> None:
    """An older copy replaces a segment whose content was synced long ago. Closing restores the acknowledged version."""
    path = tmp_path / "store"
    with llvs.Store(path, durability=durability) as store:
        first = store.make_version(None, insert={"a": b"1"})
        shutil.copytree(path / "segments", tmp_path / "copy")
        second = store.make_version(first, insert={"b": b"2"})
        put_back(tmp_path / "copy", path / "segments")
    with llvs.Store(path) as store:
        assert second.id in store and not store.verify().damages


@pytest.mark.parametrize("durability", ["full", "normal"])
def test_a_store_that_is_gone_can_be_closed(tmp_path: Path, durability: str) -> None:
    store = llvs.Store(tmp_path / "store", durability=durability)
    store.make_version(None, insert={"a": b"1"})
    shutil.rmtree(tmp_path / "store")
    if durability == "full":
        store.close()
    else:
        with pytest.raises(llvs.Error):
            store.close()


@pytest.mark.parametrize("end", ["closes", "dies"])
@pytest.mark.parametrize("kind", ["file", "sqlite"])
def test_a_forked_child_keeps_no_name(tmp_path: Path, kind: str, end: str) -> None:
    """A forked child does not keep a coordinator's name in use, whether the parent closes the coordinator or ends without closing it."""
    path = tmp_path / "store"
    arguments = [sys.executable, "-c", SLEEPER, str(path), kind, end]
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None and process.stdout is not None
        lines = {process.stdout.readline()}
        if end == "closes":
            lines.add(process.stdout.readline())
            assert lines == {"child\n", "opened\n"}
        else:
            assert lines == {"child\n"}
            process.wait()
        with llvs.Coordinator(path, storage=kind) as coordinator:
            coordinator.save(insert={"a": b"2"})


@pytest.mark.parametrize("change", [shutil.rmtree, lambda folder: os.rename(folder, folder.with_name("was"))], ids=["removed", "renamed"])
def test_removed_caches(tmp_path: Path, change: Callable[[Path], None]) -> None:
    path = tmp_path / "store"
    with llvs.Coordinator(path) as coordinator:
        coordinator.save(insert={"a": b"1"})
        other = coordinator.store.make_version(coordinator.current_version, insert={"a": b"2"})
        coordinator.save(insert={"b": b"2"})
        change(path / "cache")
        time.sleep(0.1)  # The note is checked at most every 50 ms.
        coordinator.current_version = other.id
        # The coordinator holds the name again.
        with pytest.raises(llvs.BusyError):
            llvs.Coordinator(path)
    with llvs.Coordinator(path) as coordinator:
        assert coordinator.current_version == other
        assert coordinator.missing_version is None


@pytest.mark.parametrize("how", ["removed", "emptied", "renamed", "a file", "a link"])
def test_caches_that_go_away_are_no_error(tmp_path: Path, how: str) -> None:
    path, caches, elsewhere = tmp_path / "store", tmp_path / "store" / "cache", tmp_path / "else"
    with llvs.Store(path, durability="normal") as store:
        store.make_version(None, id="first", insert={f"k{i}": b"1" for i in range(5_000)})
    assert list(caches.glob("map-*"))
    with llvs.Coordinator(path, durability="normal") as coordinator:
        store = coordinator.store
        assert store.at("first")["k7"] == b"1"
        if how == "renamed":
            caches.rename(tmp_path / "was")
        elif how == "emptied":
            for file in caches.iterdir():
                file.unlink()
        else:
            shutil.rmtree(caches)
        if how == "a file":
            caches.write_bytes(b"something else")
        elif how == "a link":
            elsewhere.mkdir()
            caches.symlink_to(elsewhere)
        time.sleep(0.1)  # The note is checked at most every 50 ms.
        coordinator.save(insert={"saved": b"1"})
        assert len(store.at("first").items()) == 5_000
        last = store.make_version("first", update={f"k{i}": b"2" for i in range(5_000)})
        assert len(store.at(last).items()) == 5_000
        assert not store.verify().damages
        store.compact()
    with llvs.Store(path) as store:
        assert store.at(last)["k7"] == b"2"
    # The caches are written again, unless another file is in their place.
    if how.startswith("a "):
        assert not caches.is_dir() or not list(elsewhere.iterdir())
    else:
        assert list(caches.glob("map-*.cache")) and list(caches.glob("*.note"))


def note(path: Path, kind: str) -> Path:
    return path / "cache" / "coordinator-main.note" if kind == "file" else path.with_name(path.name + "-coordinator-main.note")


@pytest.mark.parametrize("kind", ["file", "sqlite"])
def test_a_note_of_a_user_who_may_not_write_the_store_is_replaced(tmp_path: Path, kind: str) -> None:
    if os.geteuid() != 0:
        return  # Only root can give files away.
    path = tmp_path / "store"
    with llvs.Coordinator(path, storage=kind) as coordinator:
        coordinator.save(insert={"a": b"1"})
        saved = coordinator.current_version.id
    theirs = note(path, kind)
    os.chown(theirs, 12_345, 12_345)
    with llvs.Coordinator(path, storage=kind) as coordinator:
        assert coordinator.current_version.id == saved
        coordinator.save(insert={"b": b"1"})
        assert theirs.stat().st_uid == 0


@pytest.mark.parametrize("kind", ["file", "sqlite"])
def test_a_linked_note_is_not_written(tmp_path: Path, kind: str) -> None:
    path, private = tmp_path / "store", tmp_path / "private"
    with llvs.Coordinator(path, storage=kind) as coordinator:
        coordinator.save(insert={"a": b"1"})
    private.write_bytes(b"of nobody else\n")
    note(path, kind).unlink()
    os.link(private, note(path, kind))
    with llvs.Coordinator(path, storage=kind) as coordinator:
        coordinator.save(insert={"a": b"2"})
        coordinator.save(insert={"a": b"3"})
        current = coordinator.current_version.id
        with pytest.raises(llvs.BusyError):
            llvs.Coordinator(path, storage=kind)
    assert private.read_bytes() == b"of nobody else\n"
    # A hard-linked copy of the note is valid, and is not written to.
    os.link(note(path, kind), tmp_path / "kept")
    kept = (tmp_path / "kept").read_bytes()
    with llvs.Coordinator(path, storage=kind) as coordinator:
        assert coordinator.current_version.id == current
        coordinator.save(insert={"a": b"4"})
        coordinator.save(insert={"a": b"5"})
    assert (tmp_path / "kept").read_bytes() == kept


@pytest.mark.parametrize(
    "file_mode, expected", [(0o600, 0o600), (0o644, 0o600), (0o640, 0o600), (0o660, 0o660), (0o664, 0o660), (0o666, 0o666)]
)
def test_who_may_only_read_cannot_lock_the_note(tmp_path: Path, file_mode: int, expected: int) -> None:
    before = os.umask(0)
    try:
        for kind in ("file", "sqlite"):
            path = tmp_path / kind
            for left_as in (None, 0o644):
                with llvs.Coordinator(path, storage=kind, options=llvs.CoordinatorOptions(file_mode=file_mode)) as coordinator:
                    coordinator.save(insert={"a": b"1"})
                    if left_as is None or expected == 0o600:
                        assert stat.S_IMODE(note(path, kind).stat().st_mode) == expected
                # The permissions of a note by an earlier version of the library.
                note(path, kind).chmod(0o644)
    finally:
        os.umask(before)
