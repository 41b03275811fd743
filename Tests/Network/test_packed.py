"""The packed layout over a server in memory, real WebDAV servers and a bucket: what is transferred, and in how many requests."""

from __future__ import annotations

from typing import Any, Iterator

import llvs
import pytest
from conftest import ids
from deep import usually
from packs import names, reader
from places import KINDS, Place, Service, started


#: One of each kind of client. test_files.py tests how the servers handle files.
@pytest.fixture(scope="module", params=usually(KINDS, "bucket", "openssh", "nginx"))
def service(request: Any) -> Iterator[Service]:
    """Makes places below one server."""
    yield from started(request.param)


@pytest.fixture
def place(service: Service, request: Any) -> Place:
    return service(f"p{abs(hash(request.node.name)):x}")


def exchange(store: llvs.Store, place: Place) -> int:
    """Exchanges, and returns the number of requests."""
    with llvs.Exchange(store, place()) as way:
        before = len(place.requests)
        assert not way.retrieve().problems
        assert not way.send().problems
    return len(place.requests) - before - place.challenges


def save(store: llvs.Store, name: str, data: bytes = b"1") -> llvs.Version:
    return store.make_version(store.most_recent_head, insert={name: data})


@pytest.mark.parametrize("service", usually(KINDS, *(kind for kind in KINDS if kind != "radosgw")), indirect=True)
def test_two_stores_and_their_requests(place: Place, store: llvs.Store, new_store: Any) -> None:
    second, third = new_store(), new_store()
    exchange(store, place)
    exchange(second, place)
    assert ids(second) == ids(store) and len(ids(store)) == 3
    for each in (store, second, store):
        exchange(each, place)
    assert exchange(store, place) == 1, "nothing new"
    for number in range(200):
        save(store, f"n{number}")
    assert exchange(store, place) == 1 + place.publishing, "send"
    save(second, "theirs", b"x" * 100_000)
    exchange(second, place)
    with llvs.Exchange(store, place()) as way:
        before = len(place.requests)
        assert len(way.retrieve().retrieved) == 1
        assert len(place.requests) - before <= 1 + 1 + place.challenges, "receive from one writer"
    # Digest authentication is requested on each of four connections.
    assert exchange(third, place) <= 3 + 1 + 4 + 3 * place.challenges, "a new device: roots, log/ and base/, the root, four packs"
    exchange(second, place)
    assert ids(store) == ids(second) == ids(third) and len(ids(store)) == 204


def test_large_values(place: Place, new_store: Any) -> None:
    first, second = new_store(), new_store()
    data = bytes(range(256)) * 40_000
    version = first.make_version(insert={"large": data})
    exchange(first, place)
    exchange(second, place)
    assert second.at(version)["large"] == data


def test_packs_of_many_exchanges_are_merged(place: Place, new_store: Any) -> None:
    first, second = new_store(), new_store()
    for number in range(20):
        save(first, f"n{number}")
        exchange(first, place)
    exchange(second, place)
    assert ids(first) == ids(second)
    with llvs.Exchange(second, place()) as way:
        assert not way.verify().problems


def test_what_receiving_from_three_writers_costs(place: Place, new_store: Any) -> None:
    """Each of the writers has merged packs."""
    writers, reader = [new_store() for _ in range(3)], new_store()
    for turn in range(10):
        for number, store in enumerate(writers):
            save(store, f"t{turn} w{number}")
            exchange(store, place)
    for store in (*writers, reader):
        exchange(store, place)
    for store in writers:
        save(store, "last")
        with llvs.Exchange(store, place()) as way:
            way.send()
    with llvs.Exchange(reader, place()) as way:
        before = len(place.requests)
        assert len(way.retrieve().retrieved) == 3
        # Digest authentication is requested on each of four connections.
        assert len(place.requests) - before - 4 * place.challenges <= 1 + len(writers) + 2
    for store in writers:
        exchange(store, place)
    newcomer = new_store()
    exchange(newcomer, place)
    assert ids(newcomer) == ids(writers[0]) == ids(reader)


def test_a_network_remote_keeps_its_layout(place: Place, store: llvs.Store, new_store: Any) -> None:
    """A place with packs, one with versions in the interchange layout, and an empty one, which gets packs."""
    fresh = place.beside("r")
    with llvs.Exchange(store, fresh("")) as way:
        assert not way.retrieve().retrieved
        assert len(way.send().sent) == 3
    with llvs.Exchange(new_store(), fresh("packed")) as way:
        assert len(way.retrieve().retrieved) == 3
    with llvs.Exchange(new_store(), fresh("interchange")) as way:
        assert not way.retrieve().retrieved
    with llvs.Exchange(store, place("packed")) as way:
        way.retrieve()
        way.send()
    second = new_store()
    with llvs.Exchange(second, place("")) as way:
        assert len(way.retrieve().retrieved) == 3
    third = new_store()
    other = place.beside("q")
    with llvs.Exchange(store, other("interchange")) as way:
        way.send()
    with llvs.Exchange(third, other("")) as way:
        assert len(way.retrieve().retrieved) == 3
    with llvs.Exchange(new_store(), other("packed")) as way:
        assert not way.retrieve().retrieved


def test_a_bridged_place(place: Place, store: llvs.Store, new_store: Any) -> None:
    """Packs and single files side by side: a device that knows only one of the two receives the versions of the other."""
    beside, single, packs = place.beside("b"), new_store(), new_store()
    with llvs.Exchange(store, beside("bridged")) as way:
        assert not way.retrieve().retrieved and len(way.send().sent) == 3
    with llvs.Exchange(single, beside("interchange")) as way:
        assert len(way.retrieve().retrieved) == 3
        save(single, "single")
        assert len(way.send().sent) == 1
    with llvs.Exchange(store, beside("bridged")) as way:
        assert len(way.retrieve().retrieved) == 1
        assert not way.send().problems
    with llvs.Exchange(packs, beside("packed")) as way:
        result = way.retrieve()
        assert len(result.retrieved) == 4 and not result.problems
    assert ids(store) == ids(single) == ids(packs)


def test_a_coordinator(place: Place, tmp_path: Path) -> None:
    with llvs.Coordinator(tmp_path / "a", exchange=place()) as a, llvs.Coordinator(tmp_path / "b", exchange=place()) as b:
        a.save(insert={"x": b"1"})
        a.sync()
        b.sync()
        assert b["x"] == b"1"
        b.save(insert={"y": b"2"})
        a.save(insert={"z": b"3"})
        for each in (b, a, b):
            each.sync()
        assert a["y"] == b"2" and b["z"] == b"3"


def test_what_lies_there_is_what_the_page_says(tmp_path: Path, new_store: Any) -> None:
    """Reads the place with a plain Python program, written from docs/pack-format.md alone."""
    store = new_store()
    folder = tmp_path / "place"
    for number in range(12):
        save(store, f"n{number}", b"v" * number)
        with llvs.Exchange(store, f"file://{folder}?layout=packed") as way:
            way.retrieve()
            way.send()
    roots = list((folder / "pack1").glob("root-*"))
    assert len(roots) == 1
    store_id, _ = reader.read_root(f"pack1/{roots[0].name}", roots[0].read_bytes())
    found: set[str] = set()
    kinds = set()
    for kind in ("log", "base"):
        for file in (folder / "pack1" / kind).iterdir():
            pack = reader.read_pack(f"pack1/{kind}/{file.name}", file.read_bytes(), [store_id])
            found |= set(pack.versions)
            kinds.add(pack.index.name.kind)
    assert found == ids(store) and kinds == {names.LOG, names.BASE}


@pytest.mark.parametrize("service", usually(KINDS, "bucket", "nginx"), indirect=True)
def test_an_encrypted_place(place: Place, store: llvs.Store, new_store: Any) -> None:
    """Made, opened by another device, refused without keys, and left as it is by what has none or others."""
    second, third, identity = new_store(), new_store(), llvs.exchange.make_identity()
    large = store.make_version(store.most_recent_head, insert={"large": bytes(range(256)) * 8_000})
    with llvs.Exchange(store, place("", passphrase="six words", recipients=[identity.recipient])) as way:
        assert not way.retrieve().problems
        assert len(way.send().sent) == 4
        # This call reads the keys that were made.
        assert not way.retrieve().problems and not way.send().sent
        before = len(place.requests)
        assert not way.retrieve().problems and not way.send().sent
        assert len(place.requests) - before - place.challenges <= 1, "nothing new"
    others = {"identity": llvs.exchange.make_identity().secret}
    for keys in ({}, {"layout": "packed"}, {"layout": "interchange"}, {"passphrase": "seven words"}, others):
        refused = new_store()
        save(refused, "mine")
        for step in ("retrieve", "send"):
            options = {"layout": "", **keys}
            with llvs.Exchange(refused, place(**options)) as way:
                if options["layout"] == "interchange" and step == "retrieve":
                    assert not way.retrieve().retrieved
                    continue
                with pytest.raises(llvs.errors.EncryptionError):
                    getattr(way, step)()
    with llvs.Exchange(second, place(identity=identity.secret)) as way:
        assert not way.retrieve().problems and len(way.members()) == 2
        assert ids(second) == ids(store) and second.at(large)["large"] == store.at(large)["large"]
        save(second, "theirs")
        assert not way.send().problems
    with llvs.Exchange(third, place(passphrase="six words")) as way:
        assert not way.retrieve().problems
    with llvs.Exchange(store, place(passphrase="six words")) as way:
        assert len(way.retrieve().retrieved) == 1
    assert ids(store) == ids(second) == ids(third)


def test_a_place_in_clear_is_not_encrypted_later(place: Place, store: llvs.Store, new_store: Any) -> None:
    exchange(store, place)
    for one in (store, new_store()):
        save(one, "later")
        for step in ("retrieve", "send"):
            with llvs.Exchange(one, place("", passphrase="six words")) as way:
                with pytest.raises(llvs.errors.EncryptionError, match="not encrypted"):
                    getattr(way, step)()
