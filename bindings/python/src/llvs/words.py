"""The words that options take, as types: for functions of one's own that hand them on."""

from __future__ import annotations

from typing import Literal

#: Where a store keeps its records: a directory, a database file, or memory.
StorageKind = Literal["file", "sqlite", "memory"]
#: What is safe from a power cut: "full" loses nothing that was acknowledged, "normal" may lose the newest versions.
Durability = Literal["full", "normal"]
#: When a store in files puts small files together: `Store`.
Compaction = Literal["automatic", "on_request", "always"]
#: Whether values are stored as differences from earlier ones: `Store`.
ValueDifferences = Literal["auto", "on", "off"]
#: Whether a coordinator keeps a snapshot beside each exchange.
SnapshotPolicy = Literal["off", "auto"]
#: Which versions a merge accepts: `Store.merge`.
Relation = Literal["any", "related", "unrelated"]
#: Which heads are merged: those without a branch, or all. `Heads` says more.
HeadSelection = Literal["unbranched", "all"]
#: How versions lie at a place: in packs, in single files, or in both.
Layout = Literal["packed", "interchange", "bridged"]
#: What stands once a conflict is closed: what a side had, or what stands now.
Choice = Literal["newer", "older", "result"]
#: What a member of an encrypted place is, for people.
MemberKind = Literal["device", "host", "recovery"]
#: A level of the library's messages.
LogLevelName = Literal["error", "warning", "info", "debug"]
