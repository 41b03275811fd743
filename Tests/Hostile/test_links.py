"""Symbolic links, pipes and devices in place of the files of an exchange, a store or an import: their targets are not read, written or
removed, and no call waits for them."""

from __future__ import annotations

import os
import shutil
import socket
import tempfile
import threading
from pathlib import Path
from typing import Any, Callable

import llvs
import pytest
from sampling import sample


def files(folder: Path) -> dict[str, bytes]:
    """All files in a folder, with their contents."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def exchange_of(folder: Path, **values: bytes) -> str:
    """Makes an exchange folder with one version of these values; returns its id."""
    with llvs.Store(storage="memory") as store:
        version = store.make_version(None, insert=values)
        with llvs.Exchange(store, folder) as exchange:
            exchange.send()
        return version.id


@pytest.fixture
def private(tmp_path: Path) -> Path:
    """Another exchange, unrelated to the attacked one."""
    folder = tmp_path / "private"
    exchange_of(folder, secret=b"nobody else's")
    with llvs.Store(storage="memory") as store, llvs.Exchange(store, folder) as exchange:
        exchange.retrieve()
        exchange.put_snapshot()
    return folder


# ---- The exchange folder ----


@pytest.mark.parametrize("linked", [["versions"], ["changes"], ["versions", "changes"], ["tmp"]])
def test_linked_sub_folders_are_neither_read_nor_written(tmp_path: Path, private: Path, linked: list[str]) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    for name in linked:
        (shared / name).symlink_to(private / name)
    before = files(private)
    with llvs.Store(storage="memory") as store:
        own = store.make_version(None, insert={"own": b"1"})
        with llvs.Exchange(store, shared) as exchange:
            for call in (exchange.send, exchange.retrieve, exchange.verify, exchange.put_snapshot):
                try:
                    call()
                except llvs.errors.NotDirectoryError:
                    pass
        assert [version.id for version in store.history()] == [own.id]
    assert files(private) == before
    # The peer receives nothing of the other exchange.
    assert not any(
        b"nobody" in data or b"secret" in data for path, data in files(shared).items() if not (shared / path.split("/")[0]).is_symlink()
    )


def test_the_folder_itself_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "here").symlink_to(tmp_path / "real")
    version = exchange_of(tmp_path / "here", a=b"1")
    assert (tmp_path / "real" / "versions" / version).is_file()


@pytest.mark.parametrize("layout", ["interchange", "packed"])
def test_a_link_that_leads_nowhere_is_no_place(tmp_path: Path, layout: str) -> None:
    """The link's target is missing, for example because a drive is not mounted. Nothing is created at the target."""
    (tmp_path / "here").symlink_to(tmp_path / "away")
    with llvs.Store(storage="memory") as store:
        for create in (True, False):
            with pytest.raises(llvs.NotFoundError, match="here"):
                llvs.Exchange(store, f"file://{tmp_path}/here?layout={layout}", create=create)
    assert not (tmp_path / "away").exists()


@pytest.mark.parametrize("linked", ["snapshots", "snapshots/llvs-v1"])
def test_linked_snapshots_are_not_restored(tmp_path: Path, private: Path, linked: str) -> None:
    shared = tmp_path / "shared"
    (shared / linked).parent.mkdir(parents=True)
    (shared / linked).symlink_to(private / linked)
    with llvs.Store(storage="memory") as store:
        with pytest.raises(llvs.Error, match="symbolic link"):
            store.restore_snapshot(shared)
        assert len(list(store.history())) == 0


def test_a_race_for_a_sub_folder_leads_nowhere(tmp_path: Path) -> None:
    """A peer swaps `changes` for a link and back as fast as it can, while versions are sent. It knows their names."""
    shared, outside, aside = tmp_path / "shared", tmp_path / "outside", tmp_path / "aside"
    exchange_of(shared, a=b"1")
    outside.mkdir()
    ids = [f"V{i}" for i in range(sample(40, 150))]
    for id in ids:
        (outside / id).write_bytes(b"precious")
    before, stop = files(outside), threading.Event()

    def swap() -> None:
        link, changes = tmp_path / "link", shared / "changes"
        while not stop.is_set():
            link.symlink_to(outside)
            os.rename(changes, aside)
            try:
                os.rename(link, changes)
            except OSError:
                # The replica has created the folder again meanwhile.
                link.unlink()
                shutil.rmtree(aside)
                continue
            changes.unlink()
            try:
                os.rename(aside, changes)
            except OSError:
                shutil.rmtree(aside)

    attacker = threading.Thread(target=swap)
    attacker.start()
    try:
        with llvs.Store(storage="memory") as store, llvs.Exchange(store, shared, durability="normal") as exchange:
            head: Any = None
            for id in ids:
                head = store.make_version(head, id=id, insert={id: b"x"})
                try:
                    exchange.send()
                except llvs.Error:
                    pass
    finally:
        stop.set()
        attacker.join()
    assert files(outside) == before


# ---- A store ----


@pytest.fixture
def other(tmp_path: Path) -> Path:
    """Another store, unrelated to the attacked one."""
    path = tmp_path / "other"
    with llvs.Store(path) as store:
        store.make_version(None, insert={"secret": b"nobody else's", "large": b"s" * (2 << 20)})
    return path


@pytest.mark.parametrize("linked", ["segments", "blobs", "cache"])
def test_linked_folders_of_a_store_lead_nowhere(tmp_path: Path, other: Path, linked: str) -> None:
    path = tmp_path / "store"
    with llvs.Store(path):
        pass
    for file in (path / linked).iterdir() if (path / linked).is_dir() else []:
        file.unlink()
    if (path / linked).is_dir():
        (path / linked).rmdir()
    (path / linked).symlink_to(other / linked)
    before = files(other)
    try:
        with llvs.Store(path) as store:
            assert len(list(store.history())) == 0
            head = store.make_version(None, insert={f"k{i}": b"v" for i in range(5_000)})
            store.make_version(head, insert={"large": b"l" * (2 << 20)})
    except llvs.Error as error:
        assert linked != "cache" and "symbolic link" in str(error)
    assert files(other) == before


def test_linked_files_of_a_store_are_not_read(tmp_path: Path, other: Path) -> None:
    path = tmp_path / "store"
    with llvs.Store(path):
        pass
    for folder in ("segments", "blobs"):
        (path / folder).mkdir(exist_ok=True)
        for file in (other / folder).iterdir():
            (path / folder / file.name).symlink_to(file)
    before = files(other)
    with llvs.Store(path) as store:
        assert len(list(store.history())) == 0
        store.make_version(None, insert={"own": b"1"})
        store.verify()
        store.compact()
    assert files(other) == before


def test_a_link_in_the_place_of_a_value_is_damage_that_an_exchange_repairs(tmp_path: Path) -> None:
    data, shared = os.urandom(2 << 20), tmp_path / "shared"
    with llvs.Store(tmp_path / "store") as store, llvs.Exchange(store, shared) as exchange:
        version = store.make_version(None, insert={"large": data})
        exchange.send()
    blob = next((tmp_path / "store" / "blobs").glob("*.blob"))
    (tmp_path / "precious").write_bytes(blob.read_bytes())
    blob.unlink()
    blob.symlink_to(tmp_path / "precious")
    before = (tmp_path / "precious").read_bytes()
    with llvs.Store(tmp_path / "store") as store, llvs.Exchange(store, shared) as exchange:
        with pytest.raises(llvs.Error):
            store.at(version)["large"]
        exchange.retrieve()
        assert store.at(version)["large"] == data
    assert (tmp_path / "precious").read_bytes() == before


# ---- Files that block the process that opens them ----


def in_time(body: Callable[[], None], limit: float = 60) -> None:
    """Runs a function on a thread, and fails if it does not return in time."""
    thread = threading.Thread(target=body, daemon=True)
    thread.start()
    thread.join(limit)
    assert not thread.is_alive(), "it waits for somebody to open the other end"


def pipes(*paths: Path) -> None:
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        os.mkfifo(path)


def test_pipes_delay_no_call(tmp_path: Path) -> None:
    shared, path = tmp_path / "shared", tmp_path / "store"
    with llvs.Store(path) as store:
        store.make_version(None, insert={f"k{i}": b"v" for i in range(5_000)})
    pipes(
        *(shared / name for name in ("versions/A", "changes/A", "tmp/A", "snapshots/manifest.json", "snapshots/llvs-v1/manifest.json")),
        *(
            path / name
            for name in ("llvs-store", "segments/" + "0" * 32 + ".seg", "segments/" + "1" * 32 + ".seg", "blobs/" + "0" * 32 + ".blob")
        ),
        *(path / "cache" / file.name for file in list((path / "cache").iterdir()) + [Path("coordinator-x.note")]),
    )

    def use() -> None:
        with llvs.Store(path) as store, llvs.Exchange(store, shared) as exchange:
            for call in (exchange.retrieve, exchange.send, exchange.verify, exchange.put_snapshot, store.verify, store.compact):
                try:
                    call()
                except llvs.Error:
                    pass

    in_time(use)


def test_sockets_are_reported_as_what_they_are(tmp_path: Path) -> None:
    """A socket, which cannot be opened, is not a file of the exchange; neither is a pipe."""
    shared = tmp_path / "shared"
    with llvs.Store(storage="memory") as store, llvs.Exchange(store, shared) as exchange:
        store.make_version(insert={"x": b"1"})
        exchange.send()
        exchange.put_snapshot()
    (shared / "changes" / "A").write_bytes(b"[]")
    for name in ("versions/A", "snapshots/llvs-v1/manifest.json"):
        path = shared / name
        path.unlink(missing_ok=True)
        # A socket's path must be short.
        folder = os.open(path.parent, os.O_RDONLY)
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(f"/proc/self/fd/{folder}/{path.name}")
        os.close(folder)
    with llvs.Store(storage="memory") as store, llvs.Exchange(store, shared) as exchange:
        result = exchange.retrieve()
        assert [problem.code for problem in result.problems] == [llvs.ErrorCode.FOREIGN_FILE] and len(result.retrieved) == 1
        with pytest.raises(llvs.Error) as raised:
            exchange.restore_snapshot()
        assert raised.value.code == llvs.ErrorCode.FOREIGN_FILE


@pytest.mark.parametrize("suffix", ["", "-wal", "-shm", "-journal"])
def test_pipes_beside_a_database_delay_no_call(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / "store.db"
    with llvs.Store(path, storage="sqlite") as store:
        store.make_version(None, insert={"a": b"1"})
    pipes(Path(f"{path}{suffix}"))

    def use() -> None:
        for options in ({}, {"read_only": True}):
            with pytest.raises(llvs.Error):
                llvs.Store(path, storage="sqlite", **options)

    in_time(use)


# ---- Files that cannot be replaced in an exchange folder ----


def test_one_version_that_has_no_room_holds_back_what_depends_on_it_only(tmp_path: Path) -> None:
    """In the place of a version's file is a directory with a file in it, or, as root, another user's file in a folder with a sticky bit."""
    kinds = ["directory"] + (["sticky"] if os.geteuid() == 0 else [])
    base = Path(tempfile.mkdtemp())
    try:
        base.chmod(0o777)
        for kind in kinds:
            for which in ("versions", "changes"):
                for together in (False, True):
                    shared = base / f"{kind}-{which}-{together}"
                    squatted(shared, kind, which, together)
    finally:
        shutil.rmtree(base)


def squatted(shared: Path, kind: str, which: str, together: bool) -> None:
    with llvs.Store(storage="memory") as store:
        root = store.make_version(None, insert={"a": b"1"})
        for name in ("versions", "changes", "tmp"):
            (shared / name).mkdir(parents=True)
        taken = store.make_version(root, insert={"a": b"2"})
        place = shared / which / taken.id
        if kind == "directory":
            (place / "full").mkdir(parents=True)
        else:
            place.write_bytes(b"{")
            for one in (shared, shared / "tmp", shared / which):
                one.chmod(0o1777)
            for one in (shared / "versions", shared / "changes", place, shared / which):
                os.chown(one, 65533, 65533)
            for one in (shared / "versions", shared / "changes"):
                one.chmod(0o1777)
            os.seteuid(65534)
        try:
            with llvs.Exchange(store, shared, durability="normal") as exchange:
                if not together:
                    # The only version of its batch.
                    result = exchange.send()
                    assert [problem.name for problem in result.problems] == [taken.id]
                held = store.make_version(taken, insert={"a": b"3"})
                free = store.make_version(root, insert={"b": b"1"})
                for _ in range(2):
                    result = exchange.send()
                    assert {problem.name for problem in result.problems} == {taken.id, held.id}
        finally:
            os.seteuid(os.getuid())
    for id in (root.id, free.id):
        assert (shared / "versions" / id).is_file() and (shared / "changes" / id).is_file()
    assert not (shared / "versions" / held.id).exists()
