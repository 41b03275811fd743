"""What a store is made of: values, references, changes, versions, forks. All immutable."""

from __future__ import annotations

import enum
from datetime import datetime, timedelta, timezone
from typing import Any, Mapping, NamedTuple, Optional, Union

from . import _constants as c
from . import _memory, _metadata
from ._memory import BytesLike


class Reference(NamedTuple):
    """Which bytes: a value id, and the version in which they were stored. Equal when both are."""

    #: The value id.
    id: str
    #: The id of the version that stored the bytes.
    stored_version: str


class Value(NamedTuple):
    """A value as it prevails at a version."""

    #: The value id.
    id: str
    #: The bytes; the store never looks into them.
    data: bytes
    #: The id of the version that stored them.
    stored_version: str

    @property
    def reference(self) -> Reference:
        """Which bytes these are."""
        return Reference(self.id, self.stored_version)


class ChangeKind(str, enum.Enum):
    """What happened to a value."""

    #: The value is set, where there was none.
    INSERT = "insert"
    #: The value is set, where there was one.
    UPDATE = "update"
    #: The value is removed.
    REMOVE = "remove"
    #: Bytes that an ancestor stored are taken over: how a merge takes the other side's value without writing it again.
    PRESERVE = "preserve"
    #: A removal is taken over.
    PRESERVE_REMOVAL = "preserve_removal"

    def __str__(self) -> str:
        return self.value


CHANGE_KINDS = {
    c.CHANGE_INSERT: ChangeKind.INSERT,
    c.CHANGE_UPDATE: ChangeKind.UPDATE,
    c.CHANGE_REMOVE: ChangeKind.REMOVE,
    c.CHANGE_PRESERVE: ChangeKind.PRESERVE,
    c.CHANGE_PRESERVE_REMOVAL: ChangeKind.PRESERVE_REMOVAL,
}
CHANGE_NUMBERS = {kind: number for number, kind in CHANGE_KINDS.items()}


class Change(NamedTuple):
    """What a version records of one value, or how one value differs between two versions.

    Made by the class methods `insert`, `update`, `remove`, `preserve`, `preserve_removal`.
    """

    #: What happened.
    kind: ChangeKind
    #: The value id.
    id: str
    #: The bytes of an insert or update (None when they were not asked for); else None.
    data: Optional[bytes] = None
    #: Which bytes, where they are stored already: of what was read, and of `preserve`; else None.
    reference: Optional[Reference] = None

    @classmethod
    def insert(cls, id: str, data: BytesLike) -> Change:
        """Sets a value. `insert` and `update` do the same: what is recorded is what is true."""
        return cls(ChangeKind.INSERT, id, _memory.as_bytes(data, f"the value of {id!r}"))

    @classmethod
    def update(cls, id: str, data: BytesLike) -> Change:
        """Sets a value."""
        return cls(ChangeKind.UPDATE, id, _memory.as_bytes(data, f"the value of {id!r}"))

    @classmethod
    def remove(cls, id: str) -> Change:
        """Removes a value; nothing happens when there is none."""
        return cls(ChangeKind.REMOVE, id)

    @classmethod
    def preserve(cls, reference: Reference) -> Change:
        """Takes over bytes that an ancestor stored."""
        return cls(ChangeKind.PRESERVE, reference.id, None, reference)

    @classmethod
    def preserve_removal(cls, id: str) -> Change:
        """Takes over a removal."""
        return cls(ChangeKind.PRESERVE_REMOVAL, id)


class Version:
    """A version of a store. Equal to another when their ids are equal, since versions never change."""

    __slots__ = ("_id_bytes", "_metadata", "_raw_metadata", "branch", "id", "made_at", "predecessors", "timestamp", "value_data_size")

    #: The id: 1 to 128 of `[A-Za-z0-9_-]`.
    id: str
    #: The ids of the versions it was made from, 0 to 2. Its state is that of the first, with its own changes applied.
    predecessors: tuple[str, ...]
    #: Puts versions in order: seconds since 1970-01-01 UTC, later than those of its ancestors, however wrong the clocks of those who made
    #: them were.
    timestamp: float
    #: When it was made, as far as this device can tell, in seconds since 1970-01-01 UTC: what its maker's clock showed, not before any of
    #: its ancestors, and no more than a minute after this device had it. Other devices may tell another time.
    made_at: float
    #: The bytes of the values that it stored.
    value_data_size: int
    #: The branch that its metadata names, or None.
    branch: str | None

    def __init__(
        self,
        id: str,
        predecessors: tuple[str, ...],
        timestamp: float,
        value_data_size: int,
        raw_metadata: tuple[tuple[str, bytes], ...] = (),
        branch: str | None = None,
        made_at: float | None = None,
    ) -> None:
        self.id = id
        self._id_bytes = _memory.encode(id)
        self.predecessors = predecessors
        self.timestamp = timestamp
        self.made_at = timestamp if made_at is None else made_at
        self.value_data_size = value_data_size
        self._raw_metadata = raw_metadata
        self._metadata: Mapping[str, Any] | None = None
        self.branch = branch

    @property
    def metadata(self) -> Mapping[str, Any]:
        """What was given at its making, the branch (`__llvs_branch`) included: whatever JSON can hold; `bytes` where it is not JSON.

        Others made the versions that were received: a value may be of any kind, whatever the program itself puts there. It is `bytes` also
        where it holds a number beyond a `float` (`1e999`) or a lone surrogate.
        """
        if self._metadata is None:
            self._metadata = {key: _metadata.decode(value) for key, value in self._raw_metadata}
        return self._metadata

    @property
    def raw_metadata(self) -> Mapping[str, bytes]:
        """The metadata as bytes."""
        return dict(self._raw_metadata)

    @property
    def device(self) -> Optional[str]:
        """The device that saved it, as its coordinator was told (`Coordinator(device=...)`); None where it does not say."""
        return self._text("__llvs_device")

    @property
    def description(self) -> Optional[str]:
        """What it did, as the save was described (`save(description=...)`); None where it was not."""
        return self._text("__llvs_description")

    def _text(self, key: str) -> Optional[str]:
        found = self.metadata.get(key)
        return found if isinstance(found, str) else None

    @property
    def date(self) -> datetime:
        """`made_at` as a date in UTC. Raises OverflowError for one beyond what `datetime` can hold."""
        # datetime.fromtimestamp would raise ValueError or OSError for some, and other systems' time_t may hold less.
        return datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(seconds=self.made_at)

    def __eq__(self, other: object) -> bool:
        return self.id == other.id if isinstance(other, Version) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.id)

    def __repr__(self) -> str:
        branch = f", branch={self.branch!r}" if self.branch is not None else ""
        return f"Version({self.id!r}, predecessors={self.predecessors!r}{branch})"


class SavedVersion(Version):
    """A version that `Coordinator.save` made, with where that moved the current version."""

    __slots__ = ("_move",)

    def __init__(self, version: Version, move: Any) -> None:
        super().__init__(
            version.id, version.predecessors, version.timestamp, version.value_data_size, version._raw_metadata, version.branch,
            version.made_at,
        )
        self._move = move

    @property
    def moved(self) -> bool:
        """Whether the save moved the current version; one on a branch moves it only when it was the head of that."""
        return bool(self._move.moved)

    @property
    def from_version(self) -> str:
        """The current version before the save."""
        return str(getattr(self._move, "from").text.decode())

    @property
    def to_version(self) -> str:
        """The current version behind the save."""
        return str(self._move.to.text.decode())


#: What a version argument may be.
AnyVersion = Union[Version, str]


class ForkKind(str, enum.Enum):
    """How a value differs between two versions and their common ancestor."""

    #: Not at the ancestor, on one side now.
    INSERTED = "inserted"
    #: Not at the ancestor, different on both sides. Conflicting.
    TWICE_INSERTED = "twice_inserted"
    #: Changed on one side.
    UPDATED = "updated"
    #: Changed on both sides, differently. Conflicting.
    TWICE_UPDATED = "twice_updated"
    #: Removed on one side.
    REMOVED = "removed"
    #: Removed on both sides.
    TWICE_REMOVED = "twice_removed"
    #: Removed on one side, changed on the other. Conflicting.
    REMOVED_AND_UPDATED = "removed_and_updated"

    def __str__(self) -> str:
        return self.value


FORK_KINDS = {
    c.FORK_INSERTED: ForkKind.INSERTED,
    c.FORK_TWICE_INSERTED: ForkKind.TWICE_INSERTED,
    c.FORK_UPDATED: ForkKind.UPDATED,
    c.FORK_TWICE_UPDATED: ForkKind.TWICE_UPDATED,
    c.FORK_REMOVED: ForkKind.REMOVED,
    c.FORK_TWICE_REMOVED: ForkKind.TWICE_REMOVED,
    c.FORK_REMOVED_AND_UPDATED: ForkKind.REMOVED_AND_UPDATED,
}


class Side(str, enum.Enum):
    """A side of a merge."""

    #: The newer version.
    FIRST = "first"
    #: The older version.
    SECOND = "second"

    def __str__(self) -> str:
        return self.value


SIDES = {c.SIDE_NONE: None, c.SIDE_FIRST: Side.FIRST, c.SIDE_SECOND: Side.SECOND}


class Fork(NamedTuple):
    """How one value differs between the two versions of a merge and their common ancestor."""

    #: What happened.
    kind: ForkKind
    #: On which side, for inserted, updated, removed; on which it was removed, for removed-and-updated; else None.
    branch: Optional[Side]
    #: What prevails at the first (newer) version; None when nothing does.
    first: Optional[Reference]
    #: What prevails at the second (older) version; None when nothing does.
    second: Optional[Reference]
    #: What prevails at their common ancestor; None when nothing does, or when several ancestors disagree.
    ancestor: Optional[Reference]
    #: What the best common ancestors hold, each once: the ancestor alone, or, where several disagree, what each of them holds.
    #: Versions that were merged across each other have such: a part of a value was then changed on a side only if it is what none of these
    #: has.
    ancestors: tuple[Reference, ...] = ()

    @property
    def conflicting(self) -> bool:
        """Whether an arbiter must decide."""
        return self.kind in (ForkKind.TWICE_INSERTED, ForkKind.TWICE_UPDATED, ForkKind.REMOVED_AND_UPDATED)
