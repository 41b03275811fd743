"""A version that several peers announced is requested from one of them. If the peers follow the rules, each version arrives once; it
arrives in any case. docs/live-protocol.md, "NEWS"."""

from __future__ import annotations

import os
import random
import socket
import struct
from contextlib import ExitStack
from itertools import combinations
from typing import Callable, Iterator, Optional

import live_peer
import pytest
from moved_clock import MovedClock
from patience import PATIENCE, eventually
from test_library import PAIRING, ids, versions_of
from test_many_links import Wire, settle

import llvs

#: The seconds for which a peer may be silent after a request, and the most seconds for which a version is awaited from it.
QUIET, LONGEST = 3, 5


def test_in_any_order_each_version_comes_once() -> None:
    """The links of six devices carry bytes in random order and pieces, so that a version is announced while it is being transferred."""
    for seed in range(6):
        random_ = random.Random(seed)
        with ExitStack() as stack:
            stores = [stack.enter_context(llvs.Store(storage="memory")) for _ in range(6)]
            wires = [Wire(one, two) for one, two in combinations(stores, 2)]
            settle(wires)
            before = sum(end.state.sent for wire in wires for end in wire.ends)
            for number in range(12):
                one = random_.choice(stores)
                one.make_version(one.most_recent_head, insert={f"k{number}": os.urandom(3_000)})
                for _ in range(random_.choice((5, 200))):
                    wire = random_.choice(wires)
                    wire.carry(wire.bytes + random_.choice((50, 500, 5_000)))
                    for end in wire.ends:
                        end.store_changed()
            settle(wires)
            assert all(len(ids(one)) == 12 for one in stores)
            assert sum(end.state.sent for wire in wires for end in wire.ends) - before == 60, seed
            assert all(end.state.phase == llvs.live.PeerPhase.IN_STEP for wire in wires for end in wire.ends)
            for wire in wires:
                wire.close()


def test_over_sockets_each_version_comes_once(clock: MovedClock) -> None:
    """However slow the machine is: no side seems to be silent while the clock stands still."""
    pairing, saves = llvs.live.make_pairing(), 12
    with ExitStack() as stack:
        stores = [stack.enter_context(llvs.Store(storage="memory")) for _ in range(6)]
        listeners = [stack.enter_context(llvs.live.Listener(("127.0.0.1", 0))) for _ in stores]
        for store, listener in zip(stores, listeners):
            listener.offer(store, pairing)
        ends = [
            stack.enter_context(llvs.live.connect(stores[one], listeners[two].address, pairing))
            for one, two in combinations(range(6), 2)
        ]
        assert all(end.wait(PATIENCE) for end in ends)
        for number, listener in enumerate(listeners):
            for _ in range(number):
                met = listener.accept(PATIENCE)
                assert met is not None
                ends.append(stack.enter_context(met))
        sent = sum(end.state.sent for end in ends)
        for number in range(saves):
            version = stores[number % 6].make_version(insert={f"k{number}": os.urandom(20_000)}, root=True)
            eventually(lambda version=version: all(version in store for store in stores))
            assert all(end.wait(PATIENCE) for end in ends)
            before, sent = sent, sum(end.state.sent for end in ends)
            assert sent - before == 5, "each of the others gets it once"


class Teller(live_peer.Peer):
    """Announces versions, and sends requested ones unless `sends` is false."""

    features = 1

    def __init__(self, listener: llvs.live.Listener, sends: bool = True) -> None:
        super().__init__(True, PAIRING)
        assert not isinstance(listener.address, str)
        self.connection: Optional[socket.socket] = socket.create_connection(listener.address)
        self.does_send = sends
        self.asked: list[list[bytes]] = []

    def tell(self, payloads: dict[bytes, bytes]) -> None:
        self.payloads.update(payloads)
        self.frame(live_peer.NEWS, struct.pack("<H", len(payloads)) + b"".join(payloads))

    def handle(self, kind: int, payload: bytes) -> None:
        if kind != live_peer.ASK:
            return super().handle(kind, payload)
        self.asked.append(live_peer.read_ids(payload))
        if self.does_send:
            self.send_versions(self.asked[-1])

    def carry(self) -> None:
        if self.connection is None:
            return
        if data := self.take():
            self.connection.sendall(data)
        self.connection.settimeout(0.02)
        try:
            came = self.connection.recv(1 << 16)
        except socket.timeout:
            return
        if not came:
            return self.close()
        self.receive(came)

    @property
    def answers(self) -> int:
        """Returns how often it received an answer to a PING."""
        return [kind for kind, _ in self.frames].count(live_peer.PONG)

    def says(self, kind: int, payload: bytes) -> None:
        """Queues a frame if the connection is open."""
        if self.connection is not None:
            self.frame(kind, payload)

    def close(self) -> None:
        if self.connection is not None:
            self.connection.close()
        self.connection = None


@pytest.fixture
def store() -> Iterator[llvs.Store]:
    with llvs.Store(storage="memory") as made:
        yield made


@pytest.fixture
def listener(store: llvs.Store) -> Iterator[llvs.live.Listener]:
    with llvs.live.Listener(("127.0.0.1", 0)) as made:
        made.offer(store, PAIRING)
        yield made


@pytest.fixture
def payloads() -> dict[bytes, bytes]:
    with llvs.Store(storage="memory") as other:
        other.make_version(insert={"a": os.urandom(1_000)})
        return versions_of(other).payloads


@pytest.mark.parametrize(
    "first, least, most",
    [
        ("sends", 0, 0), ("is silent", QUIET - 0.1, QUIET), ("goes", 0, 0), ("breaks a rule", 0, 0),
        ("sends something else", QUIET - 0.1, LONGEST), ("never comes to it", LONGEST - 0.1, LONGEST),
    ],
)
def test_who_is_asked_and_does_not_send(
    clock: MovedClock, store: llvs.Store, listener: llvs.live.Listener, payloads: dict[bytes, bytes], first: str, least: float, most: float
) -> None:
    """The version is requested from the other peer, and arrives. A waiting link reads the clock every second."""
    one, two = Teller(listener, sends=first == "sends"), Teller(listener)

    def carry(until: Callable[[], object]) -> None:
        def holds() -> object:
            if found := until():
                return found
            try:
                one.carry()
            except live_peer.Refused:
                assert first == "breaks a rule"
                one.close()
            two.carry()
            return None

        eventually(holds, pause=0)

    def goes_by(seconds: float) -> None:
        """Lets time pass, while the side that never sends the version sends other frames. Both sides have read the clock at the end."""
        passed = 0.0
        while passed < seconds:
            step = min(0.3, seconds - passed)
            clock.advance(step)
            passed += step
            sides = [two]
            if first == "never comes to it":
                one.says(live_peer.DATA, struct.pack("<QBI", 0, 0, 0))
                sides.append(one)
            answers = [side.answers for side in sides]
            for side in sides:
                side.says(live_peer.PING, bytes(8))
            carry(lambda sides=sides, answers=answers: all(side.answers > count for side, count in zip(sides, answers)))

    carry(lambda: one.caught_up and two.caught_up)
    if first == "sends something else":
        with llvs.Store(storage="memory") as third:
            third.make_version(insert={"b": b"2"})
            others = versions_of(third).payloads
    if first != "sends":
        one.tell(payloads)
        carry(lambda: one.asked)
        assert one.asked == [list(payloads)]
    two.tell(payloads)
    if first == "sends":
        # Both announce the versions at once. The store requests them from one of the two, and none from the other.
        one.tell(payloads)
        carry(lambda: one.asked and two.asked)
        assert sorted(map(len, one.asked + two.asked)) == [0, len(payloads)]
    elif first == "goes":
        # The announcement has arrived, so the other link waits. It is woken.
        two.says(live_peer.PING, bytes(8))
        carry(lambda: two.answers == 1)
        one.close()
    elif first == "breaks a rule":
        one.frame(99)
    elif first == "sends something else":
        one.payloads = others
        one.send_versions(others)
    if least:
        # The announcement and the sent frames have arrived.
        two.says(live_peer.PING, bytes(8))
        carry(lambda: two.answers == 1 and (first != "sends something else" or len(ids(store)) == 1))
        goes_by(least)
        assert not two.asked
        goes_by(most - least)
        # Waiting links read the clock again within a second; one that read it just before this began to wait, within the next.
        for _ in range(4):
            clock.advance(1.1)
            before = one.answers
            one.says(live_peer.PING, bytes(8))
            carry(lambda before=before: two.asked or one.answers > before)
    carry(lambda: two.asked)
    carry(lambda: {live_peer.text_of(version) for version in payloads} <= ids(store))
    one.close()
    two.close()


def test_who_was_idle_once_delays_nothing_more(clock: MovedClock, store: llvs.Store, listener: llvs.live.Listener) -> None:
    """A peer announces each version first, and then sends other frames all the time, but not the version: it delays one of them."""
    with llvs.Store(storage="memory") as other:
        other.make_version(insert={"a": b"1"})
        other.make_version(other.most_recent_head, insert={"b": b"2"})
        other.make_version(other.most_recent_head, insert={"c": b"3"})
        versions = list(versions_of(other).payloads.items())
    one, two = Teller(listener, sends=False), Teller(listener)

    def carry(until: Callable[[], object]) -> None:
        def holds() -> object:
            if found := until():
                return found
            one.carry()
            two.carry()
            if one.asked and two.answers:
                clock.advance(0.3)
                one.frame(live_peer.DATA, struct.pack("<QBI", 0, 0, 0))
            return None

        eventually(holds, pause=0)

    carry(lambda: one.caught_up and two.caught_up)
    for number, (version, payload) in enumerate(versions, 1):
        one.tell({version: payload})
        carry(lambda number=number: len(one.asked) == number)
        two.tell({version: payload})
        two.frame(live_peer.PING, bytes(8))
        carry(lambda version=version: live_peer.text_of(version) in ids(store))
    # PING is answered immediately, without waiting for earlier requests.
    answers = [kind for kind, _ in two.frames if kind in (live_peer.ASK, live_peer.PONG)]
    assert answers[:5] == [live_peer.PONG, live_peer.ASK, live_peer.ASK, live_peer.PONG, live_peer.ASK]
    one.close()
    two.close()


def test_news_before_the_last_of_it_was_answered(store: llvs.Store, listener: llvs.live.Listener, payloads: dict[bytes, bytes]) -> None:
    """A side keeps one of them at a time."""
    one, two = Teller(listener, sends=False), Teller(listener)
    eventually(lambda: (one.carry(), two.carry(), one.caught_up and two.caught_up)[-1])
    one.tell(payloads)
    eventually(lambda: (one.carry(), one.asked)[-1])
    two.tell(payloads)
    two.tell(payloads)
    with pytest.raises(live_peer.Refused, match="before the last"):
        eventually(two.carry)
    one.close()
    two.close()


def test_who_closes_asks_first(store: llvs.Store, payloads: dict[bytes, bytes]) -> None:
    """Before a side says goodbye, it requests versions that are awaited over another link."""

    class Silent(live_peer.Peer):
        features = 1

    peers = [Silent(True, PAIRING), Silent(True, PAIRING)]
    ends = [llvs.live.Peer(store, PAIRING, initiator=False) for _ in peers]
    for peer, end in zip(peers, ends):
        live_peer.carry(peer, end)
        peer.frame(live_peer.NEWS, struct.pack("<H", len(payloads)) + b"".join(payloads))
        live_peer.carry(peer, end)
    assert [[kind for kind, _ in peer.frames].count(live_peer.ASK) for peer in peers] == [1, 0]
    ends[1].goodbye()
    live_peer.carry(peers[1], ends[1])
    kinds = [kind for kind, _ in peers[1].frames]
    assert live_peer.ASK in kinds and kinds.index(live_peer.ASK) < kinds.index(live_peer.BYE)
    for end in ends:
        end.close()
