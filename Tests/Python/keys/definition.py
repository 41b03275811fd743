"""The definition of an index: validation, and the keys of a value in it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Iterator, Optional, Union

from documents import json_model as j

from .encoding import Part, Tuple, encoded, whole

MOST_PARTS = 8
MOST_KEYS = 10_000
#: The bound on keys that stars multiply, in bytes: a constant part, a part for each byte of the value and its id, and an addition for each
#: key.
LEAST_ROOM, ROOM_FOR_EACH_BYTE, KEY_OVERHEAD = 16_384, 64, 32
MOST_SEGMENTS = 128
MOST_NAME = 128
MOST_INDEXES = 64
RESERVED = b"__llvs_"


class Invalid(Exception):
    """A definition that is not valid: the place, as a pointer in the definition, and the reason."""

    def __init__(self, pointer: str, why: str) -> None:
        super().__init__(f"{pointer}: {why}")
        self.pointer = pointer
        self.why = why


class _Each:
    """The segment `*`."""

    def __repr__(self) -> str:
        return "*"


EACH = _Each()
Segment = Union[str, _Each]
Path = tuple[Segment, ...]


@dataclass(frozen=True)
class Present:
    """A condition: whether the place exists."""

    wanted: bool


Condition = Union[j.Literal, j.Number, j.String, Present]


def path(text: str, where: str) -> Path:
    """Returns a pointer of a definition. A whole segment `~2` is a member with the name `*`."""
    if text and not text.startswith("/"):
        raise Invalid(where, "a pointer is empty or begins with '/'")
    segments: list[Segment] = []
    for written in text.split("/")[1:]:
        if written == "*":
            segments.append(EACH)
            continue
        if written == "**":
            raise Invalid(where, "'**' is not offered")
        pieces = written.split("~")
        if any(piece[:1] not in ("0", "1", "2") for piece in pieces[1:]):
            raise Invalid(where, "'~' is followed by something other than 0, 1 or 2")
        segments.append(pieces[0] + "".join({"0": "~", "1": "/", "2": "*"}[piece[0]] + piece[1:] for piece in pieces[1:]))
    if len(segments) > MOST_SEGMENTS:
        raise Invalid(where, f"more than {MOST_SEGMENTS} segments")
    return tuple(segments)


def pointer(name: str) -> str:
    """Returns one segment of a pointer."""
    return "/" + name.replace("~", "~0").replace("/", "~1")


@dataclass(frozen=True)
class Definition:
    """The values in an index, and their keys."""

    prefix: bytes
    on: tuple[Path, ...]
    folds: bool
    where: tuple[tuple[Path, Condition], ...]
    text: bytes

    @property
    def digest(self) -> bytes:
        """Returns the identity of a definition: two with the same meaning have the same one."""
        return hashlib.sha256(b"llvs-index 1\n" + self.text).digest()

    def why_not(self, value_id: bytes, data: bytes) -> Optional[str]:
        """Returns why a value has no key; None if it has one."""
        reason, _ = self._tuples(value_id, data)
        return reason

    def tuples(self, value_id: bytes, data: bytes) -> list[Tuple]:
        """Returns the tuples of a value, perhaps with duplicates."""
        return self._tuples(value_id, data)[1]

    def keys(self, value_id: bytes, data: bytes) -> list[bytes]:
        """Returns the keys of a value, in order, without duplicates."""
        return sorted({encoded(parts, self.folds) for parts in self.tuples(value_id, data)})

    def whole_keys(self, value_id: bytes, data: bytes) -> set[bytes]:
        """Returns the keys before they are cut."""
        return {whole(parts, self.folds) for parts in self.tuples(value_id, data)}

    def _tuples(self, value_id: bytes, data: bytes) -> tuple[Optional[str], list[Tuple]]:
        if not value_id.startswith(self.prefix):
            return "prefix", []
        if value_id.startswith(RESERVED) and not self.prefix.startswith(RESERVED):
            return "reserved", []
        try:
            document = j.parse(data, scalar=True)
        except j.NotMergeable:
            return "not-json", []
        if not all(_holds(_resolve(document, pointer), condition) for pointer, condition in self.where):
            return "where", []
        found: list[Tuple] = []
        for count, parts in enumerate(self._all(document), start=1):
            if count > MOST_KEYS:
                return "too-many-keys", []
            if parts[0] is not None:
                found.append(parts)
        if any(EACH in on for on in self.on):
            room = LEAST_ROOM + ROOM_FOR_EACH_BYTE * (len(data) + len(value_id))
            if sum(len(encoded(parts, self.folds)) + len(value_id) + KEY_OVERHEAD for parts in found) > room:
                return "too-many-keys", []
        return (None, found) if found else ("no-first-part", [])

    def _all(self, document: j.Node) -> Iterator[Tuple]:
        """Yields one tuple for each choice of an element for each `*`; pointers that are equal up to a `*` choose the same element."""
        stars: list[Path] = []
        for on in self.on:
            for i, segment in enumerate(on):
                if segment is EACH and on[: i + 1] not in stars:
                    stars.append(on[: i + 1])

        def choose(i: int, chosen: dict[Path, Optional[j.Node]]) -> Iterator[Tuple]:
            if i == len(stars):
                yield tuple(_scalar(_reach(document, on, chosen)) for on in self.on)
                return
            container = _reach(document, stars[i][:-1], chosen)
            elements: list[Optional[j.Node]] = []
            if isinstance(container, j.Array):
                elements += container.items
            elif isinstance(container, j.Object):
                elements += [value for _, value in container.members]
            for element in elements or [None]:
                yield from choose(i + 1, {**chosen, stars[i]: element})

        return choose(0, {})


def _reach(document: j.Node, on: Path, chosen: dict[Path, Optional[j.Node]]) -> Optional[j.Node]:
    last = max((i + 1 for i, segment in enumerate(on) if segment is EACH), default=0)
    return _resolve(chosen[on[:last]] if last else document, on[last:])


def _resolve(node: Optional[j.Node], on: Path) -> Optional[j.Node]:
    return j.resolve(node, tuple(segment for segment in on if isinstance(segment, str)))


def _scalar(node: Optional[j.Node]) -> Part:
    return None if isinstance(node, (j.Array, j.Object)) else node


def _holds(node: Optional[j.Node], condition: Condition) -> bool:
    if isinstance(condition, Present):
        return (node is not None) == condition.wanted
    return j.equal(node, condition)


def definition(node: j.Node) -> Definition:
    """Returns the definition in JSON. Raises Invalid with the place."""
    if not isinstance(node, j.Object):
        raise Invalid("", "an index is an object")
    for name, _ in node.members:
        if name not in ("prefix", "on", "text", "where"):
            raise Invalid(pointer(name), "an index has no such member")
    prefix, on, text, where = (node.get(name) for name in ("prefix", "on", "text", "where"))
    if not isinstance(prefix, j.String):
        raise Invalid("/prefix", "a string is needed, which may be empty")
    if not isinstance(on, j.Array) or not 1 <= len(on.items) <= MOST_PARTS:
        raise Invalid("/on", f"an array of 1 to {MOST_PARTS} pointers is needed")
    paths = []
    for i, item in enumerate(on.items):
        if not isinstance(item, j.String):
            raise Invalid(f"/on/{i}", "a pointer is a string")
        paths.append(path(item.text, f"/on/{i}"))
        if paths[-1] in paths[:-1]:
            raise Invalid(f"/on/{i}", "the same pointer twice")
    if text is not None and not (isinstance(text, j.String) and text.text in ("bytes", "fold")):
        raise Invalid("/text", "'bytes' or 'fold' is needed")
    folds = isinstance(text, j.String) and text.text == "fold"
    if where is not None and not isinstance(where, j.Object):
        raise Invalid("/where", "an object is needed")
    conditions = {}
    for name, value in where.members if isinstance(where, j.Object) else ():
        place = "/where" + pointer(name)
        parsed = path(name, place)
        if EACH in parsed:
            raise Invalid(place, "'*' stands in `on` alone")
        conditions[parsed] = _condition(value, place)
    members: list[tuple[str, j.Node]] = [("prefix", prefix), ("on", on)]
    members += [("text", j.String("fold"))] if folds else []
    members += [("where", where)] if where is not None and conditions else []
    identity = j.identity(j.Object(tuple(members)))
    return Definition(prefix.text.encode(), tuple(paths), folds, tuple(conditions.items()), identity)


def _condition(value: j.Node, place: str) -> Condition:
    if isinstance(value, (j.Literal, j.Number, j.String)):
        return value
    if isinstance(value, j.Object) and len(value.members) == 1:
        wanted = value.get("present")
        if isinstance(wanted, j.Literal) and wanted.value is not None:
            return Present(wanted.value)
    raise Invalid(place, 'a scalar is needed, or {"present": true} or {"present": false}')


def declared(schema: j.Node) -> tuple[dict[str, Definition], list[Invalid]]:
    """Returns the indexes in a schema, by name, and the errors of the others: an invalid one does not affect the others."""
    section = schema.get("indexes") if isinstance(schema, j.Object) else None
    if section is None:
        return {}, []
    if not isinstance(section, j.Object):
        return {}, [Invalid("/indexes", "an object is needed")]
    found: dict[str, Definition] = {}
    problems = []
    for name, value in j.by_name(section):
        place = "/indexes" + pointer(name)
        if not 1 <= len(name.encode()) <= MOST_NAME:
            problems.append(Invalid(place, f"a name has 1 to {MOST_NAME} bytes"))
        elif len(found) == MOST_INDEXES:
            problems.append(Invalid(place, f"more than {MOST_INDEXES} indexes"))
        else:
            try:
                found[name] = definition(value)
            except Invalid as problem:
                problems.append(Invalid(place + problem.pointer, problem.why))
    return found, problems
