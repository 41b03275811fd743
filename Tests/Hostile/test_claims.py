"""Databases with rows that claim to be larger than the disk holds. SQLite would follow their pages as far as they claim."""

from __future__ import annotations

import os
import sqlite3
import struct
import subprocess
import sys
from pathlib import Path

import pytest

import llvs

SIZE = 300_000_000


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for i in range(9):
        value = value << 7 | (data[at + i] & 127)
        if data[at + i] < 128:
            return value, at + i + 1
    return value, at + 9


def claim(path: Path, table: str) -> None:
    """Adds a row of SIZE bytes to the database. Its first overflow page names itself as the next one."""
    with sqlite3.connect(path, isolation_level=None) as database:
        database.execute("pragma journal_mode=delete")
        row = {
            "records": "insert into records values(2, 65536, 0, null, zeroblob(?))",
            "length": "insert into records values(2, cast(zeroblob(?) as text), 0, null, null)",
            "caches": "insert into caches values('history', 0, zeroblob(?))",
        }[table]
        database.execute(row, (SIZE,))
        page = database.execute("pragma page_size").fetchone()[0]
    database.close()
    with path.open("rb") as file:
        data = bytearray(file.read(200 * page))
    overflow = 0
    for at in range(page, len(data) - page, page):
        count = struct.unpack_from(">H", data, at + 3)[0] if data[at] == 13 else 0
        for i in range(min(count, 50)):
            cell = at + struct.unpack_from(">H", data, at + 8 + 2 * i)[0]
            size, next = _varint(data, cell)
            _, next = _varint(data, next)
            if SIZE <= size < SIZE + 100:
                least = (page - 12) * 32 // 255 - 23
                local = least + (size - least) % (page - 4)
                local = local if local <= page - 35 else least
                overflow = struct.unpack_from(">I", data, next + local)[0]
    assert overflow
    del data[overflow * page :]
    struct.pack_into(">I", data, (overflow - 1) * page, overflow)
    pages = SIZE // page + 10
    struct.pack_into(">I", data, 28, pages)
    struct.pack_into(">II", data, 32, 0, 0)
    path.write_bytes(data)
    os.truncate(path, pages * page)
    path.chmod(0o600)


@pytest.mark.parametrize("table", ["records", "length", "caches"])
def test_a_row_costs_what_is_on_the_disk(tmp_path: Path, table: str) -> None:
    path = tmp_path / "store.db"
    with llvs.Store(path, storage="sqlite") as store:
        store.make_version(insert={"x": b"1"})
    claim(path, table)
    assert path.stat().st_blocks * 512 < 1 << 20
    body = f"""
import llvs

def peak():
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM:"))

before = peak()
with llvs.Store({str(path)!r}, storage="sqlite") as store:
    assert len(store.heads()) == 1 and store.at(store.heads()[0])["x"] == b"1"
    assert {table == "caches"} or store.verify().damages
llvs.Store.salvage({str(path)!r}, {str(tmp_path / "new.db")!r}, storage="sqlite", into_storage="sqlite")
assert peak() - before < 100 << 10, peak() - before
"""
    done = subprocess.run([sys.executable, "-c", body], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2_000:]
