"""Rule 8.2 of the specification of texts and lists of plain values: lists with equal elements, or with equal edits in two slots.

Readings of the specification where it leaves a choice:
- Elements are equal if they are equal as JSON values, so [1, 1.0] has equal elements.
- If two alignments are made, that of the newer side comes first. If one of them meets a limit, a record `limit` of the list says so.
- "One run has all of the other's in their order" is looked for from the left, without steps: of x [5] and y [5, 5], x's is the first.
- In a save the newer side, which the app made, is paired by place and hunk too: what the app read is the base, element by element.
"""

from __future__ import annotations

from typing import Optional, Sequence

from .alignment import Budget, align, hunks
from .sequences import Key


def is_plain(*sides: list[Key]) -> bool:
    """Returns whether all elements are known by all they are."""
    return all(key[0] == "value" for side in sides for key in side)


def has_equal(*sides: list[Key]) -> bool:
    """Returns whether a list has an element twice."""
    return any(key[2] > 0 for side in sides for key in side)


def has_equal_edits_in_two_slots(base: list[Key], newer: list[Key], older: list[Key]) -> bool:
    """Returns whether both sides are as long as the base, and have put equal new elements into different slots."""
    slots = [{key: slot for slot, key in enumerate(side) if key not in base} for side in (newer, older)]
    return len(newer) == len(older) == len(base) and any(slots[1].get(key, slot) != slot for key, slot in slots[0].items())


def by_place(base: list[Key], side: list[Key], budget: Budget) -> list[Optional[int]]:
    """Returns of each element of a side which one of the base it is; None for a new one."""
    a, b = ([key[:2] for key in keys] for keys in (base, side))
    pairs = align(a, b, budget)
    if len(a) == len(b) and sum(one != other for one, other in zip(a, b)) <= len(a) + len(b) - 2 * len(pairs):
        return [*range(len(a))]
    found: list[Optional[int]] = [None] * len(b)
    for index, place in pairs:
        found[place] = index
    for hunk in hunks(pairs, (0, len(a)), (0, len(b))):
        if hunk.end - hunk.start == hunk.last - hunk.first:
            found[hunk.first : hunk.last] = range(hunk.start, hunk.end)
    return found


def keys_by_place(base: list[Key], newer: list[Key], older: list[Key], budget: Budget) -> tuple[list[Key], list[Key]]:
    """Returns the keys of both sides: those of the elements of the base that they are, and others for new ones."""
    in_x, in_y = by_place(base, newer, budget), by_place(base, older, budget)
    x_keys, y_keys = keys_of_places(base, in_x, "newer"), keys_of_places(base, in_y, "older")
    x_runs, y_runs = new_in_gaps(in_x), new_in_gaps(in_y)
    for gap in x_runs.keys() & y_runs.keys():
        x_run, y_run = x_runs[gap], y_runs[gap]
        if len(x_run) <= len(y_run):
            same = all_in([newer[at][:2] for at in x_run], [older[at][:2] for at in y_run])
            pairs = [(x_run[k], y_run[at]) for k, at in enumerate(same or [])]
        else:
            same = all_in([older[at][:2] for at in y_run], [newer[at][:2] for at in x_run])
            pairs = [(x_run[at], y_run[k]) for k, at in enumerate(same or [])]
        for of_x, of_y in pairs:
            y_keys[of_y] = x_keys[of_x]
    return x_keys, y_keys


def keys_of_places(base: list[Key], places: Sequence[Optional[int]], side: str) -> list[Key]:
    """Returns keys by places. (No value is written with a zero byte.)"""
    return [("value", b"\0" + side.encode(), number) if at is None else base[at] for number, at in enumerate(places)]


def new_in_gaps(places: Sequence[Optional[int]]) -> dict[int, list[int]]:
    """Returns the new elements of a side by gap; gap g is before element g of the base."""
    runs: dict[int, list[int]] = {}
    gap = 0
    for number, at in enumerate(places):
        if at is None:
            runs.setdefault(gap, []).append(number)
        else:
            gap = at + 1
    return runs


def all_in(part: Sequence[object], whole: Sequence[object]) -> Optional[list[int]]:
    """Returns where all of a run are in another one, in their order; None if they are not."""
    found: list[int] = []
    for name in part:
        at = next((at for at in range(found[-1] + 1 if found else 0, len(whole)) if whole[at] == name), None)
        if at is None:
            return None
        found.append(at)
    return found
