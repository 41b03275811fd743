"""Data for user interfaces: who set the sides of a conflict, the history of an object, forms that stay open, one bad value."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Optional

import llvs
import pytest
from hypothesis import given, settings, strategies as st
from sampling import sample


@llvs.models.model("contact/")
@dataclass
class Contact:
    name: str = ""
    town: str = ""
    tags: set[str] = field(default_factory=set)


def data(**members: Any) -> bytes:
    return json.dumps(members, sort_keys=True).encode()


def test_who_set_the_sides() -> None:
    with llvs.Store(storage="memory") as store:
        root = store.make_version(insert={"a": data(x=0), "b": b"1"}, timestamp=100.0)
        one = store.make_version(root, update={"a": data(x=1)}, timestamp=200.0, metadata={"__llvs_device": "laptop"})
        # This later version changes another value, so it does not decide which side is newer.
        above = store.make_version(one, update={"b": b"2"}, timestamp=400.0)
        two = store.make_version(root, update={"a": data(x=2)}, timestamp=300.0, metadata={"__llvs_device": "phone"})
        merged = store.merge(above, two, llvs.Rules({"merge": 1, "ids": {"": "auto"}}))
        newer, older = store.sides("a", *merged.predecessors)
        assert newer.by is not None and older.by is not None
        assert (newer.by.id, older.by.id, newer.by.device, older.by.device) == (two.id, one.id, "phone", "laptop")
        assert (newer.at, older.at) == (two.id, above.id) and newer.reference == llvs.store.Reference("a", two.id)
        assert store.sides("a", two, above) == (newer, older), "in any order"
        # If one side removed the value, the side that has it is the newer, whenever it was removed.
        gone = store.make_version(root, remove=["a"], timestamp=500.0)
        newer, older = store.sides("a", gone, two)
        assert newer.at == two.id and older.reference is None and older.by is not None and older.by.id == gone.id
        assert store.sides("none", one, two).newer.by is None
        with pytest.raises(llvs.errors.UnknownVersionError):
            store.sides("a", one, "nowhere")


def test_a_merge_makes_nothing_newer() -> None:
    with llvs.Store(storage="memory") as store:
        rules = llvs.Rules({"merge": 1, "ids": {"": "auto"}})
        root = store.make_version(insert={"a": data(x=0, y=0, z=0)}, timestamp=100.0)
        sides = [store.make_version(root, update={"a": data(**{"x": 0, "y": 0, "z": 0, name: 1})}, timestamp=time)
                 for name, time in (("x", 200.0), ("y", 300.0))]
        merged = store.merge(*sides, rules)
        third = store.make_version(root, update={"a": data(x=2, y=2, z=0)}, timestamp=250.0)
        assert merged.timestamp > 250.0
        newer, older = store.sides("a", merged, third)
        assert newer.at == merged.id and newer.by is not None and newer.by.id == sides[1].id
        assert older.by is not None and older.by.id == third.id


@settings(max_examples=sample(20, 60))
@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30), st.integers(1, 40), st.integers(0, 3)), min_size=2, max_size=10))
def test_the_engine_takes_the_same_side_for_the_newer(steps: list[tuple[int, int, int, int]]) -> None:
    with llvs.Store(storage="memory") as store:
        versions = [store.make_version(insert={"a": data(x=0), "b": b"0"}, timestamp=1.0)]
        for number, (left, right, time, what) in enumerate(steps):
            on, other = versions[left % len(versions)], versions[right % len(versions)]
            if what == 0 and on != other:
                versions.append(store.merge(on, other))
            elif what == 1:
                versions.append(store.make_version(on, update={"b": str(number).encode()}, timestamp=on.timestamp + time))
            elif what == 2 and number % 3 == 0:
                versions.append(store.make_version(on, remove=["a"], timestamp=on.timestamp + time))
            else:
                versions.append(store.make_version(on, update={"a": data(x=number + 1)}, timestamp=on.timestamp + time))
        for a in versions[-4:]:
            for b in versions[-4:]:
                for record in store.conflicts(a, b, id="a", rules="auto").records:
                    newer, older = store.sides("a", a, b)
                    assert [_told(record.newer, record.path), _told(record.older, record.path)] == [_at(store, newer), _at(store, older)]


def _told(text: Optional[bytes], path: Any) -> Any:
    """The member x, of a conflict about it or about the whole value."""
    found = None if text is None else json.loads(text)
    return found if found is None or path else found["x"]


def _at(store: llvs.Store, side: llvs.merge.MergeSide) -> Any:
    found = store.value("a", at=side.at)
    return None if found is None else json.loads(found.data)["x"]


def test_the_history_of_an_object() -> None:
    with llvs.Coordinator(storage="memory", device="laptop") as notes:
        people = notes.collection(Contact)
        people.save({"1": Contact("Ann")}, description="Add Ann")
        people["2"] = Contact("Bob")
        with people.edit("1", description="Ann has moved") as ann:
            ann.town = "Bonn"
        notes.save(update={"contact/1": b'{"name":5}'})
        del people["1"]
        past = list(people.history("1"))
        assert [one.kind.value for one in past] == ["remove", "update", "update", "insert"]
        assert [one.object for one in past] == [None, None, Contact("Ann", "Bonn"), Contact("Ann")]
        assert past[0].problem is None and isinstance(past[1].problem, llvs.models.DecodeError) and past[2].problem is None
        assert (past[2].version.description, past[2].version.device) == ("Ann has moved", "laptop")
        assert past[1].version.description is None
        assert list(people.history("3")) == []


def test_device_and_description_that_others_wrote() -> None:
    with llvs.Store(storage="memory") as store:
        version = store.make_version(insert={"a": b"1"}, metadata={"__llvs_device": 5, "__llvs_description": b"\xff"})
        assert version.device is None and version.description is None


def test_a_form_that_was_open_meanwhile() -> None:
    with llvs.Coordinator(storage="memory") as notes:
        people = notes.collection(Contact)
        people["1"] = Contact("Ann", "Ulm", {"friend"})
        opened = notes.current_version.id
        with people.edit("1") as ann:
            ann.town = "Bonn"
            ann.tags.add("choir")
        # The form sets all members. All except the name have the values from when the form was opened.
        with people.edit("1", at=opened) as ann:
            ann.name, ann.town, ann.tags = "Anne", "Ulm", {"friend", "work"}
        assert people["1"] == Contact("Anne", "Bonn", {"friend", "choir", "work"})
        before = notes.current_version.id
        with people.edit("1", at=opened):
            pass
        assert notes.current_version.id == before
        with pytest.raises(llvs.errors.UnknownVersionError), people.edit("1", at="nowhere"):
            pass


def test_one_bad_value_does_not_empty_a_list() -> None:
    with llvs.Coordinator(storage="memory") as notes:
        people = notes.collection(Contact)
        people.update({"1": Contact("Ann"), "2": Contact("Bob")})
        notes.save(update={"contact/3": b"[", "contact/4": b'{"town":1}', "other": b"x"})
        found, problems = people.read_all()
        assert found == {"1": Contact("Ann"), "2": Contact("Bob")} and sorted(problems) == ["3", "4"] == sorted(people.problems())
