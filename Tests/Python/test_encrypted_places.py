"""Encrypted places: folders, and how the program `age` opens them."""

from __future__ import annotations

import hashlib
import json
import logging
import shutil
import subprocess
from pathlib import Path
from typing import Any, Callable

import llvs
import pytest
from llvs import ErrorCode
from moved_clock import MovedClock
from packs.names import encode
from waiting import eventually

WORDS = "six random words of a person"
LARGE = b"SECRETLARGE" + bytes(range(256)) * 8_192


class Made:
    """An encrypted folder. Encrypting takes ten seconds, so it is made once, and each test gets a copy."""

    def __init__(self, directory: Path) -> None:
        self.folder = directory / "place"
        self.device, self.recovery = llvs.exchange.make_identity(), llvs.exchange.make_identity()
        with llvs.Store("", storage="memory") as store:
            first = store.make_version(insert={"SECRETID": b"SECRETVALUE", "large": LARGE}, metadata={"author": "SECRETAUTHOR"})
            self.last = store.make_version(first, update={"SECRETID": b"SECRETAGAIN"}).id
            place = llvs.Remote(
                self.folder.as_uri(), passphrase=WORDS, identity=self.device.secret, recipients=[self.recovery.recipient]
            )
            with llvs.Exchange(store, place) as way:
                assert not way.retrieve().versions and not list(self.folder.rglob("*")), "nothing is made before there is something to send"
                assert len(way.send().sent) == 2


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    clock = MovedClock()
    clock.hurry()
    try:
        return Made(tmp_path_factory.mktemp("encrypted"))
    finally:
        clock.close()


@pytest.fixture
def folder(made: Made, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made.folder, tmp_path / "place"))


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def ways(made: Made) -> list[dict[str, str]]:
    return [{"passphrase": WORDS}, {"identity": made.device.secret}, {"identity": made.recovery.secret}]


def test_two_devices(made: Made, folder: Path, new_store: Callable[[], llvs.Store]) -> None:
    last = made.last
    for number, options in enumerate(ways(made)):
        store = new_store()
        with llvs.Exchange(store, llvs.Remote(folder.as_uri(), **options)) as way:
            assert not way.retrieve().problems
            assert store.at(last)["large"] == LARGE
            assert store.at(last)["SECRETID"] == (f"SECRET{number}".encode() if number else b"SECRETAGAIN")
            last = store.make_version(last, update={"SECRETID": f"SECRET{number + 1}".encode()}).id
            assert way.send().sent == (last,)
    for name, content in files(folder).items():
        assert content.startswith(b"age-encryption.org/v1\n"), name
        assert b"SECRET" not in content and b"age1" not in content and "SECRET" not in name
        assert not any(id.encode() in content for id in (made.last, last))


def test_what_does_not_fit_is_refused_and_nothing_is_written(
    made: Made, folder: Path, new_store: Callable[[], llvs.Store], caplog: pytest.LogCaptureFixture
) -> None:
    before, stranger = files(folder), llvs.exchange.make_identity()
    cases: list[tuple[Any, ErrorCode]] = [
        (llvs.Remote(folder.as_uri(), passphrase="seven words"), ErrorCode.WRONG_KEY),
        (llvs.Remote(folder.as_uri(), identity=stranger.secret), ErrorCode.WRONG_KEY),
        (llvs.Remote(folder.as_uri(), layout="packed"), ErrorCode.KEY_MISSING),
        (llvs.Remote(folder.as_uri() + "?layout=packed"), ErrorCode.KEY_MISSING),
        (llvs.Remote(folder.as_uri()), ErrorCode.KEY_MISSING),
        (folder, ErrorCode.KEY_MISSING),
    ]
    with caplog.at_level(logging.DEBUG):
        for place, code in cases:
            for step in ("retrieve", "send"):
                store = new_store()
                store.make_version(insert={"mine": b"1"})
                with pytest.raises(llvs.errors.EncryptionError) as raised, llvs.Exchange(store, place) as way:
                    getattr(way, step)()
                assert raised.value.code == code, str(raised.value)
                for text in (str(raised.value), repr(raised.value), repr(place), caplog.text):
                    assert "seven words" not in text and stranger.secret not in text
                assert files(folder) == before
    assert made.device.secret not in repr(made.device)


def test_names_reveal_nothing_of_values(made: Made, folder: Path, tmp_path: Path, new_store: Callable[[], llvs.Store]) -> None:
    """A reader who knows a value cannot find out whether the place has it: the name of a large value is a keyed digest."""
    told = encode(hashlib.sha256(LARGE).digest()[:10])[:16]
    clear, store = tmp_path / "clear", new_store()
    with llvs.Exchange(store, llvs.Remote(folder.as_uri(), identity=made.device.secret)) as way:
        way.retrieve()
    with llvs.Exchange(store, llvs.Remote(clear.as_uri(), layout="packed")) as way:
        way.send()
    assert any(told in name for name in files(clear))
    assert not any(told in name for name in files(folder))


def test_a_syncer_says_that_the_passphrase_is_wrong(folder: Path, tmp_path: Path) -> None:
    """The user has to enter another: it is not tried again by the clock."""
    with llvs.Coordinator(tmp_path / "s.llvs", exchange=llvs.Remote(folder.as_uri(), passphrase="seven words")) as notes:
        notes.save(insert={"a": b"1"})
        with llvs.Syncer(notes, after_save=0.02, longest_pause=0.02, poll=0.05, longest_poll=0.05) as syncer:
            eventually(lambda: syncer.status.reason == llvs.syncer.SyncReason.PASSPHRASE)
            status = syncer.status
            (place,) = status.places
            # No round is due, neither for the place nor for the poll.
            assert status.next_round is None
            assert (status.state, status.reason, place.reason) == (llvs.syncer.SyncState.PAUSED,) + (llvs.syncer.SyncReason.PASSPHRASE,) * 2
            assert place.failures == 1 and place.retry_at is None and isinstance(place.error, llvs.errors.EncryptionError)


def test_a_place_in_clear_is_refused(tmp_path: Path, new_store: Callable[[], llvs.Store]) -> None:
    for layout in ("packed", "interchange"):
        place, store = tmp_path / layout, new_store()
        store.make_version(insert={"a": b"1"})
        with llvs.Exchange(store, llvs.Remote(place.as_uri(), layout=layout)) as way:
            way.send()
        before = files(place)
        for step in ("retrieve", "send"):
            with pytest.raises(llvs.errors.EncryptionError, match="not encrypted"):
                with llvs.Exchange(store, llvs.Remote(place.as_uri(), passphrase=WORDS)) as way:
                    getattr(way, step)()
        assert files(place) == before


def test_what_is_no_key(tmp_path: Path, store: llvs.Store) -> None:
    url, identity = (tmp_path / "place").as_uri(), llvs.exchange.make_identity()
    wrong: list[dict[str, Any]] = [
        {"identity": "AGE-SECRET-KEY-1WRONG"},
        {"identity": identity.recipient},
        {"identity": identity.secret, "recipients": ["age1wrong"]},
        {"identity": identity.secret, "recipients": [identity.secret]},
        {"recipients": [identity.recipient]},
        {"passphrase": "x" * 1_025},
        {"passphrase": WORDS, "layout": "interchange"},
    ]
    for options in wrong:
        with pytest.raises(llvs.errors.InvalidArgumentError) as raised:
            llvs.Exchange(store, llvs.Remote(url, **options))
        assert identity.secret not in str(raised.value) and "WRONG" not in str(raised.value)
    with pytest.raises(llvs.errors.InvalidArgumentError):
        llvs.Remote(url, passphrase="")
    with pytest.raises(llvs.errors.InvalidArgumentError):
        llvs.Remote(url, layout="loose")
    with pytest.raises(TypeError):
        llvs.Remote(url, identity=identity.secret, recipients=identity.recipient)
    with pytest.raises(llvs.errors.InvalidArgumentError):
        llvs.Exchange(store, llvs.Remote("memory:x", passphrase=WORDS))


def test_members(made: Made, folder: Path, new_store: Callable[[], llvs.Store]) -> None:
    phone, mine, theirs = llvs.exchange.make_identity(), new_store(), new_store()
    with llvs.Exchange(mine, llvs.Remote(folder.as_uri(), identity=made.device.secret)) as way:
        way.retrieve()
        assert sorted(one.kind for one in way.members()) == ["device", "device", "passphrase"]
        with pytest.raises(llvs.errors.InvalidArgumentError):
            way.add_member("age1wrong")
        with pytest.raises(llvs.errors.InvalidArgumentError):
            way.add_member(phone.recipient, kind="friend")
        way.add_member(phone.recipient, "Ann's phone", kind="host")
        found = {one.recipient: one for one in way.members()}
        assert found[phone.recipient].name == "Ann's phone" and found[phone.recipient].kind == "host" and len(found) == 4
        with llvs.Exchange(theirs, llvs.Remote(folder.as_uri(), identity=phone.secret)) as other:
            assert len(other.retrieve().retrieved) == 2
        way.remove_member(phone.recipient)
        assert phone.recipient not in {one.recipient for one in way.members()}
        with pytest.raises(llvs.errors.InvalidArgumentError):
            way.add_member(phone.recipient)
        version = mine.make_version(made.last, insert={"later": b"SECRETLATER"})
        way.send()
    with llvs.Exchange(theirs, llvs.Remote(folder.as_uri(), identity=phone.secret)) as other:
        result = other.retrieve()
        assert [problem.code for problem in result.problems] == [ErrorCode.KEY_MISSING] and not result.retrieved
    third = new_store()
    with llvs.Exchange(third, llvs.Remote(folder.as_uri(), identity=made.recovery.secret)) as other:
        assert not other.retrieve().problems and third.at(version)["later"] == b"SECRETLATER"
    with llvs.Exchange(third, folder.parent / "clear") as plain, pytest.raises(llvs.errors.UnsupportedError):
        plain.members()


def test_another_passphrase(made: Made, folder: Path, new_store: Callable[[], llvs.Store]) -> None:
    """The old passphrase opens nothing, the exchange continues, and other devices get an error."""

    def opened(**options: str) -> int:
        with llvs.Exchange(new_store(), llvs.Remote(folder.as_uri(), **options)) as way:
            return len(way.retrieve().retrieved)

    mine, keys = new_store(), folder / "pack1/keys"
    with llvs.Exchange(new_store(), llvs.Remote(folder.as_uri(), identity=made.device.secret)) as way:
        with pytest.raises(llvs.errors.InvalidArgumentError, match="opened with it"):
            way.change_passphrase("the next")
    before = files(keys)
    with llvs.Exchange(mine, llvs.Remote(folder.as_uri(), passphrase=WORDS)) as way:
        for wrong in ("", "x" * 1_025):
            with pytest.raises(llvs.errors.InvalidArgumentError):
                way.change_passphrase(wrong)
        assert files(keys) == before
        members = way.members()
        way.change_passphrase("the ne\u0301xt")
        assert way.members() == members and len(way.retrieve().retrieved) == 2
        changed = files(keys)
        assert len(changed) == len(before) and set(changed) - set(before) and set(before) - set(changed)
        last = mine.make_version(made.last, insert={"later": b"1"}).id
        assert way.send().sent == (last,)
    with pytest.raises(llvs.errors.EncryptionError) as raised:
        opened(passphrase=WORDS)
    assert raised.value.code == ErrorCode.WRONG_KEY
    assert opened(passphrase="the n\u00e9xt") == opened(identity=made.recovery.secret) == 3


def test_a_passphrase_that_leaked(made: Made, folder: Path, new_store: Callable[[], llvs.Store]) -> None:
    """An attacker with a copy of the passphrase file can read everything written before, and nothing written later."""
    keys, mine, theirs = folder / "pack1/keys", new_store(), new_store()
    (kept,) = keys.glob("pass-*")
    copy = kept.read_bytes()
    # The new passphrase is set by a device that does not know the old one.
    with llvs.Exchange(mine, llvs.Remote(folder.as_uri(), identity=made.device.secret)) as way:
        way.retrieve()
        before = {one.recipient for one in way.members()}
        way.change_passphrase("another", leaked=True)
        after = {one.recipient for one in way.members()}
        assert len(after - before) == len(before - after) == 1
        last = mine.make_version(made.last, insert={"later": b"SECRETLATER"}).id
        assert way.send().sent == (last,)
    assert not kept.exists()
    kept.write_bytes(copy)
    with llvs.Exchange(theirs, llvs.Remote(folder.as_uri(), passphrase=WORDS)) as way:
        result = way.retrieve()
        assert len(result.retrieved) == 2 and ErrorCode.KEY_MISSING in {one.code for one in result.problems}
    with llvs.Exchange(new_store(), llvs.Remote(folder.as_uri(), passphrase="another")) as way:
        assert len(way.retrieve().retrieved) == 3


def test_rekeying(made: Made, folder: Path, tmp_path: Path, new_store: Callable[[], llvs.Store]) -> None:
    """After a device was lost everything is sent again: files for the earlier keys are deleted later, and the others have everything."""
    mine = new_store()
    with llvs.Exchange(mine, llvs.Remote(folder.as_uri(), identity=made.recovery.secret)) as way:
        way.retrieve()
        assert way.rekey() == 0, "there are no other keys yet"
        way.remove_member(made.device.recipient)
        before = files(folder)
        assert way.rekey() == 1, "a pack that is deleted in a day"
        assert not way.retrieve().problems and not way.send().problems
    # The old files are deleted, as they will be later. Then others can read the following.
    for name in before:
        if "/log/" in name or "/base/" in name or "/blob/" in name:
            (folder / name).unlink()
    other = new_store()
    with llvs.Exchange(other, llvs.Remote(folder.as_uri(), identity=made.recovery.secret)) as way:
        result = way.retrieve()
        assert len(result.retrieved) == 2 and not result.problems
        assert other.at(made.last)["large"] == LARGE
    with llvs.Exchange(new_store(), llvs.Remote(folder.as_uri(), identity=made.device.secret)) as way:
        result = way.retrieve()
        assert not result.retrieved and ErrorCode.KEY_MISSING in {one.code for one in result.problems}


def test_keys_that_compete_are_joined(made: Made, folder: Path, tmp_path: Path, new_store: Callable[[], llvs.Store]) -> None:
    """Two devices concurrently remove different members, before either has seen the other's keys."""
    there = Path(shutil.copytree(folder, tmp_path / "there"))
    for place, gone, by in ((folder, made.device, made.recovery), (there, made.recovery, made.device)):
        with llvs.Exchange(new_store(), llvs.Remote(place.as_uri(), identity=by.secret)) as way:
            way.remove_member(gone.recipient)
    mine = new_store()
    with llvs.Exchange(mine, llvs.Remote(folder.as_uri(), passphrase=WORDS)) as way:
        way.retrieve()
    for path in (there / "pack1/keys").iterdir():
        shutil.copy(path, folder / "pack1/keys")
    with llvs.Exchange(mine, llvs.Remote(folder.as_uri(), passphrase=WORDS)) as way:
        assert ErrorCode.KEYS_FORKED in {one.code for one in way.retrieve().problems}
        way.join_keys()
        # Both sides removed a member. Which removal is genuine is for the user to say.
        (told,) = way.retrieve().problems
        assert told.code == ErrorCode.KEYS_FORKED and "as removed" in told.reason
        assert made.recovery.recipient in {one.recipient for one in way.members()}
        way.remove_member(made.recovery.recipient)
        assert not way.retrieve().problems
        assert [one.kind for one in way.members()] == ["passphrase"]
        joined = files(folder)
        way.join_keys()
        assert files(folder) == joined, "nothing competes any more"
        version = mine.make_version(made.last, insert={"later": b"1"}).id
        assert way.send().sent == (version,)
    for identity in (made.device, made.recovery):
        with llvs.Exchange(new_store(), llvs.Remote(folder.as_uri(), identity=identity.secret)) as way:
            result = way.retrieve()
            assert len(result.retrieved) == 2 and ErrorCode.KEY_MISSING in {one.code for one in result.problems}


def age(*arguments: str, data: bytes = b"") -> bytes:
    """The program's own view."""
    return subprocess.run(["age", *arguments], input=data, stdout=subprocess.PIPE, check=True).stdout


def test_the_program_age_opens_everything(made: Made, folder: Path, tmp_path: Path) -> None:
    """As docs/encryption.md explains, with the recovery key alone."""
    key, epoch = tmp_path / "key.txt", tmp_path / "epoch.txt"
    key.write_text(made.recovery.secret + "\n")
    ring = max((folder / "pack1/keys").glob("ring-*"))
    first = age("--decrypt", "-i", str(key), str(ring)).splitlines()[0]
    keys = json.loads(first)
    assert len(keys["members"]) == 3 and [one["number"] for one in keys["epochs"]] == [1]
    epoch.write_text(keys["epochs"][0]["identity"] + "\n")
    found = [path for path in (folder / "pack1").rglob("*") if path.is_file() and path.parent.name != "keys"]
    plain = {path.relative_to(folder / "pack1"): age("--decrypt", "-i", str(epoch), str(path)) for path in found}
    assert len(plain) == 3 and all(content.startswith(b"LLVSPK1\n") and content.endswith(b"LLVSEND\n") for content in plain.values())
    assert sum(b'"encrypted":true' in content for content in plain.values()) == 1
    with pytest.raises(subprocess.CalledProcessError):
        age("--decrypt", "-i", str(key), str(found[0]))


def test_what_age_made_without_the_keys_is_not_believed(
    made: Made, folder: Path, tmp_path: Path, new_store: Callable[[], llvs.Store]
) -> None:
    """An attacker who knows the recipient of an epoch, and not its secret, encrypts a pack to it."""
    key, epoch = tmp_path / "key.txt", tmp_path / "epoch.txt"
    key.write_text(made.recovery.secret + "\n")
    identity = json.loads(age("--decrypt", "-i", str(key), str(max((folder / "pack1/keys").glob("ring-*")))).splitlines()[0])
    epoch.write_text(identity["epochs"][0]["identity"] + "\n")
    recipient = subprocess.run(["age-keygen", "-y", str(epoch)], stdout=subprocess.PIPE, check=True).stdout.decode().strip()
    (log,) = (folder / "pack1/log").iterdir()
    plain = bytearray(age("--decrypt", "-i", str(epoch), str(log)))
    for change in (None, 104):
        forged = bytearray(plain)
        if change is not None:
            forged[len(forged) - 160 + change] ^= 1
        content = age("-r", recipient, data=bytes(forged))
        log.unlink()
        log = log.with_name(log.name[:-26] + encode(hashlib.sha256(content).digest()[:16]))
        log.write_bytes(content)
        store = new_store()
        with llvs.Exchange(store, llvs.Remote(folder.as_uri(), passphrase=WORDS)) as way:
            result = way.retrieve()
        if change is None:
            assert len(result.retrieved) == 2 and not result.problems, "age writes what we read"
        else:
            assert not result.retrieved and [problem.code for problem in result.problems] == [ErrorCode.DAMAGED]


@pytest.mark.parametrize("gone", [["pack1/keys"], ["pack1/keys", "pack1/root-*"], ["pack1/keys", "pack1/root-*", "pack1/blob"]])
def test_keys_that_are_gone_are_missed(folder: Path, made: Made, gone: list[str]) -> None:
    """Deleted, or not brought yet by a program that syncs the folder: the place is no less encrypted."""
    for pattern in gone:
        for path in folder.glob(pattern):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    before = files(folder)
    for keys in ({"passphrase": WORDS}, {"identity": made.device.secret}):
        with llvs.Store("", storage="memory") as store:
            store.make_version(insert={"mine": b"1"})
            with llvs.Exchange(store, llvs.Remote(folder.as_uri(), layout="packed", **keys)) as way:
                for call in (way.retrieve, way.send):
                    with pytest.raises(llvs.Error) as caught:
                        call()
                    assert caught.value.code == ErrorCode.KEY_MISSING and "its keys are not there" in str(caught.value)
                    assert "give an empty one" not in str(caught.value)
    for layout in ("packed", "bridged", "interchange", ""):
        with llvs.Store("", storage="memory") as store:
            store.make_version(insert={"SECRETID": b"SECRETVALUE"})
            with pytest.raises(llvs.Error) as caught:
                with llvs.Exchange(store, llvs.Remote(folder.as_uri(), layout=layout)) as way:
                    way.send()
            assert caught.value.code == ErrorCode.KEY_MISSING, layout
    assert files(folder) == before
