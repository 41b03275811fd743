"""The layout of a place, its recipients, and its store: these must not change because the place was unreachable for a moment."""

from __future__ import annotations

import base64
import time
from pathlib import Path
from typing import Any, Callable, Iterator

import llvs
import pytest
from conftest import ids
from dav_server import DavServer, Handler, on
from moved_clock import MovedClock
from patience import eventually

WORDS = "six random words and no others"


def both(store: llvs.Store, place: Any) -> tuple[int, int]:
    """Exchanges, and returns how many versions were received and sent."""
    with llvs.Exchange(store, place) as way:
        came, went = way.retrieve(), way.send()
        assert not came.problems and not went.problems
        return len(came.retrieved), len(went.sent)


def save(store: llvs.Store, name: str) -> llvs.Version:
    return store.make_version(store.most_recent_head, insert={name: b"SECRETVALUE"})


def below(server: DavServer) -> set[str]:
    return {name.split("/notes/")[1].split("/")[0] for name in server.files}


class Away:
    """The server's volume is not mounted: an empty folder is in its place."""

    def __init__(self, server: DavServer) -> None:
        self.server = server

    def __enter__(self) -> None:
        self.kept = (self.server.files, self.server.folders)
        self.server.files, self.server.folders = {}, {"", "/dav"}

    def __exit__(self, *exception: Any) -> None:
        self.server.files, self.server.folders = self.kept


# Single files


def test_who_met_an_empty_place_sees_the_single_files_that_come_to_it(server: DavServer, store: llvs.Store, new_store: Any) -> None:
    mine = new_store()
    assert both(mine, server.url) == (0, 0)
    assert both(store, server.url + "?layout=interchange") == (0, 3)
    assert both(mine, server.url) == (3, 0) and ids(mine) == ids(store)
    save(mine, "mine")
    assert both(mine, server.url) == (0, 1)
    assert both(store, server.url + "?layout=interchange") == (1, 0)
    assert below(server) == {"versions", "changes"}


def test_the_same_in_one_exchange(server: DavServer, store: llvs.Store, new_store: Any, clock: MovedClock) -> None:
    mine = new_store()
    with llvs.Exchange(mine, server.url) as way:
        assert not way.retrieve().retrieved
        both(store, server.url + "?layout=interchange")
        # The check of an empty place is valid for ten seconds, so that a send need not repeat it.
        clock.advance(10.5)
        assert len(way.retrieve().retrieved) == 3


@pytest.mark.parametrize("is_open", [False, True])
def test_a_place_with_single_files_that_is_away_gets_nothing(
    server: DavServer, store: llvs.Store, new_store: Any, is_open: bool
) -> None:
    """If a place with single files is away, nothing is written there, by the exchange that found the files or by another one. A caller who
    is sure that the place should be empty starts again, and the place gets packs."""
    mine, other = new_store(), llvs.Exchange(store, server.url + "?layout=interchange")
    other.send()
    way = llvs.Exchange(mine, server.url)
    assert len(way.retrieve().retrieved) == 3
    save(mine, "mine")
    with Away(server):
        if not is_open:
            way.close()
            way = llvs.Exchange(mine, server.url)
        for call in (way.retrieve, way.send):
            with pytest.raises(llvs.NotFoundError, match="single files"):
                call()
        assert not server.files
    assert not way.retrieve().problems and len(way.send().sent) == 1 and below(server) == {"versions", "changes"}
    assert len(other.retrieve().retrieved) == 1
    server.files, server.folders = {}, {"", "/dav"}
    way.restoration_state = b"new"
    assert not way.retrieve().retrieved and len(way.send().sent) == 4 and below(server) == {"pack1"}
    way.close()
    other.close()
    assert both(mine, server.url) == (0, 0) and both(new_store(), server.url) == (4, 0)


# Accounts


@pytest.fixture
def rooms(server: DavServer) -> DavServer:
    """Each user has separate files at the same address."""
    kept: dict[str, tuple[dict[str, bytes], set[str]]] = {}

    def enter(handler: Handler) -> bool:
        told = handler.headers.get("Authorization", "").split(" ", 1)
        user = base64.b64decode(told[-1]).decode().split(":")[0]
        with server.lock:
            server.files, server.folders = kept.setdefault(user, ({}, {"", "/dav"}))
        return False

    server.fault = enter
    return server


@pytest.mark.parametrize("asks", [False, True])
@pytest.mark.parametrize("layout", ["packed", ""])
def test_accounts_at_one_address_are_apart(rooms: DavServer, store: llvs.Store, new_store: Any, layout: str, asks: bool) -> None:
    def place(user: str) -> llvs.Remote:
        given: dict[str, Any] = {"user": user, "password": "p"}
        if asks:
            given = {"credentials": lambda address, again: llvs.exchange.Credentials(user, "p")}
        return llvs.Remote(rooms.url, layout=layout, **given) if layout else llvs.Remote(rooms.url, **given)

    assert both(store, place("ann")) == (0, 3)
    assert both(store, place("bob")) == (0, 3), "what ann has, bob has not"
    save(store, "later")
    assert both(store, place("bob")) == (0, 1)
    assert both(store, place("ann")) == (0, 1)
    assert both(store, place("ann")) == both(store, place("bob")) == (0, 0)
    for user in ("ann", "bob"):
        assert both(new_store(), place(user)) == (4, 0)


# Encrypted places


@pytest.fixture(scope="module")
def encrypted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DavServer]:
    """An encrypted place, which takes ten seconds to make. Tests restore what they change."""
    with DavServer() as server, llvs.Store(tmp_path_factory.mktemp("encrypted") / "store") as store:
        save(store, "secret")
        both(store, llvs.Remote(server.url, passphrase=WORDS))
        assert below(server) == {"pack1"}
        yield server


@pytest.mark.parametrize("layout", ["", "interchange", "packed", "bridged"])
def test_no_snapshot_goes_in_clear_to_an_encrypted_place(encrypted: DavServer, store: llvs.Store, layout: str) -> None:
    before = dict(encrypted.files)
    place = llvs.Remote(encrypted.url, layout=layout) if layout else encrypted.url
    with llvs.Exchange(store, place) as way:
        with pytest.raises(llvs.errors.EncryptionError if layout == "interchange" else llvs.errors.UnsupportedError):
            way.put_snapshot()
    assert encrypted.files == before


def test_no_snapshot_is_put_beside_packs(server: DavServer, store: llvs.Store) -> None:
    both(store, server.url)
    with llvs.Exchange(store, server.url) as way, pytest.raises(llvs.errors.UnsupportedError):
        way.put_snapshot()
    assert below(server) == {"pack1"}


def test_a_snapshot_is_put_beside_single_files(server: DavServer, store: llvs.Store, new_store: Any) -> None:
    both(store, server.url + "?layout=interchange")
    with llvs.Exchange(store, server.url) as way:
        way.put_snapshot()
    assert below(server) == {"versions", "changes", "snapshots"}
    with llvs.Exchange(new_store(), server.url) as way:
        way.restore_snapshot()


@pytest.mark.parametrize("layout", ["interchange", "packed"])
@pytest.mark.parametrize("sends", [False, True])
@pytest.mark.parametrize("is_open", [False, True])
def test_no_snapshot_is_put_where_versions_were(
    server: DavServer, store: llvs.Store, layout: str, sends: bool, is_open: bool
) -> None:
    both(store, f"{server.url}?layout={layout}")
    with llvs.Exchange(store, server.url) as open_one, llvs.Exchange(store, server.url) as new_one:
        open_one.send()
        way = open_one if is_open else new_one
        with Away(server):
            if sends:
                with pytest.raises(llvs.NotFoundError):
                    way.send()
            with pytest.raises(llvs.NotFoundError if layout == "interchange" else llvs.errors.UnsupportedError):
                way.put_snapshot()
            assert not server.files
        if layout == "interchange":
            way.put_snapshot()


@pytest.mark.parametrize("kind", ["folder", "server"])
def test_a_place_that_is_encrypted_after_it_was_opened(
    encrypted: DavServer, server: DavServer, store: llvs.Store, tmp_path: Path, kind: str
) -> None:
    """Nothing is sent there in clear, neither versions nor snapshots."""
    folder = tmp_path / "place"
    with llvs.Exchange(store, folder if kind == "folder" else server.url + "?layout=interchange") as way:
        assert not way.retrieve().retrieved
        for name, data in encrypted.files.items():
            if kind == "server":
                server.files[name] = data
                server.folders |= {"/dav" + "/notes/pack1"[:end] for end in (6, 12)} | {name.rpartition("/")[0]}
            else:
                path = folder / name.split("/notes/")[1]
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)
        for call in (way.send, way.put_snapshot):
            with pytest.raises(llvs.errors.EncryptionError, match="is encrypted"):
                call()
    assert server.files == (encrypted.files if kind == "server" else {})
    there = sum(1 for path in folder.rglob("*") if path.is_file())
    assert there == (len(encrypted.files) if kind == "folder" else 0)


@pytest.mark.parametrize("leaked", [False, True])
def test_a_passphrase_is_changed_where_nothing_is_deleted(encrypted: DavServer, new_store: Any, leaked: bool) -> None:
    """The error names the valid passphrase, and the exchange continues."""
    before = dict(encrypted.files)
    encrypted.fault = on("DELETE")(lambda handler: handler.answer(403) or True)  # type: ignore[func-returns-value]
    try:
        with llvs.Exchange(new_store(), llvs.Remote(encrypted.url, passphrase=WORDS)) as way:
            with pytest.raises(llvs.Error, match="The new passphrase opens .* pack1/keys/pass-") as raised:
                way.change_passphrase("other words", leaked=leaked)
            assert ("so does the old one" in str(raised.value)) != leaked
            assert raised.value.code == llvs.ErrorCode.PERMISSION
            assert not way.retrieve().problems
        assert both(new_store(), llvs.Remote(encrypted.url, passphrase="other words"))[0] == 1
    finally:
        encrypted.fault = None
        encrypted.files = before


def test_of_many_files_for_passphrases_the_newest_are_tried(encrypted: DavServer, new_store: Any) -> None:
    before = dict(encrypted.files)
    mine = next(name for name in before if "/pass-" in name)
    try:
        for letter in "abcdefghijklmnop":
            name = mine[:-26] + "a" * 24 + letter + "a"
            encrypted.files[name] = b"what another passphrase opens"
            encrypted.touched[name] = time.time() - 1_000
        encrypted.touched[mine] = time.time() - 10
        assert both(new_store(), llvs.Remote(encrypted.url, passphrase=WORDS))[0] == 1
    finally:
        encrypted.files = before
        encrypted.touched.clear()


# Devices with read access only


def test_who_may_only_read_goes_on_receiving(server: DavServer, tmp_path: Path, store: llvs.Store) -> None:
    """A device in the background has a version that it cannot send. It does not try again until the caller asks."""
    both(store, server.url)
    device = llvs.Coordinator(tmp_path / "device", exchange=llvs.Remote(server.url))
    device.sync()
    device.save(insert={"mine": b"1"})
    puts: list[bool] = []

    @on("PUT")
    def refuse(handler: Handler) -> bool:
        if allowed:
            return False
        puts.append(True)
        handler.answer(403)
        return True

    allowed: list[bool] = []
    server.fault = refuse
    try:
        with llvs.Syncer(device, poll=0.3, longest_poll=0.5, after_save=0.1, after_saves=0.2) as syncer:
            eventually(lambda: [place.reason for place in syncer.status.places] == [llvs.syncer.SyncReason.SIGN_IN])
            tried = len(puts)
            allowed.append(True)
            later = save(store, "later").id
            both(store, server.url)
            allowed.clear()
            eventually(lambda: later in ids(device.store))
            assert syncer.status.places[0].reason == llvs.syncer.SyncReason.SIGN_IN and len(puts) == tried
            allowed.append(True)
            syncer.run()
            assert syncer.status.places[0].reason == llvs.syncer.SyncReason.NONE
    finally:
        device.close()
    assert both(store, server.url)[0] >= 1
