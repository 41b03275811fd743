"""How many bytes a side allows the other one to have in flight: few at first, more as it consumes them, and never more than 16 MiB."""

from __future__ import annotations

import os
from typing import Iterator

import live_peer
import pytest

import llvs

PAIRING = bytes(range(48))
#: The bytes of frames and messages besides those of versions.
BESIDE = 65_536
MIB = 1 << 20


@pytest.fixture
def stores() -> Iterator[tuple[llvs.Store, llvs.Store]]:
    with llvs.Store(storage="memory") as one, llvs.Store(storage="memory") as two:
        for number in range(48):
            one.make_version(insert={f"{number}": os.urandom(1_000_000)}, root=True)
        yield one, two


def turns(one: llvs.live.Peer, two: llvs.live.Peer) -> list[int]:
    """Carries bytes as over a distant link: each side sends all that it may before it receives anything of the other. Returns how much one
    side sent each time."""
    said = []
    while True:
        there = b"".join(iter(lambda: one.send(1 << 20), b""))
        if there:
            two.receive(there)
        back = b"".join(iter(lambda: two.send(1 << 20), b""))
        if back:
            one.receive(back)
        if not there and not back:
            return said
        said.append(len(there))


def test_a_distant_side_may_send_more_and_more(stores: tuple[llvs.Store, llvs.Store]) -> None:
    with llvs.live.Peer(stores[0], PAIRING, initiator=True) as one, llvs.live.Peer(stores[1], PAIRING, initiator=False) as two:
        said = [count for count in turns(one, two) if count > 100_000]
        assert two.state.received == 48 and one.state.phase == llvs.live.PeerPhase.IN_STEP
    assert said[0] <= MIB + BESIDE and 8 * MIB < max(said) <= 16 * MIB + BESIDE
    assert len(said) <= 8, "of 4 MiB each time there would be 12"


def test_what_is_said_of_it(stores: tuple[llvs.Store, llvs.Store]) -> None:
    """What the peer in plain Python receives about credit: the window in HELLO, and CREDIT. At most 16 MiB of it are left at any time."""
    with llvs.live.Peer(stores[0], PAIRING, initiator=True) as one, llvs.live.Peer(stores[1], PAIRING, initiator=False) as two:
        turns(one, two)
    source = live_peer.Peer(True, PAIRING)
    with llvs.live.Peer(stores[0], PAIRING, initiator=False) as end:
        live_peer.carry(source, end)
    with llvs.Store(storage="memory") as empty, llvs.live.Peer(empty, PAIRING, initiator=False) as end:
        peer, most = live_peer.Peer(True, PAIRING), 0
        for payload in source.payloads.values():
            peer.add(payload)
        first = None
        while data := peer.take():
            end.receive(data)
            while data := end.send():
                peer.receive(data)
            if peer.their_hello is not None and first is None:
                first = peer.credit
            most = max(most, peer.credit)
        assert end.state.received == 48
    assert first is not None and first <= MIB and 14 * MIB < most <= 16 * MIB
