"""Fixtures for tests of the SQLite extension (bindings/sqlite), with an SQLite into which this Python can load extensions, and the
shell."""

from __future__ import annotations

import importlib
import json
import os
import sys
from pathlib import Path
from typing import Any, Callable, Iterator

import pytest

ROOT = Path(__file__).resolve().parents[2]
os.environ.setdefault("LLVS_LIBRARY", str(ROOT / "build" / "lib" / "libllvs.so"))
sys.path.insert(0, str(ROOT / "bindings" / "python" / "src"))
sys.path.append(str(ROOT / "Tests" / "Python"))

import llvs
from sampling import pytest_runtest_makereport, pytest_terminal_summary  # noqa: F401 - hooks of pytest


def drivers() -> list[str]:
    """Returns modules with an SQLite that loads extensions: Python's own if it was built so, and one with a newer SQLite."""
    found = []
    for name in ("sqlite3", "pysqlite3"):
        try:
            if hasattr(importlib.import_module(name).Connection, "enable_load_extension"):
                found.append(name)
        except ImportError:
            pass
    return found


# A process has the extension for one SQLite only (extension.c checks that). LLVS_SQLITE_DRIVER selects another one than the newest.
DRIVER = os.environ.get("LLVS_SQLITE_DRIVER") or (drivers() or [None])[-1]


@pytest.fixture(scope="session")
def driver() -> Any:
    """A module like sqlite3 whose connections can load extensions."""
    assert DRIVER, "no SQLite here loads extensions: install pysqlite3-binary"
    return importlib.import_module(DRIVER)


@pytest.fixture
def connect(driver: Any) -> Iterator[Callable[..., Any]]:
    """Opens connections with the extension loaded."""
    made = []

    def connect(path: object = ":memory:", **options: Any) -> Any:
        database = driver.connect(str(path), **options)
        made.append(database)
        database.enable_load_extension(True)
        database.load_extension(llvs.sqlite.extension_path())
        return database

    yield connect
    for database in made:
        database.close()


@pytest.fixture
def database(connect: Callable[..., Any]) -> Any:
    return connect()


#: The people of `contacts`.
PEOPLE = {"1": ("Smith", "Bob", 40), "2": ("smith", "Ann", 31), "3": ("Jones", "Cy", 22), "4": ("Smythe", "Dee", 5)}
RULES = {
    "merge": 1,
    "indexes": {
        "by-name": {"prefix": "contact/", "on": ["/lastName", "/firstName"], "text": "fold"},
        "by-age": {"prefix": "contact/", "on": ["/age"]},
        "by-tag": {"prefix": "contact/", "on": ["/tags/*"]},
    },
}


def person(id: str) -> bytes:
    last, first, age = PEOPLE[id]
    return json.dumps({"lastName": last, "firstName": first, "age": age, "tags": ["all", f"t{id}"]}).encode()


class Contacts:
    """A store with a few versions: `first` has all people, `second` lacks one and has other values. Two heads follow it: `draft`, on a
    branch of that name, and `last`, which is older and on no branch.
    """

    def __init__(self, path: Path, storage: str) -> None:
        self.path, self.storage = str(path), storage
        with llvs.Coordinator(self.path, storage=storage) as notes:
            notes.register_schema(RULES)
            self.first = notes.save(insert={f"contact/{id}": person(id) for id in PEOPLE}, metadata={"author": "ann", "n": 1}).id
            self.second = notes.save(remove=["contact/2"], insert={"note/1": b"a", "picture": b"\xff\xd8\0", "empty": b""}).id
            self.last = notes.save(insert={"note/2": "\N{LATIN SMALL LETTER E WITH ACUTE}".encode()}).id
            self.draft = notes.store.make_version(self.second, update={"contact/1": b'{"lastName":"Draft"}'}, branch="draft").id

    def open(self) -> llvs.Store:
        """Opens the store with the package, to compare results."""
        return llvs.Store(self.path, storage=self.storage, read_only=True)


@pytest.fixture(params=["file", "sqlite"])
def contacts(request: pytest.FixtureRequest, tmp_path: Path) -> Contacts:
    return Contacts(tmp_path / "contacts.llvs", request.param)
