"""How two sides find out what the other one lacks (docs/live-protocol.md, section 4), over histories without contents."""

from __future__ import annotations

import bisect
import hashlib
from dataclasses import dataclass, field
from typing import Any, Iterable, Optional

from noise import mac

HEADS, SAMPLES, PER_PREFIX, HASHES = 256, 512, 16, 65_536
#: Limits of RANGES: ranges in a frame, hashes of a list, parts into which a range is divided, frames of a side.
RANGES, LISTED, WAYS, FRAMES = 4_096, 64, 16, 8


@dataclass
class History:
    """Versions in the order in which they arrived, each with its predecessors, which arrived before it."""

    predecessors: dict[bytes, tuple[bytes, ...]] = field(default_factory=dict)
    _heads: dict[bytes, None] = field(default_factory=dict)

    def add(self, version: bytes, *predecessors: bytes) -> None:
        if version in self.predecessors:
            return
        assert all(predecessor in self.predecessors for predecessor in predecessors)
        self.predecessors[version] = predecessors
        for predecessor in predecessors:
            self._heads.pop(predecessor, None)
        self._heads[version] = None

    @property
    def heads(self) -> list[bytes]:
        return list(self._heads)

    def copy(self) -> History:
        return History(dict(self.predecessors), dict(self._heads))

    def behind(self, versions: Iterable[bytes]) -> set[bytes]:
        """Returns those of the versions that are present, with all their ancestors."""
        found: set[bytes] = set()
        stack = [v for v in versions if v in self.predecessors]
        while stack:
            version = stack.pop()
            if version not in found:
                found.add(version)
                stack.extend(self.predecessors[version])
        return found

    def generations(self) -> dict[bytes, int]:
        found: dict[bytes, int] = {}
        for version, predecessors in self.predecessors.items():
            found[version] = max((found[p] + 1 for p in predecessors), default=0)
        return found

    def samples(self) -> list[bytes]:
        order = list(self.predecessors)
        place = {version: i for i, version in enumerate(order)}
        successor = [len(order)] * len(order)
        for version, predecessors in self.predecessors.items():
            for predecessor in predecessors:
                successor[place[predecessor]] = min(successor[place[predecessor]], place[version])
        found, step = {}, 1
        while step < len(order) and len(found) < SAMPLES:
            end = len(order) - step
            prefix = (order[i] for i in range(end - 1, -1, -1) if successor[i] >= end)
            for _, version in zip(range(PER_PREFIX), prefix):
                found[version] = None
            step *= 2
        return list(found)[:SAMPLES]

    def fingerprint(self, encode) -> int:
        return sum(int.from_bytes(hashlib.sha256(encode(v)).digest(), "little") for v in self.predecessors) % 2**256


@dataclass
class Have:
    head_count: int
    version_count: int
    fingerprint: int
    heads: list[bytes]
    samples: list[bytes]

    @property
    def ids(self) -> list[bytes]:
        return self.heads + self.samples


@dataclass
class Listed:
    has_all: bool
    has_more: bool
    bits: list[bool]
    hashes: set[bytes]


def have(history: History, encode=bytes) -> Have:
    heads = history.heads
    listed = heads[:HEADS]
    samples = [v for v in history.samples() if v not in set(listed)]
    return Have(len(heads), len(history.predecessors), history.fingerprint(encode), listed, samples)


def same(a: Have, b: Have) -> bool:
    return (a.head_count, a.version_count, a.fingerprint) == (b.head_count, b.version_count, b.fingerprint)


def list_for(history: History, theirs: Have, key: bytes, encode=bytes) -> Listed:
    bits = [v in history.predecessors for v in theirs.ids]
    has_all = len(theirs.heads) == theirs.head_count and all(bits[: len(theirs.heads)])
    if has_all:
        return Listed(True, False, bits, set())
    covered = history.behind(theirs.ids)
    hashes = {mac(key, encode(v))[:8] for v in history.predecessors if v not in covered}
    return Listed(False, len(hashes) > HASHES, bits, hashes if len(hashes) <= HASHES else set())


def missing(
    history: History, mine: Have, my_list: Listed, theirs: Have, their_list: Optional[Listed], key: bytes, encode=bytes
) -> list[bytes]:
    """Returns the versions that the other side lacks, in the order in which they arrived."""
    if my_list.has_all:
        known = history.behind(theirs.heads)
        return [v for v in history.predecessors if v not in known]
    assert their_list is not None
    if their_list.has_all:
        return []
    known = history.behind(v for v, bit in zip(mine.ids, their_list.bits) if bit)
    return [v for v in history.predecessors if v not in known and mac(key, encode(v))[:8] not in their_list.hashes]


SETTLED, SUM, LISTED_ALL, HERE, UNKNOWN = range(5)
#: The end of a range: generation and id; None: after all versions.
Place = Optional[tuple[int, bytes]]
#: One of the five kinds of ranges: its kind, its content, and its end.
Range = tuple[int, Any, Place]


def by_ranges(mine: Listed, theirs: Listed) -> bool:
    """Returns whether the sides continue with ranges after LIST."""
    return not mine.has_all and not theirs.has_all and (mine.has_more or theirs.has_more)


class Ranges:
    """The RANGES of a side: for versions of which its lists do not show whether the other side has them."""

    def __init__(
        self, history: History, mine: Have, theirs: Have, their_list: Listed, key: bytes, encode: Any = bytes, order: Any = bytes
    ) -> None:
        """order: for a coded id, the key by which it is sorted."""
        known = history.behind([v for v, bit in zip(mine.ids, their_list.bits) if bit] + theirs.ids)
        generations = history.generations()
        self._order, self._key, self._encode = order, key, encode
        self._versions = sorted(
            ((generations[v], order(encode(v)), v) for v in history.predecessors if v not in known), key=lambda one: one[:2])
        self._open = [True] * len(self._versions)
        self._lacking: list[int] = []
        self._said = 0
        self.is_done = False

    @property
    def lacking(self) -> list[bytes]:
        """Returns the missing versions, predecessors first."""
        return [self._versions[i][2] for i in sorted(self._lacking)]

    def begin(self) -> list[Range]:
        return self._say(self._divide(range(len(self._versions)), None) if self._versions else [(HERE, [], None)])

    def take(self, ranges: list[Range]) -> Optional[list[Range]]:
        """Returns the answer to a frame; None: there is none."""
        answers: list[Range] = []
        low = 0
        for number, (kind, said, end) in enumerate(ranges):
            high = len(self._versions) if end is None else bisect.bisect_left(
                self._versions, (end[0], self._order(end[1])), key=lambda one: one[:2])
            part, low = range(low, high), high
            answer: tuple[int, Any] = (SETTLED, None)
            if kind == SETTLED:
                self._settle(part, set(part))
            elif kind in (HERE, LISTED_ALL):
                there = {i for i in part if self._hash(i) in said}
                self._settle(part, there)
                if kind == LISTED_ALL:
                    answer = HERE, sorted(self._hash(i) for i in there)
            elif kind == UNKNOWN:
                self._settle(part, set())
            elif self._sum(part) == said:
                self._settle(part, set(part))
            elif said[0] == 0:
                self._settle(part, set())
            elif not part:
                answer = HERE, []
            elif self._said + 1 == FRAMES:
                self._settle(part, set())
                answer = UNKNOWN, None
            elif len(answers) + WAYS + len(ranges) - number <= RANGES:
                answers += self._divide(part, end)
                continue
            else:
                answer = SUM, self._sum(part)
            answers.append((*answer, end))
        if not any(kind in (SUM, LISTED_ALL) for kind, _, _ in ranges):
            self.is_done = True
            return None
        return self._say(answers)

    def _say(self, ranges: list[Range]) -> list[Range]:
        self._said += 1
        self.is_done = not any(kind in (SUM, LISTED_ALL) for kind, _, _ in ranges)
        return ranges

    def _divide(self, part: range, end: Place) -> list[Range]:
        if len(part) <= LISTED:
            return [(LISTED_ALL, sorted(map(self._hash, part)), end)]
        cuts = [part.start + len(part) * way // WAYS for way in range(WAYS)] + [part.stop]
        found = []
        for low, high in zip(cuts, cuts[1:]):
            place = (self._versions[high][0], self._encode(self._versions[high][2])) if high < part.stop else end
            found.append((SUM, self._sum(range(low, high)), place))
        return found

    def _sum(self, part: range) -> tuple[int, int]:
        ids = (self._encode(self._versions[i][2]) for i in part)
        return len(part), sum(int.from_bytes(hashlib.sha256(one).digest(), "little") for one in ids) % 2**256

    def _hash(self, i: int) -> bytes:
        return mac(self._key, self._encode(self._versions[i][2]))[:8]

    def _settle(self, part: range, there: set[int]) -> None:
        for i in part:
            if self._open[i] and i not in there:
                self._lacking.append(i)
            self._open[i] = False
