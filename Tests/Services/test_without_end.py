"""Services whose answers never end, although each single one is valid: the call ends, and reports it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Callable

import llvs
import pytest
from box import Box
from clouds import Cloud, exchange, file_in, folders, save, send
from containers import Container
from drive import GoogleDrive
from onedrive import OneDrive
from pcloud import PCloud
from service import Answer, Request

LARGE = 7_000_000


def lies(cloud: Any, monkeypatch: pytest.MonkeyPatch, lie: Callable[[Request], Any]) -> list[str]:
    """Lets a function answer before the service does. The list gets a line for each such answer."""
    answer, told = cloud.service.answer, []

    def answers(request: Request) -> Answer:
        found = lie(request)
        if found is None:
            return answer(request)
        told.append(request.path)
        assert len(told) < 500, "it goes on for ever"
        return found

    monkeypatch.setattr(cloud.service, "answer", answers)
    return told


def sends(store: llvs.Store, place: llvs.Remote) -> None:
    with llvs.Exchange(store, place) as way, pytest.raises(llvs.Error, match="Writing"):
        way.send()


def test_a_session_of_google_drive_that_goes_back_and_forth(new_store: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cloud, store, turn = Cloud(GoogleDrive(), "gdrive", tmp_path), new_store(), [0]
    save(store, "large", bytes(range(256)) * (LARGE // 256))

    def lie(request: Request) -> Any:
        if request.method != "PUT" or not request.path.startswith("/upload/"):
            return None
        turn[0] += "*/" in request.headers.get("content-range", "")
        return Answer(308, b"", {"Range": f"bytes=0-{262_143 * (1 + turn[0] % 2)}"})

    told = lies(cloud, monkeypatch, lie)
    sends(store, cloud.place())
    assert told
    cloud.close()


def test_a_session_of_onedrive_that_goes_back_and_forth(new_store: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cloud, store, turn = Cloud(OneDrive(), "onedrive", tmp_path), new_store(), [0]
    save(store, "large", bytes(range(256)) * (LARGE // 256))

    def lie(request: Request) -> Any:
        if "range" in request.headers.get("content-range", "range") and not turn[0]:
            return None
        if request.method == "PUT" and "content-range" in request.headers:
            turn[0] += 1
            return cloud.service.refusal(416, "invalidRange", "Not so.")
        if turn[0] and request.method == "GET":
            return Answer.of({"nextExpectedRanges": [f"{327_680 * (1 + turn[0] % 2)}-"]})
        return None

    told = lies(cloud, monkeypatch, lie)
    sends(store, cloud.place())
    assert told
    cloud.close()


def test_parts_of_an_upload_to_box_without_an_end(new_store: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cloud, store = Cloud(Box(), "box", tmp_path), new_store()
    save(store, "large", bytes(range(256)) * (21_000_000 // 256))

    def lie(request: Request) -> Any:
        if request.method != "GET" or not request.path.endswith("/parts"):
            return None
        part = {"part_id": "ABC", "offset": 0, "size": 1, "sha1": "00"}
        return Answer.of({"entries": [part] * 10, "total_count": 10**9})

    told = lies(cloud, monkeypatch, lie)
    sends(store, cloud.place())
    assert 0 < len(told) < 20
    cloud.close()


@pytest.mark.parametrize("what", ["listing", "looking for files"])
def test_folders_of_google_drive_that_are_found_and_are_not_there(
    store: llvs.Store, new_store: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """A query lists the folders, and each query for their contents says that they do not exist (404). It is repeated three times."""
    cloud, second = Cloud(GoogleDrive(), "gdrive", tmp_path), new_store()
    place = cloud.place()
    with llvs.Exchange(store, place) as way:
        way.send()

    def lie(request: Request) -> Any:
        query = request.query.get("q", "")
        if query.startswith("((" if what == "listing" else "('"):
            return cloud.service.refusal(404, "notFound", "File not found: .")
        if what != "listing" and request.query.get("alt") == "media":
            return cloud.service.refusal(404, "notFound", "File not found.")
        return None

    told = lies(cloud, monkeypatch, lie)
    with llvs.Exchange(second, place) as way, pytest.raises(llvs.TransportError, match="its folders change all the time"):
        way.retrieve()
    assert sum(path == "/drive/v3/files" for path in told) == 3
    cloud.close()


KINDS: dict[str, Any] = {"gdrive": GoogleDrive, "onedrive": OneDrive, "box": Box, "pcloud": PCloud}


@pytest.mark.parametrize("scheme", ["gdrive", "onedrive", "box", "cloudkit", "cloudkit-public"])
@pytest.mark.parametrize("how, most", [("each page is its own next one", 10), ("in a circle", 10), ("on and on with nothing", 110)])
def test_lists_that_do_not_end(
    store: llvs.Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scheme: str, how: str, most: int
) -> None:
    """(pCloud's lists have one page.)"""
    cloud: Any = Container(tmp_path) if "cloudkit" in scheme else Cloud(KINDS[scheme](), scheme, tmp_path)
    turn, part = [0], {"each page is its own next one": 1, "in a circle": 3, "on and on with nothing": 10**6}[how]
    given = [{"name": "x", "id": "x", "recordName": "x"}] if how == "in a circle" else []

    def lie(request: Request) -> Any:
        again = f"again{turn[0] % part}"
        if scheme == "gdrive" and request.path == "/drive/v3/files" and request.method == "GET":
            found: dict[str, Any] = {"files": given, "nextPageToken": again}
        elif scheme == "box" and request.path.endswith("/items"):
            found = {"entries": given, "next_marker": again}
        elif scheme == "onedrive" and request.path.endswith("/children"):
            found = {"value": given, "@odata.nextLink": f"{request.origin}/v1.0/me/drive/root/children?{again}"}
        elif scheme == "cloudkit" and request.path.endswith("/changes/zone"):
            found = {"zones": [{"records": given, "syncToken": again, "moreComing": True}]}
        elif scheme == "cloudkit-public" and request.path.endswith("/records/query"):
            found = {"records": given, "continuationMarker": again}
        else:
            return None
        turn[0] += 1
        return Answer.of(found)

    told = lies(cloud, monkeypatch, lie)
    place = cloud.place("public") if scheme == "cloudkit-public" else cloud.place()
    with llvs.Exchange(store, place) as way, pytest.raises(llvs.TransportError, match="does not end"):
        way.retrieve()
    assert 0 < len(told) < most
    cloud.close()


@pytest.mark.parametrize("how", ["shorter", "other bytes"])
@pytest.mark.parametrize("layout", ["interchange", "packed"])
@pytest.mark.parametrize("scheme", ["gdrive", "onedrive", "box", "pcloud"])
def test_files_that_a_service_keeps_torn(
    store: llvs.Store, new_store: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scheme: str, layout: str, how: str
) -> None:
    """The service states what it stored, which is noticed immediately; the file is sent again. (At OneDrive only the size is compared.)"""
    cloud, second = Cloud(KINDS[scheme](), scheme, tmp_path), new_store()
    tree = cloud.service.tree  # type: ignore[attr-defined]
    add, write, torn = tree.add, tree.write, [0]

    def tear(data: Any) -> Any:
        if not data:
            return data
        torn[0] += 1
        return data[:-1] if how == "shorter" else bytes([data[0] ^ 1]) + data[1:]

    with monkeypatch.context() as lying:
        lying.setattr(tree, "add", lambda parent, name, data, *rest, **named: add(parent, name, tear(data), *rest, **named))
        lying.setattr(tree, "write", lambda node, data, *rest: write(node, tear(data), *rest))
        if scheme == "onedrive" and how == "other bytes":
            return cloud.close()
        with llvs.Exchange(store, cloud.place(layout=layout)) as way, pytest.raises(llvs.TransportError, match="stores .*bytes"):
            way.send()
    assert torn[0]
    for each in (store, second, store, second):
        with llvs.Exchange(each, cloud.place(layout=layout)) as way:
            way.retrieve()
            way.send()
    assert {version.id for version in second} == {version.id for version in store}
    cloud.close()


@pytest.mark.parametrize(
    "scheme, how", [*((scheme, "on and on") for scheme in KINDS), ("gdrive", "in a circle"), ("onedrive", "in a circle")]
)
def test_feeds_that_do_not_end(
    store: llvs.Store, new_store: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scheme: str, how: str
) -> None:
    """The feed is abandoned after a hundred pages, or if a page leads to itself, and all files are listed."""
    cloud, second, turn, is_lying = Cloud(KINDS[scheme](), scheme, tmp_path), new_store(), [0], [False]
    exchange(store, cloud.place())
    if scheme != "box":
        for number in range(1_100):
            file_in(cloud, folders(cloud, "versions")[0].id, f"x {number}")

    def lie(request: Request) -> Any:
        query, path = request.query, request.path
        if not is_lying[0] or "latest" in query.values() or "now" in query.values() or query.get("last") == "0":
            return None
        turn[0] += how == "on and on"
        if scheme == "gdrive" and path == "/drive/v3/changes":
            return Answer.of({"changes": [], "nextPageToken": f"{10**6 + turn[0]}"})
        if scheme == "onedrive" and "/delta" in path:
            return Answer.of({"value": [], "@odata.nextLink": f"{request.origin}/v1.0/me/drive/root/delta?token={10**6 + turn[0]}"})
        if scheme == "box" and path == "/2.0/events":
            return Answer.of({"entries": [{"event_type": "NOTHING"}], "next_stream_position": 10**6 + turn[0]})
        if scheme == "pcloud" and path == "/diff":
            return Answer.of({"result": 0, "entries": [{"event": "modifyuserinfo"}], "diffid": 10**6 + turn[0]})
        return None

    told = lies(cloud, monkeypatch, lie)
    with llvs.Exchange(second, cloud.place()) as way:
        way.retrieve()
        new = save(store, "new")
        send(store, cloud.place())
        is_lying[0] = True
        way.retrieve()
        assert new.id in {version.id for version in second} and 0 < len(told) <= 202
    cloud.close()
