"""What a store tells of itself."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple, Optional


class Statistics(NamedTuple):
    """Counts of a store."""

    #: Versions in the history.
    versions: int
    #: Versions without successors.
    heads: int
    #: Versions whose ancestry is not completely here: not in history until it is.
    pending: int
    #: Damaged places met so far.
    damaged: int
    #: Bytes on the medium, caches included.
    bytes: int
    #: Bytes written by this handle.
    bytes_written: int
    #: Syncs by this handle.
    syncs: int
    #: Files of records.
    segments: int
    #: Bytes that the history takes in memory; caches of values are bounded by the memory budget.
    memory_used: int
    #: Values that this handle stored as differences from earlier ones.
    differences: int = 0
    #: Bytes that it stored for them.
    difference_bytes: int = 0
    #: Bytes that these values have.
    difference_value_bytes: int = 0


class Loss(str, Enum):
    """What a damage costs."""

    #: Nothing: what was there is known without it, or there is another copy.
    NOTHING = "nothing"
    #: A version, or several; what builds on them waits until they are here again.
    VERSION = "version"
    #: The bytes of a value; the version is there, and its other values can be read.
    VALUE = "value"
    #: Perhaps something: a file ends in bytes that count as never written, or without saying that it is complete, and nobody writes it.
    UNFINISHED = "unfinished"


class Damage(NamedTuple):
    """A place whose bytes are not what was written."""

    #: The file, or what the storage calls the place.
    file: str
    #: Where in it, in bytes.
    offset: int
    #: What is wrong.
    message: str
    #: The version concerned, where that can be told.
    version: Optional[str]
    #: What is lost.
    lost: Loss
    #: The value concerned, where it is one and can be told.
    value_id: Optional[str]


class VerifyReport(NamedTuple):
    """What `Store.verify` found."""

    #: Versions read.
    versions: int
    #: Values read.
    values: int
    #: Versions that wait for their ancestry.
    pending: int
    #: Damaged places.
    damages: tuple[Damage, ...]
    #: Places where files are unfinished (`Loss.UNFINISHED`): somebody was killed, or a file was cut short or damaged at its end.
    unfinished: tuple[Damage, ...]
    #: Versions of the history that the id of a head vouches for: on a way back from a head, all ids are computed from what the versions
    #: hold, so that none was changed since the head was made.
    vouched: int
    #: All other versions of the history.
    unvouched: int


class Salvaged(NamedTuple):
    """A version that `Store.salvage` made."""

    #: The newest version whose changes are in it.
    original: str
    #: The one that was made.
    version: str
    #: Whether its state is exactly that of `original`; if not, it has the newest values that could be read.
    is_complete: bool


class SalvageReport(NamedTuple):
    """What `Store.salvage` wrote, and what is lost."""

    #: Versions in the new store as they were.
    versions: int
    #: Versions that wait in the new store for lost ones.
    waiting: int
    #: Versions that were made of what could be read.
    made: tuple[Salvaged, ...]
    #: Damaged places, unfinished files, and versions that others name and that are nowhere.
    damages: tuple[Damage, ...]


class CompactionReport(NamedTuple):
    """What `Store.compact` did."""

    #: Files whose records were put into others. They are still there, for the time of grace.
    folded: int
    #: Files that were made of them.
    made: int
    #: Files whose records were put into others long enough ago, and that are gone now.
    deleted: int
    #: Bytes of the files made.
    bytes_written: int
    #: Bytes of the files deleted.
    bytes_deleted: int
    #: The file that shows that a folder-syncing program carries the store, for which nothing was done; else None.
    sync_marker: Optional[str]
