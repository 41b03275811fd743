"""The devices with which the store exchanges versions, as far as the store shows them, and the problems of exchanges."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any

import llvs

from ..tools.failures import Failure
from ..tools.remotes import Remotes
from .inspected import WHO, Inspected, NotFound, metadata_of

#: The number of newest versions in which authors are searched.
LOOKED = 20_000
#: The largest number of problems of an exchange that are listed.
MOST = 200
_scheme = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")


def attached(inspected: Inspected) -> dict[str, Any]:
    """Returns the authors of the newest versions, with the time of the last one of each; pending versions; and damage."""
    devices: dict[str, dict[str, Any]] = {}
    looked = 0
    for version in inspected.store.history():
        if looked == LOOKED:
            break
        looked += 1
        metadata = metadata_of(version)
        name = next((metadata[key] for key in reversed(WHO) if metadata.get(key)), None)
        if name is None:
            continue
        device = devices.setdefault(name, {"name": name, "versions": 0, "last": version.made_at, "version": version.id})
        device["versions"] += 1
        if version.made_at > device["last"]:
            device.update(last=version.made_at, version=version.id)
    statistics = inspected.store.statistics()
    problems: list[dict[str, Any]] = []
    places: dict[str, dict[str, Any]] = {}
    strange: set[str] = set()
    try:
        known = Remotes(Path(inspected.path), inspected.storage)
        places = known.places
        strange = {name for name in places if not known.is_trusted(name)}
    except (Failure, OSError) as problem:
        problems.append({"name": "Remotes that cannot be read", "count": 1, "what": str(problem)})
    if statistics.pending:
        problems.append({
            "name": "Versions that wait",
            "count": statistics.pending,
            "what": "Their ancestors are not here yet. They appear by themselves when an exchange has brought those.",
        })
    if statistics.damaged:
        problems.append({
            "name": "Damaged places",
            "count": statistics.damaged,
            "what": "Bytes are not what was written. Verify the store; an exchange repairs what others still have.",
        })
    return {
        "remotes": [
            {
                "name": name, "url": place["url"], "canExchange": inspected.write and is_folder(place["url"]) and name not in strange,
                **inspected.exchanged.get(name, {}),
            }
            for name, place in sorted(places.items())
        ],
        "devices": sorted(devices.values(), key=lambda device: -device["last"])[:200],
        "looked": looked,
        "isAll": looked < LOOKED,
        "problems": problems,
    }


def is_folder(url: str) -> bool:
    """Returns whether a place is a folder. Other places may ask for a password, and this process may have no person at its terminal."""
    return not _scheme.match(url)


def exchange(inspected: Inspected, name: str) -> str:
    """Exchanges with a remote that is a folder, and records the result, with its problems. Returns the message for the page.

    Raises NotFound, llvs.Error.
    """
    try:
        known = Remotes(Path(inspected.path), inspected.storage)
        places = known.places
    except (Failure, OSError) as problem:
        raise NotFound(str(problem)) from None
    if name not in places:
        raise NotFound("There is no such remote.")
    if not is_folder(places[name]["url"]):
        raise NotFound("This remote is reached over a network, and may ask for a password: use `llvs exchange` for it.")
    try:
        known.checked(name)
    except Failure as problem:
        raise NotFound(str(problem)) from None
    told: dict[str, Any] = {"last": time.time(), "retrieved": 0, "sent": 0, "problems": [], "error": None}
    try:
        with llvs.Exchange(inspected.store, places[name]["url"]) as there:
            for step in (there.retrieve, there.send):
                done = step()
                told["retrieved"] += len(done.retrieved)
                told["sent"] += len(done.sent)
                told["problems"] += [{"name": problem.name, "reason": str(problem.reason)} for problem in done.problems]
        told["problems"] = told["problems"][:MOST]
    except llvs.Error as problem:
        told["error"] = str(problem)
    inspected.exchanged[name] = told
    if told["error"]:
        return f"The exchange failed: {told['error']}"
    return f"{told['retrieved']} versions came, {told['sent']} were sent."


def verified(store: llvs.Store) -> dict[str, Any]:
    """Reads everything in the store again, and lists each damage by name. Cost: the size of the store."""
    report = store.verify()
    return {
        "versions": report.versions, "values": report.values, "pending": report.pending,
        "damages": [
            {"file": damage.file, "offset": damage.offset, "message": damage.message, "version": damage.version,
             "value": damage.value_id, "lost": damage.lost.value}
            for damage in (*report.damages, *report.unfinished)[:500]
        ],
    }
