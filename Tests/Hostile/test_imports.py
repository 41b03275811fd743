"""Imports of databases whose owner is hostile: the import copies them, and does not map, wait for or run anything of theirs."""

from __future__ import annotations

import fcntl
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import llvs
import pytest

ZONE = "CREATE TABLE Zone (key TEXT NOT NULL, version TEXT NOT NULL, data BLOB, PRIMARY KEY (key, version))"
VERSION, KEY = "00000000-0000-4000-8000-000000000001", "__llvs_root"
LEAF = b'{"children":{"values":[{"valueReference":{"valueId":"a","storedVersionId":"%s"}}]}}' % VERSION.encode()


@pytest.fixture
def theirs(tmp_path: Path) -> Path:
    """A store directory with one version; everything except the version is in databases."""
    folder = tmp_path / "theirs"
    (folder / "versions" / VERSION[:2]).mkdir(parents=True)
    text = f'{{"identifier":"{VERSION}","timestamp":1.5,"valueDataSize":1,"metadata":[]}}'
    (folder / "versions" / VERSION[:2] / f"{VERSION[2:]}.json").write_text(text)
    fill(folder / "maps" / "__llvs_values", ZONE, KEY, LEAF)
    fill(folder / "values", ZONE, "a", b"1")
    return folder


def fill(folder: Path, table: str, key: str, data: bytes) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "zone.sqlite").unlink(missing_ok=True)
    connection = sqlite3.connect(folder / "zone.sqlite")
    connection.executescript(table)
    connection.execute("INSERT INTO Zone (key, version, data) VALUES (?, ?, ?)", (key, VERSION, data))
    connection.commit()
    connection.close()


def imports(folder: Path, into: Path) -> None:
    with llvs.Store(into) as store:
        result = store.import_store(folder)
        assert not result.problems and store.at(VERSION)["a"] == b"1"
    # No copies remain.
    assert [file.name for file in into.parent.iterdir() if ".import-" in file.name] == []


def refuses(folder: Path, message: str, code: llvs.ErrorCode) -> None:
    with llvs.Store(folder.parent / "refusing") as store:
        with pytest.raises(llvs.Error, match=message) as caught:
            store.import_store(folder)
    assert caught.value.code == code, caught.value
    assert [file.name for file in folder.parent.iterdir() if ".import-" in file.name] == []


def test_what_is_in_the_log_is_imported_and_nothing_is_made_there(tmp_path: Path, theirs: Path) -> None:
    zone, whole = theirs / "values" / "zone.sqlite", tmp_path / "whole.sqlite"
    zone.unlink()
    connection = sqlite3.connect(whole)
    connection.executescript("PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0;" + ZONE)
    connection.execute("INSERT INTO Zone VALUES ('a', ?, ?)", (VERSION, b"1"))
    connection.commit()
    zone.write_bytes(whole.read_bytes())
    zone.with_name("zone.sqlite-wal").write_bytes(Path(f"{whole}-wal").read_bytes())
    connection.close()
    before = {file: file.read_bytes() for file in theirs.rglob("*") if file.is_file()}
    imports(theirs, tmp_path / "store")
    assert {file: file.read_bytes() for file in theirs.rglob("*") if file.is_file()} == before
    # The import does not map the shared memory, which its owner may cut short.
    zone.with_name("zone.sqlite-shm").symlink_to("/dev/null")
    imports(theirs, tmp_path / "again")


def test_the_copy_is_for_us_alone(tmp_path: Path, theirs: Path) -> None:
    fill(theirs / "values", ZONE, "a", b"LLZF" + b"1" * 100)
    seen: list[tuple[str, int]] = []

    def decode(data: bytes) -> bytes:
        for folder in tmp_path.glob("*.import-*"):
            seen.extend((file.name, file.stat().st_mode & 0o777) for file in [folder, *folder.iterdir()])
        return b"1"

    before = os.umask(0)
    try:
        with llvs.Store(tmp_path / "store") as store:
            assert not store.import_store(theirs, decode=decode).problems
    finally:
        os.umask(before)
    assert (
        seen
        and {mode for name, mode in seen if ".import-" in name} == {0o700}
        and {mode for name, mode in seen if ".import-" not in name} == {0o600}
    )
    assert not list(tmp_path.glob("*.import-*"))


@pytest.mark.skipif(not hasattr(fcntl, "F_SETLEASE"), reason="there are no leases here")
@pytest.mark.parametrize("file", ["zone.sqlite", "zone.sqlite-wal"])
def test_a_lease_is_not_waited_for(theirs: Path, file: str) -> None:
    place = theirs / "values" / file
    place.touch()
    script = (
        "import fcntl, os, signal, sys; signal.signal(signal.SIGIO, signal.SIG_IGN); f = os.open(sys.argv[1], os.O_RDWR); fcntl.fcntl(f,"
        " fcntl.F_SETLEASE, fcntl.F_WRLCK); print(flush=True); sys.stdin.read()"
    )
    owner = subprocess.Popen([sys.executable, "-c", script, str(place)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert owner.stdin and owner.stdout
    owner.stdout.readline()
    try:
        refuses(theirs, "holds a lease", llvs.ErrorCode.BUSY)
    finally:
        owner.communicate()


def test_claimed_sizes_cost_nothing(tmp_path: Path, theirs: Path) -> None:
    """A database of a terabyte that consists almost entirely of a hole."""
    os.truncate(theirs / "values" / "zone.sqlite", 1 << 40)
    with llvs.Store(tmp_path / "store") as store:
        try:
            store.import_store(theirs)
        except llvs.Error as error:
            assert error.code in (llvs.ErrorCode.NO_SPACE, llvs.ErrorCode.DAMAGED)


@pytest.mark.parametrize(
    "table",
    [
        "CREATE TABLE Zone (key TEXT NOT NULL, version TEXT NOT NULL, data BLOB)",
        "CREATE TABLE Zone (key TEXT NOT NULL, version TEXT NOT NULL, data BLOB); CREATE INDEX i ON Zone (key, version)",
        (
            "CREATE TABLE Zone (key TEXT NOT NULL, version TEXT NOT NULL, data BLOB); CREATE UNIQUE INDEX i ON Zone (key, version) WHERE"
            " version > '1'"
        ),
        "CREATE TABLE Zone (key TEXT COLLATE NOCASE, version TEXT, data BLOB, PRIMARY KEY (key, version))",
        "CREATE TABLE Zone (key TEXT PRIMARY KEY, version TEXT NOT NULL, data BLOB)",
        "CREATE TABLE Zone (key TEXT, version TEXT, data BLOB, more BLOB, PRIMARY KEY (key, version))",
        "CREATE TABLE Zone (key TEXT, version TEXT, data BLOB, more BLOB AS (zeroblob(900000000)) VIRTUAL, PRIMARY KEY (key, version))",
        ZONE + "; CREATE VIEW v AS SELECT 1",
        ZONE + "; CREATE TRIGGER t AFTER INSERT ON Zone BEGIN DELETE FROM Zone; END",
    ],
)
def test_other_tables_are_refused(theirs: Path, table: str) -> None:
    fill(theirs / "values", table, "a", b"1")
    refuses(theirs, "without a table", llvs.ErrorCode.NOT_A_STORE)


def test_computed_values_are_not_computed(theirs: Path) -> None:
    (theirs / "values" / "zone.sqlite").unlink()
    connection = sqlite3.connect(theirs / "values" / "zone.sqlite")
    connection.executescript(
        "CREATE TABLE Zone (key TEXT, version TEXT, data BLOB AS (zeroblob(900000000)) VIRTUAL, PRIMARY KEY (key, version))"
    )
    connection.execute("INSERT INTO Zone (key, version) VALUES ('a', ?)", (VERSION,))
    connection.commit()
    connection.close()
    refuses(theirs, "without a table", llvs.ErrorCode.NOT_A_STORE)


@pytest.mark.parametrize(
    "table",
    [ZONE + " WITHOUT ROWID", "CREATE TABLE Zone (key TEXT, version TEXT, data BLOB); CREATE UNIQUE INDEX i ON Zone (version, key)"],
)
def test_other_ways_to_say_the_same(tmp_path: Path, theirs: Path, table: str) -> None:
    fill(theirs / "values", table, "a", b"1")
    imports(theirs, tmp_path / "store")
