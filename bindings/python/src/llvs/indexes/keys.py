"""Keys of indexes: their parts, as JSON and as Python has them, and how a function gives them."""

from __future__ import annotations

import ctypes
import json
import math
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any, Callable, Iterable, Sequence, Union

from .. import _abi
from .._abi import callbacks as _callbacks
from .._abi.memory import copy, decode, encode
from .._generated import structs as _structs

lib = _abi.lib


class Missing:
    """A part of a key that a value has not got; `llvs.indexes.MISSING` is the only one. It is before all others in order."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "llvs.indexes.MISSING"

    def __reduce__(self) -> str:
        return "MISSING"


#: The bytes for a missing part.
MISSING = Missing()

#: A part of a key: a scalar of JSON, or `MISSING`. Numbers are compared by value, exactly.
KeyPart = Union[None, bool, int, float, Decimal, str, Missing]

#: A part of a key as a question names it: also a date or a time, which is the string that models write for it.
GivenPart = Union[KeyPart, date, time]

#: A function that returns the keys of a value, given its id and its bytes. A key is a part, or a tuple of several parts.
KeyFunction = Callable[[str, bytes], Iterable[Union[GivenPart, Sequence[GivenPart]]]]


def moment_text(moment: datetime) -> str:
    """UTC with a Z, as Swift's models and pydantic write it: two spellings of one moment are two values when they are merged."""
    text = moment.isoformat()
    return text[:-6] + "Z" if text.endswith("+00:00") else text


def _part_text(part: GivenPart) -> str:
    if part is None:
        return "null"
    if isinstance(part, bool):
        return "true" if part else "false"
    if isinstance(part, Missing):
        return "{}"
    if isinstance(part, str):
        return json.dumps(str(part), ensure_ascii=False)
    if isinstance(part, int):
        return str(int(part))
    if isinstance(part, (float, Decimal)):
        if not (part.is_finite() if isinstance(part, Decimal) else math.isfinite(part)):
            raise ValueError(f"a part of a key is a number, not {part!r}")
        return repr(float(part)) if isinstance(part, float) else str(Decimal(part)).lower()
    if isinstance(part, datetime):
        return json.dumps(moment_text(part))
    if isinstance(part, (date, time)):
        return json.dumps(part.isoformat())
    raise TypeError(f"a part of a key is None, a bool, a number, a str, a date or llvs.indexes.MISSING, not {type(part).__name__}")


def tuple_text(parts: Any) -> bytes:
    """JSON of the first parts of a key; nothing when there are none."""
    return encode("[" + ",".join(map(_part_text, parts)) + "]") if parts else b""


def bound_text(bound: Any) -> bytes:
    """JSON of a bound: one part, or several as a tuple or list."""
    return tuple_text(bound if isinstance(bound, (tuple, list)) else (bound,))


def _number(text: str) -> Union[float, Decimal]:
    exact, near = Decimal(text), float(text)
    return near if math.isfinite(near) and Decimal(repr(near)) == exact else exact


def key_of_parts(parts: list[Any]) -> tuple[KeyPart, ...]:
    """A key of what `read_parts` read."""
    return tuple(MISSING if isinstance(part, dict) else part for part in parts)


def read_parts(data: bytes) -> Any:
    """JSON with numbers as exact as they are written."""
    return json.loads(decode(data), parse_float=_number)


def _give(keys: KeyFunction, id: int, data: int, given: int) -> None:
    pairs = (_structs.llvs_bytes.from_address(pointer) for pointer in (id, data))
    name, value = (copy(pair.data, pair.size) if pair.size else b"" for pair in pairs)
    found = keys(decode(name), value)
    if isinstance(found, (str, bytes)):
        raise TypeError(f"the keys of a value are an iterable of keys, not {type(found).__name__}: write [key]")
    for key in found:
        lib.llvs_index_keys_add(given, bound_text(key))


give_keys = _callbacks.solicited([ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p], _give)
