"""Converts values of the types that this package knows to JSON and back."""

from __future__ import annotations

import base64
import enum
import re
import uuid
from datetime import date, datetime, time, timezone
from decimal import Decimal, InvalidOperation
from typing import Any, Callable, Iterable, Mapping, Optional

from ..indexes.keys import moment_text
from ._json import Number, canonical, number_text, plain, write
from .errors import Mismatch

#: The types of JSON, by the Python types that `parse` returns for them.
_NAMES = {dict: "object", list: "array", str: "string", bool: "boolean", Number: "number", type(None): "null"}


def json_type(tree: Any) -> str:
    """Returns the name of the JSON type of a tree."""
    return _NAMES[type(tree)]


def shown(value: Any) -> str:
    """Returns a value as text for a message, cut to a bounded length."""
    text = write(value).decode() if isinstance(value, (dict, list, str, Number, bool)) or value is None else repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def differs_by_order(new: Any, old: Any) -> bool:
    """Returns whether two trees have the same elements in their arrays, in any order."""
    return _unordered(new) == _unordered(old)


def _unordered(tree: Any) -> str:
    if isinstance(tree, list):
        return "[" + ",".join(sorted(map(_unordered, tree))) + "]"
    if isinstance(tree, dict):
        return "{" + ",".join(f"{canonical(name)}:{_unordered(tree[name])}" for name in sorted(tree)) + "}"
    return canonical(tree)


class Spellings:
    """The ids and dates of a value that are not written as a model writes them, such as a UUID in capital letters.

    A merge compares texts. If a save wrote an id in another spelling, an element of a list would not be found by its key, and an element of
    a set would be there twice. So a save keeps the spelling that the value already has.
    """

    def __init__(self, codec: Codec, tree: Any) -> None:
        self._codec = codec
        self._found: dict[tuple[tuple[str, ...], str], str] = {}
        codec.each_scalar(tree, (), self._collect)

    def __bool__(self) -> bool:
        return bool(self._found)

    def apply(self, tree: Any) -> Any:
        """Returns the tree that a model wrote, with ids and dates in the spelling that the value already has."""
        return self._codec.each_scalar(tree, (), self._spelled)

    def _spelled(self, codec: Codec, tree: Any, place: tuple[str, ...]) -> Any:
        return self._found.get((place, tree), tree) if _is_spelled(codec, tree) else tree

    def _collect(self, codec: Codec, tree: Any, place: tuple[str, ...]) -> Any:
        if _is_spelled(codec, tree):
            try:
                written = codec.encode(codec.decode(tree))
            except Mismatch:
                return tree
            if written != tree:
                self._found.setdefault((place, written), tree)
        return tree


def _is_spelled(codec: Codec, tree: Any) -> bool:
    return isinstance(codec, Spelled) and isinstance(tree, str)


class Codec:
    """How values of one type are written and read; raises Mismatch for values of other types."""

    #: The JSON types that it writes.
    json_types: frozenset[str] = frozenset()
    #: The expected type, as messages name it.
    expected = "a value"
    #: The rule that values of the type have by default.
    rule: Mapping[str, Any] = {}
    #: Whether it contains nothing that has a second spelling (`Spellings`).
    is_plain = False

    def encode(self, value: Any) -> Any:
        """Returns the JSON tree of a value."""
        raise NotImplementedError

    def decode(self, tree: Any) -> Any:
        """Returns the value of a tree that `parse` returned."""
        raise NotImplementedError

    def takes(self, value: Any) -> bool:
        """Returns whether `encode` accepts a value."""
        try:
            self.encode(value)
        except Mismatch:
            return False
        return True

    def reads(self, tree: Any) -> bool:
        """Returns whether `decode` accepts a tree."""
        try:
            self.decode(tree)
        except Mismatch:
            return False
        return True

    def parts(self) -> Iterable[tuple[str, Member]]:
        """Returns the members one level down: the segment of a pattern that leads to each, and the member."""
        return ()

    def arrange(self, tree: Any) -> Any:
        """Sorts the sets in a tree that another encoder wrote, since their order is arbitrary there."""
        return tree

    def settled(self, new: Any, old: Any) -> Any:
        """Returns the tree `new`, with the parts of `old` that are equal in value and differ only in spelling."""
        return new

    def each_scalar(self, tree: Any, place: tuple[str, ...], turn: Callable[[Codec, Any, tuple[str, ...]], Any]) -> Any:
        """Returns a tree in which each scalar with a codec of its own is replaced by the result of `turn`. place: names; indices are
        "*"."""
        return turn(self, tree, place)

    def ordered(self) -> Codec:
        """Returns a codec that writes moments as texts whose order is that of the moments; itself if it does so already."""
        return self

    def refuse(self, tree: Any) -> Mismatch:
        """Returns the Mismatch for a tree that is not of the expected type."""
        return Mismatch(f"is {shown(tree)}, where {self.expected} is expected")


class Member:
    """A member at one place: its codec, its rule, and whether it may be None."""

    __slots__ = ("codec", "name", "optional", "rule", "writes_null")

    def __init__(self, codec: Codec, rule: dict[str, Any], optional: bool = False, name: Optional[str] = None) -> None:
        self.codec, self.rule, self.optional, self.name = codec, rule, optional, name
        #: Whether None is written as null. It must be if an absent member is read as a default other than None.
        self.writes_null = not optional

    def encode(self, value: Any) -> Any:
        """As the codec's `encode`; None for None if the member is optional."""
        return None if value is None and self.optional else self.codec.encode(value)

    def decode(self, tree: Any) -> Any:
        """As the codec's `decode`; None for null if the member is optional."""
        return None if tree is None and self.optional else self.codec.decode(tree)


class Text(Codec):
    """`str`."""

    is_plain = True
    json_types = frozenset({"string"})
    expected = "a string"

    def encode(self, value: Any) -> Any:
        if not isinstance(value, str):
            raise self.refuse(value)
        return checked_text(str(value))

    def decode(self, tree: Any) -> Any:
        if not isinstance(tree, str):
            raise self.refuse(tree)
        return checked_text(tree)


def checked_text(text: str) -> str:
    """Returns the text unchanged if it is Unicode. Raises Mismatch otherwise."""
    try:
        text.isascii() or text.encode()
    except UnicodeEncodeError:
        raise Mismatch(f"holds a lone surrogate, which is no Unicode: {text!r:.60}") from None
    return text


class Boolean(Codec):
    """`bool`."""

    is_plain = True
    json_types = frozenset({"boolean"})
    expected = "true or false"

    def encode(self, value: Any) -> Any:
        if not isinstance(value, bool):
            raise self.refuse(value)
        return value

    def decode(self, tree: Any) -> Any:
        return self.encode(tree)


class Numeric(Codec):
    """`int`, `float` and `Decimal`."""

    is_plain = True
    json_types = frozenset({"number"})

    def __init__(self, type: type) -> None:
        self.type = type
        self.expected = "an integer" if type is int else "a number"

    def encode(self, value: Any) -> Any:
        allowed = (int, float) if self.type is float else self.type
        if isinstance(value, bool) or not isinstance(value, allowed):
            raise self.refuse(value)
        try:
            number_text(value)
        except ValueError as problem:
            raise Mismatch(str(problem)) from None
        return value

    def settled(self, new: Any, old: Any) -> Any:
        return old if isinstance(old, Number) and isinstance(new, Number) and new.same_as(old) else new

    def decode(self, tree: Any) -> Any:
        if not isinstance(tree, Number):
            raise self.refuse(tree)
        if self.type is int:
            number = tree.whole()
            if number is None:
                raise self.refuse(tree)
            return number
        try:
            made = self.type(tree.text)
        except (InvalidOperation, ValueError):
            raise self.refuse(tree) from None
        if self.type is float and made in (float("inf"), float("-inf")):
            raise Mismatch(f"is {shown(tree)}, which is beyond what a float can hold; make the member a Decimal")
        return made


class Spelled(Codec):
    """Types that are written as a string: dates, times, UUIDs, bytes."""

    json_types = frozenset({"string"})

    def __init__(self, type: type, expected: str, write: Callable[[Any], str], read: Callable[[str], Any]) -> None:
        self.type, self.expected, self.write, self.read = type, expected, write, read

    def ordered(self) -> Codec:
        return _ORDERED.get(self, self)

    def encode(self, value: Any) -> Any:
        if not isinstance(value, self.type) or self.type is date and isinstance(value, datetime):
            raise self.refuse(value)
        try:
            return self.write(value)
        except (OverflowError, ValueError) as problem:
            raise Mismatch(str(problem)) from None

    def decode(self, tree: Any) -> Any:
        if isinstance(tree, str):
            try:
                return self.read(tree)
            except ValueError:
                pass
        raise self.refuse(tree)


class Ordered(Spelled):
    """Dates and times, written as texts whose order is that of the values, as a rule with `pick` needs."""

    def arrange(self, tree: Any) -> Any:
        try:
            return self.write(self.read(tree)) if isinstance(tree, str) else tree
        except (OverflowError, ValueError):
            return tree


#: The fraction of a second.
_FRACTION = re.compile(r"(?<=:\d\d)[.,](\d+)")


def _with_zone(text: str) -> str:
    # Python before 3.11 does not accept the Z, and only fractions of three or six digits. Models in Swift write more digits if a date is
    # between two microseconds.
    text = _FRACTION.sub(lambda found: "." + found[1][:6].ljust(6, "0"), text, count=1)
    return text[:-1] + "+00:00" if text.endswith(("Z", "z")) else text


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(_with_zone(text))


def _ordered_moment(moment: datetime) -> str:
    """Returns a moment in UTC, with six digits after the second. A moment without a zone keeps having none."""
    if moment.utcoffset() is None:
        return moment.isoformat(timespec="microseconds")
    return moment.astimezone(timezone.utc).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


def _ordered_time(moment: time) -> str:
    if moment.tzinfo is not None:
        raise ValueError("is a time of day with a zone, which is neither before nor after others; leave the zone out, or use a datetime")
    return moment.isoformat(timespec="microseconds")


SCALARS: dict[Any, Codec] = {
    str: Text(),
    bool: Boolean(),
    int: Numeric(int),
    float: Numeric(float),
    Decimal: Numeric(Decimal),
    bytes: Spelled(bytes, "base64", lambda value: base64.b64encode(value).decode(), lambda text: base64.b64decode(text, validate=True)),
    datetime: Spelled(datetime, "a date and time as in ISO 8601", moment_text, _moment),
    date: Spelled(date, "a date as in ISO 8601", date.isoformat, date.fromisoformat),
    time: Spelled(time, "a time as in ISO 8601", time.isoformat, lambda text: time.fromisoformat(_with_zone(text))),
    uuid.UUID: Spelled(uuid.UUID, "a UUID", str, uuid.UUID),
}

_MOMENT, _TIME = SCALARS[datetime], SCALARS[time]
_ORDERED: dict[Codec, Codec] = {
    _MOMENT: Ordered(datetime, _MOMENT.expected, _ordered_moment, _moment),
    _TIME: Ordered(time, _TIME.expected, _ordered_time, lambda text: time.fromisoformat(_with_zone(text))),
}


class Choice(Codec):
    """Enumerations and `Literal`: one of a fixed list of strings, numbers or booleans."""

    def __init__(self, values: Mapping[Any, Any], name: str) -> None:
        """values: the JSON values, by the Python values."""
        self.values = values
        self.readers = {(type(written), written): value for value, written in values.items()}
        types = {str: "string", bool: "boolean"}
        self.json_types = frozenset(types.get(type(one), "number") for one in values.values())
        self.expected = f"one of {name}'s values ({', '.join(map(repr, list(values.values())[:8]))})"

    def encode(self, value: Any) -> Any:
        try:
            if isinstance(value, enum.Enum) or (type(value), value) in self.readers:
                return self.values[value]
        except (KeyError, TypeError):
            pass
        raise self.refuse(value)

    def decode(self, tree: Any) -> Any:
        # (1.0 is the same number as 1.)
        written = tree.whole() if isinstance(tree, Number) else tree
        if written is None and tree is not None:
            raise self.refuse(tree)
        try:
            return self.readers[type(written), written]
        except (KeyError, TypeError):
            raise self.refuse(tree) from None


class Anything(Codec):
    """`Any`: every JSON value, as Python's own types."""

    json_types = frozenset(_NAMES.values())

    def encode(self, value: Any) -> Any:
        try:
            write(value)
        except RecursionError:
            raise Mismatch("is nested too deeply, or holds itself") from None
        except (TypeError, ValueError) as problem:
            raise Mismatch(f"cannot be written as JSON: {problem}") from None
        return value

    def decode(self, tree: Any) -> Any:
        return plain(tree)


class Converted(Codec):
    """A type with a `Convert` of the model."""

    json_types = frozenset(_NAMES.values())

    def __init__(self, encode: Callable[[Any], Any], decode: Callable[[Any], Any], expected: str) -> None:
        self._encode, self._decode, self.expected = encode, decode, expected

    def encode(self, value: Any) -> Any:
        try:
            made = self._encode(value)
        except Exception as problem:
            raise Mismatch(f"cannot be encoded: {problem!r}") from problem
        return Anything().encode(made)

    def settled(self, new: Any, old: Any) -> Any:
        # (For instance a set, which the application writes as a list in an arbitrary order.)
        try:
            return old if differs_by_order(new, old) and self.decode(new) == self.decode(old) else new
        except Mismatch:
            return new

    def decode(self, tree: Any) -> Any:
        try:
            return self._decode(plain(tree))
        except Exception as problem:
            raise Mismatch(f"is {shown(tree)}, and cannot be decoded: {problem!r}") from problem
