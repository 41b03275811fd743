"""The parts of a store: values, references, changes, versions, forks. All immutable."""

from __future__ import annotations

import enum
from datetime import datetime, timedelta, timezone
from typing import Any, Mapping, NamedTuple, Optional, Union

from .. import errors
from .._abi import memory as _memory, metadata as _metadata
from .._abi.memory import BytesLike
from .._generated import constants as c


class Reference(NamedTuple):
    """Identifies stored bytes: a value id, and the version that stored them. Equal if both are."""

    #: The value id.
    id: str
    #: The id of the version that stored the bytes.
    stored_version: str


class Value(NamedTuple):
    """A value as it prevails at a version."""

    #: The value id.
    id: str
    #: The bytes, opaque to the store.
    data: bytes
    #: The id of the version that stored them.
    stored_version: str

    @property
    def reference(self) -> Reference:
        """The reference of these bytes."""
        return Reference(self.id, self.stored_version)


class ForgottenValue(Value):
    """A value among many that were read at once whose bytes are gone: its `data` raises ForgottenError."""

    __slots__ = ()

    @staticmethod
    def make(id: str, stored_version: str, state: int) -> ForgottenValue:
        """Makes a value for a state of `llvs_value_state`. The tuple has None in the place of the bytes."""
        return tuple.__new__(ErasedValue if state == c.VALUE_ERASED else ForgottenValue, (id, None, stored_version))

    @property
    def data(self) -> bytes:
        """Raises ForgottenError."""
        raise gone_error(self.id, self.stored_version, c.VALUE_FORGOTTEN)


class ErasedValue(ForgottenValue):
    """One of many values that were read at once, which was erased on this device: its `data` raises ErasedError."""

    __slots__ = ()

    @property
    def data(self) -> bytes:
        """Raises ErasedError."""
        raise gone_error(self.id, self.stored_version, c.VALUE_ERASED)


def gone_error(id: str, version: str, state: int) -> errors.GoneError:
    """Returns the error for a value whose bytes are gone, for a state of `llvs_value_state`."""
    if state == c.VALUE_ERASED:
        return errors.ErasedError(
            f"the bytes of {id!r} that version {version} stored were erased on this device", value_id=id, version_id=version
        )
    return errors.ForgottenError(f"the bytes of {id!r} that version {version} stored are gone", value_id=id, version_id=version)


class ChangeKind(str, enum.Enum):
    """The kind of change to a value."""

    #: The value is set; it was absent before.
    INSERT = "insert"
    #: The value is set; it was present before.
    UPDATE = "update"
    #: The value is removed.
    REMOVE = "remove"
    #: Bytes that an ancestor stored are kept, without writing them again. Merges use it for the other side's value.
    PRESERVE = "preserve"
    #: A removal is kept.
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
    """A change that a version records for one value, or a difference of one value between two versions.

    Made by the class methods `insert`, `update`, `remove`, `preserve`, `preserve_removal`.
    """

    #: What happened.
    kind: ChangeKind
    #: The value id.
    id: str
    #: The bytes of an insert or update (None if they were not requested, or are gone: `ForgottenError`); else None.
    data: Optional[bytes] = None
    #: The reference to the stored bytes: for changes that were read, and for `preserve`; else None.
    reference: Optional[Reference] = None

    @classmethod
    def insert(cls, id: str, data: BytesLike) -> Change:
        """Sets a value. `insert` and `update` do the same; the record gets the label that is correct."""
        return cls(ChangeKind.INSERT, id, _memory.as_bytes(data, f"the value of {id!r}"))

    @classmethod
    def update(cls, id: str, data: BytesLike) -> Change:
        """Sets a value."""
        return cls(ChangeKind.UPDATE, id, _memory.as_bytes(data, f"the value of {id!r}"))

    @classmethod
    def remove(cls, id: str) -> Change:
        """Removes a value; no effect if it is absent."""
        return cls(ChangeKind.REMOVE, id)

    @classmethod
    def preserve(cls, reference: Reference) -> Change:
        """Keeps bytes that an ancestor stored."""
        return cls(ChangeKind.PRESERVE, reference.id, None, reference)

    @classmethod
    def preserve_removal(cls, id: str) -> Change:
        """Keeps a removal."""
        return cls(ChangeKind.PRESERVE_REMOVAL, id)


class Version:
    """A version of a store. Two are equal if their ids are, since versions never change."""

    __slots__ = ("_id_bytes", "_metadata", "_raw_metadata", "branch", "id", "made_at", "predecessors", "timestamp", "value_data_size")

    #: The id: 1 to 128 of `[A-Za-z0-9_-]`.
    id: str
    #: The ids of the versions it was made from, 0 to 2. Its state is that of the first, with its own changes applied.
    predecessors: tuple[str, ...]
    #: Orders versions: seconds since 1970-01-01 UTC, later than those of its ancestors, even if their makers' clocks were wrong.
    timestamp: float
    #: When it was made, as far as this device knows, in seconds since 1970-01-01 UTC: the time of its maker's clock, but not before any
    #: ancestor, and at most a minute after this device received it. Other devices may report another time.
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
        """Its metadata, the branch (`__llvs_branch`) included: parsed JSON, or `bytes` if a value is not JSON.

        Received versions were made by others: a value may have any type, whatever the program itself stores there. It is also `bytes` if it
        contains a number beyond a `float` (`1e999`) or a lone surrogate.
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
        """The device that saved it (`Coordinator(device=...)`); None if unknown."""
        return self._text("__llvs_device")

    @property
    def description(self) -> Optional[str]:
        """The description of the save (`save(description=...)`); None if it has none."""
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
    """A version that `Coordinator.save` made, and how the current version moved."""

    __slots__ = ("_move",)

    def __init__(self, version: Version, move: Any) -> None:
        super().__init__(
            version.id, version.predecessors, version.timestamp, version.value_data_size, version._raw_metadata, version.branch,
            version.made_at,
        )
        self._move = move

    @property
    def moved(self) -> bool:
        """Whether the save moved the current version; a save on a branch moves it only if it was the head of that branch."""
        return bool(self._move.moved)

    @property
    def from_version(self) -> str:
        """The current version before the save."""
        return str(getattr(self._move, "from").text.decode())

    @property
    def to_version(self) -> str:
        """The current version after the save."""
        return str(self._move.to.text.decode())


#: What a version argument may be.
AnyVersion = Union[Version, str]


class ForkKind(str, enum.Enum):
    """How a value differs between two versions and their common ancestor."""

    #: Absent at the ancestor, present on one side.
    INSERTED = "inserted"
    #: Absent at the ancestor, different on both sides. Conflicting.
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
    #: The side of the change, for inserted, updated and removed; the side of the removal, for removed-and-updated; else None.
    branch: Optional[Side]
    #: The value that prevails at the first (newer) version; None if it is absent.
    first: Optional[Reference]
    #: The value that prevails at the second (older) version; None if it is absent.
    second: Optional[Reference]
    #: The value that prevails at their common ancestor; None if it is absent, or if several ancestors disagree.
    ancestor: Optional[Reference]
    #: The values at the best common ancestors, each once. Usually that is `ancestor` alone. If versions were merged across each other,
    #: there may be several ancestors with different values. Then a part of a value counts as changed on a side only if it differs from that
    #: part in all of these.
    ancestors: tuple[Reference, ...] = ()

    @property
    def conflicting(self) -> bool:
        """Returns whether an arbiter must decide."""
        return self.kind in (ForkKind.TWICE_INSERTED, ForkKind.TWICE_UPDATED, ForkKind.REMOVED_AND_UPDATED)


def make_branch_name(base: str) -> str:
    """Returns a unique branch name: the base, an underscore, a UUID."""
    import uuid

    _memory.encode(base)
    return f"{base}_{str(uuid.uuid4()).upper()}"
