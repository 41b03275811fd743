"""The store: a history of versions, and what prevails at each.

Opening one and making versions are here; reading the history is in `_history`, reading values in `_values`, differences in
`_differences`, merging in `_merging`, what concerns the store as a whole in `_maintenance`,
and packs that the program carries in `_packing`.
"""

from __future__ import annotations

import ctypes
import os
from typing import Any, Callable, Iterable, Optional, Union

from . import _abi, _constants as c, _metadata, errors
from ._change_array import CHANGE_SIZE, ChangeArray, Entries
from ._differences import Differences
from ._handle import Handle
from ._history import HistoryReading, take_version, the
from ._memory import PathLike, copy, path_bytes, version_bytes
from ._merging import Merging
from ._options import NO_OPTIONS, StoreOptions, VersionOptions
from ._maintenance import Maintenance
from ._packing import Packing
from ._values import ValueReading
from .control import CancelToken, Control, ProgressCallback
from .versions import AnyVersion, Change, Version
from .observer import Observer, notify_thunk, observe
from .storage import Storage
from .words import Compaction, Durability, StorageKind, ValueDifferences

lib = _abi.lib
byref = ctypes.byref


def place_of_store(path: str, kind: Union[str, Storage]) -> str:
    """Where a store is, for `repr`."""
    if isinstance(kind, str):
        return repr(path) if path or kind != "memory" else "in memory"
    return f"{path!r} on {kind!r}" if path else f"on {kind!r}"


class Store(HistoryReading, ValueReading, Differences, Merging, Packing, Maintenance):
    """A versioned key-value store.

        with llvs.Store("notes.llvs") as store:
            v1 = store.make_version(insert={"note/1": b"hello"})
            store.value("note/1", at=v1)

    Safe from all threads. A store does not survive `os.fork`: in the child every call raises `ForkedError`; open it again there.
    While one with `storage="sqlite"` is open, no child can open such a store: use `multiprocessing` with `"spawn"`.
    Close it in the end: calls that run on other threads are waited for.
    """

    _release = "llvs_store_free"
    _end = "llvs_store_close"

    def __init__(
        self,
        path: Optional[PathLike] = None,
        *,
        storage: Union[StorageKind, Storage] = "file",
        durability: Durability = "full",
        memory_budget: int = 0,
        read_only: bool = False,
        create: bool = True,
        cache_directory: Optional[PathLike] = None,
        compaction: Compaction = "automatic",
        compaction_grace: Optional[float] = None,
        busy_timeout: Optional[float] = None,
        file_mode: Optional[int] = None,
        differences: ValueDifferences = "auto",
        progress: Optional[ProgressCallback] = None,
        cancel: Optional[CancelToken] = None,
    ) -> None:
        """Opens a store, or makes it.

        path: a directory (storage "file") or a database file ("sqlite"); not needed for "memory" or a `Storage` object.
        durability: "full" (nothing acknowledged is lost in a power cut) or "normal" (the newest versions may be; the rest is whole).
        memory_budget: bytes of caches in memory; 0: 64 MiB.
        create: False: a store that is not there is an error.
        cache_directory: for "file", a directory for caches outside the store.
        compaction: for "file", when what many handles wrote in many small files is put together: "automatic" (by itself when it pays, and
        on request, but not in a folder that a syncing program carries), "on_request" (by `compact` only, and not in such a folder),
        "always".
        compaction_grace: seconds for which files that were put together are kept, for whoever is copying the store; None: 900.
        busy_timeout: with "sqlite", seconds for which a call waits while others write before it raises BusyError; None: 10.
        file_mode: permissions of files that are made, less what the umask takes; None: 0o600, for their owner alone.
        differences: whether values are stored as differences from earlier ones of the same id, where that takes less room: "auto" (in
        stores that are new, or have such values), "on", "off". A library from before differences cannot read versions that have some.

        progress, cancel: hear how far opening has come, in versions, and stop it: nothing is open then.

        Raises NotFoundError, NotDirectoryError, StorageError (not a store, of a newer format, ...), PermissionDeniedError,
        InvalidArgumentError, CancelledError.
        Cost: the size of the history's index, not of the values.
        """
        self._path, self._kind = os.fsdecode(path) if path is not None else "", storage
        self._observers: set[Observer] = set()
        options = StoreOptions(
            storage, durability, memory_budget, read_only, create, cache_directory, compaction, compaction_grace, busy_timeout, file_mode,
            differences,
        )
        if path is None and storage in ("file", "sqlite"):
            raise errors.InvalidArgumentError(f"a store with the storage {storage!r} needs a path")
        try:
            pointer = ctypes.c_void_p()
            control = Control(progress, cancel)
            options.struct.control = control.address
            with control:
                lib.llvs_store_open(path_bytes(path) if path is not None else b"", byref(options.struct), byref(pointer))
        finally:
            options.close()
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
        """Where the store is: an absolute path; empty for one in memory or in a `Storage` object."""
        with self._call as pointer:
            found = lib.llvs_store_path(pointer)
            return os.fsdecode(copy(found.data, found.size)) if found.size else ""

    def observe(self, callback: Callable[[], Any]) -> Observer:
        """Calls `callback()` soon after versions came into the store, whoever added them: other processes and handles, and this one by
        saving, merging, retrieving or reloading. They are in the history by then: there is no need to reload.

        On a thread of the library, one call at a time; what comes close together is one call. What others added before, and was not picked
        up yet, is the first. Nothing is polled, save on file systems that do not tell of changes (those of a network, say), where the
        store is looked at every two seconds. A store in memory or in a `Storage` object hears of what comes through this handle.
        """
        with self._call as pointer:
            return observe(lib.llvs_store_observe, (pointer,), notify_thunk, callback, self._observers)

    def close(self) -> None:
        """Flushes, seals and lets go of the files, and ends the observations. Waits for calls that run. Closing again does nothing."""
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
        """Records one version: all of it or, also across a crash, nothing.

        predecessor: the version it is based on; it starts from the values there. None: the version is a root, which starts from nothing.
        root: True says that this is meant. In a store that has versions already a further root is seldom what one wants, since nothing of
        what is in the store is in it: without `root=True` that is a ValueError. A first version needs no saying.
        insert, update: ids with bytes, as a mapping or pairs. Both set values; what is recorded is what is true. Instead of bytes
        a value may be a binary file, or an iterable of bytes, which is read while the version is made: with file storage one of more
        than 1 MiB goes straight to disk, and is never in memory as a whole. What reading raises comes out, and nothing is stored.
        remove: ids. changes: further `Change` objects. Each id at most once in all.
        metadata: whatever JSON can hold, by key; `bytes` are kept as they are. branch: the name of the version's branch.
        timestamp: seconds since 1970-01-01 UTC at which it is said to be made, later than the predecessor's; None: now, or a microsecond
        after the predecessor when the clock is behind that.
        id: the id to make it under; None: one that is computed from what the version holds (a UUID of version 8; callers cannot choose
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
