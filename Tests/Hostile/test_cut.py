"""Files that a neighbour cuts short or overwrites in place while the store is open: reading gives what was stored or an error, and
nothing ends the process. In processes of their own, which a signal would end."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import llvs
import pytest

HEAD = """
import os, sys, llvs
from pathlib import Path
path = Path(sys.argv[1])
COUNT = 8_000
def value(i):
    return str(i).encode() * 4
def spoil(folder, how):
    files = [file for file in (path / folder).iterdir() if file.suffix in (".seg", ".cache", ".blob")]
    assert files
    for file in files:
        size = file.stat().st_size
        with file.open("r+b") as opened:
            if how == "emptied":
                opened.truncate(0)
            elif how == "cut":
                opened.truncate(size // 2)
            else:
                opened.write(os.urandom(size))
def looks_at_all(store, version):
    "Every value is right or an error; how many were right."
    right = 0
    for i in range(COUNT):
        try:
            got = store.at(version)[f"k{i}"]
        except llvs.Error as error:
            assert error.code in (llvs.ErrorCode.DAMAGED, llvs.ErrorCode.NOT_FOUND, llvs.ErrorCode.IO), error
            assert not isinstance(error, KeyError), error
            continue
        assert got == value(i), (i, got)
        right += 1
    return right
"""


def run(script: str, path: Path, *more: str) -> None:
    done = subprocess.run([sys.executable, "-c", HEAD + script, str(path), *more], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, (done.returncode, done.stderr[-2_000:])


@pytest.fixture
def large(tmp_path: Path) -> Path:
    """A store whose map is a cache of its own."""
    path = tmp_path / "store"
    with llvs.Store(path, durability="normal") as store:
        store.make_version(None, id="one", insert={f"k{i}": str(i).encode() * 4 for i in range(8_000)})
    assert list((path / "cache").glob("map-*.cache"))
    return path


@pytest.mark.parametrize("how", ["emptied", "cut", "overwritten"])
@pytest.mark.parametrize("when", ["after opening", "after one value", "after all values"])
def test_caches_are_spoiled_while_they_are_used(large: Path, how: str, when: str) -> None:
    run(
        """
with llvs.Store(path) as store:
    if sys.argv[3] == "after one value":
        assert store.at("one")["k7"] == value(7)
    elif sys.argv[3] == "after all values":
        assert looks_at_all(store, "one") == COUNT
    spoil("cache", sys.argv[2])
    # What is derived is made again.
    assert looks_at_all(store, "one") == COUNT
    assert len(store.at("one").items()) == COUNT
    two = store.make_version("one", update={"k7": b"else"})
    assert store.at(two)["k7"] == b"else"
with llvs.Store(path) as store:
    assert looks_at_all(store, "one") == COUNT and store.at(two)["k7"] == b"else"
    assert not store.verify().damages
""",
        large,
        how,
        when,
    )


@pytest.mark.parametrize("how", ["emptied", "cut", "overwritten"])
def test_caches_are_spoiled_while_who_wrote_them_uses_them(tmp_path: Path, how: str) -> None:
    run(
        """
with llvs.Store(path, durability="normal") as store:
    store.make_version(None, id="one", insert={f"k{i}": value(i) for i in range(COUNT)})
    assert len(store.at("one").items()) == COUNT
    spoil("cache", sys.argv[2])
    assert looks_at_all(store, "one") == COUNT
    assert len(store.at("one").items()) == COUNT
""",
        tmp_path / "store",
        how,
    )


@pytest.mark.parametrize("how", ["emptied", "cut", "overwritten"])
@pytest.mark.parametrize("storing", ["its own", "another's"])
def test_segments_are_spoiled_while_they_are_read(large: Path, how: str, storing: str) -> None:
    run(
        """
with llvs.Store(path, durability="normal") as store:
    if sys.argv[3] == "its own":
        store.make_version("one", id="two", update={f"k{i}": value(i) for i in range(500)})
    spoil("segments", sys.argv[2])
    assert looks_at_all(store, "one") < COUNT
    add = lambda: store.make_version("one", insert={"more": b"1"})
    for call in (store.reload, store.verify, lambda: list(store.at("one").items()), add):
        try:
            call()
        except llvs.Error:
            pass
    try:
        assert store.verify().damages
    except llvs.Error:
        pass
""",
        large,
        how,
        storing,
    )


@pytest.mark.parametrize("how", ["emptied", "cut", "overwritten"])
def test_large_values_are_spoiled_while_they_are_read(tmp_path: Path, how: str) -> None:
    run(
        """
large = os.urandom(3_000_000)
with llvs.Store(path, durability="normal") as store:
    store.make_version(None, id="one", insert={"large": large})
    with store.open_value("large", at="one") as half:
        assert half.read(1_000) == large[:1_000]
        spoil("blobs", sys.argv[2])
        for read in (lambda: half.read(), lambda: store.at("one")["large"][1_000:]):
            try:
                assert read() == large[1_000:]
                raise SystemExit("it was read")
            except llvs.Error as error:
                assert error.code in (llvs.ErrorCode.DAMAGED, llvs.ErrorCode.NOT_FOUND), error
    assert store.verify().damages
""",
        tmp_path / "store",
        how,
    )
