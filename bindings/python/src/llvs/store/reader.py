"""Reads one value as a file, in parts, so that it need not be in memory as a whole."""

from __future__ import annotations

import ctypes
import io
import os
from typing import Any, Callable, Optional

from .. import _abi
from .._abi.handle import Handle
from .._abi.memory import Buffer, encode, piece
from .._generated import structs as _structs
from .versions import Reference

lib = _abi.lib
byref = ctypes.byref


class _Reader(Handle):
    """An `llvs_value_reader`."""

    _release = "llvs_value_reader_free"
    _warns = False

    def __init__(self, pointer: int, calls_back: bool) -> None:
        super().__init__(pointer)
        self._calls_back = calls_back

    def _what(self) -> str:
        return "the reader of a value"


class ValueReader(io.RawIOBase):
    """One value, as a binary file that is only read: `Store.open_value` opens it.

        with store.open_value("film", at=version) as film:
            film.seek(1_000_000)
            part = film.read(4096)

    It keeps reading that value, whatever is saved or compacted meanwhile, and checks all bytes. With the storage "file", a value above 1
    MiB is read in blocks of 64 KiB; the first read of a smaller one reads it as a whole and keeps it. With other storages, the first read
    of a value above 1 MiB reads it completely, to check it. A value that is stored as a difference is read as a whole by the first read,
    and kept. It needs no `BufferedReader`. Any thread may use it; all share one position, which `read_range` does not use.
    """

    def __init__(self, handle: _Reader, id: str, stored_version: str, size: int) -> None:
        self._handle = handle
        self._position = 0
        #: The value id.
        self.id = id
        #: The version that stored the bytes.
        self.stored_version = stored_version
        #: Bytes of the value.
        self.size = size

    def __repr__(self) -> str:
        return f"<llvs.store.ValueReader of {self.id!r}, {self.size} bytes>"

    @property
    def reference(self) -> Reference:
        """The reference of these bytes."""
        return Reference(self.id, self.stored_version)

    def read_range(self, offset: int, length: int) -> bytes:
        """Returns the bytes from `offset` on, at most `length`: fewer only at the end. Does not move the position.

        Raises StorageError (also for bytes that differ from what was written), ClosedError, and ValueError for numbers below zero.
        """
        if offset < 0 or length < 0:
            raise ValueError("an offset and a length are not below zero")
        wanted = max(0, min(length, self.size - offset))
        # The bytes have no other reference yet, so they may be written to.
        data: bytes = piece(None, wanted)
        got = self._read(offset, data, wanted) if wanted else 0
        return data if got == wanted else data[:got]

    def _read(self, offset: int, target: Any, room: int) -> int:
        self._checkClosed()
        got = ctypes.c_size_t()
        with self._handle._call as pointer:
            lib.llvs_value_reader_read(pointer, offset, target, room, byref(got))
        return got.value

    def _checkClosed(self) -> None:
        if self.closed:
            raise ValueError("I/O operation on closed file.")

    def readable(self) -> bool:
        """True."""
        self._checkClosed()
        return True

    def seekable(self) -> bool:
        """True."""
        self._checkClosed()
        return True

    def tell(self) -> int:
        """Returns the position at which the next read begins."""
        self._checkClosed()
        return self._position

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Moves the position, also beyond the end, and returns it."""
        self._checkClosed()
        if whence not in (os.SEEK_SET, os.SEEK_CUR, os.SEEK_END):
            raise ValueError(f"whence is 0, 1 or 2, not {whence!r}")
        start = 0 if whence == os.SEEK_SET else self._position if whence == os.SEEK_CUR else self.size
        if start + offset < 0:
            raise ValueError(f"the position {start + offset} is below zero")
        self._position = start + offset
        return self._position

    def readinto(self, buffer: Buffer, /) -> int:
        """Fills a writable buffer from the position on, as far as there are bytes, and returns how many. Errors as for `read_range`."""
        self._checkClosed()
        with memoryview(buffer) as view, view.cast("B") as target:
            room = min(len(target), max(0, self.size - self._position))
            if not room:
                return 0
            memory = (ctypes.c_char * room).from_buffer(target)
            try:
                got = self._read(self._position, byref(memory), room)
            finally:
                del memory
        self._position += got
        return got

    def read(self, size: Optional[int] = -1, /) -> bytes:
        """Returns the next `size` bytes, fewer only at the end; without a size, all that are left. Errors as for `read_range`."""
        self._checkClosed()
        data = self.read_range(self._position, self.size if size is None or size < 0 else size)
        self._position += len(data)
        return data

    def readall(self) -> bytes:
        """All bytes from the position on."""
        return self.read()

    def close(self) -> None:
        """Releases it. Closing again does nothing."""
        handle = getattr(self, "_handle", None)
        if handle is not None:
            handle.close()
        super().close()


def open_value(store: Handle, id: str, at: bytes) -> Optional[ValueReader]:
    """Opens the value that prevails under an id at a version of a store; None if there is none."""
    pointer, size, stored = ctypes.c_void_p(), ctypes.c_uint64(), _structs.llvs_version_id()
    with store._call as handle:
        lib.llvs_store_open_value(handle, encode(id), at, byref(pointer), byref(size), byref(stored))
    return None if not pointer.value else ValueReader(_Reader(pointer.value, store._calls_back), id, stored.text.decode(), size.value)


def required(reader: Optional[ValueReader], id: str) -> ValueReader:
    """Returns the reader; raises KeyError if there is none."""
    if reader is None:
        raise KeyError(id)
    return reader


def range_of(reader: Optional[ValueReader], offset: int, length: int) -> Optional[bytes]:
    """A part of what is then closed again; None when there is none."""
    if reader is None:
        return None
    with reader:
        return reader.read_range(offset, length)


def size_of(reader: Optional[ValueReader]) -> Optional[int]:
    """The size of what is then closed again; None when there is none."""
    if reader is None:
        return None
    with reader:
        return reader.size
