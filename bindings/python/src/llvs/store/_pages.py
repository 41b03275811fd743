"""Reads the lists that the library returns, and releases them.

The structs of a list are contiguous: they are copied and unpacked as a whole. What their pointers lead to is read piece by piece.
"""

from __future__ import annotations

import ctypes
import struct
from array import array
from typing import Any, Iterator, Sequence

from .. import _abi
from .._abi.memory import copy, decode
from .versions import CHANGE_KINDS, Change, ForgottenValue, Reference, Value, Version

lib = _abi.lib

# As in _generated/structs.py: an llvs_bytes is QQ. A test compares the sizes.
VERSION_INFO = struct.Struct("=IIQQQQQQdQQQQQIId")
VALUE_INFO = struct.Struct("=IIQQQQQQII")
CHANGE_INFO = struct.Struct("=IIQQQQQQQII")
METADATA_ENTRY = struct.Struct("=QQQQ")
FORK = struct.Struct("=IIIIQQQQQQQQQQ")
CONFLICT = struct.Struct("=IIQQQQQQQQQQQQQQQQQQ")
PROBLEM = struct.Struct("=IiQQQQ")
EXCHANGE_FILES = struct.Struct("=IIQQQQQQ")
BYTES = struct.Struct("=QQ")
LIST = struct.Struct("=IIQQ")


def take_buffer(buffer: Any) -> bytes | None:
    """Returns the bytes of an `llvs_buffer`, and disposes of it; None if it is empty."""
    if not buffer.data:
        return None
    try:
        return copy(buffer.data, buffer.size)
    finally:
        lib.llvs_buffer_dispose(ctypes.byref(buffer))


def elements(layout: struct.Struct, pointers: int | None, count: int) -> Iterator[tuple[Any, ...]]:
    """Returns the structs that an array of pointers leads to. The first field of each is its size."""
    if not pointers or not count:
        return iter(())
    first = int.from_bytes(copy(pointers, 8), "little")
    stride = int.from_bytes(copy(first, 4), "little")
    block = copy(first, stride * count)
    if stride == layout.size:
        return layout.iter_unpack(block)
    return (layout.unpack_from(block, stride * index) for index in range(count))


def listed(layout: struct.Struct, pointer: int) -> Iterator[tuple[Any, ...]]:
    """Returns the structs of a list."""
    _, _, count, items = LIST.unpack(copy(pointer, LIST.size))
    return elements(layout, items, count)


def addresses(pointers: int | None, count: int) -> Sequence[int]:
    """Returns the addresses in an array of pointers."""
    return array("Q", copy(pointers, 8 * count)) if pointers and count else ()


def bytes_array(first: int | None, count: int) -> list[bytes]:
    """Returns the contents of an array of `llvs_bytes`."""
    if not first or not count:
        return []
    return [copy(data, size) if size else b"" for data, size in BYTES.iter_unpack(copy(first, BYTES.size * count))]


def version(fields: tuple[Any, ...]) -> Version:
    """Returns a version from its unpacked `llvs_version_info`."""
    (_, count, id_data, id_size, a_data, a_size, b_data, b_size, timestamp, size, entries, entry_count, branch_data, branch_size, _, _,
     made_at) = fields
    if count == 0:
        predecessors: tuple[str, ...] = ()
    elif count == 1:
        predecessors = (decode(copy(a_data, a_size)),)
    else:
        predecessors = (decode(copy(a_data, a_size)), decode(copy(b_data, b_size)))
    metadata: tuple[tuple[str, bytes], ...] = ()
    if entry_count:
        metadata = tuple(
            (decode(copy(key, key_size)), copy(value, value_size))
            for key, key_size, value, value_size in METADATA_ENTRY.iter_unpack(copy(entries, METADATA_ENTRY.size * entry_count))
        )
    branch = decode(copy(branch_data, branch_size)) if branch_data else None
    return Version(decode(copy(id_data, id_size)), predecessors, timestamp, size, metadata, branch, made_at)


def version_at(address: int) -> Version:
    """Returns a version from the address of its `llvs_version_info`."""
    return version(VERSION_INFO.unpack(copy(address, VERSION_INFO.size)))


def versions(pointer: int | None) -> list[Version]:
    """Returns the versions of a list, and releases it; none for NULL."""
    if not pointer:
        return []
    try:
        return borrowed_versions(pointer)
    finally:
        lib.llvs_version_list_free(pointer)


def version_changes(pointer: int | None) -> list[tuple[Version, int]]:
    """Returns the versions of a list, each with what it recorded about the requested value. Releases the list."""
    if not pointer:
        return []
    try:
        return [(version(fields), fields[14]) for fields in listed(VERSION_INFO, pointer)]
    finally:
        lib.llvs_version_list_free(pointer)


def borrowed_versions(pointer: int | None) -> list[Version]:
    """Returns the versions of a list that has another owner, without releasing it."""
    return [version(fields) for fields in listed(VERSION_INFO, pointer)] if pointer else []


def values(pointer: int | None) -> list[Value | None]:
    """Returns the values of a list, None for an absent one. Releases the list."""
    if not pointer:
        return []
    try:
        found: list[Value | None] = []
        for _, present, id_data, id_size, data, size, version_data, version_size, state, _reserved in listed(VALUE_INFO, pointer):
            id, stored = decode(copy(id_data, id_size)), decode(copy(version_data, version_size))
            value = ForgottenValue.make(id, stored, state) if state else Value(id, copy(data, size), stored)
            found.append(value if present else None)
        return found
    finally:
        lib.llvs_value_list_free(pointer)


def changes(pointer: int | None) -> list[Change]:
    """Returns the changes of a list, and releases it."""
    if not pointer:
        return []
    try:
        found = []
        for _, kind, id_data, id_size, data, size, version_data, version_size, *_rest in listed(CHANGE_INFO, pointer):
            id = decode(copy(id_data, id_size))
            reference = Reference(id, decode(copy(version_data, version_size))) if version_size else None
            found.append(Change(CHANGE_KINDS[kind], id, copy(data, size) if data else None, reference))
        return found
    finally:
        lib.llvs_change_list_free(pointer)
