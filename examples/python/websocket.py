"""Two stores in sync over a WebSocket: how a program carries a direct connection over a transport of its own. Needs wsproto.

`llvs.live.Peer` receives incoming bytes and returns bytes to send; the program may carry them in any way. Here it uses a WebSocket: each
message is a piece of the stream, of any size. The bytes are encrypted from end to end, also through a relay.
"""

from __future__ import annotations

import asyncio
from collections import deque

import llvs
import llvs.aio
from wsproto import ConnectionType, WSConnection
from wsproto.events import AcceptConnection, BytesMessage, CloseConnection, Event, Ping, Request


class WebSocket:
    """One end of a WebSocket, for messages of bytes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, kind: ConnectionType) -> None:
        self.reader, self.writer, self.protocol = reader, writer, WSConnection(kind)
        self.events: deque[Event] = deque()

    @staticmethod
    async def connect(host: str, port: int) -> WebSocket:
        """Opens a connection, as the client."""
        socket = WebSocket(*await asyncio.open_connection(host, port), ConnectionType.CLIENT)
        socket.writer.write(socket.protocol.send(Request(host=f"{host}:{port}", target="/notes")))
        if not isinstance(await socket.event(), AcceptConnection):
            raise ConnectionError("it answers as no WebSocket does")
        return socket

    @staticmethod
    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> WebSocket:
        """Accepts a connection, as the server."""
        socket = WebSocket(reader, writer, ConnectionType.SERVER)
        if not isinstance(await socket.event(), Request):
            raise ConnectionError("it does not ask for a WebSocket")
        writer.write(socket.protocol.send(AcceptConnection()))
        return socket

    async def event(self) -> Event:
        while not self.events:
            self.protocol.receive_data(await self.reader.read(1 << 16) or None)
            self.events += self.protocol.events()
        return self.events.popleft()

    async def send(self, data: bytes) -> None:
        self.writer.write(self.protocol.send(BytesMessage(data)))
        await self.writer.drain()

    async def receive(self) -> bytes:
        """Returns the next message; b"" at the end."""
        while True:
            event = await self.event()
            if isinstance(event, BytesMessage) and event.data:
                return bytes(event.data)
            if isinstance(event, Ping):
                self.writer.write(self.protocol.send(event.response()))
            if isinstance(event, CloseConnection):
                return b""

    def close(self) -> None:
        self.writer.close()


async def carry(peer: llvs.live.Peer, socket: WebSocket, store: llvs.Store, done: asyncio.Event) -> None:
    """Keeps a store in sync over a WebSocket, until both sides have ended the session."""
    saved: llvs.aio.Events[None] = llvs.aio.Events()
    sending = asyncio.Lock()

    async def send() -> None:
        async with sending:
            while data := await llvs.aio.call(peer.send):
                await socket.send(data)

    async def look() -> None:
        async for _ in saved:
            await llvs.aio.call(peer.store_changed)
            await send()

    async def leave() -> None:
        await done.wait()
        await llvs.aio.call(peer.goodbye)
        await send()

    others = [asyncio.create_task(look()), asyncio.create_task(leave())]
    with store.observe(saved):
        await send()
        while peer.state.phase != llvs.live.PeerPhase.ENDED:
            data = await socket.receive()
            await (llvs.aio.call(peer.receive, data) if data else llvs.aio.call(peer.receive_end))
            await send()
    for other in others:
        other.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    socket.close()


async def main() -> None:
    pairing = llvs.live.make_pairing()
    with llvs.Store("laptop.llvs") as laptop, llvs.Store("phone.llvs") as phone:
        laptop.make_version(insert={"greeting": b"hello"})
        done, served = asyncio.Event(), asyncio.Event()

        async def come(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            with llvs.live.Peer(laptop, pairing, initiator=False) as peer:
                await carry(peer, await WebSocket.accept(reader, writer), laptop, asyncio.Event())
            served.set()

        async with await asyncio.start_server(come, "127.0.0.1", 0) as server:
            with llvs.live.Peer(phone, pairing, initiator=True) as peer:
                link = asyncio.create_task(carry(peer, await WebSocket.connect(*server.sockets[0].getsockname()), phone, done))
                while phone.most_recent_head is None:
                    await asyncio.sleep(0.01)
                # A save on either side reaches the other side.
                answer = phone.make_version(phone.most_recent_head, update={"greeting": b"good day"})
                while laptop.version(answer) is None:
                    await asyncio.sleep(0.01)
                done.set()
                await link
                await served.wait()
        greeting = laptop.value("greeting", at=answer)
        assert greeting is not None
        print(f"The laptop has: {greeting.data.decode()}")


if __name__ == "__main__":
    asyncio.run(main())
