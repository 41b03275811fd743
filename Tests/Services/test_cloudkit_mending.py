"""Damaged records of CloudKit, and records that other devices and apps write while these are repaired."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any, Iterator

import llvs
import pytest
from cloudkit import Record, Zone
from clouds import exchange, ids, save
from containers import Container
from service import Request


@pytest.fixture
def container(tmp_path: Path) -> Iterator[Container]:
    container = Container(tmp_path)
    yield container
    container.server.close()


class Mended:
    """A version with a damaged record that lists do not show yet, and the events before each attempt to repair it."""

    def __init__(self, container: Container, store: llvs.Store, folder: Path, monkeypatch: Any) -> None:
        exchange(store, container.place())
        self.container = container
        self.version = save(store, "new")
        folder.mkdir()
        other = Container(folder)
        exchange(store, other.place())
        self.whole = {key: dict(each) for key, each in other.records()[self.version.id].fields.items()}
        self.whole["appField"] = {"value": "of another app", "type": "STRING"}
        other.close()
        self.damaged = {**self.whole, "version": {"value": base64.b64encode(b"[1, {").decode(), "type": "BYTES"}}
        self.zone = next(zone for key, zone in container.service.zones.items() if key[2] == "notes")
        self.put(self.damaged, "77")
        container.service.stale = 1
        self.tries: list[str] = []
        #: What another device does before an attempt, by the attempt's number: the fields that it writes, or None if it removes the record.
        self.meanwhile: dict[int, Any] = {}
        inner = container.service._operate

        def operate(zone: Zone, operation: Any, request: Request) -> dict[str, Any]:
            name, kind = operation["record"]["recordName"], operation["operationType"]
            if name == self.version.id and (kind != "create" or self.tries):
                number = len(self.tries)
                self.tries.append(kind)
                if number in self.meanwhile:
                    self.put(self.meanwhile[number], f"78{number}")
            return inner(zone, operation, request)

        monkeypatch.setattr(container.service, "_operate", operate)

    def put(self, fields: Any, tag: str) -> None:
        fields, deleted = dict(fields or {}), fields is None
        self.zone.records[self.version.id] = Record(self.version.id, "LLVS_Version", fields, tag, 1, 1, deleted)
        if self.version.id not in self.zone.changes:
            self.zone.changes.append(self.version.id)

    @property
    def record(self) -> Record:
        return self.zone.records[self.version.id]


@pytest.fixture
def mended(container: Container, store: llvs.Store, tmp_path: Path, monkeypatch: Any) -> Mended:
    return Mended(container, store, tmp_path / "other", monkeypatch)


def send(container: Container, store: llvs.Store) -> llvs.exchange.ExchangeResult:
    with llvs.Exchange(store, container.place()) as way:
        return way.send()


def test_one_that_another_mends_meanwhile(container: Container, store: llvs.Store, new_store: Any, mended: Mended) -> None:
    """Another device repairs the record meanwhile. That record stays, with its own fields."""
    mended.meanwhile[0] = mended.whole
    assert send(container, store).sent == (mended.version.id,)
    assert mended.tries == ["update"] and mended.record.tag == "780" and mended.record.fields == mended.whole
    container.service.stale = 0
    assert set(exchange(new_store(), container.place()).retrieved) == ids(store)


@pytest.mark.parametrize("gone", [False, True])
def test_one_that_is_damaged_again(container: Container, store: llvs.Store, new_store: Any, mended: Mended, gone: bool) -> None:
    """The record is read again, and repaired in its present state. A removed one is created."""
    mended.meanwhile[0] = None if gone else {**mended.damaged, "valueChanges": {"value": "AAAA", "type": "BYTES"}}
    assert send(container, store).sent == (mended.version.id,)
    assert mended.tries == (["update", "create"] if gone else ["update", "update"])
    assert gone or mended.record.fields["appField"] == mended.whole["appField"]
    container.service.stale = 0
    assert set(exchange(new_store(), container.place()).retrieved) == ids(store)


def test_one_that_is_damaged_all_the_time(container: Container, store: llvs.Store, new_store: Any, mended: Mended) -> None:
    """After five attempts the version is a problem by its name. A later send repairs the record."""
    mended.meanwhile = {number: mended.damaged for number in range(100)}
    sent = send(container, store)
    assert not sent.sent and [each.name for each in sent.problems] == [mended.version.id]
    assert "other devices write it all the time" in sent.problems[0].reason and mended.tries == ["update"] * 5
    mended.meanwhile.clear()
    assert send(container, store).sent == (mended.version.id,)
    container.service.stale = 0
    assert set(exchange(new_store(), container.place()).retrieved) == ids(store)


def test_one_whose_changes_were_an_asset(container: Container, store: llvs.Store, new_store: Any, mended: Mended) -> None:
    """The repaired content is in one of the two fields, and the other is empty."""
    container.service.assets["old"] = b"[{"
    fields = {key: each for key, each in mended.damaged.items() if key != "valueChanges"}
    mended.put({**fields, "valueChangesAsset": {"value": {"receipt": "old", "size": 2}, "type": "ASSETID"}}, "79")
    assert send(container, store).sent == (mended.version.id,)
    assert mended.record.fields.keys() == mended.whole.keys()
    container.service.stale = 0
    assert set(exchange(new_store(), container.place()).retrieved) == ids(store)


def test_a_record_that_is_found_damaged_when_all_is_verified(container: Container, store: llvs.Store, new_store: Any) -> None:
    """The change tag is known from the verification, so the record is not read again."""
    exchange(store, container.place())
    zone = next(zone for key, zone in container.service.zones.items() if key[2] == "notes")
    record = zone.records[store.most_recent_head.id]
    record.fields["version"]["value"] = base64.b64encode(b"[1, {").decode()
    with llvs.Exchange(store, container.place()) as way:
        assert [each.code for each in way.verify().problems] == [llvs.ErrorCode.DAMAGED]
        asked = container.count(way.send)
    assert asked == ["POST /private/changes/zone", "POST /private/records/modify"]
    assert set(exchange(new_store(), container.place()).retrieved) == ids(store)


def test_a_record_of_another_kind(container: Container, store: llvs.Store, new_store: Any) -> None:
    """The version is a problem by its name after the first attempt, and the record stays. The version is sent once the record is gone."""
    exchange(store, container.place())
    version = save(store, "new")
    zone = next(zone for key, zone in container.service.zones.items() if key[2] == "notes")
    zone.records[version.id] = Record(version.id, "Photo", {}, "7", 1, 1)
    with llvs.Exchange(store, container.place()) as way:
        sent: list[llvs.exchange.ExchangeResult] = []
        asked = container.count(lambda: sent.append(way.send()))
        assert not sent[0].sent and [each.name for each in sent[0].problems] == [version.id]
        assert sent[0].problems[0].code == llvs.ErrorCode.FOREIGN_FILE and "another kind" in sent[0].problems[0].reason
        assert sum("lookup" in each for each in asked) <= 2 and zone.records[version.id].type == "Photo"
        del zone.records[version.id]
        assert way.send().sent == (version.id,)
    assert set(exchange(new_store(), container.place()).retrieved) == ids(store)


def test_a_removed_record_that_a_look_finds(container: Container, store: llvs.Store, mended: Mended, monkeypatch: Any) -> None:
    """A record marked as deleted counts as absent."""
    mended.meanwhile[0] = None
    answers = container.service.answer

    def answer(request: Request) -> Any:
        found = answers(request)
        if request.path.endswith("/records/lookup"):
            said = json.loads(found.body)
            said["records"] = [
                {"recordName": each["recordName"], "deleted": True} if each.get("serverErrorCode") == "NOT_FOUND" else each
                for each in said["records"]
            ]
            found.body = json.dumps(said).encode()
        return found

    monkeypatch.setattr(container.service, "answer", answer)
    assert send(container, store).sent == (mended.version.id,)
    assert mended.tries == ["update", "create"]
