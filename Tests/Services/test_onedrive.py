"""Exchanges through OneDrive's stand-in: its peculiarities.

Numbers are those of the pitfalls of docs/cloud-drives.md.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any, Iterator

import llvs
import pytest
from clouds import Cloud, exchange, file_in, files, folders, ids, save, send
from onedrive import OneDrive
from service import Answer, Request


@pytest.fixture
def drive(tmp_path: Path) -> Iterator[Cloud]:
    cloud = Cloud(OneDrive(), "onedrive", tmp_path)
    yield cloud
    cloud.close()


def test_the_folder_of_the_app(drive: Cloud, store: llvs.Store, new_store: Any) -> None:
    place = drive.place("", space="approot")
    exchange(store, place)
    assert len(exchange(new_store(), place).retrieved) == 3
    assert folders(drive, "versions")[0].parent == drive.service.app.id


def test_names_that_differ_only_in_case(drive: Cloud, new_store: Any) -> None:
    """20: the two are one name at OneDrive. The existing file is not overwritten, and not mistaken for the version."""
    first = new_store()
    save(first, "x")
    exchange(first, drive.place())
    file_in(drive, folders(drive, "changes")[0].id, "AB")
    first.make_version(first.most_recent_head, insert={"y": b"1"}, id="aB")
    with llvs.Exchange(first, drive.place()) as way:
        way.retrieve()
        problems = way.send().problems
    assert [(problem.name, problem.code) for problem in problems] == [("aB", llvs.ErrorCode.FOREIGN_FILE)]
    assert "there is AB" in problems[0].reason
    assert next(node for node in files(drive, "changes") if node.name == "AB").data == b"?"


def test_a_long_list_is_followed_by_its_changes(drive: Cloud, store: llvs.Store, new_store: Any) -> None:
    """6: the feed repeats items, and the last state is valid. It reports the folders on the path, too, which are checked."""
    exchange(store, drive.place())
    for number in range(1_100):
        file_in(drive, folders(drive, "versions")[0].id, f"x {number}")
    second = new_store()
    with llvs.Exchange(second, drive.place()) as way:
        assert not way.retrieve().problems and ids(second) == ids(store)
        assert len(asked := drive.count(way.retrieve)) == 1 and "/delta" in asked[0]
        new = save(store, "new")
        send(store, drive.place())
        drive.service.tree.touch(next(node for node in files(drive, "versions") if node.name == new.id))
        asked = drive.count(way.retrieve)
        assert "/delta" in asked[0] and not any(each.endswith("versions:/children") for each in asked) and new.id in ids(second)
        drive.service.tree.delete(next(node for node in files(drive, "versions") if node.name == new.id))
        renamed = next(node for node in files(drive, "versions") if node.name in ids(store) and node.name != new.id)
        gone = {new.id, renamed.name}
        renamed.name = "y y"
        drive.service.tree.touch(renamed)
        assert not way.retrieve().problems and set(way.send().sent) == gone
        # A folder on the path is moved away: everything is listed, and the place is empty. Without that folder it may be another place.
        for name in ("versions", "notes"):
            folder = folders(drive, name)[0]
            folder.name = "elsewhere"
            drive.service.tree.touch(folder)
            if name == "versions":
                assert not way.retrieve().problems
            else:
                with pytest.raises(llvs.NotFoundError, match="is empty"):
                    way.retrieve()
            folder.name = name
            drive.service.tree.touch(folder)
            assert not way.retrieve().problems and not way.send().sent, "all is there again"


def test_changes_that_the_service_has_forgotten(drive: Cloud, store: llvs.Store, new_store: Any) -> None:
    """6: the answer is 410, and all files are listed."""
    exchange(store, drive.place())
    for number in range(1_100):
        file_in(drive, folders(drive, "versions")[0].id, f"x {number}")
    second = new_store()
    with llvs.Exchange(second, drive.place()) as way:
        way.retrieve()
        new = save(store, "new")
        send(store, drive.place())
        drive.service.oldest_mark = 1_000_000
        asked = drive.count(way.retrieve)
        assert "/delta" in asked[0] and any(each.endswith("versions:/children") for each in asked) and new.id in ids(second)


def test_bandwidth_that_is_used_up(drive: Cloud, store: llvs.Store, monkeypatch: Any) -> None:
    exchange(store, drive.place())
    answer = drive.service.refusal(509, "bandwidthLimitExceeded", "No.")
    answer.headers["Retry-After"] = "3600"
    monkeypatch.setattr(drive.service, "_children", lambda *_: answer)
    with llvs.Exchange(store, drive.place()) as way, pytest.raises(llvs.BusyError):
        way.retrieve()


@pytest.mark.parametrize("status", [401, 404, 410])
def test_addresses_that_serve_no_more(drive: Cloud, store: llvs.Store, new_store: Any, status: int) -> None:
    """Addresses of a listing are valid for an hour. After that the bytes are requested from the service, and nothing is missing."""
    place, second, service = drive.place(layout="packed"), new_store(), drive.service
    exchange(store, place)
    inner, told = service._download, []

    def download(request: Request, ticket: str) -> Answer:
        if not told:
            told.append(ticket)
            return Answer(status)
        return inner(request, ticket)

    service._download = download
    assert set(exchange(second, place).retrieved) == ids(store) and told
    # Addresses of files that may be overwritten are not kept: single files are read from the service.
    exchange(store, drive.place("single"))
    asked = drive.count(lambda: exchange(new_store(), drive.place("single")))
    assert sum(each.endswith("/content") for each in asked) == 2 * len(ids(store)), asked


def test_a_large_file_that_is_there_and_not_given(drive: Cloud, new_store: Any, monkeypatch: Any) -> None:
    """The answer to the last part is lost, and the library cannot decide whether the file is the one that was sent. That is reported; the
    file is not sent again."""
    store, inner, written = new_store(), drive.service.answer, []
    large = store.make_version(insert={"large": random.Random(5).randbytes(5_000_000)})

    def answer(request: Request) -> Answer:
        if request.method == "PUT" and request.parts[0] == "sessions":
            written.append(request.path)
        if request.method == "GET" and (request.path.endswith("/content") or request.parts[0] == "tickets"):
            return drive.service.refusal(500, "generalException", "It does not work.")
        return inner(request)

    with llvs.Exchange(store, drive.place()) as way:
        way.retrieve()
        with monkeypatch.context() as patch:
            patch.setattr(drive.service, "answer", answer)
            drive.service.inject("lost answer", 1, lambda request: request.method == "PUT" and request.parts[0] == "sessions")
            sent = way.send()
        assert not sent.sent and [each.name for each in sent.problems] == [large.id] and len(set(written)) == 1
        before = [(node.id, node.version) for node in files(drive, "changes")]
        assert way.send().sent == (large.id,)
        assert [(node.id, node.version) for node in files(drive, "changes")] == before
