"""Merging: arbiters, merging inside values, and the conflicts that merges left open.

    AnyArbiter   an argument of `merge`: a built-in arbiter, an `Arbiter`, or a function of (merge, store)
    Resolution   the result of an arbiter: changes; None for no changes; or `PASS` or `Pass(changes)`: then the fallback decides the rest
    PASS         the `Pass` without changes of its own
    MergeRules   how to merge inside values: the name of a kind, a rule, patterns with rules, a schema, or JSON text
"""

from __future__ import annotations

# Type checkers treat this name as true.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..store.versions import Fork as Fork, ForkKind as ForkKind, Side as Side
    from .arbiters import (
        PASS as PASS,
        AnyArbiter as AnyArbiter,
        Arbiter as Arbiter,
        ArbiterFunction as ArbiterFunction,
        Forks as Forks,
        Merge as Merge,
        MostRecentBranch as MostRecentBranch,
        MostRecentChange as MostRecentChange,
        Ours as Ours,
        PartFunction as PartFunction,
        Pass as Pass,
        Resolution as Resolution,
        Rules as Rules,
        Theirs as Theirs,
        ValueFunction as ValueFunction,
        ValueMerger as ValueMerger,
    )
    from .documents import (
        Conflict as Conflict,
        ConflictKind as ConflictKind,
        Conflicts as Conflicts,
        MergeRules as MergeRules,
        MergedValue as MergedValue,
        Schema as Schema,
        check_schema as check_schema,
        merge_values as merge_values,
    )
    from .options import Heads as Heads, Reverted as Reverted
    from .replay import Step as Step
    from .sides import MergeSide as MergeSide, MergeSides as MergeSides
else:
    from .._names import attach

    __getattr__, __dir__, __all__ = attach(
        __name__,
        {
            "merge.arbiters": (
                "PASS AnyArbiter Arbiter ArbiterFunction Forks Merge MostRecentBranch MostRecentChange Ours PartFunction Pass "
                "Resolution Rules Theirs ValueFunction ValueMerger"
            ),
            "merge.documents": "Conflict ConflictKind Conflicts MergeRules MergedValue Schema check_schema merge_values",
            "merge.options": "Heads Reverted",
            "merge.replay": "Step",
            "merge.sides": "MergeSide MergeSides",
            "store.versions": "Fork ForkKind Side",
        },
    )
