"""Places of versions in a drawing of the history: each version has a lane; the newest comes first, with lines to its predecessors.

A lane is a line that leads down to one version. It begins below the first version that has this one as a predecessor, and the lines from
other successors join it. So there are never more lanes than versions that are awaited.
"""

from __future__ import annotations

import heapq
from typing import NamedTuple, Optional, Sequence

#: The number of lanes that are drawn. One more lane stands for all others, with their number.
DRAWN = 20


class Place(NamedTuple):
    """The place of a version in the drawing."""

    #: The lane of the version, `DRAWN` at most.
    lane: int
    #: Whether a line leads to it from above, because it has successors.
    arrives: bool
    #: The lanes that pass it.
    passing: tuple[int, ...]
    #: The lanes of the lines to its predecessors.
    leaving: tuple[int, ...]
    #: The number of lanes that pass the row beyond the drawn ones.
    beyond: int


class Lanes:
    """The lanes between two rows of the drawing. A step to the next version is O(log lanes + `DRAWN`)."""

    def __init__(self) -> None:
        self._awaited: list[Optional[str]] = []
        self._lane_of: dict[str, int] = {}
        #: The largest number of lanes at once, including unused ones between them.
        self.widest = 0
        self._free: list[int] = []

    def place(self, id: str, predecessors: Sequence[str]) -> Place:
        """Steps to the next version, and returns its place."""
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
