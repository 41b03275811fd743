"""A versioned key-value store, "git for app data".

    import llvs

    with llvs.Store("notes.llvs") as store:
        v1 = store.make_version(insert={"note/1": b"hello"})
        v2 = store.make_version(v1, update={"note/1": b"world"}, metadata={"author": "ann"})
        store.at(v1)["note/1"]                   # b"hello"
        store.at(v2)["note/1"]                   # b"world"

Versions branch, merge, and are exchanged with other stores; nothing is ever overwritten. The engine is the library
libllvs behind its C interface. Wheels of this package contain it; otherwise LLVS_LIBRARY names it.

Names of types, to annotate your functions with:

    AnyVersion   a version argument: a `Version`, or its id
    AnyArbiter   an argument of `merge`: a built-in arbiter, an `Arbiter`, or a function of (merge, store)
    Resolution   the result of an arbiter: changes; None for no changes; or `PASS` or `Pass(changes)`: then the fallback decides the rest
    PASS         the `Pass` without changes of its own
    Content      the content of a value: bytes-like, or a binary file or an iterable of bytes, which is read piece by piece
    Entries      an argument `insert` or `update`: ids with their content, as a mapping or as pairs
    Place        the place of an exchange: the path of a folder, a URL, a `Remote` (a URL with credentials and more), a `Transport`,
                 or `RemoteFiles`
    AskForCredentials  credentials of a `Remote`: a function of (address, whether they were refused) that returns `Credentials`, or None
    AnyRule      a rule in a model: `Counter()`, the name of a kind, or a rule as the store has it
    Upgrade      a function that brings a model's JSON object from one form to the next
    MergeRules   how to merge inside values: the name of a kind, a rule, patterns with rules, a schema, or JSON text
    MISSING      the part of a key in an index that a value lacks
    KeyPart      a part of a key in an index: None, a bool, a number, a str, or `MISSING`
    GivenPart    the same in a query: also a date or a time
    KeyFunction  a function that computes the keys of a value, instead of a definition
    FileContent  the content of a file in a `Transport` or `RemoteFiles`: bytes, or for a large one a binary file or an iterable of bytes

and the words that options accept, each a `Literal`:

    StorageKind     where a store keeps its records
    Durability      what a power cut may lose
    Compaction      when small files are compacted
    ValueDifferences  whether values are stored as differences
    SnapshotPolicy  whether a coordinator keeps a snapshot beside each exchange
    Relation        which versions a merge accepts
    HeadSelection   which heads are merged
    Layout          how versions are stored at a place
    Choice          which value prevails after a conflict is closed
    MemberKind      the kind of a member of an encrypted place
    LogLevelName    a level of the library's messages
"""

from __future__ import annotations

# Loads the library, so that the import fails at once if it is missing. Everything else is imported at its first use.
from ._abi import lib as _lib

# Type checkers treat this name as true.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from .control import CancelToken as CancelToken, Progress as Progress, ProgressCallback as ProgressCallback, Stage as Stage
    from .coordinator.coordinator import Coordinator as Coordinator, make_branch_name as make_branch_name
    from .coordinator.transaction import Transaction as Transaction
    from .errors import (
        BusyError as BusyError,
        CallbackError as CallbackError,
        CancelledError as CancelledError,
        ClosedError as ClosedError,
        DuplicateIDError as DuplicateIDError,
        EncryptionError as EncryptionError,
        Error as Error,
        ErrorCode as ErrorCode,
        ExchangeDataError as ExchangeDataError,
        ForgottenError as ForgottenError,
        ForkedError as ForkedError,
        GoneError as GoneError,
        InternalError as InternalError,
        InvalidArgumentError as InvalidArgumentError,
        InvalidIDError as InvalidIDError,
        InvalidMetadataError as InvalidMetadataError,
        InvalidReferenceError as InvalidReferenceError,
        MergeError as MergeError,
        MovedError as MovedError,
        NoCommonAncestorError as NoCommonAncestorError,
        NotDirectoryError as NotDirectoryError,
        NotFoundError as NotFoundError,
        OutOfMemoryError as OutOfMemoryError,
        PermissionDeniedError as PermissionDeniedError,
        SnapshotError as SnapshotError,
        StorageError as StorageError,
        TooLargeError as TooLargeError,
        TooManyFilesError as TooManyFilesError,
        TransportError as TransportError,
        UnknownPredecessorError as UnknownPredecessorError,
        UnknownVersionError as UnknownVersionError,
        UnresolvedConflictError as UnresolvedConflictError,
        UnsupportedError as UnsupportedError,
        VersionMismatchError as VersionMismatchError,
    )
    from .exchange.exchange import Exchange as Exchange
    from .exchange.members import KeyPair as KeyPair, Member as Member, new_identity as new_identity
    from .exchange.remote import AskForCredentials as AskForCredentials, Credentials as Credentials, Remote as Remote, Tokens as Tokens
    from .exchange.remote_files import RemoteFile as RemoteFile, RemoteFiles as RemoteFiles
    from .exchange.remote_status import RemoteStatus as RemoteStatus, RemoteWriter as RemoteWriter
    from .exchange.results import (
        BootstrapResult as BootstrapResult,
        Exchanged as Exchanged,
        ExchangeResult as ExchangeResult,
        MergeResult as MergeResult,
        SyncResult as SyncResult,
    )
    from .exchange.transport import (
        FileContent as FileContent, OutgoingFile as OutgoingFile, Place as Place, Transport as Transport, VersionFiles as VersionFiles,
    )
    from .indexes.indexes import (
        Explanation as Explanation, Found as Found, Index as Index, IndexEntry as IndexEntry, IndexPage as IndexPage,
    )
    from .indexes.keys import GivenPart as GivenPart, KeyFunction as KeyFunction, KeyPart as KeyPart, MISSING as MISSING, Missing as Missing
    from .live.links import Link as Link, Listener as Listener, connect as connect, listen as listen
    from .live.nearby import Device as Device, Nearby as Nearby
    from .live.peer import (
        Peer as Peer,
        PeerPhase as PeerPhase,
        PeerState as PeerState,
        device_key as device_key,
        make_invitation as make_invitation,
        make_pairing as make_pairing,
    )
    from .log import LogLevel as LogLevel, log_to as log_to, observe_log as observe_log
    from .merge.arbiters import (
        AnyArbiter as AnyArbiter,
        Arbiter as Arbiter,
        ArbiterFunction as ArbiterFunction,
        Forks as Forks,
        Merge as Merge,
        MostRecentBranch as MostRecentBranch,
        MostRecentChange as MostRecentChange,
        Ours as Ours,
        PASS as PASS,
        Pass as Pass,
        Resolution as Resolution,
        Rules as Rules,
        PartFunction as PartFunction,
        Theirs as Theirs,
        ValueFunction as ValueFunction,
        ValueMerger as ValueMerger,
    )
    from .merge.documents import (
        Conflict as Conflict,
        ConflictKind as ConflictKind,
        Conflicts as Conflicts,
        MergedValue as MergedValue,
        MergeRules as MergeRules,
        Schema as Schema,
        check_schema as check_schema,
        merge_values as merge_values,
    )
    from .merge.options import Heads as Heads, Reverted as Reverted
    from .merge.replay import Step as Step
    from .merge.sides import MergeSide as MergeSide, MergeSides as MergeSides
    from .models import (
        Absent as Absent,
        AnyRule as AnyRule,
        Collection as Collection,
        Contradiction as Contradiction,
        Convert as Convert,
        Counter as Counter,
        DecodeError as DecodeError,
        Definition as Definition,
        DeleteWins as DeleteWins,
        Identity as Identity,
        Key as Key,
        MergeRule as MergeRule,
        ModelsAt as ModelsAt,
        ModelsInTransaction as ModelsInTransaction,
        Named as Named,
        ObjectConflict as ObjectConflict,
        PastObject as PastObject,
        Pick as Pick,
        Register as Register,
        SchemaWarning as SchemaWarning,
        Selection as Selection,
        Text as Text,
        Tuple as Tuple,
        Upgrade as Upgrade,
        definition_of as definition_of,
        model as model,
        schema_of as schema_of,
    )
    from .observer import Observer as Observer
    from .options import CoordinatorOptions as CoordinatorOptions, StoreOptions as StoreOptions
    from .projection import Projection as Projection, ProjectionProblem as ProjectionProblem
    from .sqlite_extension import sqlite_extension_path as sqlite_extension_path
    from .storage import DictStorage as DictStorage, Storage as Storage
    from .store._change_array import Content as Content, Entries as Entries
    from .store._packing import Pack as Pack
    from .store.default_location import default_path as default_path
    from .store.reader import ValueReader as ValueReader
    from .store.reports import (
        CompactionReport as CompactionReport,
        Damage as Damage,
        Loss as Loss,
        Salvaged as Salvaged,
        SalvageReport as SalvageReport,
        SizeReport as SizeReport,
        SizeRow as SizeRow,
        Statistics as Statistics,
        VerifyReport as VerifyReport,
    )
    from .store.snapshot import Problem as Problem, Snapshot as Snapshot
    from .store.state import State as State
    from .store.store import Store as Store
    from .store.versions import (
        AnyVersion as AnyVersion,
        Change as Change,
        ChangeKind as ChangeKind,
        ForgottenValue as ForgottenValue,
        Fork as Fork,
        ForkKind as ForkKind,
        Reference as Reference,
        SavedVersion as SavedVersion,
        Side as Side,
        Value as Value,
        Version as Version,
    )
    from .syncer import (
        SyncConditions as SyncConditions,
        SyncEvent as SyncEvent,
        Syncer as Syncer,
        SyncPlace as SyncPlace,
        SyncReason as SyncReason,
        SyncState as SyncState,
        SyncStatus as SyncStatus,
        Traffic as Traffic,
    )
    from .words import (
        Choice as Choice,
        Compaction as Compaction,
        Durability as Durability,
        HeadSelection as HeadSelection,
        Layout as Layout,
        LogLevelName as LogLevelName,
        MemberKind as MemberKind,
        Relation as Relation,
        SnapshotPolicy as SnapshotPolicy,
        StorageKind as StorageKind,
        ValueDifferences as ValueDifferences,
    )

#: The public names that each module defines. (The same as above; a test compares them.)
_MODULES = {
    "control": "CancelToken Progress ProgressCallback Stage",
    "coordinator.coordinator": "Coordinator make_branch_name",
    "store.default_location": "default_path",
    "merge.documents": "Conflict ConflictKind Conflicts MergedValue MergeRules Schema check_schema merge_values",
    "errors": (
        """
        BusyError CallbackError CancelledError ClosedError DuplicateIDError EncryptionError Error ErrorCode ExchangeDataError ForgottenError
        ForkedError GoneError InternalError InvalidArgumentError InvalidIDError InvalidMetadataError InvalidReferenceError MergeError
        MovedError NoCommonAncestorError NotDirectoryError NotFoundError OutOfMemoryError PermissionDeniedError SnapshotError StorageError
        TooLargeError TooManyFilesError TransportError UnknownPredecessorError UnknownVersionError UnresolvedConflictError UnsupportedError
        VersionMismatchError
    """
    ),
    "exchange.exchange": "Exchange",
    "indexes.keys": "GivenPart KeyFunction KeyPart MISSING Missing",
    "indexes.indexes": "Explanation Found Index IndexEntry IndexPage",
    "live.links": "Link Listener connect listen",
    "live.peer": "Peer PeerPhase PeerState device_key make_invitation make_pairing",
    "log": "LogLevel log_to observe_log",
    "merge.arbiters": (
        "AnyArbiter Arbiter ArbiterFunction Forks Merge MostRecentBranch MostRecentChange Ours PASS Pass Resolution PartFunction"
        " Rules Theirs ValueFunction ValueMerger"
    ),
    "models": (
        """
        Absent AnyRule Collection Contradiction Convert Counter DecodeError Definition DeleteWins Identity Key MergeRule ModelsAt
        ModelsInTransaction Named ObjectConflict PastObject Pick Register SchemaWarning Selection Text Tuple Upgrade definition_of model
        schema_of
    """
    ),
    "live.nearby": "Device Nearby",
    "observer": "Observer",
    "projection": "Projection ProjectionProblem",
    "store.reader": "ValueReader",
    "exchange.members": "KeyPair Member new_identity",
    "exchange.remote": "AskForCredentials Credentials Remote Tokens",
    "exchange.remote_files": "RemoteFile RemoteFiles",
    "exchange.remote_status": "RemoteStatus RemoteWriter",
    "store.reports": "CompactionReport Damage Loss Salvaged SalvageReport SizeReport SizeRow Statistics VerifyReport",
    "merge.replay": "Step",
    "exchange.results": "BootstrapResult Exchanged ExchangeResult MergeResult SyncResult",
    "merge.sides": "MergeSide MergeSides",
    "store.snapshot": "Problem Snapshot",
    "sqlite_extension": "sqlite_extension_path",
    "store.state": "State",
    "storage": "DictStorage Storage",
    "options": "CoordinatorOptions StoreOptions",
    "store.store": "Store",
    "syncer": "SyncConditions SyncEvent Syncer SyncPlace SyncReason SyncState SyncStatus Traffic",
    "coordinator.transaction": "Transaction",
    "exchange.transport": "FileContent OutgoingFile Place Transport VersionFiles",
    "store.versions": "AnyVersion Change ChangeKind ForgottenValue Fork ForkKind Reference SavedVersion Side Value Version",
    "words": "Choice Compaction Durability HeadSelection Layout LogLevelName MemberKind Relation SnapshotPolicy StorageKind "
    "ValueDifferences",
    "store._change_array": "Content Entries",
    "merge.options": "Heads Reverted",
    "store._packing": "Pack",
}
_PLACES = {name: module for module, names in _MODULES.items() for name in names.split()}
#: The public modules, which are imported at their first use as well.
_SUBMODULES = frozenset({"aio", "browser", "oauth", "testing", *(module.partition(".")[0] for module in _MODULES)})

#: The version of this package.
__version__ = "0.1.0"


def library_version() -> str:
    """The version of the library that is loaded, "0.1.0"."""
    text: bytes = _lib.llvs_version_string()
    return text.decode()


if not TYPE_CHECKING:

    def __getattr__(name):
        """Imports the object that a public name, or a module's name, stands for."""
        module = name if name in _SUBMODULES else _PLACES.get(name)
        if module is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        found = __import__(f"{__name__}.{module}", fromlist=[module])
        found = globals()[name] = found if name == module else getattr(found, name)
        return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_PLACES})


__all__ = sorted({*_PLACES, "library_version"})
