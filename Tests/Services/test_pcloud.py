"""Exchanges through pCloud's stand-in: what is its own.

Numbers are those of the pitfalls of docs/cloud-drives.md.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Iterator

import llvs
import pytest
from clouds import Cloud, exchange, file_in, files, folders, ids, save, send
from pcloud import PCloud
from service import Answer


@pytest.fixture
def pcloud(tmp_path: Path) -> Iterator[Cloud]:
    cloud = Cloud(PCloud(), "pcloud", tmp_path)
    yield cloud
    cloud.close()


def test_a_token_that_was_revoked(pcloud: Cloud, store: llvs.Store) -> None:
    """There is nothing to renew it with; who signed in again is read from the file."""
    pcloud.sign_in(refresh_token=None)
    with llvs.Exchange(store, pcloud.place()) as way:
        way.retrieve()
        pcloud.service.expire_tokens()
        with pytest.raises(llvs.PermissionDeniedError, match="Sign in again"):
            way.retrieve()
        pcloud.sign_in(refresh_token=None)
        way.retrieve()


def test_regions(tmp_path: Path, store: llvs.Store) -> None:
    for region in ("us", "eu"):
        llvs.Exchange(store, llvs.Remote(f"pcloud:///notes?region={region}", token="x")).close()
    with pytest.raises(llvs.InvalidArgumentError, match="region is none of eu, us"):
        llvs.Exchange(store, llvs.Remote("pcloud:///notes?region=moon", token="x"))
    with pytest.raises(llvs.InvalidArgumentError):
        llvs.Exchange(store, llvs.Remote("box:///notes?region=eu", token="x"))


def test_what_is_made_at_once_is_noticed(pcloud: Cloud, store: llvs.Store, new_store: Any) -> None:
    """An upload under a name that is taken gets another name, and is removed: what is there is looked at before it is replaced."""
    exchange(store, pcloud.place())
    first, second = new_store(), new_store()
    for each in (first, second):
        exchange(each, pcloud.place())
    one = first.make_version(first.most_recent_head, insert={"x": b"1"}, id="same")
    with llvs.Exchange(second, pcloud.place()) as way:
        way.retrieve()
        second.make_version(second.most_recent_head, insert={"x": b"2"}, id="same")
        send(first, pcloud.place())
        asked = pcloud.count(way.send)
    assert asked.count("GET /deletefile") == asked.count("GET /checksumfile") == 2
    assert sum(node.name.startswith("same") for node in files(pcloud, "versions")) == 1
    assert sum(node.name.startswith("same") for node in files(pcloud, "changes")) == 1
    assert one.id == "same"


def test_a_long_list_is_followed_by_its_changes(pcloud: Cloud, store: llvs.Store, new_store: Any) -> None:
    """6: the feed is a hint alone; `reset` means that all is listed."""
    exchange(store, pcloud.place())
    for number in range(1_100):
        file_in(pcloud, folders(pcloud, "versions")[0].id, f"x {number}")
    second = new_store()
    with llvs.Exchange(second, pcloud.place()) as way:
        way.retrieve()
        assert pcloud.count(way.retrieve) == ["GET /diff"]
        file_in(pcloud, "0", "elsewhere")
        assert set(pcloud.count(way.retrieve)) == {"GET /diff"}
        new = save(store, "new")
        send(store, pcloud.place())
        # The list is behind the feed: it is asked for again until it is not.
        pcloud.service.stale = 2
        way.retrieve()
        assert new.id not in ids(second)
        pcloud.service.stale = 0
        way.retrieve()
        assert new.id in ids(second)
        later = save(store, "later")
        send(store, pcloud.place())
        pcloud.service.forgotten = 1 << 30
        assert "GET /listfolder" in pcloud.count(way.retrieve) and later.id in ids(second)


def test_links_that_serve_no_more(pcloud: Cloud, store: llvs.Store, new_store: Any, monkeypatch: Any) -> None:
    exchange(store, pcloud.place())
    inner, told = pcloud.service.answer, []

    def answer(request: Any) -> Answer:
        if request.parts[:1] == ["tickets"]:
            assert "authorization" not in request.headers, "a link takes no token"
            if len(told) < 1:
                told.append(1)
                return Answer(410)
        return inner(request)

    monkeypatch.setattr(pcloud.service, "answer", answer)
    assert len(exchange(new_store(), pcloud.place()).retrieved) == 3 and told


@pytest.mark.parametrize(
    "result, error", [(1000, llvs.PermissionDeniedError), (2003, llvs.PermissionDeniedError), (1234, llvs.TransportError)]
)
def test_errors_inside_answers(pcloud: Cloud, store: llvs.Store, monkeypatch: Any, result: int, error: type[Exception]) -> None:
    """The status is 200 whatever happened."""
    monkeypatch.setattr(pcloud.service, "_do_listfolder", lambda *_: {"result": result, "error": "No."})
    with llvs.Exchange(store, pcloud.place()) as way, pytest.raises(error):
        way.retrieve()


def test_a_file_stands_where_a_folder_should(pcloud: Cloud, store: llvs.Store) -> None:
    file_in(pcloud, "0", "notes")
    with llvs.Exchange(store, pcloud.place()) as way:
        assert not way.retrieve().problems
        problems = way.send().problems
    told = [problem.reason for problem in problems if problem.code == llvs.ErrorCode.FOREIGN_FILE]
    assert told and all("a file has that name" in reason for reason in told)
