"""What the versions of a store recorded, and what differs between them."""

from __future__ import annotations

import ctypes
from typing import Any, Callable, Iterator, Optional, Sequence, cast

import llvs

from . import _abi, _pages
from ._handle import Handle
from ._history import Cursor
from ._memory import encode, version_bytes
from .control import CancelToken, Control, ProgressCallback
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
        """What a version recorded, in byte order of the ids, fetched by the page.

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
        """What to apply to the state at `a` to reach the state at `b`, as insert, update and remove, in byte order of the ids.

        Any two versions, related or not. A value that was stored anew is an update, also with the same bytes: values are told
        apart by the versions that stored them.

        prefix: only ids that begin so. start, stop: only ids that are not before `start` and before `stop` (None: to the last), by bytes.

        progress, cancel: of finding the differences, all of which are found at once; reading them is by the page.

        Raises UnknownVersionError, CancelledError. Cost: what was recorded between the two, or what differs there; not what is there.
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
        """What a function that makes a cursor finds within the bounds: a prefix, a start and a stop."""
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

    def replay(self, prefix: str, a: AnyVersion, b: AnyVersion) -> Iterator[llvs.Step]:
        """The steps from version `a` to version `b`, of values whose ids begin with `prefix`: playback, forwards or backwards.

            for step in store.replay("drawing/", first, last):
                for change in step.changes: ...                     # step.version is what the state then is

        The way goes along first predecessors, which are each other's next states: from `a` back to where both lines meet, if need be, and
        on to `b`. A merge is one step, with all that came over. Who applies all changes to the state at `a` has that at `b`. Versions that
        change nothing under the prefix are left out.

        Raises UnknownVersionError, StorageError. Cost: the versions between the two, and what is recorded in those of the way.
        """
        from .replay import replay

        return replay(cast("llvs.Store", self), prefix, a, b)
