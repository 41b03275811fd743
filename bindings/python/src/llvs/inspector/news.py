"""Notifies open pages of new versions in the store, whichever program added them."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import Any, AsyncIterator, Callable

#: Seconds between two keep-alives, by which each side notices that the other is gone.
PULSE = 15.0


class News:
    """Wakes the streams of all pages. `tell` may be called on any thread."""

    def __init__(self, latest: Callable[[], dict[str, Any]]) -> None:
        self._latest = latest
        self._lock = threading.Lock()
        self._waiting: dict[asyncio.Event, asyncio.AbstractEventLoop] = {}
        self._closed = False

    def tell(self) -> None:
        """Notifies all streams. Several calls in a short time cause one event."""
        with self._lock:
            waiting = list(self._waiting.items())
        for event, loop in waiting:
            try:
                loop.call_soon_threadsafe(event.set)
            except RuntimeError:
                pass  # the loop has ended

    def close(self) -> None:
        """Ends all streams."""
        self._closed = True
        self.tell()

    async def stream(self) -> AsyncIterator[bytes]:
        """Yields server-sent events: the state of the store now, and again after each notification."""
        event = asyncio.Event()
        with self._lock:
            self._waiting[event] = asyncio.get_running_loop()
        try:
            event.set()
            while not self._closed:
                try:
                    await asyncio.wait_for(event.wait(), PULSE)
                except asyncio.TimeoutError:
                    yield b": here\n\n"
                    continue
                event.clear()
                if not self._closed:
                    latest = await asyncio.to_thread(self._latest)
                    yield b"event: store\ndata: " + json.dumps(latest).encode() + b"\n\n"
        finally:
            with self._lock:
                self._waiting.pop(event, None)
