"""Names of versions, as a table: the version of each, and the error for names without a version."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Iterator

import pytest

import llvs
from llvs.tools import moments
from llvs.tools.versions import SHOWN, VersionNameError, VersionNames, current_version

NOW = datetime(2026, 11, 22, 15, 0)
#: The times of the four versions of the line.
TIMES = [datetime(2026, 11, 19, 12), datetime(2026, 11, 20, 9), datetime(2026, 11, 20, 20), datetime(2026, 11, 21, 17, 30)]


@pytest.fixture
def line(memory: llvs.Store) -> Iterator[tuple[llvs.Store, dict[str, llvs.Version]]]:
    """Four versions in a line, a branch at the third, and a merge of both, that is the newest."""
    made: dict[str, llvs.Version] = {}
    last = None
    for number, time in enumerate(TIMES):
        last = made[f"v{number}"] = memory.make_version(last, update={"n": b"%d" % number}, timestamp=time.timestamp())
    made["draft"] = memory.make_version(made["v2"], update={"d": b"1"}, branch="dra~ft", timestamp=TIMES[3].timestamp() + 60)
    side = memory.make_version(made["v2"], update={"s": b"1"}, timestamp=TIMES[3].timestamp() + 120, id="side-one")
    made["side"] = side
    late = TIMES[3].timestamp() + 121
    made["other"] = memory.make_version(made["v2"], update={"t": b"1"}, timestamp=late, id="side-two", branch="dra~ft")
    made["merge"] = memory.merge(made["v3"], side)
    yield memory, made


NAMES = {
    "@": "merge",
    "@~1": "side",  # the newer side of a merge is its first predecessor
    "@^1": "side",
    "@^": "side",
    "@^2": "v3",
    "@^2~": "v2",
    "@^2~3": "v0",
    "@^0": "merge",
    "@~0": "merge",
    "@~2^1~1": "v0",
    "side-one": "side",
    "side-o": "side",
    "SIDE-ON": "side",
    "side-one~1": "v2",
    "dra~ft": "other",  # the newest of two heads
    "dra~ft~1": "v2",
    "@{2026-11-20}": "v2",  # at the end of the day
    "@{2026-11-20 10:00}": "v1",
    "@{2026-11-20T20:00}": "v2",
    "@{yesterday}": "merge",
    "@{yesterday 17:29}": "v2",
    "@{2 days ago}": "v1",
    "@{3 days ago}": "v0",
    "side-one@{friday}~1": "v1",
    "@{now}": "merge",
}


@pytest.mark.parametrize("name", NAMES)
def test_names(line: tuple[llvs.Store, dict[str, llvs.Version]], name: str) -> None:
    store, made = line
    assert VersionNames(store, made["merge"], now=NOW).find(name) == made[NAMES[name]]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("", "is empty"),
        ("nope", "there is no version"),
        ("abc", "a beginning of an id has 4 characters or more"),
        ("side-", "is the beginning of 2 versions: write more of it, as in side-two, side-one"),
        ("side-thre", "did you mean"),
        ("dra~f", "did you mean 'dra~ft'?"),
        ("~3", 'write "@~3"'),
        ("@~9", "goes too far back"),
        ("@^3", "goes too far back: the version "),
        ("@~99999999999", "goes too far back"),
        ("@{tuesday week}", "is no time: write"),
        ("@{}", "is no time"),
        ("@{2026-02-30}", "is no time"),
        ("@{999999 years ago}", "is no time"),
        ("@{2010-01-01}", "before the first version"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("a" * 200, "there is no version"),
        ("\ud800", "there is no version"),
        ("@{", "there is no version"),
    ],
)
def test_names_of_nothing(line: tuple[llvs.Store, dict[str, llvs.Version]], name: str, said: str) -> None:
    store, made = line
    with pytest.raises(VersionNameError) as caught:
        VersionNames(store, made["merge"], now=NOW).find(name)
    assert said in str(caught.value)
    assert str(caught.value).isprintable()
    if "did you mean" in said or "beginning of 2" in said:
        assert caught.value.candidates


def test_beginnings_of_ids(memory: llvs.Store) -> None:
    first = memory.make_version(insert={"a": b"1"})
    names = VersionNames(memory)
    assert names.find(first.id) == names.find(first.id[:4]) == names.find(first.id[:8].lower()) == names.find("@") == first
    exact = memory.make_version(first, update={"a": b"2"}, id="Note-1")
    other = memory.make_version(first, update={"a": b"3"}, id="nOTE-2")
    assert names.find("Note") == exact and names.find("nOTE") == other
    with pytest.raises(VersionNameError, match="beginning of 2 versions"):
        names.find("note")


def test_the_current_version(tmp_path: Path) -> None:
    path = tmp_path / "notes.llvs"
    with llvs.Store(path) as store:
        assert current_version(path, store) is None
        with pytest.raises(VersionNameError, match="no version yet"):
            VersionNames(store).find("@")
        root = store.make_version(insert={"a": b"1"})
        # If no current version is recorded, it is the most recent head. A head without a branch precedes one on a branch.
        branched = store.make_version(root, update={"a": b"2"}, branch="draft")
        assert current_version(path, store) in (root, branched)
    with llvs.Coordinator(path) as coordinator:
        coordinator.save(update={"a": b"3"})
        coordinator.save(update={"a": b"4"})
        coordinator.current_version = root
        # Beside the program that has it open.
        with llvs.Store(path, read_only=True) as store:
            assert current_version(path, store) == root
    with llvs.Store(path, read_only=True) as store:
        assert current_version(path, store) == root


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("2026-11-20", datetime(2026, 11, 20)),
        ("2026-11-20 8:05", datetime(2026, 11, 20, 8, 5)),
        ("2026-11-20t18:00:07.5", datetime(2026, 11, 20, 18, 0, 7, 500_000)),
        ("18:00", datetime(2026, 11, 22, 18)),
        ("today", datetime(2026, 11, 22)),
        ("Today  9:00", datetime(2026, 11, 22, 9)),
        ("yesterday 18:00", datetime(2026, 11, 21, 18)),
        ("monday", datetime(2026, 11, 16)),
        ("sunday", datetime(2026, 11, 22)),
        ("now", NOW),
        ("an hour ago", NOW - timedelta(hours=1)),
        ("3 days ago", NOW - timedelta(days=3)),
        ("2 weeks ago", NOW - timedelta(days=14)),
        ("9 months ago", datetime(2026, 2, 22, 15)),
        ("1 year ago", datetime(2025, 11, 22, 15)),
    ],
)
def test_times(text: str, wanted: datetime) -> None:
    assert moments.seconds_of(text, now=NOW) == wanted.timestamp()


def test_times_with_a_zone_and_ends_of_months() -> None:
    assert moments.seconds_of("2026-11-20T18:00Z") == moments.seconds_of("2026-11-20 20:00+02:00") == 1_795_197_600
    assert moments.seconds_of("1 month ago", now=datetime(2026, 3, 31, 8)) == datetime(2026, 2, 28, 8).timestamp()
    assert moments.seconds_of("2026-11-20", end_of_day=True) == datetime(2026, 11, 21).timestamp() - 1e-6


@pytest.mark.parametrize(
    "text", ["", "soon", "25:00", "2026-13-01", "12", "yesterday18:00", "2026-11-20 18:00+99:99", "0 ago", "\u0663 days ago"]
)
def test_what_is_no_time(text: str) -> None:
    with pytest.raises(ValueError, match="is no time: write"):
        moments.seconds_of(text)


def test_names_that_a_branch_takes(memory: llvs.Store) -> None:
    """Branches are also received from others. A branch never replaces the version that a name meant before."""
    root = memory.make_version(insert={"a": b"1"})
    ours = memory.make_version(root, update={"a": b"2"})
    names = ["@~1", f"{ours.id}~", f"{ours.id}^", "@{yesterday}", "draft~2"]
    for name in [*names, ours.id[:SHOWN], ours.id[:5].lower(), ours.id]:
        memory.make_version(root, update={"a": b"evil"}, branch=name)
    evil = memory.make_version(root, update={"a": b"evil"}, id=ours.id[: SHOWN + 1])
    finder = VersionNames(memory, ours)
    assert finder.find("@~1") == finder.find(f"{ours.id}~") == finder.find(f"{ours.id}^") == root
    assert finder.find(ours.id) == ours
    for name in (ours.id[:SHOWN], ours.id[:5].lower(), evil.id):
        with pytest.raises(VersionNameError, match="names . versions") as raised:
            finder.find(name)
        assert ours in raised.value.candidates
    # A branch whose name looks like steps is found if no version precedes the steps, and any branch with the prefix.
    assert finder.find("draft~2").branch == "draft~2"
    assert finder.find(f"branch:{ours.id[:SHOWN]}").branch == ours.id[:SHOWN]
