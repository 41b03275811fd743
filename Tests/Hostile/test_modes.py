"""Only the owner can read the files of a store, whatever the umask is, unless the caller requests other permissions. Files in an exchange
folder follow the umask, since others must read them."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any, Iterator

import llvs
import pytest


@pytest.fixture(params=[0o000, 0o022, 0o077], ids=oct)
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def modes(path: Path) -> dict[str, int]:
    found = {}
    for one in [path, *path.rglob("*")] if path.is_dir() else path.parent.glob(path.name + "*"):
        found[str(one.relative_to(path.parent))] = stat.S_IMODE(one.stat().st_mode)
    return found


def use(path: Path, kind: Any, file_mode: int | None = None) -> dict[str, int]:
    """Everything that a store writes; the permissions while it is open and after that, by name."""
    options = llvs.CoordinatorOptions(file_mode=file_mode)
    found: dict[str, int] = {}
    for _ in range(3):
        with llvs.Store(path, storage=kind, options=options) as store:
            head = store.most_recent_head
            for i in range(3):
                head = store.make_version(head, insert={f"k{j}": os.urandom(9) for j in range(2_000)} | {"large": os.urandom(2 << 20)})
            store.compact()
            found |= modes(path)
    with llvs.Coordinator(path, exchange=f"memory:{path}", storage=kind, options=options) as coordinator:
        coordinator.save(insert={"a": b"1"})
        found |= modes(path)
    # Save so many values that caches are written.
    with llvs.Store(path, storage=kind, durability="normal", options=options) as store:
        head = store.most_recent_head
        for i in range(1_100):
            head = store.make_version(head, insert={"a": str(i).encode()})
    found |= modes(path)
    names = " ".join(found)
    assert all(
        part in names for part in (["segments", "blobs", ".cache", ".note", "llvs-store"] if kind == "file" else ["-wal", "-shm", ".note"])
    ), names
    return found


def check(path: Path, found: dict[str, int], file_mode: int, directory_mode: int) -> None:
    for name, mode in found.items():
        # Paths that no longer exist were files: directories stay.
        expected = directory_mode if (path.parent / name).is_dir() else file_mode
        if name.endswith(".note"):
            # A note is only for users who may write: a user who can open it can lock it.
            expected = 0o600 | (file_mode & 0o022) * 3
        assert mode == expected, f"{name} has {mode:#o}, not {expected:#o}"


@pytest.mark.in_turn("kind", "umask")
@pytest.mark.parametrize("kind", ["file", "sqlite"])
def test_a_store_is_for_its_owner(tmp_path: Path, umask: int, kind: str) -> None:
    path = tmp_path / "store"
    check(path, use(path, kind), 0o600, 0o700)


@pytest.mark.in_turn("kind", "umask")
@pytest.mark.parametrize("kind", ["file", "sqlite"])
def test_the_caller_may_say_otherwise(tmp_path: Path, umask: int, kind: str) -> None:
    path = tmp_path / "store"
    check(path, use(path, kind, 0o640), 0o640 & ~umask, 0o750 & ~umask)


def test_caches_elsewhere(tmp_path: Path, umask: int) -> None:
    caches = tmp_path / "caches"
    with llvs.Store(tmp_path / "store", options=llvs.StoreOptions(cache_directory=caches)) as store:
        store.make_version(None, insert={f"k{i}": b"v" for i in range(5_000)})
    check(caches, modes(caches), 0o600, 0o700)


def test_what_a_salvage_makes(tmp_path: Path, umask: int) -> None:
    for kind in ("file", "sqlite"):
        with llvs.Store(tmp_path / f"{kind}-store", storage=kind) as store:
            store.make_version(None, insert={"a": b"1", "large": os.urandom(2 << 20)})
        llvs.Store.salvage(tmp_path / f"{kind}-store", tmp_path / f"{kind}-new", storage=kind, into_storage=kind)
        check(tmp_path / f"{kind}-new", modes(tmp_path / f"{kind}-new"), 0o600, 0o700)


def test_an_exchange_folder_follows_the_umask(tmp_path: Path, umask: int) -> None:
    shared = tmp_path / "shared"
    with llvs.Store(storage="memory") as store, llvs.Exchange(store, shared) as exchange:
        store.make_version(None, insert={"a": b"1"})
        exchange.send()
        exchange.put_snapshot()
    check(shared, modes(shared), 0o666 & ~umask, 0o777 & ~umask)
