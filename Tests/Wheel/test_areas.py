"""One test of each area of the package: its library, and the system libraries that it opens, work as they are installed.

Other tests check each area in detail: Tests/Python, Tests/Hostile, Tests/Network, Tests/SQLite.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from contextlib import closing
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Annotated, Any, Iterator

import llvs
import llvs.testing
import pydantic
import pysqlite3
import pytest
from llvs import models


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("storage", ["file", "sqlite", "memory", "of the program"])
def test_a_store(storage: str) -> None:
    with llvs.Store("notes.llvs", storage=llvs.storage.DictStorage() if storage == "of the program" else storage) as store:
        first = store.make_version(insert={"a": b"1", "b": b"1" * 100_000}, metadata={"author": "Ann"})
        second = store.make_version(first, update={"a": b"2"}, remove=["b"])
        beside = store.make_version(first, update={"a": b"3"}, branch="draft")
        merged = store.merge(second, beside, arbiter=llvs.MostRecentChange())
        assert dict(store.at(merged)) == {"a": b"3"} and dict(store.at(first))["b"] == b"1" * 100_000
        assert len(list(store.history())) == 4 and store[first.id].metadata["author"] == "Ann"
        assert not store.verify().damages
    if storage in ("file", "sqlite"):
        with llvs.Store("notes.llvs", storage=storage) as store:
            assert store.at(merged)["a"] == b"3"


def test_an_error_of_the_library_is_an_exception() -> None:
    with llvs.Store(storage="memory") as store, pytest.raises(KeyError) as caught:
        store.at("no-such-version")
    assert isinstance(caught.value, llvs.errors.UnknownVersionError) and caught.value.code == llvs.ErrorCode.UNKNOWN_VERSION


def test_a_coordinator() -> None:
    with llvs.Coordinator("notes.llvs", device="laptop") as notes:
        notes.save(insert={"a": b"1"})
        notes.save(update={"a": b"2"}, description="a is 2")
        notes.undo()
        assert notes["a"] == b"1"
        notes.redo()
        assert notes["a"] == b"2"


def exchanged(place: Any) -> None:
    """Two devices exchange what they saved apart, and merge it."""
    with llvs.Coordinator("laptop.llvs", exchange=place) as laptop, llvs.Coordinator("phone.llvs", exchange=place) as phone:
        laptop.save(insert={"a": b"1"})
        phone.save(insert={"b": b"2"})
        for device in (laptop, phone, laptop):
            assert not device.sync().problems
        assert dict(laptop.at()) == dict(phone.at()) == {"a": b"1", "b": b"2"}


def test_an_exchange_over_a_folder() -> None:
    exchanged("shared")


def test_an_exchange_in_packs(folder: Path) -> None:
    exchanged(llvs.Remote((folder / "shared").as_uri(), layout="packed"))
    assert list((folder / "shared" / "pack1" / "log").iterdir())


def test_an_exchange_over_the_programs_own_files() -> None:
    class Shelf(llvs.exchange.RemoteFiles):
        name = "shelf"

        def __init__(self) -> None:
            self.files: dict[str, bytes] = {}

        def list(self, directory: str) -> Iterator[llvs.exchange.RemoteFile]:
            for name, data in sorted(self.files.items()):
                if name.rpartition("/")[0] == directory:
                    yield llvs.exchange.RemoteFile(name.rpartition("/")[2], len(data))

        def read(self, name: str, offset: int, size: int) -> Any:
            data = self.files.get(name)
            return data if data is None or size == 0 else data[offset : offset + size]

        def publish(self, name: str, file: llvs.exchange.OutgoingFile, replaces: bool) -> bool:
            if name in self.files and not replaces:
                return False
            data = BytesIO()
            file.write_to(data)
            self.files[name] = data.getvalue()
            return True

        def delete(self, name: str) -> None:
            self.files.pop(name, None)

    shelf = Shelf()
    exchanged(llvs.Remote(shelf))
    assert shelf.files


def test_an_exchange_over_a_network() -> None:
    """libcurl is found: the error is the server's, and not a missing libcurl."""
    with llvs.Store(storage="memory") as store, llvs.Exchange(store, "http+webdav://127.0.0.1:1/") as way:
        with pytest.raises(llvs.TransportError, match="127.0.0.1"):
            way.retrieve()


def test_a_stream_of_packs_that_is_encrypted() -> None:
    """libcrypto is found."""
    pair, other = llvs.exchange.make_identity(), llvs.exchange.make_identity()
    with llvs.Store(storage="memory") as store, llvs.Store(storage="memory") as copy:
        made = store.make_version(insert={"a": b"a secret"})
        pack = store.pack(recipients=[pair.recipient])
        assert b"a secret" not in pack
        with pytest.raises(llvs.errors.EncryptionError):
            copy.unpack(pack, identities=[other.secret])
        copy.unpack(pack, identities=[pair.secret])
        assert copy.at(made)["a"] == b"a secret"


def test_a_snapshot() -> None:
    with llvs.Store("notes.llvs") as store, llvs.Store("copy.llvs") as copy:
        made = store.make_version(insert={"a": b"1"})
        store.write_snapshot("snapshot")
        copy.restore_snapshot("snapshot")
        assert copy.at(made)["a"] == b"1"


def test_a_syncer() -> None:
    came = threading.Event()

    def hear(event: llvs.syncer.SyncEvent) -> None:
        if event.round is not None and event.round.moved:
            came.set()

    with llvs.Coordinator("laptop.llvs", exchange="shared") as laptop, llvs.Coordinator("phone.llvs", exchange="shared") as phone:
        with llvs.Syncer(laptop, hear), llvs.Syncer(phone, after_save=0.05):
            phone.save(insert={"a": b"1"})
            assert came.wait(600) and laptop["a"] == b"1"


def test_asyncio() -> None:
    async def main() -> None:
        with llvs.Coordinator("notes.llvs", exchange="shared") as notes:
            notes.save(insert={"a": b"1"})
            assert (await llvs.aio.call(notes.sync)).before.sent

    asyncio.run(asyncio.wait_for(main(), 600))


def test_a_direct_connection() -> None:
    """The test carries the bytes, so that no time-out counts."""
    pairing = llvs.live.make_pairing()
    with llvs.Store("laptop.llvs") as laptop, llvs.Store("phone.llvs") as phone:
        made = laptop.make_version(insert={"a": b"1"})
        with llvs.live.Peer(laptop, pairing, initiator=False) as one, llvs.live.Peer(phone, pairing, initiator=True) as other:
            sent = True
            while sent:
                sent = False
                for sender, receiver in ((one, other), (other, one)):
                    while data := sender.send():
                        receiver.receive(data)
                        sent = True
        assert phone.at(made)["a"] == b"1"


def merged_apart(model: type[Any]) -> None:
    """Two devices change different members of one object. A sync keeps both changes."""
    with llvs.Coordinator("laptop.llvs", exchange="shared") as laptop, llvs.Coordinator("phone.llvs", exchange="shared") as phone:
        laptop.collection(model)["1"] = model(name="Ann")
        laptop.sync()
        phone.sync()
        with laptop.collection(model).edit("1") as ann:
            ann.tags.add("friend")
            ann.visits += 1
        with phone.collection(model).edit("1") as ann:
            ann.name = "Anna"
            ann.visits += 1
        for device in (laptop, phone, laptop):
            device.sync()
        assert laptop.collection(model)["1"] == phone.collection(model)["1"] == model(name="Anna", tags={"friend"}, visits=2)


def test_models_that_are_dataclasses() -> None:
    @models.model("contact/")
    @dataclass
    class Contact:
        name: str = ""
        tags: set[str] = field(default_factory=set)
        visits: Annotated[int, models.Counter()] = 0

    merged_apart(Contact)


def test_models_of_pydantic() -> None:
    @models.model("contact/")
    class Contact(pydantic.BaseModel):
        name: Annotated[str, pydantic.Field(max_length=100)] = ""
        tags: set[str] = set()
        visits: Annotated[int, models.Counter()] = 0

    merged_apart(Contact)


def test_merging_documents() -> None:
    assert llvs.merge.merge_values(b'{"a":1,"b":1}', b'{"a":2,"b":1}', b'{"a":1,"b":2}').data == b'{"a":2,"b":2}'


def test_an_index() -> None:
    with llvs.Coordinator("people.llvs") as people:
        people.register_schema({"merge": 1, "indexes": {"by-name": {"prefix": "", "on": ["/name"], "text": "fold"}}})
        people.save(insert={"1": b'{"name": "\xc3\x89mile"}', "2": b'{"name": "Bob"}'})
        assert list(people.index("by-name").find("EMILE")) == ["1"]
        by_word = people.index("words", keys=lambda id, data: data.decode().split(), prefix="", version=1)
        assert by_word.find('"Bob"}').count() == 1


def test_a_projection() -> None:
    definition = {"tables": {"people": {"prefix": "", "columns": [{"name": "name", "pointer": "/name", "type": "text"}]}}}
    with llvs.Coordinator("people.llvs") as people, llvs.sqlite.Projection(people, "view.sqlite", definition) as view:
        people.save(insert={"1": b'{"name": "Ann"}'})
        view.update()
        with closing(sqlite3.connect("view.sqlite")) as database:
            assert database.execute("SELECT id, name FROM people").fetchall() == [("1", "Ann")]


def test_the_sqlite_extension() -> None:
    with llvs.Store("notes.llvs") as store:
        store.make_version(insert={"a": b"1"})
    with closing(pysqlite3.connect(":memory:")) as database:
        database.enable_load_extension(True)
        database.load_extension(llvs.sqlite.extension_path())
        assert database.execute("SELECT id, data FROM llvs_values('notes.llvs')").fetchall() == [("a", "1")]


def test_what_proves_a_storage() -> None:
    class Forgetful(llvs.storage.DictStorage):
        def read(self, place: int, offset: int, size: int) -> bytes:
            return bytes(size)

    check = "records are read back"
    assert llvs.testing.check_storage(lambda place: llvs.storage.DictStorage(), shared=False, only=check).failures == ()
    with pytest.raises(llvs.testing.ConformanceError, match=check):
        llvs.testing.check_storage(lambda place: Forgetful(), shared=False, only=check)
