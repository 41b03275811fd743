"""Serves the page of a contact book on 127.0.0.1, with only Python's http.server."""

from __future__ import annotations

import base64
import binascii
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Callable, Iterable, Mapping, Optional
from urllib.parse import parse_qs, urlsplit

import llvs
from llvs.inspector.guard import HEADERS, LARGEST_BODY, Guard
from llvs.inspector.shared import FILES, TYPES

import examples
import told
from book import NOT_OURS, Book, Refused, phones_of, type_of
from models import Contact

PAGE = Path(__file__).parent / "page"
#: Seconds between two keep-alives to an open page.
PULSE = 15.0
#: Exceptions from requests that the page never makes, and from requests for values that no longer exist.
NEVER_ASKED = NOT_OURS


class News:
    """Notifies open pages. `tell` may be called on any thread."""

    def __init__(self) -> None:
        self._changed, self._number, self.is_closed = threading.Condition(), 0, False
        #: The news of other pages that show the same.
        self.also: list[News] = []

    def tell(self) -> None:
        """Notifies the pages that there is something new to show."""
        with self._changed:
            self._number += 1
            self._changed.notify_all()
        for news in self.also:
            news.tell()

    def close(self) -> None:
        """Ends the streams of all pages."""
        self.is_closed = True
        self.tell()

    def wait(self, last: int) -> int:
        """Waits until the number of the newest news differs from `last`, or for `PULSE` seconds; returns it."""
        with self._changed:
            self._changed.wait_for(lambda: self._number != last, PULSE)
            return self._number


class Pages(ThreadingHTTPServer):
    """Serves a page on 127.0.0.1 to admitted windows."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, port: int, handler: type[Answering], files: Mapping[str, Path]) -> None:
        """port: 0 selects a free one. files: those of the page, in addition to those that it shares with the inspector."""
        super().__init__(("127.0.0.1", port), handler)
        self.news = News()
        self.origin = f"http://127.0.0.1:{self.server_port}"
        self.headers: Iterable[tuple[str, str]] = HEADERS
        self.files = {**FILES, **files}
        pages = ["/", "/favicon.ico", *(f"/{name}" for name in self.files)]
        self.guard = Guard(port=self.server_port, pages=pages, what="a contact book")

    def close(self) -> None:
        """Ends the pages' streams and the server."""
        self.news.close()
        self.server_close()


class Server(Pages):
    """Serves one device's book."""

    def __init__(self, port: int, open_book: Callable[[Callable[[], None]], Book]) -> None:
        """open_book: opens the book; its argument is the function to call when the book changes."""
        super().__init__(port, Handler, files_of(PAGE))
        try:
            self.book = open_book(self.news.tell)
        except BaseException:
            self.server_close()
            raise

    def close(self) -> None:
        """Ends the pages' streams, the server and the book."""
        super().close()
        self.book.close()


def files_of(folder: Path) -> dict[str, Path]:
    """Returns the files of a page, by name."""
    return {path.name: path for path in folder.iterdir() if path.suffix in TYPES}


class Answering(BaseHTTPRequestHandler):
    """A request of any page."""

    protocol_version = "HTTP/1.1"
    server: Any
    timeout = 60

    def do_GET(self) -> None:
        """Answers with a file of the page, or with data to show."""
        self._answer(self._get)

    def do_POST(self) -> None:
        """Does something in the book."""
        self._answer(self._post)

    def log_message(self, format: str, *arguments: Any) -> None:
        """Logs nothing: addresses contain what the user searches for."""

    def _answer(self, what: Callable[[str, dict[str, str]], None]) -> None:
        parts = urlsplit(self.path)
        headers = [(name.lower(), value) for name, value in self.headers.items()]
        refused = self.server.guard.judge(self.command, parts.path, headers)
        if refused is not None:
            self._send(refused.status, "text/plain; charset=utf-8", refused.text.encode())
            self.close_connection = True
            return
        try:
            what(parts.path, {name: values[-1] for name, values in parse_qs(parts.query).items()})
        except (ConnectionError, TimeoutError):
            self.close_connection = True
        except Refused as problem:
            self._json({"error": str(problem), "confirm": problem.confirm}, 409)
        except llvs.models.DecodeError:
            said = "This cannot be read: another program saved something else in its place. Its history has what it was."
            self._json({"error": said}, 409)
        except (*NEVER_ASKED, llvs.errors.UnknownVersionError):
            self._json({"error": "This is not there any more, or the request is not one of this page."}, 404)
        except llvs.Error as problem:
            self._json({"error": str(problem)}, 500)

    def _send(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        for name, value in (("content-type", kind), ("content-length", str(len(body))), *self.server.headers):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def _json(self, content: Any, status: int = 200) -> None:
        self._send(status, "application/json", json.dumps(content).encode())

    def _get(self, path: str, query: dict[str, str]) -> None:
        if path == "/api/news":
            self._stream()
        elif path == "/favicon.ico":
            self._send(204, "text/plain", b"")  # The page has no icon, but browsers request one.
        elif (file := self.server.files.get(path.removeprefix("/") or "index.html")) is not None:
            self._send(200, TYPES[file.suffix], file.read_bytes())
        else:
            self._json({"error": "There is no such page."}, 404)

    def _stream(self) -> None:
        """Sends server-sent events: a line whenever there is something new to show."""
        self.close_connection = True
        self.send_response(200)
        for name, value in (("content-type", "text/event-stream"), ("connection", "close"), *self.server.headers):
            self.send_header(name, value)
        self.end_headers()
        last = -1
        while not self.server.news.is_closed:
            number = self.server.news.wait(last)
            self.wfile.write(b": here\n\n" if number == last else b"event: news\ndata: {}\n\n")
            self.wfile.flush()
            last = number

    def _post(self, path: str, query: dict[str, str]) -> None:
        length = int(self.headers.get("content-length") or 0)
        body = self.rfile.read(length) if length <= LARGEST_BODY else b""
        if self.headers.get("content-type", "").split(";")[0].strip() != "application/json":
            return self._json({"error": "A change is sent as application/json."}, 415)
        given = json.loads(body)
        self._json(self._do(path.removeprefix("/api/"), given) or {})

    def _do(self, what: str, given: dict[str, Any]) -> Optional[dict[str, Any]]:
        raise KeyError(what)


class Handler(Answering):
    """A request of a device's page."""

    def _get(self, path: str, query: dict[str, str]) -> None:
        book = self.server.book
        if path == "/api/book":
            self._json(told.book(book, query.get("q", ""), query.get("group", ""), query.get("tag", ""), query.get("then")))
        elif path == "/api/contact":
            self._json(told.contact(book, query["id"], query.get("then")))
        elif path == "/api/moments":
            self._json(told.moments(book))
        elif path == "/api/history":
            self._json(told.history(book, query["id"]))
        elif path == "/api/deleted":
            self._json(told.deleted(book))
        elif path == "/api/conflicts":
            self._json(told.conflicts(book))
        elif path.startswith("/photo/"):
            data = book.photo(path.removeprefix("/photo/"))
            self._send(200, type_of(data) or "application/octet-stream", data)
        else:
            super()._get(path, query)

    def _do(self, what: str, given: dict[str, Any]) -> Optional[dict[str, Any]]:
        return _do(self.server.book, what, given)


#: The choices that the page offers.
_CHOICES: dict[Any, llvs.words.Choice] = {"newer": "newer", "older": "older", "result": "result"}


def _do(book: Book, what: str, given: dict[str, Any]) -> Optional[dict[str, Any]]:
    """Does what the page requests. Raises one of `NEVER_ASKED` for a request that the page never makes."""
    if what == "save":
        id, at = given.get("id"), given.get("at")
        card, picture, confirmed = _contact(given["card"]), _photo(given.get("picture")), given.get("confirmed")
        return {"id": book.save(id and str(id), card, at and str(at), picture, confirmed and str(confirmed))}
    if what == "delete":
        book.remove(str(given["id"]))
    elif what == "restore":
        book.restore(str(given["id"]), str(given["version"]))
    elif what == "restore-all":
        book.restore_all(str(given["version"]))
        return {"said": "The book is as it was then. Undo takes that back."}
    elif what == "undelete":
        return {"said": f"{book.undelete(str(given['id']))} is back."}
    elif what == "choose":
        book.choose(str(given["id"]), str(given["version"]), [str(mark) for mark in given["marks"]], _CHOICES[given["choice"]])
        return {"said": "The decision is saved. Undo opens the question again."}
    elif what == "group":
        return {"id": book.save_group(given.get("id") and str(given["id"]), str(given["name"]))}
    elif what == "delete-group":
        book.remove_group(str(given["id"]))
    elif what == "member":
        book.set_member(str(given["group"]), str(given["id"]), given["isMember"] is True)
    elif what in ("undo", "redo"):
        return {"said": book.undo(again=what == "redo")}
    elif what == "online":
        book.set_online(given["isOnline"] is True)
    elif what == "sync":
        book.syncer.now()
    elif what == "examples":
        examples.add(book)
    else:
        raise KeyError(what)
    return None


def _contact(given: dict[str, Any]) -> Contact:
    texts = {name: str(given.get(name) or "").strip() for name in ("name", "company", "town", "email")}
    tags = {str(tag).strip() for tag in given.get("tags", ())} - {""}
    photo = given.get("photo")
    notes = str(given.get("notes") or "")
    return Contact(**texts, phones=phones_of(given.get("phones", [])), tags=tags, notes=notes, photo=str(photo) if photo else None)


def _photo(given: Any) -> Optional[bytes]:
    try:
        return base64.b64decode(given, validate=True) if isinstance(given, str) else None
    except binascii.Error:
        raise Refused("The photo did not arrive whole: try again.") from None
