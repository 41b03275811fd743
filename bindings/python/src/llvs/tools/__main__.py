"""`python -m llvs.tools`, and the entry point of the program `llvs`."""

from __future__ import annotations

import os
import signal
import sys
from typing import Any


def main() -> None:
    """Runs the command. If its packages are missing, says what to install."""
    _open_missing()
    # Before the command has begun, and after it has ended, Ctrl-C ends the process as it ends a program without a handler.
    is_heeded = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if is_heeded:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        import click  # noqa: F401
    except ImportError:
        from . import HOW_TO_INSTALL

        sys.stderr.write(f"llvs: the command needs the package click, which is not installed: {HOW_TO_INSTALL}\n")
        sys.exit(2)
    sys.unraisablehook = _unraisable
    from . import failures, output
    from .command import run

    try:
        try:
            if is_heeded:
                signal.signal(signal.SIGINT, failures.interrupt)
            code = run(sys.argv[1:])
        finally:
            if is_heeded:
                signal.signal(signal.SIGINT, signal.SIG_DFL)
    except KeyboardInterrupt:
        # Ctrl-C came before `run` began, after it ended, or a second time while `run` reported the first one.
        if is_heeded:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
        told, code = failures.explain(KeyboardInterrupt())
        if output.last_said != f"llvs: {told}":
            output.say(f"llvs: {told}")
    for descriptor, stream in ((1, sys.stdout), (2, sys.stderr)):
        try:
            stream.flush()
        except OSError:
            # The error is reported already. This discards the rest of the buffer, so that the interpreter does not report it again.
            os.dup2(os.open(os.devnull, os.O_WRONLY), descriptor)
    sys.exit(code)


def _open_missing() -> None:
    """Opens standard input, output and error if they are closed ("llvs log >&-"), so that no file of a store gets their descriptors."""
    if sys.stdin is None:
        sys.stdin = open(os.devnull)
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w")
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")


def _unraisable(details: Any) -> None:
    """Handles exceptions that nothing can catch: sends a Ctrl-C that came there (for instance in a finalizer) once more."""
    if isinstance(details.exc_value, KeyboardInterrupt):
        import _thread
        import time

        def again() -> None:
            time.sleep(0.001)
            _thread.interrupt_main()

        _thread.start_new_thread(again, ())
    else:
        sys.__unraisablehook__(details)


if __name__ == "__main__":
    main()
