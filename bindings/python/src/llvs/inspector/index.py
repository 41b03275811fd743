"""The history as numbered rows, newest first, so that each part of it can be drawn alone."""

from __future__ import annotations

import threading
import time
from typing import Any, Iterator, Optional

import llvs

from .lanes import Lanes, Place

#: The number of versions that are read at once, while the lock is held.
CHUNK = 2000
#: Seconds for which one request reads the history further.
PATIENCE = 0.25


class HistoryIndex:
    """The rows of the history at the moment when this was made. They are read from the newest on, as far as rows are requested.

    Memory: some hundred bytes for each version, whatever the number of lanes. Safe from all threads.
    """

    def __init__(self, store: llvs.Store, generation: int) -> None:
        #: Increases with each new index of the store.
        self.generation = generation
        self._store = store
        #: The number of versions in the store when this was made.
        self.total = store.statistics().versions
        self._walk: Optional[Iterator[llvs.Version]] = store.history()
        self._ids: list[str] = []
        self._row_of: dict[str, int] = {}
        self._places: list[Place] = []
        #: Equal places share one object: in most histories many rows are equal.
        self._alike: dict[Place, Place] = {}
        self._lanes = Lanes()
        self._lock = threading.Lock()
        #: The largest number of lanes of any row so far.
        self.width = 0
        self._ended = threading.Event()
        self._reading: Optional[threading.Thread] = None

    def _extend(self) -> bool:
        """Reads one more chunk; returns False at the end of the history."""
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
        """Reads until there are `rows` rows, for at most `PATIENCE` seconds, so that the page can show the progress."""
        begun = time.monotonic()
        while len(self._ids) < rows and time.monotonic() - begun < PATIENCE and self._extend():
            pass

    def read_on(self) -> None:
        """Reads the rest on a thread of its own, with pauses for requests, so that a jump to the end of the history need not wait for
        it."""
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
            pass  # a request for these rows gets the error

    def end(self) -> None:
        """Ends reading. There are no more requests for this index."""
        self._ended.set()
        if self._reading is not None and self._reading is not threading.current_thread():
            self._reading.join()

    @property
    def known(self) -> int:
        """Returns how many rows were read so far."""
        return len(self._ids)

    def ids(self) -> Iterator[str]:
        """Yields all ids, newest first."""
        at = 0
        while True:
            known = len(self._ids)
            yield from self._ids[at:known]
            at = known
            if at == len(self._ids) and not self._extend() and at == len(self._ids):
                return

    def row(self, id: str) -> Optional[int]:
        """Returns the row of a version; None if no row has it."""
        while id not in self._row_of and self._extend():
            pass
        return self._row_of.get(id)

    def rows(self, first: int, count: int) -> list[dict[str, Any]]:
        """Returns rows to draw: versions with their places among the lanes. O(count)."""
        self.extend_to(first + count)
        ids = self._ids[first : first + count] if first >= 0 else []
        versions = self._store.versions(ids)
        return [{"row": row, "version": version, "place": self._places[row]} for row, version in enumerate(versions, first)]
