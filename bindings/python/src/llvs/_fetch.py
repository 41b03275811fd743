"""Fetching one value: what programs do most, and so made with as few steps as ctypes allows.

One piece of scratch memory takes all outputs and is unpacked at once, instead of a struct object for each. The two `llvs_bytes` go
in as pointer and size: calling conventions pass a struct of two words in two registers (or wholly on the
stack), just as two arguments. Where that is not known to be so, the general prototype is used.
"""

from __future__ import annotations

import ctypes
import platform
import struct
import sys
from typing import Any, Callable

from . import _abi, errors
from ._memory import piece

lib = _abi.lib

#: Output of one fetch: llvs_buffer, llvs_version_id, llvs_error *.
_LAYOUT = struct.Struct("=QQI132sQ")
_STORED, _ERROR = 16, 152

#: Systems whose calling convention passes `llvs_bytes` like a pointer and a size (System V on x86-64, AAPCS64).
FLAT = sys.platform in ("linux", "darwin") and platform.machine().lower() in ("x86_64", "amd64", "aarch64", "arm64")

#: (memory, its address), not in use. Appending and popping are atomic.
_scratch: list[tuple[Any, int]] = []


def _prepare(name: str) -> Any:
    function = _abi.lib._releasing[name]
    if FLAT:
        word, text, size = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t
        function.argtypes = [word, text, size, text, size, word, word, word]
    else:
        general = _abi.lib.raw(name)

        def function(pointer: int, id: bytes, _: int, at: bytes, __: int, buffer: int, stored: int, error: int) -> Any:
            general.errcheck = lambda status, *_: status
            return general(pointer, id, at, buffer, stored, error)

    return function


def fetcher(name: str) -> Callable[[int, bytes, bytes], tuple[bytes, str] | None]:
    """A function (pointer, id, version) that calls `name` and returns the bytes and the version that stored them, or None."""
    function = _prepare(name)
    dispose = lib.raw("llvs_buffer_dispose")
    unpack = _LAYOUT.unpack_from

    def fetch(pointer: int, id: bytes, at: bytes) -> tuple[bytes, str] | None:
        try:
            scratch = _scratch.pop()
        except IndexError:
            made = ctypes.create_string_buffer(_LAYOUT.size)
            scratch = (made, ctypes.addressof(made))
        memory, address = scratch
        status = function(pointer, id, len(id), at, len(at), address, address + _STORED, address + _ERROR)
        if status:
            error = ctypes.c_void_p(unpack(memory)[4])
            _scratch.append(scratch)
            raise errors.take(status, error)
        data, size, length, text, _ = unpack(memory)
        if not data:
            _scratch.append(scratch)
            return None
        found = piece(data, size)
        dispose(address)
        _scratch.append(scratch)
        return found, text[:length].decode()

    return fetch
