"""Lists in the engine, compared with the model: short ones with frequent equal elements, rows, moves and equal edits."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any, Callable, Optional

import llvs
import pytest
from random_documents import Spelled, dumps
from sampling import drawn, sample
from test_documents_engine import compare
from test_documents_swapped import undo_random

FILE = Path(__file__).parent.parent / "Vectors" / "documents" / "texts.json"
CASES = [
    case
    for cases in (json.loads(FILE.read_text("utf-8"))[section] for section in ("examples", "readings"))
    for case in cases
    if case["name"].startswith(("L", "8."))
]


def texts_of(case: dict[str, Any]) -> list[bytes]:
    return [value.encode() if isinstance(value, str) else json.dumps(value).encode() for value in (case[side] for side in "oxy")]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_cases(case: dict[str, Any]) -> None:
    """The examples and readings of the specification, as the whole value and within others."""
    merged = llvs.merge.merge_values(*texts_of(case), {"": case["rule"]})
    assert merged.data is not None and json.loads(merged.data) == case["result"]
    assert [record.kind.value for record in merged.records] == [record["kind"] for record in case["records"]]
    for wrapped in (b'{"l":%s}', b'{"a":{"l":%s}}', b"[[%s]]", b'[{"id":1,"l":%s}]', b"%s"):
        texts = [wrapped % text for text in texts_of(case)]
        for rules in ("auto", {"/*": "list"}, {"": case["rule"]}):
            compare(rules, *texts)
            compare(rules, *texts, saving=True)


#: Makes an element from a number; different numbers give different elements.
Maker = Callable[[random.Random, int], Any]


def row(rng: random.Random, number: int) -> Any:
    """A row of plain values, some of them equal."""
    return [rng.choice([number % 3, 0, rng.randrange(3)]) for _ in range(rng.choice([0, 1, 2, 2, 3]))]


def mixed(rng: random.Random, number: int) -> Any:
    """Any of the others."""
    return rng.choice(list(MAKERS.values()))(rng, number)


MAKERS: dict[str, Maker] = {
    "flags": lambda rng, number: rng.choice([True, False]),
    "digits": lambda rng, number: rng.randrange(4),
    "spelled": lambda rng, number: Spelled(rng.choice(["1", "1.0", "10e-1", "0", "-0", "2", "2.0"])),
    "words": lambda rng, number: rng.choice(["a", "b", "c d", "c e"]),
    "nothing": lambda rng, number: rng.choice([None, [], {}, ""]),
    "unique": lambda rng, number: number,
    "rows": row,
    "matrices": lambda rng, number: [row(rng, number) for _ in range(rng.randrange(3))],
    "objects": lambda rng, number: {"a": rng.randrange(2), "b": number % 3},
    "keyed": lambda rng, number: {"id": number % 9, "v": rng.randrange(3)},
    "rows of keyed": lambda rng, number: [{"id": rng.randrange(2), "v": rng.randrange(3)}],
    "lists in objects": lambda rng, number: {"id": number % 9, "l": row(rng, number)},
}


class ShortLists:
    """Makes lists and edits of them. Both sides make some edits alike."""

    RULES: list[Any] = ["auto", "auto", "auto", "auto", "auto", "list", {"/*": {"pick": "older"}}, {"/*": "counter"}, {"/*": "register"},
        {"": {"as": "list", "key": ["/id"]}}, {"": {"as": "list", "key": [""]}}, {"/*/*": {"pick": "older"}}, {"/*": {"delete": "delete"}},
        {"/*": {"absent": 0}}, {"/*": "text"}, {"/*": {"as": "list", "key": ["/id"]}}, {"/*": "tuple"}, {"/*/*/*": "counter"}]

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.number = 0
        names = list(MAKERS)
        chosen = rng.choice([[name] for name in names] + [[rng.choice(names), rng.choice(names)], ["unique", rng.choice(names)], names])
        self.makers = [MAKERS[name] for name in chosen]

    def element(self) -> Any:
        self.number += 1
        return self.rng.choice(self.makers)(self.rng, self.number)

    def edit(self, items: list[Any]) -> list[Any]:
        """One edit."""
        out, rng = list(items), self.rng
        what, at, to = rng.randrange(12), rng.randrange(len(out) + 1), rng.randrange(len(out) + 1)
        size = rng.choice([1, 1, 1, 2, 3])
        if what < 2:
            out[at:at] = [self.element() for _ in range(size)]
        elif what < 4:
            del out[at : at + size]
        elif what < 7:
            out[at : at + size] = [self.element() for _ in out[at : at + size]]
        elif what < 9:
            moved = out[at : at + size]
            del out[at : at + size]
            out[to:to] = moved
        elif what == 9:
            out[to:to] = out[at : at + size]
        elif what == 10 and at < len(out):
            out[at] = self.inner(out[at])
        elif at < len(out) and to < len(out):
            out[at], out[to] = out[to], out[at]
        return out

    def inner(self, element: Any) -> Any:
        """Edits the contents of an element."""
        if isinstance(element, list):
            return self.edit(element)
        if isinstance(element, dict) and element:
            name = self.rng.choice(list(element))
            value = element[name]
            return {**element, name: self.edit(value) if isinstance(value, list) else self.rng.randrange(4)}
        return self.element()

    def side(self, base: list[Any], alike: list[int]) -> list[Any]:
        """Returns the base after some edits. Some are drawn from `alike`: two sides that draw one seed make the same edit."""
        own = [self.rng.getrandbits(32) for _ in range(self.rng.choice([0, 1, 1, 1, 2, 2, 3, 5]))]
        seeds = self.rng.sample(alike, self.rng.randrange(len(alike) + 1)) + own
        outer, number, out = self.rng, self.number, base
        for seed in seeds:
            self.rng = random.Random(seed)
            self.number = number + 1 + seed % 7
            out = self.edit(out)
        self.rng, self.number = outer, number + 20
        return out

    def lists(self) -> list[Any]:
        """Returns the lists of the three sides."""
        base = [self.element() for _ in range(self.rng.choice([0, 1, 2, 2, 3, 3, 4, 4, 5, 6, 8, 12]))]
        alike = [self.rng.getrandbits(32) for _ in range(self.rng.choice([0, 0, 1, 2, 3]))]
        return [base, self.side(base, alike), self.side(base, alike)]

    def wrapped(self, lists: list[Any]) -> list[Any]:
        """Wraps the lists into other containers."""
        rng = self.rng
        kind = rng.randrange(9)
        if kind == 0:
            return [{"l": one} for one in lists]
        if kind == 1:
            return [[one] for one in lists]
        if kind == 2:
            return [{"id": 1, "v": [0, 0, one]} for one in lists]
        if kind == 3:
            return [[{"id": 1, "l": one}, *rng.choice([[], [2], [2, 2]])] for one in lists]
        if kind == 4:
            others = self.lists()
            return [{"a": one, "b": other, "n": 1} for one, other in zip(lists, others)]
        if kind == 5:
            others = self.lists()
            return [[one, other] for one, other in zip(lists, others)]
        return lists

    def case(self) -> tuple[Any, list[Optional[bytes]]]:
        """Rules, and the texts of base, newer and older."""
        sides = self.wrapped(self.lists())
        for _ in range(self.rng.choice([0, 0, 0, 1, 2])):
            sides = self.wrapped(sides)
        comma, colon = self.rng.choice([(",", ":"), (",", ":"), (", ", ": ")])
        return self.rng.choice(self.RULES), [dumps(side, comma, colon).encode() for side in sides]


@pytest.mark.parametrize("seed", sample(range(3), range(24)))
def test_random_short_lists(seed: int) -> None:
    for number in drawn(range(300), range(1000)):
        lists = ShortLists(random.Random(1000 * seed + number))
        rules, texts = lists.case()
        compare(rules, *texts, saving=lists.rng.randrange(6) == 0)


@pytest.mark.parametrize("seed", sample(range(1), range(8)))
def test_random_short_lists_are_undone_as_the_model_says(seed: int) -> None:
    for number in drawn(range(100), range(200)):
        undo_random(ShortLists(random.Random(1000 * seed + number)))


class LongLists:
    """Lists that are long and little changed, without equal elements, with one pair of equal elements, or with very many."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.number = 0
        self.few = rng.choice([0, 0, 0, 2, 5])

    def element(self) -> Any:
        self.number += 1
        number = self.rng.randrange(self.few) if self.few else self.number
        return self.rng.choice([number, number, str(number), [number], [number, 0], {"a": number}])

    def edited(self, base: list[Any]) -> list[Any]:
        out, rng = list(base), self.rng
        for _ in range(rng.choice([1, 1, 2, 3, 6])):
            what, at, to = rng.randrange(8), rng.randrange(len(out) + 1), rng.randrange(len(out) + 1)
            size = rng.choice([1, 1, 2, 12])
            if what < 2:
                out[at:at] = [self.element() for _ in range(size)]
            elif what < 4:
                del out[at : at + size]
            elif what == 4:
                moved = out[at : at + size]
                del out[at : at + size]
                out[to:to] = moved
            elif what == 5 and rng.randrange(4) == 0:
                out[to:to] = out[at : at + size]
            else:
                out[at : at + size] = [self.element() for _ in out[at : at + size]]
        return out


@pytest.mark.parametrize("seed", sample(range(2), range(12)))
def test_random_long_lists(seed: int) -> None:
    for number in drawn(range(40), range(100)):
        rng = random.Random(1000 * seed + number)
        lists = LongLists(rng)
        base = [lists.element() for _ in range(rng.choice([8, 20, 60, 60, 160]))]
        if rng.randrange(3) == 0:
            # Two equal elements in the base.
            base[rng.randrange(len(base))] = base[rng.randrange(len(base))]
        texts = [json.dumps(value, separators=(",", ":")).encode() for value in (base, lists.edited(base), lists.edited(base))]
        compare(rng.choice(["auto", "auto", "auto", "list", {"/*": "counter"}]), *texts, saving=rng.randrange(8) == 0)
