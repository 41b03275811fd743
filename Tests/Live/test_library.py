"""The library with the peer in plain Python, over sockets, between processes, and with hostile peers."""

from __future__ import annotations

import importlib.util
import os
import random
import shutil
import socket
import struct
import subprocess
import sys
import zlib
from contextlib import suppress
from pathlib import Path
from typing import Callable, Iterator

import live_peer
import noise
import pytest
from patience import PATIENCE, eventually

_path = Path(__file__).resolve().parents[1] / "Python" / "conftest.py"
_spec = importlib.util.spec_from_file_location("python_conftest", _path)
assert _spec is not None and _spec.loader is not None
shared = importlib.util.module_from_spec(_spec)
sys.modules["python_conftest"] = shared
_spec.loader.exec_module(shared)

import llvs  # noqa: E402
from packs import records  # noqa: E402

PAIRING = bytes(range(48))


@pytest.fixture
def store() -> Iterator[llvs.Store]:
    with llvs.Store(storage="memory") as made:
        yield made


def save(store: llvs.Store, number: int, random_: random.Random) -> None:
    heads = store.heads()
    base = random_.choice(heads) if heads and random_.random() < 0.9 else None
    store.make_version(base, insert={f"v{number}-{random_.random()}": random_.randbytes(random_.randrange(400))}, root=base is None)


def ids(store: llvs.Store) -> set[str]:
    return {version.id for version in store.history()}


def peer_ids(peer: live_peer.Peer) -> set[str]:
    empty_root = "00000000-0000-8000-8000-000000000000"
    return {live_peer.text_of(version) for version in peer.payloads} - {empty_root}


def without_root(versions: set[str]) -> set[str]:
    return versions - {"00000000-0000-8000-8000-000000000000"}


@pytest.mark.parametrize("initiator", [False, True])
def test_the_peer_made_from_the_page(store: llvs.Store, initiator: bool) -> None:
    random_ = random.Random(7)
    known: dict[bytes, bytes] = {}
    with llvs.Store(storage="memory") as other:
        for round_ in range(4):
            for number in range(30):
                save(store, number, random_)
                save(other, number, random_)
            # The Python peer receives the versions of the other store first, and the store receives them from it.
            for one in (other, store, other):
                peer = live_peer.Peer(not initiator, PAIRING)
                for payload in known.values():
                    peer.add(payload)
                before, had = peer_ids(peer), without_root(ids(one))
                with llvs.live.Peer(one, PAIRING, initiator=initiator, device="library") as end:
                    live_peer.carry(peer, end)
                    state = end.state
                assert state.phase == llvs.live.PeerPhase.IN_STEP and state.device == "" and not state.problems
                assert peer_ids(peer) == without_root(ids(one)) == before | had
                assert state.sent == len(had - before) and state.received == len(before - had)
                known = dict(peer.payloads)
        assert ids(store) == ids(other)


def test_histories_that_are_compared_by_ranges(store: llvs.Store) -> None:
    """There are many branches, of which HAVE covers few, and more versions than fit into a list. One side is the peer in plain Python."""
    heads = [store.make_version(insert={f"r{number}": b"1"}, root=True) for number in range(5_000)]
    for number in range(70_000):
        heads[number % 5_000] = store.make_version(heads[number % 5_000], insert={"a": b"1"})
    with llvs.Store(storage="memory") as other:
        other.unpack(store.pack())
        first = live_peer.Peer(True, PAIRING)
        with llvs.live.Peer(other, PAIRING, initiator=False) as end:
            live_peer.carry(first, end)
        known = dict(first.payloads)
        theirs = [other.make_version(heads[number * 7], insert={f"b{number}": b"2"}) for number in range(40)]
        ours = [store.make_version(heads[number * 11], insert={f"a{number}": b"3"}) for number in range(40)]
        for initiator in (True, False):
            peer = live_peer.Peer(initiator, PAIRING)
            peer.features = 2
            for payload in known.values():
                peer.add(payload)
            with llvs.live.Peer(store if initiator else other, PAIRING, initiator=not initiator) as end:
                live_peer.carry(peer, end)
                state = end.state
            assert peer.ranges is not None and peer.ranges.is_done and 2 <= sum(kind == live_peer.RANGES for kind, _ in peer.frames)
            # Exact: no version that the other side had was sent.
            assert state.sent == 40 and state.received == (0 if initiator else 40)
            assert {one.id for one in (ours if initiator else theirs)} <= peer_ids(peer)
            known = dict(peer.payloads)
        assert {one.id for one in ours} <= ids(other)


def test_sockets(store: llvs.Store, tmp_path: Path) -> None:
    random_ = random.Random(1)
    with llvs.Store(tmp_path / "other") as other, llvs.Store(storage="memory") as third:
        for number in range(50):
            save(store, number, random_)
            save(other, number, random_)
        second = llvs.live.make_pairing()
        for address in (("127.0.0.1", 0), str(tmp_path / "socket")):
            with llvs.live.listen({PAIRING: store, second: third}, address, device="listener") as listener:
                connect = llvs.live.connect
                with connect(other, listener.address, PAIRING) as link, connect(other, listener.address, second) as also:
                    assert link.wait(PATIENCE) and also.wait(PATIENCE)
                    # Versions from one link are sent on over the other.
                    eventually(lambda: ids(store) == ids(other) == ids(third))
                    assert link.state.device == "listener"
                    save(other, 1_000, random_)
                    eventually(lambda: ids(store) == ids(other) == ids(third))
                assert link.error is None and also.error is None
        assert not os.path.exists(tmp_path / "socket")


def test_who_connects_before_the_first_offer_waits_for_it(store: llvs.Store) -> None:
    """If a device connects again while the program of its listener starts, the listener must not answer that it is unpaired."""
    version = store.make_version(insert={"x": b"1"})
    for _ in range(10):
        with llvs.live.Listener(("127.0.0.1", 0)) as listener, llvs.Store(storage="memory") as other, \
                llvs.live.connect(other, listener.address, PAIRING) as link:
            listener.offer(store, PAIRING)
            assert link.wait(PATIENCE) and other.at(version)["x"] == b"1"


CHILD = """
import sys, llvs
with llvs.Store(sys.argv[1]) as store:
    version = None
    for number in range(40):
        version = store.make_version(version, insert={f"child{number}": b"x" * number})
    with llvs.live.connect(store, ("127.0.0.1", int(sys.argv[2])), bytes(range(48))) as link:
        assert link.wait(PATIENCE)
    print(len(list(store.history())))
""".replace("PATIENCE", str(PATIENCE))


def test_between_processes(store: llvs.Store, tmp_path: Path) -> None:
    random_ = random.Random(3)
    for number in range(60):
        save(store, number, random_)
    with llvs.live.listen({PAIRING: store}, ("127.0.0.1", 0)) as listener:
        children = [
            subprocess.Popen([sys.executable, "-c", CHILD, str(tmp_path / f"{i}"), str(listener.address[1])], stdout=subprocess.PIPE)
            for i in range(3)
        ]
        for child in children:
            out, _ = child.communicate(timeout=PATIENCE)
            assert child.returncode == 0 and int(out) >= 100
        for child in range(3):
            with llvs.Store(tmp_path / f"{child}") as theirs:
                assert ids(theirs) <= ids(store)


def test_large_values(store: llvs.Store, tmp_path: Path) -> None:
    values = {f"v{i}": os.urandom(1_500_000 * i) for i in range(1, 5)}
    version = store.make_version(insert=values)
    with llvs.Store(tmp_path / "other") as other:
        with llvs.live.listen({PAIRING: store}, ("127.0.0.1", 0)) as listener:
            with llvs.live.connect(other, listener.address, PAIRING) as link:
                assert link.wait(PATIENCE)
        assert {id: found.data for id in values if (found := other.value(id, at=version))} == values


# Hostile peers


def versions_of(store: llvs.Store) -> live_peer.Peer:
    """Returns a peer in Python with the versions of a store."""
    peer = live_peer.Peer(True, PAIRING)
    with llvs.live.Peer(store, PAIRING, initiator=False) as end:
        live_peer.carry(peer, end)
    return peer


def attack(store: llvs.Store, peer: live_peer.Peer, refused: bool = True, why: str = "") -> None:
    """Lets a peer attack a store: the store stays unchanged, and both sides learn why the connection ended."""
    before = ids(store)
    with llvs.live.Peer(store, PAIRING, initiator=False) as end:
        if refused:
            with pytest.raises(llvs.Error) as told:
                live_peer.carry(peer, end)
            assert end.state.phase == llvs.live.PeerPhase.ENDED
            with pytest.raises(live_peer.Refused):
                peer.receive(end.send())
            assert why in str(told.value)
        else:
            live_peer.carry(peer, end)
    assert ids(store) == before


def test_values_deflated_within_their_records_are_refused(tmp_path: Path) -> None:
    """A value that is compressed in its record and again in its frame: a kilobyte would fill the disk with 120 MB."""
    peer, asked = live_peer.Peer(True, PAIRING), []
    for number in range(2):
        peer.add(records.made(records.deflated(f"bomb{number}", 60_000_000, 1)).payload)
    with llvs.Store(tmp_path / "store", durability="normal") as store:
        with llvs.live.Peer(store, PAIRING, initiator=False, quota=asked.append) as end:
            with pytest.raises(llvs.Error, match="deflated within its record"):
                live_peer.carry(peer, end)
        assert ids(store) == set()
    assert sum(file.stat().st_size for file in (tmp_path / "store").rglob("*") if file.is_file()) < 1 << 20


def test_the_quota_is_reported_for_each_name_of_a_large_value(tmp_path: Path) -> None:
    """A value that arrives once is stored under each of the names that a version gives it."""
    value, asked = bytes(2 << 20), list[int]()
    blob = records.reference(value, [bytes(16)])
    peer = live_peer.Peer(True, PAIRING)
    peer.add(records.made(records.record("many", (), 3.0, blobs={b"%02d" % key: blob for key in range(60)}), [blob]).payload)

    def quota(size: int) -> None:
        asked.append(size)
        raise OSError("full")

    with llvs.Store(tmp_path / "store", durability="normal") as store:
        with llvs.live.Peer(store, PAIRING, initiator=False, quota=quota) as end:
            with suppress(OSError, llvs.Error, live_peer.Refused):
                live_peer.carry(peer, end)
        assert ids(store) == set()
    assert len(asked) == 1 and asked[0] >= 60 * len(value)


def lying(change: Callable[[live_peer.Peer], None]) -> type[live_peer.Peer]:
    class Liar(live_peer.Peer):
        def handle(self, kind: int, payload: bytes) -> None:
            if kind == live_peer.HELLO:
                self.credit = 1 << 30
                change(self)
            elif kind == live_peer.ERROR:
                super().handle(kind, payload)

    return Liar


def have_of(heads: int, versions: int, ids: list[bytes]) -> bytes:
    return struct.pack("<II", heads, versions) + bytes(32) + struct.pack("<H", len(ids)) + b"".join(ids) + b"\0\0"


def data_of(row: bytes, ordinal: int = 0, codec: int = 0, size: int = -1) -> bytes:
    return struct.pack("<QBI", ordinal, codec, len(row) if size < 0 else size) + row


#: The frames, each with the reason that the other side sends.
FRAMES = {
    "a billion heads": (live_peer.HAVE, have_of(10**9, 10**9, []), "there are 1000000000 heads"),
    "more heads than versions": (live_peer.HAVE, have_of(5, 1, []), "has another form"),
    "too many ids": (live_peer.HAVE, have_of(300, 300, [b"\0" + os.urandom(16) for _ in range(300)]), "lists 300 ids"),
    "a list that is not due": (live_peer.LIST, struct.pack("<BHI", 0, 0, 0), "LIST is not due"),
    "a list that is too long": (live_peer.LIST, struct.pack("<BHI", 0, 0, 2**32 - 1), "a list has 4294967295 hashes"),
    "a whole list that is too long": (
        live_peer.LIST, struct.pack("<BHI", 0, 0, 70_000) + b"".join(struct.pack(">Q", n) for n in range(70_000)), "has 70000 hashes"),
    "a list in no order": (live_peer.LIST, struct.pack("<BHI", 0, 0, 2) + struct.pack(">QQ", 2, 1), "has another form"),
    "a bitmap that is too long": (live_peer.LIST, struct.pack("<BH", 0, 60_000) + bytes(7_500) + bytes(4), "a bitmap has 60000 bits"),
    "a bomb": (live_peer.DATA, data_of(b"x", codec=1, size=1 << 30), "inflates to 1073741824 bytes"),
    "a bomb within bounds": (live_peer.DATA, data_of(zlib.compress(bytes(1 << 26), wbits=-15), codec=1, size=1 << 26), "has no id"),
    "another size": (live_peer.DATA, data_of(zlib.compress(bytes(100), wbits=-15), codec=1, size=99), "does not inflate to what it says"),
    "an unknown codec": (live_peer.DATA, data_of(b"x", codec=9), "has the codec 9"),
    "a version of 1 GiB": (live_peer.DATA, data_of(live_peer.varint(1 << 30)), "a version has 1073741824 bytes"),
    "a size that is none": (live_peer.DATA, data_of(b"\xff" * 11), "the size of a version is not valid"),
    "a version that is none": (live_peer.DATA, data_of(live_peer.varint(50) + bytes(50)), ""),
    "a version that ends before its id": (live_peer.DATA, data_of(live_peer.varint(20) + bytes(20)), "has no id"),
    "a version of another form": (live_peer.DATA, data_of(live_peer.varint(60) + b"\x01" + bytes(59)), "has no id"),
    "a value nobody asked for": (live_peer.BLOB, bytes(40) + b"x", "was not requested"),
    "17 MiB of a value": (live_peer.WANT, bytes(40) + struct.pack("<I", 17 << 20), "17825792 bytes of a value are requested"),
    "a value behind its end": (live_peer.WANT, bytes(32) + struct.pack("<QI", 2**64 - 1, 5), "beyond its end"),
    "1 TiB of credit": (live_peer.CREDIT, struct.pack("<Q", 1 << 40), "it allows more than a window"),
    "an acknowledgement of nothing": (live_peer.ACK, struct.pack("<QQ", 1, 1 << 40), "acknowledged that was not sent"),
    "news of too many versions": (
        live_peer.NEWS, struct.pack("<H", 1_025) + b"".join(b"\0" + os.urandom(16) for _ in range(1_025)), "type 9 lists 1025 ids"),
    "too many versions that are asked for": (
        live_peer.ASK, struct.pack("<H", 1_025) + b"".join(b"\0" + os.urandom(16) for _ in range(1_025)), "type 17 lists 1025 ids"),
    "ranges that are not due": (live_peer.RANGES, b"\x01\x00\x00", "RANGES is not due"),
    "no ranges": (live_peer.RANGES, bytes(2), "has another form"),
    "5,000 ranges": (live_peer.RANGES, struct.pack("<H", 5_000), "5000 ranges"),
    "a range that lists too much": (live_peer.RANGES, b"\x01\x00\x02\x41\x00" + bytes(65 * 8), "a range lists 65 hashes"),
    "a critical type": (99, b"", "a frame has the type 99"),
    "a short frame": (live_peer.HAVE, b"x", "has another form"),
    "a second hello": (live_peer.HELLO, struct.pack("<HH", 1, 1) + bytes(2) + bytes(16) + bytes(8) + bytes(24) + bytes(4)
                       + struct.pack("<Q", 1 << 20), "a second beginning"),
    "a window of 1 KiB": (live_peer.HELLO, struct.pack("<HH", 1, 1) + bytes(2) + bytes(16) + bytes(8) + bytes(24) + bytes(4)
                          + struct.pack("<Q", 1 << 10), "a window has 1024 bytes"),
}


@pytest.mark.parametrize("name", FRAMES)
def test_frames_that_break_a_rule(store: llvs.Store, name: str) -> None:
    save(store, 1, random.Random(1))
    kind, payload, why = FRAMES[name]
    attack(store, lying(lambda peer: peer.frame(kind, payload))(True, PAIRING), why=why)


def test_what_came_before_a_bad_frame_stays(store: llvs.Store) -> None:
    """What came before a bad frame is stored, also if it came in the same bytes. Nothing of the bad frame is stored, and nothing after
    it."""
    made: list[llvs.Version] = []
    with llvs.Store(storage="memory") as other:
        for number in range(5):
            made.append(other.make_version(made[-1] if made else None, insert={f"{number}": b"x"}))
        rows = [live_peer.varint(len(payload)) + payload for payload in versions_of(other).payloads.values()]

    def change(peer: live_peer.Peer) -> None:
        peer.frame(live_peer.DATA, data_of(b"".join(rows[:3])))
        peer.frame(live_peer.DATA, data_of(rows[3] + live_peer.varint(50) + bytes(50)))
        peer.frame(live_peer.DATA, data_of(rows[4]))

    with llvs.live.Peer(store, PAIRING, initiator=False) as end, pytest.raises(llvs.Error):
        live_peer.carry(lying(change)(True, PAIRING), end)
    assert [version in store for version in made] == [True, True, True, False, False]


def test_a_store_that_is_set_back_finds_out_anew(tmp_path: Path) -> None:
    """The store was restored from an older copy. The other device remembers more of the order of arrivals, under the same name, than the
    store itself does."""

    def carry(one: llvs.live.Peer, two: llvs.live.Peer) -> None:
        live_peer.carry(one, two)

    def peers(a: llvs.Store, b: llvs.Store) -> tuple[llvs.live.Peer, llvs.live.Peer]:
        return (llvs.live.Peer(a, PAIRING, initiator=True, identity=bytes([1]) * 32),
                llvs.live.Peer(b, PAIRING, initiator=False, identity=bytes([2]) * 32))

    def grow(store: llvs.Store, count: int) -> None:
        for _ in range(count):
            store.make_version(store.most_recent_head, insert={os.urandom(8).hex(): b"x"})

    with llvs.Store(tmp_path / "a") as a, llvs.Store(tmp_path / "b") as b:
        grow(a, 50)
        one, two = peers(a, b)
        with one, two:
            carry(one, two)
            shutil.copytree(tmp_path / "a", tmp_path / "copy")
            grow(a, 20)
            one.store_changed()
            carry(one, two)
            one.goodbye()
            carry(one, two)
    shutil.rmtree(tmp_path / "a")
    (tmp_path / "copy").rename(tmp_path / "a")
    with llvs.Store(tmp_path / "a") as a, llvs.Store(tmp_path / "b") as b:
        grow(a, 60)
        one, two = peers(a, b)
        with one, two:
            carry(one, two)
            assert one.state.sent == 60 and two.state.sent == 20
        assert ids(a) == ids(b)


def test_frames_that_follow_others(store: llvs.Store) -> None:
    def bye(peer: live_peer.Peer) -> None:
        peer.frame(live_peer.BYE)
        peer.frame(live_peer.HAVE, have_of(0, 0, []))

    attack(store, lying(bye)(True, PAIRING), why="more came behind BYE")
    wants = lying(lambda peer: [peer.frame(live_peer.WANT, bytes(40) + struct.pack("<I", 1)) for _ in range(65)])
    attack(store, wants(True, PAIRING), why="asks for many values at once")


@pytest.mark.parametrize("lie", ["another place", "another value", "too much", "more behind it"])
def test_versions_behind_a_large_value(store: llvs.Store, lie: str) -> None:
    """Versions after an incomplete value wait, and their size is bounded. Only the next piece of the value is accepted."""
    with llvs.Store(storage="memory") as other:
        other.make_version(insert={"large": os.urandom(2 << 20)})
        peer = versions_of(other)
    row = b"".join(live_peer.varint(len(payload)) + payload for payload in peer.payloads.values())

    class Liar(live_peer.Peer):
        def handle(self, kind: int, payload: bytes) -> None:
            if kind == live_peer.HELLO:
                self.frame(live_peer.DATA, data_of(row))
                for _ in range(2 if lie == "more behind it" else 0):  # the window is 1 MiB at first
                    self.frame(live_peer.DATA, data_of(bytes(600_000)))
            elif kind == live_peer.WANT:
                if lie == "too much":
                    for place in range(0, 2 << 20, 1 << 19):
                        self.frame(live_peer.BLOB, payload[:32] + struct.pack("<Q", place) + bytes((1 << 19) + (place == 3 << 19)))
                else:
                    value = payload[:32] if lie == "another place" else bytes(32)
                    self.frame(live_peer.BLOB, value + struct.pack("<Q", 5 if lie == "another place" else 0) + bytes(100))
            elif kind == live_peer.ERROR:
                super().handle(kind, payload)

    attack(store, Liar(True, PAIRING), why="more than it was allowed" if lie == "more behind it" else "was not requested")


def test_a_frame_that_is_too_large(store: llvs.Store) -> None:
    def change(peer: live_peer.Peer) -> None:
        assert peer.sends is not None
        peer._message(peer.sends.seal(struct.pack("<IB", 1 << 24, live_peer.DATA)))

    attack(store, lying(change)(True, PAIRING))


def test_versions_whose_predecessors_never_come(store: llvs.Store) -> None:
    with llvs.Store(storage="memory") as other:
        version = None
        for number in range(10_200):
            version = other.make_version(version, insert={"v": b"%d" % number})
        peer = versions_of(other)
    order = list(peer.payloads)
    liar = lying(lambda one: one.send_versions(order[5:]))(True, PAIRING)
    liar.payloads = peer.payloads
    attack(store, liar)


def test_lies_about_heads(store: llvs.Store) -> None:
    """A side that claims to have all versions gets none, and loses none. A side that claims to have none gets all."""
    random_ = random.Random(5)
    for number in range(20):
        save(store, number, random_)
    known = versions_of(store)

    class Claims(live_peer.Peer):
        def have(self) -> live_peer.Have:
            return known.have()

    claims = Claims(True, PAIRING)
    attack(store, claims, refused=False)
    assert not claims.payloads
    invented = [b"\0" + os.urandom(16) for _ in range(200)]

    class Invents(live_peer.Peer):
        def have(self) -> live_peer.Have:
            return live_peer.Have(200, 200, 1, invented, [])

    attack(store, Invents(True, PAIRING), refused=False)


def test_a_version_that_is_not_what_its_id_says(store: llvs.Store) -> None:
    with llvs.Store(storage="memory") as other:
        other.make_version(insert={"v": b"genuine bytes"})
        peer = versions_of(other)
    for version, payload in peer.payloads.items():
        if b"genuine bytes" not in payload:
            continue
        at = payload.index(b"genuine bytes")
        forged = payload[:at] + b"forged! bytes" + payload[at + 13 :]
        attack(store, lying(lambda one: one.frame(live_peer.DATA, data_of(live_peer.varint(len(forged)) + forged)))(True, PAIRING))


def test_questions_without_an_end(store: llvs.Store) -> None:
    """A peer that sends requests without reading the answers costs bounded memory."""
    peer = live_peer.Peer(True, PAIRING)
    with llvs.live.Peer(store, PAIRING, initiator=False) as end:
        end.receive(peer.take())
        peer.receive(end.send())
        end.receive(peer.take())
        with pytest.raises(llvs.Error):
            for _ in range(1_000):
                for _ in range(1_000):
                    peer.frame(live_peer.PING, bytes(8))
                end.receive(peer.take())


def test_replayed_and_wrong_handshakes(store: llvs.Store) -> None:
    save(store, 1, random.Random(1))
    recorded = []
    genuine = live_peer.Peer(True, PAIRING)
    with llvs.live.Peer(store, PAIRING, initiator=False) as end:
        for _ in range(20):
            data = genuine.take()
            recorded.append(data)
            end.receive(data)
            genuine.receive(end.send())
    with llvs.live.Peer(store, PAIRING, initiator=False) as end:
        end.receive(recorded[0])
        # The recorded message gets an answer like any peer with the pairing, but later recorded messages cannot be decrypted.
        assert len(end.send()) == 98
    with llvs.live.Peer(store, PAIRING, initiator=False) as end:
        # The size of the message is not authenticated, so the session does not wait for that many bytes.
        with pytest.raises(llvs.errors.EncryptionError):
            end.receive(recorded[0][:16] + b"\xff\xff" + recorded[0][18:])
    with llvs.live.Peer(store, PAIRING, initiator=False) as end:
        end.receive(recorded[0])
        assert len(end.send()) == 98
        with pytest.raises(llvs.errors.EncryptionError):
            end.receive(recorded[1])
        assert end.send() == b""
    for pairing in (bytes(48), PAIRING[:16] + bytes(32), bytes(16) + PAIRING[16:]):
        with llvs.live.Peer(store, PAIRING, initiator=False) as end:
            with pytest.raises(llvs.errors.EncryptionError):
                end.receive(live_peer.Peer(True, pairing).take())
            assert end.send() == b""


def test_device_keys_that_are_not_accepted(store: llvs.Store) -> None:
    mine, other = os.urandom(32), os.urandom(32)
    assert llvs.live.device_key(mine) == noise.public(mine)
    for secret, gets_in in ((mine, True), (other, False)):
        peer = live_peer.Peer(True, PAIRING, secret)
        with llvs.live.Peer(store, PAIRING, initiator=False, accepted=[llvs.live.device_key(mine)]) as end:
            if gets_in:
                live_peer.carry(peer, end)
                assert end.state.key == noise.public(mine)
            else:
                with pytest.raises(llvs.errors.EncryptionError):
                    live_peer.carry(peer, end)


def test_strangers_at_a_listener(store: llvs.Store) -> None:
    """Strangers get no byte, are few at once, and keep out no device from another address; a peer that sends byte by byte gets in."""
    with llvs.live.listen({PAIRING: store}, ("127.0.0.1", 0)) as listener:
        peer = live_peer.Peer(True, PAIRING)
        with socket.create_connection(listener.address) as connection:
            for byte in peer.take():
                connection.send(bytes([byte]))
            connection.settimeout(PATIENCE)
            while not peer.caught_up:
                peer.receive(connection.recv(1))
                for byte in peer.take():
                    connection.send(bytes([byte]))
        for _ in range(5):
            with socket.create_connection(listener.address) as stranger:
                stranger.settimeout(PATIENCE)
                stranger.send(bytes(66))
                assert stranger.recv(1) == b""
        with socket.create_connection(listener.address) as stranger:
            stranger.settimeout(PATIENCE)
            try:
                stranger.send(live_peer.Peer(True, PAIRING).take())
                assert stranger.recv(1) == b"", "one address has five tries in a minute"
            except ConnectionError:
                pass


def test_replays_at_a_listener(store: llvs.Store) -> None:
    """A program that recorded the first message of a device, and sends it again, counts as a stranger: a few are read at once, and a few in
    a minute."""
    with llvs.live.listen({PAIRING: store}, ("127.0.0.1", 0)) as listener:
        heard, answers, connections = live_peer.Peer(True, PAIRING).take(), [], []
        for _ in range(40):
            connections.append(socket.create_connection(listener.address))
            connections[-1].settimeout(PATIENCE)
            try:
                connections[-1].send(heard)
                answers.append(connections[-1].recv(1) != b"")
            except ConnectionError:
                answers.append(False)
        assert answers == [True] * 5 + [False] * 35
        for connection in connections:
            connection.close()
        eventually(lambda: not listener.links)
        with socket.create_connection(listener.address) as stranger:
            stranger.settimeout(PATIENCE)
            try:
                stranger.send(heard)
                assert stranger.recv(1) == b""
            except ConnectionError:
                pass


def test_a_peer_that_stops_reading(store: llvs.Store) -> None:
    for _ in range(3):
        store.make_version(insert={"v": os.urandom(900_000)}, root=True)
    peer = live_peer.Peer(True, PAIRING, window=524_288)
    sent = 0
    with llvs.live.Peer(store, PAIRING, initiator=False) as end:
        end.receive(peer.take())
        peer.receive(end.send())
        end.receive(peer.take())
        peer.receive(end.send())
        end.receive(peer.take())
        peer.reads = False
        while data := end.send():
            sent += len(data)
        assert sent <= 524_288 + 65_536, "no more than the other side allowed"
        save(store, 1, random.Random(1))
        end.store_changed()
        assert len(end.send()) < 65_536


def test_cut_while_it_runs(store: llvs.Store, tmp_path: Path) -> None:
    """Links that are cut after any number of bytes: stored versions stay, and none is added twice."""
    random_ = random.Random(11)
    for number in range(400):
        save(store, number, random_)
    wanted = ids(store)
    with llvs.Store(tmp_path / "other") as other:
        received = cuts = 0
        while ids(other) != wanted:
            with llvs.live.Peer(store, PAIRING, initiator=False) as a, llvs.live.Peer(other, PAIRING, initiator=True) as b:
                left = random_.randrange(200, 40_000)
                while left > 0:
                    moved = 0
                    for one, two in ((b, a), (a, b)):
                        data = one.send(min(left, 5_000)) if left > 0 else b""
                        if data:
                            two.receive(data)
                        left -= len(data)
                        moved += len(data)
                    if not moved:
                        break
                received += b.state.received
                cuts += 1
        assert received == len(without_root(wanted)) and cuts > 2


def test_what_comes_over_links_that_are_cut_comes_once(store: llvs.Store) -> None:
    """A program without the library keeps complete versions, and connects again after each cut. All arrivals are counted, also of versions
    that it has: each version arrives once."""
    random_ = random.Random(12)
    for number in range(400):
        save(store, number, random_)
    kept: dict[bytes, bytes] = {}
    arrived: list[bytes] = []
    cuts = 0
    while len(kept) < len(ids(store)):
        peer, left = live_peer.Peer(True, PAIRING), random_.randrange(1_000, 40_000)
        for payload in kept.values():
            peer.add(payload)
        with llvs.live.Peer(store, PAIRING, initiator=False) as end:
            while left > 0:
                end.receive(peer.take())
                data = end.send(min(left, 5_000))
                if not data:
                    break
                peer.receive(data)
                left -= len(data)
        kept |= peer.payloads
        arrived += peer.received
        cuts += 1
        assert cuts < 1_000
    assert cuts > 2 and len(arrived) == len(set(arrived)) == len(kept)


def test_waiting_covers_what_was_just_saved(store: llvs.Store) -> None:
    with llvs.Store(storage="memory") as other, llvs.live.listen({PAIRING: other}, ("127.0.0.1", 0)) as listener:
        with llvs.live.connect(store, listener.address, PAIRING) as link:
            head = None
            for number in range(50):
                head = store.make_version(head, update={"a": b"%d" % number})
                assert link.wait(PATIENCE) and other.version(head) is not None, number
            # The connection is cut without a goodbye.
            listener.links[0]._peer.close()
            eventually(lambda: link.state.phase == llvs.live.PeerPhase.ENDED)
            assert isinstance(link.error, llvs.errors.ExchangeDataError)
            with pytest.raises((llvs.Error, OSError)):
                link.wait(PATIENCE)


def test_the_file_of_a_listener_is_its_own(store: llvs.Store, tmp_path: Path) -> None:
    path = tmp_path / "socket"
    with llvs.live.listen({PAIRING: store}, str(path)):
        assert path.stat().st_mode & 0o777 == 0o600
    assert not path.exists()
    listener = llvs.live.listen({PAIRING: store}, str(path))
    path.unlink()
    path.write_text("another's")
    listener.close()
    assert path.read_text() == "another's"
    path.unlink()
    with llvs.live.listen({PAIRING: store}, str(path)) as listener:
        if (child := os.fork()) == 0:
            try:
                listener.close()
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        assert path.exists()


def has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as one:
            one.bind(("::1", 0))
        return True
    except OSError:
        return False


@pytest.mark.skipif(not has_ipv6(), reason="needs IPv6")
def test_by_ipv6(store: llvs.Store) -> None:
    with llvs.Store(storage="memory") as other:
        other.make_version(insert={"a": b"1"})
        for host, reached in (("::1", ["::1"]), ("::", ["::1", "127.0.0.1"])):
            with llvs.live.listen({PAIRING: other}, (host, 0)) as listener:
                for one in reached:
                    with llvs.live.connect(store, (one, listener.address[1]), PAIRING) as link:
                        assert link.wait(PATIENCE)
                assert listener.address[0] == host
    assert len(ids(store)) == 1


def test_a_socket_that_a_killed_process_left(store: llvs.Store, tmp_path: Path) -> None:
    path = str(tmp_path / "socket")
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(path)
        left.listen()
        # A socket in use, and files that are not sockets, stay.
        with pytest.raises(llvs.TransportError, match="in use"):
            llvs.live.listen({PAIRING: store}, path)
    with llvs.Store(storage="memory") as other, llvs.live.listen({PAIRING: other}, path):
        with llvs.live.connect(store, path, PAIRING) as link:
            assert link.wait(PATIENCE)
        assert os.stat(path).st_mode & 0o777 == 0o600
    Path(path).write_text("another's")
    with pytest.raises(llvs.TransportError, match="in use"):
        llvs.live.listen({PAIRING: store}, path)
    assert Path(path).read_text() == "another's"
