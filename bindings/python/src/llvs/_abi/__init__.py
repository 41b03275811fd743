"""The one way to call the functions of the library: those of `_generated.prototypes`.

    lib.llvs_store_heads(pointer, byref(heads))

The `llvs_error **` that ends a C call is left out: it is supplied here, and a status below zero raises
(see `errors`). Functions are bound at their first use.
"""

from __future__ import annotations

import ctypes

from .._generated.prototypes import PROTOTYPES
from . import library as _lib
from .parameters import BYTES, ERROR, STATUS, BytesArgument, Parameter

# `import llvs` imports this module, so it imports no more than it needs. Type checkers treat this name as true.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

#: Functions that only release memory. They are called with the interpreter lock held. All others are called without it, because they may
#: wait for other threads, or end an operation that calls back into Python.
_QUICK_RELEASES = frozenset(
    f"llvs_{name}_free"
    for name in (
        "cancel_token",
        "change_list",
        "check_report",
        "conflict_list",
        "error",
        "exchange_result",
        "index_page",
        "merged_value",
        "revert_result",
        "salvage_report",
        "schema",
        "snapshot",
        "sync_result",
        "sync_status",
        "value_block",
        "value_list",
        "verify_report",
        "version_list",
    )
)


def _keeps_interpreter_lock(name: str, result: Parameter | None) -> bool:
    # Calls without a status only read memory: releasing the lock would cost more than they do.
    return result is not STATUS and (name in _QUICK_RELEASES or not name.endswith("_free"))


def _check(status: int, function: Any, arguments: tuple[Any, ...]) -> int:
    if status < 0:
        from .. import errors

        raise errors.take(status, arguments[-1]._obj, lib)
    return status


class Library:
    """The functions of the library, as attributes; each is bound at its first use."""

    def __init__(self) -> None:
        self._releasing, self._keeping = _lib.load()

    def raw(self, name: str) -> Any:
        """Returns the ctypes function itself, with its prototype. Raises AttributeError for a name that the header does not have."""
        if name not in PROTOTYPES:
            raise AttributeError(name)
        result, parameters = PROTOTYPES[name]
        function = (self._keeping if _keeps_interpreter_lock(name, result) else self._releasing)[name]
        function.argtypes = [parameter.ctype for parameter in parameters]
        if result is BYTES:
            from .._generated import structs as _structs

            function.restype = _structs.llvs_bytes
        else:
            function.restype = result.ctype if result is not None else None
        if result is STATUS and parameters[-1] is ERROR:
            check: Any = _check
            function.errcheck = check
        return function

    def __getattr__(self, name: str) -> Callable[..., Any]:
        function = self.raw(name)
        call: Callable[..., Any] = function
        if PROTOTYPES[name][1][-1:] == [ERROR]:
            byref, pointer = ctypes.byref, ctypes.c_void_p

            def call(*arguments: Any) -> Any:
                try:
                    return function(*arguments, byref(pointer()))
                except ctypes.ArgumentError as error:
                    # A signal interrupted ctypes while it converted an argument: ctypes reports only the name of that exception.
                    if "KeyboardInterrupt" in str(error):
                        raise KeyboardInterrupt from None
                    raise

        setattr(self, name, call)
        return call


lib: Any = Library()
