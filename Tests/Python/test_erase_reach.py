"""Where else the bytes of erased values may be: what a device can know is said, and what it cannot."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Callable, Optional

import llvs
import pytest
from llvs.store import ErasureReach, ErasureReason
from llvs.syncer import SyncEvent
from test_erase_exchange import PLACES, SECRETS, linked
from test_erase_orders import MEMBERS, SHARED, opened, storage
from test_erase_places import exchanged
from waiting import eventually

__all__ = ["opened", "storage"]
PENDING, GONE, BEYOND = ErasureReach.PENDING, ErasureReach.GONE, ErasureReach.OUT_OF_REACH
BACKUPS = ("", BEYOND, ErasureReason.BACKUP)
Row = tuple[str, ErasureReach, ErasureReason]


def rows(found: tuple[llvs.store.ErasurePlace, ...], kind: Optional[ErasureReason] = None) -> list[Row]:
    """Without what depends on the file system of the test."""
    shown = [(place.name, place.reach, place.reason) for place in found if place.reason is not ErasureReason.MEDIUM]
    return shown if kind is None else [row for row in shown if row[2] is kind]


def of_place(found: tuple[llvs.store.ErasurePlace, ...], place: Path) -> list[tuple[ErasureReach, ErasureReason]]:
    return [row[1:] for row in rows(found) if str(place) in row[0] and row[2] is not ErasureReason.DEVICE]


def test_a_store_that_was_sent_nowhere(opened: Callable[..., llvs.Store]) -> None:
    """Nothing is ever erased everywhere: backups are named all the same."""
    with opened("a", None) as store:
        store.make_version(insert={**SECRETS, "note": b"1"})
        assert rows(store.erase("small", dry_run=True).places) == [BACKUPS]
        assert store.erase("no such id").places == ()
        assert rows(store.erase("small").places) == [BACKUPS] and rows(store.erasures()[0].places) == [BACKUPS]


@pytest.mark.parametrize("way", PLACES)
def test_a_place(way: str, opened: Callable[..., llvs.Store], tmp_path: Path) -> None:
    """It is pending until the next exchange, for each order by itself, also after the store was opened anew."""
    place = tmp_path / "place"
    foreign = [] if way in ("packed", "encrypted") else [(BEYOND, ErasureReason.FOREIGN)]
    with opened("a") as store:
        store.make_version(insert={**SECRETS, "note": b"1"})
        exchanged(store, place, way)
    with opened("a") as store:
        assert of_place(store.erase("small", dry_run=True).places, place) == [(PENDING, ErasureReason.EXCHANGE), *foreign]
        assert of_place(store.erase("small").places, place) == [(PENDING, ErasureReason.EXCHANGE), *foreign]
        exchanged(store, place, way)
        assert of_place(store.erasures()[0].places, place) == [(GONE, ErasureReason.NONE), *foreign]
        store.erase("vast")
        first, second = store.erasures()
        assert of_place(first.places, place) == [(GONE, ErasureReason.NONE), *foreign]
        assert of_place(second.places, place) == [(PENDING, ErasureReason.EXCHANGE), *foreign]
    with opened("a") as store:
        exchanged(store, place, way, sends=False)
        assert of_place(store.erasures()[1].places, place) == [(PENDING, ErasureReason.EXCHANGE), *foreign]
        exchanged(store, place, way)
        for order in store.erasures():
            assert of_place(order.places, place) == [(GONE, ErasureReason.NONE), *foreign] and rows(order.places)[-1] == BACKUPS
            assert all(seen.last_seen > 1_700_000_000 for seen in order.places if str(place) in seen.name)


@pytest.mark.parametrize("way", PLACES)
def test_a_device_that_erases_for_itself_alone(way: str, opened: Callable[..., llvs.Store], tmp_path: Path) -> None:
    """Its exchanges clean no place."""
    with opened("a", None) as store:
        store.make_version(insert={**SECRETS, "note": b"1"})
        exchanged(store, tmp_path / "place", way)
        store.erase("small")
        exchanged(store, tmp_path / "place", way)
        assert of_place(store.erasures()[0].places, tmp_path / "place")[0] == (BEYOND, ErasureReason.POLICY)


def test_devices(opened: Callable[..., llvs.Store], tmp_path: Path) -> None:
    """Other writers of a place, and devices of links, are pending until they are seen again. Then they decide themselves."""
    place = tmp_path / "place"
    with opened("a") as a, opened("b") as b, opened("c") as c:
        head = a.make_version(insert={**SECRETS, "note": b"1"})
        linked(a, c)
        exchanged(a, place, "packed")
        exchanged(b, place, "packed")
        b.make_version(head, update={"note": b"2"})
        exchanged(b, place, "packed")
        exchanged(a, place, "packed")
        found = rows(a.erase("small").places, ErasureReason.DEVICE)
        assert [row[1] for row in found] == [PENDING, PENDING] and any(str(place) in row[0] for row in found)
        assert all(row[1] is not GONE for row in rows(a.erasures()[0].places, ErasureReason.DEVICE))


def test_streams(opened: Callable[..., llvs.Store]) -> None:
    with opened("a") as store:
        store.make_version(insert={**SECRETS, "note": b"1"})
        store.pack()
        store.erase("small")
        assert [row[1] for row in rows(store.erasures()[0].places, ErasureReason.STREAM)] == [BEYOND]


def test_an_order_that_does_not_count(opened: Callable[..., llvs.Store]) -> None:
    """It says nothing of places."""
    with opened("a") as a, opened("b", None) as b:
        a.make_version(insert={**SECRETS, "note": b"1"})
        a.erase("small")
        b.unpack(a.pack())
        assert [(order.state.value, order.places) for order in b.erasures()] == [("not valid", ())]


def test_events_of_a_syncer(tmp_path: Path) -> None:
    """An order of another device is announced, and then followed: each is in the status of an event."""
    seldom: dict[str, Any] = {"after_save": 0.05, "after_saves": 0.5, "poll": 10_000.0, "longest_poll": 10_000.0}
    events: list[tuple[int, int, int, int]] = []

    def hear(event: SyncEvent) -> None:
        status = event.status
        events.append((status.erasures_followed, status.erasures_waiting, status.erasures_announced, status.erasures_held))

    with llvs.Coordinator(tmp_path / "a.llvs", exchange=tmp_path / "place") as a:
        with llvs.Coordinator(tmp_path / "b.llvs", exchange=tmp_path / "place") as b:
            a.store.set_forgetting(MEMBERS, secrets=[SHARED])
            b.store.set_forgetting({"erase": {**MEMBERS["erase"], "delay": 3_600}}, secrets=[SHARED])
            a.save(insert={"secret": b"to be erased", "note": b"1"})
            with llvs.Syncer(a, **seldom), llvs.Syncer(b, hear, **seldom) as syncer:
                eventually(lambda: "secret" in b)
                assert set(events) == {(0, 0, 0, 0)}
                a.store.erase("secret")
                eventually(lambda: (0, 0, 1, 0) in events)
                b.store.decide_erasure(b.store.erasures()[0].id, keep=False)
                syncer.run()
                eventually(lambda: events[-1] == (1, 0, 0, 0))
                assert syncer.status.erasures_followed == 1
