"""`python -m llvs.tools`, and what the program `llvs` calls."""

from __future__ import annotations

import os
import signal
import sys


def main() -> None:
    """Runs the command, and says what to install where its libraries are missing."""
    # While nothing is done yet, and when all is done, Ctrl-C ends this as it ends programs that do not look at it.
    is_heeded = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if is_heeded:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        import click  # noqa: F401
    except ImportError:
        sys.stderr.write('llvs: the command needs libraries that are not here: install them with: pip install "llvs[tools]"\n')
        sys.exit(2)
    from .command import run

    try:
        if is_heeded:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        code = run(sys.argv[1:])
    except KeyboardInterrupt:
        # Once more, while the first one was told of.
        code = 130
    finally:
        if is_heeded:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        sys.stdout.flush()
    except OSError:
        # Told of already. What is still buffered goes nowhere, and the interpreter says no more of it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    sys.exit(code)


if __name__ == "__main__":
    main()
