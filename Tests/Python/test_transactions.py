"""Transactions: several values together, or none; and saves of others meanwhile."""

from __future__ import annotations

import threading
from typing import Iterator

import llvs
import pytest


@pytest.fixture
def notes() -> Iterator[llvs.Coordinator]:
    with llvs.Coordinator(storage="memory") as opened:
        opened.save(insert={"a": b"1", "b": b"2", "c": b"3"})
        yield opened


def test_all_or_nothing(notes: llvs.Coordinator) -> None:
    before = notes.current_version.id
    with notes.transaction(metadata={"author": "me"}) as values:
        values["a"], values["d"] = values["b"], bytearray(b"4")
        del values["c"]
        assert dict(values) == {"a": b"2", "b": b"2", "d": b"4"} and list(values) == ["a", "b", "d"] and len(values) == 3
        assert "c" not in values and values.get("c") is None and notes["c"] == b"3"
    assert values.saved is not None and values.saved.predecessors == (before,) and values.saved.metadata["author"] == "me"
    assert dict(notes) == {"a": b"2", "b": b"2", "d": b"4"}
    with pytest.raises(ZeroDivisionError), notes.transaction() as values:
        values["a"] = b"lost"
        1 / 0
    with pytest.raises(KeyError), notes.transaction() as values:
        values["a"] = b"lost"
        del values["nothing"]
    with notes.transaction() as values:
        assert values["a"] == b"2"
    assert values.saved is None and notes["a"] == b"2" and "at version" in repr(values)
    with pytest.raises(TypeError), notes.transaction() as values:
        values["a"] = "text"  # type: ignore[assignment]


def test_what_others_save_elsewhere_is_kept(notes: llvs.Coordinator) -> None:
    with notes.transaction() as values:
        values["a"] = values["b"] + b"!"
        notes.save(update={"c": b"other"})
    assert dict(notes) == {"a": b"2!", "b": b"2", "c": b"other"}


@pytest.mark.parametrize("moved", ["a", "b", "new"])
def test_what_others_save_where_it_looked(notes: llvs.Coordinator, moved: str) -> None:
    """A value that was read, written, or looked up and missing. A decision that relied on it may be wrong."""
    with pytest.raises(llvs.MovedError, match=f"'{moved}' has changed") as raised:
        with notes.transaction() as values:
            values["a"] = values["b"] + values.get("new", b"")
            notes.save(update={moved: b"other"})
    assert raised.value.value_id == moved and raised.value.version_id == notes.current_version.id
    assert notes[moved] == b"other" and notes.get("a") in (b"1", b"other")


def test_an_iteration_looks_at_everything(notes: llvs.Coordinator) -> None:
    with pytest.raises(llvs.MovedError), notes.transaction() as values:
        values["count"] = str(len(values)).encode()
        notes.save(insert={"elsewhere": b"x"})
    assert "count" not in notes


def test_again_when_a_value_moved(notes: llvs.Coordinator) -> None:
    calls = []

    def add(values: llvs.Transaction) -> str:
        calls.append(values.version)
        values["a"] += b"!"
        if len(calls) < 3:
            notes.save(update={"a": notes["a"] + b"?"})
        return "done"

    assert notes.transact(add, metadata={"author": "me"}) == "done"
    assert len(set(calls)) == 3 and notes["a"] == b"1??!"


def test_again_until_it_is_saved(notes: llvs.Coordinator) -> None:
    """Threads that count up one value lose no increment."""
    notes.save(insert={"count": b"0"})

    def count(values: llvs.Transaction) -> int:
        values["count"] = str(int(values["count"]) + 1).encode()
        return int(values["count"])

    def work() -> None:
        for _ in range(10):
            results.append(notes.transact(count))

    results: list[int] = []
    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert notes["count"] == b"40" and sorted(results) == list(range(1, 41))
    with pytest.raises(ZeroDivisionError):
        notes.transact(lambda values: 1 // 0)
