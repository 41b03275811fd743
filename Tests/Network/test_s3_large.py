"""Large files in a bucket: parts, uploads that another process resumes, and uploads that are abandoned."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, Optional

import llvs
import pytest
from buckets import Service, moto, service
from conftest import ids
from moved_clock import HURRIES
from patience import PATIENCE, eventually
from s3_server import KEY, SECRET, S3Server

#: The size of a value, whose file is larger by a third; the versions of a pack; and the number of parts of the file.
SIZE, VERSIONS, PARTS = 12 << 20, 14, 3
DEVICE = HURRIES + """
import sys
import llvs
url, user, password, folder = sys.argv[1:]
with llvs.Store(folder) as store:
    with llvs.Exchange(store, llvs.Remote(url, user=user, password=password)) as way:
        way.retrieve()
        print(len(way.send().sent), flush=True)
"""


def prepared(server: Any, name: str) -> Any:
    """Prepares a server with a separate prefix for each test."""
    server.prefix = f"{abs(hash(name)):x}"
    server.fault = None
    server.forget_requests()
    return server


@pytest.fixture
def bucket(service: Service, request: Any) -> Any:
    return prepared(service, request.node.name)


@pytest.fixture
def faulty(moto: S3Server, request: Any) -> Any:
    return prepared(moto, request.node.name)


def url(server: Any, layout: str = "interchange") -> str:
    return f"{server.url(server.prefix)}&layout={layout}"


def place(server: Any, layout: str = "interchange") -> llvs.Remote:
    return llvs.Remote(url(server, layout), user=KEY, password=SECRET)


def exchange(store: llvs.Store, server: Any, layout: str = "interchange") -> None:
    with llvs.Exchange(store, place(server, layout)) as way:
        received, sent = way.retrieve(), way.send()
    assert not received.problems and not sent.problems


def fill(store: llvs.Store, layout: str) -> None:
    """Fills a store with one large file's content: a value, or the many versions of a pack."""
    if layout == "interchange":
        store.make_version(insert={"large": random.Random(1).randbytes(SIZE)})
    else:
        for number in range(VERSIONS):
            store.make_version(store.most_recent_head, insert={f"v{number}": random.Random(number).randbytes(900_000)})


def parts(server: Any) -> list[str]:
    return [target for method, target in server.requests if method == "PUT" and "partNumber=" in target]


def same(store: llvs.Store, other: llvs.Store) -> bool:
    head = store.most_recent_head
    return ids(store) == ids(other) and all(other.at(head)[name] == value for name, value in store.at(head).items())


@pytest.mark.parametrize("layout", ["interchange", "packed"])
def test_large_files_go_in_parts(bucket: Any, new_store: Any, layout: str) -> None:
    store, second = new_store(), new_store()
    fill(store, layout)
    exchange(store, bucket, layout)
    if isinstance(bucket, S3Server):
        assert len(parts(bucket)) == (PARTS if layout == "interchange" else 2)
    exchange(second, bucket, layout)
    assert same(store, second)
    exchange(store, bucket, layout)


def test_a_damaged_large_file_is_written_anew(bucket: Any, new_store: Any) -> None:
    store, second = new_store(), new_store()
    fill(store, "interchange")
    exchange(store, bucket)
    name = store.most_recent_head.id
    bucket.put(f"{bucket.prefix}/changes/{name}", b"[")
    with llvs.Exchange(store, place(bucket)) as way:
        assert way.verify().problems
        way.send()
    exchange(second, bucket)
    assert same(store, second)


class Hold:
    """Holds the upload of a part, so that a process can be killed meanwhile."""

    def __init__(self, server: Any, number: int) -> None:
        self.is_there, self.goes_on, self.mark = threading.Event(), threading.Event(), f"partNumber={number}&"
        server.fault = self

    def __call__(self, environ: dict[str, Any]) -> Optional[tuple[str, bytes]]:
        if environ["REQUEST_METHOD"] != "PUT" or self.mark not in environ["RAW_URI"] + "&":
            return None
        self.is_there.set()
        self.goes_on.wait(PATIENCE)
        return "500 Internal Server Error", b""


def run(server: Any, folder: Path, layout: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.Popen(
        [sys.executable, "-c", DEVICE, url(server, layout), KEY, SECRET, str(folder)], env=environment, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE)  # fmt: skip


def killed(server: Any, folder: Path, layout: str) -> Path:
    """Returns where the state of the upload is stored, of a process that was killed while the last part was under way."""
    with llvs.Store(folder, options=llvs.StoreOptions(file_mode=0o660)) as store:
        fill(store, layout)
    last = PARTS if layout == "interchange" else 2
    hold = Hold(server, last)
    process = run(server, folder, layout)
    assert hold.is_there.wait(PATIENCE)
    eventually(lambda: sum("partNumber" in target for _, target in server.done) == last - 1)
    process.kill()
    process.communicate(timeout=PATIENCE)
    hold.goes_on.set()
    server.fault = None
    (kept,) = folder.rglob("packs-*-session*")
    assert kept.stat().st_mode & 0o777 == 0o600 and SECRET.encode() not in kept.read_bytes()
    server.forget_requests()
    return kept


@pytest.mark.in_turn("layout", "what")
@pytest.mark.parametrize("layout", ["interchange", "packed"])
@pytest.mark.parametrize("what", ["kept", "forgotten", "not told", "damaged"])
def test_an_upload_goes_on_in_another_process(faulty: Any, tmp_path: Path, new_store: Any, layout: str, what: str) -> None:
    """Only the part in flight is sent again. An upload that the service no longer knows, or does not report, begins again."""
    folder, second = tmp_path / "device", new_store()
    kept = killed(faulty, folder, layout)
    if what == "damaged":
        kept.write_bytes(kept.read_bytes()[:-1] + b"!")
    elif what != "kept":
        status = "404 Not Found" if what == "forgotten" else "403 Forbidden"
        code = b"NoSuchUpload" if what == "forgotten" else b"AccessDenied"

        def fault(environ: dict[str, Any]) -> Optional[tuple[str, bytes]]:
            is_list = environ["REQUEST_METHOD"] == "GET" and "uploadId=" in environ["RAW_URI"]
            return (status, b"<Error><Code>" + code + b"</Code></Error>") if is_list else None

        faulty.fault = fault
    process = run(faulty, folder, layout)
    told, error = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0 and int(told) == (1 if layout == "interchange" else VERSIONS), error
    # A pack that was cut short, and is rebuilt, is smaller.
    anew = PARTS if layout == "interchange" else 0 if what == "damaged" else 2
    assert len(parts(faulty)) == (1 if what == "kept" else anew)
    assert not list(folder.rglob("packs-*-session*"))
    faulty.fault = None
    exchange(second, faulty, layout)
    with llvs.Store(folder) as store:
        assert same(store, second)


@pytest.mark.parametrize(("status", "is_there"), [("404 Not Found", True), ("200 OK", True), ("200 OK", False)])
def test_an_answer_to_the_end_that_is_lost(faulty: Any, new_store: Any, status: str, is_there: bool) -> None:
    """The service no longer knows the upload, and reports that immediately, or after a status that was sent before. The object exists, or
    is sent again."""
    store, second, told = new_store(), new_store(), []
    fill(store, "interchange")

    def fault(environ: dict[str, Any]) -> Optional[tuple[str, bytes]]:
        if told or environ["REQUEST_METHOD"] != "POST" or "uploadId=" not in environ["RAW_URI"]:
            return None
        told.append(1)
        # Simulates a request that was processed and whose answer was lost.
        key = environ["RAW_URI"].partition("?")[0].removeprefix("/notes-bucket/")
        if is_there:
            faulty.put(key, file)
        return status, b"<Error><Code>NoSuchUpload</Code></Error>"

    _, file = sent_elsewhere(store)
    faulty.fault = fault
    exchange(store, faulty)
    faulty.fault = None
    assert told == [1] and len(parts(faulty)) == (PARTS if is_there else 2 * PARTS)
    exchange(second, faulty)
    assert same(store, second)


def test_a_service_that_knows_no_parts(faulty: Any, new_store: Any) -> None:
    store, second = new_store(), new_store()
    fill(store, "interchange")
    faulty.fault = lambda environ: (
        ("501 Not Implemented", b"<Error><Code>NotImplemented</Code></Error>") if "uploads=" in environ["RAW_URI"] else None)  # fmt: skip
    exchange(store, faulty)
    assert not parts(faulty)
    exchange(second, faulty)
    assert same(store, second)


def test_a_service_that_never_ends_an_upload(faulty: Any, new_store: Any) -> None:
    store = new_store()
    fill(store, "interchange")
    faulty.fault = lambda environ: (
        ("200 OK", b"<Error><Code>InternalError</Code></Error>")
        if environ["REQUEST_METHOD"] == "POST" and "uploadId=" in environ["RAW_URI"] else None)  # fmt: skip
    with llvs.Exchange(store, place(faulty)) as way, pytest.raises(llvs.TransportError, match="does not combine the parts"):
        way.send()
    faulty.fault = None
    exchange(store, faulty)


UPLOADS = """<?xml version="1.0"?><ListMultipartUploadsResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Bucket>notes-bucket</Bucket>
{}<IsTruncated>false</IsTruncated></ListMultipartUploadsResult>"""
UPLOAD = "<Upload><Key>{}</Key><UploadId>{}</UploadId><Initiator><ID>x</ID></Initiator><Initiated>{}</Initiated></Upload>"


def test_old_uploads_are_ended(faulty: Any, new_store: Any) -> None:
    """Unfinished uploads below the prefix, more than a week old and with names that only exchanges write, are ended."""
    store, ended = new_store(), []
    fill(store, "interchange")
    listed = "".join(
        UPLOAD.format(key, id, begun)
        for key, id, begun in [
            (f"{faulty.prefix}/changes/a", "old", "2020-01-01T00:00:00.000Z"),
            (f"{faulty.prefix}/changes/b", "new", "2999-01-01T00:00:00.000Z"),
            ("elsewhere/changes/c", "foreign", "2020-01-01T00:00:00.000Z"),
            (f"{faulty.prefix}/backup.tar", "backup", "2020-01-01T00:00:00.000Z"),
            (f"{faulty.prefix}/changes/of/others", "others", "2020-01-01T00:00:00.000Z"),
            (f"{faulty.prefix}/d", "", ""),
        ]
    )

    def fault(environ: dict[str, Any]) -> Optional[tuple[str, bytes]]:
        method, target = environ["REQUEST_METHOD"], environ["RAW_URI"]
        if method == "GET" and "uploads=" in target:
            return "200 OK", UPLOADS.format(listed).encode()
        if method == "DELETE":
            ended.append(target)
            return "204 No Content", b""
        return None

    faulty.fault = fault
    exchange(store, faulty)
    assert len(ended) == 1 and "changes/a?uploadId=old" in ended[0]
    faulty.fault = None


def is_end(environ: dict[str, Any]) -> bool:
    """Returns whether a request completes an upload."""
    return environ["REQUEST_METHOD"] == "POST" and "uploadId=" in environ["RAW_URI"]


def sent_elsewhere(store: llvs.Store) -> tuple[str, bytes]:
    """The file of the only version of a store, with its name. All servers of this process share their objects."""
    other = prepared(S3Server(), store.most_recent_head.id)
    exchange(store, other)
    name = f"changes/{store.most_recent_head.id}"
    file = other.get(f"{other.prefix}/{name}")
    other.close()
    assert file
    return name, file


@pytest.mark.parametrize("when", ["before", "at the end"])
def test_others_write_as_many_bytes_under_the_same_name(faulty: Any, tmp_path: Path, when: str) -> None:
    """Everything that was reported as sent exists: the size alone does not identify a file."""
    folder, met = tmp_path / "device", []
    killed(faulty, folder, "interchange")
    with llvs.Store(folder) as store:
        name, file = sent_elsewhere(store)
    key = f"{faulty.prefix}/{name}"

    def fault(environ: dict[str, Any]) -> Optional[tuple[str, bytes]]:
        is_due = environ["REQUEST_METHOD"] == "HEAD" if when == "before" else is_end(environ)
        if met or not is_due:
            return None
        met.append(1)
        faulty.put(key, bytes(len(file)))
        return None if when == "before" else ("404 Not Found", b"<Error><Code>NoSuchUpload</Code></Error>")

    faulty.fault = fault
    process = run(faulty, folder, "interchange")
    told, error = process.communicate(timeout=PATIENCE)
    assert met and process.returncode == 0 and int(told) == 1, error
    assert faulty.get(key) == file


def test_others_write_before_the_end_where_the_service_cannot_be_asked_to_look(faulty: Any, new_store: Any) -> None:
    """The other device's object stays if it is the same; it is not overwritten."""
    store, met = new_store(), []
    fill(store, "interchange")
    name, file = sent_elsewhere(store)
    key = f"{faulty.prefix}/{name}"

    def fault(environ: dict[str, Any]) -> Optional[tuple[str, bytes]]:
        if not is_end(environ) or "HTTP_IF_NONE_MATCH" not in environ:
            return None
        met.append(1)
        faulty.put(key, file)
        return "501 Not Implemented", b"<Error><Code>NotImplemented</Code></Error>"

    faulty.fault = fault
    exchange(store, faulty)
    assert met and faulty.get(key) == file
    assert any(method == "DELETE" and "uploadId=" in target for method, target in faulty.requests)


@pytest.mark.parametrize("page", [b"", b"<html><body>Sign in to this network.</body></html>", b"<ListPartsResult/>"])
def test_another_answer_to_the_end(faulty: Any, new_store: Any, page: bytes) -> None:
    """A success from an intermediate program does not count."""
    store, second = new_store(), new_store()
    fill(store, "interchange")
    faulty.fault = lambda environ: ("200 OK", page) if is_end(environ) else None
    with llvs.Exchange(store, place(faulty)) as way, pytest.raises(llvs.TransportError, match="cannot be read"):
        way.send()
    faulty.fault = None
    exchange(store, faulty)
    exchange(second, faulty)
    assert same(store, second)
