"""The coordinator: current version, saves, exchanges, merges, observers, bootstrapping."""

from __future__ import annotations

import ctypes
import shutil
import threading
from pathlib import Path
from typing import Any

import llvs
import pytest
from interchange import DictTransport
from llvs._generated import constants as c
from llvs.store._options import OpeningOptions
from sampling import drawn, sample


def test_two_devices(tmp_path: Path) -> None:
    url = (tmp_path / "shared").as_uri()
    with llvs.Coordinator(tmp_path / "one", exchange=url) as one, llvs.Coordinator(tmp_path / "two", exchange=url) as two:
        assert one.current_version == two.current_version and dict(one.at()) == {} and one.store.heads() == ()
        first = one.save(insert={"note/1": b"hello"}, metadata={"author": "ann"})
        assert first is not None and one.current_version == first and first.predecessors
        result = one.exchange()
        assert result.sent == (first.id,) or first.id in result.sent
        assert two.exchange().problems == ()
        two.merge()
        value = two.value("note/1")
        assert value is not None and value.data == b"hello" and two.current_version == first
        one.save(update={"note/1": b"from one"})
        two.save(update={"note/1": b"from two"}, insert={"note/2": b"2"})
        for notes in (one, two, one):
            notes.exchange()
        assert one.merge() and not one.merge()
        one.exchange(), two.exchange()
        assert two.merge()
        assert one.current_version == two.current_version
        assert dict(one.at()) == dict(two.at()) == {"note/1": b"from two", "note/2": b"2"}
        assert [value.data if value else None for value in one.values(["note/2", "none"])] == [b"2", None]
        assert dict(one.at(first).items()) == {"note/1": b"hello"}
        old = one.value("note/1", at=first)
        assert old is not None and old.data == b"hello"
    with llvs.Coordinator(tmp_path / "one") as again:
        assert dict(again.at()) == {"note/1": b"from two", "note/2": b"2"}
    with pytest.raises(llvs.ClosedError):
        again.save(insert={"x": b""})
    with pytest.raises(llvs.ClosedError):
        again.store


def test_empty_saves_and_branches(tmp_path: Path) -> None:
    with llvs.Coordinator(tmp_path / "store", metadata={"device": "mac"}) as notes:
        assert notes.save() is None
        main = notes.save(insert={"a": b"1"})
        assert main is not None and main.metadata == {"device": "mac"}
        draft = notes.save(insert={"a": b"2"}, branch="draft")
        assert draft is not None and draft.branch == "draft"
        assert notes.branch_version("draft") == draft and notes.branch_version("nothing") is None
        assert notes.current_version == main and notes.current_version.metadata == {"device": "mac"}
        own = notes.save(update={"a": b"3"}, metadata={"device": "phone"})
        assert own is not None and own.metadata["device"] == "phone"
        notes.current_version = main
        assert notes.current_version == main
        with pytest.raises(llvs.errors.UnknownVersionError):
            notes.current_version = "no-such"
        assert notes.merge("all") and notes.current_version.id != main.id


def test_a_version_that_is_not_there_any_more_is_named(tmp_path: Path) -> None:
    url, path = (tmp_path / "shared").as_uri(), tmp_path / "notes"
    with llvs.Coordinator(path, exchange=url) as notes:
        assert notes.missing_version is None
        first = notes.save(insert={"a": b"1"})
        large = notes.save(insert={"b": bytes(2_000_000)})
        assert first is not None and large is not None
        notes.exchange()
    for blob in (path / "blobs").iterdir():
        blob.unlink()
    with llvs.Coordinator(path, exchange=url) as notes:
        assert notes.current_version == first and notes.missing_version == large.id
        report = notes.store.verify()
        assert report.pending == notes.store.statistics().pending == 1
        assert [(damage.version, damage.value_id, damage.lost) for damage in report.damages] == [(large.id, "b", llvs.store.Loss.VERSION)]
        assert notes.exchange().retrieved == (large.id,)
        notes.current_version = large.id
        assert notes.value("b") is not None
    with llvs.Coordinator(path, exchange=url) as notes:
        assert notes.current_version == large and notes.missing_version is None


def test_observers(tmp_path: Path) -> None:
    transport = DictTransport()
    with llvs.Coordinator(tmp_path / "store") as notes:
        seen: list[str] = []
        observer = notes.observe(seen.append)
        version = notes.save(insert={"a": b"1"})
        assert version is not None and seen == [version.id]
        observer.close()
        notes.save(update={"a": b"2"})
        assert len(seen) == 1
        notes.attach(transport, name="dict")
        heard = threading.Event()
        notes.observe_exchanges(heard.set)
        transport.notify()
        assert heard.wait(300)
        notes.attach(f"memory:{tmp_path}")
        assert len(notes.exchange().sent) >= 2 and set(transport.versions)


def test_an_arbiter_in_python(tmp_path: Path) -> None:
    asked: list[Any] = []

    def arbiter(merge: llvs.merge.Merge, store: llvs.Store) -> list[llvs.Change]:
        asked.append(store.value("a", at=merge.first))
        return [llvs.Change.update(id, b"resolved") for id in merge.forks.conflicting]

    with llvs.Coordinator(tmp_path / "store", arbiter=arbiter) as notes:
        base = notes.save(insert={"a": b"0"})
        assert base is not None
        notes.save(update={"a": b"1"})
        notes.store.make_version(base, update={"a": b"2"})
        assert notes.merge()
        assert notes.at()["a"] == b"resolved" and asked

    def failing(merge: llvs.merge.Merge, store: llvs.Store) -> list[llvs.Change]:
        raise ZeroDivisionError

    with llvs.Coordinator(tmp_path / "store", arbiter=failing) as notes:
        before = notes.current_version.id
        notes.save(update={"a": b"3"})
        notes.store.make_version(before, update={"a": b"4"})
        with pytest.raises(ZeroDivisionError):
            notes.merge()


def test_bootstrap(tmp_path: Path) -> None:
    url = (tmp_path / "shared").as_uri()
    with llvs.Coordinator(tmp_path / "one", exchange=url, options=llvs.CoordinatorOptions(snapshots="auto")) as one:
        for index in range(25):
            one.save(update={"a": str(index).encode()})
        one.exchange()
        with llvs.Exchange(one.store, url) as exchange:
            if exchange.snapshot() is None:
                exchange.put_snapshot()
        with llvs.Coordinator(tmp_path / "two", exchange=url) as two:
            assert two.bootstrap()
            assert two.at()["a"] == b"24" and two.current_version == one.current_version
    with llvs.Coordinator(tmp_path / "three", exchange=f"memory:{tmp_path}") as three:
        assert not three.bootstrap()


def test_concurrent_saves(tmp_path: Path) -> None:
    with llvs.Coordinator(tmp_path / "store", durability="normal") as notes:

        def work(number: int) -> None:
            for index in range(25):
                notes.save(insert={f"{number}/{index}": b"1"})

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(notes.at()) == 100 and len(notes.store.heads()) == 1


@pytest.mark.parametrize(
    "options",
    [
        {"options": llvs.CoordinatorOptions(snapshots="often")},  # type: ignore[arg-type]
        {"options": llvs.CoordinatorOptions(name="Not Allowed")},
        {"exchange": "gopher://x"},
        {"storage": "cloud"},
    ],
)
def test_bad_options(tmp_path: Path, options: dict[str, Any]) -> None:
    with pytest.raises(llvs.Error):
        llvs.Coordinator(tmp_path / "store", **options)


def test_options_of_another_class_are_refused() -> None:
    with pytest.raises(TypeError, match="options is an llvs.CoordinatorOptions, not StoreOptions"):
        llvs.Coordinator(storage="memory", options=llvs.StoreOptions())  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="options is an llvs.StoreOptions, not dict"):
        llvs.Store(storage="memory", options={"memory_budget": 1})  # type: ignore[arg-type]
    with llvs.Store(storage="memory", options=llvs.CoordinatorOptions(memory_budget=1 << 20)):
        pass


def test_each_option_of_the_store_reaches_the_library(tmp_path: Path) -> None:
    options = llvs.CoordinatorOptions(
        memory_budget=3 << 20, cache_directory=tmp_path, compaction="always", compaction_grace=0, busy_timeout=2.5, file_mode=0o640,
        differences="off",
    )  # fmt: skip
    opening = OpeningOptions("memory", "normal", read_only=True, create=False, options=options)
    struct = opening.struct
    assert (struct.storage, struct.durability, struct.read_only, struct.must_exist) == (c.STORAGE_MEMORY, c.DURABILITY_NORMAL, 1, 1)
    assert (struct.memory_budget, struct.busy_timeout, struct.file_mode) == (3 << 20, 2.5, 0o640)
    assert (struct.compaction, struct.differences) == (c.COMPACTION_ALWAYS, c.DIFFERENCES_OFF)
    assert 0 < struct.compaction_grace < 1e-300  # The library reads 0 as the default.
    assert ctypes.string_at(struct.cache_directory.data, struct.cache_directory.size) == bytes(tmp_path)
    # Without options, and with unchanged options, the library decides.
    plain, unchanged = OpeningOptions().struct, OpeningOptions(options=llvs.StoreOptions()).struct
    assert bytes(plain) == bytes(unchanged)


@pytest.mark.parametrize("storage", ["file", "sqlite", "memory"])
def test_the_current_version_of_a_new_store_can_be_read(tmp_path: Path, storage: Any) -> None:
    with llvs.Coordinator(tmp_path / "new", storage=storage) as notes:
        store, root = notes.store, notes.current_version.id
        for _ in range(2):
            assert dict(store.at(root)) == {} and len(store.at(root)) == 0 and "k" not in store.at(root)
            assert store.value("k", at=root) is None and store.values(["k"], at=root) == [None] and list(store.changes(root)) == []
            assert store.version(root) is not None and list(store.diff(root, root)) == [] and list(store.merge_bases(root, root))
            assert store.heads() == () and list(store.history()) == [] and store.statistics().versions == 0
        first = notes.save(insert={"k": b"1"})
        assert first is not None and store.is_ancestor(root, first) and dict(store.at(root)) == {}
        assert [change.kind for change in store.diff(root, first)] == ["insert"] and store.heads() == (first,)
    with llvs.Store(tmp_path / "other", storage=storage) as other:
        made = other.make_version(insert={"k": b"1"})
        assert dict(other.at(root)) == {} and not other.is_ancestor(root, made) and len(list(other.diff(made, root))) == 1
        assert other.merge(root, made) == made and len(list(other.history())) == 1


def test_a_round_is_one_call(tmp_path: Path) -> None:
    url = (tmp_path / "shared").as_uri()
    with llvs.Coordinator(tmp_path / "one", exchange=url) as one, llvs.Coordinator(tmp_path / "two", exchange=url) as two:
        root = one.current_version.id
        first = one.save(insert={"a": b"1"}, expected=root, timestamp=1_700_000_000.5)
        assert first is not None and first.timestamp == 1_700_000_000.5
        done = one.sync()
        assert (
            done.before.sent == (first.id,) and done.after is None and not done.moved and done.from_version == done.to_version == first.id
        )
        done = two.sync()
        assert done.moved and (done.from_version, done.to_version) == (root, first.id) and done.before.retrieved == (first.id,)
        one.save(update={"a": b"2"})
        one.sync()
        mine = two.save(insert={"b": b"1"})
        assert mine is not None
        done = two.sync()
        assert done.moved and done.merged and done.from_version == mine.id and done.after is not None
        assert done.after.sent == (two.current_version.id,)
        assert one.sync().to_version == two.current_version.id and dict(one.at()) == dict(two.at()) == {"a": b"2", "b": b"1"}
        with pytest.raises(llvs.MovedError) as caught:
            one.save(update={"a": b"3"}, expected=first)
        assert caught.value.code == llvs.ErrorCode.MOVED and one.current_version.id in str(caught.value)
        with pytest.raises(llvs.Error):
            one.save(update={"a": b"3"}, timestamp=float("nan"))


def test_problems_of_a_round_are_reported_once(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    with llvs.Coordinator(tmp_path / "one", exchange=shared) as one, llvs.Coordinator(tmp_path / "two", exchange=shared) as two:
        one.save(update={"a": b"1"})
        two.save(update={"b": b"2"})
        one.sync()
        (shared / "versions" / "cut").write_bytes(b"")
        (shared / "versions" / "no version").write_bytes(b"")
        done = two.sync()
        assert done.after is not None and done.before.problems and done.after.problems
        assert [(problem.name, problem.code) for problem in done.problems] == [("cut", llvs.ErrorCode.CUT_SHORT)]
        (shared / "versions" / "cut").unlink()
        (shared / "versions" / "no version").unlink()


def test_one_name_is_open_once(tmp_path: Path) -> None:
    with llvs.Coordinator(tmp_path / "store") as notes:
        with pytest.raises(llvs.BusyError, match='named "main" is open'):
            llvs.Coordinator(tmp_path / "store")
        with llvs.Coordinator(tmp_path / "store", options=llvs.CoordinatorOptions(name="other")):
            pass
        saved = notes.save(insert={"a": b"1"})
    with llvs.Coordinator(tmp_path / "store") as again:
        assert saved is not None and again.current_version == saved


def test_one_failing_exchange_does_not_keep_others(tmp_path: Path) -> None:
    with llvs.Coordinator(tmp_path / "one", exchange=(tmp_path / "bad").as_uri()) as one:
        one.attach((tmp_path / "good").as_uri())
        shutil.rmtree(tmp_path / "bad", ignore_errors=True)
        (tmp_path / "bad").write_bytes(b"no folder")
        saved = one.save(insert={"a": b"1"})
        assert saved is not None
        with pytest.raises(llvs.Error):
            one.exchange()
        with pytest.raises(llvs.Error):
            one.sync()
        assert (tmp_path / "good" / "versions" / saved.id).exists()


def test_a_fork_of_a_criss_cross_merge_has_all_ancestors() -> None:
    """Three devices that each edit a field of their own, merged by property: no edit is lost, whatever the history."""
    import json
    import random

    def merged(fork: llvs.merge.Fork, store: llvs.Store) -> llvs.Change:
        def read(reference: llvs.store.Reference) -> dict[str, int]:
            value = store.value(reference.id, at=reference.stored_version)
            assert value is not None
            return dict(json.loads(value.data))

        assert fork.first is not None and fork.second is not None
        newer, older = read(fork.first), read(fork.second)
        before = [read(reference) for reference in fork.ancestors]
        # A field that only one side changed has that side's value. A value that no ancestor has is a change.
        for field, value in older.items():
            if all(state.get(field) != value for state in before) and any(state.get(field) == newer.get(field) for state in before):
                newer[field] = value
        return llvs.Change.update(fork_id, json.dumps(newer, sort_keys=True).encode())

    fork_id, several = "contact", 0
    for seed in drawn(range(30), range(200)):
        dice = random.Random(seed)
        with llvs.Store("", storage="memory") as store:

            class ByField:
                def resolve(self, merge: llvs.merge.Merge, store: llvs.Store) -> list[llvs.Change]:
                    nonlocal several
                    several += sum(len(fork.ancestors) > 1 for fork in merge.forks.values())
                    return [merged(fork, store) for fork in merge.forks.conflicting.values()]

            base = store.make_version(insert={fork_id: json.dumps({"a": 0, "b": 0, "c": 0}).encode()})
            heads, last = {device: base.id for device in "abc"}, {device: 0 for device in "abc"}
            for step in range(1, 25):
                device = dice.choice("abc")
                if dice.random() < 0.5:
                    state = json.loads(store.at(heads[device])[fork_id])
                    last[device] = state[device] = step
                    heads[device] = store.make_version(heads[device], update={fork_id: json.dumps(state, sort_keys=True).encode()}).id
                else:
                    heads[device] = store.merge(heads[device], heads[dice.choice("abc")], ByField()).id
            end = heads["a"]
            for device in "bca":
                end = store.merge(end, heads[device], ByField()).id
            assert json.loads(store.at(end)[fork_id]) == last, seed
    assert several > sample(3, 20)


def test_the_empty_root_is_no_news(tmp_path: Path) -> None:
    """A device that joins receives the saved versions, and not the empty root below them."""
    with llvs.Coordinator(tmp_path / "one", exchange=tmp_path / "shared") as one:
        saved = one.save(insert={"a": b"1"})
        assert saved is not None
        one.exchange()
    with llvs.Store(storage="memory") as store, llvs.Exchange(store, tmp_path / "shared") as exchange:
        assert exchange.retrieve().retrieved == (saved.id,)
        assert dict(store.at(saved)) == {"a": b"1"}


def test_calls_that_move_the_current_version_report_it(tmp_path: Path) -> None:
    folder = (tmp_path / "shared").as_uri()
    with (
        llvs.Coordinator(tmp_path / "one", exchange=folder, options=llvs.CoordinatorOptions(snapshots="auto")) as one,
        llvs.Coordinator(tmp_path / "two", exchange=folder) as two,
        llvs.Coordinator(tmp_path / "three", exchange=folder) as three,
    ):
        empty = one.current_version.id
        first = one.save(insert={"x": b"1"})
        assert first is not None and isinstance(first, llvs.Version) and first == one.store.version(first.id)
        assert (first.moved, first.from_version, first.to_version) == (True, empty, first.id)
        draft = one.save(update={"x": b"draft"}, branch="draft")
        assert draft is not None and (draft.moved, draft.to_version) == (False, first.id)
        assert one.save() is None
        first = one.save(update={"x": b"0"})
        assert first is not None
        result = one.exchange()
        assert (result.moved, result.from_version, result.to_version) == (False, first.id, first.id)
        heard: list[str] = []
        with two.observe(heard.append), three.observe(heard.append):
            result = two.exchange()
            assert (result.moved, result.from_version, result.to_version) == (True, empty, first.id) and heard == [first.id]
            started = three.bootstrap()
            assert started == llvs.coordinator.BootstrapResult(True, True, empty, first.id) and heard == [first.id] * 2 and started
            mine, theirs = two.save(update={"x": b"2"}), three.save(update={"x": b"3"})
            assert mine is not None and theirs is not None
            two.exchange(), three.exchange()
            merged = three.merge()
            assert merged and merged == llvs.coordinator.MergeResult(True, theirs.id, three.current_version.id)
            assert heard[-1] == merged.to_version
            again = three.merge()
            assert not again and again == llvs.coordinator.MergeResult(False, merged.to_version, merged.to_version)


def test_each_exchange_is_reported(tmp_path: Path) -> None:
    broken, folder = tmp_path / "broken", tmp_path / "shared"
    with llvs.Coordinator(tmp_path / "one", exchange=broken) as one:
        one.attach(folder)
        assert [each.place for each in one.exchange().exchanges] == [broken.as_uri(), folder.as_uri()]
        saved = one.save(insert={"x": b"1"})
        assert saved is not None
        shutil.rmtree(broken)
        broken.write_text("no folder")
        with pytest.raises(llvs.Error) as caught:
            one.exchange()
        result = caught.value.result
        assert isinstance(result, llvs.exchange.ExchangeResult) and result.sent == (saved.id,)
        failed, done = result.exchanges
        assert failed.error is caught.value and failed.result.sent == () and done.error is None and done.result.sent == (saved.id,)
        with pytest.raises(llvs.Error) as caught:
            one.sync()
        result = caught.value.result
        assert isinstance(result, llvs.coordinator.SyncResult) and result.before.exchanges[0].error is caught.value
        # The program's own exceptions as well, each with its exchange.
        one.attach(Silent(), name="silent")
        one.attach(Silent(), name="dumb")
        with pytest.raises(llvs.Error) as caught:
            one.exchange()
        kinds = [type(each.error) for each in caught.value.result.exchanges]
        assert kinds == [type(caught.value), type(None), ZeroDivisionError, ZeroDivisionError]


class Silent(llvs.exchange.Transport):
    """Always fails."""

    def list(self) -> list[str]:
        raise ZeroDivisionError

    def fetch_versions(self, names: list[str]) -> dict[str, bytes]:
        return {}

    def fetch_changes(self, names: list[str]) -> dict[str, bytes]:
        return {}

    def send(self, files: list[llvs.exchange.VersionFiles]) -> None:
        pass
