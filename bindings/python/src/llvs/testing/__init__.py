"""For tests: faults in every operation of a storage or transport, and suites that test those written in Python.

    from llvs.testing import FaultPlan, Operation, check_storage, check_transport

    def test_my_storage():
        places = defaultdict(dict)
        check_storage(lambda place: MyStorage(places[place]))      # raises, and says which checks failed

    def test_every_operation_fails_in_turn(tmp_path):
        plan = FaultPlan()
        plan.fail(nth=3, on=Operation.APPEND)
        store = llvs.Store(storage=plan.storage(tmp_path / "notes.llvs"))

docs/testing-yours.md shows more.
"""

from __future__ import annotations

from .conformance import (
    Check,
    CheckReport,
    ConformanceError,
    Disturb,
    Disturbance,
    Outcome,
    check_files,
    check_storage,
    check_transport,
    files_checks,
    storage_checks,
    transport_checks,
)
from .faults import FaultKind, FaultPlan, FaultyStorage, FaultyTransport, Operation

__all__ = [
    "Check",
    "CheckReport",
    "ConformanceError",
    "Disturb",
    "Disturbance",
    "FaultKind",
    "FaultPlan",
    "FaultyStorage",
    "FaultyTransport",
    "Operation",
    "Outcome",
    "check_files",
    "check_storage",
    "check_transport",
    "files_checks",
    "storage_checks",
    "transport_checks",
]
