"""Exchanges through Google Drive's stand-in: both layouts, and failures.

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
from clouds import Cloud, exchange, file_in, files, folders, ids, save, send
from drive import GoogleDrive
from service import Request

LAYOUTS = ["interchange", "packed"]


@pytest.fixture
def drive(tmp_path: Path) -> Iterator[Cloud]:
    cloud = Cloud(GoogleDrive(), "gdrive", tmp_path)
    yield cloud
    cloud.close()


# Transfers.


def test_the_folder_of_the_app(drive: Cloud, store: llvs.Store, new_store: Any) -> None:
    place = drive.place("notes", space="appdata")
    exchange(store, place)
    assert len(exchange(new_store(), place).retrieved) == 3
    assert folders(drive, "notes")[0].parent == "1App_root"


def test_names_that_differ_only_in_case(drive: Cloud, new_store: Any) -> None:
    """20: at Google Drive these are two files."""
    first, second = new_store(), new_store()
    first.make_version(insert={"x": b"1"}, id="aB")
    exchange(first, drive.place())
    file_in(drive, folders(drive, "versions")[0].id, "ab")
    with llvs.Exchange(second, drive.place()) as way:
        assert [problem.name for problem in way.retrieve().problems] == ["ab"]
    assert ids(second) == {"aB"}


# Lists and changes.


def many(drive: Cloud, count: int) -> None:
    for number in range(count):
        file_in(drive, folders(drive, "versions")[0].id, f"x {number}")


def test_a_long_list_is_followed_by_its_changes(drive: Cloud, store: llvs.Store, new_store: Any) -> None:
    """6: the feed reports new files, new names, trashed and removed files."""
    exchange(store, drive.place())
    many(drive, 1_100)
    second = new_store()
    with llvs.Exchange(second, drive.place()) as way:
        assert not way.retrieve().problems and ids(second) == ids(store)
        assert drive.count(way.retrieve) == ["GET /drive/v3/changes"]
        new = save(store, "new")
        send(store, drive.place())
        asked = drive.count(lambda: way.retrieve())
        assert "GET /drive/v3/changes" in asked and new.id in ids(second)
        # Deleted and trashed files are gone from the cached list; renamed ones have their new names.
        node = next(node for node in files(drive, "versions") if node.name == new.id)
        node.trashed = True
        drive.service.tree.touch(node)
        removed, renamed = [node for node in files(drive, "versions") if node.name in ids(store) - {new.id}][:2]
        gone = {new.id, removed.name, renamed.name}
        drive.service.tree.delete(removed)
        renamed.name = "y y"
        drive.service.tree.touch(renamed)
        assert not way.retrieve().problems
        # The versions are sent again, since their files are gone.
        assert set(way.send().sent) == gone
        # The folder itself is trashed: nothing known about it is valid.
        folder = folders(drive, "versions")[0]
        folder.trashed = True
        drive.service.tree.touch(folder)
        assert not way.retrieve().problems
        assert len(way.send().sent) == 4


@pytest.mark.parametrize("status", [400, 404, 410])
def test_changes_that_the_service_has_forgotten(drive: Cloud, store: llvs.Store, new_store: Any, status: int, monkeypatch: Any) -> None:
    """6: all files are listed."""
    exchange(store, drive.place())
    many(drive, 1_100)
    second = new_store()

    def forgotten(request: Request) -> Any:
        raise drive.service.refuse(status, "invalid", "Invalid Value")

    with llvs.Exchange(second, drive.place()) as way:
        way.retrieve()
        new = save(store, "new")
        send(store, drive.place())
        monkeypatch.setattr(drive.service, "_changes", forgotten)
        asked = drive.count(lambda: way.retrieve())
        assert asked.count("GET /drive/v3/files") >= 2 and new.id in ids(second)


def test_a_list_that_says_it_is_not_complete(drive: Cloud, store: llvs.Store, monkeypatch: Any) -> None:
    inner = drive.service._chosen
    monkeypatch.setattr(drive.service, "_chosen", lambda request, value: inner(request, {**value, "incompleteSearch": True}))
    with llvs.Exchange(store, drive.place()) as way, pytest.raises(llvs.TransportError, match="incomplete"):
        way.retrieve()


# Folders.


@pytest.mark.parametrize("layout", LAYOUTS)
def test_folders_of_one_name(drive: Cloud, store: llvs.Store, new_store: Any, layout: str) -> None:
    """10: two devices create the place at once. Both folders are always read, and the oldest is written to."""
    second, third = new_store(), new_store()
    place = drive.place(layout=layout)
    exchange(store, place)
    first = folders(drive, "notes")[0]
    # The other device created the same tree before it saw this one, and does not know that this one exists.
    first.name = "elsewhere"
    save(second, "theirs")
    # The place is opened with other credentials, so that knowledge about the first folder is not used.
    exchange(second, llvs.Remote(drive.url(layout=layout), token=drive.service.accounts.sign_in()[0]))
    first.name = "notes"
    assert len(folders(drive, "notes")) == 2
    for each in (store, second, third, store):
        exchange(each, place)
    assert ids(store) == ids(second) == ids(third) and len(ids(store)) == 4
    before = {node.id for node in drive.service.tree.below(first.id)}
    save(third, "more")
    exchange(third, place)
    assert len({node.id for node in drive.service.tree.below(first.id)} - before) >= 1, "the oldest is written to"
    exchange(second, place)
    assert ids(second) == ids(third)


def test_folders_that_are_their_own_ancestors(drive: Cloud, store: llvs.Store, new_store: Any) -> None:
    """A folder inside itself, and two folders inside each other, are in no place, whatever their names."""
    exchange(store, drive.place())
    tree, second = drive.service.tree, new_store()  # type: ignore[attr-defined]
    alone, notes, versions = (tree.add(tree.root, name, None) for name in ("versions", "notes", "versions"))
    alone.parent, notes.parent, versions.parent = alone.id, versions.id, notes.id
    for folder in (alone, notes, versions):
        drive.service.kinds[folder.id] = drive.service.kinds[folders(drive, "changes")[0].id]  # type: ignore[attr-defined]
    for folder in (alone, versions):
        file_in(drive, folder.id, "x")
    for _ in range(2):
        exchange(second, drive.place())
    assert ids(second) == ids(store)
    # The same holds if the path leads through such folders: the place itself is moved into one of them.
    (place,) = (node for node in folders(drive, "notes") if node is not notes)
    place.parent = alone.id
    with llvs.Exchange(second, drive.place()) as way, pytest.raises(llvs.NotFoundError, match="is empty"):
        way.retrieve()


def test_two_devices_make_the_place_at_once(drive: Cloud, new_store: Any) -> None:
    """10, with two real devices."""
    stores = [new_store() for _ in range(4)]
    for number, each in enumerate(stores):
        save(each, f"of {number}")
    token = drive.service.accounts.sign_in()[0]
    threads = [threading.Thread(target=exchange, args=(each, llvs.Remote(drive.url(), token=token))) for each in stores]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for each in stores + stores:
        exchange(each, drive.place())
    assert all(ids(each) == ids(stores[0]) for each in stores) and len(ids(stores[0])) == 4


# Files of one name.


def test_files_of_one_name(drive: Cloud, store: llvs.Store, new_store: Any) -> None:
    """All readers use the oldest one."""
    drive.service.twins = True
    exchange(store, drive.place())
    drive.service.twins = False
    assert len(files(drive, "versions")) > len({node.name for node in files(drive, "versions")}) == 3
    assert set(exchange(new_store(), drive.place()).retrieved) == ids(store)
    oldest = {}
    for node in sorted(files(drive, "versions"), key=lambda node: (node.made, node.id)):
        if node.name in oldest:
            node.data = b"not the one that is read"
        oldest.setdefault(node.name, node)
    second = new_store()
    assert set(exchange(second, drive.place()).retrieved) == ids(store)


# Faults.


@pytest.mark.parametrize(
    "reason, error",
    [
        ("accessNotConfigured", llvs.errors.PermissionDeniedError),
        ("dailyLimitExceeded", llvs.BusyError),
        ("insufficientPermissions", llvs.errors.PermissionDeniedError),
    ],
)
def test_refusals(drive: Cloud, store: llvs.Store, reason: str, error: type[Exception], monkeypatch: Any) -> None:
    refusal = drive.service.refusal(403, reason, "No.")
    monkeypatch.setattr(drive.service, "_list", lambda request: refusal)
    with llvs.Exchange(store, drive.place()) as way, pytest.raises(error):
        way.retrieve()


def test_deletes_that_are_refused(drive: Cloud, new_store: Any, monkeypatch: Any) -> None:
    """30: packs that may not be deleted stay. That is no error."""
    inner = drive.service._file

    def file(request: Request, method: str, node: Any, rest: list[str]) -> Any:
        if method == "DELETE":
            raise drive.service.refuse(403, "insufficientFilePermissions", "No.")
        return inner(request, method, node, rest)

    monkeypatch.setattr(drive.service, "_file", file)
    first, second = new_store(), new_store()
    for number in range(20):
        save(first, f"n{number}")
        exchange(first, drive.place(layout="packed"))
    exchange(second, drive.place(layout="packed"))
    assert ids(first) == ids(second)


@pytest.mark.parametrize(
    "url",
    [
        "gdrive://host/x", "gdrive:///x?key=s3cret", "gdrive:///x?endpoint=http://example.org/", "gdrive:///x?endpoint=ftp://127.0.0.1/",
        "gdrive:///x?rate=0", "gdrive:///x?space=mine", "gdrive:///%zz", "gdrive:///a/../b", "gdrive:///a%2Fb", "gdrive:///a%00",
        "gdrive:///a#b",
    ],
)  # fmt: skip
def test_urls_that_are_refused(store: llvs.Store, url: str) -> None:
    with pytest.raises(llvs.errors.InvalidArgumentError) as raised:
        llvs.Exchange(store, url)
    assert "s3cret" not in str(raised.value)


def test_credentials_that_do_not_fit(drive: Cloud, store: llvs.Store, tmp_path: Path) -> None:
    file = {"token_file": drive.tokens}
    for options in ({"user": "ann"}, {"token": "x", **file}, {"credentials": lambda *_: None, **file}):
        with pytest.raises(llvs.errors.InvalidArgumentError):
            llvs.Exchange(store, llvs.Remote(drive.url(), **options))
    for url in (f"file://{tmp_path}/x", "https+webdav://127.0.0.1/"):
        with pytest.raises(llvs.errors.InvalidArgumentError, match="token_file"):
            llvs.Exchange(store, llvs.Remote(url, token_file=drive.tokens))
