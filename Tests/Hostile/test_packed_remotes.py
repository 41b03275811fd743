"""A folder in the packed layout to which another program writes. Files that it adds or cuts short do honest devices no lasting harm."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

import llvs

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "Python"))

from packs import reader, records, writer  # noqa: E402

EVIL, SALT = b"EVILWRIT", bytes(range(16))


class Place:
    """A folder, and honest devices that exchange through it."""

    def __init__(self, path: Path) -> None:
        self.path, self.folder = path, path / "remote"
        self.folder.mkdir()

    def device(self, name: str) -> llvs.Store:
        return llvs.Store(self.path / name, durability="normal")

    def sync(self, *stores: llvs.Store) -> None:
        for store in stores:
            with llvs.Exchange(store, llvs.Remote(f"file://{self.folder}?layout=packed")) as way:
                way.retrieve()
                way.send()

    def files(self) -> set[str]:
        return {str(path.relative_to(self.folder)) for path in self.folder.rglob("*") if path.is_file()}

    @property
    def store_id(self) -> bytes:
        root = next(name for name in self.files() if "root-" in name)
        return (self.folder / root).read_bytes()[16:32]

    def put(self, file: tuple[str, bytes]) -> Path:
        path = self.folder / file[0]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(file[1])
        return path


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def save(store: llvs.Store, **values: bytes) -> llvs.Version:
    return store.make_version(store.most_recent_head, insert=values)


def count(store: llvs.Store) -> int:
    return len(list(store.history()))


def false_reference(place: Place, value: bytes) -> Path:
    """Makes a pack with a version that no device can accept: it names a stored value, in parts that do not exist."""
    blob = records.reference(value, [b"\xee" * 16])
    evil = records.made(records.record("evil", (), 3.0, blobs={b"x": blob}), [blob])
    return place.put(writer.pack(place.store_id, SALT, EVIL, 1, 1, [evil]))


def test_a_false_reference_does_not_replace_the_right_one(place: Place) -> None:
    value = os.urandom(2 << 20)
    with place.device("a") as a, place.device("b") as b, place.device("c") as c:
        save(a, photo=value)
        place.sync(a, b)
        evil = false_reference(place, value)
        place.sync(a, b)
        for number in range(14):  # enough to be folded
            save(a, **{f"n{number}": b"1"})
            place.sync(a)
        evil.unlink()
        folded = [name for name in place.files() if "/base/" in name]
        assert folded
        # Merged packs are deleted later: a new device receives only the resulting pack.
        for name in folded:
            data = (place.folder / name).read_bytes()
            for replaced in reader.read_pack(name, data, [place.store_id], len(data)).replaces:
                (place.folder / replaced).unlink(missing_ok=True)
        place.sync(c)
        assert count(c) == count(a) and dict(c.at(c.most_recent_head).items())["photo"] == value


def test_a_false_reference_keeps_no_value_from_being_sent(place: Place) -> None:
    value = os.urandom(2 << 20)
    with place.device("a") as a, place.device("b") as b:
        save(a, k=b"1")
        place.sync(a, b)
        evil = false_reference(place, value)
        place.sync(a, b)
        save(a, photo=value)
        place.sync(a, b)
        evil.unlink()
        place.sync(a, b)
        assert count(b) == count(a) == 2 and dict(b.at(b.most_recent_head).items())["photo"] == value


@pytest.mark.parametrize("left", [10, 0])
def test_a_pack_that_is_cut_is_sent_again(place: Place, left: int) -> None:
    with place.device("a") as a, place.device("b") as b:
        save(a, k=b"1")
        place.sync(a, b)
        save(a, k2=b"2")
        before = place.files()
        place.sync(a)
        (new,) = place.files() - before
        os.truncate(place.folder / new, left)
        for number in range(4):
            save(a, **{f"n{number}": b"1"})
            place.sync(a, b)
        assert count(b) == count(a) == 6


@pytest.mark.parametrize("size, values, versions", [(16 << 20, 40, 1), (60_000_000, 1, 4), (1_000, 1, 1)])
def test_values_deflated_within_deflated_blocks_are_refused(place: Place, size: int, values: int, versions: int) -> None:
    """The packs hold a few KB that inflate to zeros. The honest pack beside them is received, with little memory and disk space."""
    with place.device("a") as a:
        save(a, k=b"1")
        place.sync(a)
        bombs = [records.made(records.deflated(f"bomb{number}", size, values)) for number in range(versions)]
        path = place.put(writer.pack(place.store_id, SALT, EVIL, 1, 1, bombs))
        assert path.stat().st_size < 100_000
        save(a, k2=b"2")
        place.sync(a)
    program = f"""
import llvs
with llvs.Store({str(place.path / 'b')!r}) as b:
    with llvs.Exchange(b, llvs.Remote("file://{place.folder}?layout=packed")) as way:
        got = way.retrieve()
    assert len(got.retrieved) == 2, got
    assert set(problem.code for problem in got.problems) == set([llvs.ErrorCode.DAMAGED]), got.problems
    assert all("deflated within its record" in problem.reason for problem in got.problems), got.problems
# The peak of this program alone. getrusage reports the parent's peak if that was higher.
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 300 << 10  # KiB
    assert sum(file.stat().st_size for file in (place.path / "b").rglob("*") if file.is_file()) < 1 << 20


def test_a_large_value_under_many_names_takes_room_in_proportion(place: Place) -> None:
    """A folder of a few KB contains a version that would need half a gigabyte. Versions of reasonable size beside it are received."""
    value = bytes(8 << 20)
    with place.device("a") as a, place.device("b") as b:
        save(a, k=b"1")
        place.sync(a)
        part = writer.blob_part(place.store_id, SALT, EVIL, hashlib.sha256(value).digest()[:16], 0, value)
        place.put(part)
        blob = records.reference(value, [hashlib.sha256(part[1]).digest()[:16]])
        for number, (id, keys) in enumerate([("evil", 64), ("fair", 2)], 1):
            version = records.made(records.record(id, (), 3.0, blobs={b"%02d" % key: blob for key in range(keys)}), [blob])
            place.put(writer.pack(place.store_id, SALT, EVIL, number, number, [version]))
        for _ in range(2):
            with llvs.Exchange(b, llvs.Remote(f"file://{place.folder}?layout=packed")) as way:
                problems = way.retrieve().problems
                way.send()
            assert {head.id for head in b.heads()} == {"fair", a.most_recent_head.id}
            (problem,) = problems
            assert problem.code == llvs.ErrorCode.TOO_LARGE and str(place.folder) in problem.reason
        save(a, k2=b"2")
        place.sync(a, b)
        assert count(b) == count(a) == 3


def test_a_removed_root_is_restored(place: Place) -> None:
    """Without the root no new device reads the packs. In a folder the next device that exchanges restores it, even if it has nothing to
    send."""
    with place.device("a") as a, place.device("c") as c:
        save(a, x=b"1")
        place.sync(a)
        (root,) = (name for name in place.files() if "root-" in name)
        was = (place.folder / root).read_bytes()
        for _ in range(2):
            (place.folder / root).unlink()
            place.sync(a)
            assert (place.folder / root).read_bytes() == was
        place.sync(c)
        assert count(c) == count(a)
        # An emptied folder counts as a new place, so the device writes nothing to it.
        for name in place.files():
            (place.folder / name).unlink()
        with pytest.raises(llvs.Error, match="was emptied"):
            place.sync(a)
        assert not place.files()
        # The same holds if the folder has the root of another store.
        with place.device("d") as d:
            save(d, y=b"2")
            place.sync(d)
        before = place.files()
        with llvs.Exchange(a, llvs.Remote(f"file://{place.folder}?layout=packed")) as way:
            with pytest.raises(llvs.Error, match="the place of another store"):
                way.send()
        assert place.files() == before
        # The user then allows the device to join it.
        with llvs.Exchange(a, llvs.Remote(f"file://{place.folder}?layout=packed"), restoration_state=b"new") as way:
            assert len(way.retrieve().retrieved) == 1 and len(way.send().sent) == 1
