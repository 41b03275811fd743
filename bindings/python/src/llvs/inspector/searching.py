"""Finds versions: by id, by the text of their metadata, by a value, by time."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Iterator, Optional

import llvs

from .inspected import Inspected, metadata_of, told

#: The number of versions whose metadata one search reads.
SCANNED = 200_000

#: What a version did to a value.
_DONE = {
    llvs.store.ChangeKind.INSERT: "added this value",
    llvs.store.ChangeKind.UPDATE: "changed this value",
    llvs.store.ChangeKind.REMOVE: "removed this value",
    llvs.store.ChangeKind.PRESERVE: "kept this value",
    llvs.store.ChangeKind.PRESERVE_REMOVAL: "kept this value removed",
}


def moment(text: str) -> Optional[float]:
    """Returns seconds since 1970 of a date or time in ISO 8601, in this computer's zone unless it names one; None for any other text."""
    words = text.strip()
    if len(words) < 8 or not words[:4].isdigit():
        return None
    try:
        found = datetime.fromisoformat(words.replace("Z", "+00:00") if words.endswith("Z") else words)
        if len(words) == 10:
            found = found.replace(hour=23, minute=59, second=59, microsecond=999_999)
        return found.timestamp()
    except (ValueError, OverflowError, OSError):
        return None


def search(inspected: Inspected, text: str, limit: int) -> dict[str, Any]:
    """Returns the versions that match a text, each with the reason, the newest first for each kind of reason."""
    found: list[dict[str, Any]] = []
    seen: set[str] = set()
    for why, version in _candidates(inspected, text):
        if version.id in seen:
            continue
        seen.add(version.id)
        found.append({**told(inspected.store, version), "why": why})
        if len(found) == limit:
            break
    return {"found": found, "cut": len(found) == limit}


def _candidates(inspected: Inspected, text: str) -> Iterator[tuple[str, llvs.Version]]:
    store = inspected.store
    time = moment(text)
    if time is not None:
        version = store.version_at(time)
        if version is not None:
            yield "stood at that time", version
    beginning = text.strip().lower()
    if len(beginning) >= 2 and all(character.isalnum() or character in "-_" for character in beginning):
        for id in inspected.index.ids():
            if id.lower().startswith(beginning):
                yield "id", store[id]
    for name, head in store.branches().items():
        if beginning in name.lower():
            yield "branch", head
    if 0 < len(text.encode("utf-8", "replace")) <= 4096:
        for version, kind in store.value_history(text):
            yield _DONE[kind], version
    wanted = text.casefold()
    for scanned, version in enumerate(store.history()):
        if scanned == SCANNED:
            return
        if any(wanted in key.casefold() or wanted in value.casefold() for key, value in metadata_of(version).items()):
            yield "in its metadata", version
