"""The results of the functions, compared with those of the package."""

from __future__ import annotations

import json
from typing import Any

import pytest

import llvs

from conftest import Contacts


def values(store: llvs.Store, version: str) -> list[tuple[str, bytes]]:
    return [(id, bytes(data)) for id, data in store.at(version).items()]


def as_bytes(rows: list[tuple[str, Any]]) -> list[tuple[str, bytes]]:
    return [(id, data.encode() if isinstance(data, str) else data) for id, data in rows]


def sqlite_version(database: Any) -> tuple[int, ...]:
    (row,) = database.execute("SELECT sqlite_version()").fetchall()
    return tuple(map(int, row[0].split(".")))


@pytest.mark.parametrize("name", ["first", "second", "last", "draft"])
def test_values_at_any_version(contacts: Contacts, database: Any, name: str) -> None:
    version = getattr(contacts, name)
    rows = database.execute("SELECT id, data FROM llvs_values(?, ?)", (contacts.path, version)).fetchall()
    with contacts.open() as store:
        assert as_bytes(rows) == values(store, version) != []


def test_without_a_version_it_is_the_most_recent_head_without_a_branch(contacts: Contacts, database: Any) -> None:
    assert database.execute("SELECT DISTINCT version FROM llvs_values(?)", (contacts.path,)).fetchall() == [(contacts.last,)]


def test_where_all_heads_have_a_branch_it_is_the_most_recent(database: Any, tmp_path: Any) -> None:
    path = str(tmp_path / "branches.llvs")
    with llvs.Store(path) as store:
        root = store.make_version(insert={"a": b"1"}, branch="one")
        store.make_version(root, update={"a": b"2"}, branch="two")
        newest = store.make_version(root, update={"a": b"3"}, branch="one")
    assert database.execute("SELECT version FROM llvs_values(?)", (path,)).fetchall() == [(newest.id,)]


def test_branches(contacts: Contacts, database: Any) -> None:
    for name in ("draft", "branch:draft"):
        asked = "SELECT data->>'$.lastName', version FROM llvs_values(?) WHERE id = 'contact/1' AND at = ?"
        assert database.execute(asked, (contacts.path, name)).fetchall() == [("Draft", contacts.draft)]


def test_columns(contacts: Contacts, database: Any) -> None:
    rows = database.execute("SELECT id, typeof(data), stored_version FROM llvs_values(?)", (contacts.path,)).fetchall()
    kinds = {id: kind for id, kind, _ in rows}
    assert kinds["picture"] == "blob" and kinds["empty"] == kinds["note/2"] == kinds["contact/1"] == "text"
    stored = {id: version for id, _, version in rows}
    assert stored["contact/1"] == contacts.first and stored["note/1"] == contacts.second and stored["note/2"] == contacts.last
    described = database.execute("SELECT * FROM llvs_values(?)", (contacts.path,)).description
    assert [column[0] for column in described] == ["id", "data", "stored_version"]
    # A query that reads only ids gives the same rows.
    assert database.execute("SELECT id, stored_version FROM llvs_values(?)", (contacts.path,)).fetchall() == [(id, v) for id, _, v in rows]
    one = "SELECT id, typeof(data), stored_version FROM llvs_values(?) WHERE id = ?"
    for id, kind, version in rows:
        assert database.execute(one, (contacts.path, id)).fetchall() == [(id, kind, version)]
        assert database.execute(one.replace("typeof(data)", "1"), (contacts.path, id)).fetchall() == [(id, 1, version)]


def test_several_versions_at_once(contacts: Contacts, database: Any) -> None:
    asked = "SELECT at, count(*) FROM llvs_values(?) WHERE at IN (?, ?, 'draft') GROUP BY at"
    found = dict(database.execute(asked, (contacts.path, contacts.first, contacts.last)).fetchall())
    assert found == {contacts.first: 5, contacts.last: 8, "draft": 7}
    asked = "SELECT v.version, count(x.id) FROM llvs_versions(?1) v LEFT JOIN llvs_values(?1, v.version) x GROUP BY v.version"
    counts = dict(database.execute(asked, (contacts.path,)).fetchall())
    with contacts.open() as store:
        assert counts == {version.id: len(store.at(version)) for version in store.history()}


def test_or_over_versions(contacts: Contacts, database: Any) -> None:
    asked = "SELECT data FROM llvs_values(?) WHERE (at = ? AND id = 'contact/1') OR (at = ? AND id = 'contact/1')"
    rows = database.execute(asked, (contacts.path, contacts.first, contacts.draft)).fetchall()
    assert len(rows) == 2 and rows[0] != rows[1]


def test_versions(contacts: Contacts, database: Any) -> None:
    rows = database.execute("SELECT * FROM llvs_versions(?)", (contacts.path,)).fetchall()
    with contacts.open() as store:
        expected = list(store.history())
    assert [row[0] for row in rows] == [version.id for version in expected]
    for row, version in zip(rows, expected):
        id, time, first, second, branch, size, metadata = row
        assert time == pytest.approx(version.timestamp) and branch == version.branch
        assert [one for one in (first, second) if one] == list(version.predecessors)
        assert json.loads(metadata) == version.metadata
    only = database.execute("SELECT version FROM llvs_versions(?) WHERE branch = 'draft'", (contacts.path,)).fetchall()
    assert only == [(contacts.draft,)]
    one = "SELECT metadata->>'$.author' FROM llvs_versions(?) WHERE version = ?"
    assert database.execute(one, (contacts.path, contacts.first)).fetchall() == [("ann",)]
    assert database.execute(one, (contacts.path, "unknown")).fetchall() == []


def test_ancestors(contacts: Contacts, database: Any) -> None:
    asked = "SELECT version FROM llvs_versions(?, ?)"
    assert contacts.last not in [row[0] for row in database.execute(asked, (contacts.path, "draft"))]
    asked = "SELECT version FROM llvs_versions(?, ?, ?)"
    assert database.execute(asked, (contacts.path, "draft", contacts.first)).fetchall() == [(contacts.draft,), (contacts.second,)]
    asked = "SELECT version FROM llvs_versions(?, ?, ?) WHERE version = ?"
    assert database.execute(asked, (contacts.path, "draft", contacts.first, contacts.first)).fetchall() == []
    assert database.execute(asked, (contacts.path, "draft", contacts.first, contacts.second)).fetchall() == [(contacts.second,)]


def test_heads(contacts: Contacts, database: Any) -> None:
    asked = "SELECT version, branch FROM llvs_heads(?)"
    assert sorted(database.execute(asked, (contacts.path,))) == sorted([(contacts.last, None), (contacts.draft, "draft")])
    assert database.execute(asked + " WHERE branch = 'draft'", (contacts.path,)).fetchall() == [(contacts.draft, "draft")]
    assert database.execute(asked + " WHERE version = ?", (contacts.path, contacts.first)).fetchall() == []


def test_history(contacts: Contacts, database: Any) -> None:
    rows = database.execute("SELECT version, change, data FROM llvs_history(?, 'contact/1')", (contacts.path,)).fetchall()
    assert [row[:2] for row in rows] == [(contacts.draft, "update"), (contacts.first, "insert")]
    assert rows[0][2] == '{"lastName":"Draft"}'
    rows = database.execute("SELECT version, change, data FROM llvs_history(?, 'contact/2')", (contacts.path,)).fetchall()
    assert rows[0] == (contacts.second, "remove", None)
    asked = "SELECT version FROM llvs_history(?, 'contact/1', ?)"
    assert database.execute(asked, (contacts.path, contacts.last)).fetchall() == [(contacts.first,)]
    assert database.execute("SELECT count(*) FROM llvs_history(?, 'nothing')", (contacts.path,)).fetchall() == [(0,)]


def test_changes(contacts: Contacts, database: Any) -> None:
    asked = "SELECT id, change, data, size, stored_version FROM llvs_changes(?, ?, ?)"
    rows = database.execute(asked, (contacts.path, contacts.first, "draft")).fetchall()
    assert [(id, change) for id, change, *_ in rows] == [
        ("contact/1", "update"), ("contact/2", "remove"), ("empty", "insert"), ("note/1", "insert"), ("picture", "insert"),
    ]
    assert rows[0][2:] == ('{"lastName":"Draft"}', 20, contacts.draft) and rows[1][2:] == (None, None, None)
    for where in ("id = 'note/1'", "id LIKE 'NOTE/%'", "id GLOB 'note/*'", "id >= 'note/' AND id < 'note0'", "id > 'empty' AND id < 'p'"):
        found = database.execute(f"{asked} WHERE {where}", (contacts.path, contacts.first, "draft")).fetchall()
        assert [row[0] for row in found] == ["note/1"], where
    # Without the data.
    found = database.execute("SELECT id FROM llvs_changes(?, ?, ?)", (contacts.path, contacts.first, "draft")).fetchall()
    assert [row[0] for row in found] == [row[0] for row in rows]


def test_indexes(contacts: Contacts, database: Any) -> None:
    def ids(where: str, *given: object) -> list[str]:
        return [row[0] for row in database.execute(f"SELECT id FROM llvs_values(?) WHERE {where}", (contacts.path, *given))]

    named = "at = ? AND index_name = 'by-name'"
    assert ids(f"{named} AND find = json_array('SMITH')", contacts.first) == ["contact/2", "contact/1"]
    assert ids(f"{named} AND find = json_array('smith', 'bob')", contacts.first) == ["contact/1"]
    assert ids(f"{named} AND begins = 'SMI'", contacts.first) == ["contact/2", "contact/1"]
    assert ids(f"{named} AND find = json_array('smith') AND begins = 'A'", contacts.first) == ["contact/2"]
    assert ids("index_name = 'by-name'") == ["contact/3", "contact/1", "contact/4"]
    assert ids("index_name = 'by-age' AND low = json_array(22) AND high = json_array(31) AND at = ?", contacts.first) == [
        "contact/3", "contact/2",
    ]
    assert ids("index_name = 'by-age' AND id = 'contact/3'") == ["contact/3"]
    assert ids("index_name = 'by-age' ORDER BY id DESC") == ["contact/4", "contact/3", "contact/1"]
    assert ids("index_name = 'by-tag' AND find = json_array('all') AND at = 'draft'") == ["contact/3", "contact/4"]
    asked = "SELECT key, data->>'$.age', stored_version FROM llvs_values(?, ?, 'by-age', json_array(22))"
    assert database.execute(asked, (contacts.path, contacts.first)).fetchall() == [("[22]", 22, contacts.first)]
    assert database.execute("SELECT DISTINCT key FROM llvs_values(?, ?)", (contacts.path, contacts.first)).fetchall() == [(None,)]


def test_pages_of_an_index(database: Any, tmp_path: Any) -> None:
    path = str(tmp_path / "many.llvs")
    with llvs.Coordinator(path) as notes:
        notes.register_schema({"merge": 1, "indexes": {"n": {"prefix": "", "on": ["/n"]}}})
        notes.save(insert={f"v{n:05}": b'{"n":%d}' % -n for n in range(20_000)})
    rows = database.execute("SELECT id, key, data FROM llvs_values(?) WHERE index_name = 'n'", (path,)).fetchall()
    assert rows == [(f"v{n:05}", f"[{-n}]", f'{{"n":{-n}}}') for n in reversed(range(20_000))]


def test_joins_with_ordinary_tables(contacts: Contacts, database: Any) -> None:
    database.execute("CREATE TABLE cities(person TEXT, city TEXT)")
    cities = [("contact/1", "Bern"), ("contact/3", "Rome"), ("contact/9", "Oslo"), (None, "Ulm")]
    database.executemany("INSERT INTO cities VALUES (?, ?)", cities)
    asked = "SELECT city, data->>'$.firstName' FROM cities {} JOIN llvs_values(?, ?) v ON v.id = person ORDER BY city"
    given = (contacts.path, contacts.first)
    assert database.execute(asked.format(""), given).fetchall() == [("Bern", "Bob"), ("Rome", "Cy")]
    assert database.execute(asked.format("LEFT"), given).fetchall() == [("Bern", "Bob"), ("Oslo", None), ("Rome", "Cy"), ("Ulm", None)]
    # Earlier versions of SQLite pass no arguments to a function to the right of RIGHT JOIN, which is an error.
    if sqlite_version(database) >= (3, 51):
        asked = "SELECT v.id, city FROM cities RIGHT JOIN llvs_values(?, ?) v ON v.id = person WHERE v.id GLOB 'contact/*' ORDER BY v.id"
        expected = [("contact/1", "Bern"), ("contact/2", None), ("contact/3", "Rome"), ("contact/4", None)]
        assert database.execute(asked, given).fetchall() == expected
        asked = "SELECT city, v.id FROM llvs_values(?, ?) v RIGHT JOIN cities ON v.id = person ORDER BY city"
        assert database.execute(asked, given).fetchall() == [("Bern", "contact/1"), ("Oslo", None), ("Rome", "contact/3"), ("Ulm", None)]
    asked = "SELECT count(*) FROM llvs_values(?1, ?2) a JOIN llvs_values(?1, ?3) b USING (id) WHERE a.stored_version <> b.stored_version"
    assert database.execute(asked, (contacts.path, contacts.first, contacts.draft)).fetchall() == [(1,)]
    asked = "SELECT city, x.id FROM cities, llvs_values(?, ?) x WHERE x.index_name = 'by-name' AND x.find = json_array('jones')"
    assert database.execute(asked + " AND city = 'Rome'", given).fetchall() == [("Rome", "contact/3")]
    database.execute("CREATE TABLE stores(path TEXT)")
    database.executemany("INSERT INTO stores VALUES (?)", [(contacts.path,), (contacts.path,)])
    assert database.execute("SELECT count(*) FROM stores, llvs_values(stores.path)").fetchall() == [(16,)]


def test_a_table_and_a_view_from_it(contacts: Contacts, database: Any) -> None:
    quoted = contacts.path.replace("'", "''")
    database.execute(f"CREATE TABLE copied AS SELECT id, data FROM llvs_values('{quoted}')")
    assert database.execute("SELECT count(*) FROM copied").fetchall() == [(8,)]
    database.execute(f"CREATE TEMP VIEW people AS SELECT id FROM llvs_values('{quoted}') WHERE id GLOB 'contact/*'")
    assert database.execute("SELECT id FROM people").fetchall() == [("contact/1",), ("contact/3",), ("contact/4",)]


def test_metadata_that_is_no_json(database: Any, tmp_path: Any) -> None:
    path = str(tmp_path / "metadata.llvs")
    with llvs.Store(path) as store:
        metadata = {"text": b'no "json"\n\\', "bytes": b"\xff", "json": [1, {"a": None}], 'k"\t': True}
        store.make_version(insert={"a": b"1"}, metadata=metadata)
    found = database.execute("SELECT metadata FROM llvs_heads(?)", (path,)).fetchone()[0]
    assert json.loads(found) == {"text": 'no "json"\n\\', "bytes": None, "json": [1, {"a": None}], 'k"\t': True}


def test_an_empty_store_has_no_rows(database: Any, tmp_path: Any) -> None:
    path = str(tmp_path / "empty.llvs")
    llvs.Store(path).close()
    for call in ("llvs_values(?)", "llvs_versions(?)", "llvs_heads(?)", "llvs_history(?, 'a')"):
        assert database.execute(f"SELECT * FROM {call}", (path,)).fetchall() == []
