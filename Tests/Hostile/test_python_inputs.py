"""Each argument of a Python program is read once. An object that changes between two reads cannot make the library access foreign
memory."""

from __future__ import annotations

import array
import ctypes
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Callable

import llvs
import pytest
from sampling import sample

SECRET = b"the bytes"
#: False sizes: smaller, larger, larger than any memory.
LIES = [0, 1, 1 << 16, 1 << 40]


def lying_bytes(size: int, data: bytes = SECRET) -> bytes:
    """Makes bytes that claim another size, and other contents in every method that can be overridden."""

    class Lying(bytes):
        def __len__(self) -> int:
            return size

        def __bytes__(self) -> bytes:
            return b"other"

        def __bool__(self) -> bool:
            return False

        def __iter__(self) -> Iterator[int]:
            return iter(b"other")

        def __getitem__(self, index: Any) -> Any:
            return b"other"[index]

        def __eq__(self, other: object) -> bool:
            return True

        def __hash__(self) -> int:
            return 0

    return Lying(data)


def lying_str(size: int, text: str) -> str:
    """Makes text that claims another length, and encodes itself as something else."""

    class Lying(str):
        def __len__(self) -> int:
            return size

        def encode(self, *_: Any) -> bytes:
            return lying_bytes(size, b"other")

        def __bool__(self) -> bool:
            return False

        def isascii(self) -> bool:
            return True

        def __str__(self) -> str:
            return "other"

    return Lying(text)


@pytest.mark.parametrize("size", LIES)
def test_bytes_that_lie_about_their_size(store: llvs.Store, size: int) -> None:
    data = lying_bytes(size)
    version = store.make_version(
        insert={"a": data, "b": bytearray(SECRET)},
        changes=[llvs.Change.insert("c", data), llvs.Change(llvs.store.ChangeKind.INSERT, "d", data)],
    )
    version = store.make_version(version, insert=[("e", data)], update={"f": iter([data, data])})
    assert dict(store.at(version)) == {**dict.fromkeys("abcde", SECRET), "f": SECRET * 2}


@pytest.mark.parametrize("size", LIES)
def test_text_that_lies_about_its_length(store: llvs.Store, size: int) -> None:
    def lie(text: str) -> str:
        return lying_str(size, text)

    first = store.make_version(
        insert={lie("a"): b"1", lie("b"): b"2"}, metadata={lie("key"): lie("text")}, branch=lie("main"), id=lie("first")
    )
    assert (first.id, first.branch, first.metadata["key"]) == ("first", "main", "text")
    assert store.value(lie("a"), at=lie("first")) == llvs.Value("a", b"1", "first")
    assert [value and value.data for value in store.values([lie("a"), lie("b"), lie("c")], at=first)] == [b"1", b"2", None]
    assert store.at(lie("first")).get(lie("b")) == b"2" and lie("a") in store.at(first)
    assert [head.id for head in store.heads(branch=lie("main"))] == ["first"]
    assert [version.id for version in store.versions_of(lie("a"))] == ["first"]
    assert list(store.at(first).prefix(lie("a"))) == ["a"]
    removed = store.make_version(lie("first"), remove=[lie("a")], changes=[llvs.Change.remove(lie("b"))])
    assert dict(store.at(removed)) == {}
    assert store.is_ancestor(lie("first"), removed)


def test_a_list_of_ids_that_lies_or_changes(store: llvs.Store) -> None:
    class Lying(list):  # type: ignore[type-arg]
        def __len__(self) -> int:
            return 1 << 20

    version = store.make_version(insert={"a": b"1", "b": b"2"})
    assert [value and value.data for value in store.values(Lying(["a", "b"]), at=version)] == [b"1", b"2"]
    assert [found.id for found in store.versions(Lying([version.id]))] == [version.id]
    assert dict(store.at(store.make_version(version, remove=Lying(["a"]), changes=Lying([llvs.Change.remove("b")])))) == {}


class TellingTwice(Mapping[str, bytes]):
    """A mapping whose keys and values differ at each call, and whose size is false."""

    def __init__(self) -> None:
        self.asked = 0

    def __len__(self) -> int:
        self.asked += 1
        return 1000 * (self.asked % 2)

    def __iter__(self) -> Iterator[str]:
        for number in range(3):
            self.asked += 1
            yield f"id/{self.asked}"

    def __getitem__(self, id: str) -> bytes:
        return id.encode()


def test_a_mapping_that_never_returns_the_same_twice(store: llvs.Store) -> None:
    version = store.make_version(insert=TellingTwice(), metadata={"of": "it"})
    found = dict(store.at(version))
    assert len(found) == 3 and all(data == id.encode() for id, data in found.items())
    version = store.make_version(version, metadata=TellingTwice())  # type: ignore[arg-type]
    assert len(version.raw_metadata) == 3 and all(data == key.encode() for key, data in version.raw_metadata.items())


def test_a_dictionary_that_another_thread_changes(memory: llvs.Store) -> None:
    values = {f"id/{number}": b"id/%d" % number for number in range(2000)}
    done = threading.Event()

    def churn() -> None:
        # Changes its size and order all the time: its first id returns at the end as another one.
        number = 2000
        while not done.is_set():
            del values[next(iter(values))]
            values[f"id/{number}"] = b"id/%d" % number
            number += 1

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    churning = threading.Thread(target=churn)
    churning.start()
    try:
        for _ in range(sample(25, 150)):
            version = memory.make_version(insert=values, metadata=values, root=True)
            assert all(data == id.encode() for id, data in memory.at(version).items())
            assert all(data == key.encode() for key, data in version.raw_metadata.items())
    finally:
        done.set()
        churning.join()
        sys.setswitchinterval(interval)


def test_a_bytearray_that_another_thread_resizes(memory: llvs.Store) -> None:
    data = bytearray(b"x" * 100_000)
    done = threading.Event()

    def resize() -> None:
        while not done.is_set():
            try:
                data.extend(b"x" * 1_000_000)
                del data[1000:]
            except BufferError:  # another thread copies it now
                pass

    resizing = threading.Thread(target=resize)
    resizing.start()
    try:
        for _ in range(sample(30, 200)):
            version = memory.make_version(insert={"a": data}, changes=[llvs.Change.insert("b", data)], root=True)
            assert all(not stored.strip(b"x") for stored in memory.at(version).values())
    finally:
        done.set()
        resizing.join()


def test_pairs_that_are_not_pairs(memory: llvs.Store) -> None:
    class Lying(tuple):  # type: ignore[type-arg]
        def __len__(self) -> int:
            return 2

        def __getitem__(self, index: Any) -> Any:
            raise IndexError(index)

    with pytest.raises(TypeError, match="insert takes ids with their bytes"):
        memory.make_version(insert=[Lying(("a",))])  # type: ignore[list-item]
    assert dict(memory.at(memory.make_version(insert=[Lying(("a", b"1"))]))) == {"a": b"1"}


def test_views_of_every_form(store: llvs.Store) -> None:
    numbers = array.array("I", [1, 2, 3])
    every_second = memoryview(b"a.b.c.")[::2]
    matrix = memoryview(b"abcd").cast("B", (2, 2))
    version = store.make_version(insert={"numbers": numbers, "seconds": every_second, "matrix": matrix, "none": memoryview(b"")})
    assert dict(store.at(version)) == {"matrix": b"abcd", "none": b"", "numbers": numbers.tobytes(), "seconds": b"abc"}
    released = memoryview(b"gone")
    released.release()
    with pytest.raises((TypeError, ValueError)):
        store.make_version(version, insert={"gone": released})


class Changing:
    """Returns a longer buffer at each call (since Python 3.12, objects written in Python may)."""

    def __init__(self) -> None:
        self.asked = 0

    def __buffer__(self, flags: int) -> memoryview:
        self.asked += 1
        return memoryview(b"x" * (1 << (4 * self.asked)))


def test_buffers_that_change(tmp_path: Path) -> None:
    shared = (ctypes.c_char * 1_000_000)()
    values: dict[str, Any] = {"shared": shared}
    if sys.version_info >= (3, 12):
        values["changing"] = Changing()
    done = threading.Event()

    def change() -> None:
        number = 0
        while not done.is_set():
            number = (number + 1) % 256
            ctypes.memset(shared, number, len(shared))

    with llvs.Store(tmp_path / "store.llvs", durability="normal") as store:
        changing = threading.Thread(target=change)
        changing.start()
        try:
            versions = [store.make_version(insert=values, root=True) for _ in range(30)]
        finally:
            done.set()
            changing.join()
        # The stored bytes match their checksums, whichever they are.
        assert store.verify().damages == ()
        for version in versions:
            state = store.at(version)
            assert len(state["shared"]) == len(shared)
            assert set(state.get("changing", b"x")) == {ord("x")}


@pytest.mark.parametrize(
    "metadata",
    [{"key": "\ud800"}, {"\udfff": 1}, {"key": {"inner \ud800": 1}}, {"key": ["deep", ["\udc80"]]}],
    ids=ascii,
)
def test_metadata_with_lone_surrogates(store: llvs.Store, tmp_path: Path, metadata: dict[str, Any]) -> None:
    root = store.make_version(insert={"a": b"1"})
    for call in (
        lambda: store.make_version(root, metadata=metadata),
        lambda: store.merge(root, root, metadata=metadata),
        lambda: llvs.Coordinator(tmp_path / "other.llvs", metadata=metadata),
    ):
        with pytest.raises(llvs.errors.InvalidMetadataError, match="lone surrogate") as caught:
            call()
        assert caught.value.code is llvs.ErrorCode.INVALID_METADATA
        assert str(caught.value).isascii()
    assert [version.id for version in store.history()] == [root.id]


def test_metadata_of_lying_objects(memory: llvs.Store) -> None:
    class Dictionary(dict):  # type: ignore[type-arg]
        def __len__(self) -> int:
            return 1000

        def __bool__(self) -> bool:
            return False

    made = memory.make_version(metadata=Dictionary(text=lying_str(1000, "text"), data=lying_bytes(1000), more=Dictionary(a=1)))
    assert dict(made.raw_metadata) == {"data": SECRET, "more": b'{"a":1}', "text": b'"text"'}


@pytest.mark.parametrize("size", [-1, 0, 1, 1 << 62, 1 << 70, "text"], ids=repr)
def test_a_file_that_lies_about_its_size(place: Any, size: Any) -> None:
    import io

    class Lying(io.BytesIO):
        def seek(self, offset: int, whence: int = 0) -> int:
            super().seek(offset, whence)
            return size if whence == io.SEEK_END else offset

    with place.open() as store:
        data = os.urandom(3_000_000)
        try:
            version = store.make_version(insert={"a": Lying(data)})
        except (TypeError, llvs.Error):
            assert store.heads() == ()
        else:
            assert store.at(version)["a"] == data


def test_a_file_that_gives_more_than_it_was_asked_for(store: llvs.Store) -> None:
    class Generous:
        pieces = [lying_bytes(3, b"a" * 2_000_000), lying_bytes(0, b"b"), b""]

        def read(self, size: int) -> bytes:
            return self.pieces.pop(0)

    version = store.make_version(insert={"a": Generous()})  # type: ignore[dict-item]
    assert store.at(version)["a"] == b"a" * 2_000_000 + b"b"


class Places(list):  # type: ignore[type-arg]
    """A list that claims to have the requested number of elements."""

    def __init__(self, count: int, numbers: Any) -> None:
        super().__init__(numbers)
        self.count = count

    def __len__(self) -> int:
        return self.count


class LyingStorage(llvs.storage.DictStorage):
    """Claims sizes and numbers that are not there."""

    def __init__(self, what: str) -> None:
        super().__init__()
        self.what = what
        self.report: Any = None

    def append(self, records: Any) -> Any:
        places = super().append(records)
        if self.what == "more places":
            return Places(len(places), [*places] * 100_000)
        return (
            [-1]
            if self.what == "place below zero"
            else [1 << 64] if self.what == "large place" else ["0"] if self.what == "text" else places
        )

    def scan(self, mark: int, report: Any) -> Any:
        self.report = report
        if self.what == "long record":
            report(0, lying_bytes(1 << 40, b"x" * 100))
        if self.what == "record of numbers":
            report(0, array.array("Q", [1, 2]))
        if self.what == "size below zero":
            report(0, b"x", -1)
        if self.what == "mark below zero":
            return -1
        return super().scan(mark, report)

    def read(self, place: int, offset: int, size: int) -> bytes:
        return lying_bytes(size, b"x") if self.what == "short read" else super().read(place, offset, size)


@pytest.mark.parametrize(
    "what",
    [
        "more places",
        "place below zero",
        "large place",
        "text",
        "long record",
        "record of numbers",
        "size below zero",
        "mark below zero",
        "short read",
    ],
)
def test_a_storage_that_lies(what: str) -> None:
    storage = LyingStorage(what)
    try:
        with llvs.Store(storage=storage) as store:
            version = store.make_version(insert={"a": b"1" * 100_000})
            # The bytes may still be in memory.
            with llvs.Store(storage=storage) as again:
                assert again.at(version)["a"] == b"1" * 100_000
    except (llvs.Error, TypeError, ValueError, OverflowError):
        pass
    with pytest.raises(ValueError, match="during the call"):
        storage.report(0, b"late")


class LyingTransport(llvs.exchange.Transport):
    """Hands out what another holds, as objects that lie."""

    def __init__(self, files: dict[str, tuple[bytes, bytes]], size: int) -> None:
        self.files, self.size = files, size

    def list(self) -> Any:
        return [lying_str(self.size, name) for name in self.files]

    def fetch_versions(self, names: Any) -> Any:
        return Places(len(names), [lying_bytes(self.size, self.files[name][0]) for name in names])

    def fetch_changes(self, names: Any) -> Any:
        return Places(len(names), [lying_bytes(self.size, self.files[name][1]) for name in names])

    def send(self, files: Any) -> None:
        self.files.update({file.name: (file.version, file.changes) for file in files})


@pytest.mark.parametrize("size", LIES)
def test_a_transport_that_lies(new_store: Callable[[], llvs.Store], size: int) -> None:
    files: dict[str, tuple[bytes, bytes]] = {}
    one, two = new_store(), new_store()
    version = one.make_version(insert={"a": SECRET})
    with llvs.Exchange(one, LyingTransport(files, size)) as exchange:
        exchange.send()
    with llvs.Exchange(two, LyingTransport(files, size), restoration_state=lying_bytes(size, b"state")) as exchange:
        assert exchange.retrieve().retrieved == (version.id,)
    assert two.at(version)["a"] == SECRET
    # If there are more answers than names, the call fails, and nothing else happens.
    lying = LyingTransport(files, size)
    lying.fetch_versions = lambda names: Places(len(names), [b"{}"] * 100_000)  # type: ignore[method-assign]
    with llvs.Exchange(new_store(), lying) as exchange, pytest.raises(ValueError, match="answers"):
        exchange.retrieve()


def test_a_path_that_lies(tmp_path: Path) -> None:
    class Place(os.PathLike):  # type: ignore[type-arg]
        def __init__(self, path: Any) -> None:
            self.path = path

        def __fspath__(self) -> Any:
            return self.path

    inside = tmp_path / "store.llvs"
    for path in (
        lying_bytes(1 << 40, os.fsencode(inside)),
        Place(lying_bytes(3, os.fsencode(inside))),
        lying_str(0, str(inside)),
        Place(lying_str(99, str(inside))),
    ):
        with llvs.Store(path) as store:
            assert store.path == str(inside)


IN_A_SUBINTERPRETER = """
import sys
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters

code = '''
try:
    import llvs
except ImportError as problem:
    assert "subinterpreter" in str(problem), problem
else:
    raise SystemExit("it was imported")
'''
number = interpreters.create()
print(interpreters.run_string(number, code) or "")
interpreters.destroy(number)
import llvs
with llvs.Store(storage="memory") as store:
    store.make_version(insert={"a": b"1"})
print("fine")
"""


def test_a_subinterpreter_hears_why_not() -> None:
    try:
        __import__("_interpreters" if sys.version_info >= (3, 13) else "_xxsubinterpreters")
    except ImportError:
        pytest.fail("this Python has no module for subinterpreters, by which to test")
    done = subprocess.run([sys.executable, "-c", IN_A_SUBINTERPRETER], capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout.split()) == (0, ["fine"]), done.stdout + done.stderr
