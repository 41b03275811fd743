"""Random schedules of several devices that save, merge, exchange, erase, crash and are set back, some of them beside a hostile device. The
orders are those of members with a secret, or of stewards, of whom one or two must sign. The place has packs, or single files and snapshots.

The laws, once every device has exchanged with all others twice:

1. what a member erased, and enough stewards signed, is in no file of a member, and of no place that members write to;
2. nothing that was saved is lost, and everything that was not erased reads as it was saved;
3. an order of the device without the secret has no effect on members;
4. all members have the same versions, with the ids that their contents give, and after merging the same state.
"""

from __future__ import annotations

import base64
import json
import random
import re
import shutil
from pathlib import Path
from typing import Any, Optional

import llvs
import pytest
from deep import IS_DEEP
from test_erase_orders import id_of
from test_erase_places import raw, snapshot_files
from test_erase_stewards import KEYS, SEEDS

SHARED = b"what the members of a schedule share"
TOKEN = re.compile(rb"token-.{20}", re.DOTALL)
PREFIX = "__llvs_forget/order/"


class Device:
    """A device with a store in a folder of its own."""

    def __init__(self, world: World, name: str, is_member: bool) -> None:
        self.world, self.name, self.is_member = world, name, is_member
        self.folder = world.folder / name
        self.folder.mkdir()
        self.storage = world.rng.choice(("file", "file", "sqlite"))
        self.store = self.opened()
        if is_member:
            self.store.set_forgetting(world.policy, secrets=[] if world.need else [SHARED])

    def opened(self) -> llvs.Store:
        options = llvs.StoreOptions(differences=self.world.rng.choice(("on", "auto")))
        return llvs.Store(self.folder / "store", storage=self.storage, durability="normal", options=options)  # type: ignore[arg-type]

    def heads(self) -> list[str]:
        return [head.id for head in self.store.heads()]

    def read(self, version: str, id: str) -> Optional[bytes]:
        """The bytes of a value; None if they are erased."""
        try:
            value = self.store.value(id, at=version)
        except llvs.errors.GoneError:
            return None
        assert value is not None
        return value.data


class World:
    """Devices, a place, and what has to be true of them."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder, self.rng = folder, random.Random(seed)
        rng = self.rng
        #: What each version stored under each id.
        self.saved: dict[tuple[str, str], bytes] = {}
        #: How many of three stewards must sign; 0: members follow each other.
        self.need = rng.choice((0, 0, 1, 2))
        stewards = {"mode": "stewards", "keys": KEYS[:3], "need": self.need}
        self.policy: dict[str, Any] = {"erase": stewards if self.need else {"mode": "members"}}
        #: What the orders of members name, and the ids of those of the hostile device.
        self.ordered_by_members: list[dict[str, Any]] = []
        self.forged: set[str] = set()
        self.layout = rng.choice(("packed", "packed", "interchange"))
        self.members = [Device(self, f"member {number}", True) for number in range(rng.choice((2, 2, 3, 4)))]
        self.hostile = Device(self, "hostile", False) if rng.random() < 0.5 else None
        self.devices = self.members + ([self.hostile] if self.hostile else [])
        #: The devices that exchange with the place.
        self.place = folder / "place"
        self.place.mkdir()
        self.at_place = [device for device in self.members if rng.random() < 0.7]
        self.ids = [f"n/{number}" for number in range(4)]
        self.copies: dict[str, Path] = {}

    # Steps.

    def token(self) -> bytes:
        return b"token-" + self.rng.randbytes(20)

    def content(self) -> bytes:
        """A value that is stored as it is in a record, or in a file of its own. Nothing can deflate it, so that files show it."""
        size = self.rng.choice((0, 0, 300, 3_000) + ((70_000, 1_100_000) if self.rng.random() < 0.05 else ()))
        return self.token() + self.rng.randbytes(size)

    def note(self, version: llvs.Version, values: dict[str, bytes]) -> None:
        for id, data in values.items():
            self.saved[version.id, id] = data

    def save(self, device: Device) -> None:
        heads = device.heads()
        base = self.rng.choice(heads) if heads else None
        there = set(device.store.at(base)) if base else set()
        ids = self.rng.sample(self.ids, self.rng.randrange(1, 3))
        values = {id: self.content() for id in ids}
        remove = [id for id in self.rng.sample(self.ids, 1) if id in there and id not in values and self.rng.random() < 0.3]
        insert = {id: data for id, data in values.items() if id not in there}
        update = {id: data for id, data in values.items() if id in there}
        made = device.store.make_version(base, insert=insert, update=update, remove=remove)
        self.note(made, values)

    def merge(self, device: Device) -> None:
        heads = device.heads()
        if len(heads) > 1:
            device.store.merge(*self.rng.sample(heads, 2))

    def stream(self, one: Device, other: Device) -> None:
        for sender, receiver in ((one, other), (other, one)):
            result = receiver.store.unpack(sender.store.pack())
            assert not result.problems, result.problems

    def exchange(self, device: Device) -> None:
        with llvs.Exchange(device.store, llvs.Remote(self.place.as_uri(), layout=self.layout)) as exchange:  # type: ignore[arg-type]
            for _ in range(2):
                if self.rng.random() < 0.9:
                    assert not exchange.retrieve().problems
                # What this device has not read yet may keep it from cleaning the place.
                assert {problem.code for problem in exchange.send().problems} <= {llvs.ErrorCode.ERASED}

    def snapshot(self, device: Device) -> None:
        """Also of the hostile device, which has the bytes."""
        if self.layout == "interchange" and device.heads() and self.at_place:
            device.store.write_snapshot(self.place)

    def sign(self, device: Device) -> None:
        """A steward signs one of the orders that the device has, with the device."""
        orders = [order.id for order in device.store.erasures() if order.signatures > 0]
        if self.need and orders:
            device.store.sign_erasure(self.rng.choice(orders), self.rng.choice(SEEDS[:3]))

    def erase(self, device: Device) -> None:
        known = [(version, id) for version, id in self.saved if device.store.version(version) is not None]
        if not known:
            return
        version, id = self.rng.choice(known)
        data = self.saved[version, id]
        how = self.rng.choice(("id", "at", "containing"))
        replacement = self.token() if self.rng.random() < 0.2 else None
        signer = self.rng.choice(SEEDS[:3]) if self.need else b""
        if how == "id":
            report = device.store.erase(id, replacement=replacement, signer=signer)
        elif how == "at":
            report = device.store.erase(id, at=version, replacement=replacement, signer=signer)
        else:
            report = device.store.erase(containing=data[:26], replacement=replacement, signer=signer)
        assert report.waiting == ()
        for order in report.orders:
            value = device.store.value(order, at=report.made[0])
            assert value is not None
            self.ordered_by_members += json.loads(value.data)["what"]
        for made in report.made:
            for change in device.store.changes(made):
                if change.id in self.ids and replacement is not None and change.kind.value in ("insert", "update"):
                    self.saved[made, change.id] = replacement

    def forge(self, device: Device) -> None:
        """The device without the secret orders, brings orders of others under another name, and removes orders from states."""
        heads = device.heads()
        known = [(version, id) for version, id in self.saved if device.store.version(version) is not None]
        if not heads or not known:
            return
        base = self.rng.choice(heads)
        # An order that more stewards must sign is not known to count, so who removes it from all states removes it.
        orders = [id for id in device.store.at(base) if id.startswith(PREFIX) and self.is_complete(device, base, id)]
        if orders and self.rng.random() < 0.6:
            device.store.make_version(base, remove=orders)
            return
        version, _ = self.rng.choice(known)
        size = 128 if self.need else 64
        names = [KEYS[0], KEYS[3]] if self.need else ["0" * 16]
        by = [{"key": name, "signature": "%0*x" % (size, self.rng.getrandbits(4 * size))} for name in names]
        order = {"by": by, "format": 1, "made": "2026-11-28T06:00:00Z", "what": [{"changes": [0, 1, 2], "version": version}], "why": ""}
        data = json.dumps(order, sort_keys=True, separators=(",", ":")).encode()
        self.forged.add(id_of(data))
        device.store.make_version(base, insert={id_of(data): data})

    def is_complete(self, device: Device, version: str, order: str) -> bool:
        value = device.store.value(order, at=version)
        return value is not None and len(json.loads(value.data).get("by", [])) >= self.need

    def crash(self, device: Device) -> None:
        device.store.close()
        device.store = device.opened()

    def set_back(self, device: Device) -> None:
        """Makes a copy of the store, or puts one back."""
        copy = self.copies.get(device.name)
        device.store.close()
        if copy is None:
            self.copies[device.name] = copy = self.folder / f"copy of {device.name}"
            shutil.copytree(device.folder, copy)
        elif self.everywhere(device):
            shutil.rmtree(device.folder)
            shutil.copytree(copy, device.folder)
        device.store = device.opened()

    def everywhere(self, device: Device) -> bool:
        """Whether another member has all versions of the device: then setting it back loses nothing. (The store is closed.)"""
        with llvs.Store(device.folder / "store", storage=device.storage) as store:  # type: ignore[arg-type]
            ids = [version.id for version in store.history()]
        others = [other for other in self.members if other is not device]
        return any(all(other.store.version(id) is not None for id in ids) for other in others)

    def step(self) -> None:
        device = self.rng.choice(self.devices)
        dice = self.rng.random()
        if device is self.hostile and dice < 0.3:
            self.forge(device)
        elif dice < 0.35:
            self.save(device)
        elif dice < 0.45:
            self.merge(device)
        elif dice < 0.65:
            self.stream(device, self.rng.choice([other for other in self.devices if other is not device]))
        elif dice < 0.80:
            if device in self.at_place:
                self.exchange(device)
        elif dice < 0.90:
            if device.is_member:
                self.erase(device)
        elif dice < 0.92:
            self.snapshot(device)
        elif dice < 0.94:
            if device.is_member:
                self.sign(device)
        elif dice < 0.96:
            self.crash(device)
        elif device.is_member:
            self.set_back(device)

    # The end.

    def settle(self) -> None:
        if self.need:
            first = self.members[0]
            for other in self.members[1:]:
                self.stream(other, first)
            for seed in SEEDS[: self.need]:
                for order in first.store.erasures():
                    if 0 < order.signatures < self.need:
                        first.store.sign_erasure(order.id, seed)
        for _ in range(2):
            for device in self.at_place:
                self.exchange(device)
            for one in self.members:
                for other in self.devices:
                    if one is not other:
                        self.stream(one, other)
            for device in reversed(self.at_place):
                self.exchange(device)
        for device in self.members:
            device.store.reload()
            while len(heads := device.heads()) > 1:
                device.store.merge(*sorted(heads)[:2])

    def ordered(self) -> set[tuple[str, str]]:
        """What valid orders name: by the versions and ids that stored it."""
        found: set[tuple[str, str]] = set()
        store = self.members[0].store
        for item in self.ordered_by_members:
            ids = sorted(change.id.encode() for change in store.changes(item["version"]))
            found |= {(item["version"], ids[index].decode()) for index in item["changes"]}
        for device in self.members:
            for erasure in device.store.erasures():
                assert erasure.followed == (erasure.id not in self.forged), (device.name, erasure)
        return found

    def at_the_place(self) -> bytes:
        """What the files of the place have, decoded."""
        if self.layout == "packed":
            return raw(self.place)
        found = []
        for path in self.place.glob("changes/**/*"):
            if path.is_file():
                for change in json.loads(path.read_bytes()):
                    found += [base64.b64decode(value.get("data", "")) for value in change.values() if isinstance(value, dict)]
        if snapshot_files(self.place):
            with llvs.Store(self.folder / "restored") as store:
                store.restore_snapshot(self.place)
                for version in store.history():
                    for change in store.changes(version.id):
                        try:
                            value = store.value(change.id, at=version.id)
                            found.append(value.data if value is not None else b"")
                        except llvs.errors.GoneError:
                            pass
        return b"\0".join(found)

    def check(self) -> None:
        erased = self.ordered()
        first = self.members[0]
        versions = {version.id for version in first.store.history()}
        assert versions >= {version for version, _ in self.saved}
        gone = {token for key in erased & set(self.saved) for token in TOKEN.findall(self.saved[key])}
        left = {token for key in set(self.saved) - erased for token in TOKEN.findall(self.saved[key])}
        assert not gone & left
        for device in self.members:
            assert {version.id for version in device.store.history()} >= versions
            for (version, id), data in self.saved.items():
                assert device.read(version, id) == (None if (version, id) in erased else data), (device.name, version, id)
            report = device.store.verify()
            assert (report.damages, report.pending) == ((), 0)
        states = [
            {id: device.read(device.heads()[0], id) for id in device.store.at(device.heads()[0]) if id in self.ids}
            for device in self.members
            if device.heads()
        ]
        assert all(state == states[0] for state in states)
        for device in self.devices:
            device.store.close()
        for device in self.members:
            for path in device.folder.rglob("*"):
                assert not path.is_file() or not gone & set(TOKEN.findall(path.read_bytes())), path
        assert not gone & set(TOKEN.findall(self.at_the_place()))


@pytest.mark.parametrize("seed", range(2_000 if IS_DEEP else 200))
def test_schedules(tmp_path: Path, seed: int) -> None:
    world = World(tmp_path, seed)
    for _ in range(world.rng.randrange(15, 45)):
        world.step()
    world.settle()
    world.check()
