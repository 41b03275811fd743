"""Projections, compared with the values at random versions, read by other processes during updates, and with bad input."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import closing
from pathlib import Path
from typing import Any, Callable, Iterator, Optional

import llvs
import pytest
from waiting import eventually
from sampling import sample, seeds

PEOPLE: dict[str, Any] = {
    "prefix": "contact/",
    "columns": [
        {"name": "last", "pointer": "/lastName", "type": "text"},
        {"name": "born", "pointer": "/born", "type": "integer"},
    ],
}
PLAIN = {"tables": {"people": PEOPLE}}
SEARCHED = {"tables": {"people": {**PEOPLE, "indexes": [["last", "born"]], "search": {"name": "found", "columns": ["last"]}}}}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[llvs.Store]:
    with llvs.Store(tmp_path / "store.llvs") as opened:
        yield opened


@pytest.fixture
def view(tmp_path: Path) -> Path:
    return tmp_path / "view.sqlite"


def ask(view: Path, sql: str, *values: Any) -> list[Any]:
    with closing(sqlite3.connect(view)) as database:
        return database.execute(sql, values).fetchall()


# MARK: Definitions


def table(**other: Any) -> Any:
    return {"tables": {"people": {**PEOPLE, **other}}}


def column(**other: Any) -> Any:
    return table(columns=[{"name": "last", "pointer": "/lastName", "type": "text", **other}])


@pytest.mark.parametrize(
    "definition, pointer",
    [
        ("no", ""),
        ("[]", ""),
        ({"tables": {}}, "/tables"),
        ({"tables": []}, "/tables"),
        ({}, "/tables"),
        ({**PLAIN, "view": 1}, "/view"),
        ({"tables": {"a/b": PEOPLE}}, "/tables/a~1b"),
        ({"tables": {"llvs_people": PEOPLE}}, "/tables/llvs_people"),
        ({"tables": {"SQLite_people": PEOPLE}}, "/tables/SQLite_people"),
        ({"tables": {"people": PEOPLE, "People": PEOPLE}}, "/tables/People"),
        ({"tables": {"people": 1}}, "/tables/people"),
        ({"tables": {f"t{i}": PEOPLE for i in range(33)}}, "/tables/t32"),
        (table(prefix=1), "/tables/people/prefix"),
        (table(columns=[]), "/tables/people/columns"),
        (table(columns={}), "/tables/people/columns"),
        (table(columns=PEOPLE["columns"] * 33), "/tables/people/columns"),
        (table(columns=[1]), "/tables/people/columns/0"),
        (table(columns=PEOPLE["columns"] + PEOPLE["columns"][:1]), "/tables/people/columns/2/name"),
        (table(id="LAST"), "/tables/people/columns/0/name"),
        (table(id="rowid"), "/tables/people/id"),
        (table(where={}), "/tables/people/where"),
        (column(type="blob"), "/tables/people/columns/0/type"),
        (column(type=None), "/tables/people/columns/0/type"),
        (column(pointer="lastName"), "/tables/people/columns/0/pointer"),
        (column(pointer="/tags/*"), "/tables/people/columns/0/pointer"),
        (column(pointer="/a~3"), "/tables/people/columns/0/pointer"),
        (column(pointer=7), "/tables/people/columns/0/pointer"),
        (column(name="Rank"), "/tables/people/columns/0/name"),
        (column(name='a"b'), "/tables/people/columns/0/name"),
        (column(name="1st"), "/tables/people/columns/0/name"),
        (column(name="a" * 64), "/tables/people/columns/0/name"),
        (column(other=1), "/tables/people/columns/0/other"),
        (table(indexes=[["nobody"]]), "/tables/people/indexes/0/0"),
        (table(indexes=[["last", "last"]]), "/tables/people/indexes/0/1"),
        (table(indexes=[[]]), "/tables/people/indexes/0"),
        (table(indexes=[["last"]] * 17), "/tables/people/indexes"),
        (table(search={"columns": ["last"]}), "/tables/people/search/name"),
        (table(search={"name": "people", "columns": ["last"]}), "/tables/people/search/name"),
        (table(search={"name": "Last", "columns": ["last"]}), "/tables/people/search/name"),
        (table(search={"name": "found"}), "/tables/people/search/columns"),
        (table(search={"name": "found", "columns": ["id"]}), "/tables/people/search/columns/0"),
        (table(search={"name": "found", "columns": ["last"], "tokenize": "icu"}), "/tables/people/search/tokenize"),
        (
            {"tables": {"people": {**PEOPLE, "search": {"name": "found", "columns": ["last"]}}, "found_data": PEOPLE}},
            "/tables/found_data",
        ),
    ],
)  # fmt: skip
def test_a_definition_that_is_none(store: llvs.Store, view: Path, definition: Any, pointer: str) -> None:
    with pytest.raises(llvs.errors.InvalidArgumentError) as told:
        llvs.sqlite.Projection(store, view, definition)
    assert told.value.path == pointer or pointer == "" and not told.value.path
    assert f'at "{pointer}"' in str(told.value)
    assert not view.exists()


@pytest.mark.parametrize(
    "type, data, cell, reason",
    [
        ("text", '"a\\u0000é\\ud83d\\ude00"', "a\0é\U0001f600", None),
        ("text", '""', "", None),
        ("text", "1", None, "type"),
        ("text", "[]", None, "type"),
        ("text", "null", None, None),
        ("integer", "1e1", 10, None),
        ("integer", "1.50e1", 15, None),
        ("integer", "-0.0", 0, None),
        ("integer", "9223372036854775807", 2**63 - 1, None),
        ("integer", "-9223372036854775808", -(2**63), None),
        ("integer", "9223372036854775808", None, "range"),
        ("integer", "-9223372036854775809", None, "range"),
        ("integer", "1e400", None, "range"),
        ("integer", "9" * 400, None, "range"),
        ("integer", "1.5", None, "type"),
        ("integer", "true", None, "type"),
        ("real", "0.1", 0.1, None),
        ("real", "-1e-400", 0.0, None),
        ("real", "1e400", None, "range"),
        ("real", '"1"', None, "type"),
        ("boolean", "true", 1, None),
        ("boolean", "false", 0, None),
        ("boolean", "0", None, "type"),
        ("json", '{"b": 1.0, "a": [null]}', '{"a":[null],"b":1}', None),
        ("json", '"x"', '"x"', None),
    ],
)
def test_what_a_column_takes(store: llvs.Store, view: Path, type: str, data: str, cell: Any, reason: Optional[str]) -> None:
    store.make_version(insert={"a": f'{{"part": {data}}}'.encode(), "b": b'{"other": 1}'})
    definition = {"tables": {"t": {"prefix": "", "columns": [{"name": "c", "pointer": "/part", "type": type}]}}}
    with llvs.sqlite.Projection(store, view, definition) as projection:
        assert projection.update() == 2
        assert ask(view, "SELECT id, c FROM t ORDER BY id") == [("a", cell), ("b", None)]
        found = [(problem.id, problem.pointer, problem.reason) for problem in projection.problems()]
        assert found == ([("a", "/part", reason)] if reason else [])


def test_a_value_that_is_no_json_and_ids_of_the_library(store: llvs.Store, view: Path) -> None:
    store.make_version(insert={"a": b"\xff", "b": b'{"x":1,"x":2}', "__llvs_own": b"{}", "é/" + "x" * 4000: b"{}"})
    definition = {"tables": {"t": {"prefix": "", "columns": [{"name": "c", "pointer": "", "type": "json"}], "id": "key"}}}
    with llvs.sqlite.Projection(store, view, definition) as projection:
        assert projection.update() == 3
        assert ask(view, "SELECT key, c FROM t ORDER BY key") == [("a", None), ("b", None), ("é/" + "x" * 4000, "{}")]
        assert [(problem.table, problem.id, problem.reason) for problem in projection.problems()] == [
            ("t", "a", "not-json"), ("t", "b", "not-json"),
        ]  # fmt: skip


def test_values_that_are_deep_or_large_or_have_many_members(store: llvs.Store, view: Path) -> None:
    """Values that need a tree as well, and values that are too large for one."""
    many = ",".join(f'"n{i}":{i}' for i in range(100))
    values = {
        "deep": '{"lastName":"Deep","born":1,"a":' + "[" * 127 + "]" * 127 + "}",
        "deepest": '{"lastName":"Deepest","a":' + "[" * 128 + "]" * 128 + "}",
        "escaped": '{"last\\u004eame":"Esc\\u0061ped","born":5}',
        "large": json.dumps({"lastName": "x" * (1 << 20), "born": 7}),
        "line": '{"lastName":"\\n\\ud83d\\ude00","born":6}',
        "many": '{"lastName":"Many",' + many + ',"born":3}',
        "over": '{"lastName":"' + "x" * (64 << 20) + '"}',
        "twice": "{" + many + ',"born":3,"n7":3}',
        "wrong": '{"lastName":"' + "x" * (1 << 20) + '",}',
    }
    store.make_version(insert={f"contact/{id}": text.encode() for id, text in values.items()})
    with llvs.sqlite.Projection(store, view, PLAIN) as projection:
        projection.update()
        assert ask(view, "SELECT id, last, born FROM people ORDER BY id") == [
            ("contact/deep", "Deep", 1), ("contact/deepest", None, None), ("contact/escaped", "Escaped", 5),
            ("contact/large", "x" * (1 << 20), 7), ("contact/line", "\n\U0001f600", 6), ("contact/many", "Many", 3),
            ("contact/over", None, None), ("contact/twice", None, None), ("contact/wrong", None, None),
        ]  # fmt: skip
        wrong = [(problem.id, problem.pointer, problem.reason) for problem in projection.problems()]
        assert wrong == [(f"contact/{id}", "", "not-json") for id in ("deepest", "over", "twice", "wrong")]


def test_many_problems_come_in_pages(store: llvs.Store, view: Path) -> None:
    store.make_version(insert={f"contact/{i:04}": b"no" for i in range(2_500)})
    with llvs.sqlite.Projection(store, view, PLAIN) as projection:
        projection.update()
        assert [problem.id for problem in projection.problems()] == [f"contact/{i:04}" for i in range(2_500)]


# MARK: Compared with the values


def expected(store: llvs.Store, version: str) -> list[Any]:
    rows = []
    for id, data in store.at(version).items():
        if not id.startswith("contact/"):
            continue
        try:
            value = json.loads(data)
        except ValueError:
            value = {}
        last, born = value.get("lastName"), value.get("born")
        rows.append((id, last if isinstance(last, str) else None, born if isinstance(born, int) else None))
    return sorted(rows)


def a_value(random: random.Random) -> bytes:
    if random.random() < 0.1:
        return b"no json"
    last = random.choice(["Smith", "Jones", "Müller", 7, None])
    return json.dumps({"lastName": last, "born": random.choice([1815, 1906, "long ago"])}).encode()


def a_history(store: llvs.Store, random: random.Random, count: int) -> list[str]:
    versions = [store.make_version(insert={"contact/0": b'{"lastName":"Smith"}', "other": b"{}"}).id]
    while len(versions) < count:
        on = random.choice(versions[-3:])
        there = list(store.at(on))
        ids = {f"contact/{random.randrange(40)}" for _ in range(random.randrange(1, 12))}
        remove = [id for id in ids if id in there and random.random() < 0.4]
        put = {id: a_value(random) for id in ids if id not in remove}
        new = {id: data for id, data in put.items() if id not in there}
        old = {id: data for id, data in put.items() if id in there}
        versions.append(store.make_version(on, insert=new, update=old, remove=remove).id)
    return versions


@pytest.mark.parametrize("definition", [PLAIN, SEARCHED], ids=["plain", "searched"])
@pytest.mark.parametrize("seed", seeds(range(1), range(3)))
def test_any_version_after_any_other(store: llvs.Store, view: Path, definition: Any, seed: int) -> None:
    chance = random.Random(seed)
    versions = a_history(store, chance, 40)
    with llvs.sqlite.Projection(store, view, definition) as projection:
        for _ in range(60):
            version = chance.choice(versions)
            projection.update(version)
            rows = expected(store, version)
            assert ask(view, "SELECT id, last, born FROM people ORDER BY id") == rows
            assert ask(view, "SELECT version FROM llvs_projection") == [(version,)]
            assert projection.version == version
            wrong = {(problem.id, problem.reason) for problem in projection.problems()}
            values = dict(store.at(version).items())
            assert {id for id, reason in wrong if reason == "not-json"} == {id for id, _, _ in rows if values[id] == b"no json"}
            assert {id for id, reason in wrong if reason == "type"} == {
                id for id, _, _ in rows if values[id] != b"no json" and (b"long" in values[id] or b": 7" in values[id])
            }
            if definition is SEARCHED:
                for word in "smith", "muller", "nobody":
                    names = {"smith": "Smith", "muller": "Müller"}
                    found = ask(view, "SELECT id FROM found WHERE found MATCH ? ORDER BY id", word)
                    assert [id for id, in found] == [id for id, last, _ in rows if last == names.get(word, "")]
                with closing(sqlite3.connect(view)) as database:
                    database.execute("INSERT INTO found(found) VALUES ('integrity-check')")
                    database.rollback()
            assert ask(view, "PRAGMA integrity_check") == [("ok",)]


@pytest.mark.parametrize("definition", [PLAIN, SEARCHED], ids=["plain", "searched"])
def test_many_values_are_shared_among_threads(store: llvs.Store, view: Path, definition: Any) -> None:
    """Enough values for several units of work. The rows are in order, with the right values."""
    chance = random.Random(5)
    first = store.make_version(insert={f"contact/{i:04}": a_value(chance) for i in range(3_000)}).id
    second = store.make_version(
        first, update={f"contact/{i:04}": a_value(chance) for i in range(0, 2_600)}, remove=[f"contact/{i:04}" for i in range(2_600, 3_000)]
    ).id
    with llvs.sqlite.Projection(store, view, definition) as projection:
        for version in first, second, first:
            assert projection.update(version) == 3_000
            assert ask(view, "SELECT id, last, born FROM people ORDER BY id") == expected(store, version)
            values = dict(store.at(version).items())
            wrong = [(problem.id, problem.reason) for problem in projection.problems()]
            assert [id for id, reason in wrong if reason == "not-json"] == sorted(id for id, data in values.items() if data == b"no json")
        if definition is SEARCHED:
            rows = ask(view, "SELECT p.id, p.last FROM people p JOIN found f ON f.rowid = p.llvs_row WHERE f.found MATCH 'smith'")
            assert len(rows) > 300 and all(last == "Smith" for _, last in rows)


def test_it_costs_by_what_differs(store: llvs.Store, view: Path) -> None:
    first = store.make_version(insert={f"contact/{i}": b'{"lastName":"Smith"}' for i in range(1_000)})
    second = store.make_version(first, update={"contact/7": b'{"lastName":"Jones"}'}, remove=["contact/8"], insert={"other/1": b"{}"})
    with llvs.sqlite.Projection(store, view, SEARCHED) as projection:
        assert projection.update(first) == 1_000
        assert projection.update() == 2
        assert projection.update() == 0
        assert projection.update(first) == 2
        assert projection.update(second.id) == 2


def test_the_tokenizers(store: llvs.Store, view: Path) -> None:
    store.make_version(insert={"contact/1": b'{"lastName":"running"}'})
    for tokenizer, word in ("unicode61", "running"), ("porter", "runs"), ("trigram", "unni"):
        searched = {"tables": {"people": {**PEOPLE, "search": {"name": "found", "columns": ["last"], "tokenize": tokenizer}}}}
        with llvs.sqlite.Projection(store, view, searched) as projection:
            projection.update()
        assert ask(view, "SELECT id FROM found WHERE found MATCH ?", word) == [("contact/1",)]
        assert ask(view, "SELECT id FROM found WHERE found MATCH ?", "smith") == []


# MARK: Definitions that change, versions that are gone


def test_another_definition_makes_the_tables_anew_and_readers_keep_theirs(store: llvs.Store, view: Path) -> None:
    version = store.make_version(insert={"contact/1": b'{"lastName":"Smith","city":"Rome"}', "task/1": b"{}"}).id
    with llvs.sqlite.Projection(store, view, SEARCHED) as projection:
        projection.update()
    with closing(sqlite3.connect(view)) as own:
        own.execute("CREATE TABLE mine(x)")
        own.execute("CREATE VIEW smiths AS SELECT * FROM people WHERE last = 'Smith'")
        own.commit()
    with closing(sqlite3.connect(view, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        before = reader.execute("SELECT * FROM people").fetchall()
        other = {
            "tables": {
                "people": {"prefix": "contact/", "columns": [{"name": "city", "pointer": "/city", "type": "text"}]},
                "tasks": {"prefix": "task/", "columns": [{"name": "done", "pointer": "/done", "type": "boolean"}]},
            }
        }
        with llvs.sqlite.Projection(store, view, other) as projection:
            assert projection.version is None
            assert projection.update(version) == 2
            assert projection.version == version
        assert reader.execute("SELECT * FROM people").fetchall() == before
        reader.execute("COMMIT")
        assert reader.execute("SELECT * FROM people").fetchall() == [("contact/1", "Rome")]
        names = {name for name, in reader.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        assert names == {"people", "tasks", "mine", "llvs_projection", "llvs_projection_tables", "llvs_projection_problems"}
    # The order of members of a definition is no other definition.
    again = json.dumps({"tables": dict(reversed(list(other["tables"].items())))})
    with llvs.sqlite.Projection(store, view, again) as projection:
        assert projection.version == version and projection.update(version) == 0


def test_a_version_that_is_gone(store: llvs.Store, view: Path, tmp_path: Path) -> None:
    store.make_version(insert={"contact/1": b'{"lastName":"Smith"}', "contact/2": b"{}"})
    with llvs.sqlite.Projection(store, view, PLAIN) as projection:
        projection.update()
    with llvs.Store(tmp_path / "other.llvs") as other:
        version = other.make_version(insert={"contact/3": b'{"lastName":"Jones"}'}).id
        with llvs.sqlite.Projection(other, view, PLAIN) as projection:
            assert projection.update() == 1
            assert projection.version == version
    assert ask(view, "SELECT id, last FROM people") == [("contact/3", "Jones")]


@pytest.mark.parametrize(
    "sql",
    [
        "ALTER TABLE people ADD COLUMN other",
        "DROP TABLE people",
        "DROP TABLE llvs_projection",
        "DELETE FROM llvs_projection",
        "DROP INDEX llvs_index_people_0",
        "UPDATE llvs_projection SET digest = x'00'",
        "UPDATE llvs_projection SET version = 'nobody has it'",
        "UPDATE llvs_projection SET version = x'ff00'",
        "DROP TABLE llvs_projection_problems",
        "INSERT INTO llvs_projection_tables VALUES ('a\"b')",
        "DROP TABLE llvs_projection_tables; DROP TABLE people; DROP TABLE found",
    ],
)
def test_tables_changed_by_another_program_are_rebuilt(store: llvs.Store, view: Path, sql: str) -> None:
    version = store.make_version(insert={"contact/1": b'{"lastName":"Smith"}'}).id
    with llvs.sqlite.Projection(store, view, SEARCHED) as projection:
        projection.update()
        with closing(sqlite3.connect(view)) as own:
            own.executescript(sql)
        projection.update()
        assert ask(view, "SELECT id, last, born FROM people") == [("contact/1", "Smith", None)]
        assert ask(view, "SELECT id FROM found WHERE found MATCH 'smith'") == [("contact/1",)]
        assert projection.version == version


def test_rows_that_are_numbered_up_to_the_highest_number(store: llvs.Store, view: Path) -> None:
    """Another program changed the tables so that no further row has a number."""
    first = store.make_version(insert={"contact/1": b'{"lastName":"Smith"}'})
    second = store.make_version(first, insert={"contact/2": b'{"lastName":"Jones"}'})
    with llvs.sqlite.Projection(store, view, SEARCHED) as projection:
        projection.update(first)
        with closing(sqlite3.connect(view)) as database:
            database.execute("UPDATE people SET llvs_row = 9223372036854775807")
            database.commit()
        with pytest.raises(llvs.Error, match="of a projection is damaged.*delete it") as caught:
            projection.update(second)
        assert caught.value.code == llvs.ErrorCode.DAMAGED and ask(view, "SELECT id FROM people") == [("contact/1",)]


def test_triggers_of_others_are_not_run(store: llvs.Store, view: Path) -> None:
    version = store.make_version(insert={"contact/1": b'{"lastName":"Smith"}'})
    with llvs.sqlite.Projection(store, view, PLAIN) as projection:
        projection.update()
        with closing(sqlite3.connect(view)) as own:
            own.executescript("CREATE TRIGGER evil AFTER INSERT ON people BEGIN DELETE FROM people; END")
        store.make_version(version, insert={"contact/2": b"{}"})
        projection.update()
    assert len(ask(view, "SELECT id FROM people")) == 2


def test_a_table_of_another_program_is_left_alone(store: llvs.Store, view: Path) -> None:
    store.make_version(insert={"contact/1": b"{}", "task/1": b"{}"})
    with llvs.sqlite.Projection(store, view, PLAIN) as projection:
        projection.update()
        with closing(sqlite3.connect(view)) as own:
            own.executescript("CREATE TABLE Tasks(x); INSERT INTO tasks VALUES (1)")
    both = {"tables": {**PLAIN["tables"], "tasks": {**PEOPLE, "prefix": "task/"}}}
    with llvs.sqlite.Projection(store, view, both) as projection:
        with pytest.raises(llvs.errors.InvalidArgumentError, match='"tasks" that was not made by the projection'):
            projection.update()
    assert ask(view, "SELECT x FROM tasks") == [(1,)]
    assert ask(view, "SELECT id FROM people") == [("contact/1",)]


# MARK: Files


def test_a_database_deleted_or_replaced_while_it_is_open(store: llvs.Store, view: Path, tmp_path: Path) -> None:
    version = store.make_version(insert={"contact/1": b"{}"})
    with llvs.sqlite.Projection(store, view, PLAIN) as projection:
        projection.update()
        for suffix in "", "-wal", "-shm":
            Path(str(view) + suffix).unlink(missing_ok=True)
        assert projection.version is None
        assert projection.update() == 1
        assert ask(view, "SELECT id FROM people") == [("contact/1",)]
        with closing(sqlite3.connect(view)) as own:
            own.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        shutil.copy(view, tmp_path / "copy.sqlite")
        store.make_version(version, insert={"contact/2": b"{}"})
        projection.update()
        for suffix in "-wal", "-shm":
            Path(str(view) + suffix).unlink(missing_ok=True)
        (tmp_path / "copy.sqlite").rename(view)
        assert projection.version == version.id
        assert projection.update() == 1
        assert len(ask(view, "SELECT id FROM people")) == 2


@pytest.mark.parametrize("suffixes", [("-wal",), ("-shm",), ("-wal", "-shm")])
def test_a_log_deleted_while_it_is_open(store: llvs.Store, view: Path, suffixes: tuple[str, ...]) -> None:
    """SQLite would continue with files that no other program finds."""
    version = store.make_version(insert={"contact/1": b"{}"})
    with llvs.sqlite.Projection(store, view, PLAIN) as projection:
        projection.update()
        for suffix in suffixes:
            Path(str(view) + suffix).unlink()
        store.make_version(version, insert={"contact/2": b"{}"})
        projection.update()
        assert len(ask(view, "SELECT id FROM people")) == 2
    assert len(ask(view, "SELECT id FROM people")) == 2


def test_what_is_there_is_left_alone(store: llvs.Store, tmp_path: Path) -> None:
    version = store.make_version(insert={"contact/1": b"{}"}).id
    with closing(sqlite3.connect(tmp_path / "own.sqlite")) as own:
        own.executescript("CREATE TABLE people(x); INSERT INTO people VALUES (1)")
    with llvs.Store(tmp_path / "other.sqlite", storage="sqlite") as other:
        other.make_version(insert={"a": b"b"})
    (tmp_path / "text").write_bytes(b"no database at all, but longer than the header of one, which has a hundred bytes" * 3)
    (tmp_path / "short").write_bytes(b"short")
    (tmp_path / "folder").mkdir()
    for name in "own.sqlite", "other.sqlite", "text", "short", "folder":
        before = (tmp_path / name).read_bytes() if name != "folder" else b""
        with pytest.raises(llvs.StorageError) as told:
            llvs.sqlite.Projection(store, tmp_path / name, PLAIN)
        assert str(tmp_path / name) in str(told.value)
        assert name == "folder" or (tmp_path / name).read_bytes() == before
    assert ask(tmp_path / "own.sqlite", "SELECT x FROM people") == [(1,)]
    with llvs.sqlite.Projection(store, tmp_path / "new.sqlite", PLAIN) as projection:
        projection.update()
        assert oct((tmp_path / "new.sqlite").stat().st_mode & 0o777) == "0o600"
        assert projection.version == version
    with closing(sqlite3.connect(tmp_path / "new.sqlite")) as own:
        own.executescript("PRAGMA user_version = 2")
    with pytest.raises(llvs.StorageError, match="format 2"):
        llvs.sqlite.Projection(store, tmp_path / "new.sqlite", PLAIN)
    with pytest.raises(llvs.StorageError):
        llvs.sqlite.Projection(store, tmp_path / "none" / "view.sqlite", PLAIN)


def test_a_damaged_database_says_that_it_can_be_deleted(store: llvs.Store, view: Path) -> None:
    first = store.make_version(insert={f"contact/{i}": json.dumps({"lastName": "x" * 500}).encode() for i in range(500)})
    with llvs.sqlite.Projection(store, view, PLAIN) as projection:
        projection.update()
    with closing(sqlite3.connect(view)) as own:
        own.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    data = bytearray(view.read_bytes())
    data[4096:] = b"\xaa" * (len(data) - 4096)
    view.write_bytes(bytes(data))
    second = store.make_version(first, remove=["contact/7"])
    with pytest.raises(llvs.StorageError, match="delete it with the files named -wal"):
        with llvs.sqlite.Projection(store, view, PLAIN) as projection:
            projection.update()
    view.unlink()
    with llvs.sqlite.Projection(store, view, PLAIN) as projection:
        assert projection.update() == 499 and projection.version == second.id


def test_locked_by_another_program(store: llvs.Store, view: Path) -> None:
    version = store.make_version(insert={"contact/1": b"{}"})
    with llvs.sqlite.Projection(store, view, PLAIN, busy_timeout=0.1) as projection:
        projection.update()
        store.make_version(version, insert={"contact/2": b"{}"})
        with closing(sqlite3.connect(view, isolation_level=None)) as own:
            own.execute("BEGIN IMMEDIATE")
            with pytest.raises(llvs.BusyError):
                projection.update()
            own.execute("ROLLBACK")
        assert projection.version == version.id
        assert projection.update() == 1


def test_cancelled_it_is_as_it_was(store: llvs.Store, view: Path) -> None:
    first = store.make_version(insert={"contact/a": b"{}"})
    store.make_version(first, insert={f"contact/{i}": b"{}" for i in range(5_000)})
    token, seen = llvs.CancelToken(), []

    def cancel(progress: llvs.control.Progress) -> None:
        seen.append(progress.completed)
        if progress.completed > 2_000:
            token.cancel()

    with llvs.sqlite.Projection(store, view, PLAIN) as projection:
        projection.update(first)
        with pytest.raises(llvs.CancelledError):
            projection.update(progress=cancel, cancel=token)
        assert max(seen) > 2_000
        assert projection.version == first.id
        assert ask(view, "SELECT id FROM people") == [("contact/a",)]

        def again(progress: llvs.control.Progress) -> None:
            with pytest.raises(llvs.BusyError):
                projection.update()
            seen.clear()

        assert projection.update(progress=again) == 5_000 and not seen


def test_unknown_versions_and_closed_stores(store: llvs.Store, view: Path) -> None:
    with llvs.sqlite.Projection(store, view, PLAIN) as projection:
        assert projection.update() == 0
        assert projection.version is not None
        with pytest.raises(llvs.errors.UnknownVersionError):
            projection.update("none")
        store.close()
        with pytest.raises(llvs.ClosedError):
            projection.update()
    with pytest.raises(llvs.ClosedError):
        projection.update()
    with pytest.raises(llvs.ClosedError):
        llvs.sqlite.Projection(store, view, PLAIN)


# MARK: Following a coordinator


def test_it_follows_a_coordinator(tmp_path: Path, view: Path) -> None:
    with llvs.Coordinator(tmp_path / "notes.llvs") as notes:
        notes.save(insert={"contact/1": b'{"lastName":"Smith"}'})
        first = notes.current_version.id
        with llvs.sqlite.Projection(notes, view, PLAIN) as projection:
            eventually(lambda: projection.version == notes.current_version.id)
            for i in range(50):
                notes.save(update={"contact/1": json.dumps({"lastName": str(i)}).encode()})
            eventually(lambda: projection.version == notes.current_version.id)
            assert ask(view, "SELECT last FROM people") == [("49",)]
            assert projection.failure is None
            notes.current_version = first
            eventually(lambda: projection.version == first)
            assert ask(view, "SELECT last FROM people") == [("Smith",)]


def test_it_goes_on_trying(tmp_path: Path, view: Path) -> None:
    with llvs.Coordinator(tmp_path / "notes.llvs") as notes, llvs.sqlite.Projection(notes, view, PLAIN, busy_timeout=0.05) as projection:
        eventually(lambda: projection.version == notes.current_version.id)
        with closing(sqlite3.connect(view, isolation_level=None)) as own:
            own.execute("BEGIN IMMEDIATE")
            notes.save(insert={"contact/1": b"{}"})
            eventually(lambda: isinstance(projection.failure, llvs.BusyError))
            own.execute("ROLLBACK")
        eventually(lambda: projection.version == notes.current_version.id)
        eventually(lambda: projection.failure is None)


def test_closing_while_it_updates(tmp_path: Path, view: Path) -> None:
    """At any moment of the update."""
    for order in range(6):
        notes = llvs.Coordinator(tmp_path / f"{order}.llvs")
        notes.save(insert={f"contact/{i}": b"{}" for i in range(3_000)})
        projection = llvs.sqlite.Projection(notes, tmp_path / f"{order}.sqlite", SEARCHED)
        time.sleep(0.02 * order)
        (projection, notes)[order % 2].close()
        (notes, projection)[order % 2].close()
        # The database is at one version, or at none yet.
        there = ask(tmp_path / f"{order}.sqlite", "SELECT count(*) FROM sqlite_master WHERE name = 'people'")
        if there != [(0,)]:
            assert ask(tmp_path / f"{order}.sqlite", "SELECT count(*) FROM people") == [(3_000,)]


READER = """
import sqlite3, sys
database = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=0)
print("ready", flush=True)
seen = set()
while True:
    database.execute("BEGIN")
    version, = database.execute("SELECT version FROM llvs_projection").fetchone()
    numbers = database.execute("SELECT min(n), max(n), count(*) FROM rows").fetchone()
    found = database.execute("SELECT count(*) FROM found WHERE found MATCH ?", (f"word{numbers[0]}",)).fetchone()
    database.execute("COMMIT")
    # All rows are of one version, in both tables.
    assert numbers[0] == numbers[1] and numbers[2] == 200 and found == (200,), (version, numbers, found)
    seen.add((version, numbers[0]))
    if numbers[0] == int(sys.argv[2]):
        break
assert len({version for version, _ in seen}) == len({number for _, number in seen}) == len(seen)
print(len(seen), flush=True)
"""


def test_readers_of_other_processes_while_updates_go_on(tmp_path: Path, view: Path) -> None:
    definition = {
        "tables": {
            "rows": {
                "prefix": "row/",
                "columns": [{"name": "n", "pointer": "/n", "type": "integer"}, {"name": "w", "pointer": "/w", "type": "text"}],
                "search": {"name": "found", "columns": ["w"]},
            }
        }
    }
    last = 150

    def rows(n: int) -> dict[str, bytes]:
        return {f"row/{i}": json.dumps({"n": n, "w": f"word{n}"}).encode() for i in range(200)}

    with llvs.Coordinator(tmp_path / "notes.llvs") as notes:
        notes.save(insert=rows(0))
        with llvs.sqlite.Projection(notes, view, definition, follows=False) as projection:
            projection.update()
            readers = [
                subprocess.Popen([sys.executable, "-c", READER, str(view), str(last)], stdout=subprocess.PIPE, text=True) for _ in range(2)
            ]
            try:
                for reader in readers:
                    assert reader.stdout is not None and reader.stdout.readline() == "ready\n"
                for n in range(1, last + 1):
                    notes.save(update=rows(n))
                    projection.update()
                seen = [int(reader.communicate(timeout=300)[0]) for reader in readers]
            finally:
                for reader in readers:
                    reader.kill()
                    reader.wait()
            assert [reader.returncode for reader in readers] == [0, 0]
            assert max(seen) > 1


def test_the_shell_reads_it(store: llvs.Store, view: Path) -> None:
    shell = shutil.which("sqlite3")
    if shell is None:
        pytest.skip("there is no shell of SQLite")
    store.make_version(insert={"contact/1": b'{"lastName":"Smith","born":1815}'})
    with llvs.sqlite.Projection(store, view, PLAIN) as projection:
        projection.update()
        told = subprocess.run([shell, str(view), "SELECT last, born FROM people"], capture_output=True, text=True, check=True)
    assert told.stdout == "Smith|1815\n"


def test_the_shell_reads_it_while_updates_go_on(store: llvs.Store, view: Path) -> None:
    shell = shutil.which("sqlite3")
    if shell is None:
        pytest.skip("there is no shell of SQLite")

    def people(born: int) -> dict[str, bytes]:
        return {f"contact/{i:03}": json.dumps({"lastName": f"word{born}", "born": born}).encode() for i in range(200)}

    versions = [store.make_version(insert=people(0)).id]
    for born in range(1, 20):
        versions.append(store.make_version(versions[-1], update=people(born)).id)
    asked = "BEGIN; SELECT version, min(born), max(born), count(*) FROM people, llvs_projection; " \
            "SELECT count(*) FROM found WHERE found MATCH 'word' || (SELECT min(born) FROM people); COMMIT"
    over, failures = threading.Event(), list[BaseException]()

    def work() -> None:
        try:
            for turn in range(100_000):
                projection.update(versions[turn % len(versions)])
                if over.is_set():
                    break
        except BaseException as failure:
            failures.append(failure)

    with llvs.sqlite.Projection(store, view, SEARCHED) as projection:
        projection.update(versions[0])
        thread = threading.Thread(target=work)
        thread.start()
        try:
            seen = set()
            for _ in range(40):
                told = subprocess.run([shell, str(view), asked], capture_output=True, text=True, check=True).stdout.split()
                version, least, most, count = told[0].split("|")
                # All rows are of the recorded version, in both tables.
                assert least == most == str(versions.index(version)) and count == told[1] == "200", told
                seen.add(version)
        finally:
            over.set()
            thread.join()
        assert not failures and len(seen) > 1


def test_two_that_update_one_database(store: llvs.Store, view: Path) -> None:
    versions = a_history(store, random.Random(7), 20)
    failures: list[BaseException] = []

    def work(seed: int) -> None:
        chance = random.Random(seed)
        try:
            with llvs.sqlite.Projection(store, view, SEARCHED, busy_timeout=60) as projection:
                for _ in range(15):
                    projection.update(chance.choice(versions))
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    (version,), = ask(view, "SELECT version FROM llvs_projection")
    assert ask(view, "SELECT id, last, born FROM people ORDER BY id") == expected(store, version)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_child_that_was_forked(store: llvs.Store, view: Path) -> None:
    store.make_version(insert={"contact/1": b"{}"})
    projection = llvs.sqlite.Projection(store, view, PLAIN)
    projection.update()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            projection.update()
        except llvs.errors.ForkedError:
            code = 0
        projection.close()
        os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert projection.update() == 0
    projection.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.parametrize("definition", [PLAIN, SEARCHED], ids=["plain", "searched"])
def test_a_callback_that_forks_within_the_transaction(store: llvs.Store, tmp_path: Path, definition: Any) -> None:
    """The child does not touch the transaction in which it was forked: its parent continues, with files and memory that both have open."""
    values = {f"contact/{i:05}": json.dumps({"lastName": f"{i * 7919 % 10_007:05} " * 60, "born": i}).encode() for i in range(10_000)}
    first = store.make_version(insert={"contact/x": b"{}"})
    version = store.make_version(first, insert=values).id
    rows, forked = expected(store, version), 0
    for turn in range(sample(3, 18)):
        view, calls, outcomes = tmp_path / f"{turn}.sqlite", [0], list[int]()
        # The log already has frames that a reader keeps there. Behind them the transaction has written pages for which SQLite's own memory
        # has no room.
        with llvs.sqlite.Projection(store, view, {"tables": {"others": PEOPLE}}) as before:
            before.update(first)
            reader = sqlite3.connect(view)
            assert reader.execute("SELECT count(*) FROM llvs_projection").fetchall() == [(1,)]
        projection = llvs.sqlite.Projection(store, view, definition)

        def progress(state: llvs.control.Progress) -> None:
            calls[0] += 1
            # Act after the first values, which are read within the transaction.
            if calls[0] != 3 + turn * 2 or not state.completed:
                return
            child = os.fork()
            if child == 0:
                signal.alarm(300)
                outcomes.append(-1)
            else:
                # The child runs first.
                outcomes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))

        code = 1
        try:
            changed = projection.update(progress=progress)
        except llvs.errors.ForkedError:
            code = 0 if outcomes == [-1] else 2
        finally:
            if outcomes == [-1]:
                projection.close()
                os._exit(code)
        assert code == 1 and changed == len(rows), "the parent's update failed"
        forked += len(outcomes)
        assert outcomes in ([], [0]), "the child went on, or ended otherwise"
        projection.close()
        reader.close()
        assert ask(view, "PRAGMA integrity_check") == [("ok",)]
        assert ask(view, "SELECT id, last, born FROM people ORDER BY id") == rows
    assert forked > sample(2, 3)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root gives files away")
def test_a_database_of_another_user_where_all_may_make_files(store: llvs.Store, tmp_path: Path) -> None:
    """Another user who creates a database, or a link to one, in a folder such as /tmp could read the stored data."""
    store.make_version(insert={"contact/1": b"{}"})
    common, own = tmp_path / "common", tmp_path / "own"
    common.mkdir()
    common.chmod(0o1777)
    own.mkdir()
    for path in (common / "laid.sqlite", own / "theirs.sqlite"):
        with llvs.sqlite.Projection(store, path, PLAIN):
            pass
        os.chown(path, 65534, 65534)
    (common / "empty.sqlite").touch()
    os.chown(common / "empty.sqlite", 65534, 65534)
    (common / "link.sqlite").symlink_to(own / "theirs.sqlite")
    (common / "nowhere.sqlite").symlink_to(tmp_path / "elsewhere.sqlite")
    for name in "link.sqlite", "nowhere.sqlite":
        os.chown(common / name, 65534, 65534, follow_symlinks=False)
    for name in "laid.sqlite", "empty.sqlite", "link.sqlite", "nowhere.sqlite":
        with pytest.raises(llvs.StorageError, match="belongs to another user"):
            llvs.sqlite.Projection(store, common / name, PLAIN)
    assert (common / "empty.sqlite").stat().st_size == 0 and not (tmp_path / "elsewhere.sqlite").exists()
    # Accepted: any files in a folder of this user, and this user's files in any folder.
    for path in own / "theirs.sqlite", common / "mine.sqlite":
        with llvs.sqlite.Projection(store, path, PLAIN) as projection:
            assert projection.update() == 1
