"""Indexes whose keys a function of the program computes: their results, and functions that fail, return too much, or query the index."""

from __future__ import annotations

import random
import threading
from pathlib import Path
from typing import Any, Callable, Iterator

import llvs
import pytest
from waiting import eventually
from sampling import seeds


def words(id: str, data: bytes) -> list[tuple[str, int]]:
    return [(word, len(word)) for word in data.decode().split()]


@pytest.fixture
def store() -> Iterator[llvs.Store]:
    with llvs.Store(storage="memory") as opened:
        yield opened


def test_values_that_are_no_json_are_found_by_their_keys(store: llvs.Store) -> None:
    first = store.make_version(insert={"v/1": b"b a b", "v/2": b"a cc", "v/3": b"", "w/4": b"a"})
    second = store.make_version(first, update={"v/2": b"b"})
    with store.index(keys=words, prefix="v/", parts=2) as index:
        assert list(index.find("a", at=first)) == ["v/1", "v/2"]
        assert list(index.find("a", 1, at=second)) == ["v/1"]
        assert list(index.find("b")) == ["v/1", "v/2"]
        assert [entry.key for entry in index.find(at=first).entries()] == [("a", 1), ("a", 1), ("b", 1), ("cc", 2)]
        assert list(index.find(at=first, unique=True)) == ["v/1", "v/2"]
        assert dict(index.prefix("c", at=first).items()) == {"v/2": b"a cc"}
        assert list(index.range(low="b", at=first)) == ["v/1", "v/2"]
        whys = {id: index.explain(id, at=first).why for id in ("v/1", "v/3", "w/4", "v/9")}
        assert whys == {"v/1": None, "v/3": "no-keys", "w/4": "prefix", "v/9": "no-value"}
        assert index.explain("v/1", at=first).keys == (("a", 1), ("b", 1))
    missing = llvs.indexes.MISSING
    with store.index(keys=lambda id, data: (part for part in (len(data), None, missing) if part is not missing)) as sizes:
        assert list(sizes.find(0, at=first)) == ["v/3"] and sizes.find(None, at=first).count() == 4


@pytest.mark.parametrize("seed", seeds(range(1), range(6)))
def test_it_is_what_a_scan_finds(store: llvs.Store, seed: int) -> None:
    rng = random.Random(seed)
    values: dict[str, dict[str, str]] = {}
    index = store.index(keys=words, prefix="v/", parts=2)
    for _ in range(25):
        base = rng.choice(sorted(values)) if values else None
        state = dict(values[base]) if base else {}
        changes: dict[str, Any] = {"insert": {}, "update": {}, "remove": []}
        for id in {f"v/{rng.randrange(30)}" for _ in range(5)}:
            if id in state and rng.random() < 0.4:
                del state[id]
                changes["remove"].append(id)
                continue
            text = " ".join(f"w{rng.randrange(6)}" for _ in range(rng.randrange(5)))
            changes["update" if id in state else "insert"][id] = text.encode()
            state[id] = text
        values[store.make_version(base, **changes).id] = state
    for version in rng.sample(sorted(values), len(values)):
        for word in (f"w{i}" for i in range(6)):
            expected = sorted(id for id, text in values[version].items() if word in text.split())
            assert list(index.find(word, at=version)) == expected


def test_what_the_function_raises_comes_out_of_the_question(store: llvs.Store) -> None:
    version = store.make_version(insert={"v/1": b"a", "v/2": b"a"})
    problems: list[BaseException] = [ValueError("no"), KeyboardInterrupt(), llvs.BusyError("mine")]

    def failing(id: str, data: bytes) -> Iterator[str]:
        yield "a"
        if id == "v/2" and problems:
            raise problems[0]

    index = store.index(keys=failing, prefix="v/")
    while problems:
        with pytest.raises(type(problems[0])) as raised:
            list(index.find("a", at=version))
        assert raised.value is problems[0]
        with pytest.raises(type(problems[0])):
            index.explain("v/2", at=version)
        problems.pop(0)
    assert list(index.find("a", at=version)) == ["v/1", "v/2"]


@pytest.mark.parametrize(
    "given, error",
    [
        ("ab", TypeError), (b"ab", TypeError), (None, TypeError), (7, TypeError), ([object()], TypeError), ([float("nan")], ValueError),
        ([()], llvs.errors.InvalidArgumentError),
        ([(1,)], llvs.errors.InvalidArgumentError),
        ([(1, 2, 3)], llvs.errors.InvalidArgumentError),
        ([(llvs.indexes.MISSING, 1)], llvs.errors.InvalidArgumentError), ([("\ud800", 1)], Exception), ([[[1], 2]], TypeError),
    ],
)  # fmt: skip
def test_keys_that_are_none(store: llvs.Store, given: Any, error: type[Exception]) -> None:
    store.make_version(insert={"v/1": b"a"})
    index = store.index(keys=lambda id, data: given, parts=2)
    with pytest.raises(error):
        index.find().count()


def test_many_keys_and_long_ones(store: llvs.Store) -> None:
    long = "x" * 5_000
    store.make_version(insert={"n/1": b"", "v/1": (long + "a").encode(), "v/2": (long + "b").encode()})
    assert store.index(keys=lambda id, data: range(10_000), prefix="n/").find().count() == 10_000
    with pytest.raises(llvs.errors.InvalidArgumentError, match="10001"):
        store.index(keys=lambda id, data: range(10_001), prefix="n/").find().count()
    index = store.index(keys=lambda id, data: [data.decode()], prefix="v/")
    assert list(index.find(long + "b")) == ["v/2"] and index.find(long + "b").count() == 1
    assert [entry.key for entry in index.prefix(long).entries()] == [(long + "a",), (long + "b",)]
    assert index.find(long).count() == 0


def test_a_function_that_asks_for_what_is_being_made(store: llvs.Store) -> None:
    first = store.make_version(insert={"v/1": b"a"})
    second = store.make_version(first, insert={"v/2": b"b"})
    seen: list[Any] = []

    def asking(id: str, data: bytes) -> list[str]:
        for version in (first, second):
            try:
                seen.append(index.find(at=version).count())
            except llvs.BusyError as error:
                seen.append(type(error))
        assert other.find(at=second).count() == 2 and store.value("v/1", at=first) is not None
        return [data.decode()]

    other = store.index(keys=words, prefix="v/", parts=2)
    index = store.index(keys=asking, prefix="v/")
    assert list(index.find("a", at=first)) == ["v/1"]
    assert seen == [llvs.BusyError, llvs.BusyError]


def test_a_function_that_closes_the_index_or_the_store() -> None:
    for closes in ("index", "store"):
        store = llvs.Store(storage="memory")
        store.make_version(insert={"v/1": b"a"})

        def closing(id: str, data: bytes) -> list[int]:
            (index if closes == "index" else store).close()
            return [1]

        index = store.index(keys=closing)
        try:
            index.find().count()
        except llvs.Error:
            pass
        index.close()
        store.close()
        with pytest.raises(llvs.ClosedError):
            index.find().count()


def test_a_function_is_let_go_of_with_its_index(store: llvs.Store) -> None:
    from llvs._abi import callbacks as _callbacks

    def keys(id: str, data: bytes) -> list[tuple[str, int]]:
        return words(id, data)

    def is_kept() -> bool:
        return any(kept is keys for kept in list(_callbacks.registry.values()))

    index = store.index(keys=keys, parts=2)
    assert is_kept()
    index.close()
    eventually(lambda: not is_kept())
    with pytest.raises(llvs.errors.InvalidArgumentError):
        store.index(keys=keys, parts=9)
    assert not is_kept()


def test_a_named_function_is_kept_in_the_caches(tmp_path: Path) -> None:
    calls: list[str] = []

    def counted(id: str, data: bytes) -> list[tuple[str, int]]:
        calls.append(id)
        return words(id, data)

    def asked(name: Any, version: int) -> int:
        calls.clear()
        with llvs.Store(tmp_path / "s") as store:
            assert store.index(name, keys=counted, prefix="v/", parts=2, version=version).find().count() == 300
            assert not store.verify().damages
        return len(calls)

    with llvs.Store(tmp_path / "s") as store:
        store.make_version(insert={f"v/{i}": b"w%d" % i for i in range(300)})
    assert [asked("words", 1), asked("words", 1), asked("words", 2)] == [300, 0, 300]
    assert [asked(name, version) for name, version in [("words", 0), (None, 1), (None, 0)] * 2] == [300] * 6


def test_a_warm_one_is_there_before_anybody_asks() -> None:
    threads: list[int] = []

    def noting(id: str, data: bytes) -> list[tuple[str, int]]:
        threads.append(threading.get_ident())
        return words(id, data)

    with llvs.Coordinator(storage="memory") as notes, notes.index(keys=noting, prefix="v/", parts=2, warm=True) as index:
        notes.save(insert={f"v/{i}": b"a" for i in range(5)})
        eventually(lambda: len(threads) >= 5)
        assert len(threads) == 5 and threading.get_ident() not in threads
        assert index.find("a").count() == 5


@pytest.mark.parametrize(
    "arguments",
    [
        {"prefix": "v"}, {"parts": 2}, {"version": 1}, {"keys": words, "definition": {"prefix": "", "on": ["/a"]}}, {"keys": 7},
    ],
)  # fmt: skip
def test_arguments_that_do_not_go_together(store: llvs.Store, arguments: dict[str, Any]) -> None:
    with pytest.raises(TypeError):
        store.index(**arguments)


@pytest.mark.parametrize("arguments", [{"parts": 0}, {"parts": 9}, {"prefix": "\ud800"}, {"name": "n" * 129, "version": 1}])
def test_arguments_that_cannot_be(store: llvs.Store, arguments: dict[str, Any]) -> None:
    make: Callable[..., llvs.indexes.Index] = store.index
    with pytest.raises((llvs.Error, ValueError)):
        make(keys=words, **arguments)
