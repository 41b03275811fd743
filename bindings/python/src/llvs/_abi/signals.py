"""Keeps Python's signal handlers from raising where an exception would be lost.

Python runs its signal handlers when the main thread next executes bytecode. If a signal (Ctrl-C, for instance) arrives while the main
thread is inside the library, that moment is the beginning of the next callback, before any `try`. ctypes could only print the
exception, and answer the library with whatever is on the stack. Therefore all handlers are held during calls that may call back: signals
are recorded, and handled inside the callback or after the call. Exceptions of handlers inside a callback are kept and raised by the call.

Handlers may raise at any point of this module as well. Each function here nevertheless completes, and raises afterwards.
"""

from __future__ import annotations

import importlib
import signal
import threading
from typing import Any

# The C functions behind the module `signal`, which makes an enumeration of each answer: these run before and after each callback.
_below: Any = importlib.import_module("_signal")
_get, _set = _below.getsignal, _below.signal
_SIGNALS = tuple(int(number) for number in signal.valid_signals() if number not in (signal.SIGKILL, signal.SIGSTOP))
_main = threading.main_thread()

#: The number of calls of the main thread that hold the handlers, and the handlers that they hold.
_depth = 0
_held: dict[int, Any] = {}
_noted: list[tuple[int, Any]] = []

#: Registrations whose callbacks any call may run. While there are any, every call holds the handlers.
listeners: set[int] = set()

#: The exception that ended a callback of the main thread and is no `Exception` (KeyboardInterrupt, for instance), until the call raises
#: it. The library may continue after a failed callback, for instance without a cache: then the exception is raised after the call.
unheard: list[BaseException] = []

#: How often a handler may raise while handlers are replaced.
_PATIENCE = 1000
#: The recursion depth that a callback needs before it has entered its `try`, and to keep an exception.
_HEADROOM = 16


def _note(number: int, frame: Any) -> None:
    if _depth:
        _noted.append((number, frame))
        return
    # A second signal that arrived while handlers were restored left this one in place.
    handler = _held.pop(number, None)
    if handler is not None:
        _set(number, handler)
        handler(number, frame)


def _take(depth: int) -> None:
    """Replaces all handlers by `_note`, for calls at this depth, and raises what they raised meanwhile."""
    global _depth
    raised: BaseException | None = None
    for _ in range(_PATIENCE):
        try:
            _depth = depth
            for number, handler in zip(_SIGNALS, tuple(map(_get, _SIGNALS))):
                if callable(handler) and handler is not _note:
                    # Stored before it is replaced: a signal that arrives in between must find the handler.
                    _held[number] = handler
                    _set(number, _note)
            break
        except BaseException as problem:
            raised = raised or problem
    if raised is not None:
        raise raised


def _give_back() -> None:
    """Restores the handlers, and raises what they raised meanwhile."""
    global _depth
    raised: BaseException | None = None
    for _ in range(_PATIENCE):
        try:
            for number, handler in tuple(_held.items()):
                if _get(number) is _note:
                    _set(number, handler)
                del _held[number]
            _depth = 0
            break
        except BaseException as problem:
            raised = raised or problem
    if raised is not None:
        raise raised


def _serve() -> None:
    """Runs the handlers of the signals that were recorded, and raises the exception of the first handler that raised."""
    raised: BaseException | None = None
    while _noted:
        try:
            number, frame = _noted[0]
            handler = _get(number)
            del _noted[0]
            if callable(handler):
                handler(number, frame)
        except BaseException as problem:
            raised = raised or problem
    if raised is not None:
        raise raised


def hear_later(problem: BaseException) -> None:
    """Keeps an exception for the outermost call to raise, unless an inner call raises it before."""
    if _depth and threading.get_ident() == _main.ident:
        unheard.append(problem)


def _reach(depth: int) -> None:
    if depth:
        _reach(depth - 1)


class Holding:
    """`with holding:` around a call that may call back. Only the main thread runs handlers, so for other threads it does nothing.

    Raises RecursionError if too little depth is left for a callback, in which the RecursionError would be lost.
    """

    __slots__ = ()

    def __enter__(self) -> None:
        global _depth
        _reach(_HEADROOM)
        if threading.get_ident() != _main.ident:
            return
        if _depth:
            _depth += 1
            return
        try:
            _take(1)
        except BaseException:  # A signal arrived in between.
            _give_back()
            raise

    def __exit__(self, *_: object) -> None:
        global _depth
        if threading.get_ident() != _main.ident:
            return
        if _depth > 1:
            _depth -= 1
        elif _depth:
            try:
                _give_back()
            finally:
                _serve()
                if unheard:
                    problem = unheard[0]
                    unheard.clear()
                    raise problem


class Serving:
    """`with serving:` within a callback, inside its `try`: restores Python's own handlers while code of the host runs."""

    __slots__ = ("_depth",)
    _depth: int

    def __enter__(self) -> None:
        self._depth = 0
        if _depth and threading.get_ident() == _main.ident:
            self._depth = _depth
            try:
                _give_back()
                _serve()
            except BaseException:
                self.__exit__()
                raise

    def __exit__(self, *_: object) -> None:
        """Holds the handlers again. Runs a second time if a signal kept the first run from beginning."""
        if self._depth:
            _take(self._depth)


holding = Holding()
