"""Members of an encrypted place, who need no pairing: which devices are admitted, which are refused, and which are no longer admitted."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import shutil
import subprocess
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Iterator, Union

import live_peer
import pytest
from patience import PATIENCE, eventually
from test_library import ids

import llvs
import llvs.aio

WORDS = "six random words of a person"


class Made:
    """An encrypted place. Encrypting takes ten seconds, so it is made once, and each test gets a copy."""

    def __init__(self, directory: Path) -> None:
        self.folder = directory / "place"
        self.laptop, self.phone = llvs.exchange.make_identity(), llvs.exchange.make_identity()
        with llvs.Store(storage="memory") as store:
            store.make_version(insert={"a": b"1"})
            place = llvs.Remote(
                self.folder.as_uri(), passphrase=WORDS, identity=self.laptop.secret, recipients=[self.phone.recipient])
            with llvs.Exchange(store, place) as way:
                way.send()


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return Made(tmp_path_factory.mktemp("members"))


class Device:
    """A store, and its exchange with the place."""

    def __init__(self, folder: Path, **keys: str) -> None:
        self.store = llvs.Store(storage="memory")
        self.way = llvs.Exchange(self.store, llvs.Remote(folder.as_uri(), **keys))

    def close(self) -> None:
        self.way.close()
        self.store.close()

    def save(self) -> str:
        return self.store.make_version(self.store.most_recent_head, insert={str(time.monotonic_ns()): b"1"}).id


@pytest.fixture
def folder(made: Made, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made.folder, tmp_path / "place"))


@pytest.fixture
def devices(made: Made, folder: Path) -> Iterator[tuple[Device, Device, Device]]:
    """The laptop, the phone, and a device with the passphrase. Each has exchanged."""
    with ExitStack() as stack:
        all_ = []
        for keys in ({"identity": made.laptop.secret}, {"identity": made.phone.secret}, {"passphrase": WORDS}):
            all_.append(Device(folder, **keys))
            stack.callback(all_[-1].close)
            all_[-1].way.retrieve()
        yield all_[0], all_[1], all_[2]


def listen(device: Device) -> llvs.live.Listener:
    return llvs.live.listen({device.way: device.store}, ("127.0.0.1", 0))


def connect(device: Device, listener: llvs.live.Listener, secret: Union[None, bytes, llvs.Exchange] = None) -> llvs.live.Link:
    return llvs.live.connect(device.store, listener.address, secret or device.way)


def gets_in(device: Device, listener: llvs.live.Listener, secret: Union[None, bytes, llvs.Exchange] = None) -> bool:
    with connect(device, listener, secret) as link:
        try:
            return link.wait(PATIENCE)
        except (llvs.Error, OSError):
            return False


def decoded(identity: str) -> bytes:
    """The bytes of an identity of age: Bech32."""
    bits = number = 0
    out = []
    for letter in identity.lower().rpartition("1")[2][:-6]:
        number, bits = number << 5 | "qpzry9x8gf2tvdw0s3jn54khce6mua7l".index(letter), bits + 5
        if bits >= 8:
            bits -= 8
            out.append(number >> bits & 255)
    return bytes(out)


def derived(folder: Path, identity: str, where: Path) -> bytes:
    """The pairing as docs/live-protocol.md defines it, computed by the program `age` and the standard library."""
    (where / "key.txt").write_text(identity + "\n")
    ring = max((folder / "pack1" / "keys").glob("ring-*"))
    plain = subprocess.run(["age", "--decrypt", "-i", where / "key.txt", ring], check=True, capture_output=True).stdout
    found = json.loads(plain.splitlines()[0])
    epoch = max(found["epochs"], key=lambda epoch: int(epoch["number"]))
    store, word, bits = bytearray(), 0, 0
    for letter in found["store"]:
        word, bits = word << 5 | "abcdefghijklmnopqrstuvwxyz234567".index(letter), bits + 5
        if bits >= 8:
            bits -= 8
            store.append(word >> bits & 255)
    extracted = hmac.digest(bytes(32), decoded(epoch["identity"]), "sha256")
    return bytes(store[:16]) + hmac.digest(extracted, b"llvs live 1\x01", hashlib.sha256)


@pytest.mark.skipif(shutil.which("age") is None, reason="needs age")
def test_the_pairing_is_as_the_page_says(
    made: Made, folder: Path, devices: tuple[Device, Device, Device], tmp_path: Path
) -> None:
    laptop, phone, other = devices
    for epochs in range(2):
        expected = derived(folder, made.laptop.secret, tmp_path)
        assert [device.way.pairing() for device in devices] == [expected] * 3
        assert len(expected) == 48 and expected == laptop.way.pairing(read_anew=False)
        # A peer that was made from the page alone.
        with llvs.live.Peer(laptop.store, laptop.way, initiator=False) as end:
            peer = live_peer.Peer(True, expected)
            live_peer.carry(peer, end)
            assert peer.caught_up
        laptop.way.rekey(renew=True)
    assert phone.way.pairing(read_anew=False) == expected


def test_members_need_no_pairing(devices: tuple[Device, Device, Device]) -> None:
    laptop, phone, other = devices
    with listen(laptop) as listener, connect(phone, listener) as one, connect(other, listener) as two:
        assert one.wait(PATIENCE) and two.wait(PATIENCE)
        for device in devices:
            saved = device.save()
            eventually(lambda: all(each.store.version(saved) is not None for each in devices))
        # The bytes of the pairing, which a device keeps for times when the place is unreachable.
        assert gets_in(phone, listener, phone.way.pairing())


def test_who_is_not_in_the_ring(
    made: Made, folder: Path, devices: tuple[Device, Device, Device], tmp_path: Path
) -> None:
    laptop, phone, _ = devices
    stranger, clear, fresh = llvs.exchange.make_identity(), tmp_path / "clear", Device(folder, identity=made.phone.secret)
    with listen(laptop) as listener, ExitStack() as stack:
        stack.callback(fresh.close)
        # A device with a key that does not open the ring.
        outside = Device(folder, identity=stranger.secret)
        stack.callback(outside.close)
        for read_anew in (True, False):
            with pytest.raises(llvs.errors.EncryptionError) as raised:
                outside.way.pairing(read_anew=read_anew)
            assert raised.value.code == (llvs.ErrorCode.WRONG_KEY if read_anew else llvs.ErrorCode.KEY_MISSING)
        with pytest.raises(llvs.errors.EncryptionError):
            connect(outside, listener)
        with pytest.raises(llvs.errors.EncryptionError):
            listen(outside)
        # An exchange without encryption, and one that has not read the keys yet.
        plain = llvs.Exchange(outside.store, llvs.Remote(clear.as_uri(), layout="packed"))
        stack.callback(plain.close)
        with pytest.raises(llvs.errors.UnsupportedError):
            plain.pairing()
        with pytest.raises(llvs.errors.UnsupportedError):
            connect(outside, listener, plain)
        with pytest.raises(llvs.errors.EncryptionError):
            connect(fresh, listener)
        assert fresh.way.pairing() == laptop.way.pairing() and gets_in(fresh, listener)
        # A device that guesses, and one that knows the store's id but no key.
        before = ids(laptop.store)
        outside.save()
        for secret in (llvs.live.make_pairing(), laptop.way.pairing()[:16] + bytes(32)):
            assert not gets_in(outside, listener, secret)
        assert ids(laptop.store) == before
        assert gets_in(phone, listener)


def test_a_device_that_was_removed(made: Made, devices: tuple[Device, Device, Device]) -> None:
    laptop, phone, other = devices
    former = phone.way.pairing()
    with listen(laptop) as listener:
        with connect(phone, listener) as link:
            assert link.wait(PATIENCE)
            laptop.way.remove_member(made.phone.recipient)
            late = laptop.save()
            with pytest.raises((llvs.Error, OSError)) as ended:
                eventually(lambda: link.wait(1) is None)
            assert "the keys were renewed" in str(ended.value)
        # An ended link transfers nothing.
        assert phone.store.version(late) is None
        # The removed member has the former ring, and the pairing that is derived from it.
        assert phone.way.pairing() == former != laptop.way.pairing()
        for secret in (phone.way, former):
            assert not gets_in(phone, listener, secret)
        # A member who knows of the removal does not connect to the removed one either.
        with listen(phone) as theirs:
            assert not gets_in(laptop, theirs)
        # A member that does not know of it reads the place, and is then admitted.
        assert not gets_in(other, listener)
        other.way.retrieve()
        if other.way.pairing(read_anew=False) == former:  # it reads the keys every 10 minutes
            assert other.way.pairing() == laptop.way.pairing()
        assert gets_in(other, listener) and ids(other.store) == ids(laptop.store)
    assert phone.store.version(late) is None


def test_a_store_that_is_offered_again(folder: Path, devices: tuple[Device, Device, Device]) -> None:
    """The store is offered with an exchange that has read newer keys. From then on pairings of former keys are refused."""
    laptop, phone, other = devices
    former = laptop.way.pairing()
    with listen(laptop) as listener, llvs.Exchange(laptop.store, llvs.Remote(folder.as_uri(), passphrase=WORDS)) as newer:
        assert gets_in(phone, listener, former)
        other.way.rekey(renew=True)
        assert newer.pairing() == other.way.pairing() != former == laptop.way.pairing(read_anew=False)
        listener.offer(laptop.store, newer)
        assert not gets_in(phone, listener, former)
        assert gets_in(other, listener)


def test_a_ring_that_is_renewed_on_both_sides(devices: tuple[Device, Device, Device]) -> None:
    """The program transfers the bytes. As soon as one side learns of newer keys, it ends links that used former ones."""
    laptop, phone, _ = devices
    for knows in (0, 1):
        peer = llvs.live.Peer
        with peer(laptop.store, laptop.way, initiator=True) as one, peer(phone.store, phone.way, initiator=False) as two:
            carry(one, two)
            assert one.state.phase == two.state.phase == llvs.live.PeerPhase.IN_STEP
            laptop.way.rekey(renew=True)
            if knows:
                phone.way.pairing()
            first, second = (two, one) if knows else (one, two)
            saved = laptop.save()
            with pytest.raises(llvs.errors.EncryptionError, match="were renewed") as raised:
                first.store_changed()
            assert raised.value.code == llvs.ErrorCode.WRONG_KEY
            with pytest.raises(llvs.errors.EncryptionError):
                while data := first.send():
                    second.receive(data)
                second.tick(0)
            assert phone.store.version(saved) is None
        assert phone.way.pairing() == laptop.way.pairing()
        peer = llvs.live.Peer
        with peer(laptop.store, laptop.way, initiator=True) as one, peer(phone.store, phone.way, initiator=False) as two:
            carry(one, two)
            assert phone.store.version(saved) is not None


def carry(one: llvs.live.Peer, two: llvs.live.Peer) -> None:
    moved = True
    while moved:
        moved = False
        for here, there in ((one, two), (two, one)):
            while data := here.send():
                there.receive(data)
                moved = True


def test_over_asyncio(devices: tuple[Device, Device, Device]) -> None:
    laptop, phone, _ = devices
    saved = laptop.save()

    async def main() -> None:
        async def come(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            async with await llvs.aio.accept({llvs.live.make_pairing(): phone.store, laptop.way: laptop.store}, reader, writer) as link:
                await link.wait_ended()

        async with await asyncio.start_server(come, "127.0.0.1", 0) as server:
            async with await llvs.aio.connect(phone.store, server.sockets[0].getsockname(), phone.way) as link:
                assert await link.wait()

    asyncio.run(main())
    assert phone.store.version(saved) is not None


def test_an_exchange_that_is_closed(devices: tuple[Device, Device, Device]) -> None:
    """The listener keeps the pairing that was derived from the exchange's keys."""
    laptop, phone, other = devices
    pairing = llvs.live.make_pairing()
    with llvs.live.listen({other.way: other.store, pairing: laptop.store}, ("127.0.0.1", 0)) as listener:
        other.way.close()
        assert gets_in(phone, listener, pairing)
        assert gets_in(phone, listener)
