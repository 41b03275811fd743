"""For asyncio: coroutines for blocking calls, and events of the library as an asynchronous iterator.

    import llvs.aio

    async def main() -> None:
        with llvs.Coordinator("notes.llvs", exchange="/media/shared/notes") as notes:
            await llvs.aio.call(notes.sync)
            events: llvs.aio.Events[llvs.syncer.SyncEvent] = llvs.aio.Events()
            with llvs.Syncer(notes, events):
                async for event in events:
                    print(event.status.state.name)

They are ordinary coroutines: any method of the package may be called like this, and runs on a thread of the loop's executor. `Link` keeps a
store in step with another over asyncio's streams.
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
import inspect
import threading
import time
from collections import deque
from contextlib import AsyncExitStack
from typing import Any, Callable, Generic, Iterable, Mapping, MutableMapping, Optional, TypeVar, Union

from . import errors
from ._abi.memory import BytesLike, as_bytes
from ._generated import constants as c
from .control import CancelToken
from .exchange.exchange import Exchange
from .live.links import Address
from .live.peer import Peer, PeerPhase, PeerState, Secret, invited, is_to_compare, place_of, whom_it_is_for
from .store.snapshot import Problem
from .store.store import Store

__all__ = ["Events", "Link", "accept", "call", "connect"]

T = TypeVar("T")
Event = TypeVar("Event")


async def call(function: Callable[..., T], /, *arguments: Any, **options: Any) -> T:
    """Calls a method of this package, such as `notes.sync`, on another thread; returns its result, or raises its exception.

    Cancelling the task cancels the call, if it takes a `cancel` and none is passed, and then waits for its end: when `CancelledError` is
    raised, nothing runs any more, and completed parts stay. If a call cannot be cancelled, the task waits for it.
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
    """The calls of a callback, as an asynchronous iterator: pass it where a callback is expected, and iterate over it.

    Made in a running loop, and iterated there by one task. Callbacks without an argument (`observe_exchanges`) deliver None. If more than
    `limit` events wait, the oldest are dropped; `dropped` counts them. It ends with `close`.
    """

    def __init__(self, limit: int = 1_000) -> None:
        """limit: how many events may wait."""
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
        """Ends the iteration, after the waiting events have been delivered. From any thread; closing again does nothing."""
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


class Link:
    """A direct connection over asyncio's streams, until it is closed or cut, or the store is closed; each save on either side is sent to
    the other at once. Made in a running loop by `connect` or `accept`, or over any pair of streams; used by tasks of that loop.

        async with await llvs.aio.connect(notes, ("10.0.0.7", 4040), pairing) as link:
            await link.wait()           # both have everything
    """

    def __init__(
        self,
        store: Store,
        peer: Peer,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        beginning: bytes = b"",
        known_by: Optional[float] = None,
    ) -> None:
        """Begins at once, and closes the peer and the streams when it ends.

        beginning: the bytes of the connection received so far.
        known_by: until when, by `time.monotonic`, the other side must identify itself; None: as for `Peer.tick`.
        """
        self._known_by = known_by
        self._peer, self._reader, self._writer = peer, reader, writer
        self._state, self._problems = peer.state, []  # type: PeerState, list[Problem]
        self._moved, self._poke = asyncio.Event(), asyncio.Event()
        self._changed, self._closing = False, False
        # Held during calls of the peer that may end it.
        self._calling = asyncio.Lock()
        # How often `wait` requested a check of the store, and how many of these have been done.
        self._asked = self._looked = 0
        self._error: Optional[BaseException] = None
        loop = asyncio.get_running_loop()

        def look() -> None:
            self._changed = True
            self._poke.set()

        def saved() -> None:
            try:
                loop.call_soon_threadsafe(look)
            except RuntimeError:
                pass  # the loop is closed
        self._observer = store.observe(saved)
        self._task = asyncio.create_task(self._run(beginning))

    async def _run(self, beginning: bytes) -> None:
        parts = [asyncio.create_task(part) for part in (self._read(beginning), self._write(), self._tick())]
        try:
            await asyncio.wait(parts, return_when=asyncio.FIRST_COMPLETED)
            # A call that ended the peer may still be running: wait for it, because it notes the reason.
            async with self._calling:
                pass
            for part in parts:
                if part.done():
                    part.result()
        except (Exception, asyncio.CancelledError) as error:
            self._error = error
            if isinstance(error, asyncio.CancelledError):
                raise
            self._poke.set()
            await asyncio.wait({parts[1]}, timeout=1)  # it tells the other side why
        finally:
            self._writer.close()
            # A second cancellation, as when the loop ends, may interrupt each of these; the others are done all the same.
            async with AsyncExitStack() as ending:
                ending.callback(self._set_ended)
                ending.push_async_callback(call, self._peer.close)
                ending.push_async_callback(self._note)
                ending.push_async_callback(call, self._observer.close)
                for part in parts:
                    part.cancel()
                await asyncio.gather(*parts, return_exceptions=True)

    def _set_ended(self) -> None:
        self._state = self._state._replace(phase=PeerPhase.ENDED)
        self._moved.set()

    async def _read(self, beginning: bytes) -> None:
        data = beginning or await self._reader.read(1 << 18)
        while data:
            await self._ask(self._peer.receive, data)
            self._poke.set()
            if (await self._note()).phase == PeerPhase.ENDED:
                await asyncio.Event().wait()  # the other part writes what is left
            data = await self._reader.read(1 << 18)
        await self._ask(self._peer.receive_end)

    async def _write(self) -> None:
        says_goodbye = True
        while True:
            changed, self._changed, asked = self._changed, False, self._asked
            if changed:
                await self._ask(self._peer.store_changed)
                await self._note()
                self._looked = asked
            if self._closing and says_goodbye:
                says_goodbye = False
                await self._ask(self._peer.goodbye)
            while data := await self._ask(self._peer.send):
                self._writer.write(data)
                await self._writer.drain()
            if (await self._note()).phase == PeerPhase.ENDED:
                return
            await self._poke.wait()
            self._poke.clear()

    async def _tick(self) -> None:
        while True:
            await self._ask(self._peer.tick, time.monotonic())
            self._poke.set()
            rest = 5.0
            if self._known_by is not None and not self._state.key:
                rest = min(rest, self._known_by - time.monotonic())
                if rest <= 0:
                    # This also ends a side that keeps sending, byte by byte.
                    raise ConnectionError("The other side did not say in time who it is.")
            await asyncio.sleep(rest)

    async def _ask(self, function: Callable[..., T], *arguments: Any) -> T:
        async with self._calling:
            return await call(function, *arguments)

    async def _note(self) -> PeerState:
        state: PeerState = await call(lambda: self._peer.state)
        self._problems += state.problems
        self._state = state
        moved, self._moved = self._moved, asyncio.Event()
        moved.set()
        return state

    @property
    def state(self) -> PeerState:
        """Returns the state, with all problems so far."""
        return self._state._replace(problems=tuple(self._problems))

    @property
    def error(self) -> Optional[BaseException]:
        """The error that ended it, unless both sides said goodbye; None while it is open."""
        return self._error

    async def wait(self) -> bool:
        """Waits until both stores are in sync, including all that this one has now, or the link has ended; returns whether they are in
        sync. Raises why it ended."""
        self._asked += 1
        asked, self._changed = self._asked, True
        self._poke.set()
        while self._state.phase != PeerPhase.ENDED and (self._looked < asked or self._state.phase < PeerPhase.IN_STEP):
            await self._moved.wait()
        if self._state.phase == PeerPhase.ENDED:
            await asyncio.wait({self._task})
            if self._error is not None:
                raise self._error
        return self._state.phase == PeerPhase.IN_STEP

    @property
    def pairing(self) -> bytes:
        """The pairing that was received through an invitation, or by comparing digits; store it as a secret for all further connections.
        Empty before it has arrived."""
        return self._state.pairing

    async def digits(self) -> str:
        """Returns six digits for people to compare on both sides, when they are known; see `confirm`. Raises why it ended."""
        while not self._state.digits and self._state.phase != PeerPhase.ENDED:
            await self._moved.wait()
        if self._state.phase == PeerPhase.ENDED:
            await self.wait_ended()
            raise ConnectionError("The connection has ended: there are no digits to compare.")
        return self._state.digits

    async def confirm(self) -> None:
        """Confirms that the person here sees the same digits on both sides. If they differ, close the link.

        Raises InvalidArgumentError if there are none (yet).
        """
        await self._ask(self._peer.confirm)
        self._poke.set()

    async def set_background(self, is_in_background: bool) -> None:
        """Sets whether the program is in the background: see `Peer.set_background`."""
        await call(self._peer.set_background, is_in_background)

    async def wait_ended(self) -> None:
        """Waits until it has ended. Raises why, unless both sides said goodbye."""
        await asyncio.wait({self._task})
        if self._error is not None:
            raise self._error

    async def close(self, timeout: float = 10.0) -> None:
        """Sends everything that waits, says goodbye, and waits for the other side to do so; then, or after that many seconds, it ends."""
        self._closing = True
        self._poke.set()
        await asyncio.wait({self._task}, timeout=timeout)
        if not self._task.done():
            self._task.cancel()
            await asyncio.wait({self._task})

    async def __aenter__(self) -> Link:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


async def connect(
    store: Store,
    address: Address,
    pairing: Optional[Secret] = None,
    *,
    identity: Optional[BytesLike] = None,
    device: str = "",
    accepted: Iterable[BytesLike] = (),
    invitation: Optional[str] = None,
    compare: bool = False,
    quota: Optional[Callable[[int], None]] = None,
) -> Link:
    """Connects a store to the one that is offered at an address, and keeps them in sync: `llvs.live.connect` for asyncio.

    compare: instead of using a pairing, people compare `Link.digits` on both sides, and each side confirms with `Link.confirm`.
    Raises OSError, and what `Peer` raises.
    """
    peer = Peer(
        store, pairing, initiator=True, identity=identity, device=device, accepted=accepted, invitation=invitation, compare=compare,
        quota=quota)
    try:
        opening = asyncio.open_unix_connection(address) if isinstance(address, str) else asyncio.open_connection(*address)
        reader, writer = await opening
    except BaseException:
        peer.close()
        raise
    return Link(store, peer, reader, writer)


async def accept(
    stores: Mapping[Union[bytes, Exchange], Store],
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    *,
    identity: Optional[BytesLike] = None,
    device: str = "",
    accepted: Iterable[BytesLike] = (),
    compare: Optional[BytesLike] = None,
    invitations: Optional[MutableMapping[str, BytesLike]] = None,
    quota: Optional[Callable[[int], None]] = None,
    timeout: float = 10.0,
) -> Link:
    """Accepts a connection, to the store of its pairing; for the callback of `asyncio.start_server`.

        async def come(reader, writer):
            async with await llvs.aio.accept({pairing: notes}, reader, writer) as link:
                await link.wait_ended()

    stores: by their pairings, or by exchanges with encrypted places whose members are accepted: see `Peer`.
    compare: the pairing of one of the stores. A device that connects by comparing digits receives it, after people have compared
    `Link.digits` on both sides and each side has confirmed with `Link.confirm`. Pass it only for a connection for which a person here
    waits; devices with pairings are accepted as well. InvalidArgumentError if it is not the pairing of a store.
    invitations: codes of `llvs.live.make_invitation`, each with the pairing of one of the stores. A device that connects with a code
    receives its pairing. A used code is removed; the program must remove expired ones (after 600 seconds).
    timeout: seconds for the first bytes and the handshake, in which the other side must identify itself. A device without the pairing gets
    no response: the connection is closed, and this raises ConnectionError. Raises what `Peer` raises. The program must limit the number of
    simultaneous connections.
    """
    until = time.monotonic() + timeout
    try:
        beginning = await asyncio.wait_for(reader.readexactly(c.PEER_BEGINNING), timeout)
        by_secret = {one if isinstance(one, Exchange) else as_bytes(one, "a pairing"): store for one, store in stores.items()}
        compares, code = False, invited(invitations, beginning) if invitations else None
        secret: Union[bytes, Exchange]
        if invitations and code is not None:
            secret = as_bytes(invitations.pop(code), "a pairing")
            if secret not in by_secret:
                raise errors.InvalidArgumentError("An invitation is to the pairing of one of the stores. Give one that is in stores.")
            store = by_secret[secret]
        elif compare is not None and is_to_compare(beginning):
            compares, secret = True, as_bytes(compare, "a pairing")
            if secret not in by_secret:
                raise errors.InvalidArgumentError("compare takes the pairing of one of the stores. Give one that is in stores.")
            store = by_secret[secret]
        else:
            secret, store = whom_it_is_for(by_secret, beginning)
        peer = Peer(
            store, secret, initiator=False, identity=identity, device=device, accepted=accepted, invitation=code, compare=compares,
            quota=quota, place=place_of(writer.get_extra_info("peername")))
    except BaseException as error:
        writer.close()
        if isinstance(error, (asyncio.TimeoutError, EOFError)):
            raise ConnectionError("Nothing came by which a connection begins. It was closed.") from error
        raise
    return Link(store, peer, reader, writer, beginning, until)
