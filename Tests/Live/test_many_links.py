"""Stores with many links, saves during links, bounds of stored data, and large values that are cut short."""

from __future__ import annotations

import os
import random
import threading
import time
from itertools import combinations
from pathlib import Path
from typing import Iterator

import live_peer
import pytest
from patience import PATIENCE, eventually

import llvs

PAIRING = bytes(range(48))


@pytest.fixture
def store() -> Iterator[llvs.Store]:
    with llvs.Store(storage="memory") as made:
        yield made


class Full(Exception):
    pass


def ids(store: llvs.Store) -> set[str]:
    return {version.id for version in store.history()}


class Wire:
    """Two ends, and the number of bytes between them."""

    def __init__(self, one: llvs.Store, two: llvs.Store, **options: object) -> None:
        self.one = llvs.live.Peer(one, PAIRING, initiator=True)
        self.two = llvs.live.Peer(two, PAIRING, initiator=False, **options)  # type: ignore[arg-type]
        self.bytes = 0

    def carry(self, most: int = 1 << 40) -> bool:
        """Transfers bytes both ways; returns whether there were any."""
        before = self.bytes
        for sender, receiver in ((self.one, self.two), (self.two, self.one)):
            while self.bytes < most and (data := sender.send(min(65_536, most - self.bytes))):
                self.bytes += len(data)
                receiver.receive(data)
        return self.bytes > before

    @property
    def ends(self) -> tuple[llvs.live.Peer, llvs.live.Peer]:
        return self.one, self.two

    def close(self) -> None:
        self.one.close()
        self.two.close()


def settle(wires: list[Wire]) -> None:
    while any([wire.carry() for wire in wires]):
        for wire in wires:
            for end in wire.ends:
                end.store_changed()


def test_each_is_reported_and_asks_once(store: llvs.Store) -> None:
    """All devices are linked with each other. Each receives a version once, and not once from each of the others."""
    stores = [store] + [llvs.Store(storage="memory") for _ in range(5)]
    wires = [Wire(one, two) for one, two in combinations(stores, 2)]
    try:
        settle(wires)
        for number, each in enumerate(stores):
            sent = sum(end.state.sent for wire in wires for end in wire.ends)
            each.make_version(each.most_recent_head, insert={f"k{number}": os.urandom(1_000)})
            for wire in wires:
                for end in wire.ends:
                    end.store_changed()
            settle(wires)
            assert {frozenset(ids(one)) for one in stores} == {frozenset(ids(store))} and len(ids(store)) == number + 1
            assert sum(end.state.sent for wire in wires for end in wire.ends) - sent == 5
            assert all(end.state.phase == llvs.live.PeerPhase.IN_STEP for wire in wires for end in wire.ends)
    finally:
        for wire in wires:
            wire.close()
        for each in stores[1:]:
            each.close()


@pytest.mark.parametrize("features", [0, 1])
def test_news_to_the_peer_made_from_the_page(store: llvs.Store, features: int) -> None:
    """The peer in plain Python receives announcements, and requests versions. A peer without that feature is sent the versions."""
    others = [llvs.Store(storage="memory") for _ in range(5)]
    wires = [Wire(store, other) for other in others]
    try:
        settle(wires)
        peer = live_peer.Peer(True, PAIRING)
        peer.features = features
        with llvs.live.Peer(store, PAIRING, initiator=False) as end:
            live_peer.carry(peer, end)
            made = store.make_version(insert={"a": b"1"})
            end.store_changed()
            live_peer.carry(peer, end)
            assert [live_peer.text_of(version) for version in peer.payloads] == [made.id]
            assert ([kind for kind, _ in peer.frames].count(live_peer.NEWS) == 1) == bool(features)
            if features:
                # Requests for versions that were never announced, and repeated requests.
                peer.frame(live_peer.ASK, b"\0\0")
                with pytest.raises(llvs.StorageError, match="were not announced"):
                    end.receive(peer.take())
    finally:
        for wire in wires:
            wire.close()
        for other in others:
            other.close()


def test_a_request_for_versions_that_were_not_announced(store: llvs.Store) -> None:
    class Curious(live_peer.Peer):
        features = 1

        def handle(self, kind: int, payload: bytes) -> None:
            if kind == live_peer.NEWS:
                payload = b"\1\0" + b"\0" + bytes(16)
                self.frame(live_peer.ASK, payload)
            else:
                super().handle(kind, payload)

    others = [llvs.Store(storage="memory") for _ in range(5)]
    wires = [Wire(store, other) for other in others]
    try:
        settle(wires)
        peer = Curious(True, PAIRING)
        with llvs.live.Peer(store, PAIRING, initiator=False) as end:
            live_peer.carry(peer, end)
            store.make_version(insert={"a": b"1"})
            end.store_changed()
            with pytest.raises(llvs.StorageError, match="were not announced"):
                live_peer.carry(peer, end)
    finally:
        for wire in wires:
            wire.close()
        for other in others:
            other.close()


def test_more_than_can_be_announced_is_sent(store: llvs.Store) -> None:
    """An announcement has at most 1,024 ids."""
    others = [llvs.Store(storage="memory") for _ in range(6)]
    wires = [Wire(store, other) for other in others]
    try:
        settle(wires)
        for count in (1_025, 3):
            for number in range(count):
                store.make_version(root=True, insert={"a": b"%d" % number})
            settle(wires)
            for wire in wires:
                wire.one.store_changed()
            settle(wires)
            assert all(ids(other) == ids(store) for other in others)
            assert all(end.state.phase == llvs.live.PeerPhase.IN_STEP for wire in wires for end in wire.ends)
    finally:
        for wire in wires:
            wire.close()
        for other in others:
            other.close()


def test_what_is_saved_while_links_are_opened(tmp_path: Path) -> None:
    """A version that is stored while both sides compare is sent as well, after the comparison."""
    done = threading.Event()
    failed: list[BaseException] = []
    with llvs.Store(tmp_path / "store") as store:

        def work(number: int) -> None:
            try:
                while not done.is_set():
                    store.make_version(root=True, insert={f"{number}": os.urandom(100)})
            except BaseException as error:
                failed.append(error)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
        for thread in threads:
            thread.start()
        others = [llvs.Store(storage="memory") for _ in range(30)]
        wires = []
        for other in others:
            wires.append(Wire(store, other))
            wires[-1].carry()
            wires[-1].carry()
        done.set()
        for thread in threads:
            thread.join()
        for wire in wires:
            wire.one.store_changed()
        while any([wire.carry() for wire in wires]):
            pass
        lacking = [len(ids(store)) - len(ids(other)) for other in others]
        for wire in wires:
            wire.close()
        for other in others:
            other.close()
        assert not failed and lacking == [0] * len(others)


def test_saves_while_events_are_reported(tmp_path: Path) -> None:
    """An announcement never covers more than the stored versions. Otherwise versions in between would never be announced."""
    done = threading.Event()
    failed: list[BaseException] = []
    with llvs.Store(tmp_path / "store") as store:

        def work(number: int) -> None:
            try:
                while not done.is_set():
                    store.make_version(root=True, insert={f"{number}": os.urandom(100)})
                    # Save no faster than six links can transfer on a busy machine.
                    time.sleep(0.001)
            except BaseException as error:
                failed.append(error)

        others = [llvs.Store(storage="memory") for _ in range(6)]
        wires = [Wire(store, other) for other in others]
        settle(wires)
        threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
        for thread in threads:
            thread.start()
        for _ in range(60):
            for wire in wires:
                wire.one.store_changed()
                wire.carry()
        done.set()
        for thread in threads:
            thread.join()
        for wire in wires:
            wire.one.store_changed()
        settle(wires)
        lacking = [len(ids(store)) - len(ids(other)) for other in others]
        for wire in wires:
            wire.close()
        for other in others:
            other.close()
        assert not failed and lacking == [0] * len(others)


def test_a_large_value_goes_on_where_it_was_cut(store: llvs.Store, tmp_path: Path) -> None:
    data = random.Random(1).randbytes(20_000_000)
    version = store.make_version(insert={"large": data, "other": data[:3_000_000]})
    with llvs.Store(tmp_path / "other") as other:
        carried = []
        for most in (9_000_000, 9_000_000, 1 << 40):
            wire = Wire(store, other)
            while wire.bytes < most and wire.carry(most):
                pass
            carried.append(wire.bytes)
            wire.close()
        assert other.at(version)["large"] == data and other.at(version)["other"] == data[:3_000_000]
        assert sum(carried) < 23_000_000 * 1.1, "nothing came twice"
        assert not other.verify().damages


def test_a_large_value_that_changed_meanwhile(store: llvs.Store, tmp_path: Path) -> None:
    """Bytes of one value are not mistaken for the beginning of another."""
    data = random.Random(1).randbytes(9_000_000)
    first = store.make_version(insert={"large": data})
    with llvs.Store(storage="memory") as source, llvs.Store(tmp_path / "other") as other:
        second = source.make_version(insert={"large": data[:-1] + b"?"})
        for one, most in ((store, 5_000_000), (source, 1 << 40), (store, 1 << 40)):
            wire = Wire(one, other)
            while wire.bytes < most and wire.carry(most):
                pass
            wire.close()
        assert other.at(first)["large"] == data and other.at(second)["large"] == data[:-1] + b"?"


def test_another_version_under_the_id_of_what_was_cut(store: llvs.Store, tmp_path: Path) -> None:
    """Ids of the caller are independent of contents. The bytes of an interrupted version are not completed with those of another."""
    data = random.Random(1).randbytes(9_000_000)
    store.make_version(insert={"large": data}, id="same")
    with llvs.Store(storage="memory") as source, llvs.Store(tmp_path / "other") as other:
        version = source.make_version(insert={"large": data[::-1]}, id="same")
        for one, most in ((store, 5_000_000), (source, 1 << 40)):
            wire = Wire(one, other)
            while wire.bytes < most and wire.carry(most):
                pass
            assert not any(end.state.problems for end in wire.ends)
            wire.close()
        assert other.at(version)["large"] == data[::-1]


def test_the_host_bounds_what_is_stored(store: llvs.Store) -> None:
    with llvs.Store(storage="memory") as other:
        asked: list[int] = []

        def quota(size: int) -> None:
            asked.append(size)
            if sum(asked) > 3_000_000:
                raise Full("the phone is nearly full")

        first = store.make_version(insert={"small": b"1"})
        wire = Wire(store, other, quota=quota)
        while wire.carry():
            pass
        assert other.version(first) is not None and len(asked) == 1
        store.make_version(first, insert={"large": os.urandom(5_000_000)})
        wire.one.store_changed()
        with pytest.raises(Full, match="nearly full"):
            while wire.carry():
                pass
        # The link ends before any of the value was received.
        assert wire.bytes < 1_000_000 and ids(other) == {first.id}
        with pytest.raises(llvs.Error, match="the store failed"):
            wire.one.receive(wire.two.send())
        wire.close()


@pytest.mark.skipif(not os.path.exists("/proc/self/task"), reason="needs the list of threads that Linux has")
def test_links_share_what_watches_their_store(store: llvs.Store) -> None:
    """A second thread for each link would double the cost of an idle one."""

    def threads() -> int:
        return len(os.listdir("/proc/self/task"))

    with llvs.live.listen({PAIRING: store}, ("127.0.0.1", 0)) as listener, llvs.Store(storage="memory") as other:
        for _ in range(2):
            links = [llvs.live.connect(other, listener.address, PAIRING)]
            assert links[0].wait(PATIENCE)
            before = threads()
            links += [llvs.live.connect(other, listener.address, PAIRING) for _ in range(3)]
            assert all(link.wait(PATIENCE) for link in links)
            # One thread for each end.
            assert threads() == before + 6
            for each in (store, other):
                made = each.make_version(each.most_recent_head, insert={os.urandom(4).hex(): b"1"})
                eventually(lambda made=made: store.version(made) is not None and other.version(made) is not None)
            for link in links:
                link.close()
            # The last link that ends releases the observation; the next link begins another.
            eventually(lambda: not listener.links)
