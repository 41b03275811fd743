"""Models of pydantic: the same as dataclasses, with pydantic's own types, names and validation."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from typing import Annotated, Any, Iterator, Literal, Optional, Union

import llvs
import pytest
from llvs import models
from pydantic import AliasChoices, AliasPath, BaseModel, ConfigDict, Field, HttpUrl, field_validator


class Phone(BaseModel):
    id: str
    number: str = ""


@models.model("contact/")
class Contact(BaseModel):
    model_config = ConfigDict(populate_by_name=True)

    full_name: Annotated[str, Field(max_length=5)] = Field(default="", alias="fullName")
    tags: set[str] = set()
    phones: Annotated[list[Phone], models.Key("id")] = []
    visits: Annotated[int, models.Counter()] = 100
    bio: Annotated[str, models.Text()] = ""
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
    assert models.schema_of(Contact)["ids"]["contact/"] == {
        "": "auto", "/tags": "set", "/phones": {"as": "list", "key": ["/id"]}, "/visits": {"as": "counter", "from": 100}, "/bio": "text",
        "/nested/*/*": "set",
    }  # fmt: skip


def test_an_absent_that_is_the_default_stands() -> None:
    """A rule `absent` that equals the default is accepted, also for types that only pydantic can write, and for values that are read as the
    default."""

    class Link(BaseModel):
        home: Annotated[HttpUrl, models.Absent("http://x.org/")] = HttpUrl("http://x.org/")
        names: Annotated[dict[int, str], models.Absent({"1": "b"})] = {1: "b"}
        data: Annotated[bytes, models.Absent("x")] = b"x"

    assert models.model("link/")(Link) is Link


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
def test_what_does_not_fit_is_reported(notes: llvs.Coordinator, data: bytes, member: str, why: str) -> None:
    notes.save(insert={"contact/1": data})
    people = notes.collection(Contact)
    with pytest.raises(models.DecodeError) as raised:
        people["1"]
    assert raised.value.member == member and why in str(raised.value) and "'contact/1'" in str(raised.value)
    with pytest.raises(models.DecodeError):
        people["1"] = Contact()
    assert notes["contact/1"] == data


def test_what_others_could_not_read_is_not_saved(notes: llvs.Coordinator) -> None:
    people = notes.collection(Contact)
    ann = Contact()
    ann.full_name = "much too long"  # pydantic does not check assignments by default
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
        amount: Annotated[Decimal, models.Counter()] = Decimal(0)

    class Outer(BaseModel):
        inner: Bare = Bare(name="")

    needs = "Bare.name needs a default"
    for cls, why in ((Bare, needs), (Outer, needs), (Strict, "forbids members"), (Money, "writes a Decimal as a string")):
        with pytest.raises(TypeError, match=why):
            models.model("x/")(cls)


def test_a_class_that_holds_itself(notes: llvs.Coordinator) -> None:
    node: Any = models.model("node/")(Node)
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


def test_what_is_none_is_not_lost(notes: llvs.Coordinator) -> None:
    """Left out is what is None by default, and nothing else."""
    @models.model("x/")
    class Made(BaseModel):
        model_config = ConfigDict(extra="allow")

        limit: Optional[int] = 5
        by_name: dict[str, Optional[int]] = {}
        any: Any = None
        town: Optional[str] = None
        required: Optional[int] = Field(default_factory=lambda: 5)

    made = notes.collection(Made)
    one = Made(limit=None, by_name={"a": None, "b": 1}, any={"x": None}, required=None)
    made["1"] = one
    assert notes["x/1"] == b'{"limit":null,"by_name":{"a":null,"b":1},"any":{"x":null},"required":null}' and made["1"] == one
    notes.save(update={"x/1": b'{"by_name":{"a":null},"more":null}'})
    with made.edit("1") as two:
        two.limit = 6
    assert json.loads(notes["x/1"]) == {"by_name": {"a": None}, "more": None, "limit": 6}


def test_a_union_is_arranged_by_what_is_there(notes: llvs.Coordinator) -> None:
    class Cat(BaseModel):
        kind: Literal["cat"] = "cat"
        name: Optional[str] = None

    class Dog(BaseModel):
        kind: Literal["dog"] = "dog"
        name: Optional[str] = "Rex"

    @models.model("x/")
    class Made(BaseModel):
        pet: Union[Cat, Dog] = Field(default_factory=Cat, discriminator="kind")

    made = notes.collection(Made)
    made["1"] = Made(pet=Dog(name=None))
    assert made["1"] == Made(pet=Dog(name=None))


def test_members_that_would_not_come_back() -> None:
    with pytest.raises(TypeError, match="Made.x is excluded, so that it would never be saved"):
        @models.model("x/")
        class Made(BaseModel):
            x: int = Field(0, exclude=True)
    with pytest.raises(TypeError, match="Other.x is written as 'N', and not read under that name"):
        @models.model("x/")
        class Other(BaseModel):
            x: int = Field(0, serialization_alias="N", validation_alias="M")


def test_aliases_that_come_back(notes: llvs.Coordinator) -> None:
    @models.model("x/")
    class Made(BaseModel):
        model_config = ConfigDict(populate_by_name=True)

        a: int = Field(0, validation_alias=AliasChoices("B", AliasPath("A")), serialization_alias="A")
        b: int = Field(0, validation_alias="x", serialization_alias="b")
        c: int = 0
        d: int = Field(0, alias="D")

    made = notes.collection(Made)
    made["1"] = one = Made(A=1, b=2, c=3, D=4)  # type: ignore[call-arg]
    assert made["1"] == one and notes["x/1"] == b'{"A":1,"b":2,"c":3,"D":4}'


def test_objects_of_a_subclass_that_would_lose_members(notes: llvs.Coordinator) -> None:
    class More(Contact):
        more: int = 1

    people = notes.collection(Contact)
    with pytest.raises(TypeError, match="the object is of the class More, whose member 'more' would be lost"):
        people["1"] = More()
    assert "1" not in people


def test_what_is_picked_by_size_is_written_in_order(notes: llvs.Coordinator) -> None:
    @models.model("x/")
    class Last(BaseModel):
        last: Annotated[Optional[datetime], models.Pick("max")] = None
        all: dict[str, Annotated[datetime, models.Pick("max")]] = {}

    lasts, moment = notes.collection(Last), datetime(2024, 1, 1, 12, tzinfo=timezone(timedelta(hours=-5)))
    lasts["1"] = Last(last=moment, all={"a": moment})
    assert notes["x/1"] == b'{"last":"2024-01-01T17:00:00.000000Z","all":{"a":"2024-01-01T17:00:00.000000Z"}}'
    assert lasts["1"] == Last(last=moment, all={"a": moment})
