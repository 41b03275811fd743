"""Files that another program cuts short or overwrites in place while the store is open: a read returns what was stored, or an error, and
the process does not end. Tests run in child processes, since a signal could end them."""

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
#: The values that are requested one by one.
ASKED = range(0, COUNT, 10)
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
    "Every value that is asked for is right or an error; how many were right."
    right = 0
    for i in ASKED:
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


@pytest.mark.in_turn("how", "when")
@pytest.mark.parametrize("how", ["emptied", "cut", "overwritten"])
@pytest.mark.parametrize("when", ["after opening", "after one value", "after all values"])
def test_caches_are_spoiled_while_they_are_used(large: Path, how: str, when: str) -> None:
    run(
        """
with llvs.Store(path) as store:
    if sys.argv[3] == "after one value":
        assert store.at("one")["k7"] == value(7)
    elif sys.argv[3] == "after all values":
        assert looks_at_all(store, "one") == len(ASKED)
    spoil("cache", sys.argv[2])
    # Derived data is rebuilt.
    assert looks_at_all(store, "one") == len(ASKED)
    assert len(store.at("one").items()) == COUNT
    two = store.make_version("one", update={"k7": b"else"})
    assert store.at(two)["k7"] == b"else"
with llvs.Store(path) as store:
    assert looks_at_all(store, "one") == len(ASKED) and store.at(two)["k7"] == b"else"
    assert not store.verify().damages
""",
        large,
        how,
        when,
    )


@pytest.mark.parametrize("how", ["emptied", "cut", "overwritten"])
@pytest.mark.parametrize("opened", ["by who made it", "again"])
def test_caches_are_spoiled_while_a_copy_is_mapped(tmp_path: Path, how: str, opened: str) -> None:
    """A map that is large for the memory budget is mapped from an unnamed file, which no other program can cut short."""
    run(
        """
COUNT = 30_000
def mapped():
    maps = Path("/proc/self/maps").read_text().splitlines()
    named = [line for line in maps if str(path) in line and "(deleted)" not in line]
    assert not named, named
    return [line for line in maps if str(path) in line]
def opened():
    return llvs.Store(path, durability="normal", options=llvs.StoreOptions(memory_budget=1 << 20))
store = opened()
store.make_version(None, id="one", insert={f"k{i}": value(i) for i in range(COUNT)})
if sys.argv[3] == "again":
    store.close()
    assert list((path / "cache").glob("map-*.cache"))
    store = opened()
assert len(store.at("one").items()) == COUNT
assert mapped()
if list((path / "cache").iterdir()):
    spoil("cache", sys.argv[2])
assert len(store.at("one").items()) == COUNT
two = store.make_version("one", update={f"k{i}": b"else" for i in range(0, COUNT, 3)})
assert store.at(two)["k3"] == b"else" and store.at(two)["k4"] == value(4)
store.close()
with opened() as store:
    assert len(store.at(two).items()) == COUNT and len(store.at("one").items()) == COUNT
    assert not store.verify().damages
""",
        tmp_path / "store",
        how,
        opened,
    )


@pytest.mark.parametrize("how", ["emptied", "cut", "overwritten"])
def test_caches_are_spoiled_while_who_wrote_them_uses_them(tmp_path: Path, how: str) -> None:
    run(
        """
with llvs.Store(path, durability="normal") as store:
    store.make_version(None, id="one", insert={f"k{i}": value(i) for i in range(COUNT)})
    assert len(store.at("one").items()) == COUNT
    spoil("cache", sys.argv[2])
    assert looks_at_all(store, "one") == len(ASKED)
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
    assert looks_at_all(store, "one") < len(ASKED)
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


@pytest.mark.parametrize("durability", ["normal", "full"])
@pytest.mark.parametrize("left", ["nothing", "half of its header", "the first version", "a part of the second version"])
def test_a_segment_is_cut_short_while_it_is_written(tmp_path: Path, left: str, durability: str) -> None:
    """Remaining versions stay, lost ones are errors, and later saves are there when the store is opened again."""
    run(
        """
[left, durability] = sys.argv[2:]
with llvs.Store(path, durability=durability) as store:
    store.make_version(None, id="one", insert={f"k{i}": value(i) for i in range(100)})
    [segment] = (path / "segments").glob("*.seg")
    first = len(segment.read_bytes().rstrip(bytes(1)))
    store.make_version("one", id="two", update={f"k{i}": b"two" for i in range(100)})
    second = len(segment.read_bytes().rstrip(bytes(1)))
    size = {"nothing": 0, "half of its header": 30, "the first version": first, "a part of the second version": (first + second) // 2}[left]
    with segment.open("r+b") as opened:
        opened.truncate(size)
    def reads(version, id):
        try:
            return store.at(version)[id]
        except llvs.Error as error:
            assert error.code in (llvs.ErrorCode.DAMAGED, llvs.ErrorCode.NOT_FOUND), error
    assert reads("one", "k7") == (value(7) if size >= first else None)
    assert reads("two", "k7") is None
    messages = []
    with llvs.log.observe_log(lambda level, message: messages.append(message), "error"):
        store.make_version(None, id="three", insert={"more": b"1"}, root=True)
    assert len(messages) == 1 and "was cut short while it was being written" in messages[0], messages
    store.make_version("three", id="four", insert={"yet more": b"2"})
    if size >= first:
        store.make_version("one", id="five", insert={"k100": b"3"})
    assert store.at("four").items() == {"more": b"1", "yet more": b"2"}.items()
    assert store.verify().damages
    store.reload()
with llvs.Store(path) as store:
    assert store.at("four").items() == {"more": b"1", "yet more": b"2"}.items()
    assert size < first or (store.at("five")["k7"], store.at("five")["k100"]) == (value(7), b"3")
    assert reads("one", "k7") == value(7) if size >= first else store.version("one") is None
""",
        tmp_path / "store",
        left,
        durability,
    )


def test_heads_are_merged_without_one_that_is_damaged(tmp_path: Path) -> None:
    """The damaged head remains a head, also beside a coordinator that saves, and is merged after a retrieve has repaired it."""
    run(
        """
folder = path.parent / "exchange"
with llvs.Store(path, durability="normal") as store:
    store.make_version(None, id="root", insert={"k0": b"0"})
    with llvs.Store(path, durability="normal") as other:
        # Too many changes for the cache in memory.
        other.make_version("root", id="damaged", insert={f"kd {i}": b"d" for i in range(1_500)})
        last = other.make_version("damaged", id="behind", insert={"kb": b"b"})
        [segment] = {file for file in (path / "segments").glob("*.seg") if b"damaged" in file.read_bytes()}
        llvs.Exchange(other, folder.as_uri()).send()
    for id in ("one", "two", "three"):
        store.make_version("root", id=id, insert={f"k {id}": b"1"})
    with segment.open("r+b") as opened:
        opened.truncate(100)
    messages = []
    with llvs.log.observe_log(lambda level, message: messages.append(message), "warning"):
        merged = store.merge_heads("one")
    assert merged is not None and store.at(merged).keys() == {"k0", "k one", "k two", "k three"}
    assert any("1 heads of" in message and "were not merged, and stay heads" in message for message in messages), messages
    # There is nothing to merge any more; the damage at the version itself is an error.
    assert store.merge_heads(merged) is None
    for into in ("damaged", "behind"):
        try:
            store.merge_heads(into)
            raise SystemExit("it was merged")
        except llvs.Error as error:
            assert error.code == llvs.ErrorCode.DAMAGED, error
    with llvs.Exchange(store, folder.as_uri()) as exchange:
        assert "damaged" in [str(id) for id in exchange.retrieve().repaired]
    whole = store.merge_heads(merged)
    assert whole is not None and store.at(whole).keys() == {"k0", "k one", "k two", "k three", "kb"} | {f"kd {i}" for i in range(1_500)}
    assert [str(head.id) for head in store.heads()] == [str(whole.id)]
""",
        tmp_path / "store",
    )
