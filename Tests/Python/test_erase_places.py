"""Places are cleaned of what was erased: packs are written again without it, and late devices erase before they send."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Callable

import llvs
import pytest
from packs import reader
from test_erase_exchange import PLACES, SECRETS, assert_sound, names, reads, remote
from test_erase_orders import GONE, MEMBERS, SHARED, opened, states, storage

__all__ = ["opened", "storage"]
FORGOTTEN = dict.fromkeys(SECRETS, "ForgottenError")
WAYS = ("packed", "encrypted")


def exchanged(store: llvs.Store, place: Path, way: str, *, receives: bool = True, sends: bool = True) -> None:
    with llvs.Exchange(store, remote(place, way)) as exchange:
        if receives:
            assert not exchange.retrieve().problems
        if sends:
            assert not exchange.send().problems


def raw(place: Path) -> bytes:
    """The bytes of all packs of a place in clear, inflated."""
    found = []
    for path in sorted(place.rglob("*")):
        if path.is_file() and path.suffix != ".key":
            data = path.read_bytes()
            found.append(data)
            name = reader.parse(str(path.relative_to(place)))
            if name is None:
                continue
            index = reader.read_index(name, len(data), data, [data[16:32]], data[: reader.HEADER])
            assert index is not None
            found += [reader.inflate(block, data[block.offset : block.offset + 9 + block.stored]) for block in index.blocks]
    return b"\0".join(found)


def assert_clean(place: Path, way: str) -> None:
    if way == "packed":
        found = raw(place)
        for value in SECRETS.values():
            assert value[:40] not in found
    # Parts of a large value.
    assert [name for name in names(place) if name.startswith("pack1/blob/")] == []


@pytest.mark.parametrize("way", WAYS)
def test_packs_are_cleaned(way: str, opened: Callable[..., llvs.Store], tmp_path: Path) -> None:
    """Packs of both devices have the bytes, also the newest ones. After the exchange of the ordering device the place has none."""
    place = tmp_path / "place"
    with opened("a") as a, opened("b") as b:
        first = a.make_version(insert={**SECRETS, "note": b"1"})
        exchanged(a, place, way)
        exchanged(b, place, way)
        second = b.make_version(first, update={"small": b"a secret of b, which is erased as well, and long enough", "note": b"2"})
        third = b.make_version(second, update={"note": b"3"})
        exchanged(b, place, way)
        exchanged(a, place, way)
        a.erase(*SECRETS)
        exchanged(a, place, way)
        assert_clean(place, way)
        if way == "packed":
            assert b"a secret of b" not in raw(place) and b"note" in raw(place)
        exchanged(b, place, way)
        assert states(b) == ["followed"] and reads(b, third) == {**GONE, "note": b"3"}
        # Both go on.
        for store in (b, a, b):
            store.make_version(store.heads()[0], update={"note": b"more"})
            exchanged(store, place, way)
            with llvs.Exchange(store, remote(place, way)) as exchange:
                assert not exchange.verify().problems and list(exchange.send().versions) == []
        assert_clean(place, way)
        for store in (a, b):
            assert_sound(store)
    with opened("new", None) as new, opened("member") as member:
        exchanged(new, place, way)
        assert reads(new, first) == {**FORGOTTEN, "note": b"1"} and reads(new, third) == {**FORGOTTEN, "note": b"3"}
        exchanged(member, place, way)
        assert reads(member, first) == {**GONE, "note": b"1"}
        with opened("a") as a:
            exchanged(a, place, way)
            assert {version.id for version in a.history()} == {version.id for version in new.history()}
    assert_clean(place, way)


@pytest.mark.parametrize("way", WAYS)
def test_a_device_without_the_policy_brings_bytes_back(way: str, opened: Callable[..., llvs.Store], tmp_path: Path) -> None:
    """The next exchange of a member cleans the place again."""
    place = tmp_path / "place"
    with opened("a") as a:
        first = a.make_version(insert={**SECRETS, "note": b"1"})
        packed = a.pack()
        exchanged(a, place, way)
        a.erase(*SECRETS)
        exchanged(a, place, way)
        assert_clean(place, way)
    for name in ("one", "two"):
        with opened("a") as a, opened(name, None) as stranger:
            assert not stranger.unpack(packed).problems
            exchanged(stranger, place, way)
            assert reads(stranger, first) == {**SECRETS, "note": b"1"}
            assert [file for file in names(place) if file.startswith("pack1/blob/")] != []
            exchanged(a, place, way)
            assert_clean(place, way)
            assert reads(a, first) == {**GONE, "note": b"1"}
            exchanged(stranger, place, way)
            exchanged(a, place, way)
            assert_sound(a)
            assert_sound(stranger)


@pytest.mark.parametrize("way", ["interchange", "bridged"])
def test_single_files_are_cleaned(way: str, opened: Callable[..., llvs.Store], tmp_path: Path) -> None:
    """The changes files of versions with erased values are written again, also if a device without the policy brings bytes back."""
    place = tmp_path / "place"
    with opened("a") as a, opened("b") as b, opened("stranger", None) as stranger:
        first = a.make_version(insert={**SECRETS, "note": b"1"})
        assert not stranger.unpack(a.pack()).problems
        exchanged(a, place, way)
        exchanged(b, place, way)
        second = b.make_version(first, update={"small": b"a secret of b, which is erased as well, and long enough", "note": b"2"})
        exchanged(b, place, way)
        exchanged(a, place, way)
        assert not nothing_in(place)
        a.erase(*SECRETS)
        exchanged(a, place, way)
        assert nothing_in(place)
        exchanged(b, place, way)
        assert states(b) == ["followed"] and reads(b, second) == {**GONE, "note": b"2"}
        assert nothing_in(place)
        exchanged(stranger, place, way)
        assert not nothing_in(place)
        for store in (b, a):
            exchanged(store, place, way)
            assert nothing_in(place)
            assert_sound(store)
    with opened("new", None) as new:
        exchanged(new, place, way)
        assert reads(new, first) == {**FORGOTTEN, "note": b"1"} and reads(new, second) == {**FORGOTTEN, "note": b"2"}


def nothing_in(place: Path) -> bool:
    """Whether no file has the bytes, as they are or in base64."""
    found = raw(place)
    for value in (SECRETS["small"], SECRETS["vast"][:40], b"a secret of b, which is erased"):
        texts = [base64.b64encode(bytes(before) + value)[4 if before else 0 : -4] for before in range(3)]
        if value in found or any(text in found for text in texts):
            return False
    return True


@pytest.mark.parametrize("receives", [True, False])
@pytest.mark.parametrize("way", PLACES)
def test_a_late_device(way: str, receives: bool, opened: Callable[..., llvs.Store], tmp_path: Path) -> None:
    """It was away with the bytes, and has edits that it did not send. It erases before it sends, also if it only sends."""
    place = tmp_path / "place"
    with opened("a") as a, opened("b") as b:
        first = a.make_version(insert={**SECRETS, "note": b"1"})
        exchanged(a, place, way)
        exchanged(b, place, way)
        edit = b.make_version(first, update={"note": b"of b"})
        a.erase(*SECRETS)
        exchanged(a, place, way)
        exchanged(b, place, way, receives=receives)
        assert states(b) == ["followed"] and reads(b, edit) == {**GONE, "note": b"of b"}
        assert_clean(place, way)
        assert way == "encrypted" or nothing_in(place)
        exchanged(a, place, way)
        assert reads(a, edit) == reads(b, edit)


@pytest.mark.parametrize("way", WAYS)
def test_packs_that_were_replaced_meanwhile(way: str, opened: Callable[..., llvs.Store], tmp_path: Path) -> None:
    """A device has just listed all packs. Others send, and erase at once what it has not read yet. Its next retrieve finds all."""
    place = tmp_path / "place"
    with opened("a") as a, opened("b") as b, opened("c", None) as c:
        first = a.make_version(insert={"note": b"1"})
        exchanged(a, place, way)
        exchanged(b, place, way)
        exchanged(c, place, way)
        second = b.make_version(first, insert=SECRETS)
        exchanged(b, place, way, receives=False)
        exchanged(a, place, way)
        a.erase(*SECRETS)
        a.make_version(a.most_recent_head, update={"note": b"3"})
        exchanged(a, place, way)
        exchanged(c, place, way, sends=False)
        assert c.version(second) is not None and c.most_recent_head == a.most_recent_head


def snapshot_files(place: Path) -> list[str]:
    return sorted(str(path.relative_to(place / "snapshots")) for path in (place / "snapshots").rglob("*") if path.is_file())


@pytest.mark.parametrize("at_top", [False, True])
def test_snapshots_are_removed(at_top: bool, opened: Callable[..., llvs.Store], tmp_path: Path) -> None:
    """A snapshot beside single files goes with the next send, unless it was made after the orders; that of another program stays."""
    place = tmp_path / "place"
    with opened("a") as a, opened("b") as b, opened("stranger", None) as stranger:
        first = a.make_version(insert={**SECRETS, "note": b"1"})
        exchanged(a, place, "interchange")
        exchanged(b, place, "interchange")
        exchanged(stranger, place, "interchange")
        a.write_snapshot(place)
        assert snapshot_files(place)[-1] == "llvs-v1/manifest.json"
        if at_top:
            for file in (place / "snapshots/llvs-v1").iterdir():
                file.rename(place / "snapshots" / file.name)
        exchanged(a, place, "interchange")
        assert len(snapshot_files(place)) > 1
        a.erase(*SECRETS)
        exchanged(a, place, "interchange")
        assert snapshot_files(place) == []
        exchanged(b, place, "interchange")
        b.write_snapshot(place)
        before = snapshot_files(place)
        for store in (a, b):
            exchanged(store, place, "interchange")
            assert snapshot_files(place) == before
        with opened("new", None) as new:
            new.restore_snapshot(place)
            assert reads(new, first) == {**FORGOTTEN, "note": b"1"}
        stranger.write_snapshot(place)
        (place / "snapshots/manifest.json").write_text('{"snapshotId":"x","format":"zip-v1"}')
        exchanged(b, place, "interchange")
        assert snapshot_files(place) == ["manifest.json"]


def test_a_coordinator_makes_the_snapshot_anew(tmp_path: Path) -> None:
    """The exchange that removes a snapshot puts another one, which lacks the bytes."""
    options = llvs.CoordinatorOptions(snapshots="auto")
    with llvs.Coordinator(tmp_path / "a.llvs", exchange=tmp_path / "place", options=options) as a:
        a.store.set_forgetting(MEMBERS, secrets=[SHARED])
        a.save(insert={**SECRETS, "note": b"1"})
        a.exchange()
        before = (tmp_path / "place/snapshots/llvs-v1/manifest.json").read_bytes()
        a.store.erase(*SECRETS)
        a.merge()
        a.exchange()
        after = (tmp_path / "place/snapshots/llvs-v1/manifest.json").read_bytes()
        assert after != before and b"llvs-v1-hollow" in after and b'"orders":"' in after
        a.exchange()
        assert (tmp_path / "place/snapshots/llvs-v1/manifest.json").read_bytes() == after


@pytest.mark.parametrize("way", WAYS)
def test_equal_values_share_parts(way: str, opened: Callable[..., llvs.Store], tmp_path: Path) -> None:
    """A large value is erased under one id, and stays under another one."""
    place = tmp_path / "place"
    vast = SECRETS["vast"]
    with opened("a") as a:
        first = a.make_version(insert={"x": vast, "y": vast})
        exchanged(a, place, way)
        a.erase("x")
        exchanged(a, place, way)
        assert len([name for name in names(place) if name.startswith("pack1/blob/")]) == 1
    with opened("b") as b:
        exchanged(b, place, way)
        assert reads(b, first) == {"x": "ErasedError", "y": vast}


@pytest.mark.parametrize("way", WAYS)
def test_a_place_without_orders_has_no_further_requests(way: str, opened: Callable[..., llvs.Store], tmp_path: Path) -> None:
    """What is noted of orders is noted once: later exchanges do not write packs again."""
    place = tmp_path / "place"
    with opened("a") as a:
        first = a.make_version(insert={**SECRETS, "note": b"1"})
        exchanged(a, place, way)
        a.erase(*SECRETS)
        exchanged(a, place, way)
        before = names(place)
        for _ in range(2):
            exchanged(a, place, way)
        assert names(place) == before
        a.make_version(first, update={"note": b"2"})
        exchanged(a, place, way)
        assert len(names(place)) <= len(before) + 1

