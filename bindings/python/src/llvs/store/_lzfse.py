"""Decompresses values in stores of other implementations: LZFSE, after the letters LLZF."""

from __future__ import annotations

import ctypes
import functools
from typing import Any, Callable, Optional

from .. import _abi
from .._abi import callbacks as _callbacks
from .._abi.memory import BytesLike, as_bytes
from .._generated import constants as c
from ..storage import _data

lib = _abi.lib

#: Returns the decompressed form of the bytes after "LLZF"; None unless all of them are one LZFSE stream.
Decoder = Callable[[bytes], Optional[BytesLike]]

#: The last bytes of an LZFSE stream.
_END = b"bvx$"


@functools.cache
def default_decoder() -> Optional[Decoder]:
    """Returns the decoder of the package `pyliblzfse` if that is installed; checks it once."""
    try:
        import liblzfse  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        return None

    def decode(data: bytes) -> Optional[bytes]:
        # The package ignores bytes after the end of a stream, and takes a missing end for a lack of memory.
        if not data.endswith(_END):
            return None
        try:
            decoded: bytes = liblzfse.decompress(data)
        except liblzfse.error:
            return None
        return decoded

    return decode


def _decode(decode: Decoder, data: int, reply: int) -> int:
    found = decode(_data(data))
    if found is None:
        return c.PASS
    lib.llvs_reply_set(reply, 0, as_bytes(found))
    return c.OK


_thunk = _callbacks.solicited([ctypes.c_void_p, ctypes.c_void_p], _decode)
_address = ctypes.cast(_thunk, ctypes.c_void_p).value


def put_decoder(options: Any, decode: Optional[Decoder]) -> None:
    """Writes a decoder, or the default one, into options that have room for it. Call it last before the options are used."""
    decode = decode if decode is not None else default_decoder()
    if decode is not None:
        if not callable(decode):
            raise TypeError(f"decode must be a function of bytes, not {type(decode).__name__}")
        options.decode = _address
        options.decode_payload = _callbacks.register(decode)
        options.decode_free = ctypes.cast(_callbacks.payload_free, ctypes.c_void_p).value
