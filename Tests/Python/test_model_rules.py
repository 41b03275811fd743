"""Rules of models that have no effect or contradict a default are refused; rules for elements take effect."""

from __future__ import annotations

import enum
import json
import re
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Annotated, Any, Literal, Optional, Union

import llvs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from llvs import models
from llvs.models._json import canonical, parse, write
from pydantic import BaseModel


@dataclass
class Phone:
    id: str
    number: str = ""


@dataclass
class Place:
    x: int = 0


class Base(enum.IntEnum):
    TWO = 2
    TEN = 10


def made(hint: Any, **default: Any) -> Any:
    """A model with one member `m`."""
    namespace = {"__annotations__": {"m": hint}, "m": field(**default)}
    return models.model("x/")(dataclass(type("Made", (), namespace)))


ELEMENTS: list[tuple[Any, Any, Any]] = [
    (list[Annotated[Phone, models.DeleteWins()]], [Phone("a"), Phone("b")], [Phone("a", "1"), Phone("b")]),
    (Annotated[list[Annotated[Phone, models.DeleteWins()]], models.Key("id")], [Phone("a"), Phone("b")], [Phone("a", "1"), Phone("b")]),
    (Annotated[list[Annotated[Any, models.DeleteWins()]], models.Key("/k")], [{"k": "a"}, {"k": "b"}], [{"k": "a", "n": 1}, {"k": "b"}]),
    (dict[str, Annotated[int, models.DeleteWins()]], {"a": 1, "b": 2}, {"a": 3, "b": 2}),
]


@pytest.mark.parametrize("hint,before,edited", ELEMENTS, ids=str)
def test_an_element_that_one_side_removed_stays_removed(hint: Any, before: Any, edited: Any) -> None:
    """Their key needs no default here either."""
    model, place = made(hint, default_factory=type(before)), f"memory:{hint}"
    with llvs.Coordinator(storage="memory", exchange=place) as one, llvs.Coordinator(storage="memory", exchange=place) as two:
        one.collection(model)["1"] = model(before)
        one.sync()
        two.sync()
        with one.collection(model).edit("1") as value:
            del value.m["a" if isinstance(before, dict) else 0]
        with two.collection(model).edit("1") as value:
            value.m = edited
        for device in (one, two, one):
            device.sync()
        assert one.collection(model)["1"].m == two.collection(model)["1"].m == ({"b": 2} if isinstance(before, dict) else before[1:])


def test_elements_that_may_be_missing_need_no_default_for_their_key() -> None:
    assert made(list[Optional[Phone]], default_factory=list).__llvs_model__.rules == {"": "auto"}
    with pytest.raises(TypeError, match="Phone.id needs a default"):
        made(dict[str, Annotated[Phone, models.DeleteWins()]], default_factory=dict)


@pytest.mark.parametrize("hint,default,told", [
    (list[Phone], {"default_factory": list}, r"write list\[Annotated\[..., llvs.models.DeleteWins\(\)\]\]; for the whole, make"),
    (dict[str, int], {"default_factory": dict}, r"write dict\[str, Annotated\[..., llvs.models.DeleteWins\(\)\]\]; for the dict itself"),
    (set[str], {"default_factory": set}, "Its elements stay removed without it"),
    (str, {"default": ""}, "this member is always written. Make it Optional with None"),
    (Optional[str], {"default": "a"}, "this member is always written"),
])  # fmt: skip
def test_removals_of_what_is_never_removed(hint: Any, default: Any, told: str) -> None:
    with pytest.raises(TypeError, match="Made.m: DeleteWins.*" + told):
        made(Annotated[hint, models.DeleteWins()], **default)
    assert made(Annotated[Optional[hint], models.DeleteWins()], default=None)


@pytest.mark.parametrize("rule", [models.DeleteWins(), {"delete": "delete"}, {"as": "list", "delete": "delete"}])
def test_removals_of_what_is_never_removed_by_pattern(rule: Any) -> None:
    """Refused as at the member itself: by the member's name in the JSON, and inside lists and dicts."""

    @dataclass
    class Contact:
        phones: list[Phone] = field(default_factory=list)
        places: list[Place] = field(default_factory=list)
        other: Annotated[list[Phone], models.Named("others")] = field(default_factory=list)
        by_name: dict[str, Place] = field(default_factory=dict)
        draft: Optional[list[str]] = None
        either: Union[Place, list[str]] = field(default_factory=list)

    for pattern in ("/phones", "/others", "/places/*/x", "/by_name/*/x", "/either"):
        with pytest.raises(TypeError, match=f"Contact: the rule at '{re.escape(pattern)}': DeleteWins.*this member is always written"):
            models.model("x/", rules={pattern: rule})(Contact)
    for pattern in ("", "/draft", "/phones/*", "/by_name/*", "/unknown", "/other"):
        made = models.model("x/", rules={pattern: rule})(Contact)
        assert models.definition_of(made).rules[pattern] in (rule, {"delete": "delete"})


def test_removals_by_pattern_of_pydantic() -> None:
    class Contact(BaseModel):
        phones: list[str] = []
        draft: Optional[str] = None

    with pytest.raises(TypeError, match="Contact: the rule at '/phones': DeleteWins.*this member is always written"):
        models.model("x/", rules={"/phones": models.DeleteWins()})(Contact)
    made = models.model("x/", rules={"/draft": models.DeleteWins()})(Contact)
    assert models.definition_of(made).rules["/draft"] in (models.DeleteWins(), {"delete": "delete"})


@pytest.mark.parametrize("hint,absent,default", [
    (dict[str, str], {"a": "b"}, {"default_factory": dict}),
    (str, None, {"default": ""}),
    (int, 1, {"default": 0}),
    (Optional[str], "a", {"default": "b"}),
    (set[int], [1, 2], {"default_factory": lambda: {1}}),
])  # fmt: skip
def test_what_is_absent_is_the_default(hint: Any, absent: Any, default: Any) -> None:
    with pytest.raises(TypeError, match=r"Made.m: where the member is missing it is merged as .*, and read as its default, .*\. Let"):
        made(Annotated[hint, models.Absent(absent)], **default)


def test_an_absent_that_is_the_default_stands() -> None:
    assert made(Annotated[int, models.Absent(1.0)], default=1)
    assert made(Annotated[dict[str, str], models.Absent({"a": "b"})], default_factory=lambda: {"a": "b"})
    assert made(Annotated[Optional[dict[str, str]], models.Absent({})], default=None)
    # Values that are read as the default, whatever their spelling.
    assert made(Annotated[Place, models.Absent({})], default_factory=Place)
    assert made(Annotated[set[str], models.Absent(["b", "a"])], default_factory=lambda: {"a", "b"})


def test_mistakes_of_beginners_get_messages_with_the_right_form() -> None:
    with pytest.raises(TypeError, match=r"write @llvs.models.model\('contact/'\) above the class"):
        models.model(Phone)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"Made.m: Counter\(.*\) is no type, but says more of one: write Annotated"):
        made(models.Counter(), default=0)
    with pytest.raises(TypeError, match="Made.m: a slot of a tuple has no rule of its own"):
        made(tuple[Annotated[int, models.Counter()], int], default=(0, 0))
    model = made(int, default=0)
    with llvs.Coordinator(storage="memory") as notes:
        collection: Any = notes.collection(model)
        for use in (
            lambda: collection.update({1: model()}), lambda: collection.save(remove=[1]), lambda: collection.edit(1).__enter__(),
            lambda: list(collection.history(1)), lambda: collection.__setitem__(1, model()),
        ):
            with pytest.raises(TypeError, match="the ids of Made objects are strings: '1', not 1"):
                use()
        assert 1 not in collection and not len(collection)


def test_of_pydantic() -> None:
    class Device(BaseModel):
        id: str
        name: str = ""

    @models.model("x/")
    class Fitting(BaseModel):
        devices: list[Annotated[Device, models.DeleteWins()]] = []
        settings: Annotated[dict[str, str], models.Absent({})] = {}
        draft: Annotated[Optional[str], models.DeleteWins()] = None

    assert models.definition_of(Fitting).rules["/devices/*"] == {"delete": "delete"}
    with pytest.raises(TypeError, match="Useless.devices: DeleteWins"):

        @models.model("x/")
        class Useless(BaseModel):
            devices: Annotated[list[Device], models.DeleteWins()] = []

    with pytest.raises(TypeError, match="Other.settings: where the member is missing"):

        @models.model("x/")
        class Other(BaseModel):
            settings: Annotated[dict[str, str], models.Absent({"a": "b"})] = {}


@pytest.mark.parametrize("hint", [Literal[2, 10], Base])
def test_equal_numbers_are_one_choice(hint: Any) -> None:
    """Equal numbers are one choice in every spelling (P17), and a save keeps the spelling that was read."""
    model = made(hint, default=2 if hint is not Base else Base.TWO)
    with llvs.Coordinator(storage="memory") as notes:
        for text, number in ((b"2.0", 2), (b"2e0", 2), (b"1e1", 10), (b"10.00", 10)):
            notes.save(update={"x/1": b'{"m":' + text + b',"n":1}'})
            assert notes.collection(model)["1"] == model(hint(number) if hint is Base else number)
            with notes.collection(model).edit("1"):
                pass
            assert json.loads(notes["x/1"], parse_float=str)["m"] == text.decode()
        for text in (b"2.5", b"3", b"true", b"null", b'"2"', b"[2]", b"1e999"):
            notes.save(update={"x/1": b'{"m":' + text + b"}"})
            with pytest.raises(models.DecodeError, match="/m"):
                notes.collection(model)["1"]


@given(
    st.decimals(allow_nan=False, allow_infinity=False, places=3) | st.integers().map(Decimal),
    st.integers(-30, 30),
    st.decimals(allow_nan=False, allow_infinity=False, places=2),
)
def test_equal_numbers_have_one_canonical_text(number: Decimal, shift: int, other: Decimal) -> None:
    def text(number: Decimal, spelling: str) -> str:
        return canonical(parse(format(number, spelling).encode()))

    same = number.scaleb(shift)
    assert text(same, "f") == text(same, "e") == canonical(parse(write(same)))
    assert (text(number, "f") == text(other, "f")) == (number == other)
