"""What is known of a place in packs."""

from __future__ import annotations

import ctypes
from typing import NamedTuple, Optional

from . import _constants as c, _structs
from ._memory import copy, decode


class RemoteWriter(NamedTuple):
    """Who writes to a place in packs."""

    #: The random number by which the place knows a device: 13 characters. A device that lost its memory has another one.
    id: str
    #: Of its newest pack.
    number: int
    #: When this device saw a new pack of it last, in seconds since 1970-01-01 UTC; None for this device.
    last_seen: Optional[float]
    #: Whether it is this device.
    here: bool
    #: What it is called, as it says itself (`Remote(device_name=...)`); None: it does not.
    name: Optional[str] = None


class RemoteStatus(NamedTuple):
    """What a device knows of a place in packs, as of its last exchange there."""

    #: "packed" or "bridged".
    layout: str
    #: The number of the newest keys; None: it is not encrypted.
    epoch: Optional[int]
    #: Six words over the newest pack of each writer: two devices that were shown the same, and have read it, have the same; for people to
    #: compare. Empty when there is none.
    fingerprint: str
    #: How many packs lay there when all were listed last.
    packs: int
    #: Their bytes, large values not counted.
    bytes: int
    #: When that was, in seconds since 1970-01-01 UTC; None: not yet.
    listed: Optional[float]
    #: All whose newest pack is there, by their ids.
    writers: tuple[RemoteWriter, ...]


def _text(bytes: _structs.llvs_bytes) -> str:
    return decode(copy(bytes.data, bytes.size)) if bytes.size else ""


def read_remote_status(address: int) -> RemoteStatus:
    """What an `llvs_remote` at this address says, copied."""
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
