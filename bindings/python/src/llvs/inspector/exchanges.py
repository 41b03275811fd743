"""With whom the store exchanges versions, as far as it can be told from the store, and what is wrong with it by name."""

from __future__ import annotations

from typing import Any

import llvs

from .inspected import WHO, Inspected, metadata_of

#: Versions that are looked at for who made them.
LOOKED = 20_000


def attached(inspected: Inspected) -> dict[str, Any]:
    """Who made the newest versions, and when last; what waits, and what is damaged."""
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
        device = devices.setdefault(name, {"name": name, "versions": 0, "last": version.timestamp, "version": version.id})
        device["versions"] += 1
        if version.timestamp > device["last"]:
            device.update(last=version.timestamp, version=version.id)
    statistics = inspected.store.statistics()
    problems = []
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
        "devices": sorted(devices.values(), key=lambda device: -device["last"])[:200],
        "looked": looked,
        "isAll": looked < LOOKED,
        "problems": problems,
    }


def verified(store: llvs.Store) -> dict[str, Any]:
    """Everything read again, with each damage by name. Cost: the size of the store."""
    report = store.verify()
    return {
        "versions": report.versions, "values": report.values, "pending": report.pending,
        "damages": [
            {"file": damage.file, "offset": damage.offset, "message": damage.message, "version": damage.version,
             "value": damage.value_id, "lost": damage.lost.value}
            for damage in (*report.damages, *report.unfinished)[:500]
        ],
    }
