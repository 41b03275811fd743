"""Registrations of unsolicited callbacks: for the log, for changes of the current version, for news of an exchange."""

from __future__ import annotations

import ctypes
from typing import Any, Callable, Optional

from . import _abi, _callbacks, _signals
from ._handle import Handle


class Observer(Handle):
    """A registration. `close()` ends it: it waits for running callbacks, then none comes after.

    From within a callback of any registration `close()` does not wait, since two callbacks might wait for each other. Do not call it
    while you hold a lock that the callback takes: call `cancel()` there, and `close()` without the lock.

    It need not be held: it lasts until it is closed, or what it observes is. What callbacks raise goes to `sys.unraisablehook`.
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
        """Ends it without waiting: no callback begins after it, but one that runs on another thread may still run. May be called under any
        lock.
        """
        with self._call as pointer:
            _abi.lib.llvs_observer_cancel(pointer)

    def close(self) -> None:
        """Ends it: waits for a callback that runs on another thread, then none comes after. Closing again does nothing."""
        self._holder.discard(self)
        super().close()

    def _let_go(self) -> None:
        super()._let_go()
        _signals.listeners.discard(id(self))


def observe(function: Callable[..., Any], before: tuple[Any, ...], thunk: Any, target: Any, holder: set[Observer]) -> Observer:
    """Registers `target` behind `thunk` by one of the library's `_observe` functions, until `holder` closes it."""
    pointer = ctypes.c_void_p()
    payload = _callbacks.register(target)
    # The library frees the payload also when it refuses.
    function(*before, thunk, payload, _callbacks.payload_free, ctypes.byref(pointer))
    return Observer(pointer.value or 0, holder)


def _notify(target: Optional[Callable[[], Any]]) -> None:
    if target is not None:
        target()


#: Behind which callbacks without arguments are registered.
notify_thunk = _callbacks.unsolicited([], _notify, "a callback for news of a store or an exchange")
