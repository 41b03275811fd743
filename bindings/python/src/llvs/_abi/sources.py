"""Content that comes in pieces: files and iterables that the library reads while it makes or receives a version."""

from __future__ import annotations

import ctypes
import io
from collections.abc import Iterable, Iterator, Mapping
from operator import index
from typing import Any

from .. import _abi, errors
from .._generated import constants as c, structs as _structs
from . import callbacks as _callbacks, memory as _memory
from .memory import as_bytes, encode
from .signals import holding


def gives_pieces(value: Any) -> bool:
    """Returns whether a value is a file-like object or an iterable, and not bytes-like."""
    if isinstance(value, (bytes, str, int, Mapping)) or not (callable(getattr(value, "read", None)) or isinstance(value, Iterable)):
        return False
    try:
        memoryview(value)
    except TypeError:
        return True
    return False


def _size(file: Any) -> int:
    """Returns the number of bytes that are left in a file; 0 if the file does not report it."""
    if not isinstance(file, (io.RawIOBase, io.BufferedIOBase)):
        return 0
    try:
        if not file.seekable():
            return 0
        here = file.tell()
        end = file.seek(0, io.SEEK_END)
        file.seek(here)
    except (OSError, ValueError):
        return 0
    return min(max(0, index(end) - index(here)), _LARGEST)


#: The largest size that the library accepts. The size is only a hint.
_LARGEST = (1 << 63) - 1

#: An object that no iterable yields: a None among the pieces is an error, not the end of the value.
_NO_MORE: Any = object()


class _Reader:
    """Reads a file or an iterable in pieces of the requested size."""

    __slots__ = ("_read", "_pieces", "_left")

    def __init__(self, value: Any) -> None:
        self._read: Any = getattr(value, "read", None)
        self._pieces: Iterator[Any] = iter(()) if self._read is not None else iter(value)
        self._left = memoryview(b"")

    def next(self, room: int) -> memoryview:
        while not self._left:
            if self._read is not None:
                piece = self._read(room)
                if piece is None:
                    raise errors.InvalidArgumentError("a file that is read for a value has nothing yet; give one that waits for its bytes")
                self._left = memoryview(as_bytes(piece))
                if not self._left:
                    break
            else:
                piece = next(self._pieces, _NO_MORE)
                if piece is _NO_MORE:
                    break
                self._left = memoryview(as_bytes(piece))
        piece, self._left = self._left[:room], self._left[room:]
        return piece


def _give(reader: _Reader, buffer: int, capacity: int, size: int) -> int:
    piece = reader.next(capacity)
    if not piece:
        return c.END
    ctypes.memmove(buffer, piece.tobytes(), len(piece))
    # Set last: without it the library takes LLVS_OK for a failure.
    ctypes.c_size_t.from_address(size).value = len(piece)
    return c.OK


_thunk = _callbacks.solicited([ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p], _give)
_address = ctypes.cast(_thunk, ctypes.c_void_p).value


class _ClosingReader(_Reader):
    """Closes its file when the library no longer needs it."""

    __slots__ = ("_close",)

    def __init__(self, value: Any) -> None:
        super().__init__(value)
        self._close: Any = getattr(value, "close", None)

    def __del__(self) -> None:
        if callable(getattr(self, "_close", None)):
            self._close()


def answer(reply: int, index: int, value: Any) -> None:
    """Answers a request of the library with a file or an iterable. The library reads it later; then the file is closed."""
    size, reader = _size(value), _ClosingReader(value)
    _abi.lib.llvs_reply_set_source(reply, index, size, _address, _callbacks.register(reader), _callbacks.payload_free)


class SourceArray:
    """An array of `llvs_value_source` for one call: `with SourceArray(pairs) as (address, count, size)`."""

    __slots__ = ("_array", "_ids", "_payloads", "_values")

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        self._values = [value for _, value in pairs]
        self._ids = [encode(id) for id, _ in pairs]
        self._payloads: list[int] = []
        self._array = (_structs.llvs_value_source * len(pairs))()

    def __enter__(self) -> tuple[int, int, int]:
        holding.__enter__()
        for element, id, value in zip(self._array, self._ids, self._values):
            reader = _Reader(value)
            element.id.data, element.id.size = _memory.address(id), len(id)
            element.size = _size(value)
            element.read = _address
            element.payload = _callbacks.register(reader)
            self._payloads.append(element.payload)
        return ctypes.addressof(self._array), len(self._ids), ctypes.sizeof(_structs.llvs_value_source)

    def __exit__(self, *_: object) -> None:
        for payload in self._payloads:
            _callbacks.registry.pop(payload, None)
        holding.__exit__()


class Source:
    """One file or iterable for one call: `with Source(value) as (read, payload)`."""

    __slots__ = ("_payload", "_value")

    def __init__(self, value: Any) -> None:
        self._value = value

    def __enter__(self) -> tuple[Any, int]:
        holding.__enter__()
        self._payload = _callbacks.register(_Reader(self._value))
        return _address, self._payload

    def __exit__(self, *_: object) -> None:
        _callbacks.registry.pop(self._payload, None)
        holding.__exit__()
