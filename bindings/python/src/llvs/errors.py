"""The exceptions of this package: `Error`, and one subclass per kind that is also the natural builtin.

    try:
        store.value("note/1", at="no-such-version")
    except llvs.UnknownVersionError as error:      # also a KeyError
        print(error.code, error.version_id)

`except llvs.Error` catches all; `.code` tells them apart to the last.
"""

from __future__ import annotations

import enum
import errno as _errno
from typing import Any

from . import _constants as c


class ErrorCode(enum.IntEnum):
    """The codes of include/llvs.h; the numbers are pinned for ever. An unknown number stays an `int`."""

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
    CLOSED = c.ERROR_CLOSED
    FORKED = c.ERROR_FORKED
    CANCELLED = c.ERROR_CANCELLED
    USER = c.ERROR_USER
    OUT_OF_MEMORY = c.ERROR_OUT_OF_MEMORY
    INTERNAL = c.ERROR_INTERNAL
    UNRESOLVED_CONFLICT = c.ERROR_UNRESOLVED_CONFLICT
    NO_COMMON_ANCESTOR = c.ERROR_NO_COMMON_ANCESTOR
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


class Error(Exception):
    """Something that the library refused or could not do.

    `str(error)` says what was being done to what, and what can be done about it. Attributes:
    """

    #: What kind of failure it is (an `ErrorCode`; an `int` for a number that this package does not know).
    code: int
    #: The message alone.
    message: str
    #: The value id concerned, or None.
    value_id: str | None
    #: The version id concerned, also one that is unacceptable, or None.
    version_id: str | None
    #: The file or directory concerned, or None.
    path: str | None

    #: The code of an error that Python code makes without naming one.
    default_code: int = c.ERROR_USER

    def __init__(
        self,
        message: str,
        *,
        code: int | None = None,
        value_id: str | None = None,
        version_id: str | None = None,
        path: str | None = None,
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
        if isinstance(self, OSError):
            _fill(self, number, message, path)

    def __str__(self) -> str:
        return self.message

    def __repr__(self) -> str:
        name = self.code.name if isinstance(self.code, ErrorCode) else str(self.code)
        return f"{type(self).__name__}({self.message!r}, code={name})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.message, int(self.code), self.value_id, self.version_id, self.path)


def _fill(error: OSError, number: int, message: str, path: str | None) -> None:
    error.errno, error.strerror, error.filename = _ERRNO.get(number), message, path


def _rebuild(cls: type[Error], message: str, code: int, value_id: str | None, version_id: str | None, path: str | None) -> Error:
    return cls(message, code=code, value_id=value_id, version_id=version_id, path=path)


class InvalidArgumentError(Error, ValueError):
    """An argument that no call could take: an unknown constant, a URL that is none."""

    default_code = c.ERROR_INVALID_ARGUMENT


class InvalidIDError(InvalidArgumentError):
    """A value id or version id that cannot be one, or text that is not Unicode."""

    default_code = c.ERROR_INVALID_VALUE_ID


class TooLargeError(InvalidArgumentError):
    """A size beyond the limits: values hold at most 1 GiB."""

    default_code = c.ERROR_TOO_LARGE


class DuplicateIDError(InvalidArgumentError):
    """One value id twice in one call."""

    default_code = c.ERROR_DUPLICATE_ID


class VersionMismatchError(InvalidArgumentError):
    """Another version with this id is there already."""

    default_code = c.ERROR_VERSION_MISMATCH


class InvalidReferenceError(InvalidArgumentError):
    """A `preserve` that names what no ancestor stored."""

    default_code = c.ERROR_INVALID_REFERENCE


class InvalidMetadataError(InvalidArgumentError):
    """A metadata key that is empty, too long or not Unicode, or metadata over 16 MiB."""

    default_code = c.ERROR_INVALID_METADATA


class UnknownVersionError(Error, KeyError):
    """No such version in the store."""

    default_code = c.ERROR_UNKNOWN_VERSION


class UnknownPredecessorError(UnknownVersionError):
    """The predecessor of a new version is not in the store."""

    default_code = c.ERROR_UNKNOWN_PREDECESSOR


class UnsupportedError(Error, NotImplementedError):
    """Not possible here: a URL scheme that is not built in, an observation of a transport that cannot tell."""

    default_code = c.ERROR_UNSUPPORTED


class StorageError(Error, OSError):
    """The place where the store rests failed: full disk, failing medium, damaged bytes, something that is no store."""

    default_code = c.ERROR_IO


class NotFoundError(StorageError, FileNotFoundError):
    """No such file or directory, or no store there."""

    default_code = c.ERROR_NOT_FOUND


class PermissionDeniedError(StorageError, PermissionError):
    """The system does not let us, or the store was opened for reading only."""

    default_code = c.ERROR_PERMISSION


class NotDirectoryError(StorageError, NotADirectoryError):
    """A file is where a directory should be."""

    default_code = c.ERROR_NOT_A_DIRECTORY


class BusyError(StorageError, TimeoutError):
    """Another process or handle holds it for too long."""

    default_code = c.ERROR_BUSY


class ClosedError(Error, ValueError):
    """The store, exchange or coordinator has been closed (as `ValueError`, like a closed file)."""

    default_code = c.ERROR_CLOSED


class ForkedError(Error, RuntimeError):
    """The handle was made by a parent of this process; open the store again here."""

    default_code = c.ERROR_FORKED


class CancelledError(Error):
    """A progress callback or a cancel token ended the call. What was added whole is kept."""

    default_code = c.ERROR_CANCELLED


class CallbackError(Error, RuntimeError):
    """A callback of the host failed, and its exception is not known any more (else that is raised itself)."""

    default_code = c.ERROR_USER


class OutOfMemoryError(Error, MemoryError):
    """No memory was left; nothing was changed."""

    default_code = c.ERROR_OUT_OF_MEMORY


class InternalError(Error, RuntimeError):
    """A mistake of the library; please report it."""

    default_code = c.ERROR_INTERNAL


class MergeError(Error, RuntimeError):
    """The versions could not be merged; nothing was stored."""

    default_code = c.ERROR_UNRESOLVED_CONFLICT


class UnresolvedConflictError(MergeError):
    """The arbiter left a conflicting fork (`value_id`) without a change."""

    default_code = c.ERROR_UNRESOLVED_CONFLICT


class NoCommonAncestorError(MergeError):
    """The versions share no ancestor, and related ones were asked for."""

    default_code = c.ERROR_NO_COMMON_ANCESTOR


class TransportError(Error, ConnectionError):
    """The other side cannot be reached, or does not answer as it should."""

    default_code = c.ERROR_TRANSPORT


class ExchangeDataError(Error, ValueError):
    """What the other side holds cannot be used. Appears as a problem of an exchange's result."""

    default_code = c.ERROR_INVALID_JSON


class SnapshotError(Error, ValueError):
    """A snapshot that is missing, damaged, of a foreign format, or not for this store."""

    default_code = c.ERROR_SNAPSHOT_DAMAGED


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
    c.ERROR_NOT_A_STORE: _errno.EINVAL,
    c.ERROR_NEWER_FORMAT: _errno.EINVAL,
    c.ERROR_TRANSPORT: _errno.ECONNABORTED,
}

#: Which class stands for which code.
CLASSES: dict[int, type[Error]] = {
    c.ERROR_INVALID_ARGUMENT: InvalidArgumentError,
    c.ERROR_INVALID_VALUE_ID: InvalidIDError,
    c.ERROR_INVALID_VERSION_ID: InvalidIDError,
    c.ERROR_INVALID_UTF8: InvalidIDError,
    c.ERROR_TOO_LARGE: TooLargeError,
    c.ERROR_STRUCT_SIZE: InvalidArgumentError,
    c.ERROR_DUPLICATE_ID: DuplicateIDError,
    c.ERROR_UNKNOWN_VERSION: UnknownVersionError,
    c.ERROR_UNKNOWN_PREDECESSOR: UnknownPredecessorError,
    c.ERROR_VERSION_MISMATCH: VersionMismatchError,
    c.ERROR_INVALID_REFERENCE: InvalidReferenceError,
    c.ERROR_INVALID_METADATA: InvalidMetadataError,
    c.ERROR_UNSUPPORTED: UnsupportedError,
    c.ERROR_NOT_FOUND: NotFoundError,
    c.ERROR_NOT_A_STORE: StorageError,
    c.ERROR_NEWER_FORMAT: StorageError,
    c.ERROR_READ_ONLY: PermissionDeniedError,
    c.ERROR_PERMISSION: PermissionDeniedError,
    c.ERROR_NO_SPACE: StorageError,
    c.ERROR_NOT_A_DIRECTORY: NotDirectoryError,
    c.ERROR_IO: StorageError,
    c.ERROR_DAMAGED: StorageError,
    c.ERROR_UNKNOWN_OUTCOME: StorageError,
    c.ERROR_BUSY: BusyError,
    c.ERROR_CLOSED: ClosedError,
    c.ERROR_FORKED: ForkedError,
    c.ERROR_CANCELLED: CancelledError,
    c.ERROR_USER: CallbackError,
    c.ERROR_OUT_OF_MEMORY: OutOfMemoryError,
    c.ERROR_INTERNAL: InternalError,
    c.ERROR_UNRESOLVED_CONFLICT: UnresolvedConflictError,
    c.ERROR_NO_COMMON_ANCESTOR: NoCommonAncestorError,
    c.ERROR_TRANSPORT: TransportError,
    c.ERROR_MISSING_CHANGES: ExchangeDataError,
    c.ERROR_MISSING_PREDECESSOR: ExchangeDataError,
    c.ERROR_INVALID_JSON: ExchangeDataError,
    c.ERROR_INVALID_BASE64: ExchangeDataError,
    c.ERROR_IDENTIFIER_MISMATCH: ExchangeDataError,
    c.ERROR_MISSING_VERSION: ExchangeDataError,
    c.ERROR_SNAPSHOT_DAMAGED: SnapshotError,
    c.ERROR_SNAPSHOT_MISSING: SnapshotError,
    c.ERROR_STORE_NOT_EMPTY: SnapshotError,
    c.ERROR_FOREIGN_SNAPSHOT: SnapshotError,
    c.ERROR_FOREIGN_FILE: ExchangeDataError,
}


def make(code: int, message: str, **about: str | None) -> Error:
    """The exception for a code. O(1)."""
    return CLASSES.get(code, Error)(message, code=code, **about)


def take(status: int, slot: Any) -> BaseException:
    """The exception for a failed call, whose `llvs_error *` (in `slot`, a `c_void_p`) is released here.

    That is the very exception of a callback, when one made the call fail.
    """
    from . import _abi, _callbacks, _memory  # they need this module first

    lib = _abi.lib
    pointer, slot.value = slot.value, None
    if not pointer:
        return make(status, f"the library answered with status {status}, and could not say more")
    try:
        kept = _callbacks.take_exception(lib.llvs_error_user_code(pointer))
        if kept is not None:
            return kept
        return make(
            status,
            lib.llvs_error_message(pointer).decode("utf-8", "replace"),
            value_id=_memory.text_or_none(lib.llvs_error_value_id(pointer)),
            version_id=_memory.text_or_none(lib.llvs_error_version_id(pointer)),
            path=_memory.text_or_none(lib.llvs_error_path(pointer)),
        )
    finally:
        lib.llvs_error_free(pointer)
