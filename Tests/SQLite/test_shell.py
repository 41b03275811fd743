"""The extension in the sqlite3 shell, whose SQLite is the system's."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

import llvs

from conftest import Contacts

SHELL = shutil.which("sqlite3")


def shell(*lines: str, database: str = ":memory:") -> tuple[str, str]:
    """Returns the output of the shell for lines of input, and its error messages."""
    assert SHELL, "the sqlite3 shell is not installed"
    script = "\n".join([f'.load "{llvs.sqlite.extension_path()}"', *lines, ""])
    command = [SHELL, "-batch", "-init", "/dev/null", database]
    done = subprocess.run(command, input=script, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode in (0, 1), done
    return done.stdout, done.stderr


def test_the_shell(contacts: Contacts) -> None:
    path = contacts.path
    printed, wrong = shell(
        f"SELECT id, data->>'$.lastName' FROM llvs_values('{path}') WHERE id LIKE 'contact/%' AND at = 'draft';",
        f"SELECT change, id FROM llvs_changes('{path}', '{contacts.first}', 'draft') WHERE change = 'remove';",
        f"SELECT count(*) FROM llvs_versions('{path}'); SELECT count(*) FROM llvs_heads('{path}');",
        f"SELECT change FROM llvs_history('{path}', 'contact/1');",
        f"SELECT id FROM llvs_values('{path}') WHERE index_name = 'by-name' AND find = json_array('jones');",
    )
    assert wrong == ""
    assert printed.split() == "contact/1|Draft contact/3|Jones contact/4|Smythe remove|contact/2 6 2 update insert contact/3".split()


def test_a_plan_is_shown(contacts: Contacts) -> None:
    statement = f"EXPLAIN QUERY PLAN SELECT id FROM llvs_values('{contacts.path}') WHERE id LIKE 'contact/%' AND at = 'draft' ORDER BY id;"
    printed, wrong = shell(statement)
    assert "SCAN llvs_values VIRTUAL TABLE INDEX " in printed and "id LIKE ?" in printed and "at=?" in printed and "ORDER BY id" in printed
    assert "TEMP B-TREE" not in printed and wrong == ""


def test_errors_are_sentences(contacts: Contacts) -> None:
    _, wrong = shell("SELECT * FROM llvs_values('missing.llvs');", f"SELECT * FROM llvs_values('{contacts.path}', 'nothing');", "SELECT 5;")
    assert 'there is no store at "missing.llvs"' in wrong and 'there is no version and no branch "nothing" in this store' in wrong


def test_a_value_that_is_too_large_for_the_shell(tmp_path: Path) -> None:
    path = tmp_path / "large.llvs"
    with llvs.Store(path) as store:
        store.make_version(insert={"large\n": b"x" * 3_000_000, "small": b"y"})
    asked = [f"SELECT id, length(data) FROM llvs_values('{path}') WHERE id > 's';", f"SELECT length(data) FROM llvs_values('{path}');"]
    one = f"SELECT length(data) FROM llvs_values('{path}') WHERE id = 'large' || char(10);"
    printed, wrong = shell(".limit length 2000000", *asked, one, f"SELECT length(data) FROM llvs_history('{path}', 'large' || char(10));")
    assert "small|1" in printed
    assert wrong.count('the value "large?" has 3000000 bytes, more than the 2000000 that a value in SQL may have here') == 3


def test_dumping_into_a_database(contacts: Contacts, tmp_path: Path) -> None:
    database = str(tmp_path / "copy.sqlite")
    made = f"CREATE TABLE people AS SELECT id, data FROM llvs_values('{contacts.path}') WHERE id GLOB 'contact/*';"
    _, wrong = shell(made, database=database)
    assert wrong == ""
    printed, _ = shell("SELECT count(*) FROM people;", database=database)
    assert printed.split()[-1] == "3"


@pytest.mark.parametrize("storage", ["file", "sqlite"])
def test_a_store_beside_an_open_one(tmp_path: Path, storage: str) -> None:
    """A program has the store open and continues to save while the shell reads."""
    path = tmp_path / "open.llvs"
    with llvs.Coordinator(path, storage=storage) as notes:
        notes.save(insert={"a": b"1"})
        assert shell(f"SELECT data FROM llvs_values('{path}') WHERE id = 'a';")[0].split()[-1] == "1"
        notes.save(update={"a": b"2"})
        assert shell(f"SELECT data FROM llvs_values('{path}') WHERE id = 'a';")[0].split()[-1] == "2"
