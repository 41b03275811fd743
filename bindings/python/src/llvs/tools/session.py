"""Finds the store that a command uses, and opens it."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any, Optional

import click

import llvs

from .failures import MISUSED, STORE, Failure
from .versions import EMPTY_ROOT, VersionNames, coordinator_options
from . import output


def storage_of(path: Path, *, is_named: bool = False) -> Optional[llvs.words.StorageKind]:
    """Returns "file" or "sqlite" for a path that looks like a store; None for another.

    is_named: whether the user named the path as a store. Then any SQLite database counts as one, and the library reports if it is not.
    """
    try:
        if (path / "llvs-store").is_file():
            return "file"
        with path.open("rb") as file:
            head = file.read(72)
    except OSError:
        return None
    # The header of SQLite. It contains an application id.
    is_ours = head[68:72] == b"LLVS"
    return "sqlite" if head.startswith(b"SQLite format 3\0") and (is_ours or is_named) else None


def find_store(given: Optional[str]) -> tuple[Path, llvs.words.StorageKind]:
    """Returns the path of the store, and its storage: the given one, otherwise LLVS_STORE, otherwise the one in this folder. Raises
    Failure."""
    named = given or os.environ.get("LLVS_STORE")
    if named:
        path = Path(named)
        # If it is not a store, the library reports that better.
        return path, storage_of(path, is_named=True) or "file"
    here = Path(".")
    if storage_of(here):
        return here, "file"
    found = []
    for entry in sorted(here.iterdir()):
        kind = storage_of(entry) if entry.is_dir() or entry.suffix in (".llvs", ".db", ".sqlite") else None
        if kind:
            found.append((entry, kind))
    if len(found) == 1:
        return found[0]
    if found:
        names = ", ".join(str(path) for path, _ in found[:5]) + (", ..." if len(found) > 5 else "")
        raise Failure(f"there are {len(found)} stores here ({names}): say which with -s PATH", MISUSED)
    raise Failure('there is no store here: name one with -s PATH or LLVS_STORE, or make one with "llvs init PATH"', STORE)


class Session:
    """One run of the command: its general options, and the store after it is opened."""

    def __init__(self, store: Optional[str], coordinator: str, device: Optional[str], debug: bool) -> None:
        self.given, self.coordinator_name, self.debug = store, coordinator, debug
        self._device = device
        self._reading: Optional[llvs.Coordinator] = None

    def place(self) -> tuple[Path, llvs.words.StorageKind]:
        """Returns the path and storage of the store."""
        return find_store(self.given)

    @property
    def device(self) -> str:
        """Returns the device whose saves `undo` reverts: this user on this computer, with this command."""
        if self._device:
            return self._device
        import getpass
        import socket

        try:
            user = getpass.getuser()
        except (KeyError, OSError, ImportError):
            user = str(os.getuid())
        return f"{user}@{socket.gethostname()} (llvs)"

    def _open(self, **arguments: Any) -> llvs.Coordinator:
        path, storage = self.place()
        options = coordinator_options(self.coordinator_name)
        coordinator = llvs.Coordinator(path, storage=storage, create=False, options=options, **arguments)
        click.get_current_context().call_on_close(coordinator.close)
        return coordinator

    def reading(self) -> llvs.Store:
        """Opens the store for reading until the command ends; another program may write it meanwhile."""
        if self._reading is None:
            self._reading = self._open(read_only=True)
            damaged = self._reading.store.statistics().damaged if sys.stderr.isatty() else 0
            if damaged:
                places = output.counted(damaged, "place")
                output.say(f'llvs: the store is damaged ({places}), and not all is shown: "llvs verify" tells where')
        return self._reading.store

    def writing(self) -> llvs.Coordinator:
        """Opens the coordinator for saving until the command ends. Raises Failure if another program has it open."""
        try:
            return self._open(device=self.device)
        except llvs.BusyError as problem:
            raise Failure(
                f"{problem} (With --coordinator NAME, this command keeps a current version of its own.)", STORE
            ) from problem

    def current(self) -> Optional[llvs.Version]:
        """Returns the version that `@` names; None in a store without versions."""
        store = self.reading()
        assert self._reading is not None
        current = self._reading.current_version
        return store.most_recent_head if current.id == EMPTY_ROOT else current

    def names(self) -> VersionNames:
        """Returns the object that finds versions by name."""
        return VersionNames(self.reading(), self.current())

    def find(self, name: str) -> llvs.Version:
        """Returns the version with a name. Raises VersionNameError."""
        return self.names().find(name)


def session() -> Session:
    """Returns the session of the running command."""
    found = click.get_current_context().find_object(Session)
    assert found is not None
    return found
