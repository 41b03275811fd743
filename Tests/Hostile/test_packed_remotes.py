"""A folder in the packed layout into which somebody else writes: what he adds or cuts costs the honest devices nothing for good."""

from __future__ import annotations

import hashlib
import os
import struct
import subprocess
import sys
import zlib
from pathlib import Path

import pytest

import llvs

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "Python"))

import format_reader as engine  # noqa: E402
from packs import reader, records, writer  # noqa: E402
from packs.records import varint, version_id  # noqa: E402

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
    """A pack with a version that nobody can take: it names a value that is there, in parts that are not."""
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
        # What a fold was made from is deleted after a while: a new device has the fold alone.
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


def deflated(id: str, size: int, values: int) -> bytes:
    """A record whose values are so many zeros each, deflated."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    stored = packer.compress(bytes(size)) + packer.flush()
    digest = hashlib.sha256(bytes(size)).digest()
    entries = bodies = b""
    for number in range(values):
        key = b"%03d" % number
        entries += bytes([1 | 1 << 3 | 32]) + varint(len(key)) + key + varint(size) + varint(len(stored)) + digest
        length = struct.pack("<I", len(stored))
        bodies += struct.pack("<I", engine.checksum(length, key, id.encode(), stored)) + length + stored
    page = b"\0\0" + entries
    length = struct.pack("<I", len(page))
    table = struct.pack("<I", engine.checksum(length, page)) + length + page
    header = version_id(id) + varint(0) + struct.pack("<d", 3.0) + varint(size * values) + varint(values) + varint(1) + varint(0) * 3
    prelude = struct.pack("<BBHIQQ", 1, 0, 0, len(header), len(table), len(bodies))
    return prelude + struct.pack("<I", engine.checksum(prelude, header)) + header + table + bodies


def test_a_bomb_within_one_version_is_refused(place: Place) -> None:
    """16 MiB of zeros, 40 times: some KB in the folder. The honest pack beside it is taken, within little memory."""
    with place.device("a") as a:
        save(a, k=b"1")
        place.sync(a)
        bomb = records.made(deflated("bomb", 16 << 20, 40))
        path = place.put(writer.pack(place.store_id, SALT, EVIL, 1, 1, [bomb]))
        assert path.stat().st_size < 100_000
        save(a, k2=b"2")
        place.sync(a)
    program = f"""
import llvs
with llvs.Store({str(place.path / 'b')!r}) as b:
    with llvs.Exchange(b, llvs.Remote("file://{place.folder}?layout=packed")) as way:
        got = way.retrieve()
    assert len(got.retrieved) == 2, got
    assert [problem.code for problem in got.problems] == [llvs.ErrorCode.TOO_LARGE], got.problems
# Of this program alone: what getrusage tells is that of the parent where it had more.
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 300 << 10  # KiB


def test_a_root_that_somebody_removed_is_put_back(place: Place) -> None:
    """Without it no new device reads the packs. In a folder the next to exchange puts it back, also one with nothing to send."""
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
        # A folder that was emptied is another one: nothing is put there.
        for name in place.files():
            (place.folder / name).unlink()
        with pytest.raises(llvs.Error, match="was emptied"):
            place.sync(a)
        assert not place.files()
        # Nor is it where there is another one by now.
        with place.device("d") as d:
            save(d, y=b"2")
            place.sync(d)
        before = place.files()
        with llvs.Exchange(a, llvs.Remote(f"file://{place.folder}?layout=packed")) as way:
            with pytest.raises(llvs.Error, match="another than before"):
                way.send()
        assert place.files() == before
