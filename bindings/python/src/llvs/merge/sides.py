"""The two sides of a merge for one value: which is the newer, and which version set it."""

from __future__ import annotations

from typing import NamedTuple, Optional

import llvs

from .._abi.memory import version_bytes
from ..store.versions import AnyVersion, ChangeKind, Reference, Version


class MergeSide(NamedTuple):
    """One side of a merge for a value."""

    #: The id of the side: one of the two versions that are merged.
    at: str
    #: The reference of its bytes; None if it has none.
    reference: Optional[Reference]
    #: The version that set or removed the value on this side. If that is a merge, the later one of the versions that it merged. None if the
    #: side never had the value.
    by: Optional[Version]


class MergeSides(NamedTuple):
    """The two sides of a merge for one value."""

    #: The more recent one: the `newer` of conflicts about this value.
    newer: MergeSide
    #: The other: the `older`.
    older: MergeSide


def sides_of(store: llvs.Store, id: str, a: AnyVersion, b: AnyVersion) -> MergeSides:
    """As `Store.sides`, by the rule of docs/merging-internals.md: a side without a value is older, otherwise the one set earlier."""
    one, two = (_side(store, id, store[version_bytes(version).decode()]) for version in (a, b))
    return MergeSides(one, two) if _order(store, one) >= _order(store, two) else MergeSides(two, one)


def _order(store: llvs.Store, side: MergeSide) -> tuple[bool, tuple[float, str], bytes, tuple[float, str]]:
    """Returns the key by which sides are ordered: the later one is newer. If one version set both, the side with the larger bytes is newer;
    if these are equal too, the side that was stored later."""
    by = _time(side.by) if side.by else (0.0, "")
    if side.reference is None:
        return (False, by, b"", (0.0, side.at))
    value = store.value(side.reference.id, at=side.at)
    return (True, by, value.data if value else b"", _time(store[side.reference.stored_version]))


def _time(version: Version) -> tuple[float, str]:
    return (version.timestamp, version.id)


def _side(store: llvs.Store, id: str, version: Version) -> MergeSide:
    reference = store.reference(id, at=version)
    if reference is None:
        found = next((one for one, kind in store.value_history(id, version) if kind is ChangeKind.REMOVE), None)
        return MergeSide(version.id, None, found)
    return MergeSide(version.id, reference, _set_by(store, id, store[reference.stored_version]))


def _set_by(store: llvs.Store, id: str, stored: Version) -> Version:
    """Returns the version that set bytes which `stored` stored: that version itself or, if it is a merge, the latest of those it merged."""
    latest: Optional[Version] = None
    seen, waiting = {stored.id}, [stored]
    while waiting:
        version = waiting.pop()
        before = [store.reference(id, at=one) for one in version.predecessors] if len(version.predecessors) == 2 else []
        merged = [reference.stored_version for reference in before if reference is not None]
        if not merged and (latest is None or _time(version) > _time(latest)):
            latest = version
        for one in merged:
            if one not in seen:
                seen.add(one)
                waiting.append(store[one])
    return latest or stored
