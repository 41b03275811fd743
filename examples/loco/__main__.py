"""LoCo, the contact book. Each device has a store of its own and a page in the browser; all devices share a folder.

    python3 examples/loco FOLDER                                  two devices, Laptop and Phone, in one window; Ctrl-C ends both
    python3 examples/loco FOLDER --device Laptop --port 4711      one device, in a process of its own

FOLDER/Laptop.llvs is the laptop's store, FOLDER/shared the shared folder; --shared names another folder, or a URL.
"""

from __future__ import annotations

import argparse
import signal
import sys
import threading
from pathlib import Path
from typing import Callable, Sequence, TypeVar

import llvs
from llvs.browser import open_address
from llvs.tools import escape

from book import Book
from desk import Desk
from server import Pages, Server

DEVICES = ("Laptop", "Phone")
#: The name of the window with both devices when addresses are printed.
BOTH = "Both"
Served = TypeVar("Served", bound=Pages)


def _last_port(remembered: Path) -> int:
    """Returns the port of the last run; 0 if there was none."""
    try:
        port = int(remembered.read_text())
    except (OSError, ValueError):
        return 0
    return port if 1024 <= port <= 65535 else 0


def _open_page(folder: Path, name: str, port: int, make: Callable[[int], Served]) -> Served:
    """Serves a page on a port, otherwise on that of its last run if that is free, so that open pages can connect again."""
    remembered = folder / f"{name}.port"
    try:
        server = make(port or _last_port(remembered))
    except OSError:
        if port:
            raise
        server = make(0)
    remembered.write_text(f"{server.server_port}\n")
    return server


def _announce(name: str, server: Pages) -> None:
    """Prints an address. It admits one window; after it was used, the next address is printed."""
    sys.stdout.write(f"{name}: {server.guard.new_address(lambda: _announce(name, server))}\n")
    sys.stdout.flush()


def serve(folder: Path, shared: str, devices: Sequence[str], port: int, open_browser: bool) -> int:
    """Serves devices, and one window with all of them if there are several, until it is interrupted. Returns the exit code."""
    folder.mkdir(parents=True, exist_ok=True)
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    pages: dict[str, Pages] = {}
    try:
        for place, device in enumerate(devices):
            def make(at: int, device: str = device) -> Server:
                return Server(at, lambda changed: Book(str(folder / f"{device}.llvs"), shared, device, changed))

            name = device
            pages[name] = _open_page(folder, name, port and port + place, make)
        if len(devices) > 1:
            name, servers = BOTH, [server for server in pages.values() if isinstance(server, Server)]
            pages[name] = _open_page(folder, name, port and port + len(devices), lambda at: Desk(at, servers))
        for name, server in pages.items():
            threading.Thread(target=server.serve_forever, args=(0.1,), daemon=True).start()
            _announce(name, server)
        if open_browser:
            open_address(server.guard.new_address())
        ended.wait()
    except (llvs.Error, OSError) as problem:
        print(escape.line(f"{name} cannot start: {problem}"), file=sys.stderr)
        return 3
    finally:
        for server in pages.values():
            server.close()
    return 0


def main() -> int:
    """Reads the arguments, and serves. Returns the exit code."""
    parser = argparse.ArgumentParser(prog="loco", description="A contact book on several devices.")
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="where the stores and the shared folder are")
    parser.add_argument("--shared", metavar="PLACE", help="the folder or URL that all devices reach; FOLDER/shared unless given")
    parser.add_argument("--device", metavar="NAME", help="serve this device only")
    about_port = "of the first device on 127.0.0.1, the next page has the next; that of the last run unless given"
    parser.add_argument("--port", type=int, default=0, help=about_port)
    parser.add_argument("--no-open", action="store_true", help="print the addresses only, and open no browser")
    given = parser.parse_args()
    shared = given.shared or str(given.folder.absolute() / "shared")
    devices = DEVICES if given.device is None else (given.device,)
    return serve(given.folder, shared, devices, given.port, not given.no_open)


if __name__ == "__main__":
    sys.exit(main())
