"""Direct connections that the library carries: `llvs.Peer.connect` and `llvs.PeerListener`."""

import os
import random
import signal
import socket
import threading
import time

import pytest

import llvs
from sampling import drawn
from waiting import GUARD, eventually


def test_two_stores_of_one_listener():
    pairings = [llvs.make_pairing(), llvs.make_pairing()]
    with llvs.Store(storage="memory") as notes, llvs.Store(storage="memory") as tasks, llvs.Store(storage="memory") as here:
        notes.make_version(insert={"a": b"1"})
        tasks.make_version(insert={"b": b"2"})
        with llvs.PeerListener("127.0.0.1:0", device="desk") as listener:
            for store, pairing in zip((notes, tasks), pairings):
                listener.offer(store, pairing)
            for pairing, count in zip(pairings, (1, 2)):
                with llvs.Peer.connect(here, listener.address, pairing, device="phone") as peer:
                    assert peer.wait(GUARD) and peer.state.device == "desk"
                    assert here.statistics().versions == count
                    assert listener.accept(GUARD) is not None  # takes this link, so that the call below gets the third one
            # A save reaches the other side without a call.
            with llvs.Peer.connect(here, listener.address, pairings[0]) as peer:
                assert peer.wait(GUARD)
                version = here.make_version(here.most_recent_head, insert={"c": b"3"})
                eventually(lambda: version in notes)
                with pytest.raises(llvs.InvalidArgumentError):
                    peer.send()
                met = listener.accept(GUARD)
                assert met is not None
                eventually(lambda: met.state.received == 2)  # that of the other store, too


def test_a_pairing_that_is_offered_twice():
    pairing = llvs.make_pairing()
    with llvs.Store(storage="memory") as notes, llvs.Store(storage="memory") as tasks, llvs.Store(storage="memory") as here:
        notes.make_version(insert={"a": b"1"})
        later = tasks.make_version(insert={"b": b"2"})
        with llvs.PeerListener("127.0.0.1:0") as listener:
            listener.offer(notes, pairing)
            listener.offer(tasks, pairing)
            with llvs.Peer.connect(here, listener.address, pairing) as peer:
                assert peer.wait(GUARD)
            assert [version.id for version in here.history()] == [later.id]


def test_by_invitation_and_by_digits():
    pairing = llvs.make_pairing()
    with llvs.Store(storage="memory") as store, llvs.Store(storage="memory") as other, llvs.PeerListener("127.0.0.1:0") as listener:
        store.make_version(insert={"a": b"1"})
        with pytest.raises(llvs.NotFoundError):
            listener.invite(pairing)
        listener.offer(store, pairing)
        with llvs.Peer.connect(other, listener.address, invitation=listener.invite(pairing)) as peer:
            assert peer.wait(GUARD) and peer.state.pairing == pairing
            met = listener.accept(GUARD)
            assert met is not None and met.state.sent == 1
            met.close()
        listener.compare(pairing)
        with pytest.raises(llvs.BusyError):
            listener.compare(pairing)
        with llvs.Peer.connect(other, listener.address, compare=True) as peer:
            met = listener.accept(GUARD)
            assert met is not None
            eventually(lambda: peer.state.digits and peer.state.digits == met.state.digits)
            peer.confirm()
            met.confirm()
            assert peer.wait(GUARD) and peer.state.pairing == pairing
            met.close()


def test_a_socket_of_the_programs_and_its_quota():
    pairing, asked = llvs.make_pairing(), []

    def full(count):
        asked.append(count)
        raise OSError("no room")

    with llvs.Store(storage="memory") as store, llvs.Store(storage="memory") as other:
        store.make_version(insert={"a": b"1"})
        ends = socket.socketpair()
        with llvs.Peer(store, pairing, initiator=True) as one, llvs.Peer(other, pairing, initiator=False, quota=full) as two:
            one.carry(ends[0].detach())
            two.carry(ends[1].detach())
            with pytest.raises(OSError, match="no room"):
                while two.wait(GUARD):
                    pass
            assert asked and other.statistics().versions == 0


def test_nothing_listens_there(tmp_path):
    with llvs.Store(storage="memory") as store:
        with pytest.raises(llvs.TransportError):
            llvs.Peer.connect(store, f"unix:{tmp_path}/none", llvs.make_pairing())
        with pytest.raises(llvs.InvalidArgumentError):
            llvs.Peer.connect(store, "nowhere", llvs.make_pairing())
        with llvs.PeerListener(f"unix:{tmp_path}/socket") as listener:
            assert listener.address == f"unix:{tmp_path}/socket" and (tmp_path / "socket").exists()
        assert not (tmp_path / "socket").exists()


def test_what_was_saved_just_before_closing_goes_along(tmp_path):
    pairing = llvs.make_pairing()
    with llvs.Store(storage="memory") as here, llvs.Store(storage="memory") as there:
        with llvs.PeerListener(f"unix:{tmp_path}/socket") as listener:
            listener.offer(there, pairing)
            for number in range(10):
                with llvs.Peer.connect(here, listener.address, pairing) as peer:
                    assert peer.wait(GUARD)
                    saved = here.make_version(here.most_recent_head, insert={f"v{number}": b"1"})
                    peer.goodbye()
                    eventually(lambda: peer.state.phase == llvs.PeerPhase.ENDED)
                    assert saved in there, number


def test_a_link_ends_when_its_store_is_closed(tmp_path):
    pairing = llvs.make_pairing()
    with llvs.Store(storage="memory") as here, llvs.Store(storage="memory") as there:
        with llvs.PeerListener(f"unix:{tmp_path}/socket") as listener:
            listener.offer(there, pairing)
            with llvs.Peer.connect(here, listener.address, pairing) as peer:
                assert peer.wait(GUARD)
                there.close()
                eventually(lambda: peer.state.phase == llvs.PeerPhase.ENDED)


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


@pytest.mark.parametrize("carrier", ["library", "python"])
def test_a_store_that_is_closed_while_it_sends_says_goodbye(tmp_path, packed, carrier):
    """At any moment of it: the other side hears of no tampering, and keeps what had come whole."""
    pairing = llvs.make_pairing()
    for most in drawn(usual=[0, 300_000, 1_000_000, 2_000_000], deep=range(0, 2_000_000, 50_000)):
        held, there = Held(most), llvs.Store(storage="memory")
        there.unpack(packed)
        with llvs.Store(storage="memory") as here:
            if carrier == "library":
                with llvs.PeerListener(f"unix:{tmp_path}/socket{most}") as listener:
                    listener.offer(there, pairing)
                    with llvs.Peer.connect(here, listener.address, pairing, quota=held) as peer:
                        assert held.reached.wait(GUARD)
                        there.close()
                        held.go_on.set()
                        eventually(lambda: peer.state.phase == llvs.PeerPhase.ENDED)
                        assert not peer.wait(GUARD), most
            else:
                with llvs.listen({pairing: there}, f"{tmp_path}/socket{most}") as listener:
                    with llvs.connect(here, listener.address, pairing, quota=held) as link:
                        assert held.reached.wait(GUARD)
                        there.close()
                        held.go_on.set()
                        eventually(lambda: link.state.phase == llvs.PeerPhase.ENDED)
                        assert not link.wait(GUARD) and link.error is None, most
            assert here.statistics().versions < 40, "it was closed in the middle of sending"


def test_what_is_not_known_there_is_refused_and_told():
    pairing, key = llvs.make_pairing(), llvs.device_key(bytes([7]) * 32)
    with llvs.Store(storage="memory") as store, llvs.Store(storage="memory") as other:
        with llvs.PeerListener("127.0.0.1:0") as listener:
            listener.offer(store, pairing)
            code = listener.invite(pairing)
            with llvs.Peer.connect(other, listener.address, invitation=code) as peer:
                assert peer.wait(GUARD)
            for refused, match in (
                ({"invitation": code}, "does not know the invitation.*Ask for a new one"),
                ({"pairing": llvs.make_pairing()}, "does not know this pairing.*pair the two anew"),
                ({"compare": True}, "compares digits with nobody now"),
            ):
                with llvs.Peer.connect(other, listener.address, **refused) as peer, pytest.raises(llvs.EncryptionError, match=match):
                    peer.wait(GUARD)
        with llvs.PeerListener("127.0.0.1:0", accepted=[key]) as listener:
            listener.offer(store, pairing)
            with llvs.Peer.connect(other, listener.address, pairing) as peer:
                with pytest.raises(llvs.EncryptionError, match="does not accept the key of this device"):
                    while not peer.wait(GUARD):
                        pass


def test_the_socket_of_a_process_that_was_killed_is_made_anew(tmp_path):
    path = tmp_path / "socket"
    left = socket.socket(socket.AF_UNIX)
    left.bind(str(path))
    left.listen()
    with pytest.raises(llvs.TransportError):
        llvs.PeerListener(f"unix:{path}")
    left.close()
    assert path.exists()
    with llvs.PeerListener(f"unix:{path}"):
        pass
    assert not path.exists()
    path.write_text("a file")
    with pytest.raises(llvs.TransportError):
        llvs.PeerListener(f"unix:{path}")
    assert path.read_text() == "a file"


def test_interrupts_end_waits():
    """Ctrl-C is obeyed at once, and not when the wait is over."""

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

    with llvs.PeerListener("127.0.0.1:0") as listener:
        assert interrupted(lambda: listener.accept(GUARD)) < GUARD
    with socket.create_server(("127.0.0.1", 0)) as silent, llvs.Store(storage="memory") as store:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        with llvs.Peer.connect(store, address, llvs.make_pairing()) as peer:
            assert interrupted(lambda: peer.wait(GUARD)) < GUARD


def test_waits_last_as_long_as_they_say():
    with llvs.PeerListener("127.0.0.1:0") as listener:
        began = time.monotonic()
        assert listener.accept(0.35) is None and time.monotonic() - began > 0.3


def test_the_pairing_is_not_shown():
    pairing = llvs.make_pairing()
    with llvs.Store(storage="memory") as store, llvs.Store(storage="memory") as other, llvs.PeerListener("127.0.0.1:0") as listener:
        listener.offer(store, pairing)
        with llvs.Peer.connect(other, listener.address, invitation=listener.invite(pairing)) as peer:
            assert peer.wait(GUARD)
            state = peer.state
            assert state.pairing == pairing and repr(pairing)[2:-1] not in f"{state!r} {state}"
            assert repr(state).startswith("PeerState(phase=") and "pairing=..." in repr(state)


def test_a_child_that_closes_leaves_the_listener_to_its_parent(tmp_path):
    pairing = llvs.make_pairing()
    with llvs.Store(storage="memory") as store, llvs.Store(storage="memory") as other:
        version = store.make_version(insert={"a": b"1"})
        for address in (("127.0.0.1", 0), str(tmp_path / "socket")):
            with llvs.listen({pairing: store}, address) as listener:
                child = os.fork()
                if child == 0:
                    try:
                        listener.close()
                    finally:
                        os._exit(0)
                os.waitpid(child, 0)
                with llvs.connect(other, listener.address, pairing) as link:
                    assert link.wait(GUARD) and version in other
