"""The exceptions of this package: `Error`, and one subclass per kind that is also the natural builtin.

    try:
        store.value("note/1", at="no-such-version")
    except llvs.errors.UnknownVersionError as error:      # also a KeyError
        print(error.code, error.version_id)

`except llvs.Error` catches all; `.code` distinguishes all of them.
"""

from __future__ import annotations

import errno as _errno
from typing import Any, Sequence

from ._abi.enums import NamedNumber
from ._generated import constants as c

__all__ = [
    "BusyError",
    "CallbackError",
    "CancelledError",
    "ClosedError",
    "DuplicateIDError",
    "EncryptionError",
    "ErasedError",
    "Error",
    "ErrorCode",
    "ExchangeDataError",
    "ForgottenError",
    "ForkedError",
    "GoneError",
    "InternalError",
    "InvalidArgumentError",
    "InvalidIDError",
    "InvalidMetadataError",
    "InvalidReferenceError",
    "MergeError",
    "MovedError",
    "NoCommonAncestorError",
    "NotDirectoryError",
    "NotFoundError",
    "OutOfMemoryError",
    "PermissionDeniedError",
    "SnapshotError",
    "StorageError",
    "TooLargeError",
    "TooManyFilesError",
    "TransportError",
    "UnknownPredecessorError",
    "UnknownVersionError",
    "UnresolvedConflictError",
    "UnsupportedError",
    "VersionMismatchError",
]


class ErrorCode(NamedNumber):
    """The codes of include/llvs.h; the numbers never change. An unknown number stays an `int`."""

    INVALID_ARGUMENT = c.ERROR_INVALID_ARGUMENT
    INVALID_VALUE_ID = c.ERROR_INVALID_VALUE_ID
    INVALID_VERSION_ID = c.ERROR_INVALID_VERSION_ID
    INVALID_UTF8 = c.ERROR_INVALID_UTF8
    TOO_LARGE = c.ERROR_TOO_LARGE
    STRUCT_SIZE = c.ERROR_STRUCT_SIZE
    DUPLICATE_ID = c.ERROR_DUPLICATE_ID
    UNKNOWN_VERSION = c.ERROR_UNKNOWN_VERSION
    UNKNOWN_PREDECESSOR = c.ERROR_UNKNOWN_PREDECESSOR
    VERSION_MISMATCH = c.ERROR_VERSION_MISMATCH
    INVALID_REFERENCE = c.ERROR_INVALID_REFERENCE
    INVALID_METADATA = c.ERROR_INVALID_METADATA
    UNSUPPORTED = c.ERROR_UNSUPPORTED
    NOT_FOUND = c.ERROR_NOT_FOUND
    NOT_A_STORE = c.ERROR_NOT_A_STORE
    NEWER_FORMAT = c.ERROR_NEWER_FORMAT
    READ_ONLY = c.ERROR_READ_ONLY
    PERMISSION = c.ERROR_PERMISSION
    NO_SPACE = c.ERROR_NO_SPACE
    NOT_A_DIRECTORY = c.ERROR_NOT_A_DIRECTORY
    IO = c.ERROR_IO
    DAMAGED = c.ERROR_DAMAGED
    UNKNOWN_OUTCOME = c.ERROR_UNKNOWN_OUTCOME
    BUSY = c.ERROR_BUSY
    TOO_MANY_FILES = c.ERROR_TOO_MANY_FILES
    CLOSED = c.ERROR_CLOSED
    FORKED = c.ERROR_FORKED
    CANCELLED = c.ERROR_CANCELLED
    USER = c.ERROR_USER
    OUT_OF_MEMORY = c.ERROR_OUT_OF_MEMORY
    INTERNAL = c.ERROR_INTERNAL
    UNRESOLVED_CONFLICT = c.ERROR_UNRESOLVED_CONFLICT
    NO_COMMON_ANCESTOR = c.ERROR_NO_COMMON_ANCESTOR
    MOVED = c.ERROR_MOVED
    TRANSPORT = c.ERROR_TRANSPORT
    MISSING_CHANGES = c.ERROR_MISSING_CHANGES
    MISSING_PREDECESSOR = c.ERROR_MISSING_PREDECESSOR
    INVALID_JSON = c.ERROR_INVALID_JSON
    INVALID_BASE64 = c.ERROR_INVALID_BASE64
    IDENTIFIER_MISMATCH = c.ERROR_IDENTIFIER_MISMATCH
    MISSING_VERSION = c.ERROR_MISSING_VERSION
    SNAPSHOT_DAMAGED = c.ERROR_SNAPSHOT_DAMAGED
    SNAPSHOT_MISSING = c.ERROR_SNAPSHOT_MISSING
    STORE_NOT_EMPTY = c.ERROR_STORE_NOT_EMPTY
    FOREIGN_SNAPSHOT = c.ERROR_FOREIGN_SNAPSHOT
    FOREIGN_FILE = c.ERROR_FOREIGN_FILE
    CUT_SHORT = c.ERROR_CUT_SHORT
    UNPORTABLE_ID = c.ERROR_UNPORTABLE_ID
    CONTENT_MISMATCH = c.ERROR_CONTENT_MISMATCH
    WRONG_KEY = c.ERROR_WRONG_KEY
    KEY_MISSING = c.ERROR_KEY_MISSING
    KEYS_FORKED = c.ERROR_KEYS_FORKED
    ROLLED_BACK = c.ERROR_ROLLED_BACK
    WRITER_FORKED = c.ERROR_WRITER_FORKED
    WITHHELD = c.ERROR_WITHHELD
    PLACE_MOVED = c.ERROR_PLACE_MOVED
    CLOCK_AHEAD = c.ERROR_CLOCK_AHEAD
    ERASED = c.ERROR_ERASED
    FORGOTTEN = c.ERROR_FORGOTTEN


#: The class for each code. If several classes name a code, the last one.
CLASSES: dict[int, type[Error]] = {}


class Error(Exception):
    """An error of the library.

    `str(error)` says what was being done to what, and what the user can do. Attributes:
    """

    #: The kind of failure: an `ErrorCode`, or an `int` if this package does not know the number.
    code: int
    #: Only the message.
    message: str
    #: The value id concerned, or None.
    value_id: str | None
    #: The version id concerned, also an invalid one, or None.
    version_id: str | None
    #: The file or directory concerned, or None.
    path: str | None
    #: The system's error number (`errno`) if a system call failed; else 0. An `OSError` has it as its `errno`, too.
    system_code: int

    #: From `Coordinator.exchange` and `Coordinator.sync`: what was done although the call failed (an `ExchangeResult` or a `SyncResult`),
    #: with the result and the error of each exchange. None for other calls.
    result: Any = None

    #: The code of an error that Python code makes without naming one.
    default_code: int = c.ERROR_USER

    def __init_subclass__(cls, codes: Sequence[int] = (), **rest: Any) -> None:
        """`codes`: the codes of the class. An error that is made without a code has the first."""
        super().__init_subclass__(**rest)
        if codes:
            cls.default_code = codes[0]
        CLASSES.update(dict.fromkeys(codes, cls))

    def __init__(
        self,
        message: str,
        *,
        code: int | None = None,
        value_id: str | None = None,
        version_id: str | None = None,
        path: str | None = None,
        system_code: int = 0,
    ) -> None:
        super().__init__(message)
        number = self.default_code if code is None else code
        try:
            self.code = ErrorCode(number)
        except ValueError:
            self.code = number
        self.message = message
        self.value_id = value_id
        self.version_id = version_id
        self.path = path
        self.system_code = system_code
        if isinstance(self, OSError):
            _fill(self, system_code or _ERRNO.get(number), message, path)

    def __str__(self) -> str:
        return self.message

    def __repr__(self) -> str:
        name = self.code.name if isinstance(self.code, ErrorCode) else str(self.code)
        return f"{type(self).__name__}({self.message!r}, code={name})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.message, int(self.code), self.value_id, self.version_id, self.path, self.system_code)


def _fill(error: OSError, number: int | None, message: str, path: str | None) -> None:
    error.errno, error.strerror, error.filename = number, message, path


def _rebuild(
    cls: type[Error], message: str, code: int, value_id: str | None, version_id: str | None, path: str | None, system_code: int = 0
) -> Error:
    return cls(message, code=code, value_id=value_id, version_id=version_id, path=path, system_code=system_code)


class InvalidArgumentError(Error, ValueError, codes=[c.ERROR_INVALID_ARGUMENT, c.ERROR_STRUCT_SIZE]):
    """An invalid argument: an unknown constant, a malformed URL."""


class InvalidIDError(InvalidArgumentError, codes=[c.ERROR_INVALID_VALUE_ID, c.ERROR_INVALID_VERSION_ID, c.ERROR_INVALID_UTF8]):
    """An invalid value id or version id, or text that is not Unicode."""


class TooLargeError(InvalidArgumentError, codes=[c.ERROR_TOO_LARGE]):
    """A size beyond the limits: values have at most 1 GiB."""


class DuplicateIDError(InvalidArgumentError, codes=[c.ERROR_DUPLICATE_ID]):
    """One value id twice in one call."""


class VersionMismatchError(InvalidArgumentError, codes=[c.ERROR_VERSION_MISMATCH]):
    """The store already has another version with this id."""


class InvalidReferenceError(InvalidArgumentError, codes=[c.ERROR_INVALID_REFERENCE]):
    """A `preserve` that names bytes that no ancestor stored."""


class InvalidMetadataError(InvalidArgumentError, codes=[c.ERROR_INVALID_METADATA]):
    """A metadata key that is empty, too long or not Unicode, a branch that is not a string, metadata over 16 MiB, or of more than 65,536
    keys.
    """


class UnknownVersionError(Error, KeyError, codes=[c.ERROR_UNKNOWN_VERSION]):
    """No such version in the store."""


class UnknownPredecessorError(UnknownVersionError, codes=[c.ERROR_UNKNOWN_PREDECESSOR]):
    """The predecessor of a new version is not in the store."""


class UnsupportedError(Error, NotImplementedError, codes=[c.ERROR_UNSUPPORTED]):
    """Not possible here: a URL scheme that is not built in, an observation of a transport that does not report changes."""


class StorageError(
    Error, OSError,
    codes=[c.ERROR_IO, c.ERROR_NOT_A_STORE, c.ERROR_NEWER_FORMAT, c.ERROR_NO_SPACE, c.ERROR_DAMAGED, c.ERROR_UNKNOWN_OUTCOME],
):
    """The storage failed: full disk, failing medium, damaged bytes, something that is not a store."""


class NotFoundError(StorageError, FileNotFoundError, codes=[c.ERROR_NOT_FOUND]):
    """No such file or directory, or no store there."""


class PermissionDeniedError(StorageError, PermissionError, codes=[c.ERROR_PERMISSION, c.ERROR_READ_ONLY]):
    """The system denies access, or the store was opened read-only."""


class NotDirectoryError(StorageError, NotADirectoryError, codes=[c.ERROR_NOT_A_DIRECTORY]):
    """A file is where a directory should be."""


class BusyError(StorageError, TimeoutError, codes=[c.ERROR_BUSY]):
    """Another process or handle uses it for too long."""


class TooManyFilesError(StorageError, codes=[c.ERROR_TOO_MANY_FILES]):
    """The process or the system has too many open files. Nothing was changed."""


class ClosedError(Error, ValueError, codes=[c.ERROR_CLOSED]):
    """The store, exchange or coordinator has been closed (as `ValueError`, like a closed file)."""


class ForkedError(Error, RuntimeError, codes=[c.ERROR_FORKED]):
    """The handle was made by a parent of this process; open the store again here."""


class CancelledError(Error, codes=[c.ERROR_CANCELLED]):
    """A progress callback or a cancel token ended the call. Completed parts stay."""


class CallbackError(Error, RuntimeError, codes=[c.ERROR_USER]):
    """A callback of the host failed, and its exception is not available any more (otherwise that is raised itself)."""


class OutOfMemoryError(Error, MemoryError, codes=[c.ERROR_OUT_OF_MEMORY]):
    """No memory was left; nothing was changed."""


class InternalError(Error, RuntimeError, codes=[c.ERROR_INTERNAL]):
    """A mistake of the library; please report it."""


class GoneError(Error, LookupError):
    """The bytes of a value (`value_id`, `version_id`) are gone by intent. This is no damage."""


class ErasedError(GoneError, codes=[c.ERROR_ERASED]):
    """An order of this device erased the bytes of a value (`Store.erase`). They do not come back."""


class ForgottenError(GoneError, codes=[c.ERROR_FORGOTTEN]):
    """The store has the size and the digest of a value, but not its bytes: they were removed from it."""


class MergeError(Error, RuntimeError, codes=[c.ERROR_UNRESOLVED_CONFLICT]):
    """The versions could not be merged; nothing was stored."""


class UnresolvedConflictError(MergeError, codes=[c.ERROR_UNRESOLVED_CONFLICT]):
    """The arbiter left a conflicting fork (`value_id`) without a change."""


class NoCommonAncestorError(MergeError, codes=[c.ERROR_NO_COMMON_ANCESTOR]):
    """The versions share no ancestor, and related ones were asked for."""


class MovedError(Error, RuntimeError, codes=[c.ERROR_MOVED]):
    """The current version (`version_id`) is not the one that the save expected; nothing was stored."""


class TransportError(Error, ConnectionError, codes=[c.ERROR_TRANSPORT]):
    """The other side cannot be reached, or does not answer as it should."""


class ExchangeDataError(
    Error, ValueError,
    codes=[
        c.ERROR_INVALID_JSON, c.ERROR_CUT_SHORT, c.ERROR_MISSING_CHANGES, c.ERROR_MISSING_PREDECESSOR, c.ERROR_INVALID_BASE64,
        c.ERROR_IDENTIFIER_MISMATCH, c.ERROR_MISSING_VERSION, c.ERROR_FOREIGN_FILE, c.ERROR_UNPORTABLE_ID,
        c.ERROR_CONTENT_MISMATCH, c.ERROR_ROLLED_BACK, c.ERROR_WRITER_FORKED, c.ERROR_WITHHELD, c.ERROR_PLACE_MOVED,
        c.ERROR_CLOCK_AHEAD,
    ],
):
    """Data of the other side cannot be used: a problem of an exchange's result. Or, with `ErrorCode.UNPORTABLE_ID`, a save was refused
    because another implementation would fail with it.
    """


class EncryptionError(Error, ValueError, codes=[c.ERROR_WRONG_KEY, c.ERROR_KEY_MISSING, c.ERROR_KEYS_FORKED]):
    """The passphrase or identity does not open the encrypted data, or the other side of a direct connection does not know the pairing or
    the invitation (`WRONG_KEY`); or keys are missing or compete."""


class SnapshotError(
    Error, ValueError, codes=[c.ERROR_SNAPSHOT_DAMAGED, c.ERROR_SNAPSHOT_MISSING, c.ERROR_STORE_NOT_EMPTY, c.ERROR_FOREIGN_SNAPSHOT]
):
    """A snapshot that is missing, damaged, of a foreign format, or not for this store."""


_ERRNO = {
    c.ERROR_NOT_FOUND: _errno.ENOENT,
    c.ERROR_READ_ONLY: _errno.EROFS,
    c.ERROR_PERMISSION: _errno.EACCES,
    c.ERROR_NO_SPACE: _errno.ENOSPC,
    c.ERROR_NOT_A_DIRECTORY: _errno.ENOTDIR,
    c.ERROR_IO: _errno.EIO,
    c.ERROR_UNKNOWN_OUTCOME: _errno.EIO,
    c.ERROR_DAMAGED: _errno.EIO,
    c.ERROR_BUSY: _errno.EBUSY,
    c.ERROR_TOO_MANY_FILES: _errno.EMFILE,
    c.ERROR_NOT_A_STORE: _errno.EINVAL,
    c.ERROR_NEWER_FORMAT: _errno.EINVAL,
    c.ERROR_TRANSPORT: _errno.ECONNABORTED,
}

def make(code: int, message: str, *, system_code: int = 0, **about: str | None) -> Error:
    """Returns the exception for a code. O(1)."""
    return CLASSES.get(code, Error)(message, code=code, system_code=system_code, **about)


def take(status: int, slot: Any, lib: Any) -> BaseException:
    """Returns the exception for a failed call, and releases its `llvs_error *` (in `slot`, a `c_void_p`). `lib` is `_abi.lib`, which needs
    this module.

    If a callback made the call fail, it is the callback's own exception.
    """
    pointer, slot.value = slot.value, None
    if not pointer:
        return make(status, f"the library answered with status {status}, and could not say more")
    try:
        return read(pointer, lib)
    finally:
        lib.llvs_error_free(pointer)


def read(pointer: int, lib: Any) -> BaseException:
    """Returns the exception for an `llvs_error`, without releasing it; as `take`."""
    from ._abi import callback_errors as _callback_errors, memory as _memory

    kept = _callback_errors.take(lib.llvs_error_user_code(pointer))
    if kept is not None:
        return kept
    return make(
        lib.llvs_error_code(pointer),
        lib.llvs_error_message(pointer).decode("utf-8", "replace"),
        value_id=_memory.text_or_none(lib.llvs_error_value_id(pointer)),
        version_id=_memory.text_or_none(lib.llvs_error_version_id(pointer)),
        path=_memory.text_or_none(lib.llvs_error_path(pointer)),
        system_code=lib.llvs_error_system_code(pointer),
    )
