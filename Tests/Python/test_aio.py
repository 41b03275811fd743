"""Coroutines for calls that wait, cancelled with their task, and events as an asynchronous iterator."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from pathlib import Path
from typing import Any

import pytest

import llvs
import llvs.aio
from waiting import eventually_async


def test_calls_give_what_the_methods_give(tmp_path: Path) -> None:
    async def main() -> None:
        with llvs.Coordinator(tmp_path / "s.llvs", exchange=tmp_path / "shared") as notes:
            await llvs.aio.call(notes.save, insert={"a": b"1"})
            done = await llvs.aio.call(notes.sync)
            assert len(done.before.sent) == 1
            assert await llvs.aio.call(lambda: notes["a"]) == b"1"
            with pytest.raises(llvs.errors.UnknownVersionError):
                await llvs.aio.call(notes.store.at, "nowhere")
            assert await llvs.aio.call(int, "5") == 5

    asyncio.run(main())


def test_the_context_comes_along() -> None:
    variable = contextvars.ContextVar("variable", default=0)

    async def main() -> None:
        variable.set(7)
        assert await llvs.aio.call(variable.get) == 7
        assert await llvs.aio.call(threading.get_ident) != threading.get_ident()

    asyncio.run(main())


class Slow(llvs.exchange.Transport):
    name = "slow"

    def __init__(self) -> None:
        self.entered, self.go_on, self.left, self.sent = (threading.Event() for _ in range(4))

    def list(self) -> Any:
        self.entered.set()
        self.go_on.wait(300)
        self.left.set()
        return []

    def fetch_changes(self, names: Any) -> Any:
        return [None for _ in names]

    def fetch_versions(self, names: Any) -> Any:
        return [None for _ in names]

    def send(self, files: Any) -> None:
        self.sent.set()


def test_cancelling_a_task_cancels_its_call(tmp_path: Path) -> None:
    slow = Slow()

    async def main() -> None:
        with llvs.Coordinator(tmp_path / "s.llvs", exchange=slow) as notes:
            notes.save(insert={"a": b"1"})
            task = asyncio.create_task(llvs.aio.call(notes.sync))
            await eventually_async(slow.entered.is_set)
            # A running call is awaited, however often it is cancelled: each time the task gets its turn.
            for _ in range(5):
                task.cancel()
                await asyncio.sleep(0)
                await asyncio.sleep(0)
                assert not task.done()
            slow.go_on.set()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert slow.left.is_set() and not slow.sent.is_set()
            assert notes["a"] == b"1"

    asyncio.run(main())


def test_a_token_of_ones_own(tmp_path: Path) -> None:
    async def main() -> None:
        with llvs.Coordinator(tmp_path / "s.llvs", exchange=tmp_path / "shared") as notes, llvs.CancelToken() as token:
            token.cancel()
            with pytest.raises(llvs.CancelledError):
                await llvs.aio.call(notes.sync, cancel=token)
            assert token.cancelled

    asyncio.run(main())


def test_events_of_a_syncer(tmp_path: Path) -> None:
    async def main() -> None:
        with llvs.Coordinator(tmp_path / "s.llvs", exchange=tmp_path / "shared") as notes:
            events: llvs.aio.Events[llvs.syncer.SyncEvent] = llvs.aio.Events()
            with llvs.Syncer(notes, events, after_save=0.05):
                notes.save(insert={"a": b"1"})
                async for event in events:
                    if event.status.sent == 1:
                        break
            events.close()
            left = [event async for event in events]
            assert all(isinstance(event, llvs.syncer.SyncEvent) for event in left)

    asyncio.run(asyncio.wait_for(main(), 60))


def test_events_without_an_argument(tmp_path: Path) -> None:
    async def main() -> None:
        with llvs.Coordinator(tmp_path / "a.llvs", exchange=tmp_path / "shared") as notes:
            notes.sync()
            events: llvs.aio.Events[None] = llvs.aio.Events()
            notes.observe_exchanges(events)
            with llvs.Coordinator(tmp_path / "b.llvs", exchange=tmp_path / "shared") as other:
                other.save(insert={"b": b"1"})
                await llvs.aio.call(other.sync)
                assert await anext_of(events) is None

    asyncio.run(asyncio.wait_for(main(), 60))


async def anext_of(events: llvs.aio.Events[Any]) -> Any:
    return await events.__anext__()


def test_events_not_read_in_time_are_dropped() -> None:
    async def main() -> None:
        events: llvs.aio.Events[int] = llvs.aio.Events(limit=10)
        threads = [threading.Thread(target=lambda: [events(i) for i in range(100)]) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert events.dropped == 390
        events.close()
        events(1)
        assert len([event async for event in events]) == 10
        with pytest.raises(ValueError, match="limit"):
            llvs.aio.Events(limit=0)

    asyncio.run(main())


def test_a_loop_that_is_closed() -> None:
    async def make() -> llvs.aio.Events[int]:
        return llvs.aio.Events()

    events = asyncio.run(make())
    events(1)
    events.close()


def test_many_at_once(tmp_path: Path) -> None:
    async def main() -> None:
        with llvs.Coordinator(tmp_path / "s.llvs") as notes:
            await asyncio.gather(*(llvs.aio.call(notes.save, insert={f"note/{i}": b"x"}) for i in range(50)))
            assert len(notes) == 50

    asyncio.run(main())
