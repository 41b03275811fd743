"""What another implementation's stores hold compressed: LZFSE, behind the letters LLZF."""

from __future__ import annotations

import ctypes
import functools
from typing import Any, Callable, Optional

from . import _abi, _callbacks, _constants as c
from ._memory import BytesLike, as_bytes
from .storage import _data

lib = _abi.lib

#: Makes the bytes that were there of what stands behind "LLZF"; None when that is no such data, from its beginning to its end.
Decoder = Callable[[bytes], Optional[BytesLike]]

#: With what a stream of LZFSE ends.
_END = b"bvx$"


@functools.cache
def default_decoder() -> Optional[Decoder]:
    """That of the package `pyliblzfse`, where it is installed; looked for once."""
    try:
        import liblzfse  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        return None

    def decode(data: bytes) -> Optional[bytes]:
        # The package is silent about what follows the end, and takes a missing end for want of memory.
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
    """Puts a decoder, or the default, into options that have room for one: to be called last before the options are used."""
    decode = decode if decode is not None else default_decoder()
    if decode is not None:
        if not callable(decode):
            raise TypeError(f"decode must be a function of bytes, not {type(decode).__name__}")
        options.decode = _address
        options.decode_payload = _callbacks.register(decode)
        options.decode_free = ctypes.cast(_callbacks.payload_free, ctypes.c_void_p).value
