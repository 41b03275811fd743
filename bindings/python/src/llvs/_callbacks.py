"""Callbacks from the library into Python.

A callback registered with the library is one of a few thunks made at import, which live as long as this module, and a
payload: the number under which `registry` keeps the Python object until the library says, by `payload_free`, that it has
let go of it. So no thunk is ever freed while C may still call it.

When a thunk is called from the main thread, the call that led there holds the handlers of signals (`_signals`), or they would raise before
the
thunk is within its `try`: of that ctypes tells nobody but the log, and answers with whatever lies on the stack, 0 maybe. Against what
else might end a thunk there (`PyThreadState_SetAsyncExc`, say) the answers that say that something is there are more than a 0: bytes of
a value come with their number, and its end and the places of records with numbers that are none by accident.

An exception in a callback is kept under a number (`_callback_errors`), which travels through the library as the error's user code, and is
raised again from the call that the callback made fail (`errors.take`). Unsolicited callbacks have no such call: their
exceptions go to `sys.unraisablehook`.
"""

from __future__ import annotations

import ctypes
import itertools
import sys
from types import SimpleNamespace
from typing import Any, Callable

from . import _abi, _callback_errors, _constants as c, _signals, errors

#: What the library may still call, by payload.
registry: dict[int, Any] = {}
_numbers = itertools.count(1)

#: Codes that an `llvs.Error` raised by a storage or transport may have that mean the same to the library.
_KEPT_CODES = frozenset(
    (
        c.ERROR_NO_SPACE,
        c.ERROR_PERMISSION,
        c.ERROR_IO,
        c.ERROR_DAMAGED,
        c.ERROR_READ_ONLY,
        c.ERROR_NOT_FOUND,
        c.ERROR_BUSY,
        c.ERROR_TOO_MANY_FILES,
        c.ERROR_UNKNOWN_OUTCOME,
        c.ERROR_TRANSPORT,
        c.ERROR_CANCELLED,
    )
)


def register(target: Any) -> int:
    """Keeps `target` until the library frees the payload that is returned. O(1)."""
    number = next(_numbers)
    registry[number] = target
    return number


def keep_exception(problem: BaseException, slot: int | None) -> int:
    """Puts an exception into a callback's `llvs_error **` and returns the status to answer with."""
    number = _callback_errors.keep(problem)
    if slot:
        try:
            message = f"{type(problem).__name__}: {problem}"
        except Exception:
            message = type(problem).__name__
        made = _abi.lib.llvs_error_make(number, message.encode("utf-8", "replace"))
        ctypes.c_void_p.from_address(slot).value = made
    code = getattr(problem, "code", None) if isinstance(problem, errors.Error) else None
    return int(code) if code in _KEPT_CODES else c.ERROR_USER


def report_unraisable(problem: BaseException, target: Any, what: str) -> None:
    """Hands an exception that no call can raise to `sys.unraisablehook`."""
    details = SimpleNamespace(
        exc_type=type(problem),
        exc_value=problem,
        exc_traceback=problem.__traceback__,
        err_msg=f"Exception ignored in {what}",
        object=target,
    )
    try:
        sys.unraisablehook(details)
    except BaseException:
        pass  # a hook that fails has nobody left to tell


#: The `llvs_free_fn` of everything registered here. No bytecode of its own: no signal is served in it, and lost.
payload_free = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(registry.pop)


def solicited(parameter_types: list[Any], body: Callable[..., int | None]) -> Any:
    """A thunk whose exceptions are kept for the call that led here.

    `body` gets the registered object and the C arguments save payload and error, and returns the status (None: LLVS_OK).
    """

    def thunk(payload: int | None, *arguments: Any) -> int:
        *values, slot = arguments
        serving = _signals.Serving()
        try:
            try:
                with serving:
                    return body(registry[payload or 0], *values) or c.OK
            except BaseException as problem:
                serving.__exit__()
                return keep_exception(problem, slot)
        except BaseException as problem:  # a second one, while the first was being kept
            serving.__exit__()
            return keep_exception(problem, slot)

    return ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, *parameter_types, ctypes.c_void_p)(thunk)


def unsolicited(parameter_types: list[Any], body: Callable[..., None], what: str) -> Any:
    """A thunk whose exceptions go to `sys.unraisablehook`."""

    def thunk(payload: int | None, *arguments: Any) -> None:
        target = registry.get(payload or 0)
        try:
            body(target, *arguments)
        except BaseException as problem:
            report_unraisable(problem, target, what)

    return ctypes.CFUNCTYPE(None, ctypes.c_void_p, *parameter_types)(thunk)
