"""The words that options accept, as types: for functions of your own that pass them on."""

from __future__ import annotations

from typing import Literal

__all__ = [
    "Choice",
    "Compaction",
    "Durability",
    "HeadSelection",
    "Layout",
    "LogLevelName",
    "MemberKind",
    "Relation",
    "SnapshotPolicy",
    "StorageKind",
    "ValueDifferences",
]

#: Where a store has its records: a directory, a database file, or memory.
StorageKind = Literal["file", "sqlite", "memory"]
#: What a power cut may lose: "full" no acknowledged version, "normal" the newest versions.
Durability = Literal["full", "normal"]
#: When a file store compacts small files: `Store`.
Compaction = Literal["automatic", "on_request", "always"]
#: Whether values are stored as differences from earlier ones: `Store`.
ValueDifferences = Literal["auto", "on", "off"]
#: Whether a coordinator keeps a snapshot at the place of each exchange up to date.
SnapshotPolicy = Literal["off", "auto"]
#: Which versions a merge accepts: `Store.merge`.
Relation = Literal["any", "related", "unrelated"]
#: Which heads are merged: those without a branch, or all. `Heads` says more.
HeadSelection = Literal["unbranched", "all"]
#: How versions are stored at a place: in packs, in single files, or in both.
Layout = Literal["packed", "interchange", "bridged"]
#: How a conflict is closed: with a side, or the result of the merge.
Choice = Literal["newer", "older", "result"]
#: The kind of a member of an encrypted place, for people.
MemberKind = Literal["device", "host", "recovery"]
#: A level of the library's messages.
LogLevelName = Literal["error", "warning", "info", "debug"]
