"""For asyncio: coroutines over what waits, and events of the library as an asynchronous iterator.

    import llvs.aio

    async def main() -> None:
        with llvs.Coordinator("notes.llvs", exchange="/media/shared/notes") as notes:
            await llvs.aio.call(notes.sync)
            events: llvs.aio.Events[llvs.SyncEvent] = llvs.aio.Events()
            with llvs.Syncer(notes, events):
                async for event in events:
                    print(event.status.state.name)

They are ordinary coroutines: any method of the package may be called so, and runs on a thread of the loop's executor.
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
import inspect
import threading
from collections import deque
from typing import Any, Callable, Generic, TypeVar

from .control import CancelToken

T = TypeVar("T")
Event = TypeVar("Event")


async def call(function: Callable[..., T], /, *arguments: Any, **options: Any) -> T:
    """Calls a method of this package, `notes.sync` say, on another thread, and gives what it returns, or raises what it raises.

    Cancelling the task cancels the call, where it takes a `cancel` and none is given, and then waits for its end: when `CancelledError`
    is raised, nothing runs any more, and what was done whole is kept. A call that cannot be cancelled is waited for.
    """
    token = None
    if options.get("cancel") is None and _takes_cancel(function):
        token = options["cancel"] = CancelToken()
    context = contextvars.copy_context()
    future = asyncio.get_running_loop().run_in_executor(None, functools.partial(context.run, function, *arguments, **options))
    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError:
        if token is not None:
            token.cancel()
        while not future.done():
            try:
                await asyncio.wait({future})
            except asyncio.CancelledError:
                pass  # cancelled once more: it still has to end
        if not future.cancelled():
            future.exception()  # what it ended with is nobody's any more
        raise
    finally:
        if token is not None:
            token.close()


def _takes_cancel(function: Callable[..., Any]) -> bool:
    try:
        return "cancel" in inspect.signature(function).parameters
    except (TypeError, ValueError):
        return False


class Events(Generic[Event]):
    """What a callback of the library is told, as an asynchronous iterator: give it where a callback is wanted, and iterate over it.

    Made in a running loop, and iterated there by one task. Callbacks without an argument (`observe_exchanges`) give None. Where nobody
    takes them in time, the oldest of more than `limit` events are dropped; `dropped` counts them. It ends with `close`.
    """

    def __init__(self, limit: int = 1_000) -> None:
        """limit: how many events wait at most to be taken."""
        if limit < 1:
            raise ValueError(f"limit takes a number of events, 1 or more, not {limit}")
        self._loop = asyncio.get_running_loop()
        self._lock = threading.Lock()
        self._waiting: deque[Any] = deque(maxlen=limit)
        self._closed = False
        self._news = asyncio.Event()
        #: Events that were dropped, since too many waited.
        self.dropped = 0

    def __call__(self, event: Any = None) -> None:
        """Called by the library, on any thread."""
        with self._lock:
            if self._closed:
                return
            if len(self._waiting) == self._waiting.maxlen:
                self.dropped += 1
            self._waiting.append(event)
        self._wake()

    def _wake(self) -> None:
        try:
            self._loop.call_soon_threadsafe(self._news.set)
        except RuntimeError:
            pass  # the loop is closed, and nobody waits

    def close(self) -> None:
        """Ends the iteration, once what waits is taken. From any thread; closing again does nothing."""
        with self._lock:
            self._closed = True
        self._wake()

    def __aiter__(self) -> Events[Event]:
        return self

    async def __anext__(self) -> Event:
        while True:
            with self._lock:
                if self._waiting:
                    event: Event = self._waiting.popleft()
                    return event
                if self._closed:
                    raise StopAsyncIteration
                self._news.clear()
            await self._news.wait()
