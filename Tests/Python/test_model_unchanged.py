"""What counts as a change of a model's object: random objects of every supported type, with fixed seeds."""

from __future__ import annotations

import collections
import enum
import ipaddress
import json
import random
import re
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, Optional, Union

import llvs
import pytest
from llvs import models
from sampling import sample

try:
    import pydantic
except ImportError:  # its half is skipped below
    pydantic = None  # type: ignore[assignment]


@pytest.fixture
def coordinator(tmp_path: Path) -> Iterator[llvs.Coordinator]:
    with llvs.Coordinator(tmp_path / "one.llvs") as made:
        yield made


class Grade(enum.Enum):
    LOW = "low"
    MID = "mid"
    HIGH = "high"


class Rank(enum.IntEnum):
    FIRST = 1
    SECOND = 2
    THIRD = 3


@dataclass(frozen=True)
class Corner:
    x: float = 0.0
    y: int = 0
    grades: frozenset[Grade] = frozenset()


@dataclass
class Piece:
    id: str
    title: str = ""
    at: Optional[datetime] = None
    tags: set[str] = field(default_factory=set)
    count: Annotated[int, models.Counter()] = 0


class Bag:
    """A type of an app's own, with a set in it."""

    def __init__(self, names: set[str]) -> None:
        self.names = names

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Bag) and self.names == other.names


@models.model("every/")
@dataclass
class Everything:
    text: str = ""
    number: int = 0
    ratio: float = 0.0
    price: Decimal = Decimal(0)
    yes: bool = False
    data: bytes = b""
    moment: datetime = datetime(2027, 1, 1, tzinfo=timezone.utc)
    local: Optional[datetime] = None
    day: date = date(2027, 1, 1)
    hour: time = time(8)
    ident: uuid.UUID = uuid.UUID(int=1)
    grade: Grade = Grade.LOW
    rank: Rank = Rank.FIRST
    literal: Literal["a", "b", 3] = "a"
    optional: Optional[int] = None
    by_default: Optional[int] = 5
    either: Union[str, int, None, list[int]] = None
    strings: set[str] = field(default_factory=set)
    frozen: frozenset[int] = frozenset()
    moments: set[datetime] = field(default_factory=set)
    uuids: set[uuid.UUID] = field(default_factory=set)
    sets: set[frozenset[str]] = field(default_factory=set)
    corners: set[Corner] = field(default_factory=set)
    pairs: set[tuple[str, frozenset[int]]] = field(default_factory=set)
    numbers: list[float] = field(default_factory=list)
    lists: list[set[Grade]] = field(default_factory=list)
    pieces: list[Piece] = field(default_factory=list)
    several: tuple[str, ...] = ()
    fixed: tuple[int, frozenset[str], Optional[Decimal]] = (0, frozenset(), None)
    by_name: dict[str, int] = field(default_factory=dict)
    sets_by_name: dict[str, set[str]] = field(default_factory=dict)
    corner: Corner = Corner()
    anything: Any = None
    bag: Annotated[Bag, models.Convert(lambda bag: list(bag.names), lambda names: Bag(set(names)))] = field(
        default_factory=lambda: Bag(set())
    )
    visits: Annotated[int, models.Counter()] = 0
    note: Annotated[str, models.Text()] = ""
    slots: Annotated[list[int], models.Tuple()] = field(default_factory=lambda: [0, 0])
    whole: Annotated[set[str], models.Register()] = field(default_factory=set)
    seen: Annotated[Optional[datetime], models.Pick("max")] = None
    named: Annotated[set[int], models.Named("other_name")] = field(default_factory=set)


Random = random.Random
Make = Callable[[Random], Any]


def number(r: Random) -> int:
    return r.choice([r.randrange(100), -r.randrange(100), r.randrange(10**30)])


def ratio(r: Random) -> float:
    return float(r.choice([r.random(), r.randrange(100), r.random() * 10.0 ** r.randrange(-300, 300), -0.0]))


def word(r: Random) -> str:
    return "".join(r.choice(["a", "b", "é", "e\u0301", '"', "\\", "\n", "\x01", "日", " "]) for _ in range(r.randrange(6)))


def price(r: Random) -> Decimal:
    return Decimal(r.randrange(10**r.randrange(1, 25))).scaleb(-r.randrange(20))


def moment(r: Random) -> datetime:
    zone = r.choice([timezone.utc, timezone.utc, timezone(timedelta(hours=r.randrange(-11, 12), minutes=30))])
    micros = r.choice([0, r.randrange(1000) * 1000, r.randrange(10**6)])
    return datetime(r.randrange(2, 9999), r.randrange(1, 13), r.randrange(1, 29), r.randrange(24), 5, r.randrange(60), micros, zone)


def utc(r: Random) -> datetime:
    return moment(r).replace(tzinfo=timezone.utc)


def some(r: Random, make: Make, most: int = 5) -> list[Any]:
    return [make(r) for _ in range(r.randrange(most))]


def shuffled(r: Random, items: Any) -> set[Any]:
    """A set that had more elements once: an equal one is often in another order."""
    made = set(items)
    more = {object() for _ in range(r.choice([0, 0, 30]))}
    made |= more
    made -= more
    return made


def words(r: Random) -> set[str]:
    return shuffled(r, some(r, word))


def grades(r: Random) -> frozenset[Grade]:
    return frozenset(shuffled(r, some(r, lambda r: r.choice(list(Grade)), 5)))


def corner(r: Random) -> Corner:
    return Corner(ratio(r), number(r), grades(r))


def named(r: Random, make: Make) -> dict[str, Any]:
    return {word(r): make(r) for _ in range(r.randrange(5))}


def anything(r: Random, depth: int = 0) -> Any:
    deep: list[Make] = [lambda r: some(r, lambda r: anything(r, depth + 1), 4), lambda r: named(r, lambda r: anything(r, depth + 1))]
    plain: list[Make] = [number, ratio, word, lambda r: None, lambda r: True]
    return r.choice(plain + (deep if depth < 3 else []))(r)


def pieces(r: Random) -> list[Piece]:
    ids = r.sample(range(20), r.randrange(5))
    return [Piece(str(id), word(r), r.choice([None, moment(r)]), words(r), number(r)) for id in ids]


#: A random value of each member.
CHANGES: dict[str, Make] = {
    "text": word, "number": number, "ratio": ratio, "price": price, "yes": lambda r: r.random() < 0.5,
    "data": lambda r: r.randbytes(r.randrange(20)), "moment": moment,
    "local": lambda r: r.choice([None, moment(r).replace(tzinfo=None)]), "day": lambda r: moment(r).date(),
    "hour": lambda r: moment(r).time(), "ident": lambda r: uuid.UUID(int=r.getrandbits(128)), "grade": lambda r: r.choice(list(Grade)),
    "rank": lambda r: r.choice(list(Rank)), "literal": lambda r: r.choice(["a", "b", 3]), "optional": lambda r: r.choice([None, number(r)]),
    "by_default": lambda r: r.choice([None, number(r)]), "either": lambda r: r.choice([None, word(r), number(r), some(r, number)]),
    "strings": words, "frozen": lambda r: frozenset(some(r, number)), "moments": lambda r: shuffled(r, some(r, moment)),
    "uuids": lambda r: shuffled(r, some(r, lambda r: uuid.UUID(int=r.getrandbits(128)))),
    "sets": lambda r: shuffled(r, some(r, lambda r: frozenset(words(r)))), "corners": lambda r: shuffled(r, some(r, corner)),
    "pairs": lambda r: shuffled(r, some(r, lambda r: (word(r), frozenset(some(r, number))))), "numbers": lambda r: some(r, ratio),
    "lists": lambda r: some(r, lambda r: set(grades(r)), 4), "pieces": pieces, "several": lambda r: tuple(some(r, word)),
    "fixed": lambda r: (number(r), frozenset(words(r)), r.choice([None, price(r)])), "by_name": lambda r: named(r, number),
    "sets_by_name": lambda r: named(r, words), "corner": corner, "anything": anything, "bag": lambda r: Bag(words(r)), "visits": number,
    "note": word, "slots": lambda r: [number(r), number(r)], "whole": words, "seen": lambda r: r.choice([None, utc(r)]),
    "named": lambda r: shuffled(r, some(r, number)),
}  # fmt: skip


def made(model: Any, changes: dict[str, Make], r: Random) -> Any:
    return model(**{name: make(r) for name, make in changes.items()})


def copied(model: Any, changes: dict[str, Make], object: Any, r: Random) -> Any:
    """An equal object whose sets were made in another way."""

    def again(value: Any) -> Any:
        if type(value) in (set, frozenset):
            items = list(map(again, value))
            r.shuffle(items)
            return type(value)(shuffled(r, items))
        if type(value) in (list, tuple):
            return type(value)(map(again, value))
        if type(value) is dict:
            return {name: again(one) for name, one in value.items()}
        return Bag(again(value.names)) if isinstance(value, Bag) else value

    return model(**{name: again(getattr(object, name)) for name in changes})


def check_model(coordinator: llvs.Coordinator, model: Any, changes: dict[str, Make], seed: int, count: int = 1_000) -> None:
    r, all = Random(seed), coordinator.collection(model)
    objects = {str(n): made(model, changes, r) for n in range(count)}
    all.save(objects)
    assert all.save(objects) is None, "the objects themselves"
    read = dict(all.items())
    assert [id for id in objects if read[id] != objects[id]] == []
    assert all.save(read) is None, "as they were read"
    assert all.save({id: copied(model, changes, one, r) for id, one in objects.items()}) is None, "equal ones"
    names = list(changes)
    before = {id: json.loads(coordinator[all.prefix + id]) for id in objects}
    changed = dict(read)
    for n, id in enumerate(read):
        name, copy = names[n % len(names)], copied(model, changes, read[id], r)
        while getattr(copy, name) == getattr(read[id], name):
            setattr(copy, name, changes[name](r))
        changed[id] = copy
    assert all.save(changed) is not None
    wrong = {}
    for n, id in enumerate(read):
        name, after = names[n % len(names)], json.loads(coordinator[all.prefix + id])
        differing = {one for one in {*after, *before[id]} if after.get(one, ...) != before[id].get(one, ...)}
        if differing != {{"named": "other_name"}.get(name, name)} or all[id] != changed[id]:
            wrong[id] = (name, differing)
    assert wrong == {}
    assert all.save(changed) is None


def test_every_member_has_a_change() -> None:
    assert list(CHANGES) == list(Everything.__dataclass_fields__)


@pytest.mark.parametrize("seed", sample([1], [1, 2]))
def test_unchanged_objects_make_no_version(coordinator: llvs.Coordinator, seed: int) -> None:
    check_model(coordinator, Everything, CHANGES, seed, sample(90, 500))


needs_pydantic = pytest.mark.skipif(pydantic is None, reason="pydantic is not installed")


@needs_pydantic
@pytest.mark.parametrize("seed", sample([3], [3, 4]))
def test_unchanged_objects_of_pydantic_make_no_version(coordinator: llvs.Coordinator, seed: int) -> None:
    class Names(pydantic.RootModel[set[str]]):
        root: set[str] = set()

    class Part(pydantic.BaseModel):
        tags: set[str] = set()
        price: Decimal = Decimal(0)

    class Typed(pytest.importorskip("typing_extensions").TypedDict):  # type: ignore[misc]
        names: set[str]
        count: int

    class Slots(NamedTuple):
        names: frozenset[str] = frozenset()
        size: int = 0

    @models.model("pydantic/")
    class Every(pydantic.BaseModel):
        text: str = ""
        number: int = 0
        ratio: float = 0.0
        price: Decimal = Decimal(0)
        moment: datetime = datetime(2027, 1, 1, tzinfo=timezone.utc)
        day: date = date(2027, 1, 1)
        ident: uuid.UUID = uuid.UUID(int=1)
        grade: Grade = Grade.LOW
        span: timedelta = timedelta()
        address: Optional[ipaddress.IPv4Address] = None
        strings: set[str] = set()
        sets: set[frozenset[str]] = set()
        fixed: tuple[set[str], int] = (set(), 0)
        by_number: dict[int, set[str]] = {}
        by_grade: dict[Grade, set[str]] = {}
        names: Names = Names(set())
        typed: Typed = {"names": set(), "count": 0}  # type: ignore[assignment]
        slots: Slots = Slots()
        sequence: Sequence[set[str]] = ()
        queue: collections.deque[set[str]] = collections.deque()
        mapping: Mapping[str, frozenset[str]] = {}
        abstract: AbstractSet[str] = frozenset()
        part: Part = Part()
        parts: list[Part] = []
        pieces: list[Piece] = []
        either: Union[Part, set[str], int] = 0
        visits: Annotated[int, models.Counter()] = 0
        seen: Annotated[Optional[datetime], models.Pick("max")] = None

    def part(r: Random) -> Part:
        return Part(tags=words(r), price=price(r))

    changes: dict[str, Make] = {
        **{name: CHANGES[name] for name in ["text", "number", "ratio", "price", "moment", "day", "ident", "grade"]},
        "span": lambda r: timedelta(seconds=r.randrange(10**6), microseconds=r.randrange(10**6)),
        "address": lambda r: ipaddress.IPv4Address(r.getrandbits(32)), "strings": words, "sets": CHANGES["sets"],
        "fixed": lambda r: (words(r), number(r)), "by_number": lambda r: {number(r): words(r) for _ in range(3)},
        "by_grade": lambda r: {one: words(r) for one in grades(r)}, "names": lambda r: Names(words(r)),
        "typed": lambda r: {"names": words(r), "count": number(r)}, "slots": lambda r: Slots(frozenset(words(r)), number(r)),
        "sequence": lambda r: some(r, words, 4), "queue": lambda r: collections.deque(some(r, words, 4)),
        "mapping": lambda r: {name: frozenset(one) for name, one in named(r, words).items()}, "abstract": lambda r: frozenset(words(r)),
        "part": part, "parts": lambda r: some(r, part, 4), "pieces": pieces,
        "either": lambda r: r.choice([part(r), words(r), number(r)]), "visits": number, "seen": CHANGES["seen"],
    }  # fmt: skip
    assert list(changes) == list(Every.model_fields)
    check_model(coordinator, Every, changes, seed, sample(90, 500))


@dataclass
class KnownPiece:
    id: uuid.UUID
    title: str = ""


@models.model("known/")
@dataclass
class Known:
    name: str = ""
    pieces: list[KnownPiece] = field(default_factory=list)
    uuids: set[uuid.UUID] = field(default_factory=set)
    price: Decimal = Decimal(0)
    moment: Optional[datetime] = None
    text: str = ""


def test_what_others_spell_otherwise_is_no_change(coordinator: llvs.Coordinator) -> None:
    """Ids in capital letters, dates and numbers of more digits: they stay as they are, and elements are found by them."""
    one, two = str(uuid.UUID(int=0xA)).upper(), str(uuid.UUID(int=0xB))
    start = {
        "pieces": [{"id": one, "title": "1", "more": 1}, {"id": two, "title": "2"}],
        "uuids": [one], "text": one, "moment": "2027-01-15T08:00:00.1234567Z",
    }  # fmt: skip
    data = json.dumps(start)[:-1].replace(": ", ":") + ',"price":1.50}'
    coordinator.save(update={"known/1": data.encode()})
    all = coordinator.collection(Known)
    read = all["1"]
    assert read.moment == datetime(2027, 1, 15, 8, 0, 0, 123456, timezone.utc) and all.save({"1": read}) is None
    read.price = Decimal("1.500")
    assert all.save({"1": read}) is None
    with all.edit("1") as edited:
        edited.pieces[0].title, edited.name, edited.price = "new", "Ann", Decimal("1.500")
        edited.uuids.add(uuid.UUID(int=0xC))
    after = json.loads(coordinator["known/1"])
    assert after["pieces"] == [{"id": one, "title": "new", "more": 1}, {"id": two, "title": "2"}]
    assert sorted(after["uuids"]) == sorted([one, str(uuid.UUID(int=0xC))]) and after["moment"] == start["moment"]
    assert re.search(rb'"price":1\.50[,}]', coordinator["known/1"])
    with all.edit("1") as edited:
        edited.text = one.lower()
    assert json.loads(coordinator["known/1"])["text"] == one.lower() and json.loads(coordinator["known/1"])["uuids"] == after["uuids"]


def test_the_order_of_a_set_of_the_app_is_no_change(coordinator: llvs.Coordinator) -> None:
    """The app's conversion decides: a set has no order, a list has one."""

    @models.model("converted/")
    @dataclass
    class Converting:
        bag: Annotated[Bag, models.Convert(lambda bag: list(bag.names), lambda names: Bag(set(names)))] = field(
            default_factory=lambda: Bag(set())
        )
        row: Annotated[list[str], models.Convert(list, list)] = field(default_factory=list)

    all, r = coordinator.collection(Converting), Random(5)
    for n in range(100):
        items = [f"{m}" for m in range(r.randrange(2, 40))]
        all["1"] = Converting(Bag(shuffled(r, items)), items)
        r.shuffle(shuffling := list(items))
        assert all.save({"1": Converting(Bag(shuffled(r, shuffling)), items)}) is None
        assert (all.save({"1": Converting(Bag(shuffled(r, items)), shuffling)}) is None) == (shuffling == items)
        assert all["1"].row == shuffling
