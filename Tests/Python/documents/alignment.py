"""The alignment of two sequences: section 3 of the specification of texts. One routine, for lines, for tokens and for elements.

Readings of the specification where it leaves a choice:
- A step is one (d, k) of Myers' algorithm, without limits to k by the lengths: distance D takes (D + 1)(D + 2) / 2 steps. A distance whose
  d + 1 steps are more than what is left of the budget is not begun. Steps that a part took before it became a replacement stay taken, and
  later parts go on with what is left: `ab` to `ba` with 2 steps left takes 1 (d = 0), then stops, with 1 left.
- A hunk at the end of a sequence has no kept token behind it, and does not slide.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Hashable, Sequence

from .sequences import increasing

#: The most edits of one part.
MAX_DISTANCE = 1024
#: The most steps for one value.
MAX_STEPS = 1 << 26

Pair = tuple[int, int]
Tokens = Sequence[Hashable]


class Budget:
    """The steps that the merge of one value may use, and whether an alignment reached a limit."""

    def __init__(self, steps: int = 0) -> None:
        self.steps = steps
        self.limited = False

    @property
    def left(self) -> int:
        """The number of steps that are left."""
        return MAX_STEPS - self.steps


@dataclass(frozen=True)
class Hunk:
    """A maximal range between kept tokens: tokens [start, end) of the base, and [first, last) of the side."""

    start: int
    end: int
    first: int
    last: int

    @property
    def inserts(self) -> bool:
        """Whether the hunk only inserts."""
        return self.start == self.end

    @property
    def removes(self) -> bool:
        """Whether the hunk only removes."""
        return self.first == self.last


def align(base: Tokens, side: Tokens, budget: Budget) -> list[Pair]:
    """Returns the kept tokens as pairs of indexes, which increase in both."""
    pairs = sorted(_parts(base, side, budget))
    _slide(base, side, pairs)
    return pairs


def hunks(pairs: list[Pair], base: Pair, side: Pair) -> list[Hunk]:
    """Returns the places between the pairs that are not empty, within a range of the base and one of the side."""
    found = []
    start, first = base[0], side[0]
    for end, last in [*pairs, (base[1], side[1])]:
        if start < end or first < last:
            found.append(Hunk(start, end, first, last))
        start, first = end + 1, last + 1
    return found


def _parts(a: Tokens, b: Tokens, budget: Budget) -> list[Pair]:
    """Trims common ends, keeps tokens that are unique in both, and repeats this for each part between them, first part first."""
    pairs: list[Pair] = []
    todo = [(0, len(a), 0, len(b))]
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
        anchors = _unique(a, b, a0, a1, b0, b1)
        if not anchors:
            pairs += _shortest(a[a0:a1], b[b0:b1], a0, b0, budget)
            continue
        pairs += anchors
        bounds = zip([(a0 - 1, b0 - 1), *anchors], [*anchors, (a1, b1)])
        todo += reversed([(i + 1, end, k + 1, last) for (i, k), (end, last) in bounds])
    return pairs


def _unique(a: Tokens, b: Tokens, a0: int, a1: int, b0: int, b1: int) -> list[Pair]:
    """Returns the longest increasing subsequence of the tokens that occur once in both parts."""
    in_a, in_b = Counter(a[a0:a1]), Counter(b[b0:b1])
    place = {a[index]: index for index in range(a0, a1) if in_a[a[index]] == 1}
    unique = [index for index in range(b0, b1) if in_b[b[index]] == 1 and b[index] in place]
    positions = [place[b[index]] for index in unique]
    return [(positions[chosen], unique[chosen]) for chosen in increasing(positions)]


def _shortest(a: Tokens, b: Tokens, a0: int, b0: int, budget: Budget) -> list[Pair]:
    """Myers 1986, from the end, so that the walk from the beginning knows which step stays on a shortest script."""
    n, m = len(a), len(b)
    reach: list[dict[int, int]] = []  # for each d: diagonal i - k -> the least i from which d edits lead to the end
    for d in range(min(n + m, MAX_DISTANCE) + 1):
        if d + 1 > budget.left:
            break
        budget.steps += d + 1
        before, found = reach[-1] if reach else {}, {}
        for diagonal in range(n - m - d, n - m + d + 1, 2):
            i, least = n, max(0, diagonal)
            if d > 0:
                # Either remove a[i], coming from diagonal + 1: i falls by one. Or insert b[k], coming from diagonal - 1: i stays.
                removed, inserted = before.get(diagonal + 1, 0) - 1, before.get(diagonal - 1, -1)
                if removed < least and inserted < least:
                    continue
                i = removed if inserted < least or least <= removed < inserted else inserted
            k = i - diagonal
            while i > 0 and k > 0 and a[i - 1] == b[k - 1]:
                i, k = i - 1, k - 1
            found[diagonal] = i
        reach.append(found)
        if found.get(0) == 0:
            return [(a0 + i, b0 + k) for i, k in _walk(a, b, reach)]
    budget.limited = True
    return []


def _walk(a: Tokens, b: Tokens, reach: list[dict[int, int]]) -> list[Pair]:
    """Selects one of the shortest scripts: at each step it keeps a token if possible, otherwise removes, otherwise inserts."""
    n, m, left = len(a), len(b), len(reach) - 1

    def within(i: int, k: int, d: int) -> bool:
        """Returns whether at most d edits lead from there to the end."""
        return i <= n and k <= m and d >= 0 and any(found.get(i - k, n + 1) <= i for found in reach[d::-2])

    pairs, i, k = [], 0, 0
    while i < n or k < m:
        if i < n and k < m and a[i] == b[k]:
            pairs.append((i, k))
            i, k = i + 1, k + 1
        elif i < n and within(i + 1, k, left - 1):
            i, left = i + 1, left - 1
        else:
            k, left = k + 1, left - 1
    assert left == 0
    return pairs


def _slide(a: Tokens, b: Tokens, pairs: list[Pair]) -> None:
    """Moves each hunk that only inserts or only removes to the right, beginning at the end, while its first token equals the kept token
    after it, and joins it with adjacent hunks."""
    for number in range(len(pairs) - 1, -1, -1):
        i, k = pairs[number - 1] if number else (-1, -1)
        for behind in range(number, len(pairs)):
            end, last = pairs[behind]
            inserts = i + 1 == end and k + 1 < last and b[k + 1] == b[last]
            removes = k + 1 == last and i + 1 < end and a[i + 1] == a[end]
            if not inserts and not removes:
                break
            i, k = i + 1, k + 1
            pairs[behind] = i, k
