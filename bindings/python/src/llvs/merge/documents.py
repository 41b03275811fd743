"""Merging inside values: documents, lists, texts, counters."""

from __future__ import annotations

import ctypes
import enum
import json
import weakref
from decimal import Decimal
from typing import Any, Iterator, Mapping, NamedTuple, Optional, Sequence, Union, overload

from .. import _abi, errors
from .._abi.memory import BytesLike, address, as_bytes, copy, decode, encode, version_bytes
from .._generated import constants as c, structs as _structs
from ..control import CancelToken, Control, ProgressCallback
from ..store import _pages
from ..store.versions import Version
from ..words import Choice

lib = _abi.lib

#: Rules for merging: the name of a kind ("auto", "counter"), a rule, patterns with rules, or a whole schema; also JSON text as bytes.
MergeRules = Union[str, Mapping[str, Any], bytes]


class ConflictKind(str, enum.Enum):
    """What a conflict was about."""

    #: Both sides changed a value that is not merged inside: one of them prevails.
    PICK = "pick"
    #: One side removed what the other changed: a value, or lines of a text. For lines, both sides are strings, and one of them may be
    #: empty.
    DELETE_EDIT = "delete-edit"
    #: The sides have different types, or a type that the rule does not apply to.
    TYPE = "type"
    #: A side is not JSON that can be merged.
    NOT_JSON = "not-json"
    #: Both sides changed the same lines of a text differently. The conflict's values are these lines, whole.
    OVERLAP = "overlap"
    #: Both sides moved an element of a list to different positions.
    MOVE_MOVE = "move-move"
    #: The sides hold two values between which an earlier merge had to choose.
    CONTESTED = "contested"
    #: A counter is outside of the bounds that its rule gives.
    BOUND = "bound"
    #: A limit was reached. For a text: it was compared in less detail, since the sides differ too much. For a counter: the sum has too many
    #: digits, and one side prevails. For the whole value (the path is empty): the merged value would be too large, and one side prevails;
    #: or the value is merged, and has too many conflicts to report them one by one: this one replaces them, with the whole values.
    LIMIT = "limit"
    #: Both sides changed a place that the rules leave to an arbiter of the host; the newer prevails.
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
    """A decision of a merge where both sides had changed the same."""

    #: The place in the value: names of members, `{"key": ...}` for elements that have a key, `{"index": n}` for others. A number as a key
    #: that no `float` represents exactly is a `Decimal`.
    path: tuple[Union[str, dict[str, Any]], ...]
    kind: ConflictKind
    #: The former content, as JSON text; None if it was absent. Bytes that are not JSON are `{"sha256": "...", "size": n}`.
    base: Optional[bytes]
    #: The content on the newer side.
    newer: Optional[bytes]
    #: The content on the older side.
    older: Optional[bytes]
    #: The result of the merge.
    result: Optional[bytes]
    #: The id prefix and the pattern of the rule for this place; None if there is none.
    rule: Optional[tuple[str, str]]
    #: The id of the value; "" from `merge_values` without an id.
    id: str = ""
    #: The merge version that decided it; "" if there is none.
    version: str = ""


class MergedValue(NamedTuple):
    """The result of merging a value."""

    #: The bytes; None if there is no value.
    data: Optional[bytes]
    #: The conflicts, in the order in which they were found. (If there are very many, each object is made when it is accessed.)
    records: Sequence[Conflict]
    #: SHA-256 of the records as canonical JSON, 64 hexadecimal digits; "" if there are none.
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
    """Merges two sides of a value: inside it, if it is JSON or the rules say that it is text. Needs no store.

        llvs.merge.merge_values(b'{"a":1}', b'{"a":2}', b'{"a":1,"b":1}').data                        # b'{"a":2,"b":1}'
        llvs.merge.merge_values(b'{"n":0}', b'{"n":1}', b'{"n":1}', {"/n": "counter"}).data           # b'{"n":2}'

    `base` is the value that both sides had, `newer` the value on the side with the more recent change, `older` the value on the other side;
    None is absent. The same arguments give the same bytes on every machine. There is always a result; decisions are in `records`.

    `rules` is the name of a kind, a rule, patterns with rules, or a whole schema ({"merge": 1, "ids": ...}), of which the rules for `id`
    apply.

    `saving`: merges for saving. `older` is the value that the application read, as stored; `base` is the application's own form of that
    value, unchanged; `newer` is what it wants to save. So members that the application does not know are kept, members that it removed are
    gone, and its changes win.

    Raises InvalidArgumentError (invalid rules: `path` is the JSON pointer to the mistake), UnsupportedError (rules of a version that the
    library does not know), CancelledError. Cost: the size of the values.
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
    """The records of a merge, held by the library: Python objects for all of them would be many times as large as the merged value."""

    FEW = 1_000

    def __init__(self, merged: Optional[int], pointers: int, count: int) -> None:
        self._pointers, self._count = pointers, count
        # When the program ends, other code may still read them; the end of the process then frees the memory.
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
        # A copy contains the records themselves: the library's memory belongs to this object and this process.
        return tuple, (tuple(self),)

    def __repr__(self) -> str:
        return f"<{self._count} records>"


def check_schema(rules: Union[Mapping[str, Any], bytes]) -> None:
    """Checks rules as they are stored under "__llvs_schema": `{"merge": 1, "ids": {...}}`, as JSON text or as Python objects.

    Raises InvalidArgumentError, or UnsupportedError if the rules have an unknown version: `path` is the JSON pointer to the mistake, None
    for the whole.
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
    """Reads an array of pointers to `llvs_conflict`."""
    return tuple(_unpacked(_pages.elements(_pages.CONFLICT, pointers, count)))


def _unpacked(rows: Iterator[tuple[Any, ...]]) -> Iterator[Conflict]:
    # The conflicts of a merge mostly share a few rules, ids and versions, so each text is made once.
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
    """The rules for merging of a store, or the result of registering more."""

    #: The valid rules, with the given ones added, as JSON text; None if there are none.
    data: Optional[bytes]
    #: The version that stored the rules that were valid before; None if there were none.
    stored_version: Optional[str]
    #: Whether `data` differs from the value that prevails under "__llvs_schema": it has to be saved, or was saved.
    changed: bool
    #: Why the rules that prevail are invalid, and where (a JSON pointer); None if they are valid. If they are invalid, `data` is based on
    #: the newest valid value before them.
    problem: Optional[tuple[str, str]]
    #: Places where the given rules contradict the store's: `newer` is the store's rule, which stays, `older` the given one.
    contradictions: tuple[Conflict, ...]
    #: The version that registering made; None if there was nothing to save, or nothing was ever saved.
    version: Optional[Version]

    @property
    def rules(self) -> Optional[dict[str, Any]]:
        """The valid rules, as parsed JSON."""
        return None if self.data is None else json.loads(self.data)


def take_schema(pointer: Optional[int]) -> Schema:
    """Reads an `llvs_schema`, and releases it."""
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
        #: All records, in byte order of the ids (open conflicts: the oldest merge first), and for each id in the order in which they were
        #: found.
        self.records = records
        #: For a merge that was explained: whether these are the conflicts that it recorded. If not, it was made with other rules than those
        #: of the store, or by an arbiter of the host.
        self.recorded = recorded
        #: SHA-256 of the conflicts that rules decided, 64 hexadecimal digits, as merge versions record it; "" if there are none.
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
    """Reads an `llvs_conflict_list`, and releases it."""
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
    """Returns a `float` if that is exactly the number, else a `Decimal`: so an element is found by its key again."""
    number, exact = float(text), Decimal(text)
    return number if exact == Decimal(repr(number)) else exact


def plain_path(conflict: Conflict) -> list[Any]:
    """The path in the form for a page: numbers that a `float` does not represent are approximate."""
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
                # An empty text is present, and needs an address.
                setattr(self._struct, name, _structs.llvs_bytes(address(data), len(data)))
        self.reference = ctypes.byref(self._struct)
