"""Converts metadata between JSON in Python and bytes in the library."""

from __future__ import annotations

import functools
from array import array
from typing import TYPE_CHECKING, Any, Callable, Mapping, Union

from .. import errors
from .._generated import constants as c
from . import memory as _memory

if TYPE_CHECKING:
    import json

#: The type of a metadata value: anything that JSON can represent, or bytes, which are stored unchanged.
MetadataValue = Union[None, bool, int, float, str, bytes, "list[Any]", "dict[str, Any]"]
Metadata = Mapping[str, Any]

#: The key that names a version's branch.
BRANCH_KEY = "__llvs_branch"


@functools.lru_cache(maxsize=None)
def _encoder() -> json.JSONEncoder:
    import json

    return json.JSONEncoder(ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":"))


def encode(value: Any) -> bytes:
    """Returns one value as JSON. Keys are sorted and there are no spaces, so equal values give equal bytes everywhere.

    Raises ValueError for NaN, infinities and text with lone surrogates, TypeError for what JSON cannot represent.
    """
    if isinstance(value, (bytes, bytearray, memoryview)):
        return _memory.as_bytes(value)
    return str.encode(_encoder().encode(value))


def _key(key: str) -> bytes:
    try:
        return str.encode(key)
    except TypeError:
        raise TypeError(f"a metadata key is a str, not {type(key).__name__}") from None


@functools.lru_cache(maxsize=None)
def _decoder() -> "json.JSONDecoder":
    import json

    return json.JSONDecoder(parse_constant=_refuse, parse_float=_finite)


def decode(data: bytes) -> Any:
    """Returns one value; the bytes themselves if they are not JSON, or contain what JSON cannot represent: `1e999`, a lone surrogate."""
    try:
        text = data.decode("utf-8")
        inner = text[1:-1]
        if len(text) > 1 and text[0] == text[-1] == '"' and inner.isprintable() and '"' not in inner and "\\" not in inner:
            # Most values are text without escapes. Histories are long, so these are read the short way.
            return inner
        value = _decoder().decode(text)
        if "\\u" in text:
            # A lone surrogate could neither be printed nor saved again.
            _encoder().encode(value).encode("utf-8")
        return value
    except (ValueError, RecursionError):
        return data


def _refuse(constant: str) -> Any:
    raise ValueError(constant)


def _finite(number: str) -> float:
    value = float(number)
    return value if abs(value) != float("inf") else _refuse(number)


def _utf8(function: Callable[[Any], bytes], value: Any, what: str) -> bytes:
    """Returns the result of `function` for a value. Raises InvalidMetadataError for what UTF-8 cannot represent."""
    try:
        return function(value)
    except UnicodeEncodeError as problem:
        where = problem.object[problem.start]
    raise errors.InvalidMetadataError(
        f"{what} has a lone surrogate, {where!a}, which no UTF-8 holds: replace it, or give the value as bytes",
        code=c.ERROR_INVALID_METADATA,
    )


class Entries:
    """An array of `llvs_metadata_entry`."""

    __slots__ = ("address", "count", "_kept")

    def __init__(self, metadata: Metadata | None) -> None:
        self.address: int | None = None
        self.count = 0
        self._kept: Any = None
        if metadata is None:
            return
        # The mapping is read only once, because other threads may change it meanwhile.
        pairs = list((metadata.copy() if type(metadata) is dict else metadata).items())
        if not pairs:
            return
        keys = _memory.Column([_utf8(_key, key, f"the metadata key {key!a}") for key, _ in pairs])
        values = _memory.Column([_utf8(encode, value, f"the metadata under {key!a}") for key, value in pairs])
        self.count = len(pairs)
        words = array("Q", bytes(32 * self.count))
        words[0::4], words[1::4], words[2::4], words[3::4] = keys.addresses, keys.sizes, values.addresses, values.sizes
        self.address = words.buffer_info()[0]
        self._kept = (words, keys, values)
