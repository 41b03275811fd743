"""The history as numbered rows, newest first, so that any part of it can be drawn without the rest."""

from __future__ import annotations

import threading
import time
from typing import Any, Iterator, Optional

import llvs

from .lanes import Lanes, Place

#: Versions taken at once while the lock is held.
CHUNK = 2000
#: Seconds for which one request reads on.
PATIENCE = 0.25


class HistoryIndex:
    """The rows of the history as it was when this was made. It is read on from the newest, as far as somebody looks.

    Memory: some hundred bytes a version, however many lanes there are. Safe from all threads.
    """

    def __init__(self, store: llvs.Store, generation: int) -> None:
        #: Tells this index from those before it.
        self.generation = generation
        self._store = store
        #: How many versions the store had when this was made.
        self.total = store.statistics().versions
        self._walk: Optional[Iterator[llvs.Version]] = store.history()
        self._ids: list[str] = []
        self._row_of: dict[str, int] = {}
        self._places: list[Place] = []
        #: In most histories many rows look alike: such have one place in memory.
        self._alike: dict[Place, Place] = {}
        self._lanes = Lanes()
        self._lock = threading.Lock()
        #: The most lanes of any row so far.
        self.width = 0
        self._ended = threading.Event()
        self._reading: Optional[threading.Thread] = None

    def _extend(self) -> bool:
        """Reads a chunk more; False when there is none."""
        with self._lock:
            if self._walk is None:
                return False
            for _ in range(CHUNK):
                version = next(self._walk, None)
                if version is None:
                    self._walk = None
                    self.total = len(self._ids)
                    return False
                place = self._lanes.place(version.id, version.predecessors)
                self._places.append(self._alike.setdefault(place, place))
                self.width = self._lanes.widest
                self._row_of[version.id] = len(self._ids)
                self._ids.append(version.id)
            return True

    def extend_to(self, rows: int) -> None:
        """Reads on until there are so many rows, or the history ends; for `PATIENCE` seconds at most, so that the page can tell how far."""
        begun = time.monotonic()
        while len(self._ids) < rows and time.monotonic() - begun < PATIENCE and self._extend():
            pass

    def read_on(self) -> None:
        """Reads the rest in a thread of its own, in pauses between what is asked for, so that a jump to the end need not wait for it."""
        with self._lock:
            if self._reading is not None or self._walk is None or self._ended.is_set():
                return
            self._reading = threading.Thread(target=self._read_on, name="rows of the history", daemon=True)
        self._reading.start()

    def _read_on(self) -> None:
        try:
            while not self._ended.wait(0.05) and self._extend():
                pass
        except llvs.Error:
            pass  # who asks for these rows is told

    def end(self) -> None:
        """Nobody asks any more: reading on ends."""
        self._ended.set()
        if self._reading is not None and self._reading is not threading.current_thread():
            self._reading.join()

    @property
    def known(self) -> int:
        """How many rows were read so far."""
        return len(self._ids)

    def ids(self) -> Iterator[str]:
        """All ids, newest first."""
        at = 0
        while True:
            known = len(self._ids)
            yield from self._ids[at:known]
            at = known
            if at == len(self._ids) and not self._extend() and at == len(self._ids):
                return

    def row(self, id: str) -> Optional[int]:
        """The row of a version; None when it is in none."""
        while id not in self._row_of and self._extend():
            pass
        return self._row_of.get(id)

    def rows(self, first: int, count: int) -> list[dict[str, Any]]:
        """Rows as they are drawn: the version, and where it stands among the lanes. O(count)."""
        self.extend_to(first + count)
        ids = self._ids[first : first + count] if first >= 0 else []
        versions = self._store.versions(ids)
        return [{"row": row, "version": version, "place": self._places[row]} for row, version in enumerate(versions, first)]
