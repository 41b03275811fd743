"""How a program accompanies what the library does: progress and cancellation of long work, and registrations of callbacks for news."""

from __future__ import annotations

import ctypes
from typing import Any, Callable, NamedTuple, Optional, Protocol

from . import _abi
from ._abi import callbacks as _callbacks, signals as _signals
from ._abi.enums import NamedNumber
from ._abi.handle import Handle
from ._abi.signals import holding
from ._generated import constants as c, structs as _structs

__all__ = ["CancelToken", "Observer", "Progress", "ProgressCallback", "Stage"]


class Stage(NamedNumber):
    """What long work is doing."""

    LISTING = c.STAGE_LISTING
    RECEIVING = c.STAGE_RECEIVING
    ADDING = c.STAGE_ADDING
    SENDING = c.STAGE_SENDING
    READING = c.STAGE_READING
    WRITING = c.STAGE_WRITING
    VERIFYING = c.STAGE_VERIFYING
    KEYS = c.STAGE_KEYS
    MERGING = c.STAGE_MERGING
    DELETING = c.STAGE_DELETING


class Progress(NamedTuple):
    """How far long work has come."""

    #: What the call is doing. A number that this package does not know stays an `int`.
    stage: int
    #: How much of the stage is done, in versions, files or bytes, depending on the stage.
    completed: int
    #: How much there is in total; 0 while unknown.
    total: int


class ProgressCallback(Protocol):
    """Receives the progress of a call, on the thread that made it, several times a second while there is progress.

    A function of one `Progress`. Returning False cancels the call, which raises `CancelledError`; anything else, also None, lets it
    continue. If the function raises, the call ends and raises the same exception.
    """

    def __call__(self, progress: Progress, /) -> Optional[bool]: ...


class CancelToken(Handle):
    """Stops long work from any thread: `token.cancel()` makes every call that uses the token end with `CancelledError`."""

    _release = "llvs_cancel_token_free"
    _warns = False

    def __init__(self) -> None:
        pointer = ctypes.c_void_p()
        _abi.lib.llvs_cancel_token_create(ctypes.byref(pointer))
        super().__init__(pointer.value or 0)

    def _what(self) -> str:
        return "the cancel token"

    def _detail(self) -> str:
        return "" if self._closed or not self.cancelled else "cancelled"

    def cancel(self) -> None:
        """Sets the token permanently."""
        with self._call as pointer:
            _abi.lib.llvs_cancel_token_cancel(pointer)

    @property
    def cancelled(self) -> bool:
        """Whether it has been set."""
        with self._call as pointer:
            return bool(_abi.lib.llvs_cancel_token_is_cancelled(pointer))


class _Hearing:
    """What the progress thunk looks up."""

    __slots__ = ("callback",)

    def __init__(self, callback: ProgressCallback | None) -> None:
        self.callback = callback


def _progress(hearing: _Hearing, progress: int) -> int:
    # Without a callback this still lets Python handle signals: Ctrl-C ends a long call.
    if hearing.callback is None:
        return c.OK
    found = _structs.llvs_progress.from_address(progress)
    stage = found.stage
    try:
        stage = Stage(stage)
    except ValueError:
        pass
    go_on = hearing.callback(Progress(stage, found.completed, found.total))
    return c.ERROR_CANCELLED if go_on is False else c.OK


_thunk = _callbacks.solicited([ctypes.c_void_p], _progress)


class Control:
    """An `llvs_control` for one call: `with Control(progress, cancel) as control`, giving its address."""

    __slots__ = ("_hearing", "_payload", "_struct", "_token")

    def __init__(self, progress: ProgressCallback | None, cancel: CancelToken | None) -> None:
        if progress is not None and not callable(progress):
            raise TypeError(f"progress takes a function of an llvs.control.Progress, not {type(progress).__name__}")
        if cancel is not None and not isinstance(cancel, CancelToken):
            raise TypeError(f"cancel takes an llvs.CancelToken, which any thread may cancel(), not {type(cancel).__name__}")
        self._hearing = _Hearing(progress)
        self._payload = 0
        self._token = cancel
        self._struct = _structs.llvs_control(struct_size=ctypes.sizeof(_structs.llvs_control))
        self._struct.progress = ctypes.cast(_thunk, ctypes.c_void_p).value

    @property
    def address(self) -> int:
        """The address of the struct, for options that point to it."""
        return ctypes.addressof(self._struct)

    def __enter__(self) -> Any:
        holding.__enter__()
        self._payload = self._struct.payload = _callbacks.register(self._hearing)
        if self._token is not None:
            try:
                self._struct.token = self._token._call.__enter__()
            except BaseException:
                _callbacks.registry.pop(self._payload, None)
                holding.__exit__()
                raise
        return ctypes.byref(self._struct)

    def __exit__(self, *_: object) -> None:
        _callbacks.registry.pop(self._payload, None)
        if self._token is not None:
            self._token._call.__exit__()
        holding.__exit__()


class Observer(Handle):
    """A registration. `close()` ends it and waits for running callbacks; afterwards no callback runs.

    If it is called from within a callback of any registration, `close()` does not wait, since two callbacks might wait for each other. Do
    not call it while you hold a lock that the callback takes: call `cancel()` under the lock, and `close()` afterwards without it.

    It need not be referenced: it lasts until it, or the observed object, is closed. Exceptions of callbacks go to `sys.unraisablehook`.
    """

    _release = "llvs_observer_free"
    _warns = False
    _exit_order = 9

    def __init__(self, pointer: int, holder: set[Observer]) -> None:
        super().__init__(pointer)
        self._holder = holder
        holder.add(self)
        _signals.listeners.add(id(self))

    def _what(self) -> str:
        return "the registration"

    def cancel(self) -> None:
        """Ends it without waiting: no callback begins afterwards, but one on another thread may still be running. May be called under any
        lock.
        """
        with self._call as pointer:
            _abi.lib.llvs_observer_cancel(pointer)

    def close(self) -> None:
        """Ends it, and waits for a callback that runs on another thread; afterwards no callback runs. Closing again does nothing."""
        self._holder.discard(self)
        super().close()

    def _let_go(self) -> None:
        super()._let_go()
        _signals.listeners.discard(id(self))


def observe(function: Callable[..., Any], before: tuple[Any, ...], thunk: Any, target: Any, holder: set[Observer]) -> Observer:
    """Registers `target` behind `thunk` by one of the library's `_observe` functions, until `holder` closes it."""
    pointer = ctypes.c_void_p()
    payload = _callbacks.register(target)
    # The library frees the payload also if it refuses.
    function(*before, thunk, payload, _callbacks.payload_free, ctypes.byref(pointer))
    return Observer(pointer.value or 0, holder)


def _notify(target: Optional[Callable[[], Any]]) -> None:
    if target is not None:
        target()


#: Where callbacks without arguments are registered.
notify_thunk = _callbacks.unsolicited([], _notify, "a callback for news of a store or an exchange")
