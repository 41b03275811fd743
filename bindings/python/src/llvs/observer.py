"""Registrations of unsolicited callbacks: for the log, for moves of the current version, for new versions at a place."""

from __future__ import annotations

import ctypes
from typing import Any, Callable, Optional

from . import _abi
from ._abi import callbacks as _callbacks, signals as _signals
from ._abi.handle import Handle


class Observer(Handle):
    """A registration. `close()` ends it and waits for running callbacks; afterwards no callback runs.

    If it is called from within a callback of any registration, `close()` does not wait, since two callbacks might wait for each other. Do
    not call it while you hold a lock that the callback takes: call `cancel()` under the lock, and `close()` afterwards without it.

    It need not be referenced: it lasts until it, or the observed object, is closed. Exceptions of callbacks go to `sys.unraisablehook`.
    """

    _release = "llvs_observer_free"
    _warns = False
    _exit_order = 9

    def __init__(self, pointer: int, holder: set[Observer]) -> None:
        super().__init__(pointer)
        self._holder = holder
        holder.add(self)
        _signals.listeners.add(id(self))

    def _what(self) -> str:
        return "the registration"

    def cancel(self) -> None:
        """Ends it without waiting: no callback begins afterwards, but one on another thread may still be running. May be called under any
        lock.
        """
        with self._call as pointer:
            _abi.lib.llvs_observer_cancel(pointer)

    def close(self) -> None:
        """Ends it, and waits for a callback that runs on another thread; afterwards no callback runs. Closing again does nothing."""
        self._holder.discard(self)
        super().close()

    def _let_go(self) -> None:
        super()._let_go()
        _signals.listeners.discard(id(self))


def observe(function: Callable[..., Any], before: tuple[Any, ...], thunk: Any, target: Any, holder: set[Observer]) -> Observer:
    """Registers `target` behind `thunk` by one of the library's `_observe` functions, until `holder` closes it."""
    pointer = ctypes.c_void_p()
    payload = _callbacks.register(target)
    # The library frees the payload also if it refuses.
    function(*before, thunk, payload, _callbacks.payload_free, ctypes.byref(pointer))
    return Observer(pointer.value or 0, holder)


def _notify(target: Optional[Callable[[], Any]]) -> None:
    if target is not None:
        target()


#: Behind which callbacks without arguments are registered.
notify_thunk = _callbacks.unsolicited([], _notify, "a callback for news of a store or an exchange")
