"""Models of pydantic: what dataclasses do, with pydantic's own types, names and validation."""

from __future__ import annotations

import json
from datetime import datetime
from decimal import Decimal
from typing import Annotated, Any, Iterator, Optional

import llvs
import pytest
from pydantic import BaseModel, ConfigDict, Field, HttpUrl, field_validator


class Phone(BaseModel):
    id: str
    number: str = ""


@llvs.model("contact/")
class Contact(BaseModel):
    model_config = ConfigDict(populate_by_name=True)

    full_name: Annotated[str, Field(max_length=5)] = Field(default="", alias="fullName")
    tags: set[str] = set()
    phones: Annotated[list[Phone], llvs.Key("id")] = []
    visits: Annotated[int, llvs.Counter()] = 100
    bio: Annotated[str, llvs.Text()] = ""
    home: Optional[HttpUrl] = None
    seen: Optional[datetime] = None
    price: Decimal = Decimal("1.10")
    nested: dict[str, list[frozenset[int]]] = {}

    @field_validator("tags")
    @classmethod
    def no_spaces(cls, tags: set[str]) -> set[str]:
        if any(" " in tag for tag in tags):
            raise ValueError("tags have no spaces")
        return tags


@pytest.fixture
def notes() -> Iterator[llvs.Coordinator]:
    with llvs.Coordinator(storage="memory") as opened:
        yield opened


def test_rules() -> None:
    assert llvs.schema_of(Contact)["ids"]["contact/"] == {
        "": "auto", "/tags": "set", "/phones": {"as": "list", "key": ["/id"]}, "/visits": {"as": "counter", "from": 100}, "/bio": "text",
        "/nested/*/*": "set",
    }  # fmt: skip


def test_it_comes_back(notes: llvs.Coordinator) -> None:
    people = notes.collection(Contact)
    ann = Contact(
        fullName="Ann", tags={"b", "a"}, phones=[Phone(id="1", number="11")], home=HttpUrl("http://x/"), seen=datetime(2020, 1, 2),
        nested={"x": [frozenset({3, 1, 2})]},
    )  # fmt: skip
    people["1"] = ann
    assert people["1"] == ann
    assert json.loads(notes["contact/1"]) == {
        "fullName": "Ann", "tags": ["a", "b"], "phones": [{"id": "1", "number": "11"}], "visits": 100, "bio": "", "home": "http://x/",
        "seen": "2020-01-02T00:00:00", "price": "1.10", "nested": {"x": [[1, 2, 3]]},
    }  # fmt: skip
    with people.edit("1") as one:
        with people.edit("1") as other:
            other.visits += 5
            other.tags.add("c")
        one.visits += 1
        one.tags.discard("a")
    assert people["1"].visits == 106 and people["1"].tags == {"b", "c"}


def test_what_the_model_does_not_know_stays(notes: llvs.Coordinator) -> None:
    notes.save(insert={"contact/1": b'{"zip":1.50,"fullName":"Ann","phones":[{"id":"1","label":"x"}]}'})
    with notes.collection(Contact).edit("1") as ann:
        ann.full_name = "Anne"
        ann.phones[0].number = "2"
    assert notes["contact/1"] == b'{"zip":1.50,"fullName":"Anne","phones":[{"id":"1","label":"x","number":"2"}]}'


@pytest.mark.parametrize("data,member,why", [
    (b'{"fullName":5}', "/fullName", "valid string"),
    (b'{"fullName":"too long"}', "/fullName", "at most 5"),
    (b'{"phones":[{"id":"1"},{"id":2}]}', "/phones/1/id", "valid string"),
    (b'{"phones":[{}]}', "/phones/0/id", "required"),
    (b'{"tags":["a b"]}', "/tags", "tags have no spaces"),
    (b"[]", "", "an object is expected"),
    (b"{", "", "no JSON"),
])  # fmt: skip
def test_what_does_not_fit_is_told(notes: llvs.Coordinator, data: bytes, member: str, why: str) -> None:
    notes.save(insert={"contact/1": data})
    people = notes.collection(Contact)
    with pytest.raises(llvs.DecodeError) as raised:
        people["1"]
    assert raised.value.member == member and why in str(raised.value) and "'contact/1'" in str(raised.value)
    with pytest.raises(llvs.DecodeError):
        people["1"] = Contact()
    assert notes["contact/1"] == data


def test_what_others_could_not_read_is_not_saved(notes: llvs.Coordinator) -> None:
    people = notes.collection(Contact)
    ann = Contact()
    ann.full_name = "much too long"  # pydantic does not look at assignments unless told to
    with pytest.raises(TypeError, match="'/fullName' is refused by Contact"):
        people["1"] = ann
    with pytest.raises(TypeError, match="Contact is expected, not Phone"):
        people["1"] = Phone(id="1")  # type: ignore[assignment]
    assert len(people) == 0


def test_what_cannot_be_a_model() -> None:
    class Bare(BaseModel):
        name: str

    class Strict(BaseModel):
        model_config = ConfigDict(extra="forbid")
        name: str = ""

    class Money(BaseModel):
        amount: Annotated[Decimal, llvs.Counter()] = Decimal(0)

    class Outer(BaseModel):
        inner: Bare = Bare(name="")

    needs = "Bare.name needs a default"
    for cls, why in ((Bare, needs), (Outer, needs), (Strict, "forbids members"), (Money, "writes a Decimal as a string")):
        with pytest.raises(TypeError, match=why):
            llvs.model("x/")(cls)


def test_a_class_that_holds_itself(notes: llvs.Coordinator) -> None:
    node: Any = llvs.model("node/")(Node)
    nodes = notes.collection(node)
    nodes["1"] = Node(name="a", inner=[Node(name="b")])
    assert nodes["1"] == Node(name="a", inner=[Node(name="b")])


class Node(BaseModel):
    name: str = ""
    inner: list[Node] = []


def test_rules_stand_in_the_json_schema() -> None:
    properties = Contact.model_json_schema()["properties"]
    assert properties["visits"]["x-merge"] == {"as": "counter"} and properties["bio"]["x-merge"] == {"as": "text"}
    assert properties["phones"]["x-merge"] == {"key": ["/id"]}
