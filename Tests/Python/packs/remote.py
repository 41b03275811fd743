"""A model of a place with files: listings that lag, answers that are lost, uploads that are cut short."""

from __future__ import annotations

from random import Random
from typing import Optional

#: The maximum number of steps by which a listing may lag.
STALE = 60


class Lost(Exception):
    """A request with an unknown result."""


class Remote:
    """Files by name. Every request is a step of the clock."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.faults = True
        self.clock = 0
        self.files: dict[str, bytes] = {}
        self.born: dict[str, int] = {}
        self.gone: dict[str, tuple[int, int]] = {}
        self.requests = 0

    def _chance(self, probability: float) -> bool:
        return self.faults and self.random.random() < probability

    def _step(self) -> None:
        self.clock += 1
        self.requests += 1
        if self._chance(0.02):
            raise Lost("before")

    def list(self, directory: str) -> dict[str, int]:
        """Returns names and sizes; new files may be missing, and deleted ones may still be listed."""
        self._step()
        prefix = f"pack1/{directory}"
        found = {}
        for name, data in self.files.items():
            if name.startswith(prefix) and not (self.clock - self.born[name] < STALE and self._chance(0.3)):
                found[name] = len(data)
        for name, (when, size) in self.gone.items():
            if name.startswith(prefix) and self.clock - when < STALE and self._chance(0.3):
                found[name] = size
        return found

    def get(self, name: str) -> Optional[bytes]:
        """Returns the bytes; None if there is no such file."""
        self._step()
        if name in self.files and self.clock - self.born[name] < STALE and self._chance(0.1):
            return None
        data = self.files.get(name)
        return data[: self.random.randrange(len(data) + 1)] if data is not None and self._chance(0.02) else data

    def put(self, name: str, data: bytes) -> None:
        """Writes a file, whole or in part, and reports success or not."""
        self._step()
        torn = self._chance(0.08)
        self.files[name] = data[: self.random.randrange(len(data))] if torn else data
        self.born[name] = self.clock
        if self._chance(0.6 if torn else 0.06):
            raise Lost("after")

    def delete(self, name: str) -> None:
        """Deletes a file; it is no error if there is none."""
        self._step()
        data = self.files.pop(name, None)
        if data is not None:
            self.gone[name] = (self.clock, len(data))
        if self._chance(0.05):
            raise Lost("after")
