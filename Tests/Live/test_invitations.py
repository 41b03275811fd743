"""Invitations: the library against the peer in plain Python, and a device that gets its pairing over a socket."""

from __future__ import annotations

import hashlib
import hmac
import random
from typing import Iterator

import live_peer
import pytest

import llvs

PAIRING = bytes(range(48))
DIGITS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


@pytest.fixture
def stores() -> Iterator[tuple[llvs.Store, llvs.Store]]:
    with llvs.Store(storage="memory") as one, llvs.Store(storage="memory") as two:
        two.make_version(insert={"greeting": b"hello"})
        yield one, two


def code_of(secret: bytes) -> str:
    """As docs/live-protocol.md says it."""
    number = int.from_bytes(secret, "big")
    digits = "".join(DIGITS[number >> 5 * place & 31] for place in reversed(range(26)))
    return "-".join((digits[:5], digits[5:10], digits[10:15], digits[15:20], digits[20:]))


def pairing_of(secret: bytes) -> bytes:
    def derived(info: bytes) -> bytes:
        key = hmac.new(bytes(32), secret, hashlib.sha256).digest()
        return hmac.new(key, info + b"\1", hashlib.sha256).digest()

    return derived(b"llvs invitation id")[:16] + derived(b"llvs invitation key")


class Inviting(live_peer.Peer):
    """Says PAIRING before all else."""

    def hello(self) -> None:
        self.frame(14, PAIRING)
        super().hello()


def test_the_peer_made_from_the_page_invites(stores: tuple[llvs.Store, llvs.Store]) -> None:
    random_ = random.Random(3)
    for secret in (bytes(16), b"\xff" * 16, random_.randbytes(16), random_.randbytes(16)):
        peer = Inviting(False, pairing_of(secret))
        with llvs.Peer(stores[1], initiator=True, invitation=code_of(secret)) as end:
            live_peer.carry(end, peer)
            assert end.state.pairing == PAIRING and end.state.phase == llvs.PeerPhase.IN_STEP
        assert len(peer.payloads) == 1


def test_a_pairing_that_was_not_asked_for(stores: tuple[llvs.Store, llvs.Store]) -> None:
    peer = Inviting(False, PAIRING)
    with llvs.Peer(stores[1], PAIRING, initiator=True) as end:
        with pytest.raises(llvs.StorageError):
            live_peer.carry(end, peer)
        assert end.state.pairing == b""


def test_codes_are_those_of_the_page() -> None:
    code = llvs.make_invitation()
    number = 0
    for digit in code.replace("-", ""):
        number = number << 5 | DIGITS.index(digit)
    assert code_of(number.to_bytes(16, "big")) == code and code != llvs.make_invitation()


def test_an_invitation_is_good_once_and_for_a_time(stores: tuple[llvs.Store, llvs.Store]) -> None:
    one, two = stores
    with llvs.listen({PAIRING: two}, ("127.0.0.1", 0)) as listener:
        with pytest.raises(KeyError):
            listener.invite(bytes(48))
        code = listener.invite(PAIRING)
        with llvs.connect(one, listener.address, invitation=code.lower()) as link:
            assert link.wait(60) and link.pairing == PAIRING
        assert one.most_recent_head == two.most_recent_head
        for late in (code, listener.invite(PAIRING, seconds=0)):
            with llvs.connect(one, listener.address, invitation=late) as link:
                with pytest.raises((llvs.ExchangeDataError, OSError)):
                    link.wait(60)
                assert link.pairing == b""
        with llvs.connect(one, listener.address, PAIRING) as link:
            assert link.wait(60)
    with pytest.raises(llvs.InvalidArgumentError):
        llvs.Peer(one, initiator=True)
    with pytest.raises(llvs.InvalidArgumentError):
        llvs.Peer(one, initiator=True, invitation="no code")
