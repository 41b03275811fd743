"""Pitfalls of exchanges without a test elsewhere. Numbers are those of docs/cloud-drives.md."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path
from typing import Iterator, Optional

import pytest

import llvs

CHILD = """
import resource, sys
import llvs

def memory():
    return int(next(line for line in open("/proc/self/status") if line.startswith("VmHWM")).split()[1])

with llvs.Store(storage="memory") as store:
    data = sys.stdin.buffer.read()
    before = memory()
    assert len(store.unpack(data, passphrase="six words").retrieved) == 1
    print(memory() - before)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the system does not tell what a process takes of memory")
def test_a_passphrase_takes_64_mib() -> None:
    """17: a small process, as an extension on a phone, may have no more than 120 MiB or so."""
    with llvs.Store(storage="memory") as store:
        store.make_version(insert={"a": b"1"})
        data = store.pack(passphrase="six words")
    stanza = data.split(b"\n", 2)[1].split()
    assert stanza[:2] == [b"->", b"scrypt"] and stanza[3] == b"16"
    child = subprocess.run([sys.executable, "-c", CHILD], input=data, stdout=subprocess.PIPE, timeout=300, check=True)
    assert 60 << 10 < int(child.stdout) < 80 << 10


EXCHANGES = """
import sys
import llvs

path, place, name = sys.argv[1:]
busy = 0

def whole(work):
    global busy
    while True:
        try:
            return work()
        except llvs.BusyError:  # the other one is within an exchange
            busy += 1

with llvs.Store(path) as store, llvs.Exchange(store, place) as exchange:
    version = None
    print("ready", flush=True)
    sys.stdin.readline()
    for number in range(25):
        version = store.make_version(version, insert={f"{name}/{number}": b"%d" % number}, root=version is None)
        store.reload()
        assert not whole(exchange.retrieve).problems
        assert not whole(exchange.send).problems
"""


@pytest.mark.parametrize("layout", ["packed", "interchange"])
def test_two_processes_exchange_at_once(tmp_path: Path, layout: str) -> None:
    """41: of one store, with one place. With packs one of them waits for the other, and nothing is lost."""
    place = f"{(tmp_path / 'place').as_uri()}?layout={layout}"
    with llvs.Store(tmp_path / "store") as store:
        first = store.make_version(insert={"first": b"1"})
        with llvs.Exchange(store, place) as exchange:
            exchange.send()
        children = [
            subprocess.Popen([sys.executable, "-c", EXCHANGES, str(tmp_path / "store"), place, name], stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE)
            for name in ("one", "two")
        ]
        for child in children:
            assert child.stdout is not None and child.stdout.readline() == b"ready\n"
        for child in children:
            assert child.stdin is not None
            child.stdin.write(b"go\n")
            child.stdin.flush()
        for child in children:
            child.communicate(timeout=300)
            assert child.returncode == 0
        store.reload()
        with llvs.Store(tmp_path / "other") as other, llvs.Exchange(other, place) as exchange:
            assert not exchange.retrieve().problems
            made = {version.id for version in store.history()}
            assert len(made) == 51 and first.id in made and {version.id for version in other.history()} == made
        assert not store.verify().damages


class Slow(llvs.exchange.RemoteFiles):
    """Waits within a listing of packs."""

    name = "a slow place"

    def __init__(self) -> None:
        self.asked, self.goes_on = threading.Event(), threading.Event()

    def list(self, directory: str) -> Iterator[llvs.exchange.RemoteFile]:
        if directory == "pack1/log":
            self.asked.set()
            assert self.goes_on.wait(300)
        return iter(())

    def read(self, name: str, offset: int, size: int) -> Optional[llvs.exchange.FileContent]:
        return None

    def publish(self, name: str, file: llvs.exchange.OutgoingFile, replaces: bool) -> bool:
        return True

    def delete(self, name: str) -> None: ...


def test_the_second_opener_gets_an_error(tmp_path: Path) -> None:
    """41: by another handle of the same store."""
    with llvs.Store(tmp_path / "store") as store, llvs.Store(tmp_path / "store") as again:
        slow, other = Slow(), Slow()
        other.goes_on.set()
        with llvs.Exchange(store, slow) as first, llvs.Exchange(again, other) as second:
            thread = threading.Thread(target=first.retrieve)
            thread.start()
            try:
                assert slow.asked.wait(300)
                with pytest.raises(llvs.BusyError, match="here or in another process"):
                    second.retrieve()
            finally:
                slow.goes_on.set()
                thread.join()
            assert not second.retrieve().retrieved
