"""A versioned key-value store, "git for app data".

    import llvs

    with llvs.Store("notes.llvs") as store:
        v1 = store.make_version(insert={"note/1": b"hello"})
        v2 = store.make_version(v1, update={"note/1": b"world"}, metadata={"author": "ann"})
        store.at(v1)["note/1"]                   # b"hello"
        store.at(v2)["note/1"]                   # b"world"

Versions branch, merge, and are exchanged with other stores; nothing is ever overwritten. The engine is the library
libllvs behind its C interface. Wheels of this package contain it; otherwise LLVS_LIBRARY names it.

Here is what a first program needs. Every name has its place in a module, which `import llvs` makes usable as well:

    llvs.store        stores, versions, values, changes, and what a store reports about itself
    llvs.coordinator  a store with a current version, transactions, and the results of syncs
    llvs.models       objects of your classes as values, and the rules by which they merge
    llvs.merge        arbiters, merging inside values, conflicts
    llvs.exchange     exchanges, remotes with credentials, transports and remote files of your own, members of encrypted places
    llvs.syncer       keeping a coordinator in sync in the background
    llvs.live         direct connections of two stores, pairings, devices nearby
    llvs.indexes      finding values by their contents
    llvs.sqlite       projections into SQLite, and the extension with which SQL reads stores
    llvs.storage      storages of your own
    llvs.control      progress, cancellation, registrations of callbacks
    llvs.errors       every error, and the codes
    llvs.words        the words that options accept, as types
    llvs.log          messages of the library
    llvs.aio          all of it from asyncio
    llvs.oauth        signing in to cloud drives
    llvs.browser      opening an address with a secret in the browser
    llvs.testing      tests of your own storages and transports, and faults in any operation
"""

from __future__ import annotations

# Loads the library, so that the import fails at once if it is missing. Everything else is imported at its first use.
from ._abi import lib as _lib

# Type checkers treat this name as true.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from . import (
        aio as aio,
        browser as browser,
        control as control,
        coordinator as coordinator,
        errors as errors,
        exchange as exchange,
        indexes as indexes,
        live as live,
        log as log,
        merge as merge,
        models as models,
        oauth as oauth,
        sqlite as sqlite,
        storage as storage,
        store as store,
        syncer as syncer,
        testing as testing,
        words as words,
    )
    from .control import CancelToken as CancelToken
    from .coordinator.coordinator import Coordinator as Coordinator
    from .coordinator.transaction import Transaction as Transaction
    from .errors import (
        BusyError as BusyError,
        CancelledError as CancelledError,
        ClosedError as ClosedError,
        Error as Error,
        ErrorCode as ErrorCode,
        MovedError as MovedError,
        NotFoundError as NotFoundError,
        StorageError as StorageError,
        TransportError as TransportError,
    )
    from .exchange.exchange import Exchange as Exchange
    from .exchange.remote import Remote as Remote
    from .log import log_to as log_to
    from .merge.arbiters import (
        MostRecentBranch as MostRecentBranch,
        MostRecentChange as MostRecentChange,
        Ours as Ours,
        Rules as Rules,
        Theirs as Theirs,
    )
    from .options import CoordinatorOptions as CoordinatorOptions, StoreOptions as StoreOptions
    from .store.default_location import default_path as default_path
    from .store.store import Store as Store
    from .store.versions import Change as Change, Value as Value, Version as Version
    from .syncer import Syncer as Syncer
else:
    from ._names import attach

    __getattr__, __dir__, __all__ = attach(
        __name__,
        {
            "control": "CancelToken",
            "coordinator.coordinator": "Coordinator",
            "coordinator.transaction": "Transaction",
            "errors": "BusyError CancelledError ClosedError Error ErrorCode MovedError NotFoundError StorageError TransportError",
            "exchange.exchange": "Exchange",
            "exchange.remote": "Remote",
            "log": "log_to",
            "merge.arbiters": "MostRecentBranch MostRecentChange Ours Rules Theirs",
            "options": "CoordinatorOptions StoreOptions",
            "store.default_location": "default_path",
            "store.store": "Store",
            "store.versions": "Change Value Version",
            "syncer": "Syncer",
        },
        submodules=(
            "aio browser control coordinator errors exchange indexes live log merge models oauth sqlite storage store syncer "
            "testing words"
        ),
    )
    __all__ = sorted([*__all__, "library_version"])

#: The version of this package.
__version__ = "0.1.0"


def library_version() -> str:
    """Returns the version of the library that is loaded, "0.1.0"."""
    text: bytes = _lib.llvs_version_string()
    return text.decode()
