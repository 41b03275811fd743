"""What concerns a store as a whole: its state, its files, snapshots of it."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Optional

from . import _abi, _pages, _structs
from ._handle import Handle
from ._memory import PathLike, decode, path_bytes, text
from .control import CancelToken, Control, ProgressCallback
from .reports import CompactionReport, Damage, Statistics, VerifyReport
from .snapshot import Snapshot, take_snapshot

if TYPE_CHECKING:
    from .exchange import ExchangeResult

lib = _abi.lib
byref = ctypes.byref


class Upkeep(Handle):
    """The store as a whole."""

    def reload(self) -> int:
        """Picks up versions that other processes or handles added, and returns how many came."""
        added = ctypes.c_uint64()
        with self._call as pointer:
            lib.llvs_store_reload(pointer, byref(added))
        return added.value

    def statistics(self) -> Statistics:
        """Counts."""
        found = _structs.llvs_statistics(struct_size=ctypes.sizeof(_structs.llvs_statistics))
        with self._call as pointer:
            lib.llvs_store_statistics(pointer, byref(found))
        return Statistics(*(getattr(found, name) for name in Statistics._fields))

    def verify(self, *, progress: Optional[ProgressCallback] = None, cancel: Optional[CancelToken] = None) -> VerifyReport:
        """Reads everything again and compares it with its checksums. Damage found is in the report, not an error.

        Raises CancelledError, StorageError. Cost: the size of the store.
        """
        pointer = ctypes.c_void_p()
        with self._call as store, Control(progress, cancel) as control:
            lib.llvs_store_verify(store, control, byref(pointer))
        report = pointer.value
        try:
            damages = []
            for index in range(lib.llvs_verify_report_damage_count(report)):
                damage = _structs.llvs_damage.from_address(lib.llvs_verify_report_damage_at(report, index))
                damages.append(Damage(text(damage.file), damage.offset, text(damage.message), text(damage.version) or None))
            return VerifyReport(
                lib.llvs_verify_report_versions(report),
                lib.llvs_verify_report_values(report),
                lib.llvs_verify_report_pending(report),
                tuple(damages),
            )
        finally:
            lib.llvs_verify_report_free(report)

    def compact(self, *, progress: Optional[ProgressCallback] = None, cancel: Optional[CancelToken] = None) -> CompactionReport:
        """Puts small files of the store together into large ones, and deletes those that were put together longer ago than the time of grace.

        Happens by itself as well, as `compaction` of the constructor says; only the file storage has anything to do. Readers and other
        processes go on meanwhile; when one of those compacts right now, nothing is done. Progress is in bytes written.

        Raises CancelledError, PermissionDeniedError (a store that is open for reading only), BusyError (from within the progress
        callback of a compaction), StorageError; nothing is lost then. Cost: reads and writes what is in small files.
        """
        done = _structs.llvs_compaction_report(struct_size=ctypes.sizeof(_structs.llvs_compaction_report))
        with self._call as pointer, Control(progress, cancel) as control:
            lib.llvs_store_compact(pointer, control, byref(done))
        marker = _pages.take_buffer(done.sync_marker)
        return CompactionReport(
            done.folded, done.made, done.deleted, done.bytes_written, done.bytes_deleted, None if marker is None else decode(marker)
        )

    def write_snapshot(
        self, directory: PathLike, *, progress: Optional[ProgressCallback] = None, cancel: Optional[CancelToken] = None
    ) -> Optional[Snapshot]:
        """Writes a snapshot of the whole store into a directory: a manifest and chunks of at most 5 MB. Raises StorageError, CancelledError."""
        with self._call as pointer, Control(progress, cancel) as control:
            return take_snapshot(lib.llvs_store_write_snapshot, pointer, path_bytes(directory), control)

    def restore_snapshot(
        self, directory: PathLike, *, progress: Optional[ProgressCallback] = None, cancel: Optional[CancelToken] = None
    ) -> Optional[Snapshot]:
        """Restores a snapshot into this store, which must be empty or hold one version. All of it or nothing.

        Raises SnapshotError, StorageError, CancelledError.
        """
        with self._call as pointer, Control(progress, cancel) as control:
            return take_snapshot(lib.llvs_store_restore_snapshot, pointer, path_bytes(directory), control)

    def import_store(
        self, directory: PathLike, *, progress: Optional[ProgressCallback] = None, cancel: Optional[CancelToken] = None
    ) -> ExchangeResult:
        """Adds the versions of a store directory of another implementation of this design, which is only read.

        Raises NotFoundError, StorageError, CancelledError; what cannot be added is a problem in the result.
        """
        from .exchange import take_result

        with self._call as pointer, Control(progress, cancel) as control:
            return take_result(lib.llvs_store_import, pointer, path_bytes(directory), control)
