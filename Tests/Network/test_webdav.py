"""Exchanges through real WebDAV servers, with the same tests on each."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any, Iterator

import llvs
import pytest
import servers
import strict_reader
from conftest import ids
from servers import PASSWORD, USER, Server


@pytest.fixture(scope="module", params=servers.NAMES)
def process(request: Any) -> Iterator[Server]:
    yield from servers.started(request.param)


@pytest.fixture
def real(process: Server, request: Any) -> Iterator[Server]:
    """One of the servers, with a separate place for each test, and counters at zero."""
    process.proxy.requests.clear()
    process.place = f"{abs(hash(request.node.name)):x}"  # type: ignore[attr-defined]
    yield process
    folder = folder_of(process)
    if (folder / "versions").exists():
        strict_reader.read(folder)


def folder_of(server: Server) -> Path:
    return server.shared / server.place  # type: ignore[attr-defined, no-any-return]


def place(server: Server, **options: Any) -> llvs.Remote:
    url = server.url.replace("/notes/", f"/{server.place}/")  # type: ignore[attr-defined]
    return llvs.Remote(url + "?layout=interchange", **({"user": USER, "password": PASSWORD} | options))


def exchange(store: llvs.Store, server: Server, **options: Any) -> llvs.exchange.ExchangeResult:
    with llvs.Exchange(store, place(server, **options)) as way:
        received, sent = way.retrieve(), way.send()
    assert not received.problems and not sent.problems
    return llvs.exchange.ExchangeResult(received.retrieved, sent.sent, ())


def test_two_stores(real: Server, store: llvs.Store, new_store: Any) -> None:
    second = new_store()
    assert len(exchange(store, real).sent) == 3
    assert set(exchange(second, real).retrieved) == ids(store)
    theirs = second.make_version(second.most_recent_head, insert={"theirs": b"1"}, metadata={"x": "y"})
    ours = store.make_version(store.most_recent_head, insert={"ours": b"2"})
    exchange(second, real)
    exchange(store, real)
    exchange(second, real)
    assert ids(store) == ids(second) >= {theirs.id, ours.id}
    assert len(list((folder_of(real) / "versions").iterdir())) == 5 == len(list((folder_of(real) / "changes").iterdir()))
    assert not list((folder_of(real) / "tmp").iterdir())


def test_large_values(real: Server, new_store: Any) -> None:
    first, second = new_store(), new_store()
    data = random.Random(1).randbytes(6_000_000)
    version = first.make_version(insert={"large": data, "small": b"1"})
    exchange(first, real)
    exchange(second, real)
    assert second.at(version)["large"] == data


def test_requests(real: Server, store: llvs.Store, new_store: Any) -> None:
    """The number of requests of an exchange, as in docs/remote-files.md."""
    digest = real.name == "wsgidav-digest"
    exchange(store, real)
    with llvs.Exchange(store, place(real)) as way:
        way.retrieve()
        real.proxy.requests.clear()
        # Without new versions: one request.
        for _ in range(3):
            way.retrieve()
            way.send()
        assert real.proxy.requests == ["PROPFIND"] * 3
        state = way.restoration_state
    # A new process that restores the state needs one request, too. With Digest authentication, there is one more request.
    real.proxy.requests.clear()
    with llvs.Exchange(store, place(real), restoration_state=state) as way:
        way.retrieve()
        way.send()
    assert real.proxy.requests == ["PROPFIND"] * (2 if digest else 1)
    # Four for each version that is sent, besides the listing.
    head = store.most_recent_head
    for number in range(20):
        head = store.make_version(head, insert={f"k{number}": b"1"})
    with llvs.Exchange(store, place(real), restoration_state=state) as way:
        way.retrieve()
        real.proxy.requests.clear()
        assert len(way.send().sent) == 20
        asked = list(real.proxy.requests)
        assert asked.count("MOVE") == 40 and asked.count("MKCOL") == 0
        # In addition there are two requests of an exchange that has just been opened: one looks for remains in tmp/, and one for keys, so
        # that it does not send in clear to an encrypted place.
        assert digest or len(asked) == 82
        real.proxy.requests.clear()
        way.retrieve()
        way.send()
        assert real.proxy.requests == ["PROPFIND"]
    # Two for each version that is received.
    real.proxy.requests.clear()
    with llvs.Exchange(new_store(), place(real)) as way:
        assert len(way.retrieve().retrieved) == 23
    assert digest or real.proxy.requests.count("GET") == 46 and len(real.proxy.requests) == 48


def test_connections_are_kept(real: Server, new_store: Any) -> None:
    store, head = new_store(), None
    for number in range(50):
        head = store.make_version(head, insert={f"k{number}": b"1"})
    before = real.proxy.connections
    with llvs.Exchange(store, place(real)) as way:
        way.send()
        way.retrieve()
    # Some servers close a connection after an error, or after a number of requests.
    assert real.proxy.connections - before <= 12


def test_many_ids(real: Server, new_store: Any) -> None:
    """All kinds of version ids, as names on the server."""
    first, second = new_store(), new_store()
    made = ["a", "_x", "0", "tmp-1", "versions", "changes", "manifest", "lost-found", "__llvs_root", "x" * 128]
    head = None
    for id in made:
        head = first.make_version(head, insert={"k": id.encode()}, id=id)
    exchange(first, real)
    exchange(second, real)
    assert ids(second) == set(made)


def test_what_is_empty_is_written_anew(real: Server, store: llvs.Store, new_store: Any) -> None:
    exchange(store, real)
    victim = sorted(ids(store))[0]
    (folder_of(real) / "versions" / victim).write_bytes(b"")
    with llvs.Exchange(store, place(real)) as way:
        assert way.send().sent == (victim,)
    second = new_store()
    exchange(second, real)
    assert ids(second) == ids(store)


def test_changes_that_are_lost_are_written_anew(real: Server, store: llvs.Store, new_store: Any) -> None:
    exchange(store, real)
    victim = sorted(ids(store))[0]
    (folder_of(real) / "changes" / victim).unlink()
    with llvs.Exchange(store, place(real)) as way:
        assert way.send().sent == (victim,)
    second = new_store()
    exchange(second, real)
    assert ids(second) == ids(store)


def test_published_at_the_same_time(real: Server, store: llvs.Store, new_store: Any) -> None:
    """Another device was faster between the listing and the publishing. Equal files stay, different ones are replaced."""
    second = new_store()
    exchange(store, real)
    exchange(second, real)
    version = store.make_version(store.most_recent_head, insert={"n": b"1"})
    with llvs.Exchange(second, place(real)) as theirs, llvs.Exchange(store, place(real)) as ours:
        ours.retrieve()
        # The same files, sent by another exchange.
        exchange(store, real)
        (folder_of(real) / "changes" / version.id).write_bytes(b"[]")
        real.proxy.requests.clear()
        assert ours.send().sent == (version.id,)
        assert real.proxy.requests.count("GET") == 2 and real.proxy.requests.count("MOVE") == 3
        assert not theirs.retrieve().problems
    assert ids(second) == ids(store) and not list((folder_of(real) / "tmp").iterdir())


def test_leftovers_are_removed_after_a_day(real: Server, store: llvs.Store) -> None:
    exchange(store, real)
    old, new = folder_of(real) / "tmp" / "old", folder_of(real) / "tmp" / "new"
    for path, age in ((old, 90_000), (new, 80_000)):
        path.write_bytes(b"x")
        path.chmod(0o666)
        os.utime(path, (os.stat(path).st_mtime - age,) * 2)
    store.make_version(store.most_recent_head, insert={"n": b"1"})
    exchange(store, real)
    assert not old.exists() and new.exists()
    new.unlink()


def test_snapshots(real: Server, store: llvs.Store, new_store: Any) -> None:
    second = new_store()
    with llvs.Exchange(store, place(real)) as way:
        assert way.snapshot() is None
        way.put_snapshot()
        way.put_snapshot()
    with llvs.Exchange(second, place(real)) as way:
        assert way.restore_snapshot() is not None
    assert ids(second) == ids(store)


def test_coordinators(real: Server, tmp_path: Path) -> None:
    with (
        llvs.Coordinator(tmp_path / "ann", exchange=place(real)) as ann,
        llvs.Coordinator(tmp_path / "bob", exchange=place(real), options=llvs.CoordinatorOptions(name="b")) as bob,
    ):
        ann.save(insert={"note": b"1"})
        ann.sync()
        bob.sync()
        assert bob["note"] == b"1"
        bob.save(update={"note": b"2"})
        ann.save(insert={"other": b"3"})
        bob.sync()
        ann.sync()
        bob.sync()
        assert dict(ann.items()) == dict(bob.items()) == {"note": b"2", "other": b"3"}
    real.proxy.requests.clear()
    # The state is cached: a later process needs one request.
    with llvs.Coordinator(tmp_path / "ann", exchange=place(real)) as ann:
        ann.exchange()
    assert real.name == "wsgidav-digest" or real.proxy.requests == ["PROPFIND"]


def test_a_wrong_password(real: Server, store: llvs.Store) -> None:
    for access in ({"password": "wrong"}, {"user": "", "password": ""}):
        with llvs.Exchange(store, place(real, **access)) as way:
            with pytest.raises(llvs.errors.PermissionDeniedError, match="401") as raised:
                way.send()
            assert "wrong" not in str(raised.value)


def test_must_exist(real: Server, store: llvs.Store) -> None:
    with llvs.Exchange(store, place(real), create=False) as way:
        with pytest.raises(llvs.NotFoundError):
            way.retrieve()
    exchange(store, real)
    with llvs.Exchange(store, place(real), create=False) as way:
        assert not way.retrieve().problems
