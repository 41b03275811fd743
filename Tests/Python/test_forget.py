"""Forgetting by a policy: what is kept, what goes, and what else a device then does."""

from __future__ import annotations

import hashlib
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Callable, Optional

import llvs
import pytest
from retained import DAY, pass_days
from test_erase_exchange import PLACES, carry, reads, remote

KEEP_HEADS = {"keep": {"days": 0}}
GONE = "ForgottenError"


@pytest.fixture(params=("file", "sqlite"))
def storage(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def opened(tmp_path: Path, storage: str) -> Callable[..., llvs.Store]:
    """Opens the store of a device."""

    def open(name: str = "a", policy: Optional[dict[str, Any]] = None, **options: Any) -> llvs.Store:
        store = llvs.Store(tmp_path / name, storage=storage, options=llvs.StoreOptions(**options))  # type: ignore[arg-type]
        if policy is not None:
            store.set_forgetting(policy)
        return store

    return open


def noise(seed: int, size: int = 60) -> bytes:
    return random.Random(seed).randbytes(size)


def line(store: llvs.Store, count: int, size: int = 60, id: str = "x", **options: Any) -> list[str]:
    """Makes versions one after another, each with another value."""
    made: list[str] = []
    for number in range(count):
        made.append(store.make_version(made[-1] if made else None, update={id: noise(number, size)}, **options).id)
    return made


def files_with(folder: Path, data: bytes) -> list[str]:
    return [path.name for path in folder.rglob("*") if path.is_file() and data in path.read_bytes()]


def kept(store: llvs.Store, made: list[str], id: str = "x") -> list[int]:
    """The indexes of the versions whose values can be read."""
    return [number for number, version in enumerate(made) if reads(store, version).get(id, GONE) != GONE]


def test_the_policy(opened: Callable[..., llvs.Store]) -> None:
    keep = {"branches": ["", "main*"], "count": 2, "daily": 3, "days": 30, "ids": {"log/": {"days": 7}, "log/a": {"days": 0, "count": 1}}}
    with opened() as store:
        store.set_forgetting({"erase": {"mode": "anyone"}})
        store.set_forgetting({"keep": keep})
        assert store.forgetting() == {"erase": {"mode": "anyone"}, "keep": keep}
        store.set_forgetting({"erase": {"mode": "members"}}, secrets=[b"what the devices of one person share"])
        store.set_forgetting({"keep": {"days": 1, "weekly": 0}})
    with opened() as store:
        assert store.forgetting() == {"erase": {"mode": "members"}, "keep": {"days": 1}}
        refused: list[tuple[type[Exception], Any]] = [
            (llvs.errors.UnsupportedError, {"cut": {"days": 30}}),
            (llvs.errors.UnsupportedError, {"keep": {"days": 30, "bytes": 1}}),
            (llvs.errors.InvalidArgumentError, {"keep": {}}),
            (llvs.errors.InvalidArgumentError, {"keep": {"daily": 3}}),
            (llvs.errors.InvalidArgumentError, {"keep": {"days": -1}}),
            (llvs.errors.InvalidArgumentError, {"keep": {"days": 100_001}}),
            (llvs.errors.InvalidArgumentError, {"keep": {"days": 2**64}}),
            (llvs.errors.InvalidArgumentError, {"keep": {"days": 1, "hourly": 1}}),
            (llvs.errors.InvalidArgumentError, {"keep": {"days": 1, "ids": {"": {"days": 1}}}}),
            (llvs.errors.InvalidArgumentError, {"keep": {"days": 1, "ids": {"a": {}}}}),
            (llvs.errors.InvalidArgumentError, {"keep": {"days": 1, "ids": {"a": {"days": 1, "ids": {}}}}}),
            (llvs.errors.InvalidArgumentError, {"keep": {"days": 1, "ids": {str(i): {"days": 1} for i in range(65)}}}),
            (llvs.errors.InvalidArgumentError, {"keep": {"days": 1, "branches": [str(i) for i in range(65)]}}),
            (llvs.errors.InvalidArgumentError, {"keep": [30]}),
        ]
        for error, policy in refused:
            with pytest.raises(error):
                store.set_forgetting(policy)
        with pytest.raises(llvs.errors.InvalidArgumentError):
            store.set_forgetting(KEEP_HEADS, secrets=[b"what the devices of one person share"])
        with pytest.raises(llvs.errors.InvalidArgumentError):
            store.forget(policy=KEEP_HEADS)
        assert store.forgetting()["keep"] == {"days": 1}
        store.set_forgetting({"keep": None})
        assert store.forgetting() == {"erase": {"mode": "members"}}
        with pytest.raises(llvs.errors.InvalidArgumentError, match="does not say what to keep"):
            store.forget()


def test_what_goes_and_what_stays(opened: Callable[..., llvs.Store], tmp_path: Path) -> None:
    with opened(policy=KEEP_HEADS) as store:
        made = line(store, 3)
        sizes = [70_000, 1_200_000]
        for id, size in zip(("larger", "vast"), sizes):
            made.append(store.make_version(made[-1], insert={id: noise(size, size)}).id)
        made.append(store.make_version(made[-1], update={"vast": b"small"}, remove=["larger"]).id)
        planned = store.forget(dry_run=True)
        assert kept(store, made) == [0, 1, 2, 3, 4, 5]
        report = store.forget()
        assert report == planned and (report.values, report.versions, report.bytes) == (4, 4, 120 + sum(sizes))
        assert report.waiting == () and {row.rule.value: row.values for row in report.rows if row.values} == {"heads": 2}
        assert kept(store, made) == [2, 3, 4, 5] and reads(store, made[4]) == {"x": noise(2), "larger": GONE, "vast": GONE}
        value = store.open_value("vast", at=made[4])
        assert value.size == sizes[1]
        assert [version.id for version in store.history()] == made[::-1] and store.erasures() == []
        checked = store.verify()
        assert (checked.damages, checked.pending) == ((), 0)
        assert store.forget().values == 0
        size = store.size()
        assert {row.name: row.value_bytes for row in size.by_kind}["hollow"] == report.bytes
    assert all(files_with(tmp_path, noise(size, size)[-40:]) == [] for size in sizes)
    assert files_with(tmp_path, noise(0)[-40:]) == [] and files_with(tmp_path, noise(2)[-40:]) != []
    assert not [path for path in tmp_path.rglob("*") if path.name.startswith(".erase") or path.suffix == ".blob"]
    with opened() as store:
        assert kept(store, made) == [2, 3, 4, 5]


def test_storages_that_cannot(tmp_path: Path) -> None:
    with llvs.Store("", storage="memory") as store:
        store.set_forgetting(KEEP_HEADS)
        made = line(store, 3)
        assert store.forget().values == 2 and kept(store, made) == [2]
    with llvs.Store(tmp_path / "a") as store:
        store.set_forgetting({"keep": {"days": 9}})
        line(store, 2)
    with llvs.Store(tmp_path / "a", read_only=True) as store:
        assert store.forget(dry_run=True).values == 0 and store.forget(dry_run=True, policy=KEEP_HEADS).values == 1
        with pytest.raises(llvs.errors.PermissionDeniedError):
            store.forget()
    with llvs.Store(storage=llvs.storage.DictStorage()) as store:
        for call in (lambda: store.set_forgetting(KEEP_HEADS), lambda: store.forget(dry_run=True, policy=KEEP_HEADS)):
            with pytest.raises(llvs.errors.UnsupportedError):
                call()


def test_days_count_from_the_arrival(opened: Callable[..., llvs.Store], tmp_path: Path, storage: str) -> None:
    """When a version was made does not matter, nor what its maker's clock said."""
    with opened("b") as other:
        old = time.time() - 900 * DAY
        made = line(other, 3)
        versions = [other.make_version(None, insert={"y": b"1"}, timestamp=old, root=True)]
        versions.append(other.make_version(versions[0], update={"y": b"2"}, timestamp=old + 1))
        data = other.pack()
    with opened(policy={"keep": {"days": 10}}) as store:
        own = line(store, 2, id="z")
    pass_days(tmp_path / "a", storage, 5)
    with opened() as store:
        store.unpack(data)
        assert store.forget().values == 0
        # By the times of the versions, as in a dry run of another policy.
        assert store.forget(dry_run=True, policy={"keep": {"days": 10}}).values == 1
    pass_days(tmp_path / "a", storage, 6)
    with opened() as store:
        # What was here when the policy was set; nothing of what came later.
        assert store.forget().values == 0 and kept(store, own, "z") == [0, 1]
    pass_days(tmp_path / "a", storage, 5)
    with opened() as store:
        assert kept(store, made) == [0, 1, 2]
        store.forget()
        assert kept(store, made) == [2] and kept(store, [v.id for v in versions], "y") == [1]
        # Nobody else is known to have these.
        assert kept(store, own, "z") == [0, 1]


def test_newest_values_and_prefixes(opened: Callable[..., llvs.Store]) -> None:
    policy = {"keep": {"days": 0, "count": 3, "ids": {"log/": {"days": 0}, "log/a": {"days": 0, "count": 2}}}}
    with opened(policy=policy) as store:
        made: list[str] = []
        for number in range(6):
            values = {id: b"%d of %s" % (number, id.encode()) for id in ("x", "log/1", "log/a1")}
            made.append(store.make_version(made[-1] if made else None, update=values).id)
        store.forget()
        assert kept(store, made, "x") == [3, 4, 5] and kept(store, made, "log/1") == [5] and kept(store, made, "log/a1") == [4, 5]


def test_days_weeks_and_months(opened: Callable[..., llvs.Store]) -> None:
    with opened() as store:
        made: list[str] = []
        noon = 1_767_614_400.0  # 2026-01-05 12:00 UTC, a Monday
        for number in range(120):
            values = {"x": b"%d" % number}
            made.append(store.make_version(made[-1] if made else None, update=values, timestamp=noon + number * DAY / 2).id)
        for name, most, expected in (("daily", 3, [116, 118, 119]), ("weekly", 2, [110, 119]), ("monthly", 9, [52, 108, 119])):
            policy = {"keep": {"days": 0, name: most}}
            report = store.forget(dry_run=True, policy=policy)
            assert report.values == 120 - len(expected), name
        store.set_forgetting({"keep": {"days": 0, "daily": 3, "weekly": 2, "monthly": 9}})
        store.forget()
        assert kept(store, made) == [52, 108, 110, 116, 118, 119]


def test_branches(opened: Callable[..., llvs.Store]) -> None:
    with opened() as store:
        root = store.make_version(None, insert={"x": b"root"}).id
        tips = {name: store.make_version(root, update={"x": name.encode()}, branch=name or None).id for name in ("", "try/1", "keep")}
        for branches, expected in ((["*"], 1), ([""], 3), (["try/*"], 3), (["", "keep"], 2)):
            policy = {"keep": {"days": 0, "branches": branches}}
            # The root stays: merges of the heads need it.
            assert store.forget(dry_run=True, policy=policy).values == expected - 1, branches
        store.set_forgetting({"keep": {"days": 0, "branches": ["", "keep"]}})
        assert store.forget().values == 1
        assert reads(store, tips["try/1"]) == {"x": GONE} and reads(store, tips["keep"]) == {"x": b"keep"}


def test_values_as_differences(opened: Callable[..., llvs.Store]) -> None:
    with opened(policy={"keep": {"days": 0, "count": 2}}, differences="on") as store:
        made, value = [], noise(1, 20_000)
        for number in range(12):
            value = value[: 1_000 * number] + b"edit %d" % number + value[1_000 * number :]
            made.append(store.make_version(made[-1] if made else None, update={"x": value}).id)
        report = store.forget()
        assert report.values == 10 and report.rewritten > 0
        assert kept(store, made) == [10, 11] and reads(store, made[11])["x"] == value
        made.append(store.make_version(made[-1], update={"x": value + b"more"}).id)
        assert store.forget().values == 1 and reads(store, made[-1])["x"] == value + b"more"
        assert store.verify().damages == ()


def test_closing_and_compacting(opened: Callable[..., llvs.Store], tmp_path: Path, storage: str) -> None:
    with opened(policy={"keep": {"days": 0, "ids": {"y": {"days": 1_000}}}}) as store:
        made = line(store, 3)
        store.compact()
        assert kept(store, made) == [2]
        made.append(store.make_version(made[-1], update={"x": noise(99)}).id)
    with opened() as store:
        # It was done on that day.
        assert kept(store, made) == [2, 3]
    pass_days(tmp_path / "a", storage, 2)
    with opened() as store:
        assert kept(store, made) == [2, 3]
    with opened() as store:
        assert kept(store, made) == [3]
        # It does not pay.
        made.append(store.make_version(made[-1], update={"x": b"short", "y": noise(5, 100_000)}).id)
        store.compact()
        assert kept(store, made) == [3, 4]
        store.forget()
        assert kept(store, made) == [4]


def test_beside_other_handles(opened: Callable[..., llvs.Store], tmp_path: Path, storage: str) -> None:
    with opened(policy=KEEP_HEADS) as store, opened() as other:
        made = line(other, 5)
        report = store.forget()
        assert report.values == 4
        # A file that is being written stays.
        assert len(report.waiting) == (1 if storage == "file" else 0)
        assert kept(store, made) == ([0, 1, 2, 3, 4] if report.waiting else [4]) == kept(other, made)
        made.append(other.make_version(made[-1], update={"x": noise(77)}).id)
        assert other.forget().values == (5 if report.waiting else 1)
        assert kept(other, made) == [5]
        store.reload()
        assert kept(store, made) == [5] and store.verify().damages == () == other.verify().damages


READER = """
import random, sys, llvs
path, storage, last = sys.argv[1:]
with llvs.Store(path, storage=storage) as store:
    print("ready", flush=True)
    count = 0
    while True:
        value = store.value("x", at=last)
        assert value is not None and len(value.data) == 3_000, value
        for version in store.history():
            try:
                value = store.value("x", at=version)
                assert value is not None and len(value.data) == 3_000
            except llvs.errors.ForgottenError:
                assert version.id != last
                count += 1
        if count > 50:
            break
        store.reload()
print("done", flush=True)
"""


def test_a_reading_process(opened: Callable[..., llvs.Store], tmp_path: Path, storage: str) -> None:
    """Another process reads on meanwhile, and never meets damage."""
    with opened(policy={"keep": {"days": 0, "count": 200}}) as store:
        last = line(store, 200, 3_000)[-1]
    reader = subprocess.Popen(
        [sys.executable, "-c", READER, str(tmp_path / "a"), storage, last], stdout=subprocess.PIPE, text=True, stderr=subprocess.STDOUT
    )
    assert reader.stdout is not None and reader.stdout.readline() == "ready\n"
    for count in (150, 100, 60, 20, 5, 1):
        with opened(policy={"keep": {"days": 0, "count": count}}) as store:
            assert store.forget().waiting == ()
    told, _ = reader.communicate()
    assert (told, reader.returncode) == ("done\n", 0)


# Exchanges


def mark(place: Path) -> dict[str, str]:
    """The files at a place, by what they have."""
    files = (path for path in place.rglob("*") if path.is_file())
    return {str(path.relative_to(place)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


@pytest.mark.parametrize("way", PLACES)
def test_places_keep_what_they_have(opened: Callable[..., llvs.Store], tmp_path: Path, way: str, storage: str) -> None:
    place = tmp_path / "place"
    with opened("a", KEEP_HEADS) as store, opened("b") as fresh:
        made = line(store, 6, 5_000)
        with llvs.Exchange(store, remote(place, way)) as exchange:
            assert len(exchange.send().versions) == 6
            before = mark(place)
            assert store.forget().values == 5
            for _ in range(2):
                # Nothing is sent again, and nothing taken back.
                assert exchange.retrieve().versions == () and exchange.send().versions == ()
                assert kept(store, made) == [5]
            if way in ("packed", "interchange"):
                assert {name: data for name, data in mark(place).items() if name in before} == before
        with llvs.Exchange(store, remote(place, way)) as exchange:
            assert exchange.send().versions == () and not exchange.verify().problems
        assert kept(store, made) == [5]
        with llvs.Exchange(fresh, remote(place, way)) as exchange:
            assert not exchange.retrieve().problems
        assert kept(fresh, made) == [0, 1, 2, 3, 4, 5]
        # A new place gets the versions as they are here.
        carry(way, store, fresh, tmp_path / "other")
        assert kept(fresh, made) == [0, 1, 2, 3, 4, 5]


def test_many_packs(opened: Callable[..., llvs.Store], tmp_path: Path, storage: str) -> None:
    """The place has all bytes, however many packs were sent before and after values were forgotten."""
    place = tmp_path / "place"
    with opened("a", KEEP_HEADS) as store, opened("b") as fresh:
        made: list[str] = []
        with llvs.Exchange(store, remote(place, "packed")) as exchange:
            for number in range(40):
                made.append(store.make_version(made[-1] if made else None, update={"x": noise(number, 2_000)}).id)
                assert not exchange.retrieve().problems and not exchange.send().problems
                if number % 7 == 6:
                    store.forget()
        assert kept(store, made)[-1] == 39 and len(kept(store, made)) < 8
        with llvs.Exchange(fresh, remote(place, "packed")) as exchange:
            assert not exchange.retrieve().problems
        assert kept(fresh, made) == list(range(40))


def test_what_nobody_else_has_stays(opened: Callable[..., llvs.Store], tmp_path: Path, storage: str) -> None:
    place = tmp_path / "place"
    with opened("a", KEEP_HEADS) as store:
        made = line(store, 3)
        with llvs.Exchange(store, remote(place, "packed")) as exchange:
            exchange.send()
            for number in range(3):
                made.append(store.make_version(made[-1], update={"x": noise(10 + number)}).id)
            report = store.forget()
            assert report.values == 2 and {row.rule.value: row.values for row in report.rows}["unsent"] == 2
            # What was shared last stays, since others build on it.
            assert kept(store, made) == [2, 3, 4, 5]
            exchange.send()
        assert store.forget().values == 3 and kept(store, made) == [5]


RULES = b'{"merge":1,"ids":{"n":{}}}'


def test_a_device_that_was_away_merges(opened: Callable[..., llvs.Store], tmp_path: Path, storage: str) -> None:
    """It has what it edited, whatever it and the others forgot meanwhile."""
    place = tmp_path / "place"

    def exchanged(store: llvs.Store) -> None:
        with llvs.Exchange(store, remote(place, "packed")) as exchange:
            assert not exchange.retrieve().problems and not exchange.send().problems

    with opened("a", KEEP_HEADS) as home, opened("b", KEEP_HEADS) as away, llvs.Store("", storage="memory") as whole:
        root = home.make_version(None, insert={"__llvs_schema": RULES, "n": b'{"a":1,"b":1}'})
        exchanged(home)
        exchanged(away)
        last = {home: root.id, away: root.id}
        for store, name in ((home, "a"), (away, "b")):
            for number in range(5):
                value = b'{"a":1,"b":%d}' % number if name == "b" else b'{"a":%d,"b":1}' % number
                last[store] = store.make_version(last[store], update={"n": value}).id
            if store is home:
                exchanged(home)
            store.forget()
        assert reads(home, root.id)["n"] == GONE and reads(away, root.id)["n"] == b'{"a":1,"b":1}'
        exchanged(away)
        away.forget()
        with pytest.raises(llvs.errors.ForgottenError) as met:
            home.unpack(away.pack())
            home.merge(last[home], last[away])
        assert (met.value.value_id, met.value.version_id) == ("n", root.id)
        merged = away.merge(last[home], last[away])
        assert reads(away, merged.id)["n"] == b'{"a":4,"b":4}'
        exchanged(away)
        exchanged(home)
        assert [head.id for head in home.heads()] == [merged.id] and reads(home, merged.id)["n"] == b'{"a":4,"b":4}'


@pytest.mark.parametrize("way", ("packed", "interchange"))
def test_bytes_that_a_merge_needs_come_back(opened: Callable[..., llvs.Store], tmp_path: Path, way: str, storage: str) -> None:
    place = tmp_path / "place"
    with opened("a", KEEP_HEADS) as home, opened("b") as away:
        root = home.make_version(None, insert={"__llvs_schema": RULES, "n": b'{"a":1,"b":1}'})
        carry(way, home, away, place)
        last = home.make_version(root, update={"n": b'{"a":2,"b":1}'})
        with llvs.Exchange(home, remote(place, way)) as exchange:
            exchange.send()
            home.forget()
            other = away.make_version(root, update={"n": b'{"a":1,"b":2}'})
            home.unpack(away.pack())
            with pytest.raises(llvs.errors.ForgottenError):
                home.merge(last, other)
            exchange.verify() if way == "packed" else exchange.retrieve()
            assert reads(home, root.id)["n"] == b'{"a":1,"b":1}'
            assert home.forget().values == 0  # it is still needed
            merged = home.merge(last, other)
            assert reads(home, merged.id)["n"] == b'{"a":2,"b":2}'
            exchange.send()
            home.forget()
            exchange.verify()
            assert reads(home, root.id)["n"] == GONE


def test_conflicts_are_kept_longer(opened: Callable[..., llvs.Store], tmp_path: Path, storage: str) -> None:
    with opened(policy={"keep": {"days": 5}}) as store:
        root = store.make_version(None, insert={"__llvs_schema": RULES, "n": b'{"a":1}'}).id
        sides = [store.make_version(root, update={"n": b'{"a":%d}' % number}).id for number in (2, 3)]
        merged = store.merge(*sides).id
        assert len(store.open_conflicts(merged)) == 1
        made = [root, *sides, merged, store.make_version(merged, update={"n": b'{"a":4}'}).id]
    pass_days(tmp_path / "a", storage, 2)
    opened().close()
    pass_days(tmp_path / "a", storage, 10)
    with opened() as store:
        store.forget()
        assert kept(store, made, "n") == [1, 2, 3, 4]
    pass_days(tmp_path / "a", storage, 12)
    with opened() as store:
        store.forget()
        assert kept(store, made, "n") == [4]


def test_snapshots(opened: Callable[..., llvs.Store], tmp_path: Path, storage: str) -> None:
    """A snapshot lacks what was forgotten. A device that begins with it takes the bytes from the place."""
    place = tmp_path / "place"
    with opened("a", KEEP_HEADS) as store, opened("b") as fresh:
        made = line(store, 4, 2_000)
        with llvs.Exchange(store, remote(place, "interchange")) as exchange:
            exchange.send()
            store.forget()
            exchange.put_snapshot()
        with llvs.Exchange(fresh, remote(place, "interchange")) as exchange:
            exchange.restore_snapshot()
            assert kept(fresh, made) == [3]
            assert not exchange.retrieve().problems
        assert kept(fresh, made) == [0, 1, 2, 3]
