"""The coordinator: a store, its current version, exchanges and an arbiter in one object. Most programs need nothing else.

Opening and closing one, and transactions, are here; `_store` has the current version and saving, `_values` reading, `_rules` the rules for
merging, `_undo` undo, and `_sync` exchanges, merges and rounds of both.
"""

from __future__ import annotations

import ctypes
import os
from contextlib import AbstractContextManager
from typing import Any, Callable, Mapping, Optional, TypeVar, Union

import llvs

from .. import _abi, errors
from .._abi import metadata as _metadata
from .._abi.memory import Column, PathLike, encode, path_bytes
from .._generated import constants as c, structs as _structs
from ..control import CancelToken, Control, ProgressCallback
from ..exchange.transport import Place, place_of
from ..merge._arbiter_handle import ArbiterHandle
from ..merge.arbiters import AnyArbiter
from ..storage import Storage
from ..store._options import OpeningOptions, durability_number, required
from ..store.store import place_of_store
from ..words import Durability, StorageKind
from ._rules import CoordinatorRules
from ._sync import CoordinatorSync
from ._undo import CoordinatorUndo
from ._values import CoordinatorValues

lib = _abi.lib
byref = ctypes.byref

_Model = TypeVar("_Model")
_SNAPSHOTS = {"off": c.SNAPSHOT_OFF, "auto": c.SNAPSHOT_AUTO}


class Coordinator(CoordinatorValues, CoordinatorRules, CoordinatorUndo, CoordinatorSync):
    """A store with a current version, from which reads and saves start.

        with llvs.Coordinator("notes.llvs", exchange="/shared/folder") as notes:
            notes.save(update={"note/1": b"hello"})
            notes.exchange()
            notes.merge()
            notes["note/1"]

    `notes[id]`, `id in notes`, `notes.get(id)`, iteration, `len`, `notes.items()` and `notes.prefix(...)` read at the current version, each
    as it is then. To read several values at one version, use `notes.at()`, which does not move. A coordinator is true, even without values.

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
        storage: Union[StorageKind, Storage] = "file",
        durability: Durability = "full",
        read_only: bool = False,
        create: bool = True,
        options: Optional[llvs.CoordinatorOptions] = None,
        progress: Optional[ProgressCallback] = None,
        cancel: Optional[CancelToken] = None,
    ) -> None:
        """Opens a coordinator, and its store.

        path, storage, durability, read_only, create, progress, cancel: as for `Store`.
        exchange: a first exchange: the path of a folder, a URL, a `Remote`, a `Transport` or `RemoteFiles` (under its `name`), as for
        `Exchange`; further ones by `attach`.
        arbiter: decides conflicts; None: `Rules()`. metadata: of every save; entries that a save passes override these.
        schema: the app's rules for merging, which are registered as by `register_schema`. If those of the store have an unknown version,
        the coordinator opens nevertheless, and `schema().problem` says so.
        device: the name of the device, or of the person at it, whose saves `undo` reverts: the same each time, and different on each
        device. Saves carry it in their metadata, under "__llvs_device".
        options: what most programs leave as it is: the name of the current version for a second process, snapshots, exchanges with other
        implementations, and the options of the store, see `CoordinatorOptions`.

        Raises the errors of `Store` and `Exchange`, InvalidMetadataError.
        """
        self._path, self._kind = os.fsdecode(path) if path is not None else "", storage
        self._store = None
        self._observers = set()
        self._transports = []
        name, snapshots = "", c.SNAPSHOT_OFF
        self._exchange_durability, self._report_unportable, self._no_other_readers = "full", False, False
        if options is not None:
            required(options, "CoordinatorOptions")
            if options.snapshots not in _SNAPSHOTS:
                raise errors.InvalidArgumentError(f"{options.snapshots!r} is no snapshot policy: use off or auto")
            durability_number(options.exchange_durability)
            name, snapshots = options.name, _SNAPSHOTS[options.snapshots]
            self._exchange_durability = options.exchange_durability
            self._report_unportable, self._no_other_readers = options.report_unportable, options.no_other_readers
        if exchange is not None:
            exchange = place_of(exchange)
        if path is None and storage in ("file", "sqlite"):
            raise errors.InvalidArgumentError(f"a store with the storage {storage!r} needs a path")
        entries = _metadata.Entries(metadata)
        pieces = Column([encode(name), encode(device)])
        opening = OpeningOptions(storage, durability, read_only=read_only, create=create, options=options)
        decides = ArbiterHandle(arbiter, lambda: self.store) if arbiter is not None else None
        pointer = ctypes.c_void_p()
        try:
            made = _structs.llvs_coordinator_options(
                struct_size=ctypes.sizeof(_structs.llvs_coordinator_options),
                snapshot_policy=snapshots,
                store=ctypes.addressof(opening.struct),
                arbiter=decides._pointer if decides is not None else None,
                metadata=entries.address,
                metadata_count=entries.count,
            )
            if pieces.sizes[0]:
                made.name.data, made.name.size = pieces.addresses[0], pieces.sizes[0]
            if pieces.sizes[1]:
                made.device.data, made.device.size = pieces.addresses[1], pieces.sizes[1]
            control = Control(progress, cancel)
            opening.struct.control = control.address
            with control:
                lib.llvs_coordinator_open(path_bytes(path) if path is not None else b"", byref(made), byref(pointer))
        finally:
            opening.close()
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

    def transaction(
        self, *, metadata: Optional[_metadata.Metadata] = None, group: Optional[str] = None, description: Optional[str] = None
    ) -> AbstractContextManager[llvs.Transaction]:
        """Reads and writes several values together, and saves them as one version at the end of the block; nothing is saved if the block
        raises.

            with notes.transaction() as values:
                values["from"], values["to"] = values["to"], values["from"]

        `values` is a mutable mapping of the values at the version that is current at the beginning. If the current version moves meanwhile,
        the save is made on top of that, unless a value that the block read or wrote has changed there. metadata, group, description: as for
        `save`.

        In that case it raises MovedError (`value_id` is that value), and what `save` raises; nothing is stored.
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
        """Calls `function` with the values of a transaction, saves, and returns its result; retries if a value changes meanwhile.

        The function may be called several times, so it must change nothing except the values. Raises what it raises, and what `save`
        raises.
        """
        from .transaction import transact

        return transact(self, function, metadata, group=group, description=description)
