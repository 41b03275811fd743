"""Connects programs that know only the real services to the stand-ins: a proxy connects every host to one server, with TLS."""

from __future__ import annotations

import socket
import subprocess
import threading
from pathlib import Path
from typing import Iterable


def make_authority(folder: Path, hosts: Iterable[str]) -> tuple[Path, Path, Path]:
    """Returns the authority's certificate, and a certificate with its key for `hosts` and 127.0.0.1."""
    authority, key = folder / "authority.pem", folder / "authority.key"
    certificate, server_key, request = folder / "server.pem", folder / "server.key", folder / "request.pem"
    extensions = folder / "extensions"
    names = ",".join([*(f"DNS:{host}" for host in hosts), "IP:127.0.0.1"])
    extensions.write_text(f"subjectAltName={names}\n")
    new = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    for command in (
        ["req", "-x509", *new, "-days", "2", "-subj", "/CN=tests", "-keyout", str(key), "-out", str(authority)],
        ["req", *new, "-subj", "/CN=stand-in", "-keyout", str(server_key), "-out", str(request)],
        ["x509", "-req", "-in", str(request), "-CA", str(authority), "-CAkey", str(key), "-CAcreateserial", "-days", "2",
         "-extfile", str(extensions), "-out", str(certificate)],
    ):  # fmt: skip
        subprocess.run(["openssl", *command], check=True, capture_output=True)
    return authority, certificate, server_key


class ConnectProxy:
    """Answers `CONNECT anything` with a connection to `port` of loopback."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client = self._listener.accept()[0]
            except OSError:
                return
            threading.Thread(target=self._connect, args=(client,), daemon=True).start()

    def _connect(self, client: socket.socket) -> None:
        head = b""
        while b"\r\n\r\n" not in head:
            piece = client.recv(1 << 14)
            if not piece:
                return client.close()
            head += piece
        if not head.startswith(b"CONNECT "):
            client.sendall(b"HTTP/1.1 405 Method Not Allowed\r\nContent-Length: 0\r\n\r\n")
            return client.close()
        server = socket.create_connection(("127.0.0.1", self._target))
        client.sendall(b"HTTP/1.1 200 Connected\r\n\r\n")
        threading.Thread(target=_pass, args=(server, client), daemon=True).start()
        _pass(client, server)


def _pass(source: socket.socket, target: socket.socket) -> None:
    try:
        while piece := source.recv(1 << 16):
            target.sendall(piece)
    except OSError:
        pass
    for end in (source, target):
        try:
            end.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
    source.close()
