"""Reading the history of a store."""

from __future__ import annotations

import ctypes
from typing import Any, Callable, Iterable, Iterator, Optional

from . import _abi, _constants as c, _pages, _structs, errors
from ._handle import Handle
from ._memory import BytesArray, address, decode, encode, version_bytes
from .model import AnyVersion, Version

lib = _abi.lib
byref = ctypes.byref


def take_versions(function: Callable[..., Any], *arguments: Any) -> list[Version]:
    """The versions that a function put into its last parameter before the error."""
    pointer = ctypes.c_void_p()
    function(*arguments, byref(pointer))
    return _pages.versions(pointer.value)


def take_version(function: Callable[..., Any], *arguments: Any) -> Optional[Version]:
    """The one version that a function put into its last parameter before the error, if any."""
    found = take_versions(function, *arguments)
    return found[0] if found else None


def the(version: Optional[Version]) -> Version:
    """The version, where there must be one."""
    if version is None:
        raise errors.InternalError("the library gave no version where there must be one")
    return version


def _heads_options(branch: bytes, limit: int) -> Any:
    """An `llvs_heads_options`, which keeps the branch alive, as an argument."""
    made = _structs.llvs_heads_options(struct_size=ctypes.sizeof(_structs.llvs_heads_options), limit=limit)
    if branch:
        made.branch.data, made.branch.size = address(branch), len(branch)
        made._kept = branch
    return byref(made)


class Cursor(Handle):
    """A walk in pages. One thread at a time."""

    _warns = False
    _exit_order = 4

    def __init__(self, release: str, pointer: int) -> None:
        self._release = release  # type: ignore[misc]
        super().__init__(pointer)

    def _what(self) -> str:
        return "the enumeration"


class HistoryReading(Handle):
    """The versions of a store, and how they hang together."""

    @property
    def heads(self) -> tuple[Version, ...]:
        """The versions without successors, newest first. O(heads)."""
        with self._call as pointer:
            return tuple(take_versions(lib.llvs_store_heads, pointer, None))

    @property
    def most_recent_head(self) -> Optional[Version]:
        """The newest head; None for an empty store."""
        with self._call as pointer:
            return take_version(lib.llvs_store_heads, pointer, _heads_options(b"", 1))

    def heads_on_branch(self, branch: str) -> tuple[Version, ...]:
        """The heads that carry this branch name, newest first."""
        with self._call as pointer:
            return tuple(take_versions(lib.llvs_store_heads, pointer, _heads_options(encode(branch), 0)))

    def version(self, id: AnyVersion) -> Optional[Version]:
        """A version by its id; None when it is not in the store (also after a look at what other processes added). O(1).

        Raises InvalidIDError.
        """
        with self._call as pointer:
            return take_version(lib.llvs_store_version, pointer, version_bytes(id))

    def versions(self, ids: Iterable[AnyVersion]) -> list[Version]:
        """Many versions, in the order of `ids`. Raises UnknownVersionError, InvalidIDError."""
        packed = BytesArray(map(version_bytes, ids))
        with self._call as pointer:
            return take_versions(lib.llvs_store_versions, pointer, packed.address, packed.count)

    def __getitem__(self, id: AnyVersion) -> Version:
        """The version under an id, as `version` gives it, where there must be one. Raises UnknownVersionError (a KeyError), InvalidIDError.

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
        """Whether a version (or id) is in the store. O(1)."""
        return isinstance(id, (str, Version)) and self.version(id) is not None

    def history(self, *versions: AnyVersion) -> Iterator[Version]:
        """All versions, or those given and their ancestors, in topological order, newest first: each comes before its predecessors.

        It walks the history as it is now, fetched by the page. Raises UnknownVersionError. Cost: the number of versions walked.
        """
        packed = BytesArray(map(version_bytes, versions))
        pointer = ctypes.c_void_p()
        with self._call as store:
            lib.llvs_store_history(store, packed.address, packed.count, byref(pointer))
        return self._walk(Cursor("llvs_history_cursor_free", pointer.value or 0))

    @staticmethod
    def _walk(cursor: Cursor) -> Iterator[Version]:
        with cursor:
            while True:
                with cursor._call as pointer:
                    page = take_versions(lib.llvs_history_cursor_next, pointer, 0)
                if not page:
                    return
                yield from page

    def successors(self, version: AnyVersion) -> tuple[Version, ...]:
        """The versions that have this one as a predecessor, newest first. Raises UnknownVersionError."""
        with self._call as pointer:
            return tuple(take_versions(lib.llvs_store_successors, pointer, version_bytes(version)))

    def is_ancestor(self, ancestor: AnyVersion, descendant: AnyVersion) -> bool:
        """Whether one version is an ancestor of another; no version is its own. Raises UnknownVersionError.

        Cost: at most the versions whose generation lies between the two.
        """
        answer = ctypes.c_uint32()
        with self._call as pointer:
            lib.llvs_store_is_ancestor(pointer, version_bytes(ancestor), version_bytes(descendant), byref(answer))
        return answer.value != 0

    def merge_bases(self, a: AnyVersion, b: AnyVersion) -> tuple[Version, ...]:
        """All best common ancestors, newest first; empty when there are none. Raises UnknownVersionError.

        Cost: the versions between the two and their bases.
        """
        with self._call as pointer:
            return tuple(take_versions(lib.llvs_store_merge_bases, pointer, version_bytes(a), version_bytes(b)))

    def versions_of(self, id: str) -> tuple[Version, ...]:
        """All versions that stored bytes for a value id, newest first. Raises InvalidIDError."""
        with self._call as pointer:
            return tuple(take_versions(lib.llvs_store_versions_of, pointer, encode(id)))
