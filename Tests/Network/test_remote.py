"""`llvs.Remote`: how credentials, proxies and URLs reach the library. No message or log contains a secret."""

from __future__ import annotations

import os
import socketserver
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, Optional

import llvs
import pytest
from conftest import ids
from dav_server import DavServer, Handler, on
from patience import PATIENCE

SECRETS = {"user": "ann", "password": "s3cret-pass"}


def wants(header: str) -> Any:
    """Refuses requests without these credentials."""

    @on("")
    def fault(handler: Handler) -> Optional[bool]:
        if handler.headers.get("Authorization") == header:
            return False
        handler.answer(401, WWW_Authenticate='Basic realm="x"')
        return True

    return fault


BASIC, OTHER = "Basic YW5uOnMzY3JldC1wYXNz", "Bearer t0ken"


def test_a_user_and_a_password_go_with_the_first_request(server: DavServer, store: llvs.Store) -> None:
    server.fault = wants(BASIC)
    with llvs.Exchange(store, llvs.Remote(server.url, **SECRETS)) as way:
        assert len(way.send().sent) == 3
    assert all(headers["Authorization"] == BASIC for headers in server.headers_seen)


def test_a_token(server: DavServer, store: llvs.Store) -> None:
    server.fault = wants(OTHER)
    with llvs.Exchange(store, llvs.Remote(server.url, token="t0ken")) as way:
        assert len(way.send().sent) == 3


def test_credentials_are_asked_for(server: DavServer, store: llvs.Store) -> None:
    asked: list[tuple[str, bool]] = []

    def ask(address: str, again: bool) -> Optional[llvs.exchange.Credentials]:
        asked.append((address, again))
        return llvs.exchange.Credentials(token="t0ken") if again else llvs.exchange.Credentials(user="ann", password="s3cret-pass")

    address = server.url.replace("http+webdav", "http")
    with llvs.Exchange(store, llvs.Remote(server.url, credentials=ask)) as way:
        assert not asked
        server.fault = wants(BASIC)
        way.send()
        assert asked == [(address, False)]
        # From now on the server refuses them, like an expired token. The callback is called once more, and the exchange continues.
        server.fault = wants(OTHER)
        way.retrieve()
        assert asked == [(address, False), (address, True)]
        way.retrieve()
        assert len(asked) == 2
        # If they are refused again, the callback is not repeated.
        server.fault = wants("nobody")
        with pytest.raises(llvs.errors.PermissionDeniedError):
            way.retrieve()
        assert len(asked) == 3


def test_there_may_be_none(server: DavServer, store: llvs.Store) -> None:
    with llvs.Exchange(store, llvs.Remote(server.url, credentials=lambda address, again: None)) as way:
        assert len(way.send().sent) == 3
    assert not any("Authorization" in headers for headers in server.headers_seen)


def test_asking_may_fail(server: DavServer, store: llvs.Store) -> None:
    def ask(address: str, again: bool) -> llvs.exchange.Credentials:
        raise KeyError("the key store is locked")

    with llvs.Exchange(store, llvs.Remote(server.url, credentials=ask)) as way:
        for _ in range(2):
            with pytest.raises(KeyError, match="locked"):
                way.send()
    assert not server.count()


def test_the_callback_may_not_use_the_exchange(server: DavServer, store: llvs.Store) -> None:
    ways: list[llvs.Exchange] = []

    def ask(address: str, again: bool) -> llvs.exchange.Credentials:
        with pytest.raises(llvs.BusyError):
            ways[0].retrieve()
        return llvs.exchange.Credentials(user="ann", password="x")

    with llvs.Exchange(store, llvs.Remote(server.url, credentials=ask)) as way:
        ways.append(way)
        assert len(way.send().sent) == 3


def test_nothing_reveals_a_secret(store: llvs.Store, server: DavServer) -> None:
    told: list[str] = []
    observer = llvs.log.observe_log(lambda level, message: told.append(message), llvs.log.LogLevel.DEBUG)
    try:
        remote = llvs.Remote(server.url, **SECRETS)
        told.append(repr(remote) + repr(llvs.exchange.Credentials("ann", "s3cret-pass", "t0ken")))
        with llvs.Exchange(store, remote) as way:
            way.send()
            told.append(repr(way) + str(way.restoration_state))
            for status in (401, 403, 500, 302):
                server.fault = on("")(
                    lambda handler, status=status: handler.answer(status, b"ann s3cret-pass", Location="//ann:s3cret-pass@x/")
                )
                with pytest.raises(llvs.Error) as raised:
                    way.retrieve()
                told.append(str(raised.value))
        for url in (
            "https+webdav://ann:s3cret-pass@host/",
            "x+y://ann:s3cret-pass@host/",
            "ann:s3cret-pass@host",
            "https+webdav://host/?k=s3cret-pass",
        ):
            with pytest.raises(llvs.Error) as raised:
                llvs.Exchange(store, url)
            told.append(str(raised.value) if "://" in url else "")
        with pytest.raises(llvs.errors.InvalidArgumentError) as raised:
            llvs.Exchange(store, llvs.Remote(server.url, user="ann", password="s3cret-pass\n"))
        told.append(str(raised.value))
    finally:
        observer.close()
    assert len(told) > 15 and not [message for message in told if "s3cret" in message or "t0ken" in message]


def test_a_proxy(server: DavServer, store: llvs.Store) -> None:
    """The proxy receives the whole address, and the library connects to nothing else."""
    seen: list[str] = []

    def fault(handler: Handler) -> bool:
        seen.append(handler.path)
        return False

    server.fault = fault
    with llvs.Exchange(store, llvs.Remote("http+webdav://127.0.0.1:1/dav/notes/", proxy=f"http://127.0.0.1:{server.server_port}")) as way:
        assert len(way.send().sent) == 3
    assert seen and all(path.startswith("http://127.0.0.1:1/dav/notes/") for path in seen)


class Refusing(socketserver.ThreadingTCPServer):
    """A proxy that answers every request with one status."""

    daemon_threads = allow_reuse_address = True

    def __init__(self, status: int) -> None:
        asked = self.asked = []  # type: list[bytes]

        class Answer(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                lines = list(iter(self.rfile.readline, b"\r\n"))
                asked.append(b"".join(lines))
                self.wfile.write(b"HTTP/1.1 %d No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n" % status)

        super().__init__(("127.0.0.1", 0), Answer)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://ann:s3cret-pass@127.0.0.1:{self.server_address[1]}"


@pytest.mark.parametrize(
    "status, error, tries",
    [
        (407, llvs.errors.PermissionDeniedError, 1), (403, llvs.errors.PermissionDeniedError, 1), (429, llvs.BusyError, 5),
        (502, llvs.TransportError, 5),
    ],
)
def test_a_proxy_that_does_not_connect(store: llvs.Store, status: int, error: type[llvs.Error], tries: int) -> None:
    """Encrypted connections use a tunnel through the proxy, which makes or refuses it."""
    with Refusing(status) as proxy, llvs.Exchange(store, llvs.Remote("https+webdav://example.invalid/x/", proxy=proxy.url)) as way:
        with pytest.raises(error, match=f"the proxy answers {status}") as raised:
            way.retrieve()
    assert len(proxy.asked) in (tries, tries - 1) and all(line.startswith(b"CONNECT example.invalid:443 ") for line in proxy.asked)
    assert "s3cret" not in str(raised.value)


BAD_PROXIES = ["127.0.0.1:99999", "a b"]


@pytest.mark.parametrize("proxy", ["ftp://ann:s3cret-pass@127.0.0.1:9", *(f"http://ann:s3cret-pass@{host}" for host in BAD_PROXIES)])
@pytest.mark.parametrize("url", ["http+webdav://127.0.0.1:1/x/", "sftp://127.0.0.1:1/x/", "s3://bucket/x?endpoint=http://127.0.0.1:1"])
def test_no_message_has_the_password_of_a_proxy(store: llvs.Store, url: str, proxy: str) -> None:
    with llvs.Exchange(store, llvs.Remote(url, user="ann", password="x", proxy=proxy, timeout=3)) as way:
        with pytest.raises(llvs.Error) as raised:
            way.retrieve()
    assert "s3cret" not in str(raised.value)


TO_THIS_MACHINE = """
import sys, llvs
store = llvs.Store(storage="memory")
store.make_version(insert={"a": b"1"})
with llvs.Exchange(store, llvs.Remote(sys.argv[1], user="ann", password="s3cret-pass")) as way:
    way.send()
"""


def test_this_machine_is_reached_without_the_proxy_of_the_environment(server: DavServer) -> None:
    """Otherwise the password would be sent over the network in clear."""
    with Refusing(403) as proxy:
        environment = {**os.environ, "http_proxy": proxy.url, "https_proxy": proxy.url}
        subprocess.run([sys.executable, "-c", TO_THIS_MACHINE, server.url], env=environment, check=True, timeout=PATIENCE)
    assert not proxy.asked and any("/versions/" in path or "/log/" in path for path in server.files)


@pytest.mark.parametrize("layout", ["packed", "interchange"])
@pytest.mark.parametrize("status", [403, 405, 409, 423, 500])
def test_remains_of_interrupted_uploads_stop_no_device(store: llvs.Store, layout: str, status: int) -> None:
    """A file that cannot be deleted stays."""
    with DavServer() as server:
        server.folders |= {"/dav/notes", "/dav/notes/tmp"}
        server.files["/dav/notes/tmp/0123abcd"] = b"half"
        server.touched["/dav/notes/tmp/0123abcd"] = time.time() - 3 * 86_400
        server.fault = on("DELETE")(lambda handler: handler.answer(status) or True)
        with llvs.Exchange(store, f"{server.url}?layout={layout}") as way:
            assert len(way.send().sent) == 3
        assert ("DELETE", "/dav/notes/tmp/0123abcd") in server.requests and "/dav/notes/tmp/0123abcd" in server.files


def test_connections_are_kept(server: DavServer, new_store: Any) -> None:
    store, head = new_store(), None
    for number in range(60):
        head = store.make_version(head, insert={str(number): b"1"})
    with llvs.Exchange(store, server.url + "?layout=interchange") as way:
        way.send()
        way.retrieve()
    assert server.count() > 240 and server.connections <= 4


def test_closing_from_another_thread(server: DavServer, store: llvs.Store) -> None:
    asked, released = threading.Event(), threading.Event()
    server.fault = on("PROPFIND", times=1)(lambda handler: asked.set() or released.wait(PATIENCE) and False)
    way = llvs.Exchange(store, server.url)
    closing = threading.Thread(target=lambda: (asked.wait(), released.set(), way.close()))
    closing.start()
    way.retrieve()
    closing.join()
    with pytest.raises(llvs.ClosedError):
        way.retrieve()


def test_through_a_plan_of_faults(server: DavServer, store: llvs.Store, new_store: Any) -> None:
    import llvs.testing as testing

    plan = testing.FaultPlan()
    server.fault = wants(BASIC)
    second = new_store()
    for each in (store, second):
        with llvs.Exchange(each, plan.transport(llvs.Remote(server.url, **SECRETS))) as way:
            way.retrieve()
            way.send()
    assert ids(second) == ids(store)


def test_parts_of_a_path_that_lead_elsewhere(store: llvs.Store) -> None:
    """Intermediate programs remove such parts from the path of a request, but not from its headers."""
    for path in ("a/../b", ".", "..", "a/.", "%2e%2E/b", "a/%2E/b"):
        for scheme in ("https+webdav://example.invalid", "http+webdav://localhost"):
            with pytest.raises(llvs.errors.InvalidArgumentError, match="a part that is"):
                llvs.Exchange(store, f"{scheme}/{path}/")
    llvs.Exchange(store, "https+webdav://example.invalid/.a/..b/c..d/...").close()


@pytest.mark.parametrize("timeout", [0, -1, 1e9, float("nan")])
def test_bad_timeouts(timeout: float) -> None:
    with pytest.raises(llvs.errors.InvalidArgumentError):
        llvs.Remote("https+webdav://host/", timeout=timeout)


def test_a_coordinator(server: DavServer, tmp_path: Path) -> None:
    server.fault = wants(BASIC)
    place = llvs.Remote(server.url, **SECRETS)
    with llvs.Coordinator(tmp_path / "a", exchange=place) as a, llvs.Coordinator(tmp_path / "b") as b:
        b.attach(place)
        a.save(insert={"x": b"1"})
        a.sync()
        assert b.sync().moved and b["x"] == b"1"
        with pytest.raises(llvs.errors.InvalidArgumentError):
            b.attach(place)


#: Closes descriptors 0 to 2, as daemons do, exchanges, and prints. The result is written to another descriptor.
DAEMON = """
import fcntl, os, sys
import llvs
url, path = sys.argv[1:]
tell = fcntl.fcntl(1, fcntl.F_DUPFD, 100)
for fd in range(3):
    os.close(fd)
with llvs.Store(path) as store, llvs.Exchange(store, url) as way:
    at = None
    for i in range(3):
        at = store.make_version(at, insert={f"k{i}": b"1"}).id
        way.send()
        for fd in range(3):
            try:
                place = os.readlink(f"/proc/self/fd/{fd}")
                if place != "/dev/null":
                    os.write(tell, f"{fd} is {place}".encode())
                os.write(fd, b"what the host prints")
            except OSError:
                pass
os.write(tell, b"done")
"""


def test_what_a_host_prints_without_an_output_is_no_part_of_a_request(server: DavServer, tmp_path: Path) -> None:
    program = [sys.executable, "-c", DAEMON, server.url, str(tmp_path / "store")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    ended = subprocess.run(program, capture_output=True, text=True, timeout=PATIENCE, env=environment, check=False)
    assert (ended.stdout, ended.stderr, ended.returncode) == ("done", "", 0)
