"""Compaction: on request, while another process reads and commits, and automatically as the options say."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import llvs
import pytest


def save_often(path: Path, count: int, **options: Any) -> llvs.Version:
    """Makes as many files as versions: each version is saved through another store handle."""
    head = None
    for number in range(count):
        with llvs.Store(path, durability="normal", options=llvs.StoreOptions(**options)) as store:
            head = store.make_version(head, insert={f"value {number}": b"%d" % number})
    assert head is not None
    return head


def files(path: Path) -> int:
    return len(list((path / "segments").glob("*.seg")))


OTHER = """
    import sys
    import llvs

    path, head, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
    ids = [f"value {number}" for number in range(count)]
    with llvs.Store(path, durability="normal", options=llvs.StoreOptions(compaction="on_request")) as store:
        while True:
            assert [value and value.data for value in store.values(ids, at=head)] == [b"%d" % number for number in range(count)]
            assert all(store.value(id, at=head) for id in ids)
            print(store.make_version(head, insert={"by the other": b"x"}).id, flush=True)
            if sys.stdin.readline() != "go on\\n":
                break
"""


def test_on_request_beside_another_process(tmp_path: Path) -> None:
    path, count, theirs = tmp_path / "store", 20, []
    head = save_often(path, count, compaction="on_request")
    assert files(path) == count
    arguments = [sys.executable, "-c", textwrap.dedent(OTHER), str(path), head.id, str(count)]
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdin is not None and other.stdout is not None
        with llvs.Store(path, options=llvs.StoreOptions(compaction="on_request", compaction_grace=0)) as store:
            # The first makes a file, the second deletes what it was made of, the third finds nothing.
            for made, folded, deleted in ((1, count, 0), (0, 0, count), (0, 0, 0)):
                theirs.append(other.stdout.readline().strip())
                other.stdin.write("go on\n")
                other.stdin.flush()
                report = store.compact()
                assert (report.made, report.folded, report.deleted, report.sync_marker) == (made, folded, deleted, None)
                assert (report.bytes_written > 0) == (made > 0) and (report.bytes_deleted > 0) == (deleted > 0)
            theirs.append(other.stdout.readline().strip())
        other.stdin.close()
        assert other.wait() == 0
    assert files(path) == 2
    with llvs.Store(path, options=llvs.StoreOptions(compaction="on_request")) as store:
        assert {version.id for version in store.heads()} == set(theirs) and len(list(store.history())) == count + len(theirs)
        assert dict(store.at(head)) == {f"value {number}": b"%d" % number for number in range(count)}
        assert store.verify().damages == ()


def test_by_itself_unless_disabled(tmp_path: Path) -> None:
    save_often(tmp_path / "a", 80, compaction="on_request")
    assert files(tmp_path / "a") == 80
    save_often(tmp_path / "b", 80, compaction_grace=0)
    assert files(tmp_path / "b") < 80
    save_often(tmp_path / "c", 80)
    assert files(tmp_path / "c") > 80
    with llvs.Store(tmp_path / "c", options=llvs.StoreOptions(compaction="on_request")) as store:
        assert store.compact().deleted == 0
    with llvs.Store(tmp_path / "c", options=llvs.StoreOptions(compaction="on_request", compaction_grace=0)) as store:
        assert store.compact().deleted >= 64


def test_a_coordinator_takes_the_same_options(tmp_path: Path) -> None:
    on_request = llvs.CoordinatorOptions(compaction="on_request", compaction_grace=0)
    for number in range(80):
        with llvs.Coordinator(tmp_path / "store", durability="normal", options=on_request) as coordinator:
            coordinator.save(insert={f"{number}": b"x"})
    assert files(tmp_path / "store") >= 80
    with llvs.Coordinator(tmp_path / "store", durability="normal", options=llvs.CoordinatorOptions(compaction_grace=0)) as coordinator:
        assert coordinator.store.compact().folded >= 80
        assert coordinator.store.compact().deleted >= 80
        assert len(coordinator.at()) == 80


def test_not_in_a_synced_folder_unless_enabled(tmp_path: Path) -> None:
    path = tmp_path / "store"
    save_often(path, 4, compaction="on_request")
    (tmp_path / ".stfolder").touch()
    for compaction in ("automatic", "on_request"):
        with llvs.Store(path, options=llvs.StoreOptions(compaction=compaction)) as store:
            assert store.compact() == (0, 0, 0, 0, 0, str((tmp_path / ".stfolder").resolve()))
    with llvs.Store(path, options=llvs.StoreOptions(compaction="always")) as store:
        report = store.compact()
        assert report.made == 1 and report.sync_marker is None


FORKS = """
    import os, sys
    import llvs

    child, (reads, writes) = None, os.pipe()

    def fork_once(progress):
        global child
        if child is None:
            child = os.fork()
            if child == 0:
                os.close(writes)
                os.read(reads, 1)
                os._exit(0)

    with llvs.Store(sys.argv[1], options=llvs.StoreOptions(compaction="on_request", compaction_grace=0)) as store:
        print(store.compact(progress=fork_once).folded, store.compact().deleted)
    os.close(writes)
    os.waitpid(child, 0)
"""


def test_a_surviving_child_delays_no_other(tmp_path: Path) -> None:
    save_often(tmp_path / "store", 6, compaction="on_request")
    arguments = [sys.executable, "-W", "ignore", "-c", textwrap.dedent(FORKS), str(tmp_path / "store")]
    assert subprocess.run(arguments, capture_output=True, text=True, timeout=300, check=True).stdout.split() == ["6", "6"]


def test_progress_and_cancellation(tmp_path: Path) -> None:
    path, stages = tmp_path / "store", []
    save_often(path, 6, compaction="on_request")
    with llvs.Store(path, options=llvs.StoreOptions(compaction="on_request")) as store:
        token = llvs.CancelToken()
        token.cancel()
        with pytest.raises(llvs.CancelledError):
            store.compact(cancel=token)
        with pytest.raises(llvs.CancelledError):
            store.compact(progress=lambda progress: False)
        with pytest.raises(ZeroDivisionError):
            store.compact(progress=lambda progress: 1 // 0)  # type: ignore[func-returns-value]
        with pytest.raises(llvs.BusyError):
            store.compact(progress=lambda progress: store.compact())  # type: ignore[func-returns-value]
        assert files(path) == 6
        assert store.compact(progress=lambda progress: stages.append(progress.stage)).made == 1
        assert set(stages) == {llvs.control.Stage.WRITING}
        # Closed from within: done when the call is.
        store.compact(progress=lambda progress: store.close())
        assert store.closed


def test_who_may_not_does_not(tmp_path: Path) -> None:
    save_often(tmp_path / "store", 2)
    for options in (
        {"compaction": "never"},
        {"compaction_grace": -1},
        {"compaction_grace": float("nan")},
        {"compaction_grace": float("inf")},
    ):
        with pytest.raises(llvs.errors.InvalidArgumentError):
            llvs.Store(tmp_path / "store", options=llvs.StoreOptions(**options))  # type: ignore[arg-type]
    with llvs.Store(tmp_path / "store", read_only=True) as store, pytest.raises(llvs.errors.PermissionDeniedError):
        store.compact()


def test_other_storages_have_nothing_to_do(store: llvs.Store) -> None:
    store.make_version(insert={"a": b"1"})
    report = store.compact()
    assert report == llvs.store.CompactionReport(
        report.folded, report.made, report.deleted, report.bytes_written, report.bytes_deleted, None
    )
    assert (report.folded, report.made, report.deleted) == (0, 0, 0)
