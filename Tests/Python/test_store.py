"""Stores: versions, history, values, differences, over every storage."""

from __future__ import annotations

import copy
import io
import json
import os
import pickle
import time
from pathlib import Path
from typing import Any, Callable, Iterator

import llvs
import pytest
from conftest import Places


def test_a_version_and_its_values(store: llvs.Store) -> None:
    before = time.time()
    v1 = store.make_version(insert={"note/1": b"hello", "note/2": b"x"})
    assert v1.predecessors == () and v1.value_data_size == 6 and v1.branch is None and v1.metadata == {}
    assert before - 1 <= v1.timestamp <= time.time() + 1
    assert v1.date.tzinfo is not None
    v2 = store.make_version(v1, update={"note/1": b"world"}, remove=["note/2", "note/9"], metadata={"author": "ann"}, branch="draft")
    assert v2.predecessors == (v1.id,)
    assert v2.metadata == {"author": "ann", "__llvs_branch": "draft"} and v2.branch == "draft"
    assert store.value("note/1", at=v1) == llvs.Value("note/1", b"hello", v1.id)
    found = store.value("note/1", at=v2.id)
    assert found is not None
    assert found.data == b"world" and found.stored_version == v2.id and found.reference == llvs.store.Reference("note/1", v2.id)
    assert store.value("note/2", at=v2) is None
    assert store.reference("note/1", at=v2) == llvs.store.Reference("note/1", v2.id)
    assert store.reference("nothing", at=v2) is None


def test_opened_again(place: Places) -> None:
    if not place.lasts:
        pytest.skip("a memory store is gone when closed")
    with place.open() as store:
        v1 = store.make_version(insert={"a": b"1", "b": b"2"}, metadata={"x": [1, {"y": None}]})
        v2 = store.make_version(v1, update={"a": b"3"})
        merged = store.merge(v2, store.make_version(v1, update={"b": b"4"}))
    with place.open() as store:
        assert [version.id for version in store.heads()] == [merged.id]
        assert dict(store.at(merged).items()) == {"a": b"3", "b": b"4"}
        assert store.version(v1.id) == v1 and store.versions([v2, v1.id])[1].metadata == {"x": [1, {"y": None}]}
        report = store.verify()
        assert report.versions == 4 and report.damages == () and report.pending == 0


def test_read_only(place: Places) -> None:
    if place.kind not in ("file", "sqlite"):
        pytest.skip("nothing to open read-only")
    with place.open() as store:
        version = store.make_version(insert={"a": b"1"})
    with place.open(read_only=True) as store:
        assert store.at(version)["a"] == b"1"
        with pytest.raises(llvs.errors.PermissionDeniedError) as caught:
            store.make_version(version, update={"a": b"2"})
        assert caught.value.code == llvs.ErrorCode.READ_ONLY and isinstance(caught.value, PermissionError)


def test_two_handles(place: Places) -> None:
    if place.kind not in ("file", "sqlite"):
        pytest.skip("one handle at a time")
    with place.open() as one, place.open() as other:
        v1 = one.make_version(insert={"a": b"1"})
        assert v1.id in other
        v2 = other.make_version(v1, update={"a": b"2"})
        v3 = one.make_version(v1, update={"b": b"3"})
        assert one.reload() >= 0 and other.reload() >= 0
        assert set(one.heads()) == set(other.heads()) == {v2, v3}


def test_empty_store(store: llvs.Store) -> None:
    assert store.heads() == () and store.most_recent_head is None and list(store.history()) == []
    assert store.version("nope") is None and "nope" not in store
    assert store.versions_of("a") == ()


def test_ids_are_bytes(store: llvs.Store) -> None:
    ids = [
        "é",
        "e\u0301",
        "a",
        "A",
        "a/b",
        "..",
        "con:aux",
        "\n",
        "\0",
        "\0\0",
        "\U0001f600",
        "\uffff",
        "x" * 4096,
        " ",
        "\u2126",
        "\u03a9",
    ]
    version = store.make_version(insert={id: str(index).encode() for index, id in enumerate(ids)})
    state = store.at(version)
    assert len(state) == len(set(ids)) == 16
    assert list(state) == sorted(ids, key=str.encode)
    for index, id in enumerate(ids):
        assert state[id] == str(index).encode() and id in state
    assert dict(state.prefix("é").items()) == {"é": b"0"}


def test_values_of_all_sizes_and_kinds(store: llvs.Store) -> None:
    big = os.urandom(3 << 20)
    entries = {
        "empty": b"",
        "nul": b"\0",
        "big": big,
        "array": bytearray(b"mutable"),
        "view": memoryview(b"xxviewxx")[2:6],
        "zeros": bytes(1 << 20),
    }
    version = store.make_version(insert=entries)
    assert dict(store.at(version).items()) == {id: bytes(data) for id, data in entries.items()}
    assert version.value_data_size == sum(len(data) for data in entries.values())
    with pytest.raises(TypeError):
        store.make_version(insert={"a": "text"})  # type: ignore[dict-item]
    with pytest.raises(TypeError):
        store.make_version(insert={"a": 5})  # type: ignore[dict-item]


def test_state_is_a_mapping(memory: llvs.Store) -> None:
    version = memory.make_version(insert={f"n/{index:04}": str(index).encode() for index in range(2500)} | {"m": b"", "o": b"last"})
    state = memory.at(version)
    assert len(state) == 2502 and state.version == version.id
    part = state.prefix("n/")
    assert len(part) == len(list(part)) == len(dict(part.items())) == len(list(part.values())) == 2500
    assert list(part)[:2] == ["n/0000", "n/0001"] and part["n/2499"] == b"2499"
    assert "m" not in part and "m" in state and "" not in state and 5 not in state
    with pytest.raises(KeyError):
        part["m"]
    assert part.get("m") is None and part.get("m", b"?") == b"?" and state.get("o") == b"last"
    some = state.range("n/0010", "n/0013")
    assert list(some) == ["n/0010", "n/0011", "n/0012"] and len(some) == 3
    assert list(state.range("n/2499")) == ["n/2499", "o"]
    assert list(state.range(stop="n")) == ["m"] and list(state.range(stop="")) == [] and len(state.range(stop="")) == 0
    assert list(part.range("n/24", "n/2402")) == ["n/2400", "n/2401"]
    assert list(part.prefix("n/249").prefix("n/2499")) == ["n/2499"] and list(part.prefix("m")) == []
    assert list(part.prefix("n")) == list(part)
    assert some == {"n/0010": b"10", "n/0011": b"11", "n/0012": b"12"} and some != {}
    assert [reference.stored_version for reference in some.references()] == [version.id] * 3
    assert "2502" in repr(state)


def test_enumeration_in_pages_of_bytes(memory: llvs.Store) -> None:
    version = memory.make_version(insert={f"{index:02}": bytes([index]) * (1 << 20) for index in range(40)})
    for index, (id, data) in enumerate(memory.at(version).items()):
        assert id == f"{index:02}" and data == bytes([index]) * (1 << 20)


def test_many_values_at_once(store: llvs.Store) -> None:
    entries = {f"id {index}": os.urandom(index % 50) for index in range(3000)}
    version = store.make_version(insert=entries)
    ids = [*entries, "missing", *reversed(entries)]
    found = store.values(ids, at=version)
    assert [value.data if value else None for value in found] == [entries.get(id) for id in ids]
    assert [value.id for value in found if value] == [id for id in ids if id in entries]
    references = [llvs.store.Reference(id, version.id) for id in ["id 7", "missing", "id 8"]]
    assert [value and value.data for value in store.values_by_reference(references)] == [entries["id 7"], None, entries["id 8"]]
    assert store.value_by_reference(references[1]) is None
    assert store.values([], at=version) == [] and store.values_by_reference([]) == []


def test_insert_and_update_are_labelled_truly(store: llvs.Store) -> None:
    v1 = store.make_version(update={"a": b"1"})
    v2 = store.make_version(v1, insert={"a": b"2", "b": b"3"})
    v3 = store.make_version(
        v2, remove=["a", "nothing"], changes=[llvs.Change.preserve(llvs.store.Reference("b", v2.id)), llvs.Change.update("c", b"")]
    )
    assert [(change.kind, change.id) for change in store.changes(v1)] == [("insert", "a")]
    assert [(str(change.kind), change.id) for change in store.changes(v2)] == [("update", "a"), ("insert", "b")]
    assert {change.id: change.kind for change in store.changes(v3)}["a"] is llvs.store.ChangeKind.REMOVE
    # Only merges record a preserve: with one predecessor the bytes are the version's own.
    v4 = store.make_version(
        v3, changes=[llvs.Change.preserve(llvs.store.Reference("b", v2.id)), llvs.Change.preserve(llvs.store.Reference("a", v2.id))]
    )
    assert [(str(change.kind), change.id, change.reference) for change in store.changes(v4)] == [
        ("insert", "a", llvs.store.Reference("a", v4.id))
    ]
    assert dict(store.at(v3).items()) == {"b": b"3", "c": b""}


def test_differences(store: llvs.Store) -> None:
    v1 = store.make_version(insert={"a": b"1", "b": b"2"})
    v2 = store.make_version(v1, update={"a": b"3"}, remove=["b"], insert={"c": b"4"})
    assert list(store.diff(v1, v2)) == [
        llvs.Change(llvs.store.ChangeKind.UPDATE, "a", b"3", llvs.store.Reference("a", v2.id)),
        llvs.Change(llvs.store.ChangeKind.REMOVE, "b"),
        llvs.Change(llvs.store.ChangeKind.INSERT, "c", b"4", llvs.store.Reference("c", v2.id)),
    ]
    back = list(store.diff(v2, v1))
    assert [(change.kind.value, change.id, change.data) for change in back] == [
        ("update", "a", b"1"),
        ("insert", "b", b"2"),
        ("remove", "c", None),
    ]
    assert [change.data for change in store.diff(v1, v2, with_data=False)] == [None, None, None]
    other = store.make_version(insert={"a": b"1"}, root=True)
    assert [change.id for change in store.diff(other, v1)] == ["a", "b"]
    assert list(store.diff(v1, v1)) == []


def test_history(store: llvs.Store) -> None:
    chain = [store.make_version(insert={"a": b"0"})]
    for index in range(1, 1100):
        chain.append(store.make_version(chain[-1], update={"a": str(index).encode()}))
    assert [version.id for version in store.history()] == [version.id for version in reversed(chain)]
    assert [version.id for version in store.history(chain[2])] == [version.id for version in reversed(chain[:3])]
    assert (
        store.is_ancestor(chain[0], chain[-1]) and not store.is_ancestor(chain[-1], chain[0]) and not store.is_ancestor(chain[3], chain[3])
    )
    assert store.successors(chain[4]) == (chain[5],) and store.successors(chain[-1]) == ()
    assert store.merge_bases(chain[3], chain[9]) == (chain[3],)
    assert store.versions_of("a") == tuple(reversed(chain))
    statistics = store.statistics()
    assert statistics.versions == len(chain) and statistics.heads == 1 and statistics.pending == 0


def test_histories_of_a_length(memory: llvs.Store) -> None:
    version = memory.make_version(insert={"a": b"0"})
    for i in range(1, 1_205):
        version = memory.make_version(version, update={"a" if i % 2 else "b": b"%d" % i})
    whole = list(memory.history())
    for limit in (0, 1, 999, 1_000, 1_001, 1_205, 5_000):
        assert list(memory.history(limit=limit)) == whole[:limit], limit
        found = [version for version, _ in memory.value_history("a", limit=limit)]
        assert found == [version for version, _ in memory.value_history("a")][:limit], limit
    assert list(memory.history(whole[7], hiding=[whole[20]], limit=5)) == whole[7:12]
    assert list(memory.history(prefix="b", limit=2)) == list(memory.history(prefix="b"))[:2] == list(memory.versions_of("b"))[:2]
    for wrong in (lambda: memory.history(limit=-1), lambda: memory.value_history("a", limit=-1)):
        with pytest.raises(llvs.errors.InvalidArgumentError):
            wrong()


def test_branches(store: llvs.Store) -> None:
    root = store.make_version()
    one = store.make_version(root, branch="draft", insert={"a": b"1"})
    two = store.make_version(root, branch="draft", insert={"b": b"1"})
    main = store.make_version(root, insert={"c": b"1"})
    assert store.heads(branch="draft") == tuple(sorted((one, two), key=lambda version: version.timestamp, reverse=True))
    assert store.heads(branch="nothing") == ()
    assert store.heads(limit=2) == store.heads()[:2] and store.heads(branch="draft", limit=1) == store.heads(branch="draft")[:1]
    assert store.heads(limit=0) == () and len(store.heads()) == 3
    with pytest.raises(llvs.errors.InvalidMetadataError):
        store.heads(branch="")
    assert store.make_version(one).branch is None
    assert store.merge_heads(main, selection="unbranched") is not None
    name = llvs.store.make_branch_name("draft")
    assert name.startswith("draft_") and len(name) == len("draft_") + 36


def test_metadata(store: llvs.Store) -> None:
    metadata = {"text": "é", "number": 1.5, "list": [1, None, True, {"k": "v"}], "raw": b"\xff\xfe", "empty": b"", "json": b" 1 "}
    version = store.make_version(metadata=metadata)
    again = store.version(version.id)
    assert again is not None
    assert again.metadata == {**metadata, "json": 1}
    assert again.raw_metadata["json"] == b" 1 " and again.raw_metadata["number"] == b"1.5" and again.raw_metadata["text"] == '"é"'.encode()
    with pytest.raises(ValueError):
        store.make_version(version, metadata={"x": float("nan")})
    with pytest.raises(TypeError):
        store.make_version(version, metadata={"x": object()})
    assert len(store.heads()) == 1


def test_the_same_again_under_its_id(store: llvs.Store) -> None:
    v1 = store.make_version(insert={"a": b"1"}, id="mine")
    assert v1.id == "mine" and store.make_version(insert={"a": b"1"}, id="mine") == v1
    with pytest.raises(llvs.errors.VersionMismatchError) as caught:
        store.make_version(insert={"a": b"2"}, id="mine")
    assert caught.value.version_id == "mine"
    with pytest.raises(llvs.errors.InvalidIDError) as caught2:
        store.make_version(insert={"a": b"2"}, id="MINE", root=True)
    assert caught2.value.code == llvs.ErrorCode.INVALID_VERSION_ID


def test_revert(store: llvs.Store) -> None:
    v1 = store.make_version(insert={"a": b"1", "b": b"1"})
    v2 = store.make_version(v1, update={"a": b"2"}, remove=["b"], insert={"c": b"2"})
    v3 = store.make_version(v2, update={"c": b"3"})
    reverted = store.revert(v2, at=v3, metadata={"undo": v2.id})
    undone = reverted.version
    assert undone is not None and reverted.undone == ("a", "b") and reverted.superseded == ("c",)
    assert dict(store.at(undone).items()) == {"a": b"1", "b": b"1", "c": b"3"}
    assert undone.metadata == {"undo": v2.id} and undone.predecessors == (v3.id,)
    # One predecessor: the bytes are stored again.
    value = store.value("a", at=undone)
    assert value is not None and value.stored_version == undone.id


def test_a_revert_that_would_undo_nothing_stores_nothing(store: llvs.Store) -> None:
    v1 = store.make_version(insert={"a": b"1"})
    v2 = store.make_version(v1, update={"a": b"2"})
    v3 = store.make_version(v2, update={"a": b"3"})
    empty = store.make_version(v3, metadata={"note": "nothing changed"})
    known = [version.id for version in store.history()]
    assert store.revert(v2, at=v3, metadata={"undo": v2.id})[:3] == (None, (), ("a",))
    assert store.revert(v2, at=v1)[:5] == (None, (), (), (), False)
    assert store.revert(empty, at=empty).version is None
    assert [version.id for version in store.history()] == known and [head.id for head in store.heads()] == [empty.id]
    undone = store.revert(v3, at=empty).version
    assert undone is not None and dict(store.at(undone).items()) == {"a": b"2"}


def test_a_revert_undoes_what_both_sides_did_alike(store: llvs.Store) -> None:
    base = store.make_version(insert={"gone": b"1", "same": b"1"})
    left = store.make_version(base, update={"same": b"2"}, remove=["gone"])
    right = store.make_version(base, update={"same": b"2"}, remove=["gone"])
    merged = store.merge(left, right)
    # The bytes of the later side, `right`, prevail. The removal counts as both sides'.
    undone = store.revert(right, at=merged).version
    assert undone is not None and dict(store.at(undone).items()) == {"gone": b"1", "same": b"1"}


def test_versions_and_values_are_plain_things(memory: llvs.Store) -> None:
    version = memory.make_version(insert={"a": b"1"})
    assert version == memory.version(version.id) and hash(version) == hash(memory.version(version.id)) and version != "x"
    value = memory.value("a", at=version)
    assert value is not None and pickle.loads(pickle.dumps(value)) == value and copy.copy(value) == value
    assert json.dumps(llvs.store.ChangeKind.PRESERVE_REMOVAL) == '"preserve_removal"'
    with pytest.raises(TypeError):
        pickle.dumps(memory)
    with pytest.raises(TypeError):
        copy.copy(memory)
    assert pickle.loads(pickle.dumps(version)) == version


def test_progress_and_cancellation_of_verify(memory: llvs.Store) -> None:
    version = memory.make_version(insert={"a": b"1"})
    seen: list[llvs.control.Progress] = []

    def progress(now: llvs.control.Progress) -> None:
        seen.append(now)

    memory.verify(progress=progress)
    assert seen and all(now.stage == llvs.control.Stage.VERIFYING for now in seen)
    with pytest.raises(llvs.CancelledError):
        memory.verify(progress=lambda now: False)
    with llvs.CancelToken() as token:
        assert not token.cancelled
        memory.verify(cancel=token)
        token.cancel()
        assert token.cancelled
        with pytest.raises(llvs.CancelledError):
            memory.verify(cancel=token)
    assert memory.at(version)["a"] == b"1"


def test_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert llvs.default_path("app") == str(tmp_path / "app" / "store.llvs")
    for path in (tmp_path / "é.llvs", str(tmp_path / "text.llvs"), os.fsencode(tmp_path / "bytes.llvs")):
        with llvs.Store(path) as store:
            store.make_version(insert={"a": b"1"})
        assert os.path.isdir(path)
    with llvs.Store(tmp_path / "cached.llvs", options=llvs.StoreOptions(cache_directory=tmp_path / "caches")) as store:
        store.make_version(insert={"a": b"1"})


def test_log(tmp_path: Path) -> None:
    import logging

    lines: list[tuple[llvs.log.LogLevel, str]] = []
    observer = llvs.log.observe_log(lambda level, message: lines.append((level, message)), "debug")
    with llvs.Store(tmp_path / "store") as store:
        store.make_version(insert={"a": b"secret-bytes"})
    observer.close()
    observer.close()
    count = len(lines)
    with llvs.Store(tmp_path / "store"):
        pass
    assert len(lines) == count
    assert not any("secret-bytes" in message for _, message in lines)
    with llvs.log_to(logging.getLogger("llvs"), "error"):
        pass
    with pytest.raises(llvs.errors.InvalidArgumentError):
        llvs.log.observe_log(print, "loud")


def test_snapshots(new_store: Callable[[], llvs.Store], tmp_path: Path) -> None:
    store, other = new_store(), new_store()
    v1 = store.make_version(insert={f"{index}": os.urandom(100) for index in range(500)})
    v2 = store.make_version(v1, remove=["7"])
    made = store.write_snapshot(tmp_path / "snapshot")
    assert made.version_count == 2 and made.latest_version == v2.id and made.chunk_count >= 1
    assert abs(made.created_at - time.time()) < 60
    restored = other.restore_snapshot(tmp_path / "snapshot")
    assert restored.id == made.id
    assert dict(other.at(v2).items()) == dict(store.at(v2).items())
    other.make_version(v2)
    with pytest.raises(llvs.errors.SnapshotError) as caught:
        other.restore_snapshot(tmp_path / "snapshot")
    assert caught.value.code == llvs.ErrorCode.STORE_NOT_EMPTY
    fresh = new_store()
    with pytest.raises(llvs.NotFoundError):
        fresh.restore_snapshot(tmp_path / "nothing")
    (tmp_path / "empty").mkdir()
    with pytest.raises(llvs.errors.SnapshotError) as caught:
        fresh.restore_snapshot(tmp_path / "empty")
    assert caught.value.code == llvs.ErrorCode.SNAPSHOT_MISSING
    chunk = next((tmp_path / "snapshot").rglob("chunk-*"))
    data = bytearray(chunk.read_bytes())
    data[len(data) // 2] ^= 1
    chunk.write_bytes(data)
    with pytest.raises(llvs.errors.SnapshotError) as caught:
        fresh.restore_snapshot(tmp_path / "snapshot")
    assert caught.value.code == llvs.ErrorCode.SNAPSHOT_DAMAGED and fresh.heads() == ()


# Values that come in pieces

LARGE = bytes(range(256)) * 12_000 + b"!"


class Unseekable(io.RawIOBase):
    """A pipe, as it were."""

    def __init__(self, data: bytes) -> None:
        self._inner = io.BytesIO(data)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        return self._inner.readinto(memoryview(buffer)[:10_007])


@pytest.mark.parametrize("storage", ["file", "sqlite", "memory"])
def test_values_are_read_from_files_and_iterables(tmp_path: Path, storage: str) -> None:
    on_disk = tmp_path / "large"
    on_disk.write_bytes(LARGE)
    with llvs.Store(tmp_path / "store", storage=storage) as store, on_disk.open("rb") as file, on_disk.open("rb") as second:
        second.seek(1_000_000)
        pieces = [LARGE[:5], b"", bytearray(LARGE[5:2_000_000]), memoryview(LARGE)[2_000_000:]]
        version = store.make_version(
            insert={"file": file, "rest": second, "bytes": io.BytesIO(b"small"), "plain": b"x"},
            update=[("pieces", iter(pieces)), ("list", [b"a", b"b"]), ("pipe", Unseekable(LARGE)), ("empty", io.BytesIO())],
        )
        expected = {
            "file": LARGE,
            "rest": LARGE[1_000_000:],
            "bytes": b"small",
            "plain": b"x",
            "pieces": LARGE,
            "list": b"ab",
            "pipe": LARGE,
            "empty": b"",
        }
        assert dict(store.at(version)) == expected
        assert version.value_data_size == sum(map(len, expected.values()))
        assert not store.verify().damages


def test_what_reading_raises_comes_out_and_nothing_is_stored(tmp_path: Path) -> None:
    def broken() -> Iterator[bytes]:
        yield LARGE
        raise LookupError("no more")

    class Waiting(io.BytesIO):
        def read(self, size: int | None = -1) -> Any:
            return None

    with llvs.Store(tmp_path / "store") as store:
        for value, problem in (
            (broken(), LookupError),
            ([LARGE, "text"], TypeError),
            ([1, 2], TypeError),
            (io.StringIO("text"), TypeError),
            (Waiting(), llvs.errors.InvalidArgumentError),
        ):
            with pytest.raises(problem):
                store.make_version(insert={"good": io.BytesIO(LARGE), "bad": value})
        for value in ("text", 7, {"a": b"b"}, None, 1.5):
            with pytest.raises(TypeError):
                store.make_version(insert={"bad": value})
        assert store.heads() == ()
        assert list((tmp_path / "store" / "blobs").iterdir()) == []
        with pytest.raises(llvs.errors.DuplicateIDError):
            store.make_version(insert={"a": b"x"}, update={"a": io.BytesIO(b"y")})


def test_a_coordinator_saves_what_comes_in_pieces(tmp_path: Path) -> None:
    with llvs.Coordinator(tmp_path / "store") as notes:
        assert notes.save(update={"large": io.BytesIO(LARGE)}, branch="draft") is not None
        version = notes.save(update={"large": iter([LARGE])})
        assert version is not None
        found = notes.value("large")
        assert found is not None and found.data == LARGE


def test_salvage_brings_what_is_whole(tmp_path: Path) -> None:
    with llvs.Store(tmp_path / "damaged", durability="normal") as store:
        first = store.make_version(insert={"kept": b"1", "lost": b"1"})
        second = store.make_version(first, update={"lost": b"DAMAGE"})
        third = store.make_version(second, insert={"new": b"3"})
    (segment,) = (tmp_path / "damaged" / "segments").glob("*.seg")
    segment.write_bytes(segment.read_bytes().replace(b"DAMAGE", b"damage"))
    with llvs.Store(tmp_path / "damaged", read_only=True) as store:
        report = store.verify()
        # Only the value is lost: its version and the descendants are present.
        assert [(d.version, d.lost, d.value_id) for d in report.damages] == [(second.id, llvs.store.Loss.VALUE, "lost")]
        assert report.damages[0].file == str(segment) and report.unfinished == () and report.pending == 0
        assert {version.id for version in store.history()} == {first.id, second.id, third.id}
        assert store.at(third)["new"] == b"3" and store.at(first)["lost"] == b"1"
        with pytest.raises(llvs.StorageError) as caught:
            store.value("lost", at=third)
        assert caught.value.code == llvs.ErrorCode.DAMAGED
    salvaged = llvs.Store.salvage(tmp_path / "damaged", tmp_path / "new")
    assert (salvaged.versions, salvaged.waiting) == (1, 1)
    (made,) = salvaged.made
    assert made.original == third.id and not made.is_complete
    assert any(d.version == second.id and d.lost is llvs.store.Loss.VALUE and d.value_id == "lost" for d in salvaged.damages)
    with llvs.Store(tmp_path / "new") as store:
        assert dict(store.at(first)) == {"kept": b"1", "lost": b"1"}
        assert dict(store.at(made.version)) == {"kept": b"1", "lost": b"1", "new": b"3"}
        version = store.version(made.version)
        assert version is not None and version.metadata["__llvs_salvaged"] == {"version": third.id, "complete": False}
    with pytest.raises(llvs.Error):
        llvs.Store.salvage(tmp_path / "damaged", tmp_path / "new")
    with pytest.raises(llvs.NotFoundError):
        llvs.Store.salvage(tmp_path / "nothing", tmp_path / "other")
