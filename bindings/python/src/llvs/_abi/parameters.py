"""How ctypes passes the parameters of the C functions: the types that `_generated.prototypes` uses."""

from __future__ import annotations

import ctypes

# `import llvs` imports this module, so it imports no more than it needs. Type checkers treat this name as true.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Parameter:
    """One parameter, as ctypes passes it, and what the header declares about it."""

    __slots__ = ("c_type", "ctype", "ownership")

    def __init__(self, ctype: Any, c_type: str, ownership: str) -> None:
        self.ctype = ctype
        #: The C type without `const`.
        self.c_type = c_type
        #: "owned" or "borrowed" for pointers, else "".
        self.ownership = ownership


class BytesArgument(ctypes.Structure):
    """`llvs_bytes` by value, made from `bytes`. The caller keeps these alive during the call."""

    _fields_ = [("data", ctypes.c_char_p), ("size", ctypes.c_size_t)]

    @classmethod
    def from_param(cls, value: bytes) -> BytesArgument:
        """Converts an argument, as ctypes requests. A subclass of `bytes` may report a wrong size: `memory` makes genuine `bytes` of it
        first."""
        if type(value) is not bytes:
            raise TypeError(f"bytes are wanted here, not {type(value).__name__}")
        return cls(value, len(value))


def borrowed(c_type: str) -> Parameter:
    """A pointer that leaves ownership with its owner. ctypes passes it as an address: it also accepts `byref(...)`, `bytes` and None."""
    return Parameter(ctypes.c_void_p, c_type, "borrowed")


def owned(c_type: str) -> Parameter:
    """A pointer that transfers ownership."""
    return Parameter(ctypes.c_void_p, c_type, "owned")


STATUS = Parameter(ctypes.c_int32, "llvs_status", "")
BYTES = Parameter(BytesArgument, "llvs_bytes", "")
SIZE = Parameter(ctypes.c_size_t, "size_t", "")
U32 = Parameter(ctypes.c_uint32, "uint32_t", "")
U64 = Parameter(ctypes.c_uint64, "uint64_t", "")
I32 = Parameter(ctypes.c_int32, "int32_t", "")
I64 = Parameter(ctypes.c_int64, "int64_t", "")
DOUBLE = Parameter(ctypes.c_double, "double", "")
BOOL = Parameter(ctypes.c_uint32, "llvs_bool", "")
TEXT = Parameter(ctypes.c_char_p, "char*", "")
POINTER = Parameter(ctypes.c_void_p, "*", "")
FUNCTION = Parameter(ctypes.c_void_p, "function", "")
ERROR = owned("llvs_error**")
