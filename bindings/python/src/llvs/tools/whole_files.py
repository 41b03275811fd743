"""Writes files as a whole or not at all."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Iterator


@contextlib.contextmanager
def whole(file: Path) -> Iterator[Path]:
    """Yields the path of a new file beside `file`. It replaces `file` when the block ends; if the block raises, nothing is left.

    Errors of the system name `file`.
    """
    partial = file.with_name(f".{file.name}.{os.getpid()}.part")
    try:
        yield partial
        partial.replace(file)
    except BaseException as problem:
        with contextlib.suppress(OSError):
            partial.unlink()
        if isinstance(problem, OSError) and problem.errno and problem.filename == str(partial):
            raise OSError(problem.errno, os.strerror(problem.errno), str(file)) from None
        raise
