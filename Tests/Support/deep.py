"""Which tests run only when LLVS_DEEP is set, as `scripts/test --deep` does. How many were left out is printed: they are not skipped in
silence. A conftest.py imports the hooks."""

from __future__ import annotations

import os
from typing import Any

import pytest

IS_DEEP = bool(os.environ.get("LLVS_DEEP"))
_left_out = 0


def pytest_configure(config: Any) -> None:
    config.addinivalue_line("markers", "deep: runs only when LLVS_DEEP is set")


def leave_out(config: Any, items: list[Any]) -> None:
    """Deselects the tests with the marker, for `pytest_collection_modifyitems`."""
    global _left_out
    if IS_DEEP:
        return
    deep = [item for item in items if item.get_closest_marker("deep")]
    if deep:
        config.hook.pytest_deselected(items=deep)
        items[:] = [item for item in items if item not in set(deep)]
    _left_out = len(deep)
    if hasattr(config, "workeroutput"):
        config.workeroutput["deep"] = len(deep)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: Any) -> None:
    """Each worker of xdist has collected all tests."""
    global _left_out
    _left_out = max(_left_out, getattr(node, "workeroutput", {}).get("deep", 0))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    if _left_out:
        terminalreporter.write_line(f"{_left_out} tests were left out, which run with LLVS_DEEP=1 (scripts/test --deep).")
