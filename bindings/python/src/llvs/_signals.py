"""Keeps Python's signal handlers from raising where an exception would be lost.

Python runs its signal handlers when the main thread next executes bytecode. When a signal (Ctrl-C, say) comes while the main
thread is inside the library, that is the very beginning of a callback, before any `try`: ctypes could only print the
exception and answer the library with whatever lies on the stack. So during calls that may call back, all handlers are held: signals
are noted, and served within the callback, where what they raise is kept and raised from the call, or after the call.

Handlers may raise at any point of this module as well. Each function here comes to its end all the same, and raises then.
"""

from __future__ import annotations

import importlib
import signal
import threading
from typing import Any

# The functions below the module `signal`, which makes an enumeration of each answer: these run before and after each callback.
_below: Any = importlib.import_module("_signal")
_get, _set = _below.getsignal, _below.signal
_SIGNALS = tuple(int(number) for number in signal.valid_signals() if number not in (signal.SIGKILL, signal.SIGSTOP))
_main = threading.main_thread()

#: Calls of the main thread that hold the handlers, and what they hold.
_depth = 0
_held: dict[int, Any] = {}
_noted: list[tuple[int, Any]] = []

#: Registrations whose callbacks any call may lead to: while there are some, every call holds the handlers.
listeners: set[int] = set()

#: What ended a callback of the main thread and is no `Exception` (KeyboardInterrupt, say), until it is raised from the call. The library
#: may go on where a callback fails, without a cache, say: then it is raised when the call is over.
unheard: list[BaseException] = []

#: How often a handler may raise while handlers are changed.
_PATIENCE = 1000
#: Calls that a callback needs before it is within its `try`, and to keep what was raised there.
_HEADROOM = 16


def _note(number: int, frame: Any) -> None:
    if _depth:
        _noted.append((number, frame))
        return
    # Left in place by a second signal that came while handlers were given back.
    handler = _held.pop(number, None)
    if handler is not None:
        _set(number, handler)
        handler(number, frame)


def _take(depth: int) -> None:
    """Puts `_note` in the place of all handlers, for calls that are as deep as that, and raises what they raised meanwhile."""
    global _depth
    raised: BaseException | None = None
    for _ in range(_PATIENCE):
        try:
            _depth = depth
            for number, handler in zip(_SIGNALS, tuple(map(_get, _SIGNALS))):
                if callable(handler) and handler is not _note:
                    # Kept before it is replaced: a signal that comes in between must find the handler.
                    _held[number] = handler
                    _set(number, _note)
            break
        except BaseException as problem:
            raised = raised or problem
    if raised is not None:
        raise raised


def _give_back() -> None:
    """Puts the handlers back, and raises what they raised meanwhile."""
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
    """Runs the handlers of the signals that were noted, and raises what the first of them raised."""
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
    """To be raised by the outermost call, unless it comes out of one before."""
    if _depth and threading.get_ident() == _main.ident:
        unheard.append(problem)


def _reach(depth: int) -> None:
    if depth:
        _reach(depth - 1)


class Holding:
    """`with holding:` around a call that may call back. Other threads than the main one never run handlers: none are held there.

    Raises RecursionError where a callback would, out of everybody's reach.
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
        except BaseException:  # a signal came in between
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
    """`with serving:` within a callback, inside its `try`: Python's own handlers are back while code of the host runs."""

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
        """Holds the handlers again; also a second time, where a signal kept the first from beginning."""
        if self._depth:
            _take(self._depth)


holding = Holding()
