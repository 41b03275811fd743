"""One save by a device whose clock is ten years ahead: it counts as made when it arrived, and later saves have correct times.

WrongClockTests (Swift) test the rules themselves."""

import time
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

import llvs

YEARS = 10 * 365 * 86_400.0


def ahead(path: Path, place: Path, device: str) -> llvs.Version:
    """Returns a version that a device saves on the present one, by a clock that is ten years ahead."""
    with llvs.Coordinator(path, exchange=str(place), device=device) as there:
        there.sync()
        version = there.save(update={"x": b"ahead"}, timestamp=time.time() + YEARS)
        there.sync()
        assert version is not None
        return version


def test_a_syncer_counts_no_version_of_a_wrong_clock_as_unread(tmp_path: Path) -> None:
    place = tmp_path / "place"
    wrong = ahead(tmp_path / "bob", place, "bob")
    with llvs.Coordinator(tmp_path / "ann", exchange=str(place), device="ann") as ann:
        with llvs.Syncer(ann, conditions=llvs.syncer.SyncConditions.OFFLINE) as syncer:
            assert syncer.run() and wrong.id in ann.store
            one = syncer.status.places[0]
            assert [problem.code for problem in one.problems] == [llvs.ErrorCode.CLOCK_AHEAD]
            assert (one.unread, one.unread_since) == (0, None)


def test_the_log_may_use_the_store_when_it_gets_the_message(tmp_path: Path) -> None:
    """No lock is held then: another exchange of the same store looks for the same devices, and would wait forever."""
    place, found = tmp_path / "place", []

    def log(level: llvs.log.LogLevel, message: str) -> None:
        if "ahead of this one" in message:
            found.append(other.retrieve())

    with llvs.Coordinator(tmp_path / "ann", exchange=str(place), device="ann") as ann:
        ann.save(update={"x": b"before"})
        ann.sync()
        ahead(tmp_path / "bob", place, "bob")
        with llvs.Exchange(ann.store, "memory:elsewhere") as other, llvs.log.observe_log(log):
            ann.sync()
    assert len(found) == 1


def test_dates_after_one_wrong_clock(tmp_path: Path) -> None:
    place = tmp_path / "place"
    with llvs.Coordinator(tmp_path / "ann", exchange=str(place), device="ann") as ann:
        ann.save(update={"x": b"before"})
        ann.sync()
        wrong = ahead(tmp_path / "bob", place, "bob")
        result = ann.sync()
        assert [(problem.code, problem.name) for problem in result.problems] == [(llvs.ErrorCode.CLOCK_AHEAD, wrong.id)]
        assert '"bob" is 3649 days ahead' in str(result.problems[0].reason) or '"bob" is 3650 days ahead' in str(result.problems[0].reason)
        assert not ann.sync().problems
        saved = [ann.save(update={"x": text}) for text in (b"1", b"2")]

        now = time.time()
        for version in ann.store.history():
            assert version.made_at < now + 1 and version.date < datetime.now(timezone.utc) + timedelta(seconds=1)
        for version in saved:
            assert version is not None and version.timestamp > now + YEARS - 3600
            assert version.metadata["__llvs_clock"] == pytest.approx(now - 978_307_200, abs=3600)
            assert ann.store[version.id].made_at == version.made_at
        stood = ann.version_at(now + 1)
        assert stood is not None and stood == ann.current_version and ann["x"] == b"2"
        before = ann.version_at(now - 86_400)
        assert before is not None and before.date.year == 2001
    # A replica that received all of it from the place dates it by its arrival.
    with llvs.Coordinator(tmp_path / "eve", exchange=str(place)) as eve:
        assert [problem.code for problem in eve.sync().problems] == [llvs.ErrorCode.CLOCK_AHEAD]
        assert max(version.made_at for version in eve.store.history()) < time.time() + 1
