"""Options of merges, and the results of reverts."""

from __future__ import annotations

import ctypes
from typing import Literal, NamedTuple, Optional

import llvs

from .. import _abi, errors
from .._abi import metadata as _metadata
from .._abi.memory import BytesArray, address, copy, decode, encode
from .._generated import constants as c, structs as _structs
from ..control import Control
from ..store import _pages
from ..store.versions import Version
from ..words import HeadSelection, Relation

lib = _abi.lib


class Heads:
    """Which heads to merge: `Heads.UNBRANCHED` (the default), `Heads.ALL`, `Heads.branches("draft", ...)`,
    or `Heads.unbranched_and("draft", ...)`.

    A head without a branch is a version that carries no branch and is no ancestor of another such version. So a version on a branch does
    not hide the version that it was made from.
    """

    UNBRANCHED: Heads
    ALL: Heads

    def __init__(self, kind: int, names: tuple[str, ...] = ()) -> None:
        self._kind = kind
        self._names = names

    @classmethod
    def branches(cls, *names: str) -> Heads:
        """Returns the heads on these branches only."""
        return cls(c.HEADS_BRANCHES, names)

    @classmethod
    def unbranched_and(cls, *names: str) -> Heads:
        """Returns the heads without a branch, and those on these branches."""
        return cls(c.HEADS_UNBRANCHED_AND_BRANCHES, names)

    def __repr__(self) -> str:
        return f"Heads({self._kind}, {self._names!r})"


Heads.UNBRANCHED = Heads(c.HEADS_UNBRANCHED)
Heads.ALL = Heads(c.HEADS_ALL)

_SELECTIONS = {"unbranched": Heads.UNBRANCHED, "all": Heads.ALL}
_RELATIONS = {"any": c.RELATION_ANY, "related": c.RELATION_RELATED, "unrelated": c.RELATION_UNRELATED}


class MergeOptions:
    """An `llvs_merge_options`, and everything that it points to."""

    def __init__(
        self,
        metadata: _metadata.Metadata | None,
        relation: Relation = "any",
        selection: Heads | HeadSelection = Heads.UNBRANCHED,
        control: Control | None = None,
        parent: Literal[1, 2] = 1,
        version: bytes = b"",
    ) -> None:
        if parent not in (1, 2):
            raise errors.InvalidArgumentError(f"{parent!r} is no predecessor: 1 is the first, 2 the second")
        if relation not in _RELATIONS:
            raise errors.InvalidArgumentError(f"{relation!r} is no relation: use any, related or unrelated")
        if isinstance(selection, str):
            if selection not in _SELECTIONS:
                raise errors.InvalidArgumentError(
                    f"{selection!r} is no selection of heads: use unbranched, all, or llvs.merge.Heads.branches(...)"
                )
            selection = _SELECTIONS[selection]
        self._entries = _metadata.Entries(metadata)
        self._branches = BytesArray(map(encode, selection._names))
        self._struct = _structs.llvs_merge_options(
            struct_size=ctypes.sizeof(_structs.llvs_merge_options),
            relation=_RELATIONS[relation],
            selection=selection._kind,
            parent=c.SIDE_SECOND if parent == 2 else c.SIDE_FIRST,
            branches=self._branches.address,
            branch_count=self._branches.count,
            metadata=self._entries.address,
            metadata_count=self._entries.count,
            control=control.address if control is not None else None,
        )
        self._version = version
        if version:
            self._struct.version = _structs.llvs_bytes(address(version), len(version))
        self.reference = ctypes.byref(self._struct)


class Reverted(NamedTuple):
    """The result of reverting or picking a version."""

    #: The new version; None if nothing was left to change, and so nothing was stored.
    version: Optional[Version]
    #: The ids of the values that were changed: all or some of the version's changes to them were undone. Of a pick, the ids of the values
    #: to which all or some of its changes were applied.
    undone: tuple[str, ...]
    #: The ids of values with changes that were not undone, because they were changed again since, to something other than the state before
    #: the version. If rules merge inside a value, its id may be in both lists. Also the ids of values to which an undone version added
    #: members while it brought them into a later form: these members stay, too.
    superseded: tuple[str, ...]
    #: The decisions that the revert made, in byte order of the ids.
    conflicts: tuple[llvs.merge.Conflict, ...] = ()
    #: Of a pick: whether the values have counters whose changes count twice if the two lines are merged later.
    counts: bool = False
    #: The ids of the versions that were undone, newest first.
    versions: tuple[str, ...] = ()
    #: Of `Coordinator.undo` and `redo`: the description of the save; None if it has none.
    description: Optional[str] = None


def take_reverted(pointer: int) -> Reverted:
    """Returns the contents of an `llvs_revert_result`, and releases it."""
    try:
        made = _structs.llvs_revert_result.from_address(pointer)
        undone, superseded, versions = (
            tuple(map(decode, _pages.bytes_array(ids, count)))
            for ids, count in (
                (made.undone, made.undone_count), (made.superseded, made.superseded_count), (made.versions, made.version_count)
            )
        )
        records: tuple[llvs.merge.Conflict, ...] = ()
        if made.conflict_count:
            from .documents import conflicts

            records = conflicts(made.conflicts, made.conflict_count)
        text = made.description
        return Reverted(
            _pages.version_at(made.version) if made.version else None,
            undone,
            superseded,
            records,
            bool(made.counts),
            versions,
            decode(copy(text.data, text.size)) if text.size else None,
        )
    finally:
        lib.llvs_revert_result_free(pointer)
