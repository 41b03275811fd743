"""These tests use modules beside them that were written from docs/live-protocol.md. Modules that need the library say so."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any, Iterator

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "Support"))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> None:
    """Lets the clock run before other fixtures close: after a test that failed, a connection may have to wait for its timeout."""
    if clock := getattr(item, "funcargs", {}).get("clock"):
        clock.freeze(False)


@pytest.fixture
def clock() -> Iterator[Any]:
    """The clock of the library, stopped. A test requests it before anything that waits."""
    from moved_clock import MovedClock

    clock = MovedClock()
    clock.freeze()
    yield clock
    clock.close()


@pytest.fixture
def network() -> Iterator[Any]:
    """Two network namespaces."""
    import namespaces

    if why := namespaces.missing():
        pytest.skip(why)
    try:
        made = namespaces.Network()
    except subprocess.CalledProcessError as error:
        pytest.skip(f"no namespaces can be made here: {error.cmd}: {error.stderr.strip()}")
    yield made
    made.close()
