"""A version in words, and as JSON."""

from __future__ import annotations

import functools
import time
from datetime import datetime, timezone
from typing import Any, Mapping, Optional

import llvs

from .versions import SHOWN

#: Where programs say who made a version, and what it is, in the order in which they are looked for.
_WHO = ("author", "device", "user", "__llvs_device")
_WHAT = ("__llvs_description", "message", "description", "why", "title")
#: The signs of changes; others are "=".
SIGNS = {llvs.ChangeKind.INSERT: "+", llvs.ChangeKind.UPDATE: "~", llvs.ChangeKind.REMOVE: "-"}
#: How many changes are in one line, at most.
SHOWN_CHANGES = 3


def _first_text(metadata: Mapping[str, Any], keys: tuple[str, ...]) -> str:
    for key in keys:
        found = metadata.get(key)
        if isinstance(found, str) and found:
            return found
    return ""


def who(version: llvs.Version) -> str:
    """Who made it, as the metadata says; "" where it does not."""
    return _first_text(version.metadata, _WHO)


def full_text(version: llvs.Version) -> str:
    """What the metadata says that it did, in lines; "" where it does not."""
    return _first_text(version.metadata, _WHAT)


def title(version: llvs.Version) -> str:
    """What it did, in one line: as it was described, else what can be told from its predecessors."""
    metadata = version.metadata
    text = _first_text(metadata, _WHAT).strip()
    again = "undo: " if "__llvs_undo" in metadata else "redo: " if "__llvs_redo" in metadata else ""
    if text or again:
        return again + text.partition("\n")[0] if text else again.removesuffix(": ")
    if len(version.predecessors) == 2:
        return "merge of " + " and ".join(id[:SHOWN] for id in version.predecessors)
    return "" if version.predecessors else "empty root" if version.timestamp == 978_307_200.0 else "first version"


def changed(store: llvs.Store, version: llvs.Version) -> str:
    """Which values a version changed, for one that says nothing of itself: "~ note/1, + note/2 and 5 more"."""
    try:
        changes = list(store.changes(version, with_data=False))
    except llvs.Error:
        return ""  # it is damaged, which other commands say better
    shown = ", ".join(f"{SIGNS.get(change.kind, '=')} {change.id}" for change in changes[:SHOWN_CHANGES])
    more = len(changes) - SHOWN_CHANGES
    return f"{shown} and {more} more" if more > 0 else shown


def short(version: llvs.Version) -> str:
    """A version in one line, for messages: "3E6318F1 2026-11-22 14:03 ann: Buy tea"."""
    author, said = who(version), title(version)
    return f"{version.id[:SHOWN]} {minute(version.made_at)}" + (f" {author}" if author else "") + (f": {said}" if said else "")


@functools.lru_cache(maxsize=4096)
def _quarter(quarter: int) -> str:
    return time.strftime("%Y-%m-%d %H:", time.localtime(quarter * 900))


def minute(timestamp: float) -> str:
    """A time in this computer's zone, to the minute."""
    # Zones are whole quarters of an hour away from UTC.
    quarter, seconds = divmod(int(timestamp // 1), 900)
    if not 0 <= quarter < 70_000_000:
        return moment(timestamp)[:16]
    return f"{_quarter(quarter)}{int(_quarter_start(quarter) + seconds // 60):02d}"


@functools.lru_cache(maxsize=4096)
def _quarter_start(quarter: int) -> int:
    return time.localtime(quarter * 900).tm_min


def moment(timestamp: float) -> str:
    """A time in this computer's zone, to the second, with the zone."""
    try:
        return datetime.fromtimestamp(timestamp, timezone.utc).astimezone().strftime("%Y-%m-%d %H:%M:%S %z")
    except (OverflowError, ValueError, OSError):
        return f"{timestamp:.0f} seconds since 1970"


def iso(timestamp: float) -> Optional[str]:
    """A time in UTC as ISO 8601; None for one that no calendar holds."""
    try:
        return datetime.fromtimestamp(timestamp, timezone.utc).isoformat(timespec="microseconds").replace("+00:00", "Z")
    except (OverflowError, ValueError, OSError):
        return None


def as_json(version: llvs.Version) -> dict[str, Any]:
    """The shape of a version: docs/command.md states it."""
    return {
        "id": version.id,
        "predecessors": list(version.predecessors),
        "time": iso(version.made_at),
        "timestamp": version.timestamp,
        "branch": version.branch,
        "size": version.value_data_size,
        "metadata": {key: jsonable(value) for key, value in version.metadata.items()},
    }


def jsonable(value: Any) -> Any:
    """What is no JSON of the metadata, as JSON."""
    if isinstance(value, bytes):
        import base64

        return {"base64": base64.b64encode(value).decode()}
    return value
