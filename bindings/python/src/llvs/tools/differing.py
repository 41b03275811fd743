"""What differs inside two values, for whoever shows it: sequences, words of texts, members of JSON documents.

All of it is bounded: what is too different to be compared finely in the time that somebody waits is told as replaced. An `Effort` is shared
by all comparisons of one answer, so that many small ones are bounded as well.
"""

from __future__ import annotations

import bisect
import hashlib
import re
from typing import Any, Hashable, Iterator, NamedTuple, Optional, Sequence, Union

#: Steps of one answer: a few tenths of a second.
STEPS = 300_000
_words = re.compile(r"\w+|\s+|[^\w\s]")


class Effort:
    """How many steps are left for comparing."""

    def __init__(self, steps: int = STEPS) -> None:
        self.left = steps

    def take(self, steps: int) -> bool:
        """Uses steps; False when there are not so many left."""
        self.left -= steps
        return self.left >= 0


class Block(NamedTuple):
    """A part of two sequences: from and to in the first, from and to in the second."""

    is_equal: bool
    first: int
    last: int
    start: int
    end: int


def blocks(a: Sequence[Hashable], b: Sequence[Hashable], effort: Optional[Effort] = None) -> Iterator[Block]:
    """How to come from one sequence to the other, by parts that are equal and parts that are not, in turn.

    Elements that each side has once are matched first (patience), the rest by the fewest steps (Myers 1986), as far as the effort goes.
    """
    effort = effort or Effort()
    at, other = 0, 0
    for i, j, count in [*_joined(_matches(a, b, effort)), (len(a), len(b), 0)]:
        if i > at or j > other:
            yield Block(False, at, i, other, j)
        if count:
            yield Block(True, i, i + count, j, j + count)
        at, other = i + count, j + count


def _joined(matches: list[tuple[int, int, int]]) -> Iterator[tuple[int, int, int]]:
    last: Optional[tuple[int, int, int]] = None
    for i, j, count in sorted(matches):
        if last is not None and (last[0] + last[2], last[1] + last[2]) == (i, j):
            last = (last[0], last[1], last[2] + count)
            continue
        if last is not None:
            yield last
        last = (i, j, count)
    if last is not None:
        yield last


def _matches(a: Sequence[Hashable], b: Sequence[Hashable], effort: Effort) -> list[tuple[int, int, int]]:
    found: list[tuple[int, int, int]] = []
    # Looking for what is there once costs less than a step of the other kind.
    looking = Effort(20 * (len(a) + len(b)) + 1000)
    todo = [(0, len(a), 0, len(b))]
    while todo:
        i, j, k, m = todo.pop()
        begin = 0
        while i + begin < j and k + begin < m and a[i + begin] == b[k + begin]:
            begin += 1
        if begin:
            found.append((i, k, begin))
            i, k = i + begin, k + begin
        tail = 0
        while j - tail > i and m - tail > k and a[j - tail - 1] == b[m - tail - 1]:
            tail += 1
        if tail:
            j, m = j - tail, m - tail
            found.append((j, m, tail))
        if i == j or k == m or not looking.take(j - i + m - k):
            continue
        anchors = _anchors(a, b, i, j, k, m)
        if not anchors:
            found += _shortest(a, b, i, j, k, m, effort)
            continue
        for left, right in anchors:
            todo.append((i, left, k, right))
            found.append((left, right, 1))
            i, k = left + 1, right + 1
        todo.append((i, j, k, m))
    return found


def _anchors(a: Sequence[Hashable], b: Sequence[Hashable], i: int, j: int, k: int, m: int) -> list[tuple[int, int]]:
    """The longest row of elements that both have once, in the order of both."""
    once: dict[Hashable, int] = {}
    for at in range(k, m):
        once[b[at]] = -1 if b[at] in once else at
    times: dict[Hashable, int] = {}
    for at in range(i, j):
        times[a[at]] = times.get(a[at], 0) + 1
    pairs = [(at, once[a[at]]) for at in range(i, j) if times[a[at]] == 1 and once.get(a[at], -1) >= 0]
    ends: list[int] = []
    chains: list[int] = []
    before: list[int] = []
    for number, (_, right) in enumerate(pairs):
        place = bisect.bisect_left(ends, right)
        before.append(chains[place - 1] if place else -1)
        ends[place : place + 1] = [right]
        chains[place : place + 1] = [number]
    row: list[tuple[int, int]] = []
    number = chains[-1] if chains else -1
    while number >= 0:
        row.append(pairs[number])
        number = before[number]
    return row[::-1]


def _shortest(
    a: Sequence[Hashable], b: Sequence[Hashable], i: int, j: int, k: int, m: int, effort: Effort
) -> Iterator[tuple[int, int, int]]:
    """What a way of the fewest steps leaves equal; nothing when the effort does not reach so far."""
    wide, high = j - i, m - k
    # By diagonal, how far one comes with so many steps; and how it was before each.
    far, trace = {1: 0}, []
    for steps in range(wide + high + 1):
        if not effort.take(2 * steps + 1):
            return
        trace.append(dict(far))
        for diagonal in range(-steps, steps + 1, 2):
            down = diagonal == -steps or (diagonal != steps and far[diagonal - 1] < far[diagonal + 1])
            x = far[diagonal + 1] if down else far[diagonal - 1] + 1
            begun = x
            while x < wide and x - diagonal < high and a[i + x] == b[k + x - diagonal]:
                x += 1
            effort.left -= x - begun
            far[diagonal] = x
            if x >= wide and x - diagonal >= high:
                yield from _walked(trace, wide, high, i, k)
                return


def _walked(trace: list[dict[int, int]], x: int, y: int, i: int, k: int) -> Iterator[tuple[int, int, int]]:
    for steps in range(len(trace) - 1, -1, -1):
        far, diagonal = trace[steps], x - y
        down = diagonal == -steps or (diagonal != steps and far[diagonal - 1] < far[diagonal + 1])
        before = diagonal + 1 if down else diagonal - 1
        begun = 0 if steps == 0 else far[before] + (0 if down else 1)
        if x > begun:
            yield (i + begun, k + begun - diagonal, x - begun)
        if steps:
            x, y = far[before], far[before] - before


def words(a: str, b: str, effort: Optional[Effort] = None) -> list[tuple[str, str]]:
    """Two texts as pieces: ("=", both), ("-", of the first alone), ("+", of the second alone)."""
    left, right = _words.findall(a), _words.findall(b)
    found: list[tuple[str, str]] = []
    for block in blocks(left, right, effort):
        if block.is_equal:
            found.append(("=", "".join(left[block.first : block.last])))
            continue
        if block.last > block.first:
            found.append(("-", "".join(left[block.first : block.last])))
        if block.end > block.start:
            found.append(("+", "".join(right[block.start : block.end])))
    return found


ABSENT: Any = object()
#: Names of members and numbers of elements.
Path = tuple[Union[str, int], ...]


class Member(NamedTuple):
    """A place in a document that differs."""

    #: Where: names of members and numbers of elements, in the second document; in the first where it is no more.
    path: Path
    #: What was there, and what is; `ABSENT` for nothing.
    old: Any
    new: Any

    @property
    def pointer(self) -> str:
        """The path as a JSON pointer."""
        return "".join(f"/{pointer_step(str(step))}" for step in self.path)


def pointer_step(key: str) -> str:
    """A key as a part of a JSON pointer."""
    return key.replace("~", "~0").replace("/", "~1")


class Digests:
    """A digest of each part of documents, by which parts are compared in constant time. Made once for each, in the time of its size."""

    def __init__(self) -> None:
        self._known: dict[int, bytes] = {}
        #: What has a digest stays, so that nothing else comes to be in its place.
        self._kept: list[Any] = []

    def of(self, value: Any) -> bytes:
        """Equal for values that are equal and of one type to the last: 1 is neither true nor 1.0. The order of members does not count."""
        if not isinstance(value, (dict, list)):
            return _digest_of_scalar(value)
        todo = [value]
        while todo:
            part = todo[-1]
            if id(part) in self._known:
                todo.pop()
                continue
            inner = part.values() if isinstance(part, dict) else part
            waiting = [one for one in inner if isinstance(one, (dict, list)) and id(one) not in self._known]
            if waiting:
                todo += waiting
                continue
            self._known[id(part)] = self._digest(part)
            self._kept.append(todo.pop())
        return self._known[id(value)]

    def _digest(self, part: Any) -> bytes:
        def known(one: Any) -> bytes:
            return self._known[id(one)] if isinstance(one, (dict, list)) else _digest_of_scalar(one)

        if isinstance(part, list):
            return _digest(b"list", *map(known, part))
        return _digest(b"dict", *sorted(_digest_of_scalar(key) + known(member) for key, member in part.items()))


def _digest(*pieces: bytes) -> bytes:
    return hashlib.blake2b(b"".join(pieces), digest_size=16).digest()


def _digest_of_scalar(value: Any) -> bytes:
    if isinstance(value, bytes):
        data = bytes(value)
    else:
        data = value.encode("utf-8", "surrogatepass") if isinstance(value, str) else repr(value).encode()
    return _digest(type(value).__name__.encode(), b" ", data)


def members(old: Any, new: Any, effort: Optional[Effort] = None) -> Iterator[Member]:
    """The places where two documents differ, in the order of the second, removed members at the end of each object. As far as one asks.

    The first takes O(size). A place takes as much more as its path is long.
    """
    effort, digests = effort or Effort(), Digests()
    todo: list[Iterator[Member]] = [iter([Member((), old, new)])]
    while todo:
        found = next(todo[-1], None)
        if found is None:
            todo.pop()
        elif isinstance(found.old, dict) and isinstance(found.new, dict):
            todo.append(_members(*found, digests))
        elif isinstance(found.old, list) and isinstance(found.new, list):
            todo.append(_elements(*found, effort, digests))
        elif found.old is ABSENT or found.new is ABSENT or digests.of(found.old) != digests.of(found.new):
            yield found


def _members(path: Path, was: dict[str, Any], now: dict[str, Any], digests: Digests) -> Iterator[Member]:
    for key, part in now.items():
        if key not in was:
            yield Member((*path, key), ABSENT, part)
        elif digests.of(was[key]) != digests.of(part):
            yield Member((*path, key), was[key], part)
    for key, part in was.items():
        if key not in now:
            yield Member((*path, key), part, ABSENT)


def _elements(path: Path, was: list[Any], now: list[Any], effort: Effort, digests: Digests) -> Iterator[Member]:
    before, after = [digests.of(part) for part in was], [digests.of(part) for part in now]
    begin, most = 0, min(len(was), len(now))
    while begin < most and before[begin] == after[begin]:
        begin += 1
    tail = 0
    while tail < most - begin and before[-1 - tail] == after[-1 - tail]:
        tail += 1
    left, right = was[begin : len(was) - tail], now[begin : len(now) - tail]
    if len(left) == len(right) == 1:
        yield Member((*path, begin), left[0], right[0])
        return
    for block in blocks(before[begin : len(was) - tail], after[begin : len(now) - tail], effort):
        if block.is_equal:
            continue
        pairs = min(block.last - block.first, block.end - block.start)
        for at in range(pairs):
            yield Member((*path, begin + block.start + at), left[block.first + at], right[block.start + at])
        for at in range(block.first + pairs, block.last):
            yield Member((*path, begin + at), left[at], ABSENT)
        for at in range(block.start + pairs, block.end):
            yield Member((*path, begin + at), ABSENT, right[at])
