"""Servers that misbehave: each answer gives an error or a problem that says what to do, and the next exchange continues."""

from __future__ import annotations

import gzip
import os
import posixpath
import random
import signal
import subprocess
import sys
import textwrap
import threading
import time
from email.utils import formatdate
from pathlib import Path
from typing import Any, Callable, Optional

import llvs
import pytest
from conftest import ids
from dav_server import DavServer, Handler, on
from patience import PATIENCE, eventually

FOLDER = "/dav/notes"


#: Sends to one place, and prints why it cannot retrieve from another.
PROGRAM = r"""
#include <llvs.h>
#include <stdio.h>

int main(int argc, char **argv) {
    llvs_store_options options = LLVS_STORE_OPTIONS_INIT;
    llvs_change change = LLVS_CHANGE_INIT;
    llvs_store *store;
    llvs_exchange *exchange;
    llvs_exchange_result *result;
    llvs_error *error = NULL;
    options.storage = LLVS_STORAGE_MEMORY;
    change.kind = LLVS_CHANGE_INSERT;
    change.id = change.data = llvs_str("a");
    if (argc != 3 || llvs_store_open(LLVS_NONE, &options, &store, &error) ||
        llvs_store_make_version(store, LLVS_NONE, &change, 1, sizeof change, NULL, NULL, NULL, &error) ||
        llvs_exchange_open(store, llvs_str(argv[1]), NULL, &exchange, &error) || llvs_exchange_send(exchange, NULL, &result, &error) ||
        result->sent_count != 1)
        return fprintf(stderr, "%s\n", error ? llvs_error_message(error) : "nothing was sent"), 1;
    llvs_exchange_result_free(result);
    llvs_exchange_free(exchange);
    if (llvs_exchange_open(store, llvs_str(argv[2]), NULL, &exchange, &error)) return puts(llvs_error_message(error)), 1;
    if (llvs_exchange_retrieve(exchange, NULL, &result, &error) == LLVS_ERROR_UNSUPPORTED) puts(llvs_error_message(error));
    return 0;
}
"""


def exchange(store: llvs.Store, server: DavServer, **options: Any) -> llvs.Exchange:
    return llvs.Exchange(store, llvs.Remote(server.url + "?layout=interchange", **options))


def send(store: llvs.Store, server: DavServer, **options: Any) -> llvs.exchange.ExchangeResult:
    with exchange(store, server, **options) as way:
        return way.send()


def retrieve(store: llvs.Store, server: DavServer, **options: Any) -> llvs.exchange.ExchangeResult:
    with exchange(store, server, **options) as way:
        return way.retrieve()


@pytest.fixture
def filled(store: llvs.Store, server: DavServer) -> DavServer:
    """A server that has the three versions of `store`, counting from zero."""
    assert len(send(store, server).sent) == 3
    server.forget()
    return server


class TestBrokenAnswers:
    @pytest.mark.parametrize("method", ["PROPFIND", "GET"])
    def test_cut_short_once(self, filled: DavServer, new_store: Any, store: llvs.Store, method: str) -> None:
        @on(method, times=1)
        def fault(handler: Handler) -> bool:
            handler.body()
            handler.begin(207 if method == "PROPFIND" else 200, 10_000)
            handler.wfile.write(b"<?xml")
            return handler.cut()

        filled.fault = fault
        second = new_store()
        assert not retrieve(second, filled).problems and ids(second) == ids(store)

    @pytest.mark.parametrize("method", ["PROPFIND", "GET"])
    def test_cut_short_always(self, filled: DavServer, new_store: Any, store: llvs.Store, method: str) -> None:
        @on(method)
        def fault(handler: Handler) -> bool:
            handler.body()
            handler.begin(207 if method == "PROPFIND" else 200, 10_000)
            handler.wfile.write(b"<?xml")
            return handler.cut()

        filled.fault = fault
        second = new_store()
        with pytest.raises(llvs.TransportError):
            retrieve(second, filled)
        assert filled.count(method) >= 5
        filled.fault = None
        assert not retrieve(second, filled).problems and ids(second) == ids(store)

    @pytest.mark.parametrize("tags", ["kept", "none", "changed", "ignored"])
    def test_a_large_file_goes_on_where_it_was_cut(self, server: DavServer, new_store: Any, tags: str) -> None:
        """The transfer continues after each cut if the server identifies the file by a tag. Otherwise the whole file is requested again; so
        it is if the server ignores the tag (`If-Range`) and has another file by then."""
        first, second, asked, piece = new_store(), new_store(), [], 1 << 20
        first.make_version(insert={"large": random.Random(1).randbytes(6 << 20)})
        assert len(send(first, server).sent) == 1

        @on("GET", "/changes/")
        def fault(handler: Handler) -> bool:
            data, wanted, start = server.files[handler.name], handler.headers.get("Range"), 0
            asked.append(wanted)
            tag = {"kept": '"a"', "none": None}.get(tags, '"b"' if len(asked) > 2 else '"a"')
            if wanted and (tags == "ignored" or handler.headers.get("If-Range") == tag):
                start = int(wanted[len("bytes=") :].split("-")[0])
            headers = {"ETag": tag} if tag else {}
            if start:
                headers["Content_Range"] = f"bytes {start}-{len(data) - 1}/{len(data)}"
            handler.begin(206 if start else 200, len(data) - start, **headers)
            whole = tags != "kept" and len(asked) > 2
            if tags == "ignored" and len(asked) == 3:
                data = random.Random(2).randbytes(len(data))
            body = data[start:] if whole else data[start : start + piece]
            handler.wfile.write(body)
            return True if start + len(body) == len(data) else handler.cut()

        server.fault = fault
        assert not retrieve(second, server).problems and ids(second) == ids(first)
        if tags == "kept":
            assert asked == [None] + [f"bytes={n}-" for n in range(piece, len(asked) * piece, piece)] and len(asked) > 6
        elif tags == "none":
            assert asked == [None] * 3
        elif tags == "ignored":
            assert asked == [None, f"bytes={piece}-", f"bytes={2 * piece}-", None]
        else:
            assert asked == [None, f"bytes={piece}-", f"bytes={2 * piece}-"]

    def test_a_file_that_is_shorter_than_it_was(self, filled: DavServer, new_store: Any, store: llvs.Store) -> None:
        @on("GET", "/changes/", times=1)
        def fault(handler: Handler) -> None:
            data = filled.files[handler.name]
            handler.answer(200, data[: len(data) // 2])

        filled.fault = fault
        second = new_store()
        with exchange(second, filled) as way:
            assert way.retrieve().problems
            assert not way.retrieve().problems
        assert ids(second) == ids(store)

    def test_a_page_in_the_place_of_a_file(self, filled: DavServer, new_store: Any, store: llvs.Store) -> None:
        filled.fault = on("GET", "/versions/", times=1)(
            lambda handler: handler.answer(200, b"<html>please sign in</html>", Content_Type="text/html")
        )
        second = new_store()
        told = [problem for problem in retrieve(second, filled).problems if problem.code == llvs.ErrorCode.TRANSPORT]
        assert told and "a page in place of the file" in told[0].reason
        assert not retrieve(second, filled).problems and ids(second) == ids(store)

    def test_a_file_that_is_only_called_a_page(self, filled: DavServer, new_store: Any, store: llvs.Store) -> None:
        """The bytes show that the file is not a page."""
        filled.fault = on("GET")(lambda handler: handler.answer(200, filled.files[handler.name], Content_Type="text/html; charset=utf-8"))
        second = new_store()
        assert not retrieve(second, filled).problems and ids(second) == ids(store)

    @pytest.mark.parametrize("layout", ["interchange", "packed"])
    @pytest.mark.parametrize("kind", ["compressed", "page", "shorter", "longer"])
    def test_what_is_not_the_listed_file_is_reported_at_once(self, server: DavServer, tmp_path: Path, kind: str, layout: str) -> None:
        """No file is received, and that does not look like success: each exchange has a problem, and the status of the syncer has the
        number of files that could not be read, and the time since when."""
        place = llvs.Remote(server.url + f"?layout={layout}")

        @on("GET")
        def fault(handler: Handler) -> None:
            data = server.files[handler.name]
            if kind == "compressed":
                handler.answer(200, gzip.compress(data), Content_Encoding="gzip")
            elif kind == "page":
                handler.answer(200, b"\n<!doctype html><p>Please sign in", Content_Type="text/html; charset=utf-8")
            else:
                handler.answer(200, data[:-9] if kind == "shorter" else data + b"<!-- -->")

        with llvs.Coordinator(tmp_path / "a", exchange=place) as first, llvs.Coordinator(tmp_path / "b", exchange=place) as second:
            first.save(update={"one": b"1"})
            first.sync()
            with llvs.Syncer(second, conditions=llvs.syncer.SyncConditions.OFFLINE) as syncer:
                assert syncer.run() and second["one"] == b"1"
                assert (syncer.status.places[0].unread, syncer.status.places[0].unread_since) == (0, None)
                first.save(update={"two": b"2"})
                first.sync()
                server.fault = fault
                since = set()
                for _ in range(3):
                    syncer.run()
                    one = syncer.status.places[0]
                    assert one.problems and one.unread >= 1 and one.unread_since is not None and "two" not in second
                    since.add(one.unread_since)
                assert len(since) == 1, "since the first that could not be read"
                if kind in ("compressed", "page"):
                    assert {problem.code for problem in one.problems} >= {llvs.ErrorCode.TRANSPORT}
                elif layout == "packed":
                    assert {problem.code for problem in one.problems} == {llvs.ErrorCode.CUT_SHORT}
                    assert "the server lists" in one.problems[0].reason
                server.fault = None
                assert syncer.run() and second["two"] == b"2"
                assert (syncer.status.places[0].unread, syncer.status.places[0].unread_since) == (0, None)

    @pytest.mark.parametrize("kind", ["compressed", "page"])
    def test_a_new_device_behind_such_a_server(self, server: DavServer, store: llvs.Store, new_store: Any, kind: str) -> None:
        place, second = server.url + "?layout=packed", new_store()
        with llvs.Exchange(store, place) as way:
            way.send()
        answer = (gzip.compress(b"x"), {"Content_Encoding": "gzip"}) if kind == "compressed" else (b"<html>", {"Content_Type": "text/html"})
        server.fault = on("GET")(lambda handler: handler.answer(200, answer[0], **answer[1]))
        with llvs.Exchange(second, place) as way:
            with pytest.raises(llvs.TransportError, match="compresses|page"):
                way.retrieve()
            server.fault = None
            assert not way.retrieve().problems and ids(second) == ids(store)

    def test_an_answer_that_is_compressed(self, filled: DavServer, new_store: Any, store: llvs.Store) -> None:
        """No request asks for compression, and nothing is inflated."""
        asked: list[object] = []

        @on("GET", "/versions/")
        def fault(handler: Handler) -> None:
            asked.append(handler.headers.get("Accept-Encoding"))
            handler.answer(200, gzip.compress(filled.files[handler.name]), Content_Encoding="gzip")

        filled.fault = fault
        second = new_store()
        assert {problem.code for problem in retrieve(second, filled).problems} >= {llvs.ErrorCode.TRANSPORT}
        assert set(asked) == {"identity"} and not list(second.history())
        filled.fault = None
        assert not retrieve(second, filled).problems and ids(second) == ids(store)

    def test_an_endless_error(self, filled: DavServer, new_store: Any) -> None:
        @on("PROPFIND")
        def fault(handler: Handler) -> bool:
            handler.body()
            handler.begin(403, None)
            while True:
                handler.wfile.write(b"no " * 10_000)

        filled.fault = fault
        with pytest.raises(llvs.errors.PermissionDeniedError, match="403"):
            retrieve(new_store(), filled)

    def test_endless_headers(self, filled: DavServer, new_store: Any) -> None:
        @on("PROPFIND")
        def fault(handler: Handler) -> bool:
            handler.body()
            handler.wfile.write(b"HTTP/1.1 207 Multi-Status\r\n")
            while True:
                handler.wfile.write(b"X-More: " + b"x" * 1000 + b"\r\n")

        filled.fault = fault
        with pytest.raises(llvs.TransportError):
            retrieve(new_store(), filled)

    @pytest.mark.parametrize("beginning", [b"HTTP/1.1 207 ", b"HTTP/1.1 207 Multi-Status\r\nX-More: "])
    def test_a_header_line_without_an_end(self, filled: DavServer, new_store: Any, beginning: bytes) -> None:
        @on("PROPFIND")
        def fault(handler: Handler) -> bool:
            handler.body()
            handler.wfile.write(beginning)
            while True:
                handler.wfile.write(b"x" * 10_000)

        filled.fault = fault
        with pytest.raises(llvs.TransportError, match="a header whose line has no end"):
            retrieve(new_store(), filled)

    def test_a_list_without_an_end(self, filled: DavServer, new_store: Any) -> None:
        @on("PROPFIND")
        def fault(handler: Handler) -> bool:
            handler.body()
            handler.begin(207, None)
            handler.wfile.write(b"<D:multistatus xmlns:D='DAV:'><!-- ")
            while True:
                handler.wfile.write(b"and so on " * 10_000)

        filled.fault = fault
        with pytest.raises(llvs.TransportError, match="larger than it could be"):
            retrieve(new_store(), filled)

    def test_a_connection_that_is_lost_while_sending(self, server: DavServer, store: llvs.Store, new_store: Any) -> None:
        server.fault = on("PUT", times=2)(lambda handler: handler.cut())
        assert len(send(store, server).sent) == 3
        second = new_store()
        assert not retrieve(second, server).problems and ids(second) == ids(store)

    def test_an_answer_that_is_lost_after_publishing(self, server: DavServer, store: llvs.Store) -> None:
        @on("MOVE", times=2)
        def fault(handler: Handler) -> bool:
            with handler.server.lock:
                handler.on_move()
            return handler.cut()

        send(store, server)
        server.files = {name: data for name, data in server.files.items() if not name.endswith(next(iter(ids(store))))}
        server.forget()
        server.fault = fault
        assert send(store, server).sent
        # (libcurl itself retries a request if a connection that it kept turns out to be closed.)
        assert server.count("HEAD") and not any("/tmp/" in name for name in server.files)
        assert len([name for name in server.files if "/versions/" in name]) == 3


class TestLists:
    def answer(self, server: DavServer, body: bytes, status: int = 207) -> None:
        server.fault = on("PROPFIND", "/versions/")(lambda handler: handler.answer(status, body))

    @pytest.mark.parametrize(
        "body",
        [
            b"",
            b"<html><body>Index of /</body></html>",
            b"{}",
            b"\xff\xfe\x00",
            b"<D:multistatus xmlns:D='DAV:'><D:response>",
            b"<multistatus/>",
            b"<a>" * 100_000,
            b"<D:multistatus xmlns:D='DAV:'>" + b"<D:x>" * 65,
            b"<D:multistatus xmlns:D='DAV:'><D:response><D:href>" + b"x" * 20_000 + b"</D:href></D:response></D:multistatus>",
            b"<D:multistatus xmlns:D='DAV:' a='" + b"x" * 3_000_000 + b"'/>",
        ],
    )
    def test_what_is_no_list(self, filled: DavServer, new_store: Any, body: bytes) -> None:
        self.answer(filled, body)
        with pytest.raises(llvs.TransportError, match="the address is that of|has more than"):
            retrieve(new_store(), filled)

    @pytest.mark.parametrize(
        "type",
        [
            b'<!DOCTYPE m [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;"><!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;">]>',
            b'<!DOCTYPE m [<!ENTITY c SYSTEM "file:///etc/passwd">]>',
            b'<!DOCTYPE m SYSTEM "http://127.0.0.1:1/m.dtd">',
        ],
    )
    def test_entities_are_not_expanded(self, filled: DavServer, new_store: Any, type: bytes) -> None:
        self.answer(
            filled,
            type + b"<D:multistatus xmlns:D='DAV:'><D:response><D:href>/dav/notes/versions/&c;</D:href></D:response></D:multistatus>",
        )
        with pytest.raises(llvs.TransportError, match="document type"):
            retrieve(new_store(), filled)

    @pytest.mark.parametrize(("status", "is_there"), [("404 Not Found", False), ("410 Gone", False), ("200 OK", True), ("", True)])
    def test_a_member_with_a_status_of_its_own(
        self, filled: DavServer, new_store: Any, store: llvs.Store, status: str, is_there: bool
    ) -> None:
        """A file that does not exist does not count, and the versions that exist are received."""
        gone = f"/dav/notes/versions/{'A' * 8}-AAAA-4AAA-8AAA-{'A' * 12}"
        own = f"<D:status>HTTP/1.1 {status}</D:status>" if status else ""
        more = f"<D:response><D:href>{gone}</D:href>{own}</D:response></D:multistatus>".encode()
        listed = filled.listing("/dav/notes/versions").replace(b"</D:multistatus>", more)
        self.answer(filled, listed)
        second = new_store()
        problems = retrieve(second, filled).problems
        assert ids(second) == ids(store) and bool(problems) == is_there

    @pytest.mark.parametrize("call", [retrieve, send])
    def test_a_listing_that_the_server_cuts(self, filled: DavServer, new_store: Any, call: Any) -> None:
        """Files that are missing in the listing are neither taken for deleted nor sent again."""
        store = new_store()
        store.make_version(insert={"own": b"1"})
        own = "<D:response><D:href>/dav/notes/versions/</D:href><D:status>HTTP/1.1 507 Insufficient Storage</D:status></D:response>"
        listed = filled.listing("/dav/notes/versions").replace(b"</D:multistatus>", own.encode() + b"</D:multistatus>")
        self.answer(filled, listed)
        with pytest.raises(llvs.TransportError, match="is incomplete.* 507"):
            call(store, filled)

    def test_a_status_that_is_none_of_webdav(self, filled: DavServer, new_store: Any) -> None:
        self.answer(filled, b"<html/>", 200)
        with pytest.raises(llvs.TransportError):
            retrieve(new_store(), filled)

    @pytest.mark.parametrize(
        "href",
        [
            "/dav/notes/versions/{}",
            "http://127.0.0.1:1/dav/notes/versions/{}",
            "\n /dav/notes/versions/{}\n",
            "/d%61v/notes/versions/{}",
            "<![CDATA[/dav/notes/versions/{}]]>",
            "/dav/notes/versions/&#x{first}{rest}",
        ],
    )
    @pytest.mark.parametrize("order", [1, -1])
    def test_ways_to_write_a_list(self, filled: DavServer, new_store: Any, store: llvs.Store, href: str, order: int) -> None:
        def response(id: str) -> str:
            text = (
                href.format(id, first=f"{ord(id[0]):x};", rest=id[1:])
                if id
                else href.split("{")[0].rstrip("&#x") + ("]]>" if "CDATA" in href else "")
            )
            return (
                f"<response><href>{text}</href><propstat><prop><resourcetype/></prop><status>HTTP/1.1 200 OK</status></propstat>"
                "<propstat><prop><getcontentlength/></prop><status>HTTP/1.1 404 Not Found</status></propstat></response>"
            )

        listed = ["", *sorted(ids(store))][::order]
        self.answer(filled, ("<multistatus xmlns='DAV:'>" + "".join(response(id) for id in listed) + "</multistatus>").encode())
        second = new_store()
        assert not retrieve(second, filled).problems and ids(second) == ids(store)

    def test_behind_a_proxy_with_another_path(self, filled: DavServer, new_store: Any, store: llvs.Store) -> None:
        def fault(handler: Handler) -> bool:
            if handler.command != "PROPFIND":
                return False
            handler.answer(207, filled.listing(handler.name).replace(b"/dav/notes/", b"/internal/x/"))
            return True

        filled.fault = fault
        second = new_store()
        assert not retrieve(second, filled).problems and ids(second) == ids(store)

    def test_foreign_names(self, filled: DavServer, new_store: Any, store: llvs.Store) -> None:
        for name in ("héllo there", "a&b<c>", "..", ".DS_Store", "x" * 200):
            filled.files[f"{FOLDER}/versions/{name}"] = b"?"
        filled.folders.add(f"{FOLDER}/versions/folder")
        second = new_store()
        problems = retrieve(second, filled).problems
        # Names that are no version ids are ignored. A folder in place of a file is reported.
        assert ids(second) == ids(store) and {problem.name for problem in problems} == {"folder"}

    def test_a_folder_in_the_place_of_a_version(self, filled: DavServer, store: llvs.Store) -> None:
        version = store.make_version(store.most_recent_head, insert={"z": b"z"})
        filled.folders.add(f"{FOLDER}/versions/{version.id}")
        filled.files[f"{FOLDER}/versions/{version.id}/inside"] = b"not ours"
        assert [problem.code for problem in send(store, filled).problems] in ([], [llvs.ErrorCode.FOREIGN_FILE])
        assert filled.files[f"{FOLDER}/versions/{version.id}/inside"] == b"not ours"


class TestStatuses:
    @pytest.mark.parametrize(
        ("status", "error"),
        [
            (400, llvs.TransportError),
            (401, llvs.errors.PermissionDeniedError),
            (403, llvs.errors.PermissionDeniedError),
            (405, llvs.TransportError),
            (409, llvs.TransportError),
            (418, llvs.TransportError),
            (423, llvs.BusyError),
            (429, llvs.BusyError),
            (500, llvs.TransportError),
            (501, llvs.TransportError),
            (502, llvs.TransportError),
            (503, llvs.TransportError),
            (504, llvs.TransportError),
            (505, llvs.TransportError),
        ],
    )
    def test_when_listing(self, filled: DavServer, new_store: Any, store: llvs.Store, status: int, error: type[llvs.Error]) -> None:
        filled.fault = on("PROPFIND")(lambda handler: handler.answer(status, b"<html>why</html>"))
        second = new_store()
        with pytest.raises(error, match=str(status)):
            retrieve(second, filled)
        assert filled.count() == (5 if status in (429, 500, 502, 503, 504) else 1)
        filled.fault = None
        assert not retrieve(second, filled).problems and ids(second) == ids(store)

    @pytest.mark.parametrize("status", [403, 423, 503])
    def test_the_status_is_in_that_of_the_syncer(self, server: DavServer, tmp_path: Path, status: int) -> None:
        server.fault = on("PROPFIND")(lambda handler: handler.answer(status))
        with llvs.Coordinator(tmp_path / "notes", exchange=llvs.Remote(server.url)) as notes:
            notes.save(insert={"x": b"1"})
            with llvs.Syncer(notes, conditions=llvs.syncer.SyncConditions.OFFLINE) as syncer:
                assert not syncer.run()
                assert syncer.status.places[0].http_status == status
                server.fault = None
                assert syncer.run()
                assert syncer.status.places[0].http_status is None

    @pytest.mark.parametrize(
        ("status", "user_helps"), [(401, True), (402, True), (407, True), (403, False), (404, False), (451, False), (500, False)])
    def test_only_what_a_person_can_answer_waits_for_one(self, server: DavServer, tmp_path: Path, status: int, user_helps: bool) -> None:
        """A password, a consent or a payment waits for the user. Every other failure is retried after some time, since it may be
        temporary."""
        server.fault = on("")(lambda handler: handler.answer(status) if handler.body() is not None else None)
        with llvs.Coordinator(tmp_path / "notes", exchange=llvs.Remote(server.url + "?layout=packed")) as notes:
            notes.save(insert={"x": b"1"})
            with llvs.Syncer(notes, conditions=llvs.syncer.SyncConditions.OFFLINE) as syncer:
                assert not syncer.run()
                assert (syncer.status.places[0].retry_at is None) == user_helps

    def test_a_restored_permission_needs_no_user(self, server: DavServer, tmp_path: Path) -> None:
        refused = threading.Event()

        def fault(handler: Handler) -> bool:
            handler.body()
            handler.answer(403)
            refused.set()
            return True

        server.fault = fault
        with llvs.Coordinator(tmp_path / "notes", exchange=llvs.Remote(server.url + "?layout=packed")) as notes:
            notes.save(insert={"x": b"1"})
            with llvs.Syncer(notes) as syncer:
                assert refused.wait(PATIENCE)
                server.fault = None
                eventually(lambda: syncer.status.places[0].last_send is not None)
                assert syncer.status.places[0].reason == llvs.syncer.SyncReason.NONE

    def test_a_full_server(self, server: DavServer, store: llvs.Store) -> None:
        server.fault = on("PUT")(lambda handler: handler.answer(507) if handler.body() is not None else None)
        with pytest.raises(llvs.StorageError, match="507") as raised:
            send(store, server)
        assert raised.value.code == llvs.ErrorCode.NO_SPACE
        server.fault = None
        assert len(send(store, server).sent) == 3

    @pytest.mark.parametrize("layout", ["interchange", "packed"])
    @pytest.mark.parametrize("status", [500, 507])
    def test_a_disk_that_is_full(self, server: DavServer, store: llvs.Store, new_store: Any, status: int, layout: str) -> None:
        """The disk is full, whatever the server calls it. The rest of an upload is deleted as soon as it can be."""
        room = [1 << 30]

        @on("PUT")
        def put(handler: Handler) -> bool:
            data, left = handler.body(), room[0] - sum(map(len, server.files.values()))
            if posixpath.dirname(handler.name) not in server.folders or len(data) <= left:
                return False
            server.files[handler.name] = data[:max(0, left)]
            handler.answer(status)
            return True

        def uploads() -> list[str]:
            return [name for name in server.files if "/tmp/" in name]

        place = llvs.Remote(f"{server.url}?layout={layout}")
        server.fault = put
        with llvs.Exchange(store, place) as way:
            way.send()
        room[0] = sum(map(len, server.files.values())) + 10
        last = store.make_version(store.most_recent_head, insert={"large": random.Random(4).randbytes(20_000)})
        with llvs.Exchange(store, place) as way, pytest.raises(llvs.StorageError, match="(?i)make room") as told:
            way.send()
        assert told.value.code == llvs.ErrorCode.NO_SPACE and not uploads()

        def locked(handler: Handler) -> Optional[bool]:
            if handler.command != "DELETE":
                return put(handler)
            handler.answer(503)
            return True

        server.fault = locked
        with llvs.Exchange(store, place) as way, pytest.raises(llvs.StorageError) as told:
            way.send()
        assert told.value.code == llvs.ErrorCode.NO_SPACE
        left = uploads()
        assert left, "it could not be deleted"
        # A day later the next sender deletes it.
        server.fault, room[0] = put, 1 << 30
        server.touched.update(dict.fromkeys(left, time.time() - 90_000))
        second = new_store()
        with llvs.Exchange(second, place) as way:
            way.retrieve()
            second.make_version(second.most_recent_head, insert={"more": b"1"})
            way.send()
        assert not uploads()
        with llvs.Exchange(store, place) as way:
            way.send()
        with llvs.Exchange(second, place) as way:
            way.retrieve()
        assert last in second

    def test_files_that_vanish_in_the_middle(self, filled: DavServer, new_store: Any, store: llvs.Store) -> None:
        filled.fault = on("GET", "/changes/", times=1)(lambda handler: handler.answer(404))
        second = new_store()
        assert llvs.ErrorCode.MISSING_CHANGES in [problem.code for problem in retrieve(second, filled).problems]
        assert not retrieve(second, filled).problems and ids(second) == ids(store)

    def test_a_place_that_is_not_there(self, server: DavServer, store: llvs.Store) -> None:
        with llvs.Exchange(store, server.url, create=False) as way:
            with pytest.raises(llvs.NotFoundError, match="does not exist"):
                way.retrieve()
        assert not retrieve(store, server).retrieved

    @pytest.mark.parametrize("form", ["%a, %d %b %Y %H:%M:%S GMT", "%A, %d-%b-%y %H:%M:%S GMT", "%a %b %e %H:%M:%S %Y"])
    def test_a_time_to_wait_for_in_each_form(self, filled: DavServer, new_store: Any, form: str) -> None:
        """The forms of RFC 9110, section 5.6.7."""
        wait = time.strftime(form, time.gmtime(time.time() + 2_000))
        filled.fault = on("PROPFIND")(lambda handler: handler.answer(429, Retry_After=wait))
        with exchange(new_store(), filled) as way, pytest.raises(llvs.BusyError, match="Retry-After"):
            way.retrieve()
        assert filled.count() == 1

    @pytest.mark.parametrize("status", [429, 503])
    def test_retry_after(self, filled: DavServer, new_store: Any, store: llvs.Store, status: int) -> None:
        filled.fault = on("PROPFIND", times=1)(lambda handler: handler.answer(status, Retry_After="1"))
        second = new_store()
        assert not retrieve(second, filled).problems and ids(second) == ids(store)

    def test_a_long_retry_after_is_reported_and_kept(self, filled: DavServer, new_store: Any) -> None:
        filled.fault = on("PROPFIND")(lambda handler: handler.answer(429, Retry_After="Fri, 31 Dec 9999 23:59:59 GMT"))
        with exchange(new_store(), filled) as way:
            for _ in range(2):
                with pytest.raises(llvs.BusyError, match="Retry-After"):
                    way.retrieve()
        assert filled.count() == 1


    def test_an_account_that_is_to_wait_is_left_alone_by_all(self, filled: DavServer, new_store: Any) -> None:
        """24: the wait applies to exchanges that are opened later, too. Another account of that server is independent."""
        filled.fault = on("PROPFIND")(lambda handler: handler.answer(429, Retry_After="300"))
        for _ in range(3):
            with exchange(new_store(), filled) as way, pytest.raises(llvs.BusyError, match="Retry-After"):
                way.retrieve()
        assert filled.count() == 1
        with exchange(new_store(), filled, user="somebody", password="else") as way, pytest.raises(llvs.BusyError):
            way.retrieve()
        assert filled.count() == 2

    def test_a_time_to_wait_for_is_by_the_clock_of_the_server(self, filled: DavServer, new_store: Any, store: llvs.Store) -> None:
        ahead = time.time() + 3_600
        date, wait = (formatdate(ahead + seconds, usegmt=True) for seconds in (0, 1))

        def fault(handler: Handler) -> None:
            handler.date_time_string = lambda timestamp=None: date  # type: ignore[method-assign]
            handler.answer(429, Retry_After=wait)

        filled.fault = on("PROPFIND", times=1)(fault)
        second = new_store()
        assert not retrieve(second, filled).problems and ids(second) == ids(store)


class TestRedirects:
    def test_in_a_circle(self, filled: DavServer, new_store: Any) -> None:
        filled.fault = on("PROPFIND")(lambda handler: handler.answer(302, Location=handler.path))
        with pytest.raises(llvs.TransportError, match="more than 5 times"):
            retrieve(new_store(), filled)
        assert filled.count() == 6

    @pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
    def test_on_the_same_server(self, filled: DavServer, new_store: Any, store: llvs.Store, status: int) -> None:
        def fault(handler: Handler) -> bool:
            if "/moved/" in handler.path:
                handler.path = handler.path.replace("/moved/", "/dav/")
                return False
            handler.body()
            handler.answer(status, Location=handler.path.replace("/dav/", "/moved/"))
            return True

        filled.fault = fault
        second = new_store()
        with llvs.Exchange(second, llvs.Remote(filled.url + "?layout=interchange", user="ann", password="s3cret")) as way:
            assert not way.retrieve().problems
        assert ids(second) == ids(store)
        assert all("Authorization" in headers for headers in filled.headers_seen)

    def test_to_another_server_no_credentials_go_along(self, filled: DavServer, new_store: Any, store: llvs.Store) -> None:
        with DavServer() as other:
            other.files, other.folders = filled.files, filled.folders
            target = f"http://127.0.0.1:{other.server_port}"
            filled.fault = on("")(
                lambda handler: handler.answer(307, Location=target + handler.path) if handler.body() is not None else None
            )
            second = new_store()
            for access in ({"user": "ann", "password": "s3cret"}, {"token": "t0ken"}):
                retrieve(second, filled, **access)
            assert ids(second) == ids(store)
            assert all("Authorization" in headers for headers in filled.headers_seen)
            assert other.count() and not any("Authorization" in headers for headers in other.headers_seen)
            # Nothing is written to the other server either.
            store.make_version(store.most_recent_head, insert={"new": b"1"})
            with pytest.raises(llvs.TransportError, match="another server"):
                send(store, filled)
            assert not other.count("PUT")

    def test_to_what_is_no_address(self, filled: DavServer, new_store: Any) -> None:
        for location in ("ftp://127.0.0.1/x", "file:///etc/passwd", "http://ann:s3cret@127.0.0.1/x"):
            filled.fault = on("PROPFIND")(lambda handler, location=location: handler.answer(302, Location=location))
            with pytest.raises(llvs.TransportError) as raised:
                retrieve(new_store(), filled)
            assert "s3cret" not in str(raised.value)


class TestTime:
    def test_a_server_that_says_nothing(self, filled: DavServer, new_store: Any) -> None:
        released = threading.Event()
        filled.fault = on("PROPFIND")(lambda handler: released.wait(PATIENCE) and handler.cut())
        try:
            with pytest.raises(llvs.TransportError, match="timeout"):
                retrieve(new_store(), filled, timeout=1)
        finally:
            released.set()
        assert filled.count() == 2

    @pytest.mark.parametrize("part", ["headers", "listing", "file"])
    def test_a_byte_now_and_then(self, filled: DavServer, new_store: Any, store: llvs.Store, part: str) -> None:
        """Twenty bytes a second for ten seconds, and then all of the rest. The transfer is given up before that."""
        released = threading.Event()

        @on("GET" if part == "file" else "PROPFIND")
        def fault(handler: Handler) -> Optional[bool]:
            handler.body()
            if part == "headers":
                for letter in b"HTTP/1.1 207 Multi-Status\r\nX-More: " + b"x" * 200:
                    handler.wfile.write(bytes([letter]))
                    if released.wait(0.05):
                        return handler.cut()
                return handler.cut()
            handler.begin(200 if part == "file" else 207, None)
            if part == "listing":
                handler.wfile.write(b"<D:multistatus xmlns:D='DAV:'>")
            for _ in range(200):
                handler.wfile.write(b" ")
                if released.wait(0.05):
                    return handler.cut()
            handler.wfile.write(b"</D:multistatus>" if part == "listing" else b"{}")
            return handler.cut()

        filled.fault = fault
        second = new_store()
        try:
            with exchange(second, filled, timeout=1) as way:
                with pytest.raises(llvs.TransportError, match="bytes moved, and for 2 seconds fewer than"):
                    way.retrieve()
                filled.fault = None
                assert not way.retrieve().problems
        finally:
            released.set()
        assert ids(second) == ids(store)

    @pytest.mark.parametrize("dribbles", [False, True])
    def test_cancelling(self, filled: DavServer, new_store: Any, store: llvs.Store, dribbles: bool) -> None:
        released, asked, cancel = threading.Event(), threading.Event(), llvs.CancelToken()

        @on("GET")
        def fault(handler: Handler) -> bool:
            asked.set()
            if dribbles:
                handler.begin(200, 1_000_000)
                while not released.wait(0.02):
                    handler.wfile.write(b"{")
            released.wait(PATIENCE)
            return handler.cut()

        filled.fault = fault
        second = new_store()
        threading.Thread(target=lambda: (asked.wait(), cancel.cancel()), daemon=True).start()
        try:
            with exchange(second, filled) as way:
                with pytest.raises(llvs.CancelledError):
                    way.retrieve(cancel=cancel)
                filled.fault = None
                assert not way.retrieve().problems
        finally:
            released.set()
        assert ids(second) == ids(store)

    def test_cancelling_a_wait_between_tries(self, filled: DavServer, new_store: Any) -> None:
        asked, cancel = threading.Event(), llvs.CancelToken()
        filled.fault = on("PROPFIND")(lambda handler: (handler.answer(503, Retry_After="59"), asked.set()) and None)
        threading.Thread(target=lambda: (asked.wait(), cancel.cancel()), daemon=True).start()
        with exchange(new_store(), filled) as way, pytest.raises(llvs.CancelledError):
            way.retrieve(cancel=cancel)


class TestPlaces:
    def test_nothing_listens(self, new_store: Any) -> None:
        with DavServer() as server:
            url = server.url
        with llvs.Exchange(new_store(), url) as way, pytest.raises(llvs.TransportError, match="Check the address and that the server runs"):
            way.retrieve()

    def test_an_unknown_host(self, new_store: Any) -> None:
        with llvs.Exchange(new_store(), "https+webdav://no-such-host.invalid/notes/") as way, pytest.raises(
            llvs.TransportError, match="no-such-host"
        ):
            way.retrieve()

    def test_what_is_no_web_server(self, new_store: Any) -> None:
        import socket

        with socket.create_server(("127.0.0.1", 0)) as listener:
            def serve() -> None:
                while True:
                    try:
                        connection = listener.accept()[0]
                    except OSError:
                        return
                    connection.sendall(b"220 mail.example.org ESMTP\r\n")
                    connection.close()

            threading.Thread(target=serve, daemon=True).start()
            with llvs.Exchange(new_store(), f"http+webdav://127.0.0.1:{listener.getsockname()[1]}/") as way, pytest.raises(
                llvs.TransportError
            ):
                way.retrieve()

    @pytest.mark.parametrize("broken", ["empty", "another"])
    @pytest.mark.parametrize("library", ["libcurl.so.4", "libexpat.so.1"])
    def test_libraries_that_are_missing(self, tmp_path: Path, server: DavServer, library: str, broken: str) -> None:
        """The message says which library to install. Exchanges with a folder need none of them."""
        place = tmp_path / "lib" / library
        place.parent.mkdir()
        if broken == "empty":
            place.write_bytes(b"")
        else:
            place.write_bytes(next(Path("/").glob("lib*/*/libz.so.1")).read_bytes())
        # A program in C, since some builds of Python are linked with libexpat themselves.
        source, program, ours = tmp_path / "program.c", tmp_path / "program", Path(os.environ["LLVS_LIBRARY"]).resolve()
        source.write_text(PROGRAM)
        include = Path(__file__).parents[2] / "include"
        subprocess.run(["cc", str(source), f"-I{include}", str(ours), f"-Wl,-rpath,{ours.parent}", "-o", str(program)], check=True)
        run = subprocess.run(
            [str(program), (tmp_path / "folder").as_uri(), server.url],
            env=dict(os.environ, LD_LIBRARY_PATH=str(place.parent)),
            capture_output=True,
            text=True,
        )
        assert "Install it" in run.stdout and library.split(".")[0] in run.stdout, run


class TestTLS:
    def test_an_authority_of_our_own(self, certificate: tuple[Path, Path], store: llvs.Store, new_store: Any) -> None:
        with DavServer(certificate) as server:
            with pytest.raises(llvs.TransportError, match="ca_file"):
                send(store, server)
            assert not server.requests
            assert len(send(store, server, ca_file=str(certificate[0])).sent) == 3
            second = new_store()
            assert not retrieve(second, server, ca_file=str(certificate[0])).problems and ids(second) == ids(store)

    def test_another_name_than_the_certificates(self, certificate: tuple[Path, Path], store: llvs.Store) -> None:
        with DavServer(certificate, "127.0.0.2") as server:
            with llvs.Exchange(store, llvs.Remote(server.url.replace("127.0.0.1", "127.0.0.2"), ca_file=str(certificate[0]))) as way:
                with pytest.raises(llvs.TransportError, match="certificate"):
                    way.send()

    def test_a_ca_file_that_is_none(self, certificate: tuple[Path, Path], store: llvs.Store, tmp_path: Path) -> None:
        with DavServer(certificate) as server, pytest.raises(llvs.TransportError, match="ca_file"):
            send(store, server, ca_file=str(tmp_path / "missing.pem"))

    def test_a_connection_that_is_lost_sends_no_signal(self, certificate: tuple[Path, Path], tmp_path: Path) -> None:
        """A process with the default action for SIGPIPE, as programs in C have it, is not ended."""
        with DavServer(certificate) as server:
            server.fault = on("PUT")(lambda handler: handler.connection.close() or handler.cut())
            script = """
                import llvs, os, signal, sys
                signal.signal(signal.SIGPIPE, signal.SIG_DFL)
                with llvs.Store(sys.argv[1]) as store:
                    store.make_version(insert={str(i): os.urandom(4000000) for i in range(4)})
                    with llvs.Exchange(store, llvs.Remote(sys.argv[2], ca_file=sys.argv[3])) as way:
                        try: way.send()
                        except llvs.TransportError: print("alive")
            """
            environment = dict(os.environ, PYTHONPATH=str(Path(llvs.__file__).parents[1]))
            arguments = [sys.executable, "-c", textwrap.dedent(script), str(tmp_path / "s"), server.url, str(certificate[0])]
            run = subprocess.run(arguments, env=environment, capture_output=True, text=True)
            assert run.returncode == 0 and "alive" in run.stdout, (signal.Signals(-run.returncode) if run.returncode < 0 else run)
