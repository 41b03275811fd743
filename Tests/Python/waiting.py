"""Waits for what other threads, processes and links do, however slow the machine is."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Callable, TypeVar

T = TypeVar("T")

#: Seconds after which a test gives up. It guards against hanging; no test passes or fails by how fast something was.
GUARD = 300.0


def eventually(met: Callable[[], T], what: str = "it") -> T:
    """Returns what `met` returns as soon as that is true."""
    end = time.monotonic() + GUARD
    while not (found := met()):
        assert time.monotonic() < end, f"{what} did not happen within {GUARD:.0f} seconds"
        time.sleep(0.005)
    return found


async def eventually_async(met: Callable[[], T], what: str = "it") -> T:
    """Returns what `met` returns as soon as that is true; other tasks run meanwhile."""
    end = time.monotonic() + GUARD
    while not (found := met()):
        assert time.monotonic() < end, f"{what} did not happen within {GUARD:.0f} seconds"
        await asyncio.sleep(0.005)
    return found


def returns(call: Callable[[], T], what: str = "the call") -> T:
    """Returns what `call` returns, on a thread of its own. Fails if it waits for something that never comes."""
    outcome: list[T] = []
    raised: list[BaseException] = []

    def run() -> None:
        try:
            outcome.append(call())
        except BaseException as problem:
            raised.append(problem)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(GUARD)
    assert not thread.is_alive(), f"{what} did not return"
    if raised:
        raise raised[0]
    return outcome[0]
