"""Invitations: the library with the peer in plain Python, and a device that receives its pairing over a socket."""

from __future__ import annotations

import hashlib
import hmac
import os
import random
import socket
import struct
import time
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, Iterator

import live_peer
import pytest
from patience import PATIENCE
from test_digits import comparing
from test_library import versions_of

import llvs

PAIRING = bytes(range(48))
DIGITS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


@pytest.fixture
def stores() -> Iterator[tuple[llvs.Store, llvs.Store]]:
    with llvs.Store(storage="memory") as one, llvs.Store(storage="memory") as two:
        two.make_version(insert={"greeting": b"hello"})
        yield one, two


def code_of(secret: bytes) -> str:
    """The code of an invitation, as docs/live-protocol.md defines it."""
    number = int.from_bytes(secret, "big")
    digits = "".join(DIGITS[number >> 5 * place & 31] for place in reversed(range(26)))
    return "-".join((digits[:5], digits[5:10], digits[10:15], digits[15:20], digits[20:]))


def pairing_of(secret: bytes) -> bytes:
    def derived(info: bytes) -> bytes:
        key = hmac.new(bytes(32), secret, hashlib.sha256).digest()
        return hmac.new(key, info + b"\1", hashlib.sha256).digest()

    return derived(b"llvs invitation id")[:16] + derived(b"llvs invitation key")


class Inviting(live_peer.Peer):
    """Sends PAIRING before all other frames."""

    def hello(self) -> None:
        self.frame(14, PAIRING)
        super().hello()


def test_the_peer_made_from_the_page_invites(stores: tuple[llvs.Store, llvs.Store]) -> None:
    random_ = random.Random(3)
    for secret in (bytes(16), b"\xff" * 16, random_.randbytes(16), random_.randbytes(16)):
        peer = Inviting(False, pairing_of(secret))
        with llvs.live.Peer(stores[1], initiator=True, invitation=code_of(secret)) as end:
            live_peer.carry(end, peer)
            assert end.state.pairing == PAIRING and end.state.phase == llvs.live.PeerPhase.IN_STEP
        assert len(peer.payloads) == 1


def test_a_pairing_that_was_not_asked_for(stores: tuple[llvs.Store, llvs.Store]) -> None:
    peer = Inviting(False, PAIRING)
    with llvs.live.Peer(stores[1], PAIRING, initiator=True) as end:
        with pytest.raises(llvs.StorageError):
            live_peer.carry(end, peer)
        assert end.state.pairing == b""


def test_codes_are_those_of_the_page() -> None:
    code = llvs.live.make_invitation()
    assert code_of(secret_of(code)) == code and code != llvs.live.make_invitation()


def test_an_invitation_is_good_once_and_for_a_time(stores: tuple[llvs.Store, llvs.Store]) -> None:
    one, two = stores
    with llvs.live.listen({PAIRING: two}, ("127.0.0.1", 0)) as listener:
        with pytest.raises(llvs.NotFoundError):
            listener.invite(bytes(48))
        code = listener.invite(PAIRING)
        with llvs.live.connect(one, listener.address, invitation=code.lower()) as link:
            assert link.wait(PATIENCE) and link.pairing == PAIRING
        assert one.most_recent_head == two.most_recent_head
        for late in (code, listener.invite(PAIRING, seconds=0)):
            with llvs.live.connect(one, listener.address, invitation=late) as link:
                with pytest.raises(llvs.errors.EncryptionError, match="does not know the invitation: .* Ask for a new one"):
                    link.wait(PATIENCE)
                assert link.pairing == b""
        with llvs.live.connect(one, listener.address, PAIRING) as link:
            assert link.wait(PATIENCE)
    with pytest.raises(llvs.errors.InvalidArgumentError):
        llvs.live.Peer(one, initiator=True)
    with pytest.raises(llvs.errors.InvalidArgumentError):
        llvs.live.Peer(one, initiator=True, invitation="no code")


class Silent(live_peer.Peer):
    """Sends nothing after the handshake."""

    def hello(self) -> None: ...


def secret_of(code: str) -> bytes:
    number = 0
    for digit in code.replace("-", ""):
        number = number << 5 | DIGITS.index(digit)
    return number.to_bytes(16, "big")


def reach(address: Any) -> socket.socket:
    """Returns a socket that is connected to a listener."""
    if isinstance(address, str):
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.connect(address)
        return connection
    return socket.create_connection(address)


def begin(address: Any, peer: live_peer.Peer) -> socket.socket:
    """Connects and exchanges the first two messages of the handshake."""
    beginning = peer.take()
    while True:
        connection = reach(address)
        try:
            connection.sendall(beginning)
            while peer.sends is None:
                assert (came := connection.recv(1 << 16)), "it is turned away"
                peer.receive(came)
            return connection
        except ConnectionError:  # The listener has not noticed yet that the earlier connection ended.
            connection.close()
            time.sleep(0.01)


@pytest.mark.parametrize("way, accepts", [("tcp", "some keys"), ("tcp", "all keys"), ("unix", "some keys")])
def test_a_new_device_that_is_cut_before_it_got_in(
    stores: tuple[llvs.Store, llvs.Store], way: str, accepts: str, tmp_path: Path
) -> None:
    """A device that was cut off may try again with the same invitation; other devices may not. Once it is admitted, the invitation is used
    up."""
    one, two = stores
    new, other = os.urandom(32), os.urandom(32)
    accepted = [llvs.live.device_key(os.urandom(32))] if accepts == "some keys" else []
    with ExitStack() as stack:
        third = stack.enter_context(llvs.Store(storage="memory"))
        version = third.make_version(insert={"a": b"1"})
        listener = stack.enter_context(
            llvs.live.listen({PAIRING: two}, ("127.0.0.1", 0) if way == "tcp" else str(tmp_path / "socket"), accepted=accepted))
        code = listener.invite(PAIRING)

        def connect(identity: bytes, **options: Any) -> llvs.live.Link:
            return llvs.live.connect(one, listener.address, identity=identity, **options)

        def peer(kind: type[live_peer.Peer], static: bytes) -> Any:
            return kind(True, pairing_of(secret_of(code)), static=static)

        with closing(begin(listener.address, peer(Silent, new))):
            # While the device is not identified, the listener admits no other device, and counts none as a stranger.
            for _ in range(6):
                with connect(new, invitation=code) as late, pytest.raises(llvs.Error, match="Connect again in a minute"):
                    late.wait(PATIENCE)
            # A device with another invitation is a stranger.
            refused = pytest.raises(llvs.errors.EncryptionError, match="does not know the")
            with connect(new, invitation=llvs.live.make_invitation()) as late, refused:
                late.wait(PATIENCE)
        cut = peer(Silent, new)
        with closing(begin(listener.address, cut)) as connection:
            connection.sendall(cut.take())
            while live_peer.PAIRING not in [kind for kind, _ in cut.frames]:
                cut.receive(connection.recv(1 << 16))
        with connect(other, invitation=code) as late:
            with pytest.raises(llvs.Error, match="nother device used the invitation"):
                late.wait(PATIENCE)
            assert late.pairing == b"" and not list(one.history())
        hasty = peer(Hasty, other)
        for payload in versions_of(third).payloads.values():
            hasty.add(payload)
        with closing(begin(listener.address, hasty)) as connection:
            connection.sendall(hasty.take())
            assert connection.recv(1 << 16) == b""
        assert version not in two
        # The device may have received the pairing as well.
        for options in ({"pairing": PAIRING}, {"invitation": code}):
            with connect(new, **options) as link:
                assert link.wait(PATIENCE)
                assert link.pairing == (PAIRING if "invitation" in options else b"")
        with connect(new, invitation=code) as late, pytest.raises(llvs.errors.EncryptionError, match="does not know the invitation"):
            late.wait(PATIENCE)
        if accepted:
            with connect(other, pairing=PAIRING) as late, pytest.raises(llvs.Error, match="does not accept"):
                late.wait(PATIENCE)


class Hasty(live_peer.Peer):
    """Sends everything after the handshake without waiting for an answer."""

    def hello(self) -> None:
        super().hello()
        self.say_have()
        self.frame(live_peer.LIST, struct.pack("<BHBI", 0, 1, 0, 0))
        self.credit = 1 << 20
        self.send_versions(self.payloads)


@pytest.mark.parametrize("way", ["invitation", "digits"])
def test_a_new_device_at_a_listener_that_accepts_some_keys(stores: tuple[llvs.Store, llvs.Store], way: str) -> None:
    """A device that receives the pairing is admitted with it, and from then on by its key. Other devices are refused, though they have the
    pairing."""
    one, two = stores
    known, new, other = (os.urandom(32) for _ in range(3))
    with llvs.live.listen({PAIRING: two}, ("127.0.0.1", 0), accepted=[llvs.live.device_key(known)]) as listener:

        def connect(identity: bytes, **options: Any) -> llvs.live.Link:
            return llvs.live.connect(one, listener.address, identity=identity, **options)

        with connect(new, pairing=PAIRING) as link, pytest.raises(llvs.Error, match="does not accept"):
            link.wait(PATIENCE)
        if way == "invitation":
            with connect(new, invitation=listener.invite(PAIRING)) as link:
                assert link.wait(PATIENCE) and link.pairing == PAIRING
        else:
            met = comparing(listener)
            with connect(new, compare=True) as link:
                assert link.digits(PATIENCE) == met().digits(PATIENCE)
                link.confirm()
                met().confirm()
                assert link.wait(PATIENCE) and link.pairing == PAIRING
        for key, gets_in in ((new, True), (known, True), (other, False)):
            with connect(key, pairing=PAIRING) as link:
                if gets_in:
                    assert link.wait(PATIENCE)
                else:
                    with pytest.raises(llvs.Error, match="does not accept"):
                        link.wait(PATIENCE)
        assert one.most_recent_head == two.most_recent_head


def test_a_device_with_unconfirmed_digits_is_not_accepted(stores: tuple[llvs.Store, llvs.Store]) -> None:
    one, two = stores
    new = os.urandom(32)
    with llvs.live.listen({PAIRING: two}, ("127.0.0.1", 0), accepted=[llvs.live.device_key(os.urandom(32))]) as listener:
        met = comparing(listener)
        with llvs.live.connect(one, listener.address, identity=new, compare=True) as link:
            assert link.digits(PATIENCE) == met().digits(PATIENCE)
            link.confirm()
            time.sleep(0.2)
            met().close()
        with llvs.live.connect(one, listener.address, PAIRING, identity=new) as link, pytest.raises(llvs.Error, match="does not accept"):
            link.wait(PATIENCE)
    assert not list(one.history())
