"""Compares two versions of the store."""

from __future__ import annotations

from typing import Any, Optional

import llvs

from . import inside
from .values import LARGEST_JSON, describe, text_of

#: The largest number of differences that are counted.
COUNTED = 100_000


def changes(store: llvs.Store, a: str, b: str, prefix: str, after: str, limit: int) -> dict[str, Any]:
    """Returns the ids that differ between two versions, from `after` on, in byte order, and the number of each kind."""
    counts = {"insert": 0, "update": 0, "remove": 0}
    entries: list[dict[str, str]] = []
    more: Optional[str] = None
    for number, change in enumerate(store.diff(a, b, prefix=prefix, start=after, with_data=False)):
        if len(entries) < limit:
            entries.append({"id": change.id, "kind": str(change.kind)})
        elif more is None:
            more = change.id
            if after:
                break
        if number == COUNTED:
            break
        counts[str(change.kind)] += 1
    return {"entries": entries, "next": more, "counts": None if after else counts}


def made_in(store: llvs.Store, version: str, after: str, limit: int) -> dict[str, Any]:
    """Returns the changes that a version recorded, from `after` on, in byte order."""
    entries: list[dict[str, str]] = []
    for change in store.changes(version, start=after, with_data=False):
        if len(entries) == limit:
            return {"entries": entries, "next": change.id}
        entries.append({"id": change.id, "kind": str(change.kind)})
    return {"entries": entries, "next": None}


def value(store: llvs.Store, id: str, a: str, b: str) -> dict[str, Any]:
    """Returns the differences inside one value between two versions."""
    sides = [_side(store, id, version) for version in (a, b)]
    found: dict[str, Any] = {"id": id, "a": _head(sides[0]), "b": _head(sides[1])}
    texts = [None if side is None else side.get("whole") for side in sides]
    if any(side is not None and text is None for side, text in zip(sides, texts)):
        return {**found, "by": "bytes"}
    return {**found, **inside.difference(texts[0], texts[1])}


def _side(store: llvs.Store, id: str, version: str) -> Optional[dict[str, Any]]:
    if store.reference(id, at=version) is None:
        return None
    found = describe(store, id, version)
    if found["kind"] in ("json", "text") and found["size"] <= LARGEST_JSON:
        data = store.read_range(id, 0, LARGEST_JSON, at=version) or b""
        found["whole"] = text_of(data, True)
    return found


def _head(side: Optional[dict[str, Any]]) -> Optional[dict[str, Any]]:
    return None if side is None else {key: part for key, part in side.items() if key not in ("whole", "text")}
