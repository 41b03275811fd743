"""Playback: from one version to another, step by step."""

from __future__ import annotations

from typing import Iterator, NamedTuple

import llvs

from ..store.versions import AnyVersion, Change, Version


class Step(NamedTuple):
    """A step of a replay."""

    #: The version that it leads to.
    version: Version
    #: The changes that turn the state of the step before into that of this version, in byte order of the ids: inserts, updates with the
    #: bytes, and removals.
    changes: tuple[Change, ...]


def replay(store: llvs.Store, prefix: str, a: AnyVersion, b: AnyVersion) -> Iterator[Step]:
    """As `Store.replay`."""
    start, end = store[a], store[b]
    way, forward = _line(store, start, end), _line(store, end, start)
    # The version at which the two lines meet is listed once.
    if forward[-1].id == way[-1].id:
        forward.pop()
    way += reversed(forward)
    for before, after in zip(way, way[1:]):
        changes = tuple(store.diff(before, after, prefix=prefix))
        if changes:
            yield Step(after, changes)


def _line(store: llvs.Store, start: Version, other: Version) -> list[Version]:
    """`start`, its first predecessor and so on, up to the first that is the other version or among its ancestors."""
    line, new = [start], {version.id for version in store.history(start, hiding=[other])}
    while line[-1].id in new and line[-1].predecessors:
        line.append(store[line[-1].predecessors[0]])
    return line
