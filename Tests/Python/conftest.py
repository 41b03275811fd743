"""Fixtures of all tests: the package under test, profiles, and stores of every storage."""

from __future__ import annotations

import gc
import importlib.util
import os
import signal
import sys
from pathlib import Path
from typing import Any, Callable, Iterator
from urllib.parse import unquote, urlsplit

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(ROOT / "Tests" / "Support"))

# An installed package (a wheel, for example) is tested if there is one; otherwise the sources, with the library of this tree.
if importlib.util.find_spec("llvs") is None:
    sys.path.insert(0, str(ROOT / "bindings" / "python" / "src"))
    os.environ.setdefault("LLVS_LIBRARY", str(ROOT / "build" / "lib" / "libllvs.so"))
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [sys.path[0], os.environ.get("PYTHONPATH")]))

import deep  # noqa: E402
import llvs  # noqa: E402
import sampling  # noqa: E402
import strict_reader  # noqa: E402
from moved_clock import MovedClock  # noqa: E402
from deep import pytest_configure, pytest_testnodedown  # noqa: E402, F401 - hooks of pytest
from sampling import pytest_runtest_makereport  # noqa: E402, F401 - a hook of pytest

# A shell makes background processes ignore Ctrl-C, and their children inherit that. Tests send it, so it is enabled.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

sampling.load_profile()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    deep.leave_out(config, items)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    sampling.pytest_terminal_summary(terminalreporter)
    deep.pytest_terminal_summary(terminalreporter)


def pytest_collection_finish() -> None:
    """Excludes the objects that exist now from garbage collection: tests call the collector often."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def hurried() -> Iterator[None]:
    """Shortens the sleeps of the library, such as the ten seconds in which keys are created. Other processes have the real clock."""
    clock = MovedClock()
    clock.hurry()
    yield
    clock.close()


# Tests that damage a folder on purpose, or write files to it that no store writes.
HOSTILE = {
    "test_problems_of_an_exchange",
    "test_the_folder_passes_behind_a_plan",
    "test_foreign_files",
    "test_nothing_that_others_wrote_reaches_a_terminal_raw",
    "test_what_is_refused_here_when_made_is_carried_when_it_comes",
    "test_interchange_files_are_the_json_that_is_json",
    "test_no_file_of_the_suite_is_a_version",
    # These tests unpack a folder that version 0.1 wrote, and do not exchange with it.
    "test_stores",
    "test_snapshot",
    "test_coordinator",
    "test_problems_are_named",
}


def exchange_folders(directory: Path) -> Iterator[Path]:
    """Yields the folders at or below a directory that an exchange wrote."""
    for path, names, _ in os.walk(directory):
        if "versions" in names and "changes" in names:
            yield Path(path)


def refusals(directory: Path) -> list[str]:
    """Returns what another implementation refuses in the folders at or below a directory."""
    refused = []
    for folder in exchange_folders(directory):
        try:
            strict_reader.read(folder)
        except (strict_reader.Refused, ValueError, OSError) as problem:
            refused.append(f"{folder}: {problem}")
    return refused


@pytest.fixture(autouse=True)
def others_can_read(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Checks that the other implementation can read every folder, at the end of a test and when an exchange is closed."""
    refused: list[str] = []

    def close(exchange: llvs.Exchange, close: Callable[[llvs.Exchange], None] = llvs.Exchange.close) -> None:
        close(exchange)
        url = urlsplit(getattr(exchange, "_place", ""))
        if url.scheme == "file":
            refused.extend(refusals(Path(unquote(url.path))))

    monkeypatch.setattr(llvs.Exchange, "close", close)
    directory = request.getfixturevalue("tmp_path") if "tmp_path" in request.fixturenames else None
    yield
    if directory is not None:
        refused.extend(refusals(directory))
    if request.node.originalname in HOSTILE:
        return
    assert not refused, "another implementation cannot read a folder:\n" + "\n".join(refused)


class Places:
    """The path of a store of some storage, which can be opened more than once."""

    def __init__(self, kind: str, directory: Path) -> None:
        self.kind = kind
        self.directory = directory
        self.records: dict[int, bytes] = {}
        self.count = 0

    def open(self, **options: Any) -> llvs.Store:
        """Opens the store; a memory store is a new one each time."""
        if self.kind == "file":
            return llvs.Store(self.directory / "store.llvs", durability="normal", **options)
        if self.kind == "sqlite":
            return llvs.Store(self.directory / "store.db", storage="sqlite", durability="normal", **options)
        if self.kind == "memory":
            return llvs.Store(storage="memory", **options)
        return llvs.Store(storage=llvs.storage.DictStorage(self.records), **options)

    @property
    def lasts(self) -> bool:
        """Whether the contents remain after closing."""
        return self.kind != "memory"


STORAGES = ["file", "sqlite", "memory", "dict"]


@pytest.fixture(params=STORAGES)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Places:
    """A place for a store, of each storage in turn."""
    return Places(request.param, tmp_path)


@pytest.fixture
def store(place: Places) -> Iterator[llvs.Store]:
    """An open store of each storage in turn."""
    with place.open() as opened:
        yield opened


@pytest.fixture
def memory() -> Iterator[llvs.Store]:
    """An open memory store, for tests to which the storage does not matter."""
    with llvs.Store(storage="memory") as opened:
        yield opened


@pytest.fixture
def new_store() -> Iterator[Callable[[], llvs.Store]]:
    """Makes memory stores that are closed at the end."""
    made: list[llvs.Store] = []

    def make() -> llvs.Store:
        made.append(llvs.Store(storage="memory"))
        return made[-1]

    yield make
    for opened in made:
        opened.close()
