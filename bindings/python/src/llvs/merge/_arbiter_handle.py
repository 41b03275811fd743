"""Arbiters of the library, and how the library calls arbiters that are written in Python."""

from __future__ import annotations

import ctypes
from typing import Any, Callable, Optional

import llvs

from .. import _abi
from .._abi import callbacks as _callbacks
from .._abi.handle import Handle
from .._abi.memory import copy, decode
from .._generated import constants as c, structs as _structs
from ..store._change_array import CHANGE_SIZE, ChangeArray
from ..store.versions import Change
from .arbiters import PASS, AnyArbiter, BuiltInArbiter, Merge, Pass, Rules, ValueMerger

lib = _abi.lib


class _Resolving:
    """The arbiter that a callback runs, and access to the store on which it works."""

    def __init__(self, arbiter: Any, store: Callable[[], llvs.Store]) -> None:
        self.resolve = getattr(arbiter, "resolve", arbiter)
        self.store = store


def _resolve(resolving: _Resolving, pointer: int, resolution: int) -> int:
    merge = Merge(pointer)
    try:
        answer = resolving.resolve(merge, resolving.store())
        passes = isinstance(answer, Pass)
        changes = ChangeArray(changes=answer.changes if isinstance(answer, Pass) else answer)
        if changes.count:
            lib.llvs_resolution_add(resolution, changes.address, changes.count, CHANGE_SIZE)
        return c.PASS if passes else c.OK
    finally:
        merge._end()


_thunk = _callbacks.solicited([ctypes.c_void_p, ctypes.c_void_p], _resolve)


def _merge_value(merger: ValueMerger, pointer: int, resolution: int) -> int:
    question = _structs.llvs_value_question.from_address(pointer)

    def given(pair: Any) -> Optional[bytes]:
        return copy(pair.data, pair.size) if pair.data else None

    id, path = decode(given(question.id) or b""), given(question.path) or b"[]"
    sides = (given(question.base), given(question.newer), given(question.older))
    # The function for whole values is asked about whole values only, and the function for parts about parts of values only.
    answer: Any = PASS
    if path == b"[]" and merger._merge is not None:
        answer = merger._merge(id, *sides)
    elif path != b"[]" and merger._part is not None:
        import json

        answer = merger._part(id, tuple(json.loads(path)), *sides)
    if isinstance(answer, Pass):
        return c.PASS
    change = Change.remove(id) if answer is None else Change.update(id, answer)
    changes = ChangeArray(changes=[change])
    lib.llvs_resolution_add(resolution, changes.address, changes.count, CHANGE_SIZE)
    return c.OK


_value_thunk = _callbacks.solicited([ctypes.c_void_p, ctypes.c_void_p], _merge_value)


class ArbiterHandle(Handle):
    """An `llvs_arbiter`."""

    _release = "llvs_arbiter_free"
    _warns = False
    _calls_back = True

    def __init__(self, arbiter: AnyArbiter, store: Callable[[], llvs.Store]) -> None:
        pointer = ctypes.c_void_p()
        if isinstance(arbiter, type):
            raise TypeError(f"an arbiter is an object, not the class {arbiter.__name__}: write {arbiter.__name__}()")
        if isinstance(arbiter, BuiltInArbiter):
            lib.llvs_arbiter_builtin(arbiter._kind, ctypes.byref(pointer))
        elif isinstance(arbiter, Rules):
            from .documents import rules_text

            lib.llvs_arbiter_rules(b"" if arbiter._rules is None else rules_text(arbiter._rules), ctypes.byref(pointer))
        elif isinstance(arbiter, ValueMerger):
            from .documents import rules_text

            payload = _callbacks.register(arbiter)
            given = b"" if arbiter._rules is None else rules_text(arbiter._rules)
            lib.llvs_value_merger_create(_value_thunk, payload, _callbacks.payload_free, given, ctypes.byref(pointer))
        else:
            if not callable(getattr(arbiter, "resolve", arbiter)):
                raise TypeError(
                    f"an arbiter has a method resolve(merge, store), or is such a function; {type(arbiter).__name__} is neither"
                )
            fallback = getattr(arbiter, "fallback", None)
            if fallback is None:
                self._create(arbiter, store, None, pointer)
            else:
                with ArbiterHandle(fallback, store) as handle, handle._call as fallback_pointer:
                    self._create(arbiter, store, fallback_pointer, pointer)
        super().__init__(pointer.value or 0)

    @staticmethod
    def _create(arbiter: AnyArbiter, store: Callable[[], llvs.Store], fallback: int | None, pointer: ctypes.c_void_p) -> None:
        payload = _callbacks.register(_Resolving(arbiter, store))
        lib.llvs_arbiter_create(_thunk, payload, _callbacks.payload_free, fallback, ctypes.byref(pointer))

    def _what(self) -> str:
        return "the arbiter"
