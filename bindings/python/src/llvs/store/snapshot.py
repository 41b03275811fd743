"""The manifest of a snapshot, and problems of exchanges and restores."""

from __future__ import annotations

import ctypes
from typing import Any, Callable, NamedTuple

from .. import _abi
from .._abi.memory import copy, decode, text
from .._generated import structs as _structs
from . import _pages

lib = _abi.lib


class Problem(NamedTuple):
    """An item that could not be exchanged or restored. Only versions that depend on it were held back."""

    #: The version id or file name.
    name: str
    #: Why.
    reason: str
    #: The kind of failure (an `ErrorCode`).
    code: int


class Snapshot(NamedTuple):
    """The manifest of a snapshot: a chunked dump of a whole store, to bootstrap a new replica."""

    #: Its id.
    id: str
    #: The format of its chunks; other implementations have others.
    format: str
    #: The newest version in it.
    latest_version: str
    #: When it was made, in seconds since 1970-01-01 UTC.
    created_at: float
    #: How many versions it contains.
    version_count: int
    #: How many chunks it consists of.
    chunk_count: int
    #: Bytes of all chunks.
    total_size: int
    #: Of a restored snapshot: versions that do not match their content ids, and their descendants. These were not added.
    problems: tuple[Problem, ...] = ()


def take_problems(items: Any, count: int) -> tuple[Problem, ...]:
    """A list of `llvs_problem`."""
    return tuple(
        Problem(
            decode(copy(name, name_size)) if name_size else "",
            decode(copy(message, message_size)) if message_size else "",
            _error_code(code),
        )
        for _, code, name, name_size, message, message_size in _pages.elements(_pages.PROBLEM, items, count)
    )


def _error_code(number: int) -> int:
    from ..errors import ErrorCode

    try:
        return ErrorCode(number)
    except ValueError:
        return number


def take_snapshot(function: Callable[..., Any], *arguments: Any) -> Snapshot | None:
    """The manifest that a function put into its last parameter before the error."""
    pointer = ctypes.c_void_p()
    function(*arguments, ctypes.byref(pointer))
    if not pointer.value:
        return None
    try:
        info = _structs.llvs_snapshot.from_address(pointer.value)
        return Snapshot(
            text(info.id),
            text(info.format),
            text(info.latest_version),
            info.created_at,
            info.version_count,
            info.chunk_count,
            info.total_size,
            take_problems(info.problems, info.problem_count),
        )
    finally:
        lib.llvs_snapshot_free(pointer.value)


def the_snapshot(function: Callable[..., Any], *arguments: Any) -> Snapshot:
    """As `take_snapshot`, for a function that always gives a snapshot unless it fails."""
    found = take_snapshot(function, *arguments)
    assert found is not None
    return found
