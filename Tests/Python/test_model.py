"""Models: a class becomes JSON and rules, and is read back; an unsupported type is refused by name."""

from __future__ import annotations

import enum
import json
import pickle
from dataclasses import dataclass, field, make_dataclass
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from pathlib import PurePosixPath
from typing import Annotated, Any, Callable, Iterator, Literal, Optional, Union
from uuid import UUID

import llvs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from llvs import models


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


@dataclass
class Phone:
    id: str
    number: str = ""


@dataclass
class Town:
    name: str = ""
    at: Annotated[tuple[int, int], models.Tuple()] = (0, 0)


@dataclass(frozen=True)
class Tag:
    name: str = ""
    weight: int = 0


@models.model("all/")
@dataclass
class All:
    """Every type that is known."""

    text: str = ""
    flag: bool = False
    whole: int = 0
    real: float = 0.0
    exact: Decimal = Decimal(0)
    data: bytes = b""
    moment: datetime = datetime(2000, 1, 1)
    day: date = date(2000, 1, 1)
    hour: time = time(12)
    uuid: UUID = UUID(int=0)
    color: Color = Color.RED
    level: Level = Level.LOW
    literal: Literal["a", "b", 3] = "a"
    maybe: Optional[str] = None
    either: int | str | None = None
    names: list[str] = field(default_factory=list)
    tags: set[str] = field(default_factory=set)
    frozen: frozenset[int] = frozenset()
    many: tuple[int, ...] = ()
    pair: tuple[str, int] = ("", 0)
    by_name: dict[str, float] = field(default_factory=dict)
    town: Town = field(default_factory=Town)
    other_town: Optional[Town] = None
    phones: list[Phone] = field(default_factory=list)
    objects: set[Tag] = field(default_factory=set)
    anything: Any = None
    folder: Annotated[PurePosixPath, models.Convert(str, PurePosixPath)] = PurePosixPath()
    full_name: Annotated[str, models.Named("fullName")] = ""


@pytest.fixture
def notes() -> Iterator[llvs.Coordinator]:
    with llvs.Coordinator(storage="memory") as opened:
        yield opened


TEXT = st.text(st.characters(codec="utf-8"), max_size=6)
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from([0.5, 1e300]) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=5,
)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
# Merging accepts numbers of at most 400 digits; hypothesis sometimes makes longer ones.
DECIMALS = st.decimals(allow_nan=False, allow_infinity=False).filter(
    lambda number: len(number.as_tuple().digits) <= 400 and abs(number.adjusted()) < 9000
)


@st.composite
def objects(draw: Callable[[Any], Any]) -> All:
    towns = st.builds(Town, name=TEXT, at=st.tuples(st.integers(), st.integers()))
    return All(
        text=draw(TEXT),
        flag=draw(st.booleans()),
        whole=draw(st.integers(-(10**399), 10**399)),
        real=draw(FLOATS),
        exact=draw(DECIMALS),
        data=draw(st.binary(max_size=8)),
        moment=draw(st.datetimes(timezones=st.sampled_from([None, timezone.utc, timezone(timedelta(hours=5, minutes=30))]))),
        day=draw(st.dates()),
        hour=draw(st.times()),
        uuid=draw(st.uuids()),
        color=draw(st.sampled_from(Color)),
        level=draw(st.sampled_from(Level)),
        literal=draw(st.sampled_from(("a", "b", 3))),
        maybe=draw(st.none() | TEXT),
        either=draw(st.none() | TEXT | st.integers()),
        names=draw(st.lists(TEXT, max_size=3)),
        tags=draw(st.sets(TEXT, max_size=3)),
        frozen=frozenset(draw(st.sets(st.integers(), max_size=3))),
        many=tuple(draw(st.lists(st.integers(), max_size=3))),
        pair=(draw(TEXT), draw(st.integers())),
        by_name=draw(st.dictionaries(TEXT, FLOATS, max_size=3)),
        town=draw(towns),
        other_town=draw(st.none() | towns),
        phones=draw(st.lists(st.builds(Phone, id=TEXT, number=TEXT), max_size=2)),
        objects=draw(st.sets(st.builds(Tag, name=TEXT, weight=st.integers(0, 3)), max_size=2)),
        anything=draw(ANYTHING),
        folder=PurePosixPath(draw(st.sampled_from(["a", "a/b", "."]))),
        full_name=draw(TEXT),
    )


@given(objects())
def test_every_type_comes_back(one: All) -> None:
    definition = models.definition_of(All)
    data = definition.write(one, "all/1")
    assert definition.read(data, "all/1", None) == one
    assert definition.write(definition.read(data, "all/1", None), "all/1") == data, "sets have one order"
    assert llvs.merge.merge_values(None, data, b'{"other":1}', "auto").records == (), "what is written can be merged inside"
    assert json.loads(data)["fullName"] == one.full_name


def test_an_object_without_members_has_the_defaults() -> None:
    assert models.definition_of(All).read(b"{}", "all/1", None) == All()


def test_numbers_of_one_value_are_one() -> None:
    read = models.definition_of(All).read
    assert read(b'{"whole":1.0,"real":1,"exact":1e2}', "all/1", None) == All(whole=1, real=1.0, exact=Decimal(100))
    assert read(b'{"whole":1e3}', "all/1", None).whole == 1000
    assert read(b'{"moment":"2020-01-02T03:04:05Z"}', "all/1", None).moment == datetime(2020, 1, 2, 3, 4, 5, tzinfo=timezone.utc)


# bytes, the member that the error names, other words of the error
UNREADABLE: list[tuple[bytes, str, str]] = [
    (b"", "", "no JSON"),
    (b"\xff", "", "UTF-8"),
    (b"\xef\xbb\xbf{}", "", "no JSON"),
    (b"{", "", "no JSON"),
    (b"[]", "", "an object is expected"),
    (b"[" * 100_000, "", "nested too deeply"),
    (b'{"text":1}', "/text", "a string is expected"),
    (b'{"text":null}', "/text", "a string is expected"),
    (b'{"text":"\\ud800"}', "/text", "surrogate"),
    (b'{"text":"a","text":"b"}', "", "twice"),
    (b'{"flag":1}', "/flag", "true or false is expected"),
    (b'{"whole":1.5}', "/whole", "an integer is expected"),
    (b'{"whole":true}', "/whole", "an integer is expected"),
    (b'{"whole":"1"}', "/whole", "an integer is expected"),
    (b'{"whole":1e999999999}', "/whole", "an integer is expected"),
    (b'{"whole":' + b"1" * 5000 + b"}", "/whole", "an integer is expected"),
    (b'{"real":1e999}', "/real", "beyond what a float can hold"),
    (b'{"real":NaN}', "", "NaN is no number"),
    (b'{"data":"%"}', "/data", "base64 is expected"),
    (b'{"moment":"now"}', "/moment", "a date and time"),
    (b'{"day":"2020-02-30"}', "/day", "a date"),
    (b'{"uuid":"x"}', "/uuid", "a UUID"),
    (b'{"color":"green"}', "/color", "one of Color's values ('red', 'blue')"),
    (b'{"literal":"c"}', "/literal", "one of"),
    (b'{"literal":[]}', "/literal", "one of"),
    (b'{"either":[1]}', "/either", "an integer or a string is expected"),
    (b'{"names":["a",1]}', "/names/1", "a string is expected"),
    (b'{"names":{}}', "/names", "an array is expected"),
    (b'{"pair":["a"]}', "/pair", "an array of 2 is expected"),
    (b'{"by_name":{"a/b":"x"}}', "/by_name/a~1b", "a number is expected"),
    (b'{"town":{"at":[1,"y"]}}', "/town/at/1", "an integer is expected"),
    (b'{"town":5}', "/town", "an object is expected"),
    (b'{"phones":[{"number":"1"}]}', "/phones/0/id", "is missing"),
    (b'{"objects":[[]]}', "/objects/0", "an object is expected"),
]


@pytest.mark.parametrize("data,member,why", UNREADABLE, ids=[f"{member}:{why}"[:40] for _, member, why in UNREADABLE])
def test_what_does_not_fit_is_reported(notes: llvs.Coordinator, data: bytes, member: str, why: str) -> None:
    """The error names the value, the member and a remedy. Nothing is lost, whatever the program tries."""
    collection = notes.collection(All)
    notes.save(update={"all/good": b"{}", "all/it": data})
    for attempt in (
        lambda: collection["it"],
        lambda: collection.get("it"),
        lambda: list(collection.values()),
        lambda: list(collection.items()),
        lambda: collection.__setitem__("it", All(text="new")),
        lambda: collection.save({"good": All(text="new"), "it": All()}),
        lambda: collection.edit("it").__enter__(),
    ):
        with pytest.raises(models.DecodeError) as raised:
            attempt()
        problem = raised.value
        assert (problem.value_id, problem.member, problem.data) == ("all/it", member, data)
        assert "'all/it'" in str(problem) and why in str(problem) and "coordinator.save(update=...)" in str(problem)
        assert isinstance(problem, (llvs.Error, ValueError)) and problem.code == llvs.ErrorCode.INVALID_JSON
    assert notes["all/it"] == data and collection["good"] == All()
    assert list(collection.problems()) == ["it"] and collection.problems()["it"].member == member
    again = pickle.loads(pickle.dumps(problem))
    assert (str(again), again.member, again.data, again.value_id) == (str(problem), member, data, "all/it")
    del collection["it"]  # this is possible
    assert "it" not in collection


UNWRITABLE: list[tuple[Any, str]] = [
    (All(text=5), "'/text' is 5, where a string is expected"),  # type: ignore[arg-type]
    (All(text="\ud800"), "'/text' holds a lone surrogate"),
    (All(flag=1), "'/flag'"),  # type: ignore[arg-type]
    (All(whole=True), "'/whole'"),
    (All(whole=1.0), "'/whole'"),  # type: ignore[arg-type]
    (All(whole=10**400), "digits"),
    (All(real=float("nan")), "'/real'"),
    (All(exact=Decimal("Infinity")), "'/exact'"),
    (All(exact=Decimal("1e10000")), "'/exact'"),
    (All(day=datetime(2000, 1, 1)), "'/day'"),
    (All(color="red"), "'/color'"),  # type: ignore[arg-type]
    (All(literal="x"), "'/literal'"),  # type: ignore[arg-type]
    (All(names=("a",)), "'/names'"),  # type: ignore[arg-type]
    (All(names=["a", None]), "'/names/1'"),  # type: ignore[list-item]
    (All(pair=("a",)), "'/pair'"),  # type: ignore[arg-type]
    (All(by_name={1: 1.0}), "'/by_name' has the key 1"),  # type: ignore[dict-item]
    (All(phones=[Phone("1", 2)]), "'/phones/0/number'"),  # type: ignore[arg-type]
    (All(anything={1}), "'/anything'"),
    (All(anything={1: 2}), "'/anything'"),
    (Phone("1"), "All is expected, not Phone"),
]


@pytest.mark.parametrize("one,why", UNWRITABLE, ids=[why for _, why in UNWRITABLE])
def test_what_others_could_not_read_is_not_saved(notes: llvs.Coordinator, one: Any, why: str) -> None:
    collection = notes.collection(All)
    with pytest.raises(TypeError) as raised:
        collection.save({"good": All(), "1": one})
    assert why in str(raised.value) and "all/1" in str(raised.value)
    assert len(collection) == 0


def test_what_holds_itself_is_not_saved(notes: llvs.Coordinator) -> None:
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(TypeError, match="/anything.*holds itself"):
        notes.collection(All)["1"] = All(anything=loop)


# Rules


def rules_of(*hints: Any, default: Any = None) -> Any:
    """The rules of a model with one member `m` for each annotation."""
    namespace = {"__annotations__": {"m": hints[0]}, "m": default}
    return models.definition_of(models.model("x/")(dataclass(type("Made", (), namespace)))).rules


@dataclass
class Row:
    code: Annotated[str, models.Named("a/b")] = ""
    no: int = 0


RULES: list[tuple[Any, Any]] = [
    (str, {}),
    (set[str], {"/m": "set"}),
    (frozenset[int], {"/m": "set"}),
    (list[Phone], {}),
    (Annotated[list[Phone], models.Key("id")], {"/m": {"as": "list", "key": ["/id"]}}),
    (Annotated[list[str], models.Key()], {"/m": {"as": "list", "key": [""]}}),
    (Annotated[set[Tag], models.Key("name")], {"/m": {"as": "set", "key": ["/name"]}}),
    (Annotated[list[Row], models.Key("/no", "a/b")], {"/m": {"as": "list", "key": ["/no", "/a~1b"]}}),
    (Annotated[list[Row], models.Key("code")], {"/m": {"as": "list", "key": ["/a~1b"]}}),  # by its name in Python
    (Annotated[list[Union[int, Row]], models.Key("/code")], {"/m": {"as": "list", "key": ["/a~1b"]}}),
    (Annotated[list[Any], models.Key("any")], {"/m": {"as": "list", "key": ["/any"]}}),
    (Annotated[Row, models.Register(), models.Pick(max="code")], {"/m": {"as": "register", "pick": {"max": "/a~1b"}}}),
    (Annotated[Row, models.Identity("code", "no")], {"/m": {"identity": ["/a~1b", "/no"]}}),
    (tuple[int, str], {"/m": "register"}),
    (Annotated[tuple[int, str], models.Tuple()], {"/m": "tuple"}),
    (tuple[int, ...], {}),
    (Annotated[int, models.Counter()], {"/m": "counter"}),
    (Annotated[int, models.Counter(5, min=0, max=9)], {"/m": {"as": "counter", "from": 5, "min": 0, "max": 9}}),
    (Optional[Annotated[int, models.Counter()]], {"/m": "counter"}),
    (Annotated[Optional[int], models.Counter()], {"/m": "counter"}),
    (Annotated[str, models.Text()], {"/m": "text"}),
    (Annotated[str, models.Text("line")], {"/m": {"as": "text", "unit": "line"}}),
    (Annotated[str, models.Pick("older")], {"/m": {"pick": "older"}}),
    (Annotated[str, models.Pick("arbiter")], {"/m": {"pick": "arbiter"}}),
    (Annotated[Tag, models.Register(), models.Pick(max="weight")], {"/m": {"as": "register", "pick": {"max": "/weight"}}}),
    (Annotated[int, models.Pick(min="/a/b")], {"/m": {"pick": {"min": "/a/b"}}}),
    (Annotated[Optional[int], models.DeleteWins()], {"/m": {"delete": "delete"}}),
    (list[Annotated[Phone, models.DeleteWins()]], {"/m/*": {"delete": "delete"}}),
    (dict[str, Annotated[int, models.DeleteWins()]], {"/m/*": {"delete": "delete"}}),
    (Annotated[dict[str, int], models.Absent({})], {"/m": {"absent": {}}}),
    (Annotated[Tag, models.Identity("name")], {"/m": {"identity": ["/name"]}}),
    (dict[str, Annotated[str, models.Text()]], {"/m/*": "text"}),
    (list[set[str]], {"/m/*": "set"}),
    (Town, {"/m/at": "tuple"}),
    (dict[str, list[Town]], {"/m/*/*/at": "tuple"}),
    (Union[int, list[Town]], {"/m/*/at": "tuple"}),
    (Annotated[Town, models.Register()], {"/m": "register"}),
    (Annotated[str, models.Named("*"), models.Text()], {"/~2": "text"}),
    (Annotated[str, models.Named("a/b~c"), models.Text()], {"/a~1b~0c": "text"}),
]


@pytest.mark.parametrize("hint,expected", RULES, ids=[str(hint) for hint, _ in RULES])
def test_rules_of_annotations(hint: Any, expected: Any) -> None:
    assert rules_of(hint) == {"": "auto", **expected}


def test_a_counter_begins_with_the_default_of_the_member() -> None:
    """Two devices that begin with 100 and add 5 and 3 have 108, not 208 (P5)."""
    assert rules_of(Annotated[int, models.Counter()], default=100)["/m"] == {"as": "counter", "from": 100}
    assert rules_of(Annotated[int, models.Counter(start=100)], default=100)["/m"] == {"as": "counter", "from": 100}
    assert rules_of(Annotated[int, models.Counter()], default=0)["/m"] == "counter"
    for default in (0, 100):
        with pytest.raises(TypeError, match=f"Made.m: the counter begins with 7, and its member with {default}"):
            rules_of(Annotated[int, models.Counter(start=7)], default=default)


def test_a_text_begins_with_the_default_of_the_member() -> None:
    """Edits of both sides are merged into the default, which is there once."""
    assert rules_of(Annotated[str, models.Text()], default="Dear")["/m"] == {"as": "text", "absent": "Dear"}
    assert rules_of(Annotated[str, models.Text(), models.Absent("Dear")], default="Dear")["/m"] == {"as": "text", "absent": "Dear"}
    assert rules_of(Annotated[str, models.Text()], default="")["/m"] == "text"
    assert rules_of(Annotated[str, models.Text()], default="x" * 1022)["/m"] == {"as": "text", "absent": "x" * 1022}
    with pytest.raises(TypeError, match="Made.m: the default of a text is 1024 bytes of JSON at most"):
        rules_of(Annotated[str, models.Text()], default="x" * 1023)


@pytest.mark.parametrize("hint", [
    Annotated[list[Row], models.Key("nonsense")], Annotated[set[Row], models.Key("/nonsense/x")],
    Annotated[Row, models.Identity("nonsense")], Annotated[Row, models.Register(), models.Pick(min="nonsense")],
])  # fmt: skip
def test_rules_that_name_no_member(hint: Any) -> None:
    with pytest.raises(TypeError, match="Made: the rule at '/m': .* names the member 'nonsense', which Row has not got"):
        rules_of(hint)


def test_a_name_is_not_empty() -> None:
    with pytest.raises(TypeError, match="Named takes the name"):
        models.Named("")


def test_literals_that_python_takes_for_one() -> None:
    with pytest.raises(TypeError, match=r"Made.m: Python takes two values of typing.Literal\[1, True\] for one"):
        rules_of(Literal[1, True])
    assert rules_of(Literal[1, "1"]) == {"": "auto"}


@pytest.mark.parametrize("element_first", [True, False])
def test_a_default_is_needed_wherever_the_class_is_no_element(element_first: bool) -> None:
    """Members that identify elements need no default, whatever the order of the model's members."""
    members: list[Any] = [("phones", list[Phone], field(default_factory=list)), ("main", Optional[Phone], None)]
    with pytest.raises(TypeError, match="Phone.id needs a default"):
        models.model("x/")(make_dataclass("Made", members if element_first else members[::-1]))
    models.model("x/")(make_dataclass("Made", members[:1]))


@dataclass
class MorePhone(Phone):
    more: int = 1


@dataclass
class CallingPhone(Phone):
    def call(self) -> None: ...


def test_objects_of_a_subclass_that_would_lose_members() -> None:
    @models.model("x/")
    @dataclass
    class Base:
        a: int = 0
        phones: list[Phone] = field(default_factory=list)

    @dataclass
    class More(Base):
        b: int = 0

    @dataclass
    class Same(Base):
        pass

    with llvs.Coordinator(storage="memory") as notes:
        made = notes.collection(Base)
        with pytest.raises(TypeError, match="the object is of the class More, whose member 'b' would be lost"):
            made["1"] = More(1)
        with pytest.raises(TypeError, match="the member '/phones/0' is of the class MorePhone, whose member 'more' would be lost"):
            made["1"] = Base(1, [MorePhone("a")])
        assert "1" not in made
        made["1"] = Same(1, [CallingPhone("a")])
        assert made["1"] == Base(1, [Phone("a")])


def test_none_where_the_default_is_another() -> None:
    @models.model("x/")
    @dataclass
    class Made:
        limit: Optional[int] = 5
        names: Optional[list[str]] = field(default_factory=lambda: ["a"])
        town: Optional[str] = None
        at: Optional[int] = field(kw_only=True)

    with llvs.Coordinator(storage="memory") as notes:
        made = notes.collection(Made)
        made["1"] = Made(None, None, at=None)
        assert made["1"] == Made(None, None, at=None) and notes["x/1"] == b'{"limit":null,"names":null}'


MOMENTS = [
    datetime(2024, 1, 1, 12), datetime(2024, 1, 1, 12, 0, 0, 500000), datetime(2024, 1, 1, 12, 0, 1), datetime(999, 1, 1), datetime.max,
    datetime(2024, 1, 1, 12, tzinfo=timezone.utc), datetime(2024, 1, 1, 12, 0, 0, 1, tzinfo=timezone.utc),
    datetime(2024, 1, 1, 12, tzinfo=timezone(timedelta(hours=-5))), datetime(2024, 1, 1, 13, tzinfo=timezone.utc),
]  # fmt: skip


@dataclass
class Taken:
    taken: Optional[datetime] = None


@models.model("x/")
@dataclass
class Last:
    last: Annotated[Optional[datetime], models.Pick("max")] = None
    first: Annotated[Union[int, datetime, None], models.Pick("min")] = None
    day: Annotated[Optional[time], models.Pick("max")] = None
    avatar: Annotated[Optional[Taken], models.Register(), models.Pick(max="taken")] = None


def test_what_is_picked_by_size_is_written_in_order() -> None:
    """The engine compares texts: the order of these is that of the moments."""
    with llvs.Coordinator(storage="memory") as notes:
        lasts = notes.collection(Last)
        for zone in (False, True):
            moments = sorted(one for one in MOMENTS if (one.tzinfo is not None) == zone)
            texts = []
            for one in moments:
                lasts["1"] = Last(one, one, one.time(), Taken(one))
                read, tree = lasts["1"], json.loads(notes["x/1"])
                assert (read.last, read.first, read.day, read.avatar) == (one, one, one.time(), Taken(one))
                assert tree["last"] == tree["first"] == tree["avatar"]["taken"]
                texts.append(tree["last"])
            assert texts == sorted(texts) and len(set(texts)) == len(texts) and len(set(map(len, texts))) == 1
        times = []
        for day in (time(12), time(12, 0, 0, 500000), time(12, 0, 1)):
            lasts["1"] = Last(day=day)
            times.append(json.loads(notes["x/1"])["day"])
        assert times == sorted(times) and len(set(map(len, times))) == 1
        with pytest.raises(TypeError, match="a time of day with a zone"):
            lasts["1"] = Last(day=time(12, tzinfo=timezone.utc))
        with pytest.raises(TypeError, match="the member '/last'"):
            lasts["1"] = Last(datetime.min.replace(tzinfo=timezone(timedelta(hours=5))))


def test_moments_of_before_are_read_and_stay_as_they_are() -> None:
    data = (
        b'{"last":"2024-01-01T12:00:00Z","day":"12:00:00","first":"2024-01-01T12:00:00-05:00",'
        b'"avatar":{"taken":"2024-01-01T12:00:00.5"}}'
    )
    with llvs.Coordinator(storage="memory") as notes:
        lasts = notes.collection(Last)
        notes.save(insert={"x/1": data})
        assert lasts["1"].last == datetime(2024, 1, 1, 12, tzinfo=timezone.utc)
        lasts["1"] = lasts["1"]
        assert notes["x/1"] == data
        with lasts.edit("1") as one:
            one.day = time(13)
        assert notes["x/1"] == data.replace(b'"12:00:00"', b'"13:00:00.000000"')


@dataclass
class Node:
    """Holds itself."""

    name: str = ""
    inner: list[Node] = field(default_factory=list)


@dataclass
class Deep:
    """Holds itself, and a set."""

    names: set[str] = field(default_factory=set)
    inner: list[Deep] = field(default_factory=list)


def test_a_class_that_holds_itself() -> None:
    model = models.definition_of(models.model("node/")(Node))
    one = Node("a", [Node("b", [Node("c")])])
    assert model.read(model.write(one, "node/1"), "node/1", None) == one
    with pytest.raises(TypeError, match="holds itself"):
        models.model("deep/")(Deep)


WRONG: list[tuple[Any, str]] = [
    (complex, "complex is no type"),
    (list, "say of what the list is"),
    (dict[int, str], "keys of a dict are strings"),
    (Union[str, date], "JSON cannot tell"),
    (Union[Town, Tag], "JSON cannot tell"),
    (Union[int, float], "JSON cannot tell"),
    (Annotated[str, models.Counter()], "'counter' is for a number"),
    (Annotated[int, models.Text()], "'text' is for a string"),
    (Annotated[int, models.Key("id")], "'list' is for a list"),
    (Annotated[int, models.Counter(), models.Register()], "say different things of 'as'"),
    (Annotated[list[str], models.Register(), models.Key("id")], "a key is for a list or a set"),
    (Annotated[int, models.Counter], "write Counter()"),
    (Annotated[int, models.Counter(min=3, max=1)], "not valid"),
    (enum.Enum("Bad", {"A": 1.5}), "must be strings or integers"),
]


@pytest.mark.parametrize("hint,why", WRONG, ids=[why for _, why in WRONG])
def test_what_cannot_be_a_model(hint: Any, why: str) -> None:
    with pytest.raises(TypeError) as raised:
        rules_of(hint)
    assert why in str(raised.value) and "Made" in str(raised.value)


def test_members_need_defaults() -> None:
    """A merge can omit a member that one side removed. Without defaults a clean merge could make an unreadable value."""

    @dataclass
    class Bare:
        name: str

    @dataclass
    class Outer:
        inner: Phone = field(default_factory=lambda: Phone("1"))

    @dataclass
    class Listed:
        inner: list[Bare] = field(default_factory=list)

    @dataclass
    class Allowed:
        maybe: Optional[str]
        inner: Annotated[list[Bare], models.Key("name")] = field(default_factory=list)

    for cls, name in ((Bare, "Bare.name"), (Outer, "Phone.id"), (Listed, "Bare.name")):
        with pytest.raises(TypeError, match=f"{name} needs a default"):
            models.model("x/")(cls)
    definition = models.definition_of(models.model("x/")(Allowed))
    assert definition.read(b"{}", "x/1", None) == Allowed(None)


def test_what_is_no_model() -> None:
    class Plain:
        pass

    with pytest.raises(TypeError, match="write @dataclass below"):
        models.model("x/")(Plain)
    with pytest.raises(TypeError, match="Phone is no model"):
        models.definition_of(Phone)
    with pytest.raises(TypeError, match="is for classes"):
        models.model("x/")(len)  # type: ignore[type-var]
    with pytest.raises(ValueError, match="prefix of a model"):
        models.model("")
    with pytest.raises(ValueError, match="prefix of a model"):
        models.model("__llvs_x")
    with pytest.raises(TypeError, match="both, or neither"):
        models.model("x/", encode=lambda one: b"")

    class Inheriting(All):
        pass

    with pytest.raises(TypeError, match="Inheriting is no model"):
        models.definition_of(Inheriting)


def test_any_class_with_functions(notes: llvs.Coordinator) -> None:
    def encode(number: complex) -> bytes:
        return json.dumps({"re": number.real, "im": number.imag}).encode()

    def decode(data: bytes) -> Number:
        found = json.loads(data)
        return Number(found["re"], found["im"])

    @models.model("number/", rules={"/re": models.Counter()}, encode=encode, decode=decode)
    class Number(complex):
        pass

    numbers = notes.collection(Number)
    numbers["1"] = Number(1, 2)
    assert numbers["1"] == 1 + 2j
    notes.save(update={"number/1": b'{"re":1.0,"im":2.0,"more":1}'})
    numbers["1"] = Number(5, 2)
    assert json.loads(notes["number/1"]) == {"re": 5, "im": 2, "more": 1}
    notes.save(update={"number/1": b"{}"})
    with pytest.raises(models.DecodeError, match="KeyError"):
        numbers["1"]


def test_sides_that_are_none() -> None:
    for given in ({"which": "best"}, {}, {"which": "max", "max": "a"}):
        with pytest.raises(TypeError, match="Pick"):
            models.Pick(**given)  # type: ignore[arg-type]


def test_reprs() -> None:
    assert repr(models.Counter(min=0)) == "Counter(start=None, min=0, max=None)"
    assert repr(models.Key("id")) == "Key('id')" and models.Key("id") == models.Key("id") != models.Key()
    assert repr(models.Pick("max")) == "Pick('max')" and hash(models.Pick("max")) == hash(models.Pick("max"))
    assert repr(models.definition_of(All)) == "<the model All of values under 'all/'>"
    with llvs.Coordinator(storage="memory") as notes:
        people = notes.collection(All)
        assert "All" in repr(people) and "'all/'" in repr(people) and "All" in repr(people.at())
    assert "closed" not in repr(people)  # a closed one can be shown as well


def test_rules_in_the_schema_of_json() -> None:
    made = models.Counter().__get_pydantic_json_schema__(None, lambda _: {"type": "integer"})
    assert made == {"type": "integer", "x-merge": {"as": "counter"}}
