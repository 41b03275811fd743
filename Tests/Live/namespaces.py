"""Network namespaces with devices, and a wire between them that tests can disturb. No packet leaves these namespaces.

Needs root, `ip` and `nft`.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
LISTENER, CONNECTOR = "10.77.0.1", "10.77.0.2"
_numbers = itertools.count()


def run(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


class Device:
    """A process in a namespace, controlled by lines."""

    def __init__(self, namespace: str, path: Path, identity: int) -> None:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        self.process = subprocess.Popen(
            ["ip", "netns", "exec", namespace, sys.executable, str(HERE / "device.py"), str(path), str(identity)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment,
        )  # fmt: skip

    def begin(self, *words: object) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()

    def answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, "the device died"
        found: dict[str, Any] = json.loads(line)
        return found

    def ask(self, *words: object) -> Any:
        self.begin(*words)
        answer = self.answer()
        assert "error" not in answer, answer
        return answer["is"]

    def fails(self, *words: object) -> str:
        self.begin(*words)
        return str(self.answer()["error"])

    def end(self) -> None:
        if self.process.poll() is None:
            self.begin("end")
        self.process.communicate(timeout=300)


class Network:
    """Two namespaces, `a` at 10.77.0.1 and `b` at 10.77.0.2, with a wire between them."""

    def __init__(self) -> None:
        name = f"llvs{os.getpid()}x{next(_numbers)}"
        self.a, self.b = f"{name}a", f"{name}b"
        self.devices: list[Device] = []
        self.others: list[subprocess.Popen[str]] = []
        try:
            self._make()
        except BaseException:
            for namespace in (self.a, self.b):
                subprocess.run(["ip", "netns", "delete", namespace], capture_output=True)
            raise

    def _make(self) -> None:
        for namespace in (self.a, self.b):
            run("ip", "netns", "add", namespace)
        run("ip", "link", "add", "wire", "netns", self.a, "type", "veth", "peer", "name", "wire", "netns", self.b)
        for namespace, address in ((self.a, LISTENER), (self.b, CONNECTOR)):
            run("ip", "-n", namespace, "address", "add", f"{address}/24", "dev", "wire")
            for device in ("lo", "wire"):
                run("ip", "-n", namespace, "link", "set", device, "up")
            chains = [f"add chain inet t {name} {{ type filter hook input priority {at}; }}" for name, at in (("in", 0), ("came", 10))]
            # All bytes are counted after the rules of a test, whichever rules these are.
            self.nft(namespace, "add table inet t", *chains, "add rule inet t came iifname wire counter")

    def nft(self, namespace: str, *commands: str) -> None:
        for command in commands:
            run("ip", "netns", "exec", namespace, "nft", command)

    def rule(self, rule: str) -> None:
        """Sets a rule for packets on the wire, in both directions."""
        for namespace in (self.a, self.b):
            self.only(namespace, rule)

    def only(self, namespace: str, rule: str) -> None:
        """Replaces the rule for packets to one side. No packet arrives between the two rules."""
        self.nft(namespace, f"flush chain inet t in; add rule inet t in iifname wire {rule}")

    def counted(self, namespace: str) -> int:
        """Returns the bytes that the rules of a side let through."""
        chain = json.loads(run("ip", "netns", "exec", namespace, "nft", "-j", "list", "chain", "inet", "t", "came"))
        rules = [part["rule"]["expr"] for part in chain["nftables"] if "rule" in part]
        return sum(int(part["counter"]["bytes"]) for rule in rules for part in rule if "counter" in part)

    def is_sending(self, namespace: str) -> bool:
        """Returns whether there is sent data that the other side has not acknowledged."""
        lines = run("ip", "netns", "exec", namespace, "ss", "-Htn", "state", "established").splitlines()
        return any(int(line.split()[1]) > 0 for line in lines)

    def mend(self) -> None:
        for namespace in (self.a, self.b):
            self.nft(namespace, "flush chain inet t in")

    def device(self, namespace: str, path: Path, identity: int) -> Device:
        self.devices.append(Device(namespace, path, identity))
        return self.devices[-1]

    def heard(self, namespace: str) -> int:
        """Returns the number of payload bytes that the open connections of a side have received."""
        lines = run("ip", "netns", "exec", namespace, "ss", "-Htni", "state", "established")
        return sum(map(int, re.findall(r"bytes_received:(\d+)", lines)))

    def pair(self, folder: Path, moves: bool = False) -> tuple[Device, Device, int]:
        """Returns a device that listens, one that connects, and the port. moves: their clocks can be moved."""
        one, two = self.device(self.a, folder / "a", 1), self.device(self.b, folder / "b", 2)
        if moves:
            for device in (one, two):
                device.ask("moves")
        return one, two, one.ask("listen", LISTENER)

    def close(self) -> None:
        try:
            self.mend()
            for device in self.devices:
                device.end()
        finally:
            for other in self.others:
                other.kill()
                other.communicate()
            for namespace in (self.a, self.b):
                run("ip", "netns", "delete", namespace)


def missing() -> str:
    """Returns why namespaces are not available; "" if they are."""
    lacks = [command for command in ("ip", "nft", "ss") if not shutil.which(command)]
    return "namespaces need root" if os.geteuid() != 0 else f"namespaces need {', '.join(lacks)}" if lacks else ""
