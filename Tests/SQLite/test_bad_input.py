"""SQL that asks for absent values, or has arguments of a wrong type: the result is an error with a sentence, or the right rows."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

import llvs

from conftest import Contacts


def refused(database: Any, statement: str, *given: object) -> str:
    """Returns SQLite's message for a statement that fails."""
    with pytest.raises(Exception) as caught:
        database.execute(statement, given).fetchall()
    assert type(caught.value).__name__ in ("OperationalError", "DatabaseError", "DataError"), caught.value
    # Afterwards the connection is as good as before.
    assert database.execute("SELECT 1").fetchall() == [(1,)]
    return str(caught.value)


def test_no_store(database: Any, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "text").write_text("no database, and rather more than a hundred bytes of it: " + "x" * 200)
    (tmp_path / "nothing").write_bytes(b"")
    there = [str(tmp_path / name) for name in ("missing", "folder", "text", "nothing", "text/below")]
    for path in (*there, "missing.llvs", "/", "", "/dev/null", "x" * 5_000, "a\nb\x1b[31m"):
        said = refused(database, "SELECT * FROM llvs_values(?)", path)
        assert len(said) > 15 and "\x1b" not in said and "\n" not in said, said
    assert 'there is no store at "missing.llvs"' in refused(database, "SELECT * FROM llvs_values('missing.llvs')")
    assert "NUL" in refused(database, "SELECT * FROM llvs_values(?)", "a\0b")
    assert not (tmp_path / "missing").exists()
    for path in (5, 5.5, b"notes.llvs"):
        assert "is text" in refused(database, "SELECT * FROM llvs_values(?)", path)
    assert database.execute("SELECT * FROM llvs_values(NULL)").fetchall() == []


@pytest.mark.parametrize("name", ["values", "changes", "versions", "heads", "history"])
def test_what_is_needed(database: Any, name: str) -> None:
    assert f"llvs_{name} needs store: llvs_{name}('notes.llvs'" in refused(database, f"SELECT * FROM llvs_{name}")


def test_what_else_is_needed(contacts: Contacts, database: Any) -> None:
    assert "llvs_changes needs from_version: " in refused(database, "SELECT * FROM llvs_changes(?)", contacts.path)
    assert "llvs_changes needs to_version: " in refused(database, "SELECT * FROM llvs_changes(?, ?)", contacts.path, contacts.first)
    assert "llvs_history needs id: " in refused(database, "SELECT * FROM llvs_history(?)", contacts.path)
    assert "too many arguments" in refused(database, "SELECT * FROM llvs_heads(?, 1)", contacts.path)


def test_unknown_versions(contacts: Contacts, database: Any) -> None:
    strange = ("\N{SNOWMAN}", "x" * 3_000_000, "a\0b", "branch:" + "y" * 5_000, "a\x1b[0m")
    for version in ("nothing", "", "branch:nothing", "branch:", 5, 1.5, *strange):
        for call in ("llvs_values(?1, ?2)", "llvs_changes(?1, ?2, ?2)", "llvs_versions(?1, ?2)", "llvs_versions(?1, 'draft', ?2)",
                     "llvs_history(?1, 'contact/1', ?2)"):
            said = refused(database, f"SELECT * FROM {call}", contacts.path, version)
            assert re.match("there is no (version and no )?branch ", said) and len(said) < 1_000 and "\x1b" not in said, said
    assert "not as a blob" in refused(database, "SELECT * FROM llvs_values(?, x'61')", contacts.path)
    for call in ("llvs_values(?, NULL)", "llvs_changes(?, NULL, 'draft')", "llvs_versions(?, NULL)", "llvs_history(?, NULL)"):
        assert database.execute(f"SELECT * FROM {call}", (contacts.path,)).fetchall() == []


def test_values_of_any_type_to_compare_with(contacts: Contacts, database: Any) -> None:
    # Numbers have other affinities: test_plans.py compares them with a table.
    for given in (None, b"contact/1", "", "x" * 5_000, "\0", "contact/1\0", "\xed\xb3\xbf"):
        for operator in ("=", "<", ">", "<=", ">=", "LIKE", "GLOB", "IS"):
            kept = f"SELECT id FROM (SELECT id FROM llvs_values(?1) LIMIT -1 OFFSET 0) WHERE CAST(id AS TEXT) {operator} ?2"
            asked = f"SELECT id FROM llvs_values(?1) WHERE id {operator} ?2"
            assert database.execute(asked, (contacts.path, given)).fetchall() == database.execute(kept, (contacts.path, given)).fetchall()
    assert "cannot be empty" in refused(database, "SELECT * FROM llvs_history(?, '')", contacts.path)
    assert "not a blob" in refused(database, "SELECT * FROM llvs_history(?, x'61')", contacts.path)
    assert refused(database, "SELECT * FROM llvs_history(?, ?)", contacts.path, "x" * 5_000)
    assert database.execute("SELECT * FROM llvs_versions(?) WHERE version = x'61' OR branch = x'61'", (contacts.path,)).fetchall() == []
    for version in ("", "\0", "x" * 3_000_000, 5):
        assert database.execute("SELECT * FROM llvs_versions(?) WHERE version = ?", (contacts.path, version)).fetchall() == []
        assert database.execute("SELECT * FROM llvs_heads(?) WHERE branch = ?", (contacts.path, version)).fetchall() == []


def test_text_that_is_no_utf8(contacts: Contacts, database: Any) -> None:
    for where in ("id = CAST(x'ff' AS TEXT)", "id LIKE CAST(x'ff25' AS TEXT)", "id GLOB CAST(x'c3' AS TEXT)"):
        assert database.execute(f"SELECT id FROM llvs_values(?) WHERE {where}", (contacts.path,)).fetchall() == [], where
    assert "no version" in refused(database, "SELECT id FROM llvs_values(?, CAST(x'ff' AS TEXT))", contacts.path)
    assert refused(database, "SELECT * FROM llvs_history(?, CAST(x'ff' AS TEXT))", contacts.path)
    assert refused(database, "SELECT * FROM llvs_values(?) WHERE index_name = CAST(x'ff' AS TEXT)", contacts.path)


def test_indexes(contacts: Contacts, database: Any) -> None:
    def said(where: str) -> str:
        return refused(database, f"SELECT id FROM llvs_values(?) WHERE {where}", contacts.path)

    assert "give index_name" in said("find = json_array('a')") and "give index_name" in said("begins = 'a'")
    assert "nothing" in said("index_name = 'nothing'")
    assert "as text" in said("index_name = 5") and "as text" in said("index_name = x'00'") and "as text" in said("index_name = ''")
    for argument in ("find", "low", "high"):
        for given in ("5", "''", "x'5b5d'"):
            assert "JSON array" in said(f"index_name = 'by-name' AND {argument} = {given}")
        assert said(f"index_name = 'by-name' AND {argument} = 'no JSON'")
    assert said("index_name = 'by-name' AND find = json_array(1, 2, 3, 4)")
    assert said("index_name = 'by-name' AND begins = 'a' AND low = json_array('b')")
    assert database.execute("SELECT id FROM llvs_values(?) WHERE index_name = 'by-name' AND find = NULL", (contacts.path,)).fetchall() == []


def test_an_argument_that_does_not_reach_us(contacts: Contacts, database: Any) -> None:
    for where in ("at > 'a'", "at || '' = 'draft'", "at = 'draft' OR id = 'contact/1'", "store LIKE 'a' OR find = 'b'"):
        assert "was asked for, and nothing was" in refused(database, f"SELECT id FROM llvs_values(?) WHERE {where}", contacts.path)


def test_nothing_can_be_changed(contacts: Contacts, database: Any) -> None:
    for statement in ("DELETE FROM llvs_values", "INSERT INTO llvs_values(id) VALUES ('a')", "UPDATE llvs_heads SET branch = 'b'"):
        assert "may not be modified" in refused(database, statement)
    assert refused(database, "CREATE VIRTUAL TABLE mine USING llvs_values")


def test_views_of_others_read_nothing(contacts: Contacts, database: Any) -> None:
    """Another user may have made a view in a database."""
    database.execute(f"CREATE VIEW spying AS SELECT * FROM llvs_values('{contacts.path}')")
    assert "unsafe use of virtual table" in refused(database, "SELECT * FROM spying")
    database.execute(f"CREATE VIEW closing AS SELECT llvs_close('{contacts.path}')")
    assert "unsafe use of llvs_close" in refused(database, "SELECT * FROM closing")


def test_large_values(database: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "large.llvs")
    with llvs.Store(path) as store:
        store.make_version(insert={"large": b"x" * 40_000_000, "small": b"y", "zero": b"\0" * 1_000_000})
    asked = "SELECT id, length(data), substr(data, 1, 1) FROM llvs_values(?)"
    assert database.execute(asked, (path,)).fetchall() == [("large", 40_000_000, "x"), ("small", 1, "y"), ("zero", 1_000_000, b"\0")]
    assert database.execute(asked + " WHERE id = 'large'", (path,)).fetchall() == [("large", 40_000_000, "x")]


def test_closing(contacts: Contacts, database: Any) -> None:
    def close() -> int:
        (row,) = database.execute("SELECT llvs_close(?)", (contacts.path,)).fetchall()
        return int(row[0])

    assert close() == 0
    assert database.execute("SELECT count(*) FROM llvs_values(?)", (contacts.path,)).fetchall() == [(8,)]
    scan = database.execute("SELECT id FROM llvs_values(?)", (contacts.path,))
    assert scan.fetchone()
    assert "is being read" in refused(database, "SELECT llvs_close(?)", contacts.path)
    scan.close()
    assert close() == 1 and close() == 0
    assert database.execute("SELECT count(*) FROM llvs_values(?)", (contacts.path,)).fetchall() == [(8,)]
    assert database.execute("SELECT llvs_close('nowhere')").fetchall() == [(0,)]
    assert "is text" in refused(database, "SELECT llvs_close(5)")


def test_a_store_that_is_deleted_or_replaced(contacts: Contacts, database: Any, tmp_path: Path) -> None:
    asked = "SELECT count(*) FROM llvs_values(?)"
    assert database.execute(asked, (contacts.path,)).fetchall() == [(8,)]
    shutil.rmtree(contacts.path) if contacts.storage == "file" else [path.unlink() for path in tmp_path.glob("contacts.llvs*")]
    assert "there is no store at" in refused(database, asked, contacts.path)
    with llvs.Store(contacts.path, storage=contacts.storage) as store:
        store.make_version(insert={"a": b"1", "b": b"2"})
    assert database.execute(asked, (contacts.path,)).fetchall() == [(2,)]


def test_paths_that_lead_to_one_store_share_a_handle(contacts: Contacts, database: Any, tmp_path: Path) -> None:
    os.symlink(contacts.path, tmp_path / "link")
    before = len(os.listdir("/proc/self/fd"))
    database.execute("SELECT 1 FROM llvs_values(?)", (contacts.path,)).fetchall()
    once = len(os.listdir("/proc/self/fd"))
    for path in (str(tmp_path / "link"), os.path.relpath(contacts.path), str(tmp_path / "." / "contacts.llvs")):
        assert database.execute("SELECT count(*) FROM llvs_values(?)", (path,)).fetchall() == [(8,)]
    assert before < once == len(os.listdir("/proc/self/fd"))
    database.close()
    assert len(os.listdir("/proc/self/fd")) <= before


def test_a_store_that_is_this_database(connect: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "store.sqlite")
    with llvs.Store(path, storage="sqlite") as store:
        store.make_version(insert={"a": b"1"})
    for database in (connect(path), connect()):
        database.execute("ATTACH ? AS other", (path,)) if database.execute("PRAGMA database_list").fetchone()[2] == "" else None
        assert "is open as a database in this connection" in refused(database, "SELECT * FROM llvs_values(?)", path)


def test_damaged_values(connect: Any, tmp_path: Path) -> None:
    path = tmp_path / "damaged.llvs"
    with llvs.Store(path) as store:
        store.make_version(insert={f"v{n}": os.urandom(2_000) for n in range(50)})
    for file in path.rglob("*"):
        if file.is_file() and file.stat().st_size > 50_000:
            data = bytearray(file.read_bytes())
            middle = len(data) // 2
            data[middle : middle + 50] = os.urandom(50)
            file.write_bytes(data)
    database = connect()
    said = refused(database, "SELECT count(*), sum(length(data)) FROM llvs_values(?)", str(path))
    assert "damage" in said or "no version" in said or "not match what was written" in said, said
