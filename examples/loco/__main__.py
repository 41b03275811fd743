"""LoCo, the contact book. Each device has a store of its own and a page in the browser; all share a folder.

    python3 examples/loco FOLDER                                  two devices, Laptop and Phone; Ctrl-C ends both
    python3 examples/loco FOLDER --device Laptop --port 4711      one, for a program of its own

FOLDER/Laptop.llvs is the laptop's store, FOLDER/shared what all can reach; --shared names another folder, or a URL.
"""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
import threading
from pathlib import Path

import llvs
from llvs.browser import open_address
from llvs.tools import escape

from book import Book
from server import Server


def _last_port(remembered: Path) -> int:
    """The port of the last run; 0 if there is none."""
    try:
        port = int(remembered.read_text())
    except (OSError, ValueError):
        return 0
    return port if 1024 <= port <= 65535 else 0


def serve(folder: Path, shared: str, device: str, port: int, open_browser: bool) -> int:
    """Serves one device until it is interrupted."""
    folder.mkdir(parents=True, exist_ok=True)
    remembered = folder / f"{device}.port"

    def open_server(port: int) -> Server:
        return Server(port, lambda changed: Book(str(folder / f"{device}.llvs"), shared, device, changed))

    try:
        try:
            server = open_server(port or _last_port(remembered))
        except OSError:
            if port:
                raise
            server = open_server(0)
        # Pages that are open come back after a restart, since they find it where it was.
        remembered.write_text(f"{server.server_port}\n")
    except (llvs.Error, OSError) as problem:
        print(escape.line(f"{device} cannot start: {problem}"), file=sys.stderr)
        return 3
    # Ended from another thread, since the one that serves waits for its end.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: threading.Thread(target=server.shutdown).start())

    def announce() -> None:
        # In one piece: the other device prints at the same moment. An address lets one window in, so the next one follows.
        sys.stdout.write(f"{device}: {server.guard.new_address(announce)}\n")
        sys.stdout.flush()

    announce()
    if open_browser:
        open_address(server.guard.new_address())
    server.serve_forever(poll_interval=0.1)
    server.close()
    return 0


def _end(running: list[subprocess.Popen[bytes]]) -> None:
    for one in running:
        one.terminate()


def main() -> int:
    """Reads the arguments, and serves. Returns the exit code."""
    parser = argparse.ArgumentParser(prog="loco", description="A contact book on several devices.")
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="where the stores and the shared folder are")
    parser.add_argument("--shared", metavar="PLACE", help="the folder or URL that all devices reach; FOLDER/shared unless given")
    parser.add_argument("--device", metavar="NAME", help="serve this device only")
    about_port = "of the first device on 127.0.0.1, the next has the next; that of the last run unless given"
    parser.add_argument("--port", type=int, default=0, help=about_port)
    parser.add_argument("--no-open", action="store_true", help="print the addresses only, and open no browser")
    given = parser.parse_args()
    shared = given.shared or str(given.folder.absolute() / "shared")
    if given.device is not None:
        return serve(given.folder, shared, given.device, given.port, not given.no_open)
    running = []
    for number, device in enumerate(("Laptop", "Phone")):
        command = [sys.executable, str(Path(__file__).parent), str(given.folder), "--shared", shared, "--device", device]
        command += ["--port", str(given.port + number if given.port else 0), *(["--no-open"] if given.no_open else [])]
        running.append(subprocess.Popen(command))
    # Ctrl-C reaches the devices as well; whoever ends this program only is passed on.
    signal.signal(signal.SIGINT, lambda *_: None)
    signal.signal(signal.SIGTERM, lambda *_: _end(running))
    return max(one.wait() for one in running)


if __name__ == "__main__":
    sys.exit(main())
