"""How the command ends: its exit codes, and the sentence for each exception."""

from __future__ import annotations

import errno
import os
from typing import NoReturn, Optional

import llvs

from .versions import VersionNameError

#: Exit codes. 130 is the code that shells give to a program that Ctrl-C ended.
DONE, NOT_SO, MISUSED, STORE, NETWORK, INTERRUPTED = 0, 1, 2, 3, 4, 130


#: Whether Ctrl-C was pressed since the command began.
_is_interrupted = False


def interrupt(number: int, frame: object) -> NoReturn:
    """The command's handler of Ctrl-C. It records the Ctrl-C before it raises, because Python and libraries sometimes replace the
    exception.

    For instance, if a class is being created, Python 3.11 raises a RuntimeError instead.
    """
    global _is_interrupted
    _is_interrupted = True
    raise KeyboardInterrupt


def begin() -> None:
    """Begins a command: clears the record of Ctrl-C."""
    global _is_interrupted
    _is_interrupted = False


def stop_if_interrupted() -> None:
    """Raises KeyboardInterrupt if Ctrl-C was pressed and another exception was raised instead."""
    if _is_interrupted:
        raise KeyboardInterrupt


class Failure(Exception):
    """Ends a command: a sentence that says what to do, and the exit code of its kind."""

    def __init__(self, message: str, code: int = NOT_SO) -> None:
        super().__init__(message)
        self.code = code


def explain(error: BaseException) -> tuple[str, int]:
    """Returns the sentence and the exit code for an exception of a command."""
    cause = KeyboardInterrupt() if _is_interrupted else error
    return shortened(_sentence(cause)), code_of(cause)


def shortened(text: str) -> str:
    """Returns a sentence with the middle of very long input left out; the end of the sentence, which says what to do, stays."""
    return text if len(text) <= 2000 else f"{text[:500]} ... {text[-500:]}"


def code_of(error: BaseException) -> int:
    """Returns the exit code for an exception."""
    if isinstance(error, Failure):
        return error.code
    if isinstance(error, (KeyboardInterrupt, llvs.CancelledError)):
        return INTERRUPTED
    if isinstance(error, (llvs.TransportError, llvs.errors.ExchangeDataError)):
        return NETWORK
    if isinstance(error, (llvs.errors.MergeError, llvs.MovedError)):
        return NOT_SO
    misused = llvs.errors.InvalidArgumentError, llvs.errors.UnknownVersionError, llvs.errors.UnsupportedError
    if isinstance(error, (VersionNameError, *misused)):
        return MISUSED
    return STORE


def _sentence(error: BaseException) -> str:
    if isinstance(error, (KeyboardInterrupt, llvs.CancelledError)):
        return "stopped; what was done whole is kept"
    if isinstance(error, llvs.NotFoundError) and "restoration state" in str(error):
        return f"{error} With this command: `llvs exchange --join PLACE`."
    if isinstance(error, (Failure, VersionNameError, llvs.Error)):
        return str(error)
    if isinstance(error, MemoryError):
        return "there is not enough memory for this"
    if isinstance(error, OSError):
        return _of_system(error)
    return f"this is a mistake of the command itself ({type(error).__name__}: {error}): run it again with --debug, and report what it shows"


def _of_system(error: OSError) -> str:
    reason = os.strerror(error.errno) if error.errno else str(error)
    about = _name(error.filename)
    where = f"{about}: {reason}" if about else f"writing failed: {reason}"
    return f"{where}; make room and run it again" if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG) else where


def _name(filename: object) -> Optional[str]:
    if isinstance(filename, (str, bytes)):
        return os.fsdecode(filename)
    return None
