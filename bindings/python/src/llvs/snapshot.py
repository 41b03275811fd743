"""What a snapshot's manifest says."""

from __future__ import annotations

import ctypes
from typing import Any, Callable, NamedTuple

from . import _abi, _structs
from ._memory import text

lib = _abi.lib


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
    #: How many versions it holds.
    version_count: int
    #: How many chunks it consists of.
    chunk_count: int
    #: Bytes of all chunks.
    total_size: int


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
        )
    finally:
        lib.llvs_snapshot_free(pointer.value)
