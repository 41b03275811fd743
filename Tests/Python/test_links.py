"""Direct connections that the library carries: `llvs.live.connect`, `llvs.live.listen` and `llvs.live.Link`."""

import os
import random
import signal
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

import llvs
from sampling import drawn
from waiting import GUARD, eventually


def test_two_stores_of_one_listener():
    pairings = [llvs.live.make_pairing(), llvs.live.make_pairing()]
    with llvs.Store(storage="memory") as notes, llvs.Store(storage="memory") as tasks, llvs.Store(storage="memory") as here:
        notes.make_version(insert={"a": b"1"})
        tasks.make_version(insert={"b": b"2"})
        with llvs.live.Listener(("127.0.0.1", 0), device="desk") as listener:
            for store, pairing in zip((notes, tasks), pairings):
                listener.offer(store, pairing)
            for pairing, count in zip(pairings, (1, 2)):
                with llvs.live.connect(here, listener.address, pairing, device="phone") as peer:
                    assert peer.wait(GUARD) and peer.state.device == "desk"
                    assert here.statistics().versions == count
                    assert listener.accept(GUARD) is not None
            # A save reaches the other side without a call.
            with llvs.live.connect(here, listener.address, pairings[0]) as peer:
                assert peer.wait(GUARD)
                version = here.make_version(here.most_recent_head, insert={"c": b"3"})
                eventually(lambda: version in notes)
                met = listener.accept(GUARD)
                assert met is not None and listener.links == (met,)
                eventually(lambda: met.state.received == 2)  # with that of the other store


def test_a_pairing_that_is_offered_twice():
    pairing = llvs.live.make_pairing()
    with llvs.Store(storage="memory") as notes, llvs.Store(storage="memory") as tasks, llvs.Store(storage="memory") as here:
        notes.make_version(insert={"a": b"1"})
        later = tasks.make_version(insert={"b": b"2"})
        with llvs.live.Listener(("127.0.0.1", 0)) as listener:
            listener.offer(notes, pairing)
            listener.offer(tasks, pairing)
            with llvs.live.connect(here, listener.address, pairing) as peer:
                assert peer.wait(GUARD)
            assert [version.id for version in here.history()] == [later.id]


def test_by_invitation():
    pairing = llvs.live.make_pairing()
    with llvs.Store(storage="memory") as store, llvs.Store(storage="memory") as other, llvs.live.Listener(("127.0.0.1", 0)) as listener:
        store.make_version(insert={"a": b"1"})
        with pytest.raises(llvs.NotFoundError):
            listener.invite(pairing)
        listener.offer(store, pairing)
        with llvs.live.connect(other, listener.address, invitation=listener.invite(pairing)) as peer:
            assert peer.wait(GUARD) and peer.pairing == pairing
            met = listener.accept(GUARD)
            assert met is not None and met.state.sent == 1
            met.close()
            eventually(lambda: peer.state.phase == llvs.live.PeerPhase.ENDED)


def test_a_socket_of_the_programs_and_its_quota():
    pairing, asked = llvs.live.make_pairing(), []

    def full(count):
        asked.append(count)
        raise OSError("no room")

    with llvs.Store(storage="memory") as store, llvs.Store(storage="memory") as other:
        store.make_version(insert={"a": b"1"})
        ends = socket.socketpair()
        peers = llvs.live.Peer(store, pairing, initiator=True), llvs.live.Peer(other, pairing, initiator=False, quota=full)
        with llvs.live.Link(peers[0], ends[0]), llvs.live.Link(peers[1], ends[1].detach()) as two:
            assert ends[0].fileno() == -1, "it is the library's"
            with pytest.raises(llvs.errors.InvalidArgumentError, match="The library carries the bytes"):
                peers[0].send()
            again = socket.socketpair()
            with again[1], pytest.raises(llvs.errors.InvalidArgumentError, match="The library carries the bytes"):
                llvs.live.Link(peers[0], again[0])
            with pytest.raises(OSError, match="no room"):
                two.wait(GUARD)
            assert isinstance(two.error, OSError) and "no room" in str(two.error)
            assert asked and other.statistics().versions == 0
        assert peers[0].closed and peers[1].closed
        assert two.state.phase == llvs.live.PeerPhase.ENDED and "no room" in str(two.error)
        with pytest.raises(OSError, match="no room"):
            two.wait(GUARD)


def test_nothing_listens_there(tmp_path):
    with llvs.Store(storage="memory") as store:
        with pytest.raises(llvs.TransportError):
            llvs.live.connect(store, f"{tmp_path}/none", llvs.live.make_pairing())
        with pytest.raises(llvs.errors.InvalidArgumentError):
            llvs.live.connect(store, ("127.0.0.1", 70_000), llvs.live.make_pairing())
        with llvs.live.Listener(f"{tmp_path}/socket") as listener:
            assert listener.address == f"{tmp_path}/socket" and (tmp_path / "socket").exists()
        assert not (tmp_path / "socket").exists()


def test_what_was_saved_just_before_closing_goes_along(tmp_path):
    pairing = llvs.live.make_pairing()
    with llvs.Store(storage="memory") as here, llvs.Store(storage="memory") as there:
        with llvs.live.Listener(f"{tmp_path}/socket") as listener:
            listener.offer(there, pairing)
            for number in range(10):
                with llvs.live.connect(here, listener.address, pairing) as peer:
                    assert peer.wait(GUARD)
                    saved = here.make_version(here.most_recent_head, insert={f"v{number}": b"1"})
                    peer.close()
                    assert saved in there and peer.error is None, number


def test_a_link_ends_when_its_store_is_closed(tmp_path):
    pairing = llvs.live.make_pairing()
    with llvs.Store(storage="memory") as here, llvs.Store(storage="memory") as there:
        with llvs.live.Listener(f"{tmp_path}/socket") as listener:
            listener.offer(there, pairing)
            with llvs.live.connect(here, listener.address, pairing) as peer:
                assert peer.wait(GUARD)
                there.close()
                eventually(lambda: peer.state.phase == llvs.live.PeerPhase.ENDED)


def test_both_sides_close_at_once(tmp_path):
    """Neither side sees the link as cut."""
    pairing = llvs.live.make_pairing()
    with llvs.Store(storage="memory") as here, llvs.Store(storage="memory") as there:
        with llvs.live.listen({pairing: there}, f"{tmp_path}/socket") as listener, ThreadPoolExecutor(2) as threads:
            for _ in drawn(usual=range(10), deep=range(300)):
                link = llvs.live.connect(here, listener.address, pairing)
                met = listener.accept(GUARD)
                assert link.wait(GUARD) and met.wait(GUARD)
                for closing in [threads.submit(one.close) for one in (link, met)]:
                    closing.result(GUARD)
                assert link.error is None and met.error is None
                assert link.state.phase == met.state.phase == llvs.live.PeerPhase.ENDED


def test_a_link_is_closed_though_the_other_side_is_busy(tmp_path, packed):
    pairing, held = llvs.live.make_pairing(), Held(0)
    with llvs.Store(storage="memory") as here, llvs.Store(storage="memory") as there:
        here.unpack(packed)
        with llvs.live.Listener(f"{tmp_path}/socket", quota=held) as listener:
            listener.offer(there, pairing)
            link = llvs.live.connect(here, listener.address, pairing)
            assert held.reached.wait(GUARD)
            link.close(0.1)
            assert link.state.phase == llvs.live.PeerPhase.ENDED and not link.wait(0) and link.error is None
            held.go_on.set()


def test_a_program_that_only_accepts_links_keeps_none_that_ended():
    pairing = llvs.live.make_pairing()
    with llvs.Store(storage="memory") as here, llvs.Store(storage="memory") as there:
        with llvs.live.listen({pairing: there}, ("127.0.0.1", 0)) as listener:
            for _ in range(30):
                with llvs.live.connect(here, listener.address, pairing) as link:
                    assert link.wait(GUARD) and listener.accept(GUARD) is not None
            assert len(listener._links) <= 16 and len(listener.links) < 2


class Held:
    """Holds up the side that receives as it asks for room for more bytes than `most`: the other one then is in the middle of sending."""

    def __init__(self, most: int) -> None:
        self.most, self.reached, self.go_on = most, threading.Event(), threading.Event()

    def __call__(self, count: int) -> None:
        self.most -= count
        if self.most < 0:
            self.reached.set()
            self.go_on.wait(GUARD)


@pytest.fixture(scope="module")
def packed():
    """Forty versions of 100 kB each."""
    chance, head = random.Random(15), None
    with llvs.Store(storage="memory") as full:
        for number in range(40):
            head = full.make_version(head, insert={f"v{number}": chance.randbytes(100_000)})
        return full.pack()


def test_a_store_that_is_closed_while_it_sends_says_goodbye(tmp_path, packed):
    """A store is closed at any moment of a transfer: the other side is not told of tampering, and keeps the versions that had arrived
    whole."""
    pairing = llvs.live.make_pairing()
    for most in drawn(usual=[0, 300_000, 1_000_000, 2_000_000], deep=range(0, 2_000_000, 50_000)):
        held, there = Held(most), llvs.Store(storage="memory")
        there.unpack(packed)
        with llvs.Store(storage="memory") as here, llvs.live.listen({pairing: there}, f"{tmp_path}/socket{most}") as listener:
            with llvs.live.connect(here, listener.address, pairing, quota=held) as link:
                assert held.reached.wait(GUARD)
                there.close()
                held.go_on.set()
                eventually(lambda: link.state.phase == llvs.live.PeerPhase.ENDED)
                assert not link.wait(GUARD) and link.error is None, most
            assert here.statistics().versions < 40, "it was closed in the middle of sending"


def test_what_is_not_known_there_is_refused_and_told():
    pairing, key = llvs.live.make_pairing(), llvs.live.device_key(bytes([7]) * 32)
    with llvs.Store(storage="memory") as store, llvs.Store(storage="memory") as other:
        with llvs.live.Listener(("127.0.0.1", 0)) as listener:
            listener.offer(store, pairing)
            code = listener.invite(pairing)
            with llvs.live.connect(other, listener.address, invitation=code) as peer:
                assert peer.wait(GUARD)
            for refused, match in (
                ({"invitation": code}, "does not know the invitation.*Ask for a new one"),
                ({"pairing": llvs.live.make_pairing()}, "does not know this pairing.*pair the two again"),
                ({"compare": True}, "does not compare digits now"),
            ):
                with llvs.live.connect(other, listener.address, **refused) as peer, pytest.raises(llvs.errors.EncryptionError, match=match):
                    peer.wait(GUARD)
        with llvs.live.Listener(("127.0.0.1", 0), accepted=[key]) as listener:
            listener.offer(store, pairing)
            with llvs.live.connect(other, listener.address, pairing) as peer:
                with pytest.raises(llvs.errors.EncryptionError, match="does not accept the key of this device"):
                    while not peer.wait(GUARD):
                        pass


def test_the_socket_of_a_killed_process_is_created_again(tmp_path):
    path = tmp_path / "socket"
    left = socket.socket(socket.AF_UNIX)
    left.bind(str(path))
    left.listen()
    with pytest.raises(llvs.TransportError):
        llvs.live.Listener(str(path))
    left.close()
    assert path.exists()
    with llvs.live.Listener(str(path)):
        pass
    assert not path.exists()
    path.write_text("a file")
    with pytest.raises(llvs.TransportError):
        llvs.live.Listener(str(path))
    assert path.read_text() == "a file"


def test_interrupts_end_waits():
    """Ctrl-C takes effect immediately, and not at the end of the wait."""

    def interrupted(wait):
        timer = threading.Timer(0.2, signal.raise_signal, (signal.SIGINT,))
        began = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            timer.start()
            wait()
            timer.join()
            time.sleep(1)  # if it arrived a moment too late
        timer.join()
        return time.monotonic() - began

    with llvs.live.Listener(("127.0.0.1", 0)) as listener:
        assert interrupted(lambda: listener.accept(GUARD)) < GUARD
    with socket.create_server(("127.0.0.1", 0)) as silent, llvs.Store(storage="memory") as store:
        with llvs.live.connect(store, silent.getsockname(), llvs.live.make_pairing()) as link:
            assert interrupted(lambda: link.wait(GUARD)) < GUARD
            assert interrupted(link.wait) < GUARD


def test_waits_last_as_long_as_they_say():
    with llvs.live.Listener(("127.0.0.1", 0)) as listener:
        began = time.monotonic()
        assert listener.accept(0.35) is None and time.monotonic() - began > 0.3


def test_the_pairing_is_not_shown():
    pairing = llvs.live.make_pairing()
    with llvs.Store(storage="memory") as store, llvs.Store(storage="memory") as other, llvs.live.Listener(("127.0.0.1", 0)) as listener:
        listener.offer(store, pairing)
        with llvs.live.connect(other, listener.address, invitation=listener.invite(pairing)) as peer:
            assert peer.wait(GUARD)
            state = peer.state
            assert state.pairing == pairing and repr(pairing)[2:-1] not in f"{state!r} {state}"
            assert repr(state).startswith("PeerState(phase=") and "pairing=..." in repr(state)


def test_a_child_that_closes_leaves_the_listener_to_its_parent(tmp_path):
    pairing = llvs.live.make_pairing()
    with llvs.Store(storage="memory") as store, llvs.Store(storage="memory") as other:
        version = store.make_version(insert={"a": b"1"})
        for address in (("127.0.0.1", 0), str(tmp_path / "socket")):
            with llvs.live.listen({pairing: store}, address) as listener:
                child = os.fork()
                if child == 0:
                    try:
                        listener.close()
                    finally:
                        os._exit(0)
                os.waitpid(child, 0)
                with llvs.live.connect(other, listener.address, pairing) as link:
                    assert link.wait(GUARD) and version in other
