"""Fixtures that these tests share with those in Tests/Python: the package under test, and stores of every storage.

The folders that they leave need not be readable for the other implementation: an attack may have written them.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

_path = Path(__file__).resolve().parents[1] / "Python" / "conftest.py"
_spec = importlib.util.spec_from_file_location("python_conftest", _path)
assert _spec is not None and _spec.loader is not None
shared = importlib.util.module_from_spec(_spec)
sys.modules["python_conftest"] = shared
_spec.loader.exec_module(shared)

pytest_runtest_makereport, pytest_terminal_summary = shared.pytest_runtest_makereport, shared.pytest_terminal_summary
pytest_configure, pytest_testnodedown = shared.pytest_configure, shared.pytest_testnodedown
pytest_collection_modifyitems = shared.pytest_collection_modifyitems
place, store, memory, new_store = shared.place, shared.store, shared.memory, shared.new_store
