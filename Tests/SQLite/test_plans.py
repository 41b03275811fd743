"""Constraints of a query are passed to the functions (EXPLAIN QUERY PLAN), and this never changes a result."""

from __future__ import annotations

import random
import re
from typing import Any

import pytest

import llvs

from conftest import Contacts

AT, INDEX = "at = 'draft'", "index_name = 'by-name'"


def plan(database: Any, statement: str) -> list[str]:
    """Returns what EXPLAIN QUERY PLAN prints for each function in a statement, without the leading bits."""
    rows = database.execute(f"EXPLAIN QUERY PLAN {statement}").fetchall()
    return [found[1] for row in rows if (found := re.search(r"VIRTUAL TABLE INDEX \d+:(.*)", row[3]))]


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("", ""),
        ("WHERE id = 'a'", "id=?"),
        ("WHERE id IN ('a', 'b')", "id IN ?"),
        ("WHERE id > 'a'", "id>?"),
        ("WHERE id >= 'a' AND id < 'b'", "id>=? id<?"),
        ("WHERE id BETWEEN 'a' AND 'b'", "id>=? id<=?"),
        ("WHERE id GLOB 'a*'", "id GLOB ?"),
        ("WHERE id LIKE 'a%'", "id LIKE ?"),
        (f"WHERE {AT}", "at=?"),
        ("WHERE at IN ('a', 'b')", "at=?"),
        (f"WHERE id LIKE 'contact/%' AND {AT}", "id LIKE ? at=?"),
        (f"WHERE {INDEX}", "index_name=?"),
        (f"WHERE {INDEX} AND find = json_array('a')", "index_name=? find=?"),
        (f"WHERE {INDEX} AND begins = 'a' AND {AT}", "index_name=? begins=? at=?"),
        (f"WHERE {INDEX} AND low = '[1]' AND high = '[2]'", "index_name=? low=? high=?"),
        ("ORDER BY id", " ORDER BY id"),
        ("ORDER BY id DESC", " ORDER BY id DESC"),
        ("WHERE id LIKE 'a%' ORDER BY id", "id LIKE ? ORDER BY id"),
        # Constraints that do not reach the functions: SQLite evaluates them itself.
        ("WHERE id = 'a' COLLATE NOCASE", ""),
        ("WHERE id > 'a' COLLATE NOCASE", ""),
        ("WHERE data = 'a'", ""),
        ("WHERE id LIKE 'a%' ESCAPE '!'", ""),
        ("WHERE id <> 'a'", ""),
        ("WHERE id IS NULL", ""),
        ("ORDER BY data", ""),
        ("ORDER BY id COLLATE NOCASE", ""),
        (f"WHERE {INDEX} ORDER BY id", "index_name=?"),
        ("WHERE id LIKE 'a%' ORDER BY id DESC", "id LIKE ?"),
    ],
)
def test_values(database: Any, where: str, expected: str) -> None:
    (found,) = plan(database, f"SELECT id, data FROM llvs_values('notes.llvs') {where}")
    # SQLite may pass the parts in any order, and with GLOB and LIKE its own range conditions.
    order = re.search(r" ORDER BY .*", found)
    parts = set(re.sub(r" ORDER BY .*", "", found).split(" AND "))
    wanted = re.sub(r" ORDER BY .*", "", expected)
    words = {part.strip() for part in re.findall(r"[a-z_]+(?: LIKE | GLOB | IN |[<>=]+)\?", wanted)}
    extra = {"id>=?", "id<?"} if "GLOB" in expected or "LIKE" in expected else set()
    assert words | {"store=?"} <= parts <= words | {"store=?"} | extra
    assert (order[0] if order else "") == (expected[len(wanted):] if " ORDER BY" in expected else "")


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("SELECT * FROM llvs_changes('p', 'A', 'B')", {"store=?", "from_version=?", "to_version=?"}),
        ("SELECT * FROM llvs_changes('p', 'A', 'B') WHERE id = 'a'", {"store=?", "from_version=?", "to_version=?", "id=?"}),
        ("SELECT * FROM llvs_changes('p', 'A', 'B') WHERE id > 'a'", {"store=?", "from_version=?", "to_version=?", "id>?"}),
        ("SELECT * FROM llvs_versions('p')", {"store=?"}),
        ("SELECT * FROM llvs_versions('p', 'A', 'B')", {"store=?", "ancestors_of=?", "hiding=?"}),
        ("SELECT * FROM llvs_versions('p') WHERE version = 'A'", {"store=?", "version=?"}),
        ("SELECT * FROM llvs_versions('p') WHERE branch = 'A'", {"store=?", "branch=?"}),
        ("SELECT * FROM llvs_heads('p') WHERE branch = 'A'", {"store=?", "branch=?"}),
        ("SELECT * FROM llvs_history('p', 'a')", {"store=?", "id=?"}),
        ("SELECT * FROM llvs_history('p', 'a', 'A', 'B')", {"store=?", "id=?", "ancestors_of=?", "hiding=?"}),
        ("SELECT * FROM llvs_history('p', 'a') WHERE branch = 'b'", {"store=?", "id=?", "branch=?"}),
    ],
)
def test_the_others(database: Any, statement: str, expected: set[str]) -> None:
    (found,) = plan(database, statement)
    assert set(found.split(" AND ")) == expected


def test_changes_come_sorted(database: Any) -> None:
    (found,) = plan(database, "SELECT * FROM llvs_changes('p', 'A', 'B') ORDER BY id")
    assert found.endswith(" ORDER BY id")
    (found,) = plan(database, "SELECT * FROM llvs_changes('p', 'A', 'B') ORDER BY id DESC")
    assert "ORDER" not in found


def test_a_join_looks_up_by_id(database: Any) -> None:
    database.execute("CREATE TABLE cities(person TEXT, city TEXT)")
    rows = database.execute("EXPLAIN QUERY PLAN SELECT * FROM llvs_values('p') v JOIN cities ON v.id = person").fetchall()
    assert rows[0][3] == "SCAN cities" and "id=?" in rows[1][3]


def test_what_comes_from_another_table_comes_first(database: Any) -> None:
    statement = "SELECT * FROM llvs_values('p') x, llvs_versions('p') v WHERE x.at = v.version"
    rows = [row[3] for row in database.execute(f"EXPLAIN QUERY PLAN {statement}").fetchall()]
    assert rows[0].startswith("SCAN v ") and rows[1].startswith("SCAN x ") and "at=?" in rows[1]


def test_only_what_is_read_is_fetched(contacts: Contacts, database: Any) -> None:
    """The leading bits say which columns are read. The data is fetched only if its column is read."""
    def bits(columns: str) -> int:
        (row,) = database.execute(f"EXPLAIN QUERY PLAN SELECT {columns} FROM llvs_values('p')").fetchall()
        return int(re.search(r"INDEX (\d+):", row[3])[1]) >> 8

    assert bits("id") & 7 == 1 and bits("id, data") & 7 == 3 and bits("count(*)") & 7 == 0


# ---- the same answers as an ordinary table ----

IDS = [
    "a", "A", "ab", "aB", "Ab", "AB", "abc", "aBx", "ab/1", "AB/1", "Ab/2", "aa", "az", "aZ", "B", "b", "b/1", "B/2", "contact/1",
    "Contact/2", "CONTACT/3", "cONTACT/4", "contacts", "conta", "contact", "coNtAcT/5", "D", "z", "zz", "Z", "_", "`", "[x", "{", "@", "1",
    "10", "5", "5.0", "\u00e9", "\u00c9", "\u00e9a", "e\u0301", "\u20ac/1", "\U0001f600", "\uffff", "\u007f", "a b", "a%b", "a_b", "a*b",
    "a[b", "a\\b", " ", "a'b",
]
PATTERNS = [
    "a", "A", "ab", "aB", "contact/", "CoNtAcT/", "c", "", "\u00e9", "\u20ac", "z", "Z", "a_", "_b", "5", "@", "`", "[", "A[B]", "co*t",
    "a?",
]


def literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def condition(chance: random.Random) -> str:
    kind = chance.randrange(9)
    a, b = chance.choice(IDS), chance.choice(IDS)
    if kind == 0:
        return f"id {chance.choice(['=', '>', '>=', '<', '<=', '<>', 'IS'])} {literal(a)}"
    if kind == 1:
        return f"id LIKE {literal(chance.choice(PATTERNS) + chance.choice(['%', '', '_', '%/%', '%1']))}"
    if kind == 2:
        return f"id GLOB {literal(chance.choice(PATTERNS) + chance.choice(['*', '', '?', '*1', '[a-z]*']))}"
    if kind == 3:
        return f"id IN ({literal(a)}, {literal(b)}, {chance.choice(['NULL', '5', literal('c')])})"
    if kind == 4:
        return f"id BETWEEN {literal(min(a, b))} AND {literal(max(a, b))}"
    if kind == 5:
        other = chance.choice(["5", "5.0", "NULL", "''", "x'61'", "-1"])
        return f"id {chance.choice(['=', '>', '<=', 'LIKE', 'GLOB', '<', '>='])} {other}"
    if kind == 6:
        return f"id {chance.choice(['=', '>', '<'])} {literal(a)} COLLATE NOCASE"
    if kind == 7:
        return f"({condition(chance)} OR {condition(chance)})"
    return f"data LIKE {literal('%' + str(chance.randrange(10)) + '%')}"


@pytest.mark.parametrize("encoding", ["UTF-8", "UTF-16le", "UTF-16be"])
def test_the_same_answers_as_an_ordinary_table(connect: Any, tmp_path: Any, encoding: str) -> None:
    path = str(tmp_path / "ids.llvs")
    more = [f"contact/{n}" for n in range(10, 300)] + [f"CONTACT/{n}" for n in range(10, 200)] + [f"d{n}" for n in range(300)]
    with llvs.Store(path) as store:
        store.make_version(insert={id: id.encode() + str(n).encode() for n, id in enumerate([*IDS, *more])})
    database = connect()
    database.execute(f"PRAGMA encoding = '{encoding}'")
    assert database.execute("PRAGMA encoding").fetchone()[0] == encoding
    database.execute("CREATE TABLE ordinary(id TEXT, data TEXT)")
    database.execute("INSERT INTO ordinary SELECT id, data FROM llvs_values(?)", (path,))
    assert database.execute("SELECT count(*) FROM ordinary").fetchone()[0] == len(IDS) + len(more)
    chance = random.Random(16)
    met = 0
    for number in range(1_500):
        where = " AND ".join(condition(chance) for _ in range(chance.choice([1, 1, 2, 3])))
        order = chance.choice(["id", "id DESC", "id, data", "id COLLATE NOCASE, id", "data DESC, id"])
        limit = chance.choice(["", "", " LIMIT 3", " LIMIT 2 OFFSET 1"])
        columns = chance.choice(["id, data", "id", "count(*)", "min(id), max(id)", "DISTINCT length(id), id"])
        if columns in ("count(*)", "min(id), max(id)"):
            order = "1"
        statement = f"SELECT {columns} FROM TABLE_ WHERE {where} ORDER BY {order}{limit}"
        expected = database.execute(statement.replace("TABLE_", "ordinary")).fetchall()
        found = database.execute(statement.replace("TABLE_", "llvs_values(?)"), (path,)).fetchall()
        assert found == expected, (number, statement)
        met += len(expected)
    assert met > 1_000
    for operator in ("LIKE", "="):
        asked = f"SELECT count(*) FROM ordinary o, {{}} x WHERE x.id {operator} o.id"
        assert database.execute(asked.format("llvs_values(?)"), (path,)).fetchall() == database.execute(asked.format("ordinary")).fetchall()


def test_the_encoding_may_change_after_the_first_use(connect: Any, tmp_path: Any) -> None:
    path = str(tmp_path / "ids.llvs")
    with llvs.Store(path) as store:
        store.make_version(insert={"\uff5e": b"", "\U0001f600": b"", "a": b""})
    database = connect()
    asked = "SELECT id FROM llvs_values(?) ORDER BY id"
    assert database.execute(asked, (path,)).fetchall() == [("a",), ("\uff5e",), ("\U0001f600",)]
    database.execute("PRAGMA encoding = 'UTF-16be'")
    if database.execute("PRAGMA encoding").fetchone()[0] == "UTF-16be":
        # Another text, so that no earlier prepared statement is reused.
        assert database.execute(asked + " ASC", (path,)).fetchall() == [("a",), ("\U0001f600",), ("\uff5e",)]


def test_a_prefix_without_case_passes_over_what_lies_between(database: Any, tmp_path: Any) -> None:
    """LIKE 'contact/%' also matches CONTACT/…, and yet reads little of what lies between: the test counts the bytes that are fetched."""
    path = str(tmp_path / "many.llvs")
    with llvs.Store(path) as store:
        store.make_version(insert={f"b{n:05}": b"x" for n in range(20_000)} | {"contact/1": b"", "CONTACT/2": b"", "zz": b""})
    asked = "SELECT id FROM llvs_values(?) WHERE id LIKE 'contact/%'"
    assert database.execute(asked, (path,)).fetchall() == [("CONTACT/2",), ("contact/1",)]
    # A scan of everything needs about 20,000 steps of SQLite, which the test counts; this query needs a few.
    steps = []
    database.set_progress_handler(lambda: steps.append(1), 10)
    database.execute("SELECT count(*) FROM llvs_values(?) WHERE id LIKE 'contact/%'", (path,)).fetchall()
    few = len(steps)
    database.execute("SELECT count(*) FROM llvs_values(?) WHERE id > ''", (path,)).fetchall()
    database.set_progress_handler(None, 0)
    assert few < 100 < len(steps) - few
