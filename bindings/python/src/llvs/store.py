"""The store: a history of versions, and what prevails at each."""

from __future__ import annotations

import ctypes
import os
import sys
from array import array
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, Callable, Iterable, Iterator, NamedTuple, Optional, Sequence, Union

from . import _abi, _constants as c, _metadata, _pages, _structs, errors
from ._changes import CHANGE_SIZE, ChangeArray, Entries
from ._fetch import fetcher
from ._handle import Handle
from ._signals import holding
from ._sources import SourceArray
from ._memory import BytesArray, Column, PathLike, copy, decode, encode, path_bytes, text, version_bytes
from .control import CancelToken, Control, ProgressCallback
from .merge import AnyArbiter, ArbiterHandle, Heads, MergeOptions
from .model import Change, Reference, Value, Version
from .snapshot import Snapshot, take_snapshot
from .state import Range, State
from .storage import Storage, StorageHandle

if TYPE_CHECKING:
    from .exchange import ExchangeResult

lib = _abi.lib
byref = ctypes.byref
_fetch_value = fetcher("llvs_store_value")

#: What a version argument may be.
AnyVersion = Union[Version, str]

_STORAGES = {"file": c.STORAGE_FILE, "sqlite": c.STORAGE_SQLITE, "memory": c.STORAGE_MEMORY}
_DURABILITIES = {"full": c.DURABILITY_FULL, "normal": c.DURABILITY_NORMAL}
_COMPACTIONS = {"automatic": c.COMPACTION_AUTOMATIC, "on_request": c.COMPACTION_ON_REQUEST, "always": c.COMPACTION_ALWAYS}


def durability_number(durability: str) -> int:
    """The constant for "full" or "normal"."""
    if durability not in _DURABILITIES:
        raise errors.InvalidArgumentError(f"{durability!r} is no durability: use full or normal")
    return _DURABILITIES[durability]


class Statistics(NamedTuple):
    """Counts of a store."""

    #: Versions in the history.
    versions: int
    #: Versions without successors.
    heads: int
    #: Versions whose ancestry is not completely here: not in history until it is.
    pending: int
    #: Damaged places met so far.
    damaged: int
    #: Bytes on the medium, caches included.
    bytes: int
    #: Bytes written by this handle.
    bytes_written: int
    #: Syncs by this handle.
    syncs: int
    #: Files of records.
    segments: int
    #: Bytes of caches in memory.
    memory_used: int


class Damage(NamedTuple):
    """A place whose bytes are not what was written."""

    #: The file, or what the storage calls the place.
    file: str
    #: Where in it, in bytes.
    offset: int
    #: What is wrong.
    message: str
    #: The version lost, where that can be told.
    version: Optional[str]


class VerifyReport(NamedTuple):
    """What `Store.verify` found."""

    #: Versions read.
    versions: int
    #: Values read.
    values: int
    #: Versions that wait for their ancestry.
    pending: int
    #: Damaged places.
    damages: tuple[Damage, ...]


class CompactionReport(NamedTuple):
    """What `Store.compact` did."""

    #: Files whose records were put into others. They are still there, for the time of grace.
    folded: int
    #: Files that were made of them.
    made: int
    #: Files that had been folded long enough ago, and are gone now.
    deleted: int
    #: Bytes of the files made.
    bytes_written: int
    #: Bytes of the files deleted.
    bytes_deleted: int
    #: The file that shows that a folder-syncing program carries the store, for which nothing was done; else None.
    sync_marker: Optional[str]


class StoreOptions:
    """An `llvs_store_options`, and all that it points to."""

    def __init__(
        self,
        storage: Union[str, Storage],
        durability: str,
        memory_budget: int,
        read_only: bool,
        create: bool,
        cache_directory: Optional[PathLike],
        compaction: str,
        compaction_grace: Optional[float],
    ) -> None:
        if isinstance(storage, str) and storage not in _STORAGES:
            raise errors.InvalidArgumentError(f"{storage!r} is no storage: use file, sqlite, memory, or an llvs.Storage")
        number = durability_number(durability)
        if compaction not in _COMPACTIONS:
            raise errors.InvalidArgumentError(f"{compaction!r} is no compaction: use automatic, on_request or always")
        self.handle = None if isinstance(storage, str) else StorageHandle(storage)
        self.struct = _structs.llvs_store_options(
            struct_size=ctypes.sizeof(_structs.llvs_store_options),
            storage=_STORAGES[storage] if isinstance(storage, str) else c.STORAGE_HOST,
            durability=number,
            read_only=int(read_only),
            must_exist=int(not create),
            compaction=_COMPACTIONS[compaction],
            memory_budget=memory_budget,
            host_storage=self.handle._pointer if self.handle is not None else None,
            # 0 means the default to the library.
            compaction_grace=0 if compaction_grace is None else compaction_grace or sys.float_info.min,
        )
        self._cache = path_bytes(cache_directory) if cache_directory is not None else b""
        if self._cache:
            self._column = Column([self._cache])
            self.struct.cache_directory.data, self.struct.cache_directory.size = self._column.addresses[0], len(self._cache)

    def close(self) -> None:
        """Lets go of the storage's handle: an open store keeps it alive."""
        if self.handle is not None:
            self.handle.close()


class VersionOptions:
    """An `llvs_version_options`, and all that it points to: `with VersionOptions(...) as options`, giving its address or None."""

    def __init__(self, id: Optional[str], branch: Optional[str], metadata: Optional[_metadata.Metadata], sources: list[tuple[str, Any]]) -> None:
        if branch == "":
            raise errors.InvalidMetadataError("the name of a branch is empty; leave it out for a version without a branch")
        if id == "":
            raise errors.make(c.ERROR_INVALID_VERSION_ID, "a version id is empty; leave it out to have one made")
        pieces = Column([encode(id or ""), encode(branch or "")])
        self._kept = (pieces, _metadata.Entries(metadata))
        self.struct = _structs.llvs_version_options(struct_size=ctypes.sizeof(_structs.llvs_version_options))
        if id:
            self.struct.id.data, self.struct.id.size = pieces.addresses[0], pieces.sizes[0]
        if branch:
            self.struct.branch.data, self.struct.branch.size = pieces.addresses[1], pieces.sizes[1]
        self.struct.metadata, self.struct.metadata_count = self._kept[1].address, self._kept[1].count
        self._sources = SourceArray(sources) if sources else None

    def __enter__(self) -> Any:
        if self._sources is not None:
            self.struct.sources, self.struct.source_count, self.struct.source_size = self._sources.__enter__()
        return byref(self.struct)

    def __exit__(self, *_: object) -> None:
        if self._sources is not None:
            self._sources.__exit__()


#: Instead of `VersionOptions` where there are none.
NO_OPTIONS: nullcontext[None] = nullcontext()


def take_versions(function: Callable[..., Any], *arguments: Any) -> list[Version]:
    """The versions that a function put into its last parameter before the error."""
    pointer = ctypes.c_void_p()
    function(*arguments, byref(pointer))
    return _pages.versions(pointer.value)


def take_version(function: Callable[..., Any], *arguments: Any) -> Optional[Version]:
    """The one version that a function put into its last parameter before the error, if any."""
    found = take_versions(function, *arguments)
    return found[0] if found else None


def _the(version: Optional[Version]) -> Version:
    if version is None:
        raise errors.InternalError("the library gave no version where there must be one")
    return version


class _Cursor(Handle):
    """A walk in pages. One thread at a time."""

    _warns = False
    _exit_order = 4

    def __init__(self, release: str, pointer: int) -> None:
        self._release = release  # type: ignore[misc]
        super().__init__(pointer)

    def __repr__(self) -> str:
        return "the enumeration"


class Store(Handle):
    """A versioned key-value store.

        with llvs.Store("notes.llvs") as store:
            v1 = store.make_version(insert={"note/1": b"hello"})
            store.value("note/1", at=v1)

    Safe from all threads. A store does not survive `os.fork`: in the child every call raises `ForkedError`; open it again there.
    Close it in the end: calls that run on other threads are waited for.
    """

    _release = "llvs_store_free"
    _end = "llvs_store_close"

    def __init__(
        self,
        path: Optional[PathLike] = None,
        *,
        storage: Union[str, Storage] = "file",
        durability: str = "full",
        memory_budget: int = 0,
        read_only: bool = False,
        create: bool = True,
        cache_directory: Optional[PathLike] = None,
        compaction: str = "automatic",
        compaction_grace: Optional[float] = None,
    ) -> None:
        """Opens a store, or makes it.

        path: a directory (storage "file") or a database file ("sqlite"); not needed for "memory" or a `Storage` object.
        durability: "full" (nothing acknowledged is lost in a power cut) or "normal" (the newest versions may be; the rest is whole).
        memory_budget: bytes of caches in memory; 0: 64 MiB.
        create: False: a store that is not there is an error.
        cache_directory: for "file", a directory for caches outside the store.
        compaction: for "file", when what many handles wrote in many small files is put together: "automatic" (by itself when it pays, and
        on request, but not in a folder that a syncing program carries), "on_request" (by `compact` only, and not in such a folder), "always".
        compaction_grace: seconds for which files that were put together are kept, for whoever is copying the store; None: 900.

        Raises NotFoundError, NotDirectoryError, StorageError (not a store, of a newer format, ...), PermissionDeniedError, InvalidArgumentError.
        Cost: the size of the history's index, not of the values.
        """
        self._path = os.fsdecode(path) if path is not None else ""
        options = StoreOptions(storage, durability, memory_budget, read_only, create, cache_directory, compaction, compaction_grace)
        if path is None and storage in ("file", "sqlite"):
            raise errors.InvalidArgumentError(f"a store with the storage {storage!r} needs a path")
        try:
            pointer = ctypes.c_void_p()
            with holding:
                lib.llvs_store_open(path_bytes(path) if path is not None else b"", byref(options.struct), byref(pointer))
        finally:
            options.close()
        super().__init__(pointer.value or 0)
        self._calls_back = isinstance(storage, Storage)

    @classmethod
    def _adopt(cls, pointer: int, path: str) -> Store:
        store = cls.__new__(cls)
        store._path = path
        Handle.__init__(store, pointer)
        return store

    def __repr__(self) -> str:
        return f"the store {self._path}" if getattr(self, "_path", "") else "the store"

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
    ) -> Version:
        """Records one version: all of it or, also across a crash, nothing.

        predecessor: the version it is based on; None makes a root.
        insert, update: ids with bytes, as a mapping or pairs. Both set values; what is recorded is what is true. Instead of bytes
        a value may be a binary file, or an iterable of bytes, which is read while the version is made: with file storage one of more
        than 1 MiB goes straight to disk, and is never in memory as a whole. What reading raises comes out, and nothing is stored.
        remove: ids. changes: further `Change` objects. Each id at most once in all.
        metadata: whatever JSON can hold, by key; `bytes` are kept as they are. branch: the name of the version's branch.
        id: the id to make it under; None: a new UUID. Making the same version again under its id is not an error.

        Raises UnknownPredecessorError, DuplicateIDError, InvalidIDError, TooLargeError, InvalidReferenceError, InvalidMetadataError,
        VersionMismatchError, StorageError. Cost: the changes; O(log n) in the number of values.
        """
        packed = ChangeArray(insert, update, remove, changes)
        is_plain = not (metadata or branch is not None or id is not None or packed.sources)
        with NO_OPTIONS if is_plain else VersionOptions(id, branch, metadata, packed.sources) as options, self._call as pointer:
            return _the(
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

    @staticmethod
    def _predecessor(version: Optional[AnyVersion]) -> bytes:
        if version is None:
            return b""
        data = version_bytes(version)
        if not data:
            raise errors.make(c.ERROR_INVALID_VERSION_ID, "the id of the predecessor is empty; leave it out to make a root")
        return data

    # History

    @property
    def heads(self) -> tuple[Version, ...]:
        """The versions without successors, newest first. O(heads)."""
        with self._call as pointer:
            return tuple(take_versions(lib.llvs_store_heads, pointer))

    @property
    def most_recent_head(self) -> Optional[Version]:
        """The newest head; None for an empty store."""
        with self._call as pointer:
            return take_version(lib.llvs_store_most_recent_head, pointer)

    def heads_on_branch(self, branch: str) -> tuple[Version, ...]:
        """The heads that carry this branch name, newest first."""
        with self._call as pointer:
            return tuple(take_versions(lib.llvs_store_heads_on_branch, pointer, encode(branch)))

    def version(self, id: AnyVersion) -> Optional[Version]:
        """A version by its id; None when it is not in the store (also after a look at what other processes added). O(1).

        Raises InvalidIDError.
        """
        with self._call as pointer:
            return take_version(lib.llvs_store_version, pointer, version_bytes(id))

    def versions(self, ids: Iterable[AnyVersion]) -> list[Version]:
        """Many versions, in the order of `ids`. Raises UnknownVersionError, InvalidIDError."""
        packed = BytesArray(map(version_bytes, ids))
        with self._call as pointer:
            return take_versions(lib.llvs_store_versions, pointer, packed.address, packed.count)

    def __contains__(self, id: object) -> bool:
        """Whether a version (or id) is in the store. O(1)."""
        return isinstance(id, (str, Version)) and self.version(id) is not None

    def history(self, *versions: AnyVersion) -> Iterator[Version]:
        """All versions, or those given and their ancestors, in topological order, newest first: each comes before its predecessors.

        It walks the history as it is now, fetched by the page. Raises UnknownVersionError. Cost: the number of versions walked.
        """
        packed = BytesArray(map(version_bytes, versions))
        pointer = ctypes.c_void_p()
        with self._call as store:
            lib.llvs_store_history(store, packed.address, packed.count, byref(pointer))
        return self._walk(_Cursor("llvs_history_cursor_free", pointer.value or 0))

    @staticmethod
    def _walk(cursor: _Cursor) -> Iterator[Version]:
        with cursor:
            while True:
                with cursor._call as pointer:
                    page = take_versions(lib.llvs_history_cursor_next, pointer, 0)
                if not page:
                    return
                yield from page

    def successors(self, version: AnyVersion) -> tuple[Version, ...]:
        """The versions that have this one as a predecessor, newest first. Raises UnknownVersionError."""
        with self._call as pointer:
            return tuple(take_versions(lib.llvs_store_successors, pointer, version_bytes(version)))

    def is_ancestor(self, ancestor: AnyVersion, descendant: AnyVersion) -> bool:
        """Whether one version is an ancestor of another; no version is its own. Raises UnknownVersionError.

        Cost: at most the versions whose generation lies between the two.
        """
        answer = ctypes.c_bool()
        with self._call as pointer:
            lib.llvs_store_is_ancestor(pointer, version_bytes(ancestor), version_bytes(descendant), byref(answer))
        return answer.value

    def merge_bases(self, a: AnyVersion, b: AnyVersion) -> tuple[Version, ...]:
        """All best common ancestors, newest first; empty when there are none. Raises UnknownVersionError.

        Cost: the versions between the two and their bases.
        """
        with self._call as pointer:
            return tuple(take_versions(lib.llvs_store_merge_bases, pointer, version_bytes(a), version_bytes(b)))

    def versions_of(self, id: str) -> tuple[Version, ...]:
        """All versions that stored bytes for a value id, newest first. Raises InvalidIDError."""
        with self._call as pointer:
            return tuple(take_versions(lib.llvs_store_versions_of, pointer, encode(id)))

    # Values

    def value(self, id: str, *, at: AnyVersion) -> Optional[Value]:
        """The value that prevails at a version, or None. O(log n) and its size.

        Raises UnknownVersionError, InvalidIDError, StorageError.
        """
        found = self._fetch(encode(id), at._id_bytes if type(at) is Version else version_bytes(at))
        return None if found is None else tuple.__new__(Value, (id, *found))

    def _fetch(self, id: bytes, at: bytes) -> Optional[tuple[bytes, str]]:
        # As `with self._call`, written out: this is what programs call most.
        if self._calls_back:
            with self._call as pointer:
                return _fetch_value(pointer, id, at)
        calls = self._calls
        calls.append(0)
        try:
            if self._closed:
                raise self._closed_error()
            return _fetch_value(self._pointer, id, at)
        finally:
            calls.remove(0)
            if self._closed and not calls:
                self._let_go()

    def reference(self, id: str, *, at: AnyVersion) -> Optional[Reference]:
        """Which bytes prevail, without reading them; None when there is no such value. O(log n). Errors as for `value`."""
        stored = _structs.llvs_version_id()
        with self._call as pointer:
            lib.llvs_store_reference(pointer, encode(id), version_bytes(at), byref(stored))
        return Reference(id, stored.text.decode()) if stored.size else None

    def values(self, ids: Iterable[str], *, at: AnyVersion) -> list[Optional[Value]]:
        """Many values at once: one for each id, in order, None where there is none. Errors as for `value`."""
        asked = ids if isinstance(ids, list) else list(ids)
        packed = BytesArray(map(encode, asked))
        page = ctypes.c_void_p()
        with self._call as pointer:
            lib.llvs_store_values(pointer, packed.address, packed.count, version_bytes(at), byref(page))
        return _pages.values(page.value, asked)

    def value_by_reference(self, reference: Reference) -> Optional[Value]:
        """The bytes that a version stored for a value id; None when it did not store that id. Raises UnknownVersionError, InvalidIDError."""
        found = self.values_by_reference([reference])
        return found[0] if found else None

    def values_by_reference(self, references: Iterable[Reference]) -> list[Optional[Value]]:
        """Many of them at once, in order. Errors as for `value_by_reference`."""
        wanted: Sequence[Reference] = list(references)
        ids = Column([encode(reference.id) for reference in wanted])
        stored = Column([encode(reference.stored_version) for reference in wanted])
        words = array("Q", bytes(32 * len(wanted)))
        words[0::4], words[1::4], words[2::4], words[3::4] = ids.addresses, ids.sizes, stored.addresses, stored.sizes
        page = ctypes.c_void_p()
        with self._call as pointer:
            lib.llvs_store_values_by_reference(pointer, words.buffer_info()[0] if wanted else None, len(wanted), byref(page))
        return _pages.values(page.value)

    def at(self, version: AnyVersion) -> State:
        """The values at a version, as a read-only mapping from ids to bytes. Raises UnknownVersionError."""
        id = version_bytes(version)
        if self.version(version) is None:
            raise errors.UnknownVersionError(
                f"cannot read at version {decode(id)!r}: it is not in {self!r}", version_id=decode(id)
            )
        return State(self, id, Range())

    # Changes and differences

    def changes(self, version: AnyVersion, *, with_data: bool = True) -> Iterator[Change]:
        """What a version recorded, in byte order of the ids, fetched by the page. Raises UnknownVersionError."""
        pointer = ctypes.c_void_p()
        with self._call as store:
            lib.llvs_store_changes(store, version_bytes(version), byref(pointer))
        return self._walk_changes(_Cursor("llvs_change_cursor_free", pointer.value or 0), with_data)

    def diff(self, a: AnyVersion, b: AnyVersion, *, with_data: bool = True) -> Iterator[Change]:
        """What to apply to the state at `a` to reach the state at `b`, as insert, update and remove, in byte order of the ids.

        Any two versions, related or not. Raises UnknownVersionError. Cost: what differs, not what is there.
        """
        pointer = ctypes.c_void_p()
        with self._call as store:
            lib.llvs_store_differences(store, version_bytes(a), version_bytes(b), byref(pointer))
        return self._walk_changes(_Cursor("llvs_change_cursor_free", pointer.value or 0), with_data)

    @staticmethod
    def _walk_changes(cursor: _Cursor, with_data: bool) -> Iterator[Change]:
        with cursor:
            while True:
                page = ctypes.c_void_p()
                with cursor._call as pointer:
                    lib.llvs_change_cursor_next(pointer, 0, int(with_data), byref(page))
                if not page.value:
                    return
                yield from _pages.changes(page.value)

    # Merging

    def merge(
        self,
        ours: AnyVersion,
        theirs: AnyVersion,
        arbiter: Optional[AnyArbiter] = None,
        *,
        metadata: Optional[_metadata.Metadata] = None,
        relation: str = "any",
    ) -> Version:
        """Merges two versions. When one is an ancestor of the other nothing is stored and the descendant is the result.

        arbiter: decides conflicts: `MostRecentChange()` (the default), another built-in one, an object with `resolve(merge, store)`, or
        such a function. What it raises is raised from here.
        relation: "any", "related" (without a common ancestor: NoCommonAncestorError), or "unrelated" (as if the ancestor were empty).

        Raises UnknownVersionError, UnresolvedConflictError, InvalidReferenceError, StorageError; nothing is stored then.
        Cost: what differs, times log n.
        """
        options = MergeOptions(metadata, relation)
        with self._call as pointer, self._arbiter(arbiter) as handle, handle._call as decides:
            return _the(
                take_version(lib.llvs_store_merge, pointer, version_bytes(ours), version_bytes(theirs), decides, options.reference)
            )

    def merge_heads(
        self,
        into: AnyVersion,
        arbiter: Optional[AnyArbiter] = None,
        selection: Union[Heads, str] = Heads.UNBRANCHED,
        *,
        metadata: Optional[_metadata.Metadata] = None,
        progress: Optional[ProgressCallback] = None,
        cancel: Optional[CancelToken] = None,
    ) -> Optional[Version]:
        """Merges a version and the selected heads, all of them or none; None when nothing changed.

        selection: "unbranched" (the default), "all", or `Heads.branches(...)`, `Heads.unbranched_and(...)`. Progress is in heads.
        Errors as for `merge`, and CancelledError; nothing is stored then.
        """
        control = Control(progress, cancel)
        options = MergeOptions(metadata, selection=selection, control=control)
        with self._call as pointer, self._arbiter(arbiter) as handle, handle._call as decides, control:
            return take_version(lib.llvs_store_merge_heads, pointer, version_bytes(into), decides, options.reference)

    def _arbiter(self, arbiter: Optional[AnyArbiter]) -> Any:
        return _NoArbiter() if arbiter is None else ArbiterHandle(arbiter, lambda: self)

    def revert(self, version: AnyVersion, *, at: AnyVersion, metadata: Optional[_metadata.Metadata] = None) -> Version:
        """Records the inverse of a version's changes on top of `at`: undo, without losing what came since.

        Raises UnknownVersionError, StorageError.
        """
        options = MergeOptions(metadata)
        with self._call as pointer:
            return _the(take_version(lib.llvs_store_revert, pointer, version_bytes(version), version_bytes(at), options.reference))

    # The store as a whole

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


class _NoCall:
    """Where an optional handle is not given."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: object) -> None:
        return None


class _NoArbiter:
    _call = _NoCall()

    def __enter__(self) -> _NoArbiter:
        return self

    def __exit__(self, *_: object) -> None:
        return None
