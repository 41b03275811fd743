"""Metadata: JSON on this side, bytes on that."""

from __future__ import annotations

import functools
from array import array
from typing import TYPE_CHECKING, Any, Mapping, Union

from . import _memory

if TYPE_CHECKING:
    import json

#: What a metadata value may be: anything JSON can hold, or bytes, which are carried along untouched.
MetadataValue = Union[None, bool, int, float, str, bytes, "list[Any]", "dict[str, Any]"]
Metadata = Mapping[str, Any]

#: The key that names a version's branch.
BRANCH_KEY = "__llvs_branch"


@functools.lru_cache(maxsize=None)
def _encoder() -> json.JSONEncoder:
    import json

    return json.JSONEncoder(ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":"))


def encode(value: Any) -> bytes:
    """One value. Keys are sorted and nothing is spaced, so that equal values are equal bytes everywhere.

    Raises ValueError for NaN and infinities, TypeError for what JSON cannot hold.
    """
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    return _memory.encode(_encoder().encode(value))


def decode(data: bytes) -> Any:
    """One value; the bytes themselves when they are not JSON."""
    import json

    try:
        return json.loads(data.decode("utf-8"), parse_constant=_refuse)
    except (ValueError, RecursionError):
        return data


def _refuse(constant: str) -> Any:
    raise ValueError(constant)


class Entries:
    """An array of `llvs_metadata_entry`."""

    __slots__ = ("address", "count", "_kept")

    def __init__(self, metadata: Metadata | None) -> None:
        self.address: int | None = None
        self.count = 0
        self._kept: Any = None
        if not metadata:
            return
        keys = _memory.Column([_memory.encode(key) for key in metadata])
        values = _memory.Column([encode(value) for value in metadata.values()])
        self.count = len(metadata)
        words = array("Q", bytes(32 * self.count))
        words[0::4], words[1::4], words[2::4], words[3::4] = keys.addresses, keys.sizes, values.addresses, values.sizes
        self.address = words.buffer_info()[0]
        self._kept = (words, keys, values)
