"""Values that are read in parts, as files."""

from __future__ import annotations

import gc
import hashlib
import io
import os
import shutil
import threading
from pathlib import Path

import llvs
import pytest
from conftest import Places

SIZES = [0, 1, 65_536, 65_537, 1 << 20, (1 << 20) + 1, 2_500_000]


def test_parts_are_those_of_the_whole(store: llvs.Store) -> None:
    data = {str(size): os.urandom(size) if size % 2 else bytes(range(256)) * (size // 256) for size in SIZES}
    first = store.make_version(insert=data)
    version = store.make_version(first, insert={"other": b"x"})
    for id, expected in data.items():
        assert store.value_size(id, at=version) == len(expected)
        with store.open_value(id, at=version) as reader:
            assert isinstance(reader, io.RawIOBase) and isinstance(reader, llvs.store.ValueReader)
            assert (reader.id, reader.size, reader.stored_version) == (id, len(expected), first.id)
            assert reader.reference == store.reference(id, at=version)
            assert reader.readable() and reader.seekable() and not reader.writable()
            assert reader.read() == expected and reader.read() == b"" and reader.tell() == len(expected)
            for offset in range(0, len(expected) + 1, 123_457):
                assert reader.read_range(offset, 100_000) == expected[offset : offset + 100_000]
                assert store.read_range(id, offset, 10, at=version) == expected[offset : offset + 10]
            assert reader.seek(-5, io.SEEK_END) == len(expected) - 5 if expected[5:] else True
            assert reader.seek(0) == 0
            buffer = bytearray(b"#" * 70_000)
            got = reader.readinto(buffer)
            assert got == min(70_000, len(expected)) == reader.tell()
            assert buffer == expected[:got] + b"#" * (70_000 - got)
        with store.open_reference(llvs.store.Reference(id, first.id)) as reader:
            copied = io.BytesIO()
            shutil.copyfileobj(reader, copied, 99_999)
            assert copied.getvalue() == expected
        with io.BufferedReader(store.open_value(id, at=version)) as buffered:
            assert b"".join(buffered) == expected


def test_what_is_not_there(store: llvs.Store) -> None:
    version = store.make_version(insert={"a": b"abc"})
    assert store.value_size("b", at=version) is None and store.read_range("b", 0, 1, at=version) is None
    with pytest.raises(KeyError):
        store.open_value("b", at=version)
    with pytest.raises(KeyError):
        store.open_reference(llvs.store.Reference("b", version.id))
    with pytest.raises(llvs.errors.UnknownVersionError):
        store.open_value("a", at="unknown")
    with pytest.raises(llvs.errors.InvalidIDError):
        store.value_size("", at=version)


def test_a_reader_is_a_file(memory: llvs.Store) -> None:
    version = memory.make_version(insert={"a": b"line\nother\n"})
    reader = memory.open_value("a", at=version)
    assert reader.seek(100) == 100 and reader.read() == b"" and reader.read(5) == b"" and reader.readinto(bytearray(5)) == 0
    assert reader.seek(-3, io.SEEK_CUR) == 97 and reader.seek(0) == 0
    assert reader.readline() == b"line\n" and reader.readlines() == [b"other\n"]
    assert reader.read_range(3, 0) == b"" and reader.read_range(3, 3) == b"e\no" and reader.tell() == 11
    for bad in (lambda: reader.seek(-1), lambda: reader.seek(0, 7), lambda: reader.read_range(-1, 1), lambda: reader.read_range(0, -1)):
        with pytest.raises(ValueError):
            bad()
    for unsupported in (reader.truncate, reader.fileno):
        with pytest.raises(OSError):
            unsupported()
    reader.seek(0)
    with pytest.raises((TypeError, BufferError)):
        reader.readinto(b"read only")
    reader.close()
    reader.close()
    assert reader.closed
    for late in (
        reader.read,
        reader.tell,
        reader.readable,
        lambda: reader.read_range(0, 1),
        lambda: reader.readinto(bytearray(1)),
        lambda: reader.seek(0),
    ):
        with pytest.raises(ValueError):
            late()


def test_a_reader_outlives_names_but_not_its_store(place: Places) -> None:
    store = place.open()
    version = store.make_version(insert={"a": b"abc"})
    reader = store.open_value("a", at=version)
    assert reader.read_range(1, 1) == b"b"
    store.close()
    with pytest.raises(llvs.ClosedError):
        reader.read()
    del reader, store
    gc.collect()


def test_many_threads_share_a_reader(store: llvs.Store) -> None:
    data = os.urandom(2_000_000)
    version = store.make_version(insert={"a": data})
    reader = store.open_value("a", at=version)
    wrong: list[int] = []

    def read(number: int) -> None:
        for turn in range(10):
            offset = (number * 7919 + turn * 104_729) % len(data)
            if reader.read_range(offset, 50_000) != data[offset : offset + 50_000]:
                wrong.append(offset)

    threads = [threading.Thread(target=read, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    reader.close()
    assert not wrong


def test_a_value_is_made_of_another(tmp_path: Path) -> None:
    with llvs.Store(tmp_path / "store", durability="normal") as store:
        data = os.urandom(1_500_000)
        first = store.make_version(insert={"a": data})
        with store.open_value("a", at=first) as reader:
            second = store.make_version(first, insert={"b": reader})
        with store.open_value("b", at=second) as reader:
            digest = hashlib.sha256()
            while piece := reader.read(100_000):
                digest.update(piece)
        assert digest.digest() == hashlib.sha256(data).digest()


def test_the_coordinator_reads_at_its_current_version(tmp_path: Path) -> None:
    with llvs.Coordinator(storage="memory") as notes:
        assert notes.value_size("a") is None and notes.read_range("a", 0, 1) is None
        with pytest.raises(KeyError):
            notes.open_value("a")
        first = notes.save(update={"a": b"one"})
        notes.save(update={"a": b"three"})
        assert notes.value_size("a") == 5 and notes.read_range("a", 1, 2) == b"hr"
        with notes.open_value("a") as reader, notes.open_value("a", at=first) as other:
            assert (reader.read(), other.read()) == (b"three", b"one")
