"""Attacks through ids: squatting, equivocation, twins that differ in case, forged empty roots. SECURITY.md says what an id vouches for."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import struct
import uuid
from base64 import b64encode
from pathlib import Path
from typing import Any, Iterable, Optional, Sequence

import pytest

import llvs

ROOT_ID = "00000000-0000-8000-8000-000000000000"
MISMATCH = llvs.ErrorCode.CONTENT_MISMATCH
VECTORS = Path(__file__).resolve().parents[1] / "Vectors"


def files_of(id: str, after: Sequence[str] = (), values: Optional[dict[str, bytes]] = None, timestamp: float = 7e8) -> tuple[bytes, bytes]:
    """The two files of a version, as any program may write them."""
    version: dict[str, Any] = {"identifier": id, "timestamp": timestamp, "metadata": []}
    if after:
        version["predecessors"] = dict(zip(("idOfFirst", "idOfSecond"), after))
    changes = [{"insert": {"id": key, "data": b64encode(value).decode()}} for key, value in (values or {}).items()]
    return json.dumps({"version": version}).encode(), json.dumps(changes).encode()


def publish(folder: Path, id: str, files: tuple[bytes, bytes]) -> None:
    """Writes the files of a version into an exchange folder."""
    for name, data in zip(("changes", "versions"), reversed(files)):
        (folder / name).mkdir(parents=True, exist_ok=True)
        (folder / name / id).write_bytes(data)


def problems(result: llvs.exchange.ExchangeResult) -> list[tuple[str, int]]:
    """Their names and codes."""
    return [(problem.name, problem.code) for problem in result.problems]


def ids(store: llvs.Store) -> set[str]:
    """Returns the ids of all versions."""
    return {version.id for version in store.history()}


def retrieve(store: llvs.Store, folder: Path) -> llvs.exchange.ExchangeResult:
    """Retrieves with an exchange that knows nothing from before."""
    with llvs.Exchange(store, folder) as exchange:
        return exchange.retrieve()


def send(store: llvs.Store, folder: Path) -> llvs.exchange.ExchangeResult:
    """Likewise."""
    with llvs.Exchange(store, folder) as exchange:
        return exchange.send()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder that is shared with the attacker."""
    (tmp_path / "shared").mkdir()
    return tmp_path / "shared"


def forked(folder: Path) -> tuple[llvs.Store, str, str, str]:
    """Makes a store with two heads and sends them. Returns also the id of their merge, which any device can compute."""
    store = llvs.Store(storage="memory")
    root = store.make_version(insert={"a": b"1", "b": b"1"}).id
    one, two = store.make_version(root, update={"a": b"2"}).id, store.make_version(root, update={"b": b"2"}).id
    send(store, folder)
    with llvs.Store(storage="memory") as other:
        retrieve(other, folder)
        merged = other.merge(one, two)
    return store, one, two, merged.id


@pytest.mark.parametrize("when", ["before the retrieve", "after it"])
@pytest.mark.parametrize("kind", ["a root", "a merge of the two", "no version at all"])
def test_the_id_of_the_next_merge_is_taken_first(folder: Path, when: str, kind: str) -> None:
    """An attacker publishes a file under the id of the next merge. All devices merge nevertheless, the genuine merge is sent, and later
    devices receive it."""
    store, one, two, merge = forked(folder)
    forged = files_of(merge, (two, one) if kind == "a merge of the two" else (), {"evil": b"1"})
    if kind == "no version at all":
        forged = (b"{", b"[")
    with store, llvs.Exchange(store, folder) as exchange:
        if when == "before the retrieve":
            publish(folder, merge, forged)
        exchange.retrieve()
        if when == "after it":
            publish(folder, merge, forged)
        assert store.merge_heads(one).id == merge  # type: ignore[union-attr]
        later = store.make_version(merge, insert={"c": b"3"}).id
        exchange.send()
        with llvs.Store(storage="memory") as late:
            assert not retrieve(late, folder).problems
            assert ids(late) == ids(store) and dict(late.at(later)) == {"a": b"2", "b": b"2", "c": b"3"}


def test_one_id_for_two_contents(tmp_path: Path) -> None:
    """Two replicas receive different contents under one id. They do not diverge: only one of the two is a version."""
    honest, evil = tmp_path / "honest", tmp_path / "evil"
    with llvs.Store(storage="memory") as source, llvs.Store(storage="memory") as a, llvs.Store(storage="memory") as b:
        root = source.make_version(insert={"a": b"1"}).id
        head = source.make_version(root, update={"a": b"2"}).id
        send(source, honest)
        shutil.copytree(honest, evil)
        version = json.loads((evil / "versions" / root).read_bytes())
        version["version"].pop("digest", None)
        (evil / "versions" / root).write_text(json.dumps(version))
        (evil / "changes" / root).write_text(json.dumps([{"insert": {"id": "a", "data": b64encode(b"evil").decode()}}]))
        assert not retrieve(a, honest).problems
        with llvs.Exchange(b, evil) as exchange:
            for _ in range(2):
                assert problems(exchange.retrieve()) == sorted([(root, MISMATCH), (head, llvs.ErrorCode.MISSING_PREDECESSOR)])
        assert ids(b) == set()
        assert not retrieve(b, honest).problems
        assert ids(a) == ids(b) and b.at(root)["a"] == b"1"
        # The genuine version arrives later, and does not replace the stored one.
        with llvs.Exchange(b, evil) as exchange:
            assert problems(exchange.verify()) == [(root, MISMATCH)]
        assert b.at(root)["a"] == b"1" and b.verify().unvouched == 0


def test_a_forged_file_is_not_remembered(folder: Path) -> None:
    """The genuine file is received later, though its size and its times are those of the forged one."""
    with llvs.Store(storage="memory") as source, llvs.Store(storage="memory") as store:
        id = source.make_version(insert={"a": b"1"}).id
        send(source, folder)
        changes = folder / "changes" / id
        genuine, times = changes.read_bytes(), changes.stat()
        with llvs.Exchange(store, folder) as exchange:
            changes.write_bytes(genuine.replace(b64encode(b"1"), b64encode(b"2")))
            os.utime(changes, ns=(times.st_atime_ns, times.st_mtime_ns))
            assert [name for name, _ in problems(exchange.retrieve())] == [id]
            changes.write_bytes(genuine)
            os.utime(changes, ns=(times.st_atime_ns, times.st_mtime_ns))
            assert exchange.retrieve().versions == (id,)


@pytest.mark.parametrize("with_genuine", [False, True])
def test_small_letters(folder: Path, with_genuine: bool) -> None:
    """Computed ids are in upper case. The same id in lower case is another id, and vouches for nothing."""
    with llvs.Store(storage="memory") as source, llvs.Store(storage="memory") as store:
        root = source.make_version(insert={"a": b"1"}).id
        if with_genuine:
            send(source, folder)
        mixed = root[:9] + root[9:].lower()
        for id in {root.lower(), mixed} - {root}:
            publish(folder, id, files_of(id, (), {"a": b"1"}))
        result = retrieve(store, folder)
        assert problems(result) == sorted((id, MISMATCH) for id in {root.lower(), mixed} - {root})
        assert ids(store) == ({root} if with_genuine else set())


@pytest.mark.parametrize("forged", [files_of(ROOT_ID), files_of(ROOT_ID, (), {"a": b"evil"}, 0.0), files_of(ROOT_ID, ("other",), {}, 0.0)])
def test_a_forged_empty_root(folder: Path, forged: tuple[bytes, bytes]) -> None:
    """All devices know the contents of the empty root: a forged one is reported, and no version waits for another."""
    with llvs.Coordinator(storage="memory") as notes:
        notes.save(insert={"a": b"1"})
        head = notes.current_version.id
        send(notes.store, folder)
        publish(folder, ROOT_ID, forged)
        publish(folder, "other", files_of("other"))
        with llvs.Store(storage="memory") as store:
            assert problems(retrieve(store, folder)) == [(ROOT_ID, MISMATCH)]
            assert ids(store) >= {head} and dict(store.at(head)) == {"a": b"1"} and dict(store.at(ROOT_ID)) == {}
            assert not store.verify().damages


# ---- twins by case ----


def line(store: llvs.Store, first: str, count: int) -> list[str]:
    """Makes a version under an id of the caller, and a line of versions from it."""
    made = [store.make_version(insert={"a": b"0"}, id=first).id]
    for i in range(count - 1):
        made.append(store.make_version(made[-1], update={"a": b"%d" % i}).id)
    return made


@pytest.mark.parametrize("storage", ["file", "sqlite"])
@pytest.mark.parametrize("first", ["root", "ROOT", "0C90A79B-B798-4F2B-B9AC-7665646A26C4"])
def test_twins_hide_nothing(tmp_path: Path, folder: Path, storage: str, first: str) -> None:
    """A version whose id differs from a known one only by case is another version. Both stay, also after reopening."""
    twin = first.swapcase() if first.lower() != first else first.upper()
    twin = twin if twin != first else first.lower()
    path = tmp_path / "store"
    with llvs.Store(path, storage=storage) as store:
        made = line(store, first, 56)
        publish(folder, twin, files_of(twin, (), {"evil": b"1"}, -1e6))
        publish(folder, "on-the-twin", files_of("on-the-twin", (twin,)))
        result = retrieve(store, folder)
        assert not result.problems and set(result.versions) == {twin, "on-the-twin"}
        with pytest.raises(llvs.errors.InvalidIDError):
            store.make_version(made[-1], id="".join(c.lower() if i % 2 else c.upper() for i, c in enumerate(first)))
    for _ in range(2):
        with llvs.Store(path, storage=storage) as store:
            assert ids(store) == {*made, twin, "on-the-twin"}
            assert dict(store.at(twin)) == {"evil": b"1"} and dict(store.at(first)) == {"a": b"0"}
            assert not store.verify().damages
            store.make_version(store.most_recent_head, update={"a": b"more"}, id=f"more-{len(made)}")
            made.append(f"more-{len(made)}")
    with llvs.Store(path, storage=storage) as store, llvs.Store(tmp_path / "other", storage=storage) as other:
        store.write_snapshot(tmp_path / "snapshot")
        other.restore_snapshot(tmp_path / "snapshot")
        assert ids(other) == ids(store)
        send(store, tmp_path / "onwards")
        with llvs.Store(storage="memory") as third:
            assert not retrieve(third, tmp_path / "onwards").problems
            assert ids(third) == ids(store)


def test_a_segment_with_a_twin(tmp_path: Path) -> None:
    """A segment with a twin is put into a store's directory, and read first. It hides no version."""
    with llvs.Store(tmp_path / "store") as store:
        made = line(store, "root", 56)
    with llvs.Store(tmp_path / "evil") as store:
        twin = line(store, "ROOT", 4)
    for segment in (tmp_path / "evil" / "segments").iterdir():
        shutil.copy(segment, tmp_path / "store" / "segments")
        os.utime(tmp_path / "store" / "segments" / segment.name, (1, 1))
    shutil.rmtree(tmp_path / "store" / "cache", ignore_errors=True)
    with llvs.Store(tmp_path / "store") as store:
        assert ids(store) == {*made, *twin} and not store.verify().damages
    report = llvs.Store.salvage(tmp_path / "store", tmp_path / "salvaged")
    assert report is not None
    with llvs.Store(tmp_path / "salvaged") as store:
        assert ids(store) == {*made, *twin}


class Folding(llvs.exchange.Transport):
    """A place that takes names in any case for one."""

    name = "a place that folds case"

    def __init__(self) -> None:
        self.files: dict[str, tuple[str, bytes, bytes]] = {}

    def list(self) -> Iterable[str]:
        return [name for name, _, _ in self.files.values()]

    def fetch_versions(self, names: Sequence[str]) -> Sequence[Optional[bytes]]:
        return [self.files[name.lower()][1] if name.lower() in self.files else None for name in names]

    def fetch_changes(self, names: Sequence[str]) -> Sequence[Any]:
        return [self.files[name.lower()][2] if name.lower() in self.files else None for name in names]

    def send(self, files: Sequence[Any]) -> None:
        for file in files:
            self.files[file.name.lower()] = (file.name, bytes(file.version), bytes(file.changes))


def test_a_place_that_cannot_hold_both(folder: Path) -> None:
    """A place ignores case. Of two twins the second is a problem there, by name, and so are its descendants. The first and all other
    versions are stored."""
    for twin, after in (("note", ()), ("NOTE", ()), ("Note", ()), ("other", ("NOTE",))):
        publish(folder, twin, files_of(twin, after, {twin: b"1"}))
    with llvs.Store(storage="memory") as store:
        retrieve(store, folder)
        assert ids(store) == {"note", "NOTE", "Note", "other"}
        remote = Folding()
        with llvs.Exchange(store, remote) as exchange:
            for _ in range(2):
                result = exchange.send()
                held = [name for name in remote.list() if name.lower() == "note"]
                assert len(held) == 1
                refused = {"note", "NOTE", "Note"} - set(held) | (set() if held == ["NOTE"] else {"other"})
                assert {problem.name for problem in result.problems} == refused
        with llvs.Store(storage="memory") as late, llvs.Exchange(late, remote) as exchange:
            assert not exchange.retrieve().problems
            assert ids(late) == set(remote.list())
        # A folder distinguishes case, and holds all of them.
        assert not send(store, folder.parent / "another").problems


# ---- snapshots and imports ----


def snapshot(folder: Path, *entries: tuple[str, Sequence[str], dict[str, bytes], float]) -> Path:
    """A snapshot by docs/snapshot.md, as any program may write it."""
    payload = b""
    for id, after, values, timestamp in entries:
        version = files_of(id, after, {}, timestamp)[0]
        payload += struct.pack("<Q", len(version)) + version + struct.pack("<I", len(values))
        for key, value in sorted(values.items()):
            payload += struct.pack("<BI", 1, len(key)) + key.encode() + struct.pack("<Q", len(value)) + value
    name = str(uuid.uuid4()).upper()
    chunk = name.encode() + struct.pack("<BI", 0, len(payload)) + payload
    place = folder / "snapshots" / "llvs-v1"
    place.mkdir(parents=True, exist_ok=True)
    (place / "chunk-000").write_bytes(chunk)
    manifest = {
        "snapshotId": name,
        "format": "llvs-v1",
        "createdAt": 7e8,
        "latestVersionId": entries[-1][0],
        "versionCount": len(entries),
        "chunkCount": 1,
    }
    manifest |= {"totalSize": len(chunk), "chunkDigests": [hashlib.sha256(chunk).hexdigest()]}
    (place / "manifest.json").write_text(json.dumps(manifest))
    return folder


Entry = tuple[str, Sequence[str], dict[str, bytes], float]
WAITS = llvs.ErrorCode.MISSING_PREDECESSOR


@pytest.mark.parametrize("id", ["0D857AF1-E80E-8964-ADA3-9A11E10F965E", "0d857af1-e80e-8964-ada3-9a11e10f965e", ROOT_ID])
def test_a_snapshot_with_a_forged_version(folder: Path, id: str) -> None:
    """A forged version in a snapshot is reported by name, and so are its descendants. All other versions are restored, also twins."""
    forged: list[Entry] = [
        ("first", (), {"a": b"1"}, 1.0),
        (id, (), {"a": b"evil"}, 2.0),
        ("behind", (id,), {}, 3.0),
        ("far", ("first", "behind"), {}, 4.0),
    ]
    with llvs.Store(storage="memory") as store:
        restored = store.restore_snapshot(snapshot(folder, *forged, ("second", ("first",), {"b": b"1"}, 5.0)))
        assert restored is not None
        # All devices know the contents of the empty root, so its descendants wait for nothing.
        lost = [] if id == ROOT_ID else [("behind", WAITS), ("far", WAITS)]
        assert [(p.name, p.code) for p in restored.problems] == sorted([(id, MISMATCH), *lost])
        assert ids(store) - {ROOT_ID} == {"first", "second"} | ({"behind", "far"} if id == ROOT_ID else set())
        assert not store.verify().damages
    with llvs.Store(storage="memory") as store:
        restored = store.restore_snapshot(snapshot(folder, ("first", (), {"a": b"1"}, 1.0), ("FIRST", (), {"b": b"1"}, 2.0)))
        assert restored is not None and not restored.problems
        assert ids(store) == {"first", "FIRST"}


@pytest.mark.parametrize("where", ["before it", "behind it", "on both sides of it", "while it is in the store"])
def test_a_snapshot_with_a_forged_version_and_the_genuine_one(folder: Path, where: str) -> None:
    """The genuine version and its descendants are restored, whatever the order of the genuine and the forged one."""
    genuine: Entry = ("0D857AF1-E80E-8964-ADA3-9A11E10F965E", (), {}, 0.0)
    forged: Entry = (genuine[0], (), {"a": b"evil"}, 2.0)
    on_it: Entry = ("on-it", (genuine[0],), {"b": b"1"}, 3.0)
    entries = {
        "before it": [forged, genuine, on_it],
        "behind it": [genuine, on_it, forged],
        "on both sides of it": [forged, genuine, forged, on_it],
    }
    with llvs.Store(storage="memory") as store:
        if where in entries:
            order = entries[where]
        else:
            store.restore_snapshot(snapshot(folder / "first", genuine))
            order = [forged, on_it, forged]
        restored = store.restore_snapshot(snapshot(folder / "second", *order))
        assert restored is not None
        assert [(p.name, p.code) for p in restored.problems] == [(genuine[0], MISMATCH)] * order.count(forged)
        assert ids(store) == {genuine[0], "on-it"} and dict(store.at("on-it")) == {"b": b"1"}
    # A snapshot with any other duplicate is refused as a whole.
    with llvs.Store(storage="memory") as store:
        for twice in (genuine, on_it):
            with pytest.raises(llvs.errors.SnapshotError, match="occurs twice"):
                store.restore_snapshot(snapshot(folder / "third", genuine, on_it, twice))
            assert ids(store) == set()


def test_a_snapshot_with_a_merge_of_another_time(folder: Path) -> None:
    """The digest in an old merge's id does not cover its time. The time is checked nevertheless."""
    a, b = "a", "b"
    digest = hashlib.sha256(
        b"llvs merge 1\0" + b"\2" + b"".join(struct.pack("<H", 1) + id.encode() for id in (b, a)) + struct.pack("<II", 0, 0)
    ).digest()
    merge = str(
        uuid.UUID(bytes=digest[:6] + bytes([digest[6] & 15 | 128]) + digest[7:8] + bytes([digest[8] & 63 | 128]) + digest[9:16])
    ).upper()
    entries: list[Entry] = [(a, (), {}, 1.0), (b, (), {}, 2.0), (merge, (b, a), {}, 5.0), ("behind", (merge,), {}, 6.0)]
    with llvs.Store(storage="memory") as store:
        restored = store.restore_snapshot(snapshot(folder / "forged", *entries))
        assert restored is not None
        assert [(p.name, p.code) for p in restored.problems] == sorted([(merge, MISMATCH), ("behind", WAITS)])
    with llvs.Store(storage="memory") as store:
        restored = store.restore_snapshot(snapshot(folder / "genuine", *entries[:2], (merge, (b, a), {}, 2.000001), entries[3]))
        assert restored is not None and not restored.problems
        assert ids(store) == {a, b, merge, "behind"}


def test_a_coordinator_starts_from_a_snapshot_with_a_forged_version(folder: Path) -> None:
    """The rest of the snapshot is restored, and the next exchange brings the genuine version."""
    with llvs.Store(storage="memory") as source:
        first = source.make_version(insert={"a": b"1"}).id
        second = source.make_version(first, update={"a": b"2"}).id
        send(source, folder)
        snapshot(folder, ("honest", (), {"b": b"1"}, 1.0), (first, (), {"a": b"evil"}, 2.0), (second, (first,), {"a": b"evil"}, 3.0))
        with llvs.Coordinator(storage="memory") as notes:
            notes.attach(folder)
            assert notes.bootstrap()
            assert ids(notes.store) - {ROOT_ID} == {"honest"}
            notes.exchange()
            assert ids(notes.store) >= {"honest", first, second} and notes.store.at(second)["a"] == b"2"


def test_a_snapshot_needs_no_empty_root(folder: Path) -> None:
    """The descendants of the empty root can be restored without it."""
    with llvs.Store(storage="memory") as store:
        store.restore_snapshot(snapshot(folder, ("first", (ROOT_ID,), {"a": b"1"}, 1.0), ("second", ("first",), {}, 2.0)))
        assert ids(store) >= {"first", "second"}


@pytest.mark.parametrize("which", ["a head", "one that others build on"])
def test_a_store_of_another_implementation(tmp_path: Path, which: str) -> None:
    """An import accepts a version under a computed id only if the id matches its contents. If not, that version and its descendants are
    reported and left out."""
    source, forged = VECTORS / "interchange" / "store", tmp_path / "forged"
    with llvs.Store(storage="memory") as store:
        store.import_store(source)
        heads = [head.id for head in store.heads()]
        everything = ids(store)
        behind = {id: {other for other in everything if store.is_ancestor(id, other)} for id in everything}
    candidates = [id for id in sorted(everything) if id[14] == "4" and id[19] in "89AB"]
    head = next(id for id in candidates if (id in heads if which == "a head" else 0 < len(behind[id]) < len(everything) // 2))
    # The same id except for the digit of the UUID's version.
    old, new = head[1:], head[1:14] + "8" + head[15:]
    shutil.copytree(source, forged)
    for path in sorted(forged.rglob("*"), reverse=True):
        if path.is_file():
            data = path.read_bytes()
            path.write_bytes(data.replace(head.encode(), (head[0] + new).encode()))
        changed = path.name
        for size in range(1, 4):
            changed = changed.replace(head[size:], head[size:14] + "8" + head[15:])
        changed = changed.replace(head, head[0] + new)
        if changed != path.name:
            path.rename(path.with_name(changed))
    assert old != new
    with llvs.Store(storage="memory") as store:
        result = store.import_store(forged)
        assert set(problems(result)) >= {(head[0] + new, MISMATCH)} | {(id, WAITS) for id in behind[head]}
        assert ids(store) == everything - {head} - behind[head]
