"""The changes of versions of a store, and the differences between versions."""

from __future__ import annotations

import ctypes
from typing import Any, Callable, Iterator, Optional, Sequence, cast

import llvs

from .. import _abi
from .._abi.handle import Handle
from .._abi.memory import encode, version_bytes
from ..control import CancelToken, Control, ProgressCallback
from . import _pages
from ._history import Cursor
from .state import Range
from .versions import AnyVersion, Change

lib = _abi.lib
byref = ctypes.byref


class Differences(Handle):
    """Changes and differences."""

    def changes(
        self,
        version: AnyVersion,
        *,
        prefix: str = "",
        start: str = "",
        stop: Optional[str] = None,
        with_data: bool = True,
        progress: Optional[ProgressCallback] = None,
        cancel: Optional[CancelToken] = None,
    ) -> Iterator[Change]:
        """Iterates over the changes that a version recorded, in byte order of the ids, fetched in pages.

        prefix, start, stop: as for `diff`. Raises UnknownVersionError, CancelledError.
        """
        return self._found(lib.llvs_store_changes, [version], (prefix, start, stop), with_data, Control(progress, cancel))

    def diff(
        self,
        a: AnyVersion,
        b: AnyVersion,
        *,
        prefix: str = "",
        start: str = "",
        stop: Optional[str] = None,
        with_data: bool = True,
        progress: Optional[ProgressCallback] = None,
        cancel: Optional[CancelToken] = None,
    ) -> Iterator[Change]:
        """Iterates over the changes that lead from the state at `a` to the state at `b`, as insert, update and remove, in byte order of the
        ids.

        Any two versions, related or not. A value that was stored again is an update, even with the same bytes: values are compared by the
        versions that stored them.

        prefix: only ids with this prefix. start, stop: only ids from `start` up to, but not including, `stop` (None: to the last), by
        bytes.

        progress, cancel: of finding the differences, all of which are found at once; reading them is by the page.

        Raises UnknownVersionError, CancelledError. Cost: the changes recorded between the two, or the values that differ; not the number of
        values.
        """
        return self._found(lib.llvs_store_differences, [a, b], (prefix, start, stop), with_data, Control(progress, cancel))

    def _found(
        self,
        function: Callable[..., Any],
        versions: Sequence[AnyVersion],
        bounds: tuple[str, str, Optional[str]],
        with_data: bool,
        asked: Control,
    ) -> Iterator[Change]:
        """Returns what a function that makes a cursor finds within bounds: a prefix, a start and a stop."""
        prefix, start, stop = bounds
        wanted = Range(encode(prefix), encode(start), None if stop is None else encode(stop)).struct()
        pointer = ctypes.c_void_p()
        with self._call as store, asked as control:
            if wanted is None:
                return iter(())
            function(store, *map(version_bytes, versions), byref(wanted), control, byref(pointer))
        return self._walk_changes(Cursor("llvs_change_cursor_free", pointer.value or 0), with_data)

    @staticmethod
    def _walk_changes(cursor: Cursor, with_data: bool) -> Iterator[Change]:
        with cursor:
            while True:
                page = ctypes.c_void_p()
                with cursor._call as pointer:
                    lib.llvs_change_cursor_next(pointer, 0, int(with_data), byref(page))
                if not page.value:
                    return
                yield from _pages.changes(page.value)

    def replay(self, prefix: str, a: AnyVersion, b: AnyVersion) -> Iterator[llvs.merge.Step]:
        """The steps from version `a` to version `b`, of values whose ids begin with `prefix`: playback, forwards or backwards.

            for step in store.replay("drawing/", first, last):
                for change in step.changes: ...                     # step.version is what the state then is

        The way follows first predecessors: from `a` back to where both lines meet, if need be, and forward to `b`. A merge is one step,
        with all changes that it brings. Applying all changes to the state at `a` gives that at `b`. Versions that change nothing under the
        prefix are skipped.

        Raises UnknownVersionError, StorageError. Cost: the versions between the two, and what the versions on the way recorded.
        """
        from ..merge.replay import replay

        return replay(cast("llvs.Store", self), prefix, a, b)
