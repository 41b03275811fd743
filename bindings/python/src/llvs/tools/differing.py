"""Compares two values inside, for display: sequences, words of texts, members of JSON documents.

All comparisons have a bounded cost. Parts that are too different to be compared in detail in a short time are reported as replaced. All
comparisons of one answer share one `Effort`, so that many small comparisons are bounded as well.
"""

from __future__ import annotations

import bisect
import hashlib
import re
from typing import Any, Hashable, Iterator, NamedTuple, Optional, Sequence, Union

#: Steps of one answer: they take a few tenths of a second.
STEPS = 300_000
_words = re.compile(r"\w+|\s+|[^\w\s]")
#: The number of characters that are shown around a part of a text.
AROUND = 300
_ends = re.compile(r"[.!?]+\s+|\n")


class Effort:
    """The number of steps that are left for comparing."""

    def __init__(self, steps: int = STEPS) -> None:
        self.left = steps

    def take(self, steps: int) -> bool:
        """Uses steps; returns False if fewer are left."""
        self.left -= steps
        return self.left >= 0


class Block(NamedTuple):
    """A part of two sequences: its begin and end in the first, and its begin and end in the second."""

    is_equal: bool
    first: int
    last: int
    start: int
    end: int


def blocks(a: Sequence[Hashable], b: Sequence[Hashable], effort: Optional[Effort] = None) -> Iterator[Block]:
    """Divides two sequences into parts that are equal and parts that differ, in order.

    Elements that occur once on each side are matched first (patience), the rest by a shortest edit script (Myers 1986), until the effort is
    used up.
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
    # A step of finding elements that occur once costs less than a step of the other kind.
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
    """Returns the longest common subsequence of the elements that occur once in both."""
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
    """Yields the equal parts of a shortest edit script; nothing if the effort is too small."""
    wide, high = j - i, m - k
    # `far`: by diagonal, the furthest position that this many steps reach. `trace`: `far` before each step.
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
    """Returns two texts as pieces: ("=", in both), ("-", only in the first), ("+", only in the second)."""
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


def sentence(text: str, part: str) -> str:
    """Returns the sentences of a text that contain a part of it; a short text as a whole; the part itself if the text does not contain
    it."""
    begin = text.find(part) if part else -1
    if len(text) <= AROUND and begin < 0:
        return text
    if begin < 0:
        return part
    end = begin + len(part)
    before = max((match.end() for match in _ends.finditer(text, max(0, begin - AROUND), begin)), default=max(0, begin - AROUND))
    after = _ends.search(text, end - 1 if part[-1:] in ".!?\n" else end, end + AROUND)
    return text[before : min(len(text), end + AROUND) if after is None else after.end()].strip("\n")


def writers(base: str, sides: Sequence[str], result: str, effort: Optional[Effort] = None) -> list[tuple[int, str]]:
    """Returns the result of a merge as pieces, each with its author.

    Each piece is a number and a text. 0: in the base; 1: from the first side; 2: from the second; 3: from both; 4: from neither.
    """
    effort = effort or Effort()
    was, *written = (_kept(text, result, effort) for text in (base, *sides))
    pieces: list[tuple[int, str]] = []
    for at, letter in enumerate(result):
        of = 0 if was[at] else sum(number for number, side in enumerate(written, 1) if side[at]) or 4
        # Spaces belong to the word before them.
        if pieces and (pieces[-1][0] == of or letter.isspace() and of):
            pieces[-1] = (pieces[-1][0], pieces[-1][1] + letter)
        else:
            pieces.append((of, letter))
    return pieces


def _kept(text: str, result: str, effort: Effort) -> bytearray:
    """Returns for each character of the result whether it comes from the text."""
    found = bytearray()
    for sign, piece in words(text, result, effort):
        if sign != "-":
            found += (b"\x01" if sign == "=" else b"\x00") * len(piece)
    return found


ABSENT: Any = object()
#: Names of members, and indices of elements.
Path = tuple[Union[str, int], ...]


class Member(NamedTuple):
    """A part of a document that differs."""

    #: The path of the part: names of members and indices of elements, in the second document; in the first one if it was removed.
    path: Path
    #: The value before and after; `ABSENT` if there is none.
    old: Any
    new: Any

    @property
    def pointer(self) -> str:
        """Returns the path as a JSON pointer."""
        return "".join(f"/{pointer_step(str(step))}" for step in self.path)


def pointer_step(key: str) -> str:
    """Returns a key as one step of a JSON pointer."""
    return key.replace("~", "~0").replace("/", "~1")


class Digests:
    """Digests of the parts of documents, by which parts are compared in constant time. Each is computed once; that takes O(size)."""

    def __init__(self) -> None:
        self._known: dict[int, bytes] = {}
        #: Objects with a digest are kept alive, so that no other object gets the same `id()`.
        self._kept: list[Any] = []

    def of(self, value: Any) -> bytes:
        """Returns a digest. Values have the same one if they are equal and of the same types: 1 equals neither true nor 1.0. The order of
        members does not count."""
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
    """Yields the parts in which two documents differ, in the order of the second; removed members come at the end of each object. Parts are
    searched as they are requested.

    The first part takes O(size). Each further part takes time in proportion to the length of its path.
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
