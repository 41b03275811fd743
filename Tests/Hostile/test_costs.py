"""The work that other devices can cause for a store: it grows with the data that they send, and ends if it is cancelled."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import llvs
import pytest

#: The limits of ExchangeLimits.
TOLD_NAMES = 1_000
TOLD_BROKEN = 10_000


def fill(folder: Path, names: int) -> None:
    (folder / "versions").mkdir(parents=True, exist_ok=True)
    for i in range(names):
        (folder / "versions" / f"none of ours {i}").touch()


def aged(folder: Path) -> None:
    """Sets the times of a folder back by an hour."""
    for inner in ("versions", "changes"):
        os.utime(folder / inner, (time.time() - 3_600,) * 2)


def test_a_folder_full_of_names_that_are_no_versions(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    fill(folder, 3 * TOLD_NAMES)
    (folder / "versions" / ".left-by-a-syncer").touch()
    with llvs.Store(tmp_path / "store") as store, llvs.Exchange(store, folder.as_uri()) as exchange:
        for _ in range(2):
            assert not exchange.retrieve().problems
        store.make_version(insert={"x": b"1"})
        exchange.send()
    with llvs.Store(tmp_path / "other") as other, llvs.Exchange(other, folder.as_uri()) as exchange:
        assert len(exchange.retrieve().versions) == 1


def test_a_file_of_more_than_4_gib(tmp_path: Path) -> None:
    """A file of more than 4 GiB is refused without being read. The other versions are received."""
    folder = tmp_path / "folder"
    with llvs.Store(tmp_path / "other") as other, llvs.Exchange(other, folder.as_uri()) as exchange:
        version = other.make_version(insert={"x": b"1"})
        exchange.send()
    for name, size in (("as-large-as-can-be", 4 << 30), ("larger", (4 << 30) + 1)):
        for inner in ("versions", "changes"):
            with open(folder / inner / name, "wb") as file:
                file.truncate(size)
    with llvs.Store(tmp_path / "store") as store, llvs.Exchange(store, folder.as_uri()) as exchange:
        result = exchange.retrieve()
        assert list(result.versions) == [version.id]
        assert [(problem.name, problem.code) for problem in result.problems] == [
            ("as-large-as-can-be", llvs.ErrorCode.INVALID_JSON),
            ("larger", llvs.ErrorCode.TOO_LARGE),
        ]


def test_a_broken_file_that_is_mended_among_very_many(tmp_path: Path) -> None:
    """Broken files are checked in turn while no name changes. A file that replaces another by a rename is received at the next retrieve; a
    file that is overwritten in place, some retrieves later."""
    folder = tmp_path / "folder"
    for name in ("versions", "changes"):
        (folder / name).mkdir(parents=True)
    for i in range(2 * TOLD_BROKEN + 1):
        (folder / "versions" / f"empty-{i}").touch()

    def version(name: str) -> str:
        return json.dumps({"version": {"identifier": name, "predecessors": {}, "timestamp": 1, "metadata": []}})

    with llvs.Store(tmp_path / "store") as store, llvs.Exchange(store, folder.as_uri()) as exchange:
        (folder / "changes" / "empty-7").write_text("[]")
        # A retrieve relies on the times of a folder only if they are two seconds old.
        aged(folder)
        for _ in range(2):
            problems = exchange.retrieve().problems
            assert len(problems) == TOLD_BROKEN + 1 and any(f"{TOLD_BROKEN + 1} further" in str(problem) for problem in problems)
        (folder / "changes" / "empty-5").write_text("[]")
        (tmp_path / "whole").write_text(version("empty-5"))
        (tmp_path / "whole").rename(folder / "versions" / "empty-5")
        assert [str(id) for id in exchange.retrieve().versions] == ["empty-5"]
        aged(folder)
        exchange.retrieve()
        (folder / "versions" / "empty-7").write_text(version("empty-7"))
        found = [str(id) for _ in range(3) for id in exchange.retrieve().versions]
        assert found == ["empty-7"]


def test_listing_a_folder_ends_when_it_is_cancelled(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    fill(folder, 3 * TOLD_NAMES)
    looks = 0

    def progress(*_: object) -> bool:
        nonlocal looks
        looks += 1
        return looks < 3

    with llvs.Store(tmp_path / "store") as store, llvs.Exchange(store, folder.as_uri()) as exchange:
        with pytest.raises(llvs.CancelledError):
            exchange.retrieve(progress=progress)
        assert looks == 3


def test_the_name_of_a_branch_is_short(tmp_path: Path) -> None:
    with llvs.Store(tmp_path / "store") as store:
        longest = "b" * 1024
        made = store.make_version(insert={"x": b"1"}, branch=longest)
        assert [head.id for head in store.heads() if head.branch == longest] == [made.id]
        with pytest.raises(llvs.Error, match="1024"):
            store.make_version(made, update={"x": b"1"}, branch=longest + "b")
        # The limit is on the size in UTF-8.
        with pytest.raises(llvs.Error, match="1024"):
            store.make_version(made, update={"x": b"1"}, branch="\N{LATIN SMALL LETTER E WITH ACUTE}" * 513)


def test_metadata_of_many_versions_is_not_held(tmp_path: Path) -> None:
    """Much metadata reaches another store unchanged, one piece at a time."""
    folder = tmp_path / "folder"
    with llvs.Store(tmp_path / "store", durability="normal") as store, llvs.Exchange(store, folder.as_uri()) as exchange:
        at = None
        for i in range(300):
            at = store.make_version(at, update={"x": b"%d" % i}, metadata={"note": f"{i} " + "n" * 40_000})
        exchange.send()
    with llvs.Store(tmp_path / "other", durability="normal") as other, llvs.Exchange(other, folder.as_uri()) as exchange:
        result = exchange.retrieve()
        assert len(result.versions) == 300 and not result.problems
        assert [str(version.metadata["note"]).split()[0] for version in other.history()] == [str(i) for i in reversed(range(300))]


@pytest.mark.parametrize("count", [65_536, 65_537])
def test_keys_of_metadata_are_bounded(tmp_path: Path, count: int) -> None:
    """The keys of a version's metadata are sorted. More than 65,536 keys are neither accepted from others nor saved."""
    for name, content in (("versions", {"version": {"identifier": "many", "timestamp": 1, "metadata": []}}), ("changes", [])):
        (tmp_path / name).mkdir()
        if isinstance(content, dict):
            for i in range(count):
                content["version"]["metadata"] += [f"{i}", {"data": ""}]
        (tmp_path / name / "many").write_text(json.dumps(content))
    with llvs.Store(storage="memory") as store, llvs.Exchange(store, tmp_path.as_uri()) as exchange:
        result = exchange.retrieve()
        made = lambda: store.make_version(None, insert={"a": b"1"}, metadata={f"{i}": b"" for i in range(count)}, root=True)
        if count == 65_536:
            assert not result.problems and len(store.versions(["many"])[0].metadata) == count and made()
        else:
            assert [problem.code for problem in result.problems] == [llvs.ErrorCode.INVALID_METADATA] and not store.heads()
            with pytest.raises(llvs.errors.InvalidMetadataError, match="65537 keys"):
                made()
