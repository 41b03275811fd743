"""Invitations: the library with the peer in plain Python, and a device that receives its pairing over a socket."""

from __future__ import annotations

import hashlib
import hmac
import os
import random
import socket
import struct
import threading
import time
from contextlib import ExitStack, closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Iterator

import live_peer
import pytest
from patience import PATIENCE, eventually
from test_library import versions_of

import llvs
from llvs.listening import _Connected, _Invitation

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
    assert code_of(secret_of(code)) == code and code != llvs.make_invitation()


def test_an_invitation_is_good_once_and_for_a_time(stores: tuple[llvs.Store, llvs.Store]) -> None:
    one, two = stores
    with llvs.listen({PAIRING: two}, ("127.0.0.1", 0)) as listener:
        with pytest.raises(KeyError):
            listener.invite(bytes(48))
        code = listener.invite(PAIRING)
        with llvs.connect(one, listener.address, invitation=code.lower()) as link:
            assert link.wait(PATIENCE) and link.pairing == PAIRING
        assert one.most_recent_head == two.most_recent_head
        for late in (code, listener.invite(PAIRING, seconds=0)):
            with llvs.connect(one, listener.address, invitation=late) as link:
                with pytest.raises(llvs.EncryptionError, match="does not know the invitation: .* Ask for a new one"):
                    link.wait(PATIENCE)
                assert link.pairing == b""
        with llvs.connect(one, listener.address, PAIRING) as link:
            assert link.wait(PATIENCE)
    with pytest.raises(llvs.InvalidArgumentError):
        llvs.Peer(one, initiator=True)
    with pytest.raises(llvs.InvalidArgumentError):
        llvs.Peer(one, initiator=True, invitation="no code")


class Silent(live_peer.Peer):
    """Says nothing behind the handshake."""

    def hello(self) -> None: ...


def secret_of(code: str) -> bytes:
    number = 0
    for digit in code.replace("-", ""):
        number = number << 5 | DIGITS.index(digit)
    return number.to_bytes(16, "big")


@pytest.mark.parametrize("accepts", ["some keys", "all keys"])
def test_a_new_device_that_is_cut_before_it_got_in(stores: tuple[llvs.Store, llvs.Store], accepts: str) -> None:
    """It may try again by the same invitation, and nobody else may; once it is in, the invitation is used up."""
    one, two = stores
    known, new, other = (os.urandom(32) for _ in range(3))
    accepted = [llvs.device_key(known)] if accepts == "some keys" else []
    with llvs.listen({PAIRING: two}, ("127.0.0.1", 0), accepted=accepted) as listener:
        code = listener.invite(PAIRING)

        def cut(after: str) -> None:
            peer = Silent(True, pairing_of(secret_of(code)), static=new)
            with socket.create_connection(listener.address) as connection:
                connection.sendall(peer.take())
                if after == "the handshake":
                    while peer.sends is None:
                        assert (came := connection.recv(1 << 16)), "it is turned away"
                        peer.receive(came)
                    connection.sendall(peer.take())
                    eventually(lambda: bool(listener.links and listener.links[0].state.key))
                else:
                    # While it is not known who it is, nobody else is looked at.
                    eventually(lambda: len(listener.links) == 1)
                    with llvs.connect(one, listener.address, invitation=code, identity=new) as link:
                        with pytest.raises(ConnectionError, match="Connect again in a minute"):
                            link.wait(PATIENCE)
                    assert not listener._admission.refused, "it is no stranger"
            eventually(lambda: not listener.links)

        cut("the beginning")
        cut("the handshake")
        with llvs.connect(one, listener.address, invitation=code, identity=other) as link:
            with pytest.raises(llvs.Error, match="the invitation is another device's by now"):
                link.wait(PATIENCE)
            assert link.pairing == b"" and not list(one.history())
        # It may have got the pairing as well.
        for way in ({"pairing": PAIRING}, {"invitation": code}):
            with llvs.connect(one, listener.address, identity=new, **way) as link:
                assert link.wait(PATIENCE)
        assert link.pairing == PAIRING
        with llvs.connect(one, listener.address, invitation=code, identity=new) as link:
            with pytest.raises(llvs.EncryptionError, match="does not know the invitation"):
                link.wait(PATIENCE)
        if accepted:
            with llvs.connect(one, listener.address, PAIRING, identity=other) as link:
                with pytest.raises(llvs.Error, match="does not accept"):
                    link.wait(PATIENCE)


def reach(address: Any) -> socket.socket:
    """A socket that is connected to a listener, of Python's or of the library's."""
    if isinstance(address, str) and address.startswith(("unix:", "/")):
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.connect(address.removeprefix("unix:"))
        return connection
    return socket.create_connection(address.rsplit(":", 1) if isinstance(address, str) else address)


def begin(address: Any, peer: live_peer.Peer) -> socket.socket:
    """A connection that the other side answered, behind the first two messages of the handshake."""
    beginning = peer.take()
    while True:
        connection = reach(address)
        try:
            connection.sendall(beginning)
            while peer.sends is None:
                assert (came := connection.recv(1 << 16)), "it is turned away"
                peer.receive(came)
            return connection
        except ConnectionError:  # It was not seen there yet that the connection before is gone.
            connection.close()
            time.sleep(0.01)


@pytest.mark.parametrize("way", ["tcp", "unix"])
def test_a_new_device_that_is_cut_at_a_listener_of_the_library(stores: tuple[llvs.Store, llvs.Store], way: str, tmp_path: Path) -> None:
    """As at one of Python's: it may try again by the same invitation, nobody else may, and then the invitation is used up."""
    one, two = stores
    new, other = os.urandom(32), os.urandom(32)
    accepted = [llvs.device_key(os.urandom(32))]
    with ExitStack() as stack:
        third = stack.enter_context(llvs.Store(storage="memory"))
        version = third.make_version(insert={"a": b"1"})
        listener = stack.enter_context(llvs.PeerListener("127.0.0.1:0" if way == "tcp" else f"unix:{tmp_path}/socket", accepted=accepted))
        listener.offer(two, PAIRING)
        code = listener.invite(PAIRING)

        def connect(identity: bytes, **options: Any) -> llvs.Peer:
            return llvs.Peer.connect(one, listener.address, identity=identity, **options)

        def peer(kind: type[live_peer.Peer], static: bytes) -> Any:
            return kind(True, pairing_of(secret_of(code)), static=static)

        with closing(begin(listener.address, peer(Silent, new))):
            # While it is not known who it is, nobody else is looked at, and nobody is a stranger by that.
            for _ in range(6):
                with connect(new, invitation=code) as late, pytest.raises(llvs.Error, match="Connect again in a minute"):
                    late.wait(PATIENCE)
        cut = peer(Silent, new)
        with closing(begin(listener.address, cut)) as connection:
            connection.sendall(cut.take())
            while live_peer.PAIRING not in [kind for kind, _ in cut.frames]:
                cut.receive(connection.recv(1 << 16))
        with connect(other, invitation=code) as late:
            with pytest.raises(llvs.Error, match="the invitation is another device's by now"):
                late.wait(PATIENCE)
            assert late.state.pairing == b"" and not list(one.history())
        hasty = peer(Hasty, other)
        for payload in versions_of(third).payloads.values():
            hasty.add(payload)
        with closing(begin(listener.address, hasty)) as connection:
            connection.sendall(hasty.take())
            assert connection.recv(1 << 16) == b""
        assert version not in two
        # It may have got the pairing as well.
        for options in ({"pairing": PAIRING}, {"invitation": code}):
            with connect(new, **options) as link:
                assert link.wait(PATIENCE)
                assert link.state.pairing == (PAIRING if "invitation" in options else b"")
        with connect(new, invitation=code) as late, pytest.raises(llvs.EncryptionError, match="does not know the invitation"):
            late.wait(PATIENCE)
        with connect(other, pairing=PAIRING) as late, pytest.raises(llvs.Error, match="does not accept"):
            late.wait(PATIENCE)


def test_a_second_device_at_a_unix_socket_of_python(stores: tuple[llvs.Store, llvs.Store], tmp_path: Path) -> None:
    """It is told that no person is looking at it now, as over TCP; and so is a device with another invitation."""
    one, two = stores
    with llvs.listen({PAIRING: two}, str(tmp_path / "socket")) as listener:
        code = listener.invite(PAIRING)
        with closing(begin(listener.address, Silent(True, pairing_of(secret_of(code))))):
            with llvs.connect(one, listener.address, invitation=code) as link:
                with pytest.raises(ConnectionError, match="Connect again in a minute"):
                    link.wait(PATIENCE)
            with llvs.connect(one, listener.address, invitation=llvs.make_invitation()) as link:
                with pytest.raises(llvs.EncryptionError, match="does not know the invitation"):
                    link.wait(PATIENCE)


class Hasty(live_peer.Peer):
    """Says all that it has to say behind the handshake, and waits for no answer."""

    def hello(self) -> None:
        super().hello()
        self.say_have()
        self.frame(live_peer.LIST, struct.pack("<BHBI", 0, 1, 0, 0))
        self.credit = 1 << 20
        self.send_versions(self.payloads)


def meet(listener: llvs.Listener, peer: live_peer.Peer) -> None:
    """Connects, says all from the last message of the handshake on at once, and waits for what is answered to it, or for the end."""
    with socket.create_connection(listener.address) as connection:
        connection.sendall(peer.take())
        while peer.sends is None:
            assert (came := connection.recv(1 << 16)), "it is turned away"
            peer.receive(came)
        connection.sendall(peer.take())
        try:
            connection.recv(1 << 16)
        except ConnectionError:
            pass
    eventually(lambda: not listener.links)


def test_another_device_that_says_all_at_once(stores: tuple[llvs.Store, llvs.Store]) -> None:
    """Nothing of it is taken, and the invitation stays the one's that was cut."""
    one, two = stores
    new, other = os.urandom(32), os.urandom(32)
    with llvs.Store(storage="memory") as third, llvs.listen({PAIRING: two}, ("127.0.0.1", 0)) as listener:
        version = third.make_version(insert={"a": b"1"})
        code = listener.invite(PAIRING)
        meet(listener, Silent(True, pairing_of(secret_of(code)), static=new))
        hasty = Hasty(True, pairing_of(secret_of(code)), static=other)
        for payload in versions_of(third).payloads.values():
            hasty.add(payload)
        meet(listener, hasty)
        assert version not in two
        with llvs.connect(one, listener.address, invitation=code, identity=new) as link:
            assert link.wait(PATIENCE) and link.pairing == PAIRING


class Moment:
    """A link, or its thread, that changes at the moment when its state is read."""

    def __init__(self, answers: list[bool], key: bytes) -> None:
        self._thread, self._state, self._got_in = self, SimpleNamespace(key=b""), False
        self.answers, self.key = answers, key

    def is_alive(self) -> bool:
        self._state.key, self._got_in = self.key, bool(self.key)
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


def test_links_that_end_while_they_are_looked_at(stores: tuple[llvs.Store, llvs.Store]) -> None:
    key, known = os.urandom(32), os.urandom(32)
    with llvs.listen({PAIRING: stores[1]}, ("127.0.0.1", 0), accepted=[known]) as listener:
        invitation = _Invitation(PAIRING, 0.0)
        invitation.links.append(Moment([False], key))  # type: ignore[arg-type]
        invitation.look()
        assert invitation.is_used and invitation.key == key and not invitation.links
        listener._giving.append(Moment([False], key))  # type: ignore[arg-type]
        assert set(listener._accepted()) == {known, key}
        source = listener._admission.source("10.0.0.7")
        listener._links.append(_Connected(Moment([True, False], b""), "10.0.0.7", source, 0.0))  # type: ignore[arg-type]
        listener._forget_ended()
        listener._forget_ended()
        assert len(listener._admission.refused["10.0.0.7"]) == 1 and not listener._links


@pytest.mark.parametrize("way", ["invitation", "digits"])
@pytest.mark.parametrize("kind", ["the library's", "Python's"])
def test_a_new_device_at_a_listener_that_accepts_some_keys(stores: tuple[llvs.Store, llvs.Store], kind: str, way: str) -> None:
    """A device that is given the pairing is admitted with it, and by its key from then on; others are not, though they have the pairing."""
    one, two = stores
    known, new, other = (os.urandom(32) for _ in range(3))
    accepted = [llvs.device_key(known)]

    def begin() -> tuple[str, Any]:
        """The code; or what waits for a device whose digits are compared."""
        if way == "invitation":
            return listener.invite(PAIRING), None
        if isinstance(listener, llvs.PeerListener):
            while (turned_away := listener.accept(0.3)) is not None:
                turned_away.close()
            listener.compare(PAIRING)
            return "", lambda: listener.accept(PATIENCE)
        found: list[llvs.Link] = []
        thread = threading.Thread(target=lambda: found.append(listener.compare(PAIRING, PATIENCE)))
        thread.start()
        eventually(lambda: listener._compared is not None)
        return "", lambda: (thread.join(PATIENCE), found[0])[1]

    with ExitStack() as stack:
        listener: Any
        if kind == "Python's":
            listener = stack.enter_context(llvs.listen({PAIRING: two}, ("127.0.0.1", 0), accepted=accepted))
            address = f"127.0.0.1:{listener.address[1]}"
        else:
            listener = stack.enter_context(llvs.PeerListener("127.0.0.1:0", accepted=accepted))
            listener.offer(two, PAIRING)
            address = listener.address

        def connect(identity: bytes, **options: Any) -> llvs.Peer:
            return llvs.Peer.connect(one, address, identity=identity, **options)

        with connect(new, pairing=PAIRING) as peer, pytest.raises(llvs.Error, match="does not accept"):
            peer.wait(PATIENCE)
        code, waiting = begin()
        with connect(new, **({"invitation": code} if code else {"compare": True})) as peer:
            if callable(waiting):
                met = waiting()
                eventually(lambda: peer.state.digits == met.state.digits != "")
                peer.confirm()
                met.confirm()
            assert peer.wait(PATIENCE) and peer.state.pairing == PAIRING
        for key, gets_in in ((new, True), (known, True), (other, False)):
            with connect(key, pairing=PAIRING) as peer:
                if gets_in:
                    assert peer.wait(PATIENCE)
                else:
                    with pytest.raises(llvs.Error, match="does not accept"):
                        peer.wait(PATIENCE)
        assert one.most_recent_head == two.most_recent_head


def test_a_device_whose_digits_nobody_confirmed_is_not_accepted(stores: tuple[llvs.Store, llvs.Store]) -> None:
    one, two = stores
    new = os.urandom(32)
    with llvs.PeerListener("127.0.0.1:0", accepted=[llvs.device_key(os.urandom(32))]) as listener:
        listener.offer(two, PAIRING)
        listener.compare(PAIRING)
        with llvs.Peer.connect(one, listener.address, identity=new, compare=True) as peer:
            met = listener.accept(PATIENCE)
            assert met is not None
            eventually(lambda: peer.state.digits == met.state.digits != "")
            peer.confirm()
            time.sleep(0.2)
            met.close()
        with llvs.Peer.connect(one, listener.address, PAIRING, identity=new) as peer, pytest.raises(llvs.Error, match="does not accept"):
            peer.wait(PATIENCE)
    assert not list(one.history())
