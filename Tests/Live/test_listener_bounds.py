"""What the library's listener (`llvs.live.Listener`) accepts from strangers and from hostile peers: each bound of docs/live-protocol.md,
section 6, over sockets, with bytes from a program that does not use the library."""

from __future__ import annotations

import os
import random
import socket
import struct
import subprocess
import sys
from contextlib import ExitStack
from typing import Any, Callable, Iterator

import live_peer
import pytest
from moved_clock import MovedClock
from patience import PATIENCE, eventually
from test_library import FRAMES, PAIRING, ids, lying, save, versions_of

import llvs

#: The size of a connection's beginning: the selector and message 1. And the seconds within which the other side must be identified.
BEGINNING, GREETING = 66, 10


@pytest.fixture
def store() -> Iterator[llvs.Store]:
    with llvs.Store(storage="memory") as made:
        yield made


@pytest.fixture
def listener(store: llvs.Store) -> Iterator[llvs.live.Listener]:
    with llvs.live.Listener(("127.0.0.1", 0)) as made:
        made.offer(store, PAIRING)
        yield made


def reach(listener: llvs.live.Listener, place: int = 1) -> socket.socket:
    """Connects, from one of the addresses of this machine."""
    assert not isinstance(listener.address, str)
    try:
        connection = socket.create_connection(listener.address, timeout=PATIENCE, source_address=(f"127.0.0.{place}", 0))
    except ConnectionResetError:
        # The listener ended the connection immediately.
        connection, other = socket.socketpair()
        other.close()
        return connection
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def has_ended(connection: socket.socket) -> bool:
    """Returns whether the other side has closed the connection without a byte."""
    connection.settimeout(0)
    try:
        return connection.recv(1) == b""
    except BlockingIOError:
        return False
    except ConnectionError:
        return True


def ends(connection: socket.socket) -> bool:
    """Waits. Returns whether the other side closes the connection without a byte."""
    connection.settimeout(PATIENCE)
    try:
        return connection.recv(1) == b""
    except ConnectionError:
        return True


def take_places(listener: llvs.live.Listener, place: int) -> list[socket.socket]:
    """Connects 20 times from one address, of which the listener takes 16. Connections are taken in order, so the listener has seen all of
    them once the last one, which it does not take, has ended."""
    made = [reach(listener, place) for _ in range(20)]
    assert ends(made[-1])
    assert sum(map(has_ended, made[:-1])) == 3
    for connection in made[-4:]:
        connection.close()
    return made[:-4]


def converse(listener: llvs.live.Listener, peer: live_peer.Peer, until: Callable[[], bool], place: int = 1) -> None:
    """Carries bytes until the peer has what it wants, or the connection ends, which raises."""
    with reach(listener, place) as connection:
        while not until():
            if data := peer.take():
                connection.sendall(data)
            came = connection.recv(1 << 16)
            if not came:
                raise EOFError
            peer.receive(came)
        if data := peer.take():
            connection.sendall(data)


def gets_in(listener: llvs.live.Listener, place: int) -> bool:
    peer = live_peer.Peer(True, PAIRING)
    try:
        converse(listener, peer, lambda: peer.caught_up, place)
    except (EOFError, ConnectionError):
        return False
    return True


def test_who_connects_and_says_nothing(clock: MovedClock, store: llvs.Store, listener: llvs.live.Listener) -> None:
    """Silent connections: 16 of an address and 32 in all stay open, for 10 seconds. A device from another address is admitted meanwhile.
    After five failures an address is not read any more. If all 32 places are taken, the oldest connection gives way."""
    first = take_places(listener, 2)
    assert gets_in(listener, 3)
    second = take_places(listener, 4)
    assert not any(map(has_ended, first + second))
    assert gets_in(listener, 5)
    with first.pop(0) as oldest:
        assert ends(oldest) and not any(map(has_ended, first + second))
    for connection in second:
        connection.close()
    eventually(lambda: gets_in(listener, 6))
    clock.advance(GREETING - 2)
    # The listener reads the clock before it admits a connection.
    assert gets_in(listener, 7) and not any(map(has_ended, first)), "they have 10 seconds"
    clock.advance(2)
    assert all(map(ends, first))
    clock.advance(40)
    assert not gets_in(listener, 2) and not gets_in(listener, 4), "not for a minute"
    assert gets_in(listener, 5)
    clock.advance(20)
    assert gets_in(listener, 2) and gets_in(listener, 4)
    for connection in first:
        connection.close()
    assert not ids(store)


def test_strangers_of_many_addresses_lock_no_device_out(store: llvs.Store, listener: llvs.live.Listener) -> None:
    """Strangers take all places, and more, and send nothing: a device is admitted all the same, each time."""
    with ExitStack() as stack:
        mine = stack.enter_context(llvs.Store(storage="memory"))
        for turn in range(3):
            for place in range(10 * turn + 10, 10 * turn + 14):
                for _ in range(16):
                    # The listener handles connections in order.
                    stack.enter_context(reach(listener, place))
            with llvs.live.connect(mine, listener.address, PAIRING) as link:
                assert link.wait(PATIENCE)


def test_an_address_that_got_in_before_has_room(clock: MovedClock, listener: llvs.live.Listener) -> None:
    """An address from which a device was admitted has room of its own, also if strangers replay the first message of a device. Such
    connections are not silent: they give way to others a second later."""
    assert gets_in(listener, 2)
    heard, connections = live_peer.Peer(True, PAIRING).take(), []
    clock.freeze()
    for place in range(10, 18):
        for _ in range(4):
            connection = reach(listener, place)
            connection.sendall(heard)
            eventually(lambda one=connection: answers(one))
            connections.append(connection)
    assert not gets_in(listener, 3), "a stranger"
    assert gets_in(listener, 2), "it got in before"
    clock.advance(1.01)
    assert gets_in(listener, 3)
    clock.freeze(False)
    answer = b""
    while len(answer) < 98:
        answer += connections[0].recv(98 - len(answer))
    assert ends(connections[0]), "the oldest"
    assert all(map(answers, connections[1:]))
    for connection in connections:
        connection.close()


@pytest.mark.parametrize("where", ["beginning", "third message"])
def test_who_dribbles_a_handshake(clock: MovedClock, listener: llvs.live.Listener, where: str) -> None:
    """A byte now and then does not extend the time of a handshake: it has 10 seconds from the first byte on, for all of it."""
    peer = live_peer.Peer(True, PAIRING)
    beginning, passed = peer.take(), 0.0
    with reach(listener) as connection:

        def dribble(data: bytes, every: float) -> None:
            nonlocal passed
            for byte in data:
                connection.send(bytes([byte]))
                clock.advance(every)
                passed += every
                if passed > GREETING - 0.01:
                    clock.advance(0.1)
                    assert ends(connection)
                    raise EOFError
                # Another device is admitted after each byte, so the listener has read the clock.
                assert gets_in(listener, 2) and not has_ended(connection)

        # The connection is admitted before this later device: its time begins now.
        assert gets_in(listener, 2)
        if where == "third message":
            dribble(beginning[:-1], 0.1)  # 6.5 seconds of the ten
            connection.send(beginning[-1:])
            connection.settimeout(PATIENCE)
            answer = b""
            while len(answer) < 98:
                answer += connection.recv(98)
            peer.receive(answer)
            rest = peer.take()
        else:
            rest = beginning
        with pytest.raises(EOFError):
            dribble(rest[:60], 0.25)


def test_a_handshake_message_that_is_too_large(listener: llvs.live.Listener) -> None:
    """The listener does not wait for more than 1,024 bytes: a peer that announces more is disconnected at once."""
    for size, place in ((1_024, 1), (1_025, 2)):
        with reach(listener, place) as connection:
            connection.sendall(live_peer.Peer(True, PAIRING).take())
            answer = b""
            while len(answer) < 98:
                answer += connection.recv(98 - len(answer))
            connection.sendall(struct.pack("<H", size) + bytes(500))
            if size == 1_024:
                assert gets_in(listener, 5) and not has_ended(connection)
                connection.sendall(bytes(524))
            assert ends(connection)
    for size, place in ((48, 3), (1_025, 4)):
        with reach(listener, place) as connection:
            beginning = live_peer.Peer(True, PAIRING).take()
            connection.sendall(beginning[:16] + struct.pack("<H", size) + beginning[18:])
            # The first one is answered.
            assert ends(connection) == (size > 1_024)


def test_who_is_not_paired_gets_no_byte(listener: llvs.live.Listener) -> None:
    """Five strangers in a minute from one address get no byte. After that connections from the address are not read, whichever device makes
    them."""
    for _ in range(5):
        with reach(listener) as connection:
            connection.sendall(live_peer.Peer(True, bytes(48)).take())
            assert ends(connection)
    assert not gets_in(listener, 1) and gets_in(listener, 2)


def test_many_of_one_address_at_once(clock: MovedClock, store: llvs.Store, listener: llvs.live.Listener) -> None:
    """Five connections of an address are read at a time. The others wait until these are identified, and all are admitted."""
    peers, connections = [live_peer.Peer(True, PAIRING) for _ in range(15)], [reach(listener) for _ in range(15)]
    for peer, connection in zip(peers, connections):
        connection.sendall(peer.take())
    # No peer continues: five are answered.
    eventually(lambda: sum(map(answers, connections)) >= 5)
    # A waiting connection is checked again 20 milliseconds later, and connections from elsewhere after it.
    for _ in range(3):
        clock.advance(0.1)
        assert gets_in(listener, 2)
    first = [number for number, connection in enumerate(connections) if answers(connection)]
    assert len(first) == 5
    for number in first + [number for number in range(15) if number not in first]:
        peer, connection = peers[number], connections[number]
        connection.settimeout(PATIENCE)
        while not peer.caught_up:
            peer.receive(connection.recv(1 << 16))
            if data := peer.take():
                connection.sendall(data)
            clock.advance(0.02)
    for connection in connections:
        connection.close()
    assert gets_in(listener, 1)


def answers(connection: socket.socket) -> bool:
    connection.settimeout(0)
    try:
        return connection.recv(1, socket.MSG_PEEK) != b""
    except BlockingIOError:
        return False


def test_who_is_paired_and_turned_away_is_no_stranger(clock: MovedClock, store: llvs.Store, listener: llvs.live.Listener) -> None:
    """However often one device is refused for what it requests, another one of its address is admitted."""
    identity, refused = os.urandom(32), 0
    for _ in range(17):
        peer = live_peer.Peer(True, PAIRING, identity)
        try:
            converse(listener, peer, lambda peer=peer: peer.caught_up)
        except (live_peer.Refused, EOFError, ConnectionError):
            refused += 1
    assert refused >= 6
    assert gets_in(listener, 1), "it was taken for a stranger"


def test_who_comes_for_a_store_that_was_closed_is_no_stranger(store: llvs.Store) -> None:
    """However often devices ask for the closed store, devices of the same address are admitted to the other stores."""
    second = llvs.live.make_pairing()
    with llvs.Store(storage="memory") as closed, llvs.Store(storage="memory") as mine, ExitStack() as stack:
        listener = stack.enter_context(llvs.live.listen({PAIRING: closed, second: store}, ("127.0.0.1", 0)))
        address = listener.address
        closed.close()
        for _ in range(7):
            with pytest.raises((llvs.Error, OSError)), llvs.live.connect(mine, address, PAIRING) as peer:
                peer.wait(PATIENCE)
        with llvs.live.connect(mine, address, second) as peer:
            assert peer.wait(PATIENCE)
        # Any peer without the pairing is a stranger.
        for _ in range(5):
            with pytest.raises((llvs.Error, OSError)), llvs.live.connect(mine, address, bytes(48)) as peer:
                peer.wait(PATIENCE)
        with pytest.raises((llvs.Error, OSError)), llvs.live.connect(mine, address, second) as peer:
            peer.wait(PATIENCE)
        with pytest.raises(llvs.NotFoundError):
            listener.invite(PAIRING)


SHORT = """
import os, resource, sys
import llvs
store, pairing = llvs.Store(storage="memory"), bytes(range(48))
listener = llvs.live.listen({pairing: store}, ("127.0.0.1", 0))
print(listener.address[1], flush=True)
sys.stdin.readline()
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
taken = []
try:
    while True:
        taken.append(os.open("/dev/null", os.O_RDONLY))
except OSError:
    # Free two descriptors: one for a connection, and one of the two more that a link needs.
    os.close(taken.pop())
    os.close(taken.pop())
print("short", flush=True)
sys.stdin.readline()
for one in taken:
    os.close(one)
print("enough", flush=True)
sys.stdin.readline()
os._exit(0)
"""


def test_devices_that_came_while_descriptors_were_short() -> None:
    """Refused devices are admitted as soon as descriptors are available."""
    child = subprocess.Popen([sys.executable, "-c", SHORT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert child.stdin is not None and child.stdout is not None
    with child, llvs.Store(storage="memory") as mine:
        address = ("127.0.0.1", int(child.stdout.readline()))

        def say() -> str:
            assert child.stdin is not None and child.stdout is not None
            child.stdin.write("\n")
            child.stdin.flush()
            return child.stdout.readline().strip()

        assert say() == "short"
        turned_away = 0
        for _ in range(7):
            with llvs.live.connect(mine, address, PAIRING) as peer:
                try:
                    peer.wait(PATIENCE)
                except (llvs.Error, OSError):
                    turned_away += 1
        assert turned_away == 7
        assert say() == "enough"
        with llvs.live.connect(mine, address, PAIRING) as peer:
            assert peer.wait(PATIENCE)
        say()


def test_more_heads_than_another_side_takes(store: llvs.Store) -> None:
    """Both sides report the number of heads. A peer that exchanged with the store recently receives later versions."""
    identities, known = (os.urandom(32), os.urandom(32)), llvs.Store(storage="memory")
    with llvs.live.Listener(("127.0.0.1", 0), identity=identities[0]) as kept:
        kept.offer(store, PAIRING)
        with llvs.live.connect(known, kept.address, PAIRING, identity=identities[1]) as peer:
            store.make_version(insert={"k": b"first"})
            assert peer.wait(PATIENCE)
            eventually(lambda: len(ids(known)) == 1)
        for number in range(10_001):
            store.make_version(insert={"k": b"%d" % number}, root=True)
        with llvs.Store(storage="memory") as new, llvs.live.connect(new, kept.address, PAIRING) as peer:
            with pytest.raises(llvs.StorageError, match=r"10002 heads, which have to be merged there first"):
                peer.wait(PATIENCE)
        with llvs.Store(storage="memory") as new, llvs.live.Listener(("127.0.0.1", 0)) as other:
            other.offer(new, PAIRING)
            with llvs.live.connect(store, other.address, PAIRING) as peer:
                with pytest.raises(llvs.errors.TooLargeError, match="This store has 10002 heads.*Merge some"):
                    peer.wait(PATIENCE)
        with llvs.live.connect(known, kept.address, PAIRING, identity=identities[1]) as peer:
            assert peer.wait(PATIENCE) and len(ids(known)) == 10_002
    known.close()


def test_who_replays_a_first_message(listener: llvs.live.Listener) -> None:
    heard, answered, connections = live_peer.Peer(True, PAIRING).take(), 0, []
    for _ in range(40):
        connections.append(reach(listener))
        connections[-1].settimeout(PATIENCE)
        try:
            connections[-1].sendall(heard)
            answered += connections[-1].recv(1) != b""
        except ConnectionError:
            pass
    assert answered == 5
    for connection in connections:
        connection.close()
    eventually(lambda: gets_in(listener, 2))
    assert not gets_in(listener, 1)


def breaks(listener: llvs.live.Listener, peer: live_peer.Peer) -> str:
    """Returns the reason that the peer receives when its connection is closed."""
    try:
        converse(listener, peer, lambda: False)
    except live_peer.Refused as told:
        return str(told.args[1])
    except (EOFError, ConnectionError):
        return ""
    raise AssertionError


@pytest.mark.parametrize("name", FRAMES)
def test_frames_that_break_a_rule(store: llvs.Store, listener: llvs.live.Listener, name: str) -> None:
    """The frames of `test_library.py`: the peer receives the reason, nothing of the frame is stored, and the next peer is served."""
    save(store, 1, random.Random(1))
    before = ids(store)
    kind, payload, why = FRAMES[name]
    told = breaks(listener, lying(lambda peer: peer.frame(kind, payload))(True, PAIRING))
    assert told and why in told
    assert ids(store) == before and gets_in(listener, 1)
    eventually(lambda: not still_linked(listener))


def still_linked(listener: llvs.live.Listener) -> bool:
    met = listener.accept(0)
    if met is None:
        return False
    met.close()
    return True


def test_a_frame_that_is_too_large(store: llvs.Store, listener: llvs.live.Listener) -> None:
    """A size above 1 MiB ends the connection before any byte of the frame has arrived. A frame of 1 MiB is awaited."""

    def claims(size: int) -> live_peer.Peer:
        def change(peer: live_peer.Peer) -> None:
            assert peer.sends is not None
            peer._message(peer.sends.seal(struct.pack("<IB", size, live_peer.DATA)))

        return lying(change)(True, PAIRING)

    assert "a frame has 1048577 bytes" in breaks(listener, claims((1 << 20) + 1))
    assert "a frame has 0 bytes" in breaks(listener, claims(0))
    with reach(listener) as connection:
        peer = claims(1 << 20)
        while peer.their_hello is None and not peer.credit:
            connection.sendall(peer.take())
            peer.receive(connection.recv(1 << 16))
        connection.sendall(peer.take())
        # The answer comes after the whole frame, which contains no versions.
        assert peer.sends is not None
        for at in range(0, (1 << 20) - 1, 65_000):
            peer._message(peer.sends.seal(bytes(min(65_000, (1 << 20) - 1 - at))))
        connection.sendall(peer.take())
        connection.settimeout(PATIENCE)
        with pytest.raises(live_peer.Refused) as told:
            while came := connection.recv(1 << 16):
                peer.receive(came)
        assert "bytes" not in str(told.value), told.value


def test_versions_whose_predecessors_never_come(store: llvs.Store, listener: llvs.live.Listener) -> None:
    """10,000 versions without their predecessors take no memory, since none is retained."""
    with llvs.Store(storage="memory") as other:
        version = None
        for number in range(10_200):
            version = other.make_version(version, insert={"v": b"%d" % number})
        peer = versions_of(other)
    order = list(peer.payloads)
    liar = lying(lambda one: one.send_versions(order[5:]))(True, PAIRING)
    liar.payloads = peer.payloads
    assert "lack their predecessors" in breaks(listener, liar)
    assert not ids(store) and gets_in(listener, 1)


def memory() -> int:
    with open("/proc/self/smaps_rollup") as lines:
        return int(next(line for line in lines if line.startswith("Rss")).split()[1]) << 10


def opened(listener: llvs.live.Listener, peer: live_peer.Peer) -> socket.socket:
    """Returns a connection whose other side is known."""
    connection = reach(listener)
    while peer.their_hello is None:
        connection.sendall(peer.take())
        peer.receive(connection.recv(1 << 16))
    return connection


def test_who_asks_and_does_not_read(listener: llvs.live.Listener) -> None:
    """A peer sends requests without end, and reads no answer: the connection ends, and costs bounded memory."""
    peer = live_peer.Peer(True, PAIRING)
    connection, before = opened(listener, peer), memory()
    most, sent = before, 0
    with connection, pytest.raises(ConnectionError):
        while sent < 200 << 20:
            for _ in range(2_000):
                peer.frame(live_peer.PING, bytes(8))
            data = peer.take()
            connection.sendall(data)
            sent += len(data)
            most = max(most, memory())
    assert most - before < 24 << 20 and gets_in(listener, 2)


def test_who_does_not_read_what_it_gets(store: llvs.Store, listener: llvs.live.Listener) -> None:
    """For a peer that does not read, no more is prepared than its window allows, however much there is to send."""
    for _ in range(30):
        store.make_version(insert={"v": os.urandom(900_000)}, root=True)

    class Hoards(live_peer.Peer):
        """Grants no credit."""

        def handle(self, kind: int, payload: bytes) -> None:
            if kind not in (live_peer.DATA, live_peer.PONG):
                super().handle(kind, payload)

        def came(self, kind: int) -> list[bytes]:
            return [payload for one, payload in self.frames if one == kind]

    peer = Hoards(True, PAIRING, window=524_288)
    with opened(listener, peer) as connection:
        before, came = memory(), 0
        connection.settimeout(PATIENCE)
        # The answer comes after the frames that were prepared before.
        for turn in range(1, 6):
            has_asked = False
            while len(peer.came(live_peer.PONG)) < turn:
                if peer.came(live_peer.DATA) and not has_asked:
                    peer.frame(live_peer.PING, struct.pack("<Q", turn))
                    has_asked = True
                if data := peer.take():
                    connection.sendall(data)
                data = connection.recv(1 << 16)
                came += len(data)
                peer.receive(data)
        assert memory() - before < 8 << 20
        assert 100_000 < came <= 524_288 + 65_536
    assert gets_in(listener, 2)


def test_a_peer_that_continues_after_its_dismissal(clock: MovedClock, listener: llvs.live.Listener) -> None:
    """After the listener has ended a connection, it reads the connection for one more second, so that the peer receives the reason, and no
    longer."""
    peer = lying(lambda one: one.frame(99))(True, PAIRING)
    with reach(listener) as connection:
        while not peer.credit:
            connection.sendall(peer.take())
            peer.receive(connection.recv(1 << 16))
        connection.sendall(peer.take())
        connection.settimeout(PATIENCE)
        # Send more than the sockets buffer, so that the listener must read it.
        for _ in range(150):
            connection.sendall(bytes(1 << 16))
        clock.advance(1.1)
        with pytest.raises(ConnectionError):
            for _ in range(10_000):
                connection.sendall(bytes(1 << 16))


def test_who_has_all_looked_through_again_and_again(clock: MovedClock, store: llvs.Store, listener: llvs.live.Listener) -> None:
    """A device that never knows which versions it has in common is admitted ten times at once, then once a second."""
    save(store, 1, random.Random(1))
    identity = os.urandom(32)

    def is_let_in() -> bool:
        peer = live_peer.Peer(True, PAIRING, identity)
        try:
            converse(listener, peer, lambda: peer.caught_up)
        except live_peer.Refused:
            return False
        return True

    assert [is_let_in() for _ in range(12)] == [True] * 10 + [False] * 2
    assert gets_in(listener, 1), "another device"
    clock.advance(1)
    assert [is_let_in() for _ in range(2)] == [True, False]


def is_looked_through(store: llvs.Store, other: llvs.Store, place: str, **options: Any) -> bool:
    """Returns whether all versions are checked for an unknown device: up to the bound, and no further."""
    with llvs.live.Peer(other, PAIRING, initiator=True, identity=options.pop("identity", None)) as two, llvs.live.Peer(
            store, PAIRING, initiator=False, place=place, **options) as one:
        one.receive(two.send())
        two.receive(one.send())
        try:
            one.receive(two.send())
        except llvs.errors.TooLargeError as told:
            assert "again and again" in str(told)
            return False
        return True


def test_who_draws_another_device_key_each_time(clock: MovedClock, store: llvs.Store) -> None:
    """A hundred from one address are admitted at once, and then ten a second. Devices from another address, or with an accepted key, are
    still admitted."""
    save(store, 1, random.Random(1))
    mine = os.urandom(32)
    with llvs.Store(storage="memory") as other:

        def let_in(most: int) -> int:
            return next((times for times in range(most) if not is_looked_through(store, other, "192.0.2.7")), most)

        assert let_in(200) == 100
        clock.advance(1)
        assert let_in(200) == 10
        assert is_looked_through(store, other, "192.0.2.8") and is_looked_through(store, other, "")
        assert is_looked_through(store, other, "192.0.2.7", identity=mine, accepted=[llvs.live.device_key(mine)])


def test_who_fills_the_disk(store: llvs.Store) -> None:
    """The host is asked before a version is stored. A refused version is not stored."""
    asked: list[int] = []

    def quota(size: int) -> None:
        asked.append(size)
        if size > 100_000:
            raise OSError("full")

    with llvs.Store(storage="memory") as other:
        other.make_version(insert={"a": b"1"})
        small = versions_of(other)
        other.make_version(other.most_recent_head, insert={"b": os.urandom(200_000)})
        large = versions_of(other)
    with llvs.live.Listener(("127.0.0.1", 0), quota=quota) as listener:
        listener.offer(store, PAIRING)
        for source, count in ((small, 1), (large, 1)):
            peer = live_peer.Peer(True, PAIRING)
            for payload in source.payloads.values():
                peer.add(payload)
            if source is small:
                converse(listener, peer, lambda: any(kind == live_peer.ACK and payload[0] for kind, payload in peer.frames))
            else:
                assert "the store failed" in breaks(listener, peer)
            assert len(ids(store)) == count
    assert len(asked) == 2


def test_device_keys_that_are_not_accepted(store: llvs.Store) -> None:
    mine = os.urandom(32)
    with llvs.live.Listener(("127.0.0.1", 0), accepted=[llvs.live.device_key(mine)]) as listener:
        listener.offer(store, PAIRING)
        assert "not accepted" in breaks(listener, live_peer.Peer(True, PAIRING, os.urandom(32)))
        peer = live_peer.Peer(True, PAIRING, mine)
        converse(listener, peer, lambda: peer.caught_up)


@pytest.mark.parametrize("is_of_device", [True, False])
def test_how_many_links_a_device_and_an_address_may_have(listener: llvs.live.Listener, is_of_device: bool) -> None:
    """A device has at most 8 links that last, and an address 64. A further one is refused with the reason, until one of them has ended."""
    most, key = (8, os.urandom(32)) if is_of_device else (64, None)
    with ExitStack() as stack:
        def enter(static: Any = key, place: int = 1) -> socket.socket:
            connection = stack.enter_context(reach(listener, place))
            peer = live_peer.Peer(True, PAIRING, static)
            while peer.their_hello is None:
                connection.sendall(peer.take())
                came = connection.recv(1 << 16)
                if not came:
                    raise EOFError
                peer.receive(came)
            return connection

        held = [enter() for _ in range(most)]
        for _ in range(2):
            with pytest.raises(live_peer.Refused, match=f"has {most} links here already"):
                enter()
        # Other devices are admitted meanwhile. This device is admitted from another address, unless the limit is per device.
        enter(os.urandom(32), place=2)
        if is_of_device:
            with pytest.raises(live_peer.Refused):
                enter(place=2)
        # A closed one makes room.
        held.pop().close()

        def let_in() -> bool:
            try:
                held.append(enter())
            except live_peer.Refused:
                return False
            return True

        eventually(let_in)


@pytest.mark.parametrize("is_whole", [False, True])
def test_who_drips_is_as_good_as_silent(store: llvs.Store, is_whole: bool) -> None:
    """A byte every ten seconds does not count as a sign of life. A whole frame does."""
    peer, session = live_peer.Peer(True, PAIRING), llvs.live.Peer(store, PAIRING, initiator=False)
    while peer.their_hello is None:
        session.receive(peer.take())
        peer.receive(session.send())
    session.receive(peer.take())
    session.tick(0)
    peer.frame(live_peer.PING, bytes(8))
    drips = peer.take()
    assert len(drips) > 20
    for number in range(20):
        if is_whole:
            peer.frame(live_peer.PING, bytes(8))
        session.receive(drips if is_whole and number == 0 else peer.take() if is_whole else drips[number:number + 1])
        if not is_whole and number >= 9:
            with pytest.raises(llvs.errors.ExchangeDataError, match="silent for 90 seconds"):
                session.tick(10 * (number + 1))
            return
        session.tick(10 * (number + 1))
    assert is_whole


class Silent(live_peer.Peer):
    """Does not answer PING."""

    def handle(self, kind: int, payload: bytes) -> None:
        if kind != live_peer.PING:
            super().handle(kind, payload)

    def count(self, kind: int) -> int:
        return [one for one, _ in self.frames].count(kind)


class Answering(Silent):
    def handle(self, kind: int, payload: bytes) -> None:
        live_peer.Peer.handle(self, kind, payload)


def test_silence(clock: MovedClock, listener: llvs.live.Listener) -> None:
    """A silent peer is asked for a sign of life after 30 seconds, and disconnected after 90; one that answers stays."""
    silent, answering = Silent(True, PAIRING), Answering(True, PAIRING)
    with opened(listener, silent) as first, opened(listener, answering) as second:
        stay_silent(clock, (silent, first), (answering, second))


def stay_silent(clock: MovedClock, *peers: tuple[Silent, socket.socket]) -> None:
    silent, answering = (peer for peer, _ in peers)

    def carry(peer: Silent, connection: socket.socket, until: Callable[[], bool]) -> None:
        connection.settimeout(PATIENCE)
        while not until():
            if data := peer.take():
                connection.sendall(data)
            if not until():
                came = connection.recv(1 << 16)
                assert came, "it has ended"
                peer.receive(came)
        if data := peer.take():
            connection.sendall(data)

    def asks(peer: Silent, connection: socket.socket) -> None:
        """The peer sends a request, and is answered."""
        before = peer.count(live_peer.PONG)
        peer.frame(live_peer.PING, bytes(8))
        carry(peer, connection, lambda: peer.count(live_peer.PONG) > before)

    def questions(one: tuple[Silent, socket.socket]) -> int:
        """Returns the number of PINGs in the bytes received so far."""
        peer, connection = one
        connection.settimeout(0)
        try:
            came = connection.recv(1 << 16)
            assert came, "it has ended"
            peer.receive(came)
        except BlockingIOError:
            pass
        return peer.count(live_peer.PING)

    for peer, connection in peers:
        carry(peer, connection, lambda peer=peer: peer.caught_up)
        asks(peer, connection)
    # A link reads the clock every five seconds, so it notices bytes up to five seconds late. The listener and both links wait.
    clock.advance(5.1, waiting=3)
    clock.advance(24.8, waiting=3)
    assert not any(map(questions, peers)), "29.9 seconds"
    clock.advance(5.3)
    for peer, connection in peers:
        carry(peer, connection, lambda peer=peer: peer.count(live_peer.PING) == 1)
    # The second one answers after this.
    asks(*peers[1])
    clock.advance(54.6, waiting=3)
    carry(*peers[1], lambda: answering.count(live_peer.PING) == 2)
    asks(*peers[1])
    assert questions(peers[0]) == 1, "89.8 seconds"
    clock.advance(5.4)
    assert ends(peers[0][1])
    asks(*peers[1])
    assert silent.count(live_peer.PING) == 1
