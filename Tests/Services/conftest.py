"""Fixtures. The stand-ins are modules beside this file. The package and its library come from the environment, as for Tests/Python."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, Iterator

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(ROOT / "Tests" / "Support"))
if importlib.util.find_spec("llvs") is None:
    sys.path.insert(0, str(ROOT / "bindings" / "python" / "src"))
    os.environ.setdefault("LLVS_LIBRARY", str(ROOT / "build" / "lib" / "libllvs.so"))
for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
    os.environ.pop(name, None)

from deep import leave_out, pytest_configure, pytest_terminal_summary, pytest_testnodedown  # noqa: E402, F401
from moved_clock import MovedClock  # noqa: E402

if TYPE_CHECKING:
    import llvs


def pytest_collection_modifyitems(config: Any, items: list[Any]) -> None:
    leave_out(config, items)


@pytest.fixture(autouse=True)
def clock() -> Iterator[MovedClock]:
    """The clock of the library, which shortens pauses between retries. Other processes have the real clock."""
    clock = MovedClock()
    clock.hurry()
    yield clock
    clock.close()


@pytest.fixture
def new_store(tmp_path: Path) -> Iterator[Callable[[], llvs.Store]]:
    """Makes stores that are closed at the end."""
    import llvs

    made: list[Any] = []

    def make() -> llvs.Store:
        made.append(llvs.Store(tmp_path / f"store{len(made)}"))
        return made[-1]

    yield make
    for store in made:
        store.close()


@pytest.fixture
def store(new_store: Callable[[], llvs.Store]) -> llvs.Store:
    """A store with three versions."""
    store = new_store()
    first = store.make_version(insert={"a": b"1", "é/:x": b"2"})
    second = store.make_version(first, update={"a": b"3"}, metadata={"author": "ann"})
    store.make_version(second, remove=["a"])
    return store
