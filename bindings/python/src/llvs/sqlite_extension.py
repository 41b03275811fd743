"""Where the SQLite extension lies, by which SQL reads stores: docs/sqlite.md."""

from __future__ import annotations

import os

from . import errors
from ._abi.library import EXTENSION_NAME, library_path


def sqlite_extension_path() -> str:
    """The path of `libllvs_sqlite.so`, which SQLite loads as an extension:

        database = sqlite3.connect(":memory:")
        database.enable_load_extension(True)
        database.load_extension(llvs.sqlite_extension_path())
        database.execute("SELECT id, data FROM llvs_values('notes.llvs')")

    It lies beside the library, in wheels as well. Raises NotFoundError when it does not: a debug build has none.
    """
    path = os.path.join(os.path.dirname(os.path.realpath(library_path())), EXTENSION_NAME)
    if not os.path.isfile(path):
        raise errors.NotFoundError(f"there is no SQLite extension at {path}: CMake builds it beside the library (docs/sqlite.md)")
    return path
