"""Transactions: changes that are read, made and saved as one version, although others save meanwhile."""

from __future__ import annotations

from types import TracebackType
from typing import Callable, Iterator, MutableMapping, NamedTuple, Optional, TypeVar

import llvs

from . import errors
from ._memory import BytesLike, as_bytes
from .state import State, key_of
from .versions import Change, SavedVersion, Version

_Result = TypeVar("_Result")


class Step(NamedTuple):
    """A step of a replay."""

    #: The version that it leads to.
    version: Version
    #: What to apply to the state before to reach it, in byte order of the ids.
    changes: tuple[Change, ...]


class Transaction(MutableMapping[str, bytes]):
    """The values at the current version of a coordinator with changes of one's own, which are saved as one version at the end of the block.

        with notes.transaction() as values:
            values["counter"] = str(int(values.get("counter", b"0")) + 1).encode()

    When the current version moved meanwhile, the save stands on the new one, as long as nothing that was read or written here differs there;
    else MovedError is raised, and nothing is saved. (`Coordinator.transact` runs a function again then.) A block that raises saves nothing.
    """

    def __init__(self, notes: llvs.Coordinator, metadata: Optional[llvs._metadata.Metadata] = None) -> None:
        self._notes, self._metadata = notes, metadata
        self._base = notes.current_version
        self._state: State = notes.at(self._base)
        self._changes: dict[str, Optional[bytes]] = {}
        #: What was read or written, and what it was; None: all ids were listed.
        self._known: Optional[dict[str, Optional[bytes]]] = {}
        #: What was saved; None before the end of the block, and when nothing was to be saved.
        self.saved: Optional[SavedVersion] = None

    def _read(self, id: str) -> Optional[bytes]:
        found = self._state.get(id)
        if self._known is not None:
            self._known[id] = found
        return found

    def __getitem__(self, id: str) -> bytes:
        found = None if key_of(id) is None else self._changes[id] if id in self._changes else self._read(id)
        if found is None:
            raise KeyError(id)
        return found

    def __setitem__(self, id: str, value: BytesLike) -> None:
        self._read(id)
        self._changes[id] = bytes(as_bytes(value))

    def __delitem__(self, id: str) -> None:
        self[id]
        self._read(id)
        self._changes[id] = None

    def __iter__(self) -> Iterator[str]:
        self._known = None
        own = {id for id, value in self._changes.items() if value is not None}
        return iter(sorted({id for id in self._state if id not in self._changes} | own, key=str.encode))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __enter__(self) -> Transaction:
        return self

    def __exit__(self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        if kind is not None:
            return
        update = {id: value for id, value in self._changes.items() if value is not None and self._state.get(id) != value}
        remove = [id for id, value in self._changes.items() if value is None and id in self._state]
        while update or remove:
            try:
                self.saved = self._notes.save(update=update, remove=remove, metadata=self._metadata, expected=self._base)
                return
            except errors.MovedError:
                self._go_on()

    def _go_on(self) -> None:
        """To where the current version is by now, if nothing differs there that matters here."""
        now = self._notes.current_version
        there = self._notes.at(now)
        if self._known is None:
            changed = next((change.id for change in self._notes.store.diff(self._base, now, with_data=False)), None)
        else:
            changed = next((id for id, value in self._known.items() if there.get(id) != value), None)
        if changed is not None:
            raise errors.MovedError(
                f"nothing was saved: {changed!r}, which the transaction read or wrote, was changed meanwhile; run it again, or use transact()",
                version_id=now, value_id=changed,
            )
        self._base, self._state = now, there


def transact(
    notes: llvs.Coordinator, function: Callable[[Transaction], _Result], metadata: Optional[llvs._metadata.Metadata], retries: int
) -> _Result:
    """Runs a function in a transaction, again when what it read was changed meanwhile."""
    for attempt in range(retries + 1):
        try:
            with Transaction(notes, metadata) as values:
                result = function(values)
            return result
        except errors.MovedError:
            if attempt == retries:
                raise
    raise errors.InternalError("a transaction ended without a result")


def replay(store: llvs.Store, prefix: str, a: llvs.AnyVersion, b: llvs.AnyVersion) -> Iterator[Step]:
    """The steps from one version to another, along the lines of first predecessors."""
    start, end = store[a], store[b]
    way = [start, *_line(store, start, end)[1:]]
    forward = _line(store, end, start)
    # Where the two lines meet is there once.
    if forward[-1].id == way[-1].id:
        forward.pop()
    for before, after in zip(way + forward[::-1], (way + forward[::-1])[1:]):
        changes = tuple(store.diff(before, after, prefix=prefix))
        if changes:
            yield Step(after, changes)


def _line(store: llvs.Store, start: Version, other: Version) -> list[Version]:
    """`start`, its first predecessor and so on, up to the first that is the other version or among its ancestors."""
    line, new = [start], {version.id for version in store.history(start, hiding=[other])}
    while line[-1].id in new and line[-1].predecessors:
        line.append(store[line[-1].predecessors[0]])
    return line
