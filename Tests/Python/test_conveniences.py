"""Conveniences of the package: variants that raise if there is nothing, places as paths, messages that say what is expected."""

from __future__ import annotations

import logging
import os
import re
import threading
from pathlib import Path
from typing import Any, Callable

import llvs
import pytest
from llvs.exchange.transport import url_of


# Reading

def test_a_coordinator_reads_as_a_mapping() -> None:
    with llvs.Coordinator(storage="memory") as notes:
        assert notes and len(notes) == 0 and list(notes) == [] and "note/1" not in notes and notes.get("note/1") is None
        with pytest.raises(KeyError, match="note/1"):
            notes["note/1"]
        notes.save(insert={"note/1": b"one", "note/2": b"", "other": b"3"})
        assert notes["note/1"] == b"one" and notes["note/2"] == b"" and "note/2" in notes and 5 not in notes
        assert notes.get("note/1") == b"one" and notes.get("absent", b"x") == b"x" and notes.get("absent", 5) == 5
        assert len(notes) == 3 and list(notes) == list(notes.keys()) == ["note/1", "note/2", "other"]
        assert dict(notes) == dict(notes.items()) == {"note/1": b"one", "note/2": b"", "other": b"3"}
        assert dict(notes.prefix("note/")) == {"note/1": b"one", "note/2": b""} and list(notes.range("note/2")) == ["note/2", "other"]
        state = notes.at()
        notes.save(remove=["other"])
        assert "other" not in notes and "other" in state
        for id in ("", "absent", 5):
            with pytest.raises(KeyError):
                notes[id]  # type: ignore[index]
    with pytest.raises(llvs.ClosedError):
        notes["note/1"]


def test_a_store_gives_versions_by_their_ids(memory: llvs.Store) -> None:
    first = memory.make_version(insert={"a": b"1"})
    second = memory.make_version(first)
    assert memory[first.id] == memory[first] == first and memory[second.id].predecessors == (first.id,)
    assert list(memory) == list(memory.history()) == [second, first]
    with pytest.raises(llvs.errors.UnknownVersionError, match="no version 'NONE' in the store") as caught:
        memory["NONE"]
    assert isinstance(caught.value, KeyError) and caught.value.version_id == "NONE"
    with pytest.raises(llvs.errors.InvalidIDError, match=r"store.at\(version\)\['note/1'\]") as caught2:
        memory["note/1"]
    assert caught2.value.code == llvs.ErrorCode.INVALID_VERSION_ID and caught2.value.version_id == "note/1"
    with pytest.raises(TypeError):
        memory[0]  # type: ignore[index]


# Roots

def test_a_further_root_is_deliberate(store: llvs.Store) -> None:
    first = store.make_version(insert={"a": b"1"}, id="first")
    with pytest.raises(ValueError, match="most_recent_head.*root=True") as caught:
        store.make_version(insert={"b": b"2"})
    assert caught.value.code == llvs.ErrorCode.INVALID_ARGUMENT  # type: ignore[attr-defined]
    assert list(store.history()) == [first]
    other = store.make_version(insert={"b": b"2"}, root=True)
    assert other.predecessors == () and set(store.heads()) == {first, other}
    with pytest.raises(ValueError, match="exclude each other"):
        store.make_version(first, root=True)
    # Making the version again under its id, as after an unknown outcome, is harmless. Under another id it would be a further root.
    assert store.make_version(insert={"a": b"1"}, id="first") == first
    with pytest.raises(ValueError, match="root=True"):
        store.make_version(insert={"a": b"1"}, id="second")
    assert len(list(store.history())) == 2


def test_a_first_root_needs_no_saying(store: llvs.Store) -> None:
    assert store.make_version(store.most_recent_head, insert={"a": b"1"}).predecessors == ()


# Places

@pytest.mark.parametrize("place", ["file:///x", "memory:x", "memory:", "https://host/x", "unknown:x", "a+b-c.d:x"])
def test_what_begins_with_a_scheme_is_a_url(place: str) -> None:
    assert url_of(place) == place


@pytest.mark.parametrize(
    "place, path",
    [
        ("x", "/here/x"),
        ("/x y/é%", "/x%20y/%C3%A9%25"),
        ("c:x", "/here/c%3Ax"),
        ("./memory:x", "/here/memory%3Ax"),
        ("1a:x", "/here/1a%3Ax"),
        ("a/b:c", "/here/a/b%3Ac"),
        ("é:x", "/here/%C3%A9%3Ax"),
        (":x", "/here/%3Ax"),
        ("../x", "/x"),
        (Path("memory:x"), "/here/memory%3Ax"),
        (Path("#?"), "/here/%23%3F"),
        (Path("\udcff"), "/here/%FF"),
    ],
)
def test_all_else_is_a_path(place: Any, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getcwd", lambda: "/here")
    assert url_of(place) == "file://" + path


@pytest.mark.parametrize(
    "make",
    [
        lambda path: "shared folder",
        lambda path: Path("shared folder"),
        lambda path: path / "shared folder",
        lambda path: str(path / "shared folder"),
    ],
)
def test_exchanges_take_paths(make: Callable[[Path], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with llvs.Coordinator("store", exchange=make(tmp_path)) as notes:
        saved = notes.save(insert={"a": b"1"})
        assert saved is not None
        notes.exchange()
    assert (tmp_path / "shared folder" / "versions" / saved.id).is_file()
    with llvs.Store(storage="memory") as store, llvs.Exchange(store, make(tmp_path)) as exchange:
        assert saved.id in exchange.retrieve().retrieved
    with llvs.Coordinator(storage="memory") as notes:
        notes.attach(make(tmp_path))
        notes.exchange()
        assert notes["a"] == b"1"


# Messages

WRONG: list[tuple[Callable[[Any], Any], type[Exception], str]] = [
    (lambda store: store.make_version(insert={"note/1": "text"}), TypeError, "the value of 'note/1' is bytes.* not str.*encode"),
    (lambda store: store.make_version(update={"a": b"", "note/1": 5}), TypeError, "the value of 'note/1' is bytes.* not int"),
    (lambda store: store.make_version(update=[("note/1", None)]), TypeError, "the value of 'note/1' is bytes.* not NoneType"),
    (lambda store: store.make_version(update={"note/1": {"a": 1}}), TypeError, "the value of 'note/1' is bytes.* not dict"),
    (lambda store: store.make_version(update={"note/1": object()}), TypeError, "the value of 'note/1' is bytes.* not object"),
    (
        lambda store: store.make_version(changes=[llvs.Change(llvs.store.ChangeKind.UPDATE, "note/1", "x")]),
        TypeError,
        "the value of 'note/1' is bytes.* not str",
    ),
    (lambda store: llvs.Change.update("note/1", "x"), TypeError, "the value of 'note/1' is bytes.* not str"),
    (lambda store: llvs.Change.insert("note/1", None), TypeError, "the value of 'note/1' is bytes.* not NoneType"),
    (lambda store: store.make_version(update="k"), TypeError, "update takes ids with their bytes, .* not str"),
    (lambda store: store.make_version(insert="k"), TypeError, "insert takes ids with their bytes, .* not str"),
    (lambda store: store.make_version(insert=b"kk"), TypeError, "insert takes .* not bytes"),
    (lambda store: store.make_version(insert=5), TypeError, "insert takes .* not int"),
    (lambda store: store.make_version(insert={"ab", "cd"}), TypeError, "insert takes .* not set"),
    (lambda store: store.make_version(insert=[("a",)]), TypeError, "insert takes .* not list"),
    (lambda store: store.make_version(remove="a"), TypeError, "remove takes a list of ids, not str"),
    (lambda store: store.make_version(remove=5), TypeError, "remove takes a list of ids, not int"),
    (lambda store: store.verify(cancel=threading.Event()), TypeError, "cancel takes an llvs.CancelToken.* not Event"),
    (lambda store: store.verify(progress=5), TypeError, "progress takes a function of an llvs.control.Progress, not int"),
    (
        lambda store: llvs.Exchange(store, b"/x"), TypeError,
        "the path of a folder, .* an llvs.exchange.Transport or llvs.exchange.RemoteFiles, not bytes",
    ),
    (lambda store: llvs.Exchange(store, ""), ValueError, "empty"),
    (lambda store: llvs.log.observe_log(print, "loud"), ValueError, "'loud' is no log level"),
    (lambda store: llvs.log.observe_log(print, 7), ValueError, "7 is no log level"),
    (lambda store: llvs.log.observe_log(print, None), TypeError, "a log level is .* not NoneType"),
    (lambda store: llvs.log.observe_log(5), TypeError, "a function of a level and a text, not int"),
]


@pytest.mark.parametrize("call, kind, message", WRONG, ids=[message for _, _, message in WRONG])
def test_wrong_arguments_say_what_is_wanted(
    memory: llvs.Store, call: Callable[[llvs.Store], Any], kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=message):
        call(memory)
    assert memory.heads() == ()


@pytest.mark.parametrize(
    "level, number",
    [
        (logging.DEBUG, 4),
        (logging.INFO, 3),
        (logging.WARNING, 2),
        (logging.ERROR, 1),
        (logging.CRITICAL, 1),
        (15, 3),
        (25, 2),
        ("info", 3),
        ("INFO", 3),
        (llvs.log.LogLevel.ERROR, 1),
    ],
)
def test_levels_of_logging(level: Any, number: int) -> None:
    assert llvs.log._number(level) == number
    heard: list[str] = []
    with llvs.log_to(logging.getLogger("test"), level), llvs.log.observe_log(lambda level, message: heard.append(message), level):
        pass


# Descriptions of objects

def test_what_things_say_of_themselves(tmp_path: Path) -> None:
    path = tmp_path / "notes.llvs"
    store = llvs.Store(path)
    exchange = llvs.Exchange(store, tmp_path / "shared")
    assert repr(store) == f"<Store {str(path)!r}>"
    assert repr(exchange) == f"<Exchange with {(tmp_path / 'shared').as_uri()}>"
    for handle in (exchange, store):
        said = repr(handle)
        handle.close()
        assert repr(handle) == said[:-1] + ", closed>"
    with pytest.raises(llvs.ClosedError, match=re.escape(f"the store {path} has been closed")):
        store.heads()
    with llvs.Coordinator(path) as notes:
        assert repr(notes) == f"<Coordinator {str(path)!r}>" and repr(notes.store) == f"<Store {str(path)!r}>"
    assert repr(notes) == f"<Coordinator {str(path)!r}, closed>"
    with llvs.Store(storage="memory") as store:
        assert repr(store) == "<Store in memory>"
        state = store.at(store.make_version(insert={"a": b"1"}, id="first"))
        assert repr(state) == "<the 1 values at version first>"
    assert repr(state) == "<values at version first, closed>"
    with llvs.Store(storage=llvs.storage.DictStorage()) as store:
        assert repr(store).startswith("<Store on <llvs.storage.DictStorage")
    token = llvs.CancelToken()
    assert repr(token) == "<CancelToken>"
    token.cancel()
    assert repr(token) == "<CancelToken cancelled>"
    token.close()
    assert repr(token) == "<CancelToken, closed>"
    assert repr(llvs.Store.__new__(llvs.Store)) == "<Store, never opened>"
