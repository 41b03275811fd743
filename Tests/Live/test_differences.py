"""Values that are stored as differences, to and from the peer in plain Python."""

from __future__ import annotations

import random
import struct
import sys
from pathlib import Path

import live_peer
import pytest

import llvs

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "Python"))

import format_reader
import value_differences

PAIRING = bytes(range(48))
#: The feature bit.
DIFFERENCES = 128


class Reader(live_peer.Peer):
    features = DIFFERENCES


def record_of(payload: bytes) -> format_reader.Version:
    size, at = live_peer.read_varint(payload, 1)
    return format_reader.read_record(payload[at : at + size])


def values_of(payloads: list[bytes]) -> dict[str, bytes]:
    """The note at each of the versions, which are successive."""
    values: dict[str, bytes] = {}
    for payload in payloads:
        version = record_of(payload)
        change = version.changes[b"note"]
        stored = version.bodies[change.offset + 8 : change.offset + 8 + change.stored_size]
        if change.is_difference:
            difference = value_differences.parse(stored, change.size)
            assert stored[0] == 0 and difference.base_body == 0 and value_differences.has_content_form(difference.base)
            stored = value_differences.apply(stored, change.size, values[difference.base])
        values[version.id] = stored
    return values


def edits(store: llvs.Store, count: int) -> dict[str, bytes]:
    """Saves edits of a note, of few bytes and of many."""
    draw = random.Random(1)
    note, head, saved = b" ".join(b"%d" % draw.randrange(10_000) for _ in range(2_000)), None, {}
    for number in range(count):
        head = store.make_version(head, update={"note": note})
        saved[head.id] = note
        at = draw.randrange(len(note))
        note = note[:at] + b" ".join(b"%d" % draw.randrange(10_000) for _ in range(100 if number % 5 == 0 else 1)) + note[at:]
    return saved


@pytest.mark.parametrize("is_initiator", [False, True])
def test_what_the_library_sends(is_initiator: bool) -> None:
    with llvs.Store(storage="memory") as store:
        saved = edits(store, 20)
        for kind in (live_peer.Peer, Reader):
            peer = kind(is_initiator, PAIRING)
            with llvs.live.Peer(store, PAIRING, initiator=not is_initiator) as end:
                live_peer.carry(*((peer, end) if is_initiator else (end, peer)))
            payloads = [peer.payloads[version] for version in peer.received]
            assert values_of(payloads) == saved
            count = sum(record_of(payload).changes[b"note"].is_difference for payload in payloads)
            assert count == (19 if kind is Reader else 0)


def test_what_the_library_takes() -> None:
    with llvs.Store(storage="memory") as store:
        saved = edits(store, 20)
        source = Reader(True, PAIRING)
        with llvs.live.Peer(store, PAIRING, initiator=False) as end:
            live_peer.carry(source, end)
    with llvs.Store(storage="memory") as store, llvs.live.Peer(store, PAIRING, initiator=False) as end:
        peer = Reader(True, PAIRING)
        for version in source.received:
            peer.add(source.payloads[version])
        live_peer.carry(peer, end)
        assert peer.their_hello is not None
        said = struct.unpack_from("<I", peer.their_hello, live_peer.behind_names(peer.their_hello) + 16 + 8 + 16 + 8)[0]
        assert said & DIFFERENCES
        assert {version: store.at(version)["note"] for version in saved} == saved
        assert store.verify().damages == ()


@pytest.mark.parametrize("at", [0, 40, 60])
def test_a_damaged_difference_ends_the_link(at: int) -> None:
    """A byte of the difference is changed, and its checksums are correct."""
    with llvs.Store(storage="memory") as store:
        edits(store, 2)
        source = Reader(True, PAIRING)
        with llvs.live.Peer(store, PAIRING, initiator=False) as end:
            live_peer.carry(source, end)
    payloads = [bytearray(source.payloads[version]) for version in source.received]
    version = record_of(bytes(payloads[1]))
    change = version.changes[b"note"]
    size, start = live_peer.read_varint(payloads[1], 1)
    body = start + size - len(version.bodies) + change.offset
    payloads[1][body + 8 + at] ^= 0x55
    covered = struct.pack("<I", change.stored_size | 1 << 31), b"note", version.id.encode()
    checksum = format_reader.checksum(*covered, bytes(payloads[1][body + 8 : body + 8 + change.stored_size]))
    payloads[1][body : body + 4] = struct.pack("<I", checksum)
    with llvs.Store(storage="memory") as store, llvs.live.Peer(store, PAIRING, initiator=False) as end:
        peer = Reader(True, PAIRING)
        for payload in payloads:
            peer.add(bytes(payload))
        with pytest.raises(llvs.StorageError, match=f"broke a rule: {version.id}"):
            live_peer.carry(peer, end)
        assert version.id not in store
