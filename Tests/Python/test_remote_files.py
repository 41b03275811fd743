"""Places of named files that are written in Python: the suite, both layouts on them, and failures of their methods."""

from __future__ import annotations

import io
import random
import threading
from collections import defaultdict
from pathlib import Path
from typing import Any, Callable, Iterator, Optional

import llvs
import llvs.testing
import pytest
from llvs.testing import Disturbance
from waiting import eventually


class Shelf(llvs.exchange.RemoteFiles):
    """Files in a dictionary, which several share."""

    def __init__(self, files: dict[str, bytes], name: str = "the shelf") -> None:
        self.files, self.name = files, name
        self.calls: list[str] = []
        self.failing: Optional[BaseException] = None
        self.lock = threading.Lock()

    def call(self, what: str) -> None:
        self.calls.append(what)
        if self.failing is not None:
            raise self.failing

    def list(self, directory: str) -> Iterator[llvs.exchange.RemoteFile]:
        self.call(f"list {directory}")
        folders = set()
        for name, data in list_of(self.files):
            parent, _, last = name.rpartition("/")
            if parent == directory:
                yield llvs.exchange.RemoteFile(last, len(data))
            elif parent.startswith(directory + "/"):
                folders.add(parent[len(directory) + 1 :].partition("/")[0])
        for folder in sorted(folders):
            yield llvs.exchange.RemoteFile(folder, 0, is_directory=True)

    def read(self, name: str, offset: int, size: int) -> Optional[llvs.exchange.FileContent]:
        self.call(f"read {name}")
        data = self.files.get(name)
        if data is None:
            return None
        # Return large files as streams, so that both ways of answering are tested.
        return io.BytesIO(data) if len(data) > 100_000 and not size else data[offset : offset + size if size else None]

    def publish(self, name: str, file: llvs.exchange.OutgoingFile, replaces: bool) -> bool:
        self.call(f"publish {name}")
        data = io.BytesIO()
        file.write_to(data)
        assert len(data.getvalue()) == file.size
        with self.lock:
            if name in self.files and not replaces:
                return False
            self.files[name] = data.getvalue()
        return True

    def delete(self, name: str) -> None:
        self.call(f"delete {name}")
        self.files.pop(name, None)

    def close(self) -> None:
        self.calls.append("close")


def list_of(files: dict[str, bytes]) -> list[tuple[str, bytes]]:
    return list(files.copy().items())


@pytest.mark.parametrize("check", llvs.testing.files_checks())
def test_the_suite(check: str) -> None:
    places: defaultdict[int, dict[str, bytes]] = defaultdict(dict)
    shelves: list[Shelf] = []

    def files(place: int) -> Shelf:
        shelves.append(Shelf(places[place], f"shelf {place}"))
        return shelves[-1]

    def disturb(place: int, what: Disturbance) -> None:
        for shelf in shelves:
            shelf.failing = llvs.TransportError("locked", code=llvs.ErrorCode.TRANSPORT) if what is Disturbance.FAIL else None

    report = llvs.testing.check_files(files, only=check, disturb=disturb)
    assert [one.outcome for one in report.checks] == [llvs.testing.Outcome.PASSED]
    assert "close" in shelves[-1].calls


def test_a_broken_one_is_caught() -> None:
    class Forgetful(Shelf):
        def delete(self, name: str) -> None:
            pass

    places: defaultdict[int, dict[str, bytes]] = defaultdict(dict)
    with pytest.raises(llvs.testing.ConformanceError, match="deleted files are gone, and no others: a deleted file is read"):
        llvs.testing.check_files(lambda place: Forgetful(places[place]), only="deleted")
    with pytest.raises(llvs.testing.ConformanceError, match="no RemoteFiles"):
        llvs.testing.check_files(lambda place: llvs.Remote("memory:x"), only="deleted")  # type: ignore[arg-type, return-value]


def ids(store: llvs.Store) -> set[str]:
    return {version.id for version in store}


@pytest.fixture
def new_store(tmp_path: Path) -> Iterator[Callable[[], llvs.Store]]:
    made: list[llvs.Store] = []

    def make() -> llvs.Store:
        made.append(llvs.Store(tmp_path / f"store{len(made)}"))
        return made[-1]

    yield make
    for store in made:
        store.close()


@pytest.mark.parametrize("restarts", [False, True])
def test_a_large_value_that_comes_back_is_fetched_once(new_store: Callable[[], llvs.Store], restarts: bool) -> None:
    first, second, third, files = new_store(), new_store(), new_store(), dict[str, bytes]()
    data = bytes(range(256)) * 20_000

    def exchange(store: llvs.Store) -> int:
        """Exchanges, and returns how often a part of a large value is read."""
        shelf = Shelf(files)
        with llvs.Exchange(store, llvs.Remote(shelf, layout="packed")) as way:
            assert not way.retrieve().problems and not way.send().problems
        return sum(call.startswith("read pack1/blob") for call in shelf.calls)

    version = first.make_version(insert={"large": data})
    exchange(first)
    assert exchange(second) == 1
    for _ in range(3):
        version = first.make_version(version, remove=["large"])
        version = first.make_version(version, insert={"large": data})
        exchange(first)
        if restarts:
            exchange(second)
    assert exchange(second) == 0 and exchange(third) == 1
    for store in (second, third):
        assert store.at(version.id)["large"] == data and ids(store) == ids(first)
        assert not store.verify().damages


def test_of_a_large_encrypted_pack_what_lacks_is_read(new_store: Callable[[], llvs.Store]) -> None:
    first, away, files, me = new_store(), new_store(), dict[str, bytes](), llvs.exchange.make_identity()
    version = None

    class Parts(Shelf):
        def read(self, name: str, offset: int, size: int) -> Optional[llvs.exchange.FileContent]:
            self.calls.append(f"part {name} {size}")
            return super().read(name, offset, size)

    with llvs.Exchange(first, llvs.Remote(Shelf(files), identity=me.secret)) as way:
        for turn in range(9):
            if turn == 7:
                away.unpack(first.pack())
            for n in range(16):
                version = first.make_version(version, insert={f"{turn} {n}": random.Random(16 * turn + n).randbytes(16_000)})
            assert not way.retrieve().problems and not way.send().problems
    # Eight packs were merged into one, which later is the only one.
    packs = sorted(name for name in files if name.startswith("pack1/log/"))
    for name in packs[:-1]:
        del files[name]
    (base,) = (name for name in files if name.startswith("pack1/base/"))
    shelf, good = Parts(files), files[base]
    # One byte is changed in the middle of the part that is read.
    files[base] = good[:-150_000] + bytes([good[-150_000] ^ 1]) + good[-149_999:]
    with llvs.Exchange(away, llvs.Remote(shelf, identity=me.secret)) as way:
        assert not way.retrieve().retrieved and shelf.calls[-2] == f"part {base} 0"
        files[base] = good
        shelf.calls.clear()
        assert not way.retrieve().problems
    assert ids(away) == ids(first)
    sizes = [int(call.split()[2]) for call in shelf.calls if call.startswith(f"part {base}")]
    assert len(sizes) == 3 and sizes[0] == 184 and 0 < sum(sizes) < len(good) // 4


@pytest.mark.parametrize("layout", ["", "packed", "interchange"])
def test_two_stores(new_store: Callable[[], llvs.Store], layout: str) -> None:
    first, second, files = new_store(), new_store(), dict[str, bytes]()
    shelf = Shelf(files)
    first.make_version(insert={"large": bytes(range(256)) * 20_000, "small": b"1"})
    for store in (first, second):
        with llvs.Exchange(store, llvs.Remote(shelf, layout=layout) if layout else shelf) as way:
            assert not way.retrieve().problems and not way.send().problems
            assert way.url == "" and "the shelf" in repr(way)
    assert ids(first) == ids(second)
    version = next(iter(ids(second)))
    assert second.at(version)["large"] == bytes(range(256)) * 20_000
    assert any(name.startswith("versions/") for name in files) == (layout == "interchange")
    assert any(name.startswith("pack1/log/") for name in files) == (layout != "interchange")
    if layout == "packed":
        shelf.calls.clear()
        with llvs.Exchange(second, llvs.Remote(shelf, layout=layout)) as way:
            way.retrieve()
            way.send()
        assert shelf.calls == ["list pack1/log", "close"], "nothing new is one listing"


def test_without_ranges(new_store: Callable[[], llvs.Store]) -> None:
    class Whole(Shelf):
        has_ranges = False

        def read(self, name: str, offset: int, size: int) -> Optional[llvs.exchange.FileContent]:
            assert offset == size == 0
            return super().read(name, offset, size)

    places: defaultdict[int, dict[str, bytes]] = defaultdict(dict)
    assert llvs.testing.check_files(lambda place: Whole(places[place], f"whole {place}"), only="parts of files").checks


def test_a_coordinator(tmp_path: Path) -> None:
    files: dict[str, bytes] = {}
    with llvs.Coordinator(tmp_path / "a", exchange=Shelf(files, "shelf")) as a, llvs.Coordinator(tmp_path / "b") as b:
        b.attach(llvs.Remote(Shelf(files, "shelf"), layout="packed"))
        a.save(insert={"x": b"1"})
        a.sync()
        b.sync()
        assert b["x"] == b"1"


def test_what_is_raised_comes_out(new_store: Callable[[], llvs.Store]) -> None:
    store, shelf = new_store(), Shelf({})
    store.make_version(insert={"x": b"1"})
    with llvs.Exchange(store, shelf) as way:
        for problem in (ZeroDivisionError("no way"), llvs.TransportError("gone", code=llvs.ErrorCode.TRANSPORT), KeyboardInterrupt()):
            shelf.failing = problem
            with pytest.raises(type(problem)):
                way.send()
        shelf.failing = None
        assert way.send().sent
        # A handle serves one exchange at a time. Further exchanges use handles of their own.
        with llvs.Exchange(store, shelf) as other:
            other.retrieve()


def test_wrong_answers(new_store: Callable[[], llvs.Store]) -> None:
    store = new_store()
    store.make_version(insert={"x": b"1"})

    class Says(Shelf):
        answer: Any = None

        def publish(self, name: str, file: llvs.exchange.OutgoingFile, replaces: bool) -> bool:
            return self.answer  # type: ignore[no-any-return]

    with llvs.Exchange(store, Says({})) as way:
        with pytest.raises(TypeError, match="publish returned None"):
            way.send()

    class More(Shelf):
        def read(self, name: str, offset: int, size: int) -> Optional[llvs.exchange.FileContent]:
            return self.files.get(name)

    places: defaultdict[int, dict[str, bytes]] = defaultdict(dict)
    with pytest.raises(llvs.testing.ConformanceError, match="Return all of them"):
        llvs.testing.check_files(lambda place: More(places[place]), only="parts of files")
    with pytest.raises(llvs.errors.InvalidArgumentError, match="name"):
        llvs.Exchange(store, Shelf({}, name=""))


def test_cancelling_while_a_file_is_published(new_store: Callable[[], llvs.Store]) -> None:
    store, token = new_store(), llvs.CancelToken()
    store.make_version(insert={"large": bytes(3_000_000)})

    class Slow(Shelf):
        def publish(self, name: str, file: llvs.exchange.OutgoingFile, replaces: bool) -> bool:
            token.cancel()
            return super().publish(name, file, replaces)

    files: dict[str, bytes] = {}
    with llvs.Exchange(store, Slow(files)) as way:
        with pytest.raises(llvs.CancelledError):
            way.send(cancel=token)
    assert not files
    with llvs.Exchange(store, Shelf(files)) as way:
        assert way.send().sent


def test_keys(new_store: Callable[[], llvs.Store]) -> None:
    """Keys are observed: an unencrypted place is refused, and so are keys with single files, or without a place of files."""
    store, files = new_store(), dict[str, bytes]()
    store.make_version(insert={"x": b"1"})
    with llvs.Exchange(store, Shelf(files)) as way:
        way.send()
    before = dict(files)
    with llvs.Exchange(store, llvs.Remote(Shelf(files, "another name"), passphrase="six random words")) as way:
        with pytest.raises(llvs.errors.EncryptionError):
            way.send()
    assert files == before
    with pytest.raises(llvs.errors.InvalidArgumentError, match="interchange"):
        llvs.Exchange(store, llvs.Remote(Shelf(files), layout="interchange", passphrase="x"))

    class Single(llvs.exchange.Transport):
        def list(self) -> Any:
            return []

        def fetch_versions(self, names: Any) -> Any:
            return []

        def fetch_changes(self, names: Any) -> Any:
            return []

        def send(self, files: Any) -> None:
            pass

    with pytest.raises(llvs.errors.InvalidArgumentError, match="single versions unencrypted"):
        llvs.Exchange(store, llvs.Remote(Single(), passphrase="x"))
    with pytest.raises(TypeError, match="RemoteFiles"):
        llvs.Remote(7)  # type: ignore[arg-type]


def test_what_an_exception_says_is_known_to_the_library(tmp_path: Path) -> None:
    """The library sees the exception, too, and not only the caller: a syncer waits differently for free space than for a bug fix."""
    shelf = Shelf({}, "shelf")
    shelf.failing = llvs.StorageError("the shelf is full", code=llvs.ErrorCode.NO_SPACE)
    with llvs.Coordinator(tmp_path / "store", exchange=llvs.Remote(shelf, layout="packed")) as notes:
        notes.save(insert={"x": b"1"})
        with llvs.Syncer(notes) as syncer:
            place = eventually(lambda: next((place for place in syncer.status.places if place.error is not None), None))
    assert place.reason == llvs.syncer.SyncReason.NO_SPACE and "the shelf is full" in str(place.error)
