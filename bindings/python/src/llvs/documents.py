"""Merging inside values: documents, lists, texts, counters."""

from __future__ import annotations

import ctypes
import enum
import json
import weakref
from decimal import Decimal
from typing import Any, Iterator, Mapping, NamedTuple, Optional, Sequence, Union, overload

from . import _abi, _constants as c, _pages, _structs, errors
from ._memory import BytesLike, address, as_bytes, copy, decode, encode, version_bytes
from .control import CancelToken, Control, ProgressCallback
from .versions import Version
from .words import Choice

lib = _abi.lib

#: Rules for merging: the name of a kind ("auto", "counter"), a rule, patterns with rules, or a whole schema; JSON text as bytes as well.
MergeRules = Union[str, Mapping[str, Any], bytes]


class ConflictKind(str, enum.Enum):
    """What a conflict was about."""

    #: Both sides changed a value that is not merged inside: one of them stands.
    PICK = "pick"
    #: One side removed what the other changed: a value, or lines of a text. Of lines, both sides are strings, of which one may be empty.
    DELETE_EDIT = "delete-edit"
    #: The sides are of different types, or of one that the rule is not for.
    TYPE = "type"
    #: A side is no JSON that can be merged.
    NOT_JSON = "not-json"
    #: Both sides changed the same lines of a text differently. The conflict's values are these lines, whole.
    OVERLAP = "overlap"
    #: Both sides moved an element of a list, to different places.
    MOVE_MOVE = "move-move"
    #: The sides hold two values between which an earlier merge had to choose.
    CONTESTED = "contested"
    #: A counter is outside of the bounds that its rule gives.
    BOUND = "bound"
    #: A limit was reached. Of a text: it was compared less finely, since it is too different. Of a counter: the sum has too many digits,
    #: and one side stands. Of the whole value (the path is empty): the merged value would be too large, and one side stands; or the
    #: value is merged, and has more conflicts than are told one by one, anywhere: this one is in their place, with the whole values.
    LIMIT = "limit"
    #: Both sides changed what the rules leave to an arbiter of the host; the newer stands.
    ARBITER = "arbiter"


_KINDS = {
    c.CONFLICT_PICK: ConflictKind.PICK,
    c.CONFLICT_DELETE_EDIT: ConflictKind.DELETE_EDIT,
    c.CONFLICT_TYPE: ConflictKind.TYPE,
    c.CONFLICT_NOT_JSON: ConflictKind.NOT_JSON,
    c.CONFLICT_OVERLAP: ConflictKind.OVERLAP,
    c.CONFLICT_MOVE_MOVE: ConflictKind.MOVE_MOVE,
    c.CONFLICT_CONTESTED: ConflictKind.CONTESTED,
    c.CONFLICT_BOUND: ConflictKind.BOUND,
    c.CONFLICT_LIMIT: ConflictKind.LIMIT,
    c.CONFLICT_ARBITER: ConflictKind.ARBITER,
}


class Conflict(NamedTuple):
    """What a merge decided where both sides had changed the same."""

    #: Where in the value: names of members, `{"key": ...}` for elements known by a key, `{"index": n}` for others. A key that is a number
    #: which no `float` holds exactly is a `Decimal`.
    path: tuple[Union[str, dict[str, Any]], ...]
    kind: ConflictKind
    #: What was there, as JSON text; None where it was absent. Bytes that are no JSON are `{"sha256": "...", "size": n}`.
    base: Optional[bytes]
    #: What the newer side has there.
    newer: Optional[bytes]
    #: What the older side has there.
    older: Optional[bytes]
    #: What stands.
    result: Optional[bytes]
    #: The prefix of ids and the pattern of the rule that holds there; None where none does.
    rule: Optional[tuple[str, str]]
    #: The id of the value; "" from `merge_values` without an id.
    id: str = ""
    #: The merge version that decided it; "" where there is none.
    version: str = ""


class MergedValue(NamedTuple):
    """What came of merging a value."""

    #: The bytes; None when there is no value.
    data: Optional[bytes]
    #: What had to be decided, in the order in which it was met. (Of very many, each is made when it is asked for.)
    records: Sequence[Conflict]
    #: SHA-256 of the records as canonical JSON, 64 hexadecimal digits; "" when there are none.
    digest: str


def merge_values(
    base: Optional[BytesLike],
    newer: Optional[BytesLike],
    older: Optional[BytesLike],
    rules: MergeRules = "auto",
    *,
    id: str = "",
    saving: bool = False,
    progress: Optional[ProgressCallback] = None,
    cancel: Optional[CancelToken] = None,
) -> MergedValue:
    """Merges what two sides made of a value, inside it where it is JSON or the rules say that it is text. Needs no store.

        llvs.merge_values(b'{"a":1}', b'{"a":2}', b'{"a":1,"b":1}').data                        # b'{"a":2,"b":1}'
        llvs.merge_values(b'{"n":0}', b'{"n":1}', b'{"n":1}', {"/n": "counter"}).data           # b'{"n":2}'

    `base` is the value that both had, `newer` what the side has whose change is the more recent, `older` what the other has; None is
    absent. The same arguments give the same bytes on every machine. Every value gives a result; what had to be decided is in `records`.

    `rules` is the name of a kind, a rule, patterns with rules, or a whole schema ({"merge": 1, "ids": ...}), of which those for `id` hold.

    `saving`: `newer` is what an application wants to save, `base` what it made of the value that it had read, unchanged, and `older` that
    value as it is: what the application does not know of is kept, what it removed is gone, and what it decided stands.

    Raises InvalidArgumentError (rules that are not valid: `path` is the JSON pointer to what is wrong with them), UnsupportedError (rules
    of a number that the library does not know), CancelledError. Cost: the size of what is merged.
    """
    values = [None if value is None else as_bytes(value) for value in (base, newer, older)]
    given = [None if value is None else _structs.llvs_bytes(address(value), len(value)) for value in values]
    value_id, text = encode(id), rules_text(rules)
    pointer = ctypes.c_void_p()
    control = Control(progress, cancel)
    with control:
        options = _structs.llvs_merge_values_options(
            struct_size=ctypes.sizeof(_structs.llvs_merge_values_options),
            saving=bool(saving),
            id=_structs.llvs_bytes(address(value_id), len(value_id)),
            control=control.address,
        )
        lib.llvs_merge_values(
            text, *(None if one is None else ctypes.byref(one) for one in given), ctypes.byref(options), ctypes.byref(pointer)
        )
    merged = _structs.llvs_merged_value.from_address(pointer.value or 0)
    if merged.conflict_count > _Records.FEW:
        many = _Records(pointer.value, merged.conflicts, merged.conflict_count)
        return MergedValue(_bytes(merged.data), many, (_bytes(merged.digest) or b"").decode())
    try:
        few = conflicts(merged.conflicts, merged.conflict_count)
        return MergedValue(_bytes(merged.data), few, (_bytes(merged.digest) or b"").decode())
    finally:
        lib.llvs_merged_value_free(pointer.value)


class _Records(Sequence[Conflict]):
    """The records of a merge while the library holds them: objects for all of them would be many times what was merged."""

    FEW = 1_000

    def __init__(self, merged: Optional[int], pointers: int, count: int) -> None:
        self._pointers, self._count = pointers, count
        # When the program ends, somebody may read them still; then the memory goes with the process.
        weakref.finalize(self, lib.llvs_merged_value_free, merged).atexit = False

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, place: int) -> Conflict: ...

    @overload
    def __getitem__(self, place: slice) -> tuple[Conflict, ...]: ...

    def __getitem__(self, place: Union[int, slice]) -> Union[Conflict, tuple[Conflict, ...]]:
        if isinstance(place, slice):
            return tuple(self[i] for i in range(*place.indices(self._count)))
        i = place + self._count if place < 0 else place
        if not 0 <= i < self._count:
            raise IndexError("there is no such record")
        return self._made(i, 1)[0]

    def __iter__(self) -> Iterator[Conflict]:
        for first in range(0, self._count, self.FEW):
            yield from self._made(first, min(self.FEW, self._count - first))

    def _made(self, first: int, count: int) -> tuple[Conflict, ...]:
        return conflicts(self._pointers + first * ctypes.sizeof(ctypes.c_void_p), count)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, (tuple, _Records)):
            return NotImplemented
        return len(self) == len(other) and all(a == b for a, b in zip(self, other))

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        # A copy has the records themselves: what the library holds goes with this object, and is in this process alone.
        return tuple, (tuple(self),)

    def __repr__(self) -> str:
        return f"<{self._count} records>"


def check_schema(rules: Union[Mapping[str, Any], bytes]) -> None:
    """Checks rules as they are kept under "__llvs_schema": `{"merge": 1, "ids": {...}}`, as JSON text or as what gives it.

    Raises InvalidArgumentError, or UnsupportedError where the number of the rules is not known: `path` is the JSON pointer to what is
    wrong, None for the whole.
    """
    lib.llvs_schema_check(rules_text(rules))


def rules_text(rules: MergeRules) -> bytes:
    """Rules as JSON text."""
    return rules if isinstance(rules, bytes) else json.dumps(rules).encode()


def _bytes(pair: Any) -> Optional[bytes]:
    return copy(pair.data, pair.size) if pair.data else None


def _text(pair: Any) -> str:
    return decode(_bytes(pair) or b"")


def conflicts(pointers: Optional[int], count: int) -> tuple[Conflict, ...]:
    """What an array of pointers to `llvs_conflict` leads to."""
    return tuple(_unpacked(_pages.elements(_pages.CONFLICT, pointers, count)))


def _unpacked(rows: Iterator[tuple[Any, ...]]) -> Iterator[Conflict]:
    # Most conflicts of a merge are of few rules, ids and versions: each text is made once.
    texts: dict[bytes, str] = {}

    def text(data: int, size: int) -> str:
        found = copy(data, size) if data else b""
        known = texts.get(found)
        if known is None:
            known = texts[found] = decode(found)
        return known

    for row in rows:
        kind, path, path_size = row[1:4]
        base, newer, older, result = (copy(row[i], row[i + 1]) if row[i] else None for i in range(4, 12, 2))
        yield Conflict(
            tuple(json.loads(decode(copy(path, path_size)), parse_float=_number)) if path else (),
            _KINDS.get(kind, ConflictKind.PICK),
            base,
            newer,
            older,
            result,
            (text(row[12], row[13]), text(row[14], row[15])) if row[12] and row[14] else None,
            text(row[16], row[17]),
            text(row[18], row[19]),
        )


class Schema(NamedTuple):
    """The rules for merging that a store holds, or what registering more did."""

    #: The rules that count, with those that were given added, as JSON text; None where there are none.
    data: Optional[bytes]
    #: The version that stored those that counted before; None where there were none.
    stored_version: Optional[str]
    #: Whether `data` is another value than what prevails under "__llvs_schema": it was to be saved, or was saved.
    changed: bool
    #: Why what prevails does not count, and where in it (a JSON pointer); None when it does. `data` then is the newest valid value before
    #: it.
    problem: Optional[tuple[str, str]]
    #: Where the rules given say something else than the store: `newer` is what the store holds and what stands, `older` what was given.
    contradictions: tuple[Conflict, ...]
    #: The version that registering made; None when nothing was to be saved, or nothing was ever saved.
    version: Optional[Version]

    @property
    def rules(self) -> Optional[dict[str, Any]]:
        """The rules that count, as what JSON gives."""
        return None if self.data is None else json.loads(self.data)


def take_schema(pointer: Optional[int]) -> Schema:
    """What an `llvs_schema` says, which is released."""
    try:
        found = _structs.llvs_schema.from_address(pointer or 0)
        return Schema(
            _bytes(found.data),
            _text(found.stored_version) or None,
            bool(found.changed),
            (_text(found.problem), _text(found.problem_path)) if found.problem.size else None,
            conflicts(found.contradictions, found.contradiction_count),
            _pages.version_at(found.version) if found.version else None,
        )
    finally:
        lib.llvs_schema_free(pointer)


class Conflicts(Mapping[str, tuple[Conflict, ...]]):
    """The conflicts of a merge, by the ids of the values in byte order."""

    def __init__(self, records: tuple[Conflict, ...], recorded: bool = True, digest: str = "") -> None:
        #: All of them, in byte order of the ids (open conflicts: the oldest merge first), and for each in the order in which they were met.
        self.records = records
        #: Of a merge that was explained: whether these are the conflicts that it recorded. If not, it was made by other rules than those of
        #: the store, or by an arbiter of the host.
        self.recorded = recorded
        #: SHA-256 of those that rules decided, 64 hexadecimal digits, as merge versions record it; "" when there are none.
        self.digest = digest
        by_id: dict[str, list[Conflict]] = {}
        for record in records:
            by_id.setdefault(record.id, []).append(record)
        self._by_id = {id: tuple(some) for id, some in by_id.items()}

    def __getitem__(self, id: str) -> tuple[Conflict, ...]:
        return self._by_id[id]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_id)

    def __len__(self) -> int:
        return len(self._by_id)

    def __repr__(self) -> str:
        return f"Conflicts({self._by_id!r})"


def take_conflicts(pointer: Optional[int]) -> Conflicts:
    """What an `llvs_conflict_list` says, which is released."""
    try:
        found = _structs.llvs_conflict_list.from_address(pointer or 0)
        return Conflicts(conflicts(found.items, found.count), bool(found.recorded), _text(found.digest))
    finally:
        lib.llvs_conflict_list_free(pointer)


class ConflictOptions:
    """An `llvs_conflict_options`, and all that it points to."""

    def __init__(self, id: str, arbiter: Optional[int], control: Control) -> None:
        self._kept = encode(id)
        self._struct = _structs.llvs_conflict_options(
            struct_size=ctypes.sizeof(_structs.llvs_conflict_options), arbiter=arbiter, control=control.address
        )
        if self._kept:
            self._struct.value_id = _structs.llvs_bytes(address(self._kept), len(self._kept))
        self.reference = ctypes.byref(self._struct)


_CHOICES = {"newer": c.CHOICE_NEWER, "older": c.CHOICE_OLDER, "result": c.CHOICE_RESULT}
_KIND_NUMBERS = {kind: number for number, kind in _KINDS.items()}


def choice_number(choice: Choice) -> int:
    """The constant for "newer", "older" or "result"."""
    if choice not in _CHOICES:
        raise errors.InvalidArgumentError(f"{choice!r} is no choice: use newer, older or result")
    return _CHOICES[choice]


def _number(text: str) -> Union[float, Decimal]:
    """A `float` where that is the very number, else a `Decimal`: an element is found by its key again."""
    number, exact = float(text), Decimal(text)
    return number if exact == Decimal(repr(number)) else exact


def plain_path(conflict: Conflict) -> list[Any]:
    """The path as a page shows it and gives it back: numbers that a `float` does not hold are near it."""
    made: list[Any] = json.loads(_path_text(conflict.path))
    return made


def _path_text(part: Any) -> str:
    """JSON text of a path."""
    if isinstance(part, dict):
        return "{" + ",".join(f"{_path_text(name)}:{_path_text(value)}" for name, value in part.items()) + "}"
    if isinstance(part, (list, tuple)):
        return "[" + ",".join(map(_path_text, part)) + "]"
    return str(part) if isinstance(part, Decimal) else json.dumps(part, ensure_ascii=False)


class GivenConflict:
    """An `llvs_conflict` made from a `Conflict`, and all that it points to."""

    def __init__(self, conflict: Conflict) -> None:
        rule = (None, None) if conflict.rule is None else tuple(map(encode, conflict.rule))
        path = _path_text(conflict.path).encode()
        self._kept: dict[str, Optional[bytes]] = {
            "path": path, "base": conflict.base, "newer": conflict.newer, "older": conflict.older, "result": conflict.result,
            "rule_prefix": rule[0], "rule_pattern": rule[1], "id": encode(conflict.id), "version": version_bytes(conflict.version),
        }
        self._struct = _structs.llvs_conflict(struct_size=ctypes.sizeof(_structs.llvs_conflict), kind=_KIND_NUMBERS[conflict.kind])
        for name, data in self._kept.items():
            if data is not None:
                # An empty text is there, and has an address.
                setattr(self._struct, name, _structs.llvs_bytes(address(data), len(data)))
        self.reference = ctypes.byref(self._struct)
