"""The coordinator: a store, a current version, exchanges and an arbiter. The short way to use all this."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import ItemsView, KeysView
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any, Callable, Iterable, Iterator, Mapping, Optional, TypeVar, Union, overload

import llvs

from . import _abi, _callbacks, _constants as c, _metadata, _pages, _structs, errors, reader
from ._changes import CHANGE_SIZE, ChangeArray, Entries
from ._handle import Handle
from ._options import NO_OPTIONS, StoreOptions, VersionOptions, durability_number
from ._memory import Column, PathLike, encode, path_bytes, version_bytes
from .control import CancelToken, Control, ProgressCallback
from .exchange import BootstrapResult, ExchangeResult, MergeResult, SyncResult, exchange_options, moves, take_result, take_sync_result
from .merge import AnyArbiter, ArbiterHandle, Heads, MergeOptions, Reverted, take_reverted
from .versions import AnyVersion, Change, SavedVersion, Value, Version
from .observer import Observer, notify_thunk, observe
from .reader import ValueReader
from .state import Range, State, key_of
from .storage import Storage
from .store import Store, place_of_store
from .transport import Place, Transport, TransportHandle, name_of, place_of

lib = _abi.lib
byref = ctypes.byref

_Default = TypeVar("_Default")
_Model = TypeVar("_Model")
_MOVE_SIZE = ctypes.sizeof(_structs.llvs_move)
_SNAPSHOTS = {"off": c.SNAPSHOT_OFF, "auto": c.SNAPSHOT_AUTO}


def _moved(target: Optional[Callable[[str], Any]], version: int) -> None:
    if target is not None:
        target(_structs.llvs_version_id.from_address(version).text.decode())


_moved_thunk = _callbacks.unsolicited([ctypes.c_void_p], _moved, "a callback for changes of the current version")


class Coordinator(Handle):
    """A store with a current version, from which reads and saves start.

        with llvs.Coordinator("notes.llvs", exchange="/shared/folder") as notes:
            notes.save(update={"note/1": b"hello"})
            notes.exchange()
            notes.merge()
            notes["note/1"]

    `notes[id]`, `id in notes`, `notes.get(id)`, iteration, `len`, `notes.items()` and `notes.prefix(...)` read at the current version, each
    as it is
    then: who reads several values takes `notes.at()` once, which does not move. A coordinator is true, however few values there are.

    Safe from all threads.
    """

    _release = "llvs_coordinator_free"
    _end = "llvs_coordinator_close"
    _exit_order = 3
    _calls_back = True

    def __init__(
        self,
        path: Optional[PathLike] = None,
        *,
        exchange: Optional[Place] = None,
        arbiter: Optional[AnyArbiter] = None,
        metadata: Optional[_metadata.Metadata] = None,
        schema: Optional[Union[Mapping[str, Any], bytes]] = None,
        device: str = "",
        name: str = "",
        snapshots: str = "off",
        exchange_durability: str = "full",
        storage: Union[str, Storage] = "file",
        durability: str = "full",
        memory_budget: int = 0,
        read_only: bool = False,
        create: bool = True,
        cache_directory: Optional[PathLike] = None,
        compaction: str = "automatic",
        compaction_grace: Optional[float] = None,
        busy_timeout: Optional[float] = None,
        file_mode: Optional[int] = None,
        progress: Optional[ProgressCallback] = None,
        cancel: Optional[CancelToken] = None,
    ) -> None:
        """Opens a coordinator, and its store.

        exchange: a first exchange: the path of a folder, a URL, a `Remote`, or a `Transport` (under its `name`), as for `Exchange`; further
        ones by `attach`.
        arbiter: decides conflicts; None: `Rules()`. metadata: of every save; what a save gives itself goes before.
        schema: rules for merging that the app brings along, which are registered as by `register_schema`.
        device: names the device, or the person at it, whose saves `undo` takes back: the same each time, and another on each device. Saves
        then carry it in their metadata, under "__llvs_device".
        name: under which the current version is kept, 1 to 40 of [a-z0-9._-], "" for "main": two processes with one store need one each.
        snapshots: "auto" keeps a snapshot beside each exchange up to date; "off".
        exchange_durability: of exchanges that are given as URLs; see the `durability` of `Exchange`.
        The rest is as for `Store`. Errors: those of `Store` and `Exchange`, InvalidMetadataError.
        """
        self._path, self._kind = os.fsdecode(path) if path is not None else "", storage
        self._store: Optional[Store] = None
        self._observers: set[Observer] = set()
        self._transports: list[TransportHandle] = []
        if snapshots not in _SNAPSHOTS:
            raise errors.InvalidArgumentError(f"{snapshots!r} is no snapshot policy: use off or auto")
        if exchange is not None:
            exchange = place_of(exchange)
        if path is None and storage in ("file", "sqlite"):
            raise errors.InvalidArgumentError(f"a store with the storage {storage!r} needs a path")
        self._exchange_durability = exchange_durability
        durability_number(exchange_durability)
        entries = _metadata.Entries(metadata)
        pieces = Column([encode(name), encode(device)])
        options = StoreOptions(
            storage, durability, memory_budget, read_only, create, cache_directory, compaction, compaction_grace, busy_timeout, file_mode
        )
        decides = ArbiterHandle(arbiter, lambda: self.store) if arbiter is not None else None
        pointer = ctypes.c_void_p()
        try:
            made = _structs.llvs_coordinator_options(
                struct_size=ctypes.sizeof(_structs.llvs_coordinator_options),
                snapshot_policy=_SNAPSHOTS[snapshots],
                store=ctypes.addressof(options.struct),
                arbiter=decides._pointer if decides is not None else None,
                metadata=entries.address,
                metadata_count=entries.count,
            )
            if pieces.sizes[0]:
                made.name.data, made.name.size = pieces.addresses[0], pieces.sizes[0]
            if pieces.sizes[1]:
                made.device.data, made.device.size = pieces.addresses[1], pieces.sizes[1]
            control = Control(progress, cancel)
            options.struct.control = control.address
            with control:
                lib.llvs_coordinator_open(path_bytes(path) if path is not None else b"", byref(made), byref(pointer))
        finally:
            options.close()
            if decides is not None:
                decides.close()
        super().__init__(pointer.value or 0)
        self._storage_calls_back = isinstance(storage, Storage)
        if exchange is not None or schema is not None:
            try:
                if schema is not None:
                    self.register_schema(schema)
                if exchange is not None:
                    self.attach(exchange)
            except BaseException:
                self.close()
                raise

    def _what(self) -> str:
        return f"the coordinator of {self._path}" if self._path else "the coordinator"

    def _detail(self) -> str:
        return place_of_store(self._path, self._kind)

    def close(self) -> None:
        """Persists its state and closes its exchanges and its store. Closing again does nothing. Raises StorageError."""
        for observer in tuple(self._observers):
            observer.close()
        try:
            super().close()
        finally:
            for transport in self._transports:
                transport.close()
            if self._store is not None:
                self._store.close()

    @property
    def store(self) -> Store:
        """Its store. Closing that ends the coordinator's work as well."""
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
    def current_version(self) -> str:
        """The id of the version that reads and saves start from. A new store's is the empty root, the same everywhere.

        May be set to any version of the store. Raises UnknownVersionError then.
        """
        found = _structs.llvs_version_id()
        with self._call as pointer:
            lib.llvs_coordinator_current_version(pointer, byref(found))
        return str(found.text.decode())

    @current_version.setter
    def current_version(self, version: AnyVersion) -> None:
        with self._call as pointer:
            lib.llvs_coordinator_set_current_version(pointer, version_bytes(version))

    @property
    def missing_version(self) -> Optional[str]:
        """Where the coordinator was when it was last used, when the store had not got that version as it was opened; else None.

        The version is damaged or lost, or waits for something that is missing, and the coordinator went on at the most recent head
        without a branch, or at the empty root. Verify the store, and exchange; once the version is there, set `current_version` to it.
        """
        found = _structs.llvs_version_id()
        with self._call as pointer:
            lib.llvs_coordinator_missing_version(pointer, byref(found))
        return str(found.text.decode()) or None

    def branch_version(self, branch: str) -> Optional[str]:
        """The id of the most recent head on a branch; None when there is none."""
        heads = self.store.heads_on_branch(branch)
        return heads[0].id if heads else None

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
        timestamp: Optional[float] = None,
        group: Optional[str] = None,
        description: Optional[str] = None,
    ) -> Optional[SavedVersion]:
        """Records changes on top of the current version, which moves; with `branch`, on top of the most recent head of that branch.

        None when nothing was stored (no changes and no metadata); else the version, with where the current version went. Concurrent saves
        each go on the one before.
        With `expected`, nothing is stored when another version is current by now: MovedError. `timestamp` is the version's time in seconds
        since 1970, instead of the clock's; it is later than its predecessor's in any case.
        group: saves of one device, one after the other, that name one group are undone together. description: what the save did, for a
        person:
        `undo` and `undo_description` give it back. Both stand in the metadata, under "__llvs_group" and "__llvs_description".
        Parameters and errors as for `Store.make_version`.
        """
        packed = ChangeArray(insert, update, remove, changes)
        if group is not None or description is not None:
            marks = (("__llvs_group", group), ("__llvs_description", description))
            metadata = {**(metadata or {}), **{key: text for key, text in marks if text is not None}}
        is_plain = not (metadata is not None or branch is not None or packed.sources or expected is not None or timestamp is not None)
        wanted = None if expected is None else version_bytes(expected)
        with (
            NO_OPTIONS if is_plain else VersionOptions(None, branch, metadata, packed.sources, timestamp, wanted)
        ) as options, self._call as pointer:
            versions, move = ctypes.c_void_p(), _structs.llvs_move(struct_size=_MOVE_SIZE)
            lib.llvs_coordinator_save(pointer, packed.address, packed.count, CHANGE_SIZE, options, None, byref(versions), byref(move))
            found = _pages.versions(versions.value)
            return SavedVersion(found[0], move) if found else None

    def transaction(
        self, *, metadata: Optional[_metadata.Metadata] = None, group: Optional[str] = None, description: Optional[str] = None
    ) -> AbstractContextManager[llvs.Transaction]:
        """Several values read and written together, and saved as one version at the end of the block; nothing when the block raises.

            with notes.transaction() as values:
                values["from"], values["to"] = values["to"], values["from"]

        `values` is a mutable mapping of the values at the version that is current at the beginning. Where the current version moves
        meanwhile, the save goes on top of that, unless a value that the block read or wrote has changed there. metadata, group,
        description: as for
        `save`.

        Raises MovedError then (`value_id` is that value), and what `save` raises; nothing is stored.
        """
        from .transaction import transaction

        return transaction(self, metadata, group=group, description=description)

    def transact(
        self,
        function: Callable[[llvs.Transaction], _Model],
        *,
        metadata: Optional[_metadata.Metadata] = None,
        group: Optional[str] = None,
        description: Optional[str] = None,
    ) -> _Model:
        """Calls `function` with the values of a transaction, saves, and returns what it returned; again as long as a value moves meanwhile.

        The function may be called several times, so it changes nothing but the values. Raises what it raises, and what `save` raises.
        """
        from .transaction import transact

        return transact(self, function, metadata, group=group, description=description)

    def value(self, id: str, *, at: Optional[AnyVersion] = None) -> Optional[Value]:
        """The value that prevails at the current version, or at another. As `Store.value`."""
        if at is not None:
            return self.store.value(id, at=at)
        data, stored = _structs.llvs_buffer(), _structs.llvs_version_id()
        with self._call as pointer:
            lib.llvs_coordinator_value(pointer, encode(id), byref(data), byref(stored))
        found = _pages.take_buffer(data)
        return None if found is None else Value(id, found, stored.text.decode())

    def open_value(self, id: str, *, at: Optional[AnyVersion] = None) -> ValueReader:
        """The value that prevails at the current version, or at another, as a binary file that is read in parts. As `Store.open_value`."""
        return reader.required(self._open_value(id, at), id)

    def read_range(self, id: str, offset: int, length: int, *, at: Optional[AnyVersion] = None) -> Optional[bytes]:
        """A part of a value. As `Store.read_range`."""
        return reader.range_of(self._open_value(id, at), offset, length)

    def value_size(self, id: str, *, at: Optional[AnyVersion] = None) -> Optional[int]:
        """Bytes of a value, without reading it. As `Store.value_size`."""
        return reader.size_of(self._open_value(id, at))

    def _open_value(self, id: str, at: Optional[AnyVersion]) -> Optional[ValueReader]:
        return reader.open_value(self.store, id, version_bytes(self.current_version if at is None else at))

    def values(self, ids: Iterable[str], *, at: Optional[AnyVersion] = None) -> list[Optional[Value]]:
        """Many values at once. As `Store.values`."""
        return self.store.values(ids, at=self.current_version if at is None else at)

    def at(self, version: Optional[AnyVersion] = None) -> State:
        """The values at the current version (as it is now), or at another, as a read-only mapping from ids to bytes."""
        return self.store.at(self.current_version if version is None else version)

    # The values at the current version

    def __getitem__(self, id: str) -> bytes:
        found = None if key_of(id) is None else self.value(id)
        if found is None:
            raise KeyError(id)
        return found.data

    def __contains__(self, id: object) -> bool:
        return id in self.at()

    def __iter__(self) -> Iterator[str]:
        return iter(self.at())

    def __len__(self) -> int:
        return len(self.at())

    def __bool__(self) -> bool:
        return True

    @overload
    def get(self, id: str, /) -> Optional[bytes]: ...

    @overload
    def get(self, id: str, /, default: Union[bytes, _Default]) -> Union[bytes, _Default]: ...

    def get(self, id: str, /, default: Any = None) -> Any:
        """The bytes under an id at the current version, or the default."""
        return self.at().get(id, default)

    def keys(self) -> KeysView[str]:
        """The ids at the current version, in byte order."""
        return self.at().keys()

    def items(self) -> ItemsView[str, bytes]:
        """Ids and bytes at the current version, fetched by the page."""
        return self.at().items()

    def prefix(self, prefix: str) -> State:
        """The values at the current version whose ids begin with `prefix`."""
        return self.at().prefix(prefix)

    def range(self, start: str = "", stop: Optional[str] = None, *, reverse: bool = False) -> State:
        """The values at the current version whose ids are not before `start` and before `stop` (None: to the last), by bytes.

        reverse: from the last id to the first.
        """
        return self.at().range(start, stop, reverse=reverse)

    def collection(self, model: type[_Model]) -> llvs.Collection[_Model]:
        """The objects of a model, as a mutable mapping from ids to objects; a class becomes a model by `llvs.model`.

        The model's rules for merging are added to those of the store as by `register_schema`, unless it is opened for reading. Those that
        the store has otherwise stand: `SchemaWarning`, and `Collection.contradictions`.
        Raises TypeError for a class that is no model, StorageError.
        """
        from .models.collection import Collection

        return Collection(self, model)

    def version_at(self, time: Union[datetime, float]) -> Optional[Version]:
        """The version that stood at a time on the way to the current one. As `Store.version_at`."""
        return self.store.version_at(time, self.current_version)

    def schema(self) -> llvs.Schema:
        """The rules for merging that the store holds at the current version. As `Store.schema`."""
        return self.store.schema(self.current_version)

    def register_schema(self, rules: Union[Mapping[str, Any], bytes]) -> llvs.Schema:
        """Adds rules for merging ({"merge": 1, "ids": {...}}) to those of the store, as `Store.schema` says.

        What is new is saved as a version of its own, which becomes current; what the store holds already is not saved again. Where the two
        say different things about one pattern the store's rule stands, and the result tells of it in `contradictions`: to change it, save
        the value "__llvs_schema".

        While nothing was ever saved, the rules are remembered, and written right before the first save, or when the first content that
        arrives is merged. Devices that start apart with the same rules then make one and the same first version.

        Raises InvalidArgumentError, UnsupportedError, StorageError; nothing is stored then.
        """
        from .documents import rules_text, take_schema

        text = rules_text(rules)
        made, move = ctypes.c_void_p(), _structs.llvs_move(struct_size=_MOVE_SIZE)
        with self._call as pointer:
            lib.llvs_coordinator_register_schema(pointer, text, byref(move), byref(made))
        return take_schema(made.value)

    def open_conflicts(self) -> llvs.Conflicts:
        """The conflicts that are open at the current version. As `Store.open_conflicts`."""
        return self.store.open_conflicts(self.current_version)

    def choose(self, conflict: llvs.Conflict, choice: str, *, metadata: Optional[_metadata.Metadata] = None) -> SavedVersion:
        """Closes an open conflict by a save: what was chosen ("newer", "older", or "result" for what stands) becomes current.

        Raises MovedError when something else stands there by now, InvalidArgumentError, and what `save` raises. As `Store.choose`.
        """
        while True:
            at = self.current_version
            changes = self.store.choices(conflict, choice, at=at)
            try:
                saved = self.save(changes=changes, metadata=metadata, expected=at)
            except errors.MovedError:
                # Somebody else saved or merged meanwhile: looked at again, there.
                continue
            assert saved is not None
            return saved

    def undo(self, *, metadata: Optional[_metadata.Metadata] = None) -> Optional[Reverted]:
        """Takes back the last save of this device that was not undone yet; what others changed since stays. None: there is nothing to undo.

        A version of its own, which becomes current, made as by `Store.revert`. It is found in the history, so it goes on after a restart,
        and after syncs. When nothing of the save is left to take back, the result has no version, nothing is stored, and the next call goes
        on with the save before.

        Raises InvalidArgumentError (the coordinator has no device), StorageError. Cost: the versions since that save, and what it changed.
        """
        return self._undo(lib.llvs_coordinator_undo, metadata)

    def redo(self, *, metadata: Optional[_metadata.Metadata] = None) -> Optional[Reverted]:
        """Takes back the last undo of this device, when it saved nothing since. None: there is nothing to redo. Errors as for `undo`."""
        return self._undo(lib.llvs_coordinator_redo, metadata)

    @property
    def can_undo(self) -> bool:
        """Whether there is a save of this device to undo. Errors and cost as for `undo`."""
        return self._undo(lib.llvs_coordinator_undo, None, only_tell=True) is not None

    @property
    def can_redo(self) -> bool:
        """Whether there is an undo of this device to take back. Errors and cost as for `undo`."""
        return self._undo(lib.llvs_coordinator_redo, None, only_tell=True) is not None

    @property
    def undo_description(self) -> Optional[str]:
        """What the save that `undo` would take back did, as it was described; None when it was not, or there is none."""
        found = self._undo(lib.llvs_coordinator_undo, None, only_tell=True)
        return found.description if found else None

    @property
    def redo_description(self) -> Optional[str]:
        """The same of `redo`."""
        found = self._undo(lib.llvs_coordinator_redo, None, only_tell=True)
        return found.description if found else None

    def _undo(
        self, function: Any, metadata: Optional[_metadata.Metadata], *, only_tell: bool = False, version: bytes = b"", parent: int = 1
    ) -> Optional[Reverted]:
        options = MergeOptions(metadata, parent=parent, version=version)
        found = ctypes.c_void_p()
        with self._call as pointer:
            function(pointer, int(only_tell), options.reference, None, byref(found))
        return take_reverted(found.value) if found.value else None

    def revert(self, version: AnyVersion, *, parent: int = 1, metadata: Optional[_metadata.Metadata] = None) -> Reverted:
        """Takes back what a version changed, whoever saved it, in a version that becomes current. As `Store.revert`."""
        found = self._undo(lib.llvs_coordinator_undo, metadata, version=version_bytes(version), parent=parent)
        assert found is not None
        return found

    def attach(self, place: Place, *, name: Optional[str] = None) -> None:
        """Attaches a further exchange: the path of a folder, a URL, a `Remote`, or a `Transport`, whose state is kept under `name` (its own
        name, unless given).

        The name must be the same in every process. Errors as for `Exchange`.
        """
        place = place_of(place)
        with exchange_options(place, self._exchange_durability) as options, self._call as pointer:
            where = name if name is not None and isinstance(place, Transport) else name_of(place)
            lib.llvs_coordinator_attach(pointer, encode(where), options.reference)
            handle = options.keep()
        if handle is not None:
            self._transports.append(handle)

    def exchange(self, *, progress: Optional[ProgressCallback] = None, cancel: Optional[CancelToken] = None) -> ExchangeResult:
        """Retrieves, then sends, with each attached exchange in turn. The current version does not move.

        (Except before the first save: a retrieve then moves it to the most recent head without a branch; the result tells.) When one of
        several exchanges fails, the others have their turn all the same: the first failure is raised, and its `result` tells what was done,
        and by `exchanges` what became of each. Errors as for `Exchange.retrieve`.
        """
        with self._call as pointer, Control(progress, cancel) as control:
            return take_result(lib.llvs_coordinator_exchange, pointer, control)

    def merge(
        self,
        selection: Union[Heads, str] = Heads.UNBRANCHED,
        *,
        metadata: Optional[_metadata.Metadata] = None,
        progress: Optional[ProgressCallback] = None,
        cancel: Optional[CancelToken] = None,
    ) -> MergeResult:
        """Merges heads into the current version, which moves to the result; returns where it moved, true when it did.

        Errors as for `Store.merge_heads`.
        """
        control = Control(progress, cancel)
        options = MergeOptions(metadata, selection=selection, control=control)
        move = _structs.llvs_move(struct_size=_MOVE_SIZE)
        with self._call as pointer, control:
            lib.llvs_coordinator_merge(pointer, options.reference, byref(move))
        return MergeResult(*moves(move))

    def sync(
        self,
        selection: Union[Heads, str] = Heads.UNBRANCHED,
        *,
        metadata: Optional[_metadata.Metadata] = None,
        progress: Optional[ProgressCallback] = None,
        cancel: Optional[CancelToken] = None,
    ) -> SyncResult:
        """A whole round: exchanges, merges what came, and exchanges again when that changed something.

        Without a connection, what is here already is merged all the same; the first failure of a part is raised then, and its `result`
        tells what was done.
        Errors as for `exchange` and `merge`.
        """
        control = Control(progress, cancel)
        options = MergeOptions(metadata, selection=selection, control=control)
        with self._call as pointer, control:
            return take_sync_result(lib.llvs_coordinator_sync, pointer, options.reference)

    def observe(self, callback: Callable[[str], Any]) -> Observer:
        """Calls `callback(version id)` after each change of the current version, on the thread whose call moved it."""
        with self._call as pointer:
            return observe(lib.llvs_coordinator_observe, (pointer,), _moved_thunk, callback, self._observers)

    def observe_exchanges(self, callback: Callable[[], Any]) -> Observer:
        """Calls `callback()` soon after the other side of an exchange attached now may have gained versions, on a thread of the library."""
        with self._call as pointer:
            return observe(lib.llvs_coordinator_observe_exchanges, (pointer,), notify_thunk, callback, self._observers)

    def bootstrap(self, *, progress: Optional[ProgressCallback] = None, cancel: Optional[CancelToken] = None) -> BootstrapResult:
        """Restores the first usable snapshot of the attached exchanges into a store that is empty or holds one version.

        The result is true when there was one, and tells where the current version went: to the most recent head without a branch when
        nothing had been saved yet.

        Raises SnapshotError, StorageError, TransportError, CancelledError.
        """
        restored, move = ctypes.c_uint32(), _structs.llvs_move(struct_size=_MOVE_SIZE)
        with self._call as pointer, Control(progress, cancel) as control:
            lib.llvs_coordinator_bootstrap(pointer, control, byref(restored), byref(move))
        return BootstrapResult(restored.value != 0, *moves(move))


def make_branch_name(base: str) -> str:
    """A branch name that nobody else has: the base, an underscore, a UUID."""
    import uuid

    encode(base)
    return f"{base}_{str(uuid.uuid4()).upper()}"


def default_path(application: str) -> str:
    """Where an application's store belongs on this platform: `$XDG_DATA_HOME/<name>/store.llvs` on Linux. Nothing is made.

    Raises InvalidArgumentError for what cannot be the name of a directory, NotFoundError where there is no home directory.
    """
    encode(application)
    if application in ("", ".", "..") or "/" in application or "\0" in application:
        raise errors.InvalidArgumentError(
            f"{application!r} cannot be the name of a directory; give a name without slashes and NULs that is not '.' or '..'"
        )
    # The specification wants relative values ignored.
    base = os.environ.get("XDG_DATA_HOME", "") if sys.platform != "darwin" else ""
    if not base.startswith("/"):
        home = os.environ.get("HOME", "")
        if not home:
            raise errors.NotFoundError(
                f"there is no home directory to keep the store of {application!r} in; set HOME or XDG_DATA_HOME, or give a path"
            )
        base = home + ("/Library/Application Support" if sys.platform == "darwin" else "/.local/share")
    return f"{base}/{application}/store.llvs"
