"""Limits of the system: too many files, permissions, locks, devices; and the files and names that the library uses."""

from __future__ import annotations

import errno
import os
import pickle
import resource
import sqlite3
import stat
import time
from pathlib import Path
from typing import Any, Iterator

import pytest
from interchange import changes_file, version_file
from reference import Set, Version

import llvs


@pytest.fixture
def few_files() -> Iterator[None]:
    """No further file can be opened. Modules of the package are imported at their first use, which opens files."""
    with llvs.Store(storage="memory") as store, llvs.Exchange(store, "memory:few-files"):
        assert llvs.errors.TooManyFilesError
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    next_one = os.open(os.devnull, os.O_RDONLY)
    os.close(next_one)
    resource.setrlimit(resource.RLIMIT_NOFILE, (next_one, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.mark.parametrize("storage", ["file", "sqlite"])
def test_too_many_files(storage: str, tmp_path: Path, few_files: None) -> None:
    with pytest.raises(llvs.errors.TooManyFilesError) as caught:
        llvs.Store(tmp_path / "store", storage=storage)
    error = caught.value
    assert error.code is llvs.ErrorCode.TOO_MANY_FILES
    assert error.system_code == error.errno == errno.EMFILE
    assert isinstance(error, llvs.StorageError)


def test_too_many_files_in_an_exchange(tmp_path: Path, few_files: None) -> None:
    with llvs.Store(storage="memory") as store:
        store.make_version(insert={"x": b"1"})
        with pytest.raises(llvs.errors.TooManyFilesError) as caught, llvs.Exchange(store, (tmp_path / "folder").as_uri()) as exchange:
            exchange.send()
        assert caught.value.system_code == errno.EMFILE


def test_the_number_of_the_system(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(llvs.errors.NotDirectoryError) as caught:
        llvs.Store(tmp_path / "file" / "store")
    assert caught.value.system_code == caught.value.errno == errno.ENOTDIR
    assert pickle.loads(pickle.dumps(caught.value)).system_code == errno.ENOTDIR
    with pytest.raises(llvs.NotFoundError) as nothing:
        llvs.Store(tmp_path / "not" / "there.db", storage="sqlite")
    assert nothing.value.system_code == errno.ENOENT
    with pytest.raises(llvs.errors.InvalidArgumentError) as ours:
        llvs.Store(tmp_path / "new", options=llvs.StoreOptions(file_mode=0o1777))
    assert ours.value.system_code == 0


# Files


def all_below(path: Path) -> Iterator[Path]:
    yield path
    if path.is_dir():
        yield from path.rglob("*")


@pytest.mark.parametrize("storage", ["file", "sqlite"])
@pytest.mark.parametrize(("mask", "mode", "files"), [(0, 0o600, 0o600), (0, 0o660, 0o660), (0o027, 0o666, 0o640), (0, 0o644, 0o644)])
def test_file_mode(storage: str, mask: int, mode: int, files: int, tmp_path: Path) -> None:
    before = os.umask(mask)
    try:
        with llvs.Store(tmp_path / "store", storage=storage, options=llvs.StoreOptions(file_mode=mode)) as store:
            last = None
            for number in range(20):
                last = store.make_version(
                    last, update={"small": str(number).encode(), "large": os.urandom(2 << 20) if number == 3 else b"l"}
                )
            store.compact()
            seen = {path: stat.S_IMODE(path.stat().st_mode) for root in tmp_path.glob("store*") for path in all_below(root)}
        seen |= {path: stat.S_IMODE(path.stat().st_mode) for path in all_below(tmp_path / "store")}
    finally:
        os.umask(before)
    assert len(seen) >= (6 if storage == "file" else 3)
    for path, found in seen.items():
        wanted = files | (files & 0o444) >> 2 if path.is_dir() else files
        assert found == wanted, f"{path}: {found:o}, not {wanted:o}"


@pytest.mark.parametrize("mode", [0, 0o400, 0o200, 0o066, 0o1600, 0o10600, -1])
def test_a_file_mode_that_cannot_be(mode: int, tmp_path: Path) -> None:
    with pytest.raises(llvs.errors.InvalidArgumentError, match="mode"):
        llvs.Store(tmp_path / "store", options=llvs.StoreOptions(file_mode=mode))
    assert not (tmp_path / "store").exists()


# Waiting


def test_busy_timeout(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with llvs.Store(path, storage="sqlite", options=llvs.StoreOptions(busy_timeout=0.06)) as store:
        first = store.make_version(insert={"x": b"1"})
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(llvs.BusyError, match="60 ms"):
            store.make_version(first, update={"x": b"2"})
        with pytest.raises(llvs.BusyError, match="0 s|1 ms"):
            with llvs.Store(path, storage="sqlite", options=llvs.StoreOptions(busy_timeout=0)) as impatient:
                impatient.make_version(first, update={"x": b"2"})
        other.execute("ROLLBACK")
        other.close()
        store.make_version(first, update={"x": b"2"})


@pytest.mark.parametrize("seconds", [-1, float("nan"), float("inf")])
def test_a_busy_timeout_that_cannot_be(seconds: float, tmp_path: Path) -> None:
    with pytest.raises(llvs.errors.InvalidArgumentError, match="busy_timeout"):
        llvs.Store(tmp_path / "store", options=llvs.StoreOptions(busy_timeout=seconds))


# Names

DEVICES = ["CON", "con", "Prn", "AUX", "nul", "COM1", "com9", "LPT1", "lpt5"]


@pytest.mark.parametrize("id", [*DEVICES, "-", "-rf", "-1"])
def test_ids_of_versions_that_are_no_file_names_everywhere(id: str, tmp_path: Path) -> None:
    with llvs.Store(tmp_path / "store", durability="normal") as store:
        with pytest.raises(llvs.errors.InvalidIDError) as caught:
            store.make_version(insert={"x": b"1"}, id=id)
        assert caught.value.code is llvs.ErrorCode.INVALID_VERSION_ID and caught.value.version_id == id
        assert store.heads() == ()


@pytest.mark.parametrize("id", ["CONSOLE", "COM0", "COM10", "LPT", "a-", "nul_", "_"])
def test_ids_that_look_like_those(id: str, tmp_path: Path) -> None:
    with llvs.Store(tmp_path / "store", durability="normal") as store:
        assert store.make_version(insert={"x": b"1"}, id=id).id == id


def test_versions_received_under_such_ids(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    for name in ("versions", "changes"):
        (folder / name).mkdir(parents=True)
    previous: tuple[str, ...] = ()
    for id in ["CON", "prn", "Aux", "NUL", "COM1", "lpt5", "-rf"]:
        version = Version(id, previous, time.time() - 978_307_200, {b"x": Set(id.encode())}, {})
        (folder / "changes" / id).write_bytes(changes_file(version, [b"x"] if not previous else []))
        (folder / "versions" / id).write_bytes(version_file(version))
        previous = (id,)
    with llvs.Store(tmp_path / "store", durability="normal") as store, llvs.Exchange(store, folder.as_uri()) as exchange:
        result = exchange.retrieve()
        assert not result.problems
        assert store.at("-rf")["x"] == b"-rf"
        built = store.make_version("-rf", update={"x": b"2"})
        with llvs.Exchange(store, (tmp_path / "other").as_uri()) as other:
            other.send()
        with llvs.Store(tmp_path / "second", durability="normal") as second:
            with llvs.Exchange(second, (tmp_path / "other").as_uri()) as other:
                assert not other.retrieve().problems
            assert second.at(built)["x"] == b"2"
            assert second.at("CON")["x"] == b"CON"
