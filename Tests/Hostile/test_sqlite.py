"""Databases, and files beside them, that would make SQLite do more than store bytes."""

from __future__ import annotations

import os
import sqlite3
import struct
import subprocess
import sys
from pathlib import Path

import llvs
import pytest


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "store.db"
    with llvs.Store(path, storage="sqlite") as store:
        store.make_version(None, insert={"a": b"1", "large": b"l" * 200_000})
    return path


def opens(path: Path, storage: str = "sqlite") -> None:
    for options in ({}, {"create": False}, {"read_only": True}):
        with llvs.Store(path, storage=storage, **options) as store:
            assert store.at(store.heads()[0])["a"] == b"1"


def refuses(path: Path, message: str, code: llvs.ErrorCode = llvs.ErrorCode.NOT_A_STORE) -> None:
    for options in ({}, {"create": False}, {"read_only": True}):
        with pytest.raises(llvs.Error, match=message) as caught:
            llvs.Store(path, storage="sqlite", **options).close()
        assert caught.value.code == code


# ---- A hot journal ----


def hot_journal(database: Path, victim: Path) -> bytes:
    """Makes a rollback journal that asks SQLite to delete `victim` after reverting the changes in the journal (none)."""
    name = os.fsencode(victim)
    pages = database.stat().st_size // 4096
    header = bytes.fromhex("d9d505f920a163d7") + struct.pack(">IIIII", 0, 0x1234, pages, 512, 4096)
    master = struct.pack(">I", 0x40000000 // 4096 + 1) + name + struct.pack(">II", len(name), sum(name)) + bytes.fromhex("d9d505f920a163d7")
    return header.ljust(512, b"\0") + master


def test_a_journal_deletes_nothing(tmp_path: Path, database: Path) -> None:
    victim, journal = tmp_path / "precious", Path(f"{database}-journal")
    victim.write_bytes(b"irreplaceable")
    journal.write_bytes(hot_journal(database, victim))
    refuses(database, "store.db-journal is beside it.*move the file away")
    # A salvage reads the pages, and does without SQLite.
    llvs.Store.salvage(database, tmp_path / "salvaged", storage="sqlite")
    opens(tmp_path / "salvaged", "file")
    assert victim.read_bytes() == b"irreplaceable" and journal.exists()
    journal.unlink()
    opens(database)


def test_a_journal_that_comes_later_deletes_nothing(tmp_path: Path, database: Path) -> None:
    """Further connections are opened while a store is in use."""
    victim, journal = tmp_path / "precious", Path(f"{database}-journal")
    victim.write_bytes(b"irreplaceable")
    with llvs.Store(database, storage="sqlite") as store:
        journal.write_bytes(hot_journal(database, victim))
        for call in (store.verify, store.reload, lambda: store.make_version(store.heads()[0], insert={"b": b"2"})):
            try:
                call()
            except llvs.Error:
                pass
    assert victim.exists()


# ---- Definitions ----


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TRIGGER t AFTER INSERT ON records BEGIN DELETE FROM records; END",
        "CREATE TRIGGER t AFTER INSERT ON caches BEGIN UPDATE caches SET data = zeroblob(1000000000); END",
        "CREATE VIEW v AS SELECT 1",
        "CREATE TABLE more(x)",
        "CREATE INDEX more ON records(length)",
        "CREATE UNIQUE INDEX more ON records(checksum) WHERE length > 1",
        "ALTER TABLE records ADD COLUMN more",
        "ALTER TABLE records ADD COLUMN more GENERATED ALWAYS AS (zeroblob(1000000000)) VIRTUAL",
        "ALTER TABLE chunks RENAME TO pieces",
        "DROP TABLE caches",
        (
            "DROP TABLE records; CREATE VIEW records AS WITH RECURSIVE x(seq, length, checksum, first, data) AS (SELECT 1, 1, 1, 1, 1 UNION"
            " ALL SELECT seq + 1, 1, 1, 1, 1 FROM x) SELECT * FROM x"
        ),
        (
            "DROP TABLE records; CREATE TABLE records(seq INTEGER PRIMARY KEY, length INTEGER NOT NULL, checksum INTEGER NOT NULL, first"
            " INTEGER, data BLOB, CHECK (length < 5))"
        ),
        (
            "DROP TABLE records; CREATE TABLE records(seq INTEGER PRIMARY KEY, length INTEGER NOT NULL, checksum INTEGER NOT NULL DEFAULT"
            " (randomblob(9)), first INTEGER, data BLOB)"
        ),
        "DROP TABLE caches; CREATE TABLE caches(name TEXT PRIMARY KEY, checksum INTEGER NOT NULL, data BLOB NOT NULL) WITHOUT ROWID",
        "CREATE VIRTUAL TABLE more USING fts5(x)",
        "PRAGMA application_id = 1",
    ],
)
def test_only_our_own_tables_are_taken(database: Path, statement: str) -> None:
    connection = sqlite3.connect(database)
    try:
        connection.executescript(statement)
    except sqlite3.OperationalError as error:
        assert "no such module" in str(error)
        return
    finally:
        connection.close()
    refuses(database, "are not those of a store|another application's")


def test_definitions_that_share_their_pages(database: Path) -> None:
    connection = sqlite3.connect(database)
    connection.executescript("PRAGMA writable_schema = ON; UPDATE sqlite_master SET rootpage = 2 WHERE name = 'chunks'")
    connection.close()
    refuses(database, "are not those of a store")


def test_a_new_database_is_as_sqlite_makes_one(tmp_path: Path) -> None:
    """The first pages of a new database are written without SQLite."""
    path = tmp_path / "new.db"
    llvs.Store(path, storage="sqlite").close()
    here = sqlite3.connect(path)
    assert here.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert here.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    schema = here.execute("SELECT type, name, tbl_name, rootpage, sql FROM sqlite_master").fetchall()
    numbers = [
        here.execute(f"PRAGMA {name}").fetchone() for name in ("application_id", "user_version", "encoding", "page_size", "page_count")
    ]
    here.close()
    there = sqlite3.connect(tmp_path / "there.db")
    there.executescript(";".join(row[4] for row in schema if row[4]))
    there.executescript("PRAGMA application_id = 0x4C4C5653; PRAGMA user_version = 1")
    assert there.execute("SELECT type, name, tbl_name, rootpage, sql FROM sqlite_master").fetchall() == sorted(
        schema, key=lambda row: (row[2] == "caches", row[3])
    )
    assert numbers == [
        there.execute(f"PRAGMA {name}").fetchone() for name in ("application_id", "user_version", "encoding", "page_size", "page_count")
    ]
    there.close()
    assert [file.name for file in tmp_path.iterdir() if file.suffix == ".new"] == []


def test_an_empty_file_becomes_a_database(tmp_path: Path) -> None:
    path = tmp_path / "empty.db"
    path.touch(mode=0o640)
    path.chmod(0o640)
    with llvs.Store(path, storage="sqlite") as store:
        store.make_version(None, insert={"a": b"1"})
    assert path.stat().st_mode & 0o777 == 0o640
    opens(path)


# ---- Files beside the database ----


@pytest.mark.parametrize("suffix", ["-wal", "-shm"])
def test_linked_files_beside_it(tmp_path: Path, database: Path, suffix: str) -> None:
    victim = tmp_path / "precious"
    victim.write_bytes(b"irreplaceable" * 1_000)
    Path(f"{database}{suffix}").unlink(missing_ok=True)
    Path(f"{database}{suffix}").symlink_to(victim)
    refuses(database, "is a symbolic link")
    assert victim.read_bytes() == b"irreplaceable" * 1_000


@pytest.mark.parametrize("suffix", ["-wal", "-shm"])
def test_files_beside_it_that_others_may_cut(database: Path, suffix: str) -> None:
    """A mapped file ends the process if another user cuts it short. The user who created it may do that."""
    file = Path(f"{database}{suffix}")
    file.touch()
    file.chmod(0o666)
    refuses(database, "may be written by users", llvs.ErrorCode.PERMISSION)
    file.chmod(0o600)
    opens(database)
    file.touch(mode=0o600)
    if os.geteuid() == 0:
        # Only root can change the owner of a file.
        os.chown(file, 12_345, 12_345)
        refuses(database, "may be written by users", llvs.ErrorCode.PERMISSION)


@pytest.mark.parametrize("suffix", ["", "-wal", "-shm"])
def test_further_names(tmp_path: Path, database: Path, suffix: str) -> None:
    """A write to a hard link changes the file under its other name."""
    victim, file = tmp_path / "precious", Path(f"{database}{suffix}")
    if suffix:
        file.unlink(missing_ok=True)
        victim.write_bytes(b"irreplaceable" * 1_000)
        victim.chmod(0o600)
        os.link(victim, file)
    else:
        os.link(file, victim)
    before = victim.read_bytes()
    with pytest.raises(llvs.Error, match=r"2 names \(hard links\).*copy") as caught:
        llvs.Store(database, storage="sqlite").close()
    assert caught.value.code == llvs.ErrorCode.PERMISSION
    assert victim.read_bytes() == before
    victim.unlink()
    file.unlink() if suffix else None
    opens(database)


def test_further_names_of_what_readers_write(tmp_path: Path, database: Path) -> None:
    """Readers of a database write to its shared memory, too."""
    victim, file = tmp_path / "precious", Path(f"{database}-shm")
    file.unlink(missing_ok=True)
    victim.write_bytes(b"irreplaceable" * 1_000)
    victim.chmod(0o600)
    os.link(victim, file)
    # Without a log the database can be opened for reading without shared memory.
    with llvs.Store(database, storage="sqlite", read_only=True) as store:
        assert store.at(store.heads()[0])["a"] == b"1"
    assert victim.read_bytes() == b"irreplaceable" * 1_000


def test_an_empty_file_of_another_user_gives_no_permissions(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        return  # Only root can change the owner of a file.
    path = tmp_path / "laid.db"
    path.touch()
    path.chmod(0o666)
    os.chown(path, 12_345, 12_345)
    llvs.Store(path, storage="sqlite").close()
    assert path.stat().st_mode & 0o777 == 0o600 and path.stat().st_uid == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize("is_link", [False, True])
def test_a_database_that_another_user_laid(tmp_path: Path, is_link: bool) -> None:
    """Another user created the database in a folder that all users may write to, and could read the data that is stored in it."""
    public, elsewhere = tmp_path / "public", tmp_path / "elsewhere"
    for folder in (public, elsewhere):
        folder.mkdir()
    public.chmod(0o1777)
    path, database = public / "notes.db", (elsewhere if is_link else public) / "notes.db"
    llvs.Store(database, storage="sqlite").close()
    os.chown(database, 12_345, 12_345)
    database.chmod(0o666)
    if is_link:
        path.symlink_to(database)
        os.chown(path, 12_345, 12_345, follow_symlinks=False)
    with pytest.raises(llvs.Error) as caught:
        llvs.Store(path, storage="sqlite")
    assert caught.value.code == llvs.ErrorCode.PERMISSION and "must_exist" in str(caught.value)
    # With `create=False` the caller confirms the existing file.
    llvs.Store(path, storage="sqlite", create=False).close()
    # A database of the folder's owner, or in a folder of one's own, is opened as usual.
    os.chown(path, 0, 0, follow_symlinks=False)
    os.chown(database, 0, 0)
    llvs.Store(path, storage="sqlite").close()


# ---- A limit on the size of files ----


def test_a_limit_on_the_size_of_files(tmp_path: Path) -> None:
    script = """if True:
        import llvs, os, resource, signal, sys
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        with llvs.Store(sys.argv[1], storage="sqlite") as store:
            first = store.make_version(None, insert={"a": b"1"})
            resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, resource.RLIM_INFINITY))
            try:
                store.make_version(first, insert={"large": os.urandom(4 << 20)})
            except llvs.Error as error:
                print(error.code.name)
            resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
            store.make_version(first, insert={"large": os.urandom(4 << 20)})
            assert len(list(store.history())) == 2
    """
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path / "store.db")], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.split() == ["NO_SPACE"], done


# ---- Cancelling ----


def test_a_verification_is_cancelled_within_sqlite(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with llvs.Store(path, storage="sqlite", durability="normal") as store:
        head = None
        for i in range(300):
            head = store.make_version(head, insert={f"k{i}": b"v" * 20_000})
        calls = 0

        def progress(done: llvs.control.Progress) -> bool:
            nonlocal calls
            calls += 1
            return calls < 5

        with pytest.raises(llvs.CancelledError):
            store.verify(progress=progress)
        assert calls == 5


def test_opening_a_database_again_leaves_the_locks_of_the_first_handle(tmp_path: Path) -> None:
    # Closing any descriptor of a file releases all locks of the process on it. Another process that closes the database last would then
    # remove the log, and later writes of the first handle would be lost.
    path = tmp_path / "notes.sqlite"
    script = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute('SELECT count(*) FROM records').fetchall(); c.close()"
    with llvs.Store(path, storage="sqlite") as first:
        version = first.make_version(None, insert={"a": b"1"})
        with llvs.Store(path, storage="sqlite"):
            subprocess.run([sys.executable, "-c", script, str(path)], check=True)
            assert (tmp_path / "notes.sqlite-wal").exists()
            version = first.make_version(version, update={"a": b"2"})
    with llvs.Store(path, storage="sqlite") as again:
        assert again.at(version)["a"] == b"2"


# ---- The locks of an open database ----


def locks(path: Path) -> int:
    """Returns the number of locks of this process on the database and on its shared memory."""
    numbers = {f":{path.with_name(path.name + suffix).stat().st_ino}" for suffix in ("", "-shm")}
    held = [line.split() for line in Path("/proc/locks").read_text().splitlines()]
    return sum(1 for line in held if line[4] == str(os.getpid()) and any(line[5].endswith(number) for number in numbers))


@pytest.mark.skipif(not Path("/proc/locks").exists(), reason="nobody tells of locks here")
def test_nothing_takes_the_locks_of_an_open_database(tmp_path: Path) -> None:
    path, other = tmp_path / "here" / "store.db", tmp_path / "other"
    path.parent.mkdir()
    with llvs.Store(path, storage="sqlite") as store:
        version = store.make_version(None, insert={"a": b"1"})
        held = locks(path)
        assert held > 0
        with pytest.raises(llvs.Error, match="is open in this process.*Close") as caught:
            llvs.Store.salvage(path, other, storage="sqlite")
        assert caught.value.code == llvs.ErrorCode.BUSY and not other.exists()
        assert locks(path) == held
        # The same file under another name.
        (tmp_path / "link.db").symlink_to(path)
        with pytest.raises(llvs.Error, match="is open in this process"):
            llvs.Store.salvage(tmp_path / "link.db", other, storage="sqlite")
        with pytest.raises(llvs.Error, match="is an SQLite database, of an unknown form"):
            store.import_store(path.parent)
        with pytest.raises(llvs.Error, match="is an SQLite database, of an unknown form"):
            store.import_store(path)
        # The database in place of each file that an import reads.
        for place in ("values/zone.sqlite", "maps/__llvs_values/zone.sqlite", "versions/AB/C.json"):
            for name in ("store.db", "store.db-shm"):
                folder = tmp_path / "theirs"
                for part in ("versions", "values", "maps/__llvs_values", "versions/AB"):
                    (folder / part).mkdir(parents=True, exist_ok=True)
                (folder / place).hardlink_to(path.parent / name)
                try:
                    store.import_store(folder)
                except llvs.Error as error:
                    assert error.code in (llvs.ErrorCode.BUSY, llvs.ErrorCode.NOT_A_STORE)
                (folder / place).unlink()
                assert locks(path) == held
        store.make_version(version, update={"a": b"2"})
    llvs.Store.salvage(path, other, storage="sqlite")


@pytest.mark.parametrize("left", [0, 0.5])
def test_a_log_that_is_cut_while_open_takes_no_more(tmp_path: Path, left: float) -> None:
    """SQLite would continue after the cut, and the next program that opens the database would find none of the later writes."""
    path = tmp_path / "s.db"
    log = Path(f"{path}-wal")
    with llvs.Store(path, storage="sqlite", durability="full") as store:
        head = None
        for number in range(20):
            head = store.make_version(head, insert={f"a{number}": b"1"})
        os.truncate(log, int(log.stat().st_size * left))
        for _ in range(3):
            with pytest.raises(llvs.Error, match="was cut short") as raised:
                store.make_version(head, insert={"lost": b"x"})
            assert raised.value.code == llvs.ErrorCode.DAMAGED


def test_a_log_that_another_program_put_into_the_database(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    with llvs.Store(path, storage="sqlite") as store:
        head = store.make_version(None, insert={"a": b"1"})
        program = f"import sqlite3; print(sqlite3.connect({str(path)!r}).execute('PRAGMA wal_checkpoint(TRUNCATE)').fetchone())"
        for number in range(3):
            done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
            assert done.stdout.startswith("(0,") and Path(f"{path}-wal").stat().st_size == 0
            head = store.make_version(head, update={"a": b"%d" % number})
    with llvs.Store(path, storage="sqlite", create=False) as store:
        assert store.at(head)["a"] == b"2"
