"""A device of the tests between network namespaces: a process with a store that executes the lines of its input.

    listen ADDRESS | connect ADDRESS PORT | save COUNT SIZE | wait | ids | state | links | close
    nearby NAME | forking NAME FILE | found | alone | moves | pass SECONDS | end
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any, Optional

from moved_clock import MovedClock

import llvs

PAIRING = bytes(range(48))


class Device:
    def __init__(self, path: Path, identity: bytes) -> None:
        self.store, self.identity = llvs.Store(path), identity
        self.listener: Optional[llvs.live.Listener] = None
        self.link: Optional[llvs.live.Link] = None
        self.received = 0
        self.nearby: Optional[llvs.live.Nearby] = None
        #: The clock of the library, once it can be moved, so that no test waits for 90 seconds.
        self.clock: Optional[MovedClock] = None
        #: Devices by name, as they were reported last.
        self.devices: dict[str, list[list[Any]]] = {}

    def do_nearby(self, name: str) -> None:
        def found(device: llvs.live.Device) -> None:
            self.devices[device.name] = [list(address) for address in device.addresses]

        self.nearby = llvs.live.Nearby(found, self.listener, name=name)

    def do_forking(self, name: str, file: str) -> None:
        """As `nearby`, but each call forks a child, which returns into the library; the log says which process was called."""
        me = os.getpid()

        def found(device: llvs.live.Device) -> None:
            self.devices[device.name] = [list(address) for address in device.addresses]
            with open(file, "a") as log:
                log.write(f"{os.getpid()} {device.name}\n")
            time.sleep(0.5)  # later messages are readable at once
            if os.getpid() == me and (child := os.fork()):
                with open(os.path.join(os.path.dirname(file), "forked"), "a") as log:
                    log.write(f"{child}\n")

        self.nearby = llvs.live.Nearby(found, self.listener, name=name)

    def do_found(self) -> dict[str, Any]:
        return {**self.devices, "me": self.nearby.name if self.nearby is not None else ""}

    def do_alone(self) -> None:
        if self.nearby is not None:
            self.nearby.close()
            self.nearby = None

    def do_listen(self, address: str) -> int:
        self.listener = llvs.live.listen({PAIRING: self.store}, (address, 0), identity=self.identity)
        assert not isinstance(self.listener.address, str)
        return self.listener.address[1]

    def do_connect(self, address: str, port: str) -> None:
        self.do_close()
        self.link = llvs.live.connect(self.store, (address, int(port)), PAIRING, identity=self.identity, timeout=300)

    def do_save(self, count: str, size: str) -> None:
        for _ in range(int(count)):
            self.store.make_version(self.store.most_recent_head, insert={os.urandom(8).hex(): os.urandom(int(size))})

    def do_wait(self) -> bool:
        assert self.link is not None
        return self.link.wait(300)

    def do_ids(self) -> list[str]:
        return sorted(version.id for version in self.store.history())

    def do_state(self) -> dict[str, Any]:
        """Prints what all links have received so far, and the state of the last one."""
        assert self.link is not None, "not connected"
        state = self.link.state
        return {"received": self.received + state.received, "phase": state.phase.name}

    def do_moves(self) -> None:
        """Replaces the clock by one that can be moved. Waits that began before do not notice."""
        self.clock = MovedClock()

    def do_pass(self, seconds: str) -> None:
        """Moves the clock of the links ahead. Each link reads it within milliseconds."""
        assert self.clock is not None, "it does not move"
        self.clock.advance(float(seconds))

    def do_links(self) -> int:
        return len(self.listener.links) if self.listener is not None else 0

    def do_close(self) -> None:
        if self.link is not None:
            self.link.close(1)
            self.received += self.link.state.received
            self.link = None


def main() -> None:
    path, identity = Path(sys.argv[1]), bytes([int(sys.argv[2])]) * 32
    device = Device(path, identity)
    for line in sys.stdin:
        name, *arguments = line.split()
        if name == "end":
            break
        try:
            answer = {"is": getattr(device, "do_" + name)(*arguments)}
        except (llvs.Error, OSError) as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)
    device.do_close()
    device.do_alone()
    if device.listener is not None:
        device.listener.close()
    device.store.close()


main()
