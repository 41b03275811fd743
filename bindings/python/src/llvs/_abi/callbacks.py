"""Callbacks from the library into Python.

A callback that is registered with the library has two parts. One is a thunk: there are a few, made at import, which live as long as
this module. The other is a payload: the number under which `registry` holds the Python object until the library calls `payload_free`.
So no thunk is freed while C may still call it.

If a thunk is called from the main thread, the call that led to it holds the signal handlers (`signals`). Otherwise they could raise
before the thunk has entered its `try`. ctypes only logs such an exception, and answers the library with whatever is on the stack,
possibly 0. Other exceptions can still end a thunk there, for instance by `PyThreadState_SetAsyncExc`. Therefore an answer that reports
content is never just a 0: bytes of a value come with their count, and the end of a value and the locations of records with numbers that
do not occur by accident.

An exception in a callback is kept under a number (`callback_errors`). The library passes the number on as the user code of its error,
and the call that failed because of the callback raises the exception again (`errors.take`). Unsolicited callbacks have no such call:
their exceptions go to `sys.unraisablehook`.
"""

from __future__ import annotations

import ctypes
import itertools
import sys
from types import SimpleNamespace
from typing import Any, Callable

from .. import _abi, errors
from .._generated import constants as c
from . import callback_errors as _callback_errors, signals as _signals

#: The objects that the library may still call, by payload.
registry: dict[int, Any] = {}
_numbers = itertools.count(1)

#: Codes of an `llvs.Error` that have the same meaning for the library if a storage or transport raises them.
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
    """Holds `target` until the library frees the returned payload. O(1)."""
    number = next(_numbers)
    registry[number] = target
    return number


def keep_exception(problem: BaseException, slot: int | None) -> int:
    """Writes an exception to the `llvs_error **` of a callback, and returns the status to answer with."""
    number = _callback_errors.keep(problem)
    if slot:
        try:
            message = f"{type(problem).__name__}: {problem}"
        except Exception:
            message = type(problem).__name__
        made = _abi.lib.llvs_error_create(number, message.encode("utf-8", "replace"))
        ctypes.c_void_p.from_address(slot).value = made
    code = getattr(problem, "code", None) if isinstance(problem, errors.Error) else None
    return int(code) if code in _KEPT_CODES else c.ERROR_USER


def report_unraisable(problem: BaseException, target: Any, what: str) -> None:
    """Passes an exception that no call can raise to `sys.unraisablehook`. Python's own hook takes only what Python itself makes, so
    the same text is written in its place."""
    details = SimpleNamespace(
        exc_type=type(problem),
        exc_value=problem,
        exc_traceback=problem.__traceback__,
        err_msg=f"Exception ignored in {what}",
        object=target,
    )
    try:
        if sys.unraisablehook is sys.__unraisablehook__:
            if sys.stderr is not None:
                import traceback

                lines = traceback.format_exception(type(problem), problem, problem.__traceback__)
                sys.stderr.write(f"{details.err_msg}\n{''.join(lines)}")
                sys.stderr.flush()
        else:
            sys.unraisablehook(details)
    except BaseException:
        pass  # The hook itself failed: there is nothing left to report to.


#: The `llvs_free_fn` of everything that is registered here. It runs no bytecode, so no signal handler can raise in it.
payload_free = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(registry.pop)


def solicited(parameter_types: list[Any], body: Callable[..., int | None]) -> Any:
    """Makes a thunk whose exceptions are kept for the call that led to it.

    `body` receives the registered object and the C arguments, except payload and error, and returns the status (None: LLVS_OK).
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
        except BaseException as problem:  # A second exception, while the first one was being kept.
            serving.__exit__()
            return keep_exception(problem, slot)

    return ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, *parameter_types, ctypes.c_void_p)(thunk)


def unsolicited(parameter_types: list[Any], body: Callable[..., None], what: str) -> Any:
    """Makes a thunk whose exceptions go to `sys.unraisablehook`."""

    def thunk(payload: int | None, *arguments: Any) -> None:
        target = registry.get(payload or 0)
        try:
            body(target, *arguments)
        except BaseException as problem:
            report_unraisable(problem, target, what)

    return ctypes.CFUNCTYPE(None, ctypes.c_void_p, *parameter_types)(thunk)
