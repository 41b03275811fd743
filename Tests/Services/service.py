"""The parts that the stand-ins of cloud services share: requests and answers, injected faults, and a server on loopback.

A stand-in is written from its vendor's documents. Debian's rclone checks it: what rclone cannot use is not faithful (test_rclone.py).
"""

from __future__ import annotations

import itertools
import json
import ssl
import threading
from collections import deque
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Callable, Optional, Sequence
from urllib.parse import parse_qsl, unquote, urlsplit


@dataclass
class Request:
    method: str
    #: The text before the first slash: `https://host`.
    origin: str
    #: Split at slashes, then decoded, because a name may contain a slash.
    parts: list[str]
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes

    def json(self) -> dict[str, Any]:
        try:
            found = json.loads(self.body or b"{}")
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise Refused(Answer.of({"error": "the body is no JSON object"}, 400))
        return found

    def form(self) -> dict[str, str]:
        return dict(parse_qsl(self.body.decode("utf-8"), keep_blank_values=True))


@dataclass
class Answer:
    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)

    @staticmethod
    def of(value: Any, status: int = 200, **headers: str) -> Answer:
        return Answer(status, json.dumps(value).encode(), {"Content-Type": "application/json; charset=utf-8", **headers})


class Refused(Exception):
    """Ends a request with an answer."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(answer.status)
        self.answer = answer


@dataclass
class Fault:
    """What happens to the next `count` requests for which `when` holds."""

    kind: str
    count: int
    when: Callable[[Request], bool]


class Service:
    """One stand-in. Its state is in memory; requests are answered one at a time.

    `requests` counts requests: by method and path, in which ids are left out.
    """

    #: The hosts of the real service.
    hosts: Sequence[str] = ()
    FAULTS = ("rate limit", "server error", "lost answer", "cut answer", "token expired", "nothing but HTML")

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.requests: list[str] = []
        self.faults: deque[Fault] = deque()
        #: For ids of uploads, pages and tickets: each is used only once, also after some have ended.
        self.serials = itertools.count()
        #: Called while the body of a request arrives, with its path and the number of bytes so far.
        self.reading: Callable[[str, int], None] = lambda path, count: None
        #: The answer of a permanent failure in tests, if it is not a refusal of the service's own.
        self.failure: Optional[Answer] = None
        #: The number of bytes that the account may store.
        self.quota = 1 << 50

    def inject(self, kind: str, count: int = 1, when: Callable[[Request], bool] = lambda request: True) -> None:
        """Injects a fault: one of `FAULTS`."""
        assert kind in self.FAULTS, kind
        self.faults.append(Fault(kind, count, when))

    # Methods that each service overrides.

    def answer(self, request: Request) -> Answer:
        raise NotImplementedError

    def refusal(self, status: int, code: str, message: str) -> Answer:
        raise NotImplementedError

    def rate_limited(self) -> Answer:
        raise NotImplementedError

    def template(self, request: Request) -> str:
        return request.path

    def refuse(self, status: int, code: str, message: str) -> Refused:
        return Refused(self.refusal(status, code, message))

    # Processing a request.

    def handle(self, request: Request) -> tuple[Answer, Optional[str]]:
        """Returns the answer, and what happens to it on its way: nothing, "lost" or "cut"."""
        with self.lock:
            self.requests.append(f"{request.method} {self.template(request)}")
            fault = self._fault(request)
            if fault == "rate limit":
                return self.rate_limited(), None
            if fault == "server error":
                return self.refusal(503, "serviceUnavailable", "The service is not there."), None
            if fault == "nothing but HTML":
                return Answer(200, b"<html><body>Sign in to the network</body></html>", {"Content-Type": "text/html"}), None
            if fault == "token expired":
                self.expire_tokens()
            try:
                answer = self.answer(request)
            except Refused as refused:
                answer = refused.answer
            return answer, {"lost answer": "lost", "cut answer": "cut"}.get(fault or "")

    def expire_tokens(self) -> None:
        raise NotImplementedError

    def cut_short(self, request: Request) -> None:
        """The connection broke before the whole body arrived: nothing of it is stored."""

    def _fault(self, request: Request) -> Optional[str]:
        for fault in self.faults:
            if fault.count > 0 and fault.when(request):
                fault.count -= 1
                return fault.kind
        return None


def byte_range(request: Request, data: bytes) -> Answer:
    """Returns a file, or the requested part of it."""
    headers = {"Content-Type": "application/octet-stream", "Accept-Ranges": "bytes"}
    wanted = request.headers.get("range", "")
    if not wanted.startswith("bytes=") or "," in wanted or "-" not in wanted:
        return Answer(200, data, headers)
    first, last = wanted[6:].split("-", 1)
    begin = int(first) if first else max(0, len(data) - int(last))
    end = min(len(data), int(last) + 1) if first and last else len(data)
    if begin >= len(data) or begin >= end:
        return Answer(416, b"", {"Content-Range": f"bytes */{len(data)}"})
    return Answer(206, data[begin:end], {**headers, "Content-Range": f"bytes {begin}-{end - 1}/{len(data)}"})


def content_range(request: Request) -> tuple[Optional[int], int, Optional[int]]:
    """Parses `Content-Range: bytes first-last/total`: the first (None for `*`), the number of bytes, and the total (None for `*`)."""
    unit, _, rest = request.headers.get("content-range", "").partition(" ")
    span, _, total = rest.partition("/")
    whole = None if total in ("*", "") else int(total)
    if unit != "bytes" or span in ("*", ""):
        return None, 0, whole
    first, _, last = span.partition("-")
    return int(first), int(last) - int(first) + 1, whole


def multipart(request: Request) -> list[tuple[dict[str, str], bytes]]:
    """Returns the parts of a body, each with its headers (names in lower case)."""
    kind = request.headers.get("content-type", "")
    mark = next((part.split("=", 1)[1].strip('"') for part in map(str.strip, kind.split(";")) if part.startswith("boundary=")), None)
    if not kind.startswith("multipart/") or not mark:
        return []
    found = []
    for piece in (b"\r\n" + request.body).split(b"\r\n--" + mark.encode())[1:]:
        if piece.startswith(b"--"):
            break
        head, _, data = piece.partition(b"\r\n\r\n")
        lines = [line.split(": ", 1) for line in head.decode().strip().split("\r\n") if ": " in line]
        found.append(({name.lower(): value for name, value in lines}, data))
    return found


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: ServiceServer
    is_cut = False

    def log_message(self, *_: Any) -> None:
        pass

    def _body(self) -> bytes:
        if "chunked" not in self.headers.get("Transfer-Encoding", ""):
            return self._measured(int(self.headers.get("Content-Length") or 0))
        found = b""
        while size := int(self.rfile.readline().split(b";")[0], 16):
            found += self.rfile.read(size)
            self.rfile.readline()
        while self.rfile.readline().strip():
            pass
        return found

    def _measured(self, size: int) -> bytes:
        """Reads as much of the body as arrives."""
        found = bytearray()
        service = self.server.service(self.headers.get("Host", "").split(":")[0])
        while len(found) < size:
            piece = self.rfile.read(min(1 << 18, size - len(found)))
            found += piece
            try:
                service.reading(self.path, len(found))
            except ConnectionAbortedError:
                piece = b""
            if not piece:
                self.close_connection = self.is_cut = True
                break
        return bytes(found)

    def _serve(self) -> None:
        split = urlsplit(self.path)
        host = self.headers.get("Host", "")
        request = Request(
            self.command,
            f"{'https' if self.server.secure else 'http'}://{host}",
            [unquote(part) for part in split.path.split("/")[1:]],
            unquote(split.path),
            dict(parse_qsl(split.query, keep_blank_values=True)),
            {name.lower(): value for name, value in self.headers.items()},
            self._body(),
        )
        if self.is_cut:
            self.server.service(host.split(":")[0]).cut_short(request)
            return
        answer, accident = self.server.service(host.split(":")[0]).handle(request)
        if accident == "lost":
            self.close_connection = True
            return
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        has_body = answer.status not in (204, 304)
        if has_body:
            self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        if self.command != "HEAD" and has_body:
            self.wfile.write(answer.body[: len(answer.body) // 2] if accident == "cut" else answer.body)
        if accident == "cut":
            self.close_connection = True

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = _serve


class ServiceServer(ThreadingHTTPServer):
    """Serves stand-ins on a port of loopback: each under the names of its hosts, or a single one under any name."""

    daemon_threads = True

    def __init__(self, *services: Service, certificate: Optional[tuple[str, str]] = None) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.services = services
        self.secure = certificate is not None
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*certificate)
            self.socket = context.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    @property
    def url(self) -> str:
        return f"{'https' if self.secure else 'http'}://127.0.0.1:{self.server_port}"

    def service(self, host: str) -> Service:
        return next((service for service in self.services if host in service.hosts), self.services[0])

    def handle_error(self, *_: Any) -> None:
        """Ignores clients that disconnect in the middle."""

    def close(self) -> None:
        self.shutdown()
        self.server_close()
