"""What this device knows about a place in the packed layout."""

from __future__ import annotations

import ctypes
from typing import NamedTuple, Optional

from .._abi.memory import copy, decode
from .._generated import constants as c, structs as _structs


class RemoteWriter(NamedTuple):
    """A writer of a place in the packed layout."""

    #: The random number that identifies a writer at the place: 13 characters. A device that lost its memory of the place gets another one.
    id: str
    #: Of its newest pack.
    number: int
    #: When this device last saw a new pack of that writer, in seconds since 1970-01-01 UTC; None for this device.
    last_seen: Optional[float]
    #: Whether it is this device.
    here: bool
    #: The name that it gave itself (`Remote(device_name=...)`); None: it has none.
    name: Optional[str] = None


class RemoteStatus(NamedTuple):
    """What this device knows about a place in the packed layout, as of its last exchange there."""

    #: "packed" or "bridged".
    layout: str
    #: The number of the newest keys; None: it is not encrypted.
    epoch: Optional[int]
    #: Six words that identify the newest packs of all writers, for people to compare: if two devices have read the same packs, they have
    #: the same words. Empty if there are no packs.
    fingerprint: str
    #: How many packs there were at the last full listing.
    packs: int
    #: The bytes of these packs, without large values.
    bytes: int
    #: When that was, in seconds since 1970-01-01 UTC; None: not yet.
    listed: Optional[float]
    #: All writers whose newest pack is at the place, in order of their ids.
    writers: tuple[RemoteWriter, ...]


def _text(bytes: _structs.llvs_bytes) -> str:
    return decode(copy(bytes.data, bytes.size)) if bytes.size else ""


def read_remote_status(address: int) -> RemoteStatus:
    """Returns a copy of the `llvs_remote` at this address."""
    raw = _structs.llvs_remote.from_address(address)
    writers = []
    for i in range(raw.writer_count):
        place = ctypes.c_void_p.from_address(raw.writers + i * ctypes.sizeof(ctypes.c_void_p)).value or 0
        one = _structs.llvs_remote_writer.from_address(place)
        writers.append(RemoteWriter(_text(one.id), one.number, one.last_seen or None, bool(one.here), _text(one.name) or None))
    return RemoteStatus(
        "bridged" if raw.layout == c.LAYOUT_BRIDGED else "packed",
        raw.epoch or None,
        _text(raw.fingerprint),
        raw.packs,
        raw.bytes,
        raw.listed or None,
        tuple(writers),
    )
