"""`llvs.testing`: the suites pass correct implementations and find faulty ones, and faults in every operation lose nothing acknowledged."""

from __future__ import annotations

import threading
from collections import defaultdict
from pathlib import Path
from typing import Any, Callable, Iterable, Optional, Sequence

import llvs
import pytest
from llvs.testing import (
    Check,
    ConformanceError,
    Disturbance,
    FaultKind,
    FaultPlan,
    Operation,
    Outcome,
    check_storage,
    check_transport,
    storage_checks,
    transport_checks,
)
from sampling import sample

# Storages


class Disk:
    """The disk below a `DiskStorage`: what was written, and how much of it would survive a power cut."""

    def __init__(self) -> None:
        self.records: dict[int, bytes] = {}
        self.synced = 0
        self.failing = False
        self.lock = threading.Lock()

    def disturb(self, what: Disturbance) -> None:
        if what is Disturbance.POWER_CUT:
            for place in range(self.synced, len(self.records)):
                del self.records[place]
        else:
            self.failing = what is Disturbance.FAIL


class DiskStorage(llvs.storage.DictStorage):
    """Sound."""

    def __init__(self, disk: Disk) -> None:
        super().__init__(disk.records)
        self.disk = disk
        self.caches: dict[str, bytes] = {}

    def append(self, records: Sequence[bytes]) -> Sequence[int]:
        if self.disk.failing:
            raise OSError(5, "no disk")
        with self.disk.lock:
            return super().append(records)

    def sync(self) -> None:
        if self.disk.failing:
            raise OSError(5, "no disk")
        self.disk.synced = len(self.disk.records)


class LosesAppends(DiskStorage):
    def append(self, records: Sequence[bytes]) -> Sequence[int]:
        places = super().append(records)
        for place in places:
            if place % 5 == 3:
                self.records[place] = b""
        return places


class ReadsShort(DiskStorage):
    def read(self, place: int, offset: int, size: int) -> bytes:
        return super().read(place, offset, min(size, 5000))


class LiesAboutLengths(DiskStorage):
    def scan(self, mark: int, report: Any) -> int:
        for place in range(mark, len(self.records)):
            report(place, self.records[place] + b"?")
        return len(self.records)


class ForgetsErrorsOfSyncs(DiskStorage):
    def append(self, records: Sequence[bytes]) -> Sequence[int]:
        return llvs.storage.DictStorage.append(self, records)

    def sync(self) -> None:
        try:
            super().sync()
        except OSError:
            pass


class DoesNotSync(DiskStorage):
    def sync(self) -> None:
        pass


class Raises(DiskStorage):
    def read(self, place: int, offset: int, size: int) -> bytes:
        raise ZeroDivisionError("mine")


def check_disks(kind: type[DiskStorage], **options: Any) -> Any:
    disks: dict[int, Disk] = defaultdict(Disk)
    return check_storage(lambda place: kind(disks[place]), disturb=lambda place, what: disks[place].disturb(what), **options)


@pytest.mark.parametrize("check", storage_checks())
def test_a_storage_in_python_passes(check: str) -> None:
    report = check_disks(DiskStorage, only=check)
    assert report.failures == () and any(done == Check(check, Outcome.PASSED, "") for done in report.checks)


def test_the_librarys_storages_pass_behind_a_plan(tmp_path: Path) -> None:
    with FaultPlan() as plan:
        report = check_storage(lambda place: plan.storage(tmp_path / str(place), durability="normal"))
        assert {check.name for check in report.checks if check.outcome is Outcome.SKIPPED} >= {"a failed sync is an error"}
        assert plan.injected == 0 and plan.count(Operation.APPEND) > 10_000


@pytest.mark.parametrize(
    ("kind", "check"),
    [
        (LosesAppends, "records are read back"),
        (ReadsShort, "a record of several MiB is kept"),
        (LiesAboutLengths, "records are found again after closing"),
        (ForgetsErrorsOfSyncs, "a failed sync is an error"),
        (DoesNotSync, "what was synced survives a power cut"),
        (Raises, "ranges of a record are read"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_broken_storages_are_caught(kind: type[DiskStorage], check: str) -> None:
    with pytest.raises(ConformanceError, match=check) as caught:
        check_disks(kind, only=check)
    assert [failure.name for failure in caught.value.report.failures] == [check]


# Transports


class Place:
    """The state that the transports of one place share."""

    def __init__(self) -> None:
        self.versions: dict[str, bytes] = {}
        self.changes: dict[str, bytes] = {}
        self.snapshots: dict[str, bytes] = {}
        self.reached_by: list[llvs.exchange.Transport] = []
        self.failing = False

    def disturb(self, what: Disturbance) -> None:
        if what is Disturbance.POWER_CUT:
            raise NotImplementedError
        self.failing = what is Disturbance.FAIL


class DictTransport(llvs.exchange.Transport):
    """Sound."""

    name = "dict"

    def __init__(self, place: Place) -> None:
        self.place = place
        place.reached_by.append(self)

    def reach(self) -> Place:
        if self.place.failing:
            raise ConnectionError("nobody there")
        return self.place

    def list(self) -> Iterable[str]:
        return list(self.reach().versions)

    def fetch_versions(self, names: Sequence[str]) -> Sequence[Optional[bytes]]:
        return [self.reach().versions.get(name) for name in names]

    def fetch_changes(self, names: Sequence[str]) -> Sequence[Optional[bytes]]:
        return [self.reach().changes.get(name) for name in names]

    def send(self, files: Sequence[llvs.exchange.VersionFiles]) -> None:
        place = self.reach()
        for file in files:
            place.changes[file.name] = file.changes
            place.versions[file.name] = file.version
        for other in place.reached_by:
            other.notify()

    def snapshot_list(self) -> Iterable[str]:
        return list(self.place.snapshots)

    def snapshot_read(self, name: str) -> Optional[bytes]:
        return self.place.snapshots.get(name)

    def snapshot_write(self, name: str, data: bytes) -> None:
        self.place.snapshots[name] = data

    def snapshot_delete(self, name: str) -> None:
        self.place.snapshots.pop(name, None)


class ListsWhatIsAbsent(DictTransport):
    def list(self) -> Iterable[str]:
        return [*super().list(), "GONE"]


class Truncates(DictTransport):
    def fetch_changes(self, names: Sequence[str]) -> Sequence[Optional[bytes]]:
        return [data and data[:100_000] for data in super().fetch_changes(names)]


class MixesUp(DictTransport):
    def fetch_versions(self, names: Sequence[str]) -> Sequence[Optional[bytes]]:
        return super().fetch_versions(sorted(names))


class HidesThatItCannotReach(DictTransport):
    def reach(self) -> Place:
        return Place() if self.place.failing else self.place


def check_places(kind: type[DictTransport], **options: Any) -> Any:
    places: dict[int, Place] = defaultdict(Place)
    return check_transport(
        lambda place: kind(places[place]), disturb=lambda place, what: places[place].disturb(what), tells=True, **options
    )


@pytest.mark.parametrize("check", transport_checks())
def test_a_transport_in_python_passes(check: str) -> None:
    report = check_places(DictTransport, only=check)
    assert report.failures == () and any(done == Check(check, Outcome.PASSED, "") for done in report.checks)


@pytest.mark.parametrize(
    ("kind", "check"),
    [
        (ListsWhatIsAbsent, "what was sent is listed, and nothing else"),
        (Truncates, "large files are complete"),
        (MixesUp, "each name gets its own files"),
        (HidesThatItCannotReach, "an unreachable place is an error"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_broken_transports_are_caught(kind: type[DictTransport], check: str) -> None:
    with pytest.raises(ConformanceError, match=check):
        check_places(kind, only=check)


def test_the_folder_passes_behind_a_plan(tmp_path: Path) -> None:
    with FaultPlan() as plan:
        assert not check_transport(lambda place: plan.transport((tmp_path / str(place)).as_uri(), durability="normal"), tells=True).failures
        assert plan.injected == 0 and plan.count(Operation.SEND) > 100


# The end of suites


def test_what_a_factory_does_is_reported() -> None:
    def refuse(place: int) -> llvs.storage.Storage:
        raise ValueError("no more places")

    report = check_storage(refuse, raises=False)
    assert len(report.failures) > 20 and all("no more places" in check.message for check in report.failures if "at once" not in check.name)
    report = check_storage(lambda place: 7, only="a new storage", raises=False)  # type: ignore[arg-type, return-value]
    assert "7" in report.failures[0].message


def test_a_suite_can_be_ended() -> None:
    seen: list[str] = []

    def stop(check: Check) -> None:
        seen.append(check.name)
        if len(seen) == 2:
            raise LookupError("enough")

    with pytest.raises(LookupError, match="enough"):
        check_disks(DiskStorage, finished=stop)
    assert seen == storage_checks()[:2]

    def interrupt(place: int) -> llvs.storage.Storage:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        check_storage(interrupt)


# Faults


def test_the_one_that_was_named_fails() -> None:
    with FaultPlan(seed=3) as plan:
        with llvs.Store(storage=plan.storage(storage="memory")) as store:
            plan.reset()
            plan.fail(nth=2, on=Operation.APPEND, code=llvs.ErrorCode.NO_SPACE)
            store.make_version(insert={"a": b"1"})
            with pytest.raises(llvs.StorageError) as caught:
                store.make_version(insert={"a": b"2"}, root=True)
            assert caught.value.code == llvs.ErrorCode.NO_SPACE and "injected" in str(caught.value)
            store.make_version(insert={"a": b"3"}, root=True)
            assert (plan.injected, plan.count(Operation.APPEND), plan.count()) == (1, 3, plan.count(Operation.STORAGE))
            assert plan.last == "append 2 of the store in memory: fail"
            plan.clear()
            assert len(store.heads()) == 2


def test_the_same_seed_makes_the_same_faults() -> None:
    def failures(seed: int) -> list[int]:
        failed = []
        with FaultPlan(seed) as plan, llvs.Store(storage=plan.storage(llvs.storage.DictStorage())) as store:
            plan.fail(on=Operation.APPEND, probability=0.3)
            for turn in range(100):
                try:
                    store.make_version(insert={"a": b"1"}, root=True)
                except llvs.StorageError:
                    failed.append(turn)
        return failed

    assert failures(1) == failures(1) != failures(2)


@pytest.mark.parametrize("options", [{"nth": 0}, {"probability": 0.0}, {"probability": 1.5}, {"delay": -1.0}, {"count": 0}], ids=repr)
def test_rules_that_mean_nothing_are_refused(options: dict[str, Any]) -> None:
    with FaultPlan() as plan, pytest.raises(llvs.errors.InvalidArgumentError):
        plan.add(FaultKind.FAIL, **options)


def test_a_changed_byte_is_damage_and_never_a_wrong_value() -> None:
    seen = set()
    for seed in range(20):
        records: dict[int, bytes] = {}
        with FaultPlan(seed) as plan:
            plan.add(FaultKind.CORRUPT, on=Operation.APPEND)
            with llvs.Store(storage=plan.storage(llvs.storage.DictStorage(records))) as store:
                version = store.make_version(insert={"a": b"x" * 500})
        with llvs.Store(storage=llvs.storage.DictStorage(records)) as store:
            (damage,) = store.verify().damages
            seen.add(damage.lost)
            if damage.lost is llvs.store.Loss.NOTHING:
                # The damaged byte is in the envelope, so the content is intact.
                value = store.value("a", at=version)
                assert value is not None and value.data == b"x" * 500
                continue
            with pytest.raises(llvs.errors.UnknownVersionError if damage.lost is llvs.store.Loss.VERSION else llvs.StorageError):
                store.value("a", at=version)
            assert (store.version(version.id) is None) == (damage.lost is llvs.store.Loss.VERSION)
    assert seen == {llvs.store.Loss.NOTHING, llvs.store.Loss.VALUE, llvs.store.Loss.VERSION}


Kept = dict[str, tuple[str, bytes]]


def work(store: llvs.Store, transport: llvs.exchange.Transport, kept: Kept) -> None:
    """Commits, branches, exchanges and merges. What is acknowledged goes into `kept`, and what fails is left out."""

    def attempt(do: Callable[[], Any]) -> Any:
        try:
            return do()
        except llvs.Error as problem:
            assert "injected" in str(problem) or problem.code in (
                llvs.ErrorCode.DAMAGED,
                llvs.ErrorCode.UNKNOWN_PREDECESSOR,
                llvs.ErrorCode.UNKNOWN_VERSION,
            )

    def commit(id: str, base: Optional[str], key: str, value: bytes) -> None:
        if attempt(lambda: store.make_version(base, update={key: value}, id=id)):
            kept[id] = (key, value)

    def exchange() -> None:
        with llvs.Exchange(store, transport) as ex:
            attempt(ex.retrieve)
            attempt(ex.send)

    commit("first", None, "a", b"1")
    commit("left", "first", "a", b"2")
    commit("right", "first", "b", b"3")
    exchange()
    if {"left", "right"} <= kept.keys():
        merged = attempt(lambda: store.merge("left", "right", arbiter=llvs.MostRecentChange()))
        if merged:
            kept[merged.id] = ("b", b"3")
            commit("last", merged.id, "c", b"4")
    exchange()


#: Each kind of fault, and each storage, once: Tests/C/test_injection.c tries all of them.
FAULTY = [(FaultKind.FAIL, "sqlite"), (FaultKind.LOSE_ACKNOWLEDGEMENT, "file"), (FaultKind.PARTIAL, "dict")]
ALL_FAULTY = [(kind, storage) for kind, _ in FAULTY for storage in ("file", "sqlite", "dict")]


@pytest.mark.parametrize("kind, storage", sample(FAULTY, ALL_FAULTY))
def test_nothing_that_was_acknowledged_is_lost(tmp_path: Path, storage: str, kind: FaultKind) -> None:
    nth = faults = 0
    while nth == faults:
        nth += 1
        path, records, place, kept = tmp_path / str(nth), dict[int, bytes](), Place(), Kept()
        inner = llvs.storage.DictStorage(records) if storage == "dict" else path

        def reopened() -> llvs.Store:
            return llvs.Store(storage=llvs.storage.DictStorage(records)) if storage == "dict" else llvs.Store(path, storage=storage)

        with FaultPlan(seed=nth) as plan:
            plan.add(kind, nth=nth)
            try:
                with llvs.Store(storage=plan.storage(inner, storage="file" if storage == "dict" else storage)) as store:
                    work(store, plan.transport(DictTransport(place)), kept)
                    plan.clear()
                    # A refused version can be made again, under its id, in the same handle.
                    work(store, DictTransport(place), kept)
                    assert {"first", "left", "right", "last"} <= kept.keys(), plan.last
            except llvs.StorageError as problem:
                assert "injected" in str(problem)  # it did not open, or not close
            faults += plan.injected
            what = plan.last
        with reopened() as store:
            for id, (key, value) in kept.items():
                assert store.at(id)[key] == value, what
            assert not store.verify().damages, what
            work(store, DictTransport(place), kept)
            with llvs.Store(storage="memory") as other, llvs.Exchange(other, DictTransport(place)) as ex:
                assert not ex.retrieve().problems and kept.keys() <= {version.id for version in other.history()}, what
    assert nth > 15
