"""Syncing a coordinator with others: its exchanges, merging, syncs of both, and snapshots to start from."""

from __future__ import annotations

import ctypes
from typing import Any, Callable, Optional, Union

from .. import _abi
from .._abi import metadata as _metadata
from .._abi.memory import encode
from .._generated import structs as _structs
from ..control import CancelToken, Control, Observer, ProgressCallback, notify_thunk, observe
from ..exchange.exchange import exchange_options
from ..exchange.results import BootstrapResult, ExchangeResult, MergeResult, SyncResult, moves, take_result, take_sync_result
from ..exchange.transport import Place, TransportHandle, carrier_of, name_of, place_of
from ..merge.options import Heads, MergeOptions
from ..words import Durability, HeadSelection
from ._store import MOVE_SIZE, CoordinatorStore

lib = _abi.lib
byref = ctypes.byref


class CoordinatorSync(CoordinatorStore):
    """Exchanges and merges."""

    _exchange_durability: Durability
    _report_unportable: bool
    _no_other_readers: bool
    _transports: list[TransportHandle]

    def attach(self, place: Place, *, name: Optional[str] = None) -> None:
        """Attaches a further exchange: the path of a folder, a URL, a `Remote`, a `Transport` or `RemoteFiles`, whose state is stored under
        `name` (by default its own name).

        The name must be the same in every process. Errors as for `Exchange`.
        """
        place = place_of(place)
        with exchange_options(
            place, self._exchange_durability, report_unportable=self._report_unportable, no_other_readers=self._no_other_readers
        ) as options, self._call as pointer:
            where = name if name is not None and carrier_of(place) is not None else name_of(place)
            lib.llvs_coordinator_attach(pointer, encode(where), options.reference)
            handle = options.keep()
        if handle is not None:
            self._transports.append(handle)

    def exchange(self, *, progress: Optional[ProgressCallback] = None, cancel: Optional[CancelToken] = None) -> ExchangeResult:
        """Retrieves, then sends, with each attached exchange in turn; exchanges that failed to reach their place last time come last. The
        current version does not move.

        (Except before the first save: then a retrieve moves it to the most recent head without a branch, as the result says.) If one of
        several exchanges fails, the others run nevertheless: the first failure is raised, and its `result` has what was done, and in
        `exchanges` the result of each. Errors as for `Exchange.retrieve`.
        """
        with self._call as pointer, Control(progress, cancel) as control:
            return take_result(lib.llvs_coordinator_exchange, pointer, control)

    def merge(
        self,
        selection: Union[Heads, HeadSelection] = Heads.UNBRANCHED,
        *,
        metadata: Optional[_metadata.Metadata] = None,
        progress: Optional[ProgressCallback] = None,
        cancel: Optional[CancelToken] = None,
    ) -> MergeResult:
        """Merges heads into the current version, which moves to the result; returns how it moved, true if it did.

        Errors as for `Store.merge_heads`.
        """
        control = Control(progress, cancel)
        options = MergeOptions(metadata, selection=selection, control=control)
        move = _structs.llvs_move(struct_size=MOVE_SIZE)
        with self._call as pointer, control:
            lib.llvs_coordinator_merge(pointer, options.reference, byref(move))
        return MergeResult(*moves(move))

    def sync(
        self,
        selection: Union[Heads, HeadSelection] = Heads.UNBRANCHED,
        *,
        metadata: Optional[_metadata.Metadata] = None,
        progress: Optional[ProgressCallback] = None,
        cancel: Optional[CancelToken] = None,
    ) -> SyncResult:
        """Syncs: exchanges, merges what arrived, and exchanges again if the merge changed something.

        Without a connection, versions that are in the store are merged nevertheless; then the first failure of a part is raised, and its
        `result` has what was done.
        Errors as for `exchange` and `merge`.
        """
        control = Control(progress, cancel)
        options = MergeOptions(metadata, selection=selection, control=control)
        with self._call as pointer, control:
            return take_sync_result(lib.llvs_coordinator_sync, pointer, options.reference)

    def observe_exchanges(self, callback: Callable[[], Any]) -> Observer:
        """Registers a callback for new versions at the places of the exchanges that are attached now: `callback()` is called on a thread of
        the library."""
        with self._call as pointer:
            return observe(lib.llvs_coordinator_observe_exchanges, (pointer,), notify_thunk, callback, self._observers)

    def bootstrap(self, *, progress: Optional[ProgressCallback] = None, cancel: Optional[CancelToken] = None) -> BootstrapResult:
        """Restores the first usable snapshot of the attached exchanges into a store that is empty or holds one version.

        The result is true if there was one, and says how the current version moved: to the most recent head without a branch, if nothing
        had been saved yet.

        Raises SnapshotError, StorageError, TransportError, CancelledError.
        """
        restored, move = ctypes.c_uint32(), _structs.llvs_move(struct_size=MOVE_SIZE)
        with self._call as pointer, Control(progress, cancel) as control:
            lib.llvs_coordinator_bootstrap(pointer, control, byref(restored), byref(move))
        return BootstrapResult(restored.value != 0, *moves(move))
