"""A permanent failure of a service with one file is a problem of that file, and does not end the exchange, unless the service is down."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Callable, Iterator

import llvs
import pytest
from clouds import Cloud, exchange, files, ids, save
from deep import usually
from service import Answer, Request
from test_clouds import KINDS, LAYOUTS, reads


#: The error of an exchange if a service fails.
FAILS = "500|cannot do it just now"


PLACES = ["gdrive", "onedrive", "box", "pcloud", "pcloud by status"]


@pytest.fixture(params=PLACES)
def cloud(request: Any, tmp_path: Path) -> Iterator[Cloud]:
    """The places. pCloud reports a failure by its result, or a server before it by the status."""
    scheme, _, way = request.param.partition(" ")
    cloud = Cloud(KINDS[scheme](), scheme, tmp_path)
    if way:
        cloud.service.failure = Answer(500)
    yield cloud
    cloud.close()


def break_down(cloud: Cloud, monkeypatch: Any, is_bad: Callable[[Request], bool], **headers: str) -> list[Request]:
    """Answers these requests with 500; returns the requests that got this answer."""
    inner, met = cloud.service.answer, []

    def answer(request: Request) -> Answer:
        if not is_bad(request):
            return inner(request)
        met.append(request)
        answered = cloud.service.failure or cloud.service.refusal(500, "generalException", "It does not work.")
        return Answer(answered.status, answered.body, {**answered.headers, **headers})

    monkeypatch.setattr(cloud.service, "answer", answer)
    return met


def place_of(request: Request) -> str:
    """The path that a request concerns, if it names one."""
    return "/".join(filter(None, (request.query.get("path", request.path), request.query.get("filename"))))


def of(cloud: Cloud, node: Any) -> Callable[[Request], bool]:
    """Returns whether a request is about the bytes of a file."""

    def is_about(request: Request) -> bool:
        tickets = getattr(cloud.service, "tickets", {})
        ticket = request.parts[0] == "tickets" and tickets.get(request.parts[1]) == node.id
        return ticket or (request.method == "GET" and (node.id in request.parts or node.name in place_of(request)))

    return is_about


def four(cloud: Cloud, new_store: Any, layout: str) -> set[str]:
    """Versions without predecessors, each sent by another device."""
    made: set[str] = set()
    for number in range(4):
        each = new_store()
        made.add(each.make_version(insert={"k": b"%d" % number}).id)
        with llvs.Exchange(each, cloud.place(layout=layout)) as way:
            way.send()
    return made


@pytest.mark.parametrize("layout", LAYOUTS)
def test_one_file_is_not_given(cloud: Cloud, new_store: Any, layout: str, monkeypatch: Any) -> None:
    """The file is a problem by its name, each time, and the others are received."""
    made = four(cloud, new_store, layout)
    bad = files(cloud, "versions" if layout == "interchange" else "log")[1]
    store, told = new_store(), f"pack1/log/{bad.name}" if layout == "packed" else bad.name
    with llvs.Exchange(store, cloud.place(layout=layout)) as way:
        with monkeypatch.context() as patch:
            met = break_down(cloud, patch, of(cloud, bad))
            for count in (3, 0):
                got = way.retrieve()
                assert len(got.retrieved) == count and [each.name for each in got.problems] == [told]
                assert got.problems[0].code == llvs.ErrorCode.TRANSPORT and bad.name in got.problems[0].reason
            assert len(met) >= 10, "it is tried again before it is told"
        assert len(way.retrieve().retrieved) == 1 and ids(store) == made


def writes_of(name: str) -> Callable[[Request], bool]:
    return lambda request: request.method in ("POST", "PUT") and (name in place_of(request) or name.encode() in request.body)


def test_one_file_is_not_taken(cloud: Cloud, new_store: Any, monkeypatch: Any) -> None:
    """The file is a problem by its name; the others are sent, each once."""
    store = new_store()
    made = {store.make_version(insert={"k": b"%d" % number}, root=True).id for number in range(4)}
    bad = sorted(made)[0]
    with llvs.Exchange(store, cloud.place()) as way:
        way.retrieve()
        with monkeypatch.context() as patch:
            break_down(cloud, patch, writes_of(bad))
            sent = way.send()
        assert [each.name for each in sent.problems] == [bad] and set(sent.sent) == made - {bad}
        assert sent.problems[0].code == llvs.ErrorCode.TRANSPORT and bad in sent.problems[0].reason
        for folder in ("versions", "changes"):
            assert sorted(node.name for node in files(cloud, folder)) == sorted(made - {bad})
        assert way.send().sent == (bad,)
    assert set(exchange(new_store(), cloud.place()).retrieved) == made


def test_every_second_file_is_not_taken(tmp_path: Path, new_store: Any, monkeypatch: Any) -> None:
    """Eight failures in a row are a failure of the service. As many that are not in a row are not: each is a problem by its name."""
    cloud, store = Cloud(KINDS["pcloud"](), "pcloud", tmp_path), new_store()
    for number in range(20):
        store.make_version(insert={"k": b"%d" % number}, root=True)
    order = exchange(store, cloud.place("others")).sent
    # After this failure an upload is not retried.
    cloud.service.failure = Answer(500)
    with llvs.Exchange(store, cloud.place()) as way:
        way.retrieve()
        with monkeypatch.context() as patch:
            break_down(cloud, patch, lambda request: any(writes_of(id)(request) for id in order[::2]))
            sent = way.send()
        assert len(order) == 20 and sent.sent == order[1::2] and {each.name for each in sent.problems} == set(order[::2])
        assert set(way.send().sent) == set(order[::2])
    cloud.close()


@pytest.mark.parametrize("what", ["reading", "writing"])
def test_who_says_how_long_to_wait(cloud: Cloud, new_store: Any, what: str, monkeypatch: Any) -> None:
    """The wait applies to all requests, even if it was demanded for one file, received or sent."""
    store, second = new_store(), new_store()
    made = sorted(store.make_version(insert={"k": b"%d" % number}, root=True).id for number in range(3))
    if what == "reading":
        exchange(store, cloud.place())
    with llvs.Exchange(second if what == "reading" else store, cloud.place()) as way:
        way.retrieve() if what == "writing" else None
        with monkeypatch.context() as patch:
            if what == "reading":
                is_bad = of(cloud, next(node for node in files(cloud, "versions") if node.name == made[1]))
            else:
                is_bad = writes_of(made[1])
            break_down(cloud, patch, is_bad, **{"Retry-After": "1"})
            with pytest.raises(llvs.TransportError, match=FAILS):
                way.retrieve() if what == "reading" else way.send()


def test_what_builds_on_a_file_that_is_not_taken(cloud: Cloud, store: llvs.Store, monkeypatch: Any) -> None:
    exchange(store, cloud.place())
    first = save(store, "first")
    second = save(store, "second")
    other = store.make_version(insert={"z": b"1"}, root=True)
    with llvs.Exchange(store, cloud.place()) as way:
        way.retrieve()
        # The version itself. Its changes were sent.
        name = f'"name":"{first.id}"'.encode()
        break_down(cloud, monkeypatch, lambda request: writes_of(first.id)(request) and (
            f"versions/{first.id}" in place_of(request) or name in request.body and b'{"version":' in request.body))  # fmt: skip
        sent = way.send()
    assert {each.name for each in sent.problems} == {first.id, second.id} and sent.sent == (other.id,)


@pytest.mark.in_turn("layout", "what", "cloud")
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("what", ["reading", "writing"])
def test_the_service_goes_down_meanwhile(cloud: Cloud, new_store: Any, layout: str, what: str, monkeypatch: Any) -> None:
    """The service has just answered a list, and then fails in every request: the exchange ends with the error."""
    made, store, is_down = four(cloud, new_store, layout), new_store(), []
    with llvs.Exchange(store, cloud.place(layout=layout)) as way:
        if what == "writing":
            way.retrieve()
            save(store, "more")

        def is_bad(request: Request) -> bool:
            if what == "reading" and reads(request):
                is_down.append(1)
            if what == "writing" and request.method in ("POST", "PUT"):
                is_down.append(1)
            return bool(is_down)

        with monkeypatch.context() as patch:
            break_down(cloud, patch, is_bad)
            with pytest.raises(llvs.TransportError, match=FAILS):
                way.retrieve() if what == "reading" else way.send()
        assert is_down
        way.retrieve()
        way.send()
    assert made <= ids(store)


@pytest.mark.in_turn("what", "cloud")
@pytest.mark.parametrize("what", ["reading", "writing"])
def test_no_file_at_all(cloud: Cloud, new_store: Any, what: str, monkeypatch: Any) -> None:
    """If eight files or more are requested, and every one fails, the failure is the service's."""
    store, second = new_store(), new_store()
    made = {store.make_version(insert={"k": b"%d" % number}, root=True).id for number in range(8)}
    if what == "reading":
        exchange(store, cloud.place())
    with llvs.Exchange(second if what == "reading" else store, cloud.place()) as way:
        way.retrieve() if what == "writing" else None
        with monkeypatch.context() as patch:
            if what == "reading":
                nodes = [of(cloud, node) for node in files(cloud, "versions")]
                break_down(cloud, patch, lambda request: any(about(request) for about in nodes))
            else:
                break_down(cloud, patch, lambda request: any(writes_of(id)(request) for id in made))
            with pytest.raises(llvs.TransportError, match=FAILS):
                way.retrieve() if what == "reading" else way.send()
    exchange(store, cloud.place())
    assert set(exchange(new_store(), cloud.place()).retrieved) == made


#: The exchange counts failures of any form, so the usual run tests two services.
@pytest.mark.parametrize("cloud", usually(PLACES, "onedrive", "pcloud"), indirect=True)
def test_uploads_are_down_but_for_one(cloud: Cloud, new_store: Any, monkeypatch: Any) -> None:
    """One successful file does not hide the failure: after eight failures in a row the exchange ends."""
    store = new_store()
    made = sorted(store.make_version(insert={"k": b"%d" % number}, root=True).id for number in range(40))
    with llvs.Exchange(store, cloud.place()) as way:
        way.retrieve()
        with monkeypatch.context() as patch:
            met = break_down(cloud, patch, lambda request: any(writes_of(id)(request) for id in made[1:]))
            with pytest.raises(llvs.TransportError, match=FAILS):
                way.send()
            tried = [id for id in made[1:] if sum(writes_of(id)(request) for request in met) > 6]
        assert len(tried) < 20, "the others are not tried each by itself"
    exchange(store, cloud.place())
    assert exchange(new_store(), cloud.place()).retrieved and len(files(cloud, "versions")) == len(made)
