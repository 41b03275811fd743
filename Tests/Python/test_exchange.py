"""Exchanges: folders, places in memory, transports written in Python; their refusals and costs."""

from __future__ import annotations

import base64
import json
import random
import threading
import uuid
from pathlib import Path
from typing import Any, Callable, Iterable, Iterator, Optional, Sequence

import llvs
import pytest
from conftest import STORAGES, Places
from interchange import DictTransport, changes_file, version_file
from reference import Set, Version
from sampling import sample
from waiting import GUARD


@pytest.fixture(params=["folder", "memory", "transport"])
def shared(request: pytest.FixtureRequest, tmp_path: Path, new_store: Callable[[], llvs.Store]) -> Iterator[Callable[[], Any]]:
    """Returns places of each kind: as a function, since a transport serves one exchange at a time."""
    if request.param == "folder":
        yield lambda: (tmp_path / "shared folder").as_uri()
    elif request.param == "memory":
        with llvs.Exchange(new_store(), f"memory:{tmp_path}"):
            yield lambda: f"memory:{tmp_path}"
    else:
        place = DictTransport()
        yield lambda: DictTransport(place.versions, place.changes)


def test_there_and_back(shared: Callable[[], Any], place: Places, memory: llvs.Store) -> None:
    with place.open() as store, llvs.Exchange(store, shared()) as mine, llvs.Exchange(memory, shared()) as theirs:
        v1 = store.make_version(insert={"é/1": b"\0\xff", "empty": b"", "n": b"1"}, metadata={"author": "ann"}, branch="draft")
        v2 = store.make_version(v1, update={"n": b"2"}, remove=["empty"])
        v3 = store.make_version(v1, update={"n": b"3"})
        merged = store.merge(v2, v3)
        sent = mine.send()
        assert set(sent.versions) == set(sent.sent) == {v1.id, v2.id, v3.id, merged.id} and sent.problems == () and sent.retrieved == ()
        assert mine.send().versions == ()
        got = theirs.retrieve()
        assert set(got.versions) == set(sent.versions) and got.problems == ()
        assert theirs.retrieve().versions == ()
        for version in (v1, v2, v3, merged):
            found = memory.version(version.id)
            assert found is not None and (found.predecessors, found.timestamp, found.metadata) == (
                version.predecessors,
                version.timestamp,
                version.metadata,
            )
            assert dict(memory.at(version).items()) == dict(store.at(version).items())
        back = memory.make_version(merged, insert={"back": b"!"})
        theirs.send()
        assert mine.retrieve().versions == (back.id,)
        assert store.at(back)["back"] == b"!" and store.heads() == (back,)


def test_two_answers_come_to_one_in_fixed_turns(tmp_path: Path, new_store: Callable[[], llvs.Store]) -> None:
    """Two devices merged the same versions differently. In each turn each device merges its own result last, and so makes it the newer one.
    While the newer one won, they continued for ever (docs/convergence.md)."""
    stores = [new_store(), new_store()]
    first = stores[0]
    began = 978307200.0  # 2001, where the steps of a double are less than half a microsecond
    base = first.make_version(insert={"title": b"draft"}, timestamp=began + 1)
    one, two, three = (
        first.make_version(base, update={"title": title}, timestamp=began + at)
        for title, at in ((b"one", 2.0), (b"two", 3.0), (b"three", 3.0 + 5e-7))
    )
    exchanges = [llvs.Exchange(store, (tmp_path / "shared").as_uri()) for store in stores]
    exchanges[0].send()
    exchanges[1].retrieve()

    def answers(store: llvs.Store, x: llvs.Version, last: llvs.Version) -> Iterator[llvs.Version]:
        """Returns the same answer twice, under different metadata."""
        return (store.merge(x, last, llvs.Ours(), metadata={"try": again}) for again in "12")

    mine, theirs = answers(first, first.merge(one, two, llvs.Theirs()), three), answers(
        stores[1], stores[1].merge(one, three, llvs.Ours()), two
    )
    sent = next(theirs)
    exchanges[1].send()
    current = [first.merge(*mine), stores[1].merge(sent, next(theirs))]
    assert [store.at(version)["title"] for store, version in zip(stores, current)] == [b"two", b"one"]
    for turns in range(20):
        changed = False
        for index, (store, exchange) in enumerate(zip(stores, exchanges)):
            changed |= bool(exchange.retrieve().versions)
            changed |= bool(exchange.send().versions)
            merged = store.merge_heads(current[index])
            changed |= merged is not None
            current[index] = merged or current[index]
        if not changed:
            break
    assert turns <= 4, f"after {turns} turns"
    assert current[0] == current[1] and stores[0].heads() == stores[1].heads() and stores[0].at(current[0])["title"] == b"two"
    for exchange in exchanges:
        exchange.close()


def test_durability(tmp_path: Path, memory: llvs.Store) -> None:
    version = memory.make_version(insert={"x": b"1"})
    url = (tmp_path / "shared").as_uri()
    for durability in ("normal", "full"):
        with llvs.Exchange(memory, url, durability=durability) as exchange:
            exchange.send()
        options = llvs.CoordinatorOptions(exchange_durability=durability)
        with llvs.Coordinator(None, storage="memory", exchange=url, options=options) as coordinator:
            assert coordinator.exchange().retrieved == (version.id,)
    with pytest.raises(llvs.errors.InvalidArgumentError, match="none"):
        llvs.Exchange(memory, url, durability="none")
    with pytest.raises(llvs.errors.InvalidArgumentError, match="none"):
        llvs.Coordinator(None, storage="memory", exchange=url, options=llvs.CoordinatorOptions(exchange_durability="none"))


def test_progress_cancels_and_can_go_on(shared: Callable[[], Any], new_store: Callable[[], llvs.Store]) -> None:
    store, other = new_store(), new_store()
    version = store.make_version()
    for index in range(200):
        version = store.make_version(version, insert={str(index): b"x" * 1000})
    with llvs.Exchange(store, shared()) as mine, llvs.Exchange(other, shared()) as theirs:
        stages = set()
        mine.send(progress=lambda now: stages.add(now.stage))
        assert stages and stages <= set(llvs.control.Stage)
        for stop in range(1, 6):
            calls = 0

            def progress(now: llvs.control.Progress) -> bool:
                nonlocal calls
                calls += 1
                return calls < stop

            try:
                theirs.retrieve(progress=progress)
            except llvs.CancelledError:
                pass
            known = {found.id for found in other.history()}
            assert all(set(found.predecessors) <= known for found in other.history())

        def failing(now: llvs.control.Progress) -> None:
            raise ZeroDivisionError("in progress")

        with pytest.raises(ZeroDivisionError):
            mine.send(progress=failing)
        with llvs.CancelToken() as token:
            token.cancel()
            with pytest.raises(llvs.CancelledError):
                mine.retrieve(cancel=token)
        theirs.retrieve()
        assert len(list(other.history())) == 201 and other.heads() == (version,)


def folder_of(tmp_path: Path, *versions: Version) -> tuple[str, Path]:
    folder = tmp_path / "folder"
    (folder / "versions").mkdir(parents=True)
    (folder / "changes").mkdir()
    for version in versions:
        (folder / "versions" / version.id).write_bytes(version_file(version))
        (folder / "changes" / version.id).write_bytes(changes_file(version))
    return folder.as_uri(), folder


GOOD = Version("good", (), 1.0, {b"a": Set(b"1")})
BAD = Version("bad", ("good",), 2.0, {b"a": Set(b"2")})
AFTER = Version("after", ("bad",), 3.0, {b"b": Set(b"3")})
BESIDE = Version("beside", ("good",), 4.0, {b"c": Set(b"4")})

def test_verify_finds_a_changed_file_and_send_mends_it(tmp_path: Path, memory: llvs.Store, new_store: Callable[[], llvs.Store]) -> None:
    place, folder = DictTransport(), tmp_path / "shared"
    version = memory.make_version(insert={"x": b"some bytes"})
    other = new_store()
    for where in (folder.as_uri(), place):
        with llvs.Exchange(memory, where) as mine:
            assert mine.send().sent == (version.id,)
            # Replace it by bytes of the same length that are still JSON and base64.
            if where is place:
                place.changes[version.id] = place.changes[version.id].replace(b"c29t", b"d29t")
            else:
                file = folder / "changes" / version.id
                file.write_bytes(file.read_bytes().replace(b"c29t", b"d29t"))
            assert mine.retrieve().problems == ()
            # In a folder a send would find the change, too.
            assert where is not place or mine.send().versions == ()
            found = mine.verify()
            assert found.versions == ()
            assert [(problem.name, problem.code) for problem in found.problems] == [(version.id, llvs.ErrorCode.DAMAGED)]
            assert memory.at(version)["x"] == b"some bytes"
            assert mine.send().sent == (version.id,)
            assert mine.verify() == llvs.exchange.ExchangeResult((), (), ())
    with llvs.Exchange(other, folder.as_uri()) as theirs:
        stages = set()
        assert theirs.verify(progress=lambda now: stages.add(now.stage)).retrieved == (version.id,) and stages
        assert other.at(version)["x"] == b"some bytes"
        with llvs.CancelToken() as token:
            token.cancel()
            with pytest.raises(llvs.CancelledError):
                theirs.verify(cancel=token)


def test_verify_finds_a_forged_version_whose_predecessor_is_unknown(tmp_path: Path, memory: llvs.Store) -> None:
    folder = tmp_path / "shared"
    version = memory.make_version(insert={"x": b"1"})
    with llvs.Exchange(memory, folder.as_uri()) as mine:
        mine.send()
        genuine = (folder / "versions" / version.id).read_bytes()
        forged = Version(version.id, (str(uuid.uuid4()).upper(),), version.timestamp - 978307200, {b"x": Set(b"evil")})
        (folder / "versions" / version.id).write_bytes(version_file(forged))
        (folder / "changes" / version.id).write_bytes(changes_file(forged))
        # The forged file does not wait for the predecessor, since the genuine version is in the store with all of its predecessors.
        assert [(problem.name, problem.code) for problem in mine.verify().problems] == [(version.id, llvs.ErrorCode.CONTENT_MISMATCH)]
        assert mine.send().sent == (version.id,) and (folder / "versions" / version.id).read_bytes() == genuine
        assert mine.verify() == llvs.exchange.ExchangeResult((), (), ()) and memory.at(version)["x"] == b"1"


def flip(data: bytes, directory: Path) -> None:
    """Changes a bit where a file of a store begins to hold these bytes."""
    for path in directory.rglob("*"):
        if path.is_file() and data[:32] in (content := path.read_bytes()):
            at = content.index(data[:32]) + 7
            path.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])


@pytest.mark.parametrize("size", [200_000, 2_000_000])
def test_a_retrieve_repairs_what_a_verification_found(tmp_path: Path, size: int) -> None:
    data = random.Random(size).randbytes(size)
    place = (tmp_path / "shared").as_uri()
    with llvs.Store(tmp_path / "store") as store, llvs.Exchange(store, place) as exchange:
        version = store.make_version(insert={"x": data, "y": b"small"})
        exchange.send()
    flip(data, tmp_path / "store")
    with llvs.Store(tmp_path / "store") as store, llvs.Exchange(store, place) as exchange:
        with pytest.raises(llvs.StorageError) as caught:
            store.value("x", at=version)
        assert (caught.value.code, caught.value.value_id, caught.value.version_id) == (llvs.ErrorCode.DAMAGED, "x", version.id)
    with llvs.Store(tmp_path / "store") as store, llvs.Exchange(store, place) as exchange:
        damages = store.verify().damages
        assert [(damage.value_id, damage.version, damage.lost) for damage in damages] == [("x", version.id, llvs.store.Loss.VALUE)]
        result = exchange.retrieve()
        assert result == llvs.exchange.ExchangeResult((), (), (), (version.id,)) and result.versions == ()
        assert store.at(version)["x"] == data and all(damage.lost is llvs.store.Loss.NOTHING for damage in store.verify().damages)
        assert exchange.verify().repaired == ()
    with llvs.Store(tmp_path / "store") as store:
        assert store.at(version)["x"] == data
    flip(data, tmp_path / "store")
    with llvs.Store(tmp_path / "store") as store, llvs.Exchange(store, place) as exchange:
        assert exchange.retrieve().repaired == () and exchange.verify().repaired == (version.id,)
        assert store.at(version)["x"] == data


class Tells(DictTransport):
    """A transport that knows the sizes of its files."""

    asked: list[str] = []

    def unusable(self, names: Sequence[str]) -> Iterable[str]:
        self.asked = list(names)
        return [name for name in names if not self.versions.get(name) or not self.changes.get(name)] + ["NOBODY-ASKED"]


def test_a_transport_reports_partial_files(memory: llvs.Store) -> None:
    a = memory.make_version(insert={"x": b"1"})
    b = memory.make_version(a, update={"x": b"2"})
    for transport in (DictTransport(), Tells()):
        with llvs.Exchange(memory, transport) as exchange:
            assert set(exchange.send().sent) == {a.id, b.id}
            transport.changes[b.id] = b""
            tells = isinstance(transport, Tells)
            assert exchange.send().sent == ((b.id,) if tells else ())
            assert (transport.changes[b.id] != b"") == tells
            if isinstance(transport, Tells):
                assert set(transport.asked) == {a.id, b.id}
                transport.unusable = lambda names: 1 / 0  # type: ignore[assignment, return-value]
                with pytest.raises(ZeroDivisionError):
                    exchange.send()


text = json.dumps


def bad_version(**parts: Any) -> str:
    content = json.loads(version_file(BAD))
    content["version"].update(parts)
    return json.dumps({"version": {key: value for key, value in content["version"].items() if value is not None}})


# These are refused before the storage is called.
@pytest.mark.parametrize("place", sample(["memory"], STORAGES), indirect=True)
@pytest.mark.parametrize(
    ("file", "content", "codes"),
    [
        ("changes", None, "MISSING_CHANGES"),
        ("versions", "", "CUT_SHORT"),
        ("versions", version_file(BAD).decode()[:30], "CUT_SHORT"),
        ("versions", "{}", "INVALID_JSON"),
        ("versions", "[]", "INVALID_JSON"),
        ("versions", "\x00\xff", "INVALID_JSON"),
        ("versions", "[" * 100_000, "INVALID_JSON"),
        ("versions", bad_version(identifier="other"), "IDENTIFIER_MISMATCH"),
        ("versions", bad_version(identifier=None), "INVALID_JSON"),
        ("versions", bad_version(timestamp="x"), "INVALID_JSON"),
        ("versions", bad_version().replace("2.0", "1e999"), "INVALID_JSON"),
        ("versions", bad_version(predecessors={"idOfFirst": "no-such"}), "MISSING_PREDECESSOR"),
        ("versions", bad_version(predecessors={"idOfFirst": "not an id"}), "INVALID_JSON|INVALID_VERSION_ID"),
        ("versions", bad_version(metadata=["key"]), "INVALID_JSON|INVALID_METADATA"),
        ("versions", bad_version(metadata=["key", {"data": "*"}]), "INVALID_BASE64"),
        ("changes", "", "CUT_SHORT"),
        ("changes", changes_file(BAD).decode()[:20], "CUT_SHORT"),
        ("changes", "{}", "INVALID_JSON"),
        ("changes", text([{"update": {"id": "a", "data": "!!!"}}]), "INVALID_BASE64"),
        ("changes", text([{"update": {"id": "a"}}]), "INVALID_JSON"),
        ("changes", text([{"update": {"id": "", "data": ""}}]), "INVALID_VALUE_ID"),
        ("changes", text([{"update": {"id": "x" * 5000, "data": ""}}]), "INVALID_VALUE_ID"),
        ("changes", text([{"explode": "a"}]), "INVALID_JSON"),
        ("changes", text([{"preserve": {"valueId": "a", "storedVersionId": "no-such"}}]), "MISSING_PREDECESSOR|INVALID_REFERENCE"),
        ("changes", text([5]), "INVALID_JSON"),
    ],
)
def test_one_bad_file_costs_only_what_depends_on_it(
    tmp_path: Path, store: llvs.Store, file: str, content: Optional[str], codes: str
) -> None:
    url, folder = folder_of(tmp_path, GOOD, BAD, AFTER, BESIDE)
    target = folder / file / "bad"
    if content is None:
        target.unlink()
    else:
        target.write_bytes(content.encode("latin-1"))
    with llvs.Exchange(store, url) as exchange:
        result = exchange.retrieve()
        assert set(result.versions) == {"good", "beside"}
        problems = {problem.name: problem for problem in result.problems}
        assert set(problems) == {"bad", "after"}, problems
        assert llvs.ErrorCode(problems["bad"].code).name in codes.split("|"), problems["bad"]
        assert "bad" in problems["bad"].reason or "bad" == problems["bad"].name
        assert problems["after"].code == llvs.ErrorCode.MISSING_PREDECESSOR and problems["after"].reason
        made = store.make_version("beside", insert={"still": b"usable"})
        assert made.id in exchange.send().versions
        assert dict(store.at(made).items()) == {"a": b"1", "c": b"4", "still": b"usable"}
        # Once the file is valid, the others follow.
        (folder / "versions" / "bad").write_bytes(version_file(BAD))
        (folder / "changes" / "bad").write_bytes(changes_file(BAD))
        assert {"bad", "after"} <= set(exchange.retrieve().versions)
        assert store.at("after")["b"] == b"3"


def test_foreign_files(tmp_path: Path, store: llvs.Store) -> None:
    url, folder = folder_of(tmp_path, GOOD)
    (folder / "versions" / "hello world.txt").write_bytes(b"?")
    (folder / "versions" / ".DS_Store").write_bytes(b"?")
    (folder / "versions" / "a directory").mkdir()
    (folder / "versions" / b"\xff\xfe".decode("utf-8", "surrogateescape")).write_bytes(b"?")
    (folder / "changes" / "alone").write_bytes(changes_file(BAD))
    (folder / "readme").write_bytes(b"?")
    with llvs.Exchange(store, url) as exchange:
        result = exchange.retrieve()
        assert result.versions == ("good",)
        for problem in result.problems:
            assert problem.name and problem.reason and isinstance(problem.code, llvs.ErrorCode)
        assert exchange.send().versions == ()
    assert (folder / "versions" / "hello world.txt").exists()


def test_a_version_that_differs(tmp_path: Path, store: llvs.Store) -> None:
    store.make_version(insert={"a": b"mine"}, id="good")
    url, _ = folder_of(tmp_path, GOOD)
    with llvs.Exchange(store, url) as exchange:
        exchange.retrieve()
    assert store.at("good")["a"] == b"mine"


def test_a_remote_file_that_is_empty_is_written_anew(tmp_path: Path, memory: llvs.Store) -> None:
    version = memory.make_version(insert={"a": b"1"})
    url, folder = folder_of(tmp_path)
    with llvs.Exchange(memory, url) as exchange:
        exchange.send()
        (folder / "versions" / version.id).write_bytes(b"")
        with llvs.Exchange(memory, url) as again:
            again.retrieve()
            again.send()
    assert json.loads((folder / "versions" / version.id).read_bytes())["version"]["identifier"] == version.id
    assert json.loads((folder / "changes" / version.id).read_bytes()) == [{"insert": {"id": "a", "data": base64.b64encode(b"1").decode()}}]


@pytest.mark.parametrize(
    ("url", "error"),
    [
        ("", llvs.errors.InvalidArgumentError),
        ("gopher://x", llvs.errors.UnsupportedError),
        ("file:relative", llvs.errors.InvalidArgumentError),
        ("file:///dev/null/folder", llvs.errors.NotDirectoryError),
        ("file:///%zz", llvs.errors.InvalidArgumentError),
        ("memory:", llvs.errors.InvalidArgumentError),
        ("file:///a%00b", llvs.errors.InvalidArgumentError),
    ],
)
def test_urls(memory: llvs.Store, url: str, error: type[llvs.Error]) -> None:
    with pytest.raises(error) as caught:
        llvs.Exchange(memory, url).retrieve()
    assert str(caught.value)
    assert memory.make_version()


def test_observing_a_folder(tmp_path: Path, new_store: Callable[[], llvs.Store]) -> None:
    one, other = new_store(), new_store()
    url = (tmp_path / "folder").as_uri()
    with llvs.Exchange(one, url) as mine, llvs.Exchange(other, url) as theirs:
        heard = threading.Event()
        observer = mine.observe(heard.set)
        other.make_version(insert={"a": b"1"})
        theirs.send()
        assert heard.wait(GUARD)
        observer.close()
        heard.clear()
        later = threading.Event()
        mine.observe(later.set)  # left to the exchange's end
        other.make_version(other.most_recent_head, insert={"b": b"1"})
        theirs.send()
        # The open observer is called, the closed one is not.
        assert later.wait(GUARD) and not heard.is_set()


@pytest.mark.parametrize("kind", ["folder", "memory"])
def test_no_device_is_told_of_its_own_versions(tmp_path: Path, new_store: Callable[[], llvs.Store], kind: str) -> None:
    one, other = new_store(), new_store()
    url = (tmp_path / "folder").as_uri() if kind == "folder" else f"memory:{tmp_path}"
    with llvs.Exchange(one, url) as mine, llvs.Exchange(other, url) as theirs:
        heard, heard_by_other = threading.Semaphore(0), threading.Event()
        with mine.observe(heard.release), theirs.observe(heard_by_other.set):
            one.make_version(insert={"a": b"1"})
            mine.send()
            # The same file is new for the other observer.
            assert heard_by_other.wait(GUARD) and not heard.acquire(blocking=False)
            other.make_version(insert={"b": b"1"})
            theirs.send()
            assert heard.acquire(timeout=GUARD)


def test_a_transport_that_reports_news(memory: llvs.Store) -> None:
    transport = DictTransport()
    transport.notify()
    heard = threading.Event()
    with llvs.Exchange(memory, transport) as exchange:
        observer = exchange.observe(heard.set)
        transport.notify()
        assert heard.wait(300)
        observer.close()
        transport.set_state(b"where I was")
        assert transport.get_state() == b"where I was"
        state = exchange.restoration_state
        exchange.restoration_state = state
    with llvs.Exchange(memory, DictTransport(), restoration_state=state) as exchange:
        exchange.retrieve()
    with llvs.Exchange(memory, DictTransport(), restoration_state=b"rubbish") as exchange:
        exchange.retrieve()


class Failing(DictTransport):
    """Raises an error in a given method."""

    def __init__(self, method: str, problem: BaseException) -> None:
        super().__init__()
        self.method, self.problem = method, problem
        self.put(GOOD)

    def _check(self, method: str) -> None:
        if method == self.method:
            raise self.problem

    def list(self) -> Iterable[str]:
        self._check("list")
        return super().list()

    def fetch_versions(self, names: Sequence[str]) -> Sequence[Optional[bytes]]:
        self._check("fetch_versions")
        return super().fetch_versions(names)

    def fetch_changes(self, names: Sequence[str]) -> Sequence[Optional[bytes]]:
        self._check("fetch_changes")
        return super().fetch_changes(names)

    def send(self, files: Sequence[llvs.exchange.VersionFiles]) -> None:
        self._check("send")
        super().send(files)


class Stop(BaseException):
    """An exception that is not an Exception."""


@pytest.mark.parametrize("method", ["list", "fetch_versions", "fetch_changes", "send"])
@pytest.mark.parametrize("problem", [OSError("gone"), Stop(), llvs.TransportError("unreachable"), llvs.CancelledError("enough")], ids=repr)
def test_what_a_transport_raises_is_raised(memory: llvs.Store, method: str, problem: BaseException) -> None:
    memory.make_version(insert={"mine": b"1"})
    transport = Failing(method, problem)
    with llvs.Exchange(memory, transport) as exchange:
        with pytest.raises(type(problem)) as caught:
            if method != "send":
                exchange.retrieve()
            exchange.send()
        assert caught.value is problem
        transport.method = ""
        assert exchange.retrieve().versions == ("good",)
        assert len(exchange.send().versions) == 1


def test_answers_of_a_wrong_kind(memory: llvs.Store) -> None:
    class Short(DictTransport):
        def fetch_versions(self, names: Sequence[str]) -> Sequence[Optional[bytes]]:
            return []

    class Text(DictTransport):
        def fetch_versions(self, names: Sequence[str]) -> Any:
            return ["text"] * len(names)

    for kind, error in ((Short, ValueError), (Text, TypeError)):
        transport = kind()
        transport.put(GOOD)
        with llvs.Exchange(memory, transport) as exchange, pytest.raises(error):
            exchange.retrieve()


def test_one_transport_serves_one_exchange(memory: llvs.Store) -> None:
    class Half(DictTransport):
        def snapshot_list(self) -> Iterable[str]:
            return []

    with pytest.raises(TypeError, match="snapshot_read"):
        llvs.Exchange(memory, Half())


class WithSnapshots(DictTransport):
    """A transport with room for snapshots."""

    def __init__(self) -> None:
        super().__init__()
        self.files: dict[str, bytes] = {}

    def snapshot_list(self) -> Iterable[str]:
        return list(self.files)

    def snapshot_read(self, name: str) -> Optional[bytes]:
        return self.files.get(name)

    def snapshot_write(self, name: str, data: bytes) -> None:
        self.files[name] = data

    def snapshot_delete(self, name: str) -> None:
        self.files.pop(name, None)


@pytest.mark.parametrize("kind", ["folder", "transport"])
def test_snapshots_beside_the_versions(kind: str, tmp_path: Path, new_store: Callable[[], llvs.Store]) -> None:
    store, other = new_store(), new_store()
    version = store.make_version(insert={"a": b"1" * 1000})
    place: Any = tmp_path.as_uri() if kind == "folder" else WithSnapshots()
    with llvs.Exchange(store, place) as exchange:
        assert exchange.snapshot() is None
        made = exchange.put_snapshot()
        assert exchange.snapshot() == made
    with llvs.Exchange(other, place) as exchange:
        assert exchange.restore_snapshot() == made
    assert other.at(version)["a"] == b"1" * 1000
    with llvs.Exchange(store, DictTransport()) as exchange, pytest.raises(llvs.errors.UnsupportedError):
        exchange.put_snapshot()


def test_import_refuses_what_is_no_store(tmp_path: Path, memory: llvs.Store) -> None:
    with pytest.raises(llvs.NotFoundError):
        memory.import_store(tmp_path / "nothing")
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises((llvs.errors.NotDirectoryError, llvs.StorageError)):
        memory.import_store(tmp_path / "file")
    (tmp_path / "empty").mkdir()
    with pytest.raises(llvs.StorageError):
        memory.import_store(tmp_path / "empty")
    assert memory.heads() == ()
