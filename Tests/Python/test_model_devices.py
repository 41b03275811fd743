"""Two versions of a model on two devices: each preserves members that it does not know, and merges equal those of the reference model."""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from typing import Annotated, Any, Callable, Optional, Union

import llvs
import pytest
from documents import merge as m
from documents import rules as r
from hypothesis import given, settings
from hypothesis import strategies as st
from llvs import models
from sampling import sample


@dataclass
class OldPhone:
    id: str = ""
    number: str = ""


@dataclass
class Phone:
    id: str = ""
    number: str = ""
    label: Optional[str] = None


@dataclass
class Address:
    street: str = ""
    town: str = ""


@models.model("contact/")
@dataclass
class OldContact:
    name: str = ""
    weight: float = 0.0
    tags: set[str] = field(default_factory=set)
    visits: Annotated[int, models.Counter()] = 0
    stock: Annotated[int, models.Counter()] = 100
    bio: Annotated[str, models.Text()] = ""
    phones: Annotated[list[OldPhone], models.Key("id")] = field(default_factory=list)


@models.model("contact/")
@dataclass
class Contact:
    name: str = ""
    weight: float = 0.0
    tags: set[str] = field(default_factory=set)
    visits: Annotated[int, models.Counter()] = 0
    stock: Annotated[int, models.Counter()] = 100
    bio: Annotated[str, models.Text()] = ""
    phones: Annotated[list[Phone], models.Key("id")] = field(default_factory=list)
    email: Optional[str] = None
    address: Optional[Address] = None
    logins: Annotated[int, models.Counter()] = 0


BASE = (
    b'{"weight":72.50,"score":1.50,"name":"Ann","tags":["a","b"],"visits":5,"bio":"She sings in the choir of the town.",'
    b'"phones":[{"label":"home","id":"1","number":"11","used":2.0},{"id":"2","number":"22"}],'
    b'"address":{"town":"Ulm","street":"Weg","zip":"89"},'
    b'"logins":1,"later":{"z":1e2,"a":[0.10]}}'
)
SCHEMA = json.dumps(models.schema_of(Contact)).encode()
RULES = r.parse_schema(SCHEMA).rules("contact/1")

# Each edit is made to an object, and, independently of this package, to the JSON as a user would make it.
Edit = Callable[[Any, dict[str, Any], int], None]
WORDS = ["She", "He", "sings", "hums", "in", "the", "choir", "band"]


def rename(one: Any, tree: dict[str, Any], number: int) -> None:
    one.name = tree["name"] = f"Name{number}"


def weigh(one: Any, tree: dict[str, Any], number: int) -> None:
    one.weight = tree["weight"] = float(number)


def tag(one: Any, tree: dict[str, Any], number: int) -> None:
    one.tags.symmetric_difference_update({"abcdef"[number % 6]})
    tree["tags"] = sorted(one.tags)


def visit(one: Any, tree: dict[str, Any], number: int) -> None:
    one.visits += number
    tree["visits"] += number


def sell(one: Any, tree: dict[str, Any], number: int) -> None:
    one.stock -= number
    tree["stock"] = tree.get("stock", 100) - number


def tell(one: Any, tree: dict[str, Any], number: int) -> None:
    words = one.bio.split(" ")
    words[number % len(words)] = WORDS[number % len(WORDS)]
    one.bio = tree["bio"] = " ".join(words)


def call(one: Any, tree: dict[str, Any], number: int) -> None:
    if one.phones:
        at = number % len(one.phones)
        one.phones[at].number = tree["phones"][at]["number"] = str(number)


def add_phone(one: Any, tree: dict[str, Any], number: int) -> None:
    id = f"new{number}"
    if all(phone.id != id for phone in one.phones):
        made = (OldPhone if isinstance(one, OldContact) else Phone)(id, str(number))
        one.phones.append(made)
        tree["phones"].append({"id": id, "number": str(number)})


def drop_phone(one: Any, tree: dict[str, Any], number: int) -> None:
    if one.phones:
        at = number % len(one.phones)
        del one.phones[at], tree["phones"][at]


def move_phone(one: Any, tree: dict[str, Any], number: int) -> None:
    if one.phones:
        at = number % len(one.phones)
        for phones in (one.phones, tree["phones"]):
            phones.insert(0, phones.pop(at))


def label(one: Any, tree: dict[str, Any], number: int) -> None:
    if one.phones:
        at = number % len(one.phones)
        one.phones[at].label = tree["phones"][at]["label"] = f"label{number}"


def write_to(one: Any, tree: dict[str, Any], number: int) -> None:
    one.email = tree["email"] = f"{number}@x"


def relocate(one: Any, tree: dict[str, Any], number: int) -> None:
    # (A removed address cannot be edited: a save would compare the absent address with the new one, and the edit would be an insertion.)
    if one.address is not None:
        one.address.town = tree["address"]["town"] = f"Town{number}"


def forget_address(one: Any, tree: dict[str, Any], number: int) -> None:
    one.address = None
    tree.pop("address", None)


def log_in(one: Any, tree: dict[str, Any], number: int) -> None:
    one.logins += number
    tree["logins"] += number


OLD_EDITS: list[Edit] = [rename, weigh, tag, visit, sell, tell, call, add_phone, drop_phone, move_phone]
EDITS: list[Edit] = [*OLD_EDITS, label, write_to, relocate, forget_address, log_in]


def made(edits: list[Edit]) -> Any:
    return st.lists(st.tuples(st.sampled_from(edits), st.integers(1, 9)), max_size=4)


def meaning(data: Optional[bytes]) -> Any:
    """Returns the meaning of the value, whatever its spelling; numbers to the last digit."""
    return None if data is None else json.loads(data, parse_int=Decimal, parse_float=Decimal)


def devices() -> tuple[llvs.Coordinator, llvs.Coordinator]:
    """Two devices that share a folder."""
    place = f"memory:{next(NUMBERS)}"
    return llvs.Coordinator(storage="memory", exchange=place), llvs.Coordinator(storage="memory", exchange=place)


NUMBERS = itertools.count()


@settings(max_examples=sample(25, 100))
@given(made(OLD_EDITS), made(EDITS), st.booleans())
def test_random_edits_on_two_devices(old_edits: list[tuple[Edit, int]], new_edits: list[tuple[Edit, int]], old_first: bool) -> None:
    """An old app and a new one edit one value: the merge is that of the JSON edited by hand, and both apps read it."""
    old, new = devices()
    with old, new:
        old.save(insert={"contact/1": BASE, "__llvs_schema": SCHEMA})
        old.sync()
        new.sync()
        trees: dict[str, bytes] = {}

        def edit(coordinator: llvs.Coordinator, model: type[Any], edits: list[tuple[Edit, int]]) -> None:
            tree = json.loads(BASE)
            with coordinator.collection(model).edit("1") as one:
                for change, number in edits:
                    change(one, tree, number)
            trees[coordinator.current_version.id] = json.dumps(tree).encode()
            # Each save alone has the JSON that a user would have made.
            assert meaning(coordinator["contact/1"]) == meaning(json.dumps(tree).encode())

        for device, model, edits in [(old, OldContact, old_edits), (new, Contact, new_edits)][:: 1 if old_first else -1]:
            edit(device, model, edits)
        versions = [old.current_version.id, new.current_version.id]
        old.exchange()
        new.sync()
        old.sync()
        assert old.current_version == new.current_version and old["contact/1"] == new["contact/1"]
        merged = new["contact/1"]
        if len(set(versions)) == 2:
            older, newer = sorted(versions, key=lambda id: (new.store[id].timestamp, id))
            datas = [new.store.at(id)["contact/1"] for id in (older, newer)]
            sides = [trees[id] if data != BASE else BASE for id, data in zip((older, newer), datas)]
            expected = m.merge_values(BASE, sides[1], sides[0], RULES).data
            assert meaning(merged) == meaning(expected)
        known, all_known = old.collection(OldContact)["1"], new.collection(Contact)["1"]
        assert (known.name, known.tags, known.visits, known.bio) == (all_known.name, all_known.tags, all_known.visits, all_known.bio)
        assert [phone.id for phone in known.phones] == [phone.id for phone in all_known.phones]


@pytest.mark.parametrize("edit", OLD_EDITS, ids=[edit.__name__ for edit in OLD_EDITS])
def test_what_an_old_app_does_not_touch_stays_as_it_is_written(edit: Edit) -> None:
    """Byte by byte: numbers as they are written, members in their order, members that it does not know."""
    with llvs.Coordinator(storage="memory") as notes:
        notes.save(insert={"contact/1": BASE})
        with notes.collection(OldContact).edit("1") as one:
            edit(one, json.loads(BASE), 3)
        data = notes["contact/1"]
    before, after = _members(BASE), _members(data)
    changed = {name for name in after if before.get(name) != after[name]}
    assert changed == {
        "rename": {"name"}, "weigh": {"weight"}, "tag": {"tags"}, "visit": {"visits"}, "sell": {"stock"}, "tell": {"bio"},
    }.get(edit.__name__, {"phones"})  # fmt: skip
    assert list(after) == [*before, *(["stock"] if edit is sell else [])], "the order is the one that was read"
    if edit is call:
        assert after["phones"] == '[{"label":"home","id":"1","number":"11","used":2.0},{"id":"2","number":"3"}]'
    if edit is move_phone:
        assert after["phones"] == '[{"id":"2","number":"22"},{"label":"home","id":"1","number":"11","used":2.0}]'


def test_numbers_stay_as_they_are_written_also_where_the_app_knows_all() -> None:
    data = b'{"weight":72.50,"stock":1e2,"name":"Ann","tags":[],"visits":-0,"bio":"",'
    data += b'"phones":[{"id":"1","number":"11"},{"number":"22","id":"2"}]}'
    with llvs.Coordinator(storage="memory") as notes:
        notes.save(insert={"contact/1": data})
        with notes.collection(OldContact).edit("1") as one:
            one.name = "Bob"
        assert notes["contact/1"] == data.replace(b"Ann", b"Bob")
        with notes.collection(OldContact).edit("1") as one:
            one.phones[0].number = "12"
        assert notes["contact/1"] == data.replace(b"Ann", b"Bob").replace(b"11", b"12")


def _members(data: bytes) -> dict[str, str]:
    """The members of an object, as they are written."""
    decoder, text, found, at = json.JSONDecoder(), data.decode(), {}, 1
    while text[at] != "}":
        name, at = decoder.raw_decode(text, at)
        _, end = decoder.raw_decode(text, at + 1)
        found[name] = text[at + 1 : end]
        at = end + (text[end] == ",")
    return found


def test_assigning_keeps_what_the_app_does_not_know() -> None:
    with llvs.Coordinator(storage="memory") as notes:
        notes.save(insert={"contact/1": BASE})
        notes.collection(OldContact)["1"] = OldContact("Bob", phones=[OldPhone("1", "12"), OldPhone("3", "33")])
        found = json.loads(notes["contact/1"])
    assert found["score"] == 1.5 and found["address"]["zip"] == "89" and found["later"] == {"z": 100.0, "a": [0.1]}
    assert found["phones"] == [{"label": "home", "id": "1", "number": "12", "used": 2.0}, {"id": "3", "number": "33"}]
    assert (found["name"], found["tags"], found["bio"], found["weight"], found["visits"]) == ("Bob", [], "", 0.0, 0)
    assert "stock" not in found, "it is missing, and that is what the object says"


def test_what_the_app_removes_is_gone() -> None:
    """The members are removed even if they contain members that the app does not know."""
    with llvs.Coordinator(storage="memory") as notes:
        notes.save(insert={"contact/1": BASE})
        with notes.collection(Contact).edit("1") as one:
            one.address = None
            del one.phones[0]
        found = json.loads(notes["contact/1"])
    assert "address" not in found and found["phones"] == [{"id": "2", "number": "22"}] and found["score"] == 1.5


def test_two_devices_begin_apart() -> None:
    """A counter before the first write begins with the default of the member, and equal rules of both are one."""
    one, other = devices()
    with one, other:
        for device, sold in ((one, 5), (other, 3)):
            with device.collection(Contact).edit("1", default=Contact("Ann")) as contact:
                contact.stock += sold
        one.sync()
        other.sync()
        one.sync()
        assert one.collection(Contact)["1"].stock == 108 == other.collection(Contact)["1"].stock
        assert json.loads(one["__llvs_schema"]) == models.schema_of(Contact)


def test_what_was_merged_and_cannot_be_read() -> None:
    """A merge without suitable rules may make a value that no app wrote. It is reported, both apps continue, and a save of the JSON repairs
    it."""

    @models.model("x/")
    @dataclass
    class Pair:
        both: Annotated[tuple[int, int], models.Tuple()] = (0, 0)

    one, other = devices()
    with one, other:
        one.save(insert={"__llvs_schema": b'{"merge":1,"ids":{"x/":"auto"}}', "x/1": b'{"both":[1,2]}', "x/2": b'{"both":[3,4]}'})
        one.sync()
        other.sync()
        one.save(update={"x/1": b'{"both":[5,1,2]}'})
        other.save(update={"x/1": b'{"both":[1,2,9]}'})
        one.sync()
        other.sync()
        pairs = other.collection(Pair)
        data = other["x/1"]
        assert len(json.loads(data)["both"]) == 4, "kept both"
        with pytest.raises(models.DecodeError, match="'x/1' as Pair: the member '/both' is .* where an array of 2 is expected"):
            pairs["1"]
        with pytest.raises(models.DecodeError):
            pairs["1"] = Pair((7, 7))
        assert other["x/1"] == data and pairs["2"].both == (3, 4) and list(pairs.problems()) == ["1"]
        other.save(update={"x/1": b'{"both":[5,9]}'})
        assert pairs["1"].both == (5, 9)


def test_conflicts_of_a_collection_and_choosing() -> None:
    one, other = devices()
    with one, other:
        schema = models.schema_of(Contact)
        schema["ids"]["note"] = "auto"
        one.save(insert={"__llvs_schema": json.dumps(schema).encode(), "contact/1": BASE, "note": b"[]"})
        one.sync()
        other.sync()
        people = other.collection(Contact)
        for device, name in ((one, "Anne"), (other, "Anna")):
            with device.collection(Contact).edit("1") as ann:
                ann.name = name
                ann.visits += 1
            device.save(update={"note": json.dumps({"by": name}).encode()})
        one.exchange()
        other.sync()
        found = people.open_conflicts()
        assert list(found) == ["1"] and len(other.open_conflicts()) == 2, "only those of the collection's values"
        (conflict,) = found["1"]
        assert (conflict.path, conflict.newer, conflict.older) == (("name",), "Anna", "Anne")
        assert conflict.record.newer == b'"Anna"' and conflict.id == "1"
        assert people["1"].name == "Anna" and people["1"].visits == 7
        other.choose(conflict, "older")
        assert people["1"].name == "Anne" and people["1"].visits == 7 and people.open_conflicts() == {}


@dataclass
class Part:
    id: str = ""
    size: int = 0
    made: date = date(2026, 1, 1)


@models.model("plan/")
@dataclass
class Plan:
    due: Optional[date] = None
    parts: list[Part] = field(default_factory=list)
    by_name: dict[str, Decimal] = field(default_factory=dict)
    pair: Annotated[tuple[int, date], models.Tuple()] = (0, date(2026, 1, 1))
    body: Annotated[str, models.Text()] = ""
    whole: Annotated[Optional[Part], models.Register()] = None


def test_sides_of_conflicts_are_values_of_the_model() -> None:
    one, other = devices()

    def write(device: llvs.Coordinator, n: int) -> None:
        with device.collection(Plan).edit("1") as plan:
            plan.due = date(2026, 1, n)
            plan.parts[0].made = date(2026, 2, n)
            plan.by_name["x"] = Decimal(f"{n}.50")
            plan.pair = (0, date(2026, 3, n))
            plan.body = f"Call number {n} today."
            plan.whole = Part("w", n)
            if n == 2:
                plan.parts[1].size = 7
            else:
                del plan.parts[1]

    with one, other:
        parts, numbers, pair = [Part("a"), Part("b")], {"x": Decimal(1)}, (0, date(2026, 3, 9))
        plan = Plan(date(2026, 1, 9), parts, numbers, pair, "Call number 9 today.", Part("w", 9))
        one.collection(Plan)["1"] = plan
        one.collection(Plan)["2"] = plan
        one.sync()
        other.sync()
        write(one, 3)
        del one.collection(Plan)["2"]
        write(other, 2)
        with other.collection(Plan).edit("2") as gone:
            gone.due = None
        one.exchange()
        other.sync()
        found = other.collection(Plan).open_conflicts()
        told = {str(conflict.path): conflict for conflict in found["1"]}
        assert len(told) == len(found["1"])
        sides = {path: (one.base, one.newer, one.older) for path, one in told.items()}
        assert sides[str(("due",))] == (date(2026, 1, 9), date(2026, 1, 2), date(2026, 1, 3))
        assert sides[str(("by_name", "x"))] == (Decimal(1), Decimal("2.50"), Decimal("3.50"))
        assert sides[str(("pair", {"index": 1}))] == (date(2026, 3, 9), date(2026, 3, 2), date(2026, 3, 3))
        assert sides[str(("whole",))] == (Part("w", 9), Part("w", 2), Part("w", 3))
        assert sides[str(("parts", {"key": "a"}, "made"))] == (date(2026, 1, 1), date(2026, 2, 2), date(2026, 2, 3))
        assert sides[str(("parts", {"key": "b"}))] == (Part("b"), Part("b", 7), None)
        (whole,) = found["2"]
        assert (whole.id, whole.path, whole.base, whole.older) == ("2", (), plan, None) and isinstance(whole.newer, Plan)
        other.choose(next(one for one in found["1"] if one.path == ("due",)), "older")
        assert other.collection(Plan)["1"].due == date(2026, 1, 3)
        # A form that the model cannot read is as JSON has it.
        record = told[str(("due",))].record._replace(newer=b'{"no": "date"}', older=b"no JSON")
        odd = models.conflict.object_conflict(models.definition_of(Plan), record)
        assert (odd.newer, odd.older) == ({"no": "date"}, b"no JSON")


def test_members_that_are_left_to_the_app() -> None:
    """Both devices call the merger, and get one value. Without it the newer value wins. In both cases the conflict is open."""

    @models.model("shelf/")
    @dataclass
    class Book:
        shelf: Annotated[str, models.Pick("arbiter")] = ""
        title: str = ""

    def lower(
        id: str, path: tuple[Any, ...], base: Optional[bytes], newer: Optional[bytes], older: Optional[bytes]
    ) -> Union[bytes, llvs.merge.Pass, None]:
        return min(newer, older) if path == ("shelf",) and newer and older else llvs.merge.PASS

    for merger, expected in ((llvs.merge.ValueMerger(part=lower), "A"), (llvs.Rules(), "Z")):
        place = f"memory:{next(NUMBERS)}"
        one = llvs.Coordinator(storage="memory", exchange=place, arbiter=merger)
        with one, llvs.Coordinator(storage="memory", exchange=place, arbiter=merger) as other:
            one.collection(Book)["1"] = Book("M")
            one.sync()
            other.sync()
            for device, shelf in ((one, "A"), (other, "Z")):
                with device.collection(Book).edit("1") as book:
                    book.shelf = book.title = shelf
            one.exchange()
            other.sync()
            one.sync()
            assert one.collection(Book)["1"] == other.collection(Book)["1"] == Book(expected, "Z")
            kinds = [conflict.kind for conflict in one.collection(Book).open_conflicts()["1"] if conflict.path == ("shelf",)]
            assert kinds == [llvs.merge.ConflictKind.ARBITER]


def test_undo_takes_back_members_and_keeps_what_others_did() -> None:
    """Undo by groups and with descriptions, also of transactions. Changes of the other device in the same value stay."""
    place = f"memory:{next(NUMBERS)}"
    one = llvs.Coordinator(storage="memory", exchange=place, device="one")
    with one, llvs.Coordinator(storage="memory", exchange=place) as other:
        one.save(insert={"contact/1": BASE, "__llvs_schema": SCHEMA})
        one.sync()
        other.sync()
        people = one.collection(Contact)
        with people.edit("1", description="call her Anne") as ann:
            ann.name = "Anne"
            ann.visits += 1
        for number in ("33", "44"):
            with people.edit("1", group="phones", description="telephones") as ann:
                ann.phones.append(Phone(number, number))
        with other.collection(Contact).edit("1") as ann:
            ann.tags.add("other")
            ann.visits += 10
        other.exchange()
        one.sync()
        assert people["1"].visits == 16 and len(people["1"].phones) == 4 and one.undo_description == "telephones"
        one.undo()
        assert [phone.id for phone in people["1"].phones] == ["1", "2"] and people["1"].name == "Anne"
        one.undo()
        after = people["1"]
        assert (after.name, after.visits, after.tags) == ("Ann", 15, {"a", "b", "other"})
        one.redo()
        assert people["1"].name == "Anne" and people["1"].visits == 16
        with one.transaction(description="a note") as values:
            values["note"] = b"1"
        assert one.undo_description == "a note" and one.undo() is not None and "note" not in one
