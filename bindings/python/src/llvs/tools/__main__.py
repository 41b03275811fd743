"""`python -m llvs.tools`, and what the program `llvs` calls."""

from __future__ import annotations

import os
import signal
import sys
from typing import Any


def main() -> None:
    """Runs the command, and says what to install where its libraries are missing."""
    _open_missing()
    # While nothing is done yet, and when all is done, Ctrl-C ends this as it ends programs that do not look at it.
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
        # Before `run` looks for it, behind it, or once more while the first one was told of.
        if is_heeded:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
        told, code = failures.explain(KeyboardInterrupt())
        if output.last_said != f"llvs: {told}":
            output.say(f"llvs: {told}")
    for descriptor, stream in ((1, sys.stdout), (2, sys.stderr)):
        try:
            stream.flush()
        except OSError:
            # Told of already. What is still buffered goes nowhere, and the interpreter says no more of it.
            os.dup2(os.open(os.devnull, os.O_WRONLY), descriptor)
    sys.exit(code)


def _open_missing() -> None:
    """Opens what is closed of standard input, output and error ("llvs log >&-"): no file of a store may come into their places."""
    if sys.stdin is None:
        sys.stdin = open(os.devnull)
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w")
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")


def _unraisable(details: Any) -> None:
    """What Python raised where nothing can be raised: a Ctrl-C that came there (in a finalizer, say) comes again."""
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
