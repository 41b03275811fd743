"""Text and bytes on their way in and out.

What comes in is taken once, exactly as it is: objects of subclasses may tell another size each time they are asked, or other contents
by each method. So the library gets `bytes` proper alone, made by functions of `str` and of `memoryview` that nothing overrides.

Values go in joined, many to one piece of memory, whose addresses are computed by `array` in one sweep: a loop over ctypes
structs would cost ten times as much. They come out page by page, see `_pages`.
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
            """Whatever `memoryview` takes. `collections.abc.Buffer` where there is one."""


#: What is accepted for bytes.
BytesLike = Union[bytes, bytearray, memoryview, Buffer]
#: What is accepted for a path.
PathLike = Union[str, bytes, os.PathLike[str], os.PathLike[bytes]]

#: Larger pieces are not joined: a value of 1 GiB shall not be copied to be handed in.
LARGE = 1 << 16

copy = ctypes.string_at

#: As `copy`, with less around it. (An instance of its own: others may use `pythonapi` with other prototypes.)
piece: Any = ctypes.pythonapi["PyBytes_FromStringAndSize"]
piece.argtypes = [ctypes.c_void_p, ctypes.c_ssize_t]
piece.restype = ctypes.py_object


def encode(text: str) -> bytes:
    """UTF-8. What no UTF-8 can hold (lone surrogates) becomes bytes that the library refuses by name."""
    try:
        return str.encode(text)
    except UnicodeEncodeError:
        return str.encode(text, "utf-8", "surrogatepass")
    except TypeError:
        raise TypeError(f"an id or name is a str, not {type(text).__name__}") from None


def decode(data: bytes) -> str:
    """The text of what the library hands out; what is not UTF-8 (a foreign file's name, say) is escaped, not lost."""
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
    """The id of a version argument."""
    if isinstance(version, str):
        return encode(version)
    try:
        return as_bytes(version._id_bytes)
    except AttributeError:
        raise TypeError(f"a version is a Version or its id, not {type(version).__name__}") from None


def path_bytes(path: PathLike) -> bytes:
    """A path as the library takes it: UTF-8, whatever the locale says. Bytes that are none, as they came from the system, stay what they
    are.
    """
    return encode_name(os.fspath(path))


def folder_url(path: PathLike) -> str:
    """The URL of a folder, as exchanges take it."""
    plain = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/-_."
    return "file://" + "".join(chr(byte) if byte in plain else f"%{byte:02X}" for byte in os.path.abspath(path_bytes(path)))


def as_bytes(data: BytesLike, what: str = "a value") -> bytes:
    """The bytes of a bytes-like object; no copy of `bytes`. Text is refused: a value has no encoding of its own. `what` is for the
    message.
    """
    if type(data) is bytes:
        return data
    if isinstance(data, (int, str)):
        raise TypeError(f"{what} is bytes or bytes-like, not {type(data).__name__}{': encode it first' if isinstance(data, str) else ''}")
    try:
        # While there is a view, nobody changes the size of a bytearray.
        with memoryview(data) as view:
            return view.tobytes()
    except TypeError:
        raise TypeError(f"{what} is bytes or bytes-like, not {type(data).__name__}") from None


def text(pair: Any) -> str:
    """The text of an `llvs_bytes`."""
    return decode(copy(pair.data, pair.size)) if pair.size else ""


def text_or_none(pair: Any) -> str | None:
    """The text of an `llvs_bytes`, None when it is empty."""
    return text(pair) if pair.size else None


def address(data: bytes) -> int:
    """Where the bytes lie; valid while `data` lives."""
    return ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p).value or 0


class Column:
    """Addresses and sizes of many pieces of bytes, and what keeps them alive."""

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
