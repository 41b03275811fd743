"""Finds libllvs: the copy in the wheel, in the folder of the package, otherwise the one that LLVS_LIBRARY names.

No other place is tried: a library on the search path may be of another version.
"""

from __future__ import annotations

import ctypes
import os

from .._generated import constants as c

#: The name of the library in a wheel, in the folder of the package.
PACKAGED_NAME = f"libllvs.so.{c.VERSION_MAJOR}.{c.VERSION_MINOR}"

#: The SQLite extension, beside the library: docs/sqlite.md.
EXTENSION_NAME = "libllvs_sqlite.so"


def library_path() -> str:
    """Returns the path of the library to load.

    Raises ImportError, which says what to do, if there is none.
    """
    packaged = os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(__file__))), PACKAGED_NAME)
    if os.path.isfile(packaged):
        return packaged
    named = os.environ.get("LLVS_LIBRARY")
    if named:
        if not os.path.isfile(named):
            raise ImportError(f"LLVS_LIBRARY names {named!r}, where there is no file; build the library, or correct the variable")
        return named
    raise ImportError(
        "the package llvs carries no library: install a wheel of it (docs/install.md), or build libllvs "
        "and set the environment variable LLVS_LIBRARY to the path of libllvs.so"
    )


def refuse_subinterpreters() -> None:
    """Raises ImportError unless this is the main interpreter: C calls back into that one only."""
    current = ctypes.pythonapi["PyInterpreterState_Get"]
    current.restype = ctypes.c_void_p
    number = ctypes.pythonapi["PyInterpreterState_GetID"]
    number.argtypes, number.restype = [ctypes.c_void_p], ctypes.c_int64
    if number(current()) != 0:
        raise ImportError(
            "llvs cannot be used in a subinterpreter, since callbacks of C come into the main interpreter only: import it there, or in a"
            " process of its own"
        )


def load() -> tuple[ctypes.CDLL, ctypes.PyDLL]:
    """Loads the library twice: for calls that release the interpreter lock, and for short ones that keep it.

    Raises ImportError if the library is missing, cannot be loaded, or has a version that does not fit this package.
    """
    refuse_subinterpreters()
    path = library_path()
    try:
        releasing, keeping = ctypes.CDLL(path), ctypes.PyDLL(path)
        number = releasing.llvs_version_number
    except (OSError, AttributeError) as problem:
        raise ImportError(
            f"cannot load the llvs library from {path!r}: {problem}"
        ) from problem
    number.restype = ctypes.c_uint32
    found = number()
    major, minor = found >> 16, found >> 8 & 0xFF
    # While the major version is 0, the minor version counts incompatible changes.
    if major != c.VERSION_MAJOR or (minor < c.VERSION_MINOR if major else minor != c.VERSION_MINOR):
        raise ImportError(
            f"the llvs library at {path!r} is version {major}.{minor}, this package needs "
            f"{c.VERSION_MAJOR}.{c.VERSION_MINOR}; install the two from one release"
        )
    return releasing, keeping
