"""The environment of a program: its working directory, the file system, and files of other devices in a shared folder."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import time
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Callable

import llvs
import pytest


@pytest.mark.parametrize("storage", ["file", "sqlite"])
def test_a_relative_path_outlives_a_chdir(storage: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "one").mkdir(), (tmp_path / "two").mkdir()
    monkeypatch.chdir(tmp_path / "one")
    with llvs.Store("store", storage=storage) as store:
        first = store.make_version(insert={"a": b"1"})
        os.chdir("../two")
        second = store.make_version(first, insert={"large": b"x" * 2_000_000})
        assert store.reload() == 0 and store.verify().versions == 2
        assert store.at(second)["large"] == b"x" * 2_000_000
    assert os.listdir(tmp_path / "two") == []
    with llvs.Store(tmp_path / "one" / "store", storage=storage, create=False) as store:
        assert len(store.at(second)) == 2


def test_a_coordinator_with_a_relative_path_outlives_a_chdir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "one").mkdir(), (tmp_path / "two").mkdir()
    monkeypatch.chdir(tmp_path / "one")
    with llvs.Coordinator("store", options=llvs.CoordinatorOptions(cache_directory="cache")) as coordinator:
        coordinator.save(insert={"a": b"1"})
        os.chdir("../two")
        coordinator.save(insert={"b": b"2"})
    assert os.listdir(tmp_path / "two") == []
    os.chdir("../one")
    with llvs.Coordinator("store", options=llvs.CoordinatorOptions(cache_directory="cache")) as coordinator:
        found = coordinator.value("b")
        assert found is not None and found.data == b"2"


def test_paths_of_unusual_form(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for storage in ("file", "sqlite"):
        for name in ("with space", "ünïcödé", "trailing/", "./dot", "new\nline", "100%25", "q?mode=memory", "a#b", ":memory:", "file:x"):
            path = f"{storage}-{name}" if name[0] not in ".:f" else name
            with llvs.Store(path, storage=storage) as store:  # type: ignore[arg-type]
                store.make_version(insert={"a": b"1"})
            with llvs.Store(path, storage=storage, read_only=True) as store:  # type: ignore[arg-type]
                assert len(store.heads()) == 1
            shutil.rmtree(path, ignore_errors=True)
            for left in tmp_path.glob("*"):
                left.unlink() if left.is_file() else None
    for call in (
        lambda: llvs.Store("x" * 300),
        lambda: llvs.Store("a\ud800"),
        lambda: llvs.Store("x/" * 3000),
        lambda: llvs.Exchange(store, "file:///" + "x" * 300),
    ):
        with llvs.Store(storage="memory") as store, pytest.raises(llvs.Error) as caught:
            call()
        assert caught.value.code in (llvs.ErrorCode.INVALID_ARGUMENT, llvs.ErrorCode.INVALID_UTF8)


@pytest.mark.parametrize("place", [b"file:///x", 5, None, object()], ids=["bytes", "a number", "None", "an object"])
def test_an_exchange_with_what_is_no_place(memory: llvs.Store, place: Any, tmp_path: Path) -> None:
    with pytest.raises(TypeError):
        llvs.Exchange(memory, place)
    with llvs.Coordinator(storage="memory") as coordinator, pytest.raises(TypeError):
        coordinator.attach(place)
    if place is not None:
        with pytest.raises(TypeError):
            llvs.Coordinator(tmp_path / "store", exchange=place)
    with pytest.raises(llvs.errors.InvalidArgumentError):
        llvs.Coordinator(tmp_path / "store", exchange="")
    assert not (tmp_path / "store").exists()


def test_names_that_are_none(memory: llvs.Store) -> None:
    class Numbers(llvs.exchange.Transport):
        def list(self) -> Any:
            return [5]

        def fetch_versions(self, names: Any) -> Any:
            return [None] * len(names)

        fetch_changes = fetch_versions

        def send(self, files: Any) -> None:
            pass

    with llvs.Exchange(memory, Numbers()) as exchange, pytest.raises(TypeError):
        exchange.retrieve()


def write_version(folder: Path, name: str, timestamp: str = "700000000.5") -> None:
    for kind in ("versions", "changes"):
        (folder / kind).mkdir(parents=True, exist_ok=True)
    (folder / "changes" / name).write_text("[]")
    (folder / "versions" / name).write_text(f'{{"version":{{"identifier":"{name}","timestamp":{timestamp},"metadata":[]}}}}')


def test_dates_beyond_the_calendar(memory: llvs.Store, tmp_path: Path) -> None:
    """Clocks of others may be wrong. A time that cannot be a date raises the documented error.

    A version from the future counts as made when it arrived.
    """
    for index, timestamp in enumerate(["1e300", "-1e300", "1.7976931348623157e308", "1e17", "1e12", "-1e12", "-6e10", "3e11"]):
        write_version(tmp_path, f"far{index}", timestamp)
    write_version(tmp_path, "near", "0")
    with llvs.Exchange(memory, tmp_path.as_uri()) as exchange:
        assert [problem.code for problem in exchange.retrieve().problems] == [llvs.ErrorCode.CLOCK_AHEAD]
    for version in memory.history():
        if version.timestamp > time.time():
            assert abs(version.made_at - time.time()) < 3600 and version.date.year >= 2026
        elif version.id == "near":
            assert version.date == datetime(2001, 1, 1, tzinfo=timezone.utc)
        elif version.id == "far6":
            assert version.date.year == 99
        else:
            with pytest.raises(OverflowError):
                version.date
        saved = memory.make_version(version, insert={"a": b"1"})
        assert saved.timestamp >= version.timestamp
        assert memory.at(memory.merge(saved, "near"))["a"] == b"1"
    assert memory.verify().damages == ()


def test_what_arrived_whole_is_not_written_again(memory: llvs.Store, tmp_path: Path) -> None:
    """A file that one retrieve found half-written, and the next found whole, belongs to the device that wrote it."""
    write_version(tmp_path, "late")
    whole = (tmp_path / "versions" / "late").read_bytes()
    (tmp_path / "versions" / "late").write_bytes(whole[:20])
    with llvs.Exchange(memory, tmp_path.as_uri()) as exchange:
        assert [problem.code for problem in exchange.retrieve().problems] == [llvs.ErrorCode.CUT_SHORT]
        (tmp_path / "versions" / "late").write_bytes(whole)
        assert exchange.retrieve().retrieved == ("late",)
        assert exchange.send().sent == ()
        assert (tmp_path / "versions" / "late").read_bytes() == whole


@pytest.fixture
def mounted(tmp_path: Path) -> Any:
    """Mounts over directories, where that is allowed."""
    targets: list[str] = []

    def mount(target: Path, *commands: list[str]) -> Path:
        target.mkdir()
        for command in commands:
            if subprocess.run(["mount", *command, str(target)], capture_output=True).returncode != 0:
                pytest.skip("mounting is not allowed here")
            targets.append(str(target)) if str(target) not in targets else None
        return target

    if os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("mounting is for root")
    yield mount
    for target in targets:
        subprocess.run(["umount", target], check=True)


def test_a_read_only_medium(mounted: Callable[..., Path], tmp_path: Path) -> None:
    made = tmp_path / "made"
    made.mkdir()
    for storage in ("file", "sqlite"):
        with llvs.Store(made / storage, storage=storage) as store:  # type: ignore[arg-type]
            store.make_version(insert={"a": b"1"})
    medium = mounted(tmp_path / "medium", ["--bind", str(made)], ["-o", "remount,ro,bind"])
    for storage in ("file", "sqlite"):
        with llvs.Store(medium / storage, storage=storage, read_only=True) as store:  # type: ignore[arg-type]
            assert store.at(store.heads()[0])["a"] == b"1"
        with pytest.raises(llvs.Error) as caught:
            with llvs.Store(medium / storage, storage=storage) as store:  # type: ignore[arg-type]
                assert store.at(store.heads()[0])["a"] == b"1"
                store.make_version(root=True)
        assert caught.value.code == llvs.ErrorCode.READ_ONLY and str(medium) in str(caught.value)


@pytest.mark.parametrize("storage", ["file", "sqlite"])
def test_a_full_disk(mounted: Callable[..., Path], tmp_path: Path, storage: Any) -> None:
    disk = mounted(tmp_path / "disk", ["-t", "tmpfs", "-o", "size=2m", "tmpfs"])
    made: list[llvs.Version] = []
    with llvs.Store(disk / "store", storage=storage) as store:
        with pytest.raises(llvs.Error) as caught:
            while len(made) < 10_000:
                made.append(store.make_version(made[-1] if made else None, insert={str(len(made)): random.randbytes(20_000)}))
        assert caught.value.code == llvs.ErrorCode.NO_SPACE
        assert len(store.at(made[-1])) == len(made) == store.verify().versions
    with llvs.Store(disk / "store", storage=storage) as store:
        assert len(store.at(made[-1])) == len(made)


@pytest.mark.parametrize("layout", ["", "?layout=packed"])
@pytest.mark.parametrize("storage", ["file", "sqlite"])
def test_a_sync_that_does_not_fit_leaves_room_to_save(
    mounted: Callable[..., Path], tmp_path: Path, storage: Any, layout: str
) -> None:
    url = f"file://{tmp_path}/shared{layout}"
    with llvs.Coordinator(tmp_path / "source", exchange=url) as source:
        for number in range(40):
            source.save(update={str(number): random.randbytes(200_000 if number % 2 else 20_000)})
        source.sync()
        everything = dict(source)
    disk = mounted(tmp_path / "disk", ["-t", "tmpfs", "-o", "size=4m", "tmpfs"])
    mine = random.randbytes(60_000)
    with llvs.Coordinator(disk / "store", storage=storage, exchange=url) as small:
        for _ in range(3):
            with pytest.raises(llvs.Error) as caught:
                small.sync()
            assert caught.value.code == llvs.ErrorCode.NO_SPACE
        small.save(update={"mine": mine})
        small.save(update={"mine too": b"1"})
    with llvs.Coordinator(disk / "store", storage=storage, exchange=url) as small:
        small.save(update={"again": b"2"})
        subprocess.run(["mount", "-o", "remount,size=40m", str(disk)], check=True)
        small.sync()
        assert dict(small) == everything | {"mine": mine, "mine too": b"1", "again": b"2"}
        assert not small.store.verify().damages


def test_the_library_installs_no_handlers_of_signals(tmp_path: Path) -> None:
    """docs/dependencies.md says which variables of the environment make Swift's runtime install some."""
    code = """
def caught():
    with open("/proc/self/status") as file:
        mask = next(line for line in file if line.startswith("SigCgt")).split()[1]
    # Signals 32 and 33 are the C library's own, for its threads.
    return int(mask, 16) & ~(0b11 << 31)
before = caught()
import llvs
with llvs.Coordinator("notes", exchange="shared") as notes, llvs.Store("base.db", storage="sqlite") as store:
    notes.save(update={"a": b"1"})
    store.make_version(insert={"a": b"1"})
    with llvs.Syncer(notes) as syncer:
        syncer.run()
    print("same" if caught() == before else f"{before:x} {caught():x}")
"""
    # An interpreter of its own, without the handlers of the test run.
    variables = {name: value for name, value in os.environ.items() if not name.startswith("SWIFT_")}
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=variables, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "same\n"), done.stdout + done.stderr


def test_a_bare_environment(tmp_path: Path) -> None:
    """The C locale, no home, no variables."""
    code = """
import llvs
with llvs.Store("caf\\u00e9") as store:
    version = store.make_version(insert={"\\u00e9": b"1"}, metadata={"\\u00e9": "\\u00e9"}, branch="\\u00e9")
    assert dict(store.at(version)) == {"\\u00e9": b"1"} and version.metadata["\\u00e9"] == "\\u00e9"
    try:
        store.value("\\u00e9", at="no-such")
    except llvs.Error as error:
        assert "no-such" in str(error) and "caf\\u00e9" in str(error)
try:
    print(ascii(llvs.default_path("app")))
except llvs.Error as error:
    print(error.code.name)
"""
    variables = {name: os.environ[name] for name in ("PYTHONPATH", "LLVS_LIBRARY", "PATH") if name in os.environ}
    done = subprocess.run(
        [sys.executable, "-X", "utf8=0", "-c", code], cwd=tmp_path, env={**variables, "LC_ALL": "C"}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_many_writers_at_full_durability(tmp_path: Path) -> None:
    """A writer that commits at full durability syncs earlier versions of others: one file after the other, or, from a certain number on,
    all together."""
    for size in (10, 2_000_000):
        path = tmp_path / str(size)
        with llvs.Store(path) as first:
            root = first.make_version(insert={"a": b"0"})
            for index in range(12):
                with llvs.Store(path, durability="normal") as other:
                    other.make_version(root, update={"a": bytes([index]) * size})
            assert first.reload() == 12
            last = first.make_version(root, update={"a": b"1"})
        with llvs.Store(path) as again:
            assert len(again.heads()) == 13 and again.at(last)["a"] == b"1"
            again.make_version(last)
