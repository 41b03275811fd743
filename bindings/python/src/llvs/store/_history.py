"""Reading the history of a store."""

from __future__ import annotations

import ctypes
from datetime import datetime
from typing import Any, Callable, Iterable, Iterator, Optional, Union

from .. import _abi, errors
from .._abi.handle import Handle
from .._abi.memory import BytesArray, address, decode, encode, version_bytes
from .._generated import constants as c, structs as _structs
from ..control import CancelToken, Control, ProgressCallback
from . import _pages
from .versions import CHANGE_KINDS, AnyVersion, ChangeKind, Version

lib = _abi.lib
byref = ctypes.byref


def take_versions(function: Callable[..., Any], *arguments: Any) -> list[Version]:
    """Returns the versions that a function wrote to its last parameter before the error."""
    pointer = ctypes.c_void_p()
    function(*arguments, byref(pointer))
    return _pages.versions(pointer.value)


def take_version(function: Callable[..., Any], *arguments: Any) -> Optional[Version]:
    """Returns the one version that a function wrote to its last parameter before the error, if any."""
    found = take_versions(function, *arguments)
    return found[0] if found else None


def the(version: Optional[Version]) -> Version:
    """Returns the version. The caller knows that it exists."""
    if version is None:
        raise errors.InternalError("the library gave no version where there must be one")
    return version


def _heads_options(branch: bytes, limit: int, control: Optional[Control] = None) -> Any:
    """Returns an `llvs_heads_options`, which keeps the branch alive, as an argument."""
    made = _structs.llvs_heads_options(struct_size=ctypes.sizeof(_structs.llvs_heads_options), limit=limit)
    made.control = control.address if control is not None else None
    if branch:
        made.branch.data, made.branch.size = address(branch), len(branch)
        made._kept = branch
    return byref(made)


def _branch_name(branch: str) -> bytes:
    if branch == "":
        raise errors.InvalidMetadataError(
            "the name of a branch is empty; leave it out to have versions of any branch and of none"
        )
    return encode(branch)


def _most(limit: Optional[int], what: str) -> Optional[int]:
    """Returns a limit of the caller as the library accepts it. Raises InvalidArgumentError for a negative one."""
    if limit is not None and limit < 0:
        raise errors.InvalidArgumentError(f"{limit} is no number of {what}; leave it out for all")
    return limit


class Cursor(Handle):
    """A cursor that is read in pages. Only one thread at a time may use it."""

    _warns = False
    _exit_order = 4

    def __init__(self, release: str, pointer: int) -> None:
        self._release = release  # type: ignore[misc]
        super().__init__(pointer)

    def _what(self) -> str:
        return "the enumeration"


class HistoryReading(Handle):
    """The versions of a store, and how they are connected."""

    def heads(
        self,
        *,
        branch: Optional[str] = None,
        limit: Optional[int] = None,
        progress: Optional[ProgressCallback] = None,
        cancel: Optional[CancelToken] = None,
    ) -> tuple[Version, ...]:
        """Returns the versions without successors, newest first.

        branch: only those that carry this branch name. limit: at most this many; None: all.

        Raises InvalidArgumentError (a negative limit), CancelledError, StorageError. O(heads).
        """
        most = _most(limit, "heads")
        return () if most == 0 else self._list_heads(b"" if branch is None else _branch_name(branch), most or 0, progress, cancel)

    def branches(self) -> dict[str, Version]:
        """Returns the branches of the heads, each with the newest of its heads, in order of the names. O(heads)."""
        newest = {head.branch: head for head in reversed(self.heads()) if head.branch is not None}
        return {name: newest[name] for name in sorted(newest)}

    @property
    def most_recent_head(self) -> Optional[Version]:
        """Returns the newest head; None for an empty store."""
        with self._call as pointer:
            return take_version(lib.llvs_store_heads, pointer, _heads_options(b"", 1))

    def _list_heads(
        self, branch: bytes, limit: int, progress: Optional[ProgressCallback], cancel: Optional[CancelToken]
    ) -> tuple[Version, ...]:
        control = Control(progress, cancel)
        with self._call as pointer, control:
            return tuple(take_versions(lib.llvs_store_heads, pointer, _heads_options(branch, limit, control)))

    def version(self, id: AnyVersion) -> Optional[Version]:
        """Returns a version by its id; None if it is not in the store (after a reload). O(1).

        Raises InvalidIDError.
        """
        with self._call as pointer:
            return take_version(lib.llvs_store_version, pointer, version_bytes(id))

    def versions(self, ids: Iterable[AnyVersion]) -> list[Version]:
        """Returns many versions, in the order of `ids`. Raises UnknownVersionError, InvalidIDError."""
        packed = BytesArray(map(version_bytes, ids))
        with self._call as pointer:
            return take_versions(lib.llvs_store_versions, pointer, packed.address, packed.count)

    def __getitem__(self, id: AnyVersion) -> Version:
        """Returns the version with an id, as `version` does; it must exist. Raises UnknownVersionError (a KeyError), InvalidIDError.

        (A value is found at a version: `store.at(version)[id]`.)
        """
        text = decode(version_bytes(id))
        try:
            found = self.version(id)
        except errors.InvalidIDError:
            raise errors.InvalidIDError(
                f"{text!r} is no id of a version, by which a store is read; values are read at a version: store.at(version)[{text!r}]",
                code=c.ERROR_INVALID_VERSION_ID, version_id=text,
            ) from None
        if found is None:
            raise errors.UnknownVersionError(f"there is no version {text!r} in {self._what()}", version_id=text)
        return found

    def __iter__(self) -> Iterator[Version]:
        """As `history`."""
        return self.history()

    def __contains__(self, id: object) -> bool:
        """Returns whether a version (or id) is in the store. O(1)."""
        return isinstance(id, (str, Version)) and self.version(id) is not None

    def history(
        self,
        *versions: AnyVersion,
        hiding: Iterable[AnyVersion] = (),
        branch: Optional[str] = None,
        prefix: str = "",
        limit: Optional[int] = None,
        progress: Optional[ProgressCallback] = None,
        cancel: Optional[CancelToken] = None,
    ) -> Iterator[Version]:
        """Iterates over all versions, or the given ones and their ancestors, in topological order: each comes before its predecessors.

        Versions with a longer path to a root come first, and among equal ones the newest.

        hiding: versions that are excluded, with their ancestors: the rest is new to a device that has them (`store.history(b, hiding=[a])`
        is a..b of git). branch: versions that carry this branch name. prefix: versions that recorded a change of a value whose id has this
        prefix. limit: at most this many; None: all.

        It shows the history as it is now, and fetches it in pages. Raises UnknownVersionError, InvalidArgumentError (a negative limit),
        CancelledError, StorageError. Cost: the versions returned, and those skipped: with `branch` those of other branches; with `prefix`
        all others, whose records are read.
        """
        most = _most(limit, "versions")
        walk = self._begin_walk(versions, hiding, branch, b"", encode(prefix), progress, cancel)
        return (version for version, _ in self._walk(walk, most, progress, cancel))

    def value_history(
        self,
        id: str,
        *versions: AnyVersion,
        hiding: Iterable[AnyVersion] = (),
        branch: Optional[str] = None,
        limit: Optional[int] = None,
        progress: Optional[ProgressCallback] = None,
        cancel: Optional[CancelToken] = None,
    ) -> Iterator[tuple[Version, ChangeKind]]:
        """Returns the history of one value: every version in which it changed, with the kind of change, in topological order, newest first.

            removed_by = next(version for version, kind in store.value_history("note/1") if kind == "remove")

        The kinds are "insert", "update" and "remove", and, for values that a merge took from its second predecessor, "preserve" and
        "preserve_removal". A revert records the inverse. In received versions "insert" and "update" are the labels of their makers: an id
        vouches for the bytes that were set, not for the label; `changes` between two versions shows whether the value existed before. The
        other arguments are those of `history`.

        Raises InvalidIDError, UnknownVersionError, CancelledError, StorageError. Cost: the versions returned; with `versions` or `hiding`
        also those between. The first time, and after many versions were added, the number of versions once.
        """
        key = encode(id)
        if not key:
            raise errors.make(c.ERROR_INVALID_VALUE_ID, "a value id is empty; those are 1 to 4096 bytes of UTF-8")
        most = _most(limit, "versions")
        walk = self._begin_walk(versions, hiding, branch, key, b"", progress, cancel)
        return ((version, CHANGE_KINDS[kind]) for version, kind in self._walk(walk, most, progress, cancel))

    def _begin_walk(
        self,
        versions: Iterable[AnyVersion],
        hiding: Iterable[AnyVersion],
        branch: Optional[str],
        value_id: bytes,
        prefix: bytes,
        progress: Optional[ProgressCallback],
        cancel: Optional[CancelToken],
    ) -> Cursor:
        if isinstance(hiding, (str, Version)):
            raise TypeError("hiding takes a list of versions, not one version")
        named = b"" if branch is None else _branch_name(branch)
        starts, hidden = BytesArray(map(version_bytes, versions)), BytesArray(map(version_bytes, hiding))
        options = _structs.llvs_history_options(struct_size=ctypes.sizeof(_structs.llvs_history_options))
        setattr(options, "from", starts.address)
        options.from_count = starts.count
        options.hiding, options.hiding_count = hidden.address, hidden.count
        kept = (named, value_id, prefix)
        for name, data in zip(("branch", "value_id", "prefix"), kept):
            if data:
                field = getattr(options, name)
                field.data, field.size = address(data), len(data)
        pointer = ctypes.c_void_p()
        with self._call as store, Control(progress, cancel) as control:
            lib.llvs_store_history(store, byref(options), control, byref(pointer))
        return Cursor("llvs_history_cursor_free", pointer.value or 0)

    @staticmethod
    def _walk(
        cursor: Cursor, limit: Optional[int], progress: Optional[ProgressCallback], cancel: Optional[CancelToken]
    ) -> Iterator[tuple[Version, int]]:
        with cursor:
            left = limit
            while left is None or left > 0:
                page = ctypes.c_void_p()
                with cursor._call as pointer, Control(progress, cancel) as control:
                    lib.llvs_history_cursor_next(pointer, 0 if left is None else left, control, byref(page))
                found = _pages.version_changes(page.value)
                if not found:
                    return
                if left is not None:
                    left -= len(found)
                yield from found

    def successors(
        self, version: AnyVersion, *, progress: Optional[ProgressCallback] = None, cancel: Optional[CancelToken] = None
    ) -> tuple[Version, ...]:
        """Returns the versions that have this one as a predecessor, newest first. Raises UnknownVersionError, CancelledError."""
        with self._call as pointer, Control(progress, cancel) as control:
            return tuple(take_versions(lib.llvs_store_successors, pointer, version_bytes(version), control))

    def is_ancestor(
        self,
        ancestor: AnyVersion,
        descendant: AnyVersion,
        *,
        progress: Optional[ProgressCallback] = None,
        cancel: Optional[CancelToken] = None,
    ) -> bool:
        """Returns whether one version is an ancestor of another; no version is its own. Raises UnknownVersionError, CancelledError.

        Cost: at most the versions whose generation lies between the two.
        """
        answer = ctypes.c_uint32()
        with self._call as pointer, Control(progress, cancel) as control:
            lib.llvs_store_is_ancestor(pointer, version_bytes(ancestor), version_bytes(descendant), control, byref(answer))
        return answer.value != 0

    def merge_bases(
        self, a: AnyVersion, b: AnyVersion, *, progress: Optional[ProgressCallback] = None, cancel: Optional[CancelToken] = None
    ) -> tuple[Version, ...]:
        """Returns all best common ancestors, newest first; empty if there are none. Raises UnknownVersionError, CancelledError.

        Cost: the versions between the two and their bases.
        """
        with self._call as pointer, Control(progress, cancel) as control:
            return tuple(take_versions(lib.llvs_store_merge_bases, pointer, version_bytes(a), version_bytes(b), control))

    def version_at(
        self,
        time: Union[datetime, float],
        head: Optional[AnyVersion] = None,
        *,
        progress: Optional[ProgressCallback] = None,
        cancel: Optional[CancelToken] = None,
    ) -> Optional[Version]:
        """Returns the version that was current at a time: among `head` (by default the most recent head) and its ancestors, the last one
        that was made (`made_at`) at or before that time; None if all are later.

        time: an aware or local `datetime`, or seconds since 1970. If two lines were separate at that time and merged afterwards, the line
        with the later version counts.
        Raises UnknownVersionError, InvalidArgumentError (a time that is not a number), CancelledError. Cost: the versions that are later.
        """
        seconds = float(time) if isinstance(time, (int, float)) else time.timestamp()
        start = b"" if head is None else version_bytes(head)
        with self._call as pointer, Control(progress, cancel) as control:
            return take_version(lib.llvs_store_version_at, pointer, seconds, start, control)

    def versions_of(
        self, id: str, *, progress: Optional[ProgressCallback] = None, cancel: Optional[CancelToken] = None
    ) -> tuple[Version, ...]:
        """Returns all versions that stored bytes for a value id, newest first. Raises InvalidIDError, CancelledError. (`value_history`
        includes removals and merges.)
        """
        with self._call as pointer, Control(progress, cancel) as control:
            return tuple(take_versions(lib.llvs_store_versions_of, pointer, encode(id), control))
