"""The store to which a place belongs (docs/exchanges.md): the place of another store is refused, and joined if the caller allows it."""

from __future__ import annotations

from pathlib import Path

import llvs
import pytest

RULES = {"merge": 1, "ids": {"note/": {"/tags": "set"}}}


def put(folder: Path, name: str, place: str, rules: bool = False, **values: str) -> set[str]:
    """A device saves and syncs; the ids that it has then."""
    with llvs.Coordinator(folder / name, exchange=place) as device:
        if rules:
            device.register_schema(RULES)
        if values:
            device.save(update={key: value.encode() for key, value in values.items()})
        assert not device.sync().problems
        return {id for id in device if not id.startswith("__llvs")}


def join(folder: Path, name: str, place: str) -> None:
    """The user allows the device to join the place, whatever it contains."""
    with llvs.Store(folder / name) as store, llvs.Exchange(store, place, restoration_state=b"new") as way:
        assert not way.retrieve().problems and not way.send().problems


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(params=["interchange", "packed"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return f"file://{tmp_path}/place?layout={request.param}"


@pytest.mark.parametrize("rules", [False, True])
def test_the_place_of_another_store_is_refused(tmp_path: Path, place: str, rules: bool) -> None:
    """Both stores have the empty root and the version with the first rules. That does not prove that they are the same."""
    here = tmp_path / "place"
    put(tmp_path, "ann", place, rules, ann="1")
    here.rename(tmp_path / "anns")
    put(tmp_path, "bob", place, rules, bob="1")
    before = files(here)
    for _ in range(2):
        with pytest.raises(llvs.NotFoundError, match="another store"):
            put(tmp_path, "ann", place, more="2")
    assert files(here) == before
    assert put(tmp_path, "bob", place) == {"bob"}
    with llvs.Store(tmp_path / "ann") as store, llvs.Exchange(store, place) as way:
        for call in (way.retrieve, way.send):
            with pytest.raises(llvs.NotFoundError, match="another store"):
                call()
    # When its own place returns, the exchange continues. It has received nothing of the other place.
    here.rename(tmp_path / "bobs")
    (tmp_path / "anns").rename(here)
    assert put(tmp_path, "ann", place) == put(tmp_path, "other", place) == {"ann", "more"}


def test_two_stores_are_joined_on_request(tmp_path: Path, place: str) -> None:
    here = tmp_path / "place"
    put(tmp_path, "ann", place, ann="1")
    here.rename(tmp_path / "anns")
    put(tmp_path, "bob", place, bob="1")
    with pytest.raises(llvs.NotFoundError):
        put(tmp_path, "ann", place)
    join(tmp_path, "ann", place)
    for _ in range(2):
        put(tmp_path, "bob", place)
        put(tmp_path, "ann", place)
    assert put(tmp_path, "bob", place) == put(tmp_path, "ann", place) == {"ann", "bob"}
    # The permission is valid once, and not for the next unknown place.
    here.rename(tmp_path / "both")
    put(tmp_path, "cid", place, cid="1")
    with pytest.raises(llvs.NotFoundError, match="another store"):
        put(tmp_path, "ann", place)


def test_an_open_exchange_goes_on_after_another_joined(tmp_path: Path, place: str) -> None:
    here = tmp_path / "place"
    with llvs.Store(tmp_path / "ann") as store, llvs.Exchange(store, place) as way:
        store.make_version(insert={"ann": b"1"})
        way.send()
        here.rename(tmp_path / "anns")
        put(tmp_path, "bob", place, bob="1")
        with pytest.raises(llvs.NotFoundError):
            way.retrieve()
        with llvs.Exchange(store, place, restoration_state=b"new") as other:
            assert other.retrieve().retrieved
        assert not way.retrieve().problems and way.send().sent


def test_a_drive_that_is_not_mounted_gets_nothing(tmp_path: Path, place: str) -> None:
    """An empty folder is at the place of the mounted one."""
    here = tmp_path / "place"
    put(tmp_path, "ann", place, ann="1")
    here.rename(tmp_path / "away")
    here.mkdir()
    for _ in range(2):
        with pytest.raises(llvs.NotFoundError, match="emptied|is empty"):
            put(tmp_path, "ann", place, more="2")
    assert not files(here)
    if "packed" not in place:
        with llvs.Store(tmp_path / "ann") as store, llvs.Exchange(store, place) as way:
            with pytest.raises(llvs.NotFoundError):
                way.put_snapshot()
    assert not files(here)
    here.rename(tmp_path / "mount point")
    (tmp_path / "away").rename(here)
    assert put(tmp_path, "ann", place) == {"ann", "more"}


def test_a_place_that_is_filled_anew_is_known_to_the_others(tmp_path: Path, place: str) -> None:
    here = tmp_path / "place"
    for name in ("ann", "laptop", "ann", "laptop"):
        put(tmp_path, name, place, **{name: "1"})
    here.rename(tmp_path / "away")
    here.mkdir()
    join(tmp_path, "ann", place)
    with llvs.Coordinator(tmp_path / "laptop", exchange=place) as laptop:
        told = laptop.sync().problems
        assert set(laptop) == {"ann", "laptop"} and all("refilled by" in str(problem.reason) for problem in told)


def test_what_an_application_ships_proves_nothing(tmp_path: Path, place: str) -> None:
    """Two stores are copies of a template with versions in it."""
    with llvs.Coordinator(tmp_path / "template") as template:
        for n in range(30):
            template.save(insert={f"help/{n}": b"1"})
    for name in ("ann", "bob"):
        for path in files(tmp_path / "template"):
            to = tmp_path / name / path
            to.parent.mkdir(parents=True, exist_ok=True)
            to.write_bytes((tmp_path / "template" / path).read_bytes())
    here = tmp_path / "place"
    put(tmp_path, "ann", place)
    put(tmp_path, "ann", place, ann="1")
    here.rename(tmp_path / "anns")
    put(tmp_path, "bob", place, bob="1")
    with pytest.raises(llvs.NotFoundError, match="another store"):
        put(tmp_path, "ann", place)


def test_a_version_file_that_is_lost_is_sent_again(tmp_path: Path) -> None:
    """The changes file still exists and identifies the folder, even if nothing else was remembered."""
    place, here = f"file://{tmp_path}/place", tmp_path / "place"
    with llvs.Store(tmp_path / "ann") as store, llvs.Store(tmp_path / "bob") as other:
        store.make_version(insert={"ann": b"1"})
        other.make_version(insert={"bob": b"1"})
        for each in (store, other):
            with llvs.Exchange(each, place) as way:
                way.send()
        for path in (here / "versions").iterdir():
            if path.name in {version.id for version in store.history()}:
                path.unlink()
        with llvs.Exchange(store, place) as way:
            assert len(way.send().sent) == 1


def test_a_folder_that_was_set_back_is_known(tmp_path: Path) -> None:
    """The oldest files are restored from a backup. Missing ones are sent again."""
    place, here = f"file://{tmp_path}/place", tmp_path / "place"
    with llvs.Store(tmp_path / "ann") as store:
        kept: dict[str, bytes] = {}
        for n in range(120):
            store.make_version(store.most_recent_head, insert={f"{n}": b"1"})
            with llvs.Exchange(store, place) as way:
                way.send()
            if n == 5:
                kept = files(here)
        here.rename(tmp_path / "away")
        for name, contents in kept.items():
            (here / name).parent.mkdir(parents=True, exist_ok=True)
            (here / name).write_bytes(contents)
        with llvs.Exchange(store, place) as way:
            assert len(way.send().sent) == 114


def spelled(folder: Path, how: str) -> str:
    """The path of the place in `folder`, spelled in another way, as it stands in a URL."""
    here = folder / "place"
    if how == "link" and not (folder / "link").is_symlink():
        (folder / "link").symlink_to(here)
    if how == "linked parent" and not (folder / "parent").is_symlink():
        (folder / "parent").symlink_to(folder)
    return {
        "plain": f"{here}", "dot": f"{folder}/./place", "slashes": f"{folder}//place", "up": f"{folder}/x/../place", "slash": f"{here}/",
        "letters": f"{folder}/%70l%61ce", "link": f"{folder}/link", "linked parent": f"{folder}/parent/place", "host": f"{here}"}[how]


@pytest.mark.parametrize("layout", ["interchange", "packed"])
@pytest.mark.parametrize("is_first", [True, False])
@pytest.mark.parametrize("how", ["dot", "slashes", "up", "slash", "letters", "link", "linked parent", "host"])
def test_each_spelling_leads_to_what_is_remembered(tmp_path: Path, how: str, is_first: bool, layout: str) -> None:
    """The result does not depend on which spelling comes first."""
    (tmp_path / "x").mkdir()
    here, host = tmp_path / "place", "localhost" if how == "host" else ""
    places = [f"file://{tmp_path}/place?layout={layout}", f"FILE://{host}{spelled(tmp_path, how)}?layout={layout}"]
    first, second = reversed(places) if is_first else places
    if how == "link":
        here.mkdir()
    put(tmp_path, "ann", first, ann="1")
    here.rename(tmp_path / "anns")
    here.mkdir()
    put(tmp_path, "bob", first, bob="1")
    before = files(here)
    for place in (second, first, second):
        with pytest.raises(llvs.NotFoundError, match="another store"):
            put(tmp_path, "ann", place, more="2")
    assert files(here) == before
    here.rename(tmp_path / "bobs")
    (tmp_path / "anns").rename(here)
    assert put(tmp_path, "ann", second) == put(tmp_path, "other", first) == {"ann", "more"}


@pytest.mark.parametrize("layout", ["interchange", "packed"])
@pytest.mark.parametrize("was_link", [True, False])
def test_a_link_that_leads_elsewhere_by_now(tmp_path: Path, layout: str, was_link: bool) -> None:
    """The state of a link, or of a folder that was replaced by a link, applies to its present target."""
    path = tmp_path / "usual"
    place = f"file://{path}?layout={layout}"
    if was_link:
        (tmp_path / "anns").mkdir()
        path.symlink_to(tmp_path / "anns")
    put(tmp_path, "ann", place, ann="1")
    put(tmp_path, "bob", f"file://{tmp_path}/bobs?layout={layout}", bob="1")
    before = files(tmp_path / "bobs")
    if was_link:
        path.unlink()
        # First a folder replaces the link, then a link to another folder.
        (tmp_path / "bobs").rename(path)
        with pytest.raises(llvs.NotFoundError, match="another store"):
            put(tmp_path, "ann", place, more="2")
        path.rename(tmp_path / "bobs")
    else:
        path.rename(tmp_path / "anns")
    path.symlink_to(tmp_path / "bobs")
    with pytest.raises(llvs.NotFoundError, match="another store"):
        put(tmp_path, "ann", place, more="2")
    assert files(tmp_path / "bobs") == before
    path.unlink()
    path.symlink_to(tmp_path / "anns")
    assert put(tmp_path, "ann", place) == {"ann", "more"}
    # A caller who allows it joins the two places.
    path.unlink()
    path.symlink_to(tmp_path / "bobs")
    join(tmp_path, "ann", place)
    assert put(tmp_path, "ann", place) == {"ann", "bob", "more"}


@pytest.mark.parametrize(
    "url", [
        "file:///tmp/place?x=1", "file:///tmp/place?layout=packed&x=1", "file:///tmp/place?", "https+webdav://host/place/?x=1",
        "sftp://host/place/?x=1", "s3://bucket/place?x=1", "gdrive:///place?x=1", "onedrive:///place?x=1", "box:///place?x=1",
        "pcloud:///place?x=1", "cloudkit://container/production/private?store=a&x=1"])
def test_an_unknown_option_is_refused(url: str) -> None:
    """With those that there are."""
    refused = pytest.raises(llvs.errors.InvalidArgumentError, match="after its question mark only .*layout")
    with llvs.Store(storage="memory") as store, refused:
        llvs.Exchange(store, llvs.Remote(url, user="user", password="password"))


@pytest.mark.parametrize("url", ["https+webdav://host/place/#x", "sftp://host/place#x", "s3://bucket/place#x", "gdrive:///place#x"])
def test_what_follows_a_number_sign_is_refused(url: str) -> None:
    with llvs.Store(storage="memory") as store, pytest.raises(llvs.errors.InvalidArgumentError, match="%23"):
        llvs.Exchange(store, llvs.Remote(url, user="user", password="password"))
