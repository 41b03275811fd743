"""The naughty strings as names of files, indexes, models, members and columns. public_inputs.py says where to find them.
test_public_inputs.py tests them as ids, branches, devices and metadata, Tests/Network/test_s3_signatures.py as names in buckets."""

from __future__ import annotations

import json
import sqlite3
import tarfile
import zipfile
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import llvs
import pytest
from public_inputs import naughty, needed
from sampling import sample

pytestmark = needed("naughty-strings")

#: Characters with a meaning in SQLite, URLs and shells.
TELLING = ("?", "%", "#", ":", "&", "\\", "*", "..", "-", "~")


def names_of_files() -> list[str]:
    """The naughty strings that a file's name can be."""
    found = [name for name in naughty() if "/" not in name and "\0" not in name and name != "." and len(name.encode()) <= 200]
    assert len(found) > 250
    telling = {start: name for name in reversed(found) for start in TELLING if start in name}
    return sample(list(dict.fromkeys([*telling.values(), *found[::25]])), found)


@pytest.mark.parametrize("storage", ["file", "sqlite"])
def test_stores_and_projections_have_any_name(tmp_path: Path, storage: llvs.words.StorageKind) -> None:
    definition = {"tables": {"t": {"prefix": "", "columns": [{"name": "a", "pointer": "/a", "type": "integer"}]}}}
    for name in names_of_files():
        places = [tmp_path / kind for kind in ("stores", "views")]
        for place in places:
            place.mkdir(exist_ok=True)
        path, view = (place / name for place in places)
        with llvs.Store(path, storage=storage, durability="normal") as store:
            version = store.make_version(insert={"x": b'{"a":1}'})
            with llvs.sqlite.Projection(store, view, definition) as projection:
                projection.update(version)
        assert path.exists() and view.is_file(), ascii(name)
        with llvs.Store(path, storage=storage, durability="normal") as store:
            assert store.at(version)["x"] == b'{"a":1}'
        with closing(sqlite3.connect(view.as_uri() + "?mode=ro", uri=True)) as database:
            assert database.execute("SELECT id, a FROM t").fetchall() == [("x", 1)]
        for place in places:
            # A log or a lock of SQLite's beside it has its name.
            assert all(other.name.startswith(name) for other in place.iterdir()), ascii(name)
            for other in place.iterdir():
                other.rename(tmp_path / f"{len(list(tmp_path.iterdir()))}-{place.name}")


def test_places_have_any_name(tmp_path: Path) -> None:
    """The place as a path, and as a file: URL."""
    with llvs.Store(storage="memory") as store:
        store.make_version(insert={"x": b"1"})
        for number, name in enumerate(names_of_files()):
            path = tmp_path / name
            for place in (path, path.as_uri()):
                with llvs.Exchange(store, place, durability="normal") as way:
                    assert len(way.send().sent) == (1 if place == path else 0), ascii(name)
            assert sorted(found.name for found in path.iterdir() if found.name != "tmp") == ["changes", "versions"], ascii(name)
            path.rename(tmp_path / f"done {number}")


def test_indexes_have_any_name() -> None:
    """Names of up to 128 bytes, and 64 in a schema."""
    names = [name for name in naughty() if len(name.encode()) <= 128]
    for start in range(0, len(names), 64):
        some = names[start : start + 64]
        with llvs.Coordinator(storage="memory") as notes:
            notes.save(insert={"x": b'{"a":1}'})
            notes.register_schema({"merge": 1, "indexes": {name: {"prefix": "", "on": ["/a"]} for name in some}})
            for name in some:
                assert list(notes.index(name).find(1)) == ["x"], ascii(name)
    with llvs.Coordinator(storage="memory") as notes, pytest.raises(llvs.errors.InvalidArgumentError):
        notes.register_schema({"merge": 1, "indexes": {"x" * 129: {"prefix": "", "on": ["/a"]}}})


def test_models_have_any_prefix() -> None:
    with llvs.Coordinator(storage="memory") as notes:
        for name in sample(naughty()[::12], naughty()):
            @llvs.models.model(name + "/")
            @dataclass
            class Thing:
                text: str = ""

            try:
                things = notes.collection(Thing)
            except ValueError as error:
                # A prefix that the library reserves, or that begins like the prefix of another collection.
                assert "prefix" in str(error), ascii(name)
                continue
            things["1"] = Thing(name)
            assert things["1"] == Thing(name) and notes[f"{name}/1"], ascii(name)


def pointer(*names: str) -> str:
    return "".join("/" + name.replace("~", "~0").replace("/", "~1").replace("*", "~2") for name in names)


def test_rules_reach_members_of_any_name() -> None:
    for name in naughty():
        base, newer, older = ({"a": {name: number}} for number in (1, 2, 3))
        merged = llvs.merge.merge_values(*(json.dumps(one).encode() for one in (base, newer, older)), {pointer("a", name): "counter"})
        assert merged.data is not None and not merged.records, ascii(name)
        assert json.loads(merged.data) == {"a": {name: 4}}


def test_indexes_and_columns_reach_members_of_any_name(memory: llvs.Store, tmp_path: Path) -> None:
    names = naughty()
    memory.make_version(insert={"x": json.dumps({name: number for number, name in enumerate(names)}).encode()})
    for number, name in enumerate(names):
        index = memory.index(definition={"prefix": "", "on": [pointer(name)]})
        assert index.explain("x").keys == ((number,),), ascii(name)
    for start in range(0, len(names), 64):
        some = names[start : start + 64]
        columns = [{"name": f"c{number}", "pointer": pointer(name), "type": "integer"} for number, name in enumerate(some)]
        view = tmp_path / f"{start}.sqlite"
        with llvs.sqlite.Projection(memory, view, {"tables": {"t": {"prefix": "", "columns": columns}}}) as projection:
            projection.update(memory.most_recent_head)
        with closing(sqlite3.connect(view)) as database:
            assert database.execute("SELECT * FROM t").fetchall() == [("x", *range(start, start + len(columns)))]


@pytest.mark.parametrize("kind", ["zip", "tar", "sqlite", "jsonl"])
def test_exports_distinguish_ids_of_any_name(tmp_path: Path, kind: str) -> None:
    """Each name in an archive unpacks to one place below the folder."""
    from llvs.tools import command

    ids = {id: str(number).encode() for number, name in enumerate(naughty()) for id in (name, f"{name}/{name}")}
    with llvs.Store(tmp_path / "notes", durability="normal") as store:
        store.make_version(insert=ids)
    file = tmp_path / f"out.{kind}"
    assert command.run(("-s", str(tmp_path / "notes"), "export", "-o", str(file))) == 0
    if kind == "jsonl":
        assert [json.loads(line)["id"] for line in file.read_text("utf-8").split("\n") if line] == sorted(ids, key=str.encode)
        return
    if kind == "sqlite":
        with closing(sqlite3.connect(file)) as database:
            assert dict(database.execute("SELECT id, data FROM value")) == ids
        return
    if kind == "zip":
        with zipfile.ZipFile(file) as archive:
            found = {name: archive.read(name) for name in archive.namelist()}
    else:
        with tarfile.open(file) as tar:
            found = {member.name: piece.read() for member in tar if (piece := tar.extractfile(member)) is not None}
    assert sorted(found.values()) == sorted(ids.values())
    folders = {str(parent) for name in found for parent in PurePosixPath(name).parents}
    for name in found:
        assert not name.startswith("/") and ".." not in name.split("/") and name == str(PurePosixPath(name)), ascii(name)
        assert name not in folders, ascii(name)
