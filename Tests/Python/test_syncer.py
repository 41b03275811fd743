"""Syncing in the background: what starts a round, reports, failures, conditions, deadlines, and the end."""

from __future__ import annotations

import gc
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, Callable, Iterator

import pytest

import llvs
from llvs.syncer import SyncConditions, SyncReason, SyncState
from waiting import GUARD, eventually, returns

#: Settings with which only the test itself leads to rounds.
SELDOM: dict[str, Any] = {"after_save": 0.05, "after_saves": 0.5, "poll": 10_000.0, "longest_poll": 10_000.0}


class Events:
    """Hears them, and keeps those of rounds."""

    def __init__(self) -> None:
        self.all: list[llvs.syncer.SyncEvent] = []
        self.threads: set[int] = set()

    def __call__(self, event: llvs.syncer.SyncEvent) -> None:
        self.threads.add(threading.get_ident())
        self.all.append(event)

    @property
    def rounds(self) -> list[llvs.coordinator.SyncResult]:
        return [event.round for event in self.all if event.round is not None]


@pytest.fixture
def laptop(tmp_path: Path) -> Iterator[llvs.Coordinator]:
    with llvs.Coordinator(tmp_path / "laptop.llvs", exchange=tmp_path / "shared") as notes:
        yield notes


@pytest.fixture
def phone(tmp_path: Path) -> Iterator[llvs.Coordinator]:
    with llvs.Coordinator(tmp_path / "phone.llvs", exchange=tmp_path / "shared") as notes:
        yield notes


@pytest.fixture
def later(tmp_path: Path) -> Iterator[Callable[[], None]]:
    """Waits until an independent device, with the delay of the tests after a save, has sent a save of its own. By then the other devices
    have begun what an earlier save requires."""
    with llvs.Coordinator(tmp_path / "apart.llvs", exchange=tmp_path / "apart") as notes, llvs.Syncer(notes, **SELDOM) as syncer:

        def wait() -> None:
            sent = syncer.status.sent
            notes.save(update={"a": b"%d" % sent})
            eventually(lambda: syncer.status.sent > sent)

        yield wait


def test_two_devices_stay_in_step(laptop: llvs.Coordinator, phone: llvs.Coordinator) -> None:
    events = Events()
    with llvs.Syncer(laptop, events, **SELDOM), llvs.Syncer(phone, **SELDOM):
        laptop.save(insert={"note/1": b"from the laptop"})
        eventually(lambda: "note/1" in phone)
        phone.save(update={"note/1": b"from the phone"}, insert={"note/2": b"new"})
        eventually(lambda: "note/2" in laptop)
        assert laptop["note/1"] == b"from the phone"
        moved = eventually(lambda: next((one for one in events.rounds if one.moved), None))
        assert {change.id for change in laptop.store.diff(moved.from_version, moved.to_version)} <= {"note/1", "note/2"}
    assert len(events.threads) == 1 and threading.get_ident() not in events.threads


def test_saves_on_both_sides_are_merged(laptop: llvs.Coordinator, phone: llvs.Coordinator) -> None:
    laptop.save(insert={"base": b"0"})
    laptop.sync()
    phone.sync()
    with llvs.Syncer(laptop, **SELDOM) as one, llvs.Syncer(phone, **SELDOM) as two:
        one.pause()
        two.pause()
        laptop.save(insert={"a": b"1"})
        phone.save(insert={"b": b"2"})
        one.resume()
        two.resume()
        one.now()
        two.now()
        eventually(lambda: "b" in laptop and "a" in phone)
        eventually(lambda: laptop.current_version == phone.current_version)


def test_a_row_of_saves_goes_out_together(laptop: llvs.Coordinator) -> None:
    """SyncScheduleTests test how long it waits for further saves, with a clock of their own."""
    events = Events()
    with llvs.Syncer(laptop, events, after_save=1.0, after_saves=60.0, poll=10_000.0, longest_poll=10_000.0) as syncer:
        eventually(lambda: syncer.status.rounds == 1)
        for i in range(20):
            laptop.save(insert={f"note/{i}": b"x"})
        eventually(lambda: syncer.status.sent == 20 and syncer.status.state == SyncState.IDLE)
        status = syncer.status
        assert len(events.rounds) < 20
        assert (status.reason, status.rounds) == (SyncReason.NONE, len(events.rounds))
        assert status.last_success is not None and abs(status.last_success - time.time()) < 3_600
        assert status.places[0].failures == 0 and status.places[0].last_success == status.last_success


def test_saves_of_other_processes_are_sent(laptop: llvs.Coordinator, phone: llvs.Coordinator, tmp_path: Path) -> None:
    with llvs.Syncer(laptop, **SELDOM) as syncer:
        eventually(lambda: syncer.status.rounds >= 1)
        script = "import llvs, sys; llvs.Store(sys.argv[1]).make_version(insert={'other': b'process'}, root=True)"
        subprocess.run([sys.executable, "-c", script, str(tmp_path / "laptop.llvs")], check=True)
        eventually(lambda: syncer.status.sent == 1)
    phone.sync()
    assert phone["other"] == b"process"


def test_what_was_retrieved_leads_to_no_further_round(tmp_path: Path, phone: llvs.Coordinator) -> None:
    phone.save(insert={"a": b"1"})
    phone.exchange()
    events = Events()
    with llvs.Coordinator(tmp_path / "laptop.llvs", exchange=tmp_path / "shared") as laptop, llvs.Syncer(laptop, events, **SELDOM):
        first = eventually(lambda: next((event for event in events.all if event.round is not None), None))
        # When the round ended, only the poll was due. (A notification from the folder may lead to another round.)
        assert laptop["a"] == b"1" and first.status.next_round is not None and first.status.next_round > time.time() + 1_000


def test_exchanges_attached_later_take_part(tmp_path: Path) -> None:
    with llvs.Coordinator(tmp_path / "s.llvs") as notes, llvs.Syncer(notes, **SELDOM) as syncer:
        notes.save(insert={"a": b"1"})
        with pytest.raises(llvs.errors.InvalidArgumentError, match="attach"):
            syncer.run()
        assert syncer.status.places == () and syncer.status.next_round is None
        notes.attach(tmp_path / "later")
        eventually(lambda: syncer.status.sent == 1)
        assert [place.place.endswith("/later") for place in syncer.status.places] == [True]


def test_polls(laptop: llvs.Coordinator) -> None:
    with llvs.Syncer(laptop, poll=0.02, longest_poll=0.05) as syncer:
        eventually(lambda: syncer.status.rounds >= 5)
        assert syncer.status.next_round is None or syncer.status.next_round <= time.time() + 1
        syncer.conditions = SyncConditions.BACKGROUND
        eventually(lambda: syncer.status.state == SyncState.IDLE and syncer.status.next_round is None)
        rounds = syncer.status.rounds
        # All rounds from then on are requested by a call.
        for further in range(1, 20):
            assert syncer.run() and syncer.status.rounds == rounds + further


def test_a_place_that_cannot_be_reached(tmp_path: Path) -> None:
    folder = tmp_path / "drive" / "notes"
    folder.mkdir(parents=True)
    events = Events()
    with llvs.Coordinator(tmp_path / "s.llvs", exchange=tmp_path / "home") as notes:
        notes.attach(folder)
        (tmp_path / "drive").rename(tmp_path / "gone")
        (tmp_path / "drive").write_text("no folder")
        notes.save(insert={"a": b"1"})
        with llvs.Syncer(notes, events, longest_pause=0.05, **SELDOM) as syncer:
            eventually(lambda: syncer.status.places and syncer.status.places[1].failures >= 3)
            home, drive = syncer.status.places
            assert home.failures == 0 and home.last_success is not None and home.error is None
            assert drive.reason != SyncReason.NONE and isinstance(drive.error, llvs.Error) and drive.last_success is None
            assert not syncer.run()
            (tmp_path / "drive").unlink()
            (tmp_path / "gone").rename(tmp_path / "drive")
            eventually(lambda: syncer.status.places[1].failures == 0)
            assert syncer.status.places[1].error is None


def test_what_waits_to_be_sent(tmp_path: Path) -> None:
    """Versions and bytes for each place: unknown before a round succeeded there, then none, then those saved since."""
    with llvs.Coordinator(tmp_path / "a", exchange=tmp_path / "shared") as notes:
        with llvs.Syncer(notes, conditions=SyncConditions.OFFLINE, **SELDOM) as syncer:
            notes.save(insert={"x": b"12345"})
            place = eventually(lambda: next(iter(syncer.status.places), None))
            assert (place.pending_versions, place.pending_bytes, place.http_status) == (None, None, None)
            assert syncer.run()
            place = syncer.status.places[0]
            assert (place.pending_versions, place.pending_bytes) == (0, 0)
            notes.save(update={"x": b"1234567"})
            notes.save(insert={"y": b"123"})
            place = eventually(lambda: next((one for one in syncer.status.places if one.pending_versions == 2), None))
            assert place.pending_bytes == 10
            # The other device has received and sent, so no version waits to be sent.
            with llvs.Coordinator(tmp_path / "b", exchange=tmp_path / "shared") as other:
                other.save(insert={"z": b"1"})
                other.sync()
            assert syncer.run()
            assert syncer.status.places[0].pending_versions == 0
            # The failed place still has pending versions, the other one has none.
            notes.attach(tmp_path / "second")
            assert syncer.run()
            (tmp_path / "shared").rename(tmp_path / "away")
            (tmp_path / "shared").write_bytes(b"")
            notes.save(insert={"w": b"1234"})
            assert not syncer.run()
            pending = {one.place: (one.pending_versions, one.pending_bytes) for one in syncer.status.places}
            assert sorted(pending.values()) == [(0, 0), (1, 4)], pending


def test_offline_and_paused(laptop: llvs.Coordinator, later: Callable[[], None]) -> None:
    with llvs.Syncer(laptop, conditions=SyncConditions.OFFLINE, **SELDOM) as syncer:
        eventually(lambda: syncer.status.state == SyncState.WAITING)
        assert syncer.status.reason == SyncReason.OFFLINE
        laptop.save(insert={"a": b"1"})
        later()
        assert syncer.status.rounds == 0
        assert syncer.run()
        assert (syncer.status.rounds, syncer.status.sent) == (1, 1)
        syncer.conditions = SyncConditions.PAUSE
        eventually(lambda: syncer.status.state == SyncState.PAUSED)
        assert syncer.status.reason == SyncReason.PAUSED
        laptop.save(insert={"b": b"1"})
        later()
        assert syncer.status.rounds == 1
        syncer.resume()
        eventually(lambda: syncer.status.sent == 2)


class Slow(llvs.exchange.Transport):
    """Takes its time, and can be left waiting."""

    name = "slow"

    def __init__(self) -> None:
        self.files: dict[str, llvs.exchange.VersionFiles] = {}
        self.entered = threading.Event()
        self.go_on = threading.Event()

    def list(self) -> Any:
        self.entered.set()
        assert self.go_on.wait(GUARD)
        return [*self.files]

    def goes_on_once(self, met: Callable[[], bool]) -> Callable[[llvs.control.Progress], None]:
        """Receives the progress of a call that waits for the round. Whatever ends the call makes the round end before the call reports
        progress
        again: then it continues.
        """
        seen = 0

        def hear(_: llvs.control.Progress) -> None:
            nonlocal seen
            seen += met()
            if seen >= 2:
                self.go_on.set()

        return hear

    def fetch_changes(self, names: Any) -> Any:
        return [self.files[name].changes if name in self.files else None for name in names]

    def fetch_versions(self, names: Any) -> Any:
        return [self.files[name].version if name in self.files else None for name in names]

    def send(self, files: Any) -> None:
        for one in files:
            self.files[one.name] = one


def test_a_deadline(tmp_path: Path) -> None:
    slow = Slow()
    with llvs.Coordinator(tmp_path / "s.llvs", exchange=slow) as notes:
        with llvs.Syncer(notes, conditions=SyncConditions.PAUSE, **SELDOM) as syncer:
            notes.save(insert={"a": b"1"})
            end = time.monotonic() + 0.1
            assert syncer.run(deadline=0.1, progress=slow.goes_on_once(lambda: time.monotonic() > end + 0.05)) is False
            assert syncer.status.sent == 0
            # If the deadline passed before the round began, the callback was not called, so the exchange is still held: let it continue.
            slow.go_on.set()
            assert syncer.run(deadline=GUARD) is True
            assert syncer.status.sent == 1


def test_a_deadline_while_another_round_runs(tmp_path: Path, later: Callable[[], None]) -> None:
    """At the deadline that round ends as well, and none follows."""
    slow = Slow()
    with llvs.Coordinator(tmp_path / "s.llvs", exchange=slow) as notes:
        with llvs.Syncer(notes, **SELDOM) as syncer:
            eventually(lambda: syncer.status.state is SyncState.RUNNING)
            syncer.pause()
            end = time.monotonic() + 0.1
            assert syncer.run(deadline=0.1, progress=slow.goes_on_once(lambda: time.monotonic() > end + 0.05)) is False
            assert syncer.status.rounds == 1 and syncer.status.last_success is None
            later()
            assert syncer.status.rounds == 1


def test_cancelling_a_run(tmp_path: Path) -> None:
    slow = Slow()
    with llvs.Coordinator(tmp_path / "s.llvs", exchange=slow) as notes, llvs.Syncer(notes, conditions=SyncConditions.PAUSE) as syncer:
        notes.save(insert={"a": b"1"})
        token = llvs.CancelToken()

        def cancelled() -> bool:
            token.cancel()
            return True

        with pytest.raises(llvs.CancelledError):
            syncer.run(cancel=token, progress=slow.goes_on_once(cancelled))
        assert syncer.run()


def test_progress_is_reported(laptop: llvs.Coordinator) -> None:
    laptop.save(insert={"a": b"1"})
    heard: list[llvs.control.Progress] = []
    events = Events()
    with llvs.Syncer(laptop, events, conditions=SyncConditions.PAUSE) as syncer:
        assert syncer.run(progress=heard.append)
    assert any(event.status.progress is not None for event in events.all)
    assert all(event.status.state == SyncState.RUNNING for event in events.all if event.status.progress is not None)


def test_callbacks_may_use_everything_but_run(laptop: llvs.Coordinator) -> None:
    found: list[Any] = []

    def hear(event: llvs.syncer.SyncEvent) -> None:
        if event.round is None or found:
            return
        try:
            syncer.run()
        except llvs.BusyError as error:
            found.append(error)
        laptop.save(insert={"from the callback": b"1"})
        syncer.now()
        found.append(syncer.status)
        syncer.close()
        syncer.close()

    ready = threading.Event()
    syncer = llvs.Syncer(laptop, lambda event: (ready.wait(300), hear(event)), **SELDOM)
    ready.set()
    eventually(lambda: len(found) == 2)
    assert isinstance(found[0], llvs.BusyError) and laptop["from the callback"] == b"1"
    with pytest.raises(llvs.ClosedError):
        syncer.now()


def test_a_callback_that_raises(laptop: llvs.Coordinator, monkeypatch: pytest.MonkeyPatch) -> None:
    raised: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", raised.append)
    with llvs.Syncer(laptop, lambda event: 1 / 0) as syncer:
        eventually(lambda: syncer.status.rounds == 1)
        assert syncer.run()
    assert raised and all(one.exc_type is ZeroDivisionError for one in raised)


def test_the_end(laptop: llvs.Coordinator, tmp_path: Path, later: Callable[[], None]) -> None:
    events = Events()
    syncer = llvs.Syncer(laptop, events)
    syncer.close()
    told = len(events.all)
    laptop.save(insert={"a": b"1"})
    later()
    assert len(events.all) == told
    assert repr(syncer) == "<Syncer, closed>"

    notes = llvs.Coordinator(tmp_path / "other.llvs", exchange=tmp_path / "shared")
    left = llvs.Syncer(notes)
    notes.close()
    eventually(lambda: left.status.state == SyncState.OFF)
    with pytest.raises(llvs.ClosedError):
        left.now()
    with pytest.raises(llvs.ClosedError):
        left.run()
    left.close()


def test_left_to_the_garbage_collector(laptop: llvs.Coordinator, later: Callable[[], None]) -> None:
    events = Events()
    syncer = llvs.Syncer(laptop, events)
    eventually(lambda: events.rounds)
    del syncer
    gc.collect()
    told = len(events.all)
    laptop.save(insert={"a": b"1"})
    later()
    assert len(events.all) == told


def test_wrong_arguments(laptop: llvs.Coordinator, tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="SyncEvent"):
        llvs.Syncer(laptop, 5)  # type: ignore[arg-type]
    for name in ("after_save", "after_saves", "poll", "longest_poll", "longest_pause"):
        for value in (0, -1, float("nan"), float("inf"), "1"):
            with pytest.raises(llvs.errors.InvalidArgumentError, match=name):
                llvs.Syncer(laptop, **{name: value})  # type: ignore[arg-type]
    with pytest.raises(llvs.errors.InvalidArgumentError, match="unbranched"):
        llvs.Syncer(laptop, heads="some")
    with pytest.raises(llvs.errors.InvalidArgumentError, match="conditions"):
        llvs.Syncer(laptop, conditions=64)  # type: ignore[arg-type]
    laptop.save(insert={"a": b"1"})
    laptop.close()
    with llvs.Coordinator(tmp_path / "laptop.llvs", read_only=True) as reading, pytest.raises(llvs.errors.PermissionDeniedError):
        llvs.Syncer(reading)
    with pytest.raises(llvs.ClosedError):
        llvs.Syncer(laptop)


def test_many_threads(laptop: llvs.Coordinator, phone: llvs.Coordinator) -> None:
    with llvs.Syncer(laptop, poll=0.01, longest_poll=0.01) as syncer:

        def work(number: int) -> None:
            for i in range(20):
                laptop.save(insert={f"{number}/{i}": b"x"})
                assert syncer.status.rounds >= 0
                if i % 5 == number:
                    syncer.run()
                syncer.conditions = SyncConditions.METERED if i % 2 else SyncConditions.NONE
                syncer.came_to_front()
                syncer.has_news()

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert syncer.run()
    phone.sync()
    assert len(phone) == 80


@pytest.mark.parametrize("place", ["", "memory:a place of its own"])
@pytest.mark.parametrize("conditions", [SyncConditions.NONE, SyncConditions.OFFLINE | SyncConditions.BACKGROUND])
def test_what_comes_over_a_link_is_merged_at_once(place: str, conditions: SyncConditions) -> None:
    pairing, events = llvs.live.make_pairing(), Events()
    with llvs.Coordinator(storage="memory") as a, llvs.Coordinator(storage="memory", exchange=place or None) as b:
        a.save(update={"before": b"1"})
        b.save(update={"own": b"1"})
        with (
            llvs.Syncer(b, events, conditions=conditions, **SELDOM) as syncer,
            llvs.live.listen({pairing: a.store}, ("127.0.0.1", 0)) as listener,
            llvs.live.connect(b.store, listener.address, pairing) as link,
        ):
            link.wait(GUARD)
            eventually(lambda: "before" in b and "own" in b)
            b.save(update={"own": b"2"})
            a.save(update={"x": b"1"})
            eventually(lambda: "x" in b)
            assert b["own"] == b"2"
            moved = eventually(lambda: [one for one in events.rounds if one.moved and one.to_version == b.current_version.id])
            eventually(lambda: syncer.status.state != SyncState.RUNNING)
            if not place or conditions:
                assert not any(one.before.exchanges for one in moved) and syncer.status.last_success is None


def test_what_was_there_before_and_what_is_imported_is_merged_without_a_place(tmp_path: Path) -> None:
    with llvs.Coordinator(tmp_path / "s.llvs") as notes:
        base = notes.save(update={"a": b"1"})
        notes.store.make_version(base, update={"b": b"1"})
        notes.save(update={"c": b"1"})
        with llvs.Syncer(notes, **SELDOM) as syncer:
            eventually(lambda: "b" in notes and "c" in notes)
            script = "import llvs, sys; s = llvs.Store(sys.argv[1]); s.make_version(sys.argv[2], insert={'other': b'process'})"
            subprocess.run([sys.executable, "-c", script, str(tmp_path / "s.llvs"), base.id], check=True)
            eventually(lambda: "other" in notes and "c" in notes)
            notes.save(update={"d": b"1"})
            notes.store.make_version(base, update={"e": b"1"})
            eventually(lambda: "e" in notes)
            assert "d" in notes
            syncer.conditions = SyncConditions.PAUSE
            notes.store.make_version(base, update={"f": b"1"})
            syncer.conditions = SyncConditions.NONE
            eventually(lambda: "f" in notes)


@pytest.mark.parametrize("layout", ["interchange", "packed", "encrypted", "bridged"])
def test_folders_report_changes_to_a_syncer(tmp_path: Path, layout: str) -> None:
    url = f"file://{tmp_path}/shared"
    place = llvs.Remote(url, passphrase="a phrase") if layout == "encrypted" else f"{url}?layout={layout}"
    with llvs.Coordinator(tmp_path / "a.llvs", exchange=place) as a, llvs.Coordinator(tmp_path / "b.llvs", exchange=place) as b:
        with llvs.Syncer(b, **SELDOM) as syncer:
            eventually(lambda: syncer.status.rounds >= 1 and syncer.status.state == SyncState.IDLE)
            # The syncer notices the first versions in an empty folder, and all later ones.
            for i in range(3):
                a.save(update={f"x{i}": b"1"})
                a.exchange()
                eventually(lambda: f"x{i}" in b)


def test_storms_of_merges_end(tmp_path: Path) -> None:
    """Eight devices with an edit each reach one version, with fewer merges than one for each pair of them."""
    devices = [llvs.Coordinator(tmp_path / f"{i}.llvs", exchange=tmp_path / "shared") for i in range(8)]
    devices[0].save(insert={"base": b"0"})
    for device in devices:
        device.sync()
    for i, device in enumerate(devices):
        device.save(insert={f"edit/{i}": b"x"})
    syncers = [llvs.Syncer(device, **SELDOM) for device in devices]
    eventually(lambda: len({device.current_version.id for device in devices}) == 1 and len(devices[0]) == 9)
    eventually(lambda: all(syncer.status.state == SyncState.IDLE for syncer in syncers))
    versions = sum(1 for _ in devices[0].store.history())
    for syncer in syncers:
        syncer.close()
    for device in devices:
        device.close()
    assert versions <= 9 + 8 * 7


def test_closing_the_coordinator_cancels_the_round(tmp_path: Path) -> None:
    """A server that accepts connections and does not answer must not delay a close."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as silent:
        notes = llvs.Coordinator(tmp_path / "notes.llvs")
        notes.attach(llvs.Remote(f"http+webdav://127.0.0.1:{silent.getsockname()[1]}/notes/", timeout=10 * GUARD))
        notes.save(update={"a": b"1"})
        with llvs.Syncer(notes, **SELDOM) as syncer:
            eventually(lambda: syncer.status.state == SyncState.RUNNING)
            silent.accept()[0].detach()  # it asks by now
            returns(notes.close, "closing")


def test_what_a_metered_network_leaves_waits(tmp_path: Path) -> None:
    with llvs.Coordinator(tmp_path / "notes.llvs") as notes:
        notes.attach(llvs.Remote((tmp_path / "place").as_uri(), layout="packed"))
        notes.save(update={"small": b"1"})
        with llvs.Syncer(notes, conditions=SyncConditions.METERED, **SELDOM) as syncer:
            eventually(lambda: [one.pending_versions for one in syncer.status.places] == [0])
            notes.save(update={"large": bytes(2 << 20)})
            notes.save(update={"small": b"2"})
            rounds = syncer.status.rounds
            for key in (b"3", b"4"):
                eventually(lambda: syncer.status.rounds > rounds and syncer.status.state == SyncState.IDLE)
                assert syncer.status.places[0].pending_versions >= 2
                rounds = syncer.status.rounds
                notes.save(update={"small": key})
            assert syncer.run() and syncer.status.places[0].pending_versions == 0
