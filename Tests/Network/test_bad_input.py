"""Answers that no honest server gives: bombs, wrong lengths, lists of 100 MB, bad packs, and random bytes.

Each gives an error or a problem with a remedy. The store stays usable, nothing acknowledged is lost, and the next exchange continues.
docs/testing.md lists the test of each.
"""

from __future__ import annotations

import gzip
import hashlib
import random
import re
from pathlib import Path
from typing import Any, Callable, Iterator, Optional

import llvs
import pytest
from conftest import ids
from dav_server import DavServer, Handler, on
from s3_server import KEY, SECRET, S3Server

ROOT = Path(__file__).resolve().parents[2]
LAYOUTS = ["interchange", "packed"]


@pytest.fixture(params=LAYOUTS)
def layout(request: Any) -> str:
    found: str = request.param
    return found


def peak() -> int:
    """The peak of this process's memory since `peak_from_here`, in KiB."""
    return int(next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM")).split()[1])


def peak_from_here() -> int:
    """Resets the peak, since an earlier test may have used more than this one. Returns the present memory in KiB."""
    Path("/proc/self/clear_refs").write_text("5")
    return peak()


def remote(server: DavServer, layout: str) -> llvs.Remote:
    return llvs.Remote(f"{server.url}?layout={layout}")


def exchange(store: llvs.Store, place: llvs.Remote) -> list[llvs.exchange.Problem]:
    """Retrieves and sends; the problems of both."""
    with llvs.Exchange(store, place) as way:
        return [*way.retrieve().problems, *way.send().problems]


def goes_on(store: llvs.Store, second: llvs.Store, server: DavServer, layout: str) -> None:
    """Exchanges with a server that works again, and checks the result."""
    server.fault = None
    for each in (store, second, store):
        assert not exchange(each, remote(server, layout))
    assert ids(store) == ids(second) and not store.verify().damages


@pytest.fixture
def second(store: llvs.Store, server: DavServer, new_store: Callable[[], llvs.Store], layout: str) -> llvs.Store:
    """An empty store beside one that has sent three versions."""
    assert not exchange(store, remote(server, layout))
    return new_store()


def test_compressed_bombs(store: llvs.Store, second: llvs.Store, server: DavServer, layout: str) -> None:
    """No request asks for compression, and nothing is inflated. A bomb is a file of a few KB that belongs to no exchange."""
    bomb = gzip.compress(bytes(64 << 20))
    asked: list[Optional[str]] = []

    def fault(handler: Handler) -> Optional[bool]:
        asked.append(handler.headers.get("Accept-Encoding"))
        if handler.command != "GET":
            return False
        handler.answer(200, bomb, Content_Encoding="gzip")
        return True

    server.fault = fault
    before = peak_from_here()
    with llvs.Exchange(second, remote(server, layout)) as way:
        if layout == "interchange":
            assert {problem.code for problem in way.retrieve().problems} >= {llvs.ErrorCode.TRANSPORT}
        else:
            with pytest.raises(llvs.TransportError, match="compresses"):
                way.retrieve()
    assert peak() - before < 48 << 10, "KiB"
    assert set(asked) == {"identity"} and not ids(second)
    goes_on(store, second, server, layout)


@pytest.mark.in_turn("layout", "wrong")
@pytest.mark.parametrize("wrong", [-10, -1, 1, 10_000_000, "twice", "none"])
def test_wrong_lengths(store: llvs.Store, second: llvs.Store, server: DavServer, layout: str, wrong: Any) -> None:
    def fault(handler: Handler) -> Optional[bool]:
        data = server.files.get(handler.name)
        if handler.command != "GET" or data is None:
            return False
        if wrong == "twice":
            handler.send_response(200)
            for length in (len(data), len(data) + 5):
                handler.send_header("Content-Length", str(length))
            handler.end_headers()
        elif wrong == "none":
            handler.begin(200, None)
        else:
            handler.begin(200, max(0, len(data) + wrong))
        handler.wfile.write(data)
        return handler.cut()

    server.fault = fault
    try:
        with llvs.Exchange(second, remote(server, layout)) as way:
            way.retrieve()
    except llvs.TransportError:
        assert wrong != "none"
    # The contents are correct, whatever length was reported.
    assert ids(second) <= ids(store)
    assert ids(second) == ids(store) or wrong != "none"
    goes_on(store, second, server, layout)


@pytest.mark.parametrize("layout", ["packed"])
def test_a_list_of_100_mb(store: llvs.Store, second: llvs.Store, server: DavServer, layout: str) -> None:
    """A list with foreign names is read as it arrives, and uses memory only for the names."""
    size, sent = 100 << 20, [0]

    def fault(handler: Handler) -> Optional[bool]:
        if handler.command != "PROPFIND" or not handler.name.endswith(("/versions", "/log")):
            return False
        handler.body()
        handler.begin(207, None)
        handler.wfile.write(b"<D:multistatus xmlns:D='DAV:'>")
        pad = b"<D:propstat><D:status>HTTP/1.1 404 Not Found</D:status><D:prop>" + b"<D:x/>" * 1_600 + b"</D:prop></D:propstat>"
        number = 0
        while sent[0] < size:
            part = b"<D:response><D:href>%s/+%d</D:href>%s</D:response>" % (handler.name.encode(), number, pad)
            handler.wfile.write(part)
            sent[0] += len(part)
            number += 1
        handler.wfile.write(b"</D:multistatus>")
        handler.close_connection = True
        return True

    server.fault = fault
    before = peak_from_here()
    with llvs.Exchange(second, remote(server, layout)) as way:
        way.retrieve()
    assert sent[0] >= size and not ids(second)
    assert peak() - before < 64 << 10, "KiB"
    goes_on(store, second, server, layout)


@pytest.mark.in_turn("layout", "method", "status")
@pytest.mark.parametrize("status", [404, 409, 412, 423, 502, 504, 507])
@pytest.mark.parametrize("method", ["PUT", "MOVE", "MKCOL", "GET", "PROPFIND"])
def test_statuses_in_the_middle(
    store: llvs.Store, second: llvs.Store, server: DavServer, layout: str, method: str, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Failures from the third request of a kind on. Everything acknowledged exists afterwards."""
    left = [2 if method in ("GET", "PROPFIND") else 0]

    def fault(handler: Handler) -> Optional[bool]:
        if handler.command != method:
            return False
        left[0] -= 1
        if left[0] >= 0:
            return False
        handler.body()
        handler.answer(status, b"<html>why</html>")
        return True

    store.make_version(store.most_recent_head, insert={"more": b"1"})
    server.fault = fault
    acknowledged: set[str] = set()
    for each in (store, second):
        with llvs.Exchange(each, remote(server, layout)) as way:
            for step in (way.retrieve, way.send):
                try:
                    acknowledged |= set(step().sent)
                except llvs.Error as problem:
                    assert problem.code != llvs.ErrorCode.INTERNAL and len(str(problem)) > 20
    server.fault = None
    assert not exchange(second, remote(server, layout))
    assert acknowledged <= ids(second)
    goes_on(store, second, server, layout)


def files_of(server: DavServer, directory: str) -> list[str]:
    return sorted(name for name in server.files if f"/{directory}/" in name)


def packs_of_two(server: DavServer, store: llvs.Store, second: llvs.Store) -> list[str]:
    """The names of log packs of two writers."""
    place = remote(server, "packed")
    for each in (store, second):
        each.make_version(each.most_recent_head, insert={f"{id(each)}": b"1"})
        assert not exchange(each, place)
    assert not exchange(store, place)
    return files_of(server, "pack1/log")


@pytest.mark.parametrize("layout", ["packed"])
def test_packs_swapped(store: llvs.Store, second: llvs.Store, server: DavServer, layout: str, new_store: Any) -> None:
    """Two whole packs under each other's names. The bytes do not match the names, so both packs count as absent."""
    a, b = packs_of_two(server, store, second)[:2]
    server.files[a], server.files[b] = server.files[b], server.files[a]
    reader = new_store()
    with llvs.Exchange(reader, remote(server, layout)) as way:
        way.retrieve()
    assert ids(reader) < ids(store)
    server.files[a], server.files[b] = server.files[b], server.files[a]
    goes_on(store, reader, server, layout)


@pytest.mark.parametrize("layout", ["packed"])
def test_packs_replayed(store: llvs.Store, second: llvs.Store, server: DavServer, layout: str, new_store: Any) -> None:
    """An old pack returns under its own name: nothing changes."""
    name = packs_of_two(server, store, second)[0]
    old = server.files[name]
    for number in range(20):
        store.make_version(store.most_recent_head, insert={f"n{number}": b"1"})
        assert not exchange(store, remote(server, layout))
    before = ids(store)
    server.files[name] = old
    for each in (store, second, new_store()):
        assert not exchange(each, remote(server, layout))
        assert ids(each) == before


@pytest.mark.parametrize("layout", ["packed"])
def test_a_newer_format(store: llvs.Store, second: llvs.Store, server: DavServer, layout: str, new_store: Any) -> None:
    """The pack is reported by name, with a remedy. The others are read, and so is this one after it has been replaced by a readable one."""
    from packs import names

    name = packs_of_two(server, store, second)[0]
    data = bytearray(server.files.pop(name))
    data[8] = 2
    parsed = name.rsplit("/", 1)[1].rsplit("-", 1)[0]
    newer = f"{name.rsplit('/', 1)[0]}/{parsed}-{names.encode(hashlib.sha256(data).digest()[:16])}"
    server.files[newer] = bytes(data)
    reader = new_store()
    with llvs.Exchange(reader, remote(server, layout)) as way:
        problems = way.retrieve().problems
    told = [problem.name for problem in problems if problem.code == llvs.ErrorCode.NEWER_FORMAT]
    assert len(told) == 1 and newer.endswith(told[0].rsplit("/", 1)[-1])
    # Its descendants are pending.
    assert {problem.code for problem in problems} <= {llvs.ErrorCode.NEWER_FORMAT, llvs.ErrorCode.MISSING_PREDECESSOR}
    assert ids(reader) < ids(store)


@pytest.mark.parametrize("layout", ["packed"])
def test_another_stores_root(store: llvs.Store, second: llvs.Store, server: DavServer, layout: str, new_store: Any) -> None:
    """A second root beside the first: both are used, and devices read the packs under either."""
    with DavServer() as other:
        stranger = new_store()
        stranger.make_version(insert={"stranger": b"1"})
        assert not exchange(stranger, remote(other, layout))
        server.files.update(other.files)
        server.folders |= other.folders
    goes_on(store, second, server, layout)
    reader = new_store()
    exchange(reader, remote(server, layout))
    assert ids(reader) >= ids(store)


class Liar:
    """Gives any answer: the right one, a changed one, a part, that of another request, or nonsense."""

    NONSENSE = [
        b"", b"<html>sign in</html>", b"\x00" * 5_000, b"{}", b"<D:multistatus xmlns:D='DAV:'/>", b"<a>" * 5_000, bytes(range(256)) * 40,
        b"<?xml version='1.0'?><ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>x</NextContinuationToken>"
        b"<Contents><Key>here/pack1/log/../../x</Key><Size>-1</Size></Contents></ListBucketResult>",
        b"<D:multistatus xmlns:D='DAV:'><D:response><D:href>/dav/notes/versions/../../etc/passwd</D:href></D:response></D:multistatus>",
    ]
    STATUSES = [100, 200, 201, 204, 206, 207, 299, 301, 304, 400, 401, 403, 404, 405, 409, 410, 412, 416, 423, 500, 501, 507, 999]

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.earlier: list[bytes] = []

    def spoil(self, body: bytes) -> bytes:
        data = bytearray(body)
        how = self.random.randrange(5)
        if how == 0 and data:
            data[self.random.randrange(len(data))] ^= 1 << self.random.randrange(8)
        elif how == 1:
            del data[self.random.randrange(len(data) + 1) :]
        elif how == 2 and self.earlier:
            return self.random.choice(self.earlier)
        elif how == 3:
            return self.random.choice(self.NONSENSE)
        else:
            data += data[: self.random.randrange(len(data) + 1)]
        return bytes(data)

    def judge(self, right: bytes) -> Optional[tuple[int, bytes]]:
        """Returns None for the right answer, otherwise a status, 0 for the right one, and a body."""
        self.earlier = [*self.earlier[-50:], right]
        if self.random.random() < 0.6:
            return None
        return (self.random.choice(self.STATUSES) if self.random.random() < 0.4 else 0), self.spoil(right)


@pytest.mark.in_turn("seed", "layout")
@pytest.mark.parametrize("seed", range(2))
def test_a_webdav_server_that_answers_anything(
    store: llvs.Store, second: llvs.Store, server: DavServer, layout: str, seed: int
) -> None:
    liar = Liar(seed)

    def fault(handler: Handler) -> Optional[bool]:
        handler.body()
        with server.lock:
            status, right = getattr(handler, "on_" + handler.command.lower())()
            verdict = liar.judge(right)
        if verdict is None:
            handler.answer(status, right)
        elif verdict[0] == 999:
            return handler.cut()
        else:
            headers = {"Location": f"/dav/notes/{liar.random.randrange(9)}"} if verdict[0] == 301 else {}
            handler.answer(verdict[0] or status, b"" if verdict[0] in (100, 204, 304) else verdict[1], **headers)
        return True

    is_honest(lambda honest: setattr(server, "fault", None if honest else fault), lambda: remote(server, layout), store, second, seed)


def is_honest(
    lie: Callable[[bool], None], place: Callable[[], llvs.Remote], store: llvs.Store, second: llvs.Store, seed: int, anew: bool = False
) -> None:
    """Exchanges with a hostile server raise errors of the library or report problems. Everything that the server did not destroy arrives
    when it becomes honest.

    anew: whether its earlier answers are forgotten then. Packs that it claims to have but lost would only be noticed a day later.
    """
    own = random.Random(seed)
    for turn in range(6):
        for name, each in (("a", store), ("b", second)):
            each.make_version(each.most_recent_head, insert={f"{name}{turn}": own.randbytes(own.randrange(3_000))})
            before = ids(each)
            lie(False)
            with llvs.Exchange(each, place()) as way:
                for step in (way.retrieve, way.send):
                    try:
                        step()
                    except llvs.Error as problem:
                        assert problem.code != llvs.ErrorCode.INTERNAL and len(str(problem)) > 20
            assert ids(each) >= before and not each.verify().damages
            lie(True)
    # The files that the server has are genuine, since the library wrote them.
    for turn in range(3):
        for each in (store, second):
            try:
                if anew and turn == 0:
                    raise llvs.NotFoundError("forgotten")
                exchange(each, place())
            except llvs.NotFoundError:
                # The server claimed that everything is gone, and the library believed it: the user has to decide.
                with llvs.Exchange(each, place(), restoration_state=b"new") as way:
                    way.retrieve()
                    way.send()
    assert ids(store) == ids(second)


@pytest.fixture(scope="module")
def bucket() -> Iterator[S3Server]:
    server = S3Server()
    yield server
    server.close()


@pytest.mark.in_turn("layout", "seed")
@pytest.mark.parametrize("seed", range(4))
def test_a_bucket_that_answers_anything(bucket: S3Server, new_store: Any, layout: str, seed: int) -> None:
    liar, where = Liar(seed), f"{layout}{seed}"

    def fault(environ: dict[str, Any]) -> Optional[tuple[str, bytes]]:
        verdict = liar.judge(b"<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>")
        if verdict is None or verdict[0] == 100:
            return None
        return f"{verdict[0] or 200} Something", verdict[1]

    def lie(honest: bool) -> None:
        bucket.fault = None if honest else fault

    def place() -> llvs.Remote:
        return llvs.Remote(f"{bucket.url(where)}&layout={layout}", user=KEY, password=SECRET)

    lie(True)
    is_honest(lie, place, new_store(), new_store(), seed, anew=layout == "packed")


def test_each_item_has_its_test() -> None:
    """Each item of "Bad input over a network" in docs/testing.md is tested."""
    page = (ROOT / "docs/testing.md").read_text().split("## Bad input over a network")[1].split("\n## ")[0]
    rows = [line for line in page.splitlines() if line.startswith("| ") and "`" in line]
    assert len(rows) >= 28
    for row in rows:
        found = re.findall(r"`([\w/.]+?)(?:::(\w+))?`", row)
        assert found, row
        for path, name in found:
            if path != "listings":
                assert name and name in (ROOT / "Tests" / path).read_text(), f"{row}: there is no {name} in {path}"
