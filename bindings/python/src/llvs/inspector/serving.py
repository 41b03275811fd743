"""Opens a store and serves its inspector on 127.0.0.1."""

from __future__ import annotations

import logging
import os
import socket
import sys
from typing import Callable, Optional, Union

import uvicorn

from ..browser import open_address
from ..tools import escape
from .app import make_app, make_guard
from .inspected import Inspected

ADDRESS = "127.0.0.1"


class _Harmless(logging.Formatter):
    """Makes log messages harmless for a terminal: they quote requests, and texts of errors."""

    def format(self, record: logging.LogRecord) -> str:
        """Returns the record in lines that do not affect a terminal."""
        return escape.lines(super().format(record))


def _log() -> None:
    """Makes the server log its warnings and errors to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Harmless("%(levelname)s: %(message)s"))
    logger = logging.getLogger("uvicorn")
    logger.handlers, logger.propagate = [handler], False


def _print(line: str) -> None:
    print(escape.line(line), flush=True)


class NotServedError(OSError):
    """The port is not available. The text is a sentence for people."""


def listen(port: int) -> socket.socket:
    """Returns a socket that listens on 127.0.0.1. Raises NotServedError."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((ADDRESS, port))
        listener.listen(128)
    except OSError as problem:
        listener.close()
        raise NotServedError(f"cannot serve on port {port} of {ADDRESS}: {problem.strerror}; give another --port, or none") from None
    return listener


class Server(uvicorn.Server):
    """A server that ends its streams of news first, so that it does not wait for open pages."""

    ending: Optional[Callable[[], None]] = None

    async def shutdown(self, sockets: Optional[list[socket.socket]] = None) -> None:
        """Ends the streams, then the server."""
        if self.ending is not None:
            self.ending()
        await super().shutdown(sockets)


def serve(
    path: Union[str, "os.PathLike[str]"],
    *,
    port: int = 0,
    write: bool = False,
    open_browser: bool = True,
    announce: Callable[[str], None] = _print,
) -> None:
    """Serves the inspector of the store at `path` until it is interrupted.

    port: 0 selects a free one. write: whether the page may change the store. announce: receives the address, which admits one window; after
    it was used, it receives another one.
    Raises what opening a store raises, and NotServedError.
    """
    with Inspected(path, write=write) as inspected, listen(port) as listener:
        guard = make_guard(listener.getsockname()[1])

        def announce_next() -> None:
            announce(f"For another window: {guard.new_address(announce_next)}")

        _log()
        # The page keeps its streams of news open, so shutdown does not wait for them.
        config = uvicorn.Config(
            make_app(inspected, guard),
            log_config=None, log_level="warning", lifespan="off", server_header=False, timeout_graceful_shutdown=1, ws="none",
        )
        server = Server(config)
        server.ending = inspected.news.close
        announce(f"{inspected.name} can be looked at on {guard.new_address(announce_next)}")
        announce("It may be changed there. Ctrl-C ends it." if write else "It is only read. Ctrl-C ends it.")
        if open_browser:
            open_address(guard.new_address())
        server.run(sockets=[listener])
