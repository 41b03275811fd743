"""Statements during other events: other processes write, other threads query, a call is interrupted."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, Callable

import pytest

import llvs

from conftest import ROOT, Contacts

WRITER = """
import sys, llvs
path, storage = sys.argv[1:]
with llvs.Coordinator(path, storage=storage, options=llvs.CoordinatorOptions(compaction_grace=0.001)) as notes:
    for round in range(5):
        notes.save(update={f"v{n:05}": b"changed" for n in range(0, 3000, 7)}, remove=[f"v{round + 1:05}"], insert={f"new{round}": b""})
    notes.store.compact()
    notes.store.compact()
"""


def other_process(path: str, storage: str) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "bindings/python/src")}
    subprocess.run([sys.executable, "-c", WRITER, path, storage], env=environment, check=True, timeout=300)


@pytest.fixture(params=["file", "sqlite"])
def large(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, str]:
    path = str(tmp_path / "large.llvs")
    with llvs.Coordinator(path, storage=request.param) as notes:
        notes.register_schema({"merge": 1, "indexes": {"n": {"prefix": "", "on": ["/n"]}}})
        for part in range(0, 3_000, 500):
            notes.save(insert={f"v{n:05}": b'{"n":%d,"text":"%s"}' % (n, b"x" * 300) for n in range(part, part + 500)})
    return path, request.param


def test_a_statement_sees_one_state(large: tuple[str, str], database: Any) -> None:
    path, storage = large
    scan = database.execute("SELECT id, data FROM llvs_values(?) WHERE id >= 'v'", (path,))
    indexed = database.execute("SELECT id FROM llvs_values(?) WHERE index_name = 'n'", (path,))
    walk = database.execute("SELECT version FROM llvs_versions(?)", (path,))
    rows, found, versions = [scan.fetchone()], [indexed.fetchone()], [walk.fetchone()]
    other_process(path, storage)
    # Another statement that begins meanwhile reads the same state, as within a transaction.
    assert database.execute("SELECT count(*) FROM llvs_values(?) WHERE id >= 'v'", (path,)).fetchall() == [(3_000,)]
    rows += scan.fetchall()
    found += indexed.fetchall()
    versions += walk.fetchall()
    assert [id for id, _ in rows] == [f"v{n:05}" for n in range(3_000)] and not any(data == "changed" for _, data in rows)
    assert [row[0] for row in found] == [id for id, _ in rows] and len(versions) == 8
    # The next statement reads the new versions.
    assert database.execute("SELECT count(*) FROM llvs_values(?) WHERE id GLOB 'new*'", (path,)).fetchall() == [(5,)]
    assert database.execute("SELECT count(*) FROM llvs_versions(?)", (path,)).fetchall() == [(13,)]


def test_a_store_that_goes_in_the_middle_of_a_scan(large: tuple[str, str], database: Any, driver: Any, tmp_path: Path) -> None:
    path, storage = large
    scan = database.execute("SELECT id, data FROM llvs_values(?)", (path,))
    assert scan.fetchone()
    os.rename(path, tmp_path / "elsewhere")
    try:
        # Contents of the open files are right; the rest is an error.
        rows = scan.fetchall()
        assert [row[0] for row in rows if row[0] >= "v"][:2] == ["v00000", "v00001"]
    except driver.Error as error:
        assert len(str(error)) > 10
    scan.close()
    with pytest.raises(driver.OperationalError, match="there is no store at"):
        database.execute("SELECT id FROM llvs_values(?)", (path,)).fetchall()


def interrupted(database: Any, driver: Any, statement: str, path: str, said: str) -> None:
    """Checks that a long statement ends soon after an interrupt."""
    begun = threading.Event()
    database.create_function("note", 1, lambda value: begun.set() or value)

    def interrupt() -> None:
        begun.wait(300)
        # Change the store at some time after the first row.
        time.sleep(0.02)
        while not ended.wait(0.01):
            database.interrupt()

    ended = threading.Event()
    thread = threading.Thread(target=interrupt)
    thread.start()
    try:
        with pytest.raises(driver.OperationalError, match=said):
            database.execute(statement, (path,)).fetchall()
    finally:
        begun.set()
        ended.set()
        thread.join()


def test_interrupting_a_join(large: tuple[str, str], connect: Callable[..., Any], driver: Any) -> None:
    database = connect(check_same_thread=False)
    path, _ = large
    asked = "SELECT count(*) FROM llvs_values(?1) a, llvs_values(?1) b, llvs_values(?1) c WHERE note(a.id) <> b.id AND b.data <> c.data"
    interrupted(database, driver, asked, path, "interrupted")
    assert database.execute("SELECT count(*) FROM llvs_values(?)", (path,)).fetchall() == [(3_001,)]


def test_interrupting_what_the_library_does(connect: Callable[..., Any], driver: Any, tmp_path: Path) -> None:
    """One call of the library builds an index of many values. A progress handler interrupts it as well."""
    path = str(tmp_path / "indexed.llvs")
    with llvs.Coordinator(path) as notes:
        notes.register_schema({"merge": 1, "indexes": {"n": {"prefix": "", "on": ["/n"]}}})
        notes.save(insert={f"v{n:06}": b'{"n":%d,"text":"%s"}' % (n, b"x" * 500) for n in range(40_000)})
    database = connect(check_same_thread=False)
    long_step = "interrupted in the middle of a long step"
    interrupted(database, driver, "SELECT id FROM llvs_values(note(?)) WHERE index_name = 'n'", path, long_step)
    # Set just before the function is called, so that the long step is the first to notice.
    database.create_function("interrupting", 1, lambda value: database.interrupt() or value)
    with pytest.raises(driver.OperationalError, match=long_step):
        database.execute("SELECT id FROM llvs_values(interrupting(?)) WHERE index_name = 'n'", (path,)).fetchall()
    assert database.execute("SELECT count(*) FROM llvs_values(?) WHERE index_name = 'n'", (path,)).fetchall() == [(40_000,)]
    # The index is complete now, so nothing is interrupted.
    database.set_progress_handler(lambda: 1, 1)
    with pytest.raises(driver.OperationalError, match="interrupt"):
        database.execute("SELECT id FROM llvs_values(?) WHERE index_name = 'n'", (path,)).fetchall()
    database.set_progress_handler(None, 0)


def test_connections_in_threads(large: tuple[str, str], connect: Callable[..., Any]) -> None:
    path, storage = large
    wrong: list[object] = []

    def ask(number: int) -> None:
        try:
            database = connect(check_same_thread=False)
            for round in range(15):
                assert database.execute("SELECT count(*) FROM llvs_values(?) WHERE id >= 'v01000'", (path,)).fetchall() == [(2_000,)]
                asked = "SELECT count(*) FROM llvs_values(?1) a JOIN llvs_values(?1) b USING (id) WHERE a.id GLOB 'v002*'"
                assert database.execute(asked, (path,)).fetchall() == [(100,)]
                if round % 5 == number % 5:
                    database.execute("SELECT llvs_close(?)", (path,)).fetchall()
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_one_connection_in_threads(large: tuple[str, str], connect: Callable[..., Any]) -> None:
    path, _ = large
    database = connect(check_same_thread=False)
    wrong: list[object] = []

    def ask() -> None:
        try:
            for _ in range(20):
                assert database.execute("SELECT count(*) FROM llvs_values(?) WHERE id >= 'v01000'", (path,)).fetchall() == [(2_000,)]
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


@pytest.mark.parametrize("kind", ["file"])
def test_a_child_of_the_process(tmp_path: Path, driver: Any, kind: str) -> None:
    """SQLite's connections do not outlive a fork. A connection to memory can be used nevertheless, and opens its stores again in the
    child."""
    path = str(tmp_path / "forked.llvs")
    script = f"""
import importlib, os, sys
import llvs
driver = importlib.import_module({driver.__name__!r})
with llvs.Store({path!r}) as store:
    store.make_version(insert={{"a": b"1"}})
database = driver.connect(":memory:")
database.enable_load_extension(True)
database.load_extension(llvs.sqlite.extension_path())
asked = "SELECT data FROM llvs_values(?)"
assert database.execute(asked, ({path!r},)).fetchall() == [("1",)]
scan = database.execute(asked, ({path!r},))
child = os.fork()
if child == 0:
    try:
        # The statement that is open keeps the handle of the parent, which does not work here.
        try:
            database.execute(asked, ({path!r},)).fetchall()
            os._exit(3)
        except driver.Error as error:
            assert len(str(error)) > 10
        scan.close()
        assert database.execute(asked, ({path!r},)).fetchall() == [("1",)]
        os._exit(0)
    except BaseException as error:
        print(repr(error))
        os._exit(4)
assert os.waitpid(child, 0)[1] == 0
assert scan.fetchall() == [("1",)]
database.close()
"""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "bindings/python/src")}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
