"""Many values at once, in a few large pieces: see `llvs_value_block` in the header.

Built-ins process all values at once: no Python code runs for a single value, and the library is not called for one.
"""

from __future__ import annotations

import ctypes
import sys
from array import array
from io import BytesIO
from itertools import accumulate, repeat
from typing import Any, Iterable, Sequence

from .. import _abi
from .._abi.handle import Handle
from .._abi.memory import copy, decode, encode
from .._generated import structs as _structs
from .versions import ForgottenValue, Reference, Value, gone_error

lib = _abi.lib

#: Up to this size a block is copied as a whole and then cut up. Larger blocks are not: values of 16 MiB are not copied twice.
LARGEST_COPY = 1 << 20

#: An array type to read memory of any size.
_Memory = ctypes.c_char * sys.maxsize


class Block:
    """An `llvs_value_block`, released at the end of its `with`."""

    __slots__ = ("_info", "_pointer")

    def __init__(self, pointer: int) -> None:
        self._pointer = pointer
        self._info = _structs.llvs_value_block.from_address(pointer)

    def __enter__(self) -> Block:
        return self

    def __exit__(self, *_: object) -> None:
        lib.llvs_value_block_free(self._pointer)

    def ids(self) -> list[str]:
        """The ids of an enumeration."""
        info = self._info
        joined = copy(info.ids.data, info.ids.size)
        ids = decode(joined).split("\0")
        if len(ids) == info.count + 1:
            ids.pop()
            return ids
        # An id contains a NUL.
        found, start = [], 0
        for size in self._sizes(info.id_sizes):
            found.append(decode(joined[start : start + size]))
            start += size + 1
        return found

    def gone(self) -> dict[int, int]:
        """The states of the values whose bytes are gone, by their indexes."""
        info = self._info
        return {i: state for i, state in enumerate(copy(info.states, info.count)) if state} if info.states else {}

    def data(self) -> list[bytes]:
        """The bytes of the values; b"" if there are none. Raises GoneError if those of an enumerated value are gone: iterate over the ids
        then, and read the values one by one."""
        for index, state in self.gone().items():
            raise gone_error(self.ids()[index], list(self.stored_versions())[index] or "", state)
        return self._data()

    def _data(self) -> list[bytes]:
        info = self._info
        start, total = info.data.data, info.data.size
        sizes = self._sizes(info.data_sizes)
        if total <= LARGEST_COPY:
            return list(map(BytesIO(copy(start, total)).read, sizes))
        memory: Any = _Memory.from_address(start)
        return [memory[end - size : end] for end, size in zip(accumulate(sizes), sizes)]

    def stored_versions(self) -> Iterable[str | None]:
        """The versions that stored the values; None for an absent value."""
        info = self._info
        # After the last NUL is the text that stands for an absent value.
        texts: list[str | None] = [*copy(info.versions.data, info.versions.size).decode().split("\0")]
        texts[-1] = None
        if info.version_count == 1 and info.present_count == info.count:
            return repeat(texts[0], info.count)
        return map(texts.__getitem__, array("I", copy(info.version_indexes, 4 * info.count)))

    def values(self, ids: Sequence[str]) -> list[Value | None]:
        """The values with these ids; None for an absent value."""
        new, columns = tuple.__new__, zip(ids, self._data(), self.stored_versions())
        found: list[Value | None]
        if self._info.present_count == self._info.count:
            found = [new(Value, column) for column in columns]
        else:
            found = [new(Value, column) if column[2] is not None else None for column in columns]
        for index, state in self.gone().items():
            value = found[index]
            if value is not None:
                found[index] = ForgottenValue.make(value.id, value.stored_version, state)
        return found

    def items(self) -> list[tuple[str, bytes]]:
        """The ids and bytes of an enumeration."""
        return list(zip(self.ids(), self.data()))

    def references(self) -> list[Reference]:
        """The ids and versions of an enumeration."""
        return [Reference(id, stored or "") for id, stored in zip(self.ids(), self.stored_versions())]

    def last_id(self) -> bytes:
        """The last id of an enumeration."""
        info = self._info
        size = ctypes.c_uint64.from_address(info.id_sizes + 8 * (info.count - 1)).value
        return copy(info.ids.data + info.ids.size - 1 - size, size)

    def _sizes(self, first: int) -> array[int]:
        return array("Q", copy(first, 8 * self._info.count))


def fetch(store: Handle, ids: Iterable[str], at: bytes) -> list[Value | None]:
    """Returns the values of a store with many ids."""
    # A copy of the list: other threads may change the caller's.
    asked = list(ids)
    joined, sizes = join(asked)
    block = ctypes.c_void_p()
    with store._call as pointer:
        lib.llvs_store_value_block(pointer, joined, sizes.buffer_info()[0], len(asked), at, ctypes.byref(block))
    with Block(block.value or 0) as found:
        return found.values(asked)


def join(ids: list[str]) -> tuple[bytes, array[int]]:
    """Returns the concatenated ids, and their sizes."""
    if set(map(type, ids)) <= {str}:
        text = "".join(ids)
        if text.isascii():
            return text.encode(), array("Q", map(len, ids))
    pieces = list(map(encode, ids))
    return b"".join(pieces), array("Q", map(len, pieces))
