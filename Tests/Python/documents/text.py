"""Tokens, alignment, and the three-way merge of texts.

Readings of the specification where it leaves a choice:
- `\\r\\n` is one token for `word`; for `char` each scalar is a token of its own, as the page says.
- What attaches to a word leaves it a word, which goes on; what attaches to another token ends nothing and begins nothing.
- Line ends are `\\r\\n`, `\\n` and a lone `\\r`. A text without line ends has no style, and takes that of the others.
- Of the shortest edit scripts that one is taken which matches as soon as it can, else deletes, else inserts.
- An inner step is one (d, k) of Myers' algorithm, without limits to k by the lengths: distance D takes (D + 1)(D + 2) / 2.
- Only what is inserted where nothing was deleted slides; it stops where a deletion begins, and takes along insertions that it meets.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Optional

from .sequences import increasing

MAX_DISTANCE = 1024
MAX_STEPS = 1 << 26


def _in(scalar: int, ranges: tuple[tuple[int, int], ...]) -> bool:
    return any(first <= scalar <= last for first, last in ranges)


_ALONE = ((0x3040, 0x30FF), (0x3400, 0x9FFF), (0xAC00, 0xD7AF), (0xF900, 0xFAFF), (0x20000, 0x3FFFF))
_ATTACHED = (
    (0x0300, 0x036F), (0x0483, 0x0489), (0x0591, 0x05BD), (0x064B, 0x065F), (0x1AB0, 0x1AFF), (0x1DC0, 0x1DFF),
    (0x20D0, 0x20FF), (0xFE00, 0xFE0F), (0xFE20, 0xFE2F), (0x1F3FB, 0x1F3FF), (0xE0020, 0xE007F),
)  # fmt: skip
_JOINER = 0x200D
_REGIONAL = ((0x1F1E6, 0x1F1FF),)


def tokens(text: str, unit: str) -> list[str]:
    """The tokens of a text; put together they are the text."""
    if unit == "line":
        return _lines(text)
    found: list[str] = []
    kind = ""  # of the token before: "word", "regional" (half a pair), or "other"
    at = 0
    while at < len(text):
        scalar = ord(text[at])
        width = 2 if scalar == _JOINER and at + 1 < len(text) else 1
        piece = text[at : at + width]
        at += width
        if found and (_in(scalar, _ATTACHED) or scalar == _JOINER):
            found[-1] += piece
            kind = "word" if kind == "word" else "other"
        elif unit == "char":
            if _in(scalar, _REGIONAL):
                if kind == "regional":
                    found[-1] += piece
                    kind = "other"
                else:
                    found.append(piece)
                    kind = "regional"
            else:
                found.append(piece)
                kind = "other"
        elif piece == "\r" and text[at : at + 1] == "\n":
            found.append("\r\n")
            at += 1
            kind = "other"
        elif (scalar < 0x80 and not piece[0].isalnum()) or _in(scalar, _ALONE):
            found.append(piece)
            kind = "other"
        elif kind == "word":
            found[-1] += piece
        else:
            found.append(piece)
            kind = "word"
    assert "".join(found) == text
    return found


def _lines(text: str) -> list[str]:
    found, start = [], 0
    for at, char in enumerate(text):
        if char == "\n" or (char == "\r" and text[at + 1 : at + 2] != "\n"):
            found.append(text[start : at + 1])
            start = at + 1
    return found + ([text[start:]] if start < len(text) else [])


class Budget:
    """What the diffs of one value may cost, and whether a cap was met."""

    def __init__(self) -> None:
        self.steps = 0
        self.limited = False


def align(a: list[str], b: list[str], budget: Budget) -> list[tuple[int, int]]:
    """Which tokens of both are the same ones: pairs of indexes, increasing in both. Insertions stand as far right as they can."""
    pairs = sorted(_align(a, b, 0, len(a), 0, len(b), budget))
    return _slide(a, b, pairs)


def _align(a: list[str], b: list[str], a0: int, a1: int, b0: int, b1: int, budget: Budget) -> list[tuple[int, int]]:
    pairs: list[tuple[int, int]] = []
    todo = [(a0, a1, b0, b1)]
    while todo:
        a0, a1, b0, b1 = todo.pop()
        while a0 < a1 and b0 < b1 and a[a0] == b[b0]:
            pairs.append((a0, b0))
            a0, b0 = a0 + 1, b0 + 1
        while a0 < a1 and b0 < b1 and a[a1 - 1] == b[b1 - 1]:
            a1, b1 = a1 - 1, b1 - 1
            pairs.append((a1, b1))
        if a0 == a1 or b0 == b1:
            continue
        anchors = _patience(a, b, a0, a1, b0, b1)
        if not anchors:
            pairs += _myers(a, b, a0, a1, b0, b1, budget)
            continue
        pairs += anchors
        gaps = zip([(a0 - 1, b0 - 1), *anchors], [*anchors, (a1, b1)])
        # The first gap is done first, so that caps meet the same gaps everywhere.
        todo += reversed([(left[0] + 1, right[0], left[1] + 1, right[1]) for left, right in gaps])
    return pairs


def _patience(a: list[str], b: list[str], a0: int, a1: int, b0: int, b1: int) -> list[tuple[int, int]]:
    in_a, in_b = Counter(a[a0:a1]), Counter(b[b0:b1])
    place = {a[index]: index for index in range(a0, a1) if in_a[a[index]] == 1}
    unique = [index for index in range(b0, b1) if in_b[b[index]] == 1 and b[index] in place]
    positions = [place[b[index]] for index in unique]
    return [(positions[chosen], unique[chosen]) for chosen in increasing(positions)]


def _myers(a: list[str], b: list[str], a0: int, a1: int, b0: int, b1: int, budget: Budget) -> list[tuple[int, int]]:
    """Myers 1986, from the end, so that the walk from the beginning can tell which step stays on a shortest script."""
    n, m = a1 - a0, b1 - b0
    reach: list[dict[int, int]] = []  # for each d: diagonal i - j -> the least i from which d edits lead to the end
    for d in range(min(n + m, MAX_DISTANCE) + 1):
        if budget.steps + d + 1 > MAX_STEPS:
            break
        budget.steps += d + 1
        found: dict[int, int] = {}
        for k in range(-d, d + 1, 2):
            diagonal = n - m + k
            if d == 0:
                i = n
            else:
                # By deleting a[i] from diagonal + 1, where i falls by one, or by inserting b[j] from diagonal - 1, where it stays.
                ways = [reach[-1][diagonal + 1] - 1] if diagonal + 1 in reach[-1] else []
                ways += [reach[-1][diagonal - 1]] if diagonal - 1 in reach[-1] else []
                ways = [way for way in ways if way >= max(0, diagonal)]
                if not ways:
                    continue
                i = min(ways)
            j = i - diagonal
            while i > 0 and j > 0 and a[a0 + i - 1] == b[b0 + j - 1]:
                i, j = i - 1, j - 1
            found[diagonal] = i
        reach.append(found)
        if found.get(0) == 0:
            return _walk(a, b, a0, b0, n, m, reach)
    budget.limited = True
    return []


def _walk(a: list[str], b: list[str], a0: int, b0: int, n: int, m: int, reach: list[dict[int, int]]) -> list[tuple[int, int]]:
    left = len(reach) - 1

    def within(i: int, j: int, d: int) -> bool:
        return i <= n and j <= m and any(i - j in found and found[i - j] <= i for found in (reach[d :: -2] if d >= 0 else []))

    pairs, i, j = [], 0, 0
    while i < n or j < m:
        if i < n and j < m and a[a0 + i] == b[b0 + j]:
            pairs.append((a0 + i, b0 + j))
            i, j = i + 1, j + 1
        elif i < n and within(i + 1, j, left - 1):
            i, left = i + 1, left - 1
        else:
            j, left = j + 1, left - 1
    assert left == 0
    return pairs


def _slide(a: list[str], b: list[str], pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """From the last insertion to the first: while the token behind it is its first, the match behind it moves before it."""
    partner = dict((right, left) for left, right in pairs)
    for start in range(len(b) - 1, -1, -1):
        # The first token of a run without partners, with nothing of `a` left out beside it.
        if start in partner or (start > 0 and start - 1 not in partner):
            continue
        first = start
        before = partner[first - 1] if first > 0 else -1
        while True:
            end = first
            while end < len(b) and end not in partner:
                end += 1
            if end == len(b) or partner[end] != before + 1 or b[end] != b[first]:
                break
            partner[first] = partner.pop(end)
            before = partner[first]
            first += 1
    return sorted((left, right) for right, left in partner.items())


@dataclass
class Overlap:
    """A place where both sides replaced what was there: what each had, and what stands now."""

    base: str
    newer: str
    older: str
    result: str
    #: Where in the text that came out the result begins.
    start: int = 0


def part_in(base: str, side: str, start: int, end: int, unit: str) -> Optional[str]:
    """What a side has in the place of a part of its base: between the tokens around it that it kept. None where the part is not of whole
    tokens.
    """
    a, b = tokens(base, unit), tokens(side, unit)
    places = [0]
    for token in a:
        places.append(places[-1] + len(token))
    if start not in places or end not in places:
        return None
    to_side = dict(align(a, b, Budget()))
    before = [index for index in to_side if index < places.index(start)]
    behind = [index for index in to_side if index >= places.index(end)]
    first, last = to_side[max(before)] + 1 if before else 0, to_side[min(behind)] if behind else len(b)
    return "".join(b[first:last])


def merge_text(
    base: str, newer: str, older: str, unit: str, overlap: str, newer_wins: bool = True, budget: Optional[Budget] = None
) -> tuple[str, list[Overlap], bool, bool]:
    """The text, the overlaps, whether line ends were picked, and whether a cap was met.

    `newer_wins`: which side's words stand where both replaced the same. `budget` is that of the whole value, however many texts are in it.
    """
    budget = budget or Budget()
    budget.limited = False
    styles = [_style(text) for text in (base, newer, older)]
    if None not in styles and len({style for style in styles if style}) > 1:
        style, picked = _merged_style(*[style or "" for style in styles], newer_wins)
        plain = [_convert(text, "\n") for text in (base, newer, older)]
        merged, overlaps, limited = _merge(*plain, unit, overlap, newer_wins, budget)
        parts = [
            Overlap(
                *(_convert(part, style) for part in (one.base, one.newer, one.older, one.result)), len(_convert(merged[: one.start], style))
            )
            for one in overlaps
        ]
        return _convert(merged, style), parts, picked, limited
    merged, overlaps, limited = _merge(base, newer, older, unit, overlap, newer_wins, budget)
    return merged, overlaps, False, limited


def _style(text: str) -> Optional[str]:
    """The one line end of a text, "" when there is none, None when there are several."""
    rest = text.replace("\r\n", "")
    found = [end for end, there in (("\r\n", "\r\n" in text), ("\n", "\n" in rest), ("\r", "\r" in rest)) if there]
    return None if len(found) > 1 else (found[0] if found else "")


def _merged_style(base: str, newer: str, older: str, newer_wins: bool) -> tuple[str, bool]:
    """The line end to write, and whether it was picked, since both sides changed it."""
    if not newer or not older:
        return newer or older or base, False
    if base in (newer, older) or newer == older:
        return older if newer == base else newer, False
    return newer if newer_wins else older, True


def _convert(text: str, end: str) -> str:
    plain = text.replace("\r\n", "\n").replace("\r", "\n")
    return plain.replace("\n", end) if end != "\n" else plain


def _merge(base: str, newer: str, older: str, unit: str, overlap: str, newer_wins: bool, budget: Budget) -> tuple[str, list[Overlap], bool]:
    o, x, y = (tokens(text, unit) for text in (base, newer, older))
    to_x, to_y = dict(align(o, x, budget)), dict(align(o, y, budget))
    out: list[str] = []
    overlaps: list[Overlap] = []
    o0 = x0 = y0 = size = 0
    for kept in [*(index for index in range(len(o)) if index in to_x and index in to_y), len(o)]:
        o1, x1, y1 = kept, to_x.get(kept, len(x)), to_y.get(kept, len(y))
        known = len(overlaps)
        chunk = _chunk(o[o0:o1], x[x0:x1], y[y0:y1], _shifted(to_x, o0, o1, x0), _shifted(to_y, o0, o1, y0), overlap, newer_wins, overlaps)
        for one in overlaps[known:]:
            one.start = size
        chunk = chunk + [o[kept]] if kept < len(o) else chunk
        size += sum(map(len, chunk))
        out += chunk
        o0, x0, y0 = o1 + 1, x1 + 1, y1 + 1
    return "".join(out), overlaps, budget.limited


def _shifted(pairs: dict[int, int], o0: int, o1: int, side0: int) -> dict[int, int]:
    return {index - o0: pairs[index] - side0 for index in range(o0, o1) if index in pairs}


def _chunk(
    o: list[str],
    x: list[str],
    y: list[str],
    to_x: dict[int, int],
    to_y: dict[int, int],
    overlap: str,
    newer_wins: bool,
    overlaps: list[Overlap],
) -> list[str]:
    if x == o:
        return y
    if y == o or x == y:
        return x
    both_deleted = any(index not in to_x and index not in to_y for index in range(len(o)))
    woven = _weave(len(o), x, y, to_x, to_y)
    if both_deleted and len(x) > len(to_x) and len(y) > len(to_y):
        result = woven if overlap == "both" else (x if newer_wins else y)
        overlaps.append(Overlap("".join(o), "".join(x), "".join(y), "".join(result)))
        return result
    return woven


def _weave(count: int, x: list[str], y: list[str], to_x: dict[int, int], to_y: dict[int, int]) -> list[str]:
    """At each place between base tokens the older's insertion, then the newer's; what both begin and end with, once."""
    out: list[str] = []
    for mine, theirs in zip(_insertions(count, x, to_x), _insertions(count, y, to_y)):
        start = 0
        while start < min(len(mine), len(theirs)) and mine[start] == theirs[start]:
            start += 1
        end = 0
        while end < min(len(mine), len(theirs)) - start and mine[-1 - end] == theirs[-1 - end]:
            end += 1
        out += mine[:start] + theirs[start : len(theirs) - end] + mine[start : len(mine) - end] + mine[len(mine) - end :]
    return out


def _insertions(count: int, side: list[str], pairs: dict[int, int]) -> list[list[str]]:
    """For each place before, between and behind `count` base tokens: what the side has there and the base has not.

    Where a side deleted tokens beside an insertion, the insertion is at the place of the last of them.
    """
    found: list[list[str]] = [[] for _ in range(count + 1)]
    start = 0
    for index in range(count):
        if index in pairs:
            found[index] = side[start : pairs[index]]
            start = pairs[index] + 1
    found[count] = side[start:]
    return found
