"""Draws a history as lanes: one lane for each line of versions, and rows between where lanes part and meet.

    @    a merge, the current version
    ├─╮
    ○ │  its first predecessor
    │ ○  its second
    ├─╯
    ○    what both were made from
"""

from __future__ import annotations

from typing import Optional, Sequence

#: The pieces of lanes where only ASCII can be shown.
_ASCII = str.maketrans("│─├┤╮╯╰╭┼┬┴○", "|-||.''.+.'*")


class Graph:
    """Lanes, for versions that come in topological order, each before its predecessors.

        graph.node(id, predecessors)      what stands before the version's first line
        graph.beside()                    what stands before its further lines
        graph.links()                     rows between it and the next version
    """

    def __init__(self, *, is_unicode: bool = True) -> None:
        self._lanes: list[Optional[str]] = []
        self._is_unicode = is_unicode
        self._beside, self._width = "", 0
        self._links: list[str] = []
        self._nodes: dict[tuple[int, str], str] = {}

    def _text(self, row: str) -> str:
        return row if self._is_unicode else row.translate(_ASCII)

    def _changed(self) -> None:
        self._nodes.clear()
        self._beside = self._text("".join("│ " if lane is not None else "  " for lane in self._lanes))

    def _free(self, besides: int = -1) -> int:
        for at, lane in enumerate(self._lanes):
            if lane is None and at != besides:
                return at
        self._lanes.append(None)
        return len(self._lanes) - 1

    def node(self, id: str, predecessors: Sequence[str], *, is_current: bool = False) -> str:
        """The row of a version. O(lanes) where lanes part or meet there, else O(lanes) to find its lane."""
        lanes, self._links = self._lanes, []
        try:
            at = lanes.index(id)
        except ValueError:
            at = self._free()
            lanes[at] = id
            self._changed()
        mark = "@" if is_current else "○"
        row = self._nodes.get((at, mark))
        if row is None:
            row = self._text("".join("│ " if lane is not None else "  " for lane in lanes[:at]) + mark + " ")
            row += self._text("".join("│ " if lane is not None else "  " for lane in lanes[at + 1 :]))
            self._nodes[at, mark] = row
        self._width = len(row)
        if len(predecessors) == 1 and predecessors[0] not in lanes:
            # The lane goes on, and nothing else changes.
            lanes[at] = predecessors[0]
            return row
        self._branch_out(at, predecessors)
        return row

    def _branch_out(self, at: int, predecessors: Sequence[str]) -> None:
        """Leads the lane of a version to its predecessors."""
        lanes = self._lanes
        lanes[at] = None
        targets, opened = [], set()
        for predecessor in dict.fromkeys(predecessors):
            if predecessor in lanes:
                targets.append(lanes.index(predecessor))
                continue
            lane = at if lanes[at] is None else self._free(at)
            if lane != at:
                opened.add(lane)
            lanes[lane] = predecessor
            targets.append(lane)
        self._draw(at, [lane for lane in targets if lane != at], opened, lanes[at] is not None)
        while lanes and lanes[-1] is None:
            lanes.pop()
        self._changed()

    def _draw(self, at: int, targets: list[int], opened: set[int], goes_on: bool) -> None:
        if not targets:
            return
        first, last = min([at, *targets]), max([at, *targets])
        cells = []
        for lane in range(len(self._lanes)):
            is_active = self._lanes[lane] is not None
            if not first <= lane <= last:
                cells.append("│ " if is_active else "  ")
                continue
            left, right = lane > first, lane < last
            if lane == at:
                cell = _joint(up=True, down=goes_on, left=left, right=right)
            elif lane in targets:
                cell = _joint(up=lane not in opened, down=True, left=left, right=right)
            else:
                cell = "┼" if is_active else "─"
            cells.append(cell + ("─" if right else " "))
        self._links = [self._text("".join(cells))]

    def beside(self) -> str:
        """What stands before a further line of the version that was drawn last, and between versions: as wide as its row."""
        return self._beside.ljust(self._width)

    def links(self) -> list[str]:
        """The rows from the version that was drawn last to its predecessors, where they are not just straight down."""
        return self._links


def _joint(*, up: bool, down: bool, left: bool, right: bool) -> str:
    """The piece of a line that has ends on these sides."""
    if up and down:
        return "┼" if left and right else "┤" if left else "├"
    if up:
        return "┴" if left and right else "╯" if left else "╰"
    return "┬" if left and right else "╮" if left else "╭"
