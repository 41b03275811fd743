"""Observers of stores and of exchange folders: forks in their callbacks, descriptors that the host closes or reuses, replaced folders."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import llvs
from waiting import GUARD, eventually


FORKING = """
import os, sys, threading, llvs
kind, path = sys.argv[1:]
children, told = [], threading.Semaphore(0)
def changed():
    if not children:
        children.append(os.fork())
        if children[0] == 0:
            return  # The child comes back from the callback.
    told.release()
store = llvs.Store(path)
versions = [store.make_version(insert={"a": b"0"})]
exchange = llvs.Exchange(store if kind == "store" else llvs.Store(storage="memory"), path + "-folder")
other = llvs.Exchange(store, path + "-folder")
observer = store.observe(changed) if kind == "store" else exchange.observe(changed)
for i in range(3):
    versions.append(store.make_version(versions[-1], insert={"a": b"%d" % i}))
    other.send()
    assert told.acquire(timeout=300), "nothing was told"
_, status = os.waitpid(children[0], 0)
print("ended", status)
observer.close()
"""


def test_a_child_that_comes_back_from_a_callback(tmp_path: Path) -> None:
    """A child returns from the callback. It ends there, and takes nothing for which the parent waits."""
    for kind in ("store", "exchange"):
        arguments = [sys.executable, "-c", FORKING, kind, str(tmp_path / kind)]
        with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
            try:
                assert process.communicate(timeout=GUARD)[0] == "ended 0\n", kind
            finally:
                try:
                    os.killpg(process.pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass


def watching() -> dict[int, str]:
    """Returns the inotify descriptors and what they watch, as the system reports them."""
    found = {}
    for name in os.listdir("/proc/self/fd"):
        try:
            if "inotify" in os.readlink(f"/proc/self/fd/{name}"):
                found[int(name)] = Path(f"/proc/self/fdinfo/{name}").read_text()
        except OSError:
            pass
    return found


def watched(of: int) -> set[int]:
    """The inode numbers of the directories that a descriptor watches."""
    return {int(part[4:], 16) for line in watching().get(of, "").splitlines() for part in line.split()[1:] if part.startswith("ino:")}


def test_an_observer_of_a_folder_leaves_the_hosts_descriptors_alone(tmp_path: Path) -> None:
    """A host has closed all descriptors, as daemons do, and opened its own files under the same numbers."""
    told = threading.Event()
    before = set(watching())
    with llvs.Store(storage="memory") as store, llvs.Exchange(store, tmp_path / "x") as exchange, llvs.Store(storage="memory") as another:
        another.make_version(insert={"a": b"1"})
        observer = exchange.observe(told.set)
        (mine,) = set(watching()) - before
        reading, writing = os.pipe()
        os.dup2(reading, mine)
        os.write(writing, b"the host's own bytes")
        # The observer continues by polling.
        with llvs.Exchange(another, tmp_path / "x") as other:
            other.send()
        assert told.wait(GUARD)
        os.set_blocking(mine, False)
        assert os.read(mine, 100) == b"the host's own bytes"
        observer.close()
        del observer
    os.write(writing, b"more")
    assert os.read(mine, 100) == b"more"
    for descriptor in (mine, reading, writing):
        os.close(descriptor)


def test_a_folder_that_is_replaced(tmp_path: Path) -> None:
    """The observer watches the current folder only, and never the target of a link."""
    folder, elsewhere = tmp_path / "x", tmp_path / "elsewhere"
    versions = folder / "versions"
    elsewhere.mkdir()
    before = set(watching())
    with llvs.Store(storage="memory") as store, llvs.Exchange(store, folder) as exchange, exchange.observe(lambda: None):
        (mine,) = set(watching()) - before
        for i in range(3):
            os.rename(versions, folder / f"old{i}")
            versions.mkdir()
            eventually(lambda: watched(mine) == {versions.stat().st_ino}, f"watching the new folder, {i}")
        # The parent folder is replaced as well.
        os.rename(folder, tmp_path / "old")
        versions.mkdir(parents=True)
        eventually(lambda: watched(mine) == {versions.stat().st_ino})
        os.rename(versions, folder / "old")
        versions.symlink_to(elsewhere)
        eventually(lambda: not watched(mine))
        # When the folder exists again, it is watched. The link was checked before, and its target was never watched.
        never = elsewhere.stat().st_ino
        versions.unlink()
        versions.mkdir()
        seen = eventually(lambda: watched(mine))
        assert never not in seen
