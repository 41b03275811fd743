"""Results of exchanges and syncs of a coordinator, read from the library's results."""

from __future__ import annotations

import ctypes
from typing import Any, Callable, NamedTuple, Optional

from .. import _abi, errors
from .._abi.memory import copy, decode
from .._generated import structs as _structs
from ..store import _pages
from ..store.snapshot import Problem, take_problems

lib = _abi.lib


class Exchanged(NamedTuple):
    """The result of one of the exchanges of a coordinator."""

    #: The URL or name with which it was attached.
    place: str
    #: What the exchange did, even if it failed in the end.
    result: ExchangeResult
    #: The error that ended it; None if there was none.
    error: Optional[BaseException]


class ExchangeResult(NamedTuple):
    """The result of an exchange, or of all exchanges of a coordinator."""

    #: The ids of the versions that were added to the store.
    retrieved: tuple[str, ...]
    #: The ids of the versions that were sent.
    sent: tuple[str, ...]
    #: The items that could not be exchanged, and why.
    problems: tuple[Problem, ...]
    #: The ids of the damaged versions that were repaired.
    repaired: tuple[str, ...] = ()
    #: Of a coordinator: whether it moved the current version; the current version before, and now.
    moved: bool = False
    from_version: str = ""
    to_version: str = ""
    #: Of a coordinator: the result of each exchange that ran.
    exchanges: tuple[Exchanged, ...] = ()

    @property
    def versions(self) -> tuple[str, ...]:
        """The ids of the versions that were moved."""
        return self.retrieved + self.sent


class Pack(bytes):
    """Versions as bytes. `result` reports which versions it has, and which could not be packed."""

    #: The ids of the versions in it (`sent`), and the versions that could not be packed (`problems`).
    result: ExchangeResult

    def __new__(cls, data: bytes, result: ExchangeResult) -> Pack:
        made = super().__new__(cls, data)
        made.result = result
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        # Copies and pickles are made with the result as well.
        return Pack, (bytes(self), self.result)


class MergeResult(NamedTuple):
    """How a merge moved the current version. True if it did."""

    #: Whether it moved it.
    moved: bool
    #: The current version before.
    from_version: str
    #: The current version now.
    to_version: str

    def __bool__(self) -> bool:
        return self.moved


class BootstrapResult(NamedTuple):
    """Whether a snapshot was restored, and how that moved the current version. True if one was."""

    #: Whether a snapshot was restored.
    restored: bool
    #: Whether that moved the current version.
    moved: bool
    #: The current version before.
    from_version: str
    #: The current version now.
    to_version: str

    def __bool__(self) -> bool:
        return self.restored


class SyncResult(NamedTuple):
    """The result of a sync."""

    #: Whether it moved the current version.
    moved: bool
    #: The current version before the sync.
    from_version: str
    #: The current version now.
    to_version: str
    #: What all exchanges did before the merge.
    before: ExchangeResult
    #: What the exchanges did after the merge; None if that was not needed.
    after: Optional[ExchangeResult]
    #: Whether the merge moved the current version.
    merged: bool

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Returns the items that could not be exchanged, before the merge or after it, each once."""
        return tuple(dict.fromkeys(self.before.problems + (self.after.problems if self.after else ())))


def take_result(function: Callable[..., Any], *arguments: Any) -> ExchangeResult:
    """Returns the result that a function put into its last parameter before the error. Its exceptions carry the result, too."""
    pointer = ctypes.c_void_p()
    try:
        function(*arguments, ctypes.byref(pointer))
        return _result(pointer.value or 0)
    except BaseException as raised:
        # The result is given even with an error.
        if pointer.value:
            _tell(raised, _result(pointer.value, [raised]))
        raise
    finally:
        lib.llvs_exchange_result_free(pointer.value)


def _tell(raised: BaseException, result: Any) -> None:
    """Adds what was done to an exception. (An exception of the program may not accept the attribute.)"""
    try:
        setattr(raised, "result", result)
    except (AttributeError, TypeError):
        pass


def take_sync_result(function: Callable[..., Any], *arguments: Any) -> SyncResult:
    """As `take_result`, for a sync."""
    pointer = ctypes.c_void_p()
    try:
        function(*arguments, ctypes.byref(pointer))
        return _sync_result(pointer.value or 0, [])
    except BaseException as raised:
        if pointer.value:
            _tell(raised, _sync_result(pointer.value, [raised]))
        raise
    finally:
        lib.llvs_sync_result_free(pointer.value)


def _sync_result(address: int, raised: list[BaseException]) -> SyncResult:
    found = _structs.llvs_sync_result.from_address(address)
    before = _result(found.before, raised)
    after = None if found.after is None else _result(found.after, raised)
    return SyncResult(found.moved != 0, _text(getattr(found, "from")), _text(found.to), before, after, found.merged != 0)


def read_sync_result(address: int) -> SyncResult:
    """Returns a result of a sync that the library keeps and releases."""
    return _sync_result(address, [])


def moves(move: Any) -> tuple[bool, str, str]:
    """Returns whether an `llvs_move` moved the current version, and the version before and after."""
    return move.moved != 0, getattr(move, "from").text.decode(), move.to.text.decode()


def _text(bytes: Any) -> str:
    return decode(copy(bytes.data, bytes.size)) if bytes.size else ""


def _result(address: int, raised: Optional[list[BaseException]] = None) -> ExchangeResult:
    """Returns the result at an address. `raised`: the exception of the call, which is the first failure: the first error found gets it."""
    result = _structs.llvs_exchange_result.from_address(address)
    # The names of the attributes are constants here: if they were composed at run time, the interpreter would keep a copy of each name.
    retrieved, sent, repaired = (
        tuple(decode(id) for id in _pages.bytes_array(ids, count))
        for ids, count in (
            (result.retrieved, result.retrieved_count),
            (result.sent, result.sent_count),
            (result.repaired, result.repaired_count),
        )
    )
    problems = take_problems(result.problems, result.problem_count)
    exchanges = tuple(
        _exchanged(one, [] if raised is None else raised) for one in _pages.addresses(result.exchanges, result.exchange_count)
    )
    from_version, to_version = _text(getattr(result, "from")), _text(result.to)
    return ExchangeResult(retrieved, sent, problems, repaired, result.moved != 0, from_version, to_version, exchanges)


def _exchanged(address: int, raised: list[BaseException]) -> Exchanged:
    one = _structs.llvs_exchanged.from_address(address)
    error = None
    if one.error:
        # If this is the first failure, it is the exception that the call raised: the same object.
        error = raised.pop(0) if raised else errors.read(one.error, lib)
    return Exchanged(_text(one.place), _result(one.result), error)
