"""Selects the tests that run only if LLVS_DEEP is set, as `scripts/test --deep` does. The number of tests left out is printed, so they are
not skipped silently. A conftest.py imports the hooks.

    @pytest.mark.deep                              runs only with LLVS_DEEP
    @pytest.mark.in_turn("layout", "kind", "when") one layout for each kind and time, in turn; all of them with LLVS_DEEP

In turn, each value is tried, and with three parameters or more, each pair of values: of two layouts each is in half of the tests. The first
parameter is usually the one with the fewest values. One with more values leaves out more tests; the others together must have enough values
that each of its own has a turn.
"""

from __future__ import annotations

import os
from typing import Any

import pytest

IS_DEEP = bool(os.environ.get("LLVS_DEEP"))
_left_out = 0


def pytest_configure(config: Any) -> None:
    config.addinivalue_line("markers", "deep: runs only when LLVS_DEEP is set")
    config.addinivalue_line("markers", "in_turn(one, *others): with one value of a parameter for those of others, unless LLVS_DEEP is set")


def usually(names: list[str], *usual: str) -> list[Any]:
    """Returns values of a parameter. Those that are not usual run only if LLVS_DEEP is set."""
    assert set(usual) <= set(names), f"{usual} are not among {names}"
    return [name if name in usual else pytest.param(name, marks=pytest.mark.deep) for name in names]


def not_due(items: list[Any]) -> set[Any]:
    """Returns the tests whose turn it is not, by the indices of their parameters' values among those of the same function."""
    values: dict[tuple[Any, str], list[Any]] = {}

    def place(item: Any, name: str) -> int:
        known, value = values.setdefault((item.function, name), []), item.callspec.params[name]
        if value not in known:
            known.append(value)
        return known.index(value)

    found = [(item, [place(item, name) for name in mark.args], mark.args[0]) for item in items for mark in item.iter_markers("in_turn")]
    return {item for item, (one, *others), name in found if (sum(others) - one) % len(values[item.function, name])}


def leave_out(config: Any, items: list[Any]) -> None:
    """Deselects the tests with the marker, for `pytest_collection_modifyitems`."""
    global _left_out
    if IS_DEEP:
        return
    waiting = not_due(items)
    deep = [item for item in items if item in waiting or item.get_closest_marker("deep")]
    if deep:
        config.hook.pytest_deselected(items=deep)
        left = set(deep)
        items[:] = [item for item in items if item not in left]
    _left_out = len(deep)
    if hasattr(config, "workeroutput"):
        config.workeroutput["deep"] = len(deep)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: Any) -> None:
    """Takes the count of one worker of xdist, since each worker has collected all tests."""
    global _left_out
    _left_out = max(_left_out, getattr(node, "workeroutput", {}).get("deep", 0))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    if _left_out:
        terminalreporter.write_line(f"{_left_out} tests were left out, which run with LLVS_DEEP=1 (scripts/test --deep).")
