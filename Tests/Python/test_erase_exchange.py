"""Erasing and exchanging: what was erased is not sent, does not come back, and holds nothing back."""

from __future__ import annotations

import random
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any, Callable

import every_byte
import llvs
import pytest
from packs import reader
from waiting import GUARD

#: A way from one device to another, and how a device sends to it and receives from it.
WAYS = ("packed", "encrypted", "interchange", "bridged", "stream", "link", "snapshot")
PLACES = ("packed", "encrypted", "interchange", "bridged")
PAIRING, IDENTITY = llvs.live.make_pairing(), llvs.exchange.make_identity().secret


def secret(seed: int = 1, size: int = 39) -> bytes:
    """Bytes that deflate cannot shorten, and that JSON has as they are."""
    return b"secret-" + b"%x" % random.Random(seed).getrandbits(4 * (size - 7))


SECRETS = {"small": secret(1), "larger": secret(2, 70_000), "vast": secret(3, 1_100_000)}


def remote(place: Path, way: str) -> llvs.Remote:
    place.mkdir(exist_ok=True)
    if way == "encrypted":
        # A passphrase would take a fifth of a second at each opening.
        return llvs.Remote(place.as_uri(), identity=IDENTITY)
    return llvs.Remote(place.as_uri(), layout=way)  # type: ignore[arg-type]


def linked(one: llvs.Store, other: llvs.Store) -> None:
    with llvs.live.Listener(("127.0.0.1", 0)) as listener:
        listener.offer(one, PAIRING)
        with llvs.live.connect(other, listener.address, PAIRING) as peer:
            assert peer.wait(GUARD)


def carry(way: str, sender: llvs.Store, receiver: llvs.Store, place: Path, verify: bool = False) -> None:
    """Carries all versions of the sender to the receiver. Nothing is reported as a problem."""
    if way == "link":
        return linked(sender, receiver)
    if way == "stream":
        packed = sender.pack()
        assert not packed.result.problems and not receiver.unpack(packed).problems
    elif way == "snapshot":
        sender.write_snapshot(place)
        if len(list(receiver.history())) <= 1:
            receiver.restore_snapshot(place)
    else:
        with llvs.Exchange(sender, remote(place, way)) as exchange:
            assert not exchange.send().problems
        with llvs.Exchange(receiver, remote(place, way)) as exchange:
            result = exchange.verify() if verify else exchange.retrieve()
            assert not result.problems


def reads(store: llvs.Store, version: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for id in store.at(version):
        if not id.startswith("__llvs_forget/"):
            try:
                value = store.value(id, at=version)
                found[id] = value and value.data
            except llvs.errors.GoneError as error:
                found[id] = type(error).__name__
    return found


def assert_nowhere(folder: Path) -> None:
    for value in SECRETS.values():
        assert every_byte.find(folder, value[:64]) == {}


def assert_sound(store: llvs.Store) -> None:
    report = store.verify()
    assert (report.damages, report.pending) == ((), 0)


@pytest.fixture(params=("file", "sqlite"))
def storage(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def opened(tmp_path: Path, storage: str) -> Callable[[str], llvs.Store]:
    """Opens the store of a device, in a folder of its own."""

    def open(name: str, **options: Any) -> llvs.Store:
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        return llvs.Store(folder / "store", storage=storage, options=llvs.StoreOptions(**options))  # type: ignore[arg-type]

    return open


@pytest.mark.parametrize("way", WAYS)
def test_a_version_erased_before_it_was_sent(way: str, opened: Callable[[str], llvs.Store], tmp_path: Path) -> None:
    """It goes without the bytes, so that its successors arrive: to a second device, and by that to a third one."""
    with opened("a") as a:
        first = a.make_version(insert={**SECRETS, "note": b"1"})
        report = a.erase(*SECRETS)
        last = a.make_version(report.made[0], update={"note": b"2"})
    with opened("a") as a, opened("b") as b, opened("c") as c:
        carry(way, a, b, tmp_path / "place")
        assert reads(b, first) == {**dict.fromkeys(SECRETS, "ForgottenError"), "note": b"1"}
        assert reads(b, last) == {"note": b"2"} and b.value_size("vast", at=first) == len(SECRETS["vast"])
        assert [order.state.value for order in b.erasures()] == ["not valid"] and b.verify().forgotten == len(SECRETS)
        assert b.verify().vouched == a.verify().vouched
        theirs = b.make_version(last, insert={"more": b"3"})
        carry(way, b, c, tmp_path / "second place")
        assert reads(c, theirs) == {"note": b"2", "more": b"3"} and reads(c, first) == reads(b, first)
        if way != "snapshot":
            carry(way, c, a, tmp_path / "second place")
            assert reads(a, theirs) == reads(c, theirs)
        for store in (a, b, c):
            assert_sound(store)
    assert_nowhere(tmp_path)
    with opened("b") as b:
        assert reads(b, first) == {**dict.fromkeys(SECRETS, "ForgottenError"), "note": b"1"}
        assert_sound(b)


@pytest.mark.parametrize("way", WAYS)
def test_it_does_not_come_back(way: str, opened: Callable[[str], llvs.Store], tmp_path: Path) -> None:
    """Another device and the place have the bytes, and are exchanged with twice."""
    with opened("a") as a, opened("b") as b:
        first = a.make_version(insert={**SECRETS, "note": b"1"})
        carry(way, a, b, tmp_path / "place")
        assert reads(b, first) == {**SECRETS, "note": b"1"}
        last = b.make_version(first, update={"note": b"2"})
        a.erase(*SECRETS)
        for verify in (False, True):
            carry(way, b, a, tmp_path / "place", verify)
            carry(way, a, b, tmp_path / "place")
        expected = {**dict.fromkeys(SECRETS, "ErasedError"), "note": b"1"}
        assert reads(a, first) == expected and reads(b, first) == {**SECRETS, "note": b"1"}
        if way != "snapshot":
            assert reads(a, last) == {**expected, "note": b"2"}
        assert_sound(a)
    assert_nowhere(tmp_path / "a")
    with opened("a") as a:
        assert reads(a, first) == expected
        assert_sound(a)


@pytest.mark.parametrize("storage", ["file"])
@pytest.mark.parametrize("way", [*PLACES, "stream"])
def test_a_damaged_record_is_repaired_without_them(way: str, opened: Callable[..., llvs.Store], tmp_path: Path) -> None:
    """The version is damaged on the device that erased its values: others have it whole, and it is taken without them."""
    with opened("a") as a, opened("b") as b:
        first = a.make_version(insert={**SECRETS, "note": b"a note to damage"})
        carry(way, a, b, tmp_path / "place")
        a.erase(*SECRETS)
    damaged = 0
    for path in (tmp_path / "a").rglob("*.seg"):
        data = path.read_bytes()
        damaged += data.count(b"a note to damage")
        path.write_bytes(data.replace(b"a note to damage", b"a note to dXmage"))
    assert damaged == 1
    with opened("a") as a, opened("b") as b:
        assert a.verify().damages
        carry(way, b, a, tmp_path / "place", verify=True)
        assert reads(a, first) == {**dict.fromkeys(SECRETS, "ErasedError"), "note": b"a note to damage"}
        # The damaged record is still in its segment.
        assert {damage.lost for damage in a.verify().damages} == {llvs.store.Loss.NOTHING}
    assert_nowhere(tmp_path / "a")


@pytest.mark.parametrize("way", PLACES)
def test_others_bytes_are_kept_at_the_place(way: str, opened: Callable[[str], llvs.Store], tmp_path: Path) -> None:
    """An order counts on one device. Where others have the bytes, and a place has them, they stay: also when packs are merged."""
    with opened("a") as a:
        first = head = a.make_version(insert={**SECRETS, "note": b"0"})
        with llvs.Exchange(a, remote(tmp_path / "place", way)) as exchange:
            exchange.send()
            head = a.version(a.erase(*SECRETS).made[0])  # type: ignore[assignment]
            for number in range(40):
                head = a.make_version(head, update={"note": b"%d" % number})
                result = exchange.send()
                assert not result.problems
            assert not exchange.verify().problems
    if way == "packed":
        # The packs around that of the version are merged.
        merged = versions_of(tmp_path / "place", "base")
        assert len(merged) > 8 and first.id not in merged
        assert first.id in versions_of(tmp_path / "place", "log")
    with opened("b") as b, llvs.Exchange(b, remote(tmp_path / "place", way)) as exchange:
        assert not exchange.retrieve().problems
        assert reads(b, first) == {**SECRETS, "note": b"0"} and reads(b, head) == {"note": b"39"}


def versions_of(place: Path, kind: str) -> set[str]:
    """The versions of the packs at a place."""
    found: set[str] = set()
    stores = [reader.read_root(str(path.relative_to(place)), path.read_bytes())[0] for path in place.glob("pack1/root-*")]
    for path in (place / f"pack1/{kind}").iterdir():
        pack = reader.read_pack(str(path.relative_to(place)), path.read_bytes(), stores)
        found |= {*pack.versions, *pack.problems}
    return found


@pytest.mark.parametrize("way", PLACES)
def test_bytes_that_come_later(way: str, opened: Callable[[str], llvs.Store], tmp_path: Path) -> None:
    """A place has a version without bytes, and a device has them: it sends them, and whoever lacks them takes them. The device that
    erased them does not."""
    place = tmp_path / "place"
    with opened("a") as a, opened("b") as b, opened("c") as c:
        first = a.make_version(insert={**SECRETS, "note": b"1"})
        # This device has the bytes in another way, before they are erased.
        assert not c.unpack(a.pack()).problems
        a.erase(*SECRETS)
        carry(way, a, b, place)
        assert reads(b, first) == {**dict.fromkeys(SECRETS, "ForgottenError"), "note": b"1"}
    for _ in range(2):
        with opened("a") as a, opened("b") as b, opened("c") as c:
            with llvs.Exchange(c, remote(place, way)) as exchange:
                assert not exchange.retrieve().problems and not exchange.send().problems
            with llvs.Exchange(b, remote(place, way)) as exchange:
                assert not exchange.retrieve().problems and not exchange.send().problems
            assert reads(b, first) == reads(c, first) == {**SECRETS, "note": b"1"}
            with llvs.Exchange(a, remote(place, way)) as exchange:
                assert not exchange.retrieve().problems and not exchange.send().problems
            assert reads(a, first) == {**dict.fromkeys(SECRETS, "ErasedError"), "note": b"1"}
            for store in (a, b, c):
                assert_sound(store)
    assert_nowhere(tmp_path / "a")
    # A device that comes now gets them as well.
    with opened("d") as d, llvs.Exchange(d, remote(place, way)) as exchange:
        assert not exchange.retrieve().problems and reads(d, first) == {**SECRETS, "note": b"1"}


def names(path: Path) -> set[str]:
    return {str(file.relative_to(path)) for file in path.rglob("*") if file.is_file()}


@pytest.mark.parametrize("way", WAYS)
def test_lost_versions_come_back_without_them(way: str, opened: Callable[[str], llvs.Store], storage: str, tmp_path: Path) -> None:
    """The store that erased values lost its versions. Its orders are kept beside them, and another device has all versions whole."""
    with opened("a") as a, opened("b") as b:
        first = a.make_version(insert={**SECRETS, "note": b"1"})
        carry(way, a, b, tmp_path / "place")
        report = a.erase(*SECRETS)
        carry(way, a, b, tmp_path / "place")
    lost = [path for path in (tmp_path / "a").rglob("*") if path.is_file() and "erasures" not in path.name]
    assert any("erasures" in name for name in names(tmp_path / "a"))
    for path in lost:
        path.unlink()
    with opened("a") as a, opened("b") as b:
        assert list(a.history()) == [] and [order.id for order in a.erasures()] == list(report.orders)
        for _ in range(2):
            # The bytes are at the place and on the other device.
            carry(way, b, a, tmp_path / "place")
        assert reads(b, first) == {**SECRETS, "note": b"1"}
        assert reads(a, first) == {**dict.fromkeys(SECRETS, "ErasedError"), "note": b"1"}
        assert_sound(a)
    assert_nowhere(tmp_path / "a")


WAITING = """
import os, sqlite3, sys
import llvs
path, storage, data = sys.argv[1], sys.argv[2], bytes.fromhex(sys.argv[3])
store = llvs.Store(path, storage=storage)
other = llvs.Store(path, storage=storage)
other.make_version(insert={"k": data, "l": b"l"})
if storage == "sqlite":
    reader = sqlite3.connect(path)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM records").fetchall()
store.reload()
report = store.erase("k")
assert report.waiting, report
os.kill(os.getpid(), 9)
"""


@pytest.mark.parametrize("without_caches", [False, True])
def test_a_waiting_order_of_a_killed_process(storage: str, without_caches: bool, tmp_path: Path) -> None:
    """The next opening follows it, also if all caches were deleted."""
    path = tmp_path / "store"
    data = SECRETS["small"]
    done = subprocess.run([sys.executable, "-c", WAITING, str(path), storage, data.hex()], timeout=GUARD, capture_output=True, text=True)
    assert done.returncode == -9, done.stderr
    assert every_byte.find(tmp_path, data)
    if without_caches:
        if storage == "sqlite":
            with sqlite3.connect(path) as database:
                database.execute("DELETE FROM caches")
            database.close()
        else:
            shutil.rmtree(path / "cache", ignore_errors=True)
    with llvs.Store(path, storage=storage) as store:  # type: ignore[arg-type]
        (order,) = store.erasures()
        assert order.followed
        (first,) = [version for version in store.history() if not version.predecessors]
        assert reads(store, first) == {"k": "ErasedError", "l": b"l"}
        assert_sound(store)
    assert every_byte.find(tmp_path, data) == {}


def test_a_restored_database(tmp_path: Path) -> None:
    """The next opening follows the orders beside it."""
    path, data = tmp_path / "store.db", SECRETS["small"]
    with llvs.Store(path, storage="sqlite") as store:
        first = store.make_version(insert={"k": data, "l": b"l"})
    copy = path.read_bytes()
    with llvs.Store(path, storage="sqlite") as store:
        store.erase("k")
    assert every_byte.find(tmp_path, data) == {}
    path.write_bytes(copy)
    assert every_byte.find(tmp_path, data)
    with llvs.Store(path, storage="sqlite") as store:
        assert store.erasures()[0].followed
        assert reads(store, first) == {"k": "ErasedError", "l": b"l"}
    assert every_byte.find(tmp_path, data) == {}


@pytest.mark.parametrize("way", PLACES)
def test_bytes_that_come_after_an_erasure(way: str, opened: Callable[[str], llvs.Store], tmp_path: Path) -> None:
    """A device got a version without bytes, and erases its values: the bytes that come later are not stored."""
    place = tmp_path / "place"
    with opened("a") as a, opened("b") as b, opened("c") as c:
        first = a.make_version(insert={**SECRETS, "note": b"1"})
        assert not c.unpack(a.pack()).problems
        a.erase(*SECRETS)
        carry(way, a, b, place)
        report = b.erase(*SECRETS)
        assert (report.values, len(report.orders)) == (0, 1) and b.erase(*SECRETS).orders == ()
        assert reads(b, first) == {**dict.fromkeys(SECRETS, "ErasedError"), "note": b"1"}
        for _ in range(2):
            carry(way, c, b, place)
            carry(way, b, c, place)
        assert reads(b, first) == {**dict.fromkeys(SECRETS, "ErasedError"), "note": b"1"}
        assert reads(c, first) == {**SECRETS, "note": b"1"}
        assert_sound(b)
    assert_nowhere(tmp_path / "b")
