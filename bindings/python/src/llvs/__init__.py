"""A versioned key-value store, "git for app data".

    import llvs

    with llvs.Store("notes.llvs") as store:
        v1 = store.make_version(insert={"note/1": b"hello"})
        v2 = store.make_version(v1, update={"note/1": b"world"}, metadata={"author": "ann"})
        store.value("note/1", at=v1).data        # b"hello"
        store.at(v2)["note/1"]                   # b"world"

Versions branch, merge, and are exchanged with other stores; nothing is ever overwritten. The engine is the library
libllvs behind its C interface, which wheels of this package carry; else LLVS_LIBRARY names it.
"""

from ._abi import lib as _lib
from .control import CancelToken, Progress, ProgressCallback, Stage
from .coordinator import Coordinator, default_path, make_branch_name
from .errors import (
    BusyError,
    CallbackError,
    CancelledError,
    ClosedError,
    DuplicateIDError,
    Error,
    ErrorCode,
    ExchangeDataError,
    ForkedError,
    InternalError,
    InvalidArgumentError,
    InvalidIDError,
    InvalidMetadataError,
    InvalidReferenceError,
    MergeError,
    NoCommonAncestorError,
    NotDirectoryError,
    NotFoundError,
    OutOfMemoryError,
    PermissionDeniedError,
    SnapshotError,
    StorageError,
    TooLargeError,
    TooManyFilesError,
    TransportError,
    UnknownPredecessorError,
    UnknownVersionError,
    UnresolvedConflictError,
    UnsupportedError,
    VersionMismatchError,
)
from .exchange import Exchange, ExchangeResult, Problem
from .log import LogLevel, Observer, log_to, observe_log
from .merge import PASS, Arbiter, Forks, Heads, Merge, MostRecentBranch, MostRecentChange, Ours, Pass, Resolution, Theirs
from .model import Change, ChangeKind, Fork, ForkKind, Reference, Side, Value, Version
from .reader import ValueReader
from .reports import CompactionReport, Damage, Loss, Salvaged, SalvageReport, Statistics, VerifyReport
from .snapshot import Snapshot
from .state import State
from .storage import DictStorage, Storage
from .store import Store
from .transport import OutgoingFile, Transport, VersionFiles

#: The version of this package.
__version__ = "0.1.0"


def library_version() -> str:
    """The version of the library that is loaded, "0.1.0"."""
    text: bytes = _lib.llvs_version_string()
    return text.decode()


__all__ = [
    "Arbiter",
    "BusyError",
    "CallbackError",
    "CancelToken",
    "CancelledError",
    "Change",
    "ChangeKind",
    "ClosedError",
    "CompactionReport",
    "Coordinator",
    "Damage",
    "DictStorage",
    "DuplicateIDError",
    "Error",
    "ErrorCode",
    "Exchange",
    "ExchangeDataError",
    "ExchangeResult",
    "Fork",
    "ForkKind",
    "ForkedError",
    "Forks",
    "Heads",
    "InternalError",
    "InvalidArgumentError",
    "InvalidIDError",
    "InvalidMetadataError",
    "InvalidReferenceError",
    "LogLevel",
    "Loss",
    "Merge",
    "MergeError",
    "MostRecentBranch",
    "MostRecentChange",
    "NoCommonAncestorError",
    "NotDirectoryError",
    "NotFoundError",
    "Observer",
    "Ours",
    "OutgoingFile",
    "OutOfMemoryError",
    "PASS",
    "Pass",
    "PermissionDeniedError",
    "Problem",
    "Progress",
    "ProgressCallback",
    "Reference",
    "Resolution",
    "SalvageReport",
    "Salvaged",
    "Side",
    "Snapshot",
    "SnapshotError",
    "Stage",
    "State",
    "Statistics",
    "Storage",
    "StorageError",
    "Store",
    "Theirs",
    "TooLargeError",
    "TooManyFilesError",
    "Transport",
    "TransportError",
    "UnknownPredecessorError",
    "UnknownVersionError",
    "UnresolvedConflictError",
    "UnsupportedError",
    "Value",
    "ValueReader",
    "VerifyReport",
    "Version",
    "VersionFiles",
    "VersionMismatchError",
    "default_path",
    "library_version",
    "log_to",
    "make_branch_name",
    "observe_log",
]
