"""Pairing by digits that users compare: the library with the peer in plain Python, over sockets, and with an attacker in the middle."""

from __future__ import annotations

import hashlib
import os
import socket
from concurrent.futures import ThreadPoolExecutor
from typing import Callable, Iterator, Optional

import live_peer
import pytest
from patience import PATIENCE, eventually

import llvs

PAIRING = bytes(range(48))
#: Not secret: docs/live-protocol.md, section 1.
PUBLIC = bytes(16) + hashlib.sha256(b"llvs compare 1").digest()


@pytest.fixture
def stores() -> Iterator[tuple[llvs.Store, llvs.Store]]:
    with llvs.Store(storage="memory") as one, llvs.Store(storage="memory") as two:
        two.make_version(insert={"greeting": b"hello"})
        yield one, two


def comparing(listener: llvs.live.Listener) -> Callable[[], llvs.live.Link]:
    """Waits in `compare` on a thread of its own. Returns a function that returns its result, or raises its error."""
    pool = ThreadPoolExecutor(1)
    waiting = pool.submit(listener.compare, PAIRING, PATIENCE)
    pool.shutdown(wait=False)
    eventually(lambda: listener._compares)
    return lambda: waiting.result(PATIENCE)


class Comparing(live_peer.Peer):
    """Compares digits as docs/live-protocol.md describes it, with or without the pairing."""

    def __init__(self, initiator: bool, pairing: Optional[bytes] = None, nonce: Optional[bytes] = None) -> None:
        super().__init__(initiator, PUBLIC)
        self.pairing, self.nonce, self.digits = pairing, nonce or os.urandom(32), ""
        self.commitment, self.confirmed, self.received_pairing = b"", False, b""
        self.held: list[tuple[int, bytes]] = []

    def hello(self) -> None:
        if not self.initiator:
            self.frame(live_peer.COMMIT, hashlib.sha256(b"llvs commit 1" + self.handshake.hash + self.nonce).digest())

    def compare(self, first: bytes, second: bytes) -> None:
        digest = hashlib.sha256(b"llvs digits 1" + self.handshake.hash + first + second).digest()
        self.digits = f"{int.from_bytes(digest[:8], 'big') % 1_000_000:06}"

    def confirm(self) -> None:
        self.confirmed = True
        if self.pairing is not None:
            self.frame(live_peer.PAIRING, self.pairing)
        super().hello()
        for kind, payload in self.held:
            self.handle(kind, payload)

    def handle(self, kind: int, payload: bytes) -> None:
        if kind == live_peer.COMMIT:
            self.commitment = payload
            self.frame(live_peer.NONCE, self.nonce)
        elif kind == live_peer.NONCE:
            if self.initiator:
                assert self.commitment == hashlib.sha256(b"llvs commit 1" + self.handshake.hash + payload).digest()
                self.compare(self.nonce, payload)
            else:
                self.compare(payload, self.nonce)
                self.frame(live_peer.NONCE, self.nonce)
        elif kind == live_peer.PAIRING:
            self.received_pairing = payload
        elif not self.confirmed and kind == live_peer.HELLO:
            self.held.append((kind, payload))
        else:
            super().handle(kind, payload)


@pytest.mark.parametrize("initiator", [False, True])
@pytest.mark.parametrize("first", ["peer", "library"])
def test_the_peer_made_from_the_page(stores: tuple[llvs.Store, llvs.Store], initiator: bool, first: str) -> None:
    """Either side may confirm first. The library gives its pairing to the peer."""
    peer = Comparing(initiator)
    with llvs.live.Peer(stores[1], PAIRING, initiator=not initiator, compare=True) as end:
        live_peer.carry(peer, end)
        assert len(peer.digits) == 6 and end.state.digits == peer.digits
        for who in (first, "library" if first == "peer" else "peer"):
            assert not peer.received_pairing or first == "library"
            (peer if who == "peer" else end).confirm()
            live_peer.carry(peer, end)
        assert peer.received_pairing == PAIRING and end.state.pairing == b"" and end.state.phase == llvs.live.PeerPhase.IN_STEP
    assert len(peer.payloads) == 1
    # The peer gives its pairing to the library.
    peer = Comparing(initiator, PAIRING)
    with llvs.live.Peer(stores[0], initiator=not initiator, compare=True) as end:
        live_peer.carry(peer, end)
        assert end.state.digits == peer.digits != ""
        for who in (first, "library" if first == "peer" else "peer"):
            assert end.state.pairing == b"", "before both have confirmed"
            (peer if who == "peer" else end).confirm()
            live_peer.carry(peer, end)
        assert end.state.pairing == PAIRING and end.state.phase == llvs.live.PeerPhase.IN_STEP


@pytest.mark.parametrize("initiator", [False, True])
def test_a_number_that_was_not_committed_to(stores: tuple[llvs.Store, llvs.Store], initiator: bool) -> None:
    """A peer that waits for the other's number before it chooses its own is refused, and so is one that skips a step."""

    class Late(Comparing):
        def handle(self, kind: int, payload: bytes) -> None:
            if kind == live_peer.NONCE and not self.initiator:
                self.nonce = os.urandom(32)
            if kind == live_peer.COMMIT:
                self.frame(live_peer.PAIRING, PAIRING)
            super().handle(kind, payload)

    peer = Late(initiator, PAIRING)
    with llvs.live.Peer(stores[0], initiator=not initiator, compare=True) as end:
        with pytest.raises(llvs.StorageError, match="committed|comparison"):
            live_peer.carry(peer, end)
        assert end.state.digits == "" and end.state.pairing == b""


@pytest.mark.parametrize("initiator", [False, True])
def test_steps_that_are_left_out_or_not_due(stores: tuple[llvs.Store, llvs.Store], initiator: bool) -> None:
    """A number without a commitment, and a commitment from the side that makes none."""

    class Hasty(Comparing):
        def hello(self) -> None:
            self.frame(live_peer.COMMIT if self.initiator else live_peer.NONCE, self.nonce)

    peer = Hasty(initiator, PAIRING)
    with llvs.live.Peer(stores[0], initiator=not initiator, compare=True) as end:
        with pytest.raises(llvs.StorageError, match="comparison"):
            live_peer.carry(peer, end)
        assert end.state.digits == "" and end.state.pairing == b""


def test_one_in_the_middle(stores: tuple[llvs.Store, llvs.Store]) -> None:
    """The attacker sees all frames, and the digits differ: it must choose its numbers before it knows the resulting digits."""
    same = 0
    for _ in range(30):
        with llvs.live.Peer(stores[0], initiator=True, compare=True) as joins, llvs.live.Peer(
            stores[1], PAIRING, initiator=False, compare=True
        ) as gives:
            nonce = os.urandom(32)
            towards_one, towards_two = Comparing(False, PAIRING, nonce), Comparing(True, None, nonce)
            live_peer.carry(towards_one, joins)
            live_peer.carry(towards_two, gives)
            assert joins.state.digits == towards_one.digits and gives.state.digits == towards_two.digits
            same += joins.state.digits == gives.state.digits
            assert not towards_two.received_pairing
    assert same == 0


def test_between_two_people(stores: tuple[llvs.Store, llvs.Store]) -> None:
    one, two = stores
    with llvs.live.listen({PAIRING: two}, ("127.0.0.1", 0)) as listener:
        refused = pytest.raises(llvs.errors.EncryptionError, match="not compare digits")
        with llvs.live.connect(one, listener.address, compare=True) as early, refused:
            early.digits(PATIENCE)
        met = comparing(listener)
        with pytest.raises(llvs.BusyError):
            listener.compare(PAIRING)
        with llvs.live.connect(one, listener.address, compare=True) as link:
            assert link.digits(PATIENCE) == met().digits(PATIENCE) and link.pairing == b""
            link.confirm()
            met().confirm()
            assert link.wait(PATIENCE) and link.pairing == PAIRING
        assert one.most_recent_head == two.most_recent_head
        with pytest.raises(TimeoutError) as late:
            listener.compare(PAIRING, 0.01)
        assert not isinstance(late.value, llvs.BusyError)
        with pytest.raises(llvs.NotFoundError):
            listener.compare(bytes(48))


def test_others_come_while_digits_are_compared(stores: tuple[llvs.Store, llvs.Store]) -> None:
    """The link of the comparing device is distinguished from the others. If a device leaves before digits are shown, that is reported
    immediately."""
    one, two = stores
    with llvs.live.listen({PAIRING: two}, ("127.0.0.1", 0)) as listener, llvs.Store(storage="memory") as third:
        assert not isinstance(listener.address, str)
        with llvs.live.connect(third, listener.address, PAIRING) as early:
            assert early.wait(PATIENCE)
            met = comparing(listener)
            with llvs.live.connect(third, listener.address, PAIRING) as paired:
                assert paired.wait(PATIENCE)
                eventually(lambda: len(listener.links) == 2)
                with llvs.live.connect(one, listener.address, compare=True) as link:
                    assert link.digits(PATIENCE) == met().digits(0)
                    link.confirm()
                    met().confirm()
                    assert link.wait(PATIENCE)
                    assert len(listener.links) == 3 and listener.links[2] is met()
                # The link was returned already.
                assert [listener.accept(PATIENCE) is other for other in listener.links[:2]] == [True, True] and listener.accept(0) is None
        met = comparing(listener)
        with socket.create_connection(listener.address) as leaves:
            leaves.sendall(Comparing(True).take())
            assert leaves.recv(1)
        with pytest.raises(ConnectionError, match="was gone before"):
            met()


def test_who_sees_others_says_no(stores: tuple[llvs.Store, llvs.Store]) -> None:
    one, two = stores
    with llvs.live.listen({PAIRING: two}, ("127.0.0.1", 0)) as listener:
        met = comparing(listener)
        with llvs.live.connect(one, listener.address, compare=True) as link:
            assert link.digits(PATIENCE) == met().digits(PATIENCE)
            link.confirm()
            met().close()
            with pytest.raises(llvs.errors.EncryptionError, match="the digits are not the same"):
                link.wait(PATIENCE)
            assert link.pairing == b"" and met().error is None, "who says no says goodbye"
    assert not list(one.history())


def test_unconfirmed_digits(stores: tuple[llvs.Store, llvs.Store]) -> None:
    """Digits that no user confirms are given up after ten minutes."""
    peer = Comparing(True)
    with llvs.live.Peer(stores[1], PAIRING, initiator=False, compare=True) as end:
        end.tick(0)
        live_peer.carry(peer, end)
        for seconds in range(20, 600, 20):
            end.tick(seconds)
            live_peer.carry(peer, end)
        with pytest.raises(llvs.errors.ExchangeDataError, match="10 minutes"):
            end.tick(601)
