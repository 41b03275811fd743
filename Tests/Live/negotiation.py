"""What two sides tell each other to learn what the other lacks (docs/live-protocol.md, section 4), over histories without contents."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Iterable, Optional

from noise import mac

HEADS, SAMPLES, PER_PREFIX, HASHES = 256, 512, 16, 65_536


@dataclass
class History:
    """Versions in the order in which they came here, each with its predecessors, which came before it."""

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
        """Those of them that are here, with all their ancestors."""
        found: set[bytes] = set()
        stack = [v for v in versions if v in self.predecessors]
        while stack:
            version = stack.pop()
            if version not in found:
                found.add(version)
                stack.extend(self.predecessors[version])
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
    """What the other side lacks, in the order in which it came here."""
    if my_list.has_all:
        known = history.behind(theirs.heads)
        return [v for v in history.predecessors if v not in known]
    assert their_list is not None
    if their_list.has_all:
        return []
    known = history.behind(v for v, bit in zip(mine.ids, their_list.bits) if bit)
    return [v for v in history.predecessors if v not in known and mac(key, encode(v))[:8] not in their_list.hashes]
