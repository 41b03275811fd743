"""Lists by keys: longest increasing subsequences, anchors, runs, pairing, and the order of what comes out.

An element is known by its key; a key is (source, identity bytes, occurrence), so keys are unique within an array.
Numbers of rules are those of the specification of texts and lists of plain values; `plain_lists` has its rule 8.2.

Readings of the specification where it leaves a choice:
- 8.1 (a) and (b) hold wherever there is pairing: in lists of which some elements have an `id`, too. That no element of the slices was moved
  stays a condition, because an element that was moved into a slice would lose its key.
- 8.1 (a): An element of O that is anywhere on a side has to be at its place in that side's slice: o [1,2], x [7,8], y [9,1] is no pair.
- 8.1 (c) decides for a whole gap, also in the pieces between elements that both sides put there.
- 8.1 (d): An element was moved behind the anchor before its gap. With o ABC, x BAC, y ACB, x moved A behind B, which y moved away.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import Optional, Sequence, TypeVar

from . import json_model as j
from .rules import Pointer

#: (source, identity, occurrence). Sources: "declared", "id", "value".
Key = tuple[str, bytes, int]

T = TypeVar("T")


def keys_of(items: Sequence[j.Node], declared: Optional[tuple[Pointer, ...]]) -> list[Key]:
    """Returns the key of each element; the occurrence makes keys of equal elements unique."""
    seen: dict[tuple[str, bytes], int] = {}
    keys: list[Key] = []
    for item in items:
        source, name = plain_key(item, declared)
        occurrence = seen.get((source, name), 0)
        seen[source, name] = occurrence + 1
        keys.append((source, name, occurrence))
    return keys


def plain_key(item: j.Node, declared: Optional[tuple[Pointer, ...]]) -> tuple[str, bytes]:
    """Returns the key of a single element."""
    if declared is not None:
        found = [j.resolve(item, pointer) for pointer in declared]
        if all(node is not None and not isinstance(node, (j.Array, j.Object)) for node in found):
            return "declared", j.identity(j.Array(tuple(node for node in found if node is not None)))
    elif isinstance(item, j.Object):
        own = item.get("id")
        if isinstance(own, (j.String, j.Number)):
            return "id", j.identity(own)
    return "value", j.identity(item)


def increasing(positions: Sequence[int]) -> list[int]:
    """Returns the indices of the longest increasing subsequence: scanning from the left, the first element that can be a part of one.

    `longest[i]` is the length of the longest increasing subsequence that starts at i (patience sorting from the right).
    """
    tails: list[int] = []
    longest = [0] * len(positions)
    for index in range(len(positions) - 1, -1, -1):
        place = bisect_left(tails, -positions[index])
        tails[place : place + 1] = [-positions[index]]
        longest[index] = place + 1
    wanted, last, chosen = len(tails), -1, []
    for index, position in enumerate(positions):
        if longest[index] == wanted and position > last:
            chosen.append(index)
            last, wanted = position, wanted - 1
    return chosen


@dataclass
class Side:
    """One side of a list, compared with its base: which elements are anchors, which moved, and the runs in each gap."""

    keys: list[Key]
    anchors: set[Key]
    moved: set[Key]
    #: By gap, the keys of the elements there that are not anchors, in order. Gap g is before base element g.
    runs: dict[int, list[Key]]


def side_of(keys: list[Key], place: dict[Key, int]) -> Side:
    """Returns a side. `places` are the indices of the keys in the base."""
    known = [key for key in keys if key in place]
    anchors = {known[index] for index in increasing([place[key] for key in known])}
    runs: dict[int, list[Key]] = {}
    gap = 0
    for key in keys:
        if key in anchors:
            gap = place[key] + 1
        else:
            runs.setdefault(gap, []).append(key)
    return Side(keys, anchors, {key for key in known if key not in anchors}, runs)


def pair(base: list[Key], newer: list[Key], older: list[Key]) -> tuple[list[Key], list[Key]]:
    """Returns the keys of both sides after pairing: if both replaced elements one for one, these are edits of those elements."""
    place = {key: index for index, key in enumerate(base)}
    x, y = side_of(newer, place), side_of(older, place)
    moved = x.moved | y.moved
    everywhere_x, everywhere_y = set(newer), set(older)
    common = [key for key in base if key in x.anchors and key in y.anchors]
    bounds = [(-1, -1, -1)] + [(place[key], newer.index(key), older.index(key)) for key in common] + [(len(base), len(newer), len(older))]
    x_keys, y_keys = list(newer), list(older)
    for (o0, x0, y0), (o1, x1, y1) in zip(bounds, bounds[1:]):
        o_slice, x_slice, y_slice = base[o0 + 1 : o1], newer[x0 + 1 : x1], older[y0 + 1 : y1]
        if not len(o_slice) == len(x_slice) == len(y_slice) > 0:
            continue
        if o_slice == x_slice or o_slice == y_slice or x_slice == y_slice:
            continue
        if any(key[0] != "value" for key in o_slice + x_slice + y_slice) or moved & set(o_slice + x_slice + y_slice):
            continue
        if all(key in everywhere_x or key in everywhere_y for key in o_slice):
            continue
        # 8.1 (a)
        sides = (x_slice, everywhere_x), (y_slice, everywhere_y)
        if any(key in everywhere and key != own[k] for own, everywhere in sides for k, key in enumerate(o_slice)):
            continue
        # 8.1 (b)
        others = (x_slice, y_slice, everywhere_y), (y_slice, x_slice, everywhere_x)
        if any(
            key not in place and key in everywhere and key != other[k] for own, other, everywhere in others for k, key in enumerate(own)
        ):
            continue
        x_keys[x0 + 1 : x1] = o_slice
        y_keys[y0 + 1 : y1] = o_slice
    return x_keys, y_keys


def pair_saved(base: list[Key], newer: list[Key], older: list[Key]) -> Optional[tuple[list[Key], list[Key]]]:
    """Returns the keys of both sides of a save. Its base is what an app makes of the older side: it has as many elements in the same order.
    Elements that the app replaced one for one are edits. None if the older side was changed, so that this cannot be.
    """
    if not base or len(base) != len(older):
        return None
    others = [(mine, other) for mine, other in zip(base, older) if mine[:2] != other[:2]]
    known = {mine[:2] for mine, _ in others}
    if any(other[:2] in known or "value" not in (mine[0], other[0]) for mine, other in others):
        return None
    place = {key: index for index, key in enumerate(base)}
    side = side_of(newer, place)
    common = [key for key in base if key in side.anchors]
    bounds = [(-1, -1)] + [(place[key], newer.index(key)) for key in common] + [(len(base), len(newer))]
    keys = list(newer)
    for (o0, x0), (o1, x1) in zip(bounds, bounds[1:]):
        o_slice, x_slice = base[o0 + 1 : o1], newer[x0 + 1 : x1]
        if len(o_slice) == len(x_slice) > 0 and all(key[0] == "value" for key in o_slice + x_slice):
            if not any(key in newer for key in o_slice) and not any(key in place for key in x_slice):
                keys[x0 + 1 : x1] = o_slice
    return keys, list(base)


def emit(base: list[Key], newer: list[Key], older: list[Key], survivors: set[Key]) -> tuple[list[Key], list[Key]]:
    """Returns the order of the survivors, and the keys of moves for records: elements that both sides moved to different places, and
    elements that one side moved behind an element which the other side moved away (8.1 d).
    """
    place = {key: index for index, key in enumerate(base)}
    x, y = side_of(newer, place), side_of(older, place)
    in_x_runs = {key for run in x.runs.values() for key in run}
    out: list[Key] = []
    shared: set[Key] = set()
    for gap in range(len(base) + 1):
        x_run = [key for key in x.runs.get(gap, []) if key in survivors]
        y_run = [key for key in y.runs.get(gap, []) if key in survivors]
        y_place = {key: index for index, key in enumerate(y_run)}
        both = [key for key in x_run if key in y_place]
        anchors = [both[index] for index in increasing([y_place[key] for key in both])]
        shared.update(anchors)
        # 8.1 (c)
        is_replaced = gap < len(base) and base[gap] in x.anchors and base[gap] not in y.anchors
        x_from = y_from = 0
        for anchor in [*anchors, None]:
            x_to = x_run.index(anchor) if anchor else len(x_run)
            y_to = y_run.index(anchor) if anchor else len(y_run)
            of_x, of_y = x_run[x_from:x_to], [key for key in y_run[y_from:y_to] if key not in in_x_runs]
            out += of_x + of_y if is_replaced else of_y + of_x
            if anchor:
                out.append(anchor)
            x_from, y_from = x_to + 1, y_to + 1
        if gap < len(base) and base[gap] in survivors and base[gap] not in x.moved and base[gap] not in y.moved:
            out.append(base[gap])
    assert len(out) == len(set(out)) and set(out) == survivors, "the keys that come out are the survivors"
    told = {key for key in x.moved & y.moved if key not in shared}
    for side, other in ((x, y), (y, x)):
        told.update(key for gap, run in side.runs.items() if gap and base[gap - 1] in other.moved for key in run if key in side.moved)
    return out, [key for key in base if key in told and key in survivors]
