"""Messages of errors, reports and the log have one line each, whatever names they contain. And the contents of the log."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Iterator

import pytest

import llvs
from conftest import ROOT

#: Characters that must be escaped: they end a message, forge a line, control a terminal, or change the direction of text.
WILD = "a\0b\nWARNING forged\r\x1b[31m\x7f\x9b\u2028\u202e\u2066z"
TAME = "a\\x00b\\nWARNING forged\\r\\x1B[31m\\x7F\\u{9B}\\u{2028}\\u{202E}\\u{2066}z"
CONTROL = re.compile("[\0-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
#: The same as the name of a file, which cannot contain NUL.
WILD_NAME = WILD.replace("\0", "\x01")
TAME_NAME = TAME.replace("\\x00", "\\x01")


@pytest.fixture
def log() -> Iterator[list[str]]:
    lines: list[str] = []
    with llvs.log.observe_log(lambda level, message: lines.append(f"{level.name} {message}"), "debug"):
        yield lines
    assert not [line for line in lines if CONTROL.search(line)]


def is_tame(message: str, *wanted: str) -> None:
    assert not CONTROL.search(message), repr(message)
    for part in wanted:
        assert part in message, message


def test_value_ids() -> None:
    with llvs.Store(storage="memory") as store:
        base = store.make_version(insert={"x": b"1"})
        with pytest.raises(llvs.errors.InvalidReferenceError) as caught:
            store.make_version(base, changes=[llvs.Change.preserve(llvs.store.Reference(WILD, base.id))])
        # The text after the NUL is there, and the field has the id unchanged.
        is_tame(caught.value.message, TAME, "which stored none")
        assert caught.value.value_id == WILD


def test_version_ids() -> None:
    with llvs.Store(storage="memory") as store, pytest.raises(llvs.errors.InvalidIDError) as caught:
        store.make_version(insert={"x": b"1"}, id=WILD)
    is_tame(caught.value.message, TAME, "cannot be a version id")
    assert caught.value.version_id == WILD


def test_other_letters_stay() -> None:
    name = "åß漢字 ”🙂”é"
    with llvs.Store(storage="memory") as store:
        base = store.make_version(insert={"x": b"1"})
        with pytest.raises(llvs.errors.InvalidReferenceError, match=name):
            store.make_version(base, changes=[llvs.Change.preserve(llvs.store.Reference(name, base.id))])


@pytest.mark.parametrize("storage", ["file", "sqlite"])
def test_paths(storage: str, tmp_path: Path, log: list[str]) -> None:
    path = tmp_path / WILD_NAME
    with pytest.raises(llvs.NotFoundError) as caught:
        llvs.Store(path, storage=storage, create=False)
    is_tame(caught.value.message, TAME_NAME)
    assert caught.value.path == str(path)
    assert any("not opened" in line and TAME_NAME in line for line in log)


def test_damage(tmp_path: Path, log: list[str]) -> None:
    path = tmp_path / WILD_NAME
    with llvs.Store(path) as store:
        store.make_version(insert={WILD: b"some bytes" * 20})
    (segment,) = (path / "segments").glob("*.seg")
    content = bytearray(segment.read_bytes())
    content[len(content) // 2] ^= 0xFF
    segment.write_bytes(content)
    with llvs.Store(path) as store:
        damages = store.verify().damages
    assert damages
    for damage in damages:
        is_tame(damage.message)
        assert WILD_NAME in damage.file
    assert any(TAME_NAME in line for line in log)


def test_problems_of_an_exchange(tmp_path: Path, log: list[str]) -> None:
    """A store of another implementation is imported, since a shared folder ignores names that are no version ids."""
    theirs = tmp_path / "theirs"
    shutil.copytree(ROOT / "Tests/Vectors/interchange/store", theirs)
    (theirs / "versions" / WILD_NAME).write_bytes(b"")
    with llvs.Store(storage="memory") as store:
        (problem,) = store.import_store(theirs).problems
    assert problem.name.endswith(WILD_NAME)
    is_tame(problem.reason, TAME_NAME)


# The contents of the log


def told(log: list[str], pattern: str) -> list[str]:
    return [line for line in log if re.search(pattern, line)]


def test_a_line_for_each_thing_that_happens(tmp_path: Path, log: list[str]) -> None:
    path, folder = tmp_path / "store", (tmp_path / "folder").as_uri()
    with llvs.Store(path, durability="normal") as store:
        base = store.make_version(insert={"x": b"1"})
        left, right = store.make_version(base, update={"x": b"2"}), store.make_version(base, update={"y": b"3"})
        merged = store.merge(left, right)
        more = [store.make_version(merged, update={"x": str(number).encode()}) for number in range(3)]
        store.merge_heads(more[0])
        with llvs.Exchange(store, folder) as exchange:
            exchange.send()
        store.compact()
    assert told(log, r"^INFO Opened the store at .*store: 0 versions, 0 of them from the caches.* in \d+\.\d ms")
    (merging,) = told(log, rf"^DEBUG Merging .* gives {merged.id}")
    assert base.id in merging and left.id in merging and right.id in merging and "1 changes recorded" in merging
    assert told(log, r"^DEBUG Merged 3 heads of .*: 2 merges stored")
    assert told(log, r"^DEBUG Sending to .*: 0 versions listed there, 9 to send")
    assert told(log, r"^DEBUG Sending to .*: 9 of 9 versions sent")
    assert told(log, r"^INFO Sent 9 versions, with 0 problems: .*folder")
    assert told(log, r"^(INFO|DEBUG) Compacted the store at")
    assert told(log, r"^INFO Closed the store at .*store, in \d+\.\d ms")

    log.clear()
    with llvs.Store(tmp_path / "other.db", storage="sqlite") as other, llvs.Exchange(other, folder) as exchange:
        exchange.retrieve()
        (tmp_path / "folder" / "versions").rename(tmp_path / "folder" / "elsewhere")
        (tmp_path / "folder" / "versions").write_bytes(b"")
        with pytest.raises(llvs.Error):
            exchange.retrieve()
    assert told(log, r"^DEBUG Retrieving from .*: 9 versions listed there, 9 to fetch")
    assert told(log, r"^DEBUG Retrieving from .*: 9 version files fetched, 0 problems")
    assert told(log, r"^DEBUG Retrieving from .*: adding the next \d of 9")
    assert told(log, r"^INFO Retrieved 9 versions")
    assert told(log, r"^INFO The exchange with .*folder ended")

    log.clear()
    with llvs.Store(path):
        pass
    assert told(log, r"^INFO Opened the store at .*: 9 versions, [0-9] of them from the caches")
    llvs.Store.salvage(path, tmp_path / "salvaged")
    assert told(log, r"^INFO Salvaged .*store into .*salvaged: 9 versions whole, 0 made, 0 damaged places")


def test_compaction_and_repair_are_reported(tmp_path: Path, log: list[str]) -> None:
    path, folder = tmp_path / "store", (tmp_path / "folder").as_uri()
    last = None
    for number in range(12):
        with llvs.Store(path, options=llvs.StoreOptions(compaction="on_request")) as store:
            last = store.make_version(last, update={"x": str(number).encode() * 100})
    log.clear()
    with llvs.Store(path) as store, llvs.Exchange(store, folder) as exchange:
        exchange.send()
        report = store.compact()
        assert report.made == 1
        assert told(log, rf"^INFO Compacted .*: {report.folded} files compacted into 1 \({report.bytes_written} bytes\), 0 deleted")
    for segment in (path / "segments").glob("*.seg"):
        content = bytearray(segment.read_bytes())
        for at in range(200, len(content), 150):
            content[at] ^= 0xFF
        segment.write_bytes(content)
    with llvs.Store(path) as store, llvs.Exchange(store, folder) as exchange:
        store.verify()
        result = exchange.retrieve()
        assert len(result.versions) + len(result.repaired) > 0
    assert told(log, r"^(INFO|WARNING) .*(repaired|damaged, and is whole again|is damaged)")


def test_nothing_is_reported_without_a_listener(tmp_path: Path) -> None:
    lines: list[str] = []
    with llvs.log.observe_log(lambda level, message: lines.append(message), "warning"):
        with llvs.Store(tmp_path / "store") as store:
            base = store.make_version(insert={"x": b"1"})
            store.merge(store.make_version(base, update={"x": b"2"}), store.make_version(base, update={"y": b"3"}))
    with llvs.Store(tmp_path / "store"):
        pass
    assert lines == []
