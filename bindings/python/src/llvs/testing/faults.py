"""Plans by which the operations of a storage or transport fail, and wrappers that use them."""

from __future__ import annotations

import ctypes
from typing import Optional, Sequence, Union

from .. import _abi, errors
from .._abi import memory as _memory
from .._abi.enums import NamedFlags, NamedNumber
from .._abi.handle import Handle
from .._generated import constants as c, structs as _structs
from ..exchange.remote import Remote
from ..exchange.transport import Place, Transport, TransportHandle, VersionFiles, carrier_of, name_of, place_of, take_buffer
from ..storage import Report, Storage, StorageHandle
from ..store import _options
from ..words import Compaction, Durability, StorageKind

lib = _abi.lib


class Operation(NamedFlags):
    """Operations of storages and transports; combine them with `|`."""

    #: All of them.
    ANY = 0
    APPEND = c.OPERATION_APPEND
    SYNC = c.OPERATION_SYNC
    SCAN = c.OPERATION_SCAN
    READ = c.OPERATION_READ
    CACHE_GET = c.OPERATION_CACHE_GET
    CACHE_PUT = c.OPERATION_CACHE_PUT
    CACHE_DELETE = c.OPERATION_CACHE_DELETE
    #: Large values that the file storage writes outside its records.
    BLOB_WRITE = c.OPERATION_BLOB_WRITE
    BLOB_READ = c.OPERATION_BLOB_READ
    OPEN = c.OPERATION_OPEN
    CLOSE = c.OPERATION_CLOSE
    #: All operations of storages.
    STORAGE = c.OPERATIONS_STORAGE
    LIST = c.OPERATION_LIST
    FETCH_VERSIONS = c.OPERATION_FETCH_VERSIONS
    FETCH_CHANGES = c.OPERATION_FETCH_CHANGES
    SEND = c.OPERATION_SEND
    SNAPSHOT_LIST = c.OPERATION_SNAPSHOT_LIST
    SNAPSHOT_READ = c.OPERATION_SNAPSHOT_READ
    SNAPSHOT_WRITE = c.OPERATION_SNAPSHOT_WRITE
    SNAPSHOT_DELETE = c.OPERATION_SNAPSHOT_DELETE
    #: All operations of transports.
    TRANSPORT = c.OPERATIONS_TRANSPORT


class FaultKind(NamedNumber):
    """The kind of a fault. If a kind does not apply to an operation, the operation fails.

    Storages of the library check what they read. If one of these is wrapped, reading changed, cut short or absent records raises a
    `StorageError` with the code DAMAGED, and such caches count as absent. If a storage in Python is wrapped, bytes are really changed,
    below the checksums of the store.
    """

    #: Nothing is done, and the operation fails.
    FAIL = c.FAULT_FAIL
    #: The operation is done, and still fails.
    LOSE_ACKNOWLEDGEMENT = c.FAULT_LOSE_ACKNOWLEDGEMENT
    #: A part is done, and the operation fails; a fetch returns a part and succeeds, which is allowed.
    PARTIAL = c.FAULT_PARTIAL
    #: A bit of the bytes read or written is changed; a listing contains a name that does not exist.
    CORRUPT = c.FAULT_CORRUPT
    #: The bytes read or written, or the listing, end too early.
    CUT = c.FAULT_CUT
    #: Reads find nothing; writes are dropped and report success.
    ABSENT = c.FAULT_ABSENT
    #: Only the delay.
    DELAY = c.FAULT_DELAY


class FaultPlan(Handle):
    """Which operations of the storages and transports that it wraps fail, and how: the same ones each time, by the seed.

        plan = FaultPlan(seed=7)
        plan.fail(nth=12)                              # the twelfth operation of all
        plan.fail(on=Operation.SYNC, probability=0.1)
        with llvs.Store(storage=plan.storage("notes.llvs")) as store: ...

    Without rules nothing fails, and everything is counted: run the work once, and then once for each `nth` up to `count()`.
    One plan may wrap a storage and a transport; it counts both together. Safe from all threads.
    """

    _release = "llvs_faults_free"
    _warns = False

    def __init__(self, seed: int = 0) -> None:
        """A plan without rules. `seed`: 0 to 2**64 - 1."""
        if not 0 <= seed < 1 << 64:
            raise errors.InvalidArgumentError(f"the seed {seed} is not from 0 to 2**64 - 1")
        pointer = ctypes.c_void_p()
        lib.llvs_faults_create(seed, ctypes.byref(pointer))
        super().__init__(pointer.value or 0)
        self.seed = seed

    def _what(self) -> str:
        return "the plan of faults"

    def _detail(self) -> str:
        return f"with the seed {self.seed}"

    def add(
        self,
        kind: FaultKind,
        *,
        on: Operation = Operation.ANY,
        nth: Optional[int] = None,
        first: int = 1,
        count: Optional[int] = None,
        probability: float = 1.0,
        code: Optional[int] = None,
        delay: float = 0.0,
    ) -> None:
        """Adds a rule. If several match an operation, the one that was added first applies.

        nth: applies to this operation, counted from 1 among the operations `on` since the plan was made or reset.
        first, count: instead, applies to that many (None: all) from that one on.
        probability: of the fault for each of these, drawn from the seed; above 0, up to 1.
        code: the `ErrorCode` that failing operations have; None: TRANSPORT for transports, IO for storages, and UNKNOWN_OUTCOME for an
        append whose acknowledgement is lost.
        delay: seconds to wait before the operation.

        Raises InvalidArgumentError.
        """
        if nth is not None:
            first, count = nth, 1
        if first < 1 or (count is not None and count < 1) or not 0 < probability <= 1 or not 0 <= delay <= 3600:
            raise errors.InvalidArgumentError(
                "a fault needs nth, first and count from 1, a probability above 0 and to 1, and a delay of up to an hour"
            )
        fault = _structs.llvs_fault(
            struct_size=ctypes.sizeof(_structs.llvs_fault),
            kind=kind,
            operations=on,
            code=code or 0,
            first=first,
            count=count or 0,
            probability=probability,
            delay_milliseconds=round(delay * 1000),
        )
        with self._call as pointer:
            lib.llvs_faults_add(pointer, ctypes.byref(fault))

    def fail(
        self,
        nth: Optional[int] = None,
        *,
        on: Operation = Operation.ANY,
        first: int = 1,
        count: Optional[int] = None,
        probability: float = 1.0,
        code: Optional[int] = None,
    ) -> None:
        """Adds a rule by which operations fail, with nothing done; see `add`."""
        self.add(FaultKind.FAIL, on=on, nth=nth, first=first, count=count, probability=probability, code=code)

    def clear(self) -> None:
        """Removes all rules; counting continues."""
        with self._call as pointer:
            lib.llvs_faults_clear(pointer)

    def reset(self) -> None:
        """Counts from 0 again; the rules stay."""
        with self._call as pointer:
            lib.llvs_faults_reset(pointer)

    def count(self, on: Operation = Operation.ANY) -> int:
        """Returns how many of these operations there were since the plan was made or reset."""
        with self._call as pointer:
            number: int = lib.llvs_faults_count(pointer, on)
            return number

    @property
    def injected(self) -> int:
        """Returns how many faults were injected since then."""
        with self._call as pointer:
            number: int = lib.llvs_faults_injected(pointer)
            return number

    @property
    def last(self) -> str:
        """Returns the last fault, for messages: "append 7 of the store at /x: fail"; empty if there was none."""
        with self._call as pointer:
            return (take_buffer(lib.llvs_faults_last, pointer) or b"").decode("utf-8", "replace")

    def storage(
        self,
        inner: Union[Storage, _memory.PathLike, None] = None,
        *,
        storage: StorageKind = "file",
        durability: Durability = "full",
        compaction: Compaction = "automatic",
    ) -> FaultyStorage:
        """Makes a storage that fails as planned, for `Store(storage=...)`.

        inner: a `Storage`, or the path of a store of the library's, whose kind is then `storage` ("file", "sqlite", or "memory", which
        needs no path). Give the store the same `durability`.
        """
        return FaultyStorage(self, inner, storage, durability, compaction)

    def transport(self, inner: Place, *, durability: Durability = "full") -> FaultyTransport:
        """A transport that fails as planned, for `Exchange`. inner: a `Transport`, a path or a URL, as for `Exchange`."""
        return FaultyTransport(self, inner, durability)


class FaultyStorage(Storage):
    """Made by `FaultPlan.storage`: pass it to a `Store`. It is not called from Python."""

    def __init__(
        self,
        plan: FaultPlan,
        inner: Union[Storage, _memory.PathLike, None],
        storage: StorageKind,
        durability: Durability,
        compaction: Compaction,
    ) -> None:
        if inner is None and storage != "memory":
            raise errors.InvalidArgumentError(f"a storage of the kind {storage!r} needs a path")
        self.name = inner.name if isinstance(inner, Storage) else str(inner or "memory")
        self._plan, self._inner = plan, inner
        self._options = (storage, durability, compaction)

    def _new_handle(self) -> StorageHandle:
        made = ctypes.c_void_p()
        if isinstance(self._inner, Storage):
            inner = self._inner._new_handle()
        else:
            kind, durability, compaction = self._options
            options = _options.OpeningOptions(kind, durability, compaction=compaction)
            path = b"" if self._inner is None else _memory.path_bytes(self._inner)
            lib.llvs_testing_storage(path, ctypes.byref(options.struct), ctypes.byref(made))
            inner = StorageHandle.of_pointer(made.value or 0)
        try:
            with self._plan._call as plan:
                lib.llvs_faults_storage(plan, inner._pointer, ctypes.byref(made))
        finally:
            inner.close()
        return StorageHandle.of_pointer(made.value or 0)

    def append(self, records: Sequence[bytes]) -> Sequence[int]:
        """Not for Python."""
        raise TypeError("a FaultyStorage is given to a Store, which calls it inside the library")

    def scan(self, mark: int, report: Report) -> int:
        """Not for Python."""
        raise TypeError("a FaultyStorage is given to a Store, which calls it inside the library")

    def read(self, place: int, offset: int, size: int) -> bytes:
        """Not for Python."""
        raise TypeError("a FaultyStorage is given to a Store, which calls it inside the library")


class FaultyTransport(Transport):
    """Made by `FaultPlan.transport`: pass it to an `Exchange`. It is not called from Python."""

    def __init__(self, plan: FaultPlan, inner: Place, durability: Durability) -> None:
        self._inner = place_of(inner)
        self.name = name_of(self._inner)
        self._plan, self._durability = plan, durability

    def _new_handle(self) -> TransportHandle:
        made = ctypes.c_void_p()
        carrier = carrier_of(self._inner)
        if carrier is not None:
            inner: TransportHandle = carrier._new_handle()
        else:
            options = _structs.llvs_exchange_options(
                struct_size=ctypes.sizeof(_structs.llvs_exchange_options), durability=_options.durability_number(self._durability)
            )
            if isinstance(self._inner, Remote):
                self._inner._put(options)
            lib.llvs_testing_transport(_memory.encode(self.name), ctypes.byref(options), ctypes.byref(made))
            inner = TransportHandle.of_pointer(made.value or 0, None)
        try:
            with self._plan._call as plan:
                lib.llvs_faults_transport(plan, inner._pointer, ctypes.byref(made))
        except BaseException:
            inner.close()
            raise
        handle = TransportHandle.of_pointer(made.value or 0, inner)
        self._handles().add(handle)
        return handle

    def list(self) -> Sequence[str]:
        """Not for Python."""
        raise TypeError("a FaultyTransport is given to an Exchange, which calls it inside the library")

    def fetch_versions(self, names: Sequence[str]) -> Sequence[Optional[bytes]]:
        """Not for Python."""
        raise TypeError("a FaultyTransport is given to an Exchange, which calls it inside the library")

    def fetch_changes(self, names: Sequence[str]) -> Sequence[Optional[bytes]]:
        """Not for Python."""
        raise TypeError("a FaultyTransport is given to an Exchange, which calls it inside the library")

    def send(self, files: Sequence[VersionFiles]) -> None:
        """Not for Python."""
        raise TypeError("a FaultyTransport is given to an Exchange, which calls it inside the library")
