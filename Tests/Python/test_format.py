"""The engine's files, read by a reader written from docs/format.md alone, on random stores; and damage, as both report it."""

from __future__ import annotations

import random
import shutil
import struct
from pathlib import Path
from typing import Any, Callable, Optional

import format_reader as reader
import llvs
import pytest
from format_author import author, inserts
from sampling import sample, seeds

KINDS = {
    reader.INSERT: "insert",
    reader.UPDATE: "update",
    reader.REMOVE: "remove",
    reader.PRESERVE: "preserve",
    reader.PRESERVE_REMOVAL: "preserve_removal",
}
EPOCH = 978307200.0


def random_store(directory: Path, seed: int, steps: int = 60) -> None:
    """A store with merges, branches, values of all encodings, several segments."""
    dice = random.Random(seed)
    store = llvs.Store(directory, durability="normal")
    versions = [store.make_version(insert={f"{index:03}": dice.randbytes(20) for index in range(dice.choice((3, 200)))}, id="first-of-all")]
    for step in range(steps):
        if dice.random() < 0.1:
            store.close()
            store = llvs.Store(directory, durability="normal")
        if dice.random() < 0.25 and len(store.heads()) > 1 and step != steps // 2:
            one, two = dice.sample(store.heads(), 2)
            arbiter: Any = dice.choice((llvs.MostRecentChange(), llvs.MostRecentBranch(), llvs.Ours()))
            versions.append(store.merge(one, two, arbiter, metadata={"merged": step}))
            continue
        changes: dict[str, bytes] = {}
        for _ in range(dice.choice((0, 1, 1, 2, 5))):
            id = dice.choice([f"{dice.randrange(300):03}", "é", "e\u0301", "\0", "x" * dice.randrange(1, 4097)])
            changes[id] = dice.choice((dice.randbytes(dice.randrange(300)), b"text " * dice.randrange(2000), b"", dice.randbytes(70_000)))
        if step == steps // 2:
            changes["blob"] = dice.randbytes((1 << 20) + 1 + dice.randrange(70_000))
        remove = [f"{dice.randrange(300):03}"] if dice.random() < 0.3 else []
        versions.append(
            store.make_version(
                dice.choice(versions[-6:]),
                update={id: data for id, data in changes.items() if id not in remove},
                remove=remove,
                metadata=dice.choice((None, {"n": step}, {"raw": b"\xff", "a": None})),
                branch=dice.choice((None, None, "draft")),
            )
        )
    store.close()


def compare(directory: Path) -> reader.Store:
    """Asserts that the engine and the reader say the same of a store."""
    found = reader.read_store(directory)
    with llvs.Store(directory, read_only=True) as store:
        history = {version.id: version for version in store.history()}
        assert set(found.versions) == set(history)
        assert found.heads() == {version.id for version in store.heads()}
        assert len(found.pending) == store.statistics().pending
        for id, version in history.items():
            mine = found.versions[id]
            assert (mine.predecessors, mine.value_data_size) == (version.predecessors, version.value_data_size)
            assert mine.timestamp + EPOCH == pytest.approx(version.timestamp, abs=1e-6)
            assert {key.decode(): value for key, value in mine.metadata.items()} == version.raw_metadata
            assert [(KINDS[change.kind], change.id.decode(), change.version) for change in mine.changes.values()] == [
                (change.kind.value, change.id, change.reference.stored_version if change.kind == "preserve" and change.reference else None)
                for change in store.changes(id, with_data=False)
            ]
            state = found.state(id)
            assert {key.encode(): reference.stored_version for key, reference in zip(store.at(id), store.at(id).references())} == state
        for id in [version.id for version in store.heads()]:
            state = found.state(id)
            assert {key.encode(): data for key, data in store.at(id).items()} == {
                key: found.value(stored, key) for key, stored in state.items()
            }
    return found


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("format") / "store"
    random_store(directory, 1)
    return directory


def test_checksum() -> None:
    assert reader.checksum(b"123456789") == 0xE3069283


@pytest.mark.parametrize("seed", seeds(range(2, 3), range(2, 6)))
def test_random_stores(tmp_path: Path, seed: int) -> None:
    random_store(tmp_path / "store", seed)
    found = compare(tmp_path / "store")
    assert not found.problems and not found.pending and found.segments > 1
    assert found.encodings == {reader.AS_IS, reader.DEFLATED, reader.BLOB}
    assert any(change.kind == reader.PRESERVE for version in found.versions.values() for change in version.changes.values())


def test_torn_tails(tmp_path: Path, made: Path) -> None:
    """A segment cut at any byte: both readers find the records that are complete, and none of the others, without an error."""
    dice = random.Random(7)
    for number in range(sample(3, 8)):
        directory = tmp_path / str(number)
        shutil.copytree(made, directory)
        shutil.rmtree(directory / "cache", ignore_errors=True)
        target = max((directory / "segments").iterdir(), key=lambda path: path.stat().st_size)
        data = target.read_bytes()
        target.write_bytes(data[: dice.randrange(len(data))])
        compare(directory)


def test_a_segment_still_being_written(tmp_path: Path) -> None:
    with llvs.Store(tmp_path / "store", durability="normal") as store:
        version = store.make_version(insert={"a": b"1"})
        found = reader.read_store(tmp_path / "store")
        assert set(found.versions) == {version.id} and not found.problems


def test_flipped_bytes(tmp_path: Path, made: Path) -> None:
    """A byte wrong anywhere in a segment or blob costs the same versions to both."""
    dice = random.Random(11)
    for number in range(sample(4, 10)):
        directory = tmp_path / str(number)
        shutil.copytree(made, directory)
        shutil.rmtree(directory / "cache", ignore_errors=True)
        target = dice.choice(sorted((directory / "segments").iterdir()))
        data = bytearray(target.read_bytes())
        data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
        target.write_bytes(data)
        found = reader.read_store(directory)
        with llvs.Store(directory, read_only=True) as store:
            known = {version.id for version in store.history()}
            report = store.verify()
        assert bool(report.damages) or known == set(found.versions), (target, found.problems)
        # The engine may find a damaged table of a large record only when it is read: then it knows the version, and verify reports it.
        assert set(found.versions) <= known
        lost = known - set(found.versions)
        assert not lost or report.damages, (lost, found.problems)
        # Damaged values are the same to both.
        mine = {(version.id, id.decode()) for version in found.versions.values() for id in version.damaged}
        assert mine == {
            (damage.version, damage.value_id)
            for damage in report.damages
            if damage.value_id is not None and damage.version in found.versions
        }


def record(
    id: str, predecessors: list[str], changes: list[tuple[bytes, bytes]], size: Optional[int] = None, metadata: bytes = b"\0"
) -> bytes:
    """A record of inserts, as the document defines it."""

    def version_id(id: str) -> bytes:
        return b"\0" + bytes.fromhex(id.replace("-", "")) if id == reader.EMPTY_ROOT else bytes([len(id)]) + id.encode()

    table, bodies = inserts(id, changes) if changes else (b"", b"")
    header = version_id(id) + bytes([len(predecessors)]) + b"".join(map(version_id, predecessors)) + struct.pack("<d", 1.0)
    header += bytes([sum(len(value) for _, value in changes) if size is None else size, len(changes), bool(changes), 0, 0]) + metadata
    return prelude(0, 0, header, len(table), len(bodies)) + header + table + bodies


def prelude(flags: int, more: int, header: bytes, table: int, bodies: int, format: int = 1) -> bytes:
    start = struct.pack("<BBHIQQ", format, flags, more, len(header), table, bodies)
    return start + struct.pack("<I", reader.checksum(start, header))


def extended(record: bytes, flags: int, more: int = 0, extensions: bytes = b"", format: int = 1) -> bytes:
    size, table, bodies = struct.unpack_from("<IQQ", record, 4)
    header = record[28 : 28 + size] + extensions
    return prelude(flags, more, header, table, bodies, format) + header + record[28 + size :]


IGNORED: list[Callable[[bytes], bytes]] = [
    lambda record: record,
    lambda record: extended(record, 0xE0),
    lambda record: extended(record, 0x10, extensions=b"\x01\x03abc\x85\x80\x00\x00"),
    lambda record: extended(record, 0x30, extensions=b"\x83\x00\x01z"),
    # The flag of hollow changes, in a record without any.
    lambda record: extended(record, 0x01),
]
CRITICAL: list[Callable[[bytes], bytes]] = [
    lambda record: extended(record, 0x04),
    lambda record: extended(record, 0, more=0x8000),
    lambda record: extended(record, 0x10, extensions=b"\x01\x00\x02\x00"),
    lambda record: extended(record, 0, format=2),
]


@pytest.mark.parametrize("kind", (None, 128, 255))
@pytest.mark.parametrize("number", range(len(IGNORED)))
def test_what_can_be_ignored(tmp_path: Path, kind: Optional[int], number: int) -> None:
    """Hand-written stores with unknown flags, extensions and frames."""
    llvs.Store(tmp_path / "store").close()
    records = [
        record("a", [], [(b"k", b"1")]),
        IGNORED[number](record("b", ["a"], [(b"l", b"2")])),
        record("c", ["b"], [(b"m", b"3"), (b"n", b"")]),
    ]
    author(tmp_path / "store", records, kind)
    found = compare(tmp_path / "store")
    assert not found.problems and not found.tails and set(found.versions) == {"a", "b", "c"}
    with llvs.Store(tmp_path / "store") as store:
        report = store.verify()
        assert not report.damages and not report.unfinished and report.versions == 3
        store.compact()
    assert set(compare(tmp_path / "store").versions) == {"a", "b", "c"}


@pytest.mark.parametrize("number", range(len(CRITICAL)))
def test_what_is_critical(tmp_path: Path, number: int) -> None:
    llvs.Store(tmp_path / "store").close()
    author(
        tmp_path / "store", [record("a", [], [(b"k", b"1")]), CRITICAL[number](record("b", ["a"], [(b"l", b"2")])), record("c", ["b"], [])]
    )
    found = compare(tmp_path / "store")
    assert found.newer == {"b"} and set(found.versions) == {"a"} and set(found.pending) == {"c"}
    with llvs.Store(tmp_path / "store") as store:
        with pytest.raises(llvs.StorageError) as caught:
            store.value("l", at="b")
        assert caught.value.code == llvs.ErrorCode.NEWER_FORMAT and "b" in str(caught.value)
        assert [damage.version for damage in store.verify().damages] == ["b"]


def test_a_critical_frame(tmp_path: Path) -> None:
    llvs.Store(tmp_path / "store").close()
    author(tmp_path / "store", [record("a", [], [(b"k", b"1")])], 5)
    found = compare(tmp_path / "store")
    assert set(found.versions) == {"a"} and len(found.problems) == 2 and all("newer" in problem for problem in found.problems)
    with llvs.Store(tmp_path / "store") as store:
        damages = store.verify().damages
        assert len(damages) == 2 and all("newer version" in damage.message for damage in damages)


def test_records_that_contradict_themselves(tmp_path: Path) -> None:
    """Both readers accept what the document permits, and report it."""
    llvs.Store(tmp_path / "store").close()
    root = reader.EMPTY_ROOT
    author(
        tmp_path / "store", [record("a", [], [(b"k", b"1")], size=9), record("b", [], []), record(root, [], []), record("d", [root], [])]
    )
    found = compare(tmp_path / "store")
    # The empty root has the timestamp 0.
    assert set(found.versions) == {"a", "b"} and set(found.pending) == {"d"} and len(found.problems) == 2
    with llvs.Store(tmp_path / "store") as store:
        damages = store.verify().damages
        assert sorted(damage.lost.name for damage in damages) == ["NOTHING", "VERSION"]


def test_metadata_at_its_limits(tmp_path: Path) -> None:
    llvs.Store(tmp_path / "store").close()

    def entry(key: bytes, value: bytes = b"1") -> bytes:
        return b"\x01" + struct.pack("<BB", len(key) & 0x7F | 0x80, len(key) >> 7) + key + b"\x01" + value

    author(tmp_path / "store", [
        record("none", [], [], metadata=entry(b"")),
        record("longest", [], [], metadata=entry(b"k" * 4096)), record("longer", [], [], metadata=entry(b"k" * 4097)),
        record("binary", [], [], metadata=entry(b"\xff")),
    ])
    found = compare(tmp_path / "store")
    assert set(found.versions) == {"none", "longest"} and len(found.problems) == 2


def test_missing_parts(tmp_path: Path, made: Path) -> None:
    for part in ("llvs-store", "cache", "blobs"):
        directory = tmp_path / part
        shutil.copytree(made, directory)
        target = directory / part
        shutil.rmtree(target) if target.is_dir() else target.unlink(missing_ok=True)
        if part == "blobs":
            target.mkdir()
            shutil.rmtree(directory / "cache", ignore_errors=True)
        found = compare(directory)
        assert bool(found.pending) == (part == "blobs")


def test_a_union_of_two_stores_is_a_store(tmp_path: Path, made: Path) -> None:
    directory = tmp_path / "union"
    random_store(directory, 9)
    for part in ("segments", "blobs"):
        for path in (made / part).iterdir():
            shutil.copy(path, directory / part / path.name)
    shutil.rmtree(directory / "cache", ignore_errors=True)
    found = compare(directory)
    assert set(reader.read_store(made).versions) <= set(found.versions)


def test_a_newer_format(tmp_path: Path, made: Path) -> None:
    directory = tmp_path / "newer"
    shutil.copytree(made, directory)
    (directory / "llvs-store").write_text("LLVS store\nformat 2\n")
    with pytest.raises(reader.NewerFormat):
        reader.read_store(directory)
    with pytest.raises(llvs.StorageError) as caught:
        llvs.Store(directory)
    assert caught.value.code == llvs.ErrorCode.NEWER_FORMAT and str(directory) in str(caught.value)
    assert (directory / "llvs-store").read_text() == "LLVS store\nformat 2\n"
