"""A version in words, and as JSON."""

from __future__ import annotations

import functools
import time
from datetime import datetime, timezone
from typing import Any, Mapping, Optional

import llvs

from .versions import SHOWN

#: The metadata keys under which programs name the author of a version, and describe it, in order of preference.
_WHO = ("author", "device", "user", "__llvs_device")
_WHAT = ("__llvs_description", "message", "description", "why", "title")
#: The signs of the kinds of changes; other kinds have "=".
SIGNS = {llvs.store.ChangeKind.INSERT: "+", llvs.store.ChangeKind.UPDATE: "~", llvs.store.ChangeKind.REMOVE: "-"}
#: The largest number of changes in one line.
SHOWN_CHANGES = 3


def _first_text(metadata: Mapping[str, Any], keys: tuple[str, ...]) -> str:
    for key in keys:
        found = metadata.get(key)
        if isinstance(found, str) and found:
            return found
    return ""


def who(version: llvs.Version) -> str:
    """Returns the author in the metadata; "" if there is none."""
    return _first_text(version.metadata, _WHO)


def full_text(version: llvs.Version) -> str:
    """Returns the description in the metadata, with all its lines; "" if there is none."""
    return _first_text(version.metadata, _WHAT)


def title(version: llvs.Version) -> str:
    """Returns what the version did, in one line: its description, otherwise words for its predecessors."""
    metadata = version.metadata
    text = _first_text(metadata, _WHAT).strip()
    again = "undo: " if "__llvs_undo" in metadata else "redo: " if "__llvs_redo" in metadata else ""
    if text or again:
        return again + text.partition("\n")[0] if text else again.removesuffix(": ")
    if len(version.predecessors) == 2:
        return "merge of " + " and ".join(id[:SHOWN] for id in version.predecessors)
    return "" if version.predecessors else "empty root" if version.timestamp == 978_307_200.0 else "first version"


def changed(store: llvs.Store, version: llvs.Version) -> str:
    """Returns the values that a version without a description changed: "~ note/1, + note/2 and 5 more"."""
    try:
        changes = list(store.changes(version, with_data=False))
    except llvs.Error:
        return ""  # The record is damaged; other commands report that.
    shown = ", ".join(f"{SIGNS.get(change.kind, '=')} {change.id}" for change in changes[:SHOWN_CHANGES])
    more = len(changes) - SHOWN_CHANGES
    return f"{shown} and {more} more" if more > 0 else shown


def short(version: llvs.Version) -> str:
    """Returns a version in one line, for messages: "3E6318F1 2026-11-22 14:03 ann: Buy tea"."""
    author, said = who(version), title(version)
    return f"{version.id[:SHOWN]} {minute(version.made_at)}" + (f" {author}" if author else "") + (f": {said}" if said else "")


@functools.lru_cache(maxsize=4096)
def _quarter(quarter: int) -> str:
    return time.strftime("%Y-%m-%d %H:", time.localtime(quarter * 900))


def minute(timestamp: float) -> str:
    """Returns a time in this computer's zone, to the minute."""
    # Offsets of zones from UTC are multiples of a quarter of an hour.
    quarter, seconds = divmod(int(timestamp // 1), 900)
    if not 0 <= quarter < 70_000_000:
        return moment(timestamp)[:16]
    return f"{_quarter(quarter)}{int(_quarter_start(quarter) + seconds // 60):02d}"


@functools.lru_cache(maxsize=4096)
def _quarter_start(quarter: int) -> int:
    return time.localtime(quarter * 900).tm_min


def moment(timestamp: float) -> str:
    """Returns a time in this computer's zone, to the second, with the zone."""
    try:
        return datetime.fromtimestamp(timestamp, timezone.utc).astimezone().strftime("%Y-%m-%d %H:%M:%S %z")
    except (OverflowError, ValueError, OSError):
        return f"{timestamp:.0f} seconds since 1970"


def iso(timestamp: float) -> Optional[str]:
    """Returns a time in UTC as ISO 8601; None if it is beyond the calendar."""
    try:
        return datetime.fromtimestamp(timestamp, timezone.utc).isoformat(timespec="microseconds").replace("+00:00", "Z")
    except (OverflowError, ValueError, OSError):
        return None


def as_json(version: llvs.Version) -> dict[str, Any]:
    """Returns a version as JSON; docs/command.md describes its members."""
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
    """Returns a value of the metadata as JSON: bytes as Base64, all else unchanged."""
    if isinstance(value, bytes):
        import base64

        return {"base64": base64.b64encode(value).decode()}
    return value
