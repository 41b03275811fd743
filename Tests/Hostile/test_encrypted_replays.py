"""An encrypted place in the hands of a person without its keys, or of a former member who kept them: files are copied under other names,
swapped, and set back to what they were."""

from __future__ import annotations

import hashlib
import io
from typing import Callable, Iterator, NamedTuple, Optional

import pytest
from packs import names

import llvs

COPIES = 300


class Shelf(llvs.exchange.RemoteFiles):
    """Files in a dictionary, which attackers change. Counts what is read of packs."""

    def __init__(self, files: dict[str, bytes]) -> None:
        self.files, self.name, self.reads = files, "shelf", 0

    def list(self, directory: str) -> Iterator[llvs.exchange.RemoteFile]:
        folders = set()
        for name, data in list(self.files.items()):
            parent, _, last = name.rpartition("/")
            if parent == directory:
                yield llvs.exchange.RemoteFile(last, len(data))
            elif parent.startswith(directory + "/"):
                folders.add(parent[len(directory) + 1 :].partition("/")[0])
        for folder in sorted(folders):
            yield llvs.exchange.RemoteFile(folder, 0, is_directory=True)

    def read(self, name: str, offset: int, size: int) -> Optional[bytes]:
        data = self.files.get(name)
        self.reads += "/log/" in name
        return None if data is None else data[offset : offset + size if size else None]

    def publish(self, name: str, file: llvs.exchange.OutgoingFile, replaces: bool) -> bool:
        content = io.BytesIO()
        file.write_to(content)
        if name in self.files and not replaces:
            return False
        self.files[name] = content.getvalue()
        return True

    def delete(self, name: str) -> None:
        self.files.pop(name, None)


class Device:
    """A store, and an identity that opens the place."""

    def __init__(self, store: llvs.Store, identity: llvs.exchange.KeyPair) -> None:
        self.store, self.identity, self.reads = store, identity, 0

    def open(self, files: dict[str, bytes], recipients: tuple[str, ...] = ()) -> llvs.Exchange:
        self.shelf = Shelf(files)
        place = llvs.Remote(self.shelf, layout="packed", identity=self.identity.secret, recipients=recipients)
        return llvs.Exchange(self.store, place)

    def exchange(self, files: dict[str, bytes], recipients: tuple[str, ...] = ()) -> llvs.exchange.ExchangeResult:
        with self.open(files, recipients) as way:
            got = way.retrieve()
            self.reads = self.shelf.reads
            way.send()
        return got

    def save(self, text: bytes) -> llvs.Version:
        heads = self.store.heads()
        return self.store.make_version(heads[0] if heads else None, update={"key": text})

    def has(self, text: bytes) -> bool:
        return any(self.store.at(version).get("key") == text for version in self.store.history())


class Made(NamedTuple):
    """A place with five packs of Ann's, of which Bob is a member."""

    files: dict[str, bytes]
    ann: llvs.exchange.KeyPair
    bob: llvs.exchange.KeyPair


@pytest.fixture(scope="module")
def made() -> Made:
    ann, bob = llvs.exchange.make_identity(), llvs.exchange.make_identity()
    files: dict[str, bytes] = {}
    with llvs.Store(storage="memory") as store:
        device = Device(store, ann)
        for n in range(5):
            device.save(b"%d" % n)
            device.exchange(files, (bob.recipient,))
    return Made(files, ann, bob)


def packs(files: dict[str, bytes]) -> list[str]:
    return sorted(name for name in files if "/log/" in name)


def test_copies_of_packs_under_other_names_cost_one_read_each(made: Made, new_store: Callable[[], llvs.Store]) -> None:
    """And what an honest device sends beside them comes with the first exchange."""
    files, ann, bob = dict(made.files), Device(new_store(), made.ann), Device(new_store(), made.bob)
    for device in (ann, bob):
        device.exchange(files)
    genuine = packs(files)
    for n in range(COPIES):
        name = names.parse(genuine[n % len(genuine)])
        assert name is not None
        files[str(name._replace(owner=hashlib.sha256(b"%d" % n).digest()[:8]))] = files[genuine[n % len(genuine)]]
    ann.save(b"honest")
    ann.exchange(files)
    assert ann.reads <= COPIES + 4
    got = bob.exchange(files)
    assert len(got.retrieved) == 1 and bob.store.heads() == ann.store.heads() and bob.reads <= COPIES + 4
    for device in (ann, bob):
        device.exchange(files)
        assert device.reads <= 32


def test_files_that_are_swapped_are_none(made: Made, new_store: Callable[[], llvs.Store]) -> None:
    files, new = dict(made.files), Device(new_store(), made.bob)
    first, second, *_ = packs(files)
    files[first], files[second] = files[second], files[first]
    assert not new.exchange(files).retrieved
    files[first], files[second] = files[second], files[first]
    assert len(new.exchange(files).retrieved) == 5


def test_old_keys_readmit_no_device(made: Made, new_store: Callable[[], llvs.Store]) -> None:
    """A former member kept its keys, and sets the files of keys back to what they were: nothing is sent with these."""
    files, ann, bob = dict(made.files), Device(new_store(), made.ann), Device(new_store(), made.bob)
    for device in (ann, bob):
        device.exchange(files)
    with ann.open(files) as way:
        way.remove_member(made.bob.recipient)
    ann.save(b"not for a former member")
    ann.exchange(files)
    newer = {name: files.pop(name) for name in list(files) if "/keys/" in name and name not in made.files}
    before = dict(files)
    ann.save(b"nor this")
    with pytest.raises(llvs.errors.EncryptionError) as error:
        ann.exchange(files)
    assert error.value.code == llvs.ErrorCode.KEYS_FORKED and files == before
    got = bob.exchange(files)
    assert not got.retrieved and llvs.ErrorCode.KEY_MISSING in {problem.code for problem in got.problems}
    # Bob writes a ring of his own under the old keys, in the place of the newer ring.
    with bob.open(files) as way:
        way.add_member(llvs.exchange.make_identity().recipient, "a spare device")
        way.rekey(renew=True)
    with pytest.raises(llvs.errors.EncryptionError):
        ann.exchange(files)
    files.update(newer)
    got = ann.exchange(files)
    assert llvs.ErrorCode.KEYS_FORKED in {problem.code for problem in got.problems}
    with ann.open(files) as way:
        way.join_keys()
        assert [member.recipient for member in way.members()] == [made.ann.recipient]
    ann.save(b"after joining")
    ann.exchange(files)
    bob.exchange(files)
    for text in (b"not for a former member", b"nor this", b"after joining"):
        assert ann.has(text) and not bob.has(text)
