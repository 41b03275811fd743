"""The semantics of the store, stated as plainly as possible: a reference model in pure Python.

States are dicts, ancestors are sets, and nothing is computed incrementally: it is slow, and easy to check by reading. Tests compare the
library with it on random histories, and it makes the vectors in Tests/Vectors.
"""

from __future__ import annotations

import hashlib
import math
import struct
from dataclasses import dataclass, field
from typing import Callable, Iterable, NamedTuple, Optional, Union

#: A value id as UTF-8, the form in which ids are compared and sorted.
Id = bytes


class Ref(NamedTuple):
    """A reference: a value id and the version that stored the bytes."""

    id: Id
    version: str


@dataclass(frozen=True)
class Set:
    """Sets a value. (A state does not distinguish insert and update; the label follows from the predecessor.)"""

    data: bytes


@dataclass(frozen=True)
class Preserve:
    """Preserves the bytes that a version stored."""

    version: str


@dataclass(frozen=True)
class Remove:
    """Removes a value."""


@dataclass(frozen=True)
class PreserveRemoval:
    """Preserves a removal."""


Change = Union[Set, Preserve, Remove, PreserveRemoval]
State = dict[Id, str]


@dataclass(frozen=True)
class Version:
    """A version. The timestamp is in seconds since 2001-01-01 UTC."""

    id: str
    predecessors: tuple[str, ...]
    timestamp: float
    changes: dict[Id, Change] = field(hash=False)
    metadata: dict[bytes, bytes] = field(default_factory=dict, hash=False)


class Fork(NamedTuple):
    """How a value differs between two versions and their common ancestor."""

    kind: str
    side: Optional[str]
    first: Optional[str]
    second: Optional[str]
    ancestor: Optional[str]

    @property
    def conflicting(self) -> bool:
        return self.kind in ("twice_inserted", "twice_updated", "removed_and_updated")


#: The state of a key at a base: the set of references (None: absent) of the bases; one reference unless they disagree.
Base = tuple[Optional[str], ...]


class Conflict(Exception):
    """The arbiter left a conflict."""


class History:
    """All versions, and what can be derived from them."""

    def __init__(self) -> None:
        self.versions: dict[str, Version] = {}
        self._states: dict[str, State] = {}
        self._ancestors: dict[str, frozenset[str]] = {}

    # Versions

    def add(self, version: Version) -> None:
        assert version.id not in self.versions or self.versions[version.id] == version, version.id
        assert all(predecessor in self.versions for predecessor in version.predecessors)
        self.versions[version.id] = version

    def forget(self, id: str) -> None:
        """Removes a version that has no successors."""
        del self.versions[id]
        self._states.pop(id, None)
        self._ancestors.pop(id, None)

    def key(self, id: str) -> tuple[float, str]:
        """Returns the sort key of the canonical order: "newer" is larger."""
        return (self.versions[id].timestamp, id)

    def ancestors(self, id: str) -> frozenset[str]:
        """Returns the version itself and all its ancestors."""
        if id not in self._ancestors:
            found, left = set(), [id]
            while left:
                next = left.pop()
                if next not in found:
                    found.add(next)
                    left.extend(self.versions[next].predecessors)
            self._ancestors[id] = frozenset(found)
        return self._ancestors[id]

    def is_ancestor(self, a: str, b: str) -> bool:
        return a != b and a in self.ancestors(b)

    def heads(self, known: Iterable[str]) -> list[str]:
        """Returns versions without successors, newest first."""
        known = set(known)
        taken = {predecessor for id in known for predecessor in self.versions[id].predecessors}
        return sorted(known - taken, key=self.key, reverse=True)

    def unbranched_heads(self, known: Iterable[str]) -> list[str]:
        """Returns versions that carry no branch and are no ancestor of another such version, newest first."""
        all = {id for id in known if b"__llvs_branch" not in self.versions[id].metadata}
        behind = set().union(*(self.ancestors(id) - {id} for id in all)) if all else set()
        return sorted(all - behind, key=self.key, reverse=True)

    def best_common_ancestors(self, left: Iterable[str], right: Iterable[str]) -> list[str]:
        """Returns them newest first."""
        a = frozenset().union(*(self.ancestors(id) for id in left))
        b = frozenset().union(*(self.ancestors(id) for id in right))
        common = a & b
        best = [id for id in common if not any(self.is_ancestor(id, other) for other in common)]
        return sorted(best, key=self.key, reverse=True)

    def bases(self, a: str, b: str) -> list[str]:
        return self.best_common_ancestors([a], [b])

    # Values

    def state(self, id: str) -> State:
        """Returns the versions whose bytes prevail, by value id."""
        chain = []
        at: Optional[str] = id
        while at is not None and at not in self._states:
            chain.append(at)
            at = self.versions[at].predecessors[0] if self.versions[at].predecessors else None
        state = dict(self._states[at]) if at is not None else {}
        for at in reversed(chain):
            for key, change in self.versions[at].changes.items():
                if isinstance(change, Set):
                    state[key] = at
                elif isinstance(change, Preserve):
                    state[key] = change.version
                else:
                    state.pop(key, None)
            self._states[at] = dict(state)
        return dict(self._states[id])

    def data(self, key: Id, version: str) -> bytes:
        change = self.versions[version].changes[key]
        assert isinstance(change, Set), (key, version)
        return change.data

    def values(self, id: str) -> dict[Id, bytes]:
        return {key: self.data(key, version) for key, version in sorted(self.state(id).items())}

    def difference(self, a: str, b: str) -> dict[Id, tuple[str, Optional[str]]]:
        """Returns the changes that lead from a's state to b's."""
        old, new = self.state(a), self.state(b)
        found: dict[Id, tuple[str, Optional[str]]] = {}
        for key in sorted(old.keys() | new.keys()):
            if key not in old:
                found[key] = ("insert", new[key])
            elif key not in new:
                found[key] = ("remove", None)
            elif old[key] != new[key]:
                found[key] = ("update", new[key])
        return found

    # Merging

    def _later(self, a: str, b: str) -> str:
        return max(a, b, key=self.key)

    def _fold(self, key: Id, versions: tuple[str, ...]) -> Base:
        """Returns the value of a key at the virtual base of versions (newest first)."""
        if not versions:
            return (None,)
        held: Base = (self.state(versions[0]).get(key),)
        for count in range(1, len(versions)):
            other = self.state(versions[count]).get(key)
            if len(held) > 1:
                if other not in held:
                    held += (other,)
                continue
            mine = held[0]
            if mine == other:
                continue
            if mine is not None and other is not None and self.data(key, mine) == self.data(key, other):
                held = (self._later(mine, other),)
                continue
            below = self._fold(key, tuple(self.best_common_ancestors(versions[:count], versions[count : count + 1])))
            is_mine, is_other = self._holds(key, below, mine), self._holds(key, below, other)
            held = (mine, other) if is_mine == is_other else (other,) if is_mine else (mine,)
        return held

    def _holds(self, key: Id, held: Base, one: Optional[str]) -> bool:
        """Returns whether a base has these bytes, whichever version stored them; or lacks the value, if `one` is None."""
        return any(
            other == one or (None not in (one, other) and self.data(key, str(one)) == self.data(key, str(other))) for other in held
        )

    def forks(self, first: str, second: str, bases: list[str]) -> tuple[dict[Id, Fork], dict[Id, str]]:
        """Returns the forks by id, and changes of the second side that are no forks: equal bytes that it stored later."""
        x, y = self.state(first), self.state(second)
        below: set[Id] = set()
        for base in bases:
            below |= self.state(base).keys()
        forks: dict[Id, Fork] = {}
        brought: dict[Id, str] = {}
        for key in sorted(x.keys() | y.keys() | below):
            p, q = x.get(key), y.get(key)
            if p is None and q is None:
                held = self._fold(key, tuple(bases))
                if len(held) == 1 and held[0] is not None:
                    forks[key] = Fork("twice_removed", None, None, None, held[0])
                continue
            if p == q:
                continue
            if p is not None and q is not None and self.data(key, p) == self.data(key, q):
                if self._later(p, q) == q:
                    brought[key] = q
                continue
            held = self._fold(key, tuple(bases))
            is_p, is_q = self._holds(key, held, p), self._holds(key, held, q)
            if len(held) > 1 and is_p == is_q:
                kind = "twice_updated" if p is not None and q is not None else "removed_and_updated"
                side = None if kind == "twice_updated" else "first" if p is None else "second"
                forks[key] = Fork(kind, side, p, q, None)
                continue
            o = held[0] if len(held) == 1 else p if is_p else q
            forks[key] = Fork(*self._classify(o, p, q, is_p, is_q), p, q, o)
        return forks, brought

    @staticmethod
    def _classify(o: Optional[str], p: Optional[str], q: Optional[str], is_p: bool, is_q: bool) -> tuple[str, Optional[str]]:
        """Returns the kind of a fork and the side that made it, from the sides that equal the ancestor."""
        if o is None:
            if p is not None and q is not None:
                return "twice_inserted", None
            return "inserted", "first" if p is not None else "second"
        if is_q:
            return ("removed" if p is None else "updated"), "first"
        if is_p:
            return ("removed" if q is None else "updated"), "second"
        if p is None:
            return "removed_and_updated", "first"
        if q is None:
            return "removed_and_updated", "second"
        return "twice_updated", None

    def equal_states(self, a: str, b: str) -> bool:
        """Returns whether both have the same ids with the same bytes, whichever versions stored them."""
        return self.values(a) == self.values(b)

    def merges_only(self, bases: list[str], a: str, b: str) -> bool:
        below = frozenset().union(*(self.ancestors(base) for base in bases))
        return all(len(self.versions[id].predecessors) == 2 for id in (self.ancestors(a) | self.ancestors(b)) - below)

    def _larger(self, x: dict[Id, str], y: dict[Id, str]) -> dict[Id, Change]:
        """Returns the changes of a merge whose result is the larger of two states; none if that is the first's.

        The first id at which they differ decides: the larger state has there what was stored later. Absence is smaller than anything.
        """
        differing = sorted(key for key in x.keys() | y.keys() if x.get(key) != y.get(key))
        for key in differing:
            if key not in y or (key in x and self._later(x[key], y[key]) == x[key]):
                return {}
            break
        return {key: Preserve(y[key]) if key in y else PreserveRemoval() for key in differing}

    def merge(
        self,
        ours: str,
        theirs: str,
        arbiter: Union[str, Callable[[dict[Id, Fork]], dict[Id, Change]]] = "most_recent_change",
        metadata: Optional[dict[bytes, bytes]] = None,
    ) -> Version:
        """Returns the result of a merge: an existing version, or a new one, which is not added yet."""
        if theirs in self.ancestors(ours):
            return self.versions[ours]
        if ours in self.ancestors(theirs):
            return self.versions[theirs]
        first, second = sorted((ours, theirs), key=self.key, reverse=True)
        bases = self.bases(first, second)
        x, y = self.state(first), self.state(second)
        if bases and self.merges_only(bases, first, second):
            return self._merge_version(first, second, {}, self._larger(x, y))
        if self.equal_states(first, second):
            return self._merge_version(first, second, {}, {})
        forks, brought = self.forks(first, second, bases)
        if callable(arbiter):
            resolved = dict(arbiter(forks))
        else:
            resolved = self._resolve(arbiter, forks, first, ours)
        for key, fork in forks.items():
            if key in resolved:
                continue
            if fork.conflicting:
                raise Conflict(key)
            if fork.side == "second":
                resolved[key] = Preserve(fork.second) if fork.second is not None else PreserveRemoval()
        for key, version in brought.items():
            resolved.setdefault(key, Preserve(version))
        changes: dict[Id, Change] = {}
        for key in sorted(resolved):
            change = self._canonical(resolved[key], key, x.get(key), y.get(key))
            if change is not None:
                changes[key] = change
        return self._merge_version(first, second, metadata or {}, changes)

    def _resolve(self, arbiter: str, forks: dict[Id, Fork], first: str, ours: str) -> dict[Id, Change]:
        resolved: dict[Id, Change] = {}
        for key, fork in forks.items():
            if not fork.conflicting:
                continue
            if arbiter == "most_recent_change":
                winner = (
                    self._later(fork.first, fork.second)
                    if fork.first is not None and fork.second is not None
                    else fork.first or fork.second
                )
            else:
                wins_first = {"most_recent_branch": True, "ours": ours == first, "theirs": ours != first}[arbiter]
                winner = fork.first if wins_first else fork.second
            resolved[key] = Preserve(winner) if winner is not None else Remove()
        return resolved

    def _canonical(self, change: Change, key: Id, p: Optional[str], q: Optional[str]) -> Optional[Change]:
        if isinstance(change, Set):
            return None if p is not None and self.data(key, p) == change.data else change
        if isinstance(change, Preserve):
            return None if p == change.version else change
        if p is None:
            return None
        return PreserveRemoval() if q is None else Remove()

    def _merge_version(self, first: str, second: str, metadata: dict[bytes, bytes], changes: dict[Id, Change]) -> Version:
        timestamp = self.versions[first].timestamp
        later = timestamp + 1e-6
        if not later > timestamp:
            later = math.nextafter(timestamp, math.inf)
        return Version(content_id((first, second), later, metadata, changes), (first, second), later, changes, metadata)

    def merge_heads(
        self,
        known: Iterable[str],
        into: str,
        arbiter: Union[str, Callable[[dict[Id, Fork]], dict[Id, Change]]] = "most_recent_change",
        selected: Optional[Callable[[Version], bool]] = None,
        metadata: Optional[dict[bytes, bytes]] = None,
    ) -> tuple[str, list[Version]]:
        """Returns the resulting version, and the new versions that led to it."""
        some = {*self.heads(known), *self.unbranched_heads(known)}
        some = {head for head in some if selected is None or selected(self.versions[head])}
        chosen = [head for head in some if not any(self.is_ancestor(head, other) for other in some | {into})]
        if not any(into in self.ancestors(head) for head in chosen):
            chosen.append(into)
        chosen.sort(key=self.key, reverse=True)
        groups: list[list[str]] = []
        for head in chosen:
            group = next((group for group in groups if self.equal_states(group[0], head)), None)
            if group is None:
                groups.append([head])
            else:
                group.append(head)
        if len(groups) == 1:  # all have equal states: the newest is the result
            return chosen[0], []
        new: list[Version] = []
        joined = [self._fold_heads(group, into, arbiter, metadata, known, new) for group in groups]
        joined.sort(key=self.key, reverse=True)
        return self._fold_heads(joined, into, arbiter, metadata, known, new), new

    def _fold_heads(
        self,
        heads: list[str],
        into: str,
        arbiter: Union[str, Callable[[dict[Id, Fork]], dict[Id, Change]]],
        metadata: Optional[dict[bytes, bytes]],
        known: Iterable[str],
        new: list[Version],
    ) -> str:
        """Merges heads one after the other, newest first; adds new versions to `new`."""
        result = heads[0]
        for other in heads[1:]:
            theirs_has_target = into in self.ancestors(other) and into not in self.ancestors(result)
            ours, theirs = (other, result) if theirs_has_target else (result, other)
            merged = self.merge(ours, theirs, arbiter, metadata)
            if merged.id not in self.versions:
                self.add(merged)
            if merged.id not in known:
                new.append(merged)
            result = merged.id
        return result


def _text(text: str) -> bytes:
    data = text.encode()
    return struct.pack("<H", len(data)) + data


def content_id(predecessors: tuple[str, ...], timestamp: float, metadata: dict[bytes, bytes], changes: dict[Id, Change]) -> str:
    """Returns the id of a version: a UUID of version 8 from SHA-256 over its contents (docs/format.md)."""
    hash = hashlib.sha256(b"llvs content 1\0")
    hash.update(struct.pack("<B", len(predecessors)) + b"".join(map(_text, predecessors)))
    hash.update(struct.pack("<d", timestamp))
    hash.update(struct.pack("<I", len(metadata)))
    for key, value in sorted(metadata.items()):
        hash.update(struct.pack("<I", len(key)) + key + struct.pack("<I", len(value)) + value)
    hash.update(struct.pack("<I", len(changes)))
    for id, change in sorted(changes.items()):
        kind = {Set: 2, Remove: 3, Preserve: 4, PreserveRemoval: 5}[type(change)]
        hash.update(struct.pack("<BH", kind, len(id)) + id)
        if isinstance(change, Set):
            hash.update(struct.pack("<Q", len(change.data)) + hashlib.sha256(change.data).digest())
        elif isinstance(change, Preserve):
            hash.update(_text(change.version))
    digest = bytearray(hash.digest()[:16])
    digest[6] = digest[6] & 0x0F | 0x80
    digest[8] = digest[8] & 0x3F | 0x80
    text = digest.hex().upper()
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))
