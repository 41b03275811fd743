"""Differences inside values, which the command and the inspector share."""

from __future__ import annotations

import copy
import json
import random
from typing import Any

import pytest
from hypothesis import given, strategies as st

from llvs.tools import differing
from llvs.tools.differing import ABSENT, Effort, blocks, members, words
from llvs.tools.exact_json import parsed, written


@given(st.lists(st.integers(0, 5), max_size=40), st.lists(st.integers(0, 5), max_size=40), st.integers(0, 3000))
def test_blocks_lead_from_one_to_the_other(a: list[int], b: list[int], effort: int) -> None:
    made: list[int] = []
    at = other = 0
    last = None
    for block in blocks(a, b, Effort(effort)):
        assert (block.first, block.start) == (at, other) and block.is_equal != last
        assert block.last > block.first or block.end > block.start
        if block.is_equal:
            assert a[block.first : block.last] == b[block.start : block.end]
        made += b[block.start : block.end]
        at, other, last = block.last, block.end, block.is_equal
    assert (at, other) == (len(a), len(b)) and made == b


@given(st.lists(st.integers(0, 3), max_size=12), st.lists(st.integers(0, 3), max_size=12))
def test_without_elements_that_are_there_once_nothing_more_can_be_equal(a: list[int], b: list[int]) -> None:
    a, b = a + a, b + b
    longest = [[0] * (len(b) + 1) for _ in range(len(a) + 1)]
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            longest[i + 1][j + 1] = longest[i][j] + 1 if x == y else max(longest[i][j + 1], longest[i + 1][j])
    matched = [differing._shortest(a, b, 0, len(a), 0, len(b), Effort())]
    assert sum(count for one in matched for _, _, count in one) == longest[-1][-1]


def test_a_block_that_moved_keeps_what_is_around_it() -> None:
    lines = [f"line {number}" for number in range(5000)]
    other = lines[:100] + lines[101:3000] + ["new"] + lines[3000:]
    assert [block[1:] for block in blocks(lines, other) if not block.is_equal] == [(100, 101, 100, 100), (3000, 3000, 2999, 3000)]


def test_words() -> None:
    assert words("Meet at seven.", "Meet at nine.") == [("=", "Meet at "), ("-", "seven"), ("+", "nine"), ("=", ".")]
    assert words("", "") == [] and words("a", "") == [("-", "a")]


#: Without -0.0: Python considers it equal to 0.0, but JSON writes it differently.
FLOATS = st.floats(allow_nan=False, allow_infinity=False, width=16).map(lambda number: number + 0.0)
Json = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "1", "true", "~"]) | FLOATS,
    lambda part: st.lists(part, max_size=4) | st.dictionaries(st.sampled_from(["a", "b", "a/b", "~"]), part, max_size=4), max_leaves=12,
)


@given(Json, Json)
def test_two_documents_differ_just_where_something_is_reported(a: Any, b: Any) -> None:
    first, second = json.dumps(a), json.dumps(b)
    found = list(members(parsed(first), parsed(second)))
    assert bool(found) == (json.dumps(a, sort_keys=True) != json.dumps(b, sort_keys=True))
    for one in found:
        value: Any = a if one.new is ABSENT else b
        for step in one.path if one.path and one.new is not ABSENT else ():
            value = value[step]
        if one.new is not ABSENT:
            assert json.loads(written(one.new)) == value
    plain = list(members(a, b))
    assert [one.path for one in plain] == [one.path for one in found]


@pytest.mark.parametrize(("a", "b"), [
    ('{"a": 12}', '{"a": "12"}'), ("[1]", '["1"]'), ("[1]", "[[1]]"), ('[["1"]]', "[1]"), ("[true]", "[1]"), ("[1.0]", "[1]"), ("{}", "[]"),
    ("[10000000000000000001]", "[10000000000000000002]"), ('{"a": null}', "{}"), ("[1e400]", "[2e400]"),
])
def test_what_looks_alike(a: str, b: str) -> None:
    assert len(list(members(parsed(a), parsed(b)))) == 1
    assert written(parsed(a)) == a


def test_elements_and_their_places() -> None:
    old = [{"id": number, "name": "x"} for number in range(100)]
    new = copy.deepcopy(old)
    del new[10]
    new.insert(50, {"id": -1})
    new[80]["name"] = "y"
    assert [(one.pointer, one.old, one.new) for one in members(old, new)] == [
        ("/10", {"id": 10, "name": "x"}, ABSENT), ("/50", ABSENT, {"id": -1}), ("/80/name", "x", "y")
    ]
    assert [one.pointer for one in members({"a/b": {"~": 1}}, {"a/b": {"~": 2}})] == ["/a~1b/~0"]
    assert list(members([{"a": 1, "b": 2}, 0], [{"b": 2, "a": 1}, 1]))[0].pointer == "/1"


def test_effort_bounds_what_is_compared() -> None:
    """Counted, since clocks differ: two documents of 1 MB that have nothing but digits in common."""
    chance = random.Random(5)
    left, right = ([chance.randrange(9) for _ in range(350_000)] for _ in range(2))
    effort = Effort()
    first = next(members(left, right, effort))
    assert first.path and effort.left < 0 and effort.left > -differing.STEPS
    # Many small comparisons share one effort as well.
    effort = Effort(10_000)
    for _ in range(1000):
        words(" ".join(str(chance.random()) for _ in range(30)), " ".join(str(chance.random()) for _ in range(30)), effort)
    assert effort.left > -1_000_000
