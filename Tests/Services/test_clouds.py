"""Everything that cloud drives have in common, through their stand-ins and in both layouts: transfers and failures.

Numbers are those of the pitfalls of docs/cloud-drives.md.
"""

from __future__ import annotations

import random
import threading
from pathlib import Path
from typing import Any, Callable, Iterator

import llvs
import llvs.testing
import pytest
from box import Box
from clouds import Cloud, exchange, file_in, files, folders, ids, save, send
from drive import GoogleDrive
from onedrive import OneDrive
from pcloud import PCloud
from service import Request

LAYOUTS = ["interchange", "packed"]
KINDS: dict[str, Any] = {"gdrive": GoogleDrive, "onedrive": OneDrive, "box": Box, "pcloud": PCloud}
#: Larger than one request of the service can be.
LARGE = {"gdrive": 7_000_000, "onedrive": 7_000_000, "box": 16 << 20, "pcloud": 7_000_000}


@pytest.fixture(params=KINDS)
def cloud(request: Any, tmp_path: Path) -> Iterator[Cloud]:
    service = KINDS[request.param]
    cloud = Cloud(service(), request.param, tmp_path)
    yield cloud
    cloud.close()


def is_gdrive(cloud: Cloud) -> bool:
    return cloud.scheme == "gdrive"


def writes(request: Request) -> bool:
    """Whether a request writes the bytes of a file."""
    ways = ("/upload/", "/sessions/", "/api/2.0/files/", "/uploadfile", "/upload_write")
    is_way = request.path.startswith(ways) or "content" in request.path
    return is_way and request.method in ("POST", "PUT", "PATCH")


def reads(request: Request) -> bool:
    return request.method == "GET" and (request.query.get("alt") == "media" or request.path.startswith("/tickets/"))


def lists(request: Request) -> bool:
    is_list = request.path in ("/drive/v3/files", "/listfolder") or request.path.endswith(("/children", "/items"))
    return is_list and request.method == "GET"


def lasts(cloud: Cloud, kind: str) -> None:
    if cloud.scheme == "pcloud" and kind == "token expired":
        pytest.skip("its tokens stay until they are revoked: test_pcloud.py")


@pytest.mark.in_turn("layout", "path", "cloud")
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("path", ["notes", "", "a/b%20c/it's%20%C3%A9", "notes/notes", "versions/versions"])
def test_two_stores(cloud: Cloud, store: llvs.Store, new_store: Any, layout: str, path: str) -> None:
    place, second = cloud.place(path, layout), new_store()
    assert len(exchange(store, place).sent) == 3
    assert set(exchange(second, place).retrieved) == ids(store)
    save(second, "theirs")
    save(store, "ours")
    for each in (second, store, second):
        exchange(each, place)
    assert ids(store) == ids(second) and len(ids(store)) == 5


@pytest.mark.parametrize("layout", LAYOUTS)
def test_large_values(cloud: Cloud, new_store: Any, layout: str) -> None:
    """Values larger than one request are sent in a session, except in packs at Box, which are smaller."""
    first, second = new_store(), new_store()
    data = random.Random(1).randbytes(LARGE[cloud.scheme] + 3_000_000)
    version = save(first, "large", data)
    asked = cloud.count(lambda: exchange(first, cloud.place(layout=layout)))
    assert any(each.startswith("PUT") for each in asked) != (cloud.scheme == "box" and layout == "packed")
    exchange(second, cloud.place(layout=layout))
    assert second.at(version)["large"] == data


@pytest.mark.parametrize("layout", LAYOUTS)
def test_requests(cloud: Cloud, store: llvs.Store, new_store: Any, layout: str) -> None:
    place = cloud.place(layout=layout)
    exchange(store, place)
    with llvs.Exchange(store, place) as way:

        def both() -> None:
            way.retrieve()
            way.send()

        both()
        assert len(cloud.count(both)) == 1, "nothing new"
        for number in range(10):
            save(store, f"k{number}")
        asked = cloud.count(both)
        # Single files: an exchange that has just been opened looks for keys once, so that it does not send in clear to an encrypted place.
        # At Box the path to missing folders is walked.
        looks = 3 if cloud.scheme == "box" else 1
        assert len(asked) == 1 + (looks + 20 if layout == "interchange" else 1), "send"
    asked = cloud.count(lambda: exchange(new_store(), place))
    if layout == "packed":
        # At all services except Google Drive a file is read through a redirection or a link. At Box events are requested, and the path is
        # walked.
        reads, way = 3 if is_gdrive(cloud) else 6, 5 if cloud.scheme == "box" else 0
        assert len(asked) <= 3 + reads + way + 1, "a new device: three lists, the root, two packs, and log/ again to send"


#: The requests for lists and the requests for each file when k files are received, by service.
RECEIVES = {"gdrive": (1, 1), "onedrive": (1, 1), "pcloud": (1, 2), "box": (3, 2)}


@pytest.mark.parametrize("count", [1, pytest.param(5, marks=pytest.mark.deep), 10])
def test_requests_of_a_receive(cloud: Cloud, store: llvs.Store, new_store: Any, count: int) -> None:
    """Receives from `count` devices, each of which sent once."""
    place = cloud.place(layout="packed")
    exchange(store, place)
    others = [new_store() for _ in range(count)]
    with llvs.Exchange(store, place) as way:
        way.retrieve()
        way.send()
        for number, other in enumerate(others):
            save(other, f"other{number}")
            with llvs.Exchange(other, place) as theirs:
                theirs.send()
        asked = cloud.count(way.retrieve)
    lists, each = RECEIVES[cloud.scheme]
    assert len(asked) <= lists + each * count, asked
    assert all(ids(other) <= ids(store) for other in others)


def test_a_coordinator_and_a_syncer_of_both_layouts(cloud: Cloud, tmp_path: Path) -> None:
    for layout in LAYOUTS:
        place = cloud.place(layout, layout)
        with llvs.Coordinator(tmp_path / f"a{layout}", exchange=place) as a, llvs.Coordinator(tmp_path / f"b{layout}", exchange=place) as b:
            a.save(insert={"x": b"1"})
            a.sync()
            b.sync()
            b.save(insert={"y": b"2"})
            b.sync()
            a.sync()
            assert a["y"] == b"2" and b["x"] == b"1"


def test_snapshots(cloud: Cloud, store: llvs.Store, new_store: Any) -> None:
    second = new_store()
    with llvs.Exchange(store, cloud.place()) as way:
        assert way.snapshot() is None
        way.put_snapshot()
        way.put_snapshot()
    with llvs.Exchange(second, cloud.place()) as way:
        assert way.restore_snapshot() is not None
    assert ids(second) == ids(store)


#: Takes 10,000 requests.
MANY = "many files are listed and fetched"
#: Checks of the service's own behaviour. The other code of the layout is the same for all services, so each other check is made at one of
#: them.
OF_THE_SERVICE = [
    "a new place is empty", "all version ids can be names", "unusual bytes are sent unchanged", "large files are complete",
    "two transports that send at once lose nothing", "snapshot files are kept, replaced and deleted",
    "files that are sent again are replaced",
]
assert set(OF_THE_SERVICE) <= set(llvs.testing.transport_checks())


@pytest.mark.parametrize("check", [
    check if check in OF_THE_SERVICE else pytest.param(check, marks=pytest.mark.in_turn("cloud", "check"))
    for check in llvs.testing.transport_checks() if check != MANY])
def test_transport(cloud: Cloud, check: str) -> None:
    plan = llvs.testing.FaultPlan()
    assert llvs.testing.check_transport(lambda number: plan.transport(cloud.place(f"place{number}")), only=check)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_stale_lists(cloud: Cloud, store: llvs.Store, new_store: Any, layout: str) -> None:
    """5: files that lists do not show yet are not lost, and arrive later."""
    place, second = cloud.place(layout=layout), new_store()
    for _ in range(3):
        exchange(store, place)
        exchange(second, place)
        save(store, "old")
    for stale in (4, 1, 3):
        cloud.service.stale = stale
        save(store, f"new{stale}")
        for each in (store, second, store):
            with llvs.Exchange(each, place) as way:
                way.retrieve()
                way.send()
    cloud.service.stale = 0
    for each in (second, store, second):
        exchange(each, place)
    assert ids(second) == ids(store) and len(ids(store)) == 9


@pytest.mark.in_turn("layout", "what", "cloud")
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("what", ["trashed", "deleted", "renamed", "inner trashed", "inner deleted"])
def test_a_folder_goes_away(cloud: Cloud, store: llvs.Store, layout: str, what: str, new_store: Any) -> None:
    """27: no version is deleted locally because of it. If everything is gone, nothing is sent until the user allows it; then the versions
    are sent to the folder where others look for them."""
    place = cloud.place(layout=layout)
    exchange(store, place)
    folder = folders(cloud, ("versions" if layout == "interchange" else "log") if "inner" in what else "notes")[0]
    if "deleted" in what or not is_gdrive(cloud) and "trashed" in what:
        cloud.service.tree.delete(folder)
    else:
        folder.trashed, folder.name = "trashed" in what, "others" if what == "renamed" else folder.name
        cloud.service.tree.touch(folder)
    save(store, "after")
    if "inner" not in what:
        with llvs.Exchange(store, place) as way, pytest.raises(llvs.NotFoundError, match="emptied" if layout == "packed" else "is empty"):
            way.retrieve()
        assert not any(node.name == "notes" for node in cloud.service.tree.nodes.values() if not getattr(node, "trashed", False))
        # The user allows to fill it again.
        with llvs.Exchange(store, place, restoration_state=b"new") as way:
            way.retrieve()
            assert way.send().sent
    for _ in range(2):
        with llvs.Exchange(store, place) as way:
            way.retrieve()
            way.send()
    assert len(ids(store)) == 4
    if layout == "interchange" or "inner" not in what:
        assert len(exchange(new_store(), place).retrieved) == 4


def test_the_place_goes_between_list_and_upload(cloud: Cloud, store: llvs.Store, new_store: Any) -> None:
    exchange(store, cloud.place())
    with llvs.Exchange(store, cloud.place()) as way:
        way.retrieve()
        cloud.service.tree.delete(folders(cloud, "notes")[0])
        new = save(store, "after")
        assert way.send().sent == (new.id,)
        way.retrieve()
        assert len(way.send().sent) == 3
    assert len(exchange(new_store(), cloud.place()).retrieved) == 4


def test_a_place_that_must_exist(cloud: Cloud, store: llvs.Store) -> None:
    with llvs.Exchange(store, cloud.place(), create=False) as way:
        with pytest.raises(llvs.NotFoundError, match="Google Drive|OneDrive|Box|pCloud"):
            way.retrieve()
        with pytest.raises(llvs.NotFoundError):
            way.send()
    assert not folders(cloud, "notes")
    exchange(store, cloud.place())
    with llvs.Exchange(store, cloud.place(), create=False) as way:
        way.retrieve()


def test_an_empty_file_is_written_anew(cloud: Cloud, store: llvs.Store, new_store: Any) -> None:
    exchange(store, cloud.place())
    node = files(cloud, "versions")[0]
    node.data = b""
    with llvs.Exchange(store, cloud.place()) as way:
        way.retrieve()
        way.send()
    assert node.data and len(files(cloud, "versions")) == 3
    assert set(exchange(new_store(), cloud.place()).retrieved) == ids(store)


@pytest.mark.in_turn("cloud", "layout", "kind", "when")
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("kind", ["rate limit", "server error", "token expired", "cut answer", "lost answer"])
@pytest.mark.parametrize("when", [writes, reads, lists, lambda request: request.method == "POST", lambda request: True])
def test_faults(cloud: Cloud, store: llvs.Store, new_store: Any, layout: str, kind: str, when: Callable[[Request], bool]) -> None:
    """Each fault is temporary, and no file is made twice."""
    lasts(cloud, kind)
    place, second = cloud.place(layout=layout), new_store()
    cloud.service.inject(kind, 2, when)
    exchange(store, place)
    exchange(second, place)
    assert ids(second) == ids(store) and len(ids(store)) == 3
    names = [(node.parent, node.name) for node in cloud.service.tree.nodes.values()]
    assert len(names) == len(set(names)), "made twice"


@pytest.mark.in_turn("method", "kind", "cloud")
@pytest.mark.parametrize("kind", ["rate limit", "server error", "token expired", "lost answer", "cut answer"])
@pytest.mark.parametrize("method", ["POST", "PUT"])
def test_faults_in_a_session(cloud: Cloud, new_store: Any, kind: str, method: str) -> None:
    """An upload continues where it was cut. If the last answer was lost, the upload counts as finished."""
    lasts(cloud, kind)
    first, second = new_store(), new_store()
    version = save(first, "large", random.Random(2).randbytes(LARGE[cloud.scheme]))
    cloud.service.inject(kind, 2, lambda request: writes(request) and request.method == method)
    place = cloud.place("place", "interchange")
    exchange(first, place)
    exchange(second, place)
    assert second.at(version)["large"] == first.at(version)["large"]
    names = [(node.parent, node.name) for node in cloud.service.tree.nodes.values()]
    assert len(names) == len(set(names))


def test_a_session_that_is_forgotten(cloud: Cloud, new_store: Any, monkeypatch: Any) -> None:
    first, second = new_store(), new_store()
    version = save(first, "large", random.Random(2).randbytes(LARGE[cloud.scheme]))
    place = {"gdrive": "_resume", "pcloud": "_do_upload_write"}.get(cloud.scheme, "_session")
    inner, told = getattr(cloud.service, place), []

    def resume(request: Request, *upload: Any) -> Any:
        if not told:
            told.append(1)
            upload = {"box": ("PUT", "F0", []), "pcloud": upload}.get(cloud.scheme, (None,))
            getattr(cloud.service, {"box": "sessions", "pcloud": "uploads"}.get(cloud.scheme, "faults")).clear()
        return inner(request, *upload)

    monkeypatch.setattr(cloud.service, place, resume)
    exchange(first, cloud.place())
    exchange(second, cloud.place())
    assert told and second.at(version)["large"] == first.at(version)["large"]


def test_too_many_requests_stop_all(cloud: Cloud, store: llvs.Store) -> None:
    """24: Retry-After applies to every exchange of the account. A wait of more than a minute is reported, not waited for."""
    exchange(store, cloud.place())
    inner = cloud.service.rate_limited

    def limited() -> Any:
        answer = inner()
        answer.headers["Retry-After"] = "3600"
        return answer

    cloud.service.rate_limited = limited  # type: ignore[method-assign]
    cloud.service.inject("rate limit", 1)
    with llvs.Exchange(store, cloud.place()) as way, llvs.Exchange(store, cloud.place("others")) as other:
        with pytest.raises(llvs.BusyError):
            way.retrieve()
        before = len(cloud.service.requests)
        with pytest.raises(llvs.BusyError, match="asks for no requests"):
            other.retrieve()
        assert len(cloud.service.requests) == before


def test_rate_limits_that_do_not_end(cloud: Cloud, store: llvs.Store) -> None:
    cloud.service.inject("rate limit", 1_000)
    with llvs.Exchange(store, cloud.place()) as way, pytest.raises(llvs.BusyError):
        way.retrieve()
    assert len(cloud.service.requests) == 5


@pytest.mark.parametrize("layout", LAYOUTS)
def test_rate_limits_of_reading(cloud: Cloud, store: llvs.Store, new_store: Any, layout: str) -> None:
    """A rate limit applies to the account, and is no problem of the requested file."""
    exchange(store, cloud.place(layout=layout))
    second = new_store()
    with llvs.Exchange(second, cloud.place(layout=layout)) as way:
        cloud.service.inject("rate limit", 1_000, reads)
        with pytest.raises(llvs.BusyError, match="Exchange again later"):
            way.retrieve()
        cloud.service.faults.clear()
        assert way.retrieve().retrieved
    assert ids(second) == ids(store)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_quota(cloud: Cloud, store: llvs.Store, new_store: Any, layout: str) -> None:
    """26: a full account is reported, existing files can be read, and sending continues once there is space."""
    place, second = cloud.place(layout=layout), new_store()
    exchange(store, place)
    cloud.service.quota = cloud.service.tree.bytes + 10
    save(store, "more", b"x" * 1_000)
    with llvs.Exchange(store, place) as way:
        way.retrieve()
        with pytest.raises(llvs.StorageError, match="full"):
            way.send()
    assert len(exchange(second, place).retrieved) == 3
    cloud.service.quota = 1 << 50
    exchange(store, place)
    exchange(second, place)
    assert ids(second) == ids(store)


def test_the_bin_of_an_account(cloud: Cloud, store: llvs.Store, new_store: Any) -> None:
    """38: replaced files are in the bin, and use as much space there as was sent once, not more. If they fill the account, that is
    reported, nothing is deleted repeatedly, and sending continues after the user has emptied the bin."""
    tree = cloud.service.tree
    tree.has_bin = not is_gdrive(cloud)  # `files.delete` passes by its bin
    place, second = cloud.place(layout="packed"), new_store()
    sent = 0
    for number in range(20):
        save(store, f"k{number}", random.Random(number).randbytes(300))
        before = tree.bytes
        exchange(store, place)
        sent += tree.bytes - before
    live, asked = tree.bytes - tree.binned, len(cloud.service.requests)
    cloud.service.quota = tree.bytes + 10
    save(store, "more", random.Random(0).randbytes(1_000))
    told = 0
    for _ in range(6):
        with llvs.Exchange(store, place) as way:
            way.retrieve()
            try:
                way.send()
                break
            except llvs.StorageError as error:
                assert "full" in str(error)
                told += 1
    deletes = [each for each in cloud.service.requests[asked:] if each.startswith("DELETE") or "deletefile" in each]
    # Eight packs were merged twice; the pack that replaces the reserved space is deleted at once.
    assert len(deletes) == 16
    if tree.has_bin:
        assert told == 6 and 0 < tree.binned <= live <= sent
        assert tree.bytes <= cloud.service.quota
        assert set(exchange(second, place).retrieved) < ids(store)
        tree.binned = 0
        exchange(store, place)
    else:
        assert told == 1 and not tree.binned
    exchange(second, place)
    assert ids(second) == ids(store)


def test_what_is_no_service(cloud: Cloud, store: llvs.Store) -> None:
    """A network with a sign-in page answers 200 with that page."""
    cloud.service.inject("nothing but HTML", 100)
    name = "(Google Drive|OneDrive|Box|pCloud)"
    with llvs.Exchange(store, cloud.place()) as way, pytest.raises(llvs.TransportError, match=f"is not from {name}"):
        way.retrieve()
