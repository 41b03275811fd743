"""The life of handles: the base class for every object that the library returns and that must be released.

A handle may be closed while other threads are inside calls on it. `close` marks it; the last thread to leave releases it.
This takes no lock. In CPython, appending to a list, popping from it and reading its length are atomic. A call appends first and then
reads the mark; `close` sets the mark first and then reads the list. So either the call sees the mark, or `close` sees the call.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import sys
import threading
import warnings
import weakref
from typing import Any, ClassVar, TypeVar

from .. import _abi, errors
from . import signals as _signals
from .signals import holding

_Self = TypeVar("_Self", bound="Handle")

#: Every open handle, so that all can be closed before the interpreter ends.
_open: weakref.WeakSet[Handle] = weakref.WeakSet()


class _Call:
    """A call in flight: `with handle._call as pointer`."""

    __slots__ = ("_handle",)

    def __init__(self, handle: Handle) -> None:
        self._handle = weakref.ref(handle)

    def __enter__(self) -> int:
        handle = self._handle()
        assert handle is not None
        holds = handle._calls_back or bool(_signals.listeners)
        if holds:
            holding.__enter__()
        handle._calls.append(-threading.get_ident() if holds else threading.get_ident())
        if handle._closed:
            self.__exit__()
            raise handle._closed_error()
        return handle._pointer

    def __exit__(self, *_: object) -> None:
        handle = self._handle()
        if handle is not None and handle._leave():
            holding.__exit__()


class Handle:
    """An object of the library that must be released: by `close`, by `with`, or when the last reference to it is gone.

    `close` may be called any number of times and from any thread; every other use of a closed handle raises `ClosedError`.
    """

    #: The name of the function that releases it.
    _release: ClassVar[str]
    #: The name of the function that ends it before its release, and returns a status; empty: there is none.
    _end: ClassVar[str] = ""
    #: Whether to warn (ResourceWarning) if the garbage collector has to release it.
    _warns: ClassVar[bool] = True
    #: Whether calls on it may call back into Python.
    _calls_back: bool = False
    #: Handles with a higher number are closed first when the interpreter exits.
    _exit_order: ClassVar[int] = 1
    #: Whether `close` was called.
    _closed: bool = False

    def __init__(self, pointer: int) -> None:
        self._pointer = pointer
        #: The pointer in the form that calls without a prototype accept, see `store._fetch`.
        self._argument: Any = ctypes.c_void_p.from_param(pointer)
        self._owned = [pointer]
        #: Calls in flight, by thread; the number of a thread that holds the signal handlers is negative.
        self._calls: list[int] = []
        self._closed = False
        self._process = os.getpid()
        self._call = _Call(self)
        _open.add(self)

    @property
    def closed(self) -> bool:
        """Whether `close` has been called."""
        return self._closed

    def _what(self) -> str:
        """Returns a description for messages: "the store notes.llvs"."""
        raise NotImplementedError

    def _detail(self) -> str:
        """Returns what identifies it in `repr`: "'notes.llvs'"."""
        return ""

    def __repr__(self) -> str:
        if not hasattr(self, "_pointer"):
            return f"<{type(self).__name__}, never opened>"
        detail = self._detail()
        return f"<{type(self).__name__}{detail and ' '}{detail}{', closed' if self._closed else ''}>"

    def _closed_error(self) -> errors.ClosedError:
        return errors.ClosedError(f"{self._what()} has been closed")

    def _leave(self) -> bool:
        """Ends a call of this thread, and returns whether it holds the signal handlers."""
        me, holds = threading.get_ident(), False
        # The innermost call of this thread; other threads add and remove theirs meanwhile.
        for call in reversed(tuple(self._calls)):
            if call == me or call == -me:
                holds = call < 0
                self._calls.remove(call)
                break
        else:
            holds = self._calls_back  # The entry is from before a fork: a call of the parent process.
        if self._closed and not self._calls:
            self._let_go()
        return holds

    def _is_inside(self) -> bool:
        me = threading.get_ident()
        return me in self._calls or -me in self._calls

    def _let_go(self) -> None:
        try:
            pointer = self._owned.pop()
        except IndexError:
            return
        _open.discard(self)
        release = getattr(_abi.lib, self._release)
        if self._calls_back or _signals.listeners:
            # Ending it may call back, too, for instance the `close` of a storage.
            with holding:
                release(pointer)
        else:
            release(pointer)

    def close(self) -> None:
        """Ends and releases it. Waits for calls of other threads. A call of this thread, from whose callback `close` was called, continues,
        and releases it when it returns. Closing it again does nothing.

        Raises what the library reports about the end (`StorageError`, for instance); it is closed nevertheless.
        """
        if self._closed:
            return
        inside = self._is_inside()
        self._closed = True
        try:
            # Waiting for this thread's own call would never end. `_leave` releases the handle when that call is done.
            if self._end and not inside and self._process == os.getpid() and self._owned:
                self._calls.append(threading.get_ident())
                try:
                    with holding:
                        getattr(_abi.lib, self._end)(self._pointer)
                finally:
                    self._calls.remove(threading.get_ident())
        finally:
            if not self._calls:
                self._let_go()

    def __enter__(self: _Self) -> _Self:
        if self._closed:
            raise self._closed_error()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        # The constructor may have failed, and the interpreter may be shutting down.
        if not getattr(self, "_owned", None) or sys is None or sys.is_finalizing():
            return
        if self._warns and not self._closed and self._process == os.getpid():
            warnings.warn(f"unclosed {self!r}", ResourceWarning, stacklevel=2, source=self)
        self._closed = True
        try:
            self._let_go()
        except Exception:
            pass  # There is nothing left to report to.

    def __copy__(self) -> Any:
        raise TypeError(f"{type(self).__name__} cannot be copied")

    def __reduce__(self) -> Any:
        raise TypeError(f"{type(self).__name__} cannot be pickled")


@atexit.register
def _close_all() -> None:
    """Closes all open handles, dependent ones first, so that no callback enters an interpreter that is shutting down."""
    for handle in sorted(list(_open), key=lambda handle: -handle._exit_order):
        try:
            handle.close()
        except Exception as problem:
            from .callbacks import report_unraisable

            report_unraisable(problem, handle, "the end of the interpreter")
