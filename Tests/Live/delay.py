"""A relay for tests: forwards connections, and delays all bytes in both directions: ADDRESS PORT SECONDS."""

from __future__ import annotations

import asyncio
import sys


async def forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, seconds: float) -> None:
    loop, held = asyncio.get_running_loop(), asyncio.Queue[tuple[float, bytes]](64)

    async def read() -> None:
        while True:
            data = await reader.read(16_384)
            await held.put((loop.time() + seconds, data))
            if not data:
                return

    reading = asyncio.create_task(read())
    try:
        while True:
            due, data = await held.get()
            await asyncio.sleep(max(0, due - loop.time()))
            if not data:
                writer.write_eof()
                return
            writer.write(data)
            await writer.drain()
    finally:
        reading.cancel()


async def main() -> None:
    address, port, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])

    async def come(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection(address, port)
        try:
            await asyncio.gather(forward(reader, back, seconds), forward(there, writer, seconds))
        except OSError:
            pass
        finally:
            writer.close()
            back.close()

    server = await asyncio.start_server(come, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    async with server:
        await server.serve_forever()


asyncio.run(main())
