"""The library's messages, and registrations of unsolicited callbacks.

The library is silent until somebody listens.
"""

from __future__ import annotations

import ctypes
import enum
import logging
from typing import Any, Callable, Union

from . import _abi, _callbacks, _constants as c, _signals, _structs, errors
from ._handle import Handle
from ._memory import text


class LogLevel(enum.IntEnum):
    """How important a message is."""

    ERROR = c.LOG_ERROR
    WARNING = c.LOG_WARNING
    INFO = c.LOG_INFO
    DEBUG = c.LOG_DEBUG


class Observer(Handle):
    """A registration. `close()` ends it: it waits for a running callback (unless it is called from within it), then none comes after.

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

    def __repr__(self) -> str:
        return "the registration"

    def close(self) -> None:
        self._holder.discard(self)
        super().close()

    def _let_go(self) -> None:
        super()._let_go()
        _signals.listeners.discard(id(self))


#: Registrations for the log, which belong to nothing else.
_log_observers: set[Observer] = set()


def observe(function: Callable[..., Any], before: tuple[Any, ...], thunk: Any, target: Any, holder: set[Observer]) -> Observer:
    """Registers `target` behind `thunk` by one of the library's `_observe` functions, until `holder` closes it."""
    pointer = ctypes.c_void_p()
    payload = _callbacks.register(target)
    # The library frees the payload also when it refuses.
    function(*before, thunk, payload, _callbacks.payload_free, ctypes.byref(pointer))
    return Observer(pointer.value or 0, holder)


def _message(target: Callable[[LogLevel, str], Any], level: int, message: int) -> None:
    if target is not None:
        target(LogLevel(level), text(_structs.llvs_bytes.from_address(message)))


_thunk = _callbacks.unsolicited([ctypes.c_uint32, ctypes.c_void_p], _message, "a log callback of llvs")


def observe_log(callback: Callable[[LogLevel, str], Any], level: Union[LogLevel, str] = LogLevel.WARNING) -> Observer:
    """Calls `callback(level, message)` for each message of the library up to a level, from any thread, also several at once.

    `level` is a `LogLevel` or its name ("warning"). The callback may call the library, but not `observe_log`.
    """
    if isinstance(level, str):
        try:
            level = LogLevel[level.upper()]
        except KeyError:
            raise errors.InvalidArgumentError(f"{level!r} is no log level: use error, warning, info or debug") from None
    return observe(_abi.lib.llvs_log_observe, (int(level),), _thunk, callback, _log_observers)


_LOGGING_LEVELS = {
    LogLevel.ERROR: logging.ERROR,
    LogLevel.WARNING: logging.WARNING,
    LogLevel.INFO: logging.INFO,
    LogLevel.DEBUG: logging.DEBUG,
}


def log_to(logger: logging.Logger, level: Union[LogLevel, str] = LogLevel.WARNING) -> Observer:
    """Hands the library's messages to a logger of the standard library."""
    return observe_log(lambda level, message: logger.log(_LOGGING_LEVELS[level], "%s", message), level)
