"""Harmful streams of packs: they are refused, cost little to read, and leave the store unchanged."""

from __future__ import annotations

import hashlib
import struct
import subprocess
import sys
import zlib
from pathlib import Path
from random import Random

import pytest

import llvs

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "Python"))

from packs import names, reader, records, stream, writer  # noqa: E402

MIB = 1 << 20
STORE, SALT, WRITER = bytes(range(16)), bytes(range(16, 32)), bytes(range(32, 40))
REFUSED = {
    llvs.ErrorCode.FOREIGN_FILE, llvs.ErrorCode.CUT_SHORT, llvs.ErrorCode.DAMAGED, llvs.ErrorCode.NEWER_FORMAT,
    llvs.ErrorCode.IDENTIFIER_MISMATCH, llvs.ErrorCode.TOO_LARGE,
}


def refused(store: llvs.Store, data: bytes) -> int:
    with pytest.raises(llvs.Error) as raised:
        store.unpack(data)
    assert raised.value.code in REFUSED and len(str(raised.value)) > 40
    return int(raised.value.code)


def a_stream() -> bytes:
    first, second = records.simple("A", (), b"hello " * 30), records.simple("B", ("A",), b"again")
    value = bytes(MIB + 5)
    part = writer.blob_part(STORE, SALT, WRITER, hashlib.sha256(value).digest()[:16], 0, value)
    blob = records.reference(value, [hashlib.sha256(part[1]).digest()[:16]])
    third = records.made(records.record("C", ("B",), 3.0, blobs={b"large": blob}), [blob])
    return stream.write(STORE, [part, writer.pack(STORE, SALT, WRITER, 1, 1, [first, second, third])])


def test_every_cut_and_many_changed_bytes(tmp_path: Path) -> None:
    """Whatever arrives, the store contains only whole versions, and continues to work."""
    data, random = a_stream(), Random(7)
    with llvs.Store(storage="memory") as whole:
        whole.unpack(data)
        expected = {version.id: dict(whole.at(version).items()) for version in whole.history()}
    with llvs.Store(tmp_path / "store", durability="normal") as store:
        for size in [*range(64), *random.sample(range(64, len(data)), 60)]:
            refused(store, data[:size])
        for _ in range(300):
            changed = bytearray(data)
            changed[random.randrange(len(data))] ^= 1 << random.randrange(8)
            refused(store, bytes(changed))
        assert all(dict(store.at(version).items()) == expected[version.id] for version in store.history())
        assert store.unpack(data).problems == () and set(expected) == {version.id for version in store.history()}
        assert not store.verify().damages


def signed(name: str, data: bytes) -> writer.File:
    """Makes the digest and the name match the data."""
    at, size = struct.unpack_from("<QI", data, len(data) - 160)
    digest = hashlib.sha256(data[:64] + data[at : at + size] + data[-160:-88]).digest()
    data = data[:-88] + digest + data[-56:]
    parsed = names.parse(name)
    assert parsed is not None
    return str(parsed._replace(id=hashlib.sha256(data).digest()[:16])), data


def test_indexes_that_were_forged(tmp_path: Path) -> None:
    """The author of a pack can make every digest correct."""
    made = [records.simple("A", (), b"x" * 300), records.simple("B", ("A",))]
    name, data = writer.pack(STORE, SALT, WRITER, 1, 1, made, deflate=False)
    at, random = struct.unpack_from("<Q", data, len(data) - 160)[0], Random(11)
    for _ in range(400):
        changed = bytearray(data)
        for _ in range(random.randint(1, 3)):
            changed[random.randrange(at, len(data) - 88)] = random.randrange(256)
        with llvs.Store(storage="memory") as store:
            try:
                result = store.unpack(stream.write(STORE, [signed(name, bytes(changed))]))
            except llvs.Error as error:
                assert error.code in REFUSED
                continue
            assert all(problem.code != llvs.ErrorCode.INTERNAL for problem in result.problems)


def bomb(raw: int, claimed: int) -> writer.File:
    """Makes a pack with a block that inflates to `raw` zeros, and claims `claimed` bytes."""
    deflater = zlib.compressobj(9, zlib.DEFLATED, -15)
    stored = deflater.compress(bytes(raw)) + deflater.flush()
    header = reader.MAGIC + bytes([1, names.LOG]) + bytes(6) + STORE + SALT + WRITER + struct.pack("<II", 1, 1)
    block = struct.pack("<BII", 1, len(stored), claimed) + stored
    index = b"\1" + b"".join(map(records.varint, (64, len(stored), claimed))) + hashlib.sha256(stored).digest()[:8] + b"\0\0"
    trailer = struct.pack("<QIIIIQQ", 64 + len(block), len(index), 0, 0, 0, claimed, 0) + bytes(32)
    data = header + block + index + trailer + bytes(64) + SALT + reader.END
    return signed(str(names.Name(names.LOG, WRITER, 1, 1, bytes(16))), data)


@pytest.mark.parametrize(
    "raw, claimed, code",
    [
        (64 * MIB, 256 * 1024, llvs.ErrorCode.DAMAGED),
        (64 * MIB, 64 * MIB, llvs.ErrorCode.TOO_LARGE),
        (1000, 4 * MIB, llvs.ErrorCode.DAMAGED),
    ],
)
def test_bombs(raw: int, claimed: int, code: int) -> None:
    with llvs.Store(storage="memory") as store:
        assert refused(store, stream.write(STORE, [bomb(raw, claimed)])) == code


def test_sizes_are_no_promises() -> None:
    """One frame claims 4 GiB, another claims 16 MiB and ends early."""
    start = stream.MAGIC + b"\1" + bytes(7) + STORE
    with llvs.Store(storage="memory") as store:
        assert refused(store, start + struct.pack("<BI", 1, 0xFFFFFFFF) + bytes(100)) == llvs.ErrorCode.TOO_LARGE
        assert refused(store, start + struct.pack("<BI", 1, 16 * MIB) + bytes(100)) == llvs.ErrorCode.CUT_SHORT
        assert refused(store, start + struct.pack("<BI", 9, 10) + bytes(100)) == llvs.ErrorCode.NEWER_FORMAT
        assert refused(store, start + struct.pack("<BI", 2, 10) + bytes(100)) == llvs.ErrorCode.DAMAGED


def test_packs_of_another_stream() -> None:
    other = writer.pack(SALT, SALT, WRITER, 1, 1, [records.simple("A")])
    with llvs.Store(storage="memory") as store:
        assert refused(store, stream.write(STORE, [other])) == llvs.ErrorCode.IDENTIFIER_MISMATCH


def test_versions_that_are_not_what_their_ids_say() -> None:
    """The id of a version that the library made, with other contents."""
    with llvs.Store(storage="memory") as one, llvs.Store(storage="memory") as two:
        genuine = one.make_version(insert={"key": b"mine"})
        forged = records.made(records.record(genuine.id, (), 1.5, {b"key": b"yours"}))
        result = two.unpack(stream.write(STORE, [writer.pack(STORE, SALT, WRITER, 1, 1, [forged])]))
        assert [problem.code for problem in result.problems] == [llvs.ErrorCode.CONTENT_MISMATCH] and not result.retrieved
        assert two.unpack(one.pack()).retrieved == (genuine.id,) and two.at(genuine)["key"] == b"mine"


def test_unreferenced_values_leave_nothing(tmp_path: Path) -> None:
    """Large values come before the versions that name them. Values of a stream without such versions occupy the disk only while the stream
    is read."""
    values = [bytes([n]) * (2 * MIB) for n in range(9)]
    parts = [writer.blob_part(STORE, SALT, WRITER, hashlib.sha256(value).digest()[:16], 0, value) for value in values]
    wrong = writer.blob_part(STORE, SALT, WRITER, bytes(16), 0, bytes(2 * MIB))
    with llvs.Store(tmp_path / "store") as store:
        result = store.unpack(stream.write(STORE, [*parts, wrong, writer.pack(STORE, SALT, WRITER, 1, 1, [records.simple("A")])]))
        assert result.retrieved == ("A",)
        refused(store, stream.write(STORE, [parts[0], parts[0]]))
        refused(store, stream.write(STORE, parts)[:-5])
    assert not [path for path in (tmp_path / "store").rglob("*") if path.is_file() and path.stat().st_size > MIB]


MEMORY = """
import resource, sys
import llvs
limit = 64 << 20

def peak():
    if sys.platform != "linux":
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # The peak of this process. getrusage would include the process that started it.
    return int(next(line for line in open("/proc/self/status") if line.startswith("VmHWM")).split()[1]) << 10

class Nowhere:
    size = 0
    def write(self, data):
        self.size += len(data)

with llvs.Store({path!r}, options=llvs.StoreOptions(memory_budget=8 << 20)) as store:
    before = peak()
    out = Nowhere()
    store.pack(to=out)
    assert out.size > 110 << 20
    assert peak() - before < limit + (8 << 20), ("packing", peak() - before)
    store.pack(to={file!r})
with llvs.Store({other!r}, options=llvs.StoreOptions(memory_budget=8 << 20)) as store:
    before = peak()
    assert len(store.unpack({file!r}).retrieved) == 25
    assert peak() - before < limit + (8 << 20), ("unpacking", peak() - before)
"""


def test_memory_is_bounded(tmp_path: Path) -> None:
    """Memory remains bounded for 60 MiB of versions, and for one value of 60 MiB."""
    with llvs.Store(tmp_path / "one", durability="normal") as store:
        version = store.make_version(insert={"film": iter([bytes([n]) + Random(n).randbytes(MIB - 1) for n in range(60)])})
        for n in range(24):
            version = store.make_version(version, insert={f"{n}/{m}": Random(1000 * n + m).randbytes(65_000) for m in range(40)})
    program = MEMORY.format(
        path=str(tmp_path / "one"), other=str(tmp_path / "two"), file=str(tmp_path / "pack")
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_values_deflated_within_their_records_are_refused(tmp_path: Path) -> None:
    """Compressed again within a compressed block: a stream of a few KB would fill the disk."""
    bombs = [records.made(records.deflated(f"bomb{number}", 60_000_000, 1)) for number in range(4)]
    honest = records.simple("A", (), b"hello")
    data = stream.write(STORE, [writer.pack(STORE, SALT, WRITER, 1, 1, [honest, *bombs])])
    assert len(data) < 100_000
    with llvs.Store(tmp_path / "store", durability="normal") as store:
        taken = store.unpack(data)
        assert [version.id for version in store.history()] == ["A"]
        assert taken.problems and all("deflated within its record" in problem.reason for problem in taken.problems)
    assert sum(file.stat().st_size for file in (tmp_path / "store").rglob("*") if file.is_file()) < 1 << 20


def test_a_large_value_under_many_names_takes_room_in_proportion() -> None:
    """A stream of a few KB contains a version that would need half a gigabyte. Versions of reasonable size beside it are received."""
    value = bytes(8 * MIB)
    part = writer.blob_part(STORE, SALT, WRITER, hashlib.sha256(value).digest()[:16], 0, value)
    blob = records.reference(value, [hashlib.sha256(part[1]).digest()[:16]])
    versions = [
        records.made(records.record(id, (), 3.0, blobs={b"%02d" % key: blob for key in range(keys)}), [blob])
        for id, keys in [("evil", 64), ("fair", 2)]
    ]
    data = stream.write(STORE, [part, writer.pack(STORE, SALT, WRITER, 1, 1, [*versions, records.simple("small")])])
    assert len(data) < 100_000
    with llvs.Store(storage="memory") as store:
        (problem,) = store.unpack(data).problems
        assert problem.code == llvs.ErrorCode.TOO_LARGE
        assert {version.id for version in store.history()} == {"fair", "small"}
