"""Everything that the specification of merging inside values provides in Python, under its names, in one example."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Annotated

import llvs
import pytest
from llvs import models


@dataclass
class Phone:
    id: str
    number: str = ""


@models.model("contact/")
@dataclass
class Contact:
    name: str = ""
    tags: set[str] = field(default_factory=set)
    phones: Annotated[list[Phone], models.Key("id")] = field(default_factory=list)
    visits: Annotated[int, models.Counter()] = 0
    bio: Annotated[str, models.Text()] = ""


RULES = {"merge": 1, "ids": {"contact/": {"/tags": "set", "/bio": "text"}}}


def test_values_without_a_store() -> None:
    merged: llvs.merge.MergedValue = llvs.merge.merge_values(b'{"a":1}', b'{"a":2}', b'{"a":1,"b":1}', rules="auto")
    assert (merged.data, merged.records) == (b'{"a":2,"b":1}', ())
    assert llvs.merge.merge_values(None, b'{"n":1}', b'{"n":2}', rules={"/n": "counter"}).data == b'{"n":3}'
    assert llvs.merge.merge_values(b"1", None, b"1").data is None


def test_a_store_and_a_coordinator() -> None:
    place = "memory:documents-names"
    with llvs.Coordinator(storage="memory", exchange=place, schema=RULES, device="one") as notes:
        notes.save(insert={"contact/1": b'{"name":"Ann"}'})
        store, base = notes.store, notes.current_version.id
        a, b = (store.make_version(base, update={"contact/1": json.dumps({"name": name}).encode()}) for name in ("Anna", "Anne"))
        found: llvs.merge.Conflicts = store.conflicts(a, b)
        (conflict,) = found["contact/1"]
        assert (conflict.path, conflict.kind.value, conflict.rule) == (("name",), "pick", None)
        assert (conflict.base, conflict.newer, conflict.older) == (b'"Ann"', b'"Anne"', b'"Anna"')
        merged = store.merge(a, b, arbiter=llvs.Rules(RULES))
        assert store.explain(merged)["contact/1"][0].result == b'"Anne"'
        together = store.merge(a, b, arbiter=llvs.merge.ValueMerger(lambda id, base, newer, older: older))
        assert json.loads(store.at(together)["contact/1"]) == {"name": "Anne"}, "for values that no rules are for"

        notes.current_version = merged.id
        notes.choose(notes.open_conflicts()["contact/1"][0], "older")
        assert json.loads(notes["contact/1"]) == {"name": "Anna"} and not notes.open_conflicts()
        notes.save(update={"contact/2": b"{}"}, description="add one")
        assert notes.can_undo and notes.undo_description == "add one"
        undone = notes.undo()
        assert undone and undone.version and undone.undone == ("contact/2",) and undone.superseded == ()
        assert notes.redo() is not None and "contact/2" in notes
        elsewhere = store.make_version(base, update={"contact/3": b"{}"})
        picked: llvs.merge.Reverted = store.cherry_pick(elsewhere, onto=notes.current_version)
        assert picked.version and "contact/3" in store.at(picked.version) and "contact/3" not in notes
        assert notes.revert(notes.current_version).version and "contact/2" not in notes

        with notes.transaction() as values:
            values["counter"] = b"1"
        moved = notes.current_version.id
        assert notes.save(update={"counter": b"2"}, expected=moved)
        with pytest.raises(llvs.MovedError):
            notes.save(update={"counter": b"3"}, expected=moved)
        assert [kind.value for _, kind in store.value_history("counter")] == ["update", "insert"]
        assert store.version_at(datetime.now(timezone.utc)) is not None
        steps = list(store.replay("counter", moved, notes.current_version))
        assert [change.data for step in steps for change in step.changes] == [b"2"]


def test_a_model() -> None:
    with llvs.Coordinator(storage="memory") as notes:
        people = notes.collection(Contact)
        people["1"] = Contact("Ann")
        version = notes.current_version.id
        with people.edit("1") as ann:
            ann.tags.add("x")
        assert people["1"].name == "Ann" and people["1"].tags == {"x"} and people.at(version)["1"].tags == set()
