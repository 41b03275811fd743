"""Files on which another program has a lease (F_SETLEASE), as file servers do: opening one waits for the holder of the lease."""

from __future__ import annotations

import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import Iterator

import llvs
import pytest

fcntl = pytest.importorskip("fcntl")
pytestmark = pytest.mark.skipif(not hasattr(fcntl, "F_SETLEASE"), reason="there are no leases here")

LEASE = """
import fcntl, os, signal, sys
how = {"read": (os.O_RDONLY, fcntl.F_RDLCK), "write": (os.O_RDWR, fcntl.F_WRLCK)}[sys.argv[2]]
file = os.open(sys.argv[1], how[0])
keeps = sys.argv[3] == "keeps it"
signal.signal(signal.SIGIO, (lambda *_: None) if keeps else (lambda *_: fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_UNLCK)))
fcntl.fcntl(file, fcntl.F_SETLEASE, how[1])
print(flush=True)
sys.stdin.read()
"""


@contextmanager
def lease(path: Path, kind: str = "write", then: str = "keeps it") -> Iterator[None]:
    """Another program that holds a lease, and keeps it or releases it on request."""
    holder = subprocess.Popen([sys.executable, "-c", LEASE, str(path), kind, then], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert holder.stdin and holder.stdout
    assert holder.stdout.readline() == b"\n"
    try:
        yield
    finally:
        holder.communicate()


@pytest.fixture
def left_open(tmp_path: Path) -> Path:
    """A database whose writer was killed: its log and shared memory remain beside it."""
    path = tmp_path / "left.db"
    script = """
import os, sys, llvs
store = llvs.Store(sys.argv[1], storage="sqlite")
store.make_version(id="one", insert={"a": b"1"})
os._exit(0)
"""
    subprocess.run([sys.executable, "-c", script, str(path)], check=True)
    assert all(path.with_name(path.name + suffix).exists() for suffix in ("-wal", "-shm"))
    return path


@pytest.mark.parametrize("suffix, kind", [("", "write"), ("", "read"), ("-wal", "write"), ("-shm", "write")])
def test_a_lease_is_waited_for_no_longer_than_others_are(left_open: Path, suffix: str, kind: str) -> None:
    """SQLite would wait until the system revokes the lease, after 45 s."""
    with lease(left_open.with_name(left_open.name + suffix), kind), pytest.raises(llvs.BusyError, match="a lease"):
        llvs.Store(left_open, storage="sqlite", options=llvs.StoreOptions(busy_timeout=0.1))


def test_who_waits_for_a_lease_is_cancelled(left_open: Path) -> None:
    looks = 0

    def progress(*_: object) -> bool:
        nonlocal looks
        looks += 1
        return looks < 5

    with lease(left_open), pytest.raises(llvs.CancelledError):
        llvs.Store(left_open, storage="sqlite", progress=progress)
    assert looks == 5


@pytest.mark.parametrize("suffix", ["", "-wal", "-shm"])
def test_a_released_lease_delays_no_device(left_open: Path, suffix: str) -> None:
    """File servers release their leases on request."""
    with lease(left_open.with_name(left_open.name + suffix), then="lets go"), llvs.Store(left_open, storage="sqlite") as store:
        assert store.at("one")["a"] == b"1"


@pytest.mark.parametrize("what", ["llvs-store", "segments/*.seg", "blobs/*.blob"])
def test_a_file_store_waits_for_no_lease(tmp_path: Path, what: str) -> None:
    path = tmp_path / "store"
    with llvs.Store(path) as store:
        store.make_version(id="one", insert={"a": b"1", "large": bytes(2_000_000)})
    with lease(next(path.glob(what))), pytest.raises(llvs.Error) as caught, llvs.Store(path) as store:
        store.at("one")["large"]
    assert caught.value.code == llvs.ErrorCode.BUSY, caught.value
    with llvs.Store(path) as store:
        assert len(store.at("one")["large"]) == 2_000_000 and not store.verify().damages
