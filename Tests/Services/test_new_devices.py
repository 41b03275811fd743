"""The requests of a device that is new, or was away: five writers, each with sixteen exchanges, packed."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Union

import llvs
import pytest
from box import Box
from clouds import Cloud, exchange, ids, save
from containers import Container
from deep import usually
from drive import GoogleDrive
from onedrive import OneDrive
from pcloud import PCloud

KINDS: dict[str, Any] = {"gdrive": GoogleDrive, "onedrive": OneDrive, "box": Box, "pcloud": PCloud, "cloudkit": None}
WRITERS, EXCHANGES, PACKS = 5, 16, 85
#: The largest number of requests of a new device.
NEW = {"gdrive": 89, "onedrive": 89, "box": 180, "pcloud": 175, "cloudkit": 10}
#: The requests for lists (including those for the path) and the requests for each file, by service.
EACH = {"gdrive": (3, 1), "onedrive": (3, 1), "box": (8, 2), "pcloud": (3, 2)}
#: The limit of the design for a new device. It does not hold where each file has a link of its own (docs/performance.md).
BOUND, ABOVE = 120, ("box", "pcloud")


def packs(place: Union[Cloud, Container]) -> set[str]:
    if isinstance(place, Container):
        return {name for name in place.records("LLVS_Pack") if "_r_" not in name}
    nodes = place.service.tree.nodes.values()  # type: ignore[attr-defined]
    return {node.name for node in nodes if node.data is not None and node.name.count("-") >= 2}


#: A service within the limit, one with a link for each file, and one with records.
@pytest.mark.parametrize("kind", usually([*KINDS], "gdrive", "box", "cloudkit"))
def test_requests(kind: str, tmp_path: Path, new_store: Any) -> None:
    cloud = Container(tmp_path) if kind == "cloudkit" else Cloud(KINDS[kind](), kind, tmp_path)
    place, away, new = cloud.place(layout="packed"), new_store(), new_store()
    stores = [new_store() for _ in range(WRITERS)]
    ways = [llvs.Exchange(store, place) for store in stores]
    there: set[str] = set()

    def retrieve(store: llvs.Store) -> int:
        def work() -> None:
            with llvs.Exchange(store, place) as way:
                assert not way.retrieve().problems

        asked = len(cloud.count(work))
        assert len(ids(store)) == WRITERS * EXCHANGES
        return asked

    try:
        for number in range(EXCHANGES):
            for writer, (store, way) in enumerate(zip(stores, ways)):
                way.retrieve()
                save(store, f"{number}.{writer}")
                way.send()
            if number == EXCHANGES // 2:
                exchange(away, place)
                there = packs(cloud)
        now = packs(cloud)
        asked = retrieve(new)
        assert len(now) <= PACKS and asked <= NEW[kind], (len(now), asked)
        assert (asked <= BOUND) == (kind not in ABOVE), asked
        asked = retrieve(away)
        if kind == "cloudkit":
            assert asked <= NEW[kind] // 2, asked
        else:
            lists, each = EACH[kind]
            assert asked <= lists + each * len(now - there), (asked, len(now - there))
    finally:
        for way in ways:
            way.close()
        cloud.close()
