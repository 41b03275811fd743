"""What a store tells of itself."""

from __future__ import annotations

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
    #: Bytes of caches in memory.
    memory_used: int


class Damage(NamedTuple):
    """A place whose bytes are not what was written."""

    #: The file, or what the storage calls the place.
    file: str
    #: Where in it, in bytes.
    offset: int
    #: What is wrong.
    message: str
    #: The version lost, where that can be told.
    version: Optional[str]


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


class CompactionReport(NamedTuple):
    """What `Store.compact` did."""

    #: Files whose records were put into others. They are still there, for the time of grace.
    folded: int
    #: Files that were made of them.
    made: int
    #: Files that had been folded long enough ago, and are gone now.
    deleted: int
    #: Bytes of the files made.
    bytes_written: int
    #: Bytes of the files deleted.
    bytes_deleted: int
    #: The file that shows that a folder-syncing program carries the store, for which nothing was done; else None.
    sync_marker: Optional[str]
