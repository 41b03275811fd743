"""Coordinators: a store, its current version, exchanges and an arbiter in one object; and the results of its calls."""

from __future__ import annotations

# Type checkers treat this name as true.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..exchange.results import BootstrapResult as BootstrapResult, MergeResult as MergeResult, SyncResult as SyncResult
    from ..options import CoordinatorOptions as CoordinatorOptions
    from .coordinator import Coordinator as Coordinator
    from .transaction import Transaction as Transaction
else:
    from .._names import attach

    __getattr__, __dir__, __all__ = attach(
        __name__,
        {
            "coordinator.coordinator": "Coordinator",
            "coordinator.transaction": "Transaction",
            "exchange.results": "BootstrapResult MergeResult SyncResult",
            "options": "CoordinatorOptions",
        },
    )
