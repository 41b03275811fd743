"""What is known about a place with packs, and what is reported."""

from __future__ import annotations

from pathlib import Path
from typing import Callable

import llvs
import pytest
from llvs import ErrorCode
from llvs.syncer import SyncReason


def test_what_is_known_of_a_place(tmp_path: Path, new_store: Callable[[], llvs.Store]) -> None:
    first, second = new_store(), new_store()
    version = first.make_version(insert={"a": b"1"})
    place = llvs.Remote((tmp_path / "place").as_uri(), layout="bridged", device_name="Ann's laptop")
    with llvs.Exchange(first, place) as way, llvs.Exchange(second, (tmp_path / "place").as_uri() + "?layout=packed") as other:
        assert way.remote_status() is None
        way.send()
        assert other.retrieve().retrieved == (version.id,)
        assert len(way.announce_move("sftp://there/ä/").sent) == 0
        (problem,) = other.retrieve().problems
        assert problem.code == ErrorCode.PLACE_MOVED and "sftp://there/ä/" in str(problem.reason)
        with pytest.raises(llvs.errors.InvalidArgumentError):
            way.announce_move("")
        here, there = way.remote_status(), other.remote_status()
        assert here is not None and there is not None
        assert here.fingerprint == there.fingerprint and len(there.fingerprint.split()) == 6
        assert (there.layout, there.epoch, there.packs) == ("bridged", None, 1) and there.bytes > 300 and there.listed is not None
        (writer,) = there.writers
        assert (writer.number, writer.here, len(writer.id)) == (2, False, 13) and writer.last_seen is not None
        assert here.writers[0] == llvs.exchange.RemoteWriter(writer.id, 2, None, True, "Ann's laptop") and writer.name == "Ann's laptop"
    with llvs.Exchange(first, tmp_path / "single") as way:
        way.send()
        assert way.remote_status() is None
        with pytest.raises(llvs.errors.UnsupportedError):
            way.announce_move("elsewhere")
    for name in ("a\nb", "x" * 129):
        with pytest.raises(llvs.errors.InvalidArgumentError, match="name of a device"):
            llvs.Exchange(first, llvs.Remote((tmp_path / "place").as_uri(), device_name=name))
    # The status is available before this process has exchanged with the place.
    with llvs.Exchange(second, place) as way:
        assert way.remote_status() == there


def test_a_syncer_reports_it(tmp_path: Path) -> None:
    place = (tmp_path / "place").as_uri() + "?layout=packed"
    offline = llvs.syncer.SyncConditions.OFFLINE
    with llvs.Coordinator(tmp_path / "a", exchange=place) as notes, llvs.Syncer(notes, conditions=offline) as syncer:
        notes.save(insert={"a": b"x" * 1_000})
        assert syncer.run()
        (told,) = syncer.status.places
        assert told.last_retrieve is not None and told.last_send is not None and not told.needs_user
        assert told.remote is not None and told.remote.layout == "packed" and told.remote.writers[0].here
        assert told.round.requests > 0 and told.round == told.today
        before = told
        assert syncer.run()
        (told,) = syncer.status.places
        assert 0 < told.round.requests < before.round.requests
        assert told.today.requests == before.today.requests + told.round.requests
        assert told.last_retrieve is not None and before.last_retrieve is not None and told.last_retrieve >= before.last_retrieve
        # Only sending fails; the retrieve before it counts.
        folder = tmp_path / "place" / "pack1"
        folder.rename(tmp_path / "away")
        assert not syncer.run()
        (failed,) = syncer.status.places
        assert failed.last_send == told.last_send and failed.last_retrieve == told.last_retrieve
        assert failed.reason == SyncReason.REMOTE_RESET and failed.needs_user and failed.remote is not None
