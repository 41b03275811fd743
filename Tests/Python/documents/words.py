"""A line that both sides have, and both changed: section 5 of the specification of texts.

Readings of the specification where it leaves a choice:
- The bodies and the ends of the lines are merged three-way with `unit: line` too, so in texts that are merged as they stand o `a\\n`,
  x `a\\r\\n`, y `b\\n` gives `b\\r\\n`.
- (a): Two hunks are equal if they have the same base tokens and the same new ones. Two insertions at one place are of (c), not of (a).
- (d): Two tokens of the result that are side by side on one side are what that side wrote, so (d) does not ask about them. So a side may
  remove a token within a line of Chinese, as it may remove words of English (example 32): o 我很喜欢茶。, x 我喜欢茶。, y 我很喜欢绿茶。
  gives 我喜欢绿茶。. By the letter, (d) would refuse that, because 我 and 喜 have a removed part between.
- (d): Two runs of white space may come side by side, and are read as one then: o `a b`, x `a b c`, y `a B ` gives `a B  c`. So section 9
  ("each token of m is a token of o, x or y") holds for tokens that are no white space.
- The last sentence: If one side inserts, and the other's touching replacement begins or ends with that insertion, only the replacement is
  written. A removal is no such replacement, since (b) refuses it.
- (c): The order of two insertions within a line depends on roles (example 7), so section 9 ("the multiset of lines without records does not
  depend on roles") holds for the tokens of each line in any order.
- (e): Both alignments are made, even if the first one met a limit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional

from .alignment import Budget, Hunk, Pair, align, hunks
from .tokens import is_space, split_end, tokens


@dataclass(frozen=True)
class _Token:
    """A token of the result, and its index in each side that has it."""

    text: str
    newer: Optional[int]
    older: Optional[int]

    def stands_before(self, other: _Token) -> bool:
        """Returns whether both are adjacent on one side."""
        return _follows(self.newer, other.newer) or _follows(self.older, other.older)


def _follows(one: Optional[int], other: Optional[int]) -> bool:
    return one is not None and other is not None and other == one + 1


def three_way(base: str, newer: str, older: str) -> Optional[str]:
    """Returns the result if at most one side changed it, or both equally; otherwise None."""
    if newer == base:
        return older
    return newer if older in (base, newer) else None


def merge_line(base: str, newer: str, older: str, unit: str, budget: Budget) -> Optional[str]:
    """Returns the merged line, or None if that is not clean."""
    whole = three_way(base, newer, older)
    if whole is not None:
        return whole
    (o, o_end), (x, x_end), (y, y_end) = map(split_end, (base, newer, older))
    end, body = three_way(o_end, x_end, y_end), three_way(o, x, y)
    if body is None and unit == "word" and end is not None:
        body = _merge_words(tokens(o), tokens(x), tokens(y), budget)
    return None if body is None or end is None else body + end


def _merge_words(o: list[str], x: list[str], y: list[str], budget: Budget) -> Optional[str]:
    """Returns the merge by tokens if it is clean."""
    was_limited, budget.limited = budget.limited, False
    pairs = align(o, x, budget), align(o, y, budget)
    met_limit, budget.limited = budget.limited, budget.limited or was_limited
    if met_limit:  # (e)
        return None
    to_x, to_y = map(dict, pairs)
    made: list[_Token] = []
    start = first_x = first_y = 0
    for end in [*(index for index in range(len(o)) if index in to_x and index in to_y), len(o)]:
        last_x, last_y = to_x.get(end, len(x)), to_y.get(end, len(y))
        place = _Place(o, x, y, (start, end), (first_x, last_x), (first_y, last_y))
        found = place.merged(_within(pairs[0], start, end), _within(pairs[1], start, end))
        if found is None:
            return None
        made += found
        if end < len(o):
            made.append(_Token(o[end], last_x, last_y))
        start, first_x, first_y = end + 1, last_x + 1, last_y + 1
    # (d)
    is_clean = all(a.stands_before(b) or is_space(a.text) or is_space(b.text) for a, b in zip(made, made[1:]))
    return "".join(token.text for token in made) if is_clean else None


def _within(pairs: list[Pair], start: int, end: int) -> list[Pair]:
    return [(index, place) for index, place in pairs if start <= index < end]


@dataclass(frozen=True)
class _Place:
    """A place between tokens that both sides kept: all tokens, and the ranges."""

    o: list[str]
    x: list[str]
    y: list[str]
    of_o: Pair
    of_x: Pair
    of_y: Pair

    def merged(self, to_x: list[Pair], to_y: list[Pair]) -> Optional[list[_Token]]:
        """Returns the tokens of the result, or None if they are not clean by (a) to (c)."""
        o, x, y = self.o[slice(*self.of_o)], self.x[slice(*self.of_x)], self.y[slice(*self.of_y)]
        if x == y:
            return [_Token(text, self.of_x[0] + n, self.of_y[0] + n) for n, text in enumerate(x)]
        if x == o:
            return self.older(*self.of_y)
        if y == o:
            return self.newer(*self.of_x)
        newer, older = hunks(to_x, self.of_o, self.of_x), hunks(to_y, self.of_o, self.of_y)
        dropped: set[tuple[bool, Hunk]] = set()
        for mine in newer:
            for other in older:
                found = self.dropped(mine, other)
                if found is None:
                    return None
                dropped |= found
        made: list[_Token] = []
        # The order of 4.4: an insertion comes before a replacement that begins at its position, and of two insertions the older side's
        # comes first.
        for is_newer, hunk in sorted(
            [(False, hunk) for hunk in older] + [(True, hunk) for hunk in newer], key=lambda one: (one[1].start, one[1].end, one[0])
        ):
            if (is_newer, hunk) in dropped:
                continue
            made += self.newer(hunk.first, hunk.last) if is_newer else self.older(hunk.first, hunk.last)
        return made

    def newer(self, first: int, last: int) -> list[_Token]:
        return [_Token(self.x[n], n, None) for n in range(first, last)]

    def older(self, first: int, last: int) -> list[_Token]:
        return [_Token(self.y[n], None, n) for n in range(first, last)]

    def dropped(self, newer: Hunk, older: Hunk) -> Optional[set[tuple[bool, Hunk]]]:
        """Returns which of two hunks is not written because the other one includes it; None if they are not clean together."""
        mine, other = self.x[newer.first : newer.last], self.y[older.first : older.last]
        if newer.inserts and older.inserts:
            return self.of_insertions(newer, older, mine, other) if newer.start == older.start else set()
        if max(newer.start, older.start) < min(newer.end, older.end) or is_inside(newer, older) or is_inside(older, newer):
            is_same = (newer.start, newer.end) == (older.start, older.end) and mine == other
            return {(True, newer)} if is_same else None  # (a)
        for inserted, replaced, new, by in ((newer, older, mine, other), (older, newer, other, mine)):
            if inserted.inserts and inserted.start in (replaced.start, replaced.end):
                if replaced.removes:
                    return None  # (b)
                if borders(by, new) and not all(map(is_space, new)):
                    return {(inserted is newer, inserted)}
        return set()

    def of_insertions(self, newer: Hunk, older: Hunk, mine: list[str], other: list[str]) -> Optional[set[tuple[bool, Hunk]]]:
        """(c)"""
        if borders(other, mine):
            return {(True, newer)}
        if borders(mine, other):
            return {(False, older)}
        has_space = (is_space(mine[0]) or is_space(other[-1])) and (is_space(mine[-1]) or is_space(other[0]))
        return set() if has_space else None


def borders(whole: list[str], part: list[str]) -> bool:
    """Returns whether one begins or ends with the other, which is not empty."""
    return bool(part) and (whole[: len(part)] == part or whole[-len(part) :] == part)


def is_inside(one: Hunk, other: Hunk) -> bool:
    """Returns whether one inserts strictly inside the other's range."""
    return one.inserts and other.start < one.start < other.end
