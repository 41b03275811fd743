"""JSON that preserves the spelling of numbers and the order of members."""

from __future__ import annotations

import json
from decimal import Decimal, InvalidOperation
from json.encoder import encode_basestring as _quoted
from typing import Any, Optional

#: A value with a number beyond these limits cannot be merged inside (docs/merging-internals.md).
DIGITS_MAX = 400
EXPONENT_MAX = 9999
_BEYOND = 10**DIGITS_MAX


class NotJSON(ValueError):
    """Raised for bytes that cannot be read as JSON; the message has the reason."""


class Number:
    """A number in its original spelling."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text

    def plain(self) -> Any:
        """Returns an `int` if it is written as one, otherwise a `float`, or a `Decimal` if no `float` is large enough. Raises NotJSON
        beyond that."""
        try:
            if self.text.lstrip("-").isdigit():
                return int(self.text)
        except ValueError:  # more digits than Python converts
            pass
        number = float(self.text)
        if number not in (float("inf"), float("-inf")):
            return number
        try:
            return Decimal(self.text)
        except InvalidOperation:
            raise NotJSON(f"the number {self.text[:40]} has an exponent beyond those of Python") from None

    def whole(self) -> Optional[int]:
        """Returns the integer value, also of 1.0 and 1e3; None if it is not an integer, or has more digits than can be merged."""
        try:
            if self.text.lstrip("-").isdigit():
                return int(self.text) if len(self.text) <= DIGITS_MAX + 1 else None
            number = Decimal(self.text)
        except (InvalidOperation, ValueError):
            return None
        if not number.is_finite() or number.adjusted() >= DIGITS_MAX or number != number.to_integral_value():
            return None
        return int(number)

    def same_as(self, other: Any) -> bool:
        """Returns whether another number has an equal value; a `float` counts as the number that its text is read as."""
        if isinstance(other, float):
            return float(self.text) == other
        try:
            if isinstance(other, Number):
                return self.text == other.text or Decimal(self.text).compare(Decimal(other.text)) == 0
            return bool(Decimal(self.text) == Decimal(other))
        except InvalidOperation:
            return False

    def __repr__(self) -> str:
        return self.text


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise NotJSON(f"the member {name!r} is there twice")
            seen.add(name)
    return made


def _constant(text: str) -> Any:
    raise NotJSON(f"{text} is no number of JSON")


def parse(data: bytes) -> Any:
    """Returns the value of JSON text; numbers are `Number`s. Raises NotJSON."""
    try:
        return json.loads(data.decode(), parse_int=Number, parse_float=Number, parse_constant=_constant, object_pairs_hook=_members)
    except NotJSON:
        raise
    except UnicodeDecodeError as problem:
        raise NotJSON(f"it is not UTF-8: {problem}") from None
    except RecursionError:
        raise NotJSON("it is nested too deeply") from None
    except ValueError as problem:
        raise NotJSON(f"it is no JSON: {problem}") from None


def plain(tree: Any) -> Any:
    """Returns the same value with Python's numbers."""
    if isinstance(tree, Number):
        return tree.plain()
    if isinstance(tree, dict):
        return {name: plain(value) for name, value in tree.items()}
    if isinstance(tree, list):
        return [plain(value) for value in tree]
    return tree


def write(tree: Any) -> bytes:
    """Returns the JSON text of a value, without white space. Raises TypeError and ValueError for what JSON cannot represent."""
    parts: list[str] = []
    _write(tree, parts)
    return "".join(parts).encode()


def _write(tree: Any, parts: list[str]) -> None:
    if isinstance(tree, str):
        parts.append(_quoted(tree))
    elif isinstance(tree, Number):
        parts.append(tree.text)
    elif tree is None or isinstance(tree, bool):
        parts.append({None: "null", True: "true", False: "false"}[tree])
    elif isinstance(tree, (int, float, Decimal)):
        parts.append(number_text(tree))
    elif isinstance(tree, dict):
        before = "{"
        for name, value in tree.items():
            if not isinstance(name, str):
                raise TypeError(f"{name!r} cannot be the name of a member; names are strings")
            parts += (before, _quoted(name), ":")
            _write(value, parts)
            before = ","
        parts.append("{}" if before == "{" else "}")
    elif isinstance(tree, (list, tuple)):
        before = "["
        for value in tree:
            parts.append(before)
            _write(value, parts)
            before = ","
        parts.append("[]" if before == "[" else "]")
    else:
        raise TypeError(f"{type(tree).__name__} is nothing that JSON can hold")


def number_text(number: Any) -> str:
    """Returns a number as JSON text. Raises ValueError for NaN and infinities, and for more digits than a merge accepts."""
    if type(number) is int and -_BEYOND < number < _BEYOND:
        return repr(number)
    if isinstance(number, float):
        if number != number or number in (float("inf"), float("-inf")):
            raise ValueError(f"{number} is no number of JSON")
        return float.__repr__(number)
    exact = Decimal(number)
    if not exact.is_finite():
        raise ValueError(f"{number} is no number of JSON")
    if len(exact.as_tuple().digits) > DIGITS_MAX or abs(exact.adjusted()) > EXPONENT_MAX:
        raise ValueError(f"a number of more than {DIGITS_MAX} digits, or with an exponent beyond {EXPONENT_MAX}, cannot be merged")
    return str(exact) if isinstance(number, Decimal) else int.__repr__(int(number))


def spelled_like(new: Any, old: Any) -> Any:
    """Returns the value `new`, with the spelling of numbers and the order of members of `old` in all parts that are equal in value."""
    if isinstance(new, dict) and isinstance(old, dict):
        known = [name for name in old if name in new]
        return {name: spelled_like(new[name], old.get(name)) for name in (*known, *(name for name in new if name not in old))}
    if isinstance(new, list) and isinstance(old, list):
        places = {_identity(value): value for value in reversed(old)}
        return [
            spelled_like(value, places.get(_identity(value), old[index] if index < len(old) else None)) for index, value in enumerate(new)
        ]
    return old if isinstance(old, Number) and isinstance(new, Number) and old.same_as(new) else new


def _identity(element: Any) -> str:
    """Returns a key by which elements of two lists are matched. A wrong match only changes the spelling of a number."""
    known = element["id"] if isinstance(element, dict) and "id" in element else element
    return canonical(known)


def canonical(tree: Any) -> str:
    """Returns a text that is equal for equal values, whatever the spelling of their numbers and the order of their members."""
    if isinstance(tree, Number):
        # (Most numbers are integers, which have only one spelling.)
        text = tree.text
        return text if text.isdigit() and not text.endswith(_MANY_ZEROS) else _canonical_number(text)
    if isinstance(tree, dict):
        return "{" + ",".join(f"{_quoted(name)}:{canonical(tree[name])}" for name in sorted(tree)) + "}"
    if isinstance(tree, list):
        return "[" + ",".join(map(canonical, tree)) + "]"
    return write(tree).decode()


_ZEROS_MAX = 30
_MANY_ZEROS = "0" * (_ZEROS_MAX + 1)


def _canonical_number(text: str) -> str:
    """Returns an integer with all its digits if it ends in few zeros; any other number as digits without outer zeros, and a power of
    ten."""
    mantissa, _, exponent = text.lstrip("-").lower().partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    kept = digits.rstrip("0")
    if not kept:
        return "0"
    try:
        power = int(exponent or 0) - len(fraction) + len(digits) - len(kept)
    except ValueError:  # more digits than Python converts
        return text
    sign = "-" if text[0] == "-" else ""
    return f"{sign}{kept}{'0' * power}" if 0 <= power <= _ZEROS_MAX else f"{sign}{kept}e{power}"
