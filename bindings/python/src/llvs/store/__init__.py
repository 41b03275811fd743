"""Stores: versions, the values at them, and what a store reports about itself.

    AnyVersion   a version argument: a `Version`, or its id
    Content      the content of a value: bytes-like, or a binary file or an iterable of bytes, which is read piece by piece
    Entries      an argument `insert` or `update`: ids with their content, as a mapping or as pairs
"""

from __future__ import annotations

# Type checkers treat this name as true.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..options import StoreOptions as StoreOptions
    from ._change_array import Content as Content, Entries as Entries
    from .default_location import default_path as default_path
    from .reader import ValueReader as ValueReader
    from .reports import (
        CompactionReport as CompactionReport,
        Damage as Damage,
        EraseReport as EraseReport,
        Erasure as Erasure,
        ErasurePlace as ErasurePlace,
        ErasureReach as ErasureReach,
        ErasureReason as ErasureReason,
        ErasureState as ErasureState,
        ForgetReport as ForgetReport,
        ForgetRow as ForgetRow,
        ForgetRule as ForgetRule,
        Loss as Loss,
        SalvageReport as SalvageReport,
        Salvaged as Salvaged,
        SizeReport as SizeReport,
        SizeRow as SizeRow,
        Statistics as Statistics,
        VerifyReport as VerifyReport,
    )
    from .snapshot import Snapshot as Snapshot
    from .state import State as State
    from .store import Store as Store
    from .versions import (
        AnyVersion as AnyVersion,
        Change as Change,
        ChangeKind as ChangeKind,
        ErasedValue as ErasedValue,
        ForgottenValue as ForgottenValue,
        Reference as Reference,
        SavedVersion as SavedVersion,
        Value as Value,
        Version as Version,
        make_branch_name as make_branch_name,
    )
else:
    from .._names import attach

    __getattr__, __dir__, __all__ = attach(
        __name__,
        {
            "options": "StoreOptions",
            "store._change_array": "Content Entries",
            "store.default_location": "default_path",
            "store.reader": "ValueReader",
            "store.reports": (
                "CompactionReport Damage EraseReport Erasure ErasurePlace ErasureReach ErasureReason ErasureState ForgetReport ForgetRow "
                "ForgetRule Loss SalvageReport Salvaged SizeReport SizeRow Statistics VerifyReport"
            ),
            "store.snapshot": "Snapshot",
            "store.state": "State",
            "store.store": "Store",
            "store.versions": (
                "AnyVersion Change ChangeKind ErasedValue ForgottenValue Reference SavedVersion Value Version make_branch_name"
            ),
        },
    )
