"""The store that is inspected: the open store, its current version, and versions in the form that the page receives."""

from __future__ import annotations

import os
import threading
import time
from itertools import islice
from pathlib import Path
from typing import Any, Optional, Union

import llvs

from ..tools.versions import EMPTY_ROOT, VersionNames, current_version
from .index import HistoryIndex
from .news import News

#: The number of characters of metadata that are shown.
LONGEST = 4096
#: The number of ids that name a version without a description; the page shows whether there are more.
NAMED = 2
#: Keys of metadata under which applications name the author of a version, and describe it.
WHO = ("author", "who", "user", "__llvs_device", "device")
WHAT = ("__llvs_description", "message", "description", "title", "why")


def storage_of(path: str) -> llvs.words.StorageKind:
    """Returns the kind of the store at a path."""
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
        #: The versions that were made here, for `undo`; the newest is the last.
        self.made: list[str] = []
        #: How many versions were made here, undos included: the rest of the new versions are from other devices.
        self.count_made = 0
        #: The version that was made or chosen here last; None: changes are saved on the application's current version.
        self._own: Optional[str] = None
        #: The undos that were made here, for `redo`.
        self.undone: list[str] = []
        #: By version of `made` and `undone`, the conflict that it decided: an undone decision is open again.
        self.decided: dict[str, llvs.merge.Conflict] = {}
        #: The results of exchanges that were made here, by the name of the remote.
        self.exchanged: dict[str, dict[str, Any]] = {}
        #: Held from a check until the version is made, so that what was checked does not change.
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
        """Called for new versions: begins a new index of rows, and notifies the pages."""
        with self._lock:
            self._index.end()
            self._generation += 1
            self._index = HistoryIndex(self.store, self._generation)
            self._current = (0.0, None)
        self.news.tell()

    @property
    def index(self) -> HistoryIndex:
        """Returns the rows of the history as it is now."""
        with self._lock:
            return self._index

    def current_version(self) -> Optional[str]:
        """Returns the id of the application's current version, otherwise of the most recent head; None without versions.

        It is read at most once in two seconds, from the note of the application's coordinator, by opening another coordinator for reading.
        """
        looked, found = self._current
        if time.monotonic() - looked < 2:
            return found
        try:
            version = current_version(self.path, self.store, storage=self.storage)
        except llvs.Error:
            version = None
        version = version or self.store.most_recent_head  # if the coordinator cannot be read, the head replaces it
        id = None if version is None else version.id
        self._current = (time.monotonic(), id)
        return id

    def work_version(self) -> Optional[str]:
        """Returns the id of the version on which changes are saved here, and which `@` names; None without versions.

        If the store is only read, it is the application's current version. Otherwise it is the version that was made or chosen here last,
        or the application's if there is none. If that version has successors by now, it is the newest head that descends from it, or the
        application's current version if that is one of these heads.
        """
        current = self.current_version()
        start = current if self._own is None else self._own
        if start is None or not self.write or not self.store.successors(start):
            return start
        heads = [head for head in self.store.heads() if self.store.is_ancestor(start, head)]
        on_branch = self.store[start].branch
        heads.sort(key=lambda head: (head.id != current, head.branch != on_branch))  # stable: the newest stay first
        if heads:
            self._own = heads[0].id
        return self._own or start

    def work_on(self, version: str) -> None:
        """Makes the next change on a version."""
        self._own = version

    def summary(self) -> dict[str, Any]:
        """Returns the content of the page's frame, which is also that of each news."""
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
            "undo": self._title(self.made),
            "redo": self._title(self.undone),
        }

    def _title(self, versions: list[str]) -> str:
        """Returns in one line what the newest of the versions did."""
        return title_of(self.store, versions[-1]).removeprefix("Undo: ") if versions else ""

    def reopened(self) -> list[llvs.merge.Conflict]:
        """Returns the conflicts whose decisions were made here and undone."""
        return [self.decided[version] for version in self.undone if version in self.decided]

    def find(self, name: str) -> llvs.Version:
        """Returns the version with a name, as `llvs.tools.versions` reads it. Raises VersionNameError."""
        return VersionNames(self.store, self.work_version()).find(name)


class NotFound(KeyError):
    """Raised for a value, version or remote that does not exist. The text is a sentence for people."""

    def __str__(self) -> str:
        return str(self.args[0])


def shown(text: str, limit: int = 80) -> str:
    """Returns a name in quotes, cut to a limit, for a sentence."""
    return f'"{text if len(text) <= limit else text[:limit] + "…"}"'


def title_of(store: llvs.Store, version: str) -> str:
    """Returns in one line what a version did; "" if its metadata do not describe it."""
    return str(told(store, store[version])["what"]).split("\n", 1)[0]


def metadata_of(version: llvs.Version) -> dict[str, str]:
    """Returns the metadata as text: strings unchanged, all other values as JSON; cut at `LONGEST` characters."""
    found = {}
    for key, raw in version.raw_metadata.items():
        value = version.metadata.get(key)
        text = value if isinstance(value, str) else raw[: 4 * LONGEST].decode("utf-8", "replace")
        found[key] = text if len(text) <= LONGEST else text[:LONGEST] + "…"
    return found


def clock_ahead(version: llvs.Version) -> float:
    """Returns by how many seconds the clock of a version's device was ahead. The page shows when such a version was received."""
    is_its_own = "__llvs_clock" not in version.raw_metadata and len(version.predecessors) < 2
    return max(0.0, version.timestamp - version.made_at) if is_its_own else 0.0


def _who(metadata: dict[str, str]) -> str:
    """Returns who made a version: the author, and the device if the metadata name both."""
    names = [metadata[key] for key in WHO if metadata.get(key)]
    device = metadata.get("__llvs_device") or metadata.get("device")
    if not names:
        return ""
    return f"{names[0]} on {device}" if device and device != names[0] else names[0]


def _named(store: llvs.Store, version: llvs.Version) -> dict[str, Any]:
    """Returns a name for a version without a description: the authors of the sides of a merge, or the first ids that it changed."""
    if len(version.predecessors) == 2:
        return {"sides": [_who(metadata_of(side)) for side in store.versions(version.predecessors)]}
    return {"ids": [change.id for change in islice(store.changes(version, with_data=False), NAMED + 1)]}


def told(store: llvs.Store, version: llvs.Version) -> dict[str, Any]:
    """Returns a version in the form that the page receives."""
    metadata = metadata_of(version)
    what = next((metadata[key] for key in WHAT if metadata.get(key)), "")
    return {
        **({} if what or version.id == EMPTY_ROOT else _named(store, version)),
        "id": version.id,
        "predecessors": list(version.predecessors),
        "time": version.made_at,
        "ahead": clock_ahead(version),
        "bytes": version.value_data_size,
        "branch": version.branch,
        "who": _who(metadata),
        "what": what,
        "isEmptyRoot": version.id == EMPTY_ROOT,
    }
