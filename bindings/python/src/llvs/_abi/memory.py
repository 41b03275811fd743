"""Converts text and bytes between Python and the library.

Each input is read once, and by functions of `str` and `memoryview` that no subclass can override: an object of a subclass may report
another size at each call, or other contents by each method. So the library receives only genuine `bytes`.

Values are passed joined, many in one piece of memory. `array` computes their addresses in one pass: a loop over ctypes structs would
cost ten times as much. Results are read page by page, see `store._pages`.
"""
from __future__ import annotations

import ctypes
import os
from array import array
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Iterable, Sequence, Union

import llvs

if TYPE_CHECKING:
    from typing_extensions import Buffer as Buffer
else:
    try:
        from collections.abc import Buffer
    except ImportError:  # before Python 3.12

        class Buffer:
            """Any object that `memoryview` accepts: `collections.abc.Buffer` if the Python version has it."""


#: Types that are accepted as bytes.
BytesLike = Union[bytes, bytearray, memoryview, Buffer]
#: Types that are accepted as a path.
PathLike = Union[str, bytes, os.PathLike[str], os.PathLike[bytes]]

#: Larger pieces are not joined, so that a value of 1 GiB is not copied before the call.
LARGE = 1 << 16

copy = ctypes.string_at

#: As `copy`, with less overhead. (A separate function object: other code may set other prototypes in `pythonapi`.)
piece: Any = ctypes.pythonapi["PyBytes_FromStringAndSize"]
piece.argtypes = [ctypes.c_void_p, ctypes.c_ssize_t]
piece.restype = ctypes.py_object


def encode(text: str) -> bytes:
    """Returns text as UTF-8. Text that UTF-8 cannot represent (lone surrogates) becomes bytes that the library refuses with an error."""
    try:
        return str.encode(text)
    except UnicodeEncodeError:
        return str.encode(text, "utf-8", "surrogatepass")
    except TypeError:
        raise TypeError(f"an id or name is a str, not {type(text).__name__}") from None


def decode(data: bytes) -> str:
    """Returns the library's bytes as text. Bytes that are not UTF-8 (in the name of a foreign file, for instance) are escaped, not lost."""
    return data.decode("utf-8", "surrogateescape")


def encode_name(name: str | bytes) -> bytes:
    """The inverse of `decode`."""
    if isinstance(name, (bytes, bytearray)):
        return as_bytes(name, "a name")
    try:
        return str.encode(name, "utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return encode(name)
    except TypeError:
        raise TypeError(f"a name is a str, not {type(name).__name__}") from None


def version_bytes(version: llvs.Version | str) -> bytes:
    """Returns the id of a version argument as bytes."""
    if isinstance(version, str):
        return encode(version)
    try:
        return as_bytes(version._id_bytes)
    except AttributeError:
        raise TypeError(f"a version is a Version or its id, not {type(version).__name__}") from None


def path_bytes(path: PathLike) -> bytes:
    """Returns a path in the form that the library accepts: UTF-8, whatever the locale is. Bytes from the system that are not UTF-8 are
    unchanged.
    """
    return encode_name(os.fspath(path))


def folder_url(path: PathLike) -> str:
    """Returns the URL of a folder, as exchanges accept it."""
    plain = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/-_."
    return "file://" + "".join(chr(byte) if byte in plain else f"%{byte:02X}" for byte in os.path.abspath(path_bytes(path)))


def as_bytes(data: BytesLike, what: str = "a value") -> bytes:
    """Returns the bytes of a bytes-like object; `bytes` are not copied. Text is refused: the caller has to choose an encoding. `what` names
    the argument in the message.
    """
    if type(data) is bytes:
        return data
    if isinstance(data, (int, str)):
        raise TypeError(f"{what} is bytes or bytes-like, not {type(data).__name__}{': encode it first' if isinstance(data, str) else ''}")
    try:
        # While a view exists, no code can resize a bytearray.
        with memoryview(data) as view:
            return view.tobytes()
    except TypeError:
        raise TypeError(f"{what} is bytes or bytes-like, not {type(data).__name__}") from None


def text(pair: Any) -> str:
    """Returns the text of an `llvs_bytes`."""
    return decode(copy(pair.data, pair.size)) if pair.size else ""


def text_or_none(pair: Any) -> str | None:
    """Returns the text of an `llvs_bytes`, None if it is empty."""
    return text(pair) if pair.size else None


def address(data: bytes) -> int:
    """Returns the address of the bytes; valid while `data` lives."""
    return ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p).value or 0


class Column:
    """Addresses and sizes of many pieces of bytes, and references that keep the pieces alive."""

    __slots__ = ("addresses", "sizes", "_kept")

    def __init__(self, pieces: Sequence[bytes]) -> None:
        sizes = array("Q", map(len, pieces))
        if sizes and max(sizes) > LARGE:
            joined = b""
            self.addresses = array("Q", map(address, pieces))
        else:
            joined = b"".join(pieces)
            self.addresses = array("Q", accumulate(sizes, initial=address(joined)))
            self.addresses.pop()
        self.sizes = sizes
        self._kept = (joined, pieces)


class BytesArray:
    """An array of `llvs_bytes`."""

    __slots__ = ("address", "count", "_kept")

    def __init__(self, pieces: Iterable[bytes]) -> None:
        pieces = list(pieces)
        column = Column(pieces)
        self.count = len(pieces)
        words = array("Q", bytes(16 * self.count))
        words[0::2] = column.addresses
        words[1::2] = column.sizes
        self.address = words.buffer_info()[0] if self.count else None
        self._kept = (words, column)
