"""Fixtures of the tests of exchanges over a network. The package and its library come from the environment, as for Tests/Python."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Callable, Iterator

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(ROOT / "Tests" / "Python"))
sys.path.insert(0, str(ROOT / "Tests" / "Support"))
if importlib.util.find_spec("llvs") is None:
    sys.path.insert(0, str(ROOT / "bindings" / "python" / "src"))
    os.environ.setdefault("LLVS_LIBRARY", str(ROOT / "build" / "lib" / "libllvs.so"))

import llvs  # noqa: E402
from dav_server import DavServer  # noqa: E402
from deep import leave_out, pytest_configure, pytest_terminal_summary, pytest_testnodedown  # noqa: E402, F401
from moved_clock import MovedClock  # noqa: E402

# The machine's proxies must not be used for loopback.
for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
    os.environ.pop(name, None)


def pytest_collection_modifyitems(config: Any, items: list[Any]) -> None:
    """Selects tests of Ceph's gateway for deep runs only: they also run with moto, which starts at once. The tests of one server run on one
    worker, so that it is started once."""
    for item in items:
        kind = getattr(item, "callspec", None) and next(
            (item.callspec.params[name] for name in ("service", "process") if name in item.callspec.params), None)
        if kind is None:
            continue
        name = getattr(kind, "__name__", str(kind))
        if name in ("radosgw", "RadosGateway"):
            item.add_marker(pytest.mark.deep)
            # One cluster for all files.
            item.add_marker(pytest.mark.xdist_group("radosgw"))
        else:
            item.add_marker(pytest.mark.xdist_group(f"{item.path.stem} {name}"))
    leave_out(config, items)


@pytest.fixture(autouse=True)
def clock() -> Iterator[MovedClock]:
    """The clock of the library, which shortens pauses between retries. Other processes have the real clock."""
    clock = MovedClock()
    clock.hurry()
    yield clock
    clock.close()


@pytest.fixture
def server() -> Iterator[DavServer]:
    with DavServer() as server:
        yield server


@pytest.fixture
def new_store(tmp_path: Path) -> Iterator[Callable[[], llvs.Store]]:
    """Makes stores that are closed at the end."""
    made: list[llvs.Store] = []

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


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: Any) -> tuple[Path, Path]:
    """Returns a certificate for 127.0.0.1, which is its own authority, and its key."""
    folder = tmp_path_factory.mktemp("tls")
    found = folder / "certificate.pem", folder / "key.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=llvs test"]
    command += ["-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost", "-out", str(found[0]), "-keyout", str(found[1])]
    subprocess.run(command, check=True, capture_output=True)
    return found


def ids(store: llvs.Store) -> set[str]:
    return {version.id for version in store}


@pytest.fixture
def same() -> Callable[[llvs.Store, llvs.Store], bool]:
    return lambda a, b: ids(a) == ids(b)
