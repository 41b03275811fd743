"""The store that is looked at: what is open, where it stands, and how its parts are told to the page."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from typing import Any, Optional, Union

import llvs

from ..tools.versions import EMPTY_ROOT, VersionNames, current_version
from .index import HistoryIndex
from .news import News

#: Characters of metadata that are shown.
LONGEST = 4096
#: Keys of metadata under which applications say who made a version, and what it did.
WHO = ("author", "who", "user", "__llvs_device", "device")
WHAT = ("__llvs_description", "message", "description", "title", "why")


def storage_of(path: str) -> llvs.StorageKind:
    """The kind of a store by what lies at its path."""
    return "sqlite" if os.path.isfile(path) else "file"


class Inspected:
    """A store, open for the inspector. Safe from all threads."""

    def __init__(self, path: Union[str, "os.PathLike[str]"], *, write: bool = False) -> None:
        self.path = os.path.abspath(os.fspath(path))
        self.name = Path(self.path).name or self.path
        #: Whether the page may make versions.
        self.write = write
        self.storage = storage_of(self.path)
        self.store = llvs.Store(self.path, storage=self.storage, read_only=not write, create=False)
        #: The versions that were made here, for `undo`: the newest last.
        self.made: list[str] = []
        #: How many versions were made here, undos included: a page tells them from those that came.
        self.count_made = 0
        #: The version that was made or chosen here last; None: changes go on from the application's.
        self._own: Optional[str] = None
        #: The undos that were made here, for `redo`.
        self.undone: list[str] = []
        #: What came of exchanges that were made here, by the name of the remote.
        self.exchanged: dict[str, dict[str, Any]] = {}
        #: Held while a version is made, so that what was looked at before is still so.
        self.changing = threading.Lock()
        self._lock = threading.Lock()
        self._generation = 1
        self._index = HistoryIndex(self.store, 1)
        self._current: tuple[float, Optional[str]] = (0.0, None)
        self.news = News(self.summary)
        self._observer = self.store.observe(self.changed)

    def __enter__(self) -> Inspected:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the streams of news, and closes the store."""
        self.news.close()
        self._observer.close()
        self.index.end()
        self.store.close()

    def changed(self) -> None:
        """Versions came: the rows are counted anew, and the pages told."""
        with self._lock:
            self._index.end()
            self._generation += 1
            self._index = HistoryIndex(self.store, self._generation)
            self._current = (0.0, None)
        self.news.tell()

    @property
    def index(self) -> HistoryIndex:
        """The rows of the history as it is now."""
        with self._lock:
            return self._index

    def current_version(self) -> Optional[str]:
        """The id of the version at which the application's coordinator is; else that of the most recent head; None without versions.

        Looked up at most once in two seconds, in the note that the coordinator keeps, by opening another one for reading.
        """
        looked, found = self._current
        if time.monotonic() - looked < 2:
            return found
        try:
            version = current_version(self.path, self.store, storage=self.storage)
        except llvs.Error:
            version = None
        version = version or self.store.most_recent_head  # where no coordinator can be asked, the head stands for it
        id = None if version is None else version.id
        self._current = (time.monotonic(), id)
        return id

    def work_version(self) -> Optional[str]:
        """The id of the version that changes made here go on from, and that `@` stands for; None without versions.

        If the store is only read, it is the application's. Else it is the version that was made or chosen here last, or the application's
        before that. If others went on from it, it is the newest head that descends from it: the application's if that is one of them.
        """
        current = self.current_version()
        start = current if self._own is None else self._own
        if start is None or not self.write or not self.store.successors(start):
            return start
        heads = [head for head in self.store.heads() if self.store.is_ancestor(start, head)]
        on_branch = self.store[start].branch
        heads.sort(key=lambda head: (head.id != current, head.branch != on_branch))  # stable: the newest first
        if heads:
            self._own = heads[0].id
        return self._own or start

    def work_on(self, version: str) -> None:
        """Lets the next change go on from a version."""
        self._own = version

    def summary(self) -> dict[str, Any]:
        """What the page's frame shows, and what a news says."""
        index, statistics = self.index, self.store.statistics()
        head = self.store.most_recent_head
        return {
            "name": self.name,
            "path": self.path.encode("utf-8", "replace").decode(),
            "write": self.write,
            "generation": index.generation,
            "versions": statistics.versions,
            "heads": statistics.heads,
            "pending": statistics.pending,
            "damaged": statistics.damaged,
            "bytes": statistics.bytes,
            "head": None if head is None else head.id,
            "current": self.current_version(),
            "work": self.work_version(),
            "madeHere": self.count_made,
            "now": time.time(),
            "canUndo": bool(self.made),
            "canRedo": bool(self.undone),
        }

    def find(self, name: str) -> llvs.Version:
        """The version of a name, as `llvs.tools.versions` reads it. Raises VersionNameError."""
        return VersionNames(self.store, self.work_version()).find(name)


class NotFound(KeyError):
    """What was asked for is not there. The text is a sentence for people."""

    def __str__(self) -> str:
        return str(self.args[0])


def shown(text: str, limit: int = 80) -> str:
    """A name in a sentence."""
    return f'"{text if len(text) <= limit else text[:limit] + "…"}"'


def metadata_of(version: llvs.Version) -> dict[str, str]:
    """The metadata as text: a string as it is, everything else as its JSON; cut at `LONGEST` characters."""
    found = {}
    for key, raw in version.raw_metadata.items():
        value = version.metadata.get(key)
        text = value if isinstance(value, str) else raw[: 4 * LONGEST].decode("utf-8", "replace")
        found[key] = text if len(text) <= LONGEST else text[:LONGEST] + "…"
    return found


def clock_ahead(version: llvs.Version) -> float:
    """Seconds by which its maker's clock was ahead, where it was: it is shown as made when it came."""
    is_its_own = "__llvs_clock" not in version.raw_metadata and len(version.predecessors) < 2
    return max(0.0, version.timestamp - version.made_at) if is_its_own else 0.0


def told(version: llvs.Version) -> dict[str, Any]:
    """A version as the page gets it."""
    metadata = metadata_of(version)
    return {
        "id": version.id,
        "predecessors": list(version.predecessors),
        "time": version.made_at,
        "ahead": clock_ahead(version),
        "bytes": version.value_data_size,
        "branch": version.branch,
        "who": next((metadata[key] for key in WHO if metadata.get(key)), ""),
        "what": next((metadata[key] for key in WHAT if metadata.get(key)), ""),
        "isEmptyRoot": version.id == EMPTY_ROOT,
    }
