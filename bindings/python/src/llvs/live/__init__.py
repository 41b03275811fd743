"""Direct connections of two stores, and devices nearby."""

from __future__ import annotations

# Type checkers treat this name as true.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from .links import Link as Link, Listener as Listener, connect as connect, listen as listen
    from .nearby import Device as Device, Nearby as Nearby
    from .peer import (
        Peer as Peer,
        PeerPhase as PeerPhase,
        PeerState as PeerState,
        device_key as device_key,
        make_invitation as make_invitation,
        make_pairing as make_pairing,
    )
else:
    from .._names import attach

    __getattr__, __dir__, __all__ = attach(
        __name__,
        {
            "live.links": "Link Listener connect listen",
            "live.nearby": "Device Nearby",
            "live.peer": "Peer PeerPhase PeerState device_key make_invitation make_pairing",
        },
    )
