"""Files that are written whole or not at all."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Iterator


@contextlib.contextmanager
def whole(file: Path) -> Iterator[Path]:
    """Where to write what `file` gets when the block ends: a file beside it, which is not there yet. What raises leaves nothing.

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
