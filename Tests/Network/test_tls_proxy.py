"""WebDAV servers behind a real proxy that terminates TLS, and servers that refuse a MOVE: the library makes other requests instead."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any, Iterator

import llvs
import pytest
import servers
from conftest import ids
from dav_server import DavServer, Handler, on
from servers import PASSWORD, USER, Server, TLSProxy


#: The Host that the proxy sends to the server: the name that the client requests, that name without its port, or the server's own.
HOSTS = {"name": "$http_host", "name without port": "$host", "inner": "$proxy_host"}


@pytest.fixture(scope="module", params=servers.NAMES)
def process(request: Any, certificate: tuple[Path, Path]) -> Iterator[tuple[Server, dict[str, TLSProxy]]]:
    """Starts one of the servers, with proxies in front of it."""
    for server in servers.started(request.param):
        with tempfile.TemporaryDirectory(prefix="llvs-") as folder:
            proxies = {}
            for number, (name, host) in enumerate(HOSTS.items()):
                place = Path(folder) / str(number)
                place.mkdir()
                proxies[name] = servers.started_in(place, lambda own, host=host: TLSProxy(server.proxy.port, own, certificate, host))
            yield server, proxies
            for proxy in proxies.values():
                proxy.close()


@pytest.mark.in_turn("layout", "process", "host")
@pytest.mark.parametrize("layout", ["interchange", "packed"])
@pytest.mark.parametrize("host", HOSTS)
def test_devices_behind_a_proxy(
    process: tuple[Server, dict[str, TLSProxy]], store: llvs.Store, new_store: Any, certificate: Any, host: str, layout: str
) -> None:
    server, proxies = process
    url = f"https+webdav://127.0.0.1:{proxies[host].port}/dav/{layout}{list(HOSTS).index(host)}/?layout={layout}"
    place = llvs.Remote(url, user=USER, password=PASSWORD, ca_file=str(certificate[0]))
    second, asked = new_store(), server.proxy.requests
    with llvs.Exchange(store, place) as way:
        assert len(way.send().sent) == 3
        last = store.make_version(store.most_recent_head, insert={"more": b"1"})
        asked.clear()
        assert way.send().sent == (last.id,)
        assert asked.count("MOVE") == (2 if layout == "interchange" else 1), "the form is remembered"
    with llvs.Exchange(second, place) as way:
        assert not way.retrieve().problems and ids(second) == ids(store)
        second.make_version(second.most_recent_head, insert={"theirs": b"1"})
        assert len(way.send().sent) == 1
    with llvs.Exchange(store, place) as way:
        assert not way.retrieve().problems and ids(second) == ids(store)
    assert not list((server.shared / f"{layout}{list(HOSTS).index(host)}" / "tmp").iterdir())


def insisting(form: str) -> Any:
    """A server that accepts the destination in one form."""

    @on("MOVE")
    def fault(handler: Handler) -> bool:
        if handler.headers["Destination"].startswith("/") == (form == "path"):
            return False
        handler.body()
        handler.answer(502)
        return True

    return fault


@pytest.mark.parametrize("form", ["path", "address"])
def test_the_form_is_learned_once(server: DavServer, new_store: Any, form: str) -> None:
    """The form is learned once, however many files are sent at the same time."""
    server.fault, store, head = insisting(form), new_store(), None
    for number in range(30):
        head = store.make_version(head, insert={f"k{number}": b"1"})
    with llvs.Exchange(store, server.url + "?layout=interchange") as way:
        assert len(way.send().sent) == 30
        # The folders changes/ and versions/ do not exist at first.
        assert 60 <= server.count("MOVE") <= 64 + 60
        store.make_version(head, insert={"last": b"1"})
        server.forget()
        assert len(way.send().sent) == 1 and server.count("MOVE") == 2


@pytest.mark.parametrize("status", [400, 405, 501, 502])
def test_a_server_that_does_not_move(server: DavServer, store: llvs.Store, new_store: Any, status: int) -> None:
    """Packs are uploaded under their names, which identify their contents. Single files are not: the error names a remedy."""
    server.fault = on("MOVE")(lambda handler: handler.answer(status))
    with llvs.Exchange(store, server.url + "?layout=packed") as way:
        assert len(way.send().sent) == 3
        last = store.make_version(store.most_recent_head, insert={"more": b"1"})
        server.forget()
        assert way.send().sent == (last.id,)
        assert not server.count("MOVE") and server.count("PUT") == 1, "what the server cannot do is remembered"
    assert not [name for name in server.files if "/tmp/" in name]
    second = new_store()
    with llvs.Exchange(second, server.url + "?layout=packed") as way:
        assert not way.retrieve().problems and ids(second) == ids(store)
    with llvs.Exchange(store, server.url.replace("/notes/", "/files/") + "?layout=interchange") as way:
        with pytest.raises(llvs.TransportError, match="layout=packed") as told:
            way.send()
    assert str(status) in str(told.value) and "MOVE" in str(told.value)
    assert ("proxy_set_header Destination" in str(told.value)) == (status in (400, 502))


def test_an_upload_in_place_that_was_cut_short(server: DavServer, store: llvs.Store, new_store: Any) -> None:
    """The part that arrived has the pack's name. Readers do not mistake it for a whole pack, and the next send replaces it."""
    cut = [True]

    def fault(handler: Handler) -> bool:
        if handler.command == "MOVE":
            handler.answer(405)
            return True
        if handler.command == "PUT" and "/pack1/log/" in handler.path and cut[0]:
            server.folders.add("/dav/notes/pack1/log")
            server.files[handler.name] = handler.body()[:-7]
            return handler.cut()
        return False

    server.fault = fault
    with llvs.Exchange(store, server.url + "?layout=packed") as way, pytest.raises(llvs.TransportError):
        way.send()
    second = new_store()
    with llvs.Exchange(second, server.url + "?layout=packed") as way:
        assert not way.retrieve().retrieved
    cut[0] = False
    with llvs.Exchange(store, server.url + "?layout=packed") as way:
        assert len(way.send().sent) == 3
    with llvs.Exchange(second, server.url + "?layout=packed") as way:
        assert not way.retrieve().problems and ids(second) == ids(store)


@pytest.mark.parametrize("layout", ["interchange", "packed"])
@pytest.mark.parametrize("moved", ["/dav/real/notes/", "/dav/n/", "/x/dav/notes/"])
def test_a_place_that_redirects_within_its_host(server: DavServer, store: llvs.Store, new_store: Any, layout: str, moved: str) -> None:
    """Files are moved to the place itself, and not to the address that redirects to it."""
    server.folders |= {"/dav/real", "/x", "/x/dav"}

    def fault(handler: Handler) -> bool:
        if not handler.path.startswith("/dav/notes/"):
            return False
        handler.body()
        handler.answer(308, Location=moved + handler.path[len("/dav/notes/") :])
        return True

    server.fault = fault
    place, second = server.url + f"?layout={layout}", new_store()
    with llvs.Exchange(store, place) as way:
        assert len(way.send().sent) == 3
    assert server.files and all(name.startswith(moved) for name in server.files)
    assert not [name for name in server.files if "/tmp/" in name]
    with llvs.Exchange(second, place) as way:
        assert not way.retrieve().problems and ids(second) == ids(store)
