"""The process around the library: its limits, its signals, its descriptors."""

from __future__ import annotations

import os
import resource
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import llvs
import pytest

LARGE = 1_200_000


@contextmanager
def free_descriptors(count: int) -> Iterator[None]:
    """Leaves this number of descriptors to the process."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
    taken: list[int] = []
    try:
        try:
            while True:
                taken.append(os.open("/dev/null", os.O_RDONLY))
        except OSError:
            pass
        for descriptor in taken[:count]:
            os.close(descriptor)
        del taken[:count]
        yield
    finally:
        for descriptor in taken:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_too_few_descriptors_are_reported(tmp_path: Path) -> None:
    """If a large value cannot be read, an older state is not mistaken for the newest."""
    path = tmp_path / "store"
    with llvs.Store(path) as store:
        version = store.make_version(None, insert={"a": b"1"})
    outcomes = set()
    for free in range(6):
        with llvs.Store(path) as reader:
            with llvs.Store(path) as writer:
                version = writer.make_version(version, insert={"a": os.urandom(LARGE)})
            with free_descriptors(free):
                try:
                    reader.reload()
                    outcomes.add("reloaded")
                    assert version.id in reader, f"{free} descriptors"
                except llvs.errors.TooManyFilesError:
                    outcomes.add("refused")
                try:
                    with llvs.Store(path) as another:
                        assert version.id in another, f"{free} descriptors"
                except llvs.errors.TooManyFilesError:
                    pass
            # Once there are enough descriptors, no version is missing.
            reader.reload()
            assert version.id in reader
    assert outcomes == {"reloaded", "refused"}


@pytest.mark.parametrize("what", ["first", "second", "large", "merge", "coordinator"])
@pytest.mark.parametrize("kind", ["file", "sqlite"])
def test_what_cannot_be_synced_for_want_of_descriptors_is_not_written(tmp_path: Path, kind: str, what: str) -> None:
    refused = 0
    for free in range(6):
        path = tmp_path / f"store-{free}"
        with llvs.Store(path, storage=kind) as store:
            base = store.make_version(None, insert={"a": b"1"})
            if what == "merge":
                sides = [store.make_version(base, insert={name: b"2"}) for name in ("b", "c")]
        with llvs.Coordinator(path, storage=kind) if what == "coordinator" else llvs.Store(path, storage=kind) as opened:
            store = opened.store if isinstance(opened, llvs.Coordinator) else opened
            if what == "second":
                base = store.make_version(base, update={"a": b"2"})
            before = len(list(store.history()))
            with free_descriptors(free):
                added = 1
                try:
                    if isinstance(opened, llvs.Coordinator):
                        opened.save(insert={"more": b"1"})
                    elif what == "merge":
                        store.merge(*sides)
                    else:
                        store.make_version(base, insert={"more": os.urandom(LARGE if what == "large" else 9)})
                except llvs.errors.TooManyFilesError:
                    refused += 1
                    added = 0
            store.reload()
            assert len(list(store.history())) == before + added, f"{free} descriptors"
        with llvs.Store(path, storage=kind) as again:
            assert len(list(again.history())) == before + added, f"{free} descriptors"
    assert refused > 0 or what == "second"


LIMITED = """
import os, resource, signal, sys, llvs
path, folder = sys.argv[1:]
signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
with llvs.Store(path) as store:
    version = store.make_version(None, insert={"a": b"1"})
    exchange = llvs.Exchange(store, folder)
    large = store.make_version(version, insert={f"k{i}": os.urandom(900_000) for i in range(3)})
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, resource.RLIM_INFINITY))
    def no_space(call):
        try:
            call()
        except llvs.Error as error:
            assert error.code == llvs.ErrorCode.NO_SPACE, error
        else:
            raise AssertionError("it was written")
    no_space(lambda: store.make_version(large, insert={"b": os.urandom(2_000_000)}))
    no_space(lambda: store.make_version(large, insert={f"k{i}": os.urandom(900_000) for i in range(3)}))
    no_space(exchange.send)
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    last = store.make_version(large, insert={"b": os.urandom(2_000_000)})
with llvs.Store(path) as store:
    assert last.id in store and not store.verify().damages
"""


def test_the_limit_on_file_sizes_is_an_error(tmp_path: Path) -> None:
    """The limit causes an error, and no signal that ends the process."""
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(tmp_path / "store"), str(tmp_path / "shared")], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr


TINY = """
import os, resource, signal, sys, llvs
path, limit, what = sys.argv[1], int(sys.argv[2]), sys.argv[3]
signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
if what == "save":
    coordinator = llvs.Coordinator(path)
    save = lambda: [coordinator.save(insert={f"a{i}": bytes([i])}) for i in range(5)]
else:
    def save():
        coordinator = llvs.Coordinator(path)
        for i in range(5):
            coordinator.save(insert={f"a{i}": bytes([i])})
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
try:
    save()
except llvs.Error as error:
    assert error.code in (llvs.ErrorCode.NO_SPACE, llvs.ErrorCode.UNKNOWN_OUTCOME), error
else:
    raise AssertionError("it was written")
"""


@pytest.mark.parametrize("what", ["open", "save"])
@pytest.mark.parametrize("limit", [0, 100, 512])
def test_a_tiny_limit_on_file_sizes_is_an_error(tmp_path: Path, limit: int, what: str) -> None:
    command = [sys.executable, "-c", TINY, str(tmp_path / "store"), str(limit), what]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, (done.returncode, done.stderr)


NOTED = """
import resource, signal, sys, llvs
path, limit, what = sys.argv[1], int(sys.argv[2]), sys.argv[3]
signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
coordinator = llvs.Coordinator(path)
first, second = coordinator.save(insert={"a": b"1"}), coordinator.save(update={"a": b"2"})
later = second.timestamp + 3600
made = coordinator.store.make_version(second, update={"a": b"3"}, timestamp=later)
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
if what == "move":
    try:
        coordinator.current_version = first.id
    except llvs.Error as error:
        assert error.code == llvs.ErrorCode.NO_SPACE, error
    else:
        raise AssertionError("it was written")
    assert coordinator.current_version == second
else:
    # The version is there, so nothing is appended; a note that cannot be written is a line in the log.
    saved = coordinator.save(update={"a": b"3"}, timestamp=later)
    assert saved.id == made.id == coordinator.current_version.id
"""


@pytest.mark.parametrize("what", ["move", "save"])
@pytest.mark.parametrize("limit", [0, 512])
def test_a_limit_that_only_the_note_meets(tmp_path: Path, limit: int, what: str) -> None:
    command = [sys.executable, "-c", NOTED, str(tmp_path / "store"), str(limit), what]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, (done.returncode, done.stderr)


def test_threads_of_the_library_take_no_signals(tmp_path: Path) -> None:
    own = signal.pthread_sigmask(signal.SIG_BLOCK, [])
    with llvs.Store(tmp_path / "store") as store:
        masks: list[set[int]] = []
        told = threading.Event()

        def called() -> None:
            masks.append(set(signal.pthread_sigmask(signal.SIG_BLOCK, [])))
            told.set()

        with store.observe(called):
            store.make_version(None, insert={"a": b"1"})
            assert told.wait(300)
        assert masks[0] >= {signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGCHLD, signal.SIGALRM, signal.SIGPROF}
        # Errors of the thread itself are still reported.
        assert not masks[0] & {signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT}
    assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == own


def test_an_observer_without_its_descriptors_goes_on(tmp_path: Path) -> None:
    """The host closed the observer's descriptors, as a daemon does. The observer polls, and ends on request."""
    path = tmp_path / "store"
    with llvs.Store(path) as store:
        version = store.make_version(None, insert={"a": b"1"})
        before = set(os.listdir("/proc/self/fd"))
        told = threading.Event()
        observer = store.observe(told.set)
        for name in set(os.listdir("/proc/self/fd")) - before:
            try:
                target = os.readlink(f"/proc/self/fd/{name}")
            except OSError:
                continue
            if target.startswith(("pipe:", "anon_inode:")):
                os.close(int(name))
        told.clear()
        with llvs.Store(path) as other:
            other.make_version(version, insert={"a": b"2"})
        assert told.wait(300)
        observer.close()


RAW_FORK = """
import ctypes, os, sys, llvs
libc = ctypes.CDLL(None)
store = llvs.Store(sys.argv[1])
version = store.make_version(None, insert={"a": b"1"})
child = libc._Fork()
if child == 0:
    try:
        store.make_version(version, insert={"a": b"2"})
        os._exit(1)
    except llvs.errors.ForkedError:
        os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
store.make_version(version, insert={"a": b"3"})
store.close()
"""


def test_a_child_without_the_handlers_of_fork_is_noticed(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", RAW_FORK, str(tmp_path / "store")], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


def test_a_umask_that_takes_from_the_owner(tmp_path: Path) -> None:
    path = tmp_path / "above" / "store"
    before = os.umask(0o177)
    try:
        with llvs.Coordinator(path) as coordinator:
            coordinator.save(insert={"a": b"1", "large": os.urandom(LARGE)})
    finally:
        os.umask(before)
    for folder in (path.parent, path, path / "segments", path / "blobs", path / "cache"):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700, folder


def test_an_exchange_within_its_store_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "store"
    (tmp_path / "link").symlink_to(path)
    with llvs.Store(path) as store:
        for place in (path, path / "shared", path / "segments", tmp_path / "link" / "shared"):
            with pytest.raises(llvs.errors.InvalidArgumentError, match="beside it"):
                llvs.Exchange(store, place)
        assert not (path / "shared").exists()
        llvs.Exchange(store, tmp_path / "store2").close()
    with llvs.Coordinator(path) as coordinator, pytest.raises(llvs.errors.InvalidArgumentError):
        coordinator.attach(path)
