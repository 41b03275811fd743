"""What takes space: `Store.size`, over all storages."""

from __future__ import annotations

import asyncio
import os
import random
from collections import defaultdict
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import llvs
import llvs.aio
import pytest
from test_host_storage import Recording

STORAGES = ("file", "sqlite", "memory", "host")
#: Bytes before each value in a record, and of a file of a value beside it.
BODY, FILE, BLOCK = 8, 64, 65_536


def total(rows: tuple[llvs.store.SizeRow, ...]) -> tuple[int, ...]:
    return tuple(sum(getattr(row, name) for row in rows) for name in ("values", "value_bytes", "bytes", "current_bytes", "past_bytes"))


def stored(size: int, storage: str) -> int:
    if storage == "file" and size > 1 << 20:
        return FILE + 4 * -(-size // BLOCK) + size
    return BODY + size


def expect_sums(report: llvs.store.SizeReport) -> None:
    """The groups add up as documented."""
    kinds = {row.name: row for row in report.by_kind}
    assert list(kinds) == ["record", "value", "blob", "cache", "other"]
    assert total(report.by_kind) == report[2:7]
    values = (kinds["value"], kinds["blob"])
    assert total(report.by_prefix) == total(values)
    assert total(report.by_month) == total(report.by_version) == total((*values, kinds["record"]))
    assert sum(row.current_bytes + row.past_bytes for row in values) == sum(row.bytes for row in values)


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("seed", range(3))
def test_sizes_are_those_of_what_was_saved(storage: str, seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    host = Recording()
    place: Any = host if storage == "host" else storage
    with llvs.Store(tmp_path / "notes", storage=place, options=llvs.StoreOptions(differences="off")) as store:
        states: dict[str, dict[str, tuple[str, int]]] = {}
        saved: list[tuple[str, str, int]] = []
        months: dict[str, str] = {}
        order: list[str] = []
        for step in range(25):
            base = None if not order else chance.choice(order) if chance.random() < 0.2 else order[-1]
            state = dict(states[base]) if base else {}
            changes: dict[str, bytes] = {}
            removed = []
            for id in ("a/x/1", f"a/{chance.randrange(3)}", "b/y/z", "c"):
                if chance.random() < 0.5:
                    continue
                if id in state and chance.random() < 0.3:
                    removed.append(id)
                    continue
                size = (1 << 20) + chance.randrange(200_000) if chance.random() < 0.05 else chance.randrange(3000)
                changes[id] = chance.randbytes(size)
            time = 1_600_000_000 + step * 3_000_000
            made = store.make_version(base, update=changes, remove=removed, timestamp=time).id
            for id in removed:
                del state[id]
            for id, data in changes.items():
                state[id] = (made, len(data))
                saved.append((made, id, len(data)))
            states[made] = state
            months[made] = datetime.fromtimestamp(time, timezone.utc).strftime("%Y-%m")
            order.append(made)
        now = {(made, id, size) for head in store.heads() for id, (made, size) in states[head.id].items()}

        def counts(of: list[tuple[str, str, int]]) -> tuple[int, ...]:
            current = sum(stored(one[2], storage) for one in of if one in now)
            past = sum(stored(one[2], storage) for one in of if one not in now)
            return len(of), sum(one[2] for one in of), current, past

        def told(row: Any) -> tuple[int, ...]:
            return row.values, row.value_bytes, row.current_bytes, row.past_bytes

        report = store.size()
        expect_sums(report)
        assert (report.versions, report.unread) == (25, 0) and told(report) == counts(saved)
        for row in report.by_prefix:
            assert told(row) == counts([one for one in saved if (one[1].partition("/")[0] + "/" if "/" in one[1] else "") == row.name])
        for row in report.by_month:
            assert told(row) == counts([one for one in saved if months[one[0]] == row.name])
        assert [row.name for row in report.by_month] == sorted(row.name for row in report.by_month)
        for row in report.by_version:
            assert told(row) == counts([one for one in saved if one[0] == row.name])
        assert [row.bytes for row in report.by_version] == sorted((row.bytes for row in report.by_version), reverse=True)
        kinds = {row.name: row.bytes for row in report.by_kind}
        if storage == "host":
            assert report.bytes == sum(map(len, host.records.values()))
        else:
            assert report.bytes == store.statistics().bytes
        if storage == "file":
            assert kinds["blob"] == sum(file.stat().st_size for file in (tmp_path / "notes/blobs").glob("*.blob"))

        ids = store.size("a/", depth=None)
        expect_sums(ids)
        assert {row.name: told(row) for row in ids.by_prefix} == {
            id: counts([one for one in saved if one[1] == id]) for _, id, _ in saved if id.startswith("a/")
        }
        deeper = store.size(depth=2)
        assert {row.name for row in deeper.by_prefix} <= {"a/", "a/x/", "b/y/", ""}
        expect_sums(deeper)
        short = store.size(limit=1)
        expect_sums(short)
        assert [row.combined for row in short.by_version] == [0, 24] and short.by_prefix[0] == report.by_prefix[0]


@pytest.mark.parametrize("storage", ["file", "sqlite"])
def test_differences_count_with_their_bytes(storage: Any, tmp_path: Path) -> None:
    with llvs.Store(tmp_path / "notes", storage=storage, options=llvs.StoreOptions(differences="on")) as store:
        text = "".join(f"{random.Random(i).random()} " for i in range(2_000)).encode()
        version = store.make_version(insert={"note": text})
        for i in range(20):
            version = store.make_version(version, update={"note": text[: 500 * i] + b"new" + text[500 * i :]})
        counted = store.statistics()
        report = store.size()
        expect_sums(report)
        assert report.values == 21 and counted.differences == 20
        assert report.value_bytes > counted.difference_value_bytes
        kinds = {row.name: row for row in report.by_kind}
        first = report.by_version[0]
        assert kinds["value"].bytes == counted.difference_bytes + 20 * BODY + first.past_bytes


def test_caches_are_a_kind(tmp_path: Path) -> None:
    for storage in ("file", "sqlite"):
        path = tmp_path / storage
        with llvs.Store(path, storage=storage) as store:
            version = None
            for i in range(3_000):
                version = store.make_version(version, insert={f"id/{i}": os.urandom(20)})
        with llvs.Store(path, storage=storage) as store:
            report = store.size()
            expect_sums(report)
            assert {row.name: row for row in report.by_kind}["cache"].bytes > 100_000
            assert report.bytes == store.statistics().bytes


def test_what_it_refuses(tmp_path: Path) -> None:
    store = llvs.Store(tmp_path / "notes")
    for depth, limit in ((0, 1), (1, 0), (-1, 1), (None, -5)):
        with pytest.raises(llvs.errors.InvalidArgumentError):
            store.size(depth=depth, limit=limit)
    empty = store.size()
    assert empty.versions == empty.values == 0 and empty.by_prefix == empty.by_month == empty.by_version == ()
    store.make_version(insert={"a": b"1"})
    with pytest.raises(llvs.CancelledError):
        store.size(progress=lambda progress: False)
    token = llvs.CancelToken()
    token.cancel()
    with pytest.raises(llvs.CancelledError):
        store.size(cancel=token)
    seen: list[int] = []
    store.size(progress=lambda progress: seen.append(progress.stage) or True)  # type: ignore[func-returns-value]
    assert set(seen) == {llvs.control.Stage.READING}
    assert asyncio.run(llvs.aio.call(store.size, "a", depth=None)).by_prefix[0].name == "a"
    store.close()
    with pytest.raises(llvs.ClosedError):
        store.size()
