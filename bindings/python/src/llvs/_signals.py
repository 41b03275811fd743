"""Keeps Python's signal handlers from raising where an exception would be lost.

Python runs its signal handlers when the main thread next executes bytecode. When a signal (Ctrl-C, say) comes while the main
thread is inside the library, that is the very beginning of a callback, before any `try`: ctypes could only print the
exception and answer the library with whatever lies on the stack. So during calls that may call back, handlers are held: signals
are noted, and served within the callback, where what they raise is kept and raised from the call, or after the call.
"""

from __future__ import annotations

import signal
import threading
from typing import Any

_SIGNALS = [
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGALRM", "SIGUSR1", "SIGUSR2") if hasattr(signal, name)
]
_main = threading.main_thread()

#: Calls of the main thread that hold the handlers, and what they hold.
_depth = 0
_held: dict[int, Any] = {}
_noted: list[tuple[int, Any]] = []


def _note(number: int, frame: Any) -> None:
    _noted.append((number, frame))


def _hold() -> None:
    for number in _SIGNALS:
        handler = signal.getsignal(number)
        if callable(handler) and handler is not _note and not isinstance(handler, signal.Handlers):
            # Noted before it is replaced: a signal that comes in between must find the handler.
            _held[number] = handler
            signal.signal(number, _note)


def _release() -> None:
    while _held:
        number, handler = _held.popitem()
        if signal.getsignal(number) is _note:
            signal.signal(number, handler)


def serve() -> None:
    """Runs the handlers of the signals that were noted. What they raise is raised."""
    while _noted:
        number, frame = _noted.pop(0)
        handler = _held.get(number) or signal.getsignal(number)
        if callable(handler) and handler is not _note:
            handler(number, frame)


class Holding:
    """`with holding:` around a call that may call back. Other threads than the main one never run handlers: nothing happens there."""

    __slots__ = ()

    def __enter__(self) -> None:
        global _depth
        if threading.get_ident() == _main.ident:
            _depth += 1
            if _depth == 1:
                try:
                    _hold()
                except BaseException:  # a signal came in between
                    _depth = 0
                    _release()
                    raise

    def __exit__(self, *_: object) -> None:
        global _depth
        if threading.get_ident() == _main.ident and _depth:
            _depth -= 1
            if _depth == 0:
                _release()
                serve()


class Serving:
    """`with serving:` within a callback, inside its `try`: Python's own handlers are back while code of the host runs."""

    __slots__ = ("_depth",)

    def __enter__(self) -> None:
        global _depth
        self._depth = 0
        if _depth and threading.get_ident() == _main.ident:
            self._depth, _depth = _depth, 0
            _release()
            serve()

    def __exit__(self, *_: object) -> None:
        global _depth
        if self._depth:
            _hold()
            _depth = self._depth


holding = Holding()
