"""Erasing values on this device: afterwards no file of the store has their bytes, and everything else is as before."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any, Iterator

import every_byte
import llvs
import pytest

DISK = ("file", "sqlite")
ALL = (*DISK, "memory")


def secret(seed: int = 1) -> bytes:
    """Bytes that deflate cannot shorten, and that JSON has as they are."""
    return b"secret-%032x" % random.Random(seed).getrandbits(128)


def opened(folder: Path, storage: str, read_only: bool = False, **options: Any) -> llvs.Store:
    if storage == "memory":
        return llvs.Store(storage="memory")
    path = folder / "store.db" if storage == "sqlite" else folder / "store"
    return llvs.Store(path, storage=storage, read_only=read_only, options=llvs.StoreOptions(**options))  # type: ignore[arg-type]


def assert_gone(folder: Path, *wanted: bytes) -> None:
    for bytes_ in wanted:
        assert every_byte.find(folder, bytes_) == {}


def state(store: llvs.Store, version: Any) -> dict[str, Any]:
    """The ids at a version with their bytes, or the error of reading them."""
    found: dict[str, Any] = {}
    for id in store.at(version):
        try:
            value = store.value(id, at=version)
            found[id] = None if value is None else value.data
        except llvs.errors.GoneError as error:
            found[id] = type(error).__name__
    return found


def assert_sound(store: llvs.Store) -> llvs.store.VerifyReport:
    report = store.verify()
    assert (report.damages, report.pending) == ((), 0)
    return report


@pytest.fixture(params=ALL)
def storage(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def store(tmp_path: Path, storage: str) -> Iterator[llvs.Store]:
    with opened(tmp_path, storage) as store:
        yield store


def test_one_id_everywhere(store: llvs.Store, tmp_path: Path, storage: str) -> None:
    first = store.make_version(insert={"a": secret(), "b": b"other", **{f"n {i:02}": b"%d" % i for i in range(70)}})
    second = store.make_version(first, update={"a": secret() + b" edited", "b": b"new"})
    third = store.make_version(second, update={"b": b"newest"})
    assert store.value("a", at=third) is not None
    report = store.erase("a", why="a test")
    assert (report.values, report.versions, report.bytes) == (2, 2, 2 * len(secret()) + 7)
    assert (report.copies, report.rewritten, report.unread, report.waiting) == (0, 0, 0, ())
    (made,) = report.made
    (head,) = store.heads()
    assert head.id == made and head.predecessors == (third.id,)
    assert store.value("a", at=made) is None and store.value("b", at=made).data == b"newest"  # type: ignore[union-attr]
    for version in (first, second, third):
        with pytest.raises(llvs.errors.ErasedError) as caught:
            store.value("a", at=version)
        assert caught.value.code == llvs.ErrorCode.ERASED and int(caught.value.code) == -83 and caught.value.value_id == "a"
        assert isinstance(store.values(["a", "b"], at=version)[0], llvs.store.ErasedValue)
    (order,) = store.erasures()
    assert (order.id,) == report.orders and order.version == made
    assert order.values == 2 and order.why == "a test" and order.followed and order.made.endswith("Z")
    text = store.value(order.id, at=made)
    assert text is not None and json.loads(text.data)["what"] == sorted(
        ({"changes": [0], "version": first.id}, {"changes": [0], "version": second.id}), key=lambda one: str(one["version"])
    )
    assert assert_sound(store).forgotten == 2
    # Everything else is as before, in this handle and in the next one.
    expected = {"a": "ErasedError", "b": b"new", **{f"n {i:02}": b"%d" % i for i in range(70)}}
    assert state(store, second) == expected
    if storage != "memory":
        store.close()
        assert_gone(tmp_path, secret())
        for _ in range(2):
            with opened(tmp_path, storage) as again:
                assert state(again, second) == expected and assert_sound(again).forgotten == 2
                assert again.make_version(made, insert={"a": b"new life"}) and again.erase("zzz").values == 0


@pytest.mark.parametrize("size", [0, 1, 300, 70_000, 1_100_000])
def test_sizes(store: llvs.Store, tmp_path: Path, storage: str, size: int) -> None:
    data = random.Random(size).randbytes(size)
    first = store.make_version(insert={"a": data, "b": data + b"b", "c": b"c"})
    last = store.make_version(first, update={"c": b"cc"})
    assert store.erase("a").values == 1
    assert state(store, last) == {"a": "ErasedError", "b": data + b"b", "c": b"cc"}
    assert store.erase("b").values == 1
    assert state(store, first) == {"a": "ErasedError", "b": "ErasedError", "c": b"c"}
    assert_sound(store)
    if storage != "memory":
        store.close()
        if size > 1:
            assert_gone(tmp_path, data[:200])
        with opened(tmp_path, storage) as again:
            assert state(again, last) == {"a": "ErasedError", "b": "ErasedError", "c": b"cc"}


def test_a_dry_run_changes_nothing(store: llvs.Store) -> None:
    version = store.make_version(insert={"a": secret(), "b": b"b"})
    report = store.erase("a", dry_run=True)
    assert (report.values, report.bytes, report.orders, report.made, report.waiting) == (1, len(secret()), (), (), ())
    assert store.erasures() == [] and len(list(store.history())) == 1
    assert store.value("a", at=version).data == secret()  # type: ignore[union-attr]


def test_at_one_version(store: llvs.Store) -> None:
    first = store.make_version(insert={"a": secret(1)})
    second = store.make_version(first, update={"a": secret(2)})
    third = store.make_version(second, update={"a": secret(1)})
    report = store.erase("a", at=second)
    assert (report.values, report.made) == (1, tuple(head.id for head in store.heads()))
    assert store.value("a", at=report.made[0]).data == secret(1)  # type: ignore[union-attr]
    assert [state(store, version)["a"] for version in (first, second, third)] == [secret(1), "ErasedError", secret(1)]
    # Equal bytes under the same id go as well.
    report = store.erase("a", at=first)
    assert report.values == 2 and store.value("a", at=report.made[0]) is None
    assert [state(store, version)["a"] for version in (first, second, third)] == ["ErasedError"] * 3
    assert store.erase("a").values == 0


def test_a_run_of_bytes(store: llvs.Store, tmp_path: Path, storage: str) -> None:
    document = json.dumps({"name": "x" * 2_000, "password": secret().decode()}).encode()
    first = store.make_version(insert={"a": b"1 " + secret() + b" 2", "b": document, "c": secret()[:-1], "d": secret()})
    report = store.erase(containing=secret(), replacement=b"gone")
    assert report.values == 3
    (made,) = report.made
    now = {id: value for id, value in state(store, made).items() if not id.startswith("__llvs_forget/")}
    assert now == {"a": b"gone", "b": b"gone", "c": secret()[:-1], "d": b"gone"}
    assert state(store, first) == {"a": "ErasedError", "b": "ErasedError", "c": secret()[:-1], "d": "ErasedError"}
    if storage != "memory":
        store.close()
        assert_gone(tmp_path, secret())


def test_an_empty_replacement(store: llvs.Store) -> None:
    store.make_version(insert={"a": secret()})
    assert store.value("a", at=store.erase("a", replacement=b"").made[0]).data == b""  # type: ignore[union-attr]


def test_all_heads_and_their_branches(store: llvs.Store) -> None:
    first = store.make_version(insert={"a": secret(), "b": b"b"})
    main = store.make_version(first, update={"b": b"main"})
    branch = store.make_version(first, update={"b": b"draft"}, metadata={"__llvs_branch": "draft"})
    without = store.make_version(first, remove=["a"])
    report = store.erase("a")
    assert report.values == 1 and len(report.made) in (2, 3)
    heads = {version.id: version for version in store.history()}
    on = {heads[made].predecessors[0]: heads[made] for made in report.made}
    assert {main.id, branch.id} <= set(on) <= {main.id, branch.id, without.id}
    assert on[branch.id].metadata["__llvs_branch"] == "draft" and "__llvs_branch" not in on[main.id].metadata
    for made in report.made:
        assert store.value("a", at=made) is None


def test_what_is_refused(store: llvs.Store, storage: str, tmp_path: Path) -> None:
    first = store.make_version(insert={"a": secret()})
    made = store.erase("a").made[0]
    before = len(list(store.history()))
    for error, ids, more in (
        (llvs.errors.InvalidArgumentError, (), {}),
        (llvs.errors.InvalidArgumentError, (store.erasures()[0].id,), {}),
        (llvs.errors.InvalidIDError, ("",), {}),
        (llvs.errors.UnknownVersionError, ("a",), {"at": "missing"}),
    ):
        with pytest.raises(error):
            store.erase(*ids, **more)  # type: ignore[arg-type]
    assert len(list(store.history())) == before and store.value("a", at=made) is None
    if storage != "memory":
        store.close()
        with opened(tmp_path, storage, read_only=True) as reader:
            with pytest.raises(llvs.errors.ErasedError):
                reader.value("a", at=first)
            assert reader.erase("a", dry_run=True).values == 0
            with pytest.raises(llvs.errors.Error) as caught:
                reader.erase("a")
            assert caught.value.code == llvs.ErrorCode.READ_ONLY


@pytest.mark.parametrize("storage", DISK)
def test_differences_from_erased_values(tmp_path: Path, storage: str) -> None:
    """Values that are differences from an erased one are stored whole."""
    rng = random.Random(5)
    base = rng.randbytes(20_000)
    texts = [base[:9_000] + secret(i) + base[9_000 + 100 * i :] for i in range(12)]
    with opened(tmp_path, storage, differences="on") as store:
        versions = [store.make_version(insert={"a": texts[0]})]
        for text in texts[1:]:
            versions.append(store.make_version(versions[-1], update={"a": text}))
        assert store.statistics().differences > 6
        gone = {0, 4, 5, 11}
        rewritten = 0
        for i in sorted(gone):
            rewritten += store.erase("a", at=versions[i]).rewritten
        assert rewritten > 0
        expected = ["ErasedError" if i in gone else text for i, text in enumerate(texts)]
        assert [state(store, version)["a"] for version in versions] == expected
        later = store.make_version(versions[-2], update={"a": texts[0][:-5]})
        assert store.value("a", at=later).data == texts[0][:-5]  # type: ignore[union-attr]
        assert_sound(store)
    assert_gone(tmp_path, *(secret(i) for i in (4, 5, 11)))
    with opened(tmp_path, storage) as again:
        assert [state(again, version)["a"] for version in versions] == expected
        assert_sound(again)


RULES = b'{"merge":1,"ids":{"d/":{"/bio":"text"}}}'


@pytest.mark.parametrize("storage", DISK)
def test_choices_of_conflicts(tmp_path: Path, storage: str) -> None:
    """A choice stores both sides of a conflict: they go, too."""
    def data(text: bytes) -> bytes:
        return json.dumps({"x": text.decode()}).encode()

    with opened(tmp_path, storage) as store:
        first = store.make_version(insert={"__llvs_schema": RULES, "d/1": data(b"base"), "other": b"other"})
        older = store.make_version(first, update={"d/1": data(secret(1))})
        newer = store.make_version(first, update={"d/1": data(secret(2))})
        merged = store.merge(older, newer)
        (conflict,) = store.open_conflicts(merged).records
        chosen = store.choose(conflict, "result", at=merged)
        assert any(id.startswith("__llvs_chosen/") for id in store.at(chosen))
        report = store.erase("d/1")
        assert report.copies == 1 and report.values >= 4 and report.waiting == ()
        assert not any(id.startswith(("__llvs_chosen/", "d/")) for id in store.at(report.made[0]))
        assert store.value("other", at=report.made[0]).data == b"other"  # type: ignore[union-attr]
        assert_sound(store)
    assert_gone(tmp_path, secret(1), secret(2))


def found(store: llvs.Store, name: bytes, version: Any) -> list[str]:
    with store.index(definition={"prefix": "p/", "on": ["/name"]}) as index:
        return [entry.id for entry in index.find(name.decode(), at=version).entries()]


@pytest.mark.parametrize("storage", DISK)
def test_indexes(tmp_path: Path, storage: str) -> None:
    """The keys of an index are made of values: files of indexes go, and erased values have no keys."""
    values = {f"p/{i:04}": json.dumps({"name": f"name-{i:04}"}).encode() for i in range(600)}
    values["p/0300"] = json.dumps({"name": secret().decode()}).encode()
    with opened(tmp_path, storage) as store:
        version = store.make_version(insert=values)
        assert found(store, secret(), version) == ["p/0300"]
    assert every_byte.find(tmp_path, secret())
    with opened(tmp_path, storage) as store:
        assert found(store, secret(), version) == ["p/0300"]
        store.erase("p/0300")
        assert found(store, secret(), version) == []
        assert found(store, b"name-0007", version) == ["p/0007"]
    assert_gone(tmp_path, secret())


@pytest.mark.parametrize("storage", DISK)
def test_another_handle(tmp_path: Path, storage: str) -> None:
    """Another handle that has read the values goes on, and reads what is left as before."""
    with opened(tmp_path, storage) as store, opened(tmp_path, storage) as other:
        first = store.make_version(insert={"a": secret(), "b": b"b" * 500, "c": b"c" * 70_000})
        last = store.make_version(first, update={"c": b"cc"})
        other.reload()
        assert state(other, first) == {"a": secret(), "b": b"b" * 500, "c": b"c" * 70_000}
        assert store.erase("a").waiting == ()
        for _ in range(2):
            assert state(other, first) | {"a": 0} == {"a": 0, "b": b"b" * 500, "c": b"c" * 70_000}
            assert state(other, last)["c"] == b"cc"
            other.reload()
        assert state(other, first)["a"] == "ErasedError"
        assert_sound(other)
        theirs = other.make_version(last, update={"b": b"theirs"})
        store.reload()
        assert store.value("b", at=theirs).data == b"theirs"  # type: ignore[union-attr]
    assert_gone(tmp_path, secret())


def test_a_segment_that_another_handle_writes(tmp_path: Path) -> None:
    """The order waits until the other handle looks, which follows it then."""
    with opened(tmp_path, "file") as store, opened(tmp_path, "file") as other:
        first = other.make_version(insert={"a": secret(), "b": b"b"})
        store.reload()
        report = store.erase("a")
        assert report.values == 1 and len(report.waiting) == 1 and not store.erasures()[0].followed
        with pytest.raises(llvs.errors.ErasedError):
            store.value("a", at=first)
        assert every_byte.find(tmp_path, secret())
        other.reload()
        assert store.erasures()[0].followed
        assert_gone(tmp_path, secret())
        second = other.make_version(first, update={"b": b"bb"})
        assert store.erase("nothing").waiting == ()
        # The save put the order back that the state at the first version lacks.
        assert state(other, second) == {"a": "ErasedError", "b": b"bb", **{id: other.value(id, at=second).data for id in report.orders}}
        assert_sound(other)
        assert_sound(store)


@pytest.mark.parametrize("storage", DISK)
def test_differences_that_another_handle_makes(tmp_path: Path, storage: str) -> None:
    """A handle that does not know of the erasure yet makes no difference from an erased value, though it has the value in memory."""
    rng = random.Random(6)
    data = rng.randbytes(20_000)
    with opened(tmp_path, storage, differences="on") as store, opened(tmp_path, storage, differences="on") as other:
        first = other.make_version(insert={"a": data + secret(), "b": b"b"})
        second = other.make_version(first, update={"a": data + secret() + b"2"})
        assert other.statistics().differences == 1
        store.reload()
        assert store.erase("a").values == 2
        third = other.make_version(second, update={"a": data + b"3"})
        assert store.erase("a", at=first).waiting == ()
        for handle in (other, store):
            handle.reload()
            assert state(handle, third)["a"] == data + b"3"
            assert [state(handle, version)["a"] for version in (first, second)] == ["ErasedError"] * 2
            assert_sound(handle)
    assert_gone(tmp_path, secret())


@pytest.mark.parametrize("storage", DISK)
def test_an_index_of_another_handle(tmp_path: Path, storage: str) -> None:
    with opened(tmp_path, storage) as store, opened(tmp_path, storage) as other:
        version = store.make_version(insert={f"p/{i}": json.dumps({"name": f"name-{i}"}).encode() for i in range(20)})
        other.reload()
        assert found(other, b"name-7", version) == ["p/7"]
        store.erase("p/7")
        other.reload()
        assert found(other, b"name-7", version) == [] and found(other, b"name-8", version) == ["p/8"]


@pytest.mark.parametrize("storage", DISK)
def test_merges_after_an_erasure(tmp_path: Path, storage: str) -> None:
    """Values that are decided as wholes need no bytes. A value with rules whose base is erased keeps the heads apart."""
    with opened(tmp_path, storage) as store:
        first = store.make_version(insert={"__llvs_schema": RULES, "d/1": b'{"bio":"1"}', "a": secret()})
        ours = store.make_version(first, update={"a": b"ours", "x": b"1"})
        theirs = store.make_version(first, update={"a": b"theirs", "y": b"2"})
        store.erase("a", at=first)
        merged = store.merge(ours, theirs)
        assert store.value("a", at=merged).data == b"theirs"  # type: ignore[union-attr]
        assert_sound(store)


@pytest.mark.parametrize("storage", DISK)
def test_what_is_sent(tmp_path: Path, storage: str) -> None:
    """A place that has the version keeps its bytes. A place without it gets the version without them."""
    before, after = tmp_path / "before", tmp_path / "after"
    before.mkdir()
    after.mkdir()
    with opened(tmp_path, storage) as store:
        first = store.make_version(insert={"a": secret(), "b": b"b"})
        with llvs.Exchange(store, before.as_uri()) as exchange:
            exchange.send()
            report = store.erase("a")
            assert not exchange.send().problems
            assert not exchange.retrieve().problems
        assert state(store, first)["a"] == "ErasedError"
        with llvs.Exchange(store, after.as_uri()) as exchange:
            sent = exchange.send()
        assert set(sent.versions) == {first.id, report.made[0]} and not sent.problems
    assert every_byte.find(before, secret()) and not every_byte.find(after, secret())
    with llvs.Store(storage="memory") as other, llvs.Exchange(other, before.as_uri()) as exchange:
        exchange.retrieve()
        assert state(other, first)["a"] == secret() and other.value("a", at=report.made[0]) is None
        # The order came along, and does not count here.
        assert [order.state.value for order in other.erasures()] == ["not valid"]
        assert store_orders(other, report.made[0]) == list(report.orders)


def store_orders(store: llvs.Store, version: str) -> list[str]:
    return [id for id in store.at(version) if id.startswith("__llvs_forget/")]


KILLED = """
import os, sys
import llvs
store = llvs.Store(sys.argv[1], storage=sys.argv[2])
store.make_version(insert={"k": bytes.fromhex(sys.argv[3]), "l": b"l"})
os.kill(os.getpid(), 9)
"""


@pytest.mark.parametrize("storage", DISK)
def test_a_segment_of_a_killed_process(tmp_path: Path, storage: str) -> None:
    path = tmp_path / ("store.db" if storage == "sqlite" else "store")
    subprocess.run([sys.executable, "-c", textwrap.dedent(KILLED), str(path), storage, secret().hex()], timeout=300)
    with opened(tmp_path, storage) as store:
        (version,) = store.history()
        assert store.erase("k").waiting == ()
        assert state(store, version) == {"k": "ErasedError", "l": b"l"}
    assert_gone(tmp_path, secret())


def test_compacted_segments_and_copies(tmp_path: Path) -> None:
    """The bytes are in a compacted segment, in the segments that it was made of, and in a copy that another program brought."""
    versions: list[llvs.Version] = []
    for number in range(6):
        with opened(tmp_path, "file", compaction="on_request") as store:
            versions.append(store.make_version(versions[-1] if versions else None, update={"a": secret(number), "b": b"%d" % number}))
    segments = tmp_path / "store/segments"
    copy = next(segments.glob("*.seg")).read_bytes()
    name = next(segments.glob("*.seg")).stem
    with opened(tmp_path, "file", compaction="on_request") as store:
        assert store.compact().folded == 6
        (segments / f"{name} (conflict).seg").write_bytes(copy)
        report = store.erase("a")
        assert report.values == 6 and report.waiting == ()
        assert [state(store, version)["b"] for version in versions] == [b"%d" % number for number in range(6)]
        assert {state(store, version)["a"] for version in versions} == {"ErasedError"}
        assert_sound(store)
    assert_gone(tmp_path, *map(secret, range(6)))
    with opened(tmp_path, "file") as store:
        assert [state(store, version)["b"] for version in versions] == [b"%d" % number for number in range(6)]
        assert_sound(store)


@pytest.mark.parametrize("storage", DISK)
def test_records_of_the_same_length(tmp_path: Path, storage: str) -> None:
    """Another handle reads a record whose length did not change when its value was erased. In SQLite it is in the same row."""
    with opened(tmp_path, storage) as store, opened(tmp_path, storage) as other:
        versions = [store.make_version(insert={"a": b"%03d" % size + bytes(size)}, root=True) for size in range(64)]
        other.reload()
        known = [other.version(version.id) for version in versions]
        assert store.erase("a").values == len(versions)
        assert [other.version(version.id) for version in versions] == known
        for version in versions:
            assert state(other, version) == {"a": "ErasedError"} and [change.id for change in other.changes(version)] == ["a"]
        assert_sound(other)


def test_compacted_segments_that_are_gone(tmp_path: Path) -> None:
    """Handles that know records in segments which were compacted and deleted find them after an erasure."""
    versions: list[llvs.Version] = []
    with opened(tmp_path, "file", compaction="on_request") as other:
        for number in range(6):
            with opened(tmp_path, "file", compaction="on_request") as store:
                versions.append(store.make_version(insert={"a": secret(number), "b": b"%d" % number}, root=True))
        other.reload()
        with opened(tmp_path, "file", compaction="on_request", compaction_grace=0) as store:
            assert store.compact().folded == 6 and store.compact().deleted == 6
            report = store.erase("a", at=versions[0])
            assert report.values == 1 and report.waiting == ()
            for handle in (store, other):
                assert [state(handle, version)["b"] for version in versions] == [b"%d" % number for number in range(6)]
                # Until then it may have erased values in memory.
                handle.reload()
                for number, version in enumerate(versions):
                    assert state(handle, version) == {"a": secret(number) if number else "ErasedError", "b": b"%d" % number}
                assert_sound(handle)
    assert_gone(tmp_path, secret(0))


@pytest.mark.parametrize("storage", DISK)
def test_undo_finds_copies(tmp_path: Path, storage: str) -> None:
    path = tmp_path / ("store.db" if storage == "sqlite" else "store")
    with llvs.Coordinator(path, storage=storage, device="here") as album:  # type: ignore[arg-type]
        album.save(insert={"a": secret(), "b": b"b"})
        album.save(update={"a": b"harmless"})
        album.undo()
        assert album.get("a") == secret()
        report = album.store.erase("a")
        assert report.values >= 2 and report.waiting == ()
        album.merge()
        assert album.get("a") is None and album.get("b") == b"b"
        album.save(insert={"a": b"new"})
        assert album.get("a") == b"new"
    assert_gone(tmp_path, secret())


def test_a_storage_of_the_host_refuses(tmp_path: Path) -> None:
    """It has no way to replace records: nothing is ordered."""
    with llvs.Store(storage=llvs.storage.DictStorage()) as store:
        version = store.make_version(insert={"a": secret()})
        with pytest.raises(llvs.errors.UnsupportedError):
            store.erase("a")
        assert store.value("a", at=version).data == secret()  # type: ignore[union-attr]
        assert len(list(store.history())) == 1 and store.erasures() == []

