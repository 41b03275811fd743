"""What all tests share: the package under test, profiles, and stores of every storage."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from typing import Any, Callable, Iterator

import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(Path(__file__).resolve().parent))

# An installed package is what is tested (a wheel, say); else the sources, with the library of this tree.
if importlib.util.find_spec("llvs") is None:
    sys.path.insert(0, str(ROOT / "bindings" / "python" / "src"))
    os.environ.setdefault("LLVS_LIBRARY", str(ROOT / "build" / "lib" / "libllvs.so"))
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [sys.path[0], os.environ.get("PYTHONPATH")]))

import llvs  # noqa: E402

# The default is the same every time; LLVS_HYPOTHESIS=explore searches anew, and prints how to come back to what it finds.
settings.register_profile("default", derandomize=True, deadline=None, print_blob=True, suppress_health_check=list(HealthCheck))
settings.register_profile("explore", deadline=None, print_blob=True, max_examples=1000, suppress_health_check=list(HealthCheck))
settings.load_profile(os.environ.get("LLVS_HYPOTHESIS", "default"))


class Places:
    """Where a store of some storage rests, to be opened more than once."""

    def __init__(self, kind: str, directory: Path) -> None:
        self.kind = kind
        self.directory = directory
        self.records: dict[int, bytes] = {}
        self.count = 0

    def open(self, **options: Any) -> llvs.Store:
        """Opens the store of this place; a memory store is a new one each time."""
        if self.kind == "file":
            return llvs.Store(self.directory / "store.llvs", durability="normal", **options)
        if self.kind == "sqlite":
            return llvs.Store(self.directory / "store.db", storage="sqlite", durability="normal", **options)
        if self.kind == "memory":
            return llvs.Store(storage="memory", **options)
        return llvs.Store(storage=llvs.DictStorage(self.records), **options)

    @property
    def lasts(self) -> bool:
        """Whether what was written is there after closing."""
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
    """An open memory store, where the storage does not matter."""
    with llvs.Store(storage="memory") as opened:
        yield opened


@pytest.fixture
def new_store() -> Iterator[Callable[[], llvs.Store]]:
    """Makes memory stores, all closed in the end."""
    made: list[llvs.Store] = []

    def make() -> llvs.Store:
        made.append(llvs.Store(storage="memory"))
        return made[-1]

    yield make
    for opened in made:
        opened.close()
