"""Two devices upgrade one value independently: the merge has one upgrade and the edits of both, or the upgrade is refused."""

from __future__ import annotations

import itertools
import json
import warnings
from dataclasses import dataclass, field
from typing import Annotated, Any, Callable, Iterator, Mapping, Optional

import llvs
import pytest
from documents import json_model as j
from documents import merge as m
from documents import rules as r
from documents.forms import kept
from llvs import models

PLACES = map("memory:test_model_upgrades-{}".format, itertools.count())
Upgrade = Callable[[dict[str, Any]], dict[str, Any]]


@dataclass
class Phone:
    id: str = ""
    calls: Annotated[int, models.Counter()] = 0
    note: Annotated[str, models.Text()] = ""


def model_of(*upgrades: Upgrade, rules: Mapping[str, Any] = {}) -> Any:
    @models.model("c/", upgrades=upgrades, rules=rules)
    @dataclass
    class Contact:
        name: str = ""
        note: str = ""
        visits: Annotated[int, models.Counter()] = 0
        stock: Annotated[int, models.Counter()] = 100
        bio: Annotated[str, models.Text()] = ""
        body: Annotated[Optional[str], models.Text()] = "Dear"
        phones: list[Phone] = field(default_factory=list)
        by_name: dict[str, Phone] = field(default_factory=dict)

    return Contact


def to_visits(contact: dict[str, Any]) -> dict[str, Any]:
    contact["visits"] = contact.get("count", 0)
    return contact


RENAMES = {
    "schema": {"at": "/form", "renames": [{"to": 2, "from": "/count", "path": "/visits"}, {"to": 3, "from": "/old", "path": "/bio"}]}
}


def edited_on_two(model: Any, data: bytes, one: Callable[[Any], None], other: Callable[[Any], None]) -> dict[str, Any]:
    """Returns the value after both devices edited it, and synced."""
    place = next(PLACES)
    with llvs.Coordinator(storage="memory", exchange=place) as a, llvs.Coordinator(storage="memory", exchange=place) as b:
        a.save(insert={"c/1": data})
        a.sync()
        b.sync()
        for device, edit in ((a, one), (b, other)):
            with device.collection(model).edit("1") as contact:
                edit(contact)
        for device in (a, b, a):
            device.sync()
        assert a["c/1"] == b["c/1"] and not a.open_conflicts().records
        found: dict[str, Any] = json.loads(a["c/1"])
        return found


def name(contact: Any) -> None:
    contact.name, contact.visits = "Anne", contact.visits + 1


def note(contact: Any) -> None:
    contact.note, contact.visits = "hi", contact.visits + 1


@pytest.mark.parametrize("upgrade,data,member,told", [
    (to_visits, {"count": 100}, "/visits", "a counter that the upgrade makes 100 of 0"),
    (lambda c: {**c, "visits": c["visits"] * 2}, {"visits": 4}, "/visits", "makes 8 of 4"),
    (lambda c: {**c, "visits": 4}, {"visits": "4"}, "/visits", 'makes 4 of "4"'),
    (lambda c: {"name": c["name"]}, {"name": "Ann", "visits": 4}, "/visits", "makes 0 of 4"),
    (lambda c: {**c, "stock": 0}, {}, "/stock", "makes 0 of 100"),
    (lambda c: {**c, "bio": c["note"]}, {"note": "She sings."}, "/bio", 'a text that the upgrade makes "She sings." of ""'),
    (lambda c: {**c, "body": "Dear Ann"}, {}, "/body", 'makes "Dear Ann" of "Dear"'),
    (lambda c: {**c, "phones": [{"id": "home", "calls": c["calls"]}]}, {"calls": 3}, "/phones/0/calls", "makes 3 of 0"),
    (lambda c: {**c, "phones": [{"id": "x"}, *c["phones"], {"id": "y", "note": "a"}]}, {"phones": [{"id": "h", "calls": 3}]},
     "/phones/2/note", 'makes "a" of ""'),
    (lambda c: {**c, "by_name": {"a/b": {"id": "a", "calls": 1}}}, {"by_name": {"a/b": {"id": "a"}}}, "/by_name/a~1b/calls",
     "makes 1 of 0"),
])  # fmt: skip
def test_what_would_be_there_twice_is_refused(upgrade: Upgrade, data: Any, member: str, told: str) -> None:
    text = json.dumps(data).encode()
    with llvs.Coordinator(storage="memory") as notes:
        notes.save(insert={"c/1": text})
        people = notes.collection(model_of(upgrade))
        with pytest.raises(models.DecodeError) as raised:
            people["1"]
        assert raised.value.member == member and told in str(raised.value) and "two devices" in str(raised.value)
        with pytest.raises(models.DecodeError):
            people["1"] = people.model("Anne")
        assert notes["c/1"] == text


@pytest.mark.parametrize("upgrade,data", [
    (to_visits, {}),
    (lambda c: {**c, "stock": 100, "body": "Dear", "bio": ""}, {}),
    (lambda c: {**c, "visits": 4.0, "town": "Ulm"}, {"visits": 4}),
    (lambda c: {**c, "phones": [{"id": "x"}, *c["phones"][::-1]]}, {"phones": [{"id": "a", "calls": 3}, {"id": "b", "note": "b"}]}),
    (lambda c: {**c, "phones": [*c["phones"], {"id": "y", "calls": 0, "note": ""}]}, {"phones": []}),
    (lambda c: {**c, "by_name": {"a": {"id": "a", "other": 1}}}, {"by_name": 5}),
])  # fmt: skip
def test_what_is_there_once(upgrade: Upgrade, data: Any) -> None:
    found = edited_on_two(model_of(upgrade), json.dumps(data).encode(), name, note)
    assert (found["name"], found["note"], found["visits"]) == ("Anne", "hi", data.get("visits", 0) + 2)


def test_values_that_are_merged_as_wholes_are_upgraded() -> None:
    model = model_of(lambda c: {**c, "name": "Ann"}, rules={"": models.Register()})
    with llvs.Coordinator(storage="memory") as notes:
        notes.save(insert={"c/1": b'{"visits":5,"bio":"hello"}'})
        read = notes.collection(model)["1"]
        assert (read.name, read.visits, read.bio) == ("Ann", 5, "hello")


@pytest.mark.parametrize("data,visits", [({"count": 100}, 102), ({"form": 2, "visits": 7, "count": 3}, 9), ({}, 2)])
def test_renames_of_the_rules_are_there_once(data: Any, visits: int) -> None:
    """The base has the renamed members as well: the merge brings it into the newest form."""
    def to_bio(contact: dict[str, Any]) -> dict[str, Any]:
        contact["bio"] = contact.get("old", "")
        return contact

    def change(contact: Any) -> None:
        name(contact)
        contact.bio += " well."

    model = model_of(to_visits, to_bio, rules=RENAMES)
    found = edited_on_two(model, json.dumps({**data, "old": "She sings"}).encode(), change, note)
    assert (found["form"], found["visits"], found["bio"], found["name"], found["note"]) == (3, visits, "She sings well.", "Anne", "hi")


def test_an_upgrade_that_does_more_than_its_renames() -> None:
    def more(contact: dict[str, Any]) -> dict[str, Any]:
        contact["visits"] = contact["count"] + 1
        return contact

    with llvs.Coordinator(storage="memory") as notes:
        notes.save(insert={"c/1": b'{"count":100}', "c/2": b'{"count":100,"x":' + b"[" * 130 + b"]" * 130 + b"}"})
        people = notes.collection(model_of(more, rules=RENAMES))
        for id in "12":
            with pytest.raises(models.DecodeError, match="makes 101 of"):
                people[id]


def test_a_new_text_with_a_default_is_there_once() -> None:
    def one(contact: Any) -> None:
        contact.body = "Hello! Dear"

    def other(contact: Any) -> None:
        contact.body += " Bob"

    assert edited_on_two(model_of(), b'{"name":"Ann"}', one, other)["body"] == "Hello! Dear Bob"


def several_phones(contact: dict[str, Any]) -> dict[str, Any]:
    contact["phones"] = [contact["phone"]] if contact.get("phone") else []
    return contact


@models.model("p/", upgrades=[several_phones])
@dataclass
class Person:
    name: str = ""
    note: Optional[str] = None
    visits: Annotated[int, models.Counter()] = 0
    phones: list[str] = field(default_factory=list)


@pytest.fixture
def devices() -> Iterator[tuple[llvs.Coordinator, llvs.Coordinator]]:
    """Two devices with a value of the first form. An edit of the first device brought it into the second form, and both have that edit."""
    place = next(PLACES)
    with (
        llvs.Coordinator(storage="memory", exchange=place, device="a") as a,
        llvs.Coordinator(storage="memory", exchange=place, device="b") as b,
    ):
        b.save(insert={"p/1": b'{"name":"Ann","phone":"11"}'})
        for one in (b, a):
            one.sync()
        with a.collection(Person).edit("1") as ann:
            ann.name = "Anne"
        for one in (a, b):
            one.sync()
        yield a, b


def add_phone(person: Person) -> None:
    person.phones.append("12")


def add_note(person: Person) -> None:
    person.note = "hi"


@pytest.mark.parametrize("is_known", [True, False])
@pytest.mark.parametrize("change,phones,text", [(add_phone, ["11", "12"], None), (add_note, ["11"], "hi")])
def test_an_undone_upgrade_does_not_run_again_over_what_others_did(
    devices: tuple[llvs.Coordinator, llvs.Coordinator], change: Callable[[Person], None], phones: list[str], text: Optional[str],
    is_known: bool,
) -> None:
    a, b = devices
    if not is_known:  # beside what b does
        assert a.undo() is not None
    with b.collection(Person).edit("1") as ann:
        change(ann)
    for one in (b, a, b, a):
        one.sync()
    if is_known:
        assert a.undo() is not None
    found = json.loads(a["p/1"])
    assert (found["form"], found["name"], found["phones"], found["phone"]) == (2, "Ann", phones, "11")
    assert a.collection(Person)["1"] == Person("Ann", text, phones=phones)
    assert a.redo() is not None
    assert a.collection(Person)["1"] == Person("Anne", text, phones=phones) and json.loads(a["p/1"])["form"] == 2


def test_an_upgrade_that_is_undone_where_nothing_else_was_done_stays(devices: tuple[llvs.Coordinator, llvs.Coordinator]) -> None:
    a, _ = devices
    undone = a.undo()
    assert undone is not None and undone.superseded == ("p/1",) and not undone.conflicts
    assert json.loads(a["p/1"]) == {"form": 2, "name": "Ann", "phone": "11", "phones": ["11"]}


def test_edits_that_are_undone_one_by_one_stay_undone(devices: tuple[llvs.Coordinator, llvs.Coordinator]) -> None:
    a, b = devices
    with a.collection(Person).edit("1") as ann:
        ann.note = "secret"
    with a.collection(Person).edit("1") as ann:
        ann.visits = 5
    for one in (a, b):
        one.sync()
    assert [getattr(a.undo(), "superseded") for _ in range(3)] == [(), (), ("p/1",)]
    with b.collection(Person).edit("1") as ann:
        ann.phones.append("12")
    for one in (b, a, b, a):
        one.sync()
    assert json.loads(a["p/1"]) == {"form": 2, "name": "Ann", "phone": "11", "phones": ["11", "12"]} == json.loads(b["p/1"])


@pytest.mark.parametrize("is_known", [True, False])
def test_the_first_increment_is_undone_with_the_edit_that_upgraded(is_known: bool) -> None:
    place = next(PLACES)
    with (
        llvs.Coordinator(storage="memory", exchange=place, device="a") as a,
        llvs.Coordinator(storage="memory", exchange=place, device="b") as b,
    ):
        b.save(insert={"p/1": b'{"name":"Ann","phone":"11"}'})
        for one in (b, a):
            one.sync()
        with a.collection(Person).edit("1") as ann:
            ann.name, ann.visits, ann.note = "Anne", 1, "mine"
        for one in (a, b):
            one.sync()
        with b.collection(Person).edit("1") as ann:
            ann.visits += 1
        for one in (b, a) if is_known else ():
            one.sync()
        undone = a.undo()
        for one in (b, a, b, a):
            one.sync()
        assert undone is not None and undone.superseded == ("p/1",)
        # (The upgrade's result cannot be distinguished from what the edit set in the same save. It stays, and that is reported.)
        after = {"form": 2, "name": "Ann", "note": "mine", "phone": "11", "phones": ["11"], "visits": 1}
        assert json.loads(a["p/1"]) == after


@pytest.mark.parametrize("is_undone", [False, True])
def test_an_edit_of_an_old_program_stands_in_its_form(devices: tuple[llvs.Coordinator, llvs.Coordinator], is_undone: bool) -> None:
    """An old program writes whole values, and drops members that it does not know. The upgrade runs again on its result."""
    a, b = devices
    b.save(update={"p/1": b'{"name":"Anne","phone":"13"}'})
    for one in (b, a):
        one.sync()
    assert a["p/1"] == b'{"name":"Anne","phone":"13"}' and a.collection(Person)["1"] == Person("Anne", phones=["13"])
    if is_undone:  # the edit with which the upgrade ran first, and which this one kept
        undone = a.undo()
        assert undone is not None and undone.undone == ("p/1",)
        assert json.loads(a["p/1"]) == {"name": "Ann", "phone": "13"}
    name = "Ann" if is_undone else "Anne"
    with a.collection(Person).edit("1") as ann:
        assert ann == Person(name, phones=["13"])
        ann.phones.append("14")
    for one in (a, b, a):
        one.sync()
    for one in devices:
        assert json.loads(one["p/1"]) == {"form": 2, "name": name, "phone": "13", "phones": ["13", "14"]}


def test_an_edit_of_an_old_program_beside_one_in_the_later_form(devices: tuple[llvs.Coordinator, llvs.Coordinator]) -> None:
    """Members that it left out were removed, unless the other one edited them; of members that both edited, the later form's wins."""
    a, b = devices
    with a.collection(Person).edit("1") as ann:
        ann.name, ann.visits = "Anna", 2
    b.save(update={"p/1": b'{"name":"Ann","phone":"13"}'})
    for one in (a, b, a, b):
        one.sync()
    assert a["p/1"] == b["p/1"]
    found = json.loads(a["p/1"])
    assert (found["name"], found["phone"], found["visits"]) == ("Anna", "13", 2), found
    assert a.collection(Person)["1"].phones == b.collection(Person)["1"].phones == ["13"]


def test_an_edit_is_picked_without_what_others_did(devices: tuple[llvs.Coordinator, llvs.Coordinator]) -> None:
    a, _ = devices
    upgraded = a.current_version.id
    with a.collection(Person).edit("1") as ann:
        ann.note = "secret"
    with a.collection(Person).edit("1") as ann:
        ann.phones.append("12")
    picked = a.store.cherry_pick(a.current_version, onto=a.store[upgraded].predecessors[0]).version
    assert picked is not None and json.loads(a.store.at(picked)["p/1"]) == {"name": "Ann", "phone": "11", "phones": ["11", "12"]}


def test_an_undone_upgrade_is_the_same_however_the_value_is_written(devices: tuple[llvs.Coordinator, llvs.Coordinator]) -> None:
    a, _ = devices
    upgraded = a.current_version.id
    written = a.store.make_version(upgraded, update={"p/1": json.dumps(json.loads(a["p/1"])).encode()})
    results = [a.store.at(a.store.revert(upgraded, at=head).version or head)["p/1"] for head in (upgraded, written)]
    assert results[0] == results[1] == b'{"form":2,"name":"Ann","phone":"11","phones":["11"]}'


def test_forms_that_are_kept_by_the_model_and_by_the_library() -> None:
    """Versions with the value before the upgrade, after it, and now."""
    at_top, deeper = {"schema": {"at": "/v"}}, {"schema": {"at": "/f/v"}}
    renames = {"schema": {"at": "/v", "renames": [{"to": 2, "from": "/name", "path": "/fullName"}]}}
    counts = {"/n": "counter", "/t": "text", "/m/n": "counter", **at_top}
    made = {"v": 2, "a": 2, "made": [1]}
    cases: list[tuple[Any, dict[str, Any], dict[str, Any], dict[str, Any], dict[str, Any], bool]] = [
        (at_top, {"a": 1}, made, made, {"v": 2, "a": 1, "made": [1]}, True),
        (at_top, {"a": 1}, made, {**made, "made": [1, 2]}, {"v": 2, "a": 1, "made": [1, 2]}, True),
        (at_top, {"a": 1, "v": 1}, {"v": 2, "a": 2}, {"v": 2, "a": 2, "b": 1}, {"v": 2, "a": 1, "b": 1}, False),
        (at_top, {"a": 1, "v": 2}, {**made, "b": 1}, {**made, "b": 1, "c": 1}, {"v": 2, "a": 1, "c": 1}, False),
        (at_top, {"a": 1}, made, {"a": 2, "b": 1}, {"a": 1, "b": 1}, True),
        (at_top, {"a": 1}, made, {"v": 3, "a": 2, "b": 1, "made": [1]}, {"v": 3, "a": 1, "b": 1, "made": [1]}, True),
        (renames, {"name": "A"}, {"v": 2, "fullName": "B", "made": 1}, {"v": 2, "fullName": "B", "made": 2},
         {"v": 2, "fullName": "A", "made": 2}, True),
        (deeper, {"f": {"k": 1}, "a": 1}, {"f": {"v": 2, "k": 1}, "a": 2}, {"f": {"v": 2, "k": 3}, "a": 2}, {"f": {"v": 2, "k": 3}, "a": 1},
         False),
        (deeper, {"a": 1}, {"f": {"v": 2, "k": 1}, "a": 2}, {"f": {"v": 2, "k": 1}, "a": 2}, {"f": {"v": 2, "k": 1}, "a": 1}, True),
        (deeper, {"a": 1, "f": 7}, {"f": {"v": 2}, "a": 2}, {"f": {"v": 2}, "a": 2}, {"a": 1, "f": 7}, False),
        (counts, {"a": 1}, {"v": 2, "a": 2, "n": 3, "t": "x"}, {"v": 2, "a": 2, "n": 5, "t": "x"}, {"v": 2, "a": 1, "n": 2}, False),
        (counts, {"a": 1}, {"v": 2, "a": 2, "m": {"n": 3}}, {"v": 2, "a": 2, "m": {"n": 5}}, {"v": 2, "a": 1, "m": {"n": 5}}, True),
    ]  # fmt: skip
    with llvs.Store(storage="memory") as store:
        for schema, *values, result, has_members in cases:
            text = json.dumps({"merge": 1, "ids": {"p/": schema}}).encode()
            version = start = store.make_version(root=True, insert={"__llvs_schema": text})
            heads = [version := store.make_version(version, update={"p/1": json.dumps(value).encode()}) for value in values]
            assert start not in heads
            undone = store.revert(heads[1], at=heads[2])
            found = store.at(undone.version or heads[2])["p/1"]
            assert (json.loads(found), "p/1" in undone.superseded) == (result, has_members), values
            rules = r.parse_schema(text).rules("p/1")
            was, became, now = (json.dumps(value).encode() for value in values)
            before, told = kept(j.parse(was), j.parse(became), rules)
            merged = m.merge_values(became, now, j.canonical(before), rules, swapped=True)
            assert merged.data is not None and (json.loads(merged.data), told or bool(merged.records)) == (result, has_members), values


def test_rules_of_a_form_are_added_to() -> None:
    """A store has the rule that an earlier program of the model gave it; a later one names renames."""
    schema = {"merge": 1, "ids": {"p/": {"": "auto", "/form": {"pick": "max"}}}}
    with llvs.Coordinator(storage="memory", schema=schema) as notes:
        def registered(model: Any) -> Any:
            people = notes.collection(model)
            with people.edit("1", default=model()) as one:
                one.name += "!"
            assert not people.contradictions
            return json.loads(notes["__llvs_schema"])["ids"]["p/"]["schema"]

        renamed = {"at": "/form", "renames": [{"to": 2, "from": "/phone", "path": "/first"}]}
        later: Any = models.model("p/", upgrades=[several_phones], rules={"schema": renamed})(dataclass(type("Person", (Person,), {})))
        assert registered(Person) == {"at": "/form"}
        assert registered(later) == renamed
        assert registered(Person) == renamed


def to_by(note: dict[str, Any]) -> dict[str, Any]:
    if "observer" in note:
        note["by"] = note["observer"]  # and the old name stays
    return note


BY = {"at": "/form", "renames": [{"to": 2, "from": "/observer", "path": "/by"}]}


@models.model("n/")
@dataclass
class OldNote:
    title: str = ""
    observer: Optional[str] = "nobody"
    count: Annotated[int, models.Counter()] = 0


@models.model("n/", upgrades=[to_by], rules={"schema": BY})
@dataclass
class Note:
    title: str = ""
    by: Optional[str] = "nobody"


def test_a_program_of_an_older_form_reads_through_renames() -> None:
    with llvs.Coordinator(storage="memory") as notes:
        old, new = notes.collection(OldNote), notes.collection(Note)
        old["1"] = OldNote("Marsh", "Ann")
        before = notes.current_version
        with new.edit("1") as note:
            note.title = "Marsh 2"
        for name in ("Anna", "Bea"):
            with old.edit("1") as older:
                older.observer = name
            assert (old["1"].observer, new["1"].by) == (name, name)
            with new.edit("1") as note:
                note.by = f"{name} Zoe"
            assert (old["1"].observer, new["1"].by) == (f"{name} Zoe", f"{name} Zoe")
        # Everywhere the value is read: also in a history with removals, and in a transaction.
        assert [one.object.observer for one in old.history("1") if one.object][:2] == ["Bea Zoe", "Bea"]
        assert old.at(before)["1"].observer == "Ann" and dict(old.items())["1"].observer == "Bea Zoe"
        with notes.transaction() as values:
            with values.collection(OldNote).edit("1") as older:
                assert older.observer == "Bea Zoe"
                older.observer = "Cid"
        assert new["1"].by == "Cid"
        with new.edit("1") as note:
            note.by = None
        assert old["1"].observer is None
        old["1"] = OldNote("Moor", "Dan")
        assert new["1"] == Note("Moor", "Dan")


def test_renames_of_several_forms_and_deeper_places_are_undone_for_older_programs() -> None:
    def to_full(contact: dict[str, Any]) -> dict[str, Any]:
        contact["full"] = contact.pop("name", "")
        return contact

    def to_names(contact: dict[str, Any]) -> dict[str, Any]:
        contact.setdefault("names", {})["a/b"] = contact.pop("full", "")
        return contact

    renames = [{"to": 3, "from": "/full", "path": "/names/a~1b"}, {"to": 2, "from": "/name", "path": "/full"}]

    @models.model("m/")
    @dataclass
    class One:
        name: str = ""

    @models.model("m/", upgrades=[to_full])
    @dataclass
    class Two:
        full: str = ""

    @models.model("m/", upgrades=[to_full, to_names], rules={"schema": {"at": "/form", "renames": renames}})
    @dataclass
    class Three:
        names: dict[str, str] = field(default_factory=dict)

    with llvs.Coordinator(storage="memory") as notes:
        one, two, three = notes.collection(One), notes.collection(Two), notes.collection(Three)
        one["1"] = One("Ann")
        with three.edit("1") as newest:
            newest.names["short"] = "A"
        assert (one["1"].name, two["1"].full) == ("Ann", "Ann")
        with two.edit("1") as second:
            second.full = "Anna"
        assert one["1"].name == "Anna" and three["1"].names == {"a/b": "Anna", "short": "A"}
        with one.edit("1") as first:
            first.name = "Anne"
        assert two["1"].full == "Anne" and three["1"].names == {"a/b": "Anne", "short": "A"}
        # If something on the path is not an object, it is left unchanged.
        notes.save(update={"m/1": b'{"form":3,"names":7,"full":"x"}'})
        assert (one["1"].name, two["1"].full) == ("x", "x")


@pytest.mark.parametrize("counting", [0, 1, 2])
def test_a_counter_whose_old_name_upgrades_leave_is_there_once(counting: int) -> None:
    """counting: how many of the two devices still have the old program."""
    def leaving(page: dict[str, Any]) -> dict[str, Any]:
        if "count" in page:
            page["visits"] = page["count"]
        return page

    rename = {"schema": {"at": "/form", "renames": [{"to": 2, "from": "/count", "path": "/visits"}]}}

    @models.model("q/")
    @dataclass
    class Old:
        title: str = ""
        count: Annotated[int, models.Counter()] = 0

    @models.model("q/", upgrades=[leaving], rules=rename)
    @dataclass
    class New:
        title: str = ""
        visits: Annotated[int, models.Counter()] = 0
        count: Annotated[int, models.Counter()] = 0

    place = next(PLACES)
    with llvs.Coordinator(storage="memory", exchange=place) as a, llvs.Coordinator(storage="memory", exchange=place) as b:
        a.collection(Old)["1"] = Old("Start", 100)
        a.collection(New)
        a.sync()
        b.sync()
        for number, device in enumerate((a, b)):
            model: Any = Old if number < counting else New
            with device.collection(model).edit("1") as page:
                setattr(page, "count" if model is Old else "visits", 101)
        for device in (a, b, a):
            device.sync()
        with a.collection(New).edit("1") as page:
            assert page.visits == 102
            page.visits += 1
        assert (a.collection(New)["1"].visits, a.collection(Old)["1"].count) == (103, 103)
        assert not a.open_conflicts().records


def test_a_kind_that_was_taken_back_is_reported() -> None:
    @dataclass
    class Tag:
        id: str = ""
        used: Annotated[int, models.Counter()] = 0

    @models.model("k/")
    @dataclass
    class Before:
        stars: Annotated[int, models.Counter()] = 0
        text: Annotated[str, models.Text()] = ""
        tags: list[Tag] = field(default_factory=list)
        gone: Annotated[int, models.Counter()] = 0

    @dataclass
    class PlainTag:
        id: str = ""
        used: int = 0

    @models.model("k/")
    @dataclass
    class After:
        stars: int = 0
        text: str = ""
        tags: list[PlainTag] = field(default_factory=list)
        new: int = 0

    with llvs.Coordinator(storage="memory") as notes:
        before = notes.collection(Before)
        before["1"] = Before()
        assert not before.contradictions
        with pytest.warns(models.SchemaWarning, match="'/stars' is 'counter' in the store and 'auto' in the model") as told:
            after = notes.collection(After)
        assert len(told) == 3
        assert after.contradictions == tuple(
            models.Contradiction("k/", pattern, "auto", kind)
            for pattern, kind in (("/stars", "counter"), ("/tags/*/used", "counter"), ("/text", "text"))
        )
        # The store's rules prevail.
        after["1"] = After(1)
        assert json.loads(notes["__llvs_schema"])["ids"]["k/"]["/stars"] == "counter"
        rules = json.loads(notes["__llvs_schema"])
        for pattern in ("/stars", "/text", "/tags/*/used"):
            del rules["ids"]["k/"][pattern]
        notes.save(update={"__llvs_schema": json.dumps(rules).encode()})
        after["1"] = After(2)
        assert after.contradictions == () and not notes.collection(Before).contradictions


def renamed(prefix: str, *names: str, renames: int) -> Any:
    """A model whose counter had these names, one form after the other, and whose rules name so many of the last renames."""
    def upgrade(old: str, new: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
        return lambda value: {**value, new: value[old]} if old in value else value

    told = [{"to": number + 2, "from": f"/{old}", "path": f"/{new}"} for number, (old, new) in enumerate(zip(names, names[1:]))]
    made: Any = dataclass(
        type("Renamed", (), {"__annotations__": {"text": str, names[-1]: Annotated[int, models.Counter()]}, "text": "", names[-1]: 0})
    )
    upgrades = [upgrade(old, new) for old, new in zip(names, names[1:])]
    rules = {"schema": {"at": "/form", "renames": told[len(told) - renames :]}} if renames else {}
    return models.model(prefix, upgrades=upgrades, rules=rules)(made)


@pytest.mark.parametrize("is_between", [True, False])
def test_a_counter_that_is_renamed_in_one_release_after_the_other_is_counted_once(
    devices: tuple[llvs.Coordinator, llvs.Coordinator], is_between: bool
) -> None:
    """The store's rules have the renames of the previous release. The added ones prevail."""
    a, b = devices
    first, second, third = (renamed("r/", *"abc"[:number], renames=number - 1) for number in (1, 2, 3))
    a.collection(first)["1"] = first(a=100)
    for model, name in ((second, "b"), (third, "c")) if is_between else ((third, "c"),):
        for one in (a, b, a):
            one.sync()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for one in devices:
                with one.collection(model).edit("1") as value:
                    setattr(value, name, getattr(value, name) + 1)
    for one in (a, b, a):
        one.sync()
    assert json.loads(a["r/1"])["c"] == json.loads(b["r/1"])["c"] == (104 if is_between else 102)
    # A program of the previous release does not remove the renames.
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert a.collection(second)["1"].b == (104 if is_between else 102)
    assert len(json.loads(a["__llvs_schema"])["ids"]["r/"]["schema"]["renames"]) == 2


def test_a_counter_is_not_upgraded_by_renames_that_the_store_has_not(devices: tuple[llvs.Coordinator, llvs.Coordinator]) -> None:
    """The store's rules apply. Merges would add up what both upgrades made, so the value is left unchanged, and that is reported."""
    a, b = devices
    first, second, other = renamed("r/", "a", renames=0), renamed("r/", "a", "b", renames=1), renamed("r/", "a", "c", renames=1)
    a.collection(first)["1"] = first(a=100)
    a.collection(second)["2"] = second(b=1)
    for one in (a, b, a):
        one.sync()
    for one in devices:
        with pytest.warns(models.SchemaWarning, match="renames"):
            values = one.collection(other)
        with pytest.raises(models.DecodeError, match="other renames than the model") as problem:
            with values.edit("1") as value:
                value.c += 1
        assert problem.value.member == "/c"
        with pytest.raises(models.DecodeError):
            values["1"] = other(c=5)
        assert json.loads(one["r/1"]) == {"text": "", "a": 100}
