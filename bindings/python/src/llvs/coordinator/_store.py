"""A coordinator's store, and the version in it that reads and saves start from."""

from __future__ import annotations

import ctypes
from typing import Any, Callable, Iterable, Optional, Union

from .. import _abi
from .._abi import callbacks as _callbacks, metadata as _metadata
from .._abi.handle import Handle
from .._abi.memory import version_bytes
from .._generated import structs as _structs
from ..control import Observer, observe
from ..storage import Storage
from ..store import _pages
from ..store._change_array import CHANGE_SIZE, ChangeArray, Entries
from ..store._options import NO_OPTIONS, VersionOptions
from ..store.store import Store
from ..store.versions import AnyVersion, Change, SavedVersion, Version
from ..words import StorageKind

lib = _abi.lib
byref = ctypes.byref

MOVE_SIZE = ctypes.sizeof(_structs.llvs_move)


def _moved(target: Optional[Callable[[str], Any]], version: int) -> None:
    if target is not None:
        target(_structs.llvs_version_id.from_address(version).text.decode())


_moved_thunk = _callbacks.unsolicited([ctypes.c_void_p], _moved, "a callback for changes of the current version")


class CoordinatorStore(Handle):
    """The store, the current version, and saving on top of it."""

    _path: str
    _kind: Union[StorageKind, Storage]
    _store: Optional[Store]
    _storage_calls_back: bool
    _observers: set[Observer]

    @property
    def store(self) -> Store:
        """The store. Closing it ends the coordinator's work as well."""
        with self._call as pointer:
            if self._store is None:
                store = ctypes.c_void_p()
                lib.llvs_coordinator_store(pointer, byref(store))
                adopted = Store._adopt(store.value or 0, self._path, self._kind)
                adopted._warns = False  # type: ignore[misc]
                adopted._calls_back = True
                adopted._storage_calls_back = self._storage_calls_back
                self._store = adopted
            return self._store

    @property
    def current_version(self) -> Version:
        """The version that reads and saves start from. In a new store it is the empty root, which is the same everywhere.

        It may be set, to any version of the store or its id. Setting it raises UnknownVersionError.
        """
        return self.store[self._current_id]

    @current_version.setter
    def current_version(self, version: AnyVersion) -> None:
        with self._call as pointer:
            lib.llvs_coordinator_set_current_version(pointer, version_bytes(version))

    @property
    def _current_id(self) -> str:
        """The id of the current version, which is all that most calls need."""
        found = _structs.llvs_version_id()
        with self._call as pointer:
            lib.llvs_coordinator_current_version(pointer, byref(found))
        return str(found.text.decode())

    @property
    def missing_version(self) -> Optional[str]:
        """The id of the version at which the coordinator was when it was last used, if the store lacked that when it was opened; else None.

        The version is damaged, lost or pending, and the coordinator started at the most recent head without a branch, or at the empty root.
        Verify the store, and exchange; after the version has arrived, set `current_version` to it.
        """
        found = _structs.llvs_version_id()
        with self._call as pointer:
            lib.llvs_coordinator_missing_version(pointer, byref(found))
        return str(found.text.decode()) or None

    def branch_version(self, branch: str) -> Optional[Version]:
        """Returns the most recent head on a branch; None if there is none."""
        heads = self.store.heads(branch=branch, limit=1)
        return heads[0] if heads else None

    def save(
        self,
        *,
        insert: Optional[Entries] = None,
        update: Optional[Entries] = None,
        remove: Optional[Iterable[str]] = None,
        changes: Optional[Iterable[Change]] = None,
        metadata: Optional[_metadata.Metadata] = None,
        branch: Optional[str] = None,
        expected: Optional[AnyVersion] = None,
        merges: bool = False,
        timestamp: Optional[float] = None,
        group: Optional[str] = None,
        description: Optional[str] = None,
    ) -> Optional[SavedVersion]:
        """Records changes on top of the current version, which moves; with `branch`, on top of the most recent head of that branch.

        Returns None if nothing was stored (no metadata, and no changes except removals of absent values); else the version, with how the
        current version moved. Concurrent saves are made one on top of the other. With `expected`, nothing is stored if another version is
        current: MovedError. With `merges` as well, and without a branch, it is saved nevertheless. If one of the saved values has changed
        since `expected`, the new version is made on `expected` and merged with the current one at once, by the arbiter of the coordinator,
        as if two devices had saved. If there are rules for a value, no change of it is lost, and a place that both changed is a conflict. A
        value without rules is merged as a whole: by most recent change, this save wins, and no conflict reports the other one. If the merge
        fails, the save is a head of its own, which the next `merge` merges. MovedError then only if the current version does not descend
        from `expected`. `timestamp` is the version's time in seconds since 1970, instead of the clock's; it must be later than its
        predecessor's.
        group: saves of one device, one after the other, that name one group are undone together. description: what the save did, for a
        person: `undo` and `undo_description` return it. Both are in the metadata, under "__llvs_group" and "__llvs_description". Parameters
        and errors as for `Store.make_version`.
        """
        packed = ChangeArray(insert, update, remove, changes)
        if group is not None or description is not None:
            marks = (("__llvs_group", group), ("__llvs_description", description))
            metadata = {**(metadata or {}), **{key: text for key, text in marks if text is not None}}
        given = (metadata, branch, expected, timestamp)
        is_plain = all(one is None for one in given) and not packed.sources and not merges
        wanted = None if expected is None else version_bytes(expected)
        with (
            NO_OPTIONS if is_plain else VersionOptions(None, branch, metadata, packed.sources, timestamp, wanted, merges)
        ) as options, self._call as pointer:
            versions, move = ctypes.c_void_p(), _structs.llvs_move(struct_size=MOVE_SIZE)
            lib.llvs_coordinator_save(pointer, packed.address, packed.count, CHANGE_SIZE, options, None, byref(versions), byref(move))
            found = _pages.versions(versions.value)
            return SavedVersion(found[0], move) if found else None

    def observe(self, callback: Callable[[str], Any]) -> Observer:
        """Registers a callback for moves of the current version: `callback(version id)` is called on the thread whose call moved it."""
        with self._call as pointer:
            return observe(lib.llvs_coordinator_observe, (pointer,), _moved_thunk, callback, self._observers)
