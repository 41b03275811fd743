"""The library's messages. Without a registered receiver it is silent."""

from __future__ import annotations

import ctypes
import logging
from typing import Any, Callable, Union

from . import _abi, errors
from ._abi import callbacks as _callbacks
from ._abi.enums import NamedNumber
from ._abi.memory import text
from ._generated import constants as c, structs as _structs
from .control import Observer, observe
from .words import LogLevelName

__all__ = ["LogLevel", "log_to", "observe_log"]


class LogLevel(NamedNumber):
    """How important a message is."""

    ERROR = c.LOG_ERROR
    WARNING = c.LOG_WARNING
    INFO = c.LOG_INFO
    DEBUG = c.LOG_DEBUG


#: Registrations for the log, which belong to nothing else.
_log_observers: set[Observer] = set()


def _message(target: Callable[[LogLevel, str], Any], level: int, message: int) -> None:
    if target is not None:
        target(LogLevel(level), text(_structs.llvs_bytes.from_address(message)))


_thunk = _callbacks.unsolicited([ctypes.c_uint32, ctypes.c_void_p], _message, "a log callback of llvs")


def observe_log(callback: Callable[[LogLevel, str], Any], level: Union[LogLevel, LogLevelName, int] = LogLevel.WARNING) -> Observer:
    """Registers a receiver: `callback(level, message)` is called for each message of the library up to a level, on any thread, also on
    several at once.

    `level` is a `LogLevel`, its name ("warning"), or a level of `logging` (`logging.DEBUG`): messages of that importance and above are
    received. The callback may call the library, but not `observe_log`.
    """
    if not callable(callback):
        raise TypeError(f"a callback for messages is a function of a level and a text, not {type(callback).__name__}")
    return observe(_abi.lib.llvs_log_observe, (_number(level),), _thunk, callback, _log_observers)


def _number(level: Union[LogLevel, LogLevelName, int]) -> int:
    """Returns the level in the library's form."""
    if isinstance(level, str):
        try:
            return LogLevel[level.upper()]
        except KeyError:
            pass
    elif isinstance(level, LogLevel):
        return level
    elif isinstance(level, int) and level >= logging.DEBUG:
        # The library has no CRITICAL above ERROR; a level in between includes the more important ones.
        return next((ours for ours, theirs in _LOGGING_LEVELS.items() if theirs >= level), LogLevel.ERROR)
    elif not isinstance(level, int):
        raise TypeError(f"a log level is an llvs.log.LogLevel, its name, or a level of logging, not {type(level).__name__}")
    raise errors.InvalidArgumentError(
        f"{level!r} is no log level: use error, warning, info or debug, or a level of logging (logging.DEBUG)"
    )


_LOGGING_LEVELS = {
    LogLevel.DEBUG: logging.DEBUG,
    LogLevel.INFO: logging.INFO,
    LogLevel.WARNING: logging.WARNING,
    LogLevel.ERROR: logging.ERROR,
}


def log_to(logger: logging.Logger, level: Union[LogLevel, LogLevelName, int] = LogLevel.WARNING) -> Observer:
    """Passes the library's messages to a logger of the standard library. `level`: as for `observe_log`; the logger has a level of its own
    in addition.
    """
    if not callable(getattr(logger, "log", None)):
        raise TypeError(f"messages go to a logger of the standard library, not to {type(logger).__name__}; observe_log takes a function")
    return observe_log(lambda level, message: logger.log(_LOGGING_LEVELS[level], "%s", message), level)
