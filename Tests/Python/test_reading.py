"""Reading one value, many, and all: the result does not depend on the way of reading."""

from __future__ import annotations

import os
import threading
import tracemalloc
from typing import Any

import llvs
import pytest
from conftest import Places
from hypothesis import given, strategies as st
from llvs.store import _blocks, _fetch

#: Ids that are awkward one way or another: NUL at each end, none but NUL, characters of each length, the longest.
IDS = ["a", "a/1", "\0", "\0\0", "a\0", "\0a", "a\0b", "é", "日本", "\U0001f600", "x" * 511, "x" * 512, "x" * 4096, "\x7f"]


@pytest.fixture
def store(place: Places) -> Any:
    with place.open() as store:
        yield store


def test_every_way_of_reading_agrees(store: llvs.Store) -> None:
    data = {id: os.urandom(index) * 3 for index, id in enumerate(IDS)}
    version = store.make_version(insert=data)
    for index, id in enumerate(IDS[:5]):
        data[id] = b"changed" * index
        version = store.make_version(version, update={id: data[id]})
    version = store.make_version(version, remove=["é"])
    del data["é"]
    asked = [*IDS, "nothing", *reversed(IDS)]
    singly = [store.value(id, at=version) for id in asked]
    assert store.values(asked, at=version) == singly
    assert [value and value.data for value in singly] == [data.get(id) for id in asked]
    assert [value and value.id for value in singly] == [id if id in data else None for id in asked]
    assert len({value.stored_version for value in singly if value}) == 6
    state = store.at(version)
    ordered = sorted(data, key=str.encode)
    assert list(state) == ordered
    assert list(state.items()) == [(id, data[id]) for id in ordered]
    assert list(state.values()) == [data[id] for id in ordered]
    assert list(state.references()) == [value.reference for value in store.values(ordered, at=version) if value]
    assert store.values_by_reference(list(state.references())) == store.values(ordered, at=version)


def test_values_at_the_edges_of_what_comes_with_one_call(store: llvs.Store) -> None:
    sizes = [
        0,
        1,
        _fetch.CAPACITY - 1,
        _fetch.CAPACITY,
        _fetch.CAPACITY + 1,
        _blocks.LARGEST_COPY - 1,
        _blocks.LARGEST_COPY,
        _blocks.LARGEST_COPY + 1,
    ]
    data = {str(size): os.urandom(size) for size in sizes}
    version = store.make_version(insert=data)
    for id, expected in data.items():
        value = store.value(id, at=version)
        assert value is not None and type(value.data) is bytes and value.data == expected
        assert store.at(version)[id] == expected
        for together in ([id], [id, "0"], ["0", "nothing", id, "1"]):
            assert [value and value.data for value in store.values(together, at=version)] == [data.get(id) for id in together]
    assert dict(store.at(version).items()) == data


def test_many_pages_and_many_versions(store: llvs.Store) -> None:
    version = store.make_version(insert={f"{number:05}": b"%d" % number for number in range(3500)})
    first = version.id
    for number in range(0, 300, 2):
        version = store.make_version(version, update={f"{number:05}": b"new"})
    ids = [f"{number:05}" for number in range(3500)]
    values = store.values(ids, at=version)
    assert [value.data for value in values if value] == [
        b"new" if number < 300 and number % 2 == 0 else b"%d" % number for number in range(3500)
    ]
    assert [value.stored_version == first for value in values if value] == [number >= 300 or number % 2 == 1 for number in range(3500)]
    assert list(store.at(version).items()) == [(value.id, value.data) for value in values if value]
    assert list(store.at(version).references()) == [value.reference for value in values if value]
    assert list(store.at(version).prefix("0001")) == ids[10:20]


def test_nothing_and_absence(store: llvs.Store) -> None:
    version = store.make_version(insert={"there": b""})
    assert store.values([], at=version) == []
    assert store.values(["not"], at=version) == [None]
    assert store.values(["not", "there", "not"], at=version) == [None, llvs.Value("there", b"", version.id), None]
    assert store.values(iter(("there",)), at=version) == store.values(("there",), at=version.id)
    assert store.values({"there": 1}, at=version) == [store.value("there", at=version)]
    empty = store.make_version(version, remove=["there"])
    assert list(store.at(empty)) == list(store.at(empty).items()) == list(store.at(empty).values()) == []


def test_ids_that_are_none(store: llvs.Store) -> None:
    version = store.make_version(insert={"a": b""})
    for bad in ("", "x" * 4097, "\ud800", "a\udc80b"):
        for ids in ([bad], ["a", bad, "é"]):
            with pytest.raises(llvs.errors.InvalidIDError):
                store.values(ids, at=version)
        with pytest.raises(llvs.errors.InvalidIDError):
            store.value(bad, at=version)
    for wrong in (1, b"a", None):
        with pytest.raises(TypeError, match="is a str, not"):
            store.values(["a", wrong], at=version)  # type: ignore[list-item]
        with pytest.raises(TypeError, match="is a str, not"):
            store.value(wrong, at=version)  # type: ignore[arg-type]
    for at in ("nowhere", "", "n" * 600, "not an id"):
        with pytest.raises(llvs.Error):
            store.value("a", at=at)
        with pytest.raises(llvs.Error):
            store.values([], at=at)


@given(
    st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=5), unique=True),
    st.lists(st.binary(max_size=20), min_size=1),
)
def test_anything_comes_back(ids: list[str], contents: list[bytes]) -> None:
    data = {id: contents[index % len(contents)] for index, id in enumerate(ids)}
    with llvs.Store(storage="memory") as store:
        version = store.make_version(insert=data)
        assert {value.id: value.data for value in store.values(ids, at=version) if value} == data
        assert list(store.at(version).items()) == sorted(data.items(), key=lambda item: item[0].encode())


def test_the_prototype_that_fits_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_fetch, "FLAT", False)
    fetch = _fetch.fetcher("llvs_store_read_value")
    data = {"small": b"1", "large": os.urandom(_fetch.CAPACITY + 1)}
    with llvs.Store(storage="memory") as store:
        version = store.make_version(insert=data)
        for id, expected in data.items():
            assert fetch(store._argument, id.encode(), version.id.encode()) == (expected, version.id)
        assert fetch(store._argument, b"absent", version.id.encode()) is None
        with pytest.raises(llvs.errors.UnknownVersionError):
            fetch(store._argument, b"small", b"nowhere")


def test_threads_read_without_getting_in_each_others_way(place: Places) -> None:
    data = {str(number): os.urandom(number * 700) for number in range(120)}
    wrong: list[object] = []
    with place.open() as store:
        version = store.make_version(insert=data)

        def read(offset: int) -> None:
            ids = list(data)[offset:] + list(data)[:offset]
            for _ in range(3):
                wrong.extend(id for id in ids if store.at(version)[id] != data[id])
                wrong.extend(value for value in store.values(ids, at=version) if value is None or value.data != data[value.id])

        threads = [threading.Thread(target=read, args=(7 * number,)) for number in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not wrong


def test_a_storage_may_read_while_it_is_read() -> None:
    """A callback during a read reads another value. Neither read gets bytes of the other."""
    other = llvs.Store(storage="memory")
    at = other.make_version(insert={"x": b"of the other"})
    seen = []

    class Reading(llvs.storage.DictStorage):
        def read(self, *arguments: Any) -> bytes:
            found = other.value("x", at=at)
            seen.append(found is not None and found.data == b"of the other")
            return super().read(*arguments)

    with other:
        records: dict[int, bytes] = {}
        with llvs.Store(storage=llvs.storage.DictStorage(records)) as store:
            version = store.make_version(insert={"a": b"1" * 300, "b": b"2" * 200}).id
        with llvs.Store(storage=Reading(records)) as store:
            for id, expected in (("a", b"1" * 300), ("b", b"2" * 200)):
                value = store.value(id, at=version)
                assert value is not None and (value.data, value.stored_version) == (expected, version)
    assert seen and all(seen)


def test_what_was_fetched_is_let_go_of(store: llvs.Store) -> None:
    version = store.make_version(insert={str(number): b"x" * 10000 for number in range(100)})
    ids = [str(number) for number in range(100)]

    def read() -> None:
        store.values(ids, at=version)
        list(store.at(version).items())
        for id in ids:
            store.value(id, at=version)
        for wrong in ("nowhere", ""):
            with pytest.raises(llvs.Error):
                store.value("0", at=wrong)

    read()
    scratch = len(_fetch._scratch)
    tracemalloc.start()
    try:
        read()
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(5):
            read()
        assert tracemalloc.get_traced_memory()[0] - before < 200_000
    finally:
        tracemalloc.stop()
    assert len(_fetch._scratch) == scratch


def test_blocks_are_released(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    released: list[int] = []
    init, free = _blocks.Block.__init__, _blocks.lib.llvs_value_block_free
    monkeypatch.setattr(_blocks.Block, "__init__", lambda self, pointer: (made.append(pointer), init(self, pointer))[1])
    monkeypatch.setattr(_blocks.lib, "llvs_value_block_free", lambda pointer: (released.append(pointer), free(pointer))[1])
    with llvs.Store(storage="memory") as store:
        version = store.make_version(insert={f"{number:04}": b"x" for number in range(2500)})
        store.values(["0000", "no"], at=version)
        list(store.at(version))
        next(iter(store.at(version).items()))
    assert len(made) == 1 + 3 + 1 and made == released
