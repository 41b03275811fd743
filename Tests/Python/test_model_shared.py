"""Vectors/models.json: one model in Python and in Swift (bindings/swift/Tests/LLVSModelTests/SharedModelTests.swift)."""

from __future__ import annotations

import enum
import json
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Annotated, Any, Optional

import llvs

VECTORS: dict[str, Any] = json.loads((Path(__file__).parent.parent / "Vectors" / "models.json").read_text())


class Level(enum.Enum):
    LOW = "low"
    HIGH = "high"


@dataclass
class Phone:
    id: str
    number: str = ""
    calls: Annotated[int, llvs.Counter()] = 0


@dataclass
class Place:
    x: float = 0.0
    y: float = 0.0


@llvs.model("shared/", rules={"": llvs.Identity("name")})
@dataclass
class Contact:
    name: str = ""
    tags: set[str] = field(default_factory=set)
    phones: Annotated[list[Phone], llvs.Key("id")] = field(default_factory=list)
    stock: Annotated[int, llvs.Counter(min=0)] = 100
    bio: Annotated[str, llvs.Text("line")] = ""
    seen: Annotated[Optional[datetime], llvs.Pick("max")] = None
    shelf: Annotated[str, llvs.Pick("arbiter")] = ""
    settings: Annotated[dict[str, str], llvs.Absent({})] = field(default_factory=dict)
    town: Annotated[Optional[str], llvs.Named("home_town")] = None
    photo: Optional[bytes] = None
    level: Level = Level.LOW
    more: dict[str, int] = field(default_factory=dict)
    place: Annotated[Optional[Place], llvs.Register()] = None
    ratio: float = 0.5
    active: bool = True


def test_the_rules_are_one() -> None:
    assert llvs.schema_of(Contact) == {"merge": 1, "ids": {VECTORS["prefix"]: VECTORS["rules"]}}


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
        # Members stay in the order in which they were, where Python saves.
        assert json.loads(notes["shared/1"]) == json.loads(VECTORS["edited"]) and b'"z":1.50' in notes["shared/1"]
