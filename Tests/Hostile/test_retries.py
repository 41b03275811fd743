"""A packed place with files of a hostile device that cannot be added. The versions of honest devices are received first, and the number of
requests grows only in proportion to those files.

Requests and bytes are counted at a stand-in, at n and at 4n.
"""

from __future__ import annotations

import dataclasses
import hashlib
import io
import os
import sys
from collections import Counter
from pathlib import Path
from typing import Callable, Iterator, Optional

import pytest

import llvs

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "Python"))

from packs import records, writer  # noqa: E402
from packs.names import parse  # noqa: E402

EVIL, SALT, NOWHERE = b"EVILWRIT", bytes(range(16)), b"\xee" * 16
SIZES = (16, 64)


class Shelf(llvs.exchange.RemoteFiles):
    """Files in memory."""

    name = "shelf"

    def __init__(self, files: dict[str, bytes], limit: Optional[int] = None) -> None:
        self.files, self.calls, self.bytes = files, list[str](), 0
        self.limit, self.cancel = limit, llvs.CancelToken()

    def _call(self, what: str) -> None:
        self.calls.append(what)
        if self.limit is not None and len(self.calls) >= self.limit:
            self.cancel.cancel()

    def list(self, directory: str) -> Iterator[llvs.exchange.RemoteFile]:
        self._call(f"list {directory}")
        folders = set()
        for name, data in list(self.files.items()):
            parent, _, last = name.rpartition("/")
            if parent == directory:
                yield llvs.exchange.RemoteFile(last, len(data))
            elif parent.startswith(f"{directory}/"):
                folders.add(parent[len(directory) + 1 :].partition("/")[0])
        for folder in sorted(folders):
            yield llvs.exchange.RemoteFile(folder, 0, is_directory=True)

    def read(self, name: str, offset: int, size: int) -> Optional[bytes]:
        self._call(f"read {name}")
        data = self.files.get(name)
        if data is None:
            return None
        data = data[offset : offset + size if size else None]
        self.bytes += len(data)
        return data

    def publish(self, name: str, file: llvs.exchange.OutgoingFile, replaces: bool) -> bool:
        self._call(f"publish {name}")
        out = io.BytesIO()
        file.write_to(out)
        if name in self.files and not replaces:
            return False
        self.files[name] = out.getvalue()
        return True

    def delete(self, name: str) -> None:
        self._call(f"delete {name}")
        self.files.pop(name, None)


class Place:
    """Files that several devices share, and to which another program writes."""

    def __init__(self, new_store: Callable[[], llvs.Store]) -> None:
        self.files = dict[str, bytes]()
        self.first = new_store()
        self.first.make_version(insert={"k": b"1"})
        self.sync(self.first)

    @property
    def store_id(self) -> bytes:
        return next(data for name, data in self.files.items() if "root-" in name)[16:32]

    def lay(self, who: bytes, *versions: records.Made, number: int = 1) -> None:
        name, data = writer.pack(self.store_id, SALT, who, number, number, versions)
        self.files[name] = data

    def sync(self, store: llvs.Store) -> Shelf:
        shelf = Shelf(self.files)
        with llvs.Exchange(store, llvs.Remote(shelf, layout="packed")) as way:
            way.retrieve()
            way.send()
        return shelf

    def counts(self, store: llvs.Store) -> Counter[str]:
        """Returns how often files were read, by directory."""
        return Counter(call.split("/")[1] for call in self.sync(store).calls if call.startswith("read pack1/"))


@pytest.fixture
def place(new_store: Callable[[], llvs.Store]) -> Place:
    return Place(new_store)


def missing(number: int) -> records.BlobReference:
    """Refers to a value of 2 MiB that does not exist."""
    sha = hashlib.sha256(b"%d" % number).digest()
    return records.BlobReference(sha[:16], 2 << 20, sha, (NOWHERE,))


def lacking(number: int, *others: records.BlobReference) -> records.Made:
    """Makes a version that refers to a missing value, and to others."""
    blobs = [missing(number), *others]
    named = {b"x%d" % at: blob for at, blob in enumerate(blobs)}
    return records.made(records.record(f"evil{number:06}", (), 3.0, blobs=named), blobs)


def honest_value(place: Place) -> tuple[bytes, records.BlobReference]:
    """Sends a value of several parts, as an honest device does."""
    value = os.urandom((20 << 20) + 1)
    place.first.make_version(place.first.most_recent_head, insert={"photo": value})
    place.sync(place.first)
    parts = sorted((parse(name) for name in place.files if "/blob/" in name), key=lambda name: name.first)
    return value, records.reference(value, [part.id for part in parts])


@pytest.mark.parametrize("count", SIZES)
def test_values_that_are_nowhere_cost_no_reads(place: Place, new_store: Callable[[], llvs.Store], count: int) -> None:
    place.lay(EVIL, *map(lacking, range(count)))
    device = new_store()
    assert place.counts(device)["blob"] <= 5
    for _ in range(3):
        counts = place.counts(device)
        assert counts["blob"] == 0 and counts["log"] <= 1
    assert len(device.heads()) == 1


@pytest.mark.parametrize("count", SIZES)
def test_packs_that_unlock_one_another_are_read_once(place: Place, new_store: Callable[[], llvs.Store], count: int) -> None:
    for number in range(count):
        place.lay(b"M%07d" % number, lacking(number))
        behind = (f"chain{number + 1:06}",) if number + 1 < count else ()
        # The predecessor of each version is in the next pack.
        version = records.made(records.record(f"chain{number:06}", behind, 3.0, {b"k": b"x"}))
        place.lay(b"CHAINWRT", version, number=number + 1)
    device = new_store()
    counts = place.counts(device)
    assert counts["log"] == 2 * count + 1 and counts["blob"] <= 5
    assert len(list(device.history())) == count + 1
    for _ in range(3):
        counts = place.counts(device)
        assert counts["blob"] == counts["log"] == 0


@pytest.mark.parametrize("count", SIZES)
def test_packs_that_wait_are_not_read_again(place: Place, new_store: Callable[[], llvs.Store], count: int) -> None:
    for number in range(count):
        waits = records.made(records.record(f"waits{number:06}", (f"nowhere{number}",), 3.0, {b"k": b"x"}))
        place.lay(b"W%07d" % number, waits)
    device = new_store()
    assert place.counts(device)["log"] == count + 1
    for number in range(3):
        version = place.first.make_version(place.first.most_recent_head, insert={f"n{number}": b"1"})
        place.sync(place.first)
        assert place.counts(device)["log"] == 1 and version.id in {head.id for head in device.heads()}


@pytest.mark.parametrize("count", SIZES)
def test_no_value_is_fetched_for_versions_that_lack_another(place: Place, new_store: Callable[[], llvs.Store], count: int) -> None:
    value, reference = honest_value(place)
    laid = sum(map(len, place.files.values()))
    for number in range(count):
        place.lay(b"E%07d" % number, lacking(number, reference))
    device = new_store()
    shelf = place.sync(device)
    assert shelf.bytes < 1.1 * laid + 4_096 * count
    assert device.at(device.most_recent_head)["photo"] == value
    for _ in range(2):
        assert place.sync(device).bytes < 4_096 * count


@pytest.mark.parametrize("count", SIZES)
def test_versions_that_are_refused_do_not_fetch_a_value_again_and_again(
    place: Place, new_store: Callable[[], llvs.Store], count: int
) -> None:
    value, reference = honest_value(place)
    for number in range(count):
        version = records.made(records.record(f"evil{number:06}", (), 3.0, blobs={b"x": reference}), [reference])
        # The index names another version than the pack contains.
        place.lay(b"A%07d" % number, dataclasses.replace(version, identity8=bytes(8)))
    device = new_store()
    reads = Counter(call for call in place.sync(device).calls if call.startswith("read pack1/blob/"))
    assert max(reads.values()) == 1
    assert device.at(device.most_recent_head)["photo"] == value
    assert all("/blob/" not in call for call in place.sync(device).calls)


def test_honest_devices_with_little_time_keep_in_step(place: Place, new_store: Callable[[], llvs.Store]) -> None:
    """Each exchange is cancelled after a few requests, as on a phone that lets a program run for a few seconds."""
    second = new_store()
    place.sync(second)
    for number in range(400):
        place.lay(b"M%07d" % number, lacking(number))
        name = parse(writer.pack(place.store_id, SALT, b"T%07d" % number, 1, 1, [])[0])
        assert name is not None
        place.files[str(name)] = b"torn"

    def brief(store: llvs.Store) -> None:
        shelf = Shelf(place.files, 120)
        with llvs.Exchange(store, llvs.Remote(shelf, layout="packed")) as way:
            try:
                way.retrieve(cancel=shelf.cancel)
                way.send(cancel=shelf.cancel)
            except llvs.CancelledError:
                pass

    # Each hostile file is read once, spread over several exchanges.
    for _ in range(10):
        for store in (place.first, second):
            brief(store)
    for number in range(5):
        for store in (place.first, second):
            store.make_version(store.most_recent_head, insert={f"{number} {id(store)}": b"1"})
        for store in (place.first, second, place.first):
            brief(store)
        assert {head.id for head in place.first.heads()} == {head.id for head in second.heads()}


def test_equal_values_that_take_much_room_come_by_and_by(place: Place, new_store: Callable[[], llvs.Store]) -> None:
    """Preallocated files: many copies of the same bytes take little space at the place. One exchange reads a part, and the next
    continues."""
    for number in range(19):
        place.first.make_version(place.first.most_recent_head, insert={f"disk {number}": bytes(16 << 20), "last": b"%d" % number})
    place.sync(place.first)
    second = new_store()
    place.sync(second)
    assert len(list(second.history())) < len(list(place.first.history()))
    place.sync(second)
    assert second.most_recent_head.id == place.first.most_recent_head.id
    assert second.at(second.most_recent_head)["last"] == b"18"
