"""Pairs of everyday edits of notes, and of arrays of flags and numbers: the result has both edits, or there is a record.

Tests the engine, in the release or debug library. LLVS_DEEP tries 100,000 pairs of each.
"""

from __future__ import annotations

import json
import random
from typing import Any

import llvs
import pytest
from sampling import drawn, sample

WORDS = "milk bread eggs the a call Ann at ten in room buy two of and then later, tea: (new) it's".split()
SEEDS = (range(2_000), range(100_000))


def note(chance: random.Random) -> list[list[str]]:
    """Lines of words; some are empty, some begin as in a list."""
    return [
        ([chance.choice(("*", "-", "1."))] if chance.random() < 0.4 else []) + chance.choices(WORDS, k=chance.randrange(0, 8))
        for _ in range(chance.randrange(1, 9))
    ]


def edited(chance: random.Random, base: list[list[str]], side: str) -> tuple[list[list[str]], set[str]]:
    """One or two edits of words or lines: append, prepend, insert, replace, remove. Also returns the new words, each found nowhere else."""
    lines, made = [list(line) for line in base], set()

    def new() -> str:
        word = f"{side}{len(made)}"
        made.add(word)
        return word

    for _ in range(chance.randrange(1, 3)):
        at = chance.randrange(len(lines)) if lines else 0
        place = chance.choice((0, len(lines), at))
        line = lines[at] if lines else []
        kind = chance.randrange(8)
        if kind == 0:
            lines.insert(place, [chance.choice(("*", "-")), new(), new()])
        elif kind == 1:
            lines.insert(place, [new()])
        elif kind == 2 and lines:
            del lines[at]
        elif kind == 3 and lines:
            lines[at] = [new(), new()]
        elif kind == 4 and line:
            line[chance.randrange(len(line))] = new()
        elif kind == 5 and line:
            del line[chance.randrange(len(line))]
        elif lines:
            line.insert(chance.choice((0, len(line), chance.randrange(len(line) + 1))), new())
    written = {word for line in lines for word in line}
    return lines, made & written


def text(lines: list[list[str]], end: str) -> str:
    return "\n".join(" ".join(line) for line in lines) + (end if lines else "")


def test_notes() -> None:
    """No word is invented. Every edit is in the result, or there is a record."""
    told = 0
    for seed in drawn(*SEEDS):
        chance = random.Random(seed)
        lines, end = note(chance), chance.choice(("", "\n"))
        (x, new_x), (y, new_y) = (edited(chance, lines, side) for side in "XY")
        sides = [text(one, end) for one in (lines, x, y)]
        found = llvs.merge.merge_values(*(one.encode() for one in sides), rules="text")
        assert found.data is not None
        merged = found.data.decode()
        written = {word for one in sides for word in one.split()}
        assert set(merged.split()) <= written, (sides, merged)
        told += bool(found.records)
        if not found.records:
            words = merged.split()
            for word in new_x | new_y:
                assert words.count(word) == 1, (sides, merged, word)
    assert told < sample(*(len(seeds) for seeds in SEEDS)) / 2


@pytest.mark.parametrize("kind", ("flags", "numbers"))
def test_arrays(kind: str) -> None:
    """One or two elements are changed on each side. Each change is at its place; if both changed one element, there is a record.

    Some elements are equal. (Lists without equal elements are merged by element, wherever it is.)
    """
    for seed in drawn(*SEEDS):
        chance = random.Random(seed)
        base: list[Any] = [chance.random() < 0.5 if kind == "flags" else chance.randrange(3) for _ in range(chance.randrange(4, 40))]
        sides, places = [], []
        for _ in range(2):
            side, at = list(base), set(chance.sample(range(len(base)), chance.randrange(1, 3)))
            for place in at:
                side[place] = not base[place] if kind == "flags" else (base[place] + chance.randrange(1, 3)) % 3
            sides.append(side)
            places.append(at)
        found = llvs.merge.merge_values(*(json.dumps(one).encode() for one in (base, *sides)), rules="list")
        assert found.data is not None
        wanted = [y if y != o else x for o, x, y in zip(base, *sides)]
        apart = {at for at in places[0] & places[1] if sides[0][at] != sides[1][at]}
        merged = json.loads(found.data)
        assert len(merged) == len(base), (base, sides, merged)
        for at, one in enumerate(merged):
            assert one == wanted[at] or at in apart and one == sides[0][at], (base, sides, merged)
        assert bool(found.records) == bool(apart), (base, sides, merged, found.records)
