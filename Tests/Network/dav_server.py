"""A WebDAV server in memory that misbehaves if a test says so, and counts requests."""

from __future__ import annotations

import posixpath
import socket
import ssl
import threading
import time
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Callable, Optional
from urllib.parse import quote, unquote, urlsplit
from xml.sax.saxutils import escape

#: A fault of a test. It returns True if it has answered the request.
Fault = Callable[["Handler"], Optional[bool]]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: "DavServer"

    def log_message(self, *arguments: Any) -> None:
        pass

    @property
    def name(self) -> str:
        """Returns the path of a request, decoded, without slashes at its end."""
        return unquote(urlsplit(self.path).path).rstrip("/")

    def setup(self) -> None:
        super().setup()
        with self.server.lock:
            self.server.connections += 1

    def answer(self, status: int, body: bytes = b"", **headers: str) -> None:
        """Sends a whole answer."""
        self.begin(status, len(body), **headers)
        if self.command != "HEAD":
            self.wfile.write(body)

    def begin(self, status: int, length: Optional[int], **headers: str) -> None:
        """Sends the beginning of an answer; without a length it ends with the connection."""
        self.body()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        if length is None:
            self.send_header("Connection", "close")
            self.close_connection = True
        else:
            self.send_header("Content-Length", str(length))
        self.end_headers()

    def cut(self) -> bool:
        """Closes the connection in the middle of an answer."""
        self.close_connection = True
        try:
            self.wfile.flush()
            self.connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        return True

    def body(self) -> bytes:
        if self._body is None:
            self._body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        return self._body

    _body: Optional[bytes] = None

    def serve(self) -> None:
        self._body = None
        server = self.server
        with server.lock:
            server.requests.append((self.command, self.name))
            server.headers_seen.append(dict(self.headers))
            fault = server.fault
        try:
            if fault is not None and fault(self):
                return
            self.body()
            with server.lock:
                answer = getattr(self, "on_" + self.command.lower())()
            self.answer(*answer)
        except (BrokenPipeError, ConnectionResetError, ssl.SSLError):
            self.close_connection = True

    do_GET = do_HEAD = do_PUT = do_DELETE = do_PROPFIND = do_MKCOL = do_MOVE = serve

    # The behaviour of a correct server.

    def on_get(self) -> tuple[int, bytes]:
        data = self.server.files.get(self.name)
        return (404, b"") if data is None else (200, data)

    on_head = on_get

    def on_put(self) -> tuple[int, bytes]:
        if posixpath.dirname(self.name) not in self.server.folders:
            return 409, b""
        self.server.files[self.name] = self.body()
        return 201, b""

    def on_delete(self) -> tuple[int, bytes]:
        return (204, b"") if self.server.files.pop(self.name, None) is not None else (404, b"")

    def on_mkcol(self) -> tuple[int, bytes]:
        if self.name in self.server.folders:
            return 405, b""
        if posixpath.dirname(self.name) not in self.server.folders:
            return 409, b""
        self.server.folders.add(self.name)
        return 201, b""

    def on_move(self) -> tuple[int, bytes]:
        target = unquote(urlsplit(self.headers["Destination"]).path)
        if self.name not in self.server.files:
            return 404, b""
        if posixpath.dirname(target) not in self.server.folders:
            return 409, b""
        if target in self.server.files and self.headers["Overwrite"] == "F":
            return 412, b""
        self.server.files[target] = self.server.files.pop(self.name)
        self.server.touched[target] = time.time()
        return 201, b""

    def on_propfind(self) -> tuple[int, bytes]:
        if self.name not in self.server.folders:
            return 404, b""
        return 207, self.server.listing(self.name)


class DavServer(ThreadingHTTPServer):
    """Listens on loopback until it is closed."""

    daemon_threads = True

    def __init__(self, certificate: Optional[tuple[Path, Path]] = None, host: str = "127.0.0.1") -> None:
        super().__init__((host, 0), Handler)
        self.lock = threading.RLock()
        self.fault: Optional[Fault] = None
        self.connections = 0
        #: The methods and paths of requests, and the headers of each.
        self.requests: list[tuple[str, str]] = []
        self.headers_seen: list[dict[str, str]] = []
        self.files: dict[str, bytes] = {}
        self.folders = {"", "/dav"}
        self.touched: dict[str, float] = {}
        self.is_secure = certificate is not None
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*certificate)
            self.socket = context.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def handle_error(self, *arguments: Any) -> None:
        pass

    @property
    def url(self) -> str:
        return f"http{'s' if self.is_secure else ''}+webdav://127.0.0.1:{self.server_port}/dav/notes/"

    def __enter__(self) -> DavServer:
        return self

    def __exit__(self, *exception: Any) -> None:
        self.shutdown()
        self.server_close()

    def listing(self, folder: str) -> bytes:
        def response(path: str, size: Optional[int]) -> str:
            kind = "<D:collection/>" if size is None else ""
            length = "" if size is None else f"<D:getcontentlength>{size}</D:getcontentlength>"
            changed = formatdate(self.touched.get(path, time.time()), usegmt=True)
            return (
                f"<D:response><D:href>{escape(quote(path + ('/' if size is None else '')))}</D:href><D:propstat><D:prop>{length}"
                f"<D:resourcetype>{kind}</D:resourcetype><D:getlastmodified>{changed}</D:getlastmodified></D:prop>"
                "<D:status>HTTP/1.1 200 OK</D:status></D:propstat></D:response>"
            )

        parts = [response(folder, None)]
        parts += [response(path, None) for path in sorted(self.folders) if path != folder and posixpath.dirname(path) == folder]
        parts += [response(path, len(data)) for path, data in sorted(self.files.items()) if posixpath.dirname(path) == folder]
        return ('<?xml version="1.0" encoding="utf-8"?><D:multistatus xmlns:D="DAV:">' + "".join(parts) + "</D:multistatus>").encode()

    def count(self, method: str = "") -> int:
        with self.lock:
            return sum(1 for asked, _ in self.requests if not method or asked == method)

    def forget(self) -> None:
        """Begins counting again."""
        with self.lock:
            self.requests.clear()
            self.headers_seen.clear()


def on(method: str, path: str = "", times: int = 1 << 30) -> Callable[[Fault], Fault]:
    """Injects a fault into the next `times` requests of a method below a path. If it returns something, that is its answer."""

    def decorate(body: Fault) -> Fault:
        left = [times]
        lock = threading.Lock()

        def fault(handler: Handler) -> Optional[bool]:
            if (method and handler.command != method) or path not in handler.path:
                return False
            with lock:
                if left[0] == 0:
                    return False
                left[0] -= 1
            return body(handler) is not False

        return fault

    return decorate
