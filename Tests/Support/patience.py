"""How tests wait for an event."""

from __future__ import annotations

import time
from typing import Callable, TypeVar

T = TypeVar("T")

#: Seconds after which a test gives up. It guards against hanging; no test passes or fails by how fast something was.
PATIENCE = 300.0


def eventually(condition: Callable[[], T], timeout: float = PATIENCE, pause: float = 0.01) -> T:
    """Returns what the condition returns as soon as that is true. Fails after `timeout` seconds."""
    end = time.monotonic() + timeout
    while not (found := condition()):
        assert time.monotonic() < end, f"this did not happen within {timeout:.0f} seconds: {condition}"
        time.sleep(pause)
    return found
