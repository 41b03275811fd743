"""Draws a history as lanes: one lane for each line of versions, and rows between versions in which lanes part and meet.

    @    a merge, the current version
    ├─╮
    ○ │  its first predecessor
    │ ○  its second
    ├─╯
    ○    what both were made from
"""

from __future__ import annotations

import heapq
from typing import Iterable, Optional, Sequence

#: The number of lanes that are drawn. One further column stands for all other lanes, so the width of a row is bounded.
DRAWN = 24
#: ASCII characters for the pieces of lanes.
_ASCII = str.maketrans("│─├┤╮╯╰╭┼┬┴○┊", "|-||.''.+.'*:")


class Graph:
    """Lanes, for versions in topological order, each before its predecessors.

        graph.node(id, predecessors)      the beginning of the version's first line
        graph.beside()                    the beginning of its further lines
        graph.links()                     rows between it and the next version

    A version takes O(log lanes + predecessors), and drawing it O(`DRAWN`).
    """

    def __init__(self, *, is_unicode: bool = True) -> None:
        #: The version to which each lane leads, and the lane that leads to each version.
        self._lanes: list[Optional[str]] = []
        self._lane_of: dict[str, int] = {}
        #: A heap of all unused lanes. It also has some that are in use again or no longer exist.
        self._free: list[int] = []
        #: The number of used lanes beyond `DRAWN`.
        self._beyond = 0
        self._is_unicode = is_unicode
        self._beside, self._width = "", 0
        self._links: list[str] = []
        self._nodes: dict[tuple[int, str], str] = {}

    def _text(self, row: str) -> str:
        return row if self._is_unicode else row.translate(_ASCII)

    def _lead(self, lane: int, id: str) -> None:
        """Makes a lane lead to a version."""
        self._leave(lane)
        self._lanes[lane] = id
        self._lane_of[id] = lane
        self._beyond += lane >= DRAWN

    def _leave(self, lane: int) -> None:
        id = self._lanes[lane]
        if id is not None:
            del self._lane_of[id]
            self._lanes[lane] = None
            self._beyond -= lane >= DRAWN

    def _cells(self, columns: Iterable[int]) -> str:
        return "".join(self._cell(column) for column in columns)

    def _cell(self, column: int) -> str:
        if column == DRAWN:
            return "┊ " if self._beyond else "  "
        return "│ " if self._lanes[column] is not None else "  "

    def _columns(self) -> int:
        return min(len(self._lanes), DRAWN + 1)

    def _changed(self) -> None:
        self._nodes.clear()
        self._beside = self._text(self._cells(range(self._columns())))

    def _take(self) -> int:
        """Returns the first unused lane; a new one if all are used."""
        while self._free:
            lane = heapq.heappop(self._free)
            if lane < len(self._lanes) and self._lanes[lane] is None:
                return lane
        self._lanes.append(None)
        return len(self._lanes) - 1

    def node(self, id: str, predecessors: Sequence[str], *, is_current: bool = False) -> str:
        """Returns the row of a version."""
        self._links = []
        found = self._lane_of.get(id)
        if found is None:
            at = self._take()
            self._lead(at, id)
            self._changed()
        else:
            at = found
        mark, column = "@" if is_current else "○", min(at, DRAWN)
        row = self._nodes.get((column, mark))
        if row is None:
            row = self._text(f"{self._cells(range(column))}{mark} {self._cells(range(column + 1, self._columns()))}")
            self._nodes[column, mark] = row
        self._width = len(row)
        if len(predecessors) == 1 and predecessors[0] not in self._lane_of:
            # The lane continues, and nothing else changes.
            self._lead(at, predecessors[0])
            return row
        self._branch_out(at, predecessors)
        return row

    def _branch_out(self, at: int, predecessors: Sequence[str]) -> None:
        """Leads the lane of a version to its predecessors."""
        self._leave(at)
        targets, opened, goes_on = set(), set(), False
        for predecessor in dict.fromkeys(predecessors):
            known = self._lane_of.get(predecessor)
            if known is not None:
                targets.add(known)
                continue
            lane = self._take() if goes_on else at
            if lane != at:
                opened.add(lane)
            goes_on = True
            self._lead(lane, predecessor)
            targets.add(lane)
        self._draw(at, targets - {at}, opened, goes_on)
        if not goes_on:
            heapq.heappush(self._free, at)
        while self._lanes and self._lanes[-1] is None:
            self._lanes.pop()
        self._changed()

    def _draw(self, at: int, targets: set[int], opened: set[int], goes_on: bool) -> None:
        """Draws the row below a version, from its column to those of its predecessors. Lanes beyond `DRAWN` share one column."""
        column, ends = min(at, DRAWN), {min(lane, DRAWN) for lane in targets}
        down = goes_on or (column == DRAWN and self._beyond > 0)
        up = {min(lane, DRAWN) for lane in targets - opened} | ({DRAWN} if self._beyond > len(opened) else set())
        ends.discard(column)
        if not ends:
            return
        first, last = min([column, *ends]), max([column, *ends])
        cells = []
        for place in range(self._columns()):
            if not first <= place <= last:
                cells.append(self._cell(place))
                continue
            left, right = place > first, place < last
            if place == column:
                cell = _joint(up=True, down=down, left=left, right=right)
            elif place in ends:
                cell = _joint(up=place in up, down=True, left=left, right=right)
            else:
                cell = "┼" if self._lanes[place] is not None else "─"
            cells.append(cell + ("─" if right else " "))
        self._links = [self._text("".join(cells))]

    def beside(self) -> str:
        """Returns the beginning of a further line of the version that was drawn last, and of lines between versions: as wide as its row."""
        return self._beside.ljust(self._width)

    def links(self) -> list[str]:
        """Returns the rows from the version that was drawn last to its predecessors; none if the lanes only go straight down."""
        return self._links


def _joint(*, up: bool, down: bool, left: bool, right: bool) -> str:
    """Returns the piece of a line that has ends on these sides."""
    if up and down:
        return "┼" if left and right else "┤" if left else "├"
    if up:
        return "┴" if left and right else "╯" if left else "╰"
    return "┬" if left and right else "╮" if left else "╭"
