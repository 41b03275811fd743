"""An inspector in a process of its own."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from http.client import HTTPConnection
from pathlib import Path
from typing import Any


def enter(port: int, key: str) -> tuple[int, str]:
    """Returns the answer to the key of an address: a status, and the token or a sentence."""
    connection = HTTPConnection("127.0.0.1", port, timeout=300)
    try:
        connection.request("POST", "/enter", headers={"origin": f"http://127.0.0.1:{port}", "x-llvs-key": key})
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


class Running:
    """An inspector in a process of its own."""

    def __init__(self, path: Path, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "llvs.inspector", str(path), "--no-open", *arguments],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        assert self.process.stdout is not None
        self.port, key = self.next_key()
        status, self.token = enter(self.port, key)
        assert status == 200, self.token
        # After an address is used, the next one is printed.
        self.port, self.key = self.next_key()
        self.connections: list[HTTPConnection] = []

    def next_key(self) -> tuple[int, str]:
        """Returns the port and the key of the next address that is printed."""
        assert self.process.stdout is not None
        while line := self.process.stdout.readline():
            if found := re.search(r"http://127\.0\.0\.1:(\d+)/#key=(\S+)", line):
                return int(found[1]), found[2]
        raise AssertionError(self.process.stderr.read() if self.process.stderr else "it ended")

    @property
    def address(self) -> str:
        """Returns an address that admits one window."""
        return f"http://127.0.0.1:{self.port}/#key={self.key}"

    def open(self, path: str) -> Any:
        self.connections.append(HTTPConnection("127.0.0.1", self.port, timeout=300))
        self.connections[-1].request("GET", path, headers={"x-llvs-token": self.token})
        return self.connections[-1].getresponse()

    def get(self, path: str) -> Any:
        with self.open(path) as answer:
            return json.loads(answer.read())

    def end(self) -> int:
        self.process.send_signal(signal.SIGINT)
        code = self.process.wait(300)
        for pipe in (self.process.stdout, self.process.stderr):
            assert pipe is not None
            pipe.close()
        for connection in self.connections:
            connection.close()
        return code
