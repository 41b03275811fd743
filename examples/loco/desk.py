"""One window with both devices, and a cable between them that can be pulled out."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Any, Optional

from llvs.inspector.guard import framing

import told
from server import PAGE, Answering, Pages, Server, files_of

#: The number of versions that are shown beside the cable.
SHOWN = 9


class Desk(Pages):
    """Serves the window. The pages of the devices are frames in it; this process controls the cable."""

    def __init__(self, port: int, devices: list[Server]) -> None:
        super().__init__(port, DeskHandler, {"api.js": PAGE / "api.js", **files_of(Path(__file__).parent / "desk")})
        self.devices = devices
        self.headers = framing(frames=[device.origin for device in devices])
        for device in devices:
            device.headers = framing(framed_by=self.origin)
            device.news.also.append(self.news)

    def tell(self) -> dict[str, Any]:
        """Returns whether the cable is plugged in, and the newest versions with the devices that have them."""
        stores = [device.book.notes.store for device in self.devices]
        found = {version.id: (version, store) for store in stores for version in islice(store.history(), SHOWN)}
        newest = sorted(found.values(), key=lambda one: (-one[0].timestamp, one[0].id))[:SHOWN]
        return {
            "isPlugged": all(device.book.is_online for device in self.devices),
            "devices": [device.book.device for device in self.devices],
            "versions": [
                {"id": version.id, "what": told.what(store, version), "by": told.by(store, version),
                 "isMerge": len(version.predecessors) > 1, "at": [version.id in one for one in stores]}
                for version, store in newest
            ],
        }


class DeskHandler(Answering):
    """A request of the window."""

    def _get(self, path: str, query: dict[str, str]) -> None:
        if path == "/api/desk":
            self._json(self.server.tell())
        else:
            super()._get(path, query)

    def _do(self, what: str, given: dict[str, Any]) -> Optional[dict[str, Any]]:
        if what == "enter":
            # An address admits one frame, and only once.
            return {"addresses": [device.guard.new_address() for device in self.server.devices]}
        if what != "plug":
            raise KeyError(what)
        for device in self.server.devices:
            device.book.set_online(given["isPlugged"] is True)
        return None
