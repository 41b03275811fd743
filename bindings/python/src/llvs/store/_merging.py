"""Merging the versions of a store, undoing their changes, and the conflicts that merges left."""

from __future__ import annotations

import ctypes
from typing import Any, Literal, Optional, Union, cast

import llvs

from .. import _abi
from .._abi import metadata as _metadata
from .._abi.handle import Handle
from .._abi.memory import version_bytes
from ..control import CancelToken, Control, ProgressCallback
from ..merge._arbiter_handle import ArbiterHandle
from ..merge.arbiters import AnyArbiter
from ..merge.options import Heads, MergeOptions, Reverted, take_reverted
from ..words import Choice, HeadSelection, Relation
from . import _pages
from ._history import take_version, the
from .versions import AnyVersion, Change, Version

lib = _abi.lib
byref = ctypes.byref


class Merging(Handle):
    """Merges, undoing, rules and conflicts."""

    def merge(
        self,
        ours: AnyVersion,
        theirs: AnyVersion,
        arbiter: Optional[AnyArbiter] = None,
        *,
        metadata: Optional[_metadata.Metadata] = None,
        relation: Relation = "any",
        progress: Optional[ProgressCallback] = None,
        cancel: Optional[CancelToken] = None,
    ) -> Version:
        """Merges two versions. If one is an ancestor of the other, nothing is stored and the descendant is the result.

        arbiter: decides conflicts: `Rules()` (the default), a built-in one, an object with `resolve(merge, store)`, or such a function. If
        it raises, so does this.
        relation: "any", "related" (without a common ancestor: NoCommonAncestorError), or "unrelated" (as if the ancestor were empty).

        Raises UnknownVersionError, UnresolvedConflictError, InvalidReferenceError, CancelledError, StorageError; nothing is stored then.
        Cost: what differs, times log n.
        """
        control = Control(progress, cancel)
        options = MergeOptions(metadata, relation, control=control)
        with self._call as pointer, self._arbiter(arbiter) as handle, handle._call as decides, control:
            return the(
                take_version(lib.llvs_store_merge, pointer, version_bytes(ours), version_bytes(theirs), decides, options.reference)
            )

    def merge_heads(
        self,
        into: AnyVersion,
        arbiter: Optional[AnyArbiter] = None,
        selection: Union[Heads, HeadSelection] = Heads.UNBRANCHED,
        *,
        metadata: Optional[_metadata.Metadata] = None,
        progress: Optional[ProgressCallback] = None,
        cancel: Optional[CancelToken] = None,
    ) -> Optional[Version]:
        """Merges a version and the selected heads, all of them or none; returns None if nothing changed. If a head or an ancestor of it is
        damaged in this store, it stays a head, and is merged after a retrieve has repaired it.

        selection: "unbranched" (the default), "all", or `Heads.branches(...)`, `Heads.unbranched_and(...)`. Progress is in heads.
        Errors as for `merge`, and CancelledError; nothing is stored then.
        """
        control = Control(progress, cancel)
        options = MergeOptions(metadata, selection=selection, control=control)
        with self._call as pointer, self._arbiter(arbiter) as handle, handle._call as decides, control:
            return take_version(lib.llvs_store_merge_heads, pointer, version_bytes(into), decides, options.reference)

    def _arbiter(self, arbiter: Optional[AnyArbiter]) -> Any:
        return _NoArbiter() if arbiter is None else ArbiterHandle(arbiter, lambda: cast("llvs.Store", self))

    def revert(
        self,
        version: AnyVersion,
        *,
        at: AnyVersion,
        parent: Literal[1, 2] = 1,
        metadata: Optional[_metadata.Metadata] = None,
        progress: Optional[ProgressCallback] = None,
        cancel: Optional[CancelToken] = None,
    ) -> Reverted:
        """Records the inverse of a version's changes on top of `at`: undoes it without losing later changes.

        Values with rules are merged inside, so later changes stay, member by member; others are undone as a whole or not at all. Values
        that were removed later stay removed. The result lists what was undone and what was not. If nothing is left to undo, its `version`
        is None, and nothing is stored.

        parent: for a merge, the predecessor with which it is compared, 1 or 2.
        Raises UnknownVersionError, InvalidArgumentError (the second predecessor of a version that has none), CancelledError, StorageError;
        nothing is stored then.
        """
        return self._swapped(lib.llvs_store_revert, version, at, parent, metadata, progress, cancel)

    def cherry_pick(
        self,
        version: AnyVersion,
        *,
        onto: AnyVersion,
        parent: Literal[1, 2] = 1,
        metadata: Optional[_metadata.Metadata] = None,
        progress: Optional[ProgressCallback] = None,
        cancel: Optional[CancelToken] = None,
    ) -> Reverted:
        """Applies a version's changes again on top of `onto`: a merge with the version's predecessor as the base, and the version as the
        newer side.

        If the two lines are merged later, changes of counters count twice (`counts` of the result): pick only between lines that will not
        be merged, or pick no counters. Parameters and errors as for `revert`.
        """
        return self._swapped(lib.llvs_store_cherry_pick, version, onto, parent, metadata, progress, cancel)

    def _swapped(
        self,
        function: Any,
        version: AnyVersion,
        head: AnyVersion,
        parent: Literal[1, 2],
        metadata: Optional[_metadata.Metadata],
        progress: Optional[ProgressCallback],
        cancel: Optional[CancelToken],
    ) -> Reverted:
        control = Control(progress, cancel)
        options = MergeOptions(metadata, control=control, parent=parent)
        found = ctypes.c_void_p()
        with self._call as pointer, control:
            function(pointer, version_bytes(version), version_bytes(head), options.reference, byref(found))
        return take_reverted(found.value or 0)

    def schema(self, at: AnyVersion, adding: Optional[llvs.merge.MergeRules] = None) -> llvs.merge.Schema:
        """Returns the rules for merging of the store at a version, with others added to them. Nothing is stored.

        Adds prefixes and patterns that the store does not have, and members of other sections ("models", "indexes"). If both have a rule
        for one pattern and the two differ in meaning, the store's stays, and `contradictions` lists it.

        Raises UnknownVersionError, InvalidArgumentError (invalid rules), UnsupportedError (rules of an unknown version).
        """
        from ..merge.documents import rules_text, take_schema

        found = ctypes.c_void_p()
        with self._call as pointer:
            given = b"" if adding is None else rules_text(adding)
            lib.llvs_store_schema(pointer, version_bytes(at), given, byref(found))
            return take_schema(found.value)

    def conflicts(
        self,
        a: AnyVersion,
        b: AnyVersion,
        *,
        rules: Optional[llvs.merge.MergeRules] = None,
        id: str = "",
        progress: Optional[ProgressCallback] = None,
        cancel: Optional[CancelToken] = None,
    ) -> llvs.merge.Conflicts:
        """Lists the conflicts that a merge of two versions by rules would have to decide, with the decisions. Nothing is stored.

        Conflicts of values without rules are included, with the path (). rules: instead of the store's. id: of this value only. Raises
        UnknownVersionError, UnsupportedError (rules of an unknown version), CancelledError. Cost: that of the merge.
        """
        return self._conflicts(lib.llvs_store_conflicts, (a, b), rules, id, progress, cancel)

    def explain(
        self,
        version: AnyVersion,
        *,
        rules: Optional[llvs.merge.MergeRules] = None,
        id: str = "",
        progress: Optional[ProgressCallback] = None,
        cancel: Optional[CancelToken] = None,
    ) -> llvs.merge.Conflicts:
        """Lists the decisions of a merge version, by merging its predecessors again; none for a version that is not a merge.

        `recorded` of the result says whether these are the conflicts whose digest the version carries. Parameters, errors and cost as for
        `conflicts`.
        """
        return self._conflicts(lib.llvs_store_explain, (version,), rules, id, progress, cancel)

    def open_conflicts(
        self,
        at: AnyVersion,
        *,
        rules: Optional[llvs.merge.MergeRules] = None,
        id: str = "",
        progress: Optional[ProgressCallback] = None,
        cancel: Optional[CancelToken] = None,
    ) -> llvs.merge.Conflicts:
        """Lists the conflicts that are open at a version, to show them to a person; `choose` closes them.

        A conflict is open if the version or an ancestor is a merge that decided it by rules, its result still prevails, and no later edit
        or choice replaced it. Parameters and errors as for `conflicts`.
        """
        return self._conflicts(lib.llvs_store_open_conflicts, (at,), rules, id, progress, cancel)

    def _conflicts(
        self,
        function: Any,
        versions: tuple[AnyVersion, ...],
        rules: Optional[llvs.merge.MergeRules],
        id: str,
        progress: Optional[ProgressCallback],
        cancel: Optional[CancelToken],
    ) -> llvs.merge.Conflicts:
        from ..merge.documents import ConflictOptions, take_conflicts

        found, control = ctypes.c_void_p(), Control(progress, cancel)
        arbiter = None if rules is None else llvs.Rules(rules)
        with self._call as pointer, self._arbiter(arbiter) as handle, handle._call as decides, control:
            options = ConflictOptions(id, decides, control)
            function(pointer, *map(version_bytes, versions), options.reference, byref(found))
        return take_conflicts(found.value)

    def sides(self, id: str, a: AnyVersion, b: AnyVersion) -> llvs.merge.MergeSides:
        """Returns which of two versions is the newer side of a merge for a value, and which version set the value on each side.

            newer, older = store.sides(conflict.id, *store[conflict.version].predecessors)
            print(older.by.device, "wrote", conflict.older)

        Raises UnknownVersionError, InvalidIDError, StorageError. Cost: the merges that the value went through on each side.
        """
        from ..merge.sides import sides_of

        return sides_of(cast("llvs.Store", self), id, a, b)

    def choices(self, conflict: Union[llvs.merge.Conflict, llvs.models.ObjectConflict], choice: Choice, *, at: AnyVersion) -> list[Change]:
        """Makes the changes that close an open conflict, to save on `at`. `choose` saves them."""
        from ..merge.documents import Conflict, GivenConflict, choice_number

        record = conflict if isinstance(conflict, Conflict) else conflict.record
        found, number, given = ctypes.c_void_p(), choice_number(choice), GivenConflict(record)
        with self._call as pointer:
            lib.llvs_store_choose(pointer, version_bytes(at), given.reference, number, byref(found))
        return _pages.changes(found.value)

    def choose(
        self,
        conflict: Union[llvs.merge.Conflict, llvs.models.ObjectConflict],
        choice: Choice,
        *,
        at: AnyVersion,
        metadata: Optional[_metadata.Metadata] = None,
    ) -> Version:
        """Closes an open conflict: makes a version on `at` with the choice.

        choice: "newer", "older", or "result". If the result is chosen, a value under an id that begins with "__llvs_chosen/" tells all
        devices that a person chose. For positions in a list (`ConflictKind.MOVE_MOVE`), for a counter outside of its bounds
        (`ConflictKind.BOUND`), and for a counter that one side removed (`ConflictKind.DELETE_EDIT`), only "result" can be chosen: to change
        it, save the list or the number that is wanted.

        Raises MovedError (at that version the place has other contents by now, or a side of a part of a text was chosen),
        InvalidArgumentError (a conflict without a version, or without the sides that its kind has; a side of a kind that has no sides to
        choose; an ambiguous choice), UnknownVersionError, StorageError.
        """
        changes = self.choices(conflict, choice, at=at)
        return cast("llvs.Store", self).make_version(at, changes=changes, metadata=metadata)


class _NoCall:
    """Used if an optional handle is not given."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: object) -> None:
        return None


class _NoArbiter:
    _call = _NoCall()

    def __enter__(self) -> _NoArbiter:
        return self

    def __exit__(self, *_: object) -> None:
        return None
