"""Values whose bytes are gone: NULL, and a hidden column that says so."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Callable

import llvs
import pytest
from format_author import make_hollow


@pytest.mark.parametrize("size", (0, 5, 70_000, (1 << 20) + 1))
def test_they_are_null_and_say_so(connect: Callable[..., Any], tmp_path: Path, size: int) -> None:
    path = tmp_path / "store"
    with llvs.Store(path) as store:
        first = store.make_version(insert={"a": b"1", "b": bytes(size), "c": b"3", "empty": b""})
        last = store.make_version(first, update={"c": b"4"})
        without = store.make_version(first, remove=["a", "b"], branch="without")
    assert make_hollow(path, lambda version, id: id == b"b") == 1
    database = connect()

    def rows(sql: str, *parameters: str) -> list[Any]:
        return database.execute(sql, (str(path), *parameters)).fetchall()

    assert rows("SELECT * FROM llvs_values(?)") == [
        ("a", "1", first.id), ("b", None, first.id), ("c", "4", last.id), ("empty", "", first.id),
    ]
    assert rows("SELECT id, gone FROM llvs_values(?)") == [("a", None), ("b", "forgotten"), ("c", None), ("empty", None)]
    assert rows("SELECT id, data, gone FROM llvs_values(?) ORDER BY id DESC LIMIT 3") == [
        ("empty", "", None), ("c", "4", None), ("b", None, "forgotten"),
    ]
    assert rows("SELECT data, gone, stored_version FROM llvs_values(?) WHERE id = 'b'") == [(None, "forgotten", first.id)]
    assert rows("SELECT id, gone FROM llvs_values(?) WHERE id IN ('a', 'b', 'nothing')") == [("a", None), ("b", "forgotten")]
    assert rows("SELECT id FROM llvs_values(?) WHERE gone IS NOT NULL") == [("b",)]
    assert rows("SELECT count(*) FROM llvs_values(?)") == [(4,)]
    changes = "SELECT id, change, data, size, gone FROM llvs_changes(?, ?, ?)"
    assert rows(changes, without.id, last.id) == [
        ("a", "insert", "1", 1, None), ("b", "insert", None, size, "forgotten"), ("c", "update", "4", 1, None),
    ]
    assert rows("SELECT change, data, gone FROM llvs_history(?, ?)", "b") == [("remove", None, None), ("insert", None, "forgotten")]
    assert rows("SELECT change, data, gone FROM llvs_history(?, ?)", "a") == [("remove", None, None), ("insert", "1", None)]
