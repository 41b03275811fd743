"""Observers are called for new versions, also for those of another process; and other reports of a store and an exchange."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest

import llvs
from waiting import GUARD

WRITER = """
    import sys, llvs
    with llvs.Store(sys.argv[1], storage=sys.argv[2], durability="normal") as store:
        for line in sys.stdin:
            head = store.most_recent_head
            made = store.make_version(head, update={"note/1": line.encode()})
            print(made.id, flush=True)
"""


class Heard:
    """Counts calls, and waits for something to be so."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.count = 0

    def __call__(self) -> None:
        with self.changed:
            self.count += 1
            self.changed.notify_all()

    def wait(self, is_so, seconds: float = GUARD) -> bool:
        with self.changed:
            return self.changed.wait_for(is_so, seconds)


@pytest.mark.parametrize("kind", ["file", "sqlite"])
def test_versions_of_another_process_are_heard_of(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "store"
    with llvs.Store(path, storage=kind, durability="normal") as store:
        writer = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(WRITER), str(path), kind], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert writer.stdin and writer.stdout
        try:
            heard = Heard()
            observer = store.observe(heard)
            known: set[str] = set()
            for text in ("one", "two", "three"):
                writer.stdin.write(text + "\n")
                writer.stdin.flush()
                made = writer.stdout.readline().strip()
                # `history` itself does not look for versions of other processes; the observation has done so.
                assert heard.wait(lambda: made in {version.id for version in store.history()}), "the version did not come"
                known.add(made)
            assert known <= {version.id for version in store.history()}
            observer.close()
            count = heard.count
            # The observer of another handle is called, and the closed one is not.
            with llvs.Store(path, storage=kind, durability="normal") as beside:
                later = Heard()
                beside.observe(later)
                writer.stdin.write("unheard\n")
                writer.stdin.flush()
                made = writer.stdout.readline().strip()
                assert later.wait(lambda: made in {version.id for version in beside.history()})
            assert heard.count == count and made not in {version.id for version in store.history()}
        finally:
            writer.stdin.close()
            writer.wait(300)
            writer.stdout.close()


def test_own_versions_are_heard_of(memory: llvs.Store) -> None:
    heard = Heard()
    memory.observe(heard)
    version = memory.make_version(insert={"x": b"1"})
    assert heard.wait(lambda: heard.count == 1)
    with llvs.Store(storage="memory") as other:
        hears = Heard()
        other.observe(hears)
        with llvs.Exchange(memory, "memory:observed") as sender, llvs.Exchange(other, "memory:observed") as receiver:
            sender.send()
            receiver.retrieve()
        assert hears.wait(lambda: hears.count == 1) and version in other
    memory.close()
    with pytest.raises(llvs.ClosedError):
        memory.observe(heard)


def test_stores_and_exchanges_say_where_they_are(tmp_path: Path, memory: llvs.Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with llvs.Store("notes.llvs") as store, llvs.Store("notes.sqlite", storage="sqlite") as database:
        assert store.path == str(tmp_path / "notes.llvs") and database.path == str(tmp_path / "notes.sqlite") and memory.path == ""
        with llvs.Exchange(store, tmp_path / "a folder") as exchange:
            assert exchange.url == "file://" + str(tmp_path) + "/a%20folder"
    with llvs.Exchange(memory, "memory:place") as exchange:
        assert exchange.url == "memory:place"


def test_branches(memory: llvs.Store) -> None:
    assert memory.branches() == {}
    root = memory.make_version(insert={"x": b"1"})
    draft = memory.make_version(root, branch="draft")
    newer = memory.make_version(root, branch="draft")
    other = memory.make_version(root, branch="a")
    assert memory.branches() == {"a": other, "draft": newer} and list(memory.branches()) == ["a", "draft"]
    memory.make_version(newer, update={"x": b"2"})
    assert memory.branches() == {"a": other, "draft": draft}


def test_timestamps(memory: llvs.Store) -> None:
    root = memory.make_version(insert={"x": b"1"}, timestamp=1e9)
    assert root.timestamp == 1e9
    assert memory.make_version(root, timestamp=1e9 + 0.5).timestamp == 1e9 + 0.5
    for wrong in (1e9, 5.0, float("nan"), float("inf")):
        with pytest.raises(llvs.errors.InvalidArgumentError):
            memory.make_version(root, timestamp=wrong)
    assert memory.make_version(timestamp=0, root=True).timestamp == 0
    assert memory.make_version(root).timestamp > 1.6e9


def test_the_history_of_a_value(memory: llvs.Store) -> None:
    a = memory.make_version(insert={"note/1": b"1", "other": b"1"})
    b = memory.make_version(a, update={"note/1": b"2"})
    c = memory.make_version(b, remove=["note/1"], branch="draft")
    d = memory.make_version(b, update={"other": b"2"})
    merged = memory.merge(c, d)
    e = memory.make_version(merged, update={"other": b"3"})
    expected = [(merged, "preserve_removal")] if d.timestamp > c.timestamp else []
    assert list(memory.value_history("note/1")) == [*expected, (c, "remove"), (b, "update"), (a, "insert")]
    assert next(version for version, kind in memory.value_history("note/1") if kind == "remove") == c
    assert list(memory.value_history("note/1", b)) == [(b, "update"), (a, "insert")]
    assert list(memory.value_history("note/1", hiding=[b, merged])) == []
    assert list(memory.value_history("note/1", branch="draft")) == [(c, "remove")]
    assert list(memory.value_history("never")) == []
    assert memory.versions_of("note/1") == (b, a)
    assert list(memory.history(e, hiding=[c])) == [e, merged, d]
    assert list(memory.history(hiding=[a.id, d.id])) == [e, merged, c]
    assert list(memory.history(branch="draft")) == [c] and list(memory.history(branch="none")) == []
    assert list(memory.history(prefix="oth")) == [version for version in memory.history() if version in (a, d, e, merged) and any(
        change.id == "other" for change in memory.changes(version))]
    with pytest.raises(llvs.errors.InvalidIDError):
        memory.value_history("")
    with pytest.raises(TypeError):
        memory.history(hiding=a)  # type: ignore[arg-type]
    with pytest.raises(llvs.CancelledError):
        list(memory.value_history("note/1", progress=lambda progress: False))


def test_states_go_backwards(memory: llvs.Store) -> None:
    ids = [f"{group}/{number:04}" for group in ("a", "b", "c") for number in range(700)]
    version = memory.make_version(insert={id: id.encode() for id in ids})
    state = memory.at(version)
    assert list(state) == ids and list(reversed(state)) == ids[::-1]
    assert list(reversed(state.keys())) == ids[::-1] and list(reversed(state.values())) == [id.encode() for id in reversed(ids)]
    assert list(reversed(state.items())) == [(id, id.encode()) for id in reversed(ids)]
    part = state.range("a/0690", "b/0010", reverse=True)
    expected = [id for id in ids if "a/0690" <= id < "b/0010"]
    assert list(part) == expected[::-1] and list(reversed(part)) == expected and len(part) == 20
    assert list(part.prefix("b/").items()) == [(id, id.encode()) for id in reversed(expected) if id.startswith("b/")]
    assert [reference.id for reference in part.references()] == expected[::-1]
    assert dict(part) == dict(state.range("a/0690", "b/0010")) and list(state.prefix("b/").range(reverse=True)) == ids[1399:699:-1]


def test_differences_in_a_part(memory: llvs.Store) -> None:
    a = memory.make_version(insert={id: b"1" for id in ("a/1", "a/2", "b/1", "b/2", "c/1")})
    b = memory.make_version(a, update={"a/1": b"2", "b/1": b"2", "c/1": b"2"}, remove=["b/2"])
    assert [change.id for change in memory.diff(a, b)] == ["a/1", "b/1", "b/2", "c/1"]
    assert [(change.kind, change.id) for change in memory.diff(a, b, prefix="b/")] == [("update", "b/1"), ("remove", "b/2")]
    assert [change.id for change in memory.diff(a, b, start="b/2")] == ["b/2", "c/1"]
    assert [change.id for change in memory.diff(a, b, start="a/2", stop="b/2")] == ["b/1"]
    assert list(memory.diff(a, b, stop="")) == [] and list(memory.diff(a, b, prefix="none")) == []


@pytest.mark.parametrize("wrong", ["", "x" * 4097, "\ud800", "x\udfffx"])
def test_what_is_no_id_is_absent_from_a_mapping(memory: llvs.Store, wrong: str) -> None:
    version = memory.make_version(insert={"x x": b"1"})
    for state in (memory.at(version), memory.at(version).prefix("x")):
        assert "x x" in state and "x  x" not in state
        assert wrong not in state and state.get(wrong) is None and state.get(wrong, b"default") == b"default"
        with pytest.raises(KeyError):
            state[wrong]
        with pytest.raises(llvs.errors.InvalidIDError):
            state.value(wrong)
    with pytest.raises(llvs.errors.InvalidIDError):
        memory.value(wrong, at=version)
    assert None not in memory.at(version) and 5 not in memory.at(version)
