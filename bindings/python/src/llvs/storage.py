"""Storages written in Python: store the records of a store in any way you choose.

    class InMyDatabase(llvs.storage.Storage):
        def append(self, records): ...
        def scan(self, mark, report): ...
        def read(self, place, offset, size): ...

    store = llvs.Store(storage=InMyDatabase())
"""

from __future__ import annotations

import ctypes
from abc import ABC, abstractmethod
from array import array
from operator import index
from typing import Any, Callable, MutableMapping, Optional, Sequence

from . import _abi, errors
from ._abi import callbacks as _callbacks
from ._abi.handle import Handle
from ._abi.memory import as_bytes, copy, encode_name, text
from ._generated import constants as c, structs as _structs
from .store import _pages

__all__ = ["DictStorage", "Storage"]

lib = _abi.lib

#: Called by `scan` for each record: its place, its bytes (or at least its first 65536), and its size if those are not all.
Report = Callable[..., None]


class Storage(ABC):
    """Stores records: opaque bytes under numbers ("places") that the storage chooses.

    The store calls one method at a time, from any thread; a method must not call into that store. If a method raises, so does the call that
    runs it. An `llvs.Error` with the code DAMAGED, NO_SPACE, PERMISSION, IO, READ_ONLY, NOT_FOUND or BUSY keeps its meaning for the store;
    UNKNOWN_OUTCOME means that it is unknown whether the records are stored. Records contain checksums: changed bytes are reported as
    damage, never returned as values. One storage serves one open store at a time.
    """

    #: For messages.
    name: str = ""

    @abstractmethod
    def append(self, records: Sequence[bytes]) -> Sequence[int]:
        """Stores the records, all or none, also if there is a crash, and returns a place for each: 0 to 2**64 - 2."""

    @abstractmethod
    def scan(self, mark: int, report: Report) -> int:
        """Calls `report(place, record)` for each record after `mark`, by whatever process it was appended, and returns the new mark.

        Marks are the storage's own; it is 0 at first: report all. Long records may be reported as `report(place, first_bytes, size)` with
        at least 65536 bytes. A record may be reported again. It is called again until it reports nothing or does not move the mark.
        """

    @abstractmethod
    def read(self, place: int, offset: int, size: int) -> bytes:
        """Returns `size` bytes of a record from `offset` on; fewer if there are no more (the store reports that as damage)."""

    def sync(self) -> None:
        """Makes appended records safe from a power cut. Does nothing unless overridden."""

    def close(self) -> None:
        """Called when the store has finished with the storage, which may be opened again. Does nothing unless overridden."""

    def cache_get(self, name: str) -> Optional[bytes]:
        """Returns the cache blob of that name, or None. Caches are optional: override all three of these methods, or none."""
        raise NotImplementedError

    def cache_put(self, name: str, data: bytes) -> None:
        """Stores a cache blob."""
        raise NotImplementedError

    def cache_delete(self, name: str) -> None:
        """Deletes a cache blob; no effect if there is none."""
        raise NotImplementedError

    def _new_handle(self) -> StorageHandle:
        return StorageHandle(self)


class DictStorage(Storage):
    """A storage over a mapping from numbers to bytes, such as a `dict` or a `shelve`.

        records = {}
        with llvs.Store(storage=llvs.storage.DictStorage(records)) as store:
            store.make_version(insert={"note/1": b"hello"})
        with llvs.Store(storage=llvs.storage.DictStorage(records)) as store:     # all is there again
            ...
    """

    name = "dict"

    def __init__(self, records: Optional[MutableMapping[int, bytes]] = None) -> None:
        self.records: MutableMapping[int, bytes] = {} if records is None else records

    def append(self, records: Sequence[bytes]) -> Sequence[int]:
        first = len(self.records)
        self.records.update(zip(range(first, first + len(records)), records))
        return range(first, first + len(records))

    def scan(self, mark: int, report: Report) -> int:
        end = len(self.records)
        for place in range(mark, end):
            report(place, self.records[place])
        return end

    def read(self, place: int, offset: int, size: int) -> bytes:
        return self.records[place][offset : offset + size]


def _number(number: Any, what: str, last: int = (1 << 64) - 1) -> int:
    """Checks a number from a storage."""
    plain = index(number)
    if not 0 <= plain <= last:
        raise ValueError(f"{what} {plain}; it is a number from 0 to {last}")
    return plain


def _append(storage: Storage, records: int, count: int, places: int) -> None:
    answer = storage.append(_pages.bytes_array(records, count))
    chosen = array("Q", [_number(place, "append() returned the place", (1 << 64) - 2) for place in answer])
    if len(chosen) != count:
        raise ValueError(f"append() got {count} records and returned {len(chosen)} places")
    ctypes.memmove(places, chosen.tobytes(), 8 * count)


def _scan(storage: Storage, mark: int, reply: int) -> None:
    asking: list[int] = [reply]

    def report(place: int, record: bytes, size: Optional[int] = None) -> None:
        if not asking:
            raise ValueError("a record can be reported during the call of scan() only")
        data = as_bytes(record, "a record")
        total = len(data) if size is None else _number(size, "scan() reported a record of the size")
        lib.llvs_reply_record(asking[0], _number(place, "scan() reported the place", (1 << 64) - 2), total, data)

    cell = ctypes.c_uint64.from_address(mark)
    try:
        cell.value = _number(storage.scan(cell.value, report), "scan() returned the mark")
    finally:
        asking.clear()


def _read(storage: Storage, place: int, offset: int, buffer: int, size: int) -> None:
    data = as_bytes(storage.read(place, offset, size), "what read() returns")
    if len(data) < size:
        raise errors.make(
            c.ERROR_DAMAGED, f"record {place} of the storage {storage.name!r} has not the {size} bytes from {offset} on that it should have"
        )
    ctypes.memmove(buffer, data, size)


def _name(pointer: int) -> str:
    return text(_structs.llvs_bytes.from_address(pointer))


def _data(pointer: int) -> bytes:
    pair = _structs.llvs_bytes.from_address(pointer)
    return copy(pair.data, pair.size) if pair.size else b""


def _cache_get(storage: Storage, name: int, reply: int) -> None:
    found = storage.cache_get(_name(name))
    if found is not None:
        lib.llvs_reply_set(reply, 0, as_bytes(found))


_pointer, _size, _u64 = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint64
_THUNKS: dict[str, Any] = {
    "append": _callbacks.solicited([_pointer, _size, _pointer], _append),
    "scan": _callbacks.solicited([_pointer, _pointer], _scan),
    "read": _callbacks.solicited([_u64, _u64, _pointer, _size], _read),
    "sync": _callbacks.solicited([], lambda storage: storage.sync()),
    "close": _callbacks.solicited([], lambda storage: storage.close()),
    "cache_get": _callbacks.solicited([_pointer, _pointer], _cache_get),
    "cache_put": _callbacks.solicited([_pointer, _pointer], lambda storage, name, data: storage.cache_put(_name(name), _data(data))),
    "cache_delete": _callbacks.solicited([_pointer], lambda storage, name: storage.cache_delete(_name(name))),
}


class StorageHandle(Handle):
    """An `llvs_storage`; the store that uses it keeps it alive."""

    _release = "llvs_storage_free"
    _warns = False

    def __init__(self, storage: Storage) -> None:
        super().__init__(self._create(storage))

    @classmethod
    def of_pointer(cls, pointer: int) -> StorageHandle:
        """Takes ownership of a handle of the library."""
        handle = cls.__new__(cls)
        Handle.__init__(handle, pointer)
        return handle

    @staticmethod
    def _create(storage: Storage) -> int:
        names = ["append", "scan", "read", "sync", "close"]
        overridden = [
            getattr(type(storage), name, None) is not getattr(Storage, name) for name in ("cache_get", "cache_put", "cache_delete")
        ]
        if all(overridden):
            names += ["cache_get", "cache_put", "cache_delete"]
        elif any(overridden):
            raise TypeError(f"{type(storage).__name__} must have all of cache_get, cache_put and cache_delete, or none")
        callbacks = _structs.llvs_storage_callbacks(struct_size=ctypes.sizeof(_structs.llvs_storage_callbacks))
        for name in names:
            setattr(callbacks, name, ctypes.cast(_THUNKS[name], _pointer).value)
        pointer = ctypes.c_void_p()
        payload = _callbacks.register(storage)
        lib.llvs_storage_create(
            encode_name(storage.name), ctypes.byref(callbacks), payload, _callbacks.payload_free, ctypes.byref(pointer)
        )
        return pointer.value or 0

    def _what(self) -> str:
        return "the storage"
