"""The store: a history of versions, and the values that prevail at each.

Opening one and making versions are here; reading the history is in `_history`, reading values in `_values`, differences in
`_differences`, merging in `_merging`, what concerns the store as a whole in `_maintenance`,
and packs that the program carries in `_packing`.
"""

from __future__ import annotations

import ctypes
import os
from typing import Any, Callable, Iterable, Optional, Union

import llvs

from .. import _abi, errors
from .._abi import metadata as _metadata
from .._abi.handle import Handle
from .._abi.memory import PathLike, copy, path_bytes, version_bytes
from .._generated import constants as c
from ..control import CancelToken, Control, Observer, ProgressCallback, notify_thunk, observe
from ..storage import Storage
from ..words import Durability, StorageKind
from ._change_array import CHANGE_SIZE, ChangeArray, Entries
from ._differences import Differences
from ._history import HistoryReading, take_version, the
from ._maintenance import Maintenance
from ._merging import Merging
from ._options import NO_OPTIONS, OpeningOptions, VersionOptions
from ._packing import Packing
from ._values import ValueReading
from .versions import AnyVersion, Change, Version

lib = _abi.lib
byref = ctypes.byref


def place_of_store(path: str, kind: Union[str, Storage]) -> str:
    """The place of a store, for `repr`."""
    if isinstance(kind, str):
        return repr(path) if path or kind != "memory" else "in memory"
    return f"{path!r} on {kind!r}" if path else f"on {kind!r}"


class Store(HistoryReading, ValueReading, Differences, Merging, Packing, Maintenance):
    """A versioned key-value store.

        with llvs.Store("notes.llvs") as store:
            v1 = store.make_version(insert={"note/1": b"hello"})
            store.value("note/1", at=v1)

    Safe from all threads. A store does not survive `os.fork`: in the child every call raises `ForkedError`; open it again there. While one
    with `storage="sqlite"` is open, no child can open such a store: use `multiprocessing` with `"spawn"`. Close it at the end: this waits
    for calls on other threads.
    """

    _release = "llvs_store_free"
    _end = "llvs_store_close"

    def __init__(
        self,
        path: Optional[PathLike] = None,
        *,
        storage: Union[StorageKind, Storage] = "file",
        durability: Durability = "full",
        read_only: bool = False,
        create: bool = True,
        options: Optional[llvs.StoreOptions] = None,
        progress: Optional[ProgressCallback] = None,
        cancel: Optional[CancelToken] = None,
    ) -> None:
        """Opens a store, or creates it.

        path: a directory (storage "file") or a database file ("sqlite"); not needed for "memory" or a `Storage` object.
        durability: "full" (a power cut loses no acknowledged version) or "normal" (it may lose the newest ones; the rest is whole).
        create: False: a store that does not exist is an error.
        options: what most programs leave as it is: caches, compaction, permissions of files and the like, see `StoreOptions`.
        progress, cancel: receive the progress of opening, in versions, and cancel it: then nothing is open.

        Raises NotFoundError, NotDirectoryError, StorageError (not a store, of a newer format, ...), PermissionDeniedError,
        InvalidArgumentError, CancelledError.
        Cost: the size of the history's index, not of the values.
        """
        self._path, self._kind = os.fsdecode(path) if path is not None else "", storage
        self._observers: set[Observer] = set()
        opening = OpeningOptions(storage, durability, read_only=read_only, create=create, options=options)
        if path is None and storage in ("file", "sqlite"):
            raise errors.InvalidArgumentError(f"a store with the storage {storage!r} needs a path")
        try:
            pointer = ctypes.c_void_p()
            control = Control(progress, cancel)
            opening.struct.control = control.address
            with control:
                lib.llvs_store_open(path_bytes(path) if path is not None else b"", byref(opening.struct), byref(pointer))
        finally:
            opening.close()
        super().__init__(pointer.value or 0)
        self._calls_back = self._storage_calls_back = isinstance(storage, Storage)

    @classmethod
    def _adopt(cls, pointer: int, path: str, kind: Union[StorageKind, Storage]) -> Store:
        store = cls.__new__(cls)
        store._path, store._kind = path, kind
        store._observers = set()
        Handle.__init__(store, pointer)
        return store

    def _what(self) -> str:
        return f"the store {self._path}" if self._path else "the store"

    def _detail(self) -> str:
        return place_of_store(self._path, self._kind)

    @property
    def path(self) -> str:
        """The absolute path of the store; empty for one in memory or in a `Storage` object."""
        with self._call as pointer:
            found = lib.llvs_store_path(pointer)
            return os.fsdecode(copy(found.data, found.size)) if found.size else ""

    def observe(self, callback: Callable[[], Any]) -> Observer:
        """Registers a callback for new versions in the store, whether added by other processes and handles, or through this one by saving,
        merging, retrieving or reloading. They are in the history by then: there is no need to reload.

        `callback()` is called on a thread of the library, one call at a time; versions that arrive close together cause one call. Versions
        that others added before, and that were not read yet, cause the first call. Nothing is polled, except on file systems that do not
        report changes (such as network file systems): there the store is polled every two seconds. For a store in memory or in a `Storage`
        object, only versions through this handle are reported.
        """
        with self._call as pointer:
            return observe(lib.llvs_store_observe, (pointer,), notify_thunk, callback, self._observers)

    def close(self) -> None:
        """Flushes, seals and closes the files, and ends the observations. Waits for running calls. Closing again does nothing."""
        for observer in tuple(self._observers):
            observer.close()
        super().close()

    # Making versions

    def make_version(
        self,
        predecessor: Optional[AnyVersion] = None,
        *,
        insert: Optional[Entries] = None,
        update: Optional[Entries] = None,
        remove: Optional[Iterable[str]] = None,
        changes: Optional[Iterable[Change]] = None,
        metadata: Optional[_metadata.Metadata] = None,
        branch: Optional[str] = None,
        id: Optional[str] = None,
        root: bool = False,
        timestamp: Optional[float] = None,
    ) -> Version:
        """Records one version: all of it or nothing, also if there is a crash.

        predecessor: the version whose values the new one starts from. None: the version is a root, which starts from an empty state. root:
        True confirms that a root is intended. In a store that has versions, a further root is seldom intended, since it has none of the
        store's values: without `root=True` it is a ValueError. The first version needs no confirmation.
        insert, update: ids with bytes, as a mapping or pairs. Both set values; the record gets the label that is correct. Instead of bytes
        a value may be a binary file, or an iterable of bytes, which is read while the version is made: with file storage, a value of more
        than 1 MiB is written directly to disk, and is never in memory as a whole. If reading raises, this raises the same exception, and
        nothing is stored.
        remove: ids. changes: further `Change` objects. Each id at most once in total.
        metadata: whatever JSON can hold, by key; `bytes` are kept as they are. branch: the name of the version's branch.
        timestamp: in seconds since 1970-01-01 UTC, later than the predecessor's; None: now, or a microsecond after the predecessor if the
        clock is behind that.
        id: the id of the new version; None: the content id, which is computed from its contents (a UUID of version 8; callers cannot choose
        such ids). Making the same version again under its id is not an error.

        Raises InvalidArgumentError (a further root), UnknownPredecessorError, DuplicateIDError, InvalidIDError, TooLargeError,
        InvalidReferenceError, InvalidMetadataError,
        VersionMismatchError, StorageError. Cost: the changes; O(log n) in the number of values.
        """
        packed = ChangeArray(insert, update, remove, changes)
        if predecessor is None:
            self._check_root(root, id)
        elif root:
            raise errors.InvalidArgumentError("root=True and a predecessor exclude each other: a root is a version without one")
        is_plain = not (metadata is not None or branch is not None or id is not None or packed.sources or timestamp is not None)
        with NO_OPTIONS if is_plain else VersionOptions(id, branch, metadata, packed.sources, timestamp) as options, self._call as pointer:
            return the(
                take_version(
                    lib.llvs_store_make_version,
                    pointer,
                    self._predecessor(predecessor),
                    packed.address,
                    packed.count,
                    CHANGE_SIZE,
                    options,
                    None,
                )
            )

    def _check_root(self, root: bool, id: Optional[str]) -> None:
        # Making a root again under its id stays harmless.
        if root or (id and self.version(id) is not None) or self.most_recent_head is None:
            return
        raise errors.InvalidArgumentError(
            f"{self._what()} has versions, and a version without a predecessor starts from nothing: give the version to go on from "
            "(make_version(store.most_recent_head, ...)), or root=True if a history apart from theirs is meant"
        )

    @staticmethod
    def _predecessor(version: Optional[AnyVersion]) -> bytes:
        if version is None:
            return b""
        data = version_bytes(version)
        if not data:
            raise errors.make(c.ERROR_INVALID_VERSION_ID, "the id of the predecessor is empty; leave it out to make a root")
        return data
