"""Random schedules of devices that save, erase, merge and exchange in all ways: laws of what is gone, and of what is not."""

from __future__ import annotations

import contextlib
import random
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import llvs
import pytest
from sampling import seeds
from waiting import GUARD

IDS = ("a", "b", "c", "d")
PLACES = ("packed", "interchange", "encrypted")
PAIRING = llvs.live.make_pairing()


class Device:
    """A store, and what its user erased."""

    def __init__(self, folder: Path, storage: str) -> None:
        self.folder, self.storage = folder, storage
        folder.mkdir()
        self.store = self.opened()
        #: The values that were erased here, by the version that stored them and their id.
        self.gone: set[tuple[str, str]] = set()

    def opened(self) -> llvs.Store:
        return llvs.Store(self.folder / "store", storage=self.storage)  # type: ignore[arg-type]

    def reopen(self, without_caches: bool) -> None:
        self.store.close()
        if without_caches and self.storage == "file":
            shutil.rmtree(self.folder / "store/cache", ignore_errors=True)
        elif without_caches:
            with contextlib.closing(sqlite3.connect(self.folder / "store")) as database, database:
                database.execute("DELETE FROM caches")
        self.store = self.opened()


class World:
    def __init__(self, seed: int, folder: Path) -> None:
        self.draw, self.folder = random.Random(seed), folder
        storages = [self.draw.choice(("file", "file", "sqlite")) for _ in range(self.draw.choice((2, 3, 3, 4)))]
        self.devices = [Device(folder / f"device {number}", storage) for number, storage in enumerate(storages)]
        #: The bytes of all values that were saved, by version and id.
        self.saved: dict[tuple[str, str], bytes] = {}
        self.places = self.draw.sample(PLACES, self.draw.choice((1, 2)))

    def value(self) -> bytes:
        size = self.draw.choice((24, 24, 24, 300, 5_000, 70_000, 1_100_000))
        return self.draw.randbytes(size)

    def save(self, device: Device) -> None:
        heads = device.store.heads()
        head = self.draw.choice(heads) if heads else None
        there = set(device.store.at(head)) if head else set()
        changed = {id: self.value() for id in self.draw.sample(IDS, self.draw.choice((1, 1, 2)))}
        made = device.store.make_version(
            head, insert={id: data for id, data in changed.items() if id not in there},
            update={id: data for id, data in changed.items() if id in there},
        )
        self.saved.update({(made.id, id): data for id, data in changed.items()})

    def erase(self, device: Device) -> None:
        id = self.draw.choice(IDS)
        here = {version.id for version in device.store.history()}
        assert device.store.erase(id).waiting == ()
        device.gone |= {(version, of) for version, of in self.saved if version in here and of == id}

    def merge(self, device: Device) -> None:
        heads = device.store.heads()
        if len(heads) > 1:
            device.store.merge(*self.draw.sample(heads, 2))

    def remote(self, name: str) -> llvs.Remote:
        place = self.folder / name
        place.mkdir(exist_ok=True)
        if name == "encrypted":
            return llvs.Remote(place.as_uri(), passphrase="correct horse battery staple")
        return llvs.Remote(place.as_uri(), layout=name)  # type: ignore[arg-type]

    def exchange(self, device: Device, name: str, both: bool = True) -> None:
        with llvs.Exchange(device.store, self.remote(name)) as exchange:
            if both or self.draw.random() < 0.7:
                assert not exchange.retrieve().problems
            if both or self.draw.random() < 0.7:
                assert not exchange.send().problems

    def meet(self, one: Device, other: Device) -> None:
        if self.draw.random() < 0.5:
            packed = one.store.pack()
            assert not packed.result.problems and not other.store.unpack(packed).problems
            return
        with llvs.live.Listener(("127.0.0.1", 0)) as listener:
            listener.offer(one.store, PAIRING)
            with llvs.live.connect(other.store, listener.address, PAIRING) as peer:
                assert peer.wait(GUARD)

    def step(self) -> None:
        device = self.draw.choice(self.devices)
        kind = self.draw.choices(("save", "erase", "merge", "exchange", "meet", "reopen"), (6, 2, 2, 5, 2, 1))[0]
        if kind == "exchange":
            self.exchange(device, self.draw.choice(self.places), both=False)
        elif kind == "meet":
            other = self.draw.choice(self.devices)
            if other is not device:
                self.meet(device, other)
        elif kind == "reopen":
            device.reopen(self.draw.random() < 0.5)
        else:
            getattr(self, kind)(device)

    # MARK: Laws

    def look(self, device: Device) -> None:
        """The bytes that were erased here are in no file here, and all other values are what was saved, or never came."""
        store = device.store
        for version in store.history():
            for id in IDS:
                if (version.id, id) not in self.saved:
                    continue
                value = self.read(device, version.id, id)
                assert value == ("ErasedError" if (version.id, id) in device.gone else value)
                assert value in ("ErasedError", "ForgottenError") or value == self.saved[version.id, id]
        report = store.verify()
        assert (report.damages, report.pending) == ((), 0)
        files = b"".join(path.read_bytes() for path in sorted(device.folder.rglob("*")) if path.is_file())
        for what in device.gone:
            assert self.saved[what][:24] not in files, what

    @staticmethod
    def read(device: Device, version: str, id: str) -> Any:
        try:
            value = device.store.value(id, at=version)
            return value and value.data
        except llvs.errors.GoneError as error:
            return type(error).__name__

    def settle(self) -> None:
        """All exchange through all places; then all have the same versions, and the bytes that anybody has who did not erase them."""
        for _ in range(3):
            for device in self.devices:
                for name in self.places:
                    self.exchange(device, name)
        for device in self.devices:
            self.look(device)
        versions = [{version.id for version in device.store.history()} for device in self.devices]
        assert all(one == versions[0] for one in versions)
        for what in self.saved:
            values = [self.read(device, *what) for device in self.devices if what not in device.gone]
            assert all(value == values[0] for value in values), what


@pytest.mark.parametrize("seed", seeds(range(16), range(400)))
def test_schedule(seed: int, tmp_path: Path) -> None:
    world = World(seed, tmp_path)
    try:
        for number in range(world.draw.randrange(10, 40)):
            world.step()
            if number % 5 == 0:
                world.look(world.draw.choice(world.devices))
        world.settle()
    finally:
        for device in world.devices:
            device.store.close()
