"""How tests wait for something."""

from __future__ import annotations

import time
from typing import Callable, TypeVar

T = TypeVar("T")

#: Seconds. Nothing is to take so long: a test that waits for them hangs. No test says how fast something is.
PATIENCE = 300.0


def eventually(condition: Callable[[], T], timeout: float = PATIENCE, pause: float = 0.01) -> T:
    """Waits until the condition holds, and returns what it was. Fails after a time in which a machine under any load comes to that."""
    end = time.monotonic() + timeout
    while not (found := condition()):
        assert time.monotonic() < end, f"this did not come to pass within {timeout:.0f} seconds: {condition}"
        time.sleep(pause)
    return found
