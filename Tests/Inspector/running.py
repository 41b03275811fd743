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


class Running:
    """An inspector in a process of its own."""

    def __init__(self, path: Path, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "llvs.inspector", str(path), "--no-open", *arguments],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        found = re.search(r"http://127\.0\.0\.1:(\d+)/\?token=(\S+)", line)
        assert found, line + (self.process.stderr.read() if self.process.stderr else "")
        self.port, self.token = int(found[1]), found[2]

        self.connections: list[HTTPConnection] = []

    def open(self, path: str) -> Any:
        self.connections.append(HTTPConnection("127.0.0.1", self.port, timeout=300))
        self.connections[-1].request("GET", path, headers={"cookie": f"llvs-{self.port}={self.token}"})
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
