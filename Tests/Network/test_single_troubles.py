"""A failure of a server with one file is a problem of that file, and does not end the exchange, unless the server is down."""

from __future__ import annotations

import uuid
from typing import Any, Callable, Iterator, Optional

import llvs
import pytest
from buckets import moto
from conftest import ids
from dav_server import DavServer, Handler
from patience import eventually
from s3_server import KEY, SECRET, S3Server

LAYOUTS = ["interchange", "packed"]

#: The status with which a server answers a request with this method, path and body; None for its usual answer.
Judge = Callable[[str, str, bytes], Optional[int]]


class Dav:
    def __init__(self, server: DavServer) -> None:
        self._server = server

    def place(self, layout: str) -> llvs.Remote:
        return llvs.Remote(f"{self._server.url}?layout={layout}")

    def names(self) -> list[str]:
        return sorted(self._server.files)

    def judge(self, judge: Optional[Judge]) -> None:
        def fault(handler: Handler) -> bool:
            status = judge(handler.command, handler.name, handler.body()) if judge else None
            if status:
                handler.answer(status)
            return bool(status)

        self._server.fault = fault


class Bucket:
    def __init__(self, server: S3Server) -> None:
        self._server, self._prefix = server, uuid.uuid4().hex

    def place(self, layout: str) -> llvs.Remote:
        return llvs.Remote(f"{self._server.url(self._prefix)}&layout={layout}", user=KEY, password=SECRET)

    def names(self) -> list[str]:
        listed = self._server.client.get("/notes-bucket?list-type=2&prefix=" + self._prefix, headers=self._server._own()).text
        return sorted(part.split("<")[0] for part in listed.split("<Key>")[1:])

    def judge(self, judge: Optional[Judge]) -> None:
        def fault(environ: dict[str, Any]) -> Optional[tuple[str, bytes]]:
            status = judge(environ["REQUEST_METHOD"], environ["RAW_URI"].partition("?")[0], b"") if judge else None
            return (f"{status} No", b"") if status else None

        self._server.fault = fault


@pytest.fixture(params=["webdav", "s3"])
def remote(request: Any, server: DavServer) -> Iterator[Any]:
    if request.param == "webdav":
        yield Dav(server)
        return
    bucket = Bucket(request.getfixturevalue("moto"))
    yield bucket
    bucket.judge(None)


def four(remote: Any, new_store: Any, layout: str) -> set[str]:
    """Versions without predecessors, each sent by another device."""
    made: set[str] = set()
    for number in range(4):
        each = new_store()
        made.add(each.make_version(insert={"k": b"%d" % number}).id)
        with llvs.Exchange(each, remote.place(layout)) as way:
            way.send()
    return made


@pytest.mark.in_turn("status", "remote", "folder")
@pytest.mark.parametrize("layout, folder", [("interchange", "/versions/"), ("interchange", "/changes/"), ("packed", "/log/")])
@pytest.mark.parametrize("status", [500, 502])
def test_one_file_is_not_given(remote: Any, new_store: Any, layout: str, folder: str, status: int) -> None:
    """The file is a problem by its name, each time, and the others are received."""
    made = four(remote, new_store, layout)
    bad = [name for name in remote.names() if folder in name][1].rpartition("/")[2]
    store = new_store()
    with llvs.Exchange(store, remote.place(layout)) as way:
        remote.judge(lambda method, path, _: status if method == "GET" and path.endswith(bad) else None)
        for count in (3, 0):
            got = way.retrieve()
            assert len(got.retrieved) == count and [each.name.rpartition("/")[2] for each in got.problems] == [bad]
            assert got.problems[0].code == llvs.ErrorCode.TRANSPORT
            assert str(status) in got.problems[0].reason
        remote.judge(None)
        # A file that failed for some seconds is retried after a pause.
        assert len(eventually(lambda: way.retrieve().retrieved)) == 1 and ids(store) == made


@pytest.mark.parametrize("layout", LAYOUTS)
def test_no_file_is_given(remote: Any, new_store: Any, layout: str) -> None:
    """A server that lists files, and returns none, is down."""
    made, store = four(remote, new_store, layout), new_store()
    with llvs.Exchange(store, remote.place(layout)) as way:
        remote.judge(lambda method, path, _: 500 if method == "GET" and path.count("/") > 2 and "pack1/root" not in path else None)
        with pytest.raises(llvs.TransportError, match="500"):
            way.retrieve()
        remote.judge(None)
        assert not way.retrieve().problems and ids(store) == made


@pytest.mark.parametrize("status", [400, 403, 406, 413, 415, 422, 451, 500])
def test_one_file_is_not_taken(remote: Any, new_store: Any, status: int) -> None:
    """The file is a problem by its name, each time. The others are sent, also later ones, except for its descendants."""
    store = new_store()
    made = {store.make_version(insert={"k": b"%d" % number}, root=True).id for number in range(3)}
    bad = store.make_version(insert={"bad-one": b"1"}, root=True)
    above = store.make_version(bad, insert={"x": b"1"})
    with llvs.Exchange(store, remote.place("interchange")) as way:
        way.retrieve()
        remote.judge(
            lambda method, path, body: status
            if method == "PUT" and (path.endswith("/changes/" + bad.id) or b'"bad-one"' in body)
            else None
        )
        if status == 500 and isinstance(remote, Bucket):
            # For a bucket it is unknown whether the failure is the file's or the service's.
            with pytest.raises(llvs.TransportError, match="500"):
                way.send()
            return
        for left in (made, set()):
            sent = way.send()
            assert set(sent.sent) == left and {each.name for each in sent.problems} == {bad.id, above.id}
            told = {each.name: each for each in sent.problems}[bad.id]
            assert str(status) in told.reason and "full" not in told.reason
        later = store.make_version(insert={"later": b"1"}, root=True)
        assert way.send().sent == (later.id,)
        remote.judge(None)
        assert set(way.send().sent) == {bad.id, above.id}
        assert not [name for name in remote.names() if "/tmp/" in name]


def test_no_file_is_taken(remote: Any, new_store: Any) -> None:
    """If no file may be written, the exchange ends with that error."""
    store = new_store()
    for number in range(3):
        store.make_version(insert={"k": b"%d" % number}, root=True)
    with llvs.Exchange(store, remote.place("interchange")) as way:
        way.retrieve()
        remote.judge(lambda method, path, _: 403 if method == "PUT" else None)
        with pytest.raises(llvs.StorageError, match="403") as told:
            way.send()
        assert told.value.code == llvs.ErrorCode.PERMISSION
        remote.judge(None)
        assert len(way.send().sent) == 3


def test_no_file_gets_its_name(new_store: Any) -> None:
    """If files can be uploaded but not renamed, no file may be written."""
    store = new_store()
    store.make_version(store.make_version(insert={"k": b"1"}), insert={"l": b"1"})
    with DavServer() as server:
        remote = Dav(server)
        with llvs.Exchange(store, remote.place("interchange")) as way:
            way.retrieve()
            remote.judge(lambda method, path, _: 403 if method == "MOVE" else None)
            with pytest.raises(llvs.StorageError, match="403") as told:
                way.send()
            assert told.value.code == llvs.ErrorCode.PERMISSION
            remote.judge(None)
            assert len(way.send().sent) == 2 and not [name for name in remote.names() if "/tmp/" in name]
