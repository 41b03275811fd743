"""Merging the versions of a store, undoing what they changed, and the conflicts that merges left."""

from __future__ import annotations

import ctypes
from typing import Any, Literal, Optional, Union, cast

import llvs

from . import _abi, _metadata, _pages
from ._arbiters import ArbiterHandle
from ._handle import Handle
from ._history import take_version, the
from ._memory import version_bytes
from ._merge_options import Heads, MergeOptions, Reverted, take_reverted
from .control import CancelToken, Control, ProgressCallback
from .merge import AnyArbiter
from .versions import AnyVersion, Change, Version
from .words import Choice, HeadSelection, Relation

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
        """Merges two versions. When one is an ancestor of the other nothing is stored and the descendant is the result.

        arbiter: decides conflicts: `Rules()` (the default), a built-in one, an object with `resolve(merge, store)`, or such a function.
        What it raises is raised from here.
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
        """Merges a version and the selected heads, all of them or none; None when nothing changed. A head that is damaged here, or built on
        what is, stays a head, and is merged once a retrieve has repaired it.

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
        """Records the inverse of a version's changes on top of `at`: undo, without losing what came since.

        Values that rules of the store are for are merged inside, so what came since stays, member by member; others are taken back as a
        whole, or not at all. What was removed since stays removed. The result tells what was undone and what was not; its `version` is
        None, and nothing is stored, when nothing is left to undo.

        parent: against which predecessor a merge is undone, 1 or 2.
        Raises UnknownVersionError, InvalidArgumentError (a second predecessor that is not there), CancelledError, StorageError; nothing is
        stored then.
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
        """Does what a version changed once more on top of `onto`: a merge with the version's predecessor as the base, and it as the newer
        side.

        What a counter counted counts twice when the two lines are merged later (`counts` of the result): pick what will not be merged, or
        pick no counters. Parameters and errors as for `revert`.
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

    def schema(self, at: AnyVersion, adding: Optional[llvs.MergeRules] = None) -> llvs.Schema:
        """The rules for merging that the store holds at a version, and what comes of adding others to them. Nothing is stored.

        What is added: prefixes and patterns that the store has not got, and members of other sections ("models", "indexes"). Where both
        have a rule for one pattern and the two do not mean the same, the store's stands, and it is told in `contradictions`.

        Raises UnknownVersionError, InvalidArgumentError (rules that are not valid), UnsupportedError (rules of a number that is not known).
        """
        from .documents import rules_text, take_schema

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
        rules: Optional[llvs.MergeRules] = None,
        id: str = "",
        progress: Optional[ProgressCallback] = None,
        cancel: Optional[CancelToken] = None,
    ) -> llvs.Conflicts:
        """The conflicts that a merge of two versions by rules would have to decide, and how it would. Nothing is stored.

        Those of values that no rules are for are among them, with the path (). rules: instead of the store's. id: of this value only.
        Raises UnknownVersionError, UnsupportedError (rules of a number that is not known), CancelledError. Cost: that of the merge.
        """
        return self._conflicts(lib.llvs_store_conflicts, (a, b), rules, id, progress, cancel)

    def explain(
        self,
        version: AnyVersion,
        *,
        rules: Optional[llvs.MergeRules] = None,
        id: str = "",
        progress: Optional[ProgressCallback] = None,
        cancel: Optional[CancelToken] = None,
    ) -> llvs.Conflicts:
        """What a merge version decided, found by merging its predecessors again; nothing for a version that is no merge.

        `recorded` of the result tells whether these are the conflicts whose digest the version carries. Parameters, errors and cost as for
        `conflicts`.
        """
        return self._conflicts(lib.llvs_store_explain, (version,), rules, id, progress, cancel)

    def open_conflicts(
        self,
        at: AnyVersion,
        *,
        rules: Optional[llvs.MergeRules] = None,
        id: str = "",
        progress: Optional[ProgressCallback] = None,
        cancel: Optional[CancelToken] = None,
    ) -> llvs.Conflicts:
        """The conflicts that merges by rules among the ancestors of a version decided, of which what the merge made still stands there.

        Nobody edited that place since, and nobody chose. To show to a person; `choose` closes them. Parameters and errors as for
        `conflicts`.
        """
        return self._conflicts(lib.llvs_store_open_conflicts, (at,), rules, id, progress, cancel)

    def _conflicts(
        self,
        function: Any,
        versions: tuple[AnyVersion, ...],
        rules: Optional[llvs.MergeRules],
        id: str,
        progress: Optional[ProgressCallback],
        cancel: Optional[CancelToken],
    ) -> llvs.Conflicts:
        from .documents import ConflictOptions, take_conflicts

        found, control = ctypes.c_void_p(), Control(progress, cancel)
        arbiter = None if rules is None else llvs.Rules(rules)
        with self._call as pointer, self._arbiter(arbiter) as handle, handle._call as decides, control:
            options = ConflictOptions(id, decides, control)
            function(pointer, *map(version_bytes, versions), options.reference, byref(found))
        return take_conflicts(found.value)

    def sides(self, id: str, a: AnyVersion, b: AnyVersion) -> llvs.MergeSides:
        """Which of two versions is the newer side of a merge for a value, and who set the value on each side.

            newer, older = store.sides(conflict.id, *store[conflict.version].predecessors)
            print(older.by.device, "wrote", conflict.older)

        Raises UnknownVersionError, InvalidIDError, StorageError. Cost: the merges that the value went through on each side.
        """
        from .sides import sides_of

        return sides_of(cast("llvs.Store", self), id, a, b)

    def choices(self, conflict: Union[llvs.Conflict, llvs.ObjectConflict], choice: Choice, *, at: AnyVersion) -> list[Change]:
        """The changes that close an open conflict, to be saved on `at`. `choose` saves them."""
        from .documents import Conflict, GivenConflict, choice_number

        record = conflict if isinstance(conflict, Conflict) else conflict.record
        found, number, given = ctypes.c_void_p(), choice_number(choice), GivenConflict(record)
        with self._call as pointer:
            lib.llvs_store_choose(pointer, version_bytes(at), given.reference, number, byref(found))
        return _pages.changes(found.value)

    def choose(
        self,
        conflict: Union[llvs.Conflict, llvs.ObjectConflict],
        choice: Choice,
        *,
        at: AnyVersion,
        metadata: Optional[_metadata.Metadata] = None,
    ) -> Version:
        """Closes an open conflict: makes a version on `at` with what was chosen.

        choice: "newer", "older", or "result" for what stands. Where what stands is chosen, a value under an id that begins with
        "__llvs_chosen/" tells all devices that somebody looked. Of places in a list (`ConflictKind.MOVE_MOVE`), of a counter outside of
        its bounds (`ConflictKind.BOUND`), and of one that one side removed (`ConflictKind.DELETE_EDIT`), only "result" can be chosen: save
        the list, or the number, that is wanted.

        Raises MovedError (at that version something else stands there by now, or a side of a part of a text was chosen),
        InvalidArgumentError (a conflict without a version, or without the sides that its kind has; a side of a kind that has none to
        choose; a choice that is not clear), UnknownVersionError, StorageError.
        """
        changes = self.choices(conflict, choice, at=at)
        return cast("llvs.Store", self).make_version(at, changes=changes, metadata=metadata)


class _NoCall:
    """Where an optional handle is not given."""

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
