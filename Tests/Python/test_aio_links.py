"""Direct connections over asyncio's streams."""

from __future__ import annotations

import asyncio
import socket
import time
from contextlib import asynccontextmanager
from pathlib import Path
from typing import AsyncIterator, Iterator

import pytest

import llvs
import llvs.aio
from waiting import GUARD, eventually_async

PAIRING = bytes(range(48))


@pytest.fixture
def stores() -> Iterator[tuple[llvs.Store, llvs.Store]]:
    with llvs.Store(storage="memory") as one, llvs.Store(storage="memory") as two:
        yield one, two


def ids(store: llvs.Store) -> set[str]:
    return {version.id for version in store.history()}


@asynccontextmanager
async def linked(one: llvs.Store, two: llvs.Store, theirs: bytes = PAIRING) -> AsyncIterator[tuple[llvs.aio.Link, llvs.aio.Link]]:
    """Two stores in one loop, over a server of asyncio."""
    came: asyncio.Queue[llvs.aio.Link] = asyncio.Queue()

    async def come(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        came.put_nowait(await llvs.aio.accept({PAIRING: two}, reader, writer, device="laptop"))

    server = await asyncio.start_server(come, "127.0.0.1", 0)
    async with server:
        host, port = server.sockets[0].getsockname()[:2]
        async with await llvs.aio.connect(one, (host, port), theirs, device="phone") as link:
            other = await asyncio.wait_for(came.get(), GUARD)
            try:
                yield link, other
            finally:
                await other.close()


def test_two_stores_come_in_step_and_stay_so(stores: tuple[llvs.Store, llvs.Store]) -> None:
    one, two = stores
    one.make_version(insert={"a": b"1"})
    two.make_version(insert={"b": b"2"})

    async def main() -> None:
        async with linked(one, two) as (link, other):
            assert await asyncio.wait_for(link.wait(), GUARD) and await asyncio.wait_for(other.wait(), GUARD)
            assert ids(one) == ids(two) and len(ids(one)) == 2
            assert link.state.device == "laptop" and other.state.device == "phone"
            for number in range(20):
                saved = one.make_version(one.most_recent_head, update={"a": b"%d" % number})
                assert await asyncio.wait_for(link.wait(), GUARD) and saved.id in ids(two)
            await link.close()
            await asyncio.wait_for(other.wait_ended(), GUARD)
            assert link.error is None and other.error is None
            assert link.state.phase == other.state.phase == llvs.live.PeerPhase.ENDED
            assert link.state.sent == 21 and other.state.received == 21 and link.state.problems == ()

    asyncio.run(main())


def test_both_send_much_at_once(stores: tuple[llvs.Store, llvs.Store]) -> None:
    """Both sides send without waiting until the other has received."""
    for store in stores:
        for number in range(8):
            store.make_version(store.most_recent_head, insert={f"v{number}": bytes([number]) * 700_000})

    async def main() -> None:
        async with linked(*stores) as (link, other):
            assert await asyncio.wait_for(link.wait(), GUARD) and await asyncio.wait_for(other.wait(), GUARD)

    asyncio.run(main())
    assert ids(stores[0]) == ids(stores[1]) and len(ids(stores[0])) == 16


def test_with_the_threads_of_llvs_listen(stores: tuple[llvs.Store, llvs.Store], tmp_path: Path) -> None:
    one, two = stores
    saved = two.make_version(insert={"b": b"2"})

    async def main() -> None:
        with llvs.live.listen({PAIRING: two}, str(tmp_path / "socket")) as listener:
            async with await llvs.aio.connect(one, str(tmp_path / "socket"), PAIRING) as link:
                assert await asyncio.wait_for(link.wait(), GUARD)
            listener.links and listener.links[0].wait(300)

    asyncio.run(main())
    assert ids(one) == {saved.id}


def test_who_is_not_paired(stores: tuple[llvs.Store, llvs.Store]) -> None:
    told: list[BaseException] = []

    async def come(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await llvs.aio.accept({PAIRING: stores[1]}, reader, writer, timeout=0.3)
        except ConnectionError as error:
            told.append(error)

    async def main() -> None:
        server = await asyncio.start_server(come, "127.0.0.1", 0)
        async with server:
            host, port = server.sockets[0].getsockname()[:2]
            link = await llvs.aio.connect(stores[0], (host, port), bytes(48))
            with pytest.raises((llvs.errors.EncryptionError, OSError)):
                await asyncio.wait_for(link.wait(), GUARD)
            with pytest.raises((llvs.errors.EncryptionError, OSError)):
                await link.wait_ended()
            await link.close()
            # A peer that sends nothing, and one that disconnects immediately.
            for goes in (False, True):
                reader, writer = await asyncio.open_connection(host, port)
                if goes:
                    writer.close()
                else:
                    assert await asyncio.wait_for(reader.read(100), GUARD) == b""
                    writer.close()
            await eventually_async(lambda: len(told) >= 3)

    asyncio.run(main())


class Clock:
    """The time of `llvs.aio`, which a test moves."""

    def __init__(self) -> None:
        self.ahead = 0.0

    def monotonic(self) -> float:
        return time.monotonic() + self.ahead


def test_time_for_beginning_and_handshake_together(stores: tuple[llvs.Store, llvs.Store], monkeypatch: pytest.MonkeyPatch) -> None:
    """A peer that sends slowly gets no more time. The beginning used all but a tenth of a second of the minute."""
    clock = Clock()
    monkeypatch.setattr(llvs.aio, "time", clock)
    came = asyncio.Event()
    ended: asyncio.Queue[BaseException] = asyncio.Queue()

    async def come(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        came.set()
        try:
            async with await llvs.aio.accept({PAIRING: stores[1]}, reader, writer, timeout=60) as link:
                await link.wait_ended()
        except ConnectionError as error:
            ended.put_nowait(error)

    async def main() -> None:
        server = await asyncio.start_server(come, "127.0.0.1", 0)
        async with server:
            with llvs.live.Peer(stores[0], PAIRING, initiator=True) as peer:
                beginning = peer.send()
                reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname()[:2])
                writer.write(beginning[:60])
                await came.wait()
                await asyncio.sleep(0)
                clock.ahead += 59.9
                writer.write(beginning[60:])
                while await asyncio.wait_for(reader.read(1_000), GUARD):
                    pass
                writer.close()
            assert "did not say in time" in str(await asyncio.wait_for(ended.get(), GUARD))

    asyncio.run(main())


def test_a_program_in_the_background(stores: tuple[llvs.Store, llvs.Store], monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[bool] = []
    says = llvs.live.Peer.set_background
    monkeypatch.setattr(llvs.live.Peer, "set_background", lambda peer, value: (told.append(value), says(peer, value)))

    async def main() -> None:
        async with linked(*stores) as (link, _):
            await link.set_background(True)
            await link.set_background(False)
            assert await asyncio.wait_for(link.wait(), GUARD)

    asyncio.run(main())
    assert told == [True, False]


def test_a_cut_and_a_closed_store_are_reported(stores: tuple[llvs.Store, llvs.Store]) -> None:
    async def main() -> None:
        async with linked(*stores) as (link, other):
            await asyncio.wait_for(link.wait(), GUARD)
            link._writer.transport.abort()
            with pytest.raises((llvs.errors.ExchangeDataError, OSError)):
                await asyncio.wait_for(other.wait_ended(), GUARD)
        async with linked(*stores) as (link, other):
            await asyncio.wait_for(link.wait(), GUARD)
            stores[1].close()
            stores[0].make_version(insert={"a": b"1"})
            with pytest.raises(llvs.Error):
                await asyncio.wait_for(other.wait_ended(), GUARD)
            # The link said goodbye to the other side.
            await asyncio.wait_for(link.wait_ended(), GUARD)

    asyncio.run(main())


def test_a_task_that_is_cancelled_ends_it(stores: tuple[llvs.Store, llvs.Store]) -> None:
    async def main() -> None:
        async with linked(*stores) as (link, other):
            await asyncio.wait_for(link.wait(), GUARD)
            # The goodbye gets no answer. Closing gives up, and no task of the link continues.
            other._task.cancel()
            await asyncio.wait({other._task})
            await link.close(0.1)
            assert link._task.done()

    asyncio.run(main())
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        address = nobody.getsockname()[:2]

        async def fails() -> None:
            with pytest.raises(OSError):
                await llvs.aio.connect(stores[0], address, PAIRING)

        asyncio.run(fails())


@asynccontextmanager
async def compared(one: llvs.Store, two: llvs.Store) -> AsyncIterator[tuple[llvs.aio.Link, llvs.aio.Link]]:
    """A device without a pairing, and the one that has it."""
    came: asyncio.Queue[llvs.aio.Link] = asyncio.Queue()

    async def come(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        came.put_nowait(await llvs.aio.accept({PAIRING: two}, reader, writer, compare=PAIRING))

    server = await asyncio.start_server(come, "127.0.0.1", 0)
    async with server:
        async with await llvs.aio.connect(one, server.sockets[0].getsockname()[:2], compare=True) as link:
            other = await asyncio.wait_for(came.get(), GUARD)
            try:
                yield link, other
            finally:
                await other.close()


def test_people_compare_digits(stores: tuple[llvs.Store, llvs.Store]) -> None:
    one, two = stores
    saved = two.make_version(insert={"b": b"2"})

    async def main() -> None:
        async with compared(one, two) as (link, other):
            digits = await asyncio.wait_for(link.digits(), GUARD)
            assert digits == await asyncio.wait_for(other.digits(), GUARD) and len(digits) == 6 and digits.isdigit()
            await link.confirm()
            # One confirmation is not sufficient. In these turns all frames of the link are written and received.
            for _ in range(20):
                await link._note()
                await other._note()
            assert not link.pairing and not ids(one)
            await other.confirm()
            assert await asyncio.wait_for(link.wait(), GUARD)
            assert link.pairing == PAIRING and not other.pairing and ids(one) == {saved.id}
        # A device with a pairing is admitted as well, whatever is awaited.
        async with linked(one, two) as (link, _):
            assert await asyncio.wait_for(link.wait(), GUARD)
            with pytest.raises(llvs.errors.InvalidArgumentError):
                await link.confirm()

    asyncio.run(main())


def test_people_see_other_digits(stores: tuple[llvs.Store, llvs.Store]) -> None:
    stores[1].make_version(insert={"b": b"2"})

    async def main() -> None:
        async with compared(*stores) as (link, other):
            await asyncio.wait_for(link.digits(), GUARD)
            await asyncio.wait_for(other.digits(), GUARD)
            await link.confirm()
            await other.close()
            with pytest.raises(llvs.errors.EncryptionError):
                await asyncio.wait_for(link.wait_ended(), GUARD)
            with pytest.raises(llvs.errors.EncryptionError):
                await link.digits()
            assert not link.pairing and not ids(stores[0])
        # If no invitation is open, a device that compares digits gets no answer.
        refused: asyncio.Queue[BaseException] = asyncio.Queue()

        async def come(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                await llvs.aio.accept({PAIRING: stores[1]}, reader, writer)
            except ConnectionError as error:
                refused.put_nowait(error)

        server = await asyncio.start_server(come, "127.0.0.1", 0)
        async with server:
            link = await llvs.aio.connect(stores[0], server.sockets[0].getsockname()[:2], compare=True)
            await asyncio.wait_for(refused.get(), GUARD)
            with pytest.raises((llvs.errors.EncryptionError, OSError)):
                await asyncio.wait_for(link.digits(), GUARD)
            await link.close()

    asyncio.run(main())


def test_one_that_is_cancelled_twice_still_closes(stores: tuple[llvs.Store, llvs.Store]) -> None:
    """The task is cancelled a second time at each step of ending, as at the end of an event loop, while the link is about to end for
    another reason."""
    async def main() -> None:
        came: list[asyncio.StreamWriter] = []
        server = await asyncio.start_server(lambda reader, writer: came.append(writer), "127.0.0.1", 0)
        async with server:
            for steps in range(12):
                link = await llvs.aio.connect(stores[0], server.sockets[0].getsockname()[:2], PAIRING)
                await asyncio.sleep(0)
                link._task.cancel()
                for _ in range(steps):
                    await asyncio.sleep(0)
                link._task.cancel()
                await asyncio.wait({link._task})
                assert link._writer.is_closing() and link.state.phase == llvs.live.PeerPhase.ENDED, steps
                with pytest.raises(llvs.ClosedError):
                    link._peer.send()
            for writer in came:
                writer.close()

    asyncio.run(main())


def test_an_invitation(stores: tuple[llvs.Store, llvs.Store]) -> None:
    """A device that connects by one gets the pairing; it is valid once, and others are admitted by their pairings meanwhile."""
    one, two = stores
    two.make_version(insert={"a": b"1"})
    codes = {llvs.live.make_invitation(): PAIRING, llvs.live.make_invitation(): PAIRING}
    code = list(codes)[1]

    async def main() -> None:
        came: asyncio.Queue[llvs.aio.Link] = asyncio.Queue()

        async def come(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                came.put_nowait(await llvs.aio.accept({PAIRING: two}, reader, writer, invitations=codes))
            except ConnectionError:
                pass

        async with await asyncio.start_server(come, "127.0.0.1", 0) as server:
            address = server.sockets[0].getsockname()[:2]
            for known in ({"invitation": code}, {"pairing": PAIRING}):
                async with await llvs.aio.connect(one, address, **known) as link:
                    assert await asyncio.wait_for(link.wait(), GUARD) and ids(one) == ids(two)
                    assert link.state.pairing == (b"" if "pairing" in known else PAIRING)
                    await (await came.get()).close()
            assert len(codes) == 1 and code not in codes
            link = await llvs.aio.connect(one, address, invitation=code)
            with pytest.raises((llvs.Error, OSError)):
                await asyncio.wait_for(link.wait(), GUARD)
            await link.close()

    asyncio.run(main())


def test_a_quota(stores: tuple[llvs.Store, llvs.Store]) -> None:
    stores[1].make_version(insert={"b": bytes(5_000)})

    class Full(Exception):
        pass

    def full(count: int) -> None:
        raise Full

    came: list[llvs.aio.Link] = []

    async def come(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        came.append(await llvs.aio.accept({PAIRING: stores[1]}, reader, writer))

    async def main() -> None:
        server = await asyncio.start_server(come, "127.0.0.1", 0)
        async with server:
            link = await llvs.aio.connect(stores[0], server.sockets[0].getsockname()[:2], PAIRING, quota=full)
            with pytest.raises(Full):
                await asyncio.wait_for(link.wait_ended(), GUARD)
            await came[0].close()

    asyncio.run(main())
    assert not ids(stores[0])
