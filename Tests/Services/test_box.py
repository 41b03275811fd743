"""Exchanges through Box's stand-in: its peculiarities.

Numbers are those of the pitfalls of docs/cloud-drives.md.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any, Iterator

import llvs
import pytest
from moved_clock import MovedClock
from box import Box
from clouds import Cloud, exchange, file_in, files, folders, ids, save, send
from service import Answer, Request


@pytest.fixture
def box(tmp_path: Path) -> Iterator[Cloud]:
    cloud = Cloud(Box(), "box", tmp_path)
    yield cloud
    cloud.close()


def lists(asked: list[str]) -> int:
    return sum(each.endswith("/items") for each in asked)


def test_names_that_differ_only_in_case(box: Cloud, new_store: Any) -> None:
    """20: the two are one name at Box. The existing file is not overwritten, and not mistaken for the version."""
    first = new_store()
    save(first, "x")
    exchange(first, box.place())
    file_in(box, folders(box, "changes")[0].id, "AB")
    first.make_version(first.most_recent_head, insert={"y": b"1"}, id="aB")
    with llvs.Exchange(first, box.place()) as way:
        way.retrieve()
        problems = way.send().problems
    assert [(problem.name, problem.code) for problem in problems] == [("aB", llvs.ErrorCode.FOREIGN_FILE)]
    assert "there is AB" in problems[0].reason
    assert next(node for node in files(box, "changes") if node.name == "AB").data == b"?"


def test_folders_in_another_case(box: Cloud, store: llvs.Store, new_store: Any) -> None:
    """20: a user has created the folder in other letters."""
    box.service.tree.add("0", "NOTES", None)
    exchange(store, box.place())
    assert len(exchange(new_store(), box.place()).retrieved) == 3
    assert not folders(box, "notes") and len(folders(box, "NOTES")) == 1


@pytest.mark.parametrize("layout", ["interchange", "packed"])
def test_events_are_a_hint(box: Cloud, store: llvs.Store, new_store: Any, layout: str) -> None:
    """6: a directory with changes of others is listed. After own changes, and changes elsewhere, no directory is listed."""
    place, second = box.place(layout=layout), new_store()
    exchange(store, place)
    with llvs.Exchange(second, place) as way:
        way.retrieve()
        way.send()
        mine = save(second, "mine")
        way.send()
        file_in(box, "0", "elsewhere")
        box.service.tree.add("0", "a folder", None)
        assert box.count(way.retrieve)[-1:] == ["GET /2.0/events"] and not lists(box.count(way.retrieve))
        exchange(store, place)
        new = save(store, "new")
        send(store, place)
        # Each directory with something new, once.
        assert lists(box.count(way.retrieve)) == (2 if layout == "interchange" else 1)
        assert {mine.id, new.id} <= ids(second) & ids(store)


def test_lists_that_are_behind_the_events(box: Cloud, store: llvs.Store, new_store: Any) -> None:
    """5, 6: files that an event named are searched again until a list shows them."""
    exchange(store, box.place())
    second = new_store()
    with llvs.Exchange(second, box.place()) as way:
        way.retrieve()
        new = save(store, "new")
        send(store, box.place())
        box.service.stale = 2
        way.retrieve()
        assert new.id not in ids(second)
        box.service.stale = 0
        way.retrieve()
        assert new.id in ids(second)


def test_events_that_are_forgotten(box: Cloud, store: llvs.Store, new_store: Any, monkeypatch: Any) -> None:
    """6: the position is refused, and all directories are listed."""
    exchange(store, box.place())
    second, inner = new_store(), box.service._events
    with llvs.Exchange(second, box.place()) as way:
        way.retrieve()
        new = save(store, "new")
        send(store, box.place())
        refusal = box.service.refusal(400, "invalid_parameter", "No such stream_position.")
        monkeypatch.setattr(box.service, "_events", lambda request: refusal)
        way.retrieve()
        assert new.id in ids(second)
        monkeypatch.setattr(box.service, "_events", inner)


def test_lists_of_many_pages(box: Cloud, store: llvs.Store, new_store: Any) -> None:
    exchange(store, box.place())
    for number in range(1_100):
        file_in(box, folders(box, "versions")[0].id, f"x {number}")
    new = save(store, "new")
    send(store, box.place())
    second = new_store()
    with llvs.Exchange(second, box.place()) as way:
        way.retrieve()
        assert new.id in ids(second)
        asked = box.count(way.retrieve)
        assert asked == ["GET /2.0/events"]


def test_a_file_that_is_not_ready(box: Cloud, store: llvs.Store, new_store: Any) -> None:
    """The service answers 202 with Retry-After."""
    exchange(store, box.place())
    box.service.preparing = {node.id for node in files(box, "changes")[:1]}
    assert len(exchange(new_store(), box.place()).retrieved) == 3
    assert not box.service.preparing


def test_a_name_that_is_reserved_for_a_moment(box: Cloud, store: llvs.Store, monkeypatch: Any) -> None:
    inner, told = box.service._upload, []

    def upload(request: Request, old: Any) -> Answer:
        if not told:
            told.append(1)
            return box.service.refusal(409, "name_temporarily_reserved", "Two requests have that name.")
        return inner(request, old)

    monkeypatch.setattr(box.service, "_upload", upload)
    assert len(exchange(store, box.place()).sent) == 3 and told


def test_bytes_that_are_damaged_on_their_way(box: Cloud, store: llvs.Store, new_store: Any, monkeypatch: Any) -> None:
    """The upload states a digest, and the answer has the digest of the stored bytes."""
    inner, told = box.service._upload, []

    def upload(request: Request, old: Any) -> Answer:
        if not told:
            told.append(1)
            before, request.body = request.body, request.body.replace(b"octet-stream\r\n\r\n[", b"octet-stream\r\n\r\n{", 1)
            assert request.body != before
        return inner(request, old)

    monkeypatch.setattr(box.service, "_upload", upload)
    exchange(store, box.place())
    assert told and len(exchange(new_store(), box.place()).retrieved) == 3


@pytest.mark.parametrize("kind", ["lost answer", "server error"])
def test_a_commit_that_gets_lost(box: Cloud, new_store: Any, kind: str) -> None:
    first, second = new_store(), new_store()
    version = save(first, "large", random.Random(3).randbytes(21_000_000))
    box.service.inject(kind, 1, lambda request: request.path.endswith("/commit"))
    exchange(first, box.place())
    exchange(second, box.place())
    assert second.at(version)["large"] == first.at(version)["large"]
    names = [(node.parent, node.name) for node in box.service.tree.nodes.values()]
    assert len(names) == len(set(names))


def test_parts_that_are_there_already(box: Cloud, new_store: Any, monkeypatch: Any) -> None:
    """An answer was lost. The service refuses a part that it has, so it is asked for its parts."""
    inner, told = box.service._session, []

    def session(request: Request, method: str, id: str, what: list[str]) -> Answer:
        answer = inner(request, method, id, what)
        if method == "PUT" and not told:
            told.append(1)
            return box.service.refusal(409, "range_overlaps_existing_range", "It is there.")
        return answer

    monkeypatch.setattr(box.service, "_session", session)
    first, second = new_store(), new_store()
    version = save(first, "large", random.Random(4).randbytes(21_000_000))
    exchange(first, box.place())
    exchange(second, box.place())
    assert told and second.at(version)["large"] == first.at(version)["large"]


def test_a_file_stands_where_a_folder_should(box: Cloud, store: llvs.Store) -> None:
    file_in(box, "0", "notes")
    with llvs.Exchange(store, box.place()) as way:
        assert not way.retrieve().problems
        problems = way.send().problems
    told = [problem.reason for problem in problems if problem.code == llvs.ErrorCode.FOREIGN_FILE]
    assert told and all("a file has that name" in reason for reason in told)


def test_uploads_are_counted_apart(box: Cloud, store: llvs.Store, clock: MovedClock) -> None:
    """Without a rate in the URL: 12 requests a second, among them 3 uploads. Box permits 240 uploads in a minute."""
    for number in range(8):
        save(store, f"k{number}")
    inner, at = box.service._upload, []
    # The library continues after the pauses only, however slow the machine is.
    clock.freeze()

    def upload(*given: Any) -> Answer:
        at.append(clock.now())
        return inner(*given)

    box.service._upload = upload
    with llvs.Exchange(store, llvs.Remote(f"box:///notes?endpoint={box.server.url}&layout=interchange", token_file=box.tokens)) as way:
        way.send()
    assert len(at) >= 22
    # 3 immediately, then 3 a second.
    assert all(later - first >= 0.8 * (count - 3) / 3 for first, (count, later) in zip(at[:1] * 99, enumerate(at, 1)))
    assert at[-1] - at[0] < 1.5 * len(at) / 3
