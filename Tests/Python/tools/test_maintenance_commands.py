"""Verifying, salvaging, snapshots and exports."""

from __future__ import annotations

import json
import random
import resource
import signal
import sqlite3
import subprocess
import tarfile
import zipfile
from pathlib import Path

import pytest

import llvs

from .conftest import Run, program

#: Ids, and the names that they have in archives.
NAMES = {
    "a": "a%",  # the folder of the next
    "a/b": "a/b",
    "../up": "%2E/up".replace("%2E", ".%2E"),
    "//": "%/%/%",
    "50%": "50%25",
    "con:aux\n": "con%3Aaux%0A",
    "dot.": "dot%2E",
    "ümlaut": "ümlaut",
}


@pytest.fixture
def notes(llvs_run: Run, tmp_path: Path) -> Run:
    """The command in a folder with a store of odd ids."""
    with llvs.Coordinator(tmp_path / "notes.llvs", device="tests") as store:
        store.save(insert={id: id.encode() for id in NAMES}, timestamp=1_700_000_000)
        store.save(update={"doc": b'{"n":1}', "raw": bytes(range(256)), "empty": b""}, timestamp=1_700_000_100)
    return llvs_run


def damage(store: Path) -> None:
    """Changes a tenth of the bytes of each segment, in its middle."""
    for segment in (store / "segments").iterdir():
        data = bytearray(segment.read_bytes())
        for at in range(len(data) // 2, len(data) * 6 // 10):
            data[at] ^= 0xFF
        segment.write_bytes(bytes(data))


def test_a_damaged_base_is_named_once(notes: Run) -> None:
    draw = random.Random(1)
    text = draw.randbytes(4_000)
    with llvs.Store("texts.llvs") as store:
        first = head = store.make_version(insert={"text": text})
        for i in range(5):
            head = store.make_version(head, update={"text": text[: 500 * i + 500] + b"new" + text[500 * i + 500 :]})
        assert store.statistics().differences == 5
    (segment,) = Path("texts.llvs/segments").iterdir()
    data = bytearray(segment.read_bytes())
    data[data.index(text[:16])] ^= 1
    segment.write_bytes(bytes(data))
    found = notes("-s", "texts.llvs", "verify", "--json", code=1).json["damages"]
    lost = [one for one in found if one["lost"] == "value"]
    assert len(lost) == 6 and [one["version"] for one in lost if not one["caused_by"]] == [first.id]
    assert all(one["caused_by"] == first.id for one in lost if one["version"] != first.id)
    shown = notes("-s", "texts.llvs", "verify", code=1).out
    assert "with it 5 later values of the id" in shown and head.id not in shown


def test_verify_and_salvage(notes: Run) -> None:
    assert notes("verify").out.endswith("all is whole\n")
    damage(Path("notes.llvs"))
    found = notes("verify", "--json", code=1).json
    assert set(found) == {"versions", "values", "forgotten", "pending", "vouched", "unvouched", "damages", "unfinished"}
    of_one = {"file", "offset", "message", "version", "lost", "value_id", "caused_by"}
    assert all(set(one) == of_one for one in found["damages"] + found["unfinished"])
    assert "damage found" in notes("verify", code=1).out
    Path("there").mkdir()
    assert "is something at there already" in notes("salvage", "there", code=3).err
    done = notes("salvage", "new.llvs", code=1).out
    assert "written to new.llvs" in done and "lost" in done
    assert notes("-s", "new.llvs", "verify", code=None).code in (0, 1)
    assert set(notes("-s", "notes.llvs", "salvage", "again", "--json", code=1).json) == {"versions", "waiting", "made", "damages"}


def test_snapshots_and_compaction(notes: Run) -> None:
    made = notes("snapshot", "write", "copy", "--json").json
    assert list(made) == ["id", "format", "latest_version", "created_at", "version_count", "chunk_count", "total_size", "problems"]
    notes("init", "new.llvs")
    assert "restored" in notes("-s", "new.llvs", "snapshot", "restore", "copy").out
    assert notes("-s", "new.llvs", "ls").out == notes("-s", "notes.llvs", "ls").out
    assert notes("-s", "new.llvs", "snapshot", "restore", "nowhere", code=3).err
    notes("-s", "new.llvs", "compact")
    assert set(notes("-s", "new.llvs", "compact", "--json").json) == {
        "folded", "made", "deleted", "bytes_written", "bytes_deleted", "sync_marker"
    }
    assert "is a store of this implementation" in notes("-s", "new.llvs", "import", "notes.llvs", code=3).err


def test_size(notes: Run) -> None:
    found = notes("size", "--json").json
    groups = ["by_kind", "by_prefix", "by_month", "by_version"]
    totals = ["values", "value_bytes", "bytes", "current_bytes", "past_bytes"]
    assert list(found) == ["versions", "unread", *totals, *groups] and found["versions"] == 3
    assert all(list(row) == ["name", *totals, "combined"] for group in groups for row in found[group])
    assert sum(row["bytes"] for row in found["by_kind"]) == found["bytes"] and len(found["by_version"]) == 3
    with llvs.Coordinator("notes.llvs", device="tests") as store:
        store.save(update={"a/b": bytes(100)}, timestamp=1_750_000_000)
    told = notes("size").out
    assert "versions, without their values" in told and "2023-11" in told and "2025-06" in told and "(none)" in told
    one = notes("size", "a/", "--each-id").out
    assert "a/b" in one and "kind" not in one and "dot." not in one
    few = notes("size", "--each-id", "--json", "-n", "1").json["by_prefix"]
    assert [row["combined"] for row in few] == [0, len(NAMES) + 2]
    deep = notes("size", "--depth", "2", "--json").json["by_prefix"]
    assert {row["name"] for row in deep} == {"", "a/", "../", "//"}
    damage(Path("notes.llvs"))
    assert notes("size", code=None).code in (0, 3)


def test_import(llvs_run: Run) -> None:
    """A folder that is no store is refused in one sentence; the import itself has tests of its own (test_import.py)."""
    llvs_run("init", "new.llvs")
    assert llvs_run("-s", "new.llvs", "import", "nowhere", code=3).err.count("\n") == 1


def test_exports(notes: Run) -> None:
    lines = notes("export").json_lines
    assert {"id": "doc", "kind": "json", "size": 7, "json": {"n": 1}} in lines and {"id": "empty", "kind": "empty", "size": 0} in lines
    notes("export", "-o", "x.jsonl")
    assert [json.loads(line) for line in Path("x.jsonl").read_text().splitlines()] == lines
    for name in ("x.tar", "x.zip", "x.sqlite"):
        assert "11 values of" in notes("export", "-o", name).err
        assert "--force replaces it" in notes("export", "-o", name, code=3).err
        notes("export", "-o", name, "--force")
    with tarfile.open("x.tar") as archive:
        found = {member.name: archive.extractfile(member).read() for member in archive}  # type: ignore[union-attr]
    assert {name: found[name] for name in NAMES.values()} == {name: id.encode() for id, name in NAMES.items()}
    assert found["raw"] == bytes(range(256)) and len(found) == 11
    with zipfile.ZipFile("x.zip") as packed:
        assert {name: packed.read(name) for name in packed.namelist()} == found
    database = sqlite3.connect("x.sqlite")
    rows = {id: (data, text) for id, data, text in database.execute("select id, data, json from value")}
    assert database.execute("select count(*) from version").fetchone() == (2,)
    database.close()
    assert rows["doc"] == (b'{"n":1}', '{"n": 1}') and rows["raw"] == (bytes(range(256)), None) and len(rows) == 11
    notes("set", "top=42.0", 'said="yes"', "plain=yes")
    found = {line["id"]: line for line in notes("export").json_lines}
    assert found["top"]["json"] == 42.0 and '"json": 42.0' in notes("export", "top").out and found["said"]["json"] == "yes"
    assert found["plain"]["text"] == "yes"
    notes("undo")
    assert "does not say how to write it" in notes("export", "-o", "x.exe", code=2).err
    assert len(notes("export", "a", "--at", "@~1").json_lines) == 2


@pytest.mark.parametrize("name", ["x.jsonl", "x.tar", "x.zip", "x.sqlite"])
def test_a_full_disk_while_exporting(notes: Run, tmp_path: Path, name: str) -> None:
    import random

    with llvs.Coordinator("notes.llvs") as store:
        store.save(insert={f"big/{number}": random.Random(number).randbytes(50_000) for number in range(10)})

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

    out = tmp_path / "out"
    out.mkdir()
    done = program("-s", "notes.llvs", "export", "-o", str(out / name), preexec_fn=limit, stderr=subprocess.PIPE)
    assert done.returncode == 3 and done.stderr.count(b"\n") == 1 and b"make room and run it again" in done.stderr, done.stderr
    assert list(out.iterdir()) == []
