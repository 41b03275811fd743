"""Vectors/models.json: one model in Python and in Swift (bindings/swift/Tests/LLVSModelTests/SharedModelTests.swift)."""

from __future__ import annotations

import enum
import json
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Annotated, Any, Callable, Optional

import llvs
import pytest
from llvs import models
from sampling import sample

FOLDER = Path(__file__).parent.parent / "Vectors"
VECTORS: dict[str, Any] = json.loads((FOLDER / "models.json").read_text())
EDITS: dict[str, Any] = json.loads((FOLDER / "documents" / "model_edits.json").read_text())


class Level(enum.Enum):
    LOW = "low"
    HIGH = "high"


@dataclass
class Phone:
    id: str
    number: str = ""
    calls: Annotated[int, models.Counter()] = 0


@dataclass
class Place:
    x: float = 0.0
    y: float = 0.0


@models.model("shared/", rules={"": models.Identity("name")})
@dataclass
class Contact:
    name: str = ""
    tags: set[str] = field(default_factory=set)
    phones: Annotated[list[Phone], models.Key("id")] = field(default_factory=list)
    stock: Annotated[int, models.Counter(min=0)] = 100
    bio: Annotated[str, models.Text("line")] = ""
    seen: Annotated[Optional[datetime], models.Pick("max")] = None
    shelf: Annotated[str, models.Pick("arbiter")] = ""
    settings: Annotated[dict[str, str], models.Absent({})] = field(default_factory=dict)
    town: Annotated[Optional[str], models.Named("home_town")] = None
    photo: Optional[bytes] = None
    level: Level = Level.LOW
    more: dict[str, int] = field(default_factory=dict)
    place: Annotated[Optional[Place], models.Register()] = None
    ratio: float = 0.5
    active: bool = True


def test_the_rules_are_one() -> None:
    assert models.schema_of(Contact) == {"merge": 1, "ids": {VECTORS["prefix"]: VECTORS["rules"]}}


@models.model("moment/")
@dataclass
class Moment:
    at: datetime = datetime(2027, 1, 1, tzinfo=timezone.utc)


@pytest.mark.parametrize("text", VECTORS["moments"])
def test_a_moment_is_one_text(text: str) -> None:
    with llvs.Coordinator(storage="memory") as notes:
        notes.save(insert={"moment/1": json.dumps({"at": text}).encode()})
        moments = notes.collection(Moment)
        assert moments["1"].at.utcoffset() == timedelta(0)
        moments["2"] = moments["1"]
        assert json.loads(notes["moment/2"]) == {"at": text}


@pytest.mark.parametrize("text", VECTORS["more_digits"])
def test_moments_of_more_digits_are_read_and_stay(text: str) -> None:
    with llvs.Coordinator(storage="memory") as notes:
        notes.save(insert={"moment/1": json.dumps({"at": text}).encode()})
        moments = notes.collection(Moment)
        whole, fraction = text[:-1].split(".")
        assert moments["1"].at.isoformat(timespec="microseconds") == f"{whole}.{fraction[:6]:0<6}+00:00"
        assert moments.save({"1": moments["1"]}) is None


def test_values_are_read_and_edited_alike() -> None:
    whole: bytes = VECTORS["whole"].encode()
    with llvs.Coordinator(storage="memory") as notes:
        notes.save(insert={"shared/1": whole, "shared/2": VECTORS["empty"].encode()})
        people = notes.collection(Contact)
        zoe = Contact(
            "Zoë", {"a", "b"}, [Phone("home", "030 1", 2), Phone("work")], 7, "one\ntwo\n", datetime(2027, 1, 15, 8, tzinfo=timezone.utc),
            "B", {"k": "v"}, "Ulm", bytes([1, 2, 255]), Level.HIGH, {"a": 1, "b": 2}, Place(1.5, -2.0), 0.25, False,
        )  # fmt: skip
        assert people["1"] == zoe and people["2"] == Contact()
        people["1"] = zoe
        assert notes["shared/1"] == whole
        with people.edit("1") as ann:
            ann.name = "Ann"
            ann.phones[1].calls += 1
        # A save from Python keeps the order of the members.
        assert json.loads(notes["shared/1"]) == json.loads(VECTORS["edited"]) and b'"z":1.50' in notes["shared/1"]


def write_line(one: Contact, number: int) -> None:
    lines = one.bio.split("\n")
    lines[number % len(lines)] = f"line {number}"
    one.bio = "\n".join(lines)


def phone_of(one: Contact, number: int) -> Phone:
    """The phone for a number; if there is none, one that is stored nowhere."""
    return one.phones[number % len(one.phones)] if one.phones else Phone("")


def call(one: Contact, number: int) -> None:
    phone_of(one, number).calls += number


def dial(one: Contact, number: int) -> None:
    phone_of(one, number).number = str(number)


def add_phone(one: Contact, number: int) -> None:
    if all(phone.id != f"p{number}" for phone in one.phones):
        one.phones.append(Phone(f"p{number}", str(number), number))


def drop_phone(one: Contact, number: int) -> None:
    if one.phones:
        del one.phones[number % len(one.phones)]


def move_phone(one: Contact, number: int) -> None:
    if one.phones:
        one.phones.insert(0, one.phones.pop(number % len(one.phones)))


def member(name: str, value: Callable[[Contact, int], Any]) -> Callable[[Contact, int], None]:
    """An edit that sets a member."""
    return lambda one, number: setattr(one, name, value(one, number))


#: The edits of the JSON in Vectors/documents/model_edits.py, made to an object.
EDITS_BY_NAME: dict[str, Callable[[Contact, int], Any]] = {
    "rename": member("name", lambda one, n: f"N{n}"),
    "tag": lambda one, n: one.tags.symmetric_difference_update({"abcdef"[n % 6]}),
    "sell": member("stock", lambda one, n: one.stock - n),
    "write_line": write_line,
    "add_line": member("bio", lambda one, n: one.bio + f"more {n}\n"),
    "call": call,
    "dial": dial,
    "add_phone": add_phone,
    "drop_phone": drop_phone,
    "move_phone": move_phone,
    "see": member("seen", lambda one, n: datetime(2027, 1, 1, 0, 0, n // 4, n % 4 * 250_000, tzinfo=timezone.utc)),
    "shelve": member("shelf", lambda one, n: f"S{n}"),
    "set": lambda one, n: one.settings.update({f"k{n % 3}": str(n)}),
    "unset": lambda one, n: one.settings.pop(f"k{n % 3}", None),
    "relocate": member("town", lambda one, n: f"T{n}"),
    "forget_town": member("town", lambda one, n: None),
    "level": member("level", lambda one, n: Level.LOW if n % 2 else Level.HIGH),
    "count": lambda one, n: one.more.update({f"m{n % 3}": n}),
    "discount": lambda one, n: one.more.pop(f"m{n % 3}", None),
    "place": member("place", lambda one, n: Place(float(n), -n / 2)),
    "forget_place": member("place", lambda one, n: None),
    "weigh": member("ratio", lambda one, n: n / 4),
    "activate": member("active", lambda one, n: n % 2 == 0),
}


@pytest.mark.parametrize("part", range(6))
def test_random_edits_come_to_what_the_model_says(part: int) -> None:
    """As in Swift, which runs all cases: two devices edit one object concurrently, twice."""
    for number, case in enumerate(EDITS["cases"][part :: sample(24, 6)]):
        place = f"memory:test_model_shared-{part}-{number}"
        devices = [llvs.Coordinator(storage="memory", exchange=place) for _ in range(2)]
        with devices[0], devices[1]:
            devices[0].save(insert={"shared/1": EDITS["base"].encode()})
            for round in [{"first": [], "second": [], "value": EDITS["base"]}, *case["rounds"]]:
                for device, edits in zip(devices, (round["first"], round["second"])):
                    if edits:
                        with device.collection(Contact).edit("1") as one:
                            for name, n in edits:
                                EDITS_BY_NAME[name](one, n)
                for device in (devices[0], devices[1], devices[0]):
                    device.sync()
                for device in devices:
                    assert json.loads(device["shared/1"]) == json.loads(round["value"]), case
