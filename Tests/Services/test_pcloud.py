"""Exchanges through pCloud's stand-in: its peculiarities.

Numbers are those of the pitfalls of docs/cloud-drives.md.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any, Callable, Iterator

import llvs
import pytest
from clouds import Cloud, exchange, file_in, files, folders, ids, save, send
from pcloud import PCloud
from service import Answer, Request


@pytest.fixture
def pcloud(tmp_path: Path) -> Iterator[Cloud]:
    cloud = Cloud(PCloud(), "pcloud", tmp_path)
    yield cloud
    cloud.close()


def test_a_token_that_was_revoked(pcloud: Cloud, store: llvs.Store) -> None:
    """The token cannot be renewed. After the user has signed in again, the new one is read from the file."""
    pcloud.sign_in(refresh_token=None)
    with llvs.Exchange(store, pcloud.place()) as way:
        way.retrieve()
        pcloud.service.expire_tokens()
        with pytest.raises(llvs.errors.PermissionDeniedError, match="Sign in again.*need region=eu"):
            way.retrieve()
        pcloud.sign_in(refresh_token=None)
        way.retrieve()


def test_regions(tmp_path: Path, store: llvs.Store) -> None:
    for region in ("us", "eu"):
        llvs.Exchange(store, llvs.Remote(f"pcloud:///notes?region={region}", token="x")).close()
    with pytest.raises(llvs.errors.InvalidArgumentError, match="region is not one of eu, us"):
        llvs.Exchange(store, llvs.Remote("pcloud:///notes?region=moon", token="x"))
    with pytest.raises(llvs.errors.InvalidArgumentError):
        llvs.Exchange(store, llvs.Remote("box:///notes?region=eu", token="x"))


def test_what_is_made_at_once_is_noticed(pcloud: Cloud, store: llvs.Store, new_store: Any) -> None:
    """An upload under a name in use gets another name, and is removed. The existing file is checked before it is replaced."""
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
    """6: the feed is only a hint; after `reset` all files are listed."""
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
        # The list is behind the feed, so it is requested again until it is complete.
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
    "result, error", [(1000, llvs.errors.PermissionDeniedError), (2003, llvs.errors.PermissionDeniedError), (1234, llvs.TransportError)]
)
def test_errors_inside_answers(pcloud: Cloud, store: llvs.Store, monkeypatch: Any, result: int, error: type[Exception]) -> None:
    """The status is 200 in every case."""
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


LAYOUTS = ["interchange", "packed"]


def refuse(pcloud: Cloud, monkeypatch: Any, result: int, is_bad: Callable[[str], bool]) -> None:
    """Refuses the links of files."""
    inner = pcloud.service._do_getfilelink  # type: ignore[attr-defined]

    def link(request: Any, given: dict[str, str]) -> dict[str, Any]:
        if is_bad(given["path"]):
            raise pcloud.service._refuse(result, "No.")  # type: ignore[attr-defined]
        found: dict[str, Any] = inner(request, given)
        return found

    monkeypatch.setattr(pcloud.service, "_do_getfilelink", link)


def four(pcloud: Cloud, new_store: Any, layout: str) -> set[str]:
    """Versions without predecessors, each sent by another device."""
    made: set[str] = set()
    for number in range(4):
        each = new_store()
        made.add(each.make_version(insert={"k": b"%d" % number}).id)
        with llvs.Exchange(each, pcloud.place(layout=layout)) as way:
            way.send()
    return made


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("result, code", [(2003, "PERMISSION"), (7010, "TRANSPORT"), (5002, "TRANSPORT")])
def test_one_file_is_not_given(pcloud: Cloud, new_store: Any, layout: str, result: int, code: str, monkeypatch: Any) -> None:
    """The file is a problem by its name, and the others are received."""
    made = four(pcloud, new_store, layout)
    bad = files(pcloud, "versions" if layout == "interchange" else "log")[1].name
    store, told = new_store(), f"pack1/log/{bad}" if layout == "packed" else bad
    with llvs.Exchange(store, pcloud.place(layout=layout)) as way:
        with monkeypatch.context() as patch:
            refuse(pcloud, patch, result, lambda path: path.endswith(bad))
            got = way.retrieve()
            assert len(got.retrieved) == 3 and [each.name for each in got.problems] == [told]
            assert got.problems[0].code == llvs.ErrorCode[code] and bad in got.problems[0].reason
            got = way.retrieve()
            assert not got.retrieved and [each.name for each in got.problems] == [told]
        assert len(way.retrieve().retrieved) == 1 and ids(store) == made


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("result, error", [(2000, llvs.errors.PermissionDeniedError), (4000, llvs.BusyError), (2008, llvs.StorageError)])
def test_what_is_said_of_one_file_and_is_of_all(
    pcloud: Cloud, new_store: Any, layout: str, result: int, error: type[Exception], monkeypatch: Any
) -> None:
    four(pcloud, new_store, layout)
    bad = files(pcloud, "versions" if layout == "interchange" else "log")[1].name
    refuse(pcloud, monkeypatch, result, lambda path: path.endswith(bad))
    with llvs.Exchange(new_store(), pcloud.place(layout=layout)) as way, pytest.raises(error):
        way.retrieve()


def test_none_of_many_files_is_given(pcloud: Cloud, store: llvs.Store, new_store: Any, monkeypatch: Any) -> None:
    """The service has a failure then; the files are no problems of their own."""
    for number in range(7):
        save(store, f"k{number}")
    exchange(store, pcloud.place())
    refuse(pcloud, monkeypatch, 5002, lambda path: True)
    with llvs.Exchange(new_store(), pcloud.place()) as way, pytest.raises(llvs.TransportError, match="cannot do it just now"):
        way.retrieve()


def test_one_file_is_not_given_and_all_shall_wait(pcloud: Cloud, store: llvs.Store, new_store: Any, monkeypatch: Any) -> None:
    """A wait that the service demands applies to all requests, even if it was demanded for one file."""
    for number in range(3):
        save(store, f"k{number}")
    exchange(store, pcloud.place())
    bad, inner = files(pcloud, "versions")[0].name, pcloud.service._do_getfilelink  # type: ignore[attr-defined]

    def link(request: Any, given: dict[str, str]) -> dict[str, Any]:
        if not given["path"].endswith(bad):
            found: dict[str, Any] = inner(request, given)
            return found
        refused = pcloud.service._refuse(5002, "Later.")  # type: ignore[attr-defined]
        refused.answer.headers["Retry-After"] = "1"
        raise refused

    monkeypatch.setattr(pcloud.service, "_do_getfilelink", link)
    with llvs.Exchange(new_store(), pcloud.place()) as way, pytest.raises(llvs.TransportError):
        way.retrieve()


def test_a_root_that_is_not_given(pcloud: Cloud, store: llvs.Store, new_store: Any, monkeypatch: Any) -> None:
    """A device that cannot read the only root does not create another one."""
    exchange(store, pcloud.place(layout="packed"))
    second = new_store()
    save(second, "theirs")
    with monkeypatch.context() as patch:
        refuse(pcloud, patch, 2003, lambda path: path.rpartition("/")[0].endswith("/pack1"))
        with llvs.Exchange(second, pcloud.place(layout="packed")) as way:
            for work in (way.retrieve, way.send):
                with pytest.raises(llvs.errors.PermissionDeniedError):
                    work()
        assert len(files(pcloud, "pack1")) == 1
    exchange(second, pcloud.place(layout="packed"))
    assert ids(store) < ids(second) and len(files(pcloud, "pack1")) == 1


def test_folders_that_go_while_changes_are_followed(pcloud: Cloud, store: llvs.Store, new_store: Any) -> None:
    """6: any folder may be on the path, so the directory is listed again; also after another program has deleted a folder elsewhere."""
    exchange(store, pcloud.place())
    for number in range(1_100):
        file_in(pcloud, folders(pcloud, "versions")[0].id, f"x {number}")
    tree = pcloud.service.tree  # type: ignore[attr-defined]
    other = tree.add("0", "other", None)
    with llvs.Exchange(new_store(), pcloud.place()) as way:
        way.retrieve()
        assert pcloud.count(way.retrieve) == ["GET /diff"]
        tree.delete(other)
        diff = pcloud.service._do_diff  # type: ignore[attr-defined]
        (event,) = diff(None, {"diffid": str(len(tree.changes) - 1)})["entries"]
        assert event["event"] == "deletefolder" and event["metadata"]["folderid"] == int(other.id) and "fileid" not in event["metadata"]
        assert "GET /listfolder" in pcloud.count(way.retrieve)
        assert pcloud.count(way.retrieve) == ["GET /diff"]


#: The size of a value, whose file is larger by a third: three parts.
LARGE = 6_500_000


def test_a_large_file_that_is_not_taken(pcloud: Cloud, new_store: Any, monkeypatch: Any) -> None:
    """The file is a problem by its name; the others are sent."""
    store = new_store()
    large = store.make_version(insert={"large": random.Random(4).randbytes(LARGE)}, root=True)
    other = store.make_version(insert={"small": b"1"}, root=True)

    def refused(request: Any, given: dict[str, str]) -> dict[str, Any]:
        raise pcloud.service._refuse(5000, "Internal error.")  # type: ignore[attr-defined]

    with llvs.Exchange(store, pcloud.place()) as way:
        way.retrieve()
        with monkeypatch.context() as patch:
            patch.setattr(pcloud.service, "_do_upload_create", refused)
            sent = way.send()
        assert sent.sent == (other.id,) and [each.name for each in sent.problems] == [large.id]
        assert way.send().sent == (large.id,)


def test_a_large_file_goes_on_where_it_was_cut(pcloud: Cloud, store: llvs.Store, new_store: Any) -> None:
    """The connection breaks in the middle of each part. Bytes that arrived stay, and the upload continues after them."""
    version, second = save(store, "large", random.Random(3).randbytes(LARGE)), new_store()
    parts: dict[str, int] = {}

    def reading(path: str, count: int) -> None:
        if path.startswith("/upload_write"):
            parts[path] = count
            if count > 1_500_000 and len(parts) <= 3:
                raise ConnectionAbortedError

    pcloud.service.reading = reading
    asked = pcloud.count(lambda: exchange(store, pcloud.place()))
    assert asked.count("GET /upload_create") == asked.count("GET /upload_save") == 1
    assert len(parts) == 4 and sum(parts.values()) == len(files(pcloud, "changes")[-1].data)
    exchange(second, pcloud.place())
    assert second.at(version)["large"] == store.at(version)["large"] and not pcloud.service.uploads  # type: ignore[attr-defined]


@pytest.mark.parametrize("what", ["other bytes", "too many", "never more"])
def test_what_a_session_holds_is_looked_at(pcloud: Cloud, store: llvs.Store, new_store: Any, what: str, monkeypatch: Any) -> None:
    """The session's bytes are checked before they become a file. A session with other bytes is deleted, and begun again; one that does not
    grow is abandoned."""
    version, second, told = save(store, "large", random.Random(3).randbytes(LARGE)), new_store(), []
    inner = pcloud.service._do_upload_write  # type: ignore[attr-defined]

    def write(request: Request, given: dict[str, str]) -> dict[str, Any]:
        found: dict[str, Any] = inner(request, given)
        data = pcloud.service.uploads[int(given["uploadid"])]  # type: ignore[attr-defined]
        told.append(1)
        if what == "other bytes" and len(told) == 2:
            data[5] ^= 1
        elif what == "too many" and len(told) == 3:
            # The last part.
            data += b"x"
        elif what == "never more":
            del data[1_000_000:]
        return found

    monkeypatch.setattr(pcloud.service, "_do_upload_write", write)
    if what == "never more":
        with llvs.Exchange(store, pcloud.place()) as way, pytest.raises(llvs.TransportError, match="loses the upload"):
            way.send()
        assert len(told) < 40
        monkeypatch.setattr(pcloud.service, "_do_upload_write", inner)
    asked = pcloud.count(lambda: exchange(store, pcloud.place()))
    if what != "never more":
        assert asked.count("GET /upload_delete") == 1 and asked.count("GET /upload_create") == 2
    exchange(second, pcloud.place())
    assert second.at(version)["large"] == store.at(version)["large"]


@pytest.mark.parametrize("lost", ["GET /upload_create", "GET /upload_save", "GET /upload_info", "PUT /upload_write"])
def test_answers_of_a_session_that_are_lost(pcloud: Cloud, store: llvs.Store, new_store: Any, lost: str) -> None:
    """The file is made once."""
    version, second = save(store, "large", random.Random(3).randbytes(LARGE)), new_store()
    pcloud.service.inject("lost answer", 1, lambda request: f"{request.method} {pcloud.service.template(request)}" == lost)
    asked = pcloud.count(lambda: exchange(store, pcloud.place()))
    # At most one request more, in case libcurl repeats one.
    assert asked.count("PUT /upload_write") <= 4 and len(files(pcloud, "changes")) == 4
    exchange(second, pcloud.place())
    assert second.at(version)["large"] == store.at(version)["large"]


def test_two_devices_send_one_large_file(pcloud: Cloud, new_store: Any) -> None:
    """The other device has sent the file meanwhile. It is not overwritten, and no copy stays."""
    first, second, data = new_store(), new_store(), random.Random(3).randbytes(LARGE)
    for each in (first, second):
        each.make_version(insert={"x": data}, id="same", timestamp=1.0)
    with llvs.Exchange(second, pcloud.place()) as way:
        way.retrieve()
        exchange(first, pcloud.place())
        before = {node.name: (node.id, node.version) for node in files(pcloud, "changes")}
        way.send()
    assert {node.name: (node.id, node.version) for node in files(pcloud, "changes")} == before and len(before) == 1


@pytest.mark.parametrize("layout", ["interchange", "packed"])
@pytest.mark.parametrize("step", ["upload_info", "upload_save"])
def test_a_session_that_is_refused_for_ever(
    pcloud: Cloud, tmp_path: Path, new_store: Any, layout: str, step: str, monkeypatch: Any
) -> None:
    """The file is sent again, in another session."""
    second, refused = new_store(), []
    inner = getattr(pcloud.service, f"_do_{step}")

    def refuse(request: Request, given: dict[str, str]) -> dict[str, Any]:
        refused[:] = refused or [given["uploadid"]]
        return {"result": 2001, "error": "No."} if given["uploadid"] == refused[0] else inner(request, given)

    monkeypatch.setattr(pcloud.service, f"_do_{step}", refuse)
    with llvs.Store(tmp_path / "device", options=llvs.StoreOptions(file_mode=0o600)) as store:
        store.make_version(insert={"large": random.Random(1).randbytes(6_000_000)})
        with llvs.Exchange(store, pcloud.place(layout=layout)) as way, pytest.raises(llvs.TransportError, match="2001"):
            way.retrieve()
            way.send()
        exchange(store, pcloud.place(layout=layout))
        exchange(second, pcloud.place(layout=layout))
        assert refused and ids(second) == ids(store)
