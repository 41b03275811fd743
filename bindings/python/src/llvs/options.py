"""The options of stores and coordinators that most programs leave as they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional

from ._abi.memory import PathLike
from .words import Compaction, Durability, SnapshotPolicy, ValueDifferences


@dataclass(frozen=True, kw_only=True)
class StoreOptions:
    """Options of a store that most programs leave as they are.

        llvs.Store("notes.llvs", options=llvs.StoreOptions(memory_budget=256 << 20))

    One object can be used for any number of stores. The call that opens a store refuses
    wrong words and times.
    """

    #: Bytes of caches in memory; 0: 64 MiB.
    memory_budget: int = 0
    #: For the storage "file", a directory for caches outside the store.
    cache_directory: Optional[PathLike] = None
    #: For "file", when small files are compacted: "automatic" (automatically when it is worthwhile, and on request, but not in a folder
    #: that a syncing program copies), "on_request" (by `Store.compact` only, and not in such a folder), "always".
    compaction: Compaction = "automatic"
    #: Seconds for which compacted files are kept, for programs that are copying the store; None: 900.
    compaction_grace: Optional[float] = None
    #: With "sqlite", the seconds for which a call waits while other processes write, before it raises BusyError; None: 10.
    busy_timeout: Optional[float] = None
    #: Permissions of new files, restricted by the umask; None: 0o600, for their owner only.
    file_mode: Optional[int] = None
    #: Whether to store values as differences from earlier ones of the same id, if that needs less space: "auto" (in new stores, and in
    #: stores that have such values), "on", "off". A library from before differences cannot read versions with such values.
    differences: ValueDifferences = "auto"


@dataclass(frozen=True, kw_only=True)
class CoordinatorOptions(StoreOptions):
    """Options of a coordinator that most programs leave as they are, and those of its store.

        llvs.Coordinator("notes.llvs", options=llvs.CoordinatorOptions(name="importer", file_mode=0o640))

    One object can be used for any number of coordinators. The call that opens a
    coordinator refuses wrong words and times.
    """

    #: The name under which the current version is stored, 1 to 40 of [a-z0-9._-], "" for "main": two processes with one store need one
    #: each.
    name: str = ""
    #: "auto" keeps a snapshot at the place of each exchange up to date; "off".
    snapshots: SnapshotPolicy = "off"
    #: The durability of exchanges that are passed as paths or URLs; see `Exchange`.
    exchange_durability: Durability = "full"
    #: For all exchanges of this coordinator, as for `Exchange`: each sync lists ids that another implementation cannot store as problems of
    #: the versions sent.
    report_unportable: bool = False
    #: True if no other implementation reads the places of this coordinator's exchanges. If False, and a place with single files is
    #: attached, a save that would make another implementation fail is refused, as for `Exchange`.
    no_other_readers: bool = False
