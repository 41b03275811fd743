"""A storage written in Python over a dict passes the same tests as the built-in ones (see `store`), and these of its own."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any, Iterator, Optional, Sequence

import llvs
import pytest


class Recording(llvs.storage.DictStorage):
    """Counts calls, keeps caches, and fails where a test requests it."""

    name = "recording"

    def __init__(self, records: Optional[dict[int, bytes]] = None) -> None:
        super().__init__(records)
        self.calls: list[str] = []
        self.caches: dict[str, bytes] = {}
        self.fail: dict[str, BaseException] = {}
        self.busy = threading.Lock()

    def _called(self, name: str) -> None:
        assert self.busy.acquire(blocking=False), "two calls at once"
        self.busy.release()
        self.calls.append(name)
        if name in self.fail:
            raise self.fail[name]

    def append(self, records: Sequence[bytes]) -> Sequence[int]:
        self._called("append")
        return super().append(records)

    def scan(self, mark: int, report: Any) -> int:
        self._called("scan")
        return super().scan(mark, report)

    def read(self, place: int, offset: int, size: int) -> bytes:
        self._called("read")
        return super().read(place, offset, size)

    def sync(self) -> None:
        self._called("sync")

    def close(self) -> None:
        self._called("close")

    def cache_get(self, name: str) -> Optional[bytes]:
        self._called("cache_get")
        return self.caches.get(name)

    def cache_put(self, name: str, data: bytes) -> None:
        self._called("cache_put")
        self.caches[name] = data

    def cache_delete(self, name: str) -> None:
        self._called("cache_delete")
        self.caches.pop(name, None)


def test_records_are_the_truth() -> None:
    """A store can be rebuilt from its records only, in any order and with duplicates. Caches are only caches."""
    storage = Recording()
    with llvs.Store(storage=storage) as store:
        version = store.make_version(insert={"a": b"1"})
        for index in range(500):
            version = store.make_version(version, update={"a": str(index).encode(), f"n{index}": os.urandom(50)})
        expected = dict(store.at(version).items())
    assert "sync" in storage.calls and storage.calls[-1] == "close"
    for caches in (
        storage.caches,
        {},
        {name: data[: len(data) // 2] for name, data in storage.caches.items()},
        {name: os.urandom(100) for name in storage.caches},
    ):
        again = Recording(storage.records)  # type: ignore[arg-type]
        again.caches = dict(caches)
        with llvs.Store(storage=again) as store:
            assert [head.id for head in store.heads()] == [version.id] and dict(store.at(version).items()) == expected

    class Shuffled(Recording):
        def scan(self, mark: int, report: Any) -> int:
            for place in sorted(self.records, key=lambda place: place * 7919 % 1009):
                report(place, self.records[place])
                report(place, self.records[place])
            return len(self.records)

    with llvs.Store(storage=Shuffled(storage.records)) as store:  # type: ignore[arg-type]
        assert [head.id for head in store.heads()] == [version.id] and dict(store.at(version).items()) == expected


def test_a_damaged_byte_costs_what_it_hits() -> None:
    storage, data = llvs.storage.DictStorage(), bytes(range(100))
    with llvs.Store(storage=storage) as store:
        root = store.make_version(insert={"root": b"1"})
        hit = store.make_version(root, insert={"hit": data})
        beside = store.make_version(root, insert={"beside": b"1"})
        after = store.make_version(hit, insert={"after": b"1"})
    ((place, record),) = ((place, record) for place, record in storage.records.items() if data in record)
    everything, body = {root.id, hit.id, beside.id, after.id}, record.index(data)
    lost = []
    for at in range(len(record)):
        records = dict(storage.records)
        records[place] = record[:at] + bytes([record[at] ^ 1]) + record[at + 1 :]
        with llvs.Store(storage=llvs.storage.DictStorage(records)) as store:
            known, report = {version.id for version in store.history()}, store.verify()
            (damage,) = report.damages
            lost.append(damage.lost)
            if damage.lost is llvs.store.Loss.VERSION:
                # The version is absent, and its descendants are pending.
                assert known == {root.id, beside.id} and report.pending == 1
                with pytest.raises(llvs.errors.UnknownVersionError):
                    store.value("hit", at=hit)
            else:
                assert known == everything and report.pending == 0 and damage.version == hit.id
                assert store.at(after)["after"] == b"1" and store.at(after)["root"] == b"1"
                if damage.lost is llvs.store.Loss.VALUE:
                    assert damage.value_id == "hit"
                    for version in (hit, after):
                        with pytest.raises(llvs.StorageError) as caught:
                            store.value("hit", at=version)
                        assert caught.value.code == llvs.ErrorCode.DAMAGED
                else:
                    assert store.at(after)["hit"] == data
            assert store.make_version(beside, insert={"usable": b"1"})
    # The envelope: a header of 24 bytes and the checksum of the one block, which say nothing that the rest does not.
    assert lost[:28] == [llvs.store.Loss.NOTHING] * 28
    # The header of the record, and its table.
    assert lost[28:92] == [llvs.store.Loss.VERSION] * 64 and llvs.store.Loss.NOTHING not in lost[28:]
    assert lost[body : body + len(data)] == [llvs.store.Loss.VALUE] * len(data)


def test_long_records_may_be_reported_by_their_beginning() -> None:
    class Brief(llvs.storage.DictStorage):
        def scan(self, mark: int, report: Any) -> int:
            for place, record in self.records.items():
                if len(record) > 65536:
                    report(place, record[:65536], len(record))
                else:
                    report(place, record)
            return len(self.records)

    records: dict[int, bytes] = {}
    data = {str(index): os.urandom(300_000) for index in range(5)} | {f"s{index}": os.urandom(20) for index in range(5000)}
    with llvs.Store(storage=llvs.storage.DictStorage(records)) as store:
        version = store.make_version(insert=data)
    with llvs.Store(storage=Brief(records)) as store:
        assert dict(store.at(version).items()) == data


class Stop(BaseException):
    """An exception that is not an Exception."""


@pytest.mark.parametrize("problem", [ValueError("mine"), Stop(), OSError(28, "full"), llvs.errors.make(-25, "no space here")], ids=repr)
@pytest.mark.parametrize("method", ["append", "sync"])
def test_what_a_storage_raises_is_raised(method: str, problem: BaseException) -> None:
    storage = Recording()
    with llvs.Store(storage=storage) as store:
        root = store.make_version(insert={"a": b"1"})
        storage.fail[method] = problem
        with pytest.raises((type(problem), llvs.StorageError)) as caught:
            store.make_version(root, update={"a": b"2"}, id="second")
        if caught.value is not problem:
            # A failed sync leaves the outcome open; the error says so.
            assert caught.value.code == llvs.ErrorCode.UNKNOWN_OUTCOME and caught.value.version_id == "second"  # type: ignore[attr-defined]
        storage.fail.clear()
        second = store.make_version(root, update={"a": b"2"}, id="second")
        assert store.at(second)["a"] == b"2"
    with llvs.Store(storage=storage) as store:
        assert store.at("second")["a"] == b"2"


@pytest.mark.parametrize("kept", [True, False])
def test_an_append_with_an_unknown_outcome(kept: bool) -> None:
    """The storage reports an unknown outcome. A version that is made again under its id is the same version, whether the first was stored
    or not."""

    class Unsure(llvs.storage.DictStorage):
        unsure = False

        def append(self, records: Sequence[bytes]) -> Sequence[int]:
            places = super().append(records) if kept or not self.unsure else []
            if self.unsure:
                raise llvs.errors.make(llvs.ErrorCode.UNKNOWN_OUTCOME, "the line broke")
            return places

    storage = Unsure()
    with llvs.Store(storage=storage) as store:
        storage.unsure = True
        with pytest.raises(llvs.StorageError, match="the line broke"):
            store.make_version(insert={"a": b"1"}, id="mine")
        storage.unsure = False
        assert store.make_version(insert={"a": b"1"}, id="mine").id == "mine"
        assert not store.verify().damages
    with llvs.Store(storage=storage) as store:
        assert [version.id for version in store.history()] == ["mine"] and not store.verify().damages


def test_reads_that_fail() -> None:
    storage = Recording()
    with llvs.Store(storage=storage) as store:
        version = store.make_version(insert={"a": os.urandom(2 << 20), "b": os.urandom(3 << 20)})
    with llvs.Store(storage=storage, options=llvs.StoreOptions(memory_budget=1 << 20)) as store:
        storage.fail["read"] = ZeroDivisionError("read")
        with pytest.raises(ZeroDivisionError):
            store.value("a", at=version)
            store.value("b", at=version)
        storage.fail.clear()
        assert len(store.at(version)["a"]) == 2 << 20


@pytest.mark.parametrize(
    "places",
    [[], [0, 1], [-1], [1 << 64], ["x"], None],
    ids=repr,
)
def test_answers_of_a_wrong_kind(places: Any) -> None:
    class Wrong(llvs.storage.DictStorage):
        def append(self, records: Sequence[bytes]) -> Sequence[int]:
            super().append(records)
            return places  # type: ignore[no-any-return]

    with llvs.Store(storage=Wrong()) as store:
        with pytest.raises((ValueError, TypeError)):
            store.make_version(insert={"a": b"1"})


def test_one_storage_serves_one_store() -> None:
    storage = llvs.storage.DictStorage()
    with llvs.Store(storage=storage) as store:
        store.make_version()
    with llvs.Store(storage=storage) as store:
        assert len(store.heads()) == 1

    class Half(llvs.storage.DictStorage):
        def cache_get(self, name: str) -> Optional[bytes]:
            return None

    with pytest.raises(TypeError, match="cache_put"):
        llvs.Store(storage=Half())
    with pytest.raises(TypeError):
        llvs.storage.Storage()  # type: ignore[abstract]


def test_calls_come_one_at_a_time() -> None:
    storage = Recording()
    with llvs.Store(storage=storage) as store:
        root = store.make_version(insert={"a": b"1" * 1000})

        def work(number: int) -> None:
            for index in range(30):
                made = store.make_version(root, insert={f"{number}/{index}": b"x" * 500})
                assert store.at(made)["a"] == b"1" * 1000

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(store.heads()) == 120


@pytest.mark.parametrize("name", ["append", "scan", "read", "sync"])
def test_a_callback_that_calls_the_store_gets_an_error(name: str) -> None:
    """The callback is called with the store's locks held, and would wait for itself."""
    open_stores: list[Any] = []
    refused: list[str] = []

    def come_back(self: Any, *arguments: Any) -> Any:
        if open_stores:
            store, exchange, history, version = open_stores
            for call in (lambda: store.heads(), store.make_version, lambda: store.value("a", at=version), store.reload, store.verify,
                         store.statistics, exchange.send, lambda: next(history)):  # fmt: skip
                try:
                    call()
                except llvs.BusyError as error:
                    refused.append(str(error))
            # Another store can be used.
            with llvs.Store(storage="memory") as other:
                other.make_version()
        return getattr(llvs.storage.DictStorage, name)(self, *arguments)

    storage = type("ComingBack", (llvs.storage.DictStorage,), {name: come_back})()
    with llvs.Store(storage=storage) as store:
        version = store.make_version(insert={"a": b"1" * 100_000})
        for index in range(1500):
            store.make_version(version)
        with llvs.Exchange(store, f"memory:coming-back-{name}") as exchange:
            history = store.history()
            next(history)
            open_stores += [store, exchange, history, version]
            store.make_version(version, update={"a": b"2"})
            store.value("a", at=version)
            store.reload()
            open_stores.clear()
        assert len(refused) >= 7 and all("callback" in message for message in refused)
        assert len(list(store.history())) == 1502 and store.verify().damages == ()
