"""Where versions stand in a drawing of the history: each in a lane, newest first, with lines to its predecessors.

A lane is a line on its way to one version: it begins below the first version that names this one as a predecessor, and further ones
that do join it. So there are never more lanes than versions that are awaited.
"""

from __future__ import annotations

import heapq
from typing import NamedTuple, Optional, Sequence

#: Lanes that are drawn; what lies further out is drawn in one lane more, with a number.
DRAWN = 20


class Place(NamedTuple):
    """Where a version stands."""

    #: The lane of the version, `DRAWN` at most.
    lane: int
    #: Whether a line comes to it from above: it has successors.
    arrives: bool
    #: The lanes that pass it by.
    passing: tuple[int, ...]
    #: The lanes in which lines go on to its predecessors.
    leaving: tuple[int, ...]
    #: How many lanes beyond those that are drawn pass it by.
    beyond: int


class Lanes:
    """The lanes between two rows of the drawing. Going on by a version is O(log lanes + `DRAWN`)."""

    def __init__(self) -> None:
        self._awaited: list[Optional[str]] = []
        self._lane_of: dict[str, int] = {}
        #: The most lanes that there were at once, free ones between them included.
        self.widest = 0
        self._free: list[int] = []

    def place(self, id: str, predecessors: Sequence[str]) -> Place:
        """Goes on by a version, and tells where it stands."""
        before = self._awaited[:DRAWN]
        count = len(self._lane_of)
        arrives = id in self._lane_of
        lane, leaving = self._step(id, predecessors)
        passing = tuple(at for at, awaited in enumerate(before) if awaited is not None and awaited != id)
        beyond = count - len(passing) - int(arrives)
        return Place(min(lane, DRAWN), arrives, passing, tuple(min(at, DRAWN) for at in leaving), beyond)

    def _step(self, id: str, predecessors: Sequence[str]) -> tuple[int, list[int]]:
        found = self._lane_of.pop(id, None)
        lane = self._take() if found is None else found
        leaving: list[int] = []
        used = False
        for predecessor in predecessors:
            at = self._lane_of.get(predecessor)
            if at is None:
                at = self._take() if used else lane
                used = True
                self._lane_of[predecessor] = at
                self._awaited[at] = predecessor
            leaving.append(at)
        self.widest = max(self.widest, len(self._awaited))
        if not used:
            self._awaited[lane] = None
            heapq.heappush(self._free, lane)
        while self._awaited and self._awaited[-1] is None:
            self._awaited.pop()
        return lane, leaving

    def _take(self) -> int:
        while self._free:
            lane = heapq.heappop(self._free)
            if lane < len(self._awaited):
                return lane
        self._awaited.append(None)
        return len(self._awaited) - 1
