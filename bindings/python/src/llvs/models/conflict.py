"""Conflicts in an object, as the model reads them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Iterable, Optional, Sequence

from ..merge.documents import Conflict, ConflictKind
from ._codecs import Codec, Member
from ._containers import Fixed
from ._json import NotJSON, parse, plain
from .definition import Definition
from .errors import DecodeError, Mismatch


@dataclass(frozen=True)
class ObjectConflict:
    """A conflict in an object of a collection: `Collection.open_conflicts` makes it, and `Coordinator.choose` closes it.

    The sides are values of the model: a `date` for a member that is a date, an object for an element that is one. A side is parsed JSON if
    the model cannot read it, or does not know the place.
    """

    #: The id of the object, without the prefix.
    id: str
    #: The place in the object: `Conflict.path`.
    path: tuple[Any, ...]
    #: The kind of conflict.
    kind: ConflictKind
    #: The former content; None if it was absent or null.
    base: Any
    #: The content on the newer side.
    newer: Any
    #: The content on the older side.
    older: Any
    #: The result of the merge.
    result: Any
    #: The id of the merge version that decided it.
    version: str
    #: The record as the store has it, with the sides as JSON text.
    record: Conflict


def object_conflict(definition: Definition[Any], record: Conflict) -> ObjectConflict:
    """Returns a record of a value of the model, with its sides read."""
    base, newer, older, result = (_side(definition, record, data) for data in (record.base, record.newer, record.older, record.result))
    id = record.id[len(definition.prefix) :]
    return ObjectConflict(id, record.path, record.kind, base, newer, older, result, record.version, record)


def _side(definition: Definition[Any], record: Conflict, data: Optional[bytes]) -> Any:
    if data is None:
        return None
    if not record.path:
        try:
            return definition.read(data, record.id, None)
        except DecodeError:
            pass
    try:
        tree = parse(data)
    except NotJSON:
        return data
    # Places in a list are reported as numbers, whatever the elements are.
    if record.path and record.kind is not ConflictKind.MOVE_MOVE:
        for member in _there(definition._codec, record.path):
            try:
                return member.decode(tree)
            except Mismatch:
                continue
    return plain(tree)


def _there(codec: Codec, path: Sequence[Any]) -> list[Member]:
    """Returns the members of the model that a path may lead to."""
    found: list[Member] = []
    codecs = [codec]
    for segment in path:
        found = [member for one in codecs for member in _within(one, segment)]
        codecs = [member.codec for member in found]
    return found


def _within(codec: Codec, segment: Any) -> Iterable[Member]:
    if isinstance(codec, Fixed):
        slot = segment.get("index") if isinstance(segment, dict) else None
        return codec.slots[slot : slot + 1] if isinstance(slot, int) and slot >= 0 else ()
    wanted = segment if isinstance(segment, str) else "*"
    parts = dict(codec.parts())
    member = parts.get(wanted, parts.get("*") if isinstance(segment, str) else None)
    return () if member is None else (member,)
