"""Merges values over a graph of versions: who is newer, virtual bases, contested values.

Readings of the specification where it leaves a choice:
- Two different values may have one recency (a merged value and the side from which it has its recency). Then the one with the larger bytes
  is `x`, so that all replicas agree.
- Contested values of inner merges are passed to the outer ones.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Optional

from .merge import Contested, Record, identity, merge_values
from .rules import RuleSet

#: The time and id of the version that stored a value. For a value that a merge computed: the later time and id of its two sides.
Recency = tuple[float, str]


@dataclass(frozen=True)
class Held:
    """A value that prevails somewhere: its bytes, its reference (None: computed for a virtual base), its recency."""

    data: bytes
    recency: Recency
    stored: Optional[str] = None


@dataclass(frozen=True)
class Outcome:
    """The result of merging one value of two versions; `same_as` is the side whose reference is preserved."""

    held: Optional[Held]
    records: tuple[Record, ...]
    same_as: Optional[Held] = None


@dataclass
class Graph:
    """Versions with their predecessors and the values that prevail at each."""

    times: dict[str, float] = field(default_factory=dict)
    parents: dict[str, tuple[str, ...]] = field(default_factory=dict)
    states: dict[str, dict[str, Held]] = field(default_factory=dict)
    above: dict[str, frozenset[str]] = field(default_factory=dict)

    def add(self, version: str, time: float, parents: tuple[str, ...], state: dict[str, Held]) -> None:
        """Adds a version after its predecessors."""
        self.times[version], self.parents[version], self.states[version] = time, parents, state
        self.above[version] = frozenset({version}.union(*(self.above[parent] for parent in parents)))

    def order(self, version: str) -> Recency:
        """Canonical order: time, then id."""
        return self.times[version], version

    def best_common(self, a: frozenset[str], b: frozenset[str]) -> list[str]:
        """Returns the maximal common ancestors of two sets that are closed under ancestors, oldest first."""
        common = a & b
        covered = {ancestor for version in common for parent in self.parents[version] for ancestor in self.above[parent]}
        return sorted(common - covered, key=self.order)

    def base(self, value_id: str, a: frozenset[str], b: frozenset[str], rules: RuleSet) -> tuple[Optional[Held], Contested]:
        """Returns the virtual base of one value."""
        bases = self.best_common(a, b)
        if not bases:
            return None, {}
        held, ancestors, contested = self.states[bases[0]].get(value_id), self.above[bases[0]], Contested()
        for version in bases[1:]:
            other = self.states[version].get(value_id)
            if held is not None and other is not None and held.stored is not None and held.stored == other.stored:
                # Both are the same event, so neither is newer.
                ancestors |= self.above[version]
                continue
            inner, inner_contested = self.base(value_id, ancestors, self.above[version], rules)
            outcome = merge_held(inner, held, other, rules, inner_contested)
            for path, values in inner_contested.items():
                contested.setdefault(path, set()).update(values)
            for record in outcome.records:
                sides = {identity(value) for value in (record.x, record.y) if value is not None}
                contested.setdefault(record.inner, set()).update(sides)
            held, ancestors = outcome.held, ancestors | self.above[version]
        return held, contested

    def merge(self, value_id: str, a: str, b: str, rules: RuleSet) -> Outcome:
        """Merges one value of two versions."""
        mine, theirs = self.states[a].get(value_id), self.states[b].get(value_id)
        if mine and theirs and mine.stored == theirs.stored:
            return Outcome(mine, (), mine)
        base, contested = self.base(value_id, self.above[a], self.above[b], rules)
        return merge_held(base, mine, theirs, rules, contested)


def merge_held(base: Optional[Held], a: Optional[Held], b: Optional[Held], rules: RuleSet, contested: Contested) -> Outcome:
    """Merges two values with roles by recency; if the result has a side's bytes, it is that side's value, with its recency."""
    sides = sorted((side for side in (a, b) if side is not None), key=lambda side: (side.recency, side.data), reverse=True)
    if not sides:
        return Outcome(None, ())
    x, y = sides[0], sides[1] if len(sides) == 2 else None
    merged = merge_values(base.data if base else None, x.data, y.data if y else None, rules, contested=contested)
    if merged.data is None:
        return Outcome(None, merged.records)
    for side in sides:
        if merged.data == side.data:
            return Outcome(side, merged.records, side)
    return Outcome(Held(merged.data, x.recency), merged.records)
