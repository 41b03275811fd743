"""Packs as docs/pack-format.md describes them: round trips, changed bytes, parts of files, the example and the vectors."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any, Optional

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from packs import names, reader, records, writer
from packs.device import Device
from packs.remote import STALE, Remote
from sampling import sample

ROOT = Path(__file__).parents[2]
VECTORS = ROOT / "Tests" / "Vectors" / "packs"
STORE, SALT, WRITER = bytes(range(16)), bytes(range(16, 32)), bytes(range(32, 40))
REFUSED = (reader.NotThere, reader.Damaged, reader.Newer, reader.TooLarge, reader.OtherStore)

ids = st.one_of(
    st.uuids(version=4).map(lambda id: str(id).upper()),
    st.text("ABCabc019_-", min_size=1, max_size=128).filter(lambda id: len(id) != 36),
)
owners = st.binary(min_size=8, max_size=8).filter(any)
numbers = st.integers(1, 2**32 - 1)
pack_ids = st.binary(min_size=16, max_size=16)
log_names = st.builds(lambda owner, number, id: str(names.Name(names.LOG, owner, number, number, id)), owners, numbers, pack_ids)
base_names = st.builds(
    lambda owner, one, two, id: str(names.Name(names.BASE, owner, min(one, two), max(one, two), id)), owners, numbers, numbers, pack_ids
)
ranges = st.builds(lambda owner, one, two: (owner, min(one, two), max(one, two)), owners, numbers, numbers)


def tell(pack: reader.Pack) -> tuple[Any, ...]:
    """Returns the contents of a pack."""
    versions = {id: (version.identity8, version.blobs, version.outside) for id, version in pack.versions.items()}
    return pack.index.name, pack.index.link, versions, pack.seen, pack.replaces, pack.covers, pack.notices, pack.content


@given(
    st.lists(st.tuples(ids, st.binary(max_size=2000)), max_size=12, unique_by=lambda item: item[0]),
    st.dictionaries(owners, st.tuples(numbers, pack_ids), max_size=4),
    st.lists(log_names | base_names, max_size=8),
    st.lists(ranges, max_size=6),
    st.booleans(),
)
@settings(max_examples=sample(20, 60))
def test_round_trip(
    versions: list[tuple[str, bytes]], seen: dict[bytes, tuple[int, bytes]], replaces: list[str], covers: list[tuple[bytes, int, int]],
    deflate: bool,
) -> None:
    made = [records.simple(id, (), value) for id, value in versions]
    name, data = writer.pack(
        STORE, SALT, WRITER, 2, 9, made, base=True, seen=seen, replaces=replaces, covers=covers, notices=[(2, WRITER)], deflate=deflate
    )
    pack = reader.read_pack(name, data, [STORE], len(data))
    assert {id: version.identity8 for id, version in pack.versions.items()} == {version.id: version.identity8 for version in made}
    for id, value in versions:
        record = pack.versions[id].record
        assert record is not None and reader.value(record, record.changes[b"key"]) == value
    assert pack.seen == seen and set(pack.replaces) == set(replaces) and list(pack.covers) == writer.joined(covers)
    assert pack.notices == [(2, WRITER)]


@given(log_names | base_names)
def test_names_are_read_back(text: str) -> None:
    name = names.parse(text)
    assert name is not None and str(name) == text and len(text.rsplit("/", 1)[1]) <= 58


def small_pack() -> tuple[str, bytes]:
    made = [records.simple("A", (), b"hello " * 30), records.simple("B", ("A",))]
    log = str(names.Name(names.LOG, WRITER, 1, 1, SALT))
    return writer.pack(STORE, SALT, WRITER, 1, 2, made, base=True, seen={SALT[:8]: (3, SALT)}, replaces=[log], covers=[(SALT[:8], 1, 3)])


def test_each_flipped_bit_is_noticed() -> None:
    """Under its own name; and, by a forger, under a name that fits, so that only the digests can detect it."""
    name, data = small_pack()
    parsed = names.parse(name)
    assert parsed is not None
    for bit in range(8 * len(data)):
        changed = bytearray(data)
        changed[bit // 8] ^= 1 << bit % 8
        with pytest.raises(reader.NotThere):
            reader.read_pack(name, bytes(changed), [STORE])
        forged = str(parsed._replace(id=hashlib.sha256(changed).digest()[:16]))
        with pytest.raises(REFUSED):
            reader.read_pack(forged, bytes(changed), [STORE])


def test_each_truncation_is_not_there_yet() -> None:
    name, data = small_pack()
    for size in range(len(data)):
        with pytest.raises(reader.NotThere):
            reader.read_pack(name, data[:size], [STORE], len(data))


def read_end(name: str, data: bytes, first: int) -> Optional[reader.Index]:
    """Reads an index as a reader does: the last bytes first, and all bytes if these are not sufficient."""
    parsed = names.parse(name)
    assert parsed is not None
    index = reader.read_index(parsed, len(data), data[-first:], [SALT, STORE])
    return index or reader.read_index(parsed, len(data), data, [SALT, STORE])


def test_the_end_of_a_pack_is_enough() -> None:
    """Header and store id follow from the name, the roots and the salt; blocks can be read one by one."""
    made = [records.simple(f"v{n:04}", (), bytes([n % 256]) * 3000) for n in range(200)]
    name, data = writer.pack(STORE, SALT, WRITER, 1, 1, made, deflate=False)
    whole = reader.read_pack(name, data, [STORE])
    for first in (160, 300, 65536):
        index = read_end(name, data, first)
        assert index is not None and index.versions == whole.index.versions and len(index.blocks) > 2
    assert index is not None
    place = index.versions["v0150"]
    block = index.blocks[place.block]
    raw = reader.inflate(block, data[block.offset : block.offset + 9 + block.stored])
    version = reader.read_version("v0150", place, raw)
    assert version.record is not None and reader.value(version.record, version.record.changes[b"key"]) == bytes([150]) * 3000


@given(st.integers(0, 10**6), st.integers(0, 7))
@settings(max_examples=sample(60, 300))
def test_a_flipped_bit_is_noticed_by_who_reads_parts(at: int, bit: int) -> None:
    name, data = small_pack()
    changed = bytearray(data)
    changed[at % len(data)] ^= 1 << bit
    try:
        index = read_end(name, bytes(changed), 65536)
        assert index is not None
        pack = reader.Pack(index)
        raws = [reader.inflate(block, bytes(changed[block.offset : block.offset + 9 + block.stored])) for block in index.blocks]
        reader.read_services(pack, raws)
        pack.versions = {id: reader.read_version(id, place, raws[place.block]) for id, place in index.versions.items()}
    except REFUSED:
        return
    # The reader does not check the header, and the bytes beside the tag. Everything that it read is right.
    assert tell(pack) == tell(reader.read_pack(name, data, [STORE])) and at % len(data) < 64


@given(st.binary(max_size=400))
@settings(max_examples=sample(40, 200))
def test_any_bytes_are_refused(junk: bytes) -> None:
    name = str(names.Name(names.LOG, WRITER, 1, 1, hashlib.sha256(junk).digest()[:16]))
    with pytest.raises(REFUSED):
        reader.read_pack(name, junk, [STORE])


@cache
def generator() -> ModuleType:
    """The program that makes the vectors. Other folders of vectors have a generate.py too, so it is found by its path."""
    spec = importlib.util.spec_from_file_location("packs_vectors", VECTORS / "generate.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@given(st.integers(0, 10**6), st.binary(min_size=1, max_size=6))
@settings(max_examples=sample(80, 400))
def test_any_index_is_read_or_refused(at: int, bytes_: bytes) -> None:
    """A member that makes digests as it likes gets no further than a refusal."""
    vectors = generator()
    name, data = small_pack()
    at = at % (len(data) - 160)
    forged = vectors.signed(name, (data[:at] + bytes_ + data[at + len(bytes_) :])[: len(data)])
    try:
        reader.read_pack(*forged, [STORE])
    except REFUSED:
        pass


def test_roots() -> None:
    name, data = writer.root(STORE, SALT, WRITER, "bridged")
    assert reader.read_root(name, data) == (STORE, "bridged")
    with pytest.raises(reader.Newer):
        reader.read_root(*writer.root(STORE, SALT, WRITER, "pictures"))


def test_blobs_in_parts() -> None:
    value = bytes(reader.PART_SIZE) + b"the rest"
    parts = [
        writer.blob_part(STORE, SALT, WRITER, hashlib.sha256(value).digest()[:16], number, value[at : at + reader.PART_SIZE])
        for number, at in enumerate(range(0, len(value), reader.PART_SIZE))
    ]
    blob = records.reference(value, [hashlib.sha256(data).digest()[:16] for _, data in parts])
    content = [reader.read_pack(name, data, [STORE]).content for name, data in parts]
    assert reader.join(blob, content) == value
    with pytest.raises(reader.Damaged):
        reader.join(blob, content[::-1])
    name, data = writer.pack(STORE, SALT, WRITER, 1, 1, [records.made(records.record("A", blobs={b"large": blob}), [blob])])
    assert reader.read_pack(name, data, [STORE]).versions["A"].blobs == (blob,)


def test_what_was_deleted_by_hand_is_healed() -> None:
    remote = Remote(Random(1))
    remote.faults = False
    made = {id: records.simple(id) for id in "ABCDEFGH"}
    one, two = (Device(remote, Random(seed), made, [STORE]) for seed in (1, 2))
    for id in made:
        one.versions.add(id)
        list(one.exchange())
        list(two.exchange())
    remote.files.clear()
    one.versions.clear()  # only the other device has them still
    one.__init__(remote, Random(3), made, [STORE])  # type: ignore[misc]
    for _ in range(6):
        remote.clock += 3 * STALE
        list(two.exchange())
        list(one.exchange())
    assert one.versions == set(made)


def test_the_example_of_the_page() -> None:
    page = (ROOT / "docs" / "pack-format.md").read_text()
    dump = page.split("<!-- vector: pack -->", 1)[1].split("\n\n##", 1)[0]
    data = bytes.fromhex("".join(re.findall(r"^    [0-9a-f]{4}  ((?:[0-9a-f]{2} ?)+)", dump, re.MULTILINE)))
    name = re.findall(r"pack1/log/[a-z2-7]{13}-[a-z2-7]{7}-[a-z2-7]{26}", page)[0]
    made = records.simple("0C90A79B-B798-4F2B-B9AC-7665646A26C4", (), b"hello")
    assert (name, data) == writer.pack(STORE, SALT, WRITER, 1, 1, [made], deflate=False)
    assert list(reader.read_pack(name, data, [STORE]).versions) == [made.id]


def test_vectors_are_what_the_program_makes() -> None:
    subprocess.run([sys.executable, str(VECTORS / "generate.py"), "--check"], check=True)


def test_vectors_count() -> None:
    """Ensures that the files of vectors are not empty."""
    files = {name: json.loads((VECTORS / name).read_text()) for name in ("files.json", "refused.json", "names.json")}
    assert len(files["files.json"]["vectors"]) > 15 and len(files["refused.json"]["vectors"]) > 50 and len(files["names.json"]["none"]) > 15
