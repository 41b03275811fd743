"""Stores and snapshots of the other implementation in its recent forms: compressed, in SQLite, in a zip.

They are made here from the store directory that it wrote (Tests/Vectors/interchange). Compressed values are true LZFSE, of uncompressed
blocks, which any program can write and read; `pyliblzfse` reads the same.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import sqlite3
import struct
import sys
import types
import zipfile
from base64 import b64encode
from pathlib import Path
from typing import Any, Callable, Iterator, Optional

import pytest
from conftest import ROOT

from test_remote_files import Shelf

import llvs
from llvs.store import _lzfse

VECTORS = ROOT / "Tests" / "Vectors" / "interchange"
EXPECTED: dict[str, Any] = json.loads((VECTORS / "expected.json").read_text())


def lzfse(data: bytes) -> bytes:
    return b"LLZF" + b"bvx-" + struct.pack("<I", len(data)) + data + b"bvx$"


def unlzfse(data: bytes) -> Optional[bytes]:
    if not data.startswith(b"bvx-") or len(data) < 12:
        return None
    (size,) = struct.unpack_from("<I", data, 4)
    return data[8 : 8 + size] if data[8 + size :] == b"bvx$" else None


@pytest.fixture
def theirs(tmp_path: Path) -> Path:
    """A copy of their store directory."""
    shutil.copytree(VECTORS / "store", tmp_path / "theirs")
    return tmp_path / "theirs"


def is_whole(store: llvs.Store) -> None:
    """The store has their values at every version."""
    assert {version.id for version in store.history()} == set(EXPECTED["versions"])
    assert {head.id for head in store.heads()} == set(EXPECTED["heads"])
    for version, state in EXPECTED["states"].items():
        shown = {}
        for id in store.at(version):
            value = store.value(id, at=version)
            assert value is not None
            shown[id] = f"{b64encode(value.data).decode()}@{value.stored_version}"
        assert shown == state


def compress(store: Path) -> int:
    """Compresses the files that an Apple system would compress; returns their number."""
    count = 0
    for file in [*(store / "values").rglob("*.json"), *(store / "maps").rglob("*.json")]:
        data = file.read_bytes()
        if len(data) > 64 or data == b"":
            file.write_bytes(lzfse(data))
            count += 1
    return count


def unescaped(name: str) -> str:
    return name.replace("LLVSSLASH", "/").replace("LLVSCOLON", ":")


def to_sqlite(folder: Path) -> None:
    """Puts the files of a folder into a database there: <key>/<version>.json, each split."""
    connection = sqlite3.connect(folder / "zone.sqlite")
    connection.execute("CREATE TABLE Zone (key TEXT NOT NULL, version TEXT NOT NULL, data BLOB, PRIMARY KEY (key, version))")
    files = [file for file in folder.rglob("*.json")]
    for file in files:
        *key, first, rest = file.relative_to(folder).parts
        connection.execute("INSERT INTO Zone VALUES (?, ?, ?)", (unescaped("".join(key)), first + rest[: -len(".json")], file.read_bytes()))
    connection.commit()
    connection.close()
    for entry in folder.iterdir():
        if entry.is_dir() and entry.name != "__llvs_values":
            shutil.rmtree(entry)


def test_compressed_values_and_nodes(theirs: Path, memory: llvs.Store, new_store: Callable[[], llvs.Store]) -> None:
    assert compress(theirs) > 20
    without = memory.import_store(theirs)
    assert {problem.code for problem in without.problems} <= {
        llvs.ErrorCode.UNSUPPORTED,
        llvs.ErrorCode.MISSING_PREDECESSOR,
    } and without.problems
    result = memory.import_store(theirs, decode=unlzfse)
    assert not result.problems and set(without.retrieved) | set(result.retrieved) == set(EXPECTED["versions"])
    is_whole(memory)

    class Stopped(Exception):
        pass

    def stop(data: bytes) -> Optional[bytes]:
        raise Stopped

    with pytest.raises(Stopped):
        new_store().import_store(theirs, decode=stop)
    with pytest.raises(TypeError):
        new_store().import_store(theirs, decode=5)  # type: ignore[arg-type]


def test_the_package_is_used_where_it_is_installed(theirs: Path, memory: llvs.Store, monkeypatch: pytest.MonkeyPatch) -> None:
    compress(theirs)
    package = types.ModuleType("liblzfse")

    class error(Exception):
        pass

    def decompress(data: bytes) -> bytes:
        found = unlzfse(data)
        if found is None:
            raise error
        return found

    package.error, package.decompress = error, decompress  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "liblzfse", package)
    _lzfse.default_decoder.cache_clear()
    try:
        assert not memory.import_store(theirs).problems
        decode = _lzfse.default_decoder()
        assert decode is not None and decode(b"bvx-\x05\0\0\0abbvx$") is None and decode(lzfse(b"ab")[4:] + b"x") is None
    finally:
        _lzfse.default_decoder.cache_clear()
    is_whole(memory)


def test_what_only_begins_like_compressed_data_is_taken_as_it_is(theirs: Path, memory: llvs.Store) -> None:
    version, state = next(
        (version, state) for version, state in EXPECTED["states"].items() if any(at.endswith("@" + version) for at in state.values())
    )
    id = next(id for id, at in state.items() if at.endswith("@" + version) and id.isascii() and id.isalnum() and len(id) > 2)
    file = theirs / "values" / id[:2] / id[2:] / version[0] / (version[1:] + ".json")
    assert file.is_file()
    for data in (b"LLZF", b"LLZF and so on", lzfse(b"x") + b"more", lzfse(b"x")[:-1]):
        file.write_bytes(data)
        with llvs.Store(storage="memory") as store:
            assert not store.import_store(theirs, decode=unlzfse).problems
            value = store.value(id, at=version)
            assert value is not None and value.data == data


@pytest.mark.in_turn("is_open", "is_compressed", "parts")
@pytest.mark.parametrize("parts", [["values"], ["maps/__llvs_values"], ["values", "maps/__llvs_values"]])
@pytest.mark.parametrize("is_compressed", [False, True])
@pytest.mark.parametrize("is_open", [False, True])
def test_stores_in_sqlite(theirs: Path, memory: llvs.Store, parts: list[str], is_compressed: bool, is_open: bool) -> None:
    if is_compressed:
        compress(theirs)
    for part in parts:
        to_sqlite(theirs / part)
    before = {file: file.read_bytes() for file in theirs.rglob("*") if file.is_file()}
    connections = []
    if is_open:
        # A program of the other implementation has the store open: a part of the store is in SQLite's log.
        for part in parts:
            connection = sqlite3.connect(theirs / part / "zone.sqlite")
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("UPDATE Zone SET version = version")
            connection.commit()
            connections.append(connection)
    result = memory.import_store(theirs, decode=unlzfse)
    assert not result.problems
    is_whole(memory)
    for connection in connections:
        connection.close()
    if not is_open:
        assert {file: file.read_bytes() for file in theirs.rglob("*") if file.is_file()} == before


def test_hostile_databases(theirs: Path, memory: llvs.Store) -> None:
    file = theirs / "values" / "zone.sqlite"
    to_sqlite(theirs / "values")
    whole = file.read_bytes()
    for damage in (b"", b"SQLite format 3\0" + b"\xff" * 200, whole[: len(whole) // 2], whole[:4096] + b"\xaa" * (len(whole) - 4096)):
        file.write_bytes(damage)
        with llvs.Store(storage="memory") as store:
            try:
                result = store.import_store(theirs)
            except llvs.Error:
                continue
            assert result.problems
    file.unlink()
    with sqlite3.connect(file) as connection:
        connection.execute(
            "CREATE VIEW Zone AS WITH RECURSIVE x(key, version, data) AS (SELECT 1, 1, 1 UNION ALL SELECT key + 1, 1, 1 FROM x) SELECT *"
            " FROM x"
        )
    connection.close()
    with pytest.raises(llvs.Error):
        memory.import_store(theirs)


# Snapshots


def pack(store: Path, *, top: str = "", method: int = zipfile.ZIP_DEFLATED, padding: int = 0, zip64: bool = False) -> bytes:
    """The store directory as a zip."""
    file = store.parent / "packed.zip"
    with zipfile.ZipFile(file, "w", method) as archive:
        if padding:
            # Makes several chunks, and an entry across the boundary of two.
            archive.writestr(top + "padding", hashlib.shake_256(b"padding").digest(padding))
        for path in sorted(store.rglob("*")):
            name = top + path.relative_to(store).as_posix()
            if path.is_dir():
                archive.writestr(name + "/", b"")
                continue
            info = zipfile.ZipInfo(name)
            info.compress_type = method
            with archive.open(info, "w", force_zip64=zip64) as entry:
                entry.write(path.read_bytes())
    return file.read_bytes()


def put(folder: Path, packed: bytes, *, in_folder: bool = False, digest: Optional[str] = "", **changes: Any) -> Path:
    """Lays a zip into an exchange folder as a snapshot."""
    id = "0F0E0D0C-0B0A-4908-8706-050403020100"
    place = folder / "snapshots"
    shutil.rmtree(place, ignore_errors=True)
    chunks = [packed[at : at + 5_000_000] for at in range(0, len(packed), 5_000_000)] or [b""]
    at = place / id if in_folder else place
    at.mkdir(parents=True)
    for i, chunk in enumerate(chunks):
        (at / f"chunk-{i:03}").write_bytes(chunk)
    manifest = {
        "snapshotId": id, "format": "zip-v1", "createdAt": 817000000.5, "latestVersionId": EXPECTED["mostRecentHead"],
        "versionCount": len(EXPECTED["versions"]), "chunkCount": len(chunks), "totalSize": len(packed), **changes,
    }
    if digest is not None:
        manifest["sha256"] = digest or hashlib.sha256(packed).hexdigest()
    (place / "manifest.json").write_text(json.dumps(manifest))
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "shared").mkdir()
    return tmp_path / "shared"


def restored(folder: Path, **options: Any) -> llvs.Store:
    store = llvs.Store(storage="memory")
    try:
        with llvs.Exchange(store, folder, **options) as exchange:
            exchange.restore_snapshot()
    except BaseException:
        store.close()
        raise
    return store


@pytest.mark.in_turn("where", "how")
@pytest.mark.parametrize(
    "how",
    [
        {},
        {"top": "notes.llvs/"},
        {"method": zipfile.ZIP_STORED},
        {"padding": 11_000_000, "zip64": True},
    ],
    ids=["deflated", "in a folder", "stored", "several chunks, zip64"],
)
@pytest.mark.parametrize("where", [{}, {"in_folder": True}, {"digest": None}], ids=["first place", "in its folder", "no digest"])
def test_zips_are_restored(theirs: Path, folder: Path, how: dict[str, Any], where: dict[str, Any]) -> None:
    put(folder, pack(theirs, **how), **where)
    with restored(folder) as store:
        is_whole(store)
        assert not store.verify().damages
        with llvs.Exchange(store, folder) as exchange:
            # Our snapshot lies beside theirs, and is preferred.
            found = exchange.snapshot()
            assert found is not None and found.format == "zip-v1"
            before = {path: path.read_bytes() for path in (folder / "snapshots").rglob("*") if path.is_file()}
            exchange.put_snapshot()
            assert all(path.read_bytes() == data for path, data in before.items())
            found = exchange.snapshot()
            assert found is not None and found.format == "llvs-v1" and (folder / "snapshots" / "llvs-v1" / "manifest.json").is_file()


def test_compressed_values_in_a_zip(theirs: Path, folder: Path) -> None:
    compress(theirs)
    put(folder, pack(theirs))
    with pytest.raises(llvs.errors.UnsupportedError):
        restored(folder)
    with restored(folder, decode=unlzfse) as store:
        is_whole(store)


def test_zips_that_cannot_be_restored_leave_the_store_empty(theirs: Path, folder: Path) -> None:
    packed = pack(theirs)
    shutil.rmtree(theirs / "values" / "k8")
    lacking = pack(theirs)
    wrong = bytearray(packed)
    wrong[len(wrong) // 2] ^= 1
    cases: list[tuple[bytes, dict[str, Any]]] = [
        (packed, {"digest": "00" * 32}),
        (packed, {"totalSize": len(packed) + 1}),
        (packed, {"totalSize": 0}),
        (packed, {"chunkCount": 2}),
        (packed, {"chunkCount": 0}),
        (packed, {"chunkCount": 1 << 62}),
        (bytes(wrong), {}),
        (lacking, {}),
        (packed[:-1], {}),
        (packed + b"\0", {}),
        (b"\0" + packed, {}),
        (b"PK\5\6" + bytes(18), {}),
        (b"no zip", {}),
    ]
    for data, changes in cases:
        put(folder, data, **changes)
        with llvs.Store(storage="memory") as store, llvs.Exchange(store, folder) as exchange:
            with pytest.raises(llvs.Error) as caught:
                exchange.restore_snapshot()
            assert caught.value.code in (llvs.ErrorCode.SNAPSHOT_DAMAGED, llvs.ErrorCode.NOT_A_STORE), (changes, caught.value)
            assert not list(store.history())


def names_in_a_zip() -> Iterator[str]:
    yield "../escaped.json"
    yield "/tmp/llvs-escaped.json"
    yield "versions/../../escaped.json"
    yield "versions/AB/../../../../escaped"


def test_no_name_in_a_zip_is_a_path(theirs: Path, folder: Path, tmp_path: Path) -> None:
    packed = pack(theirs)
    before = sorted(path for path in tmp_path.rglob("*"))
    file = tmp_path / "packed.zip"
    with zipfile.ZipFile(file, "a") as archive:
        for name in names_in_a_zip():
            archive.writestr(name, b"{}")
    put(folder, file.read_bytes())
    with pytest.raises(llvs.errors.SnapshotError):
        restored(folder)
    shutil.rmtree(folder / "snapshots")
    file.write_bytes(packed)
    assert sorted(path for path in tmp_path.rglob("*")) == before and not Path("/tmp/llvs-escaped.json").exists()


def test_other_formats_are_named(folder: Path, theirs: Path) -> None:
    zipped = pack(theirs)
    for format in ("fileStorage-v1", "sqliteStorage-v1", "zip-v2"):
        put(folder, zipped, format=format)
        with pytest.raises(llvs.errors.SnapshotError) as caught:
            restored(folder)
        assert caught.value.code == llvs.ErrorCode.FOREIGN_SNAPSHOT and format in str(caught.value)
    put(folder, pack(theirs, method=zipfile.ZIP_BZIP2))
    with pytest.raises(llvs.errors.SnapshotError) as caught:
        restored(folder)
    assert caught.value.code == llvs.ErrorCode.FOREIGN_SNAPSHOT


# Ids


@pytest.mark.parametrize(
    "id, why",
    [
        ("x" * 258, "255"),
        ("/" * 29, "255"),
        ("..x", '".."'),
        ("..", '".."'),
        ("ab..", '".."'),
        ("a LLVSSLASH b", "LLVSSLASH"),
        ("LLVSCOLON", "LLVSCOLON"),
        ("a\0b", "NUL"),
        ("e\u0301", "characters"),
    ],
)
def test_ids_that_others_cannot_hold_are_listed_and_sent(
    tmp_path: Path, memory: llvs.Store, new_store: Callable[[], llvs.Store], id: str, why: str
) -> None:
    fine = {"a": b"1", "note:1/body": b"2", "x" * 257: b"3", "\u00e9": b"5", ".x": b"6"}
    first = memory.make_version(insert=fine)
    with llvs.Exchange(memory, tmp_path / "shared", report_unportable=True, no_other_readers=True) as exchange:
        assert not exchange.send().problems
        version = memory.make_version(first, insert={id: b""}, remove=["a"])
        again = memory.make_version(version, update={id: b"2"})
        result = exchange.send()
        assert result.sent == (version.id, again.id)
        ((name, reason, code),) = result.problems
        assert name == version.id and code == llvs.ErrorCode.UNPORTABLE_ID and why in reason
        assert not exchange.send().problems
    with llvs.Exchange(memory, tmp_path / "other") as exchange:
        assert not exchange.send().problems
    other = new_store()
    with llvs.Exchange(other, tmp_path / "shared") as exchange:
        assert not exchange.retrieve().problems and other.at(again)[id] == b"2"


def test_a_coordinator_lists_what_others_cannot_hold(tmp_path: Path) -> None:
    options = llvs.CoordinatorOptions(report_unportable=True, no_other_readers=True)
    with llvs.Coordinator(storage="memory", exchange=tmp_path / "a", options=options) as notes:
        notes.attach(tmp_path / "b")
        notes.save(update={"a": b"1"})
        assert not notes.exchange().problems
        long = notes.save(update={"x" * 300: b"1"})
        keys = notes.save(update={"a": b"2"}, metadata={"\u00e9": b"1", "e\u0301": b"2", "e": b"3"})
        assert long is not None and keys is not None
        problems = notes.exchange().problems
        assert sorted(problem.name for problem in problems) == sorted([long.id, keys.id] * 2)
        assert {problem.code for problem in problems} == {llvs.ErrorCode.UNPORTABLE_ID}
        for problem in problems:
            assert ("retrieves neither the version" if problem.name == long.id else "The metadata") in problem.reason
        assert not notes.exchange().problems
    with llvs.Coordinator(storage="memory", exchange=tmp_path / "a") as notes:
        assert not notes.exchange().problems and notes.store.history()


TOO_LONG = {"x" * 300: b"1"}
TWINS: dict[str, bytes] = {"\u00e9": b"1", "e\u0301": b"2"}


@pytest.mark.parametrize("layout", ["", "?layout=bridged", "files"])
def test_what_others_fail_at_is_not_saved(tmp_path: Path, memory: llvs.Store, layout: str) -> None:
    first = memory.make_version(insert={"a": b"1"})
    place: Any = f"file://{tmp_path}/shared{layout}"
    if layout == "files":
        place = llvs.Remote(Shelf({}), layout="interchange")
    with llvs.Exchange(memory, place) as exchange:
        exchange.send()
        count = len(list(memory.history()))
        for id, why in (("x" * 258, "256 bytes"), ("/" * 29, "255 are the most"), ("a\0b", "NUL")):
            for change in ({"insert": {id: b""}}, {"update": {id: b"", "b": b"2"}}):
                with pytest.raises(llvs.errors.ExchangeDataError, match=why) as caught:
                    memory.make_version(first, **change)  # type: ignore[arg-type]
                assert caught.value.code == llvs.ErrorCode.UNPORTABLE_ID and ("shared" in str(caught.value) or layout == "files")
        with pytest.raises(llvs.errors.ExchangeDataError, match="composed"):
            memory.make_version(first, update={"a": b"2"}, metadata=TWINS)
        assert len(list(memory.history())) == count
        # Ids that the other implementation merely confuses are saved, and so is the longest id that it stores.
        made = memory.make_version(first, update={"x" * 257: b"", "e\u0301": b"", "\u00e9": b"", "LLVSSLASH": b""})
        exchange.send()
        # With two exchanges of one store, the restrictions of each apply.
        with llvs.Exchange(memory, tmp_path / "other", no_other_readers=True), pytest.raises(llvs.errors.ExchangeDataError):
            memory.make_version(made, update=TOO_LONG)
    made = memory.make_version(made, update=TOO_LONG)
    with llvs.Exchange(memory, place) as exchange:
        # A store that has such an id already can be used further.
        made = memory.make_version(made, update={"x" * 300: b"2"})
        made = memory.make_version(made, remove=["x" * 300])
        with pytest.raises(llvs.errors.ExchangeDataError):
            memory.make_version(made, update=TOO_LONG)


def test_where_no_other_implementation_reads_all_is_saved(tmp_path: Path, memory: llvs.Store) -> None:
    places: list[Any] = [f"file://{tmp_path}/packed?layout=packed", "memory:others"]
    for place in places:
        with llvs.Exchange(memory, place):
            memory.make_version(insert=TOO_LONG, metadata=TWINS, root=True)
    with llvs.Coordinator(storage="memory", exchange=tmp_path / "a", options=llvs.CoordinatorOptions(no_other_readers=True)) as notes:
        notes.attach(tmp_path / "b")
        assert notes.save(update=TOO_LONG, metadata=TWINS) is not None
        assert not notes.exchange().problems
    with llvs.Coordinator(storage="memory", exchange=tmp_path / "a") as notes:
        notes.sync()
        assert "x" * 300 in notes
        for call in (
            lambda: notes.save(update={"y" * 300: b"1"}), lambda: notes.save(update={"a": b"1"}, metadata=TWINS),
            lambda: notes.merge(metadata=TWINS),
        ):
            with pytest.raises(llvs.errors.ExchangeDataError):
                call()


def sent_on(folder: Path, store: llvs.Store, merge: llvs.Version, gone: set[str], **more: str) -> None:
    """Rewrites the files of a merge as the other implementation relays them: also with the values that prevail at the first predecessor."""
    first, path = merge.predecessors[0], folder / "changes" / merge.id
    changes = json.loads(path.read_text())
    named = {
        body["valueId"] if kind == "preserve" else body if isinstance(body, str) else body["id"]
        for change in changes
        for kind, body in change.items()
    }
    for id in store.at(first):
        value = store.value(id, at=first)
        assert value is not None
        if id not in named:
            changes.append({"preserve": {"valueId": id, "storedVersionId": more.get(id, value.stored_version)}})
    changes += [{"preserveRemoval": id} for id in gone - named - set(store.at(first))]
    assert len(changes) > len(named)
    path.write_text(json.dumps(changes))
    header = json.loads((folder / "versions" / merge.id).read_text())
    del header["version"]["digest"]
    (folder / "versions" / merge.id).write_text(json.dumps(header))


@pytest.mark.parametrize("at_once", [True, False])
def test_a_merge_that_the_other_implementation_sends_on(tmp_path: Path, at_once: bool) -> None:
    sent, shared = tmp_path / "sent", tmp_path / "shared"
    with llvs.Store(storage="memory") as ours:
        root = ours.make_version(insert={name: b"0" for name in "abcdefg"})
        x = ours.make_version(root, update={"a": b"x"}, remove=["c"])
        y = ours.make_version(root, update={"b": b"y"}, remove=["d"])
        merge = ours.merge(x, y)
        x2 = ours.make_version(merge, update={"a": b"x2"})
        y2 = ours.make_version(merge, update={"e": b"y2"}, remove=["f"])
        second = ours.merge(y2, x2)
        versions = [root, x, y, merge, x2, y2, second]
        with llvs.Exchange(ours, sent) as exchange:
            exchange.send()
        for one in (merge, second):
            sent_on(sent, ours, one, {"c", "d", "f"})
        with llvs.Store(storage="memory") as theirs:
            if at_once:
                shutil.copytree(sent, shared)
            (shared / "versions").mkdir(parents=True, exist_ok=True)
            (shared / "changes").mkdir(parents=True, exist_ok=True)
            with llvs.Exchange(theirs, shared) as exchange:
                for version in versions:
                    for kind in ("changes", "versions"):
                        shutil.copy(sent / kind / version.id, shared / kind / version.id)
                    result = exchange.retrieve()
                    assert not result.problems and (at_once or result.versions == (version.id,)), result
            for version in versions:
                assert dict(theirs.at(version)) == dict(ours.at(version))
            assert [head.id for head in theirs.heads()] == [second.id] and not theirs.verify().damages
        # A change with an effect that the id does not cover loses an update.
        lost = {"a": root.id} if merge.predecessors[0] == x.id else {"b": root.id}
        shutil.rmtree(shared)
        with llvs.Exchange(ours, shared) as exchange:
            exchange.send()
        sent_on(shared, ours, merge, {"c", "d"}, **lost)
        with llvs.Store(storage="memory") as theirs, llvs.Exchange(theirs, shared) as exchange:
            codes = {problem.name: problem.code for problem in exchange.retrieve().problems}
            assert codes.pop(merge.id) == llvs.ErrorCode.CONTENT_MISMATCH and merge.id not in theirs
            assert set(codes.values()) == {llvs.ErrorCode.MISSING_PREDECESSOR}
