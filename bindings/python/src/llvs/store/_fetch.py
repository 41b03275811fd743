"""Fetching one value. Programs do this most, so it takes as few steps as ctypes allows.

The library writes into memory that is reserved for this. Every argument except the ids is a ctypes object made beforehand: a function
without `argtypes` accepts such objects, and `bytes`, without a conversion, in half the time. The two `llvs_bytes` are passed as
pointer and size: on some systems (`FLAT`) the calling convention passes a struct of two words in two registers, like two
arguments. On other systems the general prototype is used.
"""

from __future__ import annotations

import ctypes
import os
import sys
from typing import Any, Callable, ClassVar

from .. import _abi, errors
from .._abi import signals as _signals
from .._abi.handle import Handle
from .._abi.memory import piece
from .._generated import structs as _structs

#: Systems whose calling convention passes `llvs_bytes` like a pointer and a size (System V on x86-64, AAPCS64).
FLAT = sys.platform in ("linux", "darwin") and os.uname().machine.lower() in ("x86_64", "amd64", "aarch64", "arm64")

#: Values up to this size are fetched with one call; larger ones need a second.
CAPACITY = 1 << 16
#: The size that the library reports for an absent value.
_ABSENT = ctypes.c_size_t(-1).value

#: Sizes as arguments. A plain `int` would be passed as a C `int`.
_sizes = [ctypes.c_size_t.from_param(size) for size in range(512)]
_capacity = ctypes.c_size_t.from_param(CAPACITY)

#: Outputs that are not in use: the objects to read, and their addresses as arguments. Appending and popping are atomic.
_scratch: list[tuple[Any, ...]] = []


def _make_scratch() -> tuple[Any, ...]:
    data, size, stored, error = (ctypes.c_char * CAPACITY)(), ctypes.c_size_t(), _structs.llvs_version_id(), ctypes.c_void_p()
    return data, size, stored, error, *map(ctypes.byref, (data, size, stored, error))


def _prepare(name: str) -> Any:
    if FLAT:
        # A separate function object: no other code sets its prototype.
        return _abi.lib._releasing[name]
    general = _abi.lib.raw(name)
    general.errcheck = lambda status, *_: status

    def function(handle: Any, id: bytes, _: Any, at: bytes, __: Any, buffer: Any, capacity: Any, *outputs: Any) -> Any:
        return general(handle, id, at, buffer, CAPACITY if capacity is _capacity else capacity, *outputs)

    return function


def fetcher(name: str) -> Callable[[Any, bytes, bytes], tuple[bytes, str] | None]:
    """Returns a function (handle's `_argument`, id, version) that calls `name` and returns the bytes and the version that stored them, or
    None."""
    function = _prepare(name)

    def fetch(handle: Any, id: bytes, at: bytes) -> tuple[bytes, str] | None:
        id_size, at_size = len(id), len(at)
        try:
            id_argument, at_argument = _sizes[id_size], _sizes[at_size]
        except IndexError:
            id_argument, at_argument = ctypes.c_size_t(id_size), ctypes.c_size_t(at_size)
        try:
            scratch = _scratch.pop()
        except IndexError:
            scratch = _make_scratch()
        try:
            data, size, stored, error, data_out, size_out, stored_out, error_out = scratch
            status = function(handle, id, id_argument, at, at_argument, data_out, _capacity, size_out, stored_out, error_out)
            if status:
                raise errors.take(status, error, _abi.lib)
            found = size.value
            if found <= CAPACITY:
                return data[:found], stored.text.decode()
            if found == _ABSENT:
                return None
            # These bytes have no other reference yet, so they may be written to.
            whole = piece(None, found)
            status = function(handle, id, id_argument, at, at_argument, whole, ctypes.c_size_t(found), size_out, stored_out, error_out)
            if status:
                raise errors.take(status, error, _abi.lib)
            return whole, stored.text.decode()
        finally:
            _scratch.append(scratch)

    return fetch


class Fetching(Handle):
    """A handle from which values are read."""

    #: The function that `fetcher` made for it.
    _fetcher: ClassVar[Any]
    #: Whether a read may call back into Python.
    _storage_calls_back: bool = False

    def _fetch(self, id: bytes, at: bytes) -> tuple[bytes, str] | None:
        if self._storage_calls_back or _signals.listeners:
            with self._call:
                found: tuple[bytes, str] | None = self._fetcher(self._argument, id, at)
                return found
        # Does the same as `with self._call`, without its overhead: programs call this most.
        calls = self._calls
        calls.append(0)
        try:
            if self._closed:
                raise self._closed_error()
            found = self._fetcher(self._argument, id, at)
            return found
        finally:
            calls.remove(0)
            if self._closed and not calls:
                self._let_go()
