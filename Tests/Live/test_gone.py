"""Versions without bytes of values, to and from the peer in plain Python."""

from __future__ import annotations

import uuid

import live_peer
import pytest

import llvs

PAIRING = bytes(range(48))


def form(id: str) -> bytes:
    """The id as it is in frames."""
    return b"\0" + uuid.UUID(id).bytes


class Reader(live_peer.Peer):
    """Has the feature bit."""

    features = 32


def erased() -> tuple[llvs.Store, list[str]]:
    store = llvs.Store(storage="memory")
    first = store.make_version(insert={"small": b"secret", "vast": bytes(1_100_000), "note": b"1"})
    made = store.erase("small", "vast").made[0]
    beside = store.make_version(insert={"beside": b"2"}, root=True)
    return store, [first.id, made, beside.id]


@pytest.mark.parametrize("is_initiator", [False, True])
def test_what_the_library_sends(is_initiator: bool) -> None:
    """A peer that does not have the feature gets neither the version nor what builds on it."""
    store, (first, made, beside) = erased()
    with store:
        for kind in (live_peer.Peer, Reader):
            peer = kind(is_initiator, PAIRING)
            with llvs.live.Peer(store, PAIRING, initiator=not is_initiator) as end:
                live_peer.carry(*((peer, end) if is_initiator else (end, peer)))
            assert set(peer.received) == set(map(form, (first, made, beside) if kind is Reader else (beside,)))
            if kind is Reader:
                assert b"secret" not in peer.payloads[form(first)] and b"note" in peer.payloads[form(first)]


def test_what_the_library_takes() -> None:
    store, ids = erased()
    with store:
        source = Reader(True, PAIRING)
        with llvs.live.Peer(store, PAIRING, initiator=False) as end:
            live_peer.carry(source, end)
    with llvs.Store(storage="memory") as other:
        peer = Reader(True, PAIRING)
        for version in source.received:
            peer.add(source.payloads[version])
        with llvs.live.Peer(other, PAIRING, initiator=False) as end:
            live_peer.carry(peer, end)
        assert {version.id for version in other.history()} == set(ids)
        with pytest.raises(llvs.errors.ForgottenError):
            other.value("small", at=ids[0])
        assert other.value_size("vast", at=ids[0]) == 1_100_000
