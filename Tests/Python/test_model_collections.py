"""Collections: a mutable mapping on a coordinator, edit blocks, and how rules are added to the store."""

from __future__ import annotations

import json
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Iterator, MutableMapping, Optional, cast

import llvs
import pytest
from llvs import models


@models.model("contact/")
@dataclass
class Contact:
    name: str = ""
    tags: set[str] = field(default_factory=set)
    visits: Annotated[int, models.Counter()] = 0
    bio: Annotated[str, models.Text()] = ""


RULES = {"": "auto", "/bio": "text", "/tags": "set", "/visits": "counter"}


@pytest.fixture
def notes() -> Iterator[llvs.Coordinator]:
    with llvs.Coordinator(storage="memory") as opened:
        yield opened


@pytest.fixture
def people(notes: llvs.Coordinator) -> models.Collection[Contact]:
    return notes.collection(Contact)


def ids_of(notes: llvs.Coordinator) -> Any:
    """The rules of the store."""
    return json.loads(notes["__llvs_schema"])["ids"]


def test_a_mutable_mapping(notes: llvs.Coordinator, people: models.Collection[Contact]) -> None:
    assert isinstance(people, MutableMapping) and len(people) == 0 and people
    people["1"] = Contact("Ann")
    people["2"] = Contact("Bob")
    notes.save(insert={"other/1": b"{}", "contacts": b"{}"})
    assert list(people) == ["1", "2"] and len(people) == 2 and "1" in people and "3" not in people and cast(Any, 5) not in people
    assert people["1"] == Contact("Ann") and people.get("3") is None and people.get("3", Contact("?")) == Contact("?")
    assert dict(people) == {"1": Contact("Ann"), "2": Contact("Bob")} == dict(people.items())
    assert list(people.values()) == [Contact("Ann"), Contact("Bob")] and list(people.keys()) == ["1", "2"]
    assert people.pop("2") == Contact("Bob") and people.pop("2", None) is None
    assert people.setdefault("3", Contact("Cid")) == Contact("Cid")
    with pytest.raises(KeyError):
        people["2"]
    with pytest.raises(KeyError):
        del people["2"]
    before = notes.current_version.id
    people.update({"4": Contact("Dan"), "5": Contact("Eve")}, six=Contact("Fay"))
    assert notes.store[notes.current_version.id].predecessors == (before,), "one version"
    assert sorted(people) == ["1", "3", "4", "5", "six"]
    people.clear()
    assert len(people) == 0 and "other/1" in notes
    assert (people.model, people.prefix, people.coordinator) == (Contact, "contact/", notes)


def test_an_object_that_was_read_is_not_the_stores(people: models.Collection[Contact]) -> None:
    people["1"] = Contact("Ann")
    people["1"].name = "Bob"
    assert people["1"].name == "Ann"


def test_versions_of_the_past(notes: llvs.Coordinator, people: models.Collection[Contact]) -> None:
    people["1"] = Contact("Ann")
    before, then = people.at(), notes.current_version.id
    people["1"] = Contact("Anne")
    assert before["1"].name == "Ann" == people.at(then)["1"].name and before.version == then
    assert people["1"].name == "Anne" and "1" in before and len(before) == 1 and before.get("2") is None
    with pytest.raises(KeyError):
        before["2"]
    with pytest.raises(TypeError):
        before["1"] = Contact()  # type: ignore[index]


def test_saving_what_is_there_stores_nothing(notes: llvs.Coordinator, people: models.Collection[Contact]) -> None:
    people["1"] = Contact("Ann", {"b", "a"})
    before = notes.current_version.id
    people["1"] = Contact("Ann", {"a", "b"})
    with people.edit("1"):
        pass
    assert people.save({"1": people["1"]}) is None and notes.current_version.id == before
    saved = people.save(metadata={"why": "test"})
    assert saved is not None and saved.metadata["why"] == "test"


def test_expected(notes: llvs.Coordinator, people: models.Collection[Contact]) -> None:
    people["1"] = Contact("Ann")
    before = notes.current_version.id
    people["1"] = Contact("Anne")
    with pytest.raises(llvs.MovedError):
        people.save({"1": Contact("Bob")}, expected=before)
    assert people["1"].name == "Anne"
    for same in ({"1": Contact("Anne")}, {}):  # also where there is nothing to save
        with pytest.raises(llvs.MovedError):
            people.save(same, expected=before)
        assert people.save(same, expected=notes.current_version) is None
        assert people.save(same, expected=notes.store[notes.current_version.id]) is None
    assert people.save({"1": Contact("Bob")}, expected=notes.current_version) is not None


def test_ids_to_remove_are_several(people: models.Collection[Contact]) -> None:
    people.update({"1": Contact("Ann"), "2": Contact("Bob")})
    with pytest.raises(TypeError, match="remove takes several ids"):
        people.save(remove="12")
    assert len(people) == 2


# Edit blocks


def test_edit(people: models.Collection[Contact]) -> None:
    people["1"] = Contact("Ann")
    with people.edit("1", metadata={"author": "me"}) as ann:
        ann.tags.add("friend")
    assert people["1"] == Contact("Ann", {"friend"})
    with pytest.raises(ZeroDivisionError), people.edit("1") as ann:
        ann.name = "lost"
        1 / 0
    assert people["1"].name == "Ann"
    with pytest.raises(KeyError), people.edit("2"):
        pass
    with people.edit("2", default=Contact("Bob")) as bob:
        bob.visits += 1
    assert people["2"] == Contact("Bob", visits=1)


def test_edit_keeps_what_came_meanwhile(people: models.Collection[Contact]) -> None:
    """Whatever is saved while the block runs, by another thread or a merge."""
    people["1"] = Contact("Ann", {"a", "b"}, visits=5, bio="She sings.")
    with people.edit("1") as mine:
        with people.edit("1") as theirs:
            theirs.visits += 10
            theirs.tags -= {"a"}
            theirs.tags.add("c")
            theirs.bio = "She sings well."
        mine.visits += 1
        mine.tags.add("d")
        mine.name = "Anne"
        mine.bio = "Now she sings."
    assert people["1"] == Contact("Anne", {"b", "c", "d"}, 16, "Now she sings well.")


def test_edit_of_what_was_removed_meanwhile(people: models.Collection[Contact]) -> None:
    people["1"] = Contact("Ann", visits=5)
    with people.edit("1") as ann:
        del people["1"]
        ann.visits += 1
    assert people["1"] == Contact("Ann", visits=6), "an edit beats a removal"
    with people.edit("1"):
        del people["1"]
    assert "1" not in people, "nothing was edited"


def test_both_begin_one(people: models.Collection[Contact]) -> None:
    with people.edit("1", default=Contact("Ann", {"a"})) as mine:
        people["1"] = Contact("Bob", {"b"}, bio="He.")
        mine.tags.add("c")
        mine.visits += 1
    assert people["1"] == Contact("Bob", {"b", "c"}, 1, "He."), "what the block did not touch stays as the other began it"
    with people.edit("2", default=Contact("Ann")):
        people["2"] = Contact("Bob")
    assert people["2"] == Contact("Bob")


def test_a_default_is_the_callers(people: models.Collection[Contact]) -> None:
    default = Contact("Ann", {"a"})
    with people.edit("1", default=default) as ann:
        ann.tags.add("b")
    assert default == Contact("Ann", {"a"}) and people["1"] == Contact("Ann", {"a", "b"})
    with people.edit("2", default=default):
        pass
    assert people["2"] == default
    with pytest.raises(TypeError), people.edit("3", default=Contact(cast(Any, 5))):
        raise AssertionError("the block has run")


def test_edit_of_what_was_removed_keeps_what_the_model_does_not_know(notes: llvs.Coordinator, people: models.Collection[Contact]) -> None:
    data = b'{"name":"Ann","unknown":{"z":1.50},"visits":5.0}'
    notes.save(insert={"contact/1": data})
    then = notes.current_version.id
    with people.edit("1") as ann:
        notes.save(remove=["contact/1"])
        ann.name = "Anne"
    assert notes["contact/1"] == data.replace(b"Ann", b"Anne")
    del people["1"]
    with people.edit("1", at=then):
        pass
    assert "1" not in people, "nothing was edited"
    with people.edit("1", at=then) as ann:
        ann.name = "Eve"
    assert notes["contact/1"] == data.replace(b"Ann", b"Eve")


def test_the_current_version_moves_during_a_save(people: models.Collection[Contact], monkeypatch: pytest.MonkeyPatch) -> None:
    people["1"] = Contact("Ann", visits=1)
    save, moves = llvs.Coordinator.save, [7, 5]

    def first_another(self: llvs.Coordinator, **given: Any) -> Any:
        if moves:
            found = json.loads(self["contact/1"])
            save(self, update={"contact/1": json.dumps({**found, "visits": found["visits"] + moves.pop()}).encode()})
        return save(self, **given)

    monkeypatch.setattr(llvs.Coordinator, "save", first_another)
    with people.edit("1") as ann:
        ann.visits += 1
    assert people["1"].visits == 1 + 5 + 1 and moves == [7], "merged at once"
    moves = [7, 5]
    with people.edit("2", default=Contact()) as bob:
        people["2"] = Contact("Bob")
        bob.visits += 1
    assert people["2"] == Contact("Bob", visits=1) and not moves, "put into what is there, as often as that moves"


# Rules of the store


def test_rules_come_with_the_first_save(notes: llvs.Coordinator) -> None:
    """An empty store is left empty, so that it can still be filled from a snapshot."""
    root = notes.current_version.id
    people = notes.collection(Contact)
    assert notes.current_version.id == root and "__llvs_schema" not in notes
    people["1"] = Contact("Ann")
    (rules,) = notes.store[notes.current_version.id].predecessors
    assert notes.store[rules].predecessors == (root,) and ids_of(notes) == {"contact/": RULES}
    stored = notes.value("__llvs_schema")
    people["2"] = Contact("Bob")
    assert notes.value("__llvs_schema") == stored and notes.collection(Contact) is not None and notes.value("__llvs_schema") == stored


def test_rules_are_added_where_there_are_values(notes: llvs.Coordinator) -> None:
    notes.save(insert={"contact/1": b'{"name":"Ann"}'})
    notes.collection(Contact)
    assert ids_of(notes) == {"contact/": RULES}


def test_rules_are_added_again_where_the_current_version_has_none(notes: llvs.Coordinator) -> None:
    notes.save(insert={"contact/1": b'{"name":"Ann"}'})
    before = notes.current_version.id
    people = notes.collection(Contact)
    notes.current_version = before
    with people.edit("1") as ann:
        ann.visits += 1
    assert ids_of(notes) == {"contact/": RULES} and people["1"].visits == 1


def test_what_is_missing_is_added(notes: llvs.Coordinator) -> None:
    """Rules of others and sections that are not known stay."""
    others = b'{"merge":1,"models":{"x":1.50},"ids":{"a/":{"/n":{"from":1.0,"as":"counter"}},"contact/":{"/tags":"set","/more":"text"}}}'
    notes.save(insert={"__llvs_schema": others})
    notes.collection(Contact)
    assert json.loads(notes["__llvs_schema"]) == {
        "merge": 1, "models": {"x": 1.5}, "ids": {"a/": {"/n": {"from": 1.0, "as": "counter"}}, "contact/": {**RULES, "/more": "text"}},
    }  # fmt: skip


@pytest.mark.parametrize("text", [
    '{"merge":1,"ids":{"contact/":{"":"auto","/tags":{"as":"set"},"/visits":{"as":"counter","from":0,"pick":"newer"},'
    '"/bio":{"as":"text","unit":"word"}}}}',
    '{"merge":1,"ids":{"contact/":{"":{},"/tags":"set","/visits":{"from":0.0,"as":"counter"},"/bio":"text"}}}',
])  # fmt: skip
def test_rules_that_say_the_same_otherwise(notes: llvs.Coordinator, text: str) -> None:
    notes.save(insert={"__llvs_schema": text.encode()})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert notes.collection(Contact).contradictions == ()
    assert notes["__llvs_schema"] == text.encode()


def test_contradictions_are_reported_and_the_stores_rules_stand(notes: llvs.Coordinator) -> None:
    notes.save(insert={"__llvs_schema": b'{"merge":1,"ids":{"contact/":{"/tags":"register","/visits":{"as":"counter","min":0}}}}'})
    with pytest.warns(models.SchemaWarning) as told:
        people = notes.collection(Contact)
    assert people.contradictions == (
        models.Contradiction("contact/", "/tags", "set", "register"),
        models.Contradiction("contact/", "/visits", "counter", {"as": "counter", "min": 0}),
    )
    assert [str(one.message) for one in told][0] == (
        "Contact: the rule for 'contact/' at '/tags' is 'register' in the store and 'set' in the model; the store's stands"
    )
    assert ids_of(notes)["contact/"] == {"/tags": "register", "/visits": {"as": "counter", "min": 0}, "/bio": "text", "": "auto"}
    people["1"] = Contact("Ann", {"a"})  # and it works
    with people.edit("1") as ann:
        with people.edit("1") as other:
            other.tags = {"b"}
        ann.tags = {"c"}
    assert people["1"].tags == {"c"}, "a register, as the store says"
    # The same warning is given once. A different one is still given.
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rules = json.loads(notes["__llvs_schema"])
        rules["ids"]["elsewhere/"] = "auto"
        notes.save(update={"__llvs_schema": json.dumps(rules).encode()})
        people["2"] = Contact("Cid")
    with pytest.warns(models.SchemaWarning, match="'/bio'"):
        notes.save(update={"__llvs_schema": b'{"merge":1,"ids":{"contact/":{"/tags":"set","/visits":"counter","/bio":"register"}}}'})
        people["1"] = Contact("Bob")
    assert [one.pattern for one in people.contradictions] == ["/bio"]


@pytest.mark.parametrize("kind", ["register", {"as": "register", "pick": "older"}])
def test_a_rule_without_patterns_is_that_of_the_whole(notes: llvs.Coordinator, kind: Any) -> None:
    notes.save(insert={"__llvs_schema": json.dumps({"merge": 1, "ids": {"contact/": kind}}).encode()})
    with pytest.warns(models.SchemaWarning):
        people = notes.collection(Contact)
    assert people.contradictions == (models.Contradiction("contact/", "", "auto", kind),)
    assert ids_of(notes)["contact/"] == {**RULES, "": kind}


@pytest.mark.parametrize("text", ["{", '{"merge":1,"ids":{"a":"sum"}}', "[]"])
def test_rules_that_are_not_valid_are_reported_and_corrected(notes: llvs.Coordinator, text: str) -> None:
    """The newest valid rules before them count, and the model's are added to these."""
    notes.save(insert={"__llvs_schema": b'{"merge":1,"ids":{"note/":"auto"}}'})
    notes.save(update={"__llvs_schema": text.encode()})
    with pytest.warns(models.SchemaWarning, match="the rules of the store are not valid at .*, so the newest valid ones count"):
        people = notes.collection(Contact)
    people["1"] = Contact("Ann")
    assert people["1"] == Contact("Ann") and ids_of(notes) == {"note/": "auto", "contact/": RULES}


def test_rules_of_a_newer_library_are_left_alone(notes: llvs.Coordinator) -> None:
    text = '{"merge":2,"ids":{}}'
    notes.save(insert={"__llvs_schema": text.encode()})
    with pytest.warns(models.SchemaWarning, match="cannot be followed, and stay as they are"):
        people = notes.collection(Contact)
    people["1"] = Contact("Ann")
    with people.edit("1") as ann:
        ann.visits += 1
    assert people["1"] == Contact("Ann", visits=1) and notes["__llvs_schema"] == text.encode()


def test_rules_came_from_elsewhere_before_the_first_save(tmp_path: Path) -> None:
    with llvs.Coordinator(storage="memory", exchange=tmp_path / "shared") as one:
        one.save(insert={"__llvs_schema": b'{"merge":1,"ids":{"note/":"auto"}}'})
        one.exchange()
    with llvs.Coordinator(storage="memory", exchange=tmp_path / "shared") as other:
        people = other.collection(Contact)
        other.sync()
        people["1"] = Contact("Ann")
        assert ids_of(other) == {"note/": "auto", "contact/": RULES}


def test_a_store_opened_for_reading(tmp_path: Path) -> None:
    path = tmp_path / "notes.llvs"
    with llvs.Coordinator(path) as notes:
        notes.save(insert={"contact/1": b'{"name":"Ann"}'})
    with llvs.Coordinator(path, read_only=True) as notes:
        people = notes.collection(Contact)
        assert people["1"] == Contact("Ann")
        with pytest.raises(llvs.errors.PermissionDeniedError):
            people["1"] = Contact("Bob")


def test_schema_of_models(notes: llvs.Coordinator) -> None:
    @models.model("note/")
    @dataclass
    class Note:
        text: Annotated[str, models.Text()] = ""

    schema = models.schema_of(Contact, Note)
    assert schema == {"merge": 1, "ids": {"contact/": RULES, "note/": {"": "auto", "/text": "text"}}}
    llvs.merge.check_schema(schema)


# Forms


def test_upgrades(notes: llvs.Coordinator) -> None:
    def to_list(contact: dict[str, Any]) -> dict[str, Any]:
        contact["phones"] = [contact.pop("phone")] if "phone" in contact else []
        return contact

    def to_full_name(contact: dict[str, Any]) -> dict[str, Any]:
        contact["full"] = contact.get("name", "")
        return contact

    @models.model("contact/", upgrades=[to_list, to_full_name])
    @dataclass
    class Person:
        full: str = ""
        phones: list[str] = field(default_factory=list)
        weight: float = 0.0

    # Form 1 (with members that this program does not know), form 2, and a future form.
    notes.save(insert={
        "contact/1": b'{"name":"Ann","phone":"1","weight":1.50,"more":{"z":2.0,"a":0.10000000000000000001}}',
        "contact/2": b'{"form":2,"name":"Bob","phones":["2"]}',
        "contact/3": b'{"form":7,"full":"Cid","new":true}',
    })  # fmt: skip
    people = notes.collection(Person)
    assert ids_of(notes)["contact/"] == {"": "auto", "schema": {"at": "/form"}}
    assert dict(people) == {"1": Person("Ann", ["1"], 1.5), "2": Person("Bob", ["2"]), "3": Person("Cid")}
    before = notes.current_version.id
    with people.edit("1"):
        pass
    assert notes.current_version.id == before, "reading rewrites nothing"
    for id in people:
        with people.edit(id) as person:
            person.phones.append("9")
    assert notes["contact/1"] == (
        b'{"name":"Ann","weight":1.50,"more":{"z":2.0,"a":0.10000000000000000001},"form":3,"full":"Ann","phones":["1","9"]}'
    )
    assert json.loads(notes["contact/2"]) == {"form": 3, "name": "Bob", "full": "Bob", "phones": ["2", "9"]}
    assert notes["contact/3"] == b'{"form":7,"full":"Cid","new":true,"phones":["9"]}', "one from the future keeps its number"
    people["4"] = Person("Dan")
    assert json.loads(notes["contact/4"])["form"] == 3
    with people.edit("4") as dan:  # which a newer program saves meanwhile
        notes.save(update={"contact/4": notes["contact/4"].replace(b'"form":3', b'"form":5')})
        dan.full = "Daniel"
    assert json.loads(notes["contact/4"]) == {"form": 5, "full": "Daniel", "phones": [], "weight": 0.0}


@pytest.mark.parametrize("data,member,why", [
    (b'{"form":"x"}', "/form", "no number of a form"),
    (b'{"form":0}', "/form", "no number of a form"),
    (b'{"form":1.5}', "/form", "no number of a form"),
    (b"{}", "", "upgraded from form 1 to 2 by bad: KeyError('name')"),
    (b"[]", "", "an object is expected"),
])  # fmt: skip
def test_what_cannot_be_upgraded(notes: llvs.Coordinator, data: bytes, member: str, why: str) -> None:
    def bad(contact: dict[str, Any]) -> dict[str, Any]:
        contact["name"] = contact["name"].upper()
        return contact

    @models.model("contact/", upgrades=[bad])
    @dataclass
    class Person:
        name: str = ""

    notes.save(insert={"contact/1": data})
    people = notes.collection(Person)
    with pytest.raises(models.DecodeError) as raised:
        people["1"]
    assert raised.value.member == member and why in str(raised.value)
    with pytest.raises(models.DecodeError):
        people["1"] = Person("x")
    assert notes["contact/1"] == data


def test_the_number_of_a_form_is_no_member() -> None:
    @dataclass
    class Person:
        form: Optional[str] = None

    with pytest.raises(TypeError, match="give another name by form="):
        models.model("contact/", upgrades=[dict])(Person)
    models.model("contact/", upgrades=[dict], form="v")(Person)


@pytest.mark.parametrize("unknown", [b'"\\ud800"', b"[" * 130 + b"]" * 130, b"1e99999"])
def test_what_cannot_be_merged_is_not_written_over(notes: llvs.Coordinator, people: models.Collection[Contact], unknown: bytes) -> None:
    """A value that cannot be merged can be read, but a save of it is refused: what the program does not know would be lost."""
    data = b'{"name":"Ann","x":' + unknown + b"}"
    notes.save(update={"contact/1": data})
    assert people["1"].name == "Ann"
    with pytest.raises(models.DecodeError, match="'contact/1'.*goes beyond the limits"):
        people["1"] = Contact("Bob")
    assert notes["contact/1"] == data


def test_a_name_that_is_there_twice_among_many_is_found_at_once(notes: llvs.Coordinator, people: models.Collection[Contact]) -> None:
    """A value that anybody may have sent: it is refused in about the time that reading it takes."""
    names = ",".join(f'"{number}":0' for number in range(200_000))
    notes.save(insert={"contact/1": f'{{{names},"199999":1}}'.encode(), "contact/2": b'{"name":"Ann"}'})
    with pytest.raises(models.DecodeError, match="'199999' is there twice"):
        people["1"]
    assert people["2"].name == "Ann"


@models.model("loose/")
@dataclass
class Loose:
    x: object = None


@models.model("lifted/", upgrades=[lambda value: value])
@dataclass
class Lifted:
    y: int = 0


@pytest.mark.parametrize("model", [Loose, Lifted])
def test_an_exponent_beyond_all_numbers_spoils_one_value(notes: llvs.Coordinator, model: Any) -> None:
    prefix = {Loose: "loose/", Lifted: "lifted/"}[model]
    objects = notes.collection(model)
    notes.save(insert={f"{prefix}1": b'{"x":1E99999999999999999999}', f"{prefix}2": b'{"x":1}'})
    found, unread = objects.read_all()
    assert list(found) == ["2"] and list(unread) == list(objects.problems()) == ["1"]
    with pytest.raises(models.DecodeError, match="exponent"):
        objects["1"]
    with pytest.raises(models.DecodeError, match="exponent"):
        with objects.edit("1"):
            pass
